"""What all posteriors have in common, each class of them: named draws, files, ArviZ, leaving one out, groups."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.models.description import describe
from revealed.results.storage import to_json_value
from tests.support.cases import choose

BRIEF: dict[str, Any] = {"draws": 30, "warmup": 120, "chains": 2, "progress": False}


def quick(data: Any, model: Any, **settings: Any) -> Any:
    """A short fit whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(data, model, **{**BRIEF, **settings})


def people(count: int = 3, each: int = 12) -> rv.Decisions:
    """People who take turns to choose among three labelled actions with two features."""
    rng = np.random.default_rng(5)
    offers = rv.Decisions(
        rng.standard_normal((count * each * 3, 2)),
        np.arange(count * each + 1) * 3,
        names=["price", "speed"],
        actions=np.tile(["bus", "car", "tram"], count * each),
        groups=np.tile(["ann", "ben", "cem"][:count], each),
        group_name="person",
    )
    return offers.with_choices(choose(rng, offers, np.array([-1.0, 0.7]))[0])


def diary() -> rv.Decisions:
    """One person, with the days and weeks of what was chosen; some days have two decisions."""
    d = people(1, 24)
    days = np.repeat(np.arange(18.0), [1, 2, 1] * 6)
    return rv.Decisions(
        d.rows,
        d.start,
        d.chosen,
        names=d.names,
        actions=d.actions,
        times=days,
        sessions=[f"week {int(day // 7)}" for day in days],
    )


def diaries() -> rv.Decisions:
    """People with days of their own: some chose on more days than others, two of them twice."""
    d = people(3, 12)
    days = np.repeat(np.arange(12.0), 3) + 0.5 * (d.groups == "ben")
    days[d.groups == "cem"] //= 2.0
    return rv.Decisions(
        d.rows,
        d.start,
        d.chosen,
        names=d.names,
        actions=d.actions,
        groups=d.groups,
        group_name="person",
        times=days,
        # a week begins on another day for everybody
        sessions=[f"week {int(day // 5)}" for day in days],
    )


def walks() -> rv.Trajectories:
    """Four walks through a house of three rooms, by two people."""
    rng = np.random.default_rng(2)
    world = rv.random_mdp(rng, states=3, actions=2)
    paths = [world.simulate(rng, [1.0, 0.0, -1.0], 25) for _ in range(4)]
    return rv.Trajectories(paths, ["hall", "attic", "yard"], ["go", "stay"], groups=list("abba"))


def games() -> rv.Rankings:
    return rv.Rankings.from_lists([["x", "y", "z"], ["y", "z", "x"], ["z", "x", "y"]] * 3)


def dated_games() -> rv.Rankings:
    """Nine games on four days."""
    lists = [["x", "y", "z"], ["y", "z", "x"], ["z", "x", "y"]] * 3
    return rv.Rankings.from_lists(lists, times=[0, 0, 1, 1, 1, 2.5, 2.5, 4, 4])


