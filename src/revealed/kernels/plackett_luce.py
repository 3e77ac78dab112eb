"""How likely finishing orders are under logit noise: the law of Plackett and Luce.

A game's entries have utilities u_k, the sums of their players' skills, plus Gumbel noise. The order
then splits into choices (Luce 1959, Plackett 1975): whoever is next is chosen among all who are not
yet placed, with strengths e_k = exp(u_k),

    P = product over places i of e_i / D_i,    D_i = sum of e_k over i and everybody behind.

Those of whom only is known that they came behind stand in every D_i and are never chosen. The log
is linear in the utilities but for the log D_i; its derivative in u_k is one, if k was chosen, minus
e_k times the sum of 1 / D_i over the places from the first to that of k.

Of entries that share a place the order among themselves was not seen: their probability is the sum
over all their orders. With B the strengths behind the group, and S some of it, let F_S be the
probability that all of S come before everybody behind:

    F_S = sum over j in S of e_j F_S-j / (B + sum of e_i over S),    F of nobody = 1.

Subsets are the bits of an integer. In units of B, F_S is divided by the product of min(e_j, 1) over
S; what is left, H_S, lies between 2^-n and n^n for n entries, whatever the strengths:

    H_S = sum over j in S of max(e_j, 1) H_S-j / (1 + sum of e_i over S).

Given the group's place, W_S is the probability that S are those of it who are left at some time;
the derivative of log F in u_j is one minus the sum of W_S e_j / (1 + sum over S) over all S with j.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal, inlined_formula


class StrengthLimits(NamedTuple):
    """How large numbers may become before logarithms are taken.

    exponent: utilities up to this in size are turned into strengths; beyond, games are worked out
    by logarithms, which takes longer. product: sums of strengths are multiplied while their product
    lies between this and its inverse: one logarithm serves many. Together with `exponent` both
    larger would overflow, smaller ones cost time. utility: larger ones have no probability.
    """

    exponent: float
    product: float
    utility: float


LIMITS = StrengthLimits(exponent=300.0, product=1e150, utility=1e100)


class LuceGames(NamedTuple):
    """Entries of G games in finishing order, under logit noise.

    players: (N,), those of entry e from member_start[e] on. start: (G + 1,) where each game's
    entries begin. tied: (E,) with the entry before it. n_chosen: (G,) how many entries of a game
    are known to be ahead of somebody. times_chosen: (K,) how often each player was in one of these.
    most_members, most_entries, most_tied: of an entry, of a game, and in one place.
    """

    players: Ints
    member_start: Ints
    start: Ints
    tied: Bools
    n_chosen: Ints
    times_chosen: Floats
    most_members: int
    most_entries: int
    most_tied: int


class TieWorkspace(NamedTuple):
    """Of one tied group: strengths in units of those behind (n,), and H, W and sums (2^n,)."""

    strength: Floats
    scaled: Floats
    reached: Floats
    total: Floats


def make_luce_games(
    players: Ints, member_start: Ints, start: Ints, tied: Bools, n_ordered: Ints, n_players: int
) -> LuceGames:
    """Games of n_players players, of which the first n_ordered (G,) entries are in order."""
    entries, position = np.diff(start), np.arange(len(tied))
    # where nobody retired, the last place is known from those before it
    first_of_place = np.maximum.accumulate(np.where(tied, 0, position))
    last_place = first_of_place[start[1:] - 1] - start[:-1]
    n_chosen = np.where(n_ordered < entries, n_ordered, last_place)
    is_chosen = position - np.repeat(start[:-1], entries) < np.repeat(n_chosen, entries)
    members = np.diff(member_start)
    times = np.bincount(players[np.repeat(is_chosen, members)], minlength=n_players)
    most_tied = int((position - first_of_place).max()) + 1
    return LuceGames(
        players,
        member_start,
        start,
        tied,
        n_chosen,
        times.astype(np.float64),
        int(members.max()),
        int(entries.max()),
        most_tied,
    )


@compiled_internal
def _make_tie_workspace(most_tied: int) -> TieWorkspace:
    """Room for so many entries in one place; none where nobody ties."""
    subsets = 1 << most_tied if most_tied > 1 else 0
    return TieWorkspace(
        np.empty(most_tied), np.empty(subsets), np.empty(subsets), np.empty(subsets)
    )


@compiled_internal
def _tie_log_probability(relative: Floats, work: TieWorkspace, gradient: Floats) -> float:
    """Log F of all of a tied group; its derivatives go into gradient (n,), unless that is empty.

    relative: (n,) utilities minus the log of the strengths behind.
    """
    count, (strength, scaled, reached, total) = relative.size, work
    whole = (1 << count) - 1
    value = 0.0
    for j in range(count):
        # beyond, an entry is ahead of those behind to the last digit
        strength[j] = math.exp(min(relative[j], LIMITS.exponent))
        value += min(relative[j], 0.0)
    scaled[0], total[0] = 1.0, 1.0
    for subset in range(1, whole + 1):
        # sums of strengths grow by the last of the subset's members
        over_members, last = 0.0, 0
        for j in range(count):
            if subset >> j & 1:
                over_members += max(strength[j], 1.0) * scaled[subset - (1 << j)]
                last = j
        total[subset] = total[subset - (1 << last)] + strength[last]
        scaled[subset] = over_members / total[subset]
    value += math.log(scaled[whole])
    if gradient.size == 0:
        return value
    gradient[:] = 1.0
    reached[: whole + 1] = 0.0
    reached[whole] = 1.0
    # from the whole group to ever fewer: whoever is chosen next leaves the subset
    for subset in range(whole, 0, -1):
        weight = reached[subset] / total[subset]
        for j in range(count):
            if subset >> j & 1:
                less = subset - (1 << j)
                reached[less] += weight * max(strength[j], 1.0) * scaled[less] / scaled[subset]
                gradient[j] -= weight * strength[j]
    return value


@compiled_internal
def _log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b)), where either may be minus infinity."""
    largest = max(a, b)
    if largest == -np.inf:
        return largest
    return largest + math.log1p(math.exp(min(a, b) - largest))


