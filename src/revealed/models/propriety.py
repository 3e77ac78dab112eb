"""Whether a posterior is proper: which directions of the parameters the data leave unbounded.

**Choices.** Moving the coefficients along q makes every observed choice at least as likely when

    (row_chosen - row_j) q >= 0    for all rivals j of all decisions.

If such a q exists, the decisions alone set no bound in its direction: under a flat prior the
posterior is improper, and under a normal one the prior decides how far the values go. Either the
two sides are always equal (no choice tests the direction, it is not identified), or all choices
agree with it (they are separable along it; Albert and Anderson 1984).

**Rankings.** If raising some skills and lowering others contradicts no game, however far it goes,
the games set no bound in that direction. With one player an entry, let an edge point from every
player to those right behind, and both ways in a tie. The games bound all skills if and only if
everybody can be reached from everybody along edges (Ford 1957); otherwise some set of players is
never entered (nobody in it was beaten from outside), or never left. Where a tie says that an order
was not seen, it has no edges: some order of the tied contradicts no direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions, Rows
from revealed.data.rankings import Rankings
from revealed.kernels.noise import AnyNoise, LapseArguments
from revealed.models.coordinates import coordinates
from revealed.models.priors import ResolvedPrior
from revealed.models.student import StudentNoise


def refuse_flat_prior(resolved_prior: ResolvedPrior, noise: AnyNoise) -> None:
    """Refuse a flat prior where log P is not concave: there need not be a posterior."""
    if resolved_prior.flat and not noise.is_log_concave:
        assert not isinstance(noise, LapseArguments)  # a model with lapses refuses it itself
        assert noise.kind is not None
        raise ValueError(
            f"under {noise.kind.name} noise large values may fit nearly as well as the best, so "
            "that a flat prior need not have a posterior; use rv.Normal(sd)"
        )


class UnboundedSkillWarning(UserWarning):
    """Some skills are bounded by the prior alone; the message says whose.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = rv.fit([["ann", "bob"]] * 5, rv.RankingModel(), draws=500)
    >>> [str(w.message) for w in caught if w.category is rv.UnboundedSkillWarning][0]
    'ann was never beaten...'
    """


@dataclass(frozen=True, eq=False)
class UnboundedDirection:
    """A direction of the coefficients that no choice contradicts.

    direction: (K,) with largest entry one in size. tested: whether some choice agrees with it;
    if not, all actions of every decision are equal along it. names: (K,) of the coefficients.
    """

    direction: Floats
    tested: bool
    names: tuple[str, ...]

    def __str__(self) -> str:
        """The direction in words: its largest coefficients."""
        return describe_direction(self.direction, self.names)


def describe_direction(direction: Floats, names: tuple[str, ...]) -> str:
    """A direction as its largest coefficients, such as "+1 height -0.5 holes"."""
    # Rounded, so that coefficients of equal size keep their order whatever the last digit is.
    size = np.round(np.abs(direction) / np.abs(direction).max(), 9)
    order = [k for k in np.argsort(-size, kind="stable") if size[k] > 0.05]
    parts = [f"{direction[k]:+.3g} {names[k]}" for k in order[:6]]
    return " ".join(parts) + (f" and {len(order) - 6} more" if len(order) > 6 else "")


def chosen_minus_rivals(decisions: Decisions) -> Rows:
    """(P - T, K) rows of the chosen action minus each rival's; sparse when the decisions are."""
    chosen_row = decisions.chosen_row
    # All rows but the chosen ones, in order.
    rivals = np.setdiff1d(np.arange(decisions.rows.shape[0]), chosen_row, assume_unique=True)
    return decisions.rows[chosen_row[decisions.decision_of_row[rivals]]] - decisions.rows[rivals]


def unidentified_directions(decisions: Decisions, basis: Floats) -> Floats:
    """(K, n) orthonormal directions within `basis` along which all actions are always equal."""
    return _null_space(chosen_minus_rivals(decisions), basis)


