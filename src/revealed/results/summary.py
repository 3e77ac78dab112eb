"""Summary: means, sds and diagnostics of draws in a table, and in words whether they converged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revealed._types import Bools, Floats
from revealed.results.diagnostics import (
    MIN_DRAWS,
    ess_bulk,
    ess_tail,
    mcse_mean,
    r_hat,
    standard_deviation,
)
from revealed.results.text import align_columns, count_things


@dataclass(frozen=True)
class ConvergenceCriteria:
    """What draws must reach to be called converged.

    The first two are recommended by Vehtari and others (2021): 1.01, and 400 for four chains. The
    third is ours: a mean of 100 independent draws has this error.

    Attributes
    ----------
    max_r_hat
        Below this the chains agree.
    min_ess_per_chain
        Effective draws a chain, for R-hat and the quantiles to mean something.
    max_relative_mcse
        Monte-Carlo error of the mean in sds: a smaller one hardly shows.
    """

    max_r_hat: float = 1.01
    min_ess_per_chain: int = 100
    max_relative_mcse: float = 0.1


CONVERGENCE = ConvergenceCriteria()


@dataclass(frozen=True, eq=False)
class Summary:
    """What the draws say of each coefficient, and how far they have converged; arrays are (K,).

    `low` and `high` are the 5% and 95% quantiles, `fixed` marks coefficients that can only be zero.
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
        columns = ("mean", "sd", "mcse", "low", "high", "ess_bulk", "ess_tail", "r_hat", "fixed")
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in columns
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
        fixed=fixed,
        interrupted=interrupted,
        requested=requested,
    )
