"""Which law the noise of utilities has: something that loops are compiled for.

The controller takes the best of utilities with noise, and a choice is known by its rivals' utility
gaps, rival minus chosen. All that a loop needs of a noise is a formula: log P of one decision from
its gaps, and the slopes of it. The formula is chosen when the loop is compiled, by the type of an
argument without contents: a tag that has the noise's name and a digest of the formula.

- The type is part of the signature under which machine code is kept. Noises do not get in one
  another's way, a second process finds what the first one compiled, and a formula that was edited
  has another type, and so code of its own, at once.
- Types are read back by any process that looks into the folder of machine code. Ours is made of two
  strings, which needs no module but this one: not the one that has the formula. (A function as an
  argument would be compiled afresh by every process.)

Normal noise has no formula, but loops of its own (`choice_fast.py`, `choice_exact.py`), and None
for a tag: that is recognised fastest when a loop is called.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import CodeType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from revealed._types import Floats, Ints
from revealed.kernels import logit, student
from revealed.kernels._compile import NO_WRAPPERS, compile_formula, compiled_within
from revealed.kernels.habit import UNIFORM, HabitIndex

LogProbability = Callable[[Floats, Floats, Floats], float]
Curvature = Callable[[Floats, Floats, Floats], None]


@dataclass(frozen=True, eq=False)
class NoiseKind:
    """The formula of a noise, and what tells it from all others.

    log_probability(gaps, parameters, slopes): log P of a choice against rivals with gaps (n,);
    d log P / d gap goes into slopes (n,), unless that is empty. curvature(gaps, parameters,
    hessian): writes the second derivatives (n, n); None where there is no such formula.
    log_concave: whether log P is concave in the gaps. digest: of both (`formula_digest`).
    """

    name: str
    digest: str
    log_concave: bool
    log_probability: LogProbability
    curvature: Curvature | None

    @property
    def is_logit(self) -> bool:
        """Whether it is logit noise, which has loops of its own (`choice_logit.py`)."""
        return self.log_probability is logit.log_probability

    @property
    def is_student(self) -> bool:
        """Whether it is Student noise, which has loops of its own (`choice_student.py`)."""
        return self.log_probability is student.log_probability


# Of a noise without coordinates. Loops are compiled for its type, whatever its size is.
NO_TABLE = np.empty((2, 0))


class NoiseArguments(NamedTuple):
    """A noise as loops take it.

    kind: None for normal noise. parameters: (p,) the numbers that its formula has, such as degrees
    of freedom. table: (2, n) from the coordinate of one that is not known to its logarithm
    (`coordinate_table.py`); (2, 0) where all are known.
    """

    kind: NoiseKind | None
    parameters: Floats
    table: Floats = NO_TABLE

    @property
    def is_normal(self) -> bool:
        """Whether the noise of every action is standard normal and independent."""
        return self.kind is None

    @property
    def is_logit(self) -> bool:
        """Whether choices follow the logit model."""
        return self.kind is not None and self.kind.is_logit

    @property
    def is_student(self) -> bool:
        """Whether each decision has a scale of its own."""
        return self.kind is not None and self.kind.is_student

    @property
    def is_log_concave(self) -> bool:
        """Whether log P is concave in the utilities, so that its only maximum is the mode."""
        return self.kind is None or self.kind.log_concave


NORMAL = NoiseArguments(None, np.empty(0))
"""Independent standard normal noise."""


class LapseArguments(NamedTuple):
    """A noise with lapses, as loops take it (`lapse.py`).

    noise: of choices that are no lapses. table: (2, n) from the coordinate to the log odds of the
    rate. coordinates: of the lapses alone, one for the rate and one for each label of habits; 0
    where these are known. log_odds: of the known rate. habit: what lapses choose.
    """

    noise: NoiseArguments
    table: Floats
    coordinates: int = 1
    log_odds: float = 0.0
    habit: HabitIndex = UNIFORM

    @property
    def is_normal(self) -> bool:
        """Whether there is nothing but standard normal noise: never."""
        return False

    @property
    def is_logit(self) -> bool:
        """Whether choices follow the logit model: never."""
        return False

    @property
    def is_log_concave(self) -> bool:
        """Whether log P is concave: never, as it is bounded below."""
        return False

    @property
    def log_attends(self) -> float:
        """The logarithm of one minus the rate."""
        return -float(np.logaddexp(0.0, self.log_odds))

    @property
    def log_rate(self) -> float:
        """The logarithm of the rate."""
        return -float(np.logaddexp(0.0, -self.log_odds))

    @property
    def has_habits(self) -> bool:
        """Whether lapses follow habits; otherwise all actions are alike to them."""
        return self.habit.weights.size > 0

    def log_blind(self, sizes: Ints) -> Floats:
        """(T,) log probability that a lapse chooses as was chosen, in decisions of these sizes."""
        shares = self.habit.shares if self.has_habits else 1.0 / sizes
        return np.asarray(self.log_rate + np.log(shares))


def identify_noise(noise: NoiseArguments | LapseArguments) -> list[Any]:
    """What tells a noise from all others, for fingerprints; nothing for normal noise."""
    if isinstance(noise, LapseArguments):
        of_habits = ["habit"] if noise.has_habits else []
        return [*identify_noise(noise.noise), "lapse", noise.table, *of_habits]
    if noise.kind is None:
        return []
    unknown = [noise.table] if count_coordinates(noise) else []
    return [noise.kind.name, noise.kind.digest, noise.parameters, *unknown]


AnyNoise = NoiseArguments | LapseArguments
"""Noise of independent actions as loops take it."""


def without_lapses(noise: AnyNoise) -> NoiseArguments:
    """The noise of choices that are no lapses."""
    return noise.noise if isinstance(noise, LapseArguments) else noise


def has_lapses(noise: Any) -> bool:
    """Whether a loop is compiled for a noise with lapses, by the type of its argument."""
    return getattr(noise, "instance_class", None) is LapseArguments


def count_coordinates(noise: AnyNoise) -> int:
    """How many coordinates a noise has that is not known; they come after those of the value."""
    if isinstance(noise, LapseArguments):
        return count_coordinates(noise.noise) + noise.coordinates
    return 1 if noise.table.shape[1] > 0 else 0


@overload(count_coordinates, strict=False)  # type: ignore[untyped-decorator]
def _count_coordinates(noise: Any) -> Any:
    def with_lapses(noise: Any) -> int:
        count: int = count_coordinates(noise.noise) + noise.coordinates
        return count

    def without_lapses(noise: Any) -> int:
        return 1 if noise.table.shape[1] > 0 else 0

    if has_lapses(noise):
        return with_lapses
    # normal noise is always known
    return without_lapses if formula_of(noise) else (lambda noise: 0)


@compiled_within
def read_coordinates(v: Floats, utility_gap: Floats, rivals: int) -> None:
    """Write the coordinates of the noise, the last of v, behind the gaps of the rivals."""
    count = utility_gap.size - rivals
    for i in range(count):
        utility_gap[rivals + i] = v[v.size - count + i]


@compiled_within
def read_slopes(slope: Floats, rivals: int, gradient: Floats) -> None:
    """Write the derivatives in the coordinates of the noise where they belong in the gradient."""
    count = slope.size - rivals
    for i in range(count):
        gradient[gradient.size - count + i] = slope[rivals + i]


class NoiseType(types.Type):  # type: ignore[misc]
    """The type of a `NoiseKind`, known by its name and digest alone.

    kinds: those that this process has met, for whoever compiles for their type.
    """

    kinds: ClassVar[dict[NoiseType, NoiseKind]] = {}

    def __init__(self, name: str, digest: str) -> None:
        self.noise_name, self.digest = name, digest
        super().__init__(name=f"Noise({name}, {digest})")


# A tag has no contents: loops never look at it.
register_model(NoiseType)(models.OpaqueModel)


@typeof_impl.register(NoiseKind)  # type: ignore[untyped-decorator]
def _type_of_kind(kind: NoiseKind, context: Any) -> NoiseType:
    """The type of a tag, which remembers the formula."""
    found = NoiseType(kind.name, kind.digest)
    NoiseType.kinds.setdefault(found, kind)
    return found


@unbox(NoiseType)  # type: ignore[untyped-decorator]
def _unbox_kind(type_: NoiseType, kind: Any, context: Any) -> Any:
    """A tag within a loop: nothing."""
    return NativeValue(context.context.get_dummy_value())


@cache
def make_kind(
    name: str,
    log_concave: bool,
    log_probability: LogProbability,
    curvature: Curvature | None,
) -> NoiseKind:
    """The kind of a noise with these formulas."""
    digest = formula_digest(log_probability, curvature)
    return NoiseKind(name, digest, log_concave, log_probability, curvature)


def formula_digest(*formulas: Callable[..., Any] | None) -> str:
    """A digest of what the compiler makes of formulas: their bytecode, and all that it refers to.

    That is, the functions they call by name, and the numbers and arrays outside them, which are
    compiled in.
    """
    digest, found, waiting = hashlib.sha256(), set(), list[Any](formulas)
    while waiting:
        # a function that was compiled by itself has a Python function inside
        thing = waiting.pop()
        thing = getattr(thing, "py_func", thing)
        if inspect.isfunction(thing) and thing not in found:
            found.add(thing)
            digest.update(_describe_code(thing.__code__).encode())
            waiting += [cell.cell_contents for cell in thing.__closure__ or ()]
            waiting += _referred(thing.__code__.co_names, thing.__globals__)
        elif isinstance(thing, np.ndarray):
            digest.update(f"{thing.dtype} {thing.shape}".encode() + thing.tobytes())
        elif isinstance(thing, int | float | complex | str | bytes | tuple):
            digest.update(repr(thing).encode())
    return digest.hexdigest()[:16]


def _describe_code(code: CodeType) -> str:
    """Bytecode with its names and constants, functions inside it too."""
    constants = [_describe_code(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    return repr((code.co_code, code.co_names, constants))


def _referred(names: tuple[str, ...], variables: dict[str, Any]) -> list[Any]:
    """The things of these names among a module's variables, or those of modules that it names."""
    direct = [variables[name] for name in names if name in variables]
    modules = [vars(thing) for thing in direct if inspect.ismodule(thing)]
    return direct + [inside[name] for inside in modules for name in names if name in inside]


