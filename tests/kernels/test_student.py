"""Student noise against closed forms and double integrals by SciPy; far tails; slopes; limits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate as si
import scipy.stats as st
from scipy.special import digamma as exact_digamma
from scipy.special import log_ndtr

import revealed as rv
from revealed._types import Floats
from revealed.models.likelihood import weighted_derivatives
from revealed.samplers.chunk_likelihood import prepare, values_and_gradients
from tests.support.statistical_asserts import (
    assert_error,
    assert_scores,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="choices, Student noise")

DFS = (1.0, 1.5, 2.0, 4.0, 8.0, 30.0, 200.0)
GAPS = (-30.0, -10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0, 20.0, 50.0)


def one_decision(gaps: Any) -> rv.Decisions:
    """The first action was chosen, and rivals lead it by these gaps."""
    rows = np.append(0.0, gaps)[:, None]
    return rv.Decisions(rows, [0, len(rows)], [0])


def fast_log_probability(noise: rv.StudentNoise, gaps: Any) -> float:
    """Log P by the rule of samplers."""
    prepared = prepare(one_decision(gaps), np.ones(1))
    return float(values_and_gradients(prepared, np.ones((1, 1)), noise.law())[0, 0])


def by_double_integral(gaps: Floats, df: float) -> float:
    """Log P by SciPy's adaptive rule, over z and over log s, around where the integrand is."""
    best = max(float(gaps.max()), 0.0)

    def log_p_normal(gaps: Floats) -> float:
        # the log-integrand over z is concave; its largest value is taken out
        z = np.linspace(min(0.0, gaps.min()) - 12.0, max(0.0, gaps.max()) + 12.0, 4001)
        logs = st.norm.logpdf(z) + log_ndtr(z[:, None] - gaps).sum(axis=1)
        return float(logs.max() + np.log(np.trapezoid(np.exp(logs - logs.max()), z)))

    def log_term(t: float) -> float:
        log_density = np.log(2.0) + st.invgamma(df / 2, scale=df / 2).logpdf(np.exp(2 * t)) + 2 * t
        return float(log_density) + log_p_normal(gaps * np.exp(-t))

    t = np.linspace(-2.0, np.log1p(best) + 25.0 / df + 2.0, 400)
    top = max(log_term(each) for each in t)
    area = si.quad(
        lambda t: np.exp(log_term(t) - top), t[0], t[-1], epsabs=1e-9, epsrel=1e-9, limit=200
    )[0]
    return float(top + np.log(area))


@pytest.mark.parametrize("df", DFS)
def test_two_actions_differ_by_student_noise_however_far_behind_the_chosen_one_is(
    df: float,
) -> None:
    for gap in (*GAPS, 1e3, 1e6):
        exact = st.t.logcdf(-gap / np.sqrt(2.0), df)
        if not np.isfinite(exact):  # where SciPy's own digits end
            continue
        found = rv.log_likelihood(one_decision([gap]), [1.0], rv.StudentNoise(df))[0]
        assert_error((found - exact) / max(1.0, abs(exact)), 2e-9)
        # as the module says of the rule of samplers
        assert_error(fast_log_probability(rv.StudentNoise(df), [gap]) - exact, 5e-4)


@pytest.mark.parametrize("gaps", [[0.5, -0.5], [3.0, 2.0, -7.0], [12.0, -1.0], [-2.0] * 6], ids=str)
@pytest.mark.parametrize("df", [1.0, 4.0, 50.0])
def test_log_probabilities_are_double_integrals(df: float, gaps: list[float]) -> None:
    exact = by_double_integral(np.array(gaps), df)
    found = rv.log_likelihood(one_decision(gaps), [1.0], rv.StudentNoise(df))[0]
    assert_error(found - exact, 1e-7)
    assert_error(fast_log_probability(rv.StudentNoise(df), gaps) - exact, 3e-4)


def test_a_density_of_scales_that_is_not_normalised_is_caught(tmp_path: Path) -> None:
    wrong = patched_package(
        tmp_path, "kernels/student.py", "- math.lgamma(half)", "- math.lgamma(half + 0.1)"
    )
    found = wrong.log_likelihood(
        wrong.Decisions([[0.0], [1.0]], [0, 2], [0]), [1.0], wrong.StudentNoise(4.0)
    )
    with must_fail("a density of scales that does not integrate to one"):
        assert_error(found - st.t.logcdf(-1.0 / np.sqrt(2.0), 4.0), 2e-9)
    del sys.modules[wrong.__name__]


@pytest.mark.parametrize("rivals", [1, 3, 20, 100])
def test_the_rule_of_samplers_is_as_exact_as_its_module_says(rivals: int) -> None:
    rng = np.random.default_rng(rivals)
    for df in DFS:
        for gap in GAPS:
            for gaps in (np.full(rivals, gap), gap - np.abs(rng.normal(0.0, 3.0, rivals))):
                exact = rv.log_likelihood(one_decision(gaps), [1.0], rv.StudentNoise(df))[0]
                found = fast_log_probability(rv.StudentNoise(df), gaps)
                assert_error(found - exact, 5e-4 if df < 4.0 else 1e-4)


