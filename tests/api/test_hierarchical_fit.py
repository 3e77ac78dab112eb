"""fit_population from end to end: who decided, what is learnt of whom, what is kept, and what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import revealed as rv
from revealed.data.decisions import Decisions
from revealed.samplers import run as running
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


def quick(decisions: Any, groups: Any = None, **settings: Any) -> rv.Population:
    """A short fit whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit_population(
            decisions, groups, **{"draws": 40, "warmup": 60, "chains": 2, **settings}
        )


@pytest.fixture(scope="module")
def population() -> rv.Population:
    return rv.fit_population(simulated(), groups="player", draws=3000, warmup=600, seed=1)


def test_a_converged_population_is_silent_and_says_so(population: rv.Population) -> None:
    assert population.groups == PLAYERS
    assert population.values.shape == (4, 3000, 8, 3)
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
    low, high = np.quantile(population.mean, [0.001, 0.999], axis=(0, 1))
    assert ((low < [-1.0, 0.5, 1.0]) & (high > [-1.0, 0.5, 1.0])).all()


def test_one_player_can_be_predicted_like_any_posterior(population: rv.Population) -> None:
    post = population.group("c")
    assert len(post.decisions) == EACH
    assert set(post.decisions.groups.tolist()) == {"c"}  # type: ignore[union-attr]
    found = rv.predict(post, post.decisions)
    again = population.predict(post.decisions)
    np.testing.assert_allclose(found.probabilities, again.probabilities)
    assert found.log_probability_chosen is not None
    assert rv.identify(post).informed >= 1


def test_a_stranger_is_told_apart_from_a_new_group(population: rv.Population) -> None:
    d = simulated(seed=9)[:2]
    with pytest.raises(
        ValueError, match="group 'z' made none of the decisions of this fit, which knows 8 groups"
    ):
        population.group("z")
    with pytest.raises(ValueError, match=r"predict\(\.\.\., new=\['z'\]\)"):
        population.predict(d, groups=["a", "z"])
    found = population.predict(d, groups=["a", "z"], new=["z"])
    np.testing.assert_allclose(np.add.reduceat(found.probabilities, d.start[:-1]), 1.0)
    expected = rv.predict(population.new_group(), d[1:])
    np.testing.assert_allclose(found.probabilities[3:], expected.probabilities)
    with pytest.raises(ValueError, match="'a' is called new, but is one of the 8 groups"):
        population.predict(d, new=["a"])


def test_a_new_player_is_as_wide_as_the_population(population: rv.Population) -> None:
    drawn = population.new_group()
    assert drawn.shape == (12_000, 3)
    total = population.covariance.mean(axis=(0, 1)) + np.cov(population.mean.reshape(-1, 3).T)
    ratio = np.cov(drawn.T).diagonal() / total.diagonal()
    assert (np.abs(np.log(ratio)) < 0.5).all()  # of heavy-tailed variances: the order of magnitude
    assert not np.array_equal(drawn, population.new_group(seed=1))


def test_shrinkage_draws_players_together(population: rv.Population) -> None:
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


def test_a_population_is_kept_in_a_file(population: rv.Population, tmp_path: Path) -> None:
    population.save(tmp_path / "all.nc")
    back = rv.Population.load(tmp_path / "all.nc")
    np.testing.assert_array_equal(back.values, population.values)
    np.testing.assert_array_equal(back.covariance, population.covariance)
    assert back.groups == population.groups
    assert back.prior == population.prior
    assert back.scale == population.scale
    assert str(back.summary()) == str(population.summary())
    np.testing.assert_array_equal(back.group("b").draws, population.group("b").draws)
    np.testing.assert_array_equal(rv.load(tmp_path / "all.nc").values, population.values)
    with pytest.raises(
        ValueError,
        match=r"is not a posterior saved by revealed: it is a population, which rv\.load",
    ):
        rv.Posterior.load(tmp_path / "all.nc")
    population.group("a").save(tmp_path / "one.nc")
    with pytest.raises(
        ValueError, match="is not a population saved by revealed: it is a posterior"
    ):
        rv.Population.load(tmp_path / "one.nc")


def test_a_population_speaks_arviz(population: rv.Population) -> None:
    data = population.to_arviz()
    assert data.posterior["v"].dims == ("chain", "draw", "group", "coefficient")
    assert float(data.posterior["mean"].sel(coefficient="price").mean()) == pytest.approx(
        float(population.mean[:, :, 0].mean())
    )


def test_ways_to_say_who_decided() -> None:
    d = simulated()
    plain = Decisions(d.rows, d.start, d.chosen, names=d.names)
    one = quick(d)
    assert d.groups is not None
    np.testing.assert_array_equal(one.values, quick(plain, groups=d.groups).values)
    np.testing.assert_array_equal(one.values, quick(plain, groups=d.groups.tolist()).values)
    number = d.decision_of_row
    columns = {
        "decision": number,
        "who": d.groups[number],
        "chosen": np.isin(np.arange(len(number)), d.chosen_row),
    }
    table = pa.table({**columns, **{name: d.rows[:, k] for k, name in enumerate(d.names)}})
    np.testing.assert_array_equal(one.values, quick(table, groups="who").values)
    with pytest.raises(ValueError, match="the table has no column 'team'"):
        quick(table, groups="team")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda d: {"decisions": Decisions(d.rows, d.start, d.chosen)},
            "the decisions do not say who decided",
        ),
        (lambda d: {"groups": "team"}, "grouped by 'player', and know nothing of 'team'"),
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
        (lambda d: {"prior": rv.Flat()}, "the prior of a population's mean cannot be flat"),
        (lambda d: {"prior": rv.Normal(rv.HalfStudentT())}, "cannot be of an sd to be inferred"),
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
    assert found.group("silent").draws.shape == (2, 40, 3)
    assert np.isfinite(found.values).all()


def test_centred_blocks_stay_centred() -> None:
    rng = np.random.default_rng(1)
    parts = []
    for _ in range(4):
        offers = mdp_offers(states=4, actions=3, count=10, seed=2)
        parts.append(offers.with_choices(choose(rng, offers, rng.standard_normal(4))[0]))
    d = parts[0] + parts[1] + parts[2] + parts[3]
    found = quick(d, groups=np.repeat([10, 20, 30, 40], 10))
    np.testing.assert_allclose(found.values.sum(axis=3), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.covariance.sum(axis=3), 0.0, atol=1e-7)
    np.testing.assert_allclose(found.new_group().sum(axis=1), 0.0, atol=1e-9)
    assert found.group(30).prior.sum_to_zero is None


def test_threads_and_pieces_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    one = quick(simulated(), threads=1)
    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-4)
    np.testing.assert_array_equal(one.values, quick(simulated(), threads=2).values)
    assert not np.array_equal(one.values, quick(simulated(), seed=1).values)


def test_an_interrupted_fit_continues_to_the_same_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = quick(simulated())
    settings = {"checkpoint": tmp_path / "run.checkpoint"}
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-5, step=68)
        part = quick(simulated(), **settings)
    assert 0 < part.mean.shape[1] < 40
    assert "interrupted" in str(part.summary())
    np.testing.assert_array_equal(quick(simulated(), resume=True, **settings).values, whole.values)
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
    np.testing.assert_array_equal(quick(simulated(), resume=True, **settings).values, whole.values)
