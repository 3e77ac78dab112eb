"""What one study leaves behind: figures, a JSON of every number, and an HTML page.

The page puts the paper's statement beside our result, claim by claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.io.atomic import atomic_open, atomic_write, to_jsonable
from revealed.plots.report_html import document, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ReportProgress = Callable[[str], None]
"""Called now and then with what is being done, in words."""


@dataclass(frozen=True, eq=False)
class Section:
    """One claim: what the paper says, our figure or table, and what we see.

    `alt_text` describes the figure, for those who cannot see it. `table` is the head and the
    rows.
    """

    title: str
    paper: str
    ours: str
    figure: Figure | None = None
    alt_text: str = ""
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """One study: its name, what it is about, every number of it, and its claims one by one.

    `numbers` go into study.json as they are; arrays become lists.
    """

    name: str
    title: str
    about: str
    numbers: Mapping[str, Any]
    sections: Sequence[Section] = field(default_factory=list)


def write_study(study: Study, folder: Path) -> list[Path]:
    """Write study.json, index.html, and every figure as PNG and PDF; returns the files.

    Files carry no date, so that the same numbers give the same bytes.
    """
    # Figures first, so that the page never shows one that is missing.
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "study.json", folder / "index.html"]
    for number, section in enumerate(study.sections, 1):
        if section.figure is not None:
            for kind, no_date in (
                ("png", {"Software": None}),
                ("pdf", {"CreationDate": None, "Producer": None}),
            ):
                written.append(folder / f"figure-{number}.{kind}")
                with atomic_open(written[-1]) as stream:
                    section.figure.savefig(stream, format=kind, metadata=no_date)
    # Claims and numbers in one file, for machines.
    claims = [{"title": s.title, "paper": s.paper, "ours": s.ours} for s in study.sections]
    record = {
        "title": study.title,
        "about": study.about,
        "claims": claims,
        "numbers": to_jsonable(study.numbers),
    }
    atomic_write(written[0], (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
    atomic_write(written[1], _study_page(study).encode())
    return written


def write_index(folder: Path, names: Sequence[str], left_out: Mapping[str, str]) -> None:
    """Write one page that leads to the studies of a folder, and says what was left out and why.

    `names` are the studies in their order; those that the folder does not hold are skipped.
    """
    # From the records on disk, so that earlier runs of other studies stay on the page.
    entries = ""
    # a study that was never run has no record
    for name in names:
        if (folder / name / "study.json").exists():
            record = json.loads((folder / name / "study.json").read_bytes())
            claims = "".join(
                f"<li>{escape(c['title'])}: {escape(c['ours'])}</li>" for c in record["claims"]
            )
            entries += (
                f'<section><h2><a href="{name}/index.html">{escape(record["title"])}</a></h2>'
            )
            entries += f"<p>{escape(record['about'])}</p><ul>{claims}</ul></section>"
    notes = "".join(
        f'<p class="quiet">{escape(name)}: {escape(why)}</p>' for name, why in left_out.items()
    )
    page = document("The paper, reproduced", f"<h1>The paper, reproduced</h1>{notes}{entries}")
    atomic_write(folder / "index.html", page.encode())


def _study_page(study: Study) -> str:
    """The page of a study: claim by claim, the paper first."""
    # Title and subject, then the claims.
    parts = [f'<h1>{escape(study.title)}</h1><p class="quiet">{escape(study.about)}</p>']
    for section in study.sections:
        # figures are inside the page, so that it can be sent as one file
        shown = "" if section.figure is None else picture(section.figure, section.alt_text)
        if section.table is not None:
            shown += _html_table(*section.table)
        parts.append(
            f"<section><h2>{escape(section.title)}</h2>"
            f'<p class="quiet"><strong>The paper:</strong> {escape(section.paper)}</p>{shown}'
            f"<p><strong>Here:</strong> {escape(section.ours)}</p></section>"
        )
    return document(study.title, "".join(parts))


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML; the first cell of a row is its head."""
    # labels come from data, so they are escaped
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def format_median_range(values: Any) -> str:
    """Median and range of some numbers, in words: "3.2 [1.1 - 7.5]"."""
    given = np.asarray(values, dtype=np.float64)
    # the median, because a single MDP can be off by far
    middle, low, high = (_format_number(v) for v in (np.median(given), given.min(), given.max()))
    return f"{middle} [{low} - {high}]"


def _format_number(value: float) -> str:
    """A number with three digits, or without decimals from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
