"""Checks of what callers give, written once: counts, positive and finite numbers, seeds, paths.

Every check returns what it checked, in the type that the code inside works with, and otherwise
raises a `ValueError` whose one sentence names the argument, its value and what would be right. This
module imports numpy only, so that every other module of the package may use it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats

Seed = int | np.random.Generator | None
"""What public functions take for randomness: a whole number, a numpy Generator, or None."""


def check_count(what: str, number: Any, least: int = 1) -> int:
    """A whole number that is at least `least`, as an int.

    `what` is the name of the argument, for the message. NumPy's whole numbers count as such; floats
    do not, not even 3.0: they are nearly always a mistake in the caller's arithmetic.
    """
    if not isinstance(number, int | np.integer) or number < least:
        raise ValueError(f"{what} must be a whole number, at least {least}; it is {number!r}")
    return int(number)


def check_counts(**counts: Any) -> None:
    """Check the counts of a run by their names: draws, warmup, chains, thin, executor, seed.

    Warm-up and seed may be zero, all others are at least one. None is allowed for warm-up and
    seed, where it leaves the choice to the package; a seed may also be a numpy Generator.
    """
    for what, number in counts.items():
        # A Generator is a seed in itself, and no number.
        if what == "seed" and isinstance(number, np.random.Generator):
            continue
        if number is None and what in ("warmup", "seed"):
            continue
        check_count(what, number, least=0 if what in ("warmup", "seed") else 1)


class NumberLimits(NamedTuple):
    """largest: of features and prior sds, and one over it the smallest sd.

    Squares of larger numbers, summed over all rows and times a prior variance, would be infinite.
    """

    largest: float = 1e100


NUMBERS = NumberLimits()


def check_positive(what: str, number: Any) -> float:
    """A positive and finite number, as a float."""
    # NaN fails both comparisons, so it needs no test of its own.
    if not isinstance(number, int | float | np.number) or not 0.0 < number < np.inf:
        raise ValueError(f"{what} must be a positive number; it is {number!r}")
    return float(number)


def check_finite(what: str, numbers: Floats) -> Floats:
    """An array of any shape whose numbers are all finite: none is NaN or infinite."""
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what} holds a NaN or infinite number; all must be finite")
    return numbers


def check_writable(path: Path) -> None:
    """Check that a file can be written: its folder exists and may be written into.

    Worth asking before hours of work. It is no promise: the disk may still be full at the end.
    """
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the name of a file to write")
    if not os.path.isdir(path.parent):
        raise ValueError(
            f"there is no folder {path.parent} to write {path.name} into; make it first"
        )
    # Writing a file needs the right to list and to change its folder.
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: the folder {path.parent} is not writable")


def as_generator(seed: Seed) -> np.random.Generator:
    """The generator that a seed stands for: a Generator is itself, a number starts a new one.

    The same number gives the same draws; None takes fresh randomness from the operating system. A
    Generator is used, not copied, so that calls which share one go on where the last one stopped.
    """
    # Not copied: two calls with one Generator must not give the same draws.
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(None if seed is None else _check_seed(seed))


def as_seed_number(seed: Seed) -> int:
    """The whole number that starts a run and is recorded with its result.

    A number is itself. None and a Generator give a number of 32 random bits: from the operating
    system, or the next one of the Generator, so that the run can be repeated from its record.
    """
    if seed is None:
        # Recorded with the result, so that even an unseeded run can be repeated.
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**32))
    return _check_seed(seed)


def _check_seed(seed: Any) -> int:
    """A seed that is a number: whole, and not negative."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(
            "seed must be a whole number, at least 0, or a numpy Generator, "
            f"such as numpy.random.default_rng(0); it is {seed!r}"
        )
    return int(seed)
