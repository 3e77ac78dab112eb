"""Hierarchical groups from end to end: who decided, what is learnt of whom, what is kept, and what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import revealed as rv
from revealed.data.decisions import Decisions
from tests.support.cases import choose, mdp_offers
from tests.support.interrupts import interrupt

PLAYERS = tuple("abcdefgh")
EACH = 12


def simulated(seed: int = 0) -> Decisions:
    """Eight players of three features who decide twelve times each among three actions."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((len(PLAYERS) * EACH * 3, 3))
    offers = Decisions(
        rows,
        np.arange(len(PLAYERS) * EACH + 1) * 3,
        groups=np.repeat(PLAYERS, EACH),
        group_name="player",
        names=("price", "quality", "speed"),
    )
    values = np.array([-1.0, 0.5, 1.0]) + 0.6 * rng.standard_normal((len(PLAYERS), 3))
    chosen = np.concatenate(
        [choose(rng, offers[i * EACH : (i + 1) * EACH], v)[0] for i, v in enumerate(values)]
    )
    return offers.with_choices(chosen)


def grouped(d: Decisions, groups: Any) -> Decisions:
    """The same decisions, made by others."""
    own = {name: getattr(d, name) for name in d.__dataclass_fields__}
    return Decisions(**{**own, "groups": groups})


def quick(
    decisions: Any, groups: Any = None, prior: Any = None, scale: Any = 5.0, **settings: Any
) -> rv.HierarchicalPosterior:
    """A short fit whose convergence does not matter."""
    data = decisions if groups is None else grouped(decisions, groups)
    model = rv.ChoiceModel(prior=prior, groups=rv.Hierarchical(scale))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        found = rv.fit(data, model, **{"draws": 40, "warmup": 60, "chains": 2, **settings})
    assert isinstance(found, rv.HierarchicalPosterior)
    return found


@pytest.fixture(scope="module")
def population() -> rv.HierarchicalPosterior:
    model = rv.ChoiceModel(groups=rv.Hierarchical())
    found = rv.fit(simulated(), model, draws=3000, warmup=600, seed=1)
    assert isinstance(found, rv.HierarchicalPosterior)
    return found


def test_a_converged_population_is_silent_and_says_so(population: rv.HierarchicalPosterior) -> None:
    assert population.groups == PLAYERS
    assert population.draws["value"].shape == (4, 3000, 8, 3)
    summary = population.summary()
    assert summary.names == (
        "mean price",
        "mean quality",
        "mean speed",
        "sd price",
        "sd quality",
        "sd speed",
    )
    assert summary.converged
    assert population.summary_of_groups().converged
    assert "8 groups" in repr(population)
    assert "Converged" in str(summary)
    low, high = np.quantile(population.draws["population_mean"], [0.001, 0.999], axis=(0, 1))
    assert ((low < [-1.0, 0.5, 1.0]) & (high > [-1.0, 0.5, 1.0])).all()


def test_one_player_can_be_predicted_like_any_posterior(
    population: rv.HierarchicalPosterior,
) -> None:
    post = population.select(player="c")
    assert len(post.decisions) == EACH
    assert set(post.decisions.groups.tolist()) == {"c"}  # type: ignore[union-attr]
    found = rv.predict(post, post.decisions)
    again = population.predict(post.decisions)
    np.testing.assert_allclose(found.probabilities, again.probabilities)
    assert found.log_probability_chosen is not None
    assert post.identification().informed >= 1


def test_a_stranger_is_told_apart_from_a_new_group(population: rv.HierarchicalPosterior) -> None:
    d = simulated(seed=9)[:2]
    with pytest.raises(
        ValueError, match="group 'z' made none of the decisions of this fit, which knows 8 groups"
    ):
        population.select(group="z")
    with pytest.raises(ValueError, match=r"predict\(\.\.\., new_groups=\['z'\]\)"):
        population.predict(grouped(d, ["a", "z"]))
    found = population.predict(grouped(d, ["a", "z"]), new_groups=["z"])
    np.testing.assert_allclose(np.add.reduceat(found.probabilities, d.start[:-1]), 1.0)
    expected = rv.predict(population.new_group(), d[1:])
    np.testing.assert_allclose(found.probabilities[3:], expected.probabilities)
    with pytest.raises(ValueError, match="'a' is called new, but is one of the 8 groups"):
        population.predict(d, new_groups=["a"])