def find_unbounded_direction(
    decisions: Decisions, basis: Floats, constant_directions: Floats
) -> UnboundedDirection | None:
    """A direction that no choice contradicts, or None when choices bound the coefficients.

    `basis` (K, D) and `constant_directions` (K, L) are the prior's coordinates, those of
    `priors.coordinates`; directions are sought in the span of `basis`.
    """
    margins = chosen_minus_rivals(decisions)
    untested = _null_space(margins, basis)
    if untested.shape[1]:
        direction = untested[:, 0] / np.abs(untested[:, 0]).max()
        return UnboundedDirection(direction, False, decisions.names)

    # Neither the scale of a feature nor the length of a margin changes the answer: put both to
    # one, for the sake of the linear program's solver.
    margins = sp.csr_array(margins)
    scale = _lengths(margins, axis=0)
    scaled = margins @ sp.diags_array(1.0 / scale)
    scaled = sp.csr_array(sp.diags_array(1.0 / _lengths(scaled, axis=1)) @ scaled)

    # A working set: some of the margins are often enough to rule every direction out. Those that
    # the direction found contradicts join the set, until none is left or none is contradicted.
    working = np.zeros(scaled.shape[0], np.bool_)
    working[:: max(1, scaled.shape[0] // (20 * scaled.shape[1]))] = True
    while True:
        found = _separating_direction(scaled[working], constant_directions / scale[:, None])
        if found is None:
            if working.all() or not _null_space(margins[working], basis).shape[1]:
                return None
            joining = ~working
        else:
            margin = scaled @ found
            joining = (margin < -1e-8 * margin.max()) & ~working
            if not joining.any():
                direction = found / scale
                return UnboundedDirection(
                    direction / np.abs(direction).max(), True, decisions.names
                )
        # At most about as many as there are join at a time, spread evenly over the decisions.
        spread = np.flatnonzero(joining)
        working[spread[:: 1 + len(spread) // (1 + int(working.sum()))]] = True


def _separating_direction(margins: Rows, constant_directions: Floats) -> Floats | None:
    """A direction q with margins q >= 0 and as many as possible positive; None if none can be.

    By a linear program: max sum(s) with s <= margins q and 0 <= s <= 1. Each margin that can be
    positive can be made one, because q may be as long as it likes.
    """
    import scipy.optimize as opt  # takes long to import, and few need it

    count, width = margins.shape
    # Sums over sum-to-zero blocks are held at zero; there may be no such block.
    equalities = None
    if constant_directions.shape[1]:
        zeros = np.zeros((constant_directions.shape[1], count))
        equalities = np.hstack([constant_directions.T, zeros])
    found = opt.linprog(
        np.concatenate([np.zeros(width), -np.ones(count)]),
        A_ub=sp.hstack([-margins, sp.eye_array(count)]),
        b_ub=np.zeros(count),
        A_eq=equalities,
        b_eq=None if equalities is None else np.zeros(len(equalities)),
        bounds=[(None, None)] * width + [(0.0, 1.0)] * count,
        method="highs",
    )
    if found.status != 0:
        raise ValueError(
            f"whether the choices bound the coefficients could not be decided: {found.message}"
        )
    # The optimum is the number of margins that can be positive: a whole number, or zero.
    return np.asarray(found.x[:width]) if -found.fun > 0.5 else None


def _null_space(margins: Rows, basis: Floats) -> Floats:
    """(K, n) orthonormal directions within `basis` along which all margins are zero."""
    gram = margins.T @ margins
    gram = gram.toarray() if sp.issparse(gram) else np.asarray(gram)
    # Features may be millions or millionths: measure each direction in the features' own scales.
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, scale, 1.0)
    # Within the span of the basis, in scaled coordinates.
    ortho, _ = np.linalg.qr(basis * scale[:, None])
    values, vectors = np.linalg.eigh(ortho.T @ (gram / np.outer(scale, scale)) @ ortho)
    # Rounding leaves 1e-15 or so of the largest eigenvalue; a feature that differs from others by
    # a millionth stays above the bound.
    flat = ortho @ vectors[:, values <= 1e-13 * max(values.max(initial=0.0), 1.0)] / scale[:, None]
    return np.linalg.qr(flat / np.linalg.norm(flat, axis=0))[0]


def _lengths(rows: Rows, axis: int) -> Floats:
    """The Euclidean length of each column (axis 0) or row (axis 1); one where it is zero."""
    # Sparse rows, so sums of squares by the matrix's own methods.
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=axis)).ravel())
    return np.where(length > 0, length, 1.0)


