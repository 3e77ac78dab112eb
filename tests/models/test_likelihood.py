"""The exact choice probability against an adaptive quadrature that shares nothing with it, its derivatives, the mode."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as hs
from scipy.special import log_ndtr

import revealed.models.likelihood as likelihood
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels import choice_exact as integral
from revealed.kernels.choice_information import add_information_dense
from revealed.models.likelihood import (
    choice_probabilities,
    derivatives,
    log_likelihood,
    posterior_mode,
)
from revealed.models.priors import Flat, Normal, Prior, resolve_prior
from tests.support.statistical_asserts import assert_error, must_fail

LEGENDRE = np.polynomial.legendre.leggauss(20)


def log_integrand(z: Floats, gaps: Floats) -> Floats:
    """Log of phi(z) prod Phi(z - gap), for z of any shape."""
    values = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) + log_ndtr(z[..., None] - gaps).sum(axis=-1)
    return np.asarray(values)


def oracle(mu: Floats, chosen: int) -> float:
    """Log P(chosen) by 20-point Gauss-Legendre panels, halved until two rounds agree to 1e-12.

    The panels cover where the log-integrand is within 45 of its top; the top is found by bisection on its slope, and
    the ends by bisection on its value.
    """
    gaps = np.delete(mu, chosen) - mu[chosen]
    high = max(0.0, gaps.max(initial=0.0)) + 10.0 + np.sqrt(gaps.size)
    gaps = gaps[gaps > -60.0]  # z stays above -10, and log Phi is zero in double precision at 39

    def value(z: float) -> float:
        return float(log_integrand(np.array(z), gaps))

    def slope(z: float) -> float:
        x = z - gaps
        return float(-z + np.exp(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(x)).sum())

    mode = scipy.optimize.bisect(slope, -1.0, high, xtol=1e-3)
    top = value(mode)
    ends = [
        scipy.optimize.bisect(lambda z: value(z) - top + 45.0, mode, mode + 20.0 * side, xtol=1e-2)
        for side in (-1, 1)
    ]
    nodes, weights = LEGENDRE
    before, panels = np.inf, 8
    while True:
        edges = np.linspace(ends[0], ends[1], panels + 1)
        half = 0.5 * np.diff(edges)
        z = edges[:-1, None] + half[:, None] * (1.0 + nodes)
        now = float(np.log((np.exp(log_integrand(z, gaps) - top) * weights * half[:, None]).sum()))
        if abs(now - before) < 1e-12:
            return top + now
        before, panels = now, 2 * panels


def one(mu: Any, chosen: int = 0) -> float:
    return float(integral.log_probability(np.asarray(mu, dtype=np.float64), chosen))


def all_of(mu: Floats) -> Floats:
    out = np.empty(mu.size)
    integral.all_probabilities(mu, np.array([0, mu.size]), out)
    return out


def slopes_and_information(mu: Floats, chosen: int) -> tuple[Floats, Floats]:
    """Gradient and minus Hessian of log P(chosen) in mu itself."""
    start, taken = np.array([0, mu.size]), np.array([chosen])
    gradient, information = np.empty(mu.size), np.zeros((mu.size, mu.size))
    integral.log_likelihood_and_gradient(mu, start, taken, gradient)
    add_information_dense(mu, start, taken, np.ones(len(taken)), np.eye(mu.size), information)
    return gradient, information


def tied(lead: float, rivals: int) -> Floats:
    """The chosen action, number 0, leads its tied rivals."""
    return np.concatenate([[lead], np.zeros(rivals)])


def random_decision(rng: np.random.Generator) -> tuple[Floats, int]:
    """1 to 500 actions, from nearly tied to 300 apart, with ties and duplicates; any of them chosen."""
    size = round(float(np.exp(rng.uniform(0.0, np.log(500.0)))))
    span = float(np.exp(rng.uniform(np.log(0.1), np.log(300.0))))
    mu = rng.uniform(0.0, span, size)
    if rng.random() < 0.3:
        mu = np.round(4.0 * mu / span) * span / 4.0
    chosen = {0: int(mu.argmax()), 1: int(mu.argmin())}.get(
        int(rng.integers(4)), int(rng.integers(size))
    )
    return mu, chosen


def example(
    seed: int = 0, features: int = 3, count: int = 40, sparse: bool = False, noise: float = 1.0
) -> Decisions:
    """Ragged decisions of 1 to 6 actions, chosen by a controller whose value has entries near one."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 7, count))])
    rows = rng.standard_normal((start[-1], features)) * (
        rng.random((start[-1], features)) < (0.3 if sparse else 1.0)
    )
    w = rows @ rng.standard_normal(features) + noise * rng.standard_normal(start[-1])
    chosen = [int(w[a:b].argmax()) for a, b in pairwise(start)]
    return Decisions(sp.csr_array(rows) if sparse else rows, start, chosen)


