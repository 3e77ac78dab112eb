"""Predictions: against hand-computed cases, against one another, and against a controller whose value is known."""

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats as st
from scipy.special import log_ndtr, ndtr

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.choice import ChoiceModel
from revealed.models.likelihood import choice_probabilities
from revealed.models.priors import Normal
from revealed.results.choice import ChoicePosterior
from revealed.results.draw_batches import split_rows
from revealed.results.policy import policy
from revealed.results.predictive import METHODS, predict
from tests.support.cases import choose, ragged_offers

votes = importlib.import_module("revealed.results.votes")
policies = importlib.import_module("revealed.results.policy")
ROOT_TWO = np.sqrt(2.0)

KERNEL_ERROR = 3e-7
"""What `kernels/mean_probabilities.py` says its probabilities are off by at most."""


def posterior(draws: Any, decisions: Decisions) -> ChoicePosterior:
    """A posterior made of these draws (S, K)."""
    value = np.asarray(draws, dtype=np.float64)[None]
    return ChoicePosterior({"value": value}, decisions, ChoiceModel(prior=Normal(2.0)), "by hand")


def pair(gaps: list[float], chosen: list[int] | None = None) -> Decisions:
    """Decisions of two actions and one feature; the second action has this much more of it."""
    return Decisions(
        [[x] for gap in gaps for x in (0.0, gap)], np.arange(0, 2 * len(gaps) + 1, 2), chosen
    )


def normal_limit(false_alarm: float, tests: int) -> float:
    """The |z| that none of so many right answers passes, but for this probability."""
    return float(st.norm.isf(false_alarm / tests / 2))


def test_two_actions_have_the_normal_probability_of_their_gap() -> None:
    d = pair([1.0, -3.0])
    found = predict([0.5], d)
    p = ndtr(np.array([0.5, -1.5]) / ROOT_TWO)
    np.testing.assert_allclose(found.probabilities, [1 - p[0], p[0], 1 - p[1], p[1]], atol=1e-8)
    np.testing.assert_array_equal(found.predicted, [1, 0])
    np.testing.assert_allclose(found.confidence, [p[0], 1 - p[1]], atol=1e-8)


def test_averaging_uses_all_draws_and_a_point_only_their_mean() -> None:
    d, draws = pair([1.0]), [[0.0], [4.0]]
    both = (0.5 + ndtr(4.0 / ROOT_TWO)) / 2
    np.testing.assert_allclose(
        predict(posterior(draws, pair([1.0], [0])), d).probabilities[1], both, atol=1e-8
    )
    np.testing.assert_allclose(
        predict(draws, d, "point").probabilities[1], ndtr(2.0 / ROOT_TWO), atol=1e-8
    )
    chains = np.array(draws).reshape(2, 1, 1)
    np.testing.assert_array_equal(predict(chains, d).probabilities, predict(draws, d).probabilities)


def test_averaging_normal_draws_gives_the_known_integral() -> None:
    # v ~ N(m, s^2): the second action is taken with probability Phi(gap m / sqrt(2 + gap^2 s^2)).
    draws = np.random.default_rng(0).normal(1.2, 1.5, (20_000, 1))
    gaps = np.array([-2.0, 0.3, 1.0, 5.0])
    found = predict(draws, pair(list(gaps)), draws="all").probabilities[1::2]
    each = ndtr(draws * gaps / ROOT_TWO)
    z = (found - ndtr(1.2 * gaps / np.sqrt(2.0 + 2.25 * gaps**2))) / (
        each.std(axis=0) / np.sqrt(len(draws))
    )
    assert np.abs(z).max() < normal_limit(1e-6, len(gaps))


@pytest.mark.parametrize("sparse", [False, True])
def test_votes_tend_to_the_averaged_probabilities(sparse: bool) -> None:
    offers = ragged_offers(3, 20, seed=1)
    if sparse:
        offers = Decisions(sp.csr_array(offers.rows), offers.start)
    draws = np.random.default_rng(2).normal([0.5, -1.0, 2.0], 0.7, (4000, 3))
    exact = predict(draws, offers, draws="all")
    voted = predict(draws, offers, "vote", seed=3)
    error = np.sqrt(np.maximum(exact.probabilities * (1 - exact.probabilities), 1e-12) / len(draws))
    z = (voted.probabilities - exact.probabilities) / error
    free = np.repeat(offers.sizes > 1, offers.sizes) & (exact.probabilities > 1e-4)
    assert np.abs(z[free]).max() < normal_limit(1e-6, int(free.sum()))
    np.testing.assert_allclose(
        np.add.reduceat(voted.probabilities, offers.start[:-1]), 1.0, atol=1e-12
    )


