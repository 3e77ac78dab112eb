"""Many populations of the same groups at once: one iteration of the hierarchical sampler for each.

Every particle is a population with values of all its groups. An iteration has the kernels of the
sampler: values given the population (`group_values.draw_group_values`), the population given values
(`population.draw_population`), and mean and root given each group's standardised value, by a
Hamiltonian path on `population.log_density_noncentred` that all values follow.
"""

from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.group_values import (
    GroupedDecisions,
    GroupMetric,
    GroupSums,
    LikelihoodSums,
    Population,
    add_log_likelihood,
    draw_group_values,
    transfer_values,
)
from revealed.kernels.hmc import LEAPFROG, HmcState, PathWorkspace, hmc_step, range_of_steps
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_density import log_density_of
from revealed.kernels.population import (
    PopulationPrior,
    draw_population,
    log_density_noncentred,
    pack,
    unpack,
)


class NoncentredPosterior(NamedTuple):
    """The law of theta = start + metric x given the groups' standardised values.

    Those are the values q (G, D) in the population of this mean and root, of which start is the
    theta (`population.pack`). max_log_sd: where the density is taken as zero.
    """

    groups: GroupedDecisions
    prior: PopulationPrior
    q: Floats
    mean: Floats
    root: Floats
    start: Floats
    metric: Floats
    max_log_sd: float


class PopulationPaths(NamedTuple):
    """How particles are moved.

    value_length, n_independence: of the groups' paths, and the independence moves before them.
    length, max_steps, step_size, metric: of the populations' paths. max_log_sd: as above.
    """

    value_length: float
    n_independence: int
    length: float
    max_steps: int
    step_size: float
    metric: Floats
    max_log_sd: float


@log_density_of(NoncentredPosterior)
@compiled
def noncentred_log_posterior(
    target: NoncentredPosterior, work: Any, x: Floats, floor: float, gradient: Floats
) -> float:
    """The log density at x with its gradient in x."""
    width = target.mean.size
    theta = target.start + target.metric @ x
    for k in range(width, 2 * width):
        if not abs(theta[k]) < target.max_log_sd:
            return -np.inf
    mean, root = np.empty(width), np.empty((width, width))
    unpack(theta, mean, root)
    sums = LikelihoodSums(np.zeros(1), np.zeros(width), np.zeros((width, width)))
    add_log_likelihood(target.groups, target.q, target.mean, target.root, mean, root, sums)
    grad_theta = np.empty(theta.size)
    value: float = log_density_noncentred(
        target.prior, theta, sums.log_likelihood[0], sums.grad, sums.grad_outer_z, grad_theta
    )
    gradient[:] = np.ascontiguousarray(target.metric.T) @ grad_theta
    return value


@compiled
def own_prior(prior: PopulationPrior, prior_sd: float) -> PopulationPrior:
    """The prior of the population, at this sd of its mean's prior."""
    return PopulationPrior(
        prior.mean, prior.precision / (prior_sd * prior_sd), prior.sd_scale, prior.scale_group
    )


@compiled
def noncentred_gradients(
    groups: GroupedDecisions,
    prior: PopulationPrior,
    prior_sd: Floats,
    max_log_sd: float,
    q: Floats,
    mean: Floats,
    covariance: Floats,
    gradients: Floats,
) -> None:
    """Write the gradient in theta (N, .) of every population given standardised values."""
    size = gradients.shape[1]
    identity, zero = np.eye(size), np.zeros(size)
    for n in range(gradients.shape[0]):
        root: Any = np.linalg.cholesky(covariance[n])
        target = NoncentredPosterior(
            groups,
            own_prior(prior, prior_sd[n]),
            q[n],
            mean[n],
            root,
            pack(mean[n], root),
            identity,
            max_log_sd,
        )
        noncentred_log_posterior(target, None, zero, -np.inf, gradients[n])


@compiled
def move_populations(
    rng: np.random.Generator,
    groups: GroupedDecisions,
    prior: PopulationPrior,
    prior_sd: Floats,
    metric: GroupMetric,
    paths: PopulationPaths,
    q: Floats,
    mean: Floats,
    covariance: Floats,
    value_acceptance: Floats,
    acceptance: Floats,
) -> None:
    """One iteration for each of N particles, in place: q (N, G, D), mean (N, D), covariance.

    prior_sd (N,): that of each mean's prior, times which prior has it. value_acceptance (N, G) and
    acceptance (N,) get the acceptance probabilities of the paths of values and populations.
    """
    count, width = mean.shape
    size = paths.metric.shape[0]
    state = HmcState(np.empty(size), np.empty(1), np.empty(size))
    work = PathWorkspace(np.empty(size), np.empty(size), np.empty(size))
    least, most = range_of_steps(paths.length, paths.step_size)
    least, most = min(least, paths.max_steps), min(most, paths.max_steps)
    steps = np.zeros(2)
    for n in range(count):
        if stop_requested():
            return
        own = own_prior(prior, prior_sd[n])
        # values given the population
        sums = GroupSums(
            np.zeros(1),
            np.zeros(width),
            np.zeros(width),
            np.zeros((width, width)),
            np.zeros((width, width)),
        )
        root: Any = np.linalg.cholesky(covariance[n])
        inverse = np.linalg.inv(root)
        precision = np.ascontiguousarray(inverse.T) @ inverse
        draw_group_values(
            rng,
            groups,
            Population(mean[n], root, precision),
            metric,
            paths.value_length,
            paths.n_independence,
            q[n],
            value_acceptance[n],
            steps,
            sums,
        )
        # the population given values
        drawn_mean, drawn_covariance = draw_population(
            rng, own, q.shape[1], mean[n], sums.deviation, sums.deviation_outer, covariance[n]
        )
        drawn_root: Any = np.linalg.cholesky(drawn_covariance)
        # the population given standardised values, which the values then follow
        target = NoncentredPosterior(
            groups,
            own,
            q[n],
            drawn_mean,
            drawn_root,
            pack(drawn_mean, drawn_root),
            paths.metric,
            paths.max_log_sd,
        )
        state.x[:] = 0.0
        state.log_density[0] = noncentred_log_posterior(
            target, None, state.x, -np.inf, state.gradient
        )
        outcome = hmc_step(rng, target, None, LEAPFROG, paths.step_size, least, most, state, work)
        acceptance[n] = outcome.probability
        mean[n], covariance[n] = drawn_mean, drawn_covariance
        if outcome.accepted:
            unpack(target.start + paths.metric @ state.x, mean[n], root)
            q[n] = transfer_values(q[n], drawn_mean, drawn_root, mean[n], root)
            covariance[n] = root @ np.ascontiguousarray(root.T)
