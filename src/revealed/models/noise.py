"""Which law the noise of utilities has, where that of every action is independent.

    utility = row @ v + noise,    the action of the largest utility is chosen

By default the noise is standard normal, as in the paper. Under Gumbel noise choices follow the
logit model. Another law is a subclass of `Noise` with a formula for the log probability of a
choice. Noise with a covariance stands in `correlated_noise.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import logit
from revealed.kernels.choice_exact import log_likelihood_and_gradient
from revealed.kernels.habit import UNIFORM, unbound_habit
from revealed.kernels.noise import (
    NORMAL,
    AnyNoise,
    LapseArguments,
    NoiseArguments,
    count_coordinates,
    make_kind,
)
from revealed.models.correlated_noise import NoiseCovariance
from revealed.models.lapse import KnownLapse, Lapse, check_lapse


class Noise:
    """The law of every action's noise; a subclass is all that another law needs.

    A subclass with numbers of its own is a frozen dataclass, with `parameters` made from its
    fields. Its formulas are compiled: they know numpy, math and what is compiled itself, and take
    what differs between instances from `parameters`.

    Attributes
    ----------
    name
        What users call it.
    log_concave
        Whether the log probability is concave in the utilities; a flat prior is refused where it
        is not.
    lapse
        Whether some choices are made blindly; a subclass that allows it has it as a field.

    Examples
    --------
    Between two actions, noise whose difference is Cauchy:

    >>> import math
    >>> class CauchyNoise(rv.Noise):
    ...     name = "cauchy"
    ...
    ...     @staticmethod
    ...     def log_probability(gaps, parameters, slopes):
    ...         p = math.atan2(1.0, gaps[0]) / math.pi
    ...         slopes[:] = -1.0 / (math.pi * p * (1.0 + gaps[0] ** 2))
    ...         return math.log(p)
    >>> d = rv.Decisions([[0.0], [1.0]], start=[0, 2], chosen=[1])
    >>> rv.log_likelihood(d, [1.0], CauchyNoise()).round(3)  # log(3 / 4): a gap of -1
    array([-0.288])
    """

    name: ClassVar[str]
    log_concave: ClassVar[bool] = False
    lapse: Lapse | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.lapse is None else f'lapse={self.lapse!r}'})"

    @property
    def description(self) -> str:
        """What reports say of it."""
        return f"{self.name}, independent for every action"

    @property
    def parameters(self) -> Floats:
        """(p,) the numbers of this instance that its formulas take; none by default."""
        return np.empty(0)

    @staticmethod
    def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
        """Log probability of a choice, from its rivals' utilities minus that of the chosen action.

        gaps: (n,), n at least one. Its derivative in every gap goes into slopes (n,), unless that
        is empty.
        """
        raise NotImplementedError("a noise needs a formula, log_probability")

    @staticmethod
    def curvature(gaps: Floats, parameters: Floats, hessian: Floats) -> None:
        """Write the second derivatives (n, n) of the log probability in the gaps (n,).

        Need not be there: slopes are differentiated instead.
        """
        raise NotImplementedError("this noise has no formula for the curvature")

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Independent draws of one action's noise."""
        raise NotImplementedError(f"{self.name} noise cannot be drawn")

    def sample_decisions(
        self, rng: np.random.Generator, shape: tuple[int, int], decision: Ints, draws: Ints
    ) -> Floats:
        """(n, P) noise of P actions under n draws.

        decision: (P,) which decision each of the actions belongs to. draws: (n,) their positions
        among all draws.
        """
        # actions of one decision have nothing in common unless a noise says so
        return self.sample(rng, shape)

    def of_draws(self, change: Callable[[Floats], Floats]) -> Noise:
        """The same with other draws (S',) in place of all that has draws (S,): nothing has any."""
        return self

    def kernel_of_draw(self, s: int) -> AnyNoise:
        """As compiled loops take it, at draw s: the same for all of them."""
        return self.kernel()

    def kernel(self) -> AnyNoise:
        """The noise as compiled loops take it, with its lapses."""
        # lapses are the same whatever the noise is
        law = self.law()
        return law if self.lapse is None else LapseArguments(law, self.lapse.table)

    def law_with_lapses(self, rate: float, habit: Floats | None = None) -> AnyNoise:
        """The noise with lapses at a known rate, as compiled loops take it.

        habit: (L,) the probabilities of the labels; None where lapses are uniform.
        """
        # without lapses the loops without them are quicker
        if rate <= 0.0:
            return self.law()
        log_odds = np.log(rate) - np.log(max(1.0 - rate, 1e-300))
        index = UNIFORM if habit is None else unbound_habit(len(habit))._replace(weights=habit)
        return LapseArguments(self.law(), np.empty((2, 0)), 0, float(log_odds), index)

    def law(self) -> NoiseArguments:
        """The noise of choices that are no lapses, as compiled loops take it."""
        cls = type(self)
        curvature = None if cls.curvature is Noise.curvature else cls.curvature
        kind = make_kind(cls.name, cls.log_concave, cls.log_probability, curvature)
        return NoiseArguments(kind, np.array(self.parameters, dtype=np.float64))


