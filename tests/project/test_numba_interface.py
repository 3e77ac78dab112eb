"""Only numba's public interface is used: private names come and go with its versions."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Imports by this package of other parts of numba fail, as if those were gone; numba's own go on. Its
# manual offers numba.core.event to applications, and nothing else of numba.core.
WITHOUT_PRIVATE_NAMES = """
import builtins
import numba
import_as_usual = builtins.__import__

def refuse_private_parts(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    parts = [f"{name}.{part}" for part in fromlist or ()] or [name]
    private = [part for part in parts if part.startswith(("numba.core.", "numba.np.", "numba.cpython."))
               and not part.startswith("numba.core.event")]
    if importer.partition(".")[0] == "revealed" and private:
        raise ImportError(f"{importer} imports {private[0]}")
    return import_as_usual(name, globals, locals, fromlist, level)

builtins.__import__ = refuse_private_parts
before = dict(vars(numba.core.codegen.CPUCodeLibrary))
"""
USE = """
import importlib, pkgutil
import numpy as np
import revealed as rv
import revealed.kernels
for module in pkgutil.iter_modules(revealed.kernels.__path__):
    importlib.import_module(f"revealed.kernels.{module.name}")
# Machine code imports numba's own parts, in the name of the module that calls it.
builtins.__import__ = import_as_usual
features = np.random.default_rng(1).normal(size=(20, 2))
decisions = rv.Decisions(features, range(0, 21, 2), [0, 1] * 5)
posterior = rv.fit(decisions, draws=20, warmup=20, chains=1, seed=1, progress=False)
assert np.isfinite(posterior.draws["value"]).all()
assert dict(vars(numba.core.codegen.CPUCodeLibrary)) == before, "a private part of numba was replaced"
print("works")
"""
PRIVATE_IMPORT = """
exec(compile("from numba.core.codegen import CPUCodeLibrary", "m", "exec"), {"__name__": "revealed.m"})
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_every_kernel_is_imported_and_a_fit_runs_where_numba_has_no_private_names() -> None:
    done = run(WITHOUT_PRIVATE_NAMES + USE)
    assert done.stdout.strip() == "works", done.stderr


def test_the_simulation_refuses_a_private_import() -> None:
    done = run(WITHOUT_PRIVATE_NAMES + PRIVATE_IMPORT)
    assert "revealed.m imports numba.core.codegen" in done.stderr


# Without a wrapper for Python

WITHOUT_WRAPPER = {"compiled_internal", "compiled_within", "inlined_formula"}


def functions_without_wrapper(package: Path) -> set[str]:
    """Names of kernels that only other kernels can call: from Python they end the process."""
    return {
        node.name
        for path in (package / "kernels").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Name) and decorator.id in WITHOUT_WRAPPER
    }


def calls_from_python(package: Path) -> list[str]:
    """Where other folders of the package call such a function, by file and line."""
    names, found = functions_without_wrapper(package), []
    for path in sorted(package.rglob("*.py")):
        if path.parent.name == "kernels":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and "kernels" in (node.module or "")
            for alias in node.names
            if alias.name in names
        }
        found += [
            f"{path.name}, line {node.lineno}: {node.func.id}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in imported
        ]
    return found


def test_functions_without_a_wrapper_are_called_by_kernels_only() -> None:
    assert calls_from_python(ROOT / "src" / "revealed") == []


def test_a_call_from_python_is_found(tmp_path: Path) -> None:
    for folder, text in {
        "kernels": "@compiled_within\ndef multiply(v):\n    pass\n",
        "samplers": "from revealed.kernels.design import multiply\n\nmultiply(1)\n",
    }.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "design.py").write_text(text, encoding="utf-8")
    assert calls_from_python(tmp_path) == ["design.py, line 3: multiply"]
