"""The standard normal against scipy's error function, truncated draws against the exact law."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import erfcx, log_ndtr

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.normal import (
    GRID,
    TRUNCATION,
    _below_by_inversion,
    _between_by_inversion,
    draw_below,
    draw_between,
    log_cdf,
    log_cdf_and_ratio,
)

BOUNDS = [-30.0, -6.0, -0.6, -0.4, 0.0, 3.0]
FALSE_ALARM = 1e-6 / len(BOUNDS)


@compiled
def tabulate(x: Floats, values: Floats, both: Floats, ratios: Floats) -> None:
    for i in range(x.size):
        values[i] = log_cdf(x[i])
        both[i], ratios[i] = log_cdf_and_ratio(x[i])


@compiled
def draw_many(rng: np.random.Generator, bound: float, out: Floats) -> None:
    for i in range(out.size):
        out[i] = draw_below(rng, bound)


def ours(x: Floats) -> tuple[Floats, Floats]:
    values, both, ratios = np.empty(x.size), np.empty(x.size), np.empty(x.size)
    tabulate(x, values, both, ratios)
    np.testing.assert_allclose(both, values, rtol=1e-14, atol=1e-18)
    return values, ratios


def error(found: Floats, truth: Floats) -> float:
    """The largest error, relative where the truth is above one."""
    return float((np.abs(found - truth) / np.maximum(1.0, np.abs(truth))).max())


def test_log_cdf_and_ratio_are_those_of_scipy() -> None:
    # Fine steps over the table (41 points a cell, and the cell edges themselves), then steps far
    # into both tails.
    edges = np.arange(GRID.low, GRID.high + 1e-9, 1 / GRID.cells_per_unit)
    x = np.concatenate(
        [
            np.linspace(GRID.low - 1, GRID.high + 1, 41 * edges.size),
            edges,
            np.linspace(-400, 40, 20_000),
        ]
    )
    values, ratios = ours(x)
    assert error(values, log_ndtr(x)) < 1e-12
    assert error(ratios, np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))) < 5e-11
    assert (values <= 0).all()
    assert (ratios >= 0).all()


def test_coarser_tail_is_caught() -> None:
    x = np.linspace(-40.0, GRID.low, 1000)
    two_terms = -0.5 * x**2 - 0.5 * np.log(2 * np.pi) - np.log(-x) + np.log1p(-1 / x**2)
    assert error(two_terms, log_ndtr(x)) > 1e-12


@pytest.mark.parametrize("end", [GRID.low, GRID.high])
def test_no_jump_at_the_ends_of_the_table(end: float) -> None:
    values, ratios = ours(np.array([np.nextafter(end, -np.inf), end, np.nextafter(end, np.inf)]))
    assert np.ptp(values) < 1e-12 * max(1.0, abs(values[1]))
    assert np.ptp(ratios) < 5e-11 * max(1.0, abs(ratios[1]))


def law_below(bound: float) -> Callable[[Floats], Floats]:
    return lambda z: np.exp(np.minimum(log_ndtr(z) - log_ndtr(bound), 0.0))


@pytest.mark.parametrize("bound", BOUNDS)
def test_draws_below_a_bound_have_the_truncated_law(bound: float) -> None:
    out = np.empty(40_000)
    draw_many(np.random.default_rng(7), bound, out)
    assert out.max() <= bound
    assert st.kstest(out, law_below(bound)).pvalue > FALSE_ALARM


def test_draws_that_accept_every_proposal_are_caught() -> None:
    bound = -0.6
    rate = 0.5 * (np.sqrt(bound * bound + 4.0) - bound)
    taken = bound - np.random.default_rng(7).standard_exponential(40_000) / rate
    assert st.kstest(taken, law_below(bound)).pvalue < FALSE_ALARM


INTERVALS = [
    (-np.inf, 0.3),
    (-1e300, 0.3),
    (-0.2, np.inf),
    (0.3, 1e300),
    (-np.inf, -4.0),
    (8.0, np.inf),
    (30.0, 30.001),
    (-1.0, 0.5),
    (0.2, 0.4),
    (-3.0, 2.0),
    (1.5, 1.9),
    (1e5, 1e5 + 1e-6),
]


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_draw_between_has_the_law_of_a_normal_cut_to_the_interval(low: float, high: float) -> None:
    """Kolmogorov-Smirnov against the exact law, computed in the tail where there is one."""
    rng = np.random.default_rng(7)
    draws = np.array([draw_between(rng, low, high) for _ in range(20_000)])
    assert ((draws >= low) & (draws <= high)).all()
    if low > 0:  # mirrored, where the distribution function keeps its digits
        draws, low, high = -draws, -high, -low
    top, bottom = log_ndtr(high), log_ndtr(low)
    share = np.expm1(np.minimum(bottom - log_ndtr(draws), 0.0)) * np.exp(log_ndtr(draws) - top)
    assert st.kstest(share / np.expm1(bottom - top), "uniform").pvalue > 1e-6


def test_draw_between_of_an_empty_interval_is_its_edge() -> None:
    assert draw_between(np.random.default_rng(1), 2.0, 2.0) == 2.0


@pytest.mark.parametrize("bound", [2.0 * TRUNCATION.far_tail, -1e160, -np.inf, np.nan])
def test_draws_below_any_bound_end(bound: float) -> None:
    """So far out that squares overflow: an exponential, far narrower than a double's last digit."""
    out = np.empty(1000)
    draw_many(np.random.default_rng(1), bound, out)
    np.testing.assert_allclose(out, bound, rtol=1e-14)
    assert not (out > bound).any()


def test_far_tail_continues_the_law() -> None:
    """Where the exponential takes over, the normal is one: -bound (bound - z) has mean one."""
    out, scaled = np.empty(20_000), []
    for bound in (1.001 * TRUNCATION.far_tail, 0.999 * TRUNCATION.far_tail):
        draw_many(np.random.default_rng(1), bound, out)
        scaled.append(bound * (out - bound))
    # rounding to a double's last digit, 1.5e-8 here, is what 1 / bound is
    step = np.spacing(-TRUNCATION.far_tail) * -TRUNCATION.far_tail
    for each in scaled:
        error = np.sqrt((1.0 + step**2 / 12.0) / out.size)
        assert abs(each.mean() - 1.0) < step / 2.0 + 6.0 * error


@pytest.mark.parametrize(("low", "high"), [(np.nan, 1.0), (0.0, np.nan), (np.nan, np.nan)])
def test_draws_between_numbers_that_are_none_end(low: float, high: float) -> None:
    np.testing.assert_equal(draw_between(np.random.default_rng(1), low, high), low)


@pytest.mark.parametrize("bound", BOUNDS)
def test_inversion_is_what_rejection_would_have_drawn(bound: float) -> None:
    """The last resort of a draw that was refused again and again has the law of all others."""
    e = np.linspace(0.01, 20.0, 200)
    z = np.array([_below_by_inversion(each, bound) for each in e])
    np.testing.assert_allclose(log_ndtr(bound) - log_ndtr(z), e, rtol=1e-8, atol=1e-8)
    u = np.linspace(0.01, 0.99, 99)
    low, high = -bound, -bound + 2.0
    between = np.array([_between_by_inversion(each, low, high) for each in u])
    share = (st.norm.sf(low) - st.norm.sf(between)) / (st.norm.sf(low) - st.norm.sf(high))
    np.testing.assert_allclose(share, u, rtol=1e-7)
    assert ((low <= between) & (between <= high)).all()
