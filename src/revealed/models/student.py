"""Student noise: heavy tails by one scale a decision, which all its actions share.

    noise = s * N(0, I),   s^2 ~ InverseGamma(df / 2, df / 2)

The difference of any two actions' noise has a Student distribution with df degrees of freedom, in
units of normal noise. A decision against all utilities was then probably one with a large scale,
and counts little. With many degrees of freedom the noise is normal. Log P is not concave in the
utilities: far out it falls like a logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, ndtr

from revealed._types import Floats, Ints
from revealed.kernels import student
from revealed.kernels.coordinate_table import TABLE
from revealed.kernels.mean_probabilities import add_probabilities as add_normal_probabilities
from revealed.kernels.noise import NO_TABLE, AnyNoise, NoiseArguments
from revealed.kernels.student import SCALE_RULE
from revealed.models.lapse import Lapse, check_lapse
from revealed.models.noise import Noise

# For the probabilities of all actions, which are averaged over draws: between the rule of samplers
# and the exact one.
DRAW_NODES = SCALE_RULE.nodes(0.6, 18.0)


@dataclass(frozen=True)
class Gamma:
    """The gamma distribution, as a prior of degrees of freedom, cut off below one.

    Parameters
    ----------
    shape, rate
        Its mean is shape / rate; the shape from 0.5 to 1,000, and the mean from 1 to 1,000.
        Default: 2 and 0.1 (Juarez and Steel 2010), of which nine tenths lie between 3.6 and 47.

    Examples
    --------
    >>> rv.StudentNoise(rv.Gamma(2, 0.5)).df.mean
    4.0
    """

    shape: float = 2.0
    rate: float = 0.1

    def __post_init__(self) -> None:
        # others put next to all mass below one, or where the noise is normal
        if not (0.5 <= self.shape <= 1e3 and self.rate > 0.0 and 1.0 <= self.mean <= 1e3):
            raise ValueError(
                "a gamma prior of degrees of freedom has a shape from 0.5 to 1,000 and a mean, "
                f"shape / rate, from 1 to 1,000; here shape is {self.shape:g} and rate "
                f"{self.rate:g}"
            )

    @property
    def mean(self) -> float:
        """The mean before it is cut off."""
        return self.shape / self.rate

    @property
    def table(self) -> Floats:
        """(2, n) the logarithm of df at normal quantiles, and its slopes."""
        return _quantile_table(self.shape, self.rate)


@lru_cache
def _quantile_table(shape: float, rate: float) -> Floats:
    """(2, n) log of the quantile at Phi(z) above the least df, and its derivative in z."""
    z = TABLE.nodes
    # what lies above the cut is shared out anew, each quantile from the side on which it is small
    least = rate * SCALE_RULE.least_df
    cut, above = gammainc(shape, least), gammaincc(shape, least)
    low = gammaincinv(shape, cut + above * ndtr(z))
    high = gammainccinv(shape, above * ndtr(-z))
    df = np.maximum(np.where(z < 0.0, low, high) / rate, SCALE_RULE.least_df)
    # d log df / dz = phi(z) above / (density of log df)
    log_density = shape * np.log(rate * df) - rate * df - gammaln(shape)
    slope = np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_density) * above
    return np.ascontiguousarray(np.stack([np.log(df), slope]))


@dataclass(frozen=True, repr=False)
class StudentNoise(Noise):
    """Noise with heavy tails: each decision has a scale of its own, shared by its actions.

    Outlying decisions count less than under normal noise, and the others more.

    Parameters
    ----------
    df
        Degrees of freedom, a number of at least 1, default 4; or ``Gamma(2, 0.1)``, a prior of
        them, cut off below 1: they are then inferred.
    lapse
        ``Lapse()`` where some choices may be made blindly; default: none are.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [5.0]], start=[0, 2], chosen=[0])  # against all utilities
    >>> rv.log_likelihood(d, [1.0]).round(2)
    array([-8.5])
    >>> rv.log_likelihood(d, [1.0], rv.StudentNoise()).round(2)
    array([-4.42])
    """

    df: float | Gamma = 4.0
    lapse: Lapse | None = None
    name = "student"
    log_concave = False

    def __post_init__(self) -> None:
        check_lapse(self.lapse)
        if isinstance(self.df, Gamma):
            return
        # a class in place of an instance is the usual slip
        number = isinstance(self.df, int | float | np.integer | np.floating)
        if not number or not SCALE_RULE.least_df <= self.df < np.inf:
            raise ValueError(
                "df of Student noise must be a number of at least 1, or rv.Gamma(2, 0.1) to infer "
                f"it; it is {self.df!r}"
            )

    def __repr__(self) -> str:
        lapse = "" if self.lapse is None else f", lapse={self.lapse!r}"
        df = repr(self.df) if isinstance(self.df, Gamma) else f"{self.df:g}"
        return f"StudentNoise(df={df}{lapse})"

    @property
    def description(self) -> str:
        """What reports say of it."""
        df = (
            "degrees of freedom that are inferred under the prior "
            f"Gamma({self.df.shape:g}, {self.df.rate:g}) above 1"
            if isinstance(self.df, Gamma)
            else f"{self.df:g} degrees of freedom"
        )
        return f"Student with {df}, one scale for all actions of a decision"

    @property
    def parameters(self) -> Floats:
        """The degrees of freedom; where they are inferred, the least."""
        return np.array([SCALE_RULE.least_df if isinstance(self.df, Gamma) else float(self.df)])

    log_probability = staticmethod(student.log_probability)
    curvature = staticmethod(student.curvature)

    def law(self) -> NoiseArguments:
        """As compiled loops take it, with a table from the coordinate where df is inferred."""
        table = self.df.table.copy() if isinstance(self.df, Gamma) else NO_TABLE
        return super().law()._replace(table=table)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Noise of the actions of one decision, which have the scale in common.

        Of several decisions, `sample_decisions` draws a scale for each.
        """
        return np.asarray(self._scales(rng, 1, 1)[0, 0] * rng.standard_normal(size))

    def sample_decisions(
        self, rng: np.random.Generator, shape: tuple[int, int], decision: Ints, draws: Ints
    ) -> Floats:
        """(n, P) noise of P actions under n draws; see `Noise.sample_decisions`."""
        scales = self._scales(rng, shape[0], int(decision.max(initial=0)) + 1)
        return np.asarray(scales[:, decision] * rng.standard_normal(shape))

    def _scales(self, rng: np.random.Generator, draws: int, decisions: int) -> Floats:
        """(n, T) a scale for each of T decisions under each of n draws.

        Refused where df is to be inferred.
        """
        if isinstance(self.df, Gamma):
            raise ValueError(f"noise is drawn with known df; give a number in {self!r}")
        return draw_scales(rng, np.full(draws, float(self.df)), decisions)


