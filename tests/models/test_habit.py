"""Lapses by habit: weights of labels, probabilities and their derivatives, posteriors, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.unique import deduplicate
from revealed.kernels.choice import add_log_likelihoods
from revealed.kernels.choice_fast import make_choice_workspace
from revealed.kernels.design import Design
from revealed.models.habit import (
    bind_habits,
    for_kinds,
    habits_of,
    kinds_of_offers,
    weights_and_slopes,
)
from revealed.models.lapse import rates_of
from revealed.models.likelihood import derivatives, weighted_derivatives
from revealed.models.student import StudentDraws
from tests.models.test_lapse import LapsingLogistic
from tests.support.cases import mark_slow

LAPSE = rv.Lapse(rv.Beta(2.0, 8.0), to="habit")
NOISES = {
    "normal": rv.NormalNoise(lapse=LAPSE),
    "logit": rv.LogitNoise(lapse=LAPSE),
    "another": LapsingLogistic(lapse=LAPSE),
}
LABELS = ("down", "left", "right", "up")


def decisions(sparse: bool = False) -> rv.Decisions:
    """Ragged decisions with equal rows under other labels, some offered twice."""
    rng = np.random.default_rng(3)
    sizes = np.append(rng.integers(2, 6, 30), 1)
    rows = np.round(rng.standard_normal((sizes.sum(), 2)), 1)
    start = np.append(0, np.cumsum(sizes))
    rows[1] = rows[0]
    chosen, labels = rng.integers(0, sizes), rng.choice(LABELS, sizes.sum())
    d = rv.Decisions(rows, start, chosen, actions=labels)
    # equal rows and choices, but labels of their own
    other = rv.Decisions(rows, start, chosen, actions=rng.permutation(labels))
    both = d + d[:7] + other
    if not sparse:
        return both
    return rv.Decisions(sp.csr_array(both.rows), both.start, both.chosen, actions=both.actions)


def definition(d: rv.Decisions, v: Floats, law: Any, rate: float, habit: Any) -> Floats:
    """(P,) P' of every action, action by action."""
    without, out = rv.choice_probabilities(d, v, law), np.empty(d.rows.shape[0])
    assert d.actions is not None
    for low, high in zip(d.start[:-1], d.start[1:], strict=True):
        offered = [habit[label] for label in d.actions[low:high].tolist()]
        for j in range(low, high):
            out[j] = (1 - rate) * without[j] + rate * offered[j - low] / sum(offered)
    return out


# Weights of labels