def unbounded_skills(rankings: Rankings, ties_bound: bool = True) -> list[str]:
    """Which skills the games leave unbounded, a sentence for each way; empty if none.

    Where entries are teams, only players without games and groups that never met are looked for;
    `unbounded_team_direction` finds the rest. ties_bound: whether who tied cannot be far apart, as
    where a win needs a margin; false where a tie says that an order was not seen.
    """
    names, idle = rankings.names, np.flatnonzero(rankings.games == 0)
    found = [f"{_list_names(idle, names)} took part in no game"] if idle.size else []

    # Groups that never met: parts of the graph without its edges' directions.
    winners, losers = _beaten_by_edges(rankings, ties_bound)
    weak = _components(winners, losers, len(names), "weak")
    separate = [group for group in _members(weak) if rankings.games[group[0]] > 0]
    if len(separate) > 1:
        smallest = _list_names(min(separate, key=len), names)
        found.append(f"no game links {smallest} with the others, directly or through others")
    if not (rankings.sizes == 1).all():
        return found
    strong = _components(winners, losers, len(names), "strong")
    return found + _describe_extremes(strong, winners, losers, names)


def _describe_extremes(
    component: Ints, winners: Ints, losers: Ints, names: tuple[str, ...]
) -> list[str]:
    """A sentence for players and groups who were never beaten, or never beat anybody.

    component: (K,) the strongly connected part of the graph each player is in. A part that no
    edge enters from outside was never beaten; one that no edge leaves never beat anybody else.
    """
    crossing = component[winners] != component[losers]
    entered, left = (np.isin(component, component[side[crossing]]) for side in (losers, winners))
    unbeaten, winless = left & ~entered, entered & ~left
    alone = np.bincount(component, minlength=len(names))[component] == 1
    found = []
    for players, phrase in (
        (unbeaten & alone, ("was never beaten", "were never beaten")),
        (winless & alone, ("never beat anybody", "never beat anybody")),
    ):
        if (single := np.flatnonzero(players)).size:
            found.append(f"{_list_names(single, names)} {phrase[single.size != 1]}")
    for group in _members(component):
        # A group of more than half of the players is "the others", and not worth a sentence.
        if 1 < len(group) <= len(names) // 2 and (unbeaten[group[0]] or winless[group[0]]):
            did = "were never beaten by others" if unbeaten[group[0]] else "never beat anybody else"
            found.append(f"{_list_names(group, names)} {did}")
    return found


def unbounded_team_direction(rankings: Rankings, ties_bound: bool = True) -> str | None:
    """A direction of the skills that no game of teams contradicts, in words, or None.

    Every entry against the one right behind it is a choice between two rows, with a one for each
    player of the team: then the search for an unbounded direction of choices answers it.
    ties_bound: as in `unbounded_skills`.
    """
    leading, trailing = _adjacent_entries(rankings, ties_bound)
    if not leading.size:
        return describe_direction(np.eye(len(rankings.names))[0], rankings.names)
    rows = sp.csr_array(
        (np.ones(len(rankings.players)), rankings.players, rankings.member_start),
        (len(rankings.sizes), len(rankings.names)),
    )
    pairs = np.stack([leading, trailing], axis=1).ravel()
    decisions = Decisions(
        rows[pairs],
        np.arange(0, len(pairs) + 1, 2),
        np.zeros(len(leading), np.int64),
        names=rankings.names,
    )
    found = find_unbounded_direction(decisions, *coordinates(decisions, rankings.location_free))
    return None if found is None else str(found)


