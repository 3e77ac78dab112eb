"""Values of many groups that change: what their posterior tells of groups, new ones, and all together."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.api import fit_quietly

LIKES = {"ann": (-1.5, 1.5), "ben": (-0.5, 2.5), "cem": (0.0, 3.0), "dee": (-2.0, 1.0)}


def diary(days: int = 40) -> rv.Decisions:
    """Four people who come to like something; one of them chose on every other day only."""
    rng, rows, chosen, who, when = np.random.default_rng(3), [], [], [], []
    for name, (first, last) in LIKES.items():
        for day in range(0, days, 2 if name == "ben" else 1):
            like = first + (last - first) * day / days
            for _ in range(3):
                offers = rng.normal(size=2)
                rows += offers.tolist()
                chosen.append(int(np.argmax(like * offers + rng.gumbel(size=2))))
                who.append(name)
                when.append(float(day))
    return rv.Decisions(
        np.array(rows)[:, None],
        range(0, len(rows) + 1, 2),
        chosen,
        names=["sweet"],
        groups=who,
        group_name="person",
        times=when,
    )


MODEL = rv.ChoiceModel(
    prior=rv.Normal(2.0),
    noise=rv.LogitNoise(),
    over_time=rv.RandomWalk(),
    groups=rv.Hierarchical(1.0),
)


@cache
def people() -> Any:
    return rv.fit(diary(), MODEL, draws=1000, chains=2, seed=2, progress=False)


def test_summary_has_the_population_first_and_groups_apart() -> None:
    post = people()
    assert post.columns().names == (
        "mean sweet",
        "sd sweet",
        "(drift sd population) sweet",
        "(drift sd spread) sweet",
    )
    assert post.converged, post.message
    names = post.summary_of_groups().names
    assert names[:3] == ("ann (drift sd) sweet", "ann sweet at 0", "ann sweet at 39")
    assert len(names) == 12
    assert post.population_sd.shape == (2, 1000, 1)
    # all of them come to like it
    assert (post.mean("value")[post.paths.start[1:] - 1, 0] > 0.5).all()


def test_a_group_is_a_path() -> None:
    post = people()
    ben = post.select(person="ben")
    assert isinstance(ben, rv.PathPosterior)
    np.testing.assert_array_equal(ben.times, np.arange(0.0, 40.0, 2.0))
    where = post.paths.nodes_of(1)
    np.testing.assert_array_equal(ben.draws["value"], post.draws["value"][:, :, where])
    np.testing.assert_array_equal(ben.draws["drift_sd"], post.draws["drift_sd"][:, :, 1])
    assert isinstance(ben.prior, rv.Normal)
    np.testing.assert_allclose(np.asarray(ben.prior.mean), post.mean("population_mean"))
    which = np.flatnonzero(post.data.groups == "ben")
    np.testing.assert_array_equal(post.log_likelihood()[:, :, which], ben.log_likelihood())
    with pytest.raises(ValueError, match="group 'zoe' made none of the decisions of this fit"):
        post.select(group="zoe")
    with pytest.raises(ValueError, match="shrinkage needs a HierarchicalPosterior of values that"):
        post.shrinkage()
    with pytest.raises(ValueError, match="this model has no lapses"):
        post.lapses()


def test_new_groups_begin_at_the_population_and_move_as_it_does() -> None:
    post = people()
    values = post.new_group_at([5.0, 0.0, 20.0], seed=4)
    np.testing.assert_array_equal(values[:, 1], post.new_group(seed=4))
    # var(v(20) - v(0)) = E sd^2 20, draws by draw
    m, s = (post.stacked(f"drift_sd_{name}")[:, 0] for name in ("population", "spread"))
    many = np.concatenate([post.new_group_at([0.0, 20.0], seed=i) for i in range(40)])
    moved = np.arctan((many[:, 1] - many[:, 0])[:, 0])
    rng = np.random.default_rng(1)
    sd = np.tile(m, 40) * np.exp(np.tile(s, 40) * rng.standard_normal(len(moved)))
    right = np.arctan(sd * np.sqrt(20.0) * rng.standard_normal(len(moved)))
    error = np.hypot((moved**2).std(), (right**2).std()) / np.sqrt(len(moved))
    assert abs((moved**2).mean() - (right**2).mean()) < 5.0 * error


def test_everybody_is_predicted_at_their_times() -> None:
    post, d = people(), diary()
    found = post.predict(d, draws="all")
    which = np.flatnonzero(d.groups == "cem")
    alone = post.select(group="cem").predict(d[which], draws="all")
    np.testing.assert_array_equal(found.log_probability_chosen[which], alone.log_probability_chosen)
    offers = rv.Decisions(
        [[0.0], [1.0]] * 3,
        [0, 2, 4, 6],
        names=["sweet"],
        groups=["zoe", "zoe", "ann"],
        times=[3.0, 50.0, 50.0],
    )
    p = post.predict(offers, new_groups=["zoe"], seed=3, draws="all").probabilities
    values = post.new_group_at([3.0, 50.0], seed=3)[:, :, 0]
    np.testing.assert_allclose(p[[1, 3]], (1.0 / (1.0 + np.exp(-values))).mean(axis=0))
    with pytest.raises(ValueError, match="'ann' is called new, but is one of the 4 groups"):
        post.predict(offers, new_groups=["ann"])
    with pytest.raises(ValueError, match="a new group is predicted from the population"):
        post.predict(offers)


def test_it_is_compared_with_values_that_stay() -> None:
    constant = MODEL.replace(over_time=rv.Constant())
    still = fit_quietly(diary(), constant, draws=500, chains=2, seed=2)
    text = str(rv.compare({"drifting": people(), "constant": still}))
    assert text.index("drifting") < text.index("constant")


def test_sizes_that_are_given_are_everybodys() -> None:
    model = MODEL.replace(over_time=rv.RandomWalk(0.1))
    post = fit_quietly(diary(12), model, draws=200, chains=2, seed=1)
    assert set(post.draws) == {"population_mean", "population_covariance", "value"}
    assert post.new_group_at([0.0, 1.0]).shape == (400, 2, 1)
    ann = post.select(group="ann")
    assert ann.at([30.0]).shape == (400, 1, 1)


def test_the_prior_of_sizes_is_that_of_the_median_group() -> None:
    paths = MODEL.resolve(diary()).group_paths
    assert paths is not None
    scales = [path.process.scales for path in paths.paths]
    np.testing.assert_allclose(scales, np.full((4, 1), 2.0 / np.sqrt(39.0)))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"over_time": rv.MeanReverting()}, "groups=rv.Separate"),
        ({"noise": rv.LogitNoise(lapse=rv.Lapse())}, "no lapse"),
        ({"prior": rv.Normal(rv.HalfStudentT())}, r"prior=rv.Normal\(sd\)"),
        ({"noise": rv.CorrelatedNoise()}, "no sampler takes"),
    ],
)
def test_what_no_sampler_takes_says_what_would_do(parts: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rv.fit(diary(4), MODEL.replace(**parts))
    with pytest.raises(ValueError, match=r"groups=rv\.Pooled"):
        MODEL.replace(over_time=rv.Switching())
