"""The reference from docstrings: a hook of mkdocs that puts each `::: name` of docs/reference.md in full.

A name is one of `understudy.__all__`, or a function or class of `us.plots` and `us.worlds`. What is shown is what `help(name)` knows:
the signature, the docstring with its examples, and for a class its public methods and properties.
"""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from typing import Any

PAGE = "reference.md"
MARK = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
SECTION = re.compile(r"^(Args|Attributes):$")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What mkdocs calls with every page."""
    return MARK.sub(lambda mark: told(mark[1]), markdown) if page.file.src_path == PAGE else markdown


def found(name: str) -> Any:
    """What a dotted name stands for, from `understudy` on."""
    import understudy

    thing: Any = understudy
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def told(name: str) -> str:
    """A name in full, as Markdown."""
    thing = found(name)
    parts = [f"### {name}"]
    if not inspect.ismodule(thing) and not (inspect.isclass(thing) and issubclass(thing, Warning)):
        parts.append(f"```text\nus.{name}{signature(thing)}\n```")
    parts.append(prose(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing) and not issubclass(thing, Warning):
        parts.append("\n\n".join(member(each, vars(thing)[each]) for each in vars(thing) if own(thing, each)))
    return "\n\n".join(parts)


def own(thing: type, name: str) -> bool:
    """Whether a member is public, has a docstring, and is a method or a property."""
    what = vars(thing)[name]
    kinds = (property, staticmethod, classmethod)
    callable_ = inspect.isfunction(what) or isinstance(what, kinds) or type(what).__name__ == "cached_property"
    return not name.startswith("_") and not name.startswith("set_") and callable_ and bool(inspect.getdoc(what))


def member(name: str, what: Any) -> str:
    """A method or a property: its name, its signature without self, and its docstring."""
    inner = getattr(what, "__func__", what)
    called = "" if isinstance(what, property) or not inspect.isfunction(inner) else signature(inner, wide=True)
    first, _, rest = prose(inspect.getdoc(what) or "", fenced=False).partition("\n")
    return f"- **`.{name}{called}`** {first}\n{textwrap.indent(rest, ' ' * 4)}".rstrip()


def signature(thing: Any, wide: bool = False) -> str:
    """Names and defaults, without types; a long one is put on lines, unless it may be wide."""
    bare = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(thing).parameters.values()
        if each.name not in ("self", "cls")
    ]
    short = str(inspect.Signature(bare)).replace("<factory>", "{}")
    return short if wide or len(short) < 100 else short.replace(", ", ",\n    ").replace("(", "(\n    ", 1)[:-1] + "\n)"


def prose(docstring: str, fenced: bool = True) -> str:
    """A docstring as Markdown: arguments become a list, examples a block, fenced unless it stands in a list."""
    out: list[str] = []
    lines = docstring.splitlines()
    at = 0
    while at < len(lines):
        if SECTION.match(lines[at]):
            out.append("")
            at += 1
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
                line = lines[at][4:]
                first = re.match(r"([\w, ]+): (.*)", line)
                out.append(f"- `{first[1]}`: {first[2]}" if first else f"  {line.strip()}" if line.strip() else "")
                at += 1
        elif lines[at].startswith(">>>"):
            block = list(itertools.takewhile(str.strip, lines[at:]))
            out += ["", "```pycon", *block, "```", ""] if fenced else ["", *("    " + line for line in block), ""]
            at += len(block)
        else:
            out.append(lines[at])
            at += 1
    return "\n".join(out).strip()