def _adjacent_entries(rankings: Rankings, ties_bound: bool) -> tuple[Ints, Ints]:
    """Entries, and those right behind them; both ways in a tie, or not at all.

    Returns two arrays of equal length: the entry ahead and the entry behind of each pair.
    """
    leading: list[int] = []
    trailing: list[int] = []
    games = zip(rankings.start[:-1], rankings.start[1:], rankings.n_ordered, strict=True)
    for start, end, n_ordered in games:
        # without edges in a tie, all of a place are ahead of all right behind it
        last_place: list[int] = []
        place = [start]
        for entry in range(start + 1, end):
            if not ties_bound:
                if not rankings.tied[entry] and entry <= start + n_ordered:
                    last_place, place = place, []
                place.append(entry)
                leading += last_place
                trailing += [entry] * len(last_place)
                continue
            # Those in no known order are all behind the last one that is in order.
            leading.append(min(entry, start + n_ordered) - 1)
            trailing.append(entry)
            if rankings.tied[entry]:
                leading.append(entry)
                trailing.append(entry - 1)
    return np.array(leading, np.int64), np.array(trailing, np.int64)


def _beaten_by_edges(rankings: Rankings, ties_bound: bool) -> tuple[Ints, Ints]:
    """Edges from players to those right behind them; all of a game with teams are linked.

    Returns the two ends of each edge, as positions of players.
    """
    if (rankings.sizes == 1).all():
        leading, trailing = _adjacent_entries(rankings, ties_bound)
        return rankings.players[leading], rankings.players[trailing]
    members = np.diff(rankings.member_start[rankings.start])
    game = np.repeat(np.arange(len(rankings)), members)
    first = rankings.players[rankings.member_start[rankings.start[:-1]]]
    return first[game], rankings.players


def _components(winners: Ints, losers: Ints, count: int, connection: str) -> Ints:
    """(K,) which connected part of the graph each player is in; weak or strong connection."""
    graph = sp.csr_array((np.ones(len(winners)), (winners, losers)), (count, count))
    return np.asarray(connected_components(graph, connection=connection)[1])


def _members(component: Ints) -> list[Ints]:
    """The players in each connected part, as positions."""
    order = np.argsort(component, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(component[order])) + 1)


def _list_names(players: Ints, names: tuple[str, ...], shown: int = 3) -> str:
    """The first few of them by name: "a", "a and b", "a, b, c and 4 more"."""
    listed = [names[k] for k in players[:shown]]
    if len(players) > shown:
        listed.append(f"{len(players) - shown} more")
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def refuse_flat_under(noise: Any) -> None:
    """Refuse a noise under which no decisions make a flat prior a posterior to be relied on."""
    if getattr(noise, "lapse", None) is not None:
        raise ValueError(
            "with lapses a flat prior is always improper: any choice may have been a lapse, so "
            "that none bounds the value; give prior=rv.Normal(sd)"
        )
    if isinstance(noise, StudentNoise):
        raise ValueError(
            "under Student noise a flat prior is refused: far out the likelihood falls like a "
            "power, too slowly to be sure of a proper posterior; give prior=rv.Normal(sd)"
        )


def refuse_improper(d: Decisions, prior: ResolvedPrior) -> None:
    """Refuse decisions that leave a direction unbounded under a flat prior, and name it."""
    # a linear programme looks for a direction along which no choice speaks against the value
    unbounded = find_unbounded_direction(d, prior.basis, prior.constant_directions)
    if unbounded is None:
        return
    why = (
        "every choice agrees with it, however far it is taken"
        if unbounded.tested
        else "no choice ever tests it"
    )
    raise ValueError(
        "the posterior under a flat prior is improper along the direction "
        f"({unbounded}): {why}; use rv.Normal(sd), or decisions that bound this direction"
    )