def formula_of(noise: Any) -> NoiseKind | None:
    """The formula that a loop is compiled for, by the type of its `NoiseArguments`.

    None for normal noise.
    """
    kind = noise.types[noise.fields.index("kind")]
    return None if isinstance(kind, types.NoneType) else NoiseType.kinds[kind]


# Written into the loops that call them: so machine code of two formulas never shares a name.
overload_within = partial(
    overload,
    strict=False,
    jit_options={"forceinline": True, "error_model": "numpy", **NO_WRAPPERS},
)


def log_probability(noise: NoiseArguments, gaps: Floats, slopes: Floats) -> float:
    """Log P of one decision by the formula of a noise, for loops; slopes as in `NoiseKind`."""
    raise NotImplementedError("only loops call this")


@overload_within(log_probability)  # type: ignore[untyped-decorator]
def _choose_log_probability(noise: Any, gaps: Any, slopes: Any) -> Any:
    kind = formula_of(noise)
    assert kind is not None
    formula: LogProbability = compile_formula(kind.log_probability)

    def call_formula(noise: NoiseArguments, gaps: Floats, slopes: Floats) -> float:
        return formula(gaps, noise.parameters, slopes)

    return call_formula


def write_hessian(noise: NoiseArguments, gaps: Floats, hessian: Floats) -> None:
    """Write the second derivatives (n, n) of log P in the gaps (n,), for loops.

    By the noise's own formula, or by central differences of its slopes. gaps is written to and put
    back.
    """
    raise NotImplementedError("only loops call this")


