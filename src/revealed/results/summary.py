"""Summary: means, sds and diagnostics of draws in a table, and in words whether they converged."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from revealed._types import Bools, Floats
from revealed.results.diagnostics import (
    MIN_DRAWS,
    ess_bulk,
    ess_tail,
    longest_likely_stretch,
    longest_stretch,
    mcse_mean,
    r_hat,
    standard_deviation,
    tail_disagreement,
)
from revealed.results.text import align_columns, count_things


@dataclass(frozen=True)
class ConvergenceCriteria:
    """What draws must reach to be called converged.

    The first two are recommended by Vehtari and others (2021): 1.01, and 400 for four chains. The
    others are ours: a mean of 100 independent draws has an error of a tenth of the sd, and what
    chance does only once in ten thousand healthy summaries is not put down to it.

    Attributes
    ----------
    max_r_hat
        Below this the chains agree.
    min_ess_per_chain
        Effective draws a chain, for R-hat and the quantiles to mean something.
    max_relative_mcse
        Monte-Carlo error of the mean in sds: a smaller one hardly shows.
    max_slowdown
        How many times less often than on average a chain may leave a place. Steps of a proposal
        that fits well leave its worst places about a third as often.
    false_alarm
        The probability that some stretch of equal draws, or some chain's share of draws in the
        tails, is called too long or too different though nothing is wrong.
    """

    max_r_hat: float = 1.01
    min_ess_per_chain: int = 100
    max_relative_mcse: float = 0.1
    max_slowdown: float = 3.0
    false_alarm: float = 1e-4


CONVERGENCE = ConvergenceCriteria()


@dataclass(frozen=True, eq=False)
class Summary:
    """What the draws say of each coefficient, and how far they have converged; arrays are (K,).

    `low` and `high` are the 5% and 95% quantiles, `fixed` marks coefficients that can only be zero.
    `longest_stretch` counts successive draws that are equal, and `longest_likely_stretch` says how
    many chance explains; `tail_disagreement` is between chains, in standard errors.
    `warnings` say in words what is wrong; a single chain is worth a warning but does not keep a run
    from having converged.
    """

    names: tuple[str, ...]
    chains: int
    draws: int
    mean: Floats
    sd: Floats
    mcse: Floats
    low: Floats
    high: Floats
    ess_bulk: Floats
    ess_tail: Floats
    r_hat: Floats
    longest_stretch: Floats
    longest_likely_stretch: Floats
    tail_disagreement: Floats
    fixed: Bools
    interrupted: bool = False
    requested: int | None = None

    @property
    def converged(self) -> bool:
        """Whether nothing speaks against these draws.

        R-hat, effective draws and Monte-Carlo errors of all coefficients meet the criteria.
        """
        return not self._problems()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything to know before relying on the numbers, a sentence each."""
        one = (
            "one chain only, so R-hat compares its two halves; run several chains to see whether "
            "they agree"
        )
        return (*self._problems(), *([one] if self.chains == 1 else []))

    @property
    def message(self) -> str:
        """In words: converged, or what is wrong.

        It begins with "Converged" or "Do not trust this yet", and goes on with numbers.
        """
        if not self.converged:
            return "Do not trust this yet: " + "; also ".join(self.warnings) + "."
        # the three numbers that decide, so that a reader can judge for himself
        smallest_ess, largest_error = self._ess().min(), self._relative_mcse().max()
        alone = ", as far as one chain can tell" if self.chains == 1 else ""
        note = f" Note: {self.warnings[0]}." if self.warnings else ""
        return (
            f"Converged{alone}: R-hat at most {self.r_hat.max():.3f}, at least {smallest_ess:.0f} "
            f"effective draws, Monte-Carlo error at most {largest_error:.1%} of the sd.{note}"
        )

    def __str__(self) -> str:
        shown, note = self._rows_to_print()
        # a column of names, then a column for each number
        columns = [
            ["", *(self.names[k] for k in shown)],
            *(
                [head, *("?" if np.isnan(values[k]) else format(values[k], form) for k in shown)]
                for head, values, form in (
                    ("mean", self.mean, ".4g"),
                    ("sd", self.sd, ".4g"),
                    ("mcse", self.mcse, ".2g"),
                    ("5%", self.low, ".4g"),
                    ("95%", self.high, ".4g"),
                    ("ess bulk", self.ess_bulk, ".0f"),
                    ("ess tail", self.ess_tail, ".0f"),
                    ("R-hat", self.r_hat, ".3f"),
                )
            ),
        ]
        size = f"{count_things(self.chains, 'chain')} of {count_things(self.draws, 'draw')}"
        return f"{align_columns(columns)}\n{note}{size}\n{self.message}"

    def _rows_to_print(self) -> tuple[Any, str]:
        """Which coefficients a printed table has, and a line where that is not all of them."""
        # more rows than this would push the message below off the screen
        most = 20
        if len(self.names) <= most:
            return np.arange(len(self.names)), ""
        # how far from the criteria: one is just at the edge
        badness = np.maximum(
            (self.r_hat - 1.0) / (CONVERGENCE.max_r_hat - 1.0),
            CONVERGENCE.min_ess_per_chain * self.chains / self._ess(),
        )
        worst = np.argsort(-np.where(self._stuck(), np.inf, badness), kind="stable")[:most]
        more = len(self.names) - most
        return worst, f"... and {more} more coefficients; shown are those that need most care\n"

    def _ess(self) -> Floats:
        """(K,) effective draws, in the bulk or in the tails, whichever are fewer."""
        return np.minimum(self.ess_bulk, self.ess_tail)

    def _stuck(self) -> Bools:
        """(K,) which coefficients never moved, though they can."""
        return np.asarray((self.sd == 0) & ~self.fixed)

    def _relative_mcse(self) -> Floats:
        """(K,) Monte-Carlo error of the mean in sds; zero where there is no sd."""
        return np.divide(self.mcse, self.sd, out=np.zeros_like(self.sd), where=self.sd > 0)

    def _problems(self) -> tuple[str, ...]:
        """What speaks against the draws, a sentence each with the worst coefficient's name.

        Every sentence ends with what to do about it.
        """
        problems = []
        if self.interrupted:
            requested = "" if self.requested is None else f" of {self.requested}"
            problems.append(
                f"the run was interrupted after {self.draws}{requested} draws a chain; run it to "
                "the end"
            )
        # nothing else can be computed from so few
        if self.draws < MIN_DRAWS:
            few = (
                f"only {count_things(self.draws, 'draw')} a chain, and with fewer than {MIN_DRAWS} "
                "nothing can be said; run longer"
            )
            return (*problems, few)

        # the order is that of severity: stuck, in disagreement, too few, too inexact
        if self._stuck().any():
            worst = self._name_worst(self._stuck(), np.abs(self.mean))
            problems.append(
                f"{worst}: no draw ever moved, so the sampler is stuck; start elsewhere or use "
                "another sampler"
            )
        disagree = self.r_hat >= CONVERGENCE.max_r_hat
        if disagree.any():
            problems.append(
                f"{self._name_worst(disagree, self.r_hat)}: R-hat {self.r_hat.max():.3f} (should "
                f"be below {CONVERGENCE.max_r_hat}): the chains disagree; run longer, with more "
                "warm-up"
            )
        problems += self._problems_of_tails()
        # ESS is about proportional to the number of draws, so that one can say how many are
        # missing
        per_chain = CONVERGENCE.min_ess_per_chain
        ess, need = self._ess(), per_chain * self.chains
        if (ess < need).any():
            times = int(np.ceil(need / ess.min()))
            problems.append(
                f"{self._name_worst(ess < need, -ess)}: {ess.min():.0f} effective draws (should be "
                f"at least {need}, {per_chain} a chain); run about {times} times longer"
            )
        error, most = self._relative_mcse(), CONVERGENCE.max_relative_mcse
        if (error > most).any():
            problems.append(
                f"{self._name_worst(error > most, error)}: the Monte-Carlo error of the mean is "
                f"{error.max():.0%} of the sd (should be below {most:.0%}); run longer"
            )
        return tuple(problems)

    def _problems_of_tails(self) -> list[str]:
        """What speaks against the tails: chains that stand still there, or do not agree on them."""
        problems = []
        stretch, likely = self.longest_stretch, self.longest_likely_stretch
        too_long = (stretch > likely) & ~self.fixed
        if too_long.any():
            worst = int(np.argmax(np.where(too_long, stretch / likely, -np.inf)))
            problems.append(
                f"{self._name_worst(too_long, stretch / likely)}: {stretch[worst]:.0f} draws in a "
                f"row are the same (chance explains {likely[worst]:.0f}), so a chain stood still "
                "and the tails may be wrong; run longer or use another sampler"
            )
        # as many comparisons as chains, two tails and coefficients: each has its part of the rate
        count = 4 * self.chains * len(self.names)
        most = float(-ndtri(CONVERGENCE.false_alarm / count))
        differ = (self.tail_disagreement > most) & ~self.fixed
        if differ.any():
            problems.append(
                f"{self._name_worst(differ, self.tail_disagreement)}: a chain has too many or too "
                f"few draws in a tail, by {self.tail_disagreement[differ].max():.1f} standard "
                f"errors (should be below {most:.1f}); run longer, with more warm-up"
            )
        return problems

    def _name_worst(self, which: Bools, badness: Floats) -> str:
        """The name of the worst of some coefficients, and how many others there are."""
        worst = self.names[int(np.argmax(np.where(which, badness, -np.inf)))]
        others = int(which.sum()) - 1
        return f"{worst} (and {others} more)" if others else worst