def test_equal_draws_make_all_three_methods_agree() -> None:
    offers = ragged_offers(3, 20, seed=4)
    v = np.array([1.0, -0.5, 0.2])
    draws = np.tile(v, (4000, 1))
    exact = choice_probabilities(offers, v)
    for method in ("average", "point"):
        np.testing.assert_allclose(
            predict(draws, offers, method).probabilities, exact, atol=KERNEL_ERROR
        )
    voted = predict(draws, offers, "vote").probabilities
    error = np.sqrt(np.maximum(exact * (1 - exact), 1e-4) / len(draws))
    assert (np.abs(voted - exact) < normal_limit(1e-6, len(exact)) * error).all()


def test_votes_are_reproducible_and_do_not_depend_on_how_they_are_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = ragged_offers(3, 15, seed=5)
    draws = np.random.default_rng(6).standard_normal((200, 3))
    once = predict(draws, offers, "vote", seed=7).probabilities
    np.testing.assert_array_equal(once, predict(draws, offers, "vote", seed=7).probabilities)
    np.testing.assert_array_equal(
        once, predict(draws, offers, "vote", seed=np.random.default_rng(7)).probabilities
    )
    assert (once != predict(draws, offers, "vote", seed=8).probabilities).any()
    monkeypatch.setattr(votes, "MAX_CELLS", 100)
    np.testing.assert_array_equal(once, predict(draws, offers, "vote", seed=7).probabilities)


def test_noise_is_not_lost_beside_enormous_values() -> None:
    d = Decisions([[1.0, 1.0], [1.0, 0.0], [0.0, 5.0]], [0, 3])
    shares = predict(np.tile([1e18, 0.0], (4000, 1)), d, "vote").probabilities
    assert shares[2] == 0.0
    assert abs(shares[0] - 0.5) < normal_limit(1e-6, 1) * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize("method", ["average", "point"])
def test_error_and_log_score_by_hand(method: str) -> None:
    d = pair([1.0, 2.0, -1.0, 0.0], [1, 0, 0, 1])
    found = predict([1.0], d, method)
    np.testing.assert_array_equal(found.predicted, [1, 1, 0, 0])  # equals go to the first
    assert found.error_rate == 0.5
    by_hand = log_ndtr(np.array([1.0, -2.0, 1.0, 0.0]) / ROOT_TWO).mean()
    np.testing.assert_allclose(found.log_score, by_hand, atol=1e-8)
    assert (
        repr(found) == f"<Prediction: 4 decisions by {method}, error 0.5, log score {by_hand:.3g}>"
    )


def test_what_was_next_to_impossible_keeps_its_exact_log_probability() -> None:
    d = pair([100.0, 1.0], [0, 1])
    found = predict([[1.0], [2.0]], d)
    assert found.probabilities[0] < 1e-300
    by_hand = [
        np.logaddexp(log_ndtr(-100.0 / ROOT_TWO), log_ndtr(-200.0 / ROOT_TWO)),
        np.log(ndtr(1 / ROOT_TWO) + ndtr(ROOT_TWO)),
    ]
    np.testing.assert_allclose(found.log_score, np.mean(by_hand) - np.log(2.0), rtol=1e-8)


def test_an_action_without_votes_scores_as_half_a_vote() -> None:
    d = Decisions([[0.0], [50.0], [0.0]], [0, 3], [0])
    found = predict(np.ones((10, 1)), d, "vote")
    np.testing.assert_array_equal(found.probabilities, [0.0, 1.0, 0.0])
    assert found.error_rate == 1.0
    np.testing.assert_allclose(found.log_score, np.log(0.5 / 11.5))


def test_calibration_by_hand() -> None:
    gaps = [0.1, 0.2, 3.0, -3.0]
    found = predict([1.0], pair(gaps, [1, 0, 1, 1]))
    p = ndtr(np.abs(gaps) / ROOT_TWO)
    table = found.calibration(bins=5)
    np.testing.assert_allclose(table.low, [0.4, 0.8])
    np.testing.assert_allclose(table.high, [0.6, 1.0])
    np.testing.assert_array_equal(table.count, [2, 2])
    np.testing.assert_allclose(table.predicted, [p[:2].mean(), p[2:].mean()], atol=1e-8)
    np.testing.assert_array_equal(table.observed, [0.5, 0.5])
    np.testing.assert_allclose(
        table.standard_error[0], np.sqrt((p * (1 - p))[:2].sum()) / 2, atol=1e-8
    )
    np.testing.assert_allclose(
        table.error, (p[:2].mean() - 0.5) / 2 + (p[2:].mean() - 0.5) / 2, atol=1e-8
    )


