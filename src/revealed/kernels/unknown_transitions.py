"""Value and transition rows together, where transitions are unknown: choices inform both.

The paper's section 2. Row r is p = g / sum(g) with g(y) ~ Gamma(shape(y), 1): that is
Dirichlet(shape), shape being the prior's concentration plus the transitions counted. With
t = log g and u = p v (plus the action's reward) the log posterior is

    log prior(v) + sum over cells of {shape t - exp(t)} + sum over choices of log P(chosen | u),

without utilities, each state's equal choices weighted once. Two moves leave it as it is:

path     a Hamiltonian move of v and t together: with sharp choices, a value and the rows it is
         weighted by move as one
update   of one row given the value: a share of each g is kept, the rest drawn anew. If
         g ~ Gamma(a), B ~ Beta(a s, a (1 - s)) and h ~ Gamma(a (1 - s)), then B g + h ~ Gamma(a),
         and the step is reversible: what is left to accept or refuse is the choices made in the
         row's state. Share 0 draws the row from its Dirichlet posterior.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex, make_choice_workspace
from revealed.kernels.hmc import (
    LEAPFROG,
    HmcState,
    PathPlan,
    PathStatistics,
    hmc_move,
)
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_density import log_density_of
from revealed.kernels.noise import NORMAL, AnyNoise, count_coordinates, read_coordinates
from revealed.kernels.prior_scale import MarginalPrior, log_prior_of_quad
from revealed.kernels.vectors import dot

# Shares of g that an update of a row keeps: none, half, most; one of them is drawn each time. None
# goes furthest where choices say little, most is accepted where they say much.
KEPT_SHARES = np.array([0.0, 0.5, 0.9])


class TransitionRows(NamedTuple):
    """All P rows, state by state, with their C cells, and what transitions say of them.

    start: (N + 1,) where each state's rows begin. cell_start: (P + 1,) where each row's cells
    begin. next_state: (C,) the state a cell leads to. shape: (C,) concentration plus count.
    reward_index: (P,) the coefficient of the action's reward, or -1.
    """

    start: Ints
    cell_start: Ints
    next_state: Ints
    shape: Floats
    reward_index: Ints


class RowChoices(NamedTuple):
    """What was chosen, equal choices counted once: U different ones, state by state.

    start: (N + 1,) where each state's begin. chosen_row: (U,) the row chosen. rival: (R,) the rows
    it was chosen against, from rival_index.start on. rival_index: as the likelihood wants them.
    noise: under which it was chosen.
    """

    start: Ints
    chosen_row: Ints
    rival: Ints
    rival_index: RivalIndex
    noise: AnyNoise = NORMAL


class ValuePrior(NamedTuple):
    """The normal prior of v: precision (K, K) and mean (K,), marginal over an inferred sd.

    Coordinates of the noise are the last of v.
    """

    precision: Floats
    mean: Floats
    marginal: MarginalPrior


class ValueAndRows(NamedTuple):
    """The log posterior in coordinates x (D + C,) of a path that begins at v (K,) and t (C,).

    The value is v + value_root x[:D], the logarithms of the cells' g are t + cell_sd x[D:].
    """

    rows: TransitionRows
    choices: RowChoices
    prior: ValuePrior
    value_root: Floats
    cell_sd: Floats
    v: Floats
    t: Floats


class Workspace(NamedTuple):
    """Arrays that the kernels of this module write to.

    probabilities (C,); utility and grad_utility (P,); gap and grad_gap (R,): rivals' utilities less
    the chosen one's, and behind them the coordinates of the noise; grad_v (K,) and grad_t (C,);
    v (K,) and t (C,) where a path was evaluated last; and what the likelihood needs.
    """

    probabilities: Floats
    utility: Floats
    grad_utility: Floats
    gap: Floats
    grad_gap: Floats
    grad_v: Floats
    grad_t: Floats
    v: Floats
    t: Floats
    choice: ChoiceWorkspace


def make_workspace(rows: TransitionRows, choices: RowChoices, width: int) -> Workspace:
    """A workspace for one chain with `width` coefficients."""
    cells, count, rivals = rows.next_state.size, rows.reward_index.size, choices.rival.size
    size = rivals + count_coordinates(choices.noise)
    return Workspace(
        np.empty(cells),
        np.empty(count),
        np.empty(count),
        np.empty(size),
        np.empty(size),
        np.empty(width),
        np.empty(cells),
        np.empty(width),
        np.empty(cells),
        make_choice_workspace(choices.rival_index),
    )


@compiled
def compute_row(rows: TransitionRows, r: int, t: Floats, v: Floats, probabilities: Floats) -> float:
    """The utility of row r, its action's reward included.

    Its probabilities, the softmax of t, are written into its cells of probabilities (C,).
    """
    low, high = rows.cell_start[r], rows.cell_start[r + 1]
    # less the largest t, so that nothing overflows
    largest = t[low:high].max()
    total, utility = 0.0, 0.0
    for c in range(low, high):
        probabilities[c] = math.exp(t[c] - largest)
        total += probabilities[c]
    for c in range(low, high):
        probabilities[c] /= total
        utility += probabilities[c] * v[rows.next_state[c]]
    return utility + (v[rows.reward_index[r]] if rows.reward_index[r] >= 0 else 0.0)


@compiled
def log_choice_probability(
    choices: RowChoices, work: Workspace, v: Floats, first: int, last: int, grad_gap: Floats
) -> float:
    """Log probability of the choices first to last - 1, from work.utility.

    The last of v (K,) are the coordinates of the noise. The derivative in the gaps, and in these,
    goes into grad_gap unless that is empty.
    """
    read_coordinates(v, work.gap, choices.rival.size)
    start = choices.rival_index.start
    for k in range(first, last):
        for j in range(start[k], start[k + 1]):
            # rivals' utilities less the chosen one's
            work.gap[j] = work.utility[choices.rival[j]] - work.utility[choices.chosen_row[k]]
    # the index of these choices alone; multiplicities are looked up by position
    rivals = RivalIndex(
        start[first : last + 1],
        choices.rival_index.multiplicity,
        choices.rival_index.weight[first:last],
    )
    return log_likelihood(choices.noise, work.gap, rivals, work.choice, -np.inf, grad_gap)


@compiled
def log_posterior(
    rows: TransitionRows,
    choices: RowChoices,
    prior: ValuePrior,
    work: Workspace,
    v: Floats,
    t: Floats,
) -> float:
    """The log posterior at v (K,) and t (C,) up to a constant.

    Its gradients go into work.grad_v and work.grad_t.
    """
    # prior of v; utilities; prior of t, with the Jacobian of the logarithm in it
    offset, quad = v - prior.mean, 0.0
    for k in range(v.size):
        work.grad_v[k] = -dot(prior.precision[k], offset)
        quad -= offset[k] * work.grad_v[k]
    # an inferred sd is that of the value; coordinates of the noise, the last, are standard normal
    width, rest = v.size - count_coordinates(choices.noise), 0.0
    for k in range(width, v.size):
        rest += v[k] * v[k]
    total, precision = log_prior_of_quad(prior.marginal, quad - rest)
    total -= 0.5 * rest
    for k in range(width):
        work.grad_v[k] *= precision
    for r in range(rows.reward_index.size):
        work.utility[r] = compute_row(rows, r, t, v, work.probabilities)
        work.grad_utility[r] = 0.0
    for c in range(t.size):
        g = math.exp(t[c])
        total += rows.shape[c] * t[c] - g
        work.grad_t[c] = rows.shape[c] - g
    # choices: derivatives from gaps to utilities
    total += log_choice_probability(choices, work, v, 0, choices.chosen_row.size, work.grad_gap)
    for k in range(width, v.size):
        work.grad_v[k] += work.grad_gap[choices.rival.size + k - width]
    for k in range(choices.chosen_row.size):
        for j in range(choices.rival_index.start[k], choices.rival_index.start[k + 1]):
            work.grad_utility[choices.rival[j]] += work.grad_gap[j]
            work.grad_utility[choices.chosen_row[k]] -= work.grad_gap[j]
    # and from utilities to v and t: d u / d t_c = p_c (v_c - p v)
    for r in range(rows.reward_index.size):
        grad, mean = work.grad_utility[r], work.utility[r]
        if rows.reward_index[r] >= 0:
            mean -= v[rows.reward_index[r]]
            work.grad_v[rows.reward_index[r]] += grad
        for c in range(rows.cell_start[r], rows.cell_start[r + 1]):
            work.grad_v[rows.next_state[c]] += grad * work.probabilities[c]
            work.grad_t[c] += grad * work.probabilities[c] * (v[rows.next_state[c]] - mean)
    return total


@log_density_of(ValueAndRows)
@compiled
def path_log_posterior(
    target: ValueAndRows, work: Workspace, x: Floats, floor: float, gradient: Floats
) -> float:
    """The log posterior at the coordinates x (D + C,), with its gradient in them."""
    width = target.value_root.shape[1]
    for k in range(work.v.size):
        work.v[k] = target.v[k] + dot(target.value_root[k], x[:width])
    for c in range(work.t.size):
        work.t[c] = target.t[c] + target.cell_sd[c] * x[width + c]
    value: float = log_posterior(target.rows, target.choices, target.prior, work, work.v, work.t)
    # from v and t to the coordinates
    gradient[:width] = 0.0
    for k in range(work.v.size):
        for d in range(width):
            gradient[d] += target.value_root[k, d] * work.grad_v[k]
    for c in range(work.t.size):
        gradient[width + c] = target.cell_sd[c] * work.grad_t[c]
    return value


@compiled
def draw_log_gamma(rng: np.random.Generator, shape: float) -> float:
    """The logarithm of a Gamma(shape, 1) draw, also where the draw itself would be zero.

    For shapes a below one, Gamma(a) = Gamma(a + 1) U^(1/a).
    """
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@compiled
def log_sum_exp(a: float, b: float) -> float:
    """The logarithm of exp(a) + exp(b)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@compiled
