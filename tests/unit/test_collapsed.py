"""The fast likelihood against the exact one, and the counting it rests on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from evidence import assert_error
from problems import choose, mdp_offers, ragged_offers
from understudy._arrays import Floats
from understudy.decisions import Block, Decisions
from understudy.engines.chart import Chart, chart_target
from understudy.engines.tally import tally
from understudy.kernels.collapsed import Offers, log_likelihood, make_room
from understudy.kernels.integral import log_probabilities, value_and_gradient
from understudy.kernels.target import log_posterior, make_work
from understudy.likelihood import derivatives
from understudy.priors import place


def exact(gaps: Floats) -> tuple[Floats, Floats]:
    """(T,) log P and (T, M) slopes of decisions whose chosen action has utility zero, by the exact rule."""
    count, rivals = gaps.shape
    mu = np.hstack([np.zeros((count, 1)), gaps]).ravel()
    start = np.arange(count + 1) * (rivals + 1)
    out, slope = np.empty(count), np.empty(mu.size)
    log_probabilities(mu, start, start[:-1].copy(), out)
    value_and_gradient(mu, start, start[:-1].copy(), slope)
    return out, slope.reshape(count, -1)[:, 1:]


def offers_of(gaps: Floats, copies: float = 1.0) -> Offers:
    count, rivals = gaps.shape
    return Offers(np.arange(count + 1) * rivals, np.full(gaps.size, copies), np.ones(count))


@pytest.mark.proves(part="the fast choice probability that engines climb")
@pytest.mark.parametrize("lead", [-8.0, -4.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0, 30.0, 300.0])
@pytest.mark.parametrize("rivals", [1, 2, 3, 10, 34])
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0, 10.0])
def test_value_and_slope_are_those_of_the_exact_rule(rivals: int, spread: float, lead: float) -> None:
    gaps = lead + spread * np.random.default_rng(7).standard_normal((40, rivals))
    value, slope = exact(gaps)
    offers, found = offers_of(gaps), np.empty(gaps.size)
    made = log_likelihood(gaps.ravel(), offers, make_room(offers), -np.inf, found)
    assert_error((made - value.sum()) / max(40.0, abs(value.sum()) / 30.0), 3e-5)  # a decision, or relative 1e-6
    np.testing.assert_allclose(found.reshape(gaps.shape), slope, atol=3e-4, rtol=1e-4)
    alone = log_likelihood(gaps.ravel(), offers, make_room(offers), -np.inf, np.empty(0))
    assert alone == pytest.approx(made, abs=1e-6, rel=1e-8)  # sums of single precision in another order


@pytest.mark.parametrize(("rivals", "error"), [(20, 1e-4), (49, 3e-4), (100, 1e-4), (500, 1e-4)])
def test_tied_rivals_cost_the_accuracy_that_is_stated(rivals: int, error: float) -> None:
    for lead in np.arange(-6.0, 6.1, 0.25):
        gaps = np.full((1, rivals), lead)
        offers = offers_of(gaps)
        made = log_likelihood(gaps.ravel(), offers, make_room(offers), -np.inf, np.empty(0))
        assert made == pytest.approx(exact(gaps)[0][0], abs=error)


def test_copies_are_as_good_as_rows() -> None:
    gaps = np.random.default_rng(3).standard_normal((50, 4)) - 1.0
    once, thrice = offers_of(gaps, copies=3.0), offers_of(np.repeat(gaps, 3, axis=1))
    slope, slopes = np.empty(200), np.empty(600)
    value = log_likelihood(gaps.ravel(), once, make_room(once), -np.inf, slope)
    values = log_likelihood(np.repeat(gaps, 3, axis=1).ravel(), thrice, make_room(thrice), -np.inf, slopes)
    assert value == pytest.approx(values, rel=1e-6)
    np.testing.assert_allclose(slope, slopes.reshape(200, 3).sum(axis=1), rtol=1e-4, atol=1e-7)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.floats(-3.0, 3.0), st.floats(0.1, 60.0))
def test_a_floor_ends_only_what_lies_below_it(seed: int, above: float, spread: float) -> None:
    gaps = spread * np.random.default_rng(seed).standard_normal((30, 5))
    offers = offers_of(gaps)
    value = log_likelihood(gaps.ravel(), offers, make_room(offers), -np.inf, np.empty(0))
    floored = log_likelihood(gaps.ravel(), offers, make_room(offers), value + above, np.empty(0))
    assert np.isfinite(value)
    assert floored == value if above <= 0.0 else floored in (value, -np.inf)


def repeated(sparse: bool) -> Decisions:
    """Decisions of a small MDP, most of them met several times; some actions lead where others do."""
    offers = mdp_offers(states=4, actions=3, count=60, seed=2)
    rows = np.array(offers.rows.toarray() if sp.issparse(offers.rows) else offers.rows)
    rows[1::3] = rows[::3]
    seen = Decisions(rows, offers.start, blocks=offers.blocks)
    seen = seen.with_choices(choose(np.random.default_rng(4), seen, np.array([1.0, -1.0, 2.0, -2.0]))[0])
    return Decisions(sp.csr_array(rows), seen.start, seen.chosen, blocks=seen.blocks) if sparse else seen


@pytest.mark.parametrize("sparse", [False, True])
def test_counting_changes_nothing_but_the_work(sparse: bool) -> None:
    decisions = repeated(sparse)
    counted = tally(decisions)
    assert counted.offers.weight.sum() == len(decisions)
    assert len(counted.unique) <= 12
    assert counted.offers.copies.max() == 2.0
    times = np.repeat(counted.offers.weight, np.diff(counted.offers.first))
    assert (times * counted.offers.copies).sum() == decisions.rows.shape[0] - len(decisions)
    room = make_room(counted.offers)
    for v in 3.0 * np.random.default_rng(5).standard_normal((20, 4)):
        made = log_likelihood(counted.leads @ v, counted.offers, room, -np.inf, np.empty(0))
        assert made == pytest.approx(us.log_likelihood(decisions, v).sum(), rel=2e-5)


def seen_in(kind: str, rng: np.random.Generator) -> Decisions:
    """Dense rows; sparse ones of states; and sparse ones that do not add to one, so that a constant would be seen."""
    if kind == "dense":
        seen = ragged_offers(4, 50, seed=8)
    else:
        seen = mdp_offers(states=20, actions=3, count=200, seed=8)
        rows = np.where(seen.rows > 0.05, seen.rows, 0.0)
        rows /= 1.0 if kind == "not adding to one" else rows.sum(axis=1, keepdims=True)
        seen = Decisions(sp.csr_array(rows), seen.start, blocks=seen.blocks)
    return seen.with_choices(choose(rng, seen, rng.standard_normal(len(seen.names)))[0])


PRIORS = {
    "scalar": lambda width: us.Gaussian(2.0, mean=np.linspace(-1, 1, width)),
    "matrix": lambda width: us.Gaussian(np.eye(width) + 0.5, mean=np.linspace(-1, 1, width)),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "not adding to one"])
def test_the_log_posterior_in_any_coordinates(kind: str, bent: bool, prior: str) -> None:
    rng = np.random.default_rng(6)
    seen = seen_in(kind, rng)
    width = len(seen.names)
    placed = place(PRIORS[prior](width), seen)
    centre = placed.mean + placed.basis @ rng.standard_normal(placed.basis.shape[1])
    free = width if bent else placed.basis.shape[1]
    root = np.tril(rng.standard_normal((free, free)), -1) / free + np.eye(free)
    if bent:
        slope, bend = rng.uniform(0.5, 2.0, width), rng.uniform(-0.9, 0.9, width)
        chart = Chart(centre, slope, bend, np.ascontiguousarray(np.linalg.inv(root)), root)
    else:
        chart = Chart.of(placed, centre, root @ root.T)

    def exact(x: Floats) -> float:
        v = chart.value(x)
        loose = placed.constants.T @ v
        fixed = v - placed.constants @ loose
        turned = chart.turn @ x
        stretched = np.log(1.0 + chart.bend * turned / np.sqrt(1.0 + turned**2)).sum()
        value = us.log_likelihood(seen, fixed).sum() + float(placed.log_density(fixed))
        return float(value - 0.5 * placed.slack * loose @ loose + stretched)

    target = chart_target(tally(seen), placed, placed, chart)
    work = make_work(target)
    values, expected, gradient = [], [], np.empty(free)
    for x in 0.5 * rng.standard_normal((5, free)):
        np.testing.assert_allclose(chart.coordinates(chart.value(x)), x, atol=1e-10)
        values.append(log_posterior(target, work, x, -np.inf, gradient))
        expected.append(exact(x))
        sides = 1e-4 * np.eye(free)
        differences = [(exact(x + side) - exact(x - side)) / 2e-4 for side in sides]
        np.testing.assert_allclose(gradient, differences, atol=2e-3)
    np.testing.assert_allclose(np.diff(values), np.diff(expected), atol=1e-3)


def test_flat_coordinates_stay_centred_and_have_unit_curvature_on_average() -> None:
    rng = np.random.default_rng(2)
    mdp = us.random_mdp(rng, 5, 3)
    path = mdp.simulate(rng, [2.0, 1.0, 0.0, -1.0, -2.0], 30)
    seen = mdp.decisions(path.states, path.actions)
    placed = place(us.Gaussian(4.0), seen)
    draws = placed.draw(rng, 6)
    chart = Chart.flat(tally(seen), placed, draws, 6)
    np.testing.assert_allclose(placed.constants.T @ chart.value(np.ones(4)), 0.0, atol=1e-12)
    curvature = np.mean([placed.whole - derivatives(seen, v)[2] for v in draws], axis=0)
    np.testing.assert_allclose(chart.turn.T @ curvature @ chart.turn, np.eye(4), atol=1e-8)


def test_curved_coordinates_make_half_a_normal_about_normal() -> None:
    """A state that is only known to be worse than five others: its value is half a normal, until it is bent."""
    better = np.eye(6)[:5]
    rows = sp.csr_array(np.stack([better, np.tile(np.eye(6)[5], (5, 1))], axis=1).reshape(10, 6))
    seen = Decisions(rows, np.arange(0, 11, 2), [0] * 5, blocks=[Block("v", 6, True)])
    variance = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 100.0])
    placed = place(us.Gaussian(variance), seen)
    rng = np.random.default_rng(3)
    many = placed.draw(rng, 40_000)
    weight = np.exp(us.log_likelihood(seen, many).sum(axis=1))
    draws = placed.loosened(rng, many[rng.choice(len(many), 4000, p=weight / weight.sum())])
    x = Chart.curved(tally(seen), placed, draws, 50).coordinates(draws)
    assert scipy.stats.skew(draws[:, 5]) < -0.4
    np.testing.assert_allclose(scipy.stats.skew(x), 0.0, atol=0.15)  # four standard errors are 0.15
    np.testing.assert_allclose(np.cov(x.T), np.eye(6), atol=0.3)  # curvature and covariance only nearly agree
