"""What follows from strategies that take turns: states, labels, predictions, files, comparison."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats, Ints
from revealed.results.classes import make_posterior
from revealed.results.relabelling import common_order, long_run_use, relabel, utility_root

VALUES = np.array([[2.5, -1.0], [-2.0, 1.0]])
LENGTH = 60


@cache
def simulated() -> tuple[rv.Decisions, Ints]:
    """Six sequences by two strategies, which stay with probability .95; and the true ones."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(6 * LENGTH, 2, 2))
    state = np.empty(6 * LENGTH, np.int64)
    for t in range(6 * LENGTH):
        begins = t % LENGTH == 0
        state[t] = rng.integers(2) if begins else state[t - 1] ^ (rng.random() < 0.05)
    utility = np.einsum("tak,tk->ta", rows, VALUES[state]) + rng.gumbel(size=(6 * LENGTH, 2))
    d = rv.Decisions(
        rows.reshape(-1, 2),
        range(0, 12 * LENGTH + 1, 2),
        utility.argmax(axis=1),
        names=["price", "speed"],
        sessions=np.repeat(list("abcdef"), LENGTH),
        times=np.tile(np.arange(LENGTH), 6),
    )
    return d, state


def fitted(states: int = 2, **settings: Any) -> Any:
    model = rv.ChoiceModel(
        prior=rv.Normal(3.0), noise=rv.LogitNoise(), over_time=rv.Switching(states)
    )
    given = {"draws": 200, "warmup": 200, "seed": 1, "progress": False} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(simulated()[0], model, **given)


@cache
def post() -> Any:
    return fitted()


def test_strategies_and_their_times_are_recovered() -> None:
    found, (_, state) = post(), simulated()
    # which is which is known by what they value
    order = np.argsort(found.mean("value")[:, 0])[::-1]
    value = found.stacked("value")[:, order]
    scores = (value.mean(axis=0) - VALUES) / value.std(axis=0)
    assert (np.abs(scores) < 4.5).all()
    states = found.states()
    np.testing.assert_allclose(states.probability.sum(axis=1), 1.0)
    agree = states.most_probable == np.argsort(order)[state] + 1
    assert agree.mean() > 0.9
    sure = states.probability.max(axis=1) > 0.95
    assert agree[sure].mean() > 0.97
    assert 0.9 < np.diag(found.mean("switch_probability")).mean() < 0.99
    assert states.to_dataframe().shape == (6 * LENGTH, 5)
    assert repr(states).startswith("<Strategies: 360 decisions, in use ")


def test_order_of_rows_does_not_matter_where_times_are_known() -> None:
    d = simulated()[0]
    shuffled = d[np.random.default_rng(1).permutation(len(d))]
    model = post().model
    mine, other = model.resolve(d).switching, model.resolve(shuffled).switching
    for label in "abcdef":
        own, again = (
            x.order[x.start[n] : x.start[n + 1]]
            for x, n in ((mine, mine.labels.index(label)), (other, other.labels.index(label)))
        )
        np.testing.assert_array_equal(d.times[own], shuffled.times[again])  # type: ignore[index]
        np.testing.assert_array_equal(d.chosen[own], shuffled.chosen[again])  # type: ignore[index]


def test_every_chain_has_the_same_labels() -> None:
    found = post()
    value = found.draws["value"]
    assert (np.abs(value.mean(axis=1) - value.mean(axis=(0, 1))) < 1.5).all()
    names = list(found.columns().names)
    assert names[:3] == ["price (1)", "speed (1)", "price (2)"]
    assert names[-1] == "(log posterior)"
    assert np.nanmax(found.summary().r_hat) < 1.1
    # labels are found again, whatever the chains called them
    swapped = {name: array.copy() for name, array in found.draws.items()}
    swapped["value"][2] = swapped["value"][2, :, ::-1]
    swapped["initial"][2] = swapped["initial"][2, :, ::-1]
    swapped["switch_probability"][2] = swapped["switch_probability"][2, :, ::-1, ::-1]
    lp = found.sample_stats["lp"]
    again = relabel(found.data, swapped, lp)
    for name, array in found.draws.items():
        np.testing.assert_array_equal(again[name], array)
    # without that, chains would seem to disagree
    assert np.nanmax(make_raw(found, swapped).summary().r_hat[:4]) > 1.1


