"""What commands on tables of decisions share: their arguments, readers and summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed.cli._shared import console

if TYPE_CHECKING:
    from revealed.data.decisions import Decisions
    from revealed.results.base import Posterior

TABLE_SUFFIXES = ".csv, .csv.gz, .parquet or .pq"
READ_SUFFIXES = ".csv, .csv.gz, .parquet, .pq, .xlsx or .dta"
GAMES_SUFFIX = ".jsonl"

# Arguments that several commands take.
Table = Annotated[
    Path,
    typer.Argument(
        help=f"The long table of decisions, {READ_SUFFIXES}; or games of Tetris, {GAMES_SUFFIX}.",
        show_default=False,
    ),
]
PosteriorFile = Annotated[
    Path, typer.Argument(help="A posterior that `revealed fit` wrote.", show_default=False)
]


def column_option(help_text: str, *names: str) -> Any:
    """An option that names a column; it is listed under "Columns of the table" in the help.

    names: what is typed, where that is not the name of the argument.
    """
    return typer.Option(
        *names, metavar="COLUMN", help=help_text, rich_help_panel="Columns of the table"
    )


def sampling_option(help_text: str, **more: Any) -> Any:
    """An option of the sampler; it is listed under "How it is drawn" in the help."""
    return typer.Option(help=help_text, rich_help_panel="How it is drawn", **more)


# Columns that every command on tables can name.
DecisionColumn = Annotated[str, column_option("Decision ids.")]
ActionColumn = Annotated[str, column_option("Action labels, if there are any.")]
GroupColumn = Annotated[str, column_option("Who decided, if that is recorded.")]
AvailableColumn = Annotated[
    str | None, column_option("True or false: which actions were on offer.")
]
TimeColumn = Annotated[
    str | None,
    column_option("When a decision was made, numbers or dates; most models ignore it.", "--time"),
]
SessionColumn = Annotated[
    str | None, column_option("In which session it was made; most models ignore it.", "--session")
]


def refuse_times(columns: Mapping[str, str | None], what: str) -> None:
    """Refuse --time and --session with data that have no such columns; what: these data."""
    for name in ("time", "session"):
        if columns[name] is not None:
            raise ValueError(f"{what} are read without times and sessions; leave out --{name}")


def file_option(help_text: str, name: str) -> Any:
    """An option that says how a CSV file is written, with its own list in the help."""
    return typer.Option(
        metavar=name,
        help=help_text,
        rich_help_panel="How a CSV file is written",
        show_default=False,
    )


# Options of every command that reads a CSV file.
CsvSep = Annotated[str | None, file_option('Between columns; default ",".', "CHARACTER")]
CsvDecimal = Annotated[str | None, file_option('Before decimals; default ".".', "CHARACTER")]
CsvEncoding = Annotated[
    str | None, file_option("Of the text, such as latin-1; default utf-8.", "ENCODING")
]


def csv_format(sep: str | None, decimal: str | None, encoding: str | None) -> dict[str, str]:
    """How a CSV file is written, as far as the options say so."""
    given = {"sep": sep, "decimal": decimal, "encoding": encoding}
    return {name: value for name, value in given.items() if value is not None}


def is_games_file(table: Path) -> bool:
    """Whether a file holds recorded games of Tetris, by its name."""
    return table.name.lower().endswith(GAMES_SUFFIX)


def read_tetris_decisions(path: Path, features: str | Sequence[str]) -> Decisions:
    """The straight drops in recorded games of Tetris, as decisions.

    `features` is the name of a feature set, or the names of its features, as a posterior has
    them.
    """
    from revealed.environments.tetris import read_games
    from revealed.environments.tetris.features import feature_set_named

    # a posterior brings the names of its features, which say which set they are
    games = read_games(path)
    name = features if isinstance(features, str) else feature_set_named(features, games.columns)
    return games.decisions(features=name)


def summary_to_dict(post: Posterior) -> dict[str, Any]:
    """The summary of a posterior for machines.

    Whether the chains converged, the same in words, and one entry a coefficient.
    """
    summary = post.summary()
    columns = ("mean", "sd", "mcse", "low", "high", "ess_bulk", "ess_tail", "r_hat")
    return {
        "converged": post.converged,
        "message": post.message,
        "warnings": summary.warnings,
        "coefficients": [
            {"name": name, **{column: getattr(summary, column)[k] for column in columns}}
            for k, name in enumerate(summary.names)
        ],
    }


def print_summary(post: Posterior, title: str) -> None:
    """Print the summary of a posterior as a table for people.

    Of very many coefficients only those are shown that have the fewest effective draws, because
    they decide whether the posterior can be used.
    """
    import numpy as np
    from rich.table import Table as Grid

    summary = post.summary()
    max_rows = 40  # about one screen; the file has all of them
    grid = Grid(title=title, title_justify="left", title_style="bold", caption_justify="left")
    grid.add_column("")
    for head in ("mean", "sd", "5%", "95%", "MC error", "effective draws", "R-hat"):
        grid.add_column(head, justify="right")
    # All coefficients, or those that decide whether it can be used.
    shown = np.arange(len(summary.names))
    if len(shown) > max_rows:
        grid.caption = (
            f"The {max_rows} coefficients with the fewest effective draws; "
            f"{len(shown) - max_rows} more are in the file."
        )
        shown = np.sort(np.argsort(summary.ess_bulk, kind="stable")[:max_rows])
    # enough digits to compare with the Monte-Carlo error, which has one
    for k in shown:
        numbers = (summary.mean, summary.sd, summary.low, summary.high)
        cells = [
            *(f"{column[k]:.3g}" for column in numbers),
            f"{summary.mcse[k]:.1g}",
            f"{summary.ess_bulk[k]:.0f}",
        ]
        grid.add_row(summary.names[k], *cells, f"{summary.r_hat[k]:.3f}")
    console().print(grid)
    # what did not converge has been said on stderr already
    if post.converged:
        print(post.message)


def load_choices(path: Path) -> Any:
    """The posterior of a file, which must be of choices in tables.

    Rankings and unknown transitions are predicted otherwise.
    """
    from revealed.results.choice import ChoicePosterior
    from revealed.results.hierarchical import HierarchicalPosterior
    from revealed.results.load import load
    from revealed.results.mdp import MDPPosterior
    from revealed.results.paths import PathPosterior
    from revealed.results.separate import SeparatePosterior

    found = load(path)
    of_tables = isinstance(found, ChoicePosterior | HierarchicalPosterior | PathPosterior) or (
        isinstance(found, SeparatePosterior) and found.resolved.concentration is None
    )
    if not of_tables:
        what = (
            "games" if not isinstance(found, MDPPosterior | SeparatePosterior) else "trajectories"
        )
        raise ValueError(
            f"{path} was learnt from {what}, and a table of decisions is another thing"
        )
    return found


def check_table_suffix(path: Path) -> None:
    """Refuse an output file whose name is not that of a table."""
    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet", ".pq")):
        raise ValueError(f"{path}: the file name must end with {TABLE_SUFFIXES}")
