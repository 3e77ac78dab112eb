"""Many groups at once: moves of each value given the population, and the likelihood of all groups.

    q_i ~ N(mean, covariance)        value of group i, in D free coordinates

Given the population's mean and covariance the groups are independent, so any of them can be moved
anywhere, with a random generator of its own. The arrays of all groups are stacked one after the
other.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal, inlined
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_exact import EXACT_RULE
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.choice_lattice import FAST_RULE
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.hmc import LEAPFROG, HmcState, PathWorkspace, hmc_step, range_of_steps
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace, log_posterior
from revealed.kernels.logit import LOGIT_RULE
from revealed.kernels.noise import AnyNoise

# Degrees of freedom of the Student-t law that independence moves propose from. Tails must be
# heavier than the posterior's, which with normal priors any number gives; a small one wastes
# proposals far out, a large one lets the chain stick in the tails.
STUDENT_T_DF = 8.0


class GroupedDecisions(NamedTuple):
    """What N groups chose against what, in D free coordinates; rivals as in `RivalIndex`.

    columns: the rivals' rows less the chosen one's, (D, rivals) for each group, laid out flat.
    rival_start, decision_start: (N + 1,) where each group's rivals and different decisions begin.
    start: where each decision's rivals begin, counted from zero for each group. multiplicity,
    weight: as in `RivalIndex`. max_rivals: of a group. max_distinct_rivals, max_actions: of a
    decision, equal ones counted once and as often as they stand there. noise: under which they
    chose.
    """

    columns: Floats
    rival_start: Ints
    decision_start: Ints
    start: Ints
    multiplicity: Floats
    weight: Floats
    max_rivals: int
    max_distinct_rivals: int
    max_actions: int
    noise: AnyNoise


class Population(NamedTuple):
    """The normal law of values: mean (D,), lower root (D, D) of the covariance, and its inverse."""

    mean: Floats
    root: Floats
    precision: Floats


class GroupMetric(NamedTuple):
    """Whitened coordinates x of each group: q = mean + root (centre + scale x).

    centre (N, D), scale (N, D, D) lower triangular, and step_size (N,) of the paths of x.
    """

    centre: Floats
    scale: Floats
    step_size: Floats


class GroupSums(NamedTuple):
    """Sums over groups that the population needs, with l the log-likelihood and e = q - mean.

    log_likelihood (1,): l. grad (D,): dl/dq. deviation (D,): e. grad_outer_deviation (D, D):
    dl/dq e'. deviation_outer (D, D): e e'.
    """

    log_likelihood: Floats
    grad: Floats
    deviation: Floats
    grad_outer_deviation: Floats
    deviation_outer: Floats


class LikelihoodSums(NamedTuple):
    """Sums over groups in another population: log-likelihood (1,), dl/dq (D,) and dl/dq z' (D, D).

    The last two are empty where no derivatives are wanted. z: standardised values.
    """

    log_likelihood: Floats
    grad: Floats
    grad_outer_z: Floats


@compiled
def select_group(groups: GroupedDecisions, width: int, i: int) -> tuple[Design, RivalIndex]:
    """The design and the rivals of group i."""
    low, high = groups.rival_start[i], groups.rival_start[i + 1]
    begin, end = groups.decision_start[i], groups.decision_start[i + 1]
    # views into the stacked arrays; a dense design has no sparse part
    none = np.zeros(0, dtype=np.int64)
    columns = groups.columns[width * low : width * high].reshape((width, high - low))
    rivals = RivalIndex(
        groups.start[begin + i : end + i + 1],
        groups.multiplicity[low:high],
        groups.weight[begin:end],
    )
    return Design(columns, none, none, np.zeros(0)), rivals


@compiled
def make_likelihood_workspace(groups: GroupedDecisions) -> ChoiceWorkspace:
    """A workspace for the largest decision of any group."""
    distinct, actions = groups.max_distinct_rivals, groups.max_actions
    return ChoiceWorkspace(
        np.empty(distinct, np.int64),
        np.empty(distinct),
        np.empty(distinct),
        np.empty(FAST_RULE.max_nodes, np.float32),
        np.empty(actions),
        np.empty(EXACT_RULE.many_rivals_intervals + 1),
        np.empty(EXACT_RULE.many_rivals_intervals + 1),
        np.empty(max(distinct, LOGIT_RULE.exponentials_at_a_time) + 8),
        np.empty(0),
    )


@compiled
def log_student_t(x: Floats) -> float:
    """Log density of a standard Student-t law with STUDENT_T_DF degrees of freedom.

    Up to a constant; x (D,).
    """
    square = 0.0
    for d in range(x.size):
        square += x[d] * x[d]
    return -0.5 * (STUDENT_T_DF + x.size) * math.log(1.0 + square / STUDENT_T_DF)


@compiled_internal
def whiten_value(
    population: Population,
    centre: Floats,
    scale: Floats,
    q: Floats,
    offset: Floats,
    spread: Floats,
    x: Floats,
) -> None:
    """Write the transform q = offset + spread x of one group, and x at its q.

    offset = mean + root centre, spread = root scale, lower triangular.
    """
    width = q.size
    for k in range(width):
        # both factors are lower triangular, so the sum runs from j to k
        offset[k] = population.mean[k]
        for j in range(width):
            offset[k] += population.root[k, j] * centre[j]
            spread[k, j] = 0.0
            for l in range(j, k + 1):
                spread[k, j] += population.root[k, l] * scale[l, j]
    # forward substitution
    for k in range(width):
        x[k] = q[k] - offset[k]
        for j in range(k):
            x[k] -= spread[k, j] * x[j]
        x[k] /= spread[k, k]


@inlined
def independence_moves(
    rng: np.random.Generator,
    target: LogPosterior,
    work: PosteriorWorkspace,
    count: int,
    x: Floats,
    proposed: Floats,
) -> None:
    """Independence Metropolis-Hastings moves of x (D,), in place, from a Student-t law."""
    none = np.zeros(0)
    # log of posterior over proposal; a move is accepted by its ratio
    log_ratio = log_posterior(target, work, x, -np.inf, none) - log_student_t(x)
    for _ in range(count):
        # a Student-t draw is a normal one over the root of a chi-squared over its df
        radius = math.sqrt(0.5 * STUDENT_T_DF / rng.standard_gamma(0.5 * STUDENT_T_DF))
        for d in range(x.size):
            proposed[d] = radius * rng.standard_normal()
        proposed_log_ratio = log_posterior(target, work, proposed, -np.inf, none) - log_student_t(
            proposed
        )
        if rng.random() < math.exp(min(proposed_log_ratio - log_ratio, 0.0)):
            x[:] = proposed
            log_ratio = proposed_log_ratio


@compiled_internal
def add_group_sums(
    population: Population,
    offset: Floats,
    spread: Floats,
    state: HmcState,
    q: Floats,
    sums: GroupSums,
) -> None:
    """Write q (D,) of one group from its state in whitened coordinates, and add it to the sums."""
    width = q.size
    deviation, grad = np.empty(width), np.empty(width)
    for k in range(width):
        # q = offset + spread x
        q[k] = offset[k]
        for j in range(k + 1):
            q[k] += spread[k, j] * state.x[j]
        deviation[k] = q[k] - population.mean[k]
    # the gradient in x is spread' times that in q: back substitution
    for k in range(width - 1, -1, -1):
        grad[k] = state.gradient[k]
        for j in range(k + 1, width):
            grad[k] -= spread[j, k] * grad[j]
        grad[k] /= spread[k, k]
    # the population's own density is taken off again: what is left is the likelihood
    total = state.log_density[0]
    for k in range(width):
        prior_grad = 0.0
        for j in range(width):
            prior_grad += population.precision[k, j] * deviation[j]
        grad[k] = grad[k] + prior_grad
        total += 0.5 * deviation[k] * prior_grad
    # what the population's conditionals and its non-centred path need
    sums.log_likelihood[0] += total
    for k in range(width):
        sums.grad[k] += grad[k]
        sums.deviation[k] += deviation[k]
        for j in range(width):
            sums.grad_outer_deviation[k, j] += grad[k] * deviation[j]
            sums.deviation_outer[k, j] += deviation[k] * deviation[j]


@compiled
def draw_group_values(
    rng: np.random.Generator,
    groups: GroupedDecisions,
    population: Population,
    metric: GroupMetric,
    path_length: float,
    n_independence: int,
    q: Floats,
    acceptance: Floats,
    steps: Floats,
    sums: GroupSums,
) -> None:
    """Move every group's value given the population: independence moves, then a Hamiltonian path.

    Under q ~ N(mean, precision^-1). q (N, D) is changed in place; acceptance (N,) gets the
    acceptance probabilities of the paths; steps (2,) how many steps they made and how many of them
    diverged, added up. What the population needs to know is added to sums.
    """
    width = q.shape[1]
    # all that groups share is allocated once
    state = HmcState(np.empty(width), np.empty(1), np.empty(width))
    path = PathWorkspace(np.empty(width), np.empty(width), np.empty(width))
    ones, zeros, none, no_table = np.ones(width), np.zeros(width), np.zeros(0), np.zeros((0, 2))
    gaps, grad_gaps = np.empty(groups.max_rivals), np.empty(groups.max_rivals)
    choice = make_likelihood_workspace(groups)
    unwhitened, value = np.empty(width), np.empty(width)
    precision_times_offset, grad_value = np.empty(width), np.empty(width)
    offset, spread = np.empty(width), np.empty((width, width))
    for i in range(q.shape[0]):
        if stop_requested():
            return
        design, rivals = select_group(groups, width, i)
        whiten_value(population, metric.centre[i], metric.scale[i], q[i], offset, spread, state.x)
        # the group's posterior: its likelihood and the population as prior, not skewed
        target = LogPosterior(
            design,
            rivals,
            none,
            population.precision,
            population.mean,
            no_table,
            0.0,
            offset,
            ones,
            zeros,
            spread,
            groups.noise,
        )
        count = rivals.multiplicity.size
        # arrays as long as this group needs, of those that all groups share
        work = PosteriorWorkspace(
            gaps[:count],
            grad_gaps[:count],
            unwhitened,
            value,
            precision_times_offset,
            grad_value,
            choice,
        )
        if n_independence > 0:
            independence_moves(rng, target, work, n_independence, state.x, path.x)
        state.log_density[0] = log_posterior(target, work, state.x, -np.inf, state.gradient)
        min_steps, max_steps = range_of_steps(path_length, metric.step_size[i])
        outcome = hmc_step(
            rng, target, work, LEAPFROG, metric.step_size[i], min_steps, max_steps, state, path
        )
        acceptance[i] = outcome.probability
        steps[0] += outcome.n_steps
        steps[1] += outcome.diverging
        add_group_sums(population, offset, spread, state, q[i], sums)


@compiled_internal
def transfer_value(
    q: Floats,
    mean: Floats,
    root: Floats,
    new_mean: Floats,
    new_root: Floats,
    z: Floats,
    new_q: Floats,
) -> None:
    """Write the standardised value z (D,) of one group, q = mean + root z, and its new value.

    The new value is what z is in another population: new_mean + new_root z.
    """
    for k in range(q.size):
        # z by forward substitution
        z[k] = q[k] - mean[k]
        for j in range(k):
            z[k] -= root[k, j] * z[j]
        z[k] /= root[k, k]
    for k in range(q.size):
        # the same z in the new population
        new_q[k] = new_mean[k]
        for j in range(k + 1):
            new_q[k] += new_root[k, j] * z[j]


@compiled
def add_log_likelihood(
    groups: GroupedDecisions,
    q: Floats,
    mean: Floats,
    root: Floats,
    new_mean: Floats,
    new_root: Floats,
    sums: LikelihoodSums,
) -> None:
    """Add the log-likelihood of all groups in another population, at the same standardised values.

    From q = mean + root z to new_mean + new_root z. Derivatives are added to sums.grad and
    sums.grad_outer_z unless those are empty.
    """
    width, with_gradient = q.shape[1], sums.grad.size > 0
    z, new_q, grad = np.empty(width), np.empty(width), np.empty(width)
    gaps, grad_gaps = np.empty(groups.max_rivals), np.empty(groups.max_rivals)
    choice = make_likelihood_workspace(groups)
    for i in range(q.shape[0]):
        design, rivals = select_group(groups, width, i)
        transfer_value(q[i], mean, root, new_mean, new_root, z, new_q)
        count = rivals.multiplicity.size
        # an empty array tells the likelihood to leave derivatives out
        gap, grad_gap = gaps[:count], grad_gaps[: count if with_gradient else 0]
        multiply(design, new_q, gap)
        sums.log_likelihood[0] += log_likelihood(
            groups.noise, gap, rivals, choice, -np.inf, grad_gap
        )
        if with_gradient:
            # from the gaps to q
            transpose_multiply(design, grad_gap, grad)
            for k in range(width):
                sums.grad[k] += grad[k]
                for j in range(width):
                    sums.grad_outer_z[k, j] += grad[k] * z[j]


@compiled
def transfer_values(
    q: Floats, mean: Floats, root: Floats, new_mean: Floats, new_root: Floats
) -> Floats:
    """(N, D) values of groups whose standardised values stay while the population moves."""
    width, out = q.shape[1], np.empty_like(q)
    z = np.empty(width)
    for i in range(q.shape[0]):
        transfer_value(q[i], mean, root, new_mean, new_root, z, out[i])
    return out
