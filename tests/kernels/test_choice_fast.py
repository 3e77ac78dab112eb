"""The fast likelihood against the exact one, and the counting it rests on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate
from revealed.kernels.choice_exact import log_likelihood_and_gradient, log_probabilities
from revealed.kernels.choice_fast import RivalIndex, log_likelihood, make_choice_workspace
from revealed.kernels.log_posterior import log_posterior, make_posterior_workspace
from revealed.models.likelihood import derivatives
from revealed.models.priors import resolve_prior
from revealed.samplers.composite.transform import WhiteningTransform, log_posterior_in_coordinates
from tests.support.cases import choose, mdp_offers, ragged_offers
from tests.support.statistical_asserts import assert_error


def exact(gaps: Floats) -> tuple[Floats, Floats]:
    """(T,) log P and (T, M) slopes by the exact rule; the chosen actions have utility zero."""
    count, rivals = gaps.shape
    mu = np.hstack([np.zeros((count, 1)), gaps]).ravel()
    start = np.arange(count + 1) * (rivals + 1)
    out, slope = np.empty(count), np.empty(mu.size)
    log_probabilities(mu, start, start[:-1].copy(), out)
    log_likelihood_and_gradient(mu, start, start[:-1].copy(), slope)
    return out, slope.reshape(count, -1)[:, 1:]


def rival_index_of(gaps: Floats, copies: float = 1.0) -> RivalIndex:
    count, rivals = gaps.shape
    return RivalIndex(np.arange(count + 1) * rivals, np.full(gaps.size, copies), np.ones(count))


LEADS = (-8.0, -4.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0, 30.0, 300.0)
RIVALS = (1, 2, 3, 10, 34)
SPREADS = (0.3, 1.0, 3.0, 10.0)


@pytest.mark.proves(part="the fast choice probability of Hamiltonian paths")
def test_value_and_gradient_are_those_of_the_exact_rule() -> None:
    """Forty decisions for each mean gap, number of rivals and spread of gaps."""
    for rivals, spread, lead in itertools.product(RIVALS, SPREADS, LEADS):
        assert_value_and_gradient(rivals, spread, lead)


def assert_value_and_gradient(rivals: int, spread: float, lead: float) -> None:
    case = f"{rivals} rivals, spread {spread}, lead {lead}"
    gaps = lead + spread * np.random.default_rng(7).standard_normal((40, rivals))
    value, slope = exact(gaps)
    rival_index, found = rival_index_of(gaps), np.empty(gaps.size)
    made = log_likelihood(
        gaps.ravel(), rival_index, make_choice_workspace(rival_index), -np.inf, found
    )
    # the error of a decision, or a relative error of 1e-6
    assert_error((made - value.sum()) / max(40.0, abs(value.sum()) / 30.0), 3e-5)
    np.testing.assert_allclose(found.reshape(gaps.shape), slope, atol=3e-4, rtol=1e-4, err_msg=case)
    alone = log_likelihood(
        gaps.ravel(), rival_index, make_choice_workspace(rival_index), -np.inf, np.empty(0)
    )
    # sums of single precision in another order
    assert alone == pytest.approx(made, abs=1e-6, rel=1e-8), case


@pytest.mark.parametrize(("rivals", "error"), [(20, 1e-4), (49, 3e-4), (100, 1e-4), (500, 1e-4)])
def test_error_with_tied_rivals_is_as_stated(rivals: int, error: float) -> None:
    for lead in np.arange(-6.0, 6.1, 0.25):
        gaps = np.full((1, rivals), lead)
        rival_index = rival_index_of(gaps)
        made = log_likelihood(
            gaps.ravel(), rival_index, make_choice_workspace(rival_index), -np.inf, np.empty(0)
        )
        assert made == pytest.approx(exact(gaps)[0][0], abs=error)


def test_multiplicity_gives_the_likelihood_of_copied_rivals() -> None:
    gaps = np.random.default_rng(3).standard_normal((50, 4)) - 1.0
    once, thrice = rival_index_of(gaps, copies=3.0), rival_index_of(np.repeat(gaps, 3, axis=1))
    slope, slopes = np.empty(200), np.empty(600)
    value = log_likelihood(gaps.ravel(), once, make_choice_workspace(once), -np.inf, slope)
    values = log_likelihood(
        np.repeat(gaps, 3, axis=1).ravel(), thrice, make_choice_workspace(thrice), -np.inf, slopes
    )
    assert value == pytest.approx(values, rel=1e-6)
    np.testing.assert_allclose(slope, slopes.reshape(200, 3).sum(axis=1), rtol=1e-4, atol=1e-7)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.floats(-3.0, 3.0), st.floats(0.1, 60.0))
def test_floor_stops_only_likelihoods_below_it(seed: int, above: float, spread: float) -> None:
    gaps = spread * np.random.default_rng(seed).standard_normal((30, 5))
    rival_index = rival_index_of(gaps)
    value = log_likelihood(
        gaps.ravel(), rival_index, make_choice_workspace(rival_index), -np.inf, np.empty(0)
    )
    floored = log_likelihood(
        gaps.ravel(), rival_index, make_choice_workspace(rival_index), value + above, np.empty(0)
    )
    assert np.isfinite(value)
    assert floored == value if above <= 0.0 else floored in (value, -np.inf)


def repeated(sparse: bool) -> Decisions:
    """Decisions of a small MDP, most met several times; some actions lead where others do."""
    offered = mdp_offers(states=4, actions=3, count=60, seed=2)
    rows = np.array(offered.rows.toarray() if sp.issparse(offered.rows) else offered.rows)
    rows[1::3] = rows[::3]
    seen = Decisions(rows, offered.start, blocks=offered.blocks)
    seen = seen.with_choices(
        choose(np.random.default_rng(4), seen, np.array([1.0, -1.0, 2.0, -2.0]))[0]
    )
    return (
        Decisions(sp.csr_array(rows), seen.start, seen.chosen, blocks=seen.blocks)
        if sparse
        else seen
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_deduplicated_decisions_have_the_same_likelihood(sparse: bool) -> None:
    decisions = repeated(sparse)
    counted = deduplicate(decisions)
    assert counted.rival_index.weight.sum() == len(decisions)
    assert len(counted.unique) <= 12
    assert counted.rival_index.multiplicity.max() == 2.0
    times = np.repeat(counted.rival_index.weight, np.diff(counted.rival_index.start))
    assert (times * counted.rival_index.multiplicity).sum() == decisions.rows.shape[0] - len(
        decisions
    )
    workspace = make_choice_workspace(counted.rival_index)
    for v in 3.0 * np.random.default_rng(5).standard_normal((20, 4)):
        made = log_likelihood(
            counted.rival_minus_chosen @ v, counted.rival_index, workspace, -np.inf, np.empty(0)
        )
        assert made == pytest.approx(rv.log_likelihood(decisions, v).sum(), rel=2e-5)


def seen_in(kind: str, rng: np.random.Generator) -> Decisions:
    """Dense rows; sparse ones of states; and sparse ones that do not add to one.

    A constant added to the value changes the utilities of the last.
    """
    if kind == "dense":
        seen = ragged_offers(4, 50, seed=8)
    else:
        seen = mdp_offers(states=20, actions=3, count=200, seed=8)
        rows = np.where(seen.rows > 0.05, seen.rows, 0.0)
        rows /= 1.0 if kind == "not adding to one" else rows.sum(axis=1, keepdims=True)
        seen = Decisions(sp.csr_array(rows), seen.start, blocks=seen.blocks)
    return seen.with_choices(choose(rng, seen, rng.standard_normal(len(seen.names)))[0])


PRIORS = {
    "scalar": lambda width: rv.Normal(2.0**0.5, mean=np.linspace(-1, 1, width)),
    "matrix": lambda width: rv.Normal(
        mean=np.linspace(-1, 1, width), covariance=np.eye(width) + 0.5
    ),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "not adding to one"])
def test_log_posterior_and_gradient_are_exact_in_any_coordinates(
    kind: str, skewed: bool, prior: str
) -> None:
    rng = np.random.default_rng(6)
    seen = seen_in(kind, rng)
    width = len(seen.names)
    resolved_prior = resolve_prior(PRIORS[prior](width), seen)
    centre = resolved_prior.mean + resolved_prior.basis @ rng.standard_normal(
        resolved_prior.basis.shape[1]
    )
    free = width if skewed else resolved_prior.basis.shape[1]
    root = np.tril(rng.standard_normal((free, free)), -1) / free + np.eye(free)
    if skewed:
        scale, skew = rng.uniform(0.5, 2.0, width), rng.uniform(-0.9, 0.9, width)
        transform = WhiteningTransform(
            centre, scale, skew, np.ascontiguousarray(np.linalg.inv(root)), root
        )
    else:
        transform = WhiteningTransform.from_precision(resolved_prior, centre, root @ root.T)

    def exact(x: Floats) -> float:
        v = transform.value(x)
        constants = resolved_prior.constant_directions.T @ v
        fixed = v - resolved_prior.constant_directions @ constants
        unwhitened = transform.unwhiten @ x
        log_jacobian = np.log(
            1.0 + transform.skew * unwhitened / np.sqrt(1.0 + unwhitened**2)
        ).sum()
        value = rv.log_likelihood(seen, fixed).sum() + float(resolved_prior.log_density(fixed))
        return float(
            value - 0.5 * resolved_prior.constant_precision * constants @ constants + log_jacobian
        )

    target = log_posterior_in_coordinates(
        deduplicate(seen), resolved_prior, resolved_prior, transform
    )
    workspace = make_posterior_workspace(target)
    values, expected, gradient = [], [], np.empty(free)
    for x in 0.5 * rng.standard_normal((5, free)):
        np.testing.assert_allclose(transform.coordinates(transform.value(x)), x, atol=1e-10)
        values.append(log_posterior(target, workspace, x, -np.inf, gradient))
        expected.append(exact(x))
        sides = 1e-4 * np.eye(free)
        differences = [(exact(x + side) - exact(x - side)) / 2e-4 for side in sides]
        np.testing.assert_allclose(gradient, differences, atol=2e-3)
    np.testing.assert_allclose(np.diff(values), np.diff(expected), atol=1e-3)


def test_linear_coordinates_sum_to_zero_and_have_unit_curvature_on_average() -> None:
    rng = np.random.default_rng(2)
    mdp = rv.random_mdp(rng, 5, 3)
    path = mdp.simulate(rng, [2.0, 1.0, 0.0, -1.0, -2.0], 30)
    seen = mdp.decisions(path.states, path.actions)
    resolved_prior = resolve_prior(rv.Normal(2.0), seen)
    draws = resolved_prior.draw(rng, 6)
    transform = WhiteningTransform.from_curvature(deduplicate(seen), resolved_prior, draws, 6)
    np.testing.assert_allclose(
        resolved_prior.constant_directions.T @ transform.value(np.ones(4)), 0.0, atol=1e-12
    )
    curvature = np.mean(
        [resolved_prior.full_precision - derivatives(seen, v)[2] for v in draws], axis=0
    )
    np.testing.assert_allclose(
        transform.unwhiten.T @ curvature @ transform.unwhiten, np.eye(4), atol=1e-8
    )


def test_skewed_coordinates_make_half_a_normal_about_normal() -> None:
    """A state only known to be worse than five others: its value is half a normal, unskewed."""
    better = np.eye(6)[:5]
    rows = sp.csr_array(np.stack([better, np.tile(np.eye(6)[5], (5, 1))], axis=1).reshape(10, 6))
    seen = Decisions(rows, np.arange(0, 11, 2), [0] * 5, blocks=[Block("v", 6, True)])
    variance = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 100.0])
    resolved_prior = resolve_prior(rv.Normal(variance**0.5), seen)
    rng = np.random.default_rng(3)
    many = resolved_prior.draw(rng, 40_000)
    weight = np.exp(rv.log_likelihood(seen, many).sum(axis=1))
    draws = resolved_prior.with_random_constants(
        rng, many[rng.choice(len(many), 4000, p=weight / weight.sum())]
    )
    x = WhiteningTransform.from_draws_skewed(
        deduplicate(seen), resolved_prior, draws, 50
    ).coordinates(draws)
    assert scipy.stats.skew(draws[:, 5]) < -0.4
    np.testing.assert_allclose(scipy.stats.skew(x), 0.0, atol=0.15)  # four standard errors are 0.15
    # curvature and covariance only nearly agree
    np.testing.assert_allclose(np.cov(x.T), np.eye(6), atol=0.3)
