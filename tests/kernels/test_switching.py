"""The likelihood of strategies that take turns: enumeration, extremes, and slopes by differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats, Ints
from revealed.kernels.hidden_markov import Chain, most_probable_states, smooth_all
from revealed.samplers.builders import BuildArguments, build_hidden_markov
from revealed.samplers.switching_density import SwitchingDensity
from tests.support.statistical_asserts import assert_error, must_fail

STATES, KINDS = 3, 4
START = np.array([0, 5, 6, 9])


def random_chain(rng: np.random.Generator) -> Chain:
    return Chain(rng.dirichlet(np.ones(STATES), STATES), rng.dirichlet(np.ones(STATES)))


def recursions(
    kind: Ints, start: Ints, chain: Chain, logs: Floats
) -> tuple[Floats, Floats, Floats]:
    """Smoothed and predicted probabilities (T, S), and the log-likelihood of each sequence."""
    shape = len(kind), logs.shape[1]
    smooth, predicted, found = np.empty(shape), np.empty(shape), np.empty(len(start) - 1)
    smooth_all(kind, start, chain, logs, smooth, predicted, found)
    return smooth, predicted, found


def enumerated(kind: Ints, chain: Chain, logs: Floats) -> tuple[float, Floats, Ints]:
    """The same of one sequence over all sequences of states; and the likeliest of these."""
    paths = list(itertools.product(range(STATES), repeat=len(kind)))
    weight = np.empty(len(paths))
    for p, path in enumerate(paths):
        weight[p] = np.log(chain.initial[path[0]]) + logs[kind, path].sum()
        weight[p] += sum(np.log(chain.switch[i, j]) for i, j in itertools.pairwise(path))
    total = np.logaddexp.reduce(weight)
    share, smooth = np.exp(weight - total), np.zeros((len(kind), STATES))
    for path, own in zip(paths, share, strict=True):
        smooth[np.arange(len(kind)), path] += own
    return float(total), smooth, np.array(paths[int(np.argmax(weight))])


@pytest.mark.parametrize("seed", range(3))
def test_recursions_agree_with_all_sequences_of_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain, logs = random_chain(rng), np.log(rng.uniform(0.01, 1.0, (KINDS, STATES)))
    kind = rng.integers(0, KINDS, START[-1])
    smooth, predicted, found = recursions(kind, START, chain, logs)
    path = np.empty(len(kind), np.int64)
    most_probable_states(kind, START, chain, logs, path)
    for n, (low, high) in enumerate(itertools.pairwise(START)):
        total, exact, best = enumerated(kind[low:high], chain, logs)
        assert found[n] == pytest.approx(total, rel=1e-12)
        np.testing.assert_allclose(smooth[low:high], exact, atol=1e-12)
        np.testing.assert_array_equal(path[low:high], best)
        # before the first choice there is only the initial law
        np.testing.assert_allclose(predicted[low], chain.initial, atol=1e-15)
        # the last state is predicted from what is known without the last choice
        if high - low > 1:
            before = enumerated(kind[low : high - 1], chain, logs)[1][-1]
            np.testing.assert_allclose(predicted[high - 1], before @ chain.switch, atol=1e-12)


def test_likelihoods_that_are_thousands_apart_do_not_underflow() -> None:
    rng = np.random.default_rng(5)
    chain = Chain(np.full((2, 2), 0.5), np.array([1.0 - 1e-90, 1e-90]))
    chain.switch[:] = [[1.0 - 1e-90, 1e-90], [1e-80, 1.0]]
    logs = -rng.uniform(0.0, 5000.0, (KINDS, 2))
    kind = rng.integers(0, KINDS, 200)
    _, _, found = recursions(kind, np.array([0, 200]), chain, logs)
    # the recursion in logs, which cannot underflow
    before = np.log(chain.initial) + logs[kind[0]]
    for u in kind[1:]:
        before = np.logaddexp.reduce(before[:, None] + np.log(chain.switch), axis=0) + logs[u]
    assert found[0] == pytest.approx(np.logaddexp.reduce(before), rel=1e-12)


def density_of(noise: Any, prior: Any) -> SwitchingDensity:
    """A dozen choices among three actions, in two sequences."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(36, 2))
    d = rv.Decisions(
        rows, range(0, 37, 3), rng.integers(0, 3, 12), sessions=np.repeat(["a", "b"], [5, 7])
    )
    model = rv.ChoiceModel(prior=prior, noise=noise, over_time=rv.Switching(STATES))
    sampler: Any = build_hidden_markov(model.resolve(d), BuildArguments({}, 1))
    found: SwitchingDensity = sampler.density
    return found


def differences(density: SwitchingDensity, theta: Floats) -> Floats:
    work, none, step = density.workspace(), np.empty(density.size), 1e-5

    def at(shift: Floats) -> float:
        return density.evaluate(work, theta + shift, none)

    return np.array([(at(step * e) - at(-step * e)) / (2.0 * step) for e in np.eye(density.size)])


@pytest.mark.parametrize(
    ("noise", "prior"),
    [
        (rv.LogitNoise(), rv.Normal(2.0)),
        (rv.LogitNoise(lapse=rv.Lapse()), rv.Normal(rv.HalfStudentT(scale=2.0))),
    ],
)
def test_slopes_are_those_of_the_log_posterior(noise: Any, prior: Any) -> None:
    density = density_of(noise, prior)
    theta = np.random.default_rng(6).normal(size=density.size)
    work, slope = density.workspace(), np.empty(density.size)
    density.evaluate(work, theta, slope)
    numeric = differences(density, theta)
    # central differences of step 1e-5 are off by 1e-10 and by rounding over the step
    assert_error(slope - numeric, 1e-7)
    # gamma without the backward part: each choice counts by what was known up to it
    data, width = density.data, density.width
    weight = np.zeros_like(work.smoothed.weight)
    np.add.at(weight, data.kind, work.smoothed.filtered)
    rival_weight = np.repeat(weight, np.diff(data.rivals.start), axis=0)
    scale = np.exp(theta[density.scale_at]) if density.prior.scale > 0.0 else 1.0
    wrong = slope.copy()
    for s in range(STATES):
        by_value = data.design.columns @ (rival_weight[:, s] * work.likelihoods.slopes[s])
        own = slice(s * width, (s + 1) * width)
        wrong[own] = scale * density.prior.width * by_value - theta[own]
    with must_fail("gamma without the backward part"):
        assert_error(wrong - numeric, 1e-3)


def test_posterior_is_the_same_under_every_order_of_the_labels() -> None:
    density = density_of(rv.LogitNoise(), rv.Normal(2.0))
    theta = np.random.default_rng(6).normal(size=density.size)
    work, none, width = density.workspace(), np.empty(density.size), density.width
    value = density.evaluate(work, theta, none)
    order, basis = np.array([2, 0, 1]), density.prior.simplex
    rows = theta[STATES * width : density.scale_at].reshape(STATES + 1, -1) @ basis.T
    moved = [*rows[order][:, order], rows[STATES][order]]
    other = np.concatenate(
        [theta[: STATES * width].reshape(STATES, -1)[order].ravel(), (moved @ basis).ravel()]
    )
    assert density.evaluate(work, other, none) == pytest.approx(value, rel=1e-12)


def test_nothing_is_evaluated_where_probabilities_would_be_too_small() -> None:
    density = density_of(rv.LogitNoise(), rv.Normal(2.0))
    theta = np.zeros(density.size)
    theta[STATES * density.width] = 1e4
    slope = np.ones(density.size)
    assert density.evaluate(density.workspace(), theta, slope) == -np.inf
    assert not slope.any()