def in_standard_errors(v: Floats, d: Decisions) -> Floats:
    table = predict(v, d).calibration()
    assert table.count.sum() == len(d)
    return (table.observed - table.predicted) / np.maximum(table.standard_error, 1e-9)


def test_the_true_value_is_calibrated_and_one_three_times_as_large_is_not() -> None:
    offers, v = ragged_offers(3, 4000, seed=9), np.array([0.6, -0.3, 0.4])
    offers = offers[np.flatnonzero(offers.sizes > 1)]
    d = offers.with_choices(choose(np.random.default_rng(10), offers, v)[0])
    assert np.abs(in_standard_errors(v, d)).max() < normal_limit(1e-6, 10)
    assert in_standard_errors(3 * v, d).min() < -10.0


@pytest.mark.parametrize("method", METHODS)
def test_a_decision_of_one_action_is_certain_and_is_not_scored(method: str) -> None:
    """Of four decisions two offer a choice, one of which is predicted wrongly: not one in four."""
    d = Decisions([[1.0], [2.0], [3.0], [1.0], [9.0], [2.0]], [0, 1, 3, 4, 6], [0, 0, 0, 0])
    found = predict([30.0], d, method)
    np.testing.assert_array_equal(found.scored, [False, True, False, True])
    np.testing.assert_array_equal(found.predicted, [0, 1, 0, 0])
    np.testing.assert_array_equal(found.confidence[[0, 2]], 1.0)
    alone = Decisions([[2.0], [3.0], [9.0], [2.0]], [0, 2, 4], [0, 0])
    assert found.error_rate == predict([30.0], alone, method).error_rate == 0.5


def test_calibration_leaves_decisions_of_one_action_out() -> None:
    d = Decisions([[1.0], [0.0], [0.5], [2.0]], [0, 1, 3, 4], [0, 0, 0])
    found, alone = predict([1.0], d), predict([1.0], pair([0.5], [0]))
    for name in ("low", "count", "predicted", "observed", "error"):
        np.testing.assert_allclose(
            getattr(found.calibration(), name), getattr(alone.calibration(), name)
        )
    assert found.guessing_error == 0.5


def test_only_decisions_of_one_action_cannot_be_judged() -> None:
    found = predict([1.0], Decisions([[1.0], [2.0]], [0, 1, 2], [0, 0]))
    assert repr(found) == "<Prediction: 2 decisions by average, log score 0>"
    for judge in (lambda: found.error_rate, found.calibration):
        with pytest.raises(ValueError, match="offers a single action"):
            judge()


@pytest.mark.parametrize("method", METHODS)
def test_choices_that_were_not_seen_can_be_predicted_but_not_judged(method: str) -> None:
    found = predict([[1.0], [2.0]], pair([1.0, 2.0]), method)
    assert found.probabilities.shape == (4,)
    assert repr(found).startswith(f"<Prediction: 2 decisions by {method};")
    for judge in (lambda: found.error_rate, lambda: found.log_score, found.calibration):
        with pytest.raises(ValueError, match="no choices"):
            judge()
    assert found.to_dataframe().column_names == [
        "decision",
        "action",
        "probability",
        "standard_error",
        "predicted",
    ]


def test_tables_name_decisions_and_actions() -> None:
    d = Decisions(
        [[0.0], [2.0], [1.0], [0.0], [5.0]],
        [0, 2, 5],
        [1, 0],
        actions=list("abxyz"),
        ids=["first", "second"],
    )
    table = predict([1.0], d).to_dataframe().to_pydict()
    assert table["decision"] == ["first"] * 2 + ["second"] * 3
    assert table["action"] == list("abxyz")
    assert table["predicted"] == [False, True, False, False, True]
    assert table["chosen"] == [False, True, True, False, False]
    np.testing.assert_allclose(table["probability"], predict([1.0], d).probabilities)
    mixed = Decisions([[0.0], [2.0]], [0, 2], actions=np.array(["left", 2], dtype=object))
    assert predict([1.0], mixed).to_dataframe()["action"].to_pylist() == ["left", "2"]
    assert predict([1.0], pair([1.0])).to_dataframe()["action"].to_pylist() == [0, 1]