MODELS: dict[str, tuple[Any, Any]] = {
    "choices": (people, rv.ChoiceModel(prior=rv.Normal(2.0))),
    "inferred sd": (people, rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT()))),
    "correlated noise": (
        people,
        rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.CorrelatedNoise(base="car")),
    ),
    "hierarchical": (people, rv.ChoiceModel(groups=rv.Hierarchical(3.0))),
    "correlated noise, inferred sd": (
        people,
        rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT()), noise=rv.CorrelatedNoise(base="car")),
    ),
    "hierarchical, inferred sd": (
        people,
        rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT()), groups=rv.Hierarchical()),
    ),
    "hierarchical, correlated noise": (
        people,
        rv.ChoiceModel(noise=rv.CorrelatedNoise(base="car"), groups=rv.Hierarchical(3.0)),
    ),
    "hierarchical, correlated noise, inferred sd": (
        people,
        rv.ChoiceModel(
            prior=rv.Normal(rv.HalfStudentT()),
            noise=rv.CorrelatedNoise(),
            groups=rv.Hierarchical(),
        ),
    ),
    "transitions, inferred sd": (
        walks,
        rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT()), transitions=rv.Dirichlet()),
    ),
    "separate": (people, rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Separate())),
    "separate, inferred sd": (
        people,
        rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT()), groups=rv.Separate()),
    ),
    "separate, correlated noise": (
        people,
        rv.ChoiceModel(
            prior=rv.Normal(2.0), noise=rv.CorrelatedNoise(base="car"), groups=rv.Separate()
        ),
    ),
    "transitions": (
        walks,
        rv.ChoiceModel(
            prior=rv.Normal(2.0), transitions=rv.Dirichlet(np.full((2, 3, 3), 0.5), None, True)
        ),
    ),
    "separate, transitions": (
        walks,
        rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet(2.0), groups=rv.Separate()),
    ),
    "random walk": (
        diary,
        rv.ChoiceModel(
            prior=rv.Normal(2.0),
            over_time=rv.RandomWalk(0.3, between_sessions=rv.HalfStudentT(scale=1.0)),
        ),
    ),
    "reverting, logit noise with lapses": (
        diary,
        rv.ChoiceModel(
            prior=rv.Normal(2.0),
            noise=rv.LogitNoise(lapse=rv.Lapse()),
            over_time=rv.MeanReverting(),
        ),
    ),
    "separate, random walk": (
        diaries,
        rv.ChoiceModel(
            prior=rv.Normal(rv.HalfStudentT()),
            over_time=rv.RandomWalk(0.3, between_sessions=rv.HalfStudentT(scale=1.0)),
            groups=rv.Separate(),
        ),
    ),
    "separate, reverting, lapses": (
        diaries,
        rv.ChoiceModel(
            prior=rv.Normal(2.0),
            noise=rv.LogitNoise(lapse=rv.Lapse()),
            over_time=rv.MeanReverting(),
            groups=rv.Separate(),
        ),
    ),
    "hierarchical, random walk": (
        diaries,
        rv.ChoiceModel(
            noise=rv.LogitNoise(),
            over_time=rv.RandomWalk(between_sessions=0.4),
            groups=rv.Hierarchical(3.0),
        ),
    ),
    "ranking": (games, rv.RankingModel()),
    "ranking, given spread": (games, rv.RankingModel(rv.Normal(1.0), "player")),
    "ranking, logit noise": (games, rv.RankingModel(noise=rv.LogitNoise())),
    "ranking over time": (dated_games, rv.RankingModel(over_time=rv.RandomWalk())),
}
CLASSES = {
    "choices": rv.ChoicePosterior,
    "inferred sd": rv.ChoicePosterior,
    "correlated noise": rv.ChoicePosterior,
    "correlated noise, inferred sd": rv.ChoicePosterior,
    "hierarchical": rv.HierarchicalPosterior,
    "hierarchical, inferred sd": rv.HierarchicalPosterior,
    "hierarchical, correlated noise": rv.HierarchicalPosterior,
    "hierarchical, correlated noise, inferred sd": rv.HierarchicalPosterior,
    "hierarchical, random walk": rv.HierarchicalPathPosterior,
    "random walk": rv.PathPosterior,
    "reverting, logit noise with lapses": rv.PathPosterior,
    "transitions": rv.MDPPosterior,
    "transitions, inferred sd": rv.MDPPosterior,
    "ranking": rv.RankingPosterior,
    "ranking, given spread": rv.RankingPosterior,
    "ranking, logit noise": rv.RankingPosterior,
    "ranking over time": rv.RankingPathPosterior,
}
every = pytest.mark.parametrize("what", MODELS)


@cache
def fitted(what: str) -> Any:
    data, model = MODELS[what]
    return quick(data(), model)


def assert_same_arrays(one: Any, other: Any) -> None:
    """The same names, in the same order, of the same arrays."""
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], strict=True)


def assert_same_data(one: Any, other: Any) -> None:
    """Every field of data, and of what they hold, is the same."""
    assert type(one) is type(other)
    if hasattr(one, "__dataclass_fields__"):
        for name in one.__dataclass_fields__:
            assert_same_data(getattr(one, name), getattr(other, name))
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_data(a, b)
    else:
        assert one == other


def description(model: Any) -> Any:
    return json.loads(json.dumps(describe(model), default=to_json_value))


@every
def test_what_was_saved_comes_back(what: str, tmp_path: Path) -> None:
    post = fitted(what)
    assert type(post) is CLASSES.get(what, rv.SeparatePosterior)
    post.save(tmp_path / "post.nc")
    back = rv.load(tmp_path / "post.nc")
    assert type(back) is type(post)
    assert_same_arrays(back.draws, post.draws)
    assert_same_arrays(back.sample_stats, post.sample_stats)
    assert back.settings == post.settings
    assert back.sampler == post.sampler
    assert description(back.model) == description(post.model)
    assert_same_data(back.data, post.data)
    assert back.parameters == post.parameters
    assert str(back.summary()) == str(post.summary())
    assert repr(back) == repr(post)
    np.testing.assert_array_equal(back.log_likelihood(), post.log_likelihood())


