"""Checks that state their false-alarm rate, and take their error from the draws themselves.

What a check measures it also writes down, whether it is right or not: the certificate is made of
that.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed
from revealed._types import Floats
from revealed.kernels._compile import CACHE_FOLDER

BATCHES = 50
MEASURED: list[dict[str, Any]] = []
"""What the running test has measured so far; conftest.py empties it before a test."""
OBJECTIONS: list[list[dict[str, Any]]] = []
"""Within `must_fail`, what was objected to: the last list."""


class OutsideTolerance(AssertionError):
    """Something was measured that lies further off than chance, or the tolerance, allows."""


def record_check(right: bool, sentence: str, **measured: Any) -> None:
    """Write down what was measured, and object if it is not right."""
    MEASURED.append(measured)
    if not right and OBJECTIONS:
        OBJECTIONS[-1].append(measured)
    elif not right:
        raise OutsideTolerance(sentence)


def z_of_mean(draws: Any, truth: float) -> float:
    """How many standard errors the mean lies from the truth, by 50 batch means.

    Its law is Student's t with 49 degrees of freedom.
    """
    flat = np.asarray(draws, dtype=np.float64).ravel()
    size = flat.size // BATCHES
    means = flat[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return float((means.mean() - truth) / (means.std(ddof=1) / np.sqrt(BATCHES)))


def assert_scores(
    scores: Any,
    false_alarm: float = 1e-6,
    degrees: float = BATCHES - 1,
    how: str = "oracle",
    what: str = "furthest",
    **more: Any,
) -> None:
    """Errors in standard errors, Student's t with so many degrees, are such as chance gives.

    The false-alarm rate is of all together.
    """
    z = np.ravel(scores)
    limit = float(st.t.isf(false_alarm / 2 / z.size, degrees))
    worst = float(np.abs(z).max())
    record_check(
        bool(worst < limit),
        f"{what}: {worst:.1f} standard errors off, where {limit:.1f} are allowed",
        how=how,
        z=[round(float(each), 2) for each in z],
        limit=round(limit, 2),
        alarm=false_alarm,
        degrees=None if math.isinf(degrees) else degrees,
        **more,
    )


def assert_mean(draws: Any, truth: float, false_alarm: float = 1e-6, how: str = "oracle") -> None:
    """The draws' mean agrees with the truth within Monte-Carlo error."""
    mean, sd = float(np.mean(draws)), float(np.std(draws))
    error = abs(mean - truth) / sd if sd > 0 else None
    what = f"mean {mean:.5f}, should be {truth:.5f}"
    assert_scores(z_of_mean(draws, truth), false_alarm, how=how, what=what, error=error)


def assert_sd(draws: Any, mean: float, sd: float, false_alarm: float = 1e-6) -> None:
    """The draws' spread about the true mean agrees with the true sd within Monte-Carlo error."""
    squares = (np.asarray(draws) - mean) ** 2
    found = float(np.sqrt(squares.mean()))
    assert_scores(
        z_of_mean(squares, sd**2),
        false_alarm,
        what=f"sd {found:.5f}, should be {sd:.5f}",
        error=abs(found / sd - 1.0),
    )


def assert_uniform_ranks(ranks: Any, highest: int, false_alarm: float = 1e-6) -> None:
    """Ranks 0..highest of the truth among the draws are uniform: chi-squared over up to 16 bins.

    A matrix of ranks has a column for each quantity, and the false-alarm rate is of all together.
    """
    bins = min(16, highest + 1)
    assert (highest + 1) % bins == 0, "the ranks must fall into equal bins"
    columns = np.asarray(ranks).reshape(len(ranks), -1).T * bins // (highest + 1)
    counts = np.array([np.bincount(column, minlength=bins) for column in columns])
    p = st.chisquare(counts, axis=1).pvalue
    worst = int(p.argmin())
    record_check(
        bool(p[worst] > false_alarm / len(p)),
        f"ranks are not uniform: p = {p[worst]:.1e}, counts {counts[worst]}",
        how="calibration",
        counts=counts.tolist(),
        p=[float(f"{each:.3g}") for each in p],
        limit=false_alarm / len(p),
        alarm=false_alarm,
    )


