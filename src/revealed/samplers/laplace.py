"""Laplace importance sampling for very many decisions, with a diagnostic that certifies the answer.

Newton's method finds the mode of the posterior, one pass over the decisions a step. Proposals come
from a multivariate Student distribution at the mode with the mode's curvature, and one further pass
finds the log posterior at all of them. The importance weights

    log w = log p(choices | v) + log p(v) - log q(v)

say how good the approximation is. With a small Pareto k (Vehtari, Simpson, Gelman, Yao and Gabry
2024) the weighted proposals are as good as draws of the posterior, and the answer is certified.
Otherwise there are more proposals, from the mean and covariance that the weights suggest, or no
answer at all.

Everything done so far is in a state that is replaced after every chunk of a pass: it can be written
down and picked up again at any moment. Each round of proposals has a random generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy.special import gammaln

from revealed._types import Floats
from revealed.data.chunks import ChunkedDecisions
from revealed.io.checkpoints import RunSnapshot
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.models.likelihood import at_likely_scale, posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.models.propriety import refuse_flat_prior
from revealed.results.psis import pareto_k
from revealed.samplers.chunk_likelihood import derivatives, log_likelihoods, prepare
from revealed.samplers.executors import Executor
from revealed.samplers.laplace_state import LaplaceState, Phase
from revealed.samplers.particles import draw_prior_sds, effective_size, systematic_resample


@dataclass(frozen=True)
class LaplaceSettings:
    """Tuning of the sampler; the values were found by trial on features and finite MDPs.

    Attributes
    ----------
    initial_decisions
        Decisions whose mode is where Newton's method begins; fewer cost it further passes.
    initial_precision
        Precision that stands in for a flat prior while looking for that beginning.
    max_newton_steps
        Three or four are usual; more mean that there is no mode to be found.
    newton_tolerance
        Gain in log posterior that a step promises, below which it is the last. Importance weights
        make up for what is left, so it need not be small.
    min_student_df
        Degrees of freedom of the proposals, or twice the number of coordinates where that is more:
        with fewer, the radius of proposals in many dimensions is far from the normal's.
    proposals_per_draw
        Proposals made for each draw that is wanted.
    max_pareto_k
        That is certified: below 1/2 weights have a variance, and estimates of squares, which make
        the sds, want it smaller still.
    max_rounds
        Of proposals, before the answer is refused.
    min_ess_share
        Effective draws that are certified, as a share of those wanted.
    newton_cost
        Proposals that cost as much as one step of Newton's method; only moves the progress bar.
    """

    initial_decisions: int = 4096
    initial_precision: float = 1e-4
    max_newton_steps: int = 30
    newton_tolerance: float = 0.05
    min_student_df: float = 10.0
    proposals_per_draw: float = 1.15
    max_pareto_k: float = 0.3
    max_rounds: int = 3
    min_ess_share: float = 0.8
    newton_cost: float = 40.0


LAPLACE = LaplaceSettings()


class NotCertified(ValueError):
    """The approximation does not fit this posterior; the message says why."""


@dataclass
class Laplace:
    """The sampler at work on some chunks of decisions under one prior.

    Attributes
    ----------
    chunks, executor
        The decisions, and who evaluates functions of their chunks.
    resolved_prior
        The prior in the coordinates of the decisions.
    wanted
        How many draws are wanted, of all chains together.
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
    wanted: int
    seed: int
    state: LaplaceState | None = None
    noise: NoiseArguments = NORMAL

    @property
    def student_df(self) -> float:
        """Degrees of freedom of the Student distribution that proposals come from.

        Enough for tails heavier than the posterior's, and not so few that proposals lie too
        far out.
        """
        return max(LAPLACE.min_student_df, 2.0 * len(self.resolved_prior.precision))

    @property
    def total(self) -> float:
        """All of the work is one."""
        return 1.0

    @property
    def done(self) -> float:
        """About the share of the work that is done.

        As if Newton's method needed four passes, and one round of proposals were enough.
        """
        if self.state is None:
            return 0.0
        # the unit of work is one proposal in one pass
        newton, weighing = 4.0 * LAPLACE.newton_cost, LAPLACE.proposals_per_draw * self.wanted
        of_pass = float(self.state.chunks_done) / len(self.chunks)
        if self.state.phase is Phase.NEWTON:
            passes = min(self.state.passes + of_pass, 4.0)
            return float(passes * LAPLACE.newton_cost / (newton + weighing))
        return float((newton + of_pass * weighing) / (newton + weighing))

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
        # nothing has been done where there is no state
        state = self._initial_state() if self.state is None else self.state
        self.state = state
        # first the mode, one pass a step
        while self.state.phase is Phase.NEWTON:
            yield from self._pass(derivatives, self.state.v)
            self.state = self._newton_step(self.state)
        # then proposals around it, one pass a round
        while self.state.phase is Phase.WEIGHTS:
            yield from self._pass(log_likelihoods, self.state.new)
            self.state = self._check_weights(self.state)

    def _generator(self, purpose: int) -> np.random.Generator:
        """The random generator of a purpose: 0 picks the draws, 1, 2, ... make proposals.

        A resumed run makes the same numbers without having to remember a generator's state.
        """
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(purpose,)))
        )

    def _initial_state(self) -> LaplaceState:
        """The state at the mode of the first decisions.

        Where the sd of the prior is to be inferred, it is taken at a likely value meanwhile.
        """
        refuse_flat_prior(self.resolved_prior, self.noise)
        # the first chunk stands for all: only the beginning depends on it
        decisions, weights = self.chunks.load(0)
        count = LAPLACE.initial_decisions
        block = prepare(decisions[:count], weights[:count])[0]
        prior = at_likely_scale(block.unique, self.resolved_prior, block.rivals.weight, self.noise)
        # a few decisions may leave directions open, in which a flat prior has no mode
        precision = prior.precision
        if prior.flat:
            precision = LAPLACE.initial_precision * np.eye(len(prior.precision))
        proper = replace(prior, flat=False, precision=precision)
        v, _ = posterior_mode(block.unique, proper, block.rivals.weight, self.noise)
        return LaplaceState(
            phase=Phase.NEWTON,
            v=v,
            previous=v,
            precision=prior.precision,
            total=np.zeros((len(v) + 1, len(v) + 1)),
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

    def _newton_step(self, state: LaplaceState) -> LaplaceState:
        """The next step of Newton's method, or half of the last one where it went too far.

        In the free coordinates q of v = mean + basis q, with log posterior

            h(q) = log p(choices | v) - q' P q / 2

        the step solves (information + P) s = gradient. After the last step there are proposals.
        """
        basis = self.resolved_prior.basis
        # log posterior, gradient and information in the free coordinates
        q = (state.v - self.resolved_prior.mean) @ basis
        prior_grad = state.precision @ q
        height = float(state.total[0, 0] - 0.5 * q @ prior_grad)
        gradient = basis.T @ state.total[0, 1:] - prior_grad
        information = basis.T @ state.total[1:, 1:] @ basis + state.precision
        new = replace(
            state, total=np.zeros_like(state.total), chunks_done=0, passes=state.passes + 1
        )
        if new.passes > LAPLACE.max_newton_steps:
            raise NotCertified(f"the mode was not found in {LAPLACE.max_newton_steps} passes")
        # lower than before, beyond rounding: the step was too long
        if height < state.best - 1e-6 * abs(height):
            return replace(new, v=0.5 * (state.v + state.previous))
        # Newton's step, from the Cholesky factor of the information
        try:
            step = sla.cho_solve(sla.cho_factor(information), gradient)
        except sla.LinAlgError:
            raise NotCertified(
                "some direction of the coefficients is informed by no decision and not by the prior"
            ) from None
        # the gain that a step promises is half of this: close enough, the weights correct the rest
        if gradient @ step < LAPLACE.newton_tolerance:
            root = np.linalg.cholesky(sla.inv(information))
            count = round(LAPLACE.proposals_per_draw * self.wanted)
            return self._draw_proposals(new, q + step, root, count)
        return replace(new, best=height, previous=state.v, v=state.v + basis @ step)

    def _draw_proposals(
        self, state: LaplaceState, centre: Floats, root: Floats, count: int, keep: bool = False
    ) -> LaplaceState:
        """The state with new proposals, and a pass ahead that weighs them.

        Proposals are centre + root z in free coordinates, z Student. keep: whether proposals that
        are weighed already, and came from the same distribution, stay beside them.
        """
        # a Student variate is a normal one over the root of a chi-square over its degrees of
        # freedom
        rng, width, df = self._generator(1 + state.rounds), len(centre), self.student_df
        z = rng.standard_normal((count, width)) * np.sqrt(df / rng.chisquare(df, count))[:, None]
        basis = self.resolved_prior.basis
        values = self.resolved_prior.mean + (centre + z @ root.T) @ basis.T
        if not keep:
            state = replace(
                state, proposals=np.zeros((0, values.shape[1])), log_weights=np.zeros(0)
            )
        # log density of the proposals but for a constant, which `_log_evidence` puts in
        log_density = (
            -0.5 * (df + width) * np.log1p((z**2).sum(axis=1) / df) - np.log(np.diag(root)).sum()
        )
        return replace(
            state,
            phase=Phase.WEIGHTS,
            centre=centre,
            root=root,
            new=np.ascontiguousarray(values),
            log_density=log_density,
            total=np.zeros(count),
        )

    def _check_weights(self, state: LaplaceState) -> LaplaceState:
        """Weigh the proposals, and decide what follows.

        They are enough and certified; or there must be more of them, or others from a better
        distribution; or the answer is refused.
        """
        log_weights = state.total + self.resolved_prior.log_density(state.new) - state.log_density
        # those weighed earlier in the same distribution stay, and all are judged together
        new = replace(
            state,
            chunks_done=0,
            passes=state.passes + 1,
            rounds=state.rounds + 1,
            proposals=np.concatenate([state.proposals, state.new]),
            log_weights=np.concatenate([state.log_weights, log_weights]),
        )
        # a small Pareto k says that the weights have a variance, and that the estimate of ESS
        # holds
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
            # more of the same: as many as reach the effective draws wanted, up to five times
            more = min(1.1 * made * self.wanted / ess, 5.0 * made) - made
            count = max(round(more), 100)
            return self._draw_proposals(new, state.centre, state.root, count, keep=True)
        # others, from the weighted mean and covariance
        weights = np.exp(new.log_weights - new.log_weights.max())
        q = (new.proposals - self.resolved_prior.mean) @ self.resolved_prior.basis
        centre = weights @ q / weights.sum()
        covariance = (weights[:, None] * (q - centre)).T @ (q - centre) / weights.sum()
        count = 2 * round(LAPLACE.proposals_per_draw * self.wanted)
        return self._draw_proposals(new, centre, np.linalg.cholesky(covariance), count)

    def draws(self) -> tuple[Floats, dict[str, Floats], dict[str, Any]]:
        """(wanted, K) draws, resampled by their weights; their stats; diagnostics of them all.

        Systematic resampling keeps the noise of resampling small, and the permutation makes the
        order of the draws mean nothing.
        """
        assert self.state is not None
        state, rng = self.state, self._generator(0)
        # relative to the largest, so that nothing overflows
        weights = np.exp(state.log_weights - state.log_weights.max())
        weights /= weights.sum()
        picked = rng.permutation(systematic_resample(rng, weights, self.wanted))
        values, count = state.proposals[picked], len(weights)
        stats = {"log_weight": np.log(count * weights[picked])}
        # given the value, the prior's sd has a known law, and needs no proposals
        if self.resolved_prior.scale is not None:
            stats["prior_sd"] = draw_prior_sds(rng, self.resolved_prior, values)
        elif not self.resolved_prior.flat:
            stats["log_evidence"] = np.full(self.wanted, self._log_evidence(state.log_weights))
        diagnostics = {
            "pareto_k": pareto_k(state.log_weights),
            "effective": effective_size(state.log_weights),
            "proposals": count,
            "passes": state.passes,
            "decisions": self.chunks.count,
        }
        return values, stats, diagnostics

    def _log_evidence(self, log_weights: Floats) -> float:
        """The log of the mean weight, with the constants of prior and proposals put in.

        The mean importance weight estimates the evidence without bias.
        """
        # both densities were used without their constants, which cancel in everything else
        width, df = len(self.resolved_prior.precision), self.student_df
        log_determinant = np.linalg.slogdet(self.resolved_prior.precision)[1]
        prior = 0.5 * log_determinant - 0.5 * width * np.log(2.0 * np.pi)
        student = gammaln(0.5 * (df + width)) - gammaln(0.5 * df) - 0.5 * width * np.log(df * np.pi)
        largest = log_weights.max()
        return float(largest + np.log(np.exp(log_weights - largest).mean()) + prior - student)