def update_rows(
    rng: np.random.Generator,
    rows: TransitionRows,
    choices: RowChoices,
    work: Workspace,
    v: Floats,
    t: Floats,
) -> float:
    """Update every row once given the value; returns the share of rows that accepted.

    t (C,) is changed in place. Each row keeps a share of its g, drawn from KEPT_SHARES, and is
    accepted by the ratio of the probabilities of the choices in its state.
    """
    # an empty array tells the likelihood to leave derivatives out
    accepted, none, old = 0, np.empty(0), np.empty(v.size)
    for r in range(rows.reward_index.size):
        work.utility[r] = compute_row(rows, r, t, v, work.probabilities)
    for x in range(rows.start.size - 1):
        # only choices in this state see its rows
        first, last = choices.start[x], choices.start[x + 1]
        before = log_choice_probability(choices, work, v, first, last, none)
        for r in range(rows.start[x], rows.start[x + 1]):
            low, old_utility = rows.cell_start[r], work.utility[r]
            share = KEPT_SHARES[int(rng.random() * KEPT_SHARES.size)]
            for c in range(low, rows.cell_start[r + 1]):
                # B g + h, in logarithms; B is a ratio of gammas
                old[c - low] = t[c]
                fresh = draw_log_gamma(rng, rows.shape[c] * (1.0 - share))
                if share > 0.0:
                    kept = draw_log_gamma(rng, rows.shape[c] * share)
                    kept -= log_sum_exp(kept, draw_log_gamma(rng, rows.shape[c] * (1.0 - share)))
                    fresh = log_sum_exp(fresh, kept + t[c])
                t[c] = fresh
            work.utility[r] = compute_row(rows, r, t, v, work.probabilities)
            after = log_choice_probability(choices, work, v, first, last, none)
            # a logarithm of a uniform draw is minus an exponential one
            if -rng.standard_exponential() <= after - before:
                accepted += 1
                before = after
            else:
                t[low : rows.cell_start[r + 1]] = old[: rows.cell_start[r + 1] - low]
                work.utility[r] = old_utility
    return accepted / rows.reward_index.size