def make_raw(found: Any, draws: Any) -> Any:
    """A posterior of these draws, as they are."""
    return type(found)(
        draws, found.data, found.model, found.sampler, found.sample_stats, found.settings
    )


def test_labels_are_those_of_the_pivot() -> None:
    found = post()
    lp = found.sample_stats["lp"]
    order = common_order(found.data, found.draws, lp)
    np.testing.assert_array_equal(order, np.tile([0, 1], (len(order), 1)))
    pivot = found.stacked("switch_probability")[int(np.argmax(lp))]
    used = long_run_use(pivot)
    assert used[0] >= used[1]
    np.testing.assert_allclose(used @ pivot, used, atol=1e-12)
    # the metric is the mean square of differences of utilities within decisions
    d = found.data
    gap = np.asarray(d.rows @ (VALUES[0] - VALUES[1])).reshape(-1, 2)
    expected = ((gap - gap.mean(axis=1, keepdims=True)) ** 2).mean()
    root = utility_root(d)
    assert ((VALUES[0] - VALUES[1]) @ root) @ ((VALUES[0] - VALUES[1]) @ root) == pytest.approx(
        expected
    )


def forward(logs: Floats, switch: Floats, initial: Floats) -> float:
    before = np.log(initial) + logs[0]
    for own in logs[1:]:
        before = np.logaddexp.reduce(before[:, None] + np.log(switch), axis=0) + own
    return float(np.logaddexp.reduce(before))


def test_log_likelihood_is_that_of_sequences() -> None:
    found, (d, _) = post(), simulated()
    assert found.log_likelihood().shape == (4, 200, 6)
    value, switch, initial = (found.draws[name][1, 7] for name in list(found.draws)[:3])
    logs = np.stack([rv.log_likelihood(d, v, rv.LogitNoise()) for v in value], axis=1)
    own = np.array(list(d.sessions)) == "c"  # type: ignore[arg-type]
    expected = forward(logs[own], switch, initial)
    assert found.log_likelihood()[1, 7, 2] == pytest.approx(expected, rel=1e-10)
    left_out = found.loo()
    assert left_out.pointwise.shape == (6,)
    arviz = found.to_arviz()
    assert arviz["log_likelihood"]["choices"].dims == ("chain", "draw", "sequence")


def test_one_step_ahead_multiplies_to_the_likelihood() -> None:
    """Under a single draw, filtered predictions of all choices make the likelihood of a sequence."""
    found, (d, _) = post(), simulated()
    one = {name: array[:1, :1] for name, array in found.draws.items()}
    lp = {"lp": found.sample_stats["lp"][:1, :1]}
    alone = type(found)(one, d, found.model, found.sampler, lp, {})
    filtered = alone.predict(d, filtered=True)
    assert filtered.log_probability_chosen is not None
    total = filtered.log_probability_chosen.reshape(6, LENGTH).sum(axis=1)
    np.testing.assert_allclose(total, alone.log_likelihood()[0, 0], rtol=1e-9)
    # and without the earlier choices, those of the chain alone
    plain = alone.predict(d).probabilities.reshape(-1, 2)
    law, t = one["initial"][0, 0], 5
    for _ in range(t):
        law = law @ one["switch_probability"][0, 0]
    each = [rv.choice_probabilities(d[t : t + 1], v, rv.LogitNoise()) for v in one["value"][0, 0]]
    np.testing.assert_allclose(plain[t], law @ np.stack(each), rtol=1e-9)
    with pytest.raises(ValueError, match="choices"):
        found.predict(rv.Decisions(d.rows, d.start, names=d.names), filtered=True)
    with pytest.raises(ValueError, match="by averaging over draws"):
        found.predict(d, "vote")


