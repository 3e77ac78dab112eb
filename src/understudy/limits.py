"""What games leave open: players who were never beaten, or never beat anybody, and groups that never met.

If raising some skills and lowering others contradicts no game, however far it goes, then the games set no limit in that
direction: under a flat prior there is no posterior, and under a proper one the prior alone decides. With one player an entry, let an
arrow point from everybody to those right behind them, and both ways in a tie. The games set limits to all if and only if everybody can be reached
from everybody along arrows; otherwise some group is never entered, or never left.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from understudy._arrays import Ints
from understudy.decisions import Decisions
from understudy.orders import Orders
from understudy.priors import coordinates
from understudy.separation import find_opening

NAMED = 3  # players that a sentence names, of each group


class OpenEndedWarning(UserWarning):
    """Some skills are bounded by the prior alone; the message says whose.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     found = us.rank([["ann", "bob"]] * 5, draws=500)
    >>> print([str(one.message) for one in said if one.category is us.OpenEndedWarning][0])
    ann was never beaten...
    """


def open_ends(orders: Orders) -> list[str]:
    """What the games leave open, a sentence each.

    Where entries are teams, only players without games and groups that never met are looked for; `open_direction` finds the rest.
    """
    names, idle = orders.names, np.flatnonzero(orders.games == 0)
    found = [f"{_some(idle, names)} took part in no game"] if idle.size else []
    ahead, behind = _arrows(orders)
    together = _parts(ahead, behind, len(names), "weak")
    groups = [g for g in _members(together) if orders.games[g[0]] > 0]
    if len(groups) > 1:
        smallest = min(groups, key=len)
        found.append(f"no game links {_some(smallest, names)} with the others, directly or through others")
    if not (orders.sizes == 1).all():
        return found
    part = _parts(ahead, behind, len(names), "strong")
    crossing = part[ahead] != part[behind]
    entered, left = (np.isin(part, part[to[crossing]]) for to in (behind, ahead))
    unbeaten, beating = left & ~entered, entered & ~left
    alone = np.bincount(part, minlength=len(names))[part] == 1
    for whom, was, were in (
        (unbeaten, "was never beaten", "were never beaten"),
        (beating, *["never beat anybody"] * 2),
    ):
        if (single := np.flatnonzero(whom & alone)).size:
            found.append(f"{_some(single, names)} {was if single.size == 1 else were}")
    for group in _members(part):
        if 1 < len(group) <= len(names) // 2 and (unbeaten[group[0]] or beating[group[0]]):  # more are "the others"
            did = "were never beaten by others" if unbeaten[group[0]] else "never beat anybody else"
            found.append(f"{_some(group, names)} {did}")
    return found


def open_direction(orders: Orders) -> str | None:
    """A direction of the skills that no game of teams contradicts, in words; None where the games set limits to all."""
    ahead, behind = _pairs(orders)
    rows = sp.csr_array(
        (np.ones(len(orders.players)), orders.players, orders.first), (len(orders.sizes), len(orders.names))
    )
    both = np.stack([ahead, behind], axis=1).ravel()
    d = Decisions(rows[both], np.arange(0, len(both) + 1, 2), np.zeros(len(ahead), np.int64), names=orders.names)
    opening = find_opening(d, *coordinates(d, orders.level))
    return None if opening is None else str(opening)


def _pairs(orders: Orders) -> tuple[Ints, Ints]:
    """Entries, and those right behind them; both ways in a tie."""
    ahead: list[int] = []
    behind: list[int] = []
    for start, end, known in zip(orders.start[:-1], orders.start[1:], orders.known, strict=True):
        for e in range(start + 1, end):
            ahead.append(min(e, start + known) - 1)
            behind.append(e)
            if orders.tied[e]:
                ahead.append(e)
                behind.append(e - 1)
    return np.array(ahead), np.array(behind)


def _arrows(orders: Orders) -> tuple[Ints, Ints]:
    """From players to those right behind; where entries are teams, all of a game are linked."""
    if (orders.sizes == 1).all():
        ahead, behind = _pairs(orders)
        return orders.players[ahead], orders.players[behind]
    game = np.repeat(np.arange(len(orders)), np.diff(orders.first[orders.start]))
    first = orders.players[orders.first[orders.start[:-1]]]
    return first[game], orders.players


def _parts(ahead: Ints, behind: Ints, count: int, connection: str) -> Ints:
    """(K,) which part of the graph everybody is in."""
    graph = sp.csr_array((np.ones(len(ahead)), (ahead, behind)), (count, count))
    return np.asarray(connected_components(graph, connection=connection)[1])


def _members(part: Ints) -> list[Ints]:
    """Who is in each part."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(part[order])) + 1)


def _some(players: Ints, names: tuple[str, ...]) -> str:
    """The first few of them by name: "a", "a and b", "a, b, c and 4 more"."""
    shown = [names[k] for k in players[:NAMED]]
    if len(players) > NAMED:
        shown.append(f"{len(players) - NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