def test_a_new_player_is_as_wide_as_the_population(population: rv.HierarchicalPosterior) -> None:
    drawn = population.new_group()
    assert drawn.shape == (12_000, 3)
    total = population.mean("population_covariance") + np.cov(
        population.stacked("population_mean").T
    )
    ratio = np.cov(drawn.T).diagonal() / total.diagonal()
    assert (np.abs(np.log(ratio)) < 0.5).all()  # of heavy-tailed variances: the order of magnitude
    assert not np.array_equal(drawn, population.new_group(seed=1))


def test_shrinkage_draws_players_together(population: rv.HierarchicalPosterior) -> None:
    found = population.shrinkage()
    assert found.unpooled.shape == found.pooled.shape == (8, 3)
    assert (found.shrinkage_factor < 1.0).all()
    assert "8 groups with 12 decisions each" in str(found)
    figure = rv.plots.shrinkage(population)
    assert len(figure.axes) == 3
    assert len(rv.plots.shrinkage(population, ["speed"]).axes) == 1
    with pytest.raises(
        ValueError, match="there is no coefficient 'weight'; there are price, quality, speed"
    ):
        rv.plots.shrinkage(population, ["weight"])


def test_a_population_is_kept_in_a_file(
    population: rv.HierarchicalPosterior, tmp_path: Path
) -> None:
    population.save(tmp_path / "all.nc")
    back = rv.load(tmp_path / "all.nc")
    assert isinstance(back, rv.HierarchicalPosterior)
    for name in ("population_mean", "population_covariance", "value"):
        np.testing.assert_array_equal(back.draws[name], population.draws[name])
    assert back.groups == population.groups
    assert back.prior == population.prior
    assert isinstance(back.model, rv.ChoiceModel)
    assert back.model.groups == rv.Hierarchical(5.0)
    assert str(back.summary()) == str(population.summary())
    mine, same = population.select(group="b"), back.select(player="b")
    np.testing.assert_array_equal(same.draws["value"], mine.draws["value"])
    population.select(group="a").save(tmp_path / "one.nc")
    assert isinstance(rv.load(tmp_path / "one.nc"), rv.ChoicePosterior)


def test_a_population_speaks_arviz(population: rv.HierarchicalPosterior) -> None:
    data = population.to_arviz()
    assert data.posterior["value"].dims == ("chain", "draw", "group", "coefficient")
    assert float(
        data.posterior["population_mean"].sel(coefficient="price").mean()
    ) == pytest.approx(float(population.mean("population_mean")[0]))


