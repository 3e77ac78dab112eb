"""What one study leaves behind: figures, a JSON of every number, and a page with the paper's statement beside our answer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._files import plain, whole_file, write_whole
from understudy.decisions import Decisions
from understudy.engines.fit import NotConvergedWarning, fit
from understudy.posterior import Posterior
from understudy.priors import Prior
from understudy.report import document, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tell = Callable[[str], None]
"""Is told what is being done, now and then."""

RECORD = "study.json"


@dataclass(frozen=True, eq=False)
class Section:
    """One claim: what the paper says, our figure or table, and what we see."""

    title: str
    paper: str
    ours: str
    figure: Figure | None = None
    words: str = ""  # what the figure shows, for those who cannot see it
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """One study: its name, what it is about, every number of it, and its claims one by one."""

    name: str
    title: str
    about: str
    numbers: Mapping[str, Any]
    sections: Sequence[Section] = field(default_factory=list)


def write_study(study: Study, folder: Path) -> list[Path]:
    """Write study.json with claims and numbers, index.html, and every figure as PNG and PDF; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / RECORD, folder / "index.html"]
    for number, section in enumerate(study.sections, 1):
        if section.figure is not None:
            for kind, nothing in (("png", {"Software": None}), ("pdf", {"CreationDate": None, "Producer": None})):
                made.append(folder / f"figure-{number}.{kind}")
                with whole_file(made[-1]) as stream:
                    section.figure.savefig(stream, format=kind, metadata=nothing)
    claims = [{"title": s.title, "paper": s.paper, "ours": s.ours} for s in study.sections]
    record = {"title": study.title, "about": study.about, "claims": claims, "numbers": plain(study.numbers)}
    write_whole(made[0], (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
    write_whole(made[1], _page(study).encode())
    return made


def write_index(folder: Path, names: Sequence[str], left_out: Mapping[str, str]) -> None:
    """One page that leads to those of the named studies that the folder holds, and says what was left out and why."""
    entries = ""
    for name in names:
        if (folder / name / RECORD).exists():
            record = json.loads((folder / name / RECORD).read_bytes())
            claims = "".join(f"<li>{escape(c['title'])}: {escape(c['ours'])}</li>" for c in record["claims"])
            entries += f'<section><h2><a href="{name}/index.html">{escape(record["title"])}</a></h2>'
            entries += f"<p>{escape(record['about'])}</p><ul>{claims}</ul></section>"
    gone = "".join(f'<p class="quiet">{escape(name)}: {escape(why)}</p>' for name, why in left_out.items())
    page = document("The paper, reproduced", f"<h1>The paper, reproduced</h1>{gone}{entries}")
    write_whole(folder / "index.html", page.encode())


def _page(study: Study) -> str:
    parts = [f'<h1>{escape(study.title)}</h1><p class="quiet">{escape(study.about)}</p>']
    for section in study.sections:
        shown = "" if section.figure is None else picture(section.figure, section.words)
        if section.table is not None:
            shown += _table(*section.table)
        parts.append(
            f"<section><h2>{escape(section.title)}</h2>"
            f'<p class="quiet"><strong>The paper:</strong> {escape(section.paper)}</p>{shown}'
            f"<p><strong>Here:</strong> {escape(section.ours)}</p></section>"
        )
    return document(study.title, "".join(parts))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def learn(decisions: Decisions, prior: Prior, engine: str = "auto", **more: Any) -> Posterior:
    """A fit whose convergence is part of the story, and told by the caller."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return fit(decisions, prior, engine, progress=False, **more)


def spread_of(values: Any) -> str:
    """Median and range in words."""
    given = np.asarray(values, dtype=np.float64)
    middle, low, high = (_short(v) for v in (np.median(given), given.min(), given.max()))
    return f"{middle} [{low} - {high}]"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
