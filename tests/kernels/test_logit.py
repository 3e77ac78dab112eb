"""Logit noise against softmax in NumPy and SciPy: sums, slopes, information, extremes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax

import revealed as rv
from revealed._types import Floats
from revealed.kernels.log_posterior import log_posterior
from revealed.kernels.noise import NORMAL
from revealed.models.likelihood import weighted_derivatives
from revealed.models.priors import resolve_prior
from revealed.samplers.chunk_likelihood import derivatives, prepare, values_and_gradients
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.state import unpack_transform
from tests.support.statistical_asserts import assert_scores, must_fail

NOISE = rv.LogitNoise()
LAW = NOISE.kernel()

# decisions, actions, coefficients, and how far utilities lie apart
SHAPES = {
    "pairs": (60, 2, 2, 1.0),
    "few actions": (500, 3, 3, 1.0),
    "many actions": (30, 61, 4, 1.0),
    "more than are taken at a time": (3, 5000, 2, 1.0),
    "far apart": (100, 4, 2, 300.0),
    "beyond exponentials": (40, 3, 2, 1e6),
}


def problem(shape: str) -> tuple[rv.Decisions, Floats, Floats]:
    """Decisions with equal rows and equal decisions among them, values, and their weights."""
    count, actions, width, scale = SHAPES[shape]
    rng = np.random.default_rng(count)
    # rounded, so that rows repeat; the first decisions are made again
    rows = np.round(rng.standard_normal((count, actions, width)), 1)
    rows[count // 2 :] = rows[: count - count // 2]
    chosen = rng.integers(0, actions, count)
    chosen[count // 2 :] = chosen[: count - count // 2]
    d = rv.Decisions(rows.reshape(-1, width), actions * np.arange(count + 1), chosen)
    return d, scale * rng.standard_normal((3, width)), rng.integers(1, 4, count).astype(float)


def by_softmax(d: rv.Decisions, v: Floats, weight: Floats) -> tuple[float, Floats, Floats]:
    """Log-likelihood, gradient and minus Hessian, from the definitions."""
    x = np.asarray(d.rows).reshape(len(d), -1, len(v))
    at = np.arange(len(d)), d.chosen_row - d.start[:-1]
    p = softmax(x @ v, axis=1)
    mean = np.einsum("tm,tmk->tk", p, x)
    square = np.einsum("t,tm,tmk,tml->kl", weight, p, x, x)
    return (
        float(weight @ log_softmax(x @ v, axis=1)[at]),
        weight @ (x[at] - mean),
        square - np.einsum("t,tk,tl->kl", weight, mean, mean),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_are_those_of_softmax(shape: str, sparse: bool) -> None:
    d, values, weight = problem(shape)
    given = rv.Decisions(sp.csr_array(d.rows), d.start, d.chosen) if sparse else d
    chunk = prepare(given, weight)
    found = values_and_gradients(chunk, values, LAW)
    for s, v in enumerate(values):
        value, gradient, information = by_softmax(d, v, weight)
        assert found[s, 0] == pytest.approx(value, rel=1e-13)
        size = np.abs(d.rows).sum(axis=0) * weight.max()
        np.testing.assert_allclose(found[s, 1:], gradient, rtol=0, atol=1e-15 * size.max())
        curved = derivatives(chunk, v, LAW)[1:, 1:]
        np.testing.assert_allclose(curved, information, rtol=1e-11, atol=1e-12 * size.max())
        slope, _ = weighted_derivatives(given, v, weight, LAW)
        np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-13 * size.max())


@pytest.mark.parametrize("shape", SHAPES)
def test_probabilities_are_softmax(shape: str) -> None:
    d, values, _ = problem(shape)
    found = rv.choice_probabilities(d, values, NOISE).reshape(len(values), len(d), -1)
    exact = softmax((d.rows @ values.T).T.reshape(found.shape), axis=2)
    np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-300)
    logs = rv.log_likelihood(d, values, NOISE)
    at = d.chosen_row - d.start[:-1]
    exact_logs = log_softmax((d.rows @ values.T).T.reshape(found.shape), axis=2)
    np.testing.assert_allclose(logs, exact_logs[:, np.arange(len(d)), at], rtol=1e-13, atol=1e-15)


def test_what_is_below_the_floor_is_minus_infinity() -> None:
    """As Hamiltonian paths ask for it; a floor just below the answer is not."""
    d, *_ = problem("few actions")
    sampler = CompositeSampler.build(d, resolve_prior(rv.Normal(2.0), d), noise=LAW)
    state = sampler.init(np.random.default_rng(1), None)
    target, workspace = sampler.posterior(unpack_transform(state))
    x, none, slope = np.zeros(3), np.empty(0), np.empty(3)
    exact = log_posterior(target, workspace, x, -np.inf, slope)
    assert np.isfinite(exact)
    assert log_posterior(target, workspace, x, exact - 1e-9, none) == exact
    assert log_posterior(target, workspace, x, exact + 1e-9, none) == -np.inf


def test_logit_noise_has_a_loop_of_its_own_and_another_of_that_name_has_not() -> None:
    """A law is known by its formula."""

    class Imitation(rv.Noise):
        name = "logit"

        @staticmethod
        def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
            slopes[:] = -1.0
            return -1.0

    assert LAW.is_logit
    assert not Imitation().kernel().is_logit
    assert not NORMAL.is_logit


def test_gumbel_noise_chooses_as_often_as_softmax_says() -> None:
    rng, count = np.random.default_rng(2), 40_000
    utilities = np.array([0.5, 0.0, -1.0, 2.0])
    chosen = (utilities + NOISE.sample(rng, (count, 4))).argmax(axis=1)
    p = softmax(utilities)
    sd = np.sqrt(p * (1.0 - p) / count)

    def check(frequency: Floats) -> None:
        assert_scores((frequency - p) / sd, false_alarm=1e-6)

    check(np.bincount(chosen, minlength=4) / count)
    with must_fail("normal noise"):
        normal = (utilities + rng.standard_normal((count, 4))).argmax(axis=1)
        check(np.bincount(normal, minlength=4) / count)
