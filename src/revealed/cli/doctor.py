"""`revealed doctor`: what is installed and reachable, and what an extra would add."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from revealed.cli._cluster import dask_client
from revealed.cli._shared import ExitCode, Json, console, print_json
from revealed.cli.studio import DEFAULT_PORT


@dataclass(frozen=True)
class Extra:
    """An optional part of the installation: the packages it needs, and what it adds."""

    packages: tuple[str, ...]
    adds: str


# The extras of pyproject.toml; a test compares them.
EXTRAS = MappingProxyType(
    {
        "arviz": Extra(("arviz",), "posteriors as ArviZ holds them: to_arviz()"),
        "studio": Extra(
            ("fastapi", "uvicorn", "sqlalchemy", "psycopg", "plotly"), "the web studio"
        ),
        "cluster": Extra(
            ("dask", "distributed"), "fits on a Dask cluster: executor=, --workers, --cluster"
        ),
        "gym": Extra(("gymnasium",), "Tetris as a Gymnasium environment"),
        "bench": Extra(
            (
                *("choix", "jax", "numpyro", "nutpie", "openskill", "psytrack"),
                *("threadpoolctl", "trueskill", "trueskillthroughtime", "xlogit"),
            ),
            "the peers that benchmarks compare with",
        ),
    }
)
OPTIONAL_PACKAGES = MappingProxyType(
    {"pandas": "tables of pandas in and out", "polars": "tables of polars in and out"}
)
PROGRAMS = MappingProxyType(
    {
        "chromium": "tests of the studio's pages in a browser",
        "postgres": "the studio's tests on PostgreSQL",
    }
)


def doctor(
    database: Annotated[
        str | None,
        typer.Option(
            help="Look also whether the studio would reach this database: a file, "
            "or postgresql://...",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Look also whether a Dask scheduler answers here, such as tcp://head:8786.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what is installed and compiled, what can be reached, and what an extra would add.

    Nothing is changed. The exit code is 2 where something that is needed or was asked for is
    missing.

    Example: `revealed doctor`, or, before a long run,
    `revealed doctor --database games.db --cluster tcp://127.0.0.1:8786`
    """
    # People and machines are told the same.
    found = inspect_installation(database, cluster)
    if json:
        print_json(found)
    else:
        _print_findings(found)
    if not found["ok"]:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _print_findings(found: dict[str, Any]) -> None:
    """Print what was found, a line a thing, for people."""
    out = console()
    out.print(f"revealed {found['revealed']} with Python {found['python']} on {found['system']}")
    out.print(f"{found['cores']} cores, {_format_bytes(found['free_memory'])} of memory free")
    # Where compiled code is kept, and whether it can be: without that, every start is slow.
    compiled = found["compiled"]
    if compiled["bytes"]:
        out.print(f"Compiled loops: {_format_bytes(compiled['bytes'])} in {compiled['folder']}")
    else:
        out.print(
            "Compiled loops: none yet; the first fit compiles them, once, into "
            f"{compiled['folder']}"
        )
    if not compiled["writable"]:
        out.print(
            "  which cannot be written: every process compiles anew. "
            "Set NUMBA_CACHE_DIR to a folder that can."
        )
    out.print(
        "Needed: "
        + ", ".join(f"{name} {number or 'MISSING'}" for name, number in found["required"].items())
    )
    # Extras that are missing come with the command that installs them.
    for name, extra in found["extras"].items():
        if extra["missing"]:
            out.print(
                f'Extra {name}: not installed; pip install "revealed\\[{name}]" '
                f"adds {extra['adds']}"
            )
        else:
            out.print(f"Extra {name}: installed ({extra['adds']})")
    for name, thing in {**found["optional_packages"], **found["programs"]}.items():
        out.print(f"{name}: {'found' if thing['found'] else 'not found'} ({thing['adds']})")
    for name, thing in found["reach"].items():
        out.print(f"{name}: {thing['found']}", markup=False)
    # The last line says whether all is well.
    missing = [name for name, number in found["required"].items() if number is None]
    missing += [name for name, thing in found["reach"].items() if not thing["ok"]]
    out.print(
        f"Something is wrong with: {', '.join(missing)}"
        if not found["ok"]
        else "All that is needed is there."
    )


