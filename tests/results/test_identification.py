"""The identifiability report: against covariances known in closed form and decisions built to leave something open."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg as sla

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.models.choice import ChoiceModel
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import Flat, Normal, Prior, resolve_prior
from revealed.results.choice import ChoicePosterior
from revealed.results.identification import identify
from tests.support.cases import choose, ragged_offers


def posterior(draws: Floats, decisions: Decisions, prior: Prior) -> ChoicePosterior:
    """A posterior with these draws (chain, draw, K)."""
    return ChoicePosterior({"value": draws}, decisions, ChoiceModel(prior=prior), "by hand")


def approximate(decisions: Decisions, prior: Prior, count: int, seed: int = 0) -> ChoicePosterior:
    """A posterior whose draws come from the normal approximation at the mode."""
    resolved_prior = resolve_prior(prior, decisions)
    mode, information = posterior_mode(decisions, resolved_prior)
    noise = np.random.default_rng(seed).standard_normal((count, len(information)))
    q = sla.solve_triangular(sla.cholesky(information, lower=True), noise.T, lower=True, trans="T")
    return posterior((mode + (resolved_prior.basis @ q).T)[None], decisions, prior)


def seen(features: int, count: int, seed: int, blocks: list[Block] | None = None) -> Decisions:
    """Noisy choices among random features, with overlap: a value of moderate size."""
    offers = ragged_offers(features, count, seed)
    rng = np.random.default_rng(seed)
    chosen, _ = choose(rng, offers, 0.5 * rng.standard_normal(features))
    return Decisions(offers.rows, offers.start, chosen, blocks=blocks)


def pairs(
    differences: Any, names: list[str] | None = None, blocks: list[Block] | None = None
) -> Decisions:
    """Decisions of two actions whose margins, chosen minus rival, are these rows."""
    rows = np.array(
        [row for difference in differences for row in (difference, np.zeros(len(difference)))]
    )
    return Decisions(
        rows, np.arange(0, len(rows) + 1, 2), [0] * len(differences), names=names, blocks=blocks
    )


def covariances(decisions: Decisions, prior: Prior) -> tuple[Floats, Floats]:
    """Posterior (normal approximation) and prior covariance of v."""
    resolved_prior = resolve_prior(prior, decisions)
    _, information = posterior_mode(decisions, resolved_prior)
    basis = resolved_prior.basis
    return basis @ np.linalg.inv(information) @ basis.T, basis @ np.linalg.inv(
        resolved_prior.precision
    ) @ basis.T


CURVED = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, -0.5], [0.0, -0.5, 1.0]])


@pytest.mark.parametrize(
    ("prior", "blocks"),
    [
        (Normal(2.0), None),
        (Normal(mean=0.3, covariance=CURVED), None),
        (Normal(sum_to_zero=True, covariance=np.array([0.1, 1.0, 10.0])), None),
        (Normal(covariance={"a": 2.0, "b": 5.0}), [Block("a", 2, True), Block("b", 1)]),
    ],
)
def test_few_draws_give_the_generalised_eigenvalues_of_the_normal_approximation(
    prior: Normal, blocks: list[Block] | None
) -> None:
    d = seen(3, 30, seed=1, blocks=blocks)
    found = identify(approximate(d, prior, count=2))
    after, before = covariances(d, prior)
    free = resolve_prior(prior, d).basis
    shares = sla.eigh(free.T @ after @ free, free.T @ before @ free, eigvals_only=True)
    np.testing.assert_allclose(found.contraction, 1.0 - shares, atol=1e-9)
    np.testing.assert_allclose(found.posterior_sd, np.sqrt(np.diag(after)), rtol=1e-9)
    assert found.prior_sd is not None
    np.testing.assert_allclose(found.prior_sd, np.sqrt(np.diag(before)), rtol=1e-9)
    np.testing.assert_allclose(found.sd_ratio, np.sqrt(np.diag(after) / np.diag(before)), rtol=1e-9)
    # along a direction of movement, posterior and prior precision differ by exactly the share that is left
    to_free = free.T @ found.directions
    for i, share in enumerate(shares):
        precise = (
            np.linalg.solve(free.T @ after @ free, to_free[:, i]),
            np.linalg.solve(free.T @ before @ free, to_free[:, i]),
        )
        np.testing.assert_allclose(share * precise[0], precise[1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.abs(found.directions).max(axis=0), 1.0)


def test_many_draws_are_believed_rather_than_the_approximation() -> None:
    # Draws half as wide as the approximation: a quarter of its variance is left.
    d = seen(3, 30, seed=2)
    wide = approximate(d, Normal(2.0), count=20_000)
    narrow = posterior(wide.draws["value"] / 2, d, Normal(2.0))
    after, _ = covariances(d, Normal(2.0))
    shares = np.linalg.eigvalsh(after) / 4.0
    error = 5.7 * np.sqrt(
        2.0 / 20_000
    )  # of a variance of normal draws; 5.7 sds: a false alarm in 1e8
    np.testing.assert_allclose(1.0 - identify(wide).contraction, shares, rtol=error)
    np.testing.assert_allclose(1.0 - identify(narrow).contraction, shares / 4, rtol=error)
    np.testing.assert_allclose(identify(narrow).sd_ratio, identify(wide).sd_ratio / 2, rtol=1e-9)


def test_a_feature_that_never_differs_is_named_and_nothing_is_learnt_of_it() -> None:
    d = seen(3, 40, seed=3)
    rows = np.column_stack([d.rows[:, :2], np.repeat(np.arange(40.0), d.sizes), d.rows[:, 2]])
    d = Decisions(rows, d.start, d.chosen, names=["height", "holes", "wells", "bumps"])
    found = identify(approximate(d, Normal(3.0), count=500))
    np.testing.assert_allclose(np.abs(found.unidentified[:, 0]), [0, 0, 1, 0], atol=1e-9)
    np.testing.assert_allclose(found.directions[:, -1], [0, 0, 1, 0], atol=1e-9)
    assert found.contraction[-1] == 0.0
    assert (found.informed, found.prior_only) == (3, 1)
    text = str(found)
    assert "The decisions inform 3 of 4 directions" in text
    assert "In 1 direction only the prior speaks" in text
    assert "  +1 wells (no decision compares it)" in text
    assert repr(found) == "<Identification: 3 of 4 directions informed, 1 by the prior only>"


def test_a_state_never_compared_is_named_against_the_others() -> None:
    rng = np.random.default_rng(4)
    won = np.column_stack(
        [rng.dirichlet(np.ones(3), 60) - rng.dirichlet(np.ones(3), 60), np.zeros(60)]
    )
    found = identify(
        approximate(pairs(won, blocks=[Block("value", 4, True)]), Normal(10.0), count=50)
    )
    assert found.directions.shape == (4, 3)
    np.testing.assert_allclose(found.directions[:, -1], [-1 / 3, -1 / 3, -1 / 3, 1.0], atol=1e-9)
    assert "  +1 v3 -0.333 v0 -0.333 v1 -0.333 v2 (no decision compares it)" in str(found)


def test_under_a_curved_prior_an_untested_direction_stays_exactly_unlearnt() -> None:
    # The prior ties the untested coefficient to the others, so its own sd shrinks; the free direction does not.
    d = seen(2, 60, seed=5)
    d = Decisions(np.column_stack([d.rows, np.zeros(len(d.rows))]), d.start, d.chosen)
    for count in (10, 5000):
        found = identify(approximate(d, Normal(covariance=CURVED), count))
        np.testing.assert_allclose(found.directions[:, -1], [0, 0, 1], atol=1e-9)
        assert found.contraction[-1] == 0.0
        assert found.sd_ratio[2] < 0.97
        assert (found.contraction[:2] > 0.5).all()


def test_what_looks_learnt_only_by_chance_is_not_called_learnt() -> None:
    # Three features matter, 37 hardly; the draws' own covariance would find some of these 37 well learnt.
    d = seen(40, 60, seed=6)
    d = Decisions(d.rows * np.where(np.arange(40) < 3, 1.0, 1e-4), d.start, d.chosen)
    post = approximate(d, Normal(1.0), count=4000)
    found = identify(post)
    assert (found.informed, found.prior_only) == (3, 37)
    assert str(found).count("(under 1% learnt)") == 5
    assert "  and 32 more" in str(found)
    naive = np.linalg.eigvalsh(np.cov(post.values.T))
    assert (1.0 - naive > 0.1).sum() > 3


def test_no_decision_that_compares_anything() -> None:
    d = Decisions([[1.0, 2.0], [3.0, 4.0]], [0, 1, 2], [0, 0])
    draws = np.random.default_rng(7).normal(0.0, 2.0, (1, 1000, 2))
    found = identify(posterior(draws, d, Normal(2.0)))
    np.testing.assert_array_equal(found.contraction, 0.0)
    assert not found.separable
    assert "The decisions inform 0 of 2 directions." in str(found)
    assert "nothing was learnt at all" in str(found)


def test_completely_separable_choices_are_told_in_plain_words() -> None:
    found = identify(
        approximate(pairs([[1.0, 0.2], [2.0, -0.5], [0.5, 0.4]]), Normal(50.0), count=100)
    )
    assert found.separable
    assert (found.explained, found.decisions) == (3, 3)
    assert found.unbounded is not None
    assert (
        f"There is a value that explains every choice with certainty ({found.unbounded}), so the choices alone do not "
        "limit how large the values are; their size comes from the prior." in str(found)
    )


def test_partly_separable_choices_are_counted() -> None:
    won = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]
    found = identify(approximate(pairs(won, names=["left", "up"]), Normal(50.0), count=100))
    assert (found.explained, found.decisions) == (3, 5)
    assert "no choice contradicts (+1 up)" in str(found)
    assert "3 of 5 choices with certainty" in str(found)


def test_separation_is_noticed_beside_an_untested_direction() -> None:
    found = identify(approximate(pairs([[1.0, 1.0], [2.0, 2.0]]), Normal(3.0), count=100))
    assert found.unidentified.shape == (2, 1)
    assert found.unbounded is not None
    assert found.unbounded.tested
    np.testing.assert_allclose(found.unbounded.direction, [1.0, 1.0], atol=1e-9)
    assert found.explained == 2


def test_overlapping_choices_are_not_called_separable() -> None:
    found = identify(approximate(seen(3, 60, seed=8), Normal(2.0), count=100))
    assert not found.separable
    assert found.explained == 0
    assert "not separable" in str(found)


@pytest.mark.parametrize("variance", [4.0, np.array([1.0, 4.0, 9.0]), CURVED])
def test_sensitivity_compares_modes_under_half_and_twice_the_variance(variance: Any) -> None:
    d = seen(3, 12, seed=9)

    def prior(times: float) -> Normal:
        if np.ndim(variance) == 2:
            return Normal(mean=0.2, covariance=times * variance)
        return Normal((times * variance) ** 0.5, mean=0.2)

    found = identify(approximate(d, prior(1.0), count=100)).sensitivity
    assert found is not None
    for i, times in enumerate((0.5, 1.0, 2.0)):
        mode, information = posterior_mode(d, resolve_prior(prior(times), d))
        np.testing.assert_allclose(found.modes[i], mode, atol=1e-6)
        np.testing.assert_allclose(
            found.sds[i], np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-5
        )
    np.testing.assert_allclose(found.moves[0], (found.modes[0] - found.modes[1]) / found.sds[1])
    np.testing.assert_allclose(found.moves[1], (found.modes[2] - found.modes[1]) / found.sds[1])


def test_the_coefficient_that_the_prior_holds_is_the_one_that_moves() -> None:
    # "free" is chosen both ways many times; "held" only ever one way, so that its size comes from the prior.
    won = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]] * 50 + [[0.0, 1.0]] * 5
    found = identify(approximate(pairs(won, names=["free", "held"]), Normal(50.0), count=100))
    assert found.sensitivity is not None
    assert found.sensitivity.largest == "held"
    halved, doubled = found.sensitivity.moves[:, 1]
    assert halved < 0 < doubled
    assert (
        f"held moves most, by {halved:+.2g} sd when it is halved and {doubled:+.2g} sd when it is doubled"
        in str(found)
    )
    assert np.abs(found.sensitivity.moves[:, 0]).max() < 0.01


def test_a_flat_prior_leaves_nothing_to_compare_with() -> None:
    found = identify(approximate(seen(3, 60, seed=10), Flat(), count=100))
    assert found.prior_sd is None
    assert found.sensitivity is None
    np.testing.assert_array_equal(found.contraction, 1.0)
    assert (found.informed, found.prior_only) == (3, 0)
    text = str(found)
    assert "The prior is flat" in text
    assert "prior sd" not in text
    with pytest.raises(ValueError, match="flat prior has no spread"):
        _ = found.sd_ratio


@pytest.mark.parametrize("won", [[[1.0, 0.0], [2.0, 0.1]], [[1.0, 0.0], [-1.0, 0.0]]])
def test_a_flat_prior_without_a_posterior_is_refused(won: list[list[float]]) -> None:
    draws = np.random.default_rng(0).standard_normal((1, 50, 2))
    with pytest.raises(ValueError, match=r"no posterior.*do not bound \([+-]"):
        identify(posterior(draws, pairs(won), Flat()))


def test_a_coefficient_that_can_only_be_zero_is_no_division_by_zero() -> None:
    d = seen(4, 30, seed=11, blocks=[Block("alone", 1, True), Block("rest", 3)])
    found = identify(approximate(d, Normal(2.0), count=100))
    assert found.sd_ratio[0] == 0.0
    assert found.sensitivity is not None
    assert (found.sensitivity.moves[:, 0] == 0.0).all()
    assert found.directions.shape == (4, 3)


def test_many_coefficients_are_shortened() -> None:
    d = seen(30, 40, seed=12)
    blind = np.where(np.arange(30) < 22, 0.0, 1.0)
    d = Decisions(d.rows * blind, d.start, d.chosen)
    text = str(identify(approximate(d, Normal(2.0), count=200)))
    assert "... and 10 in between; these are the 10 best and worst known" in text
    assert "In 22 directions only the prior speaks" in text
    assert text.count("(no decision compares it)") == 5
    assert "  and 17 more" in text
    assert len(text.splitlines()) < 50


def test_one_draw_and_fewer_draws_than_coefficients_are_enough() -> None:
    d = seen(12, 40, seed=13)
    for count in (1, 5, 29):
        found = identify(approximate(d, Normal(2.0), count))
        assert np.isfinite(found.posterior_sd).all()
        assert np.isfinite(found.contraction).all()
        assert (found.sd_ratio < 1.0).all()


def test_only_choices_with_independent_noise_have_a_report() -> None:
    games = rv.Rankings.from_lists([["a", "b"], ["b", "a"]])
    skills = {"skill": np.zeros((1, 4, 2))}
    ranking = rv.RankingPosterior(skills, games, rv.RankingModel(rv.Normal(1.0)), "by hand")
    with pytest.raises(
        ValueError, match="what the data identify is not worked out for a RankingPosterior"
    ):
        ranking.identification()
    labelled = Decisions(np.eye(2), [0, 2], [0], actions=["left", "right"])
    noisy = ChoicePosterior(
        {"value": np.zeros((1, 4, 2)), "noise_covariance": np.ones((1, 4, 1, 1))},
        labelled,
        ChoiceModel(noise=rv.CorrelatedNoise()),
        "by hand",
    )
    with pytest.raises(ValueError, match="is worked out for independent noise"):
        noisy.identification()


def test_a_fitted_toy_mdp_is_reported_on() -> None:
    rng = np.random.default_rng(14)
    mdp = rv.random_mdp(rng, 5, 3)
    watched = mdp.simulate(rng, 3.0 * rng.standard_normal(5), 40)
    d = mdp.decisions(watched.states, watched.actions)
    post = rv.fit(
        d, rv.ChoiceModel(prior=rv.Normal(5.0)), draws=500, warmup=500, chains=2, thin=10, seed=1
    )
    found = identify(post)
    assert found.directions.shape == (5, 4)
    assert found.informed >= 1
    assert (np.diff(found.contraction) <= 0).all()
    np.testing.assert_allclose(found.directions.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.posterior_sd, post.sd())


def test_equal_decisions_are_counted_once_and_reported_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same report as from every decision by itself; a direction explains all its repetitions."""
    rows = [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]] * 5
    d = rv.Decisions(rows, range(0, 21, 2), [0, 0] * 4 + [0, 1], names=["always", "mostly"])
    draws = np.random.default_rng(1).normal(size=(1, 20, 2))
    post = rv.ChoicePosterior({"value": draws}, d, rv.ChoiceModel(prior=rv.Normal(2.0)), "by hand")
    found = post.identification()
    assert (found.explained, found.decisions) == (5, 10)
    monkeypatch.setattr(
        "revealed.results.drawn_noise.deduplicate_if_worthwhile",
        lambda given, group: (given, np.ones(len(given))),
    )
    other = post.identification()
    assert str(found) == str(other)
    assert found.sensitivity is not None
    assert other.sensitivity is not None
    np.testing.assert_allclose(found.sensitivity.modes, other.sensitivity.modes, rtol=1e-6)