@every
def test_parameters_name_the_draws(what: str) -> None:
    post = fitted(what)
    assert [parameter.name for parameter in post.parameters] == list(post.draws)
    assert post.shape == (2, 30)
    for name, draws in post.draws.items():
        parameter = post.parameter(name)
        assert draws.shape == (2, 30, *parameter.shape)
        np.testing.assert_array_equal(post.stacked(name), draws.reshape(60, *parameter.shape))
        np.testing.assert_allclose(post.mean(name), draws.mean(axis=(0, 1)), atol=1e-12)
        np.testing.assert_allclose(post.sd(name), draws.std(axis=(0, 1), ddof=1), atol=1e-12)
        low, high = post.quantile(name)
        np.testing.assert_allclose(low, np.quantile(draws, 0.05, axis=(0, 1)))
        np.testing.assert_allclose(high, np.quantile(draws, 0.95, axis=(0, 1)))
        np.testing.assert_allclose(
            post.quantile(name, 0.5), np.median(draws, axis=(0, 1)), atol=1e-12
        )
        with pytest.raises(ValueError, match="read-only"):
            draws[0, 0] = 0.0
    main = "skill" if what.startswith("ranking") else "value"
    assert post.parameter().name == main
    np.testing.assert_array_equal(post.mean(), post.mean(main))
    with pytest.raises(ValueError, match=f"there is no parameter 'colour'; there are .*{main}"):
        post.mean("colour")


@every
def test_each_observation_is_left_out(what: str) -> None:
    post = fitted(what)
    logs = post.log_likelihood()
    assert logs.shape == (2, 30, len(post.data))
    assert (logs <= 1e-12).all()
    found = post.loo()
    assert found.pointwise.shape == found.pareto_k.shape == (len(post.data),)
    assert found.elpd == pytest.approx(found.pointwise.sum())
    assert found.se == pytest.approx(np.sqrt(len(post.data)) * found.pointwise.std())
    assert found.n_high_pareto_k == (found.pareto_k > 0.7).sum()
    # no observation helps to predict itself more than the draws that fit it best
    assert (found.pointwise <= logs.max(axis=(0, 1)) + 1e-9).all()
    assert found.mcse > 0.0
    assert repr(found).startswith(f"<LeaveOneOut: elpd {found.elpd:.1f} (se {found.se:.1f}, Monte-")


@every
def test_arviz_has_every_parameter_under_its_labels(what: str) -> None:
    post = fitted(what)
    data = post.to_arviz()
    for parameter in post.parameters:
        found = data["posterior"][parameter.name]
        assert found.dims == ("chain", "draw", *parameter.dims)
        np.testing.assert_array_equal(found.values, post.draws[parameter.name])
        for dim in parameter.dims:
            assert [str(x) for x in found[dim].values] == [str(x) for x in parameter.coords[dim]]
    name, dim = ("order", "game") if what.startswith("ranking") else ("choice", "decision")
    assert data["log_likelihood"][name].dims == ("chain", "draw", dim)
    np.testing.assert_array_equal(data["log_likelihood"][name].values, post.log_likelihood())


@every
def test_the_number_of_threads_does_not_change_the_draws(what: str) -> None:
    data, model = MODELS[what]
    assert_same_arrays(quick(data(), model, executor=1).draws, fitted(what).draws)


# ---- groups


@pytest.mark.parametrize("what", ["choices", "ranking", "transitions"])
def test_without_groups_there_is_nothing_to_select(what: str) -> None:
    with pytest.raises(ValueError, match="nothing to select by person: this model has no groups"):
        fitted(what).select(person="ann")


@pytest.mark.parametrize("what", [name for name in MODELS if name.startswith("separate")])
def test_a_separate_group_is_what_its_own_fit_would_be(what: str) -> None:
    post = fitted(what)
    data, model = post.data, post.model.replace(groups=rv.Pooled())
    label = post.groups[1]
    mine = (
        data.take(np.flatnonzero(data.groups == label))
        if isinstance(data, rv.Trajectories)
        else data[np.flatnonzero(data.groups == label)]
    )
    one = post.select(group=label)
    alone = quick(mine, model, seed=one.settings["seed"])
    assert type(one) is type(alone)
    assert_same_arrays(one.draws, alone.draws)
    assert_same_arrays(one.sample_stats, alone.sample_stats)
    assert one.settings == alone.settings
    assert one.sampler == alone.sampler
    assert_same_data(one.data, alone.data)
    assert description(one.model) == description(alone.model)
    np.testing.assert_array_equal(one.log_likelihood(), alone.log_likelihood())
    # and all of them stand side by side
    assert list(post) == list(post.groups)
    whose = post.resolved.group_of_decision
    np.testing.assert_array_equal(post.log_likelihood()[:, :, whose == 1], alone.log_likelihood())
    assert post.summaries[label].message == alone.summary().message
    # of values that change, at times that are each group's own
    first = post.select(group=post.groups[0]).columns().names
    assert post.columns().names[: len(first)] == tuple(f"{post.groups[0]} {n}" for n in first)
    with pytest.raises(ValueError, match=r"one group at a time: select\(group="):
        post.identification()