def inspect_installation(database: str | None = None, cluster: str | None = None) -> dict[str, Any]:
    """What is installed, compiled and reachable, for machines.

    `database` and `cluster` are looked for where they are given. "ok" is False where something
    that is needed or was asked for is missing.
    """
    from revealed.kernels._compile import cache_folder
    from revealed.samplers.memory import free_memory

    # The cache of compiled code, which may not exist yet.
    folder = Path(cache_folder())
    size = (
        sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if folder.is_dir()
        else 0
    )
    # The nearest folder above that exists is the one that must be writable.
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    needed = {name: _installed_version(name) for name in _required_packages()}
    # Only what was asked for is looked at; the port of the studio always.
    asked = {"database": (database, _check_database), "cluster": (cluster, _check_cluster)}
    reach = {"studio": _check_port()} | {
        name: _check(look_at, address)
        for name, (address, look_at) in asked.items()
        if address is not None
    }
    return {
        "ok": all(needed.values()) and all(thing["ok"] for thing in reach.values()),
        "revealed": version("revealed"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "executable": sys.executable,
        "cores": os.cpu_count(),
        "free_memory": free_memory(),
        "compiled": {"folder": folder, "bytes": size, "writable": os.access(existing, os.W_OK)},
        "required": needed,
        "extras": {
            name: {
                "adds": extra.adds,
                "missing": [
                    package
                    for package in extra.packages
                    if importlib.util.find_spec(package) is None
                ],
            }
            for name, extra in EXTRAS.items()
        },
        "optional_packages": {
            name: {"adds": adds, "found": importlib.util.find_spec(name) is not None}
            for name, adds in OPTIONAL_PACKAGES.items()
        },
        "programs": {
            name: {"adds": adds, "found": _has_program(name)} for name, adds in PROGRAMS.items()
        },
        "reach": reach,
    }


def _required_packages() -> list[str]:
    """The names of the packages that the core needs, from its own metadata."""
    # extras are marked so in the metadata
    asked = [line for line in requires("revealed") or () if "extra ==" not in line]
    return [line.replace(">", " ").replace("=", " ").replace(";", " ").split()[0] for line in asked]


def _installed_version(name: str) -> str | None:
    """The version of a package, or None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _check_port() -> dict[str, Any]:
    """Whether the studio's default port is free.

    A port that is not is no fault, for there are others.
    """
    # Bound for a moment, as the studio would, and let go.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError as reason:
            why = reason.strerror or str(reason)
            return {
                "ok": True,
                "found": f"port {DEFAULT_PORT} is not free ({why}); "
                "choose another with revealed studio --port",
            }
    return {"ok": True, "found": f"port {DEFAULT_PORT} is free on this machine"}


def _check(look_at: Callable[[str], str], address: str) -> dict[str, Any]:
    """What is found at an address; an error of `look_at` is a finding too."""
    try:
        return {"ok": True, "found": look_at(address)}
    except ValueError as reason:
        return {"ok": False, "found": str(reason)}


def _check_database(database: str) -> str:
    """What the studio would find at this database, in words.

    Raises ValueError where it cannot be opened.
    """
    try:
        from revealed.studio.storage.database import describe_database
    except ImportError as missing:
        raise ValueError(
            f"looking at it needs {missing.name}, which is not installed; "
            'pip install "revealed[studio]"'
        ) from None
    return describe_database(database)


def _check_cluster(address: str) -> str:
    """What a Dask scheduler's workers are, in words.

    Workers with another version of this package are refused: their draws could differ.
    """
    # Every worker is asked for its version.
    with dask_client(None, address) as client:
        versions = client.run(version, "revealed", on_error="return")
        threads = sum(client.nthreads().values())
    ours = version("revealed")
    others = sorted(
        {"none" if isinstance(found, Exception) else str(found) for found in versions.values()}
        - {ours}
    )
    if others:
        raise ValueError(
            f"workers at {address} have another version of revealed than {ours}, which is here: "
            f"{', '.join(others)}"
        )
    return f"{address} can be reached; its workers: {len(versions)}, with threads: {threads}"


def _has_program(name: str) -> bool:
    """Whether a program is on the path.

    Debian keeps PostgreSQL elsewhere, so that is looked at too.
    """
    return shutil.which(name) is not None or any(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))


def _format_bytes(count: float | None) -> str:
    """A number of bytes for people, in megabytes or gigabytes."""
    return (
        "unknown"
        if count is None
        else f"{count / 1e9:.1f} GB"
        if count >= 1e9
        else f"{count / 1e6:.0f} MB"
    )