def test_other_coefficients_are_refused() -> None:
    rows = [[0.0, 1.0], [1.0, 0.0]]
    learnt = Decisions(rows, [0, 2], [0], names=["height", "holes"])
    post = posterior([[1.0, 2.0]], learnt)
    swapped = Decisions(rows, [0, 2], names=["height", "wells"])
    for function in (predict, policy):
        with pytest.raises(
            ValueError,
            match="coefficient 1 is 'holes' in the posterior and 'wells' in the decisions",
        ):
            function(post, swapped)
    wider = Decisions([[0.0, 1.0, 2.0]], [0, 1], names=["height", "holes", "wells"])
    with pytest.raises(
        ValueError, match="2 coefficients and the decisions 3: 'wells' is in only one"
    ):
        predict(post, wider)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([1.0, 2.0], r"shape \(2,\), but the decisions have 1 coefficients"),
        (3.0, r"shape \(\), but"),
        (np.empty((0, 1)), r"shape \(0, 1\), but"),
        ([np.nan], "NaN or infinite"),
        ([[1.0], [np.inf]], "NaN or infinite"),
        ("mean", "not str"),
    ],
)
def test_bad_draws_are_refused(given: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        predict(given, pair([1.0]))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="no method 'guess'; choose one of average, vote, point"):
        predict([1.0], pair([1.0]), "guess")
    with pytest.raises(ValueError, match="Decisions, not for list"):
        predict([1.0], [[1.0]])  # type: ignore[arg-type]
    for bins in (0, 2.5):
        with pytest.raises(ValueError, match="bins must be a whole number"):
            predict([1.0], pair([1.0], [0])).calibration(bins)  # type: ignore[arg-type]


def test_policy_shares_by_hand() -> None:
    d = Decisions([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [2.0, 2.0]], [0, 3, 4])
    draws = [[1.0, 0.0], [3.0, 2.0], [1.0, 1.0], [-5.0, -6.0], [0.0, 4.0]]
    found = policy(draws, d)
    np.testing.assert_allclose(found.optimal, [2.5 / 5, 1.5 / 5, 1 / 5, 1.0])  # the third draw ties
    np.testing.assert_array_equal(found.best, [0, 0])
    np.testing.assert_allclose(found.certainty, [0.5, 1.0])
    chances = choice_probabilities(d, np.array(draws))
    np.testing.assert_allclose(found.probability, chances.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.low, np.quantile(chances, 0.05, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.high, np.quantile(chances, 0.95, axis=0), atol=1e-12)
    assert repr(found) == "<Policy: 2 decisions, certainty 0.75 on average>"
    table = found.to_dataframe()
    assert table.column_names == [
        "decision",
        "action",
        "optimal",
        "probability",
        "low",
        "high",
        "best",
    ]
    assert table["best"].to_pylist() == [True, False, False, True]


def test_equal_actions_share_being_the_best() -> None:
    # Equal on paper; in floating point 0.1 + 0.2 is a little more than 0.3.
    rows = np.array([[0.3, 0.0, 7.0], [0.1, 0.2, 7.0], [0.3, -1e-6, 7.0]])
    for stored in (rows, sp.csr_array(rows)):
        for offset in (0.0, 10.0):
            found = policy([[1.0, 1.0, offset]], Decisions(stored, [0, 3]))
            np.testing.assert_array_equal(found.optimal, [0.5, 0.5, 0.0])
            np.testing.assert_array_equal(found.best, [0])


def test_policy_does_not_depend_on_how_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = ragged_offers(3, 30, seed=12)
    draws = np.random.default_rng(13).standard_normal((50, 3))
    whole = policy(draws, offers)
    monkeypatch.setattr(policies, "MAX_CELLS", 50 * 10)
    pieces = split_rows(offers.start, 10)
    assert len(pieces) > 5
    np.testing.assert_array_equal(np.concatenate(pieces), np.arange(30))
    assert max(offers.sizes[piece].sum() for piece in pieces) < 10 + offers.sizes.max()
    cut = policy(draws, offers)
    for name in ("optimal", "probability", "low", "high"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), atol=1e-12)


def test_policy_of_an_mdp_in_all_its_states() -> None:
    mdp = rv.random_mdp(np.random.default_rng(14), 6, 3)
    value = np.random.default_rng(15).standard_normal(6)
    found = policy(value, mdp.decisions(range(6)))
    np.testing.assert_array_equal(found.best, mdp.policy(value))
    np.testing.assert_array_equal(found.certainty, 1.0)
    np.testing.assert_array_equal(found.low, found.high)


def test_a_fitted_posterior_predicts_better_than_chance() -> None:
    offers, v = ragged_offers(3, 200, seed=16), np.array([2.0, -1.0, 0.5])
    d = offers.with_choices(choose(np.random.default_rng(17), offers, v)[0])
    learn, test = d[:40], d[40:]
    post = rv.fit(
        learn,
        rv.ChoiceModel(prior=rv.Normal(2.0)),
        draws=500,
        warmup=500,
        chains=2,
        thin=10,
        seed=1,
    )
    guess = -np.log(test.sizes).mean()
    for method in METHODS:
        found = predict(post, test, method)
        assert found.log_score > 0.6 * guess
        assert found.error_rate < 0.5 * (1.0 - 1.0 / test.sizes).mean()
    assert policy(post, test).certainty.mean() > 0.7
