"""The parts that report pages are made of: the document, pictures and tables as HTML."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots.report_style import REPORT_STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def document(title: str, body: str) -> str:
    """A complete page in our style, with this title and this HTML as its body.

    Reports of studies use it too.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · revealed</title>
<style>{REPORT_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def picture(figure: Figure, words: str) -> str:
    """The figure inside the page, with words for those who cannot see it.

    A PNG image as a data URL, at 100 pixels an inch.
    """
    # inside the page as text, so that one file is all there is to mail
    image = io.BytesIO()
    figure.savefig(image, format="png", metadata={"Software": None})
    data = base64.b64encode(image.getvalue()).decode()
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    source = f'src="data:image/png;base64,{data}" width="{width}" height="{height}"'
    return f'<figure><img {source} alt="{escape(words)}"></figure>'


def table(names: Sequence[str], columns: Mapping[str, Sequence[str]], corner: str = "") -> str:
    """A table with a row for each name; columns: cells as text, by the heading."""
    # long headings may be broken, but not at the hyphen of a short one
    head = "".join(
        f'<th scope="col"{"" if " " in name else " class=short"}>{escape(name)}</th>'
        for name in (corner, *columns)
    )
    lines = []
    for i, name in enumerate(names):
        cells = "".join(f"<td>{escape(column[i])}</td>" for column in columns.values())
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def settings_table(facts: Mapping[str, Any]) -> str:
    """A table of facts, a line each."""
    lines = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table class="settings"><tbody>{lines}</tbody></table>'


def numbers(values: Any, form: str, missing: str = "?") -> list[str]:
    """Numbers in this format; what stands for those that are missing."""
    return [missing if np.isnan(value) else format(value, form) for value in values]