@compiled_internal
def _order_log_probability(
    utility: Floats,
    tied: Bools,
    n_chosen: int,
    log_behind: Floats,
    work: TieWorkspace,
    gradient: Floats,
) -> float:
    """Log P of one game by logarithms, for utilities of any size.

    The derivatives in the utilities go into gradient (n,), unless that is empty. log_behind: (n,)
    room for the log strengths behind each entry.
    """
    # from the last to the first: the log strengths of all who are behind an entry's place
    running, value = -np.inf, 0.0
    for k in range(utility.size - 1, n_chosen - 1, -1):
        running = _log_add(running, utility[k])
    last = n_chosen - 1
    none = gradient[:0]
    while last >= 0:
        first = last
        while tied[first]:
            first -= 1
        behind = running
        for k in range(first, last + 1):
            log_behind[k] = behind
            running = _log_add(running, utility[k])
        if first == last:
            value += utility[first] - running
            if gradient.size > 0:
                gradient[first] = math.exp(behind - running)
        else:
            relative = utility[first : last + 1] - behind
            own = none if gradient.size == 0 else gradient[first : last + 1]
            value += _tie_log_probability(relative, work, own)
        last = first - 1
    if gradient.size == 0:
        return value
    # from the first to the last: everybody behind loses what a place has gained, by their strengths
    lost, place = -np.inf, 0
    while place < n_chosen:
        end = place + 1
        while end < n_chosen and tied[end]:
            end += 1
        gained = 0.0
        for k in range(place, end):
            gained += gradient[k]
            gradient[k] -= math.exp(utility[k] + lost)
        if gained > 0.0:
            lost = _log_add(lost, math.log(gained) - log_behind[place])
        place = end
    for k in range(n_chosen, utility.size):
        gradient[k] = -math.exp(utility[k] + lost)
    return value


@compiled
def log_likelihood(games: LuceGames, skill: Floats, gradient: Floats) -> float:
    """Log probability of all orders.

    Its derivatives in the skills go into gradient (K,), unless that is empty.
    """
    largest = 0.0
    for k in range(skill.size):
        # neither is NaN
        if not abs(skill[k]) < LIMITS.utility:
            return -np.inf
        largest = max(largest, abs(skill[k]))
    if largest * games.most_members > LIMITS.exponent:
        return _log_likelihood_by_logs(games, skill, gradient)
    return _log_likelihood_by_strengths(games, skill, gradient)


@compiled_internal
def _log_likelihood_by_logs(games: LuceGames, skill: Floats, gradient: Floats) -> float:
    """As `log_likelihood`, for skills of any size."""
    work = _make_tie_workspace(games.most_tied)
    utility, log_behind = np.empty(games.most_entries), np.empty(games.most_entries)
    slope = np.empty(games.most_entries if gradient.size > 0 else 0)
    gradient[:] = 0.0
    value = 0.0
    for g in range(games.n_chosen.size):
        low, high = games.start[g], games.start[g + 1]
        for e in range(low, high):
            utility[e - low] = 0.0
            for j in range(games.member_start[e], games.member_start[e + 1]):
                utility[e - low] += skill[games.players[j]]
        value += _order_log_probability(
            utility[: high - low],
            games.tied[low:high],
            games.n_chosen[g],
            log_behind,
            work,
            slope[: high - low],
        )
        if gradient.size > 0:
            for e in range(low, high):
                _add_to_players(games, e, slope[e - low], gradient)
    return value


