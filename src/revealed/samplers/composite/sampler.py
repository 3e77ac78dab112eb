"""The default sampler: a cycle of several moves on the same posterior, tuned in a warm-up.

    hmc           Hamiltonian moves on the likelihood itself, without utilities: for many
                  coefficients, sharply known
    augmentation  sweeps of data augmentation with every expansion, interwoven with moves of the
                  value given the noise: for loosely known coefficients
    independence  independence steps from a mixture fitted to the posterior: for up to a dozen
                  coefficients

All three are exact for the same posterior, so any fixed cycle of them is (Tierney 1994). Warm-up
(`warmup.py`) finds coordinates in which the posterior is about as wide in every direction, adapts
step size and mixture, and counts what an effective draw costs by each; then it fixes the cycle, and
nothing is adapted any more. A mixture that fits badly is recognised by its largest importance
weights (Pareto k) and not used; one that is used is never the only move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.unique import UniqueDecisions, deduplicate
from revealed.kernels.augmentation_sweep import AugmentationWorkspace
from revealed.kernels.composite import (
    ChainArrays,
    CompositeProblem,
    Cycle,
    CycleState,
    TuningArrays,
    make_draw_arrays,
    run_cycles,
)
from revealed.kernels.coordinates import TransformArrays
from revealed.kernels.independence import Mixture
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.interweaving import InterweavingDirections, InterweavingWorkspace
from revealed.kernels.log_posterior import (
    LogPosterior,
    PosteriorWorkspace,
    make_posterior_workspace,
)
from revealed.kernels.noise import NORMAL, AnyNoise, count_coordinates
from revealed.kernels.prior_scale import PriorScale
from revealed.models.habit import bind_habits, for_kinds, kinds_of_offers
from revealed.models.likelihood import at_likely_scale, posterior_mode
from revealed.models.noise_coordinates import at_coordinate
from revealed.models.priors import ResolvedPrior
from revealed.models.propriety import refuse_flat_prior
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.composite.cycle import AUGMENTATION_ONLY, hmc_only_cycle
from revealed.samplers.composite.proposal import null_mixture
from revealed.samplers.composite.state import (
    pack,
    tuning_state,
    unpack,
    unpack_mixture,
    unpack_transform,
)
from revealed.samplers.composite.transform import (
    WhiteningTransform,
    log_posterior_in_coordinates,
)
from revealed.samplers.composite.warmup import run_warmup
from revealed.samplers.data_augmentation import (
    AugmentationOptions,
    DataAugmentationSampler,
    most_expanded,
)


@dataclass(frozen=True)
class CompositeSettings:
    """Which moves are considered at all."""

    # Coordinates up to which a mixture is fitted; beyond a dozen it is hardly ever accepted.
    max_dim_for_mixture: int = 12
    # Random directions of interweaving in a sweep, beside the D fixed ones.
    random_directions: int = 4
    # Numbers that interweaving may hold for its directions, 240 MB; where it would hold more,
    # there are no sweeps.
    max_interweaving_cells: int = 30_000_000


SETTINGS = CompositeSettings()


@dataclass(frozen=True, eq=False)
class CompositeSampler:
    """The composite sampler, ready to run on one set of decisions under one prior.

    likely_prior: the prior, at a likely scale where that is inferred. unique: the decisions with
    equal ones counted. mode (K,) and information (D, D): of the posterior. augmentation_sampler:
    the data augmentation of its sweeps. unit_weights: whether every decision counts once.
    noise: of the utilities.
    """

    decisions: Decisions
    resolved_prior: ResolvedPrior
    likely_prior: ResolvedPrior
    unique: UniqueDecisions
    mode: Floats
    information: Floats
    augmentation_sampler: DataAugmentationSampler
    unit_weights: bool
    noise: AnyNoise = NORMAL

    @property
    def name(self) -> str:
        """The name by which users ask for it."""
        return "composite"

    @staticmethod
    def build(
        decisions: Decisions,
        resolved_prior: ResolvedPrior,
        weight: Floats | None = None,
        noise: AnyNoise = NORMAL,
    ) -> CompositeSampler:
        """Count equal decisions, and find the posterior mode.

        weight: (T,) how much each decision counts, default: once. With weights other than one there
        are no sweeps, as utilities belong to whole decisions.
        """
        refuse_flat_prior(resolved_prior, noise)
        # with habits equal decisions must have offered the same labels too
        bound = bind_habits(noise, decisions)
        unique = deduplicate(decisions, weight, kinds_of_offers(bound))
        noise = for_kinds(bound, unique.group)
        # Mode and curvature want a prior with a given scale.
        counted = unique.unique, unique.rival_index.weight
        likely_prior = at_likely_scale(counted[0], resolved_prior, counted[1], noise)
        mode, information = posterior_mode(counted[0], likely_prior, counted[1], noise)
        augmentation_sampler = DataAugmentationSampler.build(
            most_expanded(decisions, resolved_prior),
            decisions,
            resolved_prior,
            AugmentationOptions(),
        )
        return CompositeSampler(
            decisions,
            resolved_prior,
            likely_prior,
            unique,
            mode,
            information,
            augmentation_sampler,
            weight is None,
            noise,
        )

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The state at `position`, or at a draw from twice the normal approximation at the mode.

        With lapses there may be several modes, and chains start apart (`_likely_at_any_rate`).
        Until it is warmed up, it makes sweeps, or Hamiltonian moves with a small step size.
        """
        # The coordinates of the normal approximation at the mode (Laplace).
        transform = WhiteningTransform.from_precision(
            self.resolved_prior, self.mode, self.information
        )
        width = len(self.information)
        if position is None and count_coordinates(self.noise):
            position = self._likely_at_any_rate(rng)
        x = (
            np.sqrt(2.0) * rng.standard_normal(width)
            if position is None
            else transform.coordinates(position)
        )
        state = {
            "x": x,
            "gradient": np.zeros(width),
            "mode_offset": np.zeros(len(self.decisions)),
            "warmup_step": np.zeros(1),
            "warmup_window": np.zeros(1),
        }
        untuned = AUGMENTATION_ONLY if self.can_augment else hmc_only_cycle(0.1)
        return state | tuning_state(transform, transform.unwhiten, null_mixture(width), untuned)

    def _likely_at_any_rate(self, rng: np.random.Generator) -> Floats:
        """(K,) the most likely value with lapses that are drawn from their prior."""
        # a rate that the prior allows, habits too, and the value that suits them best
        z = rng.standard_normal(count_coordinates(self.noise))
        known = at_coordinate(self.noise, z)
        counted = self.unique.unique, self.likely_prior, self.unique.rival_index.weight
        v, _ = posterior_mode(*counted, known)
        v[len(v) - len(z) :] = z
        return v

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt coordinates, step size, proposal and cycle; returns state and iterations made.

        Whole steps of `warmup.py` are run until about `chunk` of the `remaining` iterations are
        made.
        """
        return run_warmup(self, rng, state, remaining, chunk)

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """The state after draws * thin draws of the cycle, (draws, K) draws and their stats.

        A draw is `moves_per_draw` moves. Nothing is adapted: every move leaves the posterior as
        it is.
        """
        # The kernel writes to these; a state that was handed in stays as it is.
        new = state | {name: state[name].copy() for name in ("x", "gradient", "mode_offset")}
        # Unpack the tuning, which stays as it is.
        transform, cycle = unpack_transform(state), unpack(Cycle, state["cycle"])
        problem = self.problem(
            transform, state["interweaving_directions"], unpack_mixture(state, "mixture"), cycle
        )
        made = make_draw_arrays(draws, len(transform.centre))
        cycle_state = run_cycles(
            rng,
            *problem,
            self.prior_scale(len(new["x"])),
            thin,
            ChainArrays(new["x"], new["gradient"], new["mode_offset"]),
            unpack(CycleState, state["cycle_state"]),
            made,
            TuningArrays(np.empty((0, 0)), np.empty(0), 0.0, 0.0, np.empty(0)),
        )
        raise_if_stopping()
        new["cycle_state"] = pack(cycle_state)
        # The log posterior is not among them: after a sweep of augmentation nobody knows it.
        stats = {
            "acceptance_rate": made.acceptance,
            "diverging": np.minimum(made.diverging, 1.0),
            "n_steps": made.n_steps,
            "step_size": np.full(draws, cycle.step_size),
        }
        drawn = {"value": made.values}
        if self.resolved_prior.scale is not None:
            drawn["prior_sd"] = made.prior_sd
        return new, drawn, stats

    @property
    def mixture_feasible(self) -> bool:
        """Whether there are few enough coordinates for a mixture of normals to fit well."""
        return len(self.information) <= SETTINGS.max_dim_for_mixture

    @property
    def can_augment(self) -> bool:
        """Whether sweeps of data augmentation are possible.

        The noise must be normal, every decision must count once, and the (P, D) slopes of
        interweaving must not be too large.
        """
        cells = self.decisions.rows.shape[0] * len(self.information)
        possible = self.noise.is_normal and self.unit_weights
        return possible and bool(cells <= SETTINGS.max_interweaving_cells)

    def posterior(self, transform: WhiteningTransform) -> tuple[LogPosterior, PosteriorWorkspace]:
        """The log posterior in these coordinates, and a workspace for evaluating it."""
        target = log_posterior_in_coordinates(
            self.unique, self.resolved_prior, self.likely_prior, transform, self.noise
        )
        return target, make_posterior_workspace(target)

    def problem(
        self,
        transform: WhiteningTransform,
        directions: Floats,
        mixture: Mixture,
        cycle: Cycle,
    ) -> CompositeProblem:
        """The posterior in these coordinates, and all the moves of a cycle on it.

        directions: (K, D) of interweaving, not looked at where the cycle has no sweeps.
        """
        target, workspace = self.posterior(transform)
        return CompositeProblem(
            target,
            workspace,
            transform_arrays(transform, self.resolved_prior),
            cycle,
            mixture,
            augmentation_workspace(self.augmentation_sampler, directions, cycle.augmentation > 0),
        )

    def tuning_problem(self, transform: WhiteningTransform) -> CompositeProblem:
        """The posterior in these coordinates, for whoever puts a cycle or a mixture into it."""
        width = transform.unwhiten.shape[1]
        return self.problem(transform, transform.unwhiten, null_mixture(width), hmc_only_cycle(0.1))

    def whitening_from_draws(self, rng: np.random.Generator, values: Floats) -> WhiteningTransform:
        """Coordinates in which the curvature of the log posterior, averaged over draws of v, is I.

        Skewed ones leave the constants of sum-to-zero blocks free. With few coefficients that
        dimension costs independence steps more than skewing gains them. A prior that ties
        neighbours together, such as a smooth curve's, forbids skewing each by itself.
        """
        # More points average the curvature better; each costs a pass over the decisions.
        points = 4 + min(values.shape[1], 28)
        prior = self.likely_prior
        has_constants = self.resolved_prior.constant_directions.size
        if (self.mixture_feasible and has_constants) or prior.strongly_correlated:
            return WhiteningTransform.from_curvature(self.unique, prior, values, points, self.noise)
        free = prior.with_random_constants(rng, values)
        return WhiteningTransform.from_draws_skewed(self.unique, prior, free, points, self.noise)

    def interweaving_directions(self, transform: WhiteningTransform) -> Floats:
        """(K, D) directions in which v moves when the coordinates do, without blocks' constants."""
        directions = transform.scale[:, None] * transform.unwhiten
        constants = self.resolved_prior.constant_directions
        return directions - constants @ (constants.T @ directions)

    def prior_scale(self, width: int) -> PriorScale | None:
        """What inferring the prior scale needs in `width` coordinates, or None where it is given.

        In skewed coordinates the constants of sum-to-zero blocks are among them.
        """
        prior_scale = self.augmentation_sampler.prior_scale
        if prior_scale is None:
            return None
        # the scale is that of the value, not of what is unknown of the noise
        unscaled = self.resolved_prior.unscaled
        return prior_scale._replace(dimension=width - unscaled, unscaled=unscaled)