def test_standard_normal_coordinates_give_a_flat_dirichlet_prior() -> None:
    # the weight is exponential: its quantile is that of the coordinate, on both sides
    z = np.linspace(-30.0, 30.0, 241)
    weight, _, _ = weights_and_slopes(z)
    found = np.where(
        weight < 0.7, st.norm.ppf(-np.expm1(-np.minimum(weight, 1.0))), st.norm.isf(np.exp(-weight))
    )
    np.testing.assert_allclose(found, z, rtol=1e-9, atol=1e-9)
    # normalised exponentials are uniform on the simplex: each share of four is Beta(1, 3)
    shares = habits_of(np.random.default_rng(1).standard_normal((20_000, 4)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for k in range(4):
        assert st.kstest(shares[:, k], st.beta(1, 3).cdf).pvalue > 1e-6
    # weights that are normal in their logarithm are not
    wrong = np.exp(np.random.default_rng(1).standard_normal((20_000, 4)))
    assert st.kstest((wrong / wrong.sum(axis=1)[:, None])[:, 0], st.beta(1, 3).cdf).pvalue < 1e-9


def test_logs_of_weights_have_the_slopes_that_are_said() -> None:
    z = np.array([-38.6, -20.0, -8.6, -5.0, -1.01, -0.99, 0.0, 1.3, 7.0, 12.5, 40.0])
    step = 1e-5
    high, low = weights_and_slopes(z + step), weights_and_slopes(z - step)
    _, first, second = weights_and_slopes(z)
    # beyond -37 doubles end, and the weight with them
    seen = z > -37.0
    numeric = (np.log(high[0]) - np.log(low[0]))[seen] / (2 * step)
    np.testing.assert_allclose(first[seen], numeric, rtol=1e-6)
    np.testing.assert_allclose(second[seen], (high[1] - low[1])[seen] / (2 * step), rtol=1e-4)
    assert np.isfinite([first, second]).all()


# Probabilities


@pytest.mark.parametrize("name", NOISES)
def test_probabilities_are_those_of_the_definition(name: str) -> None:
    d, v = decisions(), np.array([2.0, -1.0])
    noise: Any = NOISES[name]
    habit = dict(zip(LABELS, (0.1, 0.6, 0.25, 0.05), strict=True))
    exact = definition(d, v, replace(noise, lapse=None), 0.3, habit)
    known = rv.KnownLapse(noise, 0.3, habit)
    found = rv.choice_probabilities(d, v, known)
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(found, d.start[:-1]), 1.0, rtol=1e-12)
    logs = rv.log_likelihood(d, v, known)
    np.testing.assert_allclose(np.exp(logs), exact[d.chosen_row], rtol=1e-6)
    # habits that are not renormalised over the actions offered do not add to one
    assert d.actions is not None
    plain = np.array([habit[label] for label in d.actions.tolist()])
    wrong = found - 0.3 * known.shares(d) + 0.3 * plain
    assert np.abs(np.add.reduceat(wrong, d.start[:-1]) - 1.0).max() > 0.1
    # draws of both
    draws = rv.KnownLapse(noise, [0.3, 0.9], {k: [p, 0.25] for k, p in habit.items()})
    both = rv.choice_probabilities(d, np.stack([v, v]), draws)
    np.testing.assert_allclose(both[0], exact, rtol=1e-12)
    alike = rv.KnownLapse(noise, 0.9)
    np.testing.assert_allclose(both[1], rv.choice_probabilities(d, v, alike), rtol=1e-12)
    np.testing.assert_allclose(
        rv.log_likelihood(d, np.stack([v, v]), draws), np.log(both[:, d.chosen_row]), 1e-5, 1e-9
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", NOISES)
def test_kernels_have_the_sum_of_the_definition_and_its_slopes(name: str, sparse: bool) -> None:
    noise: Any = NOISES[name]
    resolved = rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise).resolve(decisions(sparse))
    d = resolved.sampled_decisions
    kernel = bind_habits(resolved.kernel, d)
    weight = np.random.default_rng(4).integers(1, 4, len(d)).astype(float)
    x = np.array([0.7, -0.4, 0.3, 0.5, -1.2, 0.1, 2.0])

    def exact(at: Floats) -> float:
        rate = float(rates_of(LAPSE.table, at[2:3])[0])
        known = rv.KnownLapse(noise, rate, dict(zip(LABELS, habits_of(at[3:]), strict=True)))
        return float(weight @ rv.log_likelihood(decisions(), at[:2], known))

    # equal decisions once, if their labels are equal too
    counted = deduplicate(d, weight, kinds_of_offers(kernel))
    assert 31 < len(counted.unique) < len(d)
    found, slopes = np.zeros(1), np.zeros((1, len(x)))
    design, index = Design.from_rows(counted.rival_minus_chosen), counted.rival_index
    own = for_kinds(kernel, counted.group)
    add_log_likelihoods(own, design, index, make_choice_workspace(index), x[None], found, slopes)
    # normal noise is integrated on a lattice in kernels
    close = 1e-4 if name == "normal" else 1e-10
    assert found[0] == pytest.approx(exact(x), abs=close)
    gradient, information = weighted_derivatives(d, x, weight, kernel)
    np.testing.assert_allclose(slopes[0], gradient, rtol=1e-5, atol=close)
    steps = 1e-4 * np.eye(len(x))
    numeric = [(exact(x + s) - exact(x - s)) / 2e-4 for s in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)
    curved = [
        -(
            weighted_derivatives(d, x + s, weight, kernel)[0]
            - weighted_derivatives(d, x - s, weight, kernel)[0]
        )
        / 2e-4
        for s in steps
    ]
    np.testing.assert_allclose(information, curved, rtol=1e-3, atol=1e-3)


def test_derivatives_at_known_habits() -> None:
    d, v = decisions(), np.array([0.7, -0.4])
    noise = rv.KnownLapse(
        rv.LogitNoise(), 0.2, dict(zip(LABELS, (0.1, 0.6, 0.25, 0.05), strict=True))
    )
    value, gradient, _ = derivatives(d, v, noise)
    assert value == pytest.approx(rv.log_likelihood(d, v, noise).sum())
    numeric = [
        (rv.log_likelihood(d, v + s, noise).sum() - rv.log_likelihood(d, v - s, noise).sum()) / 2e-5
        for s in 1e-5 * np.eye(2)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)


# Posteriors


def labelled(count: int, seed: int = 5) -> rv.Decisions:
    """The better of two or three, but for three that go left."""
    rng = np.random.default_rng(seed)
    rows, sides = rng.standard_normal((3 * count, 2)), np.tile(["left", "right", "up"], count)
    worth = (rows @ [3.0, -2.0]).reshape(count, 3)
    rows.reshape(count, 3, 2)[10:16, 0] = [-2.0, 2.0]
    chosen = (worth + rng.gumbel(size=(count, 3))).argmax(axis=1)
    chosen[10:16] = 0
    return rv.Decisions(
        rows, 3 * np.arange(count + 1), chosen, names=["a", "b"], actions=sides.tolist()
    )


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Sixty decisions, of which six were made by habit."""
    model = rv.ChoiceModel(prior=rv.Normal(5.0), noise=rv.LogitNoise(lapse=LAPSE))
    return rv.fit(labelled(60), model, seed=1, progress=False)


def test_each_choice_has_its_probability_of_a_lapse(fitted: Any) -> None:
    d, rate, habit = fitted.decisions, fitted.stacked("lapse"), fitted.stacked("habit")
    np.testing.assert_allclose(habit.sum(axis=1), 1.0)
    p = rv.choice_probabilities(d, fitted.values, rv.LogitNoise())[:, d.chosen_row]
    # all three are offered everywhere
    blind = rate[:, None] * habit[:, d.chosen]
    exact = (blind / ((1 - rate[:, None]) * p + blind)).mean(axis=0)
    found = fitted.lapses()
    np.testing.assert_allclose(found.probability, exact, rtol=1e-10)
    assert set(found.likeliest(6)) == set(range(10, 16))
    # six of six went left
    assert habit.mean(axis=0).argmax() == 0
    assert fitted.mean("habit")[0] > 0.5


def test_everything_a_posterior_has(fitted: Any, tmp_path: Path) -> None:
    d = fitted.decisions
    names = ("a", "b", "(lapse)", "(habit left)", "(habit right)", "(habit up)")
    assert fitted.columns().names == names
    # other labels of the same rows are other decisions, also where few actions are offered
    assert d.actions is not None
    moved = rv.Decisions(d.rows, d.start, d.chosen, names=d.names, actions=np.roll(d.actions, 1))
    both = d[:20] + moved[:20]
    habit = dict(zip(("left", "right", "up"), fitted.stacked("habit").T, strict=True))
    known = rv.KnownLapse(rv.LogitNoise(), fitted.stacked("lapse"), habit)
    exact = rv.choice_probabilities(both, fitted.values, known).mean(axis=0)
    np.testing.assert_allclose(fitted.predict(both, draws="all").probabilities, exact, rtol=1e-9)
    voted = fitted.predict(both, "vote")
    assert (np.abs(voted.probabilities - exact) < 6 * voted.standard_error + 1e-3).all()
    means = dict(zip(habit, fitted.mean("habit"), strict=True))
    at_mean = rv.KnownLapse(rv.LogitNoise(), fitted.draws["lapse"].mean(), means)
    np.testing.assert_allclose(
        fitted.predict(both, "point").probabilities,
        rv.choice_probabilities(both, fitted.mean(), at_mean),
        rtol=1e-6,
    )
    logs = fitted.log_likelihood()
    assert logs.shape == (4, 1000, 60)
    assert fitted.loo().elpd == pytest.approx(logs.reshape(4000, 60).mean(axis=0).sum(), rel=0.2)
    assert "inform" in str(fitted.identification())
    fitted.save(tmp_path / "habit.nc")
    again = rv.load(tmp_path / "habit.nc")
    np.testing.assert_array_equal(again.draws["habit"], fitted.draws["habit"])
    assert again.model.noise.lapse == LAPSE
    assert again.resolved.habit.labels == ("left", "right", "up")
    fitted.report(tmp_path / "habit.html")
    page = (tmp_path / "habit.html").read_text(encoding="utf-8")
    assert "how often each action is taken by habit" in page
    with pytest.raises(
        ValueError, match="decision 0 offers 'down', and habits are known of 'left'"
    ):
        fitted.predict(rv.Decisions([[1.0, 0.0]], [0, 1], names=["a", "b"], actions=["down"]))
    with pytest.raises(ValueError, match="no action labels, which habits need"):
        fitted.predict(rv.Decisions([[1.0, 0.0]], [0, 1], names=["a", "b"]))


def test_separate_groups_have_habits_of_their_own() -> None:
    d = labelled(60)
    group = np.repeat(["one", "other"], 30)
    separate = rv.Decisions(
        d.rows, d.start, d.chosen, names=d.names, actions=d.actions, groups=group
    )
    model = rv.ChoiceModel(
        prior=rv.Normal(5.0), noise=rv.LogitNoise(lapse=LAPSE), groups=rv.Separate()
    )
    post: Any = rv.fit(separate, model, seed=1, progress=False)
    assert post.draws["habit"].shape == (4, 1000, 2, 3)
    # the lapses are among the decisions of the first
    assert post.mean("habit")[0, 0] > post.mean("habit")[1, 0]
    assert post.select(group="one").lapses().likeliest(1)[0] in range(10, 16)
    labels = np.array(d.actions)
    labels[90:] = np.where(labels[90:] == "up", "left", labels[90:])
    fewer = rv.Decisions(d.rows, d.start, d.chosen, names=d.names, actions=labels, groups=group)
    with pytest.raises(ValueError, match="group 'other' was never offered 'up'; separate groups"):
        rv.fit(fewer, model)


@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
@pytest.mark.parametrize("what", mark_slow(["df", "prior_sd"], lambda what: what == "prior_sd"))
def test_habits_stand_beside_what_else_is_inferred(what: str, tmp_path: Path) -> None:
    d, inferred = labelled(30), what == "prior_sd"
    noise: Any = rv.LogitNoise(lapse=LAPSE)
    if not inferred:
        noise = rv.StudentNoise(rv.Gamma(2.0, 0.4), lapse=LAPSE)
    prior = rv.Normal(rv.HalfStudentT() if inferred else 5.0)
    model = rv.ChoiceModel(prior=prior, noise=noise)
    few: dict[str, Any] = {"chains": 2, "draws": 40, "warmup": 100, "executor": 1}
    post = rv.fit(d, model, seed=1, progress=False, **few)
    between = ("(prior sd)", "(lapse)") if inferred else ("(df)", "(lapse)")
    assert post.columns().names[2:4] == between
    # by the definition: each draw with its own df, rate and habits
    rate, habit = post.stacked("lapse")[:, None], post.stacked("habit")[:, d.chosen]
    law = rv.LogitNoise() if inferred else StudentDraws(post.stacked("df"))
    attends = (1 - rate) * rv.choice_probabilities(d, post.values, law)[:, d.chosen_row]
    exact = attends + rate * habit
    np.testing.assert_allclose(np.exp(post.log_likelihood().reshape(80, 30)), exact, rtol=1e-6)
    blind = (rate * habit / exact).mean(axis=0)
    np.testing.assert_allclose(post.lapses().probability, blind, rtol=1e-3)
    assert np.isfinite(post.loo().elpd)
    assert "inform" in str(post.identification())
    post.save(tmp_path / "both.nc")
    again = rv.load(tmp_path / "both.nc")
    assert again.model.noise == noise
    np.testing.assert_array_equal(again.draws[what], post.draws[what])


# Refusals


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    d = labelled(20)
    model = rv.ChoiceModel(prior=rv.Normal(5.0), noise=rv.LogitNoise(lapse=LAPSE))
    with pytest.raises(ValueError, match='a lapse goes to "uniform" or "habit", not \'home\''):
        rv.Lapse(to="home")
    with pytest.raises(ValueError, match="need to know which action is which, and these decisions"):
        rv.fit(rv.Decisions(d.rows, d.start, d.chosen), model)
    with pytest.raises(
        ValueError, match="all rows have the label 'it', of which there is no habit"
    ):
        rv.fit(rv.Decisions(d.rows, d.start, d.chosen, actions=["it"] * 60), model)
    for wrong in ({"left": 0.5, "right": 0.4}, {"left": 0.0, "right": 1.0}, {}, 0.5, {"a": np.nan}):
        with pytest.raises(ValueError, match="habit"):
            rv.KnownLapse(rv.LogitNoise(), 0.1, wrong)