@overload_within(write_hessian)  # type: ignore[untyped-decorator]
def _choose_hessian(noise: Any, gaps: Any, hessian: Any) -> Any:
    kind = formula_of(noise)
    assert kind is not None
    if kind.curvature is None:
        return _differentiate_slopes
    curvature = compile_formula(kind.curvature)

    def call_curvature(noise: NoiseArguments, gaps: Floats, hessian: Floats) -> None:
        curvature(gaps, noise.parameters, hessian)

    return call_curvature


def _differentiate_slopes(noise: NoiseArguments, gaps: Floats, hessian: Floats) -> None:
    """Central differences of the slopes, made symmetric."""
    # In units of the noise and of 1 + |gap|. The error is a sixth of its square times the slope's
    # third derivative; with a much smaller one the rounding of the formula's integral would count.
    relative_step = 1e-3
    above, below = np.empty(gaps.size), np.empty(gaps.size)
    for j in range(gaps.size):
        gap = gaps[j]
        step = relative_step * (1.0 + abs(gap))
        gaps[j] = gap + step
        log_probability(noise, gaps, above)
        gaps[j] = gap - step
        log_probability(noise, gaps, below)
        gaps[j] = gap
        for k in range(gaps.size):
            hessian[j, k] = (above[k] - below[k]) / (2.0 * step)
    # equal derivatives in either order, whatever rounding says
    for j in range(gaps.size):
        for k in range(j):
            mean = 0.5 * (hessian[j, k] + hessian[k, j])
            hessian[j, k] = hessian[k, j] = mean