def transform_arrays(transform: WhiteningTransform, prior: ResolvedPrior) -> TransformArrays:
    """The coordinates as the kernels take them, with the constants of the prior's blocks."""
    return TransformArrays(
        transform.centre,
        transform.scale,
        transform.skew,
        transform.unwhiten,
        transform.whiten,
        prior.constant_directions,
    )


def augmentation_workspace(
    sampler: DataAugmentationSampler, directions: Floats, used: bool
) -> AugmentationWorkspace:
    """What sweeps need, with interweaving in these directions (K, D).

    Where the cycle has no sweeps, `used` is False and the arrays of D directions are left out.
    """
    d, prior = sampler.decisions, sampler.resolved_prior
    # Where there are no sweeps, one direction stands for all: the kernel is compiled for the
    # same types, and nothing large is held.
    if not used:
        directions = directions[:, :1]
    width, count, rows = directions.shape[0], directions.shape[1], d.rows.shape[0]
    precision_times_columns = prior.basis @ (prior.precision @ (prior.basis.T @ directions))
    interweaving = InterweavingDirections(
        columns=np.ascontiguousarray(directions.T),
        precision_times_columns=np.ascontiguousarray(precision_times_columns.T),
        prior_mean=prior.mean,
        margin_slopes=margin_slopes(directions, d) if used else np.zeros((1, 0)),
        n_random=SETTINGS.random_directions,
    )
    return AugmentationWorkspace(
        design=sampler.design,
        start=d.start,
        chosen_row=d.chosen_row,
        move=sampler.move,
        interweaving=interweaving,
        expansion_workspace=sampler.expansion_workspace(),
        interweaving_workspace=InterweavingWorkspace(
            weights=np.empty(count),
            direction=np.empty(width),
            precision_times_direction=np.empty(width),
            margin_slope=np.empty(rows),
            utility_gap=np.empty(rows),
        ),
        mu=np.empty(rows),
        w=np.empty(rows),
        rivals=sampler.rivals_workspace(),
        offset=np.empty(width),
    )


def margin_slopes(directions: Floats, decisions: Decisions) -> Floats:
    """(D, P) by how much the chosen row gains on each row when v moves in each direction (K, D).

    Entry (r, j) is (row_chosen - row_j) @ directions[:, r]; zero for the chosen row itself.
    """
    moved = decisions.rows @ directions
    return np.ascontiguousarray(
        (np.repeat(moved[decisions.chosen_row], decisions.sizes, axis=0) - moved).T
    )