def assert_law(cdf_of_draws: Any, false_alarm: float = 1e-6) -> None:
    """The distribution function of a law is uniform over its draws: Kolmogorov and Smirnov."""
    p = float(st.kstest(np.ravel(cdf_of_draws), "uniform").pvalue)
    record_check(
        p > false_alarm,
        f"draws do not have their law: p = {p:.1e}",
        how="law",
        p=[p],
        limit=false_alarm,
        alarm=false_alarm,
    )


def assert_error(errors: Any, tolerance: float) -> None:
    """Errors against something exact are below the tolerance; nothing here is left to chance."""
    each = np.abs(np.ravel(errors))
    worst = float(each.max())
    record_check(
        bool(worst < tolerance),
        f"wrong by {worst:.2g}, where {tolerance:.2g} is allowed",
        how="error",
        error=worst,
        limit=tolerance,
        count=each.size,
    )


def assert_same(found: Any, other: Any) -> None:
    """Equal to the last bit."""
    same = np.array_equal(found, other)
    record_check(same, "not the same to the last bit", how="same", count=int(np.size(found)))


@contextmanager
def must_fail(mutant: str, **about: str) -> Iterator[None]:
    """The checks inside are made of something wrong on purpose: one must object, or this does.

    All of them are made, and what they measured is no evidence of the right thing. about: model or
    sampler, where the test's mark does not say them.
    """
    before = len(MEASURED)
    OBJECTIONS.append([])
    try:
        yield
    finally:
        found = OBJECTIONS.pop()
    if not found:
        pytest.fail(f"the mutant '{mutant}' passes for a right sampler")
    MEASURED[before:] = [{"how": "mutant", "mutant": mutant, "by": found, **about}]


def patched_package(
    tmp_path: Path, file: str, old: str, new: str, keep: bool = False
) -> ModuleType:
    """The package with one text replaced, imported under another name, to be wrong on purpose.

    keep: whether its machine code is kept for the next run with the same sources, where the
    package keeps its own; else it goes with the test's folder.
    """
    name = f"mutant_{zlib.crc32(repr((file, old, new)).encode())}"
    root = Path(revealed.__file__).parent
    texts = {
        path.relative_to(root): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }
    count = texts[Path(file)].count(old)
    if count != 1:
        pytest.fail(
            f"the mutant's text must be in {file} exactly once; it is there {count} times: {old!r}"
        )
    texts[Path(file)] = texts[Path(file)].replace(old, new)
    folder = _kept_folder(repr(texts)) if keep else tmp_path
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:
            for path, text in texts.items():
                copy = Path(unfinished) / name / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text.replace("from revealed", f"from {name}"), encoding="utf-8")
            # whole at once, unless another worker was first
            with suppress(OSError):
                (Path(unfinished) / name).rename(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("NUMBA_CACHE_DIR", str(folder))  # its machine code goes with it
        return importlib.import_module(name)


def _kept_folder(texts: str) -> Path:
    """Where the machine code of a mutant with these sources is kept."""
    digest = hashlib.sha256(texts.encode()).hexdigest()[:16]
    return Path(CACHE_FOLDER).parent / "mutants" / digest


def patched_source(module: ModuleType, old: str, new: str) -> ModuleType:
    """One module with one text replaced, the rest of the package as it is.

    Quick where only Python changes.
    """
    text = inspect.getsource(module)
    if text.count(old) != 1:
        pytest.fail(f"the mutant's text must be in {module.__name__} exactly once: {old!r}")
    made = ModuleType(f"{module.__name__}_changed")
    sys.modules[made.__name__] = made  # dataclasses look themselves up there
    exec(compile(text.replace(old, new), made.__name__, "exec"), vars(made))
    return made


def grid_moments(points: Floats, log_density: Floats) -> tuple[Floats, Floats]:
    """Mean and sd of each column of points (n, D) under weights exp(log_density), on a grid."""
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ points
    return mean, np.sqrt(weight @ (points - mean) ** 2)
