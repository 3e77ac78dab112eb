"""Imports point one way, downwards, and importing the package stays light."""

import ast
import graphlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import revealed

PACKAGE = Path(revealed.__file__).parent

# The bottom comes first. A module may import from its own layer and from those listed before it.
LAYERS = [
    {"kernels"},
    {"data"},
    {"models", "mdp", "environments", "io"},
    {"samplers", "results"},
    {"api", "forecasting", "online"},
    {"plots"},
    {"cli", "studio", "replication", "sklearn", "__main__"},
]
HELPERS = {"_types", "_validation"}  # below everything
LAYER_OF = {folder: layer for layer, folders in enumerate(LAYERS) for folder in folders}
# The one import that points upwards, inside a function: `Posterior.report` draws its pictures with
# matplotlib, which only plots know.
ALLOWED_UPWARDS = {("revealed.results.base", "revealed.plots.report")}
# The package's own __init__ imports from all layers but the last, and only the last imports it.
PACKAGE_LAYER = len(LAYERS) - 1.5
# llvmlite writes machine code for numba; scipy.special only for tables built at import
KERNEL_PARTS = {"numpy", "numba", "llvmlite", "scipy.special"}
OPTIONAL_OR_SLOW = ["arviz", "matplotlib", "sklearn", "pyarrow", "pandas", "narwhals", "typer"]


def modules(package: Path) -> dict[str, Path]:
    """Every module below `package` by its dotted name; a package is named by its folder."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that a module imports, also inside functions and for types."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                yield node.lineno, whole if whole in known else source


def folder_of(name: str) -> str:
    """The folder, or top-level module, of a dotted name; empty for the package itself."""
    return name.split(".")[1] if "." in name else ""


def layer_of(name: str) -> float:
    """The layer of a dotted name; the lowest where it has none, which is refused elsewhere."""
    layers = {"": PACKAGE_LAYER, **dict.fromkeys(HELPERS, -1.0), **LAYER_OF}
    return layers.get(folder_of(name), 0.0)


def complaints(package: Path) -> list[str]:
    """A sentence for each import that points the wrong way, and each module without a layer."""
    known = modules(package)
    found = [
        f"{name}: {folder_of(name)!r} has no layer yet; put it into LAYERS of "
        "tests/project/test_imports.py and into ARCHITECTURE.md"
        for name in known
        if folder_of(name) not in {"", *HELPERS, *LAYER_OF}
    ]
    graph: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for line, target in imports(name, path, known):
            top = target.split(".")[0]
            if top != package.name:
                if folder_of(name) == "kernels" and not {top, target} & {
                    *KERNEL_PARTS,
                    *sys.stdlib_module_names,
                }:
                    found.append(
                        f"{name}, line {line}: imports {target}; kernels know numpy and numba only"
                    )
            elif (name, target) in ALLOWED_UPWARDS:
                continue
            elif layer_of(target) > layer_of(name):
                found.append(
                    f"{name}, line {line}: imports {target}, which lies above it; "
                    "imports point downwards"
                )
            else:
                graph[name].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as cycle:
        found.append(f"imports go round in a circle: {' <- '.join(cycle.args[1])}")
    return found


def test_imports_point_downwards() -> None:
    assert not complaints(PACKAGE), "\n".join(complaints(PACKAGE))


def test_import_that_is_allowed_upwards_is_made_where_it_is_needed_only() -> None:
    """Not at the top of its module, which would import matplotlib with the package."""
    known = modules(PACKAGE)
    for name, target in ALLOWED_UPWARDS:
        top = ast.parse(known[name].read_text(encoding="utf-8")).body
        assert target not in {node.module for node in top if isinstance(node, ast.ImportFrom)}
        assert target in {found for _, found in imports(name, known[name], known)}


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        ("kernels/normal.py", "from revealed.data.decisions import Decisions", "lies above"),
        ("kernels/normal.py", "import scipy.linalg", "numpy and numba only"),
        ("kernels/normal.py", "from scipy import stats", "numpy and numba only"),
        (
            "data/decisions.py",
            "def f():\n    from revealed.models.priors import Flat",
            "lies above",
        ),
        ("data/decisions.py", "from revealed import api", "lies above"),
        ("models/priors.py", "from ..samplers import base", "lies above"),
        ("models/priors.py", "from .. import fit", "lies above"),
        ("samplers/base.py", "from ..cli import main", "lies above"),
        ("samplers/base.py", "from revealed import fit", "lies above"),
        ("results/base.py", "from revealed.plots import style", "lies above"),
        ("samplers/base.py", "from revealed.plots.report import write_report", "lies above"),
        ("results/base.py", "from revealed.plots.report import write_report", None),
        ("_types.py", "import revealed.kernels.normal", "lies above"),
        ("__init__.py", "from revealed.cli import main", "lies above"),
        ("models/priors.py", "from revealed.mdp.process import MDP", "in a circle"),
        ("attic.py", "", "'attic' has no layer yet"),
        ("samplers/base.py", "import pandas", None),
        ("kernels/normal.py", "import hashlib, numpy.typing\nfrom scipy.special import ndtr", None),
        ("kernels/normal.py", "from revealed._types import Floats", None),
        ("samplers/base.py", "from revealed.models import priors", None),
        ("cli.py", "import revealed as rv", None),
    ],
)
def test_wrong_import_is_caught(
    tmp_path: Path, module: str, line: str, complaint: str | None
) -> None:
    package = tmp_path / "revealed"
    sound = {
        "__init__.py": "from revealed.samplers.base import fit",
        "_types.py": "import numpy",
        "kernels/__init__.py": "",
        "kernels/normal.py": "",
        "data/__init__.py": "",
        "data/decisions.py": "",
        "models/__init__.py": "",
        "models/priors.py": "",
        "mdp/__init__.py": "",
        "mdp/process.py": "from revealed.models.priors import Flat",
        "samplers/__init__.py": "",
        "samplers/base.py": "",
        "results/__init__.py": "",
        "results/base.py": "",
        "plots/__init__.py": "",
        "plots/style.py": "",
        "plots/report.py": "",
        "api.py": "",
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


def test_importing_the_package_imports_nothing_slow() -> None:
    found = f"[name for name in {OPTIONAL_OR_SLOW} if name in sys.modules]"
    code = f"import sys, revealed; print(*{found})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [], "imported with the package, though only some functions need it"


@pytest.mark.parametrize("name", revealed.__all__)
def test_public_names_exist_and_have_a_docstring(name: str) -> None:
    thing = getattr(revealed, name)
    text = inspect.getdoc(thing) or ""
    assert text, f"rv.{name} has no docstring"
    assert not text.startswith(f"{name}("), (
        f"rv.{name} has only the docstring a dataclass writes for itself"
    )
