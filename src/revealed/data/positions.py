"""Finishing positions as people write them: numbers, ties such as T2, and codes such as DNF."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from revealed.data.data_warning import warn_of_data


@dataclass(frozen=True)
class PositionCodes:
    """What is written in place of a number; a code that is not listed is refused.

    Attributes
    ----------
    absent
        Did not start, come to the start, qualify, prequalify or practise; withdrawn; excluded.
        They are left out: who did not start was not beaten.
    behind
        Took part and have no position: did not finish, retired, disqualified, not classified, over
        the time limit, over the line early, missed the cut, made it and did not finish.
    tie
        T2, T-2, =2, 2= or 2T.
    """

    absent: tuple[str, ...] = ("DNS", "DNC", "DNQ", "DNPQ", "DNP", "WD", "EX")
    behind: tuple[str, ...] = (
        *("DNF", "RET", "DSQ", "DQ", "NC"),
        *("OTL", "OCS", "CUT", "MC", "MDF"),
    )
    tie: re.Pattern[str] = re.compile(r"(?:T-?|=)\s*(\d+)|(\d+)\s*[T=]")


CODES = PositionCodes()


def rank_of_position(position: Any, row: int, what: str = "position") -> float | None:
    """The rank that a position stands for: infinite for those behind, None for the absent.

    row: of the table, for the message. what: what the column is called.
    """
    # Most are numbers, and a table may have millions.
    if type(position) is int:
        return float(position)
    if is_missing(position):
        return math.inf
    text = str(position).strip().upper()
    if text in CODES.absent:
        return None
    if not text or text in CODES.behind:
        return math.inf
    tie = CODES.tie.fullmatch(text) if what == "position" else None
    try:
        rank = float(position) if tie is None else float(tie[1] or tie[2])
    except (TypeError, ValueError):
        ties = ", a tie such as T2 or =2" if what == "position" else ""
        raise ValueError(
            f"row {row}: the {what} {position!r} is no number{ties} or a code that is known; "
            f"behind all others are {', '.join(CODES.behind)} and nothing, "
            f"left out are {', '.join(CODES.absent)}"
        ) from None
    return rank if math.isfinite(rank) else math.inf


def rank_of_score(score: Any, row: int) -> float | None:
    """The rank that a score stands for: the larger the score, the smaller it is."""
    rank = rank_of_position(score, row, "score")
    return rank if rank is None or math.isinf(rank) else -rank


def require_labels(what: str, labels: Sequence[Any]) -> None:
    """Refuse a column in which a name is missing, by its row."""
    for row, label in enumerate(labels):
        if is_missing(label) or (isinstance(label, str) and not label.strip()):
            raise ValueError(f"row {row}: the {what} is missing; every row needs one")


def is_missing(item: Any) -> bool:
    """Whether a cell of a column is empty: None, NaN, or what pandas has for that."""
    if item is None or str(item) in ("<NA>", "NaT"):
        return True
    return isinstance(item, float) and math.isnan(item)


def warn_of_scores(games: Iterable[tuple[Any, list[float]]]) -> None:
    """Warn where positions cannot be positions among the entries of their games.

    games: each with the ranks of its entries. However ties are counted, nobody is at a position
    beyond the number of those who are not behind him. A few games with gaps are games whose table
    lacks somebody; in most games, or a number below one, they look like scores.
    """
    wrong, count, certain = [], 0, False
    for game, ranks in games:
        known = sorted(rank for rank in ranks if math.isfinite(rank))
        count += 1
        for rank in known:
            # Half positions are those of a tie of two.
            impossible = rank < 1.0 or not (2.0 * rank).is_integer()
            if impossible or rank > bisect_right(known, rank):
                certain = certain or impossible
                wrong.append((impossible, game, rank, len(ranks)))
                break
    if not (certain or 2 * len(wrong) > count):
        return
    _, game, rank, entries = next((found for found in wrong if found[0]), wrong[0])
    warn_of_data(
        f"game {game}: {rank:g} is no position among {entries} entries; the smallest number is "
        "taken for the best, so pass score= (on the command line --score) where the largest is"
    )


def group_by_game(
    game: Sequence[Any],
    player: Sequence[Any],
    ranks: Sequence[float | None],
    team: Sequence[Any] | None,
) -> dict[Any, dict[Any, tuple[float, list[str]]]]:
    """For each game its entries, as rank and names.

    Entries are keyed by player or by team. ranks: infinite where there is no position, None for
    the absent, who are left out.
    """
    by_game: dict[Any, dict[Any, tuple[float, list[str]]]] = {}
    for i, (g, name, rank) in enumerate(zip(game, player, ranks, strict=True)):
        # Absent is not last: who did not start was not beaten.
        if rank is None:
            continue
        entries = by_game.setdefault(g, {})
        key = ("player", str(name)) if team is None else ("team", team[i])
        if key not in entries:
            entries[key] = rank, [str(name)]
            continue
        if team is None:
            raise ValueError(f"game {g}: {name} takes part twice")
        # A team that is met again.
        if entries[key][0] != rank:
            raise ValueError(f"game {g}: the players of team {team[i]} have different positions")
        entries[key][1].append(str(name))
    return by_game
