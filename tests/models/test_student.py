"""Student noise as a part of a model: refusals, the prior of df, results, files, predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed.kernels.coordinate_table import TABLE, table_values
from revealed.models.likelihood import derivatives
from revealed.models.student import StudentDraws
from tests.support.cases import mark_slow
from tests.support.statistical_asserts import assert_error, assert_scores, must_fail

PROVES = pytest.mark.proves(model="choices, Student noise")
SMALL: dict[str, Any] = {"draws": 60, "warmup": 150, "chains": 2, "executor": 1, "progress": False}


def pairs(outlier: float = 0.0) -> rv.Decisions:
    """Choices of mostly the better of two, by two people; the last may be against a large gap."""
    gap = np.append(np.tile([1.0, 0.6, -0.4, 1.4], 10), [0.5, -outlier if outlier else 0.5])
    rows = np.stack([gap, 0.0 * gap], axis=1).reshape(-1, 1)
    person = ["ann", "bob"] * 21
    return rv.Decisions(rows, 2 * np.arange(43), np.zeros(42, int), names=["worth"], groups=person)


@pytest.fixture(scope="module")
def fitted() -> Any:
    """With df inferred."""
    noise = rv.StudentNoise(rv.Gamma(2.0, 0.4))
    with pytest.warns(rv.NotConvergedWarning):
        return rv.fit(pairs(6.0), rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise), **SMALL)


@PROVES
@pytest.mark.parametrize("prior", [(2.0, 0.1), (2.0, 0.4), (0.5, 0.5), (30.0, 1.0)])
def test_a_standard_normal_coordinate_gives_df_its_prior(prior: tuple[float, float]) -> None:
    law = st.gamma(prior[0], scale=1.0 / prior[1])
    z = np.random.default_rng(1).standard_normal(200)
    log_df, slope, _ = table_values(rv.Gamma(*prior).table, z)
    exact = (law.cdf(np.exp(log_df)) - law.cdf(1.0)) / law.sf(1.0)
    assert_error(exact - st.norm.cdf(z), 1e-6)
    high, low = (table_values(rv.Gamma(*prior).table, z + h)[0] for h in (1e-5, -1e-5))
    assert_error(slope - (high - low) / 2e-5, 1e-4)
    assert np.exp(table_values(rv.Gamma(*prior).table, TABLE.nodes)[0]).min() >= 1.0
    if law.cdf(1.0) > 1e-3:
        with must_fail("a prior that is not cut off"):
            assert_error(law.cdf(np.exp(log_df)) - st.norm.cdf(z), 1e-6)


@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
def test_an_outlying_decision_counts_less_than_under_normal_noise() -> None:
    """Its slope in the value falls with its distance, where that of normal noise grows."""
    slopes = {
        noise.name: [
            derivatives(pairs(outlier)[[41]], np.array([1.0]), noise)[1][0]
            for outlier in (2.0, 6.0, 20.0)
        ]
        for noise in (rv.NormalNoise(), rv.StudentNoise(4.0))
    }
    per_unit = {name: np.abs(each) / [2.0, 6.0, 20.0] for name, each in slopes.items()}
    assert (np.diff(per_unit["student"]) < 0.0).all()
    assert per_unit["student"][-1] < 0.03 * per_unit["normal"][-1]
    # and so it moves the posterior less
    moved = {}
    for noise in (rv.NormalNoise(), rv.StudentNoise(2.0)):
        model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise)
        means = [rv.fit(pairs(far), model, seed=1, **SMALL).mean()[0] for far in (0.0, 6.0)]
        moved[noise.name] = abs(means[1] - means[0]) / means[0]
    assert moved["student"] < 0.7 * moved["normal"]


@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
@pytest.mark.parametrize(
    ("groups", "df"),
    mark_slow(
        [(groups, df) for groups in (rv.Separate(), rv.Hierarchical()) for df in (4.0, rv.Gamma())],
        lambda case: case == (rv.Separate(), 4.0),
        unpack=True,
    ),
)
def test_groups_have_it(groups: Any, df: Any) -> None:
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.StudentNoise(df), groups=groups)
    post = rv.fit(pairs(), model, **SMALL)
    assert ("df" in post.draws) == isinstance(df, rv.Gamma)
    one = post.select(group="ann")
    assert one.draws.keys() == ({"value", "df"} if isinstance(df, rv.Gamma) else {"value"})
    assert_error(one.predict(pairs()[:3]).probabilities.reshape(3, 2).sum(axis=1) - 1.0, 1e-5)


@PROVES
@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
def test_results_read_the_draws_of_df(fitted: Any, tmp_path: Path) -> None:
    post, d = fitted, pairs(6.0)
    assert post.draws["df"].shape == (2, 60)
    assert post.summary().names == ("worth", "(df)")
    # by the definition: each draw with its own degrees of freedom
    gap = np.asarray(d.rows).reshape(-1, 2) @ [1.0, -1.0]
    exact = st.t.logcdf(post.values * gap / np.sqrt(2.0), post.stacked("df")[:, None])
    assert_error(post.log_likelihood().reshape(exact.shape) - exact, 1e-8)
    found = post.predict(d, draws="all").probabilities.reshape(-1, 2)
    assert_error(found[:, 0] - np.exp(exact).mean(axis=0), 1e-4)
    with must_fail("one df for all draws"):
        mean = st.t.cdf(post.values * gap / np.sqrt(2.0), 50.0).mean(axis=0)
        assert_error(found[:, 0] - mean, 1e-4)
    elpd = post.loo().elpd
    assert np.isfinite(elpd)
    votes = post.predict(d, "vote", seed=1, draws="all").probabilities.reshape(-1, 2)[:, 0]
    assert_scores((votes - found[:, 0]) / np.sqrt(0.25 / 120), false_alarm=1e-6)
    assert np.isfinite(post.predict(d, "point").probabilities).all()
    assert "worth" in str(post.identification())
    # files, and a run that goes on
    post.save(tmp_path / "p.nc")
    again = rv.load(tmp_path / "p.nc")
    assert again.model.noise == post.model.noise
    np.testing.assert_array_equal(again.draws["df"], post.draws["df"])
    post.report(tmp_path / "r.html")
    assert "one scale for all actions of a decision" in (tmp_path / "r.html").read_text()
    assert "Gamma(2, 0.4) above 1" in (tmp_path / "r.html").read_text()


@PROVES
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
@pytest.mark.parametrize("by", ["all", "group"])
def test_a_population_has_lapses_beside_df(by: Any, tmp_path: Path) -> None:
    """Each choice is mixed with what a lapse makes of it, at the df and the rate of each draw."""
    d, lapse = pairs(6.0), rv.Lapse(rv.Beta(2.0, 8.0), by=by)
    noise = rv.StudentNoise(rv.Gamma(2.0, 0.4), lapse=lapse)
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise, groups=rv.Hierarchical())
    post = rv.fit(d, model, seed=1, **SMALL)
    rates = {"all": ("(lapse)",), "group": ("(lapse of the median group)",)}[by]
    assert post.summary().names[2:4] == ("(df)", *rates)
    gap = np.asarray(d.rows).reshape(-1, 2) @ [1.0, -1.0]
    rate, values = post.stacked("lapse").reshape(120, -1), post.stacked("value")[:, :, 0]
    group = np.tile([0, 1], 21)
    attends = st.t.cdf(values[:, group] * gap / np.sqrt(2.0), post.stacked("df")[:, None])
    rate = rate[:, group] if by == "group" else rate
    exact = (1.0 - rate) * attends + 0.5 * rate
    assert_error(np.exp(post.log_likelihood().reshape(120, 42)) - exact, 1e-8)
    assert_error(post.lapses().probability - (0.5 * rate / exact).mean(axis=0), 1e-5)
    assert np.isfinite(post.loo().elpd)
    assert post.select(group="bob").draws.keys() == {"value", "df", "lapse"}
    new = rv.Decisions(d.rows, d.start, d.chosen, names=d.names, groups=["cid"] * 42)
    assert np.isfinite(post.predict(new, new_groups=["cid"]).probabilities).all()
    post.save(tmp_path / "p.nc")
    again = rv.load(tmp_path / "p.nc")
    assert again.model.noise == noise
    np.testing.assert_array_equal(again.draws["lapse"], post.draws["lapse"])


@PROVES
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
def test_unknown_transitions_have_lapses_beside_df() -> None:
    mdp = rv.random_mdp(np.random.default_rng(1), 3, 2)
    seen = mdp.simulate(1, [2.0, 0.0, -2.0], 40, noise=rv.StudentNoise(3.0))
    noise = rv.StudentNoise(rv.Gamma(2.0, 0.4), lapse=rv.Lapse())
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise, transitions=rv.Dirichlet(1.0))
    post: Any = rv.fit(rv.Trajectories(seen, 3, 2), model, seed=1, **SMALL)
    logs, rate = post.log_likelihood().reshape(120, -1), post.stacked("lapse")[:, None]
    blind = (0.5 * rate / np.exp(logs)).mean(axis=0)
    assert_error(post.lapses().probability - blind, 1e-10)
    # nothing is less probable than a lapse makes it
    assert (np.exp(logs) > 0.5 * rate).all()
    assert np.isfinite(post.predict([0, 1, 2]).probabilities).all()


@PROVES
def test_probabilities_of_draws_are_those_of_each(fitted: Any) -> None:
    d, values = pairs(), np.array([[0.5], [2.0]])
    both = rv.choice_probabilities(d, values, StudentDraws(np.array([2.0, 30.0])))
    for s, df in enumerate((2.0, 30.0)):
        alone = rv.choice_probabilities(d, values[s], rv.StudentNoise(df))
        assert_error(both[s] - alone, 1e-15)


@PROVES
def test_a_controller_in_an_mdp_is_simulated() -> None:
    mdp = rv.random_mdp(np.random.default_rng(1), 3, 2)
    value, law = [2.0, 0.0, -2.0], rv.StudentNoise(1.5)
    path = mdp.simulate(1, value, 40_000, noise=law)
    exact = rv.choice_probabilities(mdp.decisions(range(3)), value, law).reshape(3, 2)[:, 0]
    seen = np.array(
        [np.mean(path.actions[path.states[: len(path.actions)] == x] == 0) for x in range(3)]
    )
    count = np.bincount(path.states[: len(path.actions)], minlength=3)
    scores = (seen - exact) / np.sqrt(exact * (1 - exact) / count)
    assert_scores(scores, false_alarm=1e-6)
    normal = rv.choice_probabilities(mdp.decisions(range(3)), value).reshape(3, 2)[:, 0]
    with must_fail("normal noise"):
        assert_scores((seen - normal) / np.sqrt(exact * (1 - exact) / count), false_alarm=1e-6)


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    for wrong in (0.5, 0.0, np.nan, np.inf, "4", rv.Gamma):
        with pytest.raises(ValueError, match=r"a number of at least 1, or rv\.Gamma\(2, 0\.1\)"):
            rv.StudentNoise(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a shape from 0\.5 to 1,000 and a mean"):
        rv.Gamma(0.1, 1.0)
    with pytest.raises(ValueError, match="under Student noise a flat prior is refused"):
        rv.ChoiceModel(prior=rv.Flat(), noise=rv.StudentNoise())
    with pytest.raises(ValueError, match="df is not known here"):
        rv.log_likelihood(pairs(), [1.0], rv.StudentNoise(rv.Gamma()))
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.StudentNoise())
    for sampler in ("da", "px-both", "laplace"):
        with pytest.raises(ValueError, match=f'the sampler "{sampler}" is for'):
            rv.fit(pairs(), model, sampler=sampler)
    with pytest.raises(ValueError, match="an online learner infers no df"):
        rv.OnlineLearner(model.replace(noise=rv.StudentNoise(rv.Gamma())), ["worth"])
    mdp = rv.random_mdp(np.random.default_rng(1), 3, 2)
    with pytest.raises(ValueError, match="whose expected maximum is known"):
        mdp.solve([1.0, 0.0, 0.0], 0.9, noise=rv.StudentNoise())
    with pytest.raises(ValueError, match="noise is drawn with known df"):
        mdp.simulate(1, [1.0, 0.0, 0.0], 5, noise=rv.StudentNoise(rv.Gamma()))
