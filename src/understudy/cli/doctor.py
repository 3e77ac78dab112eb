"""`understudy doctor`: what is installed, kept and within reach, and what would help."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from understudy.cli.shell import Json, answer, console

EXTRAS = {
    "studio": (("fastapi", "uvicorn", "sqlalchemy", "psycopg", "plotly", "PIL"), "the web studio and moving pictures"),
    "cluster": (("dask", "distributed"), "fits on a Dask cluster: cluster=, --workers, --cluster"),
    "gym": (("gymnasium",), "Tetris as a Gymnasium environment"),
    "bench": (("jax", "numpyro", "nutpie", "openskill", "trueskill"), "the peers that benchmarks compare with"),
}
ON_THE_SIDE = {"pandas": "tables of pandas in and out", "polars": "tables of polars in and out"}
PROGRAMS = {"chromium": "tests of the studio's pages in a browser", "postgres": "the studio's tests on PostgreSQL"}


def doctor(json: Json = False) -> None:
    """Say what is installed, what is compiled and kept, what memory there is, and what an extra would add.

    Example: `understudy doctor`
    """
    found = examine()
    if json:
        answer(found)
        return
    out = console()
    out.print(f"understudy {found['understudy']} with Python {found['python']} on {found['system']}")
    out.print(f"{found['cores']} cores, {_size(found['free_memory'])} of memory free")
    kept = found["compiled"]
    if kept["bytes"]:
        out.print(f"Compiled loops: {_size(kept['bytes'])} in {kept['folder']}")
    else:
        out.print(f"Compiled loops: none yet; the first fit compiles them, once, into {kept['folder']}")
    if not kept["writable"]:
        out.print("  which cannot be written: every process compiles anew. Set NUMBA_CACHE_DIR to a folder that can.")
    out.print("Needed: " + ", ".join(f"{name} {number or 'MISSING'}" for name, number in found["needed"].items()))
    for name, extra in found["extras"].items():
        if extra["missing"]:
            out.print(f'Extra {name}: not installed; pip install "understudy\\[{name}]" adds {extra["adds"]}')
        else:
            out.print(f"Extra {name}: installed ({extra['adds']})")
    for name, thing in {**found["on_the_side"], **found["programs"]}.items():
        out.print(f"{name}: {'found' if thing['found'] else 'not found'} ({thing['adds']})")
    lost = [name for name, number in found["needed"].items() if number is None]
    out.print(f"Something is wrong: {', '.join(lost)} must be installed" if lost else "All that is needed is there.")


def examine() -> dict[str, Any]:
    """All of it, for machines."""
    from understudy.engines.memory import free_memory
    from understudy.kernels._jit import cache_folder

    folder = Path(cache_folder())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    near = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return {
        "understudy": version("understudy"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "executable": sys.executable,
        "cores": os.cpu_count(),
        "free_memory": free_memory(),
        "compiled": {"folder": folder, "bytes": size, "writable": os.access(near, os.W_OK)},
        "needed": {name: _version(name) for name in _needed()},
        "extras": {
            name: {"adds": adds, "missing": [part for part in parts if importlib.util.find_spec(part) is None]}
            for name, (parts, adds) in EXTRAS.items()
        },
        "on_the_side": {
            name: {"adds": adds, "found": importlib.util.find_spec(name) is not None}
            for name, adds in ON_THE_SIDE.items()
        },
        "programs": {name: {"adds": adds, "found": _program(name)} for name, adds in PROGRAMS.items()},
    }


def _needed() -> list[str]:
    """The packages that the core asks for, by name."""
    asked = [line for line in requires("understudy") or () if "extra ==" not in line]
    return [line.replace(">", " ").replace("=", " ").replace(";", " ").split()[0] for line in asked]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _program(name: str) -> bool:
    """On the path, or where Debian keeps PostgreSQL."""
    return shutil.which(name) is not None or any(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))


def _size(count: float | None) -> str:
    return "unknown" if count is None else f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
