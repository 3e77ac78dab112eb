"""Data from whatever callers have: a table, the path of one, a folder, or lists of names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.io.dataframes import from_dataframe
from revealed.io.files import read_columns, read_file
from revealed.io.parquet_folder import ParquetDecisions, scan_parquet
from revealed.io.read_trajectories import read_trajectories


def as_decisions(data: Any) -> Any:
    """Decisions, as they are or read from a table.

    What cannot be a table is left to the model.
    """
    if isinstance(data, Decisions | ParquetDecisions | Rankings):
        return data
    if isinstance(data, str | os.PathLike):
        return scan_parquet(data) if Path(data).is_dir() else read_file(data)
    # dataframes have columns; lists and numbers have none, and the model refuses them by name
    return from_dataframe(data) if _is_table(data) else data


def as_rankings(data: Any) -> Any:
    """Rankings, as they are, or read from lists of names, best first, or from a table."""
    if isinstance(data, Rankings):
        return data
    if isinstance(data, Sequence) and not isinstance(data, str):
        return Rankings.from_lists(data)
    readable = isinstance(data, str | os.PathLike) or _is_table(data)
    return read_rankings(data) if readable else data


def as_trajectories(data: Any) -> Any:
    """Trajectories, as they are or read from a table.

    All else is left to the model.
    """
    readable = isinstance(data, str | os.PathLike) or _is_table(data)
    return read_trajectories(data) if readable else data


def _is_table(data: Any) -> bool:
    # asked of the class: the columns of a lazy table would have to be worked out
    return hasattr(type(data), "columns")


def read_rankings(
    table: Any,
    *,
    game: str = "game",
    player: str = "player",
    position: str = "position",
    team: str | None = None,
    winner_only: bool = False,
    score: str | None = None,
    time: str | None = None,
    columns: Sequence[str] = (),
    **csv_format: Any,
) -> Rankings:
    """The results of games from a long table, with a row for each player in each game.

    Parameters
    ----------
    table
        Any dataframe, or the path of a .csv, .parquet, .xlsx or .dta file.
    game, player, position, team
        The table's columns. A position is a number, equal for a tie, or a code such as "DNF", as
        `Rankings.from_columns` lists them. Players of one team in a game are one entry.
    winner_only
        Use who won and nothing else.
    score
        A column to use in place of positions: numbers of which the largest is the best.
    time
        The column of when a game was played, the same in all its rows: numbers, or dates, which
        become days since 1970-01-01, also as text such as 2024-03-01.
    columns
        More columns to keep, such as a car or a place on the grid: labels or numbers, for the
        components and covariates of skills that change.
    **csv_format
        Of a CSV file: `sep`, `decimal` and `encoding`, as in `read_csv`.

    Returns
    -------
    Rankings
        In the order in which games first appear.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = {"game": [1, 1], "player": ["ann", "bob"], "position": [2, 1]}
    >>> rv.read_rankings(pa.table(rows)).game(0)[0]
    [('bob',), ('ann',)]
    """
    if score is not None and position != "position":
        raise ValueError("give position, where 1 is the best, or score, where the largest is")
    place = position if score is None else score
    asked = [game, player, place, *(name for name in (team, time) if name is not None)]
    more = [name for name in columns if name not in asked]
    read = read_columns(table, [*asked, *more], csv_format=csv_format)
    teams = None if team is None else read[team]
    return Rankings.from_columns(
        read[game],
        read[player],
        read[place] if score is None else None,
        teams,
        winner_only,
        score=None if score is None else read[place],
        time=None if time is None else read[time],
        columns={name: read[name] for name in columns},
    )