# The integral


@pytest.mark.parametrize(
    ("mu", "chosen"),
    [
        ([0.3, 0.0, -1.0], 1),
        ([0.0, 4.0, 4.0, 9.0], 0),
        ([3.0, *[0.0] * 20], 0),
        ([1.0, 1.0, 1.0], 2),
    ],
)
def test_the_oracle_is_scipys_quadrature(mu: list[float], chosen: int) -> None:
    gaps = np.delete(np.array(mu), chosen) - mu[chosen]
    top = log_integrand(np.linspace(-5, 15, 2001), gaps).max()
    area, _ = scipy.integrate.quad(
        lambda z: np.exp(log_integrand(np.array(z), gaps) - top),
        -10,
        20,
        epsabs=0,
        epsrel=1e-12,
        limit=500,
        points=[0, 5],
    )
    assert oracle(np.array(mu), chosen) == pytest.approx(top + np.log(area), rel=1e-11, abs=1e-11)


@pytest.mark.proves(part="the exact choice probability")
def test_a_thousand_decisions_agree_with_adaptive_quadrature() -> None:
    rng = np.random.default_rng(20)
    cases = [
        (tied(lead, rivals), 0) for rivals in (20, 100, 500) for lead in np.linspace(2.5, 4.0, 7)
    ]
    cases += [
        (np.array([0.0, *[300.0] * 499]), 0),
        (rng.uniform(0.0, 300.0, 500), 250),
        (np.zeros(1), 0),
    ]
    cases += [random_decision(rng) for _ in range(1000 - len(cases))]
    sizes = np.array([mu.size for mu, _ in cases])
    assert sizes.min() == 1
    assert sizes.max() >= 500
    start = np.concatenate([[0], np.cumsum(sizes)])
    taken = start[:-1] + np.array([chosen for _, chosen in cases])
    found = np.empty(1000)
    integral.log_probabilities(np.concatenate([mu for mu, _ in cases]), start, taken, found)
    exact = np.array([oracle(mu, chosen) for mu, chosen in cases])
    assert exact.min() < -20_000
    assert np.isfinite(found).all()
    assert_error((found - exact) / np.maximum(1.0, np.abs(exact)), 1e-8)


def test_answers_known_without_any_integral() -> None:
    assert one([5.0]) == 0.0
    for size in (3, 50, 500, 20_000):
        assert one(np.zeros(size)) == pytest.approx(-np.log(size), abs=1e-9)
    for gap in (-14.0, -12.0, -3.0, 0.0, 5.0, 300.0, 1e4):
        assert one([0.0, gap]) == pytest.approx(
            float(log_ndtr(-gap / np.sqrt(2))), rel=1e-12, abs=1e-15
        )
        assert one([0.0, gap, -1e4]) == one([0.0, gap])


@pytest.mark.parametrize("apart", [1e4, 1e6, 1e8, 1e12, 1e99])
def test_two_rivals_absurdly_far_ahead(apart: float) -> None:
    """Beating two equal rivals ahead by a costs a^2 / 3 (the three meet at 2a / 3), to leading order."""
    assert one([0.0, apart, apart]) == pytest.approx(-(apart**2) / 3.0, rel=1e-5)
    assert np.isfinite(slopes_and_information(np.array([0.0, apart, apart]), 0)[0]).all()