def test_earlier_choices_help_to_predict() -> None:
    found, (d, _) = post(), simulated()
    filtered, plain = found.predict(d, filtered=True), found.predict(d, draws=100)
    assert filtered.log_score > plain.log_score + 0.1
    np.testing.assert_allclose(filtered.probabilities.reshape(-1, 2).sum(axis=1), 1.0)
    assert 0.0 < filtered.log_score_standard_error < 0.02
    assert plain.draws[0] == 100


def test_number_of_strategies_is_compared_by_leaving_sequences_out() -> None:
    one = fitted(1, chains=2)
    found = rv.compare({"one": one, "two": post()})
    assert found.models[0] == "two"
    assert found.elpd_diff[1] > 20.0
    assert "over 6 sequences" in repr(found)
    # a strategy that is all there is has the likelihood of a value that stays
    still = rv.log_likelihood(one.data, one.stacked("value")[:3, 0], rv.LogitNoise())
    np.testing.assert_allclose(
        one.log_likelihood()[0, :3], still.reshape(3, 6, LENGTH).sum(axis=2), rtol=1e-9
    )
    constant = rv.fit(one.data, one.model.replace(over_time=rv.Constant()), draws=50, chains=1)
    with pytest.raises(ValueError, match=r"compared with rv\.Switching\(states=1\)"):
        rv.compare({"two": post(), "constant": constant})
    whole = rv.Decisions(one.data.rows, one.data.start, one.data.chosen)
    raw = make_posterior(one.model, whole, dict(one.draws), one.sampler, dict(one.sample_stats), {})
    with pytest.raises(ValueError, match="left out sequence by sequence, and there is one"):
        raw.loo()


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    found = post()
    found.save(tmp_path / "post.nc", log_likelihood=True)
    back = rv.load(tmp_path / "post.nc")
    assert repr(back) == repr(found)
    assert str(back.summary()) == str(found.summary())
    assert back.model.over_time == found.model.over_time
    for name, array in found.draws.items():
        np.testing.assert_array_equal(back.draws[name], array)
    one = found.select(strategy=2)
    assert isinstance(one, rv.ChoicePosterior)
    np.testing.assert_array_equal(one.draws["value"], found.draws["value"][:, :, 1])
    with pytest.raises(ValueError, match=r"select\(strategy=1\); there are 1, 2"):
        found.select(strategy=3)


def test_report_shows_the_strategies(tmp_path: Path) -> None:
    post().report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "2 strategies that take turns" in text
    assert "relabelled" in text
    figure = rv.plots.strategy_ribbons(post(), ["a", "c"], truth=simulated()[1] + 1)
    assert len(figure.axes) == 2
    with pytest.raises(ValueError, match="there is no sequence 'z'; there are a, b"):
        rv.plots.strategy_ribbons(post(), ["z"])


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"states": 0}, "states must be a whole number, at least 1"),
        ({"states": 51}, "states must be at most 50"),
        ({"concentration": 0.01}, "concentration must be at least 0.1"),
        ({"initial": -1.0}, "initial"),
        ({"sticky": -1.0}, "sticky"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(part: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rv.Switching(**part)


def test_what_does_not_go_with_strategies_is_refused() -> None:
    switching = rv.Switching(2)
    with pytest.raises(ValueError, match="improper, as a strategy may never be in use"):
        rv.ChoiceModel(prior=rv.Flat(), over_time=switching)
    for groups in (rv.Separate(), rv.Hierarchical()):
        with pytest.raises(ValueError, match="inferred for one group"):
            rv.ChoiceModel(groups=groups, over_time=switching)
    with pytest.raises(ValueError, match="no sampler takes"):
        rv.fit(
            simulated()[0],
            rv.ChoiceModel(noise=rv.StudentNoise(lapse=rv.Lapse()), over_time=switching),
        )
