"""Tuning of Laplace importance sampling, and the purposes of its random generators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from revealed.samplers.cubic import count_coefficients


@dataclass(frozen=True)
class LaplaceSettings:
    """Tuning of the sampler; the values were found by trial on features and finite MDPs.

    Attributes
    ----------
    initial_decisions
        Decisions whose mode is where Newton's method begins, few and then more; fewer cost it
        further passes.
    initial_precision
        Precision that stands in for a flat prior while looking for that beginning.
    max_newton_steps
        Three or four are usual; more mean that there is no mode to be found.
    newton_tolerance
        Gain in log posterior that a step promises, below which it is the last. Surrogate and
        importance weights make up for what is left, so it need not be small.
    max_surrogate_width
        Coordinates up to which there is a surrogate: with 20 it has 1,771 coefficients, and
        the work of fitting them grows with the ninth power.
    fit_cost
        Of fitting a surrogate, for each cube of its coefficients, in evaluations of one coefficient
        of one decision. Wrong by a factor of three, one of two ways is taken that take about as
        long as each other.
    equations_per_coefficient, min_design, design_spread
        Of the surrogate's fit: twice as many equations as coefficients, at least so many points,
        and a little wider than the posterior, so that it interpolates where draws are.
    radius_tail
        The cubic term is held constant beyond the distance that a standard normal variate exceeds
        with this probability: further out, polynomials are no guide.
    max_even_residual_sd
        Of terms of even order beyond the quadratic, above which no surrogate is fitted: of 30
        simulated problems none had a good one above it.
    min_validation, max_validation, validation_decisions
        Points where the surrogate's error is measured, whose sd is then known to a tenth or better:
        as many of few decisions as make so many evaluations of one.
    max_residual_sd
        That is certified without weights: no mean is off by more than so many posterior sds.
    max_correctable_sd
        That weights can make up for: beyond, too few proposals would carry them.
    oversampling
        Skewed proposals for each draw of the surrogate. Their weights are so even that with so many
        hardly one is picked twice, and what draws share adds a fiftieth to their variance.
    skewed_df_per_coordinate, skewed_spread
        Of skewed proposals: Student vectors with so many degrees of freedom for each coordinate,
        so many times as wide as the posterior. Narrower ones, or lighter tails, leave the largest
        weights to what third derivatives do not say; wider ones cost effective draws.
    max_skewed_width
        Coordinates up to which there are skewed proposals: the third derivatives of so many are
        64,000 numbers, and each proposal takes as many operations.
    min_skewed_proposals
        Proposals from which on there are skewed ones: the Pareto k of few weights is hardly known,
        and where they are even it is as often above as below what is certified.
    max_cubic_sd
        Of the cubic term of the log posterior, above which third derivatives are no guide and
        proposals come from a Student distribution.
    max_numbers
        Of proposals that are made at once; for more, memory would be what they take.
    min_student_df
        Degrees of freedom of the proposals, or twice the number of coordinates where that is more:
        with fewer, the radius of proposals in many dimensions is far from the normal's.
    proposals_per_draw
        Proposals weighed for each draw that is wanted.
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

    initial_decisions: tuple[int, ...] = (512, 4096)
    initial_precision: float = 1e-4
    max_newton_steps: int = 30
    newton_tolerance: float = 0.05
    max_surrogate_width: int = 20
    fit_cost: float = 0.02
    equations_per_coefficient: float = 2.0
    min_design: int = 24
    design_spread: float = 1.2
    radius_tail: float = 1e-5
    max_even_residual_sd: float = 0.3
    min_validation: int = 64
    max_validation: int = 256
    validation_decisions: int = 200_000
    max_residual_sd: float = 0.02
    max_correctable_sd: float = 0.5
    oversampling: int = 4
    skewed_df_per_coordinate: float = 10.0
    skewed_spread: float = 1.05
    max_skewed_width: int = 40
    min_skewed_proposals: int = 1000
    max_cubic_sd: float = 2.0
    max_numbers: int = 2_000_000
    min_student_df: float = 10.0
    proposals_per_draw: float = 1.15
    max_pareto_k: float = 0.3
    max_rounds: int = 3
    min_ess_share: float = 0.8
    newton_cost: float = 40.0

    def design_size(self, width: int, draws: int, decisions: int) -> int | None:
        """Points that a surrogate of so many coordinates is fitted to; None for no surrogate.

        There is none where weighing proposals takes less time.
        """
        equations = self.equations_per_coefficient * count_coefficients(width)
        size = max(self.min_design, 2 * round(equations / (width + 1) / 2.0))
        # a gradient costs as much again as the log-likelihood
        saved = self.proposals_per_draw * draws - 2 * size - self.validation_size(decisions)
        pays = saved * decisions * width > self.fit_cost * count_coefficients(width) ** 3
        return size if pays and width <= self.max_surrogate_width else None

    def measures_third(self, width: int, draws: int) -> bool:
        """Whether third derivatives are found for proposals, where there is no surrogate.

        Not where proposals are few, or weighing them takes fewer evaluations.
        """
        # two points for each coordinate and for half of the pairs; a gradient counts twice
        evaluations = 4 * (width + width * width // 4)
        proposals = self.proposals_per_draw * draws
        many = proposals >= max(evaluations, self.min_skewed_proposals)
        return many and width <= self.max_skewed_width

    def student_df(self, width: int) -> float:
        """Of Student proposals: tails heavier than the posterior's, and not too many far out."""
        return max(self.min_student_df, 2.0 * width)

    def validation_size(self, decisions: int) -> int:
        """Points that a surrogate of so many decisions is judged by."""
        affordable = self.validation_decisions // decisions
        return min(max(affordable, self.min_validation), self.max_validation)


LAPLACE = LaplaceSettings()


class Purpose(NamedTuple):
    """What random generators are for.

    Rounds of proposals are numbered from one on.
    """

    draws: int = 0
    design: int = 1001
    validation: int = 1002
    surrogate: int = 1003


PURPOSE = Purpose()
