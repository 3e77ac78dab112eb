"""Two samplers of paths that share no line agree: "state-space" and the paper's "da".

Means and sds of values at all times, of sizes of steps and of what else is inferred, within the
Monte-Carlo errors of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.diagnostics import mcse_mean, mcse_sd, standard_deviation
from revealed.samplers import coarse_paths
from revealed.samplers.coarse_paths import CoarseSettings
from tests.support.cases import mdp_offers
from tests.support.statistical_asserts import assert_scores, must_fail

# the log of a size near zero has a long tail, in which few draws are effective
DRAWS = {"state-space": 2_000, "da": 3_000}
HALF_T = rv.HalfStudentT(scale=0.7)


def seen(way: str) -> tuple[Decisions, Any]:
    """Choices at many times, and how values move."""
    rng = np.random.default_rng(11)
    if way == "states":
        offers = mdp_offers(4, 3, 60, seed=2)
        times, sessions = np.repeat(np.arange(15.0), 4), None
        over_time: Any = rv.RandomWalk(HALF_T)
    else:
        count = 40
        rows = rng.standard_normal((3 * count, 2))
        offers = Decisions(rows, np.arange(0, 3 * count + 1, 3))
        times = np.cumsum(rng.integers(0, 3, count)) / 4.0
        # a session never ends within one time
        sessions = np.where(times < 4.0, "a", "b") if way == "sessions" else None
        over_time = {
            "sessions": rv.RandomWalk(HALF_T, between_sessions=rv.HalfStudentT(scale=1.5)),
            "reverting": rv.MeanReverting(HALF_T, rv.HalfStudentT(scale=0.8)),
        }[way]
    chosen = [rng.integers(0, size) for size in offers.sizes]
    d = Decisions(
        offers.rows, offers.start, chosen, blocks=offers.blocks, times=times, sessions=sessions
    )
    return d, over_time


def quantities(d: Decisions, model: rv.ChoiceModel, sampler: str) -> Floats:
    """(chain, draw, quantities) of a fit."""
    # long-run means and rates mix more slowly
    longer = 4 if isinstance(model.over_time, rv.MeanReverting) else 1
    post = rv.fit(
        d,
        model,
        sampler=sampler,
        draws=longer * DRAWS[sampler],
        chains=2,
        seed=3,
        executor=1,
        progress=False,
    )
    logs = ("drift_sd", "drift_sd_between_sessions", "stationary_sd", "reversion_rate")
    parts = [post.draws["value"].reshape(*post.shape, -1)]
    parts += [np.log(post.draws[name]) for name in logs if name in post.draws]
    if "long_run_mean" in post.draws:
        parts.append(post.draws["long_run_mean"])
    return np.concatenate(parts, axis=2)


def agreement(one: Floats, other: Floats) -> Floats:
    """Differences of means and sds in standard errors of both."""
    found = []
    for statistic, error in (
        (lambda x: x.mean(axis=(0, 1)), mcse_mean),
        (standard_deviation, mcse_sd),
    ):
        found.append((statistic(one) - statistic(other)) / np.hypot(error(one), error(other)))
    return np.concatenate(found)


@pytest.mark.proves(model="values that change, normal noise", sampler="da", check="agreement")
@pytest.mark.parametrize(
    "way",
    [
        "sessions",
        pytest.param("states", marks=pytest.mark.slow),
        pytest.param("reverting", marks=pytest.mark.slow),
    ],
)
def test_both_samplers_agree(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    d, over_time = seen(way)
    model = rv.ChoiceModel(prior=rv.Normal(1.5), over_time=over_time)
    one, other = (quantities(d, model, sampler) for sampler in DRAWS)
    assert_scores(agreement(one, other), false_alarm=1e-6, degrees=np.inf, how="agreement")
    if way == "sessions":
        # so few times are not merged for proposals of sizes; here they are, and badly
        coarse = CoarseSettings(longest=8, error=np.inf, fewest=1)
        monkeypatch.setattr(coarse_paths, "COARSE", coarse)
        blocks = quantities(d, model, "state-space")
        assert not np.array_equal(blocks, one)
        assert_scores(agreement(blocks, other), false_alarm=1e-6, degrees=np.inf, how="agreement")
        with must_fail("a step between sessions taken for any other"):
            plain = model.replace(over_time=rv.RandomWalk(HALF_T))
            wrong = quantities(d, plain, "da")
            shared = [*range(wrong.shape[2])]
            assert_scores(
                agreement(one[:, :, shared], wrong),
                false_alarm=1e-6,
                degrees=np.inf,
                how="agreement",
            )
