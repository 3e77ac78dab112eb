"""Hierarchical groups with one noise covariance: data augmentation, every step a conditional.

    w_t = X_t v_i + noise,  noise ~ N(0, S)        utilities less the base's, decision t of group i
    v_i = basis q_i,  q_i ~ N(mean, covariance)    as in the hierarchical sampler

S has a fixed scale, and values, mean and covariance are on it. An iteration draws the utilities,
the population's mean and the values, the population's covariance, its root given standardised
values, and S with the scale of everything; where the sd of the mean's prior is inferred, that too.
There is nothing to adapt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.hierarchical_gibbs import HierarchicalState, HierarchicalUtilities, iterate
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.population import PopulationPrior
from revealed.models.correlated_noise import ResolvedNoise
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.covariance_gibbs import (
    difference_decisions,
    independent_covariance,
    initial_utilities,
    noise_prior,
)
from revealed.samplers.inferred_scale import interweave_scale
from revealed.samplers.per_draw import multiply_draws
from revealed.samplers.population_prior import population_prior, prior_at_sd


@dataclass(frozen=True)
class GibbsSettings:
    """Settings of the chains; wrong ones cost time, never correctness.

    initial_spread: how far values begin from the prior mean, in sds of the noise; chains should
    begin apart. cycles: of an iteration. Draws of neighbouring cycles hardly differ: with a
    thousand decisions among four actions, those of the noise covariance are correlated over about
    a hundred. Fewer cycles keep more draws of the same worth.
    """

    initial_spread: float = 0.3
    cycles: int = 10


GIBBS = GibbsSettings()


@dataclass(frozen=True, eq=False)
class HierarchicalGibbsSampler:
    """The sampler, ready for one set of groups.

    prior: of the population, at an sd of one where that of its mean is inferred. mean_prior: of
    the mean alone. n_groups: N.
    """

    utilities: HierarchicalUtilities
    prior: PopulationPrior
    mean_prior: ResolvedPrior
    noise: ResolvedNoise
    n_groups: int

    @staticmethod
    def build(
        decisions: Decisions,
        group: Ints,
        prior: ResolvedPrior,
        scale: float,
        noise: ResolvedNoise,
    ) -> HierarchicalGibbsSampler:
        """The sampler for all decisions.

        group (T,) says whose each is, counted from zero. prior: of the mean. scale: that of the
        prior of the sds.
        """
        differenced = difference_decisions(decisions, noise)
        # values move in the free coordinates
        free = differenced._replace(design=np.ascontiguousarray(differenced.design @ prior.basis))
        return HierarchicalGibbsSampler(
            HierarchicalUtilities(free, group, noise_prior(noise)),
            population_prior(prior, scale),
            prior,
            noise,
            int(group.max()) + 1,
        )

    @property
    def name(self) -> str:
        """What users call it."""
        return "hierarchical-gibbs"

    @property
    def basis(self) -> Floats:
        """(K, F) from free coordinates to coefficients."""
        return self.mean_prior.basis

    @property
    def width(self) -> int:
        """How many free coordinates a value has, F."""
        return len(self.prior.scale_group)

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """All values near the prior mean, in a population about as wide as the noise."""
        q = (
            GIBBS.initial_spread * rng.standard_normal((self.n_groups, self.width))
            + self.prior.mean
        )
        scale = self.mean_prior.scale
        return {
            "q": q,
            "mean": q.mean(axis=0),
            "covariance": np.eye(self.width),
            "w": initial_utilities(rng, self.utilities.decisions),
            "noise_covariance": independent_covariance(self.noise),
            "prior_sd": np.array([1.0 if scale is None else scale]),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Iterate; there is nothing to adapt."""
        made = min(remaining, chunk)
        return self.sample(rng, state, 1, made)[0], made

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        new = {name: value.copy() for name, value in state.items()}
        chain = HierarchicalState(*(new[name] for name in HierarchicalState._fields))
        width, size = self.width, len(self.noise.non_base)
        mean, covariance = np.empty((draws, width)), np.empty((draws, width, width))
        values = np.empty((draws, self.n_groups, len(self.basis)))
        noise_covariance, prior_sd = np.empty((draws, size, size)), np.empty(draws)
        acceptance_rate = np.zeros(draws)
        for n in range(draws):
            for _ in range(thin):
                acceptance_rate[n] += self._iterate(rng, chain, new["prior_sd"]) / thin
            mean[n], covariance[n] = chain.mean, chain.covariance
            noise_covariance[n], prior_sd[n] = chain.noise_covariance, new["prior_sd"][0]
            # a product for each draw: its last bit must not depend on how many are made together
            values[n] = chain.q @ self.basis.T
        drawn = {
            "population_mean": multiply_draws(mean, self.basis),
            # stacks of matrices: each draw's product is its own already
            "population_covariance": self.basis @ covariance @ self.basis.T,
            "value": values,
            "noise_covariance": noise_covariance,
        }
        if self.mean_prior.scale is not None:
            drawn["prior_sd"] = prior_sd
        return new, drawn, {"acceptance_rate": acceptance_rate}

    def _iterate(self, rng: np.random.Generator, chain: HierarchicalState, sd: Floats) -> float:
        """One iteration; returns how often the noise covariance was accepted.

        sd (1,): of the prior of the mean. All arrays change in place.
        """
        accepted = 0
        for _ in range(GIBBS.cycles):
            raise_if_stopping()
            accepted += iterate(rng, self.utilities, prior_at_sd(self.prior, float(sd[0])), chain)
            if self.mean_prior.scale is not None:
                chain.mean[:], sd[0] = interweave_scale(
                    rng, self.mean_prior, chain.mean, chain.q, chain.covariance
                )
        return accepted / GIBBS.cycles
