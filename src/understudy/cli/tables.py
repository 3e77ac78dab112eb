"""What commands on tables share: their arguments, how tables and games are read, and how a summary is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.shell import console

if TYPE_CHECKING:
    from understudy.decisions import Decisions
    from understudy.diagnostics import Summary

SHOWN = 40  # coefficients in a printed table
TABLES = ".csv, .csv.gz, .parquet or .pq"

GAMES = ".jsonl"

Table = Annotated[
    Path,
    typer.Argument(help=f"The long table of decisions, {TABLES}; or games of Tetris, {GAMES}.", show_default=False),
]
PosteriorFile = Annotated[Path, typer.Argument(help="A posterior that `understudy fit` wrote.", show_default=False)]


def column(words: str) -> Any:
    """An option that names a column."""
    return typer.Option(metavar="COLUMN", help=words, rich_help_panel="Columns of the table")


def how(words: str, **more: Any) -> Any:
    """An option of how it is drawn."""
    return typer.Option(help=words, rich_help_panel="How it is drawn", **more)


DecisionColumn = Annotated[str, column("Decision ids.")]
ActionColumn = Annotated[str, column("Action labels, if there are any.")]
GroupColumn = Annotated[str, column("Who decided, if it is told.")]
AvailableColumn = Annotated[str | None, column("True or false: which actions were on offer.")]


def holds_games(table: Path) -> bool:
    """Whether these are games of Tetris."""
    return table.name.lower().endswith(GAMES)


def played(path: Path, features: str | Sequence[str]) -> Decisions:
    """The straight drops in recorded games of Tetris, with a named set of features, or the set that has these names."""
    from understudy.worlds.tetris import read_games
    from understudy.worlds.tetris.features import set_with

    games = read_games(path)
    return games.decisions(features=features if isinstance(features, str) else set_with(features, games.columns))


def facts(summary: Summary) -> dict[str, Any]:
    """A summary for machines."""
    columns = ("mean", "sd", "mcse", "low", "high", "ess_bulk", "ess_tail", "r_hat")
    return {
        "trusted": summary.trusted,
        "verdict": summary.verdict,
        "warnings": summary.warnings,
        "coefficients": [
            {"name": name, **{column: getattr(summary, column)[k] for column in columns}}
            for k, name in enumerate(summary.names)
        ],
    }


def print_summary(summary: Summary, title: str) -> None:
    """A summary for people."""
    import numpy as np
    from rich.table import Table as Grid

    grid = Grid(title=title, title_justify="left", title_style="bold", caption_justify="left")
    grid.add_column("")
    for head in ("mean", "sd", "5%", "95%", "MC error", "effective draws", "R-hat"):
        grid.add_column(head, justify="right")
    shown = np.arange(len(summary.names))
    if len(shown) > SHOWN:
        grid.caption = (
            f"The {SHOWN} coefficients with the fewest effective draws; {len(shown) - SHOWN} more are in the file."
        )
        shown = np.sort(np.argsort(summary.ess_bulk, kind="stable")[:SHOWN])
    for k in shown:
        numbers = (summary.mean, summary.sd, summary.low, summary.high)
        cells = [*(f"{each[k]:.3g}" for each in numbers), f"{summary.mcse[k]:.1g}", f"{summary.ess_bulk[k]:.0f}"]
        grid.add_row(summary.names[k], *cells, f"{summary.r_hat[k]:.3f}")
    console().print(grid)
    if summary.trusted:
        print(summary.verdict)


def refuse_not_positive(option: str, number: float) -> None:
    """Refuse what is not a positive number."""
    if not 0.0 < number < float("inf"):
        raise ValueError(f"{option} must be a positive number; it is {number:g}")


def refuse_other_table(path: Path) -> None:
    """Refuse a file that would be no table."""
    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet", ".pq")):
        raise ValueError(f"{path}: the file name must end with {TABLES}")