def pruned_by_the_best(mu: Floats, chosen: int) -> float:
    """A mutant: rivals more than 10 below the best action are left out."""
    kept = (mu > mu.max() - 10.0) | (np.arange(mu.size) == chosen)
    return oracle(mu[kept], int(np.cumsum(kept)[chosen]) - 1)


@pytest.mark.proves(part="the exact choice probability")
def test_far_below_is_not_measured_from_the_best() -> None:
    """The chosen action is 24 worse than the best, so z lives near 12, where the rival at 12 is an even match."""
    mu = np.array([0.0, 24.0, 12.0])
    exact = oracle(mu, 0)
    assert_error(one(mu) / exact - 1.0, 1e-10)
    with must_fail("rivals left out by their distance from the best action"):
        assert_error(pruned_by_the_best(mu, 0) / exact - 1.0, 1e-10)


def test_duplicates_of_the_chosen_row_are_rivals() -> None:
    assert one([0.0, 0.0, -40.0]) == pytest.approx(np.log(0.5), abs=1e-12)
    for duplicates in (1, 5):
        mu = np.array([0.0, *[0.0] * duplicates, 4.0])
        assert one(mu) == pytest.approx(oracle(mu, 0), rel=1e-10)
        assert one([0.0, 4.0]) - one(mu) > 1e-3


@pytest.mark.parametrize("ahead", [0.0, 5.0, 40.0])
def test_a_rival_at_the_threshold_may_come_or_go(ahead: float) -> None:
    threshold = 0.5 * ahead - integral.EXACT_RULE.irrelevance_margin
    crowd = [0.0, ahead, *[threshold + 1e-9] * 498]
    assert one(crowd) == pytest.approx(
        one([0.0, ahead, *[threshold - 1e-9] * 498]), abs=1e-14, rel=1e-12
    )


# All actions at once


def test_probabilities_of_all_actions_add_to_one_and_each_is_right() -> None:
    rng = np.random.default_rng(21)
    cases = [random_decision(rng)[0] for _ in range(300)]
    cases += [
        tied(lead, rivals)
        for rivals in (20, 100, 500)
        for lead in (-30.0, -3.0, 0.0, 2.5, 3.25, 4.0)
    ]
    cases += [np.concatenate([np.zeros(300), np.full(200, -10.0)]), np.zeros(3000)]
    cases += [
        np.array([0.0, *[-12.0] * 99, -26.0])
    ]  # the worst action needs far finer steps than the best
    for mu in cases:
        found = all_of(mu)
        assert abs(found.sum() - 1.0) < 1e-8
        some = np.append(rng.permutation(mu.size)[:10], mu.argmin())
        exact = np.array([one(mu, int(c)) for c in some])
        usual = exact > -600.0
        np.testing.assert_allclose(np.log(found[some][usual]), exact[usual], rtol=1e-8, atol=1e-8)
        assert (found[some][~usual] < 1e-250).all()


def test_hopeless_actions_fade_to_zero() -> None:
    found = all_of(np.array([0.0, -51.0, -54.5, -56.0, -1e6]))
    assert found[1] == pytest.approx(np.exp(one([0.0, 51.0])), rel=1e-8)
    assert 0.0 <= found[2] < 1e-300
    assert (found[3:] == 0.0).all()


