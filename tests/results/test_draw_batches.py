"""Monte-Carlo errors by batch means: against runs repeated many times; and which draws are used."""

import numpy as np
import pytest
import scipy.stats as st

from revealed._types import Floats
from revealed.results.draw_batches import (
    batch_deviations,
    batch_error,
    cut_into_batches,
    jackknife_deviations,
    leave_batches_out,
    plan_draws,
)


def chains(rng: np.random.Generator, runs: int, correlation: float) -> Floats:
    """(runs, 4, 1000) stationary chains whose neighbours have this correlation."""
    noise = rng.standard_normal((runs, 4, 1000))
    for s in range(1, 1000):
        noise[:, :, s] = (
            correlation * noise[:, :, s - 1] + np.sqrt(1.0 - correlation**2) * noise[:, :, s]
        )
    return noise


def are_errors_right(means: Floats, errors: Floats, degrees: int) -> bool:
    """The sum of squared z is about chi-squared, a little larger because the error is estimated."""
    z = means / errors
    total = (z**2).sum() * (degrees - 2) / degrees
    low, high = st.chi2.ppf([1e-4, 1 - 1e-4], len(z))
    # a tenth for batches that are not infinitely longer than the dependence between draws
    return bool(low / 1.1 < total < high * 1.1)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_errors_are_those_of_repeated_runs(correlation: float) -> None:
    x = chains(np.random.default_rng(1), 1000, correlation).reshape(1000, -1)
    batch = cut_into_batches(4, 1000)
    count = np.bincount(batch)
    assert len(count) == 40
    sums = np.stack([x[:, batch == b].sum(axis=1) for b in range(40)], axis=1)
    means, deviations = batch_deviations(sums, count)
    assert are_errors_right(means, batch_error(deviations), 39)
    # the mutant that takes draws for independent
    naive = x.std(axis=1) / np.sqrt(4000.0)
    assert are_errors_right(means, naive, 39) == (correlation == 0.0)


def test_the_jackknife_of_a_mean_is_its_batch_error() -> None:
    x = np.random.default_rng(2).standard_normal(4000)
    batch = cut_into_batches(4, 1000)
    sums = np.bincount(batch, x).astype(np.float64)[None]
    direct = batch_error(batch_deviations(sums, np.bincount(batch))[1])
    without = leave_batches_out(x[:, None], batch)[:, 0]
    np.testing.assert_allclose(batch_error(jackknife_deviations(without)), direct[0], rtol=1e-10)


@pytest.mark.parametrize(("chain", "draw"), [(4, 1000), (1, 4000), (3, 7), (1, 1), (100, 3)])
def test_stages_use_every_draw_once_and_batches_stay_in_their_chain(chain: int, draw: int) -> None:
    plan = plan_draws(chain, draw, None)
    np.testing.assert_array_equal(plan.used, np.arange(chain * draw))
    chain_of = np.repeat(np.arange(chain), draw)
    assert all(len(set(chain_of[plan.batch == b])) == 1 for b in range(plan.count))
    assert plan.counts(len(plan.stages)).sum() == chain * draw


def test_first_draws_are_spread_over_chains() -> None:
    plan = plan_draws(4, 1000, None)
    first = plan.stages[0]
    assert len(first) == 320
    assert np.diff(first).max() <= 25
    np.testing.assert_array_equal(np.bincount(first // 1000), 80)
    np.testing.assert_array_equal(plan.counts(1), 8)


def test_so_many_draws_are_spread_evenly() -> None:
    plan = plan_draws(4, 1000, 10)
    np.testing.assert_array_equal(plan.used, 200 + 400 * np.arange(10))
    assert plan.count == 10
    assert len(plan_draws(4, 1000, 9999).used) == 4000
    np.testing.assert_array_equal(plan_draws(2, 3, "all").used, np.arange(6))
    with pytest.raises(ValueError, match='draws must be a number, "all" or None'):
        plan_draws(4, 1000, "many")
    with pytest.raises(ValueError, match="draws must be a whole number"):
        plan_draws(4, 1000, 0)
