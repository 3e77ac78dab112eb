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
        fitting them takes half a second; the work grows with the seventh power.
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
        Student proposals for each draw of the surrogate; with so many, draws are as good as
        independent, as what they share adds a twentieth to their variance.
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
    oversampling: int = 20
    max_numbers: int = 2_000_000
    min_student_df: float = 10.0
    proposals_per_draw: float = 1.15
    max_pareto_k: float = 0.3
    max_rounds: int = 3
    min_ess_share: float = 0.8
    newton_cost: float = 40.0

    def design_size(self, width: int, draws: int, decisions: int) -> int | None:
        """Points that a surrogate of so many coordinates is fitted to; None for no surrogate.

        There is none where weighing proposals takes fewer evaluations.
        """
        equations = self.equations_per_coefficient * count_coefficients(width)
        size = max(self.min_design, 2 * round(equations / (width + 1) / 2.0))
        evaluations = 2 * size + self.validation_size(decisions)
        pays = evaluations < self.proposals_per_draw * draws
        return size if pays and width <= self.max_surrogate_width else None

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
