"""docs/benchmarks.md, made whole from what is stored: what is measured and how, the tables, with what, on what, and how to repeat it."""

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
<!-- Made by `scripts/bench --page` from benchmarks/results; what is changed here by hand is lost. -->

# Benchmarks

What understudy claims about speed, size and prediction, as it was measured, with its peers in the same run. Each claim is one file of `benchmarks/`, and
each figure below is from a record in `benchmarks/results`, which also has the digits that the tables leave out. To repeat everything:

```bash
scripts/bench
```

It installs the peers in `.venv`, takes about three hours, and writes the records and this page anew. `scripts/bench NAME` repeats one; `scripts/bench --quick` shows
in minutes that all of them run, and changes nothing that is stored; `--help` tells more.
"""
UNMEASURED = "not measured with this version"


def write(folder: Path = DOCS) -> Path:
    """Write the page and its figures; returns where the page is."""
    from understudy._files import write_whole

    for benchmark in map(_record.load, NAMES):
        made = _record.stored(benchmark.name)
        if benchmark.figure is not None and made is not None:
            file, _, draw = benchmark.figure
            draw(made["result"], folder / file)
    write_whole(folder / PAGE, render().encode())
    return folder / PAGE


def render(results: Path = RESULTS) -> str:
    """The page."""
    all_of_them = [(benchmark, _record.stored(benchmark.name, results)) for benchmark in map(_record.load, NAMES)]
    lines = [
        (
            f"[{b.title}](#{_anchor(b.title)})",
            *((UNMEASURED, "") if made is None else (b.finding(made["result"]), _day(made))),
            f"`{b.name}`",
            b.takes,
        )
        for b, made in all_of_them
    ]
    contents = table(("what", "found", "measured on", "name", "takes"), lines)
    return "\n\n".join([OPENING + "\n" + contents, *(section(b, made) for b, made in all_of_them)]) + "\n"


def section(benchmark: Benchmark, made: Record | None) -> str:
    """One claim."""
    parts = [f"## {benchmark.title}", inspect.cleandoc(benchmark.about or "")]
    if made is None:
        return "\n\n".join([*parts, f"{UNMEASURED.capitalize()}."])
    if benchmark.figure is not None:
        file, words, _ = benchmark.figure
        parts.append(f"![{words}]({file})")
    return "\n\n".join([*parts, benchmark.tables(made["result"]), _how(benchmark, made)])


def _how(benchmark: Benchmark, made: Record) -> str:
    """When, with what and on what it was measured, as a list; what a record does not know is left out."""
    arguments = ", ".join(f"{name} {_plainly(value)}" for name, value in made["arguments"].items() if value)
    took = "" if made["seconds"] is None else f", in {_long(made['seconds'])}"
    measured = f"Measured on {_day(made)}{took}{f', with {arguments}' if arguments else ''}."
    package, host = made["understudy"], made["machine"]
    digest = f" (source {package['source']})" if package["source"] else ""
    others = [f"{_spelt(name)} {version or '(not recorded)'}" for name, version in made["versions"].items()]
    versions = [f"understudy {package['version']}{digest}", *others]
    lines = [f"{measured} {made['circumstances']}".strip(), f"Versions: {', '.join(versions)}."]
    if host is not None:
        lines.append(
            f"Machine: {host['model']}, {host['architecture']}, {host['cores']} cores, {host['memory_gb']:.0f} GB; a load of {made['load']:.1f} at the start."
        )
    lines.append(f"Repeat it: `scripts/bench {benchmark.name}` ({benchmark.takes}).")
    return "\n".join(f"- {line}" for line in lines)


def _plainly(value: int | float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}".removesuffix(".0")


def _spelt(package: str) -> str:
    return {"python": "Python", "numpyro": "NumPyro"}.get(package, package)


def _day(made: Record) -> str:
    day = datetime.date.fromisoformat(made["date"])
    return f"{day.day} {day:%B %Y}"


def _long(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")