def summarise(
    draws: Floats,
    names: tuple[str, ...],
    *,
    fixed: Bools,
    interrupted: bool = False,
    requested: int | None = None,
) -> Summary:
    """The summary of (chain, draw, K) draws.

    fixed: (K,) which coefficients can only be zero. interrupted, requested: whether the run was cut
    short, and how many draws a chain it should have had.
    """
    # Numbers that are summarised at a time. Ranks and Fourier transforms take several times the
    # memory of the draws, which matters with the values of very many groups.
    numbers = 1 << 22
    width = max(1, numbers // (draws.shape[0] * draws.shape[1]))
    if draws.shape[2] > width:
        parts = [
            summarise(
                draws[:, :, k : k + width],
                names[k : k + width],
                fixed=fixed[k : k + width],
                interrupted=interrupted,
                requested=requested,
            )
            for k in range(0, draws.shape[2], width)
        ]
        # everything else is the same in all parts
        joined: dict[str, Any] = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(Summary)
            if isinstance(getattr(parts[0], field.name), np.ndarray)
        }
        return replace(parts[0], names=names, **joined)
    # the 90% interval that tables show
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return Summary(
        names=names,
        chains=draws.shape[0],
        draws=draws.shape[1],
        mean=draws.mean(axis=(0, 1)),
        sd=standard_deviation(draws),
        mcse=mcse_mean(draws),
        low=low,
        high=high,
        ess_bulk=ess_bulk(draws),
        ess_tail=ess_tail(draws),
        r_hat=r_hat(draws),
        longest_stretch=longest_stretch(draws),
        longest_likely_stretch=longest_likely_stretch(
            draws, CONVERGENCE.max_slowdown, CONVERGENCE.false_alarm
        ),
        tail_disagreement=tail_disagreement(draws),
        fixed=fixed,
        interrupted=interrupted,
        requested=requested,
    )
