"""The default sampler's loop: a fixed cycle of moves, each of which leaves the posterior as it is.

A cycle (Tierney 1994) has so many Hamiltonian moves, then so many sweeps of data augmentation with
interweaving, then so many independence steps. The utilities exist only within a sweep, which begins
by drawing them exactly given the value: the moves without utilities can stand anywhere in the
cycle. All moves but the sweeps are made in whitened coordinates x, with v = centre + scale *
skew(unwhiten x).
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal, inlined
from revealed.kernels.augmentation_sweep import (
    AugmentationWorkspace,
    augmentation_sweep,
    prior_quadratic_form,
)
from revealed.kernels.coordinates import (
    TransformArrays,
    add_constants,
    coordinates_from_value,
    value_from_coordinates,
)
from revealed.kernels.hmc import (
    ADAPTATION,
    LEAPFROG,
    PATH,
    HmcState,
    PathOutcome,
    PathWorkspace,
    hmc_step,
    update_step_size,
)
from revealed.kernels.independence import Mixture, draw_from_mixture, mixture_log_density
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace, log_posterior
from revealed.kernels.prior_part import draw_proposal_with_prior_part, with_prior_part
from revealed.kernels.prior_scale import PriorScale, draw_prior_sd
from revealed.kernels.prior_scale_path import slice_sample_scale


class Cycle(NamedTuple):
    """How many moves of each kind a cycle has, and how many moves make a kept draw.

    hmc, augmentation, independence: moves of each kind, in this order. step_size: of Hamiltonian
    paths, which have min_steps to max_steps steps. moves_per_draw: not a multiple of the cycle's
    length in general; the next draw continues within the cycle.
    """

    hmc: int
    augmentation: int
    independence: int
    step_size: float
    min_steps: int
    max_steps: int
    moves_per_draw: int


class CompositeProblem(NamedTuple):
    """A posterior in whitened coordinates, and all the moves of a cycle on it."""

    target: LogPosterior
    workspace: PosteriorWorkspace
    transform: TransformArrays
    cycle: Cycle
    mixture: Mixture
    augmentation: AugmentationWorkspace


class ChainArrays(NamedTuple):
    """Where a chain is, written in place: x (D,), the gradient (D,) there, and Newton's beginnings.

    mode_offset: (T,) where the modes of the utilities were found last, as `draw_utilities` has it.
    """

    x: Floats
    gradient: Floats
    mode_offset: Floats


class CycleState(NamedTuple):
    """What goes with x from one move to the next.

    log_posterior: at x. log_weight: log of posterior over mixture at x. gradient_is_current,
    weight_is_current: whether gradient and log posterior, and the weight, belong to x; a move that
    needs them computes them otherwise. position: of the next move in the cycle.
    """

    log_posterior: float
    log_weight: float
    gradient_is_current: bool
    weight_is_current: bool
    position: int


class DrawArrays(NamedTuple):
    """Where draws go: values (n, K), acceptance (n,), prior_sd (n,), n_steps (n,), diverging (n,).

    acceptance is that of the last move before the draw; prior_sd is not written where it is given.
    n_steps and diverging are added to: steps of the Hamiltonian paths that lead to the draw, and
    how many of these diverged.
    """

    values: Floats
    acceptance: Floats
    prior_sd: Floats
    n_steps: Floats
    diverging: Floats


def make_draw_arrays(draws: int, width: int, tuning: bool = False) -> DrawArrays:
    """Arrays for so many draws of `width` coefficients.

    While tuning, the values go elsewhere.
    """
    kept = 0 if tuning else draws
    return DrawArrays(
        np.empty((kept, width)),
        np.empty(draws),
        np.empty(kept),
        np.zeros(draws),
        np.zeros(draws),
    )


class TuningArrays(NamedTuple):
    """What only warm-up asks of a run. Afterwards the arrays are empty, and draws are values.

    coordinates: (n, D) where draws of x go instead. adaptation: (5,) what dual averaging of the
    step size remembers (`hmc.ADAPTATION`), for paths of the length path_length that are accepted
    with probability target_acceptance. log_weights: (n,) log of posterior over mixture, up to a
    constant, where all draws of the mixture are taken: importance draws. One loop does all this,
    since the log posterior within it takes longest to compile.
    """

    coordinates: Floats
    adaptation: Floats
    path_length: float
    target_acceptance: float
    log_weights: Floats


@compiled_internal
def hamiltonian_step(
    rng: np.random.Generator,
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    step_size: float,
    min_steps: int,
    max_steps: int,
    state: HmcState,
    path: PathWorkspace,
) -> PathOutcome:
    """`hmc_step` on the posterior, as a function of its own.

    Written into `run_cycles`, it would make that too large for the compiler to see which counts of
    arrays cancel, and every move would pay for them.
    """
    return hmc_step(rng, target, workspace, LEAPFROG, step_size, min_steps, max_steps, state, path)


@inlined
def independence_step(
    rng: np.random.Generator,
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    proposal: Floats,
    proposal_density: float,
    always: bool,
    x: Floats,
    log_weight: float,
    no_gradient: Floats,
) -> tuple[bool, float, float]:
    """Whether the proposal replaced x (D,), and its log posterior and log weight.

    It is accepted with probability min(1, weight of the proposal / weight of x); or `always`, for
    importance draws. The uniform that decides comes first, so that the log posterior need not be
    finished once it is sure to be too low. no_gradient is empty.
    """
    # accept where log u <= log weight(proposal) - log weight(x), with -log u an exponential:
    # a lower bound of the log posterior at the proposal, known before that is evaluated.
    floor = -np.inf
    if not always:
        floor = proposal_density + log_weight - rng.standard_exponential()
    value = log_posterior(target, workspace, proposal, floor, no_gradient)
    accepted = value >= floor
    if accepted:
        for d in range(x.size):
            x[d] = proposal[d]
    return accepted, value, value - proposal_density


@compiled
def run_cycles(
    rng: np.random.Generator,
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    transform: TransformArrays,
    cycle: Cycle,
    mixture: Mixture,
    augmentation: AugmentationWorkspace,
    prior_scale: PriorScale | None,
    thin: int,
    chain: ChainArrays,
    cycle_state: CycleState,
    draws: DrawArrays,
    tuning: TuningArrays,
) -> CycleState:
    """Continue the chain for as many draws as `draws` has; returns the last cycle state.

    The first six after rng are the fields of a `CompositeProblem`: taking that apart would have
    every array counted in and out, which takes long to compile. A draw takes thin * moves_per_draw
    moves. prior_scale: what inferring the prior scale needs; where it is given this is None, and
    those moves are not even compiled. chain and cycle_state are all that has to be stored to
    continue later with the same draws. Where utilities are too large for sweeps, draws are NaN
    from there on.
    """
    x, gradient, mode_offset = chain
    width = x.size
    # Workspaces, allocated once for all draws.
    proposal, noise = np.empty(width), np.empty(width)
    part_log_densities = np.empty(mixture.weight.size)
    v, block_constants = np.empty(draws.values.shape[1]), np.empty(transform.constants.shape[1])
    height, no_gradient = np.empty(1), np.empty(0)
    hmc_state = HmcState(x, height, gradient)
    path = PathWorkspace(np.empty(width), np.empty(width), np.empty(width))
    # Continue where the last call ended, possibly in the middle of a cycle.
    height[0], log_weight = cycle_state.log_posterior, cycle_state.log_weight
    gradient_is_current = cycle_state.gradient_is_current
    weight_is_current = cycle_state.weight_is_current
    position = cycle_state.position
    length = cycle.hmc + cycle.augmentation + cycle.independence
    adapting, weighing = tuning.adaptation.size > 0, tuning.log_weights.size > 0
    for n in range(draws.acceptance.size):
        for _ in range(thin * cycle.moves_per_draw):
            if stop_requested():
                return cycle_state
            # Hamiltonian moves come first: they need the gradient at x.
            if position < cycle.hmc:
                if not gradient_is_current:
                    height[0] = log_posterior(target, workspace, x, -np.inf, gradient)
                step_size, least, most = cycle.step_size, cycle.min_steps, cycle.max_steps
                if adapting:
                    step_size = tuning.adaptation[ADAPTATION.step_size]
                    least = max(1, int(tuning.path_length / step_size + 0.5))
                    least = most = min(least, PATH.max_steps)
                outcome = hamiltonian_step(
                    rng, target, workspace, step_size, least, most, hmc_state, path
                )
                draws.acceptance[n] = outcome.probability
                draws.n_steps[n] += outcome.n_steps
                draws.diverging[n] += outcome.diverging
                gradient_is_current, weight_is_current = True, False
                if adapting:
                    # A hundredth of the initial step size: below it, no path gets anywhere.
                    update_step_size(
                        tuning.adaptation,
                        tuning.target_acceptance,
                        draws.acceptance[n],
                        1e-2 * tuning.adaptation[ADAPTATION.initial_step_size],
                    )
                elif prior_scale is not None:
                    # Value and prior scale together, which Hamiltonian paths change slowly.
                    value_from_coordinates(transform, x, v, block_constants)
                    add_constants(transform, v, block_constants)
                    slice_sample_scale(rng, target, workspace, v)
                    block_constants[:] = 0.0
                    coordinates_from_value(transform, v, block_constants, x)
                    gradient_is_current = False
            # Then sweeps, in the coefficients themselves: whatever went with x is lost.
            elif position < cycle.hmc + cycle.augmentation:
                value_from_coordinates(transform, x, v, block_constants)
                if not augmentation_sweep(
                    rng, augmentation, prior_scale, mode_offset, v, block_constants
                ):
                    # Nothing more can be drawn: the draws say so, and x stays as it was.
                    draws.values[n:] = np.nan
                    draws.acceptance[n:] = np.nan
                    return cycle_state
                if prior_scale is not None:
                    # Value and prior scale together, with no utilities that hold either back.
                    add_constants(transform, v, block_constants)
                    slice_sample_scale(rng, target, workspace, v)
                    block_constants[:] = 0.0
                coordinates_from_value(transform, v, block_constants, x)
                draws.acceptance[n] = 1.0
                gradient_is_current, weight_is_current = False, False
            # Then independence steps, which need the importance weight of x, but no gradient.
            else:
                if not (weight_is_current or weighing):
                    if not gradient_is_current:
                        height[0] = log_posterior(target, workspace, x, -np.inf, no_gradient)
                    density = mixture_log_density(mixture, x, part_log_densities)
                    if prior_scale is not None:
                        density = with_prior_part(
                            target, workspace, prior_scale, mixture, x, density
                        )
                    log_weight = height[0] - density
                    weight_is_current = True
                # Without a prior part nothing is handed over but what is needed: where an
                # evaluation is cheap, counting arrays in and out costs as much again.
                if prior_scale is None:
                    draw_from_mixture(rng, mixture, noise, proposal)
                else:
                    draw_proposal_with_prior_part(
                        rng, prior_scale, transform, mixture, noise, v, block_constants, proposal
                    )
                density = mixture_log_density(mixture, proposal, part_log_densities)
                if prior_scale is not None:
                    density = with_prior_part(
                        target, workspace, prior_scale, mixture, proposal, density
                    )
                accepted, new_height, new_log_weight = independence_step(
                    rng,
                    target,
                    workspace,
                    proposal,
                    density,
                    weighing,
                    x,
                    log_weight,
                    no_gradient,
                )
                if weighing:
                    tuning.log_weights[n] = new_log_weight
                draws.acceptance[n] = 0.0
                if accepted:
                    draws.acceptance[n] = 1.0
                    height[0], log_weight = new_height, new_log_weight
                    gradient_is_current = False
            position = (position + 1) % length
        if tuning.coordinates.size > 0:
            for d in range(width):
                tuning.coordinates[n, d] = x[d]
            continue
        # A draw is the value without the constants of its blocks, which are not identified; they
        # count in the law of the prior sd given the value.
        value_from_coordinates(transform, x, draws.values[n], block_constants)
        if prior_scale is not None:
            draws.prior_sd[n] = draw_prior_sd(
                rng,
                prior_scale,
                prior_quadratic_form(prior_scale, draws.values[n], block_constants, v),
            )
    return CycleState(height[0], log_weight, gradient_is_current, weight_is_current, position)


@compiled
def move_particles(
    rng: np.random.Generator,
    problem: CompositeProblem,
    prior_scale: PriorScale | None,
    mode_offset: Floats,
    x: Floats,
    values: Floats,
    acceptance: Floats,
) -> None:
    """Move each of the particles x (N, D) by moves_per_draw moves of the cycle, in place.

    Their values (N, K) and acceptance (N,) are written. mode_offset (T,): where the last utilities'
    modes were found, for the next particle to begin with.
    """
    gradient, prior_sd, none = np.empty(x.shape[1]), np.empty(1), np.empty(0)
    n_steps, diverging = np.zeros(1), np.zeros(1)
    tuning = TuningArrays(np.empty((0, 0)), none, 0.0, 0.0, none)
    # Every particle begins its own cycle: nothing is known about it but its position.
    for n in range(len(x)):
        run_cycles(
            rng,
            problem.target,
            problem.workspace,
            problem.transform,
            problem.cycle,
            problem.mixture,
            problem.augmentation,
            prior_scale,
            prior_sd.size,  # one; a literal would have the loop compiled again
            ChainArrays(x[n], gradient, mode_offset),
            CycleState(0.0, 0.0, False, False, 0),
            DrawArrays(values[n : n + 1], acceptance[n : n + 1], prior_sd, n_steps, diverging),
            tuning,
        )
