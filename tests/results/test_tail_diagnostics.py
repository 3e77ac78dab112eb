"""Chains that stand still or disagree in the tails are noticed, and healthy ones are not blamed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results import diagnostics
from revealed.results.summary import CONVERGENCE, Summary, summarise
from tests.support.cases import choose, mdp_offers


def summary(draws: Floats) -> Summary:
    return summarise(
        draws[:, :, None] if draws.ndim == 2 else draws, ("V(1)",), fixed=np.zeros(1, dtype=bool)
    )


def independence_chain(rng: np.random.Generator, chains: int, draws: int, sd: float) -> Floats:
    """(chain, draw) a standard normal by Metropolis steps from a wider normal."""
    x = np.empty((chains, draws))
    for chain in x:
        proposals = sd * rng.standard_normal(draws)
        log_weights = -0.5 * proposals**2 * (1.0 - 1.0 / sd**2)
        log_uniform = -rng.standard_exponential(draws)
        at = 0
        for n in range(draws):
            if log_weights[n] - log_weights[at] >= log_uniform[n]:
                at = n
            chain[n] = proposals[at]
    return x


def test_longest_stretch_is_counted_within_chains() -> None:
    draws = np.array([[1.0, 2.0, 2.0, 2.0, 3.0, 3.0], [3.0, 1.0, 2.0, 1.0, 2.0, 2.0]])
    both = np.stack([draws, np.zeros_like(draws)], axis=2)
    np.testing.assert_array_equal(diagnostics.longest_stretch(both), [3.0, 6.0])
    assert diagnostics.longest_stretch(np.arange(8.0).reshape(2, 4)) == 1.0


def test_longest_likely_stretch_follows_its_formula() -> None:
    """Half of the draws move; a third of that leaves a place that is left five times in six."""
    draws = np.repeat(np.arange(500.0), 2)[None]
    moves = 499 / 999
    expected = 1.0 + np.log(1000 / 1e-3) / -np.log(1.0 - moves / 3.0)
    assert diagnostics.longest_likely_stretch(draws, 3.0, 1e-3) == pytest.approx(expected)
    assert diagnostics.longest_likely_stretch(np.zeros((2, 10)), 3.0, 1e-3) == np.inf


def test_stretches_of_a_slower_place_are_as_rare_as_stated() -> None:
    """A chain that is left a third as often everywhere: one limit in 50 is passed, by the rate."""
    rng, limit_passed, runs, rate = np.random.default_rng(1), 0, 2000, 0.02
    limit = 1.0 + np.log(1000 / rate) / -np.log(1.0 - 0.6 / 3.0)
    for _ in range(runs):
        draws = np.cumsum(rng.random((1, 1000)) < 0.6 / 3.0, axis=1).astype(np.float64)
        limit_passed += int(diagnostics.longest_stretch(draws) > limit)
    # an upper bound of the rate: a union over all draws at which a stretch may begin
    assert limit_passed / runs < rate


def test_chain_that_stood_still_is_not_trusted() -> None:
    """A hundred equal draws of 80,000 in a tail: all that R-hat and effective draws see is fine."""
    draws = independence_chain(np.random.default_rng(2), 4, 20_000, 1.2)
    assert summary(draws).converged
    draws[1, 3000:3101] = 2.6
    s = summary(draws)
    assert s.r_hat[0] < CONVERGENCE.max_r_hat
    assert s.ess_tail[0] > 10 * CONVERGENCE.min_ess_per_chain * 4
    assert not s.converged
    (sentence,) = s.warnings
    assert sentence.startswith("V(1): 101 draws in a row are the same (chance explains ")
    assert sentence in s.message


def test_chain_that_misses_a_tail_is_not_trusted() -> None:
    """One of four chains has two thirds of the upper tail: R-hat and effective draws are fine."""
    rng = np.random.default_rng(3)
    draws = rng.standard_normal((4, 20_000))
    assert summary(draws).converged
    far = (draws[2] > 1.7) & (rng.random(20_000) < 1.0 / 3.0)
    draws[2, far] = rng.uniform(-0.5, 1.5, far.sum())
    s = summary(draws)
    assert s.r_hat[0] < CONVERGENCE.max_r_hat
    assert s.ess_tail[0] > CONVERGENCE.min_ess_per_chain * 4
    assert not s.converged
    (sentence,) = s.warnings
    assert sentence.startswith("V(1): a chain has too many or too few draws in a tail, by ")


def test_one_chain_has_nobody_to_disagree_with() -> None:
    assert diagnostics.tail_disagreement(np.random.default_rng(4).standard_normal((1, 400))) == 0.0


@pytest.mark.parametrize("draws", [100, 1000])
def test_healthy_chains_are_not_blamed(draws: int) -> None:
    """300 summaries of four chains; the stated rate is one alarm in 10,000."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        autoregressive = rng.standard_normal((4, draws))
        for t in range(1, draws):
            autoregressive[:, t] += 0.6 * autoregressive[:, t - 1]
        independent = rng.standard_normal((4, draws))
        for x in (independent, autoregressive, independence_chain(rng, 4, draws, 1.3)):
            assert summary(x)._problems_of_tails() == []


SAMPLERS = ["composite", "da", "px-both", "ibis", "laplace"]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_healthy_runs_of_every_sampler_are_not_blamed(sampler: str) -> None:
    """Particles and resampled draws repeat themselves, and that is right."""
    offers = mdp_offers(states=5, actions=3, count=40, seed=1)
    decisions = offers.with_choices(choose(np.random.default_rng(1), offers, np.arange(5.0))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        post = rv.fit(decisions, rv.ChoiceModel(prior=rv.Normal(2.0)), sampler=sampler, seed=1)
    assert post.summary()._problems_of_tails() == []


def test_healthy_runs_of_other_models_are_not_blamed() -> None:
    """A population, correlated noise and a ranking."""
    rng = np.random.default_rng(1)
    rows, actions = rng.standard_normal((180, 2)), ["a", "b", "c"] * 60
    people = [f"person {i % 5}" for i in range(60)]
    offers = Decisions(rows, np.arange(61) * 3, actions=actions, groups=people)
    decisions = offers.with_choices(choose(rng, offers, np.array([0.5, -0.5]))[0])
    populations = rv.ChoiceModel(groups=rv.Hierarchical())
    correlated = rv.ChoiceModel(noise=rv.CorrelatedNoise(base="a"))
    games = [rng.permutation(["a", "b", "c", "d"]).tolist() for _ in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        found = [
            rv.fit(decisions, populations, draws=500, seed=1).summary(),
            rv.fit(decisions, correlated, draws=300, seed=1).summary(),
            rv.fit(games, rv.RankingModel(), draws=500, seed=1, progress=False).summary(),
        ]
    assert [s._problems_of_tails() for s in found] == [[], [], []]