@dataclass(frozen=True, repr=False)
class NormalNoise(Noise):
    """Independent standard normal noise, the default.

    Parameters
    ----------
    lapse
        ``Lapse()`` where some choices may be made blindly; default: none are.

    Examples
    --------
    >>> rv.ChoiceModel().noise
    NormalNoise()
    """

    lapse: Lapse | None = None
    name = "normal"
    log_concave = True

    def __post_init__(self) -> None:
        check_lapse(self.lapse)

    @property
    def description(self) -> str:
        """What reports say of it."""
        return "standard normal, independent for every action"

    @staticmethod
    def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
        """Log probability of a choice, as one integral (`kernels.choice_exact`)."""
        # one decision whose first action was chosen
        mu = np.concatenate([[0.0], gaps])
        gradient = np.empty(mu.size)
        value = log_likelihood_and_gradient(
            mu, np.array([0, mu.size]), np.zeros(1, dtype=np.int64), gradient
        )
        slopes[:] = gradient[1 : 1 + slopes.size]
        return value

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Independent standard normal draws."""
        return np.asarray(rng.standard_normal(size))

    def law(self) -> NoiseArguments:
        """Normal noise has loops of its own."""
        return NORMAL


@dataclass(frozen=True, repr=False)
class LogitNoise(Noise):
    """Independent Gumbel noise of scale one: choices follow the logit (softmax) model.

    Its sd is 1.28, so that coefficients are larger than under normal noise: by about 1.2 with two
    actions, 1.4 with five and 1.55 with ten.

    Parameters
    ----------
    lapse
        ``Lapse()`` where some choices may be made blindly; default: none are.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [2.0]], start=[0, 3], chosen=[1])
    >>> rv.choice_probabilities(d, [1.0], rv.LogitNoise()).round(3)  # exp(u) / sum of exp(u)
    array([0.09 , 0.245, 0.665])
    """

    lapse: Lapse | None = None
    name = "logit"
    log_concave = True

    def __post_init__(self) -> None:
        check_lapse(self.lapse)

    @property
    def description(self) -> str:
        """What reports say of it."""
        return "Gumbel of scale one, independent for every action: choices follow the logit model"

    log_probability = staticmethod(logit.log_probability)
    curvature = staticmethod(logit.curvature)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Independent draws of the Gumbel distribution."""
        return np.asarray(rng.gumbel(size=size))


KnownNoise = Noise | KnownLapse | NoiseCovariance
"""What probabilities and predictions take for a noise; with draws of what was inferred of it."""


def without_lapses(noise: Noise | KnownLapse | None) -> Noise:
    """The noise of choices that are no lapses; None is normal noise."""
    if isinstance(noise, KnownLapse):
        attending: Noise = noise.noise
        return attending
    return NormalNoise() if noise is None else noise


def label_of_row(noise: KnownNoise | None, d: Decisions) -> Ints | None:
    """(P,) labels of the rows as numbers where probabilities depend on them; otherwise None."""
    return noise.label_of_row(d) if isinstance(noise, NoiseCovariance | KnownLapse) else None


def as_kernel(noise: Noise | KnownLapse | None) -> AnyNoise:
    """A noise that is known as compiled loops take it; None is normal noise."""
    if noise is None:
        return NORMAL
    if isinstance(noise, KnownLapse):
        habit = None if noise.habit is None else noise.weights
        if noise.rate.ndim > 0 or (habit is not None and habit.ndim > 1):
            raise ValueError("here the rate of lapses must be one number")
        attending: Noise = noise.noise
        return attending.law_with_lapses(float(noise.rate), habit)
    # a rate that is still to be inferred gives no probability
    if noise.lapse is not None:
        raise ValueError(
            "the rate of lapses is not known here; give rv.KnownLapse(noise, rate), or draws of it"
        )
    kernel = noise.kernel()
    if count_coordinates(kernel):
        raise ValueError(f"df is not known here, as it is inferred; give a number in {noise!r}")
    return kernel
