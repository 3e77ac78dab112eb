"""Trajectories from a long table: a row for each time, episode by episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from revealed.data.trajectories import Trajectories
from revealed.io.files import read_columns


def read_trajectories(
    table: Any,
    *,
    episode: str = "episode",
    state: str = "state",
    action: str = "action",
    group: str = "group",
    states: Any = None,
    actions: Any = None,
    **csv_format: Any,
) -> Trajectories:
    """Trajectories from a long table, with a row for each time, in the order of time.

    Parameters
    ----------
    table
        Any dataframe, or the path of a .csv, .parquet, .xlsx or .dta file.
    episode, state, action, group
        The table's columns. Without a column of episodes there is one trajectory, without one of
        groups nobody says whose they are. The last row of an episode may lack its action: it is
        only where the last action led.
    states, actions
        All labels, or how many there are; default: those of the table, in alphabetical order, or
        positions where the table has whole numbers.
    **csv_format
        Of a CSV file: `sep`, `decimal` and `encoding`, as in `read_csv`.

    Returns
    -------
    Trajectories
        In the order in which episodes first appear.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = {"state": ["home", "away", "home"], "action": ["walk", "ride", None]}
    >>> seen = rv.read_trajectories(pa.table(rows))
    >>> seen, seen.states
    (<Trajectories: 1 trajectories, 2 decisions, 2 states, 2 actions>, ('away', 'home'))
    """
    columns = read_columns(table, [state, action], optional=[episode, group], csv_format=csv_format)
    visited, chosen = columns[state], columns[action]
    episodes = columns.get(episode, [0] * len(visited))
    for row, label in enumerate(visited):
        if label is None:
            raise ValueError(f"row {row}: the {state} is missing")
    state_labels, visited = _labels(state, visited, states)
    action_labels, chosen = _labels(action, chosen, actions)
    # rows of each episode, in the order of the table
    rows: dict[Any, list[int]] = {}
    for row, label in enumerate(episodes):
        rows.setdefault(label, []).append(row)
    pairs = []
    for label, mine in rows.items():
        taken = [chosen[row] for row in mine]
        # only a last state needs no action
        if taken[-1] is None:
            taken.pop()
        if None in taken:
            raise ValueError(
                f"row {mine[taken.index(None)]}: the {action} is missing; only the last row of an "
                f"episode may lack it, and episode {label} goes on"
            )
        pairs.append(([visited[row] for row in mine], taken))
    groups = _group_of_episodes(rows, columns.get(group), group)
    return Trajectories(pairs, state_labels, action_labels, groups=groups)


def _labels(what: str, column: list[Any], given: Any) -> tuple[Any, list[Any]]:
    """All labels, or how many there are; and the column in these terms.

    Whole numbers, written as such, are positions; everything else is text.
    """
    texts = [None if item is None else str(item) for item in column]
    distinct = {text for text in texts if text is not None}
    if not distinct:
        raise ValueError(f"the table has no {what} in any row")
    if all(text.isdecimal() and str(int(text)) == text for text in distinct):
        positions = [None if text is None else int(text) for text in texts]
        largest = max(int(text) for text in distinct)
        return (largest + 1 if given is None else given), positions
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    return ([str(label) for label in given] if listed else given or sorted(distinct)), texts


def _group_of_episodes(
    rows: dict[Any, list[int]], groups: list[Any] | None, column: str
) -> list[Any] | None:
    """The group of each episode, which must be the same in all its rows."""
    if groups is None:
        return None
    for label, mine in rows.items():
        if len({groups[row] for row in mine}) > 1:
            raise ValueError(f"episode {label}: the rows have more than one {column}")
    return [groups[mine[0]] for mine in rows.values()]
