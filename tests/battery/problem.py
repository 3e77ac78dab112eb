"""What a problem of the battery is, and how its draws are compared with the exact posterior.

Every fit is one check with a false-alarm rate of ALARM, shared by all means, sds and tails of it;
there are fewer than two hundred fits, so that all together raise a false alarm less than once in
five thousand times. Seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.battery.oracles import Exact, Floats
from tests.support.statistical_asserts import assert_scores, z_of_mean

ALARM = 1e-6
# Draws and chains by which an error of a twentieth of an sd is seen. Standard errors are those of
# 50 batches. These must be longer than chains remember: the paper's samplers remember long;
# particles of one chain are not independent at all, so that each chain is a batch.
SETTINGS: dict[str, dict[str, int]] = {
    "auto": {"draws": 4000},
    "composite": {"draws": 4000},
    "laplace": {"draws": 4000},
    "da": {"draws": 20_000},
    "px-scale": {"draws": 20_000},
    "px-translate": {"draws": 20_000},
    "px-both": {"draws": 20_000},
    "ibis": {"draws": 500, "chains": 50},
}


def values(draws: dict[str, Any]) -> Floats:
    """(chain, draw, K) all coefficients."""
    return np.asarray(draws["value"])


@dataclass(frozen=True, eq=False)
class Problem:
    """Data and a model, with the exact posterior of some columns of its draws.

    columns: what of the draws is compared, (chain, draw, D). unit: what it is divided by before
    that. samplers: those that are tried; slow ones of them, and of a slow problem all, only with
    --slow. warns: the classes of warnings that come, no more and no fewer. refused: a part of the
    sentence, where there is no posterior. unconverged: samplers that mix too slowly for it, and
    have to say so. settings: of the run, beyond those of the sampler.
    """

    name: str
    kind: str
    data: Callable[[], Any]
    model: Any
    exact: Callable[[], Exact | tuple[Floats, Floats]] | None = None
    columns: Callable[[dict[str, Any]], Floats] = values
    unit: Any = 1.0
    samplers: tuple[str, ...] = ("auto",)
    slow: tuple[str, ...] | bool = ()
    warns: tuple[str, ...] = ()
    refused: str = ""
    unconverged: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    def is_slow(self, sampler: str) -> bool:
        """Whether this pair is only tried with --slow."""
        return self.slow if isinstance(self.slow, bool) else sampler in self.slow

    def run(self, sampler: str) -> dict[str, Any]:
        """The settings of a fit by this sampler."""
        return {"seed": 1, "sampler": sampler, **SETTINGS.get(sampler, {}), **self.settings}


def assert_exact(found: Floats, exact: Exact | tuple[Floats, Floats]) -> None:
    """Means, sds and tails of columns (chain, draw, D) agree within Monte-Carlo error."""
    mean, sd = (exact.mean, exact.sd) if isinstance(exact, Exact) else exact
    assert found.shape[-1] == len(mean), "as many columns as the oracle has"
    scores, errors = [], []
    for k in range(len(mean)):
        column = found[..., k]
        scores += [z_of_mean(column, mean[k]), z_of_mean((column - mean[k]) ** 2, sd[k] ** 2)]
        errors.append(abs(column.mean() - mean[k]) / sd[k])
        if isinstance(exact, Exact):
            for threshold, probability in exact.tails(k):
                scores.append(z_of_mean(column <= threshold, probability))
    rounded = [round(float(each), 1) for each in scores]
    assert_scores(
        scores,
        false_alarm=ALARM,
        what=f"mean, sd and tails of each column, in standard errors: {rounded}",
        error=float(max(errors)),
    )
