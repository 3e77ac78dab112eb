"""docs/benchmarks.md, made from what is stored.

The page has what is measured and how, the tables, versions and machine, and how to repeat it.
"""

from __future__ import annotations

import datetime
import inspect
import re
from pathlib import Path

from benchmarks import _record
from benchmarks._record import NAMES, RESULTS, Benchmark, Record, table

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = "benchmarks.md"
OPENING = """\
<!-- Made by `scripts/bench --page` from benchmarks/results; changes by hand are lost. -->

# Benchmarks

What revealed claims about speed, size and prediction, as it was measured, with its peers in the
same run. Each claim is one file of `benchmarks/`, and each figure below is from a record in
`benchmarks/results`, which also has the digits that the tables leave out. To repeat everything:

```bash
scripts/bench
```

It installs the peers in `.venv`, takes about three hours, and writes the records and this page
anew. `scripts/bench NAME` repeats one; `scripts/bench --quick` shows in minutes that all of them
run, and changes nothing that is stored; `--help` shows the options.
"""
UNMEASURED = "not measured with this version"


def write(folder: Path = DOCS) -> Path:
    """Write the page and its figures into a folder; returns the page."""
    from revealed.io.atomic import atomic_write

    for benchmark in map(_record.load, NAMES):
        record = _record.stored(benchmark.name)
        if benchmark.figure is not None and record is not None:
            file, _, draw = benchmark.figure
            draw(record["result"], folder / file)
    atomic_write(folder / PAGE, render().encode())
    return folder / PAGE


def render(results: Path = RESULTS) -> str:
    """The page as Markdown: a table of all claims, then a section for each."""
    claims = [
        (benchmark, _record.stored(benchmark.name, results))
        for benchmark in map(_record.load, NAMES)
    ]
    lines = [
        (
            f"[{b.title}](#{_anchor(b.title)})",
            *(
                (UNMEASURED, "")
                if record is None
                else (b.finding(record["result"]), _format_date(record))
            ),
            f"`{b.name}`",
            b.takes,
        )
        for b, record in claims
    ]
    contents = table(("what", "found", "measured on", "name", "takes"), lines)
    return (
        "\n\n".join([OPENING + "\n" + contents, *(section(b, record) for b, record in claims)])
        + "\n"
    )


def section(benchmark: Benchmark, record: Record | None) -> str:
    """The section of one claim, with its figure, tables and circumstances.

    `record` is its record, or None where it was not measured.
    """
    parts = [f"## {benchmark.title}", inspect.cleandoc(benchmark.about or "")]
    if record is None:
        return "\n\n".join([*parts, f"{UNMEASURED.capitalize()}."])
    if benchmark.figure is not None:
        file, words, _ = benchmark.figure
        parts.append(f"![{words}]({file})")
    return "\n\n".join(
        [*parts, benchmark.tables(record["result"]), _circumstances(benchmark, record)]
    )


def _circumstances(benchmark: Benchmark, record: Record) -> str:
    """When, with what and on what it was measured, as a list.

    What a record does not know is left out.
    """
    arguments = ", ".join(
        f"{name} {_format_value(value)}" for name, value in record["arguments"].items() if value
    )
    took = "" if record["seconds"] is None else f", in {_format_duration(record['seconds'])}"
    measured = (
        f"Measured on {_format_date(record)}{took}{f', with {arguments}' if arguments else ''}."
    )
    package, host = record["revealed"], record["machine"]
    digest = f" (source {package['source']})" if package["source"] else ""
    others = [
        f"{_package_name(name)} {version or '(not recorded)'}"
        for name, version in record["versions"].items()
    ]
    versions = [f"revealed {package['version']}{digest}", *others]
    lines = [f"{measured} {record['circumstances']}".strip(), f"Versions: {', '.join(versions)}."]
    if host is not None:
        lines.append(
            f"Machine: {host['model']}, {host['architecture']}, {host['cores']} cores, "
            f"{host['memory_gb']:.0f} GB; a load of {record['load']:.1f} at the start."
        )
    lines.append(f"Repeat it: `scripts/bench {benchmark.name}` ({benchmark.takes}).")
    return "\n".join(f"- {line}" for line in lines)


def _format_value(value: int | float | str) -> str:
    """An argument for people: without needless decimals."""
    return value if isinstance(value, str) else f"{value:,}".removesuffix(".0")


def _package_name(package: str) -> str:
    """A package as it writes its own name."""
    return {"python": "Python", "numpyro": "NumPyro"}.get(package, package)


def _format_date(record: Record) -> str:
    """The day of a record, such as "5 November 2026"."""
    day = datetime.date.fromisoformat(record["date"])
    return f"{day.day} {day:%B %Y}"


def _format_duration(seconds: float) -> str:
    """A time for people, in seconds or minutes."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"


def _anchor(title: str) -> str:
    """The anchor that Markdown gives to a heading."""
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")