@inlined_formula
def _add_to_players(games: LuceGames, entry: int, slope: float, gradient: Floats) -> None:
    """The derivative in an entry's utility is that in the skill of each of its players."""
    for j in range(games.member_start[entry], games.member_start[entry + 1]):
        gradient[games.players[j]] += slope


@compiled_internal
def _log_likelihood_by_strengths(games: LuceGames, skill: Floats, gradient: Floats) -> float:
    """As `log_likelihood`, for skills whose exponentials neither overflow nor vanish."""
    with_gradient, alone = gradient.size > 0, games.most_members == 1
    work = _make_tie_workspace(games.most_tied)
    strength_of_player = np.exp(skill)
    # who is chosen: linear in the skills
    value, product = 0.0, 1.0
    for k in range(skill.size):
        value += games.times_chosen[k] * skill[k]
    gradient[:] = games.times_chosen[: gradient.size]
    # rate: what an entry's place adds to the sum of 1 / D for itself and everybody behind
    strength, rate = np.empty(games.most_entries), np.empty(games.most_entries)
    for g in range(games.n_chosen.size):
        low, chosen = games.start[g], games.n_chosen[g]
        count = games.start[g + 1] - low
        for k in range(count):
            if alone:
                strength[k] = strength_of_player[games.players[low + k]]
            else:
                strength[k] = 1.0
                for j in range(games.member_start[low + k], games.member_start[low + k + 1]):
                    strength[k] *= strength_of_player[games.players[j]]
        # from the last to the first: the strengths of an entry and of everybody behind
        total = 0.0
        for k in range(count - 1, chosen - 1, -1):
            total += strength[k]
            rate[k] = 0.0
        last = chosen - 1
        while last >= 0:
            first = last
            while games.tied[low + first]:
                first -= 1
            if first < last:
                value += _add_tie(games, low, first, last, total, strength, rate, work, gradient)
                for k in range(first, last + 1):
                    total += strength[k]
            else:
                total += strength[last]
                rate[last] = 1.0 / total
                product *= total
                if not 1.0 / LIMITS.product < product < LIMITS.product:
                    value -= math.log(product)
                    product = 1.0
            last = first - 1
        if with_gradient:
            lost = 0.0
            for k in range(count):
                lost += rate[k]
                if alone:
                    gradient[games.players[low + k]] -= strength[k] * lost
                else:
                    _add_to_players(games, low + k, -strength[k] * lost, gradient)
    return value - math.log(product)


@compiled_internal
def _add_tie(
    games: LuceGames,
    low: int,
    first: int,
    last: int,
    behind: float,
    strength: Floats,
    rate: Floats,
    work: TieWorkspace,
    gradient: Floats,
) -> float:
    """Log P of the group from first to last of the game at low, less its part linear in skills.

    behind: strengths of everybody behind the group. Derivatives are added as those of other places.
    """
    count = last - first + 1
    relative, slope = np.empty(count), np.empty(count if gradient.size > 0 else 0)
    linear, gained = 0.0, 0.0
    for j in range(count):
        utility = math.log(strength[first + j])
        linear += utility
        relative[j] = utility - math.log(behind)
    value: float = _tie_log_probability(relative, work, slope) - linear
    for j in range(slope.size):
        rate[first + j] = 0.0
        gained += slope[j]
        _add_to_players(games, low + first + j, slope[j] - 1.0, gradient)
    # those behind lose what the group has gained
    rate[last + 1] += gained / behind
    return value


@compiled
def log_probabilities(utilities: Floats, tied: Bools, n_ordered: int) -> Floats:
    """(S,) log probabilities of one order under S sets of utilities (S, n)."""
    count = utilities.shape[1]
    most_tied = run = 1
    for k in range(1, count):
        run = run + 1 if tied[k] else 1
        most_tied = max(most_tied, run)
    # where nobody retired, the last place is known from those before it
    n_chosen = n_ordered if n_ordered < count else count - run
    work = _make_tie_workspace(most_tied)
    out, log_behind, none = np.empty(len(utilities)), np.empty(count), np.empty(0)
    for s in range(len(utilities)):
        out[s] = _order_log_probability(utilities[s], tied, n_chosen, log_behind, work, none)
    return out
