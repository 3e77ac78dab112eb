"""Lapses: now and then a controller chooses blindly, whatever the actions are worth.

    P' = (1 - rate) P + rate q

With probability `rate` one of the actions offered is taken blindly: each of the M as likely as
another, q = 1 / M, or by habit, in proportion to learnt frequencies of their labels (`habit.py`);
otherwise the noise decides as ever. The rate is inferred, from a beta prior. What is chosen against
all utilities then counts little: P' is never below rate q. Two things follow. The posterior need
not be log-concave, and may have two modes (mostly noise, or mostly lapses). And a flat prior of the
value is always improper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv, betaln, expit, ndtr

from revealed._types import Floats, Ints
from revealed._validation import check_positive
from revealed.data.decisions import Decisions
from revealed.kernels.coordinate_table import TABLE, table_values
from revealed.models.habit import check_habit, index_offers, label_positions


@dataclass(frozen=True)
class Beta:
    """The beta distribution, as a prior of a probability.

    Parameters
    ----------
    a, b
        Its mean is a / (a + b); both from 0.1 to 10,000.

    Examples
    --------
    >>> rv.Lapse(prior=rv.Beta(1, 19)).prior.mean
    0.05
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        # smaller ones put all mass where doubles end
        if not (0.1 <= self.a <= 1e4 and 0.1 <= self.b <= 1e4):
            raise ValueError(
                "the numbers of a beta prior must be from 0.1 to 10,000; "
                f"they are {self.a:g} and {self.b:g}"
            )

    @property
    def mean(self) -> float:
        """The prior mean."""
        return self.a / (self.a + self.b)


@dataclass(frozen=True)
class Lapse:
    """With some probability, which is inferred, a choice is made blindly.

    Parameters
    ----------
    prior
        Of the rate of lapses; default: ``Beta(1, 9)``, whose mean is a tenth.
    to
        What a lapse chooses: "uniform", each action offered as likely as another; or "habit",
        in proportion to frequencies of the actions' labels, which are inferred under a flat
        Dirichlet prior and renormalised over the actions offered.
    by
        "all", the default: one rate for everybody. "group", with hierarchical groups only: a rate
        for each group, from a population of them. The prior is then that of the median group.
    sd_scale
        With rates by group, of the prior of how far they differ: the sd of z in rate = F^-1(Phi(z))
        is sd_scale times |t|, t Student with two degrees of freedom and F the prior's distribution
        function. Default: 1, so that groups may differ as much as the prior is wide.

    Examples
    --------
    >>> rows = np.tile([[1.0], [0.0]], (60, 1))  # the better of two, but for five of sixty
    >>> d = rv.Decisions(rows, range(0, 121, 2), [0] * 55 + [1] * 5, names=["worth"])
    >>> model = rv.ChoiceModel(prior=rv.Normal(5.0), noise=rv.LogitNoise(lapse=rv.Lapse()))
    >>> post = rv.fit(d, model, seed=1)
    >>> post.draws["lapse"].shape  # (chain, draw): the rate
    (4, 1000)
    >>> post.lapses().probability[-5:].min() > post.lapses().probability[:55].max()
    np.True_
    """

    prior: Beta = field(default_factory=lambda: Beta(1.0, 9.0))
    to: str = "uniform"
    by: Literal["all", "group"] = "all"
    sd_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.to not in ("uniform", "habit"):
            raise ValueError(f'a lapse goes to "uniform" or "habit", not {self.to!r}')
        if self.by not in ("all", "group"):
            raise ValueError(f'by must be "all" or "group"; it is {self.by!r}')
        if (self.to, self.by) == ("habit", "group"):
            raise ValueError('habits are those of all groups: leave out to="habit", or by="group"')
        check_positive("the scale of the lapse rates' sd", self.sd_scale)
        if self.by == "all" and self.sd_scale != 1.0:
            raise ValueError('sd_scale is that of rates which differ: give by="group" with it')
        if not isinstance(self.prior, Beta):
            raise ValueError(
                f"the prior of a lapse rate must be rv.Beta(a, b); it is {self.prior!r}"
            )

    @property
    def table(self) -> Floats:
        """(2, n) the log odds of the rate at normal quantiles, and their slopes."""
        return _quantile_table(self.prior.a, self.prior.b)


@lru_cache
def _quantile_table(a: float, b: float) -> Floats:
    """(2, n) log odds of the beta quantile at Phi(z), and their derivative in z, at the nodes."""
    # the quantile function is smooth in normal quantiles, so that few nodes suffice
    z = TABLE.nodes
    # each from the side on which it is small, so that no digits are lost
    rate, rest = betaincinv(a, b, ndtr(z)), betaincinv(b, a, ndtr(-z))
    small = rate < 0.5
    rest = np.where(small, 1.0 - rate, rest)
    rate = np.where(small, rate, 1.0 - rest)
    log_odds = np.log(rate) - np.log(rest)
    # d log odds / dz = phi(z) / (density of the log odds)
    log_density = a * np.log(rate) + b * np.log(rest) - betaln(a, b)
    slope = np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_density)
    table = np.ascontiguousarray(np.stack([log_odds, slope]))
    table.flags.writeable = False
    return table