@compiled
def move_value_and_rows(
    rng: np.random.Generator,
    target: ValueAndRows,
    work: Workspace,
    plan: PathPlan,
    statistics: PathStatistics,
    n: int,
    thin: int,
) -> None:
    """Move v and t of the target along a Hamiltonian path, in place, by `hmc.hmc_move`."""
    # coordinates are counted from where the path begins
    size = target.value_root.shape[1] + target.t.size
    state = HmcState(np.zeros(size), np.empty(1), np.empty(size))
    state.log_density[0] = path_log_posterior(target, work, state.x, -np.inf, state.gradient)
    if hmc_move(rng, target, work, LEAPFROG, plan, state, statistics, n, thin):
        target.v[:] = work.v
        target.t[:] = work.t


@compiled
def sample_chain(
    rng: np.random.Generator,
    target: ValueAndRows,
    work: Workspace,
    plan: PathPlan,
    thin: int,
    out: Floats,
    statistics: PathStatistics,
    row_acceptance_rate: Floats,
) -> None:
    """Write draws of v and t into out (n, K + C).

    For each draw `thin` times an update of every row and a path. v and t of the target are the
    state of the chain, changed in place. row_acceptance_rate (n,): of the last updates.
    """
    rows, choices, v, t = target.rows, target.choices, target.v, target.t
    for n in range(out.shape[0]):
        for _ in range(thin):
            if stop_requested():
                return
            row_acceptance_rate[n] = update_rows(rng, rows, choices, work, v, t)
            move_value_and_rows(rng, target, work, plan, statistics, n, thin)
        out[n, : v.size] = v
        out[n, v.size :] = t


@compiled
def write_probabilities(rows: TransitionRows, width: int, draws: Floats) -> None:
    """Replace t in draws (n, width + C) of v and t by the probabilities of the cells."""
    probabilities = np.empty(rows.next_state.size)
    for draw in draws:
        for r in range(rows.reward_index.size):
            # for its side effect: the row's probabilities
            compute_row(rows, r, draw[width:], draw[:width], probabilities)
        draw[width:] = probabilities
