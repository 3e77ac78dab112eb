"""Laplace importance sampling: the mode, a cubic surrogate, and checks that certify the answer.

Newton's method finds the mode of the posterior, one pass over the decisions a step. In coordinates
in which the posterior is then about standard normal, the log-likelihood is a quadratic but for a
smooth trifle. A pass finds it and its slope at a few dozen points, a cubic polynomial is fitted to
them (`cubic.py`), and another pass finds its error at points it has not seen, some of them far out.
An error of sd s moves the mean of any function by at most about s of its sds, by Cauchy and
Schwarz:

    |E f - E_surrogate f| <= s sd(f)

so that with a small s any number of draws of the surrogate are as good as draws of the posterior.
With a larger one, and of decisions so few that fitting a surrogate takes longer, there are
proposals that are as skewed as the posterior (`skewed_proposals.py`), or where third derivatives
say nothing those of a Student distribution at the mode: one further pass finds the log posterior at
all of them, and the importance weights

    log w = log p(choices | v) + log p(v) - log q(v)

say how good they are. With a small Pareto k (Vehtari, Simpson, Gelman, Yao and Gabry 2024) the
answer is certified. Otherwise there are more proposals, or no answer at all.

Everything done so far is in a state that is replaced after every chunk of a pass: it can be written
down and picked up again at any moment. Each round of proposals has a random generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import chi2

from revealed._types import Floats
from revealed.data.chunks import ChunkedDecisions
from revealed.io.checkpoints import RunSnapshot
from revealed.kernels.noise import NORMAL, AnyNoise
from revealed.models.priors import ResolvedPrior
from revealed.results.psis import pareto_k
from revealed.samplers.chunk_likelihood import (
    derivatives,
    log_likelihoods,
    values_and_gradients,
)
from revealed.samplers.cubic import CubicPolynomial, even_residual_sd
from revealed.samplers.executors import Executor
from revealed.samplers.laplace_mode import NotCertified, initial_state, newton_step
from revealed.samplers.laplace_proposals import (
    Coordinates,
    Surrogate,
    SurrogateDraws,
    draw_skewed,
    draw_student,
    draw_wide,
    independence_chains,
    log_mean_exp,
    log_prior_constant,
    weighted_sd,
)
from revealed.samplers.laplace_settings import LAPLACE, PURPOSE
from revealed.samplers.laplace_state import LaplaceState, Phase
from revealed.samplers.particles import draw_prior_sds, effective_size
from revealed.samplers.skewed_proposals import (
    SkewedLaw,
    cubic_sd,
    difference_design,
    third_derivatives,
)


@dataclass
class Laplace:
    """The sampler at work on some chunks of decisions under one prior.

    Attributes
    ----------
    chunks, executor
        The decisions, and who evaluates functions of their chunks.
    resolved_prior
        The prior in the coordinates of the decisions.
    chains, draws_per_chain
        How many draws are wanted.
    seed
        Of all random numbers.
    state
        None before the first step.
    noise
        Of the utilities.
    """

    chunks: ChunkedDecisions
    executor: Executor
    resolved_prior: ResolvedPrior
    chains: int
    draws_per_chain: int
    seed: int
    state: LaplaceState | None = None
    noise: AnyNoise = NORMAL
    _fitted: tuple[Floats, Surrogate] | None = None
    _drawn: SurrogateDraws | None = None

    @property
    def wanted(self) -> int:
        """Draws of all chains together."""
        return self.chains * self.draws_per_chain

    @property
    def total(self) -> float:
        """All of the work is one."""
        return 1.0

    @property
    def done(self) -> float:
        """About the share of the work that is done, as if four passes found the mode."""
        if self.state is None:
            return 0.0
        size, newton = self._design_size, 4.0 * LAPLACE.newton_cost
        # the unit of work is one proposal in one pass; with a surrogate few are weighed
        remaining = LAPLACE.proposals_per_draw * self.wanted if size is None else 2.0 * size
        of_pass = float(self.state.chunks_done) / len(self.chunks)
        if self.state.phase is Phase.NEWTON:
            passes = min(self.state.passes + of_pass, 4.0)
            return float(passes * LAPLACE.newton_cost / (newton + remaining))
        return float((newton + of_pass * remaining) / (newton + remaining))

    def snapshot(self) -> RunSnapshot:
        """Everything needed to go on; nothing before the first step.

        The state is replaced after every chunk, so that it is complete at any moment.
        """
        return RunSnapshot({}, {}) if self.state is None else self.state.snapshot()

    def restore(self, snapshot: RunSnapshot) -> None:
        """Continue where `snapshot` was taken."""
        self.state = LaplaceState.restore(snapshot) if snapshot.arrays else None

    def iterate(self) -> Iterator[float]:
        """Work, chunk by chunk, to the end; yields the share done. Raises NotCertified."""
        if self.state is None:
            self.state = initial_state(self.chunks, self.resolved_prior, self.noise)
        # first the mode, one pass a step
        while self.state.phase is Phase.NEWTON:
            yield from self._pass(derivatives, self.state.v)
            self.state, found = newton_step(self.resolved_prior, self.state)
            if found:
                self.state = self._begin_draws(self.state)
        # then the surrogate, fitted in one pass and judged in another
        if self.state.phase is Phase.DESIGN:
            yield from self._pass(values_and_gradients, self.state.new)
            self.state = self._fit_surrogate(self.state)
        if self.state.phase is Phase.VALIDATION:
            yield from self._pass(log_likelihoods, self.state.new)
            self.state = self._check_surrogate(self.state)
        # or proposals that are weighed, one pass a round
        while self.state.phase is Phase.WEIGHTS:
            yield from self._pass(log_likelihoods, self.state.new)
            self.state = self._check_weights(self.state)

    def _generator(self, purpose: int) -> np.random.Generator:
        """The random generator of a `PURPOSE`, or of a round of proposals.

        A resumed run makes the same numbers without having to remember a generator's state.
        """
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(purpose,)))
        )

    def _pass(self, function: Any, v: Floats) -> Iterator[float]:
        """Add up a function of every chunk, from the first that has not been added.

        The state holds the sum so far, so that a resumed pass goes on where it was.
        """
        assert self.state is not None
        under_noise = partial(function, noise=self.noise)
        # added one by one in the order of the chunks, so that sums are the same to the last bit
        for result in self.executor.map(under_noise, v, first=self.state.chunks_done):
            state = self.state
            self.state = replace(
                state, total=state.total + result, chunks_done=state.chunks_done + 1
            )
            yield self.done

    # The surrogate

    @property
    def _design_size(self) -> int | None:
        """Points that the surrogate is fitted to; None for no surrogate."""
        width = len(self.resolved_prior.precision)
        return LAPLACE.design_size(width, self.wanted, self.chunks.count)

    def _begin_draws(self, state: LaplaceState) -> LaplaceState:
        """The state with a mode found: a pass ahead for the surrogate, or one for proposals."""
        coordinates, size, width = self._coordinates(state), self._design_size, len(state.centre)
        if size is None and not LAPLACE.measures_third(width, self.wanted):
            return self._propose(state, round(LAPLACE.proposals_per_draw * self.wanted))
        # pairs x and -x tell even terms from odd ones; the first point is where the exact slope is
        # known, and the second the mode
        if size is None:
            half = difference_design(width)
        else:
            rng = self._generator(PURPOSE.design)
            half = LAPLACE.design_spread * rng.standard_normal((size // 2, width))
        known = coordinates.positions(state.v[None])
        design = np.concatenate([known, np.zeros_like(known), half, -half])
        return replace(
            state,
            phase=Phase.DESIGN,
            design=design,
            new=coordinates.values(design),
            total=np.zeros((len(design), len(state.v) + 1)),
        )

    def _coordinates(self, state: LaplaceState) -> Coordinates:
        return Coordinates(self.resolved_prior, state.centre, state.root)

    def _surrogate(self, state: LaplaceState) -> Surrogate:
        """The surrogate of the evaluations at the design; fitted once."""
        coordinates, results = self._coordinates(state), state.design_results
        if self._fitted is not None and self._fitted[0] is results:
            return self._fitted[1]
        radius = float(np.sqrt(chi2.isf(LAPLACE.radius_tail, len(state.centre))))
        gradients = coordinates.gradients(results[:, 1:])
        # relative to the mode's: of very many decisions the log-likelihood itself has few digits
        values = results[:, 0] - results[1, 0]
        cubic = CubicPolynomial.fit(state.design, values, gradients, radius)
        cubic = replace(cubic, constant=cubic.constant + results[1, 0])
        slope_error = self._slope_error(state)
        self._fitted = results, Surrogate(coordinates, cubic, slope_error)
        return self._fitted[1]

    def _slope_error(self, state: LaplaceState) -> Floats:
        """What the fast likelihood gets wrong in its slope, where the exact one is known."""
        wrong = state.slope - state.design_results[0, 1:]
        return np.asarray(self._coordinates(state).gradients(wrong[None])[0])

    def _fit_surrogate(self, state: LaplaceState) -> LaplaceState:
        """The state with a surrogate, and a pass ahead that finds its error elsewhere.

        Or with skewed proposals, where no surrogate is wanted.
        """
        log_posterior = state.total[:, 0] + self.resolved_prior.log_density(state.new)
        state = replace(state, design_results=state.total, chunks_done=0, passes=state.passes + 1)
        if self._design_size is None:
            gradients = self._coordinates(state).gradients(state.design_results[:, 1:])
            third = third_derivatives(gradients[2:], gradients[1])
            if cubic_sd(third) <= LAPLACE.max_cubic_sd:
                state = replace(state, third=third)
            return self._propose(state, round(LAPLACE.proposals_per_draw * self.wanted))
        # fitting takes longer than weighing proposals where it is in vain
        pairs = log_posterior[2:] - log_posterior[1]
        if even_residual_sd(state.design[2:], pairs) > LAPLACE.max_even_residual_sd:
            return self._propose(state, round(LAPLACE.proposals_per_draw * self.wanted))
        rng, count = self._generator(PURPOSE.validation), LAPLACE.validation_size(self.chunks.count)
        points = draw_wide(rng, self._surrogate(state), count)
        return replace(
            state,
            phase=Phase.VALIDATION,
            new=self._coordinates(state).values(points.x),
            residual_weights=points.weights,
            total=np.zeros(count),
        )

    def _check_surrogate(self, state: LaplaceState) -> LaplaceState:
        """Judge the surrogate by its errors at points that it was not fitted to."""
        surrogate, weights = self._surrogate(state), state.residual_weights
        x = surrogate.coordinates.positions(state.new)
        residuals = state.total - surrogate.cubic(x)
        state = replace(state, residuals=residuals, chunks_done=0, passes=state.passes + 1)
        error = weighted_sd(residuals, weights)
        if error <= LAPLACE.max_residual_sd:
            # as good as the posterior, if it can be drawn from
            if self._draws_of_surrogate(state).pareto_k < LAPLACE.max_pareto_k:
                return replace(state, phase=Phase.DONE)
        elif error <= LAPLACE.max_correctable_sd:
            state = replace(state, third=surrogate.cubic.third_derivatives())
        return self._propose(state, round(LAPLACE.proposals_per_draw * self.wanted))

    def _draws_of_surrogate(self, state: LaplaceState) -> SurrogateDraws:
        """As many draws of the surrogate as are wanted; made once."""
        if self._drawn is None:
            rng = self._generator(PURPOSE.surrogate)
            self._drawn = self._surrogate(state).draw(rng, self.wanted, LAPLACE.oversampling)
        return self._drawn

    # Importance weights

    def _propose(self, state: LaplaceState, count: int, keep: bool = False) -> LaplaceState:
        """The state with new proposals, and a pass ahead that weighs them.

        keep: whether proposals that are weighed already, and came from the same distribution, stay
        beside them.
        """
        rng, coordinates = self._generator(1 + state.rounds), self._coordinates(state)
        if state.third.size:
            proposals = draw_skewed(rng, coordinates, SkewedLaw.of(state.third), count)
        else:
            df = LAPLACE.student_df(len(state.centre))
            proposals = draw_student(rng, coordinates, df, count)
        if not keep:
            state = replace(state, proposals=np.zeros((0, state.v.size)), log_weights=np.zeros(0))
        return replace(
            state,
            phase=Phase.WEIGHTS,
            new=coordinates.values(proposals.x),
            log_density=proposals.log_density,
            total=np.zeros(count),
        )

    def _check_weights(self, state: LaplaceState) -> LaplaceState:
        """Weigh the proposals, and decide what follows.

        They are enough and certified; or there must be more of them, or others from a better
        distribution; or the answer is refused.
        """
        log_weights = state.total + self.resolved_prior.log_density(state.new) - state.log_density
        if state.design_results.size:
            log_weights += self._coordinates(state).positions(state.new) @ self._slope_error(state)
        # those weighed earlier stay, and all are judged together
        new = replace(
            state,
            chunks_done=0,
            passes=state.passes + 1,
            rounds=state.rounds + 1,
            proposals=np.concatenate([state.proposals, state.new]),
            log_weights=np.concatenate([state.log_weights, log_weights]),
        )
        # a small Pareto k says that the weights have a variance, and the estimate of ESS holds
        k, ess = pareto_k(new.log_weights), effective_size(new.log_weights)
        made, good = len(new.log_weights), k < LAPLACE.max_pareto_k
        if good and ess >= LAPLACE.min_ess_share * self.wanted:
            return replace(new, phase=Phase.DONE)
        # ten effective draws a coefficient are too few to estimate a covariance from
        too_few = not good and ess < 10 * state.new.shape[1]
        if new.rounds == LAPLACE.max_rounds or too_few:
            raise NotCertified(
                f"the posterior is not close enough to normal: Pareto k {k:.2f} (should be below "
                f"{LAPLACE.max_pareto_k}), {ess:.0f} effective draws of {self.wanted} wanted"
            )
        if good:
            # more of the same: enough for the effective draws wanted, up to five times as many
            more = min(1.1 * made * self.wanted / ess, 5.0 * made) - made
            return self._propose(new, max(round(more), 100), keep=True)
        # others, from the weighted mean and covariance
        weights = np.exp(new.log_weights - new.log_weights.max())
        q = (new.proposals - self.resolved_prior.mean) @ self.resolved_prior.basis
        centre = weights @ q / weights.sum()
        covariance = (weights[:, None] * (q - centre)).T @ (q - centre) / weights.sum()
        elsewhere = replace(
            new,
            centre=centre,
            root=np.linalg.cholesky(covariance),
            third=np.zeros(0),
            design_results=np.zeros(0),
        )
        return self._propose(elsewhere, 2 * round(LAPLACE.proposals_per_draw * self.wanted))

    # What comes out

    def draws(self) -> tuple[Floats, dict[str, Floats], dict[str, Any]]:
        """(wanted, K) draws, one chain after the other; their stats; diagnostics of them all."""
        assert self.state is not None
        state, rng = self.state, self._generator(PURPOSE.draws)
        if state.log_weights.size:
            picked = independence_chains(rng, state.log_weights, self.chains, self.draws_per_chain)
            values, (evidence, error) = state.proposals[picked], log_mean_exp(state.log_weights)
            k, effective = pareto_k(state.log_weights), effective_size(state.log_weights)
            evaluations = len(state.log_weights)
        else:
            drawn = self._draws_of_surrogate(state)
            values = self._coordinates(state).values(drawn.proposals.x)
            # the surrogate's integral, and what its residuals say is missing from it
            missing, error = log_mean_exp(state.residuals, state.residual_weights)
            evidence, error = drawn.log_normaliser + missing, float(np.hypot(drawn.error, error))
            k, effective = drawn.pareto_k, self.wanted / (1.0 + self.wanted * drawn.error**2)
            evaluations = 0
        stats: dict[str, Floats] = {}
        diagnostics: dict[str, Any] = {
            "pareto_k": k,
            "effective": effective,
            "evaluations": evaluations + len(state.design) + len(state.residuals),
            "passes": state.passes,
            "decisions": self.chunks.count,
        }
        if state.residuals.size:
            diagnostics["surrogate_error"] = weighted_sd(state.residuals, state.residual_weights)
        # given the value, the prior's sd has a known law, and needs no proposals
        if self.resolved_prior.scale is not None:
            stats["prior_sd"] = draw_prior_sds(rng, self.resolved_prior, values)
        elif not self.resolved_prior.flat:
            evidence += log_prior_constant(self.resolved_prior)
            stats["log_evidence"] = np.full(self.wanted, evidence)
            diagnostics["log_evidence_error"] = error
        return values, stats, diagnostics
