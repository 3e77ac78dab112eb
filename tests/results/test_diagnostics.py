"""Diagnostics agree with ArviZ wherever it has an answer, and have a documented one elsewhere."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from revealed._types import Floats
from revealed.results import diagnostics
from revealed.results.summary import Summary, summarise

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ 0.23 announces 1.0 once a day
    import arviz as az

compared = pytest.mark.skipif(
    "InferenceData" not in vars(az), reason="the numbers are compared with ArviZ 0.23"
)

ALL: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Any]]] = {
    "r_hat": (diagnostics.r_hat, az.rhat),
    "ess_bulk": (diagnostics.ess_bulk, lambda x: az.ess(x, method="bulk")),
    "ess_tail": (diagnostics.ess_tail, lambda x: az.ess(x, method="tail")),
    "ess_mean": (diagnostics.ess_mean, lambda x: az.ess(x, method="mean")),
    "ess_sd": (diagnostics.ess_sd, lambda x: az.ess((x - x.mean()) ** 2, method="bulk")),
    "mcse_mean": (diagnostics.mcse_mean, lambda x: az.mcse(x, method="mean")),
    "mcse_sd": (diagnostics.mcse_sd, lambda x: az.mcse(x, method="sd")),
}


@pytest.fixture(autouse=True)
def quiet_arviz() -> Iterator[None]:
    """ArviZ logs what it cannot do, and its numba path for the sd fails with numpy 2.4."""
    if hasattr(az, "Numba"):
        az.Numba.disable_numba()
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def autoregressive(rho: float, chains: int, draws: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((chains, draws))
    x[:, 0] /= np.sqrt(1.0 - rho**2)
    for t in range(1, draws):
        x[:, t] += rho * x[:, t - 1]
    return x


def one_chain_stuck() -> Floats:
    x = autoregressive(0.3, 4, 400)
    x[2] = 0.25
    return x


CHAINS = {
    "independent": autoregressive(0.0, 4, 1000),
    "sticky": autoregressive(0.95, 4, 1000),
    "never mixes": autoregressive(0.999, 4, 500),
    "antithetic": autoregressive(-0.9, 4, 1000),
    "very antithetic": autoregressive(-0.999, 2, 200),
    "strictly alternating": np.tile([1.0, -1.0], (4, 100)) + 1e-3 * autoregressive(0.0, 4, 200),
    "far apart": autoregressive(0.5, 4, 300) + 3.0 * np.arange(4)[:, None],
    "different spreads": autoregressive(0.5, 4, 300) * np.arange(1, 5)[:, None],
    "drifting": autoregressive(0.5, 4, 300) + np.linspace(0, 5, 300),
    "heavy tails": np.tan(np.pi * (np.random.default_rng(3).random((4, 500)) - 0.5)),
    "many ties": np.round(autoregressive(0.5, 4, 500)),
    "one chain stuck": one_chain_stuck(),
    "odd length": autoregressive(0.7, 3, 333),
    "two chains": autoregressive(0.7, 2, 250),
    "many chains": autoregressive(0.7, 16, 50),
    "far from zero": 1e6 + autoregressive(0.7, 4, 250),
    "tiny": 1e-6 * autoregressive(0.7, 4, 250),
    **{f"{n} draws": autoregressive(0.2, 4, n, seed=n) for n in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13)},
}


@compared
@pytest.mark.parametrize("name", ALL)
def test_agrees_with_arviz(name: str) -> None:
    ours, theirs = ALL[name]
    for kind, chains in CHAINS.items():
        assert float(ours(chains)) == pytest.approx(float(theirs(chains)), rel=1e-8), kind


@compared
@pytest.mark.parametrize("name", [n for n in ALL if n != "r_hat"])
def test_agrees_with_arviz_on_one_chain(name: str) -> None:
    ours, theirs = ALL[name]
    for draws in (4, 5, 100, 333):
        x = autoregressive(0.6, 1, draws, seed=draws)
        assert float(ours(x)) == pytest.approx(float(theirs(x)), rel=1e-8), draws


@compared
def test_one_chain_compares_its_halves() -> None:
    x = autoregressive(0.6, 1, 333) + np.linspace(0, 2, 333)
    halves = np.stack([x[0, :166], x[0, -166:]])
    folded = np.abs(halves - np.median(halves))

    def unsplit(values: Floats) -> float:
        scores = norm.ppf((rankdata(values) - 0.375) / (values.size + 0.25)).reshape(values.shape)
        return float(az.rhat(scores, method="identity"))

    assert float(diagnostics.r_hat(x)) == pytest.approx(
        max(unsplit(halves), unsplit(folded)), rel=1e-8
    )
    assert float(diagnostics.r_hat(x)) > 1.01


@compared
def test_diagnostics_of_too_few_draws_are_nan() -> None:
    for name, (ours, theirs) in ALL.items():
        for draws in (1, 2, 3):
            x = autoregressive(0.0, 4, draws)
            assert np.isnan(float(ours(x))), (name, draws)
            assert np.isnan(float(theirs(x))), (name, draws)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 3])
def test_constant_draws_have_perfect_diagnostics(value: float) -> None:
    for shape in ((4, 300), (1, 300), (3, 4)):
        assert_perfect_diagnostics(np.full(shape, value))


def assert_perfect_diagnostics(x: Floats) -> None:
    assert float(diagnostics.r_hat(x)) == 1.0
    for ess in (
        diagnostics.ess_bulk,
        diagnostics.ess_tail,
        diagnostics.ess_mean,
        diagnostics.ess_sd,
    ):
        assert float(ess(x)) == x.size
    for still in (diagnostics.mcse_mean, diagnostics.mcse_sd, diagnostics.standard_deviation):
        assert float(still(x)) == 0.0


def test_a_constant_but_for_rounding_is_constant() -> None:
    x = np.full((4, 100), 0.1)
    x[1, 7] = np.nextafter(0.1, 1.0)
    assert float(diagnostics.r_hat(x)) == 1.0
    assert float(diagnostics.ess_mean(x)) == 400
    assert float(diagnostics.mcse_mean(x)) == 0.0


def test_chains_stuck_apart_disagree_without_limit() -> None:
    x = np.repeat([[0.1], [0.2], [0.1], [0.3]], 77, axis=1)
    assert float(diagnostics.r_hat(x)) == np.inf
    assert float(diagnostics.ess_bulk(x)) < 10
    assert float(diagnostics.mcse_mean(x)) > 0.0


@compared
def test_two_values_fold_to_one() -> None:
    x = np.random.default_rng(0).choice([-1.0, 1.0], size=(4, 100))
    for name, (ours, theirs) in ALL.items():
        if name not in (
            "ess_sd",
            "mcse_sd",
        ):  # of squares that are all one, ArviZ measures the rounding
            assert float(ours(x)) == pytest.approx(float(theirs(x)), rel=1e-8), name
    assert float(diagnostics.mcse_sd(x)) == pytest.approx(0.0, abs=0.01)


@compared
def test_a_draw_that_is_the_quantile_counts_as_below_it() -> None:
    x = np.random.default_rng(5).permutation(np.arange(101.0))[
        None
    ]  # 5% and 95% quantile are 5 and 95
    low, high = (float(az.ess(1.0 * (x <= q), method="mean")) for q in (5.0, 95.0))
    assert float(diagnostics.ess_tail(x)) == pytest.approx(min(low, high), rel=1e-8)


@pytest.mark.parametrize("name", ALL)
def test_many_quantities_at_once(name: str) -> None:
    columns = [autoregressive(rho, 3, 201, seed=i) for i, rho in enumerate((0.0, 0.9, -0.5))]
    columns += [np.zeros((3, 201)), np.exp(columns[0])]
    ours, _ = ALL[name]
    together = ours(np.stack(columns, axis=2))
    assert together.shape == (5,)
    np.testing.assert_allclose(together, [float(ours(c)) for c in columns], rtol=1e-12)


def test_draws_of_another_shape_are_refused() -> None:
    sentence = r"draws must have shape \(chain, draw\) or \(chain, draw, K\); it is"
    for shape in ((10,), (0, 10), (4, 0), (4, 0, 2), (2, 2, 2, 2)):
        with pytest.raises(ValueError, match=sentence):
            diagnostics.r_hat(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_numbers_that_are_not_finite(bad: float) -> None:
    x = autoregressive(0.0, 2, 10)
    x[1, 3] = bad
    with pytest.raises(ValueError, match="NaN or infinite"):
        diagnostics.ess_bulk(x)


def summary(*columns: Floats, **known: Any) -> Summary:
    names = tuple(f"V({k + 1})" for k in range(len(columns)))
    known = {"fixed": np.zeros(len(columns), dtype=bool), **known}
    return summarise(np.stack(columns, axis=2), names, **known)


GOOD = autoregressive(0.3, 4, 1000)


@compared
def test_a_good_run_is_trusted() -> None:
    s = summary(GOOD, 2.0 + GOOD**3)
    assert s.converged
    assert s.warnings == ()
    assert s.message.startswith("Converged: R-hat at most 1.00")
    table = az.summary(
        az.convert_to_dataset({"v": np.stack([GOOD, 2.0 + GOOD**3], axis=2)}), round_to="none"
    )
    for ours, theirs in (
        ("mean", "mean"),
        ("sd", "sd"),
        ("mcse", "mcse_mean"),
        ("ess_bulk", "ess_bulk"),
    ):
        np.testing.assert_allclose(getattr(s, ours), table[theirs], rtol=1e-8)
    np.testing.assert_array_equal(
        s.low, np.quantile(np.stack([GOOD, 2.0 + GOOD**3]), 0.05, axis=(1, 2))
    )
    np.testing.assert_array_equal(
        s.high, np.quantile(np.stack([GOOD, 2.0 + GOOD**3]), 0.95, axis=(1, 2))
    )


def test_disagreeing_chains_are_named() -> None:
    s = summary(GOOD, GOOD + np.arange(4)[:, None], GOOD + 0.5 * np.arange(4)[:, None])
    assert not s.converged
    assert s.warnings[0].startswith(
        f"V(2) (and 1 more): R-hat {s.r_hat[1]:.3f} (should be below 1.01): the chains"
    )
    assert s.message.startswith("Do not trust this yet: V(2) (and 1 more): R-hat")


def test_too_few_effective_draws_are_named() -> None:
    s = summary(GOOD, autoregressive(0.99, 4, 1000, seed=8))
    (ess,) = [w for w in s.warnings if "effective draws" in w]
    least = min(s.ess_bulk[1], s.ess_tail[1])
    assert f"V(2): {least:.0f} effective draws (should be at least 400, 100 a chain)" in ess
    assert f"run about {int(np.ceil(400 / least))} times longer" in ess
    (error,) = [w for w in s.warnings if "Monte-Carlo" in w]
    assert (
        f"V(2): the Monte-Carlo error of the mean is {s.mcse[1] / s.sd[1]:.0%} of the sd" in error
    )
    assert "(should be below 10%)" in error
    assert not s.converged


def test_an_interrupted_run_is_not_trusted_yet() -> None:
    s = summary(GOOD, interrupted=True, requested=5000)
    assert not s.converged
    assert s.warnings == (
        "the run was interrupted after 1000 of 5000 draws a chain; run it to the end",
    )


def test_one_chain_is_trusted_with_a_note() -> None:
    s = summary(GOOD[:1])
    assert s.converged
    assert s.message.startswith("Converged, as far as one chain can tell: R-hat")
    assert s.message.endswith("Note: " + s.warnings[0] + ".")
    assert "one chain only, so R-hat compares its two halves" in s.warnings[0]
    assert "\n1 chain of 1000 draws\n" in str(s)


@pytest.mark.parametrize(
    ("draws", "words"), [(3, "only 3 draws a chain"), (1, "only 1 draw a chain")]
)
def test_a_handful_of_draws_says_nothing(draws: int, words: str) -> None:
    s = summary(GOOD[:, :draws])
    assert not s.converged
    assert words in s.warnings[0]
    assert "nothing can be said" in s.message
    assert "?" in str(s)
    assert "nan" not in str(s)


def test_a_single_draw_has_no_spread() -> None:
    s = summary(GOOD[:1, :1])
    assert np.isnan(s.sd).all()
    assert not s.converged
    assert "nan" not in str(s)


def test_a_coefficient_fixed_at_zero_is_no_fault() -> None:
    s = summary(GOOD, np.zeros_like(GOOD), fixed=np.array([False, True]))
    assert s.converged
    assert (s.mean[1], s.sd[1], s.mcse[1], s.r_hat[1], s.ess_bulk[1]) == (
        0.0,
        0.0,
        0.0,
        1.0,
        4000.0,
    )
    assert "nan" not in str(s)


def test_a_coefficient_that_never_moves_is_stuck() -> None:
    s = summary(GOOD, np.full_like(GOOD, 1.5))
    assert not s.converged
    assert s.warnings == (
        "V(2): no draw ever moved, so the sampler is stuck; start elsewhere or use another sampler",
    )


def test_table_is_aligned() -> None:
    lines = str(summary(GOOD, 1e4 * GOOD, GOOD / 1e4)).splitlines()
    assert lines[0].split() == [
        "mean",
        "sd",
        "mcse",
        "5%",
        "95%",
        "ess",
        "bulk",
        "ess",
        "tail",
        "R-hat",
    ]
    assert len({len(line) for line in lines[:4]}) == 1
    assert [line.split()[0] for line in lines[1:4]] == ["V(1)", "V(2)", "V(3)"]
    assert lines[4] == "4 chains of 1000 draws"
    assert lines[5].startswith("Converged: ")


def test_a_long_table_shows_the_worst() -> None:
    columns = [autoregressive(0.0, 4, 200, seed=k) for k in range(50)]
    columns[30] = columns[30] + np.arange(4)[:, None]
    columns[40] = np.full((4, 200), 2.0)
    text = str(summary(*columns))
    assert len(text.splitlines()) == 1 + 20 + 3
    assert [line.split()[0] for line in text.splitlines()[1:3]] == ["V(41)", "V(31)"]
    assert "\n... and 30 more coefficients" in text
