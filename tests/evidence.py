"""Tolerances as sentences: each check states its false-alarm rate and takes its error from the draws themselves."""

from __future__ import annotations

import importlib
import inspect
import shutil
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import understudy
from understudy._arrays import Floats

BATCHES = 50


def z_of_mean(draws: Any, truth: float) -> float:
    """How many standard errors the mean lies from the truth, by 50 batch means: Student's t with 49 degrees."""
    flat = np.asarray(draws, dtype=np.float64).ravel()
    size = flat.size // BATCHES
    means = flat[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return float((means.mean() - truth) / (means.std(ddof=1) / np.sqrt(BATCHES)))


def limit(false_alarm: float) -> float:
    """The |z| that a right answer passes with probability `false_alarm`."""
    return float(st.t.isf(false_alarm / 2, BATCHES - 1))


def assert_mean(draws: Any, truth: float, false_alarm: float = 1e-6) -> None:
    """The draws' mean agrees with the truth within Monte-Carlo error."""
    z = z_of_mean(draws, truth)
    assert abs(z) < limit(false_alarm), f"mean {np.mean(draws):.5f}, should be {truth:.5f}: {z:.1f} standard errors off"


def assert_sd(draws: Any, mean: float, sd: float, false_alarm: float = 1e-6) -> None:
    """The draws' spread about the true mean agrees with the true sd within Monte-Carlo error."""
    squares = (np.asarray(draws) - mean) ** 2
    z = z_of_mean(squares, sd**2)
    assert abs(z) < limit(false_alarm), (
        f"sd {np.sqrt(squares.mean()):.5f}, should be {sd:.5f}: {z:.1f} standard errors off"
    )


def assert_uniform_ranks(ranks: Any, highest: int, false_alarm: float = 1e-6) -> None:
    """Ranks 0..highest of the truth among the draws are uniform, by a chi-squared test over 16 or so bins."""
    bins = min(16, highest + 1)
    assert (highest + 1) % bins == 0, "the ranks must fall into equal bins"
    counts = np.bincount(np.asarray(ranks) * bins // (highest + 1), minlength=bins)
    p = float(st.chisquare(counts).pvalue)
    assert p > false_alarm, f"ranks are not uniform: p = {p:.1e}, counts {counts}"


def assert_calibrated(ranks: Any, highest: int, false_alarm: float = 1e-6) -> None:
    """Every column of (replications, quantities) ranks is uniform; the false-alarm rate is that of all together."""
    for each in ranks.T:
        assert_uniform_ranks(each, highest, false_alarm / ranks.shape[1])


def mutant(tmp_path: Path, file: str, old: str, new: str) -> ModuleType:
    """The package with one text replaced, imported under another name: a sampler that is wrong on purpose."""
    name = f"mutant_{zlib.crc32(repr((file, old, new)).encode())}"
    source = Path(understudy.__file__).parent
    copy = tmp_path / name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("*.py"):
        path.write_text(path.read_text().replace("from understudy", f"from {name}"))
    path = copy / file
    text = path.read_text()
    if text.count(old) != 1:
        pytest.fail(
            f"the mutation's text must stand exactly once in {file}; it stands {text.count(old)} times: {old!r}"
        )
    path.write_text(text.replace(old, new))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # its machine code goes with it
        return importlib.import_module(name)


def changed(module: ModuleType, old: str, new: str) -> ModuleType:
    """One module with one text replaced, the rest of the package as it is: quick where only Python changes."""
    text = inspect.getsource(module)
    if text.count(old) != 1:
        pytest.fail(f"the mutation's text must stand exactly once in {module.__name__}: {old!r}")
    made = ModuleType(f"{module.__name__}_changed")
    sys.modules[made.__name__] = made  # dataclasses look themselves up there
    exec(compile(text.replace(old, new), made.__name__, "exec"), vars(made))
    return made


def grid_moments(points: Floats, log_density: Floats) -> tuple[Floats, Floats]:
    """Mean and sd of each column of points (n, D) under weights exp(log_density), for an even grid."""
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ points
    return mean, np.sqrt(weight @ (points - mean) ** 2)
