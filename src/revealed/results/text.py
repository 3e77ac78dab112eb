"""Numbers and tables as text, for summaries and reports."""

from __future__ import annotations


def align_columns(columns: list[list[str]]) -> str:
    """A table as text from columns of cells: the first to the left, all others to the right.

    columns: each a heading and its cells, all of the same number.
    """
    # as wide as the widest cell
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(
            [
                cells[0].ljust(widths[0]),
                *(cell.rjust(w) for cell, w in zip(cells[1:], widths[1:], strict=True)),
            ]
        )
        for cells in zip(*columns, strict=True)
    ]
    return "\n".join(lines)


def count_things(number: int, thing: str) -> str:
    """A number of things in words: "1 chain", "4 chains", "2 strategies"."""
    return f"{number} {plural(thing, number)}"


def percentage(share: float) -> str:
    """A share as a percentage, without claiming to know the very last per cent."""
    return "over 99%" if share > 0.99 else "under 1%" if share < 0.01 else f"{share:.0%}"


def plural(word: str, count: int) -> str:
    """The word, in the plural where there is not one of it."""
    if count == 1:
        return word
    # a consonant before the y; days and keys are as other words
    return f"{word[:-1]}ies" if word[-1] == "y" and word[-2] not in "aeiou" else f"{word}s"