def decisions() -> tuple[rv.Decisions, Floats]:
    """Ragged decisions with equal rows and decisions, some against all utilities; weights."""
    rng = np.random.default_rng(3)
    sizes = np.append(rng.integers(2, 7, 25), 1)
    rows = np.round(rng.normal(0.0, 2.0, (sizes.sum(), 2)), 1)
    rows[1] = rows[0]
    d = rv.Decisions(rows, np.append(0, np.cumsum(sizes)), rng.integers(0, sizes))
    return d + d[:5], rng.integers(1, 4, 31).astype(float)


@pytest.mark.parametrize("lapse", [None, rv.Lapse()], ids=["no lapse", "lapses"])
@pytest.mark.parametrize("df", [3.0, rv.Gamma(2.0, 0.4)], ids=["df known", "df inferred"])
def test_slopes_are_those_of_the_sum_also_in_df(df: Any, lapse: rv.Lapse | None) -> None:
    seen, weight = decisions()
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.StudentNoise(df, lapse=lapse))
    resolved = model.resolve(seen)
    d, kernel = resolved.sampled_decisions, resolved.kernel
    x = np.array([0.9, -0.6, 0.4, -0.3])[: len(d.names)]

    def exact(at: Floats) -> float:
        named: dict[str, Any] = {}
        if len(at) > 2:
            from revealed.models.noise_draws import name_noise

            named = name_noise(kernel, at[2:])
        noise: Any = rv.StudentNoise(float(named.get("df", 3.0)))
        noise = noise if lapse is None else rv.KnownLapse(noise, float(named["lapse"]))
        return float(weight @ rv.log_likelihood(seen, at[:2], noise))

    gradient, information = weighted_derivatives(d, x, weight, kernel)
    steps = 1e-4 * np.eye(len(x))
    numeric = np.array([(exact(x + s) - exact(x - s)) / 2e-4 for s in steps])
    assert_error((gradient - numeric) / (1.0 + abs(numeric)), 1e-6)
    found = values_and_gradients(prepare(d, weight), x[None], kernel)[0]
    assert_error(found[0] - exact(x), 1e-3)
    assert_error((found[1:] - numeric) / (1.0 + abs(numeric)), 1e-3)
    high, low = (
        [weighted_derivatives(d, x + h * s, weight, kernel)[0] for s in steps] for h in (1, -1)
    )
    curved = (np.array(low) - np.array(high)) / 2e-4
    # by the nodes of samplers, which are enough for Newton steps
    assert_error((information - curved) / (1.0 + abs(curved)), 2e-3)
    if isinstance(df, rv.Gamma):
        # the coordinate of df comes right behind the value
        without = np.where(np.arange(len(x)) == 2, 0.0, found[1:])
        with must_fail("no slope in df"):
            assert_error((without - numeric) / (1.0 + abs(numeric)), 1e-3)


def test_many_degrees_of_freedom_are_normal_noise() -> None:
    d, _ = decisions()
    v = np.array([0.9, -0.6])
    normal = rv.log_likelihood(d, v)
    # log P differs by terms of order 1 / df
    for df in (1e4, 1e6):
        assert_error(
            (rv.log_likelihood(d, v, rv.StudentNoise(df)) - normal) / (1.0 + normal**2), 2.0 / df
        )
    with must_fail("ten degrees of freedom"):
        assert_error(rv.log_likelihood(d, v, rv.StudentNoise(10.0)) - normal, 1e-3)


def test_digamma_is_the_slope_of_log_gamma() -> None:
    from revealed.kernels.student import digamma

    x = np.geomspace(0.5, 1e6, 40)
    found = np.array([digamma.py_func(each) for each in x])  # type: ignore[attr-defined]
    assert_error((found - exact_digamma(x)) / (1.0 + abs(exact_digamma(x))), 1e-11)


def test_actions_of_a_decision_share_their_scale() -> None:
    """Frequencies of simulated choices are the probabilities; with a scale for each action not."""
    rng, count = np.random.default_rng(1), 200_000
    utilities, df = np.array([2.0, 0.0, -1.0]), 1.5
    exact = rv.choice_probabilities(
        rv.Decisions(utilities[:, None], [0, 3]), [1.0], rv.StudentNoise(df)
    )

    def assert_frequencies(noise: Floats) -> None:
        best = np.argmax(utilities + noise, axis=1)
        share = np.bincount(best, minlength=3) / count
        error = np.sqrt(exact * (1.0 - exact) / count)
        assert_scores((share - exact) / error, false_alarm=1e-6)

    decision = np.zeros(3, np.int64)
    noise = rv.StudentNoise(df).sample_decisions(rng, (count, 3), decision, np.arange(count))
    assert_frequencies(noise)
    with must_fail("a scale for each action"):
        assert_frequencies(rng.standard_t(df, (count, 3)))
