"""How the package's code reads, in numbers: `python scripts/style.py [FOLDER ...]` prints a column of figures for each folder.

lines over 100       share of lines with more than 100 characters
fmt: skip            places where the formatter is switched off, outside literal tables
comments             share of lines that are a comment and nothing else
one-line docstrings  share of docstrings that are one line
bare constants       module-level NAMES in capitals that are not objects with named fields, nor computed tables
with a docstring     share of functions, methods and classes that have one
median, longest      lines of a file
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "revealed"
MAX_COLUMNS = 100
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*$")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every Python file below a folder but for tests, with its text."""
    for path in sorted(folder.rglob("*.py")):
        if not {"tests", "test"} & set(path.relative_to(folder).parts[:-1]):
            yield path, path.read_text(encoding="utf-8")


def comment_lines(text: str) -> int:
    """How many lines are a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(t.type == tokenize.COMMENT and t.line.lstrip().startswith("#") for t in tokens)


def is_settings(node: ast.expr) -> bool:
    """Whether an expression makes an object: a settings class with named fields, or a table that is computed."""
    return isinstance(node, ast.Call)


def constants(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and line of every bare constant of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            # of several that one expression computes, each is what its element is
            each = value.elt if isinstance(value, ast.GeneratorExp) else value
            values = (
                value.elts
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [each] * len(names)
            )
            for name, given in zip(names, values, strict=False):
                if (
                    isinstance(name, ast.Name)
                    and CONSTANT.match(name.id)
                    and not is_settings(given)
                ):
                    yield name.id, node.lineno


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, str | None]]:
    """Every definition of a module with its docstring, or None."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS):
            yield node, ast.get_docstring(node)


def figures(folder: Path) -> dict[str, str]:
    """The row of figures for one folder."""
    lines = long = skips = comments = bare = 0
    lengths, texts, defined = [], [], 0
    for _, text in sources(folder):
        tree = ast.parse(text)
        own = text.splitlines()
        lengths.append(len(own))
        lines += len(own)
        long += sum(len(line) > MAX_COLUMNS for line in own)
        skips += text.count("# fmt: skip")
        comments += comment_lines(text)
        bare += sum(1 for _ in constants(tree))
        found = [doc for _, doc in docstrings(tree)]
        defined += len(found)
        texts += [doc for doc in found if doc]
    one_line = sum("\n" not in doc for doc in texts)
    return {
        "lines over 100": f"{long / lines:.1%}",
        "fmt: skip": str(skips),
        "comments": f"{comments / lines:.1%}",
        "one-line docstrings": f"{one_line / max(1, len(texts)):.0%}",
        "bare constants": str(bare),
        "with a docstring": f"{len(texts) / max(1, defined):.0%}",
        "median / longest": f"{statistics.median(lengths):.0f} / {max(lengths)}",
    }


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [PACKAGE]
    columns = [figures(folder) for folder in folders]
    for name in columns[0]:
        print(f"{name:21}" + "".join(f"{column[name]:>14}" for column in columns))


if __name__ == "__main__":
    main()
