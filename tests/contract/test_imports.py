"""Imports point one way, downwards, and importing the package stays light."""

import ast
import graphlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy

PACKAGE = Path(understudy.__file__).parent

# The bottom comes first. A module may import from its own layer and from those listed before it.
LAYERS = [
    {"kernels"},
    {"decisions", "orders"},
    {
        "worlds",
        "mdp",
        "mdp_input",
        "trajectories",
        "reward",
        "frames",
        "table_files",
        "groups",
        "shards",
        "likelihood",
        "separation",
        "limits",
        "posterior",
        "diagnostics",
        "pareto",
        "priors",
        "noise",
    },
    {
        "engines",
        "predict",
        "identify",
        "learn",
        "learnt",
        "players",
        "population",
        "each",
        "skills",
        "ranking",
        "stream",
        "compare",
    },
    {"estimator", "report", "plots", "along", "canvas"},
    {"cli", "studio", "paper", "__main__"},
]
HELPERS = {"_arrays", "_files", "_netcdf"}  # below everything
LAYER = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms}
DOOR = len(LAYERS) - 1.5  # the package's own __init__: sees everything below the outside, seen from the outside only
KERNEL_PARTS = {"numpy", "numba", "scipy.special"}  # scipy.special only for tables built at import
HEAVY = ["arviz", "matplotlib", "sklearn", "pyarrow", "pandas", "narwhals", "typer"]


def modules(package: Path) -> dict[str, Path]:
    """Every module below `package` by its dotted name; a package is named by its folder."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that a module imports, also inside functions and for types only."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                yield node.lineno, whole if whole in known else source


def room(name: str) -> str:
    """The part of the package a dotted name lies in; empty for the package itself."""
    return name.split(".")[1] if "." in name else ""


def height(name: str) -> float:
    return {"": DOOR, **dict.fromkeys(HELPERS, -1.0), **LAYER}.get(room(name), 0.0)


def complaints(package: Path) -> list[str]:
    """One sentence for each import that points the wrong way, and for each module that has no place."""
    known = modules(package)
    found = [
        f"{name}: {room(name)!r} has no layer yet; place it in LAYERS of tests/contract/test_imports.py and in ARCHITECTURE.md"
        for name in known
        if room(name) not in {"", *HELPERS, *LAYER}
    ]
    graph: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for line, target in imports(name, path, known):
            top = target.split(".")[0]
            if top != package.name:
                if room(name) == "kernels" and not {top, target} & {*KERNEL_PARTS, *sys.stdlib_module_names}:
                    found.append(f"{name}, line {line}: imports {target}; kernels know numpy and numba only")
            elif height(target) > height(name):
                found.append(f"{name}, line {line}: imports {target}, which lies above it; imports point downwards")
            else:
                graph[name].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as cycle:
        found.append(f"imports go round in a circle: {' <- '.join(cycle.args[1])}")
    return found


def test_imports_point_downwards() -> None:
    assert not complaints(PACKAGE), "\n".join(complaints(PACKAGE))


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        ("kernels/normal.py", "from understudy.decisions import Decisions", "lies above"),
        ("kernels/normal.py", "import scipy.linalg", "numpy and numba only"),
        ("kernels/normal.py", "from scipy import stats", "numpy and numba only"),
        ("decisions.py", "def f():\n    from understudy.priors import Flat", "lies above"),
        ("decisions.py", "from understudy import predict", "lies above"),
        ("priors.py", "from .engines import base", "lies above"),
        ("priors.py", "from . import fit", "lies above"),
        ("engines/base.py", "from ..cli import main", "lies above"),
        ("engines/base.py", "from understudy import fit", "lies above"),
        ("_arrays.py", "import understudy.kernels.normal", "lies above"),
        ("__init__.py", "from understudy.cli import main", "lies above"),
        ("priors.py", "from understudy.mdp import MDP", "in a circle"),
        ("attic.py", "", "'attic' has no layer yet"),
        ("engines/base.py", "import pandas", None),
        ("kernels/normal.py", "import hashlib, numpy.typing\nfrom scipy.special import ndtr", None),
        ("kernels/normal.py", "from understudy._arrays import Floats", None),
        ("engines/base.py", "from understudy import priors", None),
        ("cli.py", "import understudy as us", None),
    ],
)
def test_a_wrong_import_is_noticed(tmp_path: Path, module: str, line: str, complaint: str | None) -> None:
    package = tmp_path / "understudy"
    sound = {
        "__init__.py": "from understudy.engines.base import fit",
        "_arrays.py": "import numpy",
        "kernels/__init__.py": "",
        "kernels/normal.py": "",
        "decisions.py": "",
        "priors.py": "",
        "mdp.py": "from understudy.priors import Flat",
        "engines/__init__.py": "",
        "engines/base.py": "",
        "predict.py": "",
        "cli.py": "",
    }
    for name, text in {**sound, module: line}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    found = complaints(package)
    if complaint is None:
        assert not found
    else:
        assert len(found) == 1
        assert complaint in found[0]


def test_importing_the_package_is_light() -> None:
    code = f"import sys, understudy; print(*[name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [], "imported with the package, though only some functions need it"


@pytest.mark.parametrize("name", understudy.__all__)
def test_public_names_exist_and_explain_themselves(name: str) -> None:
    thing = getattr(understudy, name)
    text = inspect.getdoc(thing) or ""
    assert text, f"us.{name} has no docstring"
    assert not text.startswith(f"{name}("), f"us.{name} has only the docstring a dataclass writes for itself"
