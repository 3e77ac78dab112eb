"""The reference from docstrings: a hook of mkdocs that writes each `::: name` of docs/reference.md.

A name is one of `revealed.__all__`, or a function or class of `rv.plots` and `rv.environments`.
`::: module.*` stands for all public names of a module, so that a new one needs no line there.
What is shown is what `help(name)` shows: the signature, the docstring with its examples, and for a
class its public methods and properties.
"""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from typing import Any

PAGE = "reference.md"
MARK = re.compile(r"^::: ([\w.]+?)(\.\*)?$", re.MULTILINE)
GOOGLE_SECTION = re.compile(r"^(Args|Attributes):$")
NUMPY_SECTION = re.compile(r"^(Parameters|Returns|Attributes|Raises|Yields|Examples|Notes)$")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page with its names written out; mkdocs calls this with every page."""
    if page.file.src_path != PAGE:
        return markdown
    return MARK.sub(lambda mark: describe_all(mark[1]) if mark[2] else describe(mark[1]), markdown)


def look_up(name: str) -> Any:
    """What a dotted name stands for, from `revealed` on."""
    import revealed

    thing: Any = revealed
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def describe_all(name: str) -> str:
    """The entries of all public names of a module, and of the modules among them.

    Where a module does not list its names, they are the functions and classes that it defines.
    """
    module = look_up(name)
    public = getattr(module, "__all__", None) or [
        each
        for each, thing in vars(module).items()
        if not each.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]
    entries = []
    for each in public:
        inside = f"{name}.{each}"
        is_module = inspect.ismodule(look_up(inside))
        entries.append(describe_all(inside) if is_module else describe(inside))
    return "\n\n".join(entries)


def describe(name: str) -> str:
    """The entry of a name, as Markdown: signature, docstring, and the members of a class."""
    thing = look_up(name)
    parts = [f"### {name}"]
    is_warning = inspect.isclass(thing) and issubclass(thing, Warning)
    if not inspect.ismodule(thing) and not is_warning:
        parts.append(f"```text\nrv.{name}{signature(thing)}\n```")
    parts.append(render_docstring(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing) and not is_warning:
        members = [each for each in vars(thing) if is_documented_member(thing, each)]
        parts.append("\n\n".join(render_member(each, vars(thing)[each]) for each in members))
    return "\n\n".join(parts)


def is_documented_member(thing: type, name: str) -> bool:
    """Whether a member is public, has a docstring, and is a method or a property."""
    member = vars(thing)[name]
    kinds = (property, staticmethod, classmethod)
    shown = (
        inspect.isfunction(member)
        or isinstance(member, kinds)
        or type(member).__name__ == "cached_property"
    )
    return not name.startswith(("_", "set_")) and shown and bool(inspect.getdoc(member))


def render_member(name: str, member: Any) -> str:
    """A method or a property: its name, its signature without self, and its docstring."""
    inner = getattr(member, "__func__", member)
    is_method = not isinstance(member, property) and inspect.isfunction(inner)
    called = signature(inner, wide=True) if is_method else ""
    docstring = render_docstring(inspect.getdoc(member) or "", fenced=False)
    first, _, rest = docstring.partition("\n")
    return f"- **`.{name}{called}`** {first}\n{textwrap.indent(rest, ' ' * 4)}".rstrip()


def signature(thing: Any, wide: bool = False) -> str:
    """Names and defaults, without types; a long one is put on lines, unless it may be wide."""
    bare = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(thing).parameters.values()
        if each.name not in ("self", "cls")
    ]
    short = str(inspect.Signature(bare)).replace("<factory>", "{}")
    if wide or len(short) < 100:
        return short
    return short.replace(", ", ",\n    ").replace("(", "(\n    ", 1)[:-1] + "\n)"


def render_docstring(docstring: str, fenced: bool = True) -> str:
    """A docstring as Markdown: sections of arguments become lists, examples blocks.

    Sections are those of NumPy's style, a word underlined by dashes, or Google's "Args:".
    `fenced` is False where the result stands inside a list.
    """
    out: list[str] = []
    lines = docstring.splitlines()
    at = 0
    while at < len(lines):
        underlined = at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1].strip())
        if NUMPY_SECTION.match(lines[at]) and underlined:
            heading, at = lines[at], at + 2
            # Examples and notes are text like any other; the others are lists of entries.
            if heading in ("Examples", "Notes"):
                continue
            out += ["", f"*{heading}*", ""]
            while at < len(lines) and lines[at].strip():
                is_entry = not lines[at].startswith(" ")
                out.append(f"- `{lines[at]}`" if is_entry else f"  {lines[at].strip()}")
                at += 1
        elif GOOGLE_SECTION.match(lines[at]):
            out.append("")
            at += 1
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
                line = lines[at][4:]
                entry = re.match(r"([\w, ]+): (.*)", line)
                text = f"  {line.strip()}" if line.strip() else ""
                out.append(f"- `{entry[1]}`: {entry[2]}" if entry else text)
                at += 1
        elif lines[at].startswith(">>>"):
            block = list(itertools.takewhile(str.strip, lines[at:]))
            if fenced:
                out += ["", "```pycon", *block, "```", ""]
            else:
                out += ["", "<!-- -->", "", *("    " + line for line in block), ""]
            at += len(block)
        else:
            out.append(lines[at])
            at += 1
    return "\n".join(out).strip()
