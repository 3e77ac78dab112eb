"""The default prior judged again under logit noise, on the real problems of `default_prior`.

The same six priors, splits, numbers of decisions and rule; the model has `LogitNoise()`, in whose
units coefficients are about a third larger. Simulated problems are left out: their choices were
made with normal noise.
"""

from __future__ import annotations

import revealed as rv
from benchmarks._prior_problems import problems
from benchmarks._record import Benchmark, Option, Result
from benchmarks.default_prior import compare_priors, finding, tables


def measure(splits: int, only: str) -> Result:
    """Every prior on every split of every real problem whose file is here."""
    real = [problem for problem in problems() if problem.file]
    return compare_priors(real, splits, only, rv.LogitNoise())


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="The default prior under logit noise",
    takes="15 minutes",
    options={
        "splits": Option(3, "at most so many splits of each problem", quick=1),
        "only": Option("", "problems with this in their name", quick="travel"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
)