def test_groups_are_selected_by_their_own_name_too() -> None:
    for what in ("separate", "hierarchical"):
        post = fitted(what)
        np.testing.assert_array_equal(
            post.select(person="ben").draws["value"], post.select(group="ben").draws["value"]
        )
        for wrong in ({}, {"team": "ben"}, {"person": "ben", "group": "ann"}):
            with pytest.raises(
                ValueError, match="select takes one label by the name of its groups"
            ):
                post.select(**wrong)


def test_separate_groups_predict_their_own_decisions() -> None:
    for what in ("separate", "separate, correlated noise"):
        post = fitted(what)
        found = post.predict(post.data)
        for label in post.groups:
            mine = np.flatnonzero(post.data.groups == label)
            alone = post.select(group=label).predict(post.data[mine])
            rows = np.concatenate([np.arange(*post.data.start[t : t + 2]) for t in mine])
            np.testing.assert_array_equal(found.probabilities[rows], alone.probabilities)
            np.testing.assert_array_equal(
                found.log_probability_chosen[mine], alone.log_probability_chosen
            )
    with pytest.raises(ValueError, match=r"select\(group='a'\).predict\(states\)"):
        fitted("separate, transitions").predict(people())


def test_separate_groups_with_correlated_noise_need_the_same_actions() -> None:
    """Before anything is fitted: their covariances could not stand side by side."""
    d = people()
    actions = d.actions.copy()  # type: ignore[union-attr]
    rows_of_ben = np.flatnonzero(np.repeat(d.groups == "ben", 3))
    actions[rows_of_ben[actions[rows_of_ben] == "tram"]] = "bike"
    other = rv.Decisions(d.rows, d.start, d.chosen, actions=actions, groups=d.groups)
    with pytest.raises(ValueError, match="group 'ann' was never offered 'bike'; separate groups"):
        quick(other, MODELS["separate, correlated noise"][1])


def test_separate_groups_record_what_differs_between_them() -> None:
    """The iterations of "ibis" are a group's decisions."""
    d = people()[:-1]
    model = rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Separate())
    found = quick(d, model, sampler="ibis", draws=100)
    assert [found.select(group=who).settings["warmup"] for who in found] == [12, 12, 11]
    assert len({found.select(group=who).settings["seed"] for who in found}) == 3


@pytest.mark.parametrize("what", ["hierarchical", "separate", "transitions", "ranking"])
def test_what_predicts_by_itself_is_refused_elsewhere(what: str) -> None:
    post = fitted(what)
    for ask in (rv.predict, rv.policy):
        with pytest.raises(ValueError, match=f"a {type(post).__name__} predicts by itself"):
            ask(post, people())


# ---- comparisons and pages


def test_models_of_one_kind_of_data_are_compared() -> None:
    posts = {name: fitted(name) for name in ("choices", "separate", "hierarchical")}
    found = rv.compare(posts)
    assert set(found.models) == set(posts)
    elpd = dict(zip(found.models, found.elpd, strict=True))
    for name, post in posts.items():
        assert elpd[name] == pytest.approx(post.loo().elpd)
    rankings = {name: fitted(name) for name in MODELS if name.startswith("ranking")}
    assert set(rv.compare(rankings).models) == set(rankings)


def test_models_of_other_data_are_not_compared() -> None:
    reversed_games = rv.Rankings.from_lists([["z", "y", "x"], ["y", "z", "x"], ["z", "x", "y"]] * 3)
    other = quick(reversed_games, rv.RankingModel())
    with pytest.raises(ValueError, match="a and b were learnt from different rankings"):
        rv.compare({"a": fitted("ranking"), "b": other})
    data = walks()
    turned = rv.Trajectories(list(data.paths)[::-1], data.states, data.actions)
    model = rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet())
    with pytest.raises(ValueError, match="a and b were learnt from different trajectories"):
        rv.compare({"a": fitted("transitions"), "b": quick(turned, model)})
    nine = people(3, 3)
    with pytest.raises(ValueError, match="a was learnt from Rankings and b from Decisions"):
        rv.compare({"a": fitted("ranking"), "b": quick(nine, rv.ChoiceModel())})


def test_a_report_is_one_page(tmp_path: Path) -> None:
    post = fitted("choices")
    post.report(tmp_path / "page.html", title="Who likes <speed>?")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<h1>Who likes &lt;speed&gt;?</h1>" in text
    assert "data:image/png;base64," in text
    post.report(tmp_path / "plain.html")
    assert "What 36 decisions say about 2 coefficients" in (tmp_path / "plain.html").read_text(
        encoding="utf-8"
    )
