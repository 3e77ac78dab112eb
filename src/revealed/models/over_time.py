"""Whether values change, and how: the part of a model that reads the times of decisions.

    Constant()        one value for all times
    RandomWalk()      v(t + gap) = v(t) + N(0, sd^2 gap), coefficient by coefficient
    MeanReverting()   v - m decays with a rate, and has the sd `sd` at all times

Steps are taken in the free coordinates of the prior: in a block that sums to zero all coefficients
have one sd, as several would depend on the basis. Times may be any numbers, and several decisions
may share one; what counts are the gaps between different times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed._validation import check_positive
from revealed.data.decisions import Decisions
from revealed.kernels.path_process import PathProcess
from revealed.models.base import Parameter
from revealed.models.coordinates import block_of_coefficient
from revealed.models.priors import Flat, HalfStudentT, ResolvedPrior
from revealed.models.switching import Switching


@dataclass(frozen=True)
class DefaultScales:
    """Scales of half-t priors where none are given.

    change: by how much values move from the first to the last decision, in units of the noise.
    Much smaller, and true changes are drawn towards none; much larger, and few decisions are
    followed into their noise. reversions: how often a reverting path forgets where it was in that
    time. spread: of skills before any game, as wide as the half-normal prior of those that do not
    change.
    """

    change: float = 2.0
    reversions: float = 10.0
    spread: float = 2.0


SCALES = DefaultScales()

Sd = float | Sequence[float] | HalfStudentT | None


@dataclass(frozen=True)
class Constant:
    """Values that never change; times are not looked at.

    Examples
    --------
    >>> rv.ChoiceModel(over_time=rv.Constant()).over_time
    Constant()
    """

    @property
    def description(self) -> str:
        """In words, for reports."""
        return "constant: one value for all times"


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """Values that drift: between two times each coefficient moves by N(0, sd^2 gap).

    The first value has the prior of the model.

    Parameters
    ----------
    sd
        How far a coefficient moves in one unit of time: a number, one for each coefficient, or a
        prior of it, ``HalfStudentT(scale=...)``; then it is inferred. Default: inferred, with a
        scale of 2 over the root of the time from first to last decision.
    between_sessions
        Of the step from the last decision of a session to the first one of the next, in place of
        the other, whatever the time between them: as `sd`. None treats sessions as one.
    shared
        Whether all coefficients have the same sd.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.linspace(-2.0, 2.0, 200)  # what is liked changes over 200 decisions
    >>> taken = (rng.logistic(size=200) < likes).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken, times=range(200))
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())
    >>> post = rv.fit(d, model, draws=500)
    >>> bool(post.mean("value")[0, 0] < 0.0 < post.mean("value")[-1, 0])
    True
    """

    sd: Sd = None
    between_sessions: Sd = None
    shared: bool = False

    def __post_init__(self) -> None:
        _check_sd("sd", self.sd)
        _check_sd("between_sessions", self.between_sessions)
        _check_flag(self.shared)

    @property
    def description(self) -> str:
        """In words, for reports."""
        steps = f"a random walk; the sd of a step is {_in_words(self.sd, self.shared)}"
        if self.between_sessions is None:
            return steps
        return f"{steps}, and between sessions {_in_words(self.between_sessions, self.shared)}"


@dataclass(frozen=True, eq=False)
class MeanReverting:
    """Values that vary about a long-run mean, to which they return.

    Between two times, v - m shrinks by exp(-rate gap), and noise keeps its sd what it is at all
    times. The long-run mean m has the prior of the model.

    Parameters
    ----------
    sd
        Of each coefficient about its long-run mean: a number, one for each coefficient, or a prior
        of it, ``HalfStudentT(scale=...)``. Default: inferred, with scale 2.
    rate
        How fast a coefficient returns, in one over the unit of time: as `sd`. Default: inferred,
        with a scale of 10 over the time from first to last decision.
    shared
        Whether all coefficients have the same sd and rate.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.sin(np.arange(300) / 8.0)
    >>> taken = (rng.logistic(size=300) < 2.0 * likes).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 300, range(0, 601, 2), taken, times=range(300))
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.MeanReverting())
    >>> post = rv.fit(d, model, draws=2000)
    >>> post.draws["reversion_rate"].shape
    (4, 2000, 1)
    """

    sd: Sd = None
    rate: Sd = None
    shared: bool = False

    def __post_init__(self) -> None:
        _check_sd("sd", self.sd)
        _check_sd("rate", self.rate)
        _check_flag(self.shared)

    @property
    def description(self) -> str:
        """In words, for reports."""
        return (
            f"about a long-run mean; the sd is {_in_words(self.sd, self.shared)}, the rate of "
            f"return {_in_words(self.rate, self.shared)}"
        )


OverTime = Constant | RandomWalk | MeanReverting | Switching
"""Whether values change, and how."""


def refuse_with_changes(prior: Any) -> None:
    """Refuse parts of a model that values which change do not go with.

    The sentence says what to give in their place.
    """
    if isinstance(prior, Flat):
        raise ValueError(
            "values that change need a proper prior of where they begin; give rv.Normal(sd)"
        )


def _check_sd(what: str, given: Any) -> None:
    """Refuse what is no positive number, no numbers and no prior of one."""
    # True is a number to numpy too; `check_positive` refuses it below
    if given is None or isinstance(given, HalfStudentT):
        return
    message = f"{what} must be positive numbers or rv.HalfStudentT(scale=...); it is {given!r}"
    try:
        numbers = np.atleast_1d(np.asarray(given, np.float64))
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(message)
    for number in numbers.tolist():
        check_positive(what, number)


def _in_words(given: Sd, shared: bool) -> str:
    """A number, or how it was inferred.

    Ends a sentence of a report.
    """
    if isinstance(given, HalfStudentT) or given is None:
        scale = "" if given is None else f" under {given.scale:g} |t|"
        return f"inferred{scale}, {'one for all' if shared else 'for each coefficient'}"
    return f"{given:g}" if isinstance(given, int | float) else "given for each coefficient"


def _check_flag(shared: Any) -> None:
    """Refuse what is neither true nor false.

    Numbers and words would be taken for true.
    """
    if not isinstance(shared, bool | np.bool_):
        raise ValueError(f"shared must be True or False; it is {shared!r}")


@dataclass(frozen=True, eq=False)
class ResolvedOverTime:
    """How values change, for one set of decisions.

    times: (N,) of the nodes, different times in order. node: (T,) of each decision. process: as
    kernels take it. sizes: what each sd is called. known: (P,) numbers of theta that are given, on
    the log scale; NaN where one is inferred.
    """

    part: RandomWalk | MeanReverting
    times: Floats
    node: Ints
    process: PathProcess
    sizes: tuple[str, ...]
    known: Floats

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What is unknown of how values change, in the order of theta.

        Sds and rates that were given are left out.
        """
        coords = {"step": self.sizes}
        return tuple(
            Parameter(name, ("step",), coords)
            for name, at in self.places.items()
            if np.isnan(self.known[at])
        )

    @property
    def places(self) -> dict[str, int]:
        """Where the numbers of each name begin in theta, known ones too."""
        process = self.process
        names = ["stationary_sd" if process.reverts else "drift_sd"]
        names += ["drift_sd_between_sessions"] if process.between else []
        names += ["reversion_rate"] if process.reverts else []
        return {name: i * process.sizes for i, name in enumerate(names)}

    @property
    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with.

        Gaps, kinds of steps, scales of priors, and numbers that were given.
        """
        p = self.process
        flags = [p.sizes, p.between, p.reverts, p.infers_start]
        return (p.gap, p.first, p.crosses, p.size, flags, p.scales, np.nan_to_num(self.known))


def resolve_over_time(
    part: RandomWalk | MeanReverting, decisions: Decisions, prior: ResolvedPrior
) -> ResolvedOverTime:
    """How values change in these decisions.

    Refuses decisions without times, and numbers that do not fit the coefficients.
    """
    if decisions.times is None:
        raise ValueError(
            "values that change need to know when each decision was made: give times=... to "
            'Decisions, or time="column" to the reader; trials in order are times=range(n)'
        )
    # decisions at one time share a node; the path has one value for each node
    # times are sorted here: decisions may come in any order
    times, node = np.unique(decisions.times, return_inverse=True)
    gap = np.diff(times, prepend=times[0])
    # one path, from first to last
    first = np.zeros(len(times), np.bool_)
    first[0] = True
    # what reverts forgets a night by itself: it needs no step between sessions
    between = isinstance(part, RandomWalk) and part.between_sessions is not None
    crosses = _find_crossings(decisions, node, len(times)) if between else np.zeros_like(first)
    size, sizes = _sizes_of_coordinates(decisions, prior, part.shared)
    # a single time has no steps, and any scale does
    span = float(times[-1] - times[0]) or 1.0
    if isinstance(part, RandomWalk):
        # steps add up like their variances: over the whole time the change has the scale
        drift = SCALES.change / np.sqrt(span)
        given = [("sd", part.sd, drift)]
        if between:
            count = max(1, int(crosses.sum()))
            given.append(("between_sessions", part.between_sessions, SCALES.change / count**0.5))
    else:
        given = [("sd", part.sd, SCALES.change), ("rate", part.rate, SCALES.reversions / span)]
    scales, known = [], []
    for what, value, scale in given:
        own_scales, own_known = _scales_and_known(what, value, scale, decisions, sizes)
        scales.append(own_scales)
        known.append(own_known)
    # the sd of the first value, or of the long-run mean, where the prior leaves it open
    infers_start = prior.scale is not None
    if prior.scale is not None:
        scales.append(np.array([prior.scale]))
        known.append(np.array([np.nan]))
    # the long-run mean is the last of theta, and never known
    if isinstance(part, MeanReverting):
        known.append(np.full(len(prior.precision), np.nan))
    process = PathProcess(
        gap.astype(np.float64),
        first,
        crosses,
        size,
        len(sizes),
        between,
        isinstance(part, MeanReverting),
        np.ascontiguousarray(prior.precision),
        infers_start,
        np.concatenate(scales),
        np.zeros(len(times), np.int64),
    )
    return ResolvedOverTime(
        part, times, node.astype(np.int64), process, sizes, np.concatenate(known)
    )


def _find_crossings(decisions: Decisions, node: Ints, count: int) -> Bools:
    """(N,) whether a node is in another session than the one before it."""
    if decisions.sessions is None:
        raise ValueError(
            "steps between sessions need to know the session of each decision: give sessions=... "
            'to Decisions, or session="column" to the reader'
        )
    labels, code = np.unique(decisions.sessions, return_inverse=True)
    # each node has the session of its decisions, on which all of them must agree
    of_node = np.full(count, -1, np.int64)
    of_node[node] = code
    wrong = np.flatnonzero(of_node[node] != code)
    if wrong.size:
        t = int(wrong[0])
        other = labels[of_node[node[t]]]
        raise ValueError(
            f"decision {decisions.ids[t]}: it is of session {labels[code[t]]}, and another at the "
            f"same time of session {other}; one time belongs to one session"
        )
    return np.concatenate([[False], of_node[1:] != of_node[:-1]])


def _sizes_of_coordinates(
    decisions: Decisions, prior: ResolvedPrior, shared: bool
) -> tuple[Ints, tuple[str, ...]]:
    """(D,) which sd moves each free coordinate, and what each sd is called.

    One for each coefficient, or for each block that sums to zero.
    """
    width = prior.basis.shape[1]
    if shared:
        return np.zeros(width, np.int64), ("all",)
    # a basis of a block that sums to zero mixes its coefficients, others have one each
    block = block_of_coefficient(decisions)
    names, size = [], np.empty(width, np.int64)
    for d in range(width):
        touched = np.flatnonzero(np.abs(prior.basis[:, d]) > 0.0)
        # a coordinate of one coefficient is that coefficient; of several, their block
        name = (
            decisions.names[touched[0]]
            if len(touched) == 1
            else decisions.blocks[block[touched[0]]].name
        )
        if name not in names:
            names.append(name)
        size[d] = names.index(name)
    return size, tuple(names)


def _scales_and_known(
    what: str, given: Sd, default: float, decisions: Decisions, sizes: tuple[str, ...]
) -> tuple[Floats, Floats]:
    """(J,) the scales of priors, zero where numbers are known, and these on the log scale."""
    count = len(sizes)
    if given is None or isinstance(given, HalfStudentT):
        scale = default if given is None else given.scale
        return np.full(count, float(scale)), np.full(count, np.nan)
    # one number stands for all
    numbers = np.atleast_1d(np.asarray(given, np.float64))
    if numbers.size not in (1, count):
        raise ValueError(
            f"{what} has {numbers.size} numbers, and {count} are needed, for "
            f"{', '.join(sizes[:8])}; give one, or one for each"
        )
    return np.zeros(count), np.log(np.broadcast_to(numbers, (count,)))