def test_ways_to_say_who_decided() -> None:
    d = simulated()
    plain = Decisions(d.rows, d.start, d.chosen, names=d.names)
    one = quick(d).draws["value"]
    assert d.groups is not None
    np.testing.assert_array_equal(one, quick(plain, groups=d.groups).draws["value"])
    np.testing.assert_array_equal(one, quick(plain, groups=d.groups.tolist()).draws["value"])
    number = d.decision_of_row
    columns = {
        "decision": number,
        "group": d.groups[number],
        "chosen": np.isin(np.arange(len(number)), d.chosen_row),
    }
    table = pa.table({**columns, **{name: d.rows[:, k] for k, name in enumerate(d.names)}})
    np.testing.assert_array_equal(one, quick(table).draws["value"])
    renamed = table.rename_columns({"group": "who"})
    read = rv.from_dataframe(renamed, group="who")
    np.testing.assert_array_equal(one, quick(read).draws["value"])
    assert read.group_name == "who"
    assert quick(read).select(who="b").decisions.groups.tolist() == ["b"] * EACH  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda d: {"decisions": Decisions(d.rows, d.start, d.chosen)},
            "the decisions do not say who decided",
        ),
        (lambda d: {"groups": ["a", "b"]}, "groups has shape \\(2,\\), but there are 96 decisions"),
        (
            lambda d: {"groups": ["a"] * 96},
            "a population needs two groups or more, and all decisions are by 'a'",
        ),
        (
            lambda d: {"groups": [None, *"a" * 95]},
            "decision 0: the label of who decided is missing",
        ),
        (
            lambda d: {"groups": [np.nan, *np.arange(95.0)]},
            "decision 0: the label of who decided is missing",
        ),
        (
            lambda d: {"prior": rv.Flat()},
            r"no sampler takes a flat prior and hierarchical groups together; "
            r"give prior=rv.Normal\(sd\) or groups=rv.Separate\(\)",
        ),
        (lambda d: {"init": np.zeros(3)}, 'the sampler "hierarchical-hmc" has no use for init'),
        (lambda d: {"sampler": "da"}, 'the sampler "da" is for .*; choose one of auto, hierarch'),
        (
            lambda d: {"scale": -1.0},
            "the scale of the groups' sds must be a positive number; it is -1.0",
        ),
        (lambda d: {"draws": 0}, "draws must be a whole number, at least 1"),
        (lambda d: {"decisions": Decisions(d.rows, d.start, groups=d.groups)}, "carry no choices"),
        (lambda d: {"resume": True}, "resume=True needs the checkpoint file"),
    ],
)
def test_what_is_refused(spoil: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        quick(**{"decisions": simulated(), **spoil(simulated())})


def test_a_player_whose_decisions_say_nothing_is_one_of_the_population() -> None:
    """One who was never offered more than one action has the population's own law."""
    d = simulated()
    forced = Decisions(
        d.rows[:2],
        [0, 1, 2],
        [0, 0],
        names=d.names,
        groups=["silent", "silent"],
        group_name="player",
    )
    found = quick(d + forced)
    assert found.select(group="silent").draws["value"].shape == (2, 40, 3)
    assert np.isfinite(found.draws["value"]).all()


def test_centred_blocks_stay_centred() -> None:
    rng = np.random.default_rng(1)
    parts = []
    for _ in range(4):
        offers = mdp_offers(states=4, actions=3, count=10, seed=2)
        parts.append(offers.with_choices(choose(rng, offers, rng.standard_normal(4))[0]))
    d = parts[0] + parts[1] + parts[2] + parts[3]
    found = quick(d, groups=np.repeat([10, 20, 30, 40], 10))
    np.testing.assert_allclose(found.draws["value"].sum(axis=3), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.draws["population_covariance"].sum(axis=3), 0.0, atol=1e-7)
    np.testing.assert_allclose(found.new_group().sum(axis=1), 0.0, atol=1e-9)
    assert found.select(group=30).prior.sum_to_zero is None


def test_an_interrupted_fit_continues_to_the_same_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = quick(simulated())
    settings = {"checkpoint": tmp_path / "run.checkpoint"}
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-5, step=68)
        part = quick(simulated(), **settings)
    assert 0 < part.shape[1] < 40
    assert "interrupted" in str(part.summary())
    np.testing.assert_array_equal(
        quick(simulated(), resume=True, **settings).draws["value"], whole.draws["value"]
    )
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(simulated(), groups=np.roll(np.repeat(PLAYERS, EACH), 1), resume=True, **settings)


@pytest.mark.parametrize("turn", [0, 7, 12, 41, 43])
def test_a_warm_up_may_be_cut_anywhere(
    turn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its windows end after 12 and 42 of 60 iterations."""
    whole = quick(simulated(), draws=5)
    settings = {"checkpoint": tmp_path / "run.checkpoint", "draws": 5}
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-5, step=turn)
        with pytest.raises(KeyboardInterrupt):
            quick(simulated(), **settings)
    np.testing.assert_array_equal(
        quick(simulated(), resume=True, **settings).draws["value"], whole.draws["value"]
    )
