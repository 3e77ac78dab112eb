"""Filtered paths against dense normal laws, and against the other code that knows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.kernels.path_augmentation import (
    Filtered,
    PathUtilities,
    draw_path,
    filter_path,
)
from revealed.kernels.state_space import make_path_workspace, make_placed, place_law
from revealed.samplers.builders import BuildArguments, build_path_augmentation
from tests.kernels.test_path_process import (
    WAYS,
    covariance_of_paths,
    sampler_of,
    theta_of,
)
from tests.support.statistical_asserts import assert_scores, must_fail


def augmented(way: str) -> tuple[Any, Any]:
    """Both samplers of one problem, this one under normal noise."""
    other = sampler_of(WAYS[way], rv.Normal(1.3))
    rng = np.random.default_rng(3)
    times = np.array([0.0, 0.5, 0.5, 2.0, 3.5, 3.5, 4.0])
    d = rv.Decisions(
        rng.standard_normal((21, 2)),
        range(0, 22, 3),
        rng.integers(0, 3, 7),
        times=times,
        sessions=np.where(times < 3.0, "a", "b"),
    )
    model = rv.ChoiceModel(prior=rv.Normal(1.3), over_time=WAYS[way])
    return build_path_augmentation(model.resolve(d), BuildArguments({}, 1)), other


def dense_law(
    problem: PathUtilities, other: Any, theta: Floats, w: Floats
) -> tuple[float, Floats, Floats]:
    """log p(w | theta), and mean and covariance of the path given w, by dense algebra."""
    nodes = len(problem.process.gap)
    prior = np.zeros((nodes, 2, nodes, 2))
    for i in range(2):
        prior[:, i, :, i] = covariance_of_paths(other, theta)[:, :, i]
    wide = prior.reshape(2 * nodes, 2 * nodes)
    reverts = problem.process.reverts
    centre = np.tile(theta[-2:] if reverts else np.zeros(2), nodes)
    # each row at the columns of its node
    rows = np.zeros((len(w), 2 * nodes))
    for n in range(nodes):
        own = slice(problem.node_row[n], problem.node_row[n + 1])
        rows[own, 2 * n : 2 * n + 2] = problem.rows[own]
    total = rows @ wide @ rows.T + np.eye(len(w))
    gain = wide @ rows.T @ np.linalg.inv(total)
    log_p = st.multivariate_normal(rows @ centre + problem.offset, total).logpdf(w)
    mean = centre + gain @ (w - problem.offset - rows @ centre)
    return float(log_p), mean, wide - gain @ rows @ wide


def filtered(problem: PathUtilities) -> Filtered:
    """Arrays for what a filter finds."""
    nodes = len(problem.process.gap)
    return Filtered(np.empty((nodes, 2)), np.empty((nodes, 2, 2)))


def draws_given(problem: PathUtilities, theta: Floats, w: Floats, count: int) -> Floats:
    """(count, N D) paths given these utilities."""
    rng, found = np.random.default_rng(6), filtered(problem)
    filter_path(problem, theta, w, found)
    paths = np.empty((count, *found.mean.shape))
    for path in paths:
        draw_path(rng, problem.process, theta, found, path)
    return paths.reshape(count, -1)


def scores(draws: Floats, mean: Floats, covariance: Floats) -> Floats:
    """Means and all second moments of draws of a normal law, in standard errors."""
    count, sd = len(draws), np.sqrt(np.diag(covariance))
    of_mean = (draws.mean(axis=0) - mean) / (sd / np.sqrt(count))
    centred = draws - mean
    error = np.sqrt((covariance**2 + np.outer(sd, sd) ** 2) / count)
    of_square = (centred.T @ centred / count - covariance) / error
    return np.concatenate([of_mean, of_square[np.tril_indices(len(sd))]])


@pytest.mark.parametrize("way", list(WAYS))
def test_filter_and_draws_are_those_of_a_dense_normal_law(way: str) -> None:
    sampler, other = augmented(way)
    problem, theta = sampler.problem, theta_of(other)
    w = np.random.default_rng(8).standard_normal(21)
    log_p, mean, covariance = dense_law(problem, other, theta, w)
    constant = -0.5 * len(w) * np.log(2.0 * np.pi)
    found = filter_path(problem, theta, w, filtered(problem))
    assert found + constant == pytest.approx(log_p, abs=1e-9)
    assert_scores(scores(draws_given(problem, theta, w, 20_000), mean, covariance), 1e-6, np.inf)


@pytest.mark.parametrize("way", list(WAYS))
def test_filter_agrees_with_the_block_tridiagonal_code(way: str) -> None:
    """Utilities make a quadratic of the path, whose law and evidence the other code has too."""
    sampler, other = augmented(way)
    problem, nodes = sampler.problem, other.nodes
    w = np.random.default_rng(8).standard_normal(21)
    curvature, linear = np.zeros((nodes, 2, 2)), np.zeros((nodes, 2))
    for n in range(nodes):
        own = slice(problem.node_row[n], problem.node_row[n + 1])
        curvature[n] = problem.rows[own].T @ problem.rows[own]
        linear[n] = problem.rows[own].T @ (w - problem.offset)[own]
    normal = other.finder.normal(other.start.stand_in)
    normal = normal._replace(curvature=curvature, linear=linear, constant=-0.5 * float(w @ w))
    work = make_path_workspace(other.data, nodes, 2)
    placed = make_placed(nodes, 2, len(other.known))
    here, there, found = [], [], filtered(problem)
    for shift in (0.0, 0.3):
        theta = theta_of(other) + shift
        assert place_law(normal, work, theta, placed)
        here.append(filter_path(problem, theta, w, found))
        there.append(placed.log_density[1])
        # the last node has seen everything
        np.testing.assert_allclose(found.mean[-1], (placed.law.centre + placed.mean)[-1], atol=1e-9)
    assert here[1] - here[0] == pytest.approx(there[1] - there[0], abs=1e-9)


def gap_squared(problem: PathUtilities) -> PathUtilities:
    """The sd of a step grows with the gap."""
    process = problem.process
    return problem._replace(process=process._replace(gap=process.gap**2))


def first_twice(problem: PathUtilities) -> PathUtilities:
    """The prior of the first value is counted twice."""
    return problem._replace(start_covariance=0.5 * problem.start_covariance)


def signs_turned(problem: PathUtilities) -> PathUtilities:
    """What is learnt at a node has the wrong sign at the next."""
    rows = problem.rows.copy()
    rows[problem.node_row[1] :] *= -1.0
    return problem._replace(rows=rows)


@pytest.mark.parametrize("spoil", [gap_squared, first_twice, signs_turned])
def test_wrong_filters_are_caught(spoil: Any) -> None:
    sampler, other = augmented("walk")
    problem, theta = sampler.problem, theta_of(other)
    w = np.random.default_rng(8).standard_normal(21)
    _, mean, covariance = dense_law(problem, other, theta, w)
    wrong = replace(sampler, problem=spoil(problem)).problem
    with must_fail(str(spoil.__doc__)):
        assert_scores(scores(draws_given(wrong, theta, w, 20_000), mean, covariance), 1e-6, np.inf)