utilities = hs.lists(
    hs.one_of(hs.floats(-1e4, 1e4), hs.floats(-5, 5), hs.sampled_from([0.0, 1e6, -1e6, 8.5, 12.0])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(utilities, hs.randoms(use_true_random=False), hs.sampled_from([-4096.0, 0.5, 1024.0]))
def test_laws_of_any_decision(drawn: list[float], random: Any, shift: float) -> None:
    mu = np.round(np.array(drawn) * 1024.0) / 1024.0  # so that adding the shift is exact
    chosen = random.randrange(mu.size)
    value, chances = one(mu, chosen), all_of(mu)
    gradient, information = slopes_and_information(mu, chosen)
    for numbers in (value, chances, gradient, information):
        assert np.isfinite(numbers).all()
    assert value <= 1e-11
    assert (chances >= 0.0).all()
    assert (chances <= 1.0).all()
    assert abs(chances.sum() - 1.0) < 1e-8
    assert one(mu + shift, chosen) == value
    np.testing.assert_array_equal(all_of(mu + shift), chances)
    order = np.array(random.sample(range(mu.size), mu.size))
    assert one(mu[order], int(np.flatnonzero(order == chosen)[0])) == pytest.approx(
        value, rel=1e-10, abs=1e-10
    )
    np.testing.assert_allclose(all_of(mu[order]), chances[order], rtol=1e-7, atol=1e-11)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-9 * max(1.0, np.abs(gradient).max()))
    assert gradient[chosen] >= 0.0
    assert (np.delete(gradient, chosen) <= 0.0).all()
    np.testing.assert_array_equal(information, information.T)
    np.testing.assert_allclose(information.sum(axis=0), 0.0, atol=1e-9)
    assert np.linalg.eigvalsh(information).min() > -1e-5


# Derivatives


DIFFERENTIATED = [
    (np.array([0.3, -0.2, 0.5, 0.1]), 1),
    (np.array([1.0, 0.0]), 0),
    (np.array([0.0, 3.0]), 0),
    (np.array([0.0, 24.0, 12.0, 11.0, -5.0]), 0),
    (np.array([0.0, 300.0, 299.0, 150.0]), 0),
    (np.array([4.0, 0.0, 0.0, 0.0, -30.0]), 0),
    (tied(3.0, 20), 0),
    (tied(3.5, 500), 0),
    (np.random.default_rng(3).normal(0.0, 3.0, 120), 7),
]


@pytest.mark.proves(part="gradient and Hessian of the exact choice probability")
@pytest.mark.parametrize(("mu", "chosen"), DIFFERENTIATED)
def test_gradient_and_hessian_are_the_oracles_finite_differences(mu: Floats, chosen: int) -> None:
    gradient, information = slopes_and_information(mu, chosen)
    rng = np.random.default_rng(4)
    for direction in [*np.eye(mu.size)[[chosen, chosen - 1]], *rng.standard_normal((4, mu.size))]:
        h = 0.02 / max(1.0, float(np.abs(direction).max()))
        far_left, left, here, right, far_right = (
            oracle(mu + s * h * direction, chosen) for s in (-2, -1, 0, 1, 2)
        )
        first = (far_left - 8 * left + 8 * right - far_right) / (12 * h)
        second = (-far_left + 16 * left - 30 * here + 16 * right - far_right) / (12 * h * h)
        scale = float(np.linalg.norm(direction))
        assert_error((gradient @ direction - first) / max(abs(first), 0.1 * scale), 1e-6)
        assert_error(
            (-direction @ information @ direction - second) / max(abs(second), scale**2), 1e-6
        )


@pytest.mark.parametrize(("mu", "chosen"), DIFFERENTIATED)
def test_minus_hessian_is_symmetric_positive_and_blind_to_constants(
    mu: Floats, chosen: int
) -> None:
    _, information = slopes_and_information(mu, chosen)
    np.testing.assert_array_equal(information, information.T)
    np.testing.assert_allclose(information.sum(axis=0), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(information).min() > -1e-9
    assert information.max() > 1e-3


@pytest.mark.parametrize("sparse", [False, True])
def test_derivatives_in_v_are_finite_differences(sparse: bool) -> None:
    d = example(1, features=6, sparse=sparse)
    v = np.linspace(-1.0, 2.0, 6)
    value, gradient, hessian = derivatives(d, v)
    assert value == pytest.approx(log_likelihood(d, v).sum(), rel=1e-13)
    steps = 1e-4 * np.eye(6)
    slopes = [
        (log_likelihood(d, v + s).sum() - log_likelihood(d, v - s).sum()) / 2e-4 for s in steps
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)
    bends = [(derivatives(d, v + s)[1] - derivatives(d, v - s)[1]) / 2e-4 for s in steps]
    np.testing.assert_allclose(hessian, bends, rtol=1e-6, atol=1e-6)
    assert np.linalg.eigvalsh(hessian).max() < 0.0


def test_sparse_and_dense_rows_say_the_same() -> None:
    sparse = example(2, features=8, sparse=True)
    dense = Decisions(sparse.rows.toarray(), sparse.start, sparse.chosen)
    draws = np.random.default_rng(0).standard_normal((5, 8))
    np.testing.assert_allclose(
        log_likelihood(sparse, draws), log_likelihood(dense, draws), rtol=1e-11, atol=1e-12
    )
    one_way, other = derivatives(sparse, draws[0]), derivatives(dense, draws[0])
    for part in range(3):
        np.testing.assert_allclose(one_way[part], other[part], rtol=1e-10, atol=1e-10)


# The public functions


def test_shapes_and_draws_in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    d = example()
    rows, draws = d.rows.shape[0], np.random.default_rng(1).standard_normal((7, 3))
    each = np.array([log_likelihood(d, v) for v in draws])
    chances = np.array([choice_probabilities(d, v) for v in draws])
    assert each.shape == (7, len(d))
    assert chances.shape == (7, rows)
    np.testing.assert_allclose(np.log(chances[:, d.chosen_row]), each, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(chances, d.start[:-1], axis=1), 1.0, atol=1e-8)
    for portion in (1, 2 * rows, 10**7):
        monkeypatch.setattr(likelihood, "UTILITIES_AT_A_TIME", portion)
        np.testing.assert_allclose(log_likelihood(d, draws), each, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(choice_probabilities(d, draws), chances, rtol=1e-10)
    assert log_likelihood(d, draws[:1]).shape == (1, len(d))
    assert choice_probabilities(Decisions(d.rows, d.start), draws[0]).shape == (rows,)


@pytest.mark.parametrize(
    ("v", "sentence"),
    [
        ([1.0, 2.0], "v has shape (2,), but the decisions have 3 coefficients"),
        (np.zeros((4, 2)), "v has shape (4, 2), but the decisions have 3 coefficients"),
        (np.zeros((0, 3)), "v has shape (0, 3)"),
        (np.zeros((1, 1, 3)), "v has shape (1, 1, 3)"),
        ([0.0, np.nan, 0.0], "v is NaN or infinite at 'v1'"),
        (["a", "b", "c"], "v must be 3 numbers"),
        ([1e200, 0.0, 0.0], "too large to compare"),
        ([1e308, 1e308, 1e308], "too large to compare"),
    ],
)
def test_bad_coefficients_are_refused(v: Any, sentence: str) -> None:
    for ask in (log_likelihood, choice_probabilities, derivatives):
        with pytest.raises(ValueError, match=r".") as refusal:
            ask(example(), v)
        assert sentence in str(refusal.value)


def test_derivatives_want_one_v_and_likelihoods_want_choices() -> None:
    with pytest.raises(ValueError, match="derivatives are taken at one v"):
        derivatives(example(), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="carry no choices"):
        log_likelihood(Decisions([[1.0], [0.0]], [0, 2]), [1.0])


# The mode


def slope_at(d: Decisions, prior: Prior, v: Floats, information: Floats) -> float:
    """The slope of the log posterior at v, in posterior standard deviations."""
    resolved_prior = resolve_prior(prior, d)
    slope = resolved_prior.basis.T @ derivatives(d, v)[1] - resolved_prior.precision @ (
        resolved_prior.basis.T @ (v - resolved_prior.mean)
    )
    return float(np.sqrt(slope @ np.linalg.solve(information, slope)))


def test_the_mode_is_where_scipy_finds_it() -> None:
    d = example(3, features=2, count=8)
    prior = Normal(2.0, mean=0.5)
    resolved_prior = resolve_prior(prior, d)

    def minus_log_posterior(v: Floats) -> float:
        mu = d.rows @ v
        ends = zip(d.start[:-1], d.start[1:], d.chosen_row, strict=True)
        return (
            -sum(oracle(mu[a:b], int(c - a)) for a, b, c in ends)
            + float(((v - 0.5) ** 2).sum()) / 8.0
        )

    found = scipy.optimize.minimize(
        minus_log_posterior, np.zeros(2), method="BFGS", options={"gtol": 1e-6}
    )
    mode, information = posterior_mode(d, resolved_prior)
    np.testing.assert_allclose(mode, found.x, atol=1e-5)
    _, _, hessian = derivatives(d, mode)
    np.testing.assert_allclose(information, -hessian + np.eye(2) / 4.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("d", "prior"),
    [
        (example(4, features=1), Normal(50.0)),
        (example(5, features=40, count=60), Normal(50.0)),
        (example(6, features=200, count=20), Normal(50.0)),
        (example(7, noise=0.0), Normal(50.0)),
        (example(8, features=12, sparse=True), Normal(1.0)),
        (example(9), Normal(1.0, mean=300.0)),
        (example(10, count=200), Flat()),
    ],
)
def test_the_slope_vanishes_at_the_mode(d: Decisions, prior: Prior) -> None:
    mode, information = posterior_mode(d, resolve_prior(prior, d))
    assert slope_at(d, prior, mode, information) < 1e-6
    assert np.linalg.eigvalsh(information).min() > 0.0


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6, [1e-6, 1.0, 1e6]])
def test_features_may_have_any_scale(scale: Any, noise: float) -> None:
    plain = example(11, count=100, noise=noise)
    d = Decisions(plain.rows * np.array(scale), plain.start, plain.chosen)
    mode, information = posterior_mode(d, resolve_prior(Normal(50.0), d))
    assert slope_at(d, Normal(50.0), mode, information) < 1e-6


def test_small_features_do_not_count_as_an_open_direction() -> None:
    plain, scale = example(11, count=200), np.array([1e-8, 1.0, 1e8])
    d = Decisions(plain.rows * scale, plain.start, plain.chosen)
    expected, _ = posterior_mode(plain, resolve_prior(Flat(), plain))
    mode, _ = posterior_mode(d, resolve_prior(Flat(), d))
    np.testing.assert_allclose(mode * scale, expected, rtol=1e-6)


def test_every_step_climbs_also_where_a_plain_newton_step_overshoots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From v0 = -10 one choice asks for v0 > 50; on the way the other one, content at first, becomes absurd."""
    d = Decisions([[1.0, -50.0], [0.0, 0.0], [-3.0, 0.0], [0.0, 0.0]], [0, 2, 4], [0, 0])
    resolved_prior = resolve_prior(Normal(np.array([50.0, 0.001]), mean=np.array([-10.0, 1.0])), d)
    visited: list[Floats] = []
    plain = likelihood._derivatives

    def spy(d: Decisions, taken: Any, v: Floats, *more: Any) -> tuple[float, Floats, Floats]:
        visited.append(v)
        return plain(d, taken, v, *more)

    monkeypatch.setattr(likelihood, "_derivatives", spy)
    posterior_mode(d, resolved_prior)
    heights = [float(log_likelihood(d, v).sum() + resolved_prior.log_density(v)) for v in visited]
    assert len(heights) > 3
    assert np.diff(heights).min() > -1e-9


def test_centred_blocks_stay_centred() -> None:
    plain = example(12, features=5, count=100)
    d = Decisions(plain.rows, plain.start, plain.chosen, blocks=[Block("value", 5, True)])
    mode, information = posterior_mode(d, resolve_prior(Normal(3.0), d))
    assert mode.sum() == pytest.approx(0.0, abs=1e-12)
    assert information.shape == (4, 4)
    assert slope_at(d, Normal(3.0), mode, information) < 1e-6


def test_a_mode_that_does_not_exist_is_refused() -> None:
    plain = example(13, count=100)
    doubled = Decisions(np.hstack([plain.rows, plain.rows[:, :1]]), plain.start, plain.chosen)
    for d in (
        example(14, count=20, noise=0.0),
        doubled,
        Decisions([[1.0], [2.0]], [0, 1, 2], [0, 0]),
    ):
        with pytest.raises(
            ValueError, match="under a flat prior these decisions have no most likely v"
        ):
            posterior_mode(d, resolve_prior(Flat(), d))


def test_a_mode_that_is_not_reached_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "NEWTON", likelihood.NewtonLimits(max_steps=2))
    d = example(15)
    with pytest.raises(ValueError, match="was not found in 2 Newton steps"):
        posterior_mode(d, resolve_prior(Normal(50.0), d))
