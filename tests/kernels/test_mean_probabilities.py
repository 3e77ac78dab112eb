"""The probabilities of all actions at once: against the exact kernel, ties and leads included."""

import numpy as np
import pytest

from revealed._types import Floats
from revealed.kernels import choice_exact, mean_probabilities

STATED_ERROR = 3e-7


def difference(mu: Floats, size: int) -> float:
    """The largest difference from the exact kernel, with utilities (P, S) in decisions of one size."""
    rows, draws = mu.shape
    start = size * np.arange(rows // size + 1)
    found, exact = np.zeros((rows, draws)), np.empty(rows)
    mean_probabilities.add_probabilities(mu, start, np.arange(draws), found)
    worst = 0.0
    for s in range(draws):
        choice_exact.all_probabilities(np.ascontiguousarray(mu[:, s]), start, exact)
        worst = max(worst, float(np.abs(found[:, s] - exact).max()))
    np.testing.assert_allclose(found.reshape(-1, size, draws).sum(axis=1), 1.0, rtol=1e-10)
    return worst


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 12, 13, 64, 65])
def test_error_is_what_is_stated(size: int) -> None:
    """Utilities of all spreads; all tied; and the best ahead of tied others, the sharpest integrand."""
    rng = np.random.default_rng(size)
    spread = np.repeat([0.03, 0.3, 1.0, 3.0, 10.0, 100.0], 4)
    utilities = [rng.standard_normal((10 * size, len(spread))) * spread]
    leads = np.array([0.0, 0.3, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0])
    tied = np.zeros((size, len(leads)))
    tied[-1] = leads
    assert max(difference(mu, size) for mu in (*utilities, tied)) < STATED_ERROR


def test_draws_are_added_to_their_batches() -> None:
    mu = np.random.default_rng(1).standard_normal((8, 6))
    start, each, found = np.array([0, 3, 8]), np.zeros((8, 6)), np.ones((8, 2))
    mean_probabilities.add_probabilities(mu, start, np.arange(6), each)
    mean_probabilities.add_probabilities(mu, start, np.array([0, 1, 1, 0, 0, 1]), found)
    expected = 1.0 + np.stack([each[:, [0, 3, 4]].sum(axis=1), each[:, [1, 2, 5]].sum(axis=1)], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("size", [2, 3, 6, 20])
def test_equal_actions_have_equal_probabilities_to_the_last_digit(size: int) -> None:
    """So that the first of equals is predicted."""
    mu = np.tile(np.random.default_rng(size).standard_normal(50), (2 * size, 1))
    mu[size - 1] += 1.0
    found = np.zeros((2 * size, 1))
    start = np.array([0, size, 2 * size])
    mean_probabilities.add_probabilities(mu, start, np.zeros(50, np.int64), found)
    assert len(set(found[: size - 1, 0])) == len(set(found[size:, 0])) == 1