def rates_of(table: Floats, z: Floats) -> Floats:
    """The rate of lapses at each of the coordinates z, of any shape."""
    return np.asarray(expit(table_values(table, z)[0]))


def log_odds_and_slopes(table: Floats, z: float) -> Floats:
    """(3,) the log odds of the rate at the coordinate z, and their first and second derivative."""
    return table_values(table, np.asarray(z))


@dataclass(frozen=True, eq=False)
class KnownLapse:
    """Noise with lapses at a known rate, for probabilities and predictions.

    Parameters
    ----------
    noise
        Of choices that are no lapses.
    rate
        Of lapses: one number, or (S,), one for each of S draws.
    habit
        The probability of each action label, as a mapping, where lapses follow habits; each a
        number, or (S,) numbers of S draws.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [2.0]], start=[0, 3], chosen=[1])
    >>> rv.choice_probabilities(d, [1.0], rv.KnownLapse(rv.LogitNoise(), 0.3)).round(3)
    array([0.163, 0.271, 0.566])
    >>> d = rv.Decisions([[0.0], [1.0]], start=[0, 2], chosen=[1], actions=["left", "right"])
    >>> lapse = rv.KnownLapse(rv.LogitNoise(), 1.0, {"left": 0.6, "right": 0.2, "up": 0.2})
    >>> rv.choice_probabilities(d, [1.0], lapse)  # among those offered
    array([0.75, 0.25])
    """

    noise: Any
    rate: Any
    habit: Any = None

    def __post_init__(self) -> None:
        rate = np.asarray(self.rate, dtype=np.float64)
        if rate.ndim > 1 or rate.size == 0 or not ((rate >= 0.0) & (rate <= 1.0)).all():
            raise ValueError("a rate of lapses is a probability, or (S,) probabilities of S draws")
        object.__setattr__(self, "rate", rate)
        if self.habit is not None:
            object.__setattr__(self, "habit", check_habit(self.habit))

    @property
    def without_lapses(self) -> Any:
        """The noise of choices that are no lapses."""
        return self.noise if self.noise.lapse is None else replace(self.noise, lapse=None)

    @property
    def weights(self) -> Floats:
        """(L,) or (S, L) the probabilities of the labels."""
        return np.stack(list(self.habit.values()), axis=-1)

    def of_draws(self, which: Ints) -> KnownLapse:
        """That of some of the draws."""
        return self.apply(lambda draws: draws[which])

    def apply(self, change: Callable[[Floats], Floats]) -> KnownLapse:
        """The same with other draws (S', ...) in place of all that has draws (S, ...)."""
        # what is one number for all draws stays as it is
        rate = self.rate if self.rate.ndim == 0 else change(self.rate)
        noise = self.noise.of_draws(change)
        if self.habit is None or self.weights.ndim == 1:
            return KnownLapse(noise, rate, self.habit)
        changed = change(self.weights)
        return KnownLapse(noise, rate, dict(zip(self.habit, changed.T, strict=True)))

    def label_of_row(self, d: Decisions) -> Ints | None:
        """(P,) which of the labels each row has; None where lapses are uniform."""
        return None if self.habit is None else label_positions(tuple(self.habit), d)

    def shares(self, d: Decisions) -> Floats:
        """(P,) or (S, P) how probable it is that a lapse chooses each row."""
        label = self.label_of_row(d)
        if label is None:
            return np.repeat(1.0 / d.sizes, d.sizes)
        # the weight of each row, against those of all rows of its decision
        weights = self.weights[..., label]
        total = np.add.reduceat(weights, d.start[:-1], axis=-1)
        return np.asarray(weights / np.repeat(total, d.sizes, axis=-1))

    def shares_of_choices(self, d: Decisions) -> Floats:
        """(T,) or (S, T) how probable it is that a lapse chooses as was chosen."""
        label = self.label_of_row(d)
        if label is None:
            return np.asarray(1.0 / d.sizes)
        # decisions that offer the same labels once
        index, weights = index_offers(d, label, len(self.habit)), self.weights
        of_kind = weights[..., index.chosen] / (weights @ index.offered.T)
        return np.asarray(of_kind[..., index.of_decision])

    def log_mix(self, logs: Floats, shares: Any) -> Floats:
        """(S, n) log probabilities with lapses, from those without (S, n).

        shares: (n,) or (S, n) what a lapse makes of them.
        """
        # one rate for all draws, or each draw's own; of zero the logarithm is minus infinity
        rate = self.rate if self.rate.ndim == 0 else self.rate[:, None]
        with np.errstate(divide="ignore"):
            blind = np.log(rate) + np.log(shares)
            return np.asarray(np.logaddexp(np.log1p(-rate) + logs, blind))

    def mix(self, probabilities: Floats, shares: Any) -> Floats:
        """(S, n) probabilities with lapses, from those without."""
        # probabilities of all rows add to one, and so do the shares: so does their mixture
        rate = self.rate if self.rate.ndim == 0 else self.rate[:, None]
        return np.asarray((1.0 - rate) * probabilities + rate * shares)


def check_lapse(lapse: Any) -> None:
    """Refuse what is no `Lapse`; a class in place of an instance is the usual slip."""
    if lapse is not None and not isinstance(lapse, Lapse):
        raise ValueError(f"lapse must be rv.Lapse() or None; it is {lapse!r}")