def draw_scales(rng: np.random.Generator, df: Floats, decisions: int) -> Floats:
    """(n, T) scales of T decisions with each of the degrees of freedom df (n,)."""
    # s^2 ~ InverseGamma(df / 2, df / 2)
    half = 0.5 * df[:, None]
    return np.asarray(np.sqrt(half / rng.standard_gamma(half, (len(df), decisions))))


@dataclass(frozen=True, eq=False)
class StudentDraws(Noise):
    """Student noise with draws of its degrees of freedom, for probabilities and predictions.

    df: (S,), one for each of S draws.
    """

    df: Floats
    name = "student"

    def at_draw(self, s: int) -> StudentNoise:
        """That of draw s."""
        return StudentNoise(float(self.df[s]))

    def at_mean(self) -> StudentNoise:
        """With the mean of the draws, for what looks at one place.

        Such as the information that choices have of the value.
        """
        return StudentNoise(float(self.df.mean()))

    def of_draws(self, change: Callable[[Floats], Floats]) -> StudentDraws:
        """The same with other draws (S',)."""
        return StudentDraws(change(self.df))

    def kernel_of_draw(self, s: int) -> AnyNoise:
        """As compiled loops take it, at draw s."""
        return self.at_draw(s).kernel()

    def law(self) -> NoiseArguments:
        """Refused: each draw has a law of its own."""
        raise ValueError("here df of Student noise must be one number")

    def sample_decisions(
        self, rng: np.random.Generator, shape: tuple[int, int], decision: Ints, draws: Ints
    ) -> Floats:
        """(n, P) noise of P actions under n draws, each with its own df."""
        scales = draw_scales(rng, self.df[draws], int(decision.max(initial=0)) + 1)
        return np.asarray(scales[:, decision] * rng.standard_normal(shape))


def df_of_draws(noise: Noise, draws: Ints) -> Floats | None:
    """(n,) degrees of freedom of each of these draws; None where it is not Student noise."""
    if isinstance(noise, StudentDraws):
        return noise.df[draws]
    return np.full(len(draws), noise.parameters[0]) if isinstance(noise, StudentNoise) else None


def add_student_probabilities(
    df: Floats, mu: Floats, start: Ints, batch: Ints, out: Floats
) -> None:
    """Add the probability of every action under draw s to column batch[s] of out (P, B).

    df: (S,). mu: (P, S) rows @ v of each draw. Off by less than 1e-6.
    """
    # the scales of each draw, and how much each counts
    width = 1.0 / np.sqrt(SCALE_RULE.precision * df + SCALE_RULE.least_precision)
    t = width * DRAW_NODES.offsets[:, None]
    log_weight = DRAW_NODES.log_widths[:, None] - df * (t + 0.5 * np.exp(-2.0 * t))
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    every = np.arange(len(df))
    for k in np.flatnonzero((weight > np.exp(-DRAW_NODES.log_drop)).any(axis=1)):
        found = np.zeros_like(mu)
        add_normal_probabilities(mu * np.exp(-t[k]), start, every, found)
        np.add.at(out.T, batch, (weight[k] * found).T)
