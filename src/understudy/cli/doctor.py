"""`understudy doctor`: what is installed, kept and within reach, and what an extra would add."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli.fit import at_work
from understudy.cli.shell import BAD_INPUT, Json, answer, console
from understudy.cli.studio import PORT

EXTRAS = {
    "arviz": (("arviz",), "posteriors as ArviZ holds them: to_arviz()"),
    "studio": (("fastapi", "uvicorn", "sqlalchemy", "psycopg", "plotly"), "the web studio"),
    "cluster": (("dask", "distributed"), "fits on a Dask cluster: cluster=, --workers, --cluster"),
    "gym": (("gymnasium",), "Tetris as a Gymnasium environment"),
    "bench": (("jax", "numpyro", "nutpie", "openskill", "trueskill"), "the peers that benchmarks compare with"),
}
ON_THE_SIDE = {"pandas": "tables of pandas in and out", "polars": "tables of polars in and out"}
PROGRAMS = {"chromium": "tests of the studio's pages in a browser", "postgres": "the studio's tests on PostgreSQL"}


def doctor(
    database: Annotated[
        str | None,
        typer.Option(
            help="Look also whether the studio would reach this database: a file, or postgresql://...",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Look also whether a Dask scheduler answers here, such as tcp://head:8786.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what is installed, what is compiled and kept, what can be reached, and what an extra would add.

    Nothing is changed. The exit code is 2 where something that is needed or was asked for is missing.

    Example: `understudy doctor`, or, before a long run, `understudy doctor --database games.db --cluster tcp://127.0.0.1:8786`
    """
    found = examine(database, cluster)
    if json:
        answer(found)
    else:
        _tell(found)
    if not found["well"]:
        raise typer.Exit(BAD_INPUT)


def _tell(found: dict[str, Any]) -> None:
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
    for name, thing in found["reach"].items():
        out.print(f"{name}: {thing['found']}", markup=False)
    lost = [name for name, number in found["needed"].items() if number is None]
    lost += [name for name, thing in found["reach"].items() if not thing["well"]]
    out.print(f"Something is wrong with: {', '.join(lost)}" if not found["well"] else "All that is needed is there.")


def examine(database: str | None = None, cluster: str | None = None) -> dict[str, Any]:
    """All of it, for machines."""
    from understudy.engines.memory import free_memory
    from understudy.kernels._jit import cache_folder

    folder = Path(cache_folder())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    near = next(parent for parent in (folder, *folder.parents) if parent.exists())
    needed = {name: _version(name) for name in _needed()}
    asked = {"database": (database, _at_database), "cluster": (cluster, _at_cluster)}
    reach = {"studio": _port()} | {
        name: _looked(look, address) for name, (address, look) in asked.items() if address is not None
    }
    return {
        "well": all(needed.values()) and all(thing["well"] for thing in reach.values()),
        "understudy": version("understudy"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "executable": sys.executable,
        "cores": os.cpu_count(),
        "free_memory": free_memory(),
        "compiled": {"folder": folder, "bytes": size, "writable": os.access(near, os.W_OK)},
        "needed": needed,
        "extras": {
            name: {"adds": adds, "missing": [part for part in parts if importlib.util.find_spec(part) is None]}
            for name, (parts, adds) in EXTRAS.items()
        },
        "on_the_side": {
            name: {"adds": adds, "found": importlib.util.find_spec(name) is not None}
            for name, adds in ON_THE_SIDE.items()
        },
        "programs": {name: {"adds": adds, "found": _program(name)} for name, adds in PROGRAMS.items()},
        "reach": reach,
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


def _port() -> dict[str, Any]:
    """Whether a studio could be opened here as it is; one that cannot is no fault, for there are other ports."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", PORT))
        except OSError as reason:
            why = reason.strerror or str(reason)
            return {
                "well": True,
                "found": f"port {PORT} is not free ({why}); choose another with understudy studio --port",
            }
    return {"well": True, "found": f"port {PORT} is free on this machine"}


def _looked(look: Callable[[str], str], address: str) -> dict[str, Any]:
    try:
        return {"well": True, "found": look(address)}
    except ValueError as reason:
        return {"well": False, "found": str(reason)}


def _at_database(database: str) -> str:
    try:
        from understudy.studio.storage import seen_at
    except ImportError as missing:
        raise ValueError(
            f'looking at it needs {missing.name}, which is not installed; pip install "understudy[studio]"'
        ) from None
    return seen_at(database)


def _at_cluster(address: str) -> str:
    with at_work(None, address) as client:
        kinds = client.run(version, "understudy", on_error="return")
        threads = sum(client.nthreads().values())
    ours = version("understudy")
    odd = sorted({"none" if isinstance(kind, Exception) else str(kind) for kind in kinds.values()} - {ours})
    if odd:
        raise ValueError(f"workers at {address} have another understudy than {ours}, which is here: {', '.join(odd)}")
    return f"{address} can be reached; its workers: {len(kinds)}, with threads: {threads}"


def _program(name: str) -> bool:
    """On the path, or where Debian keeps PostgreSQL."""
    return shutil.which(name) is not None or any(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))


def _size(count: float | None) -> str:
    return "unknown" if count is None else f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
