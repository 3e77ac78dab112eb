"""Very many decisions: a few passes give the posterior, certified, or nothing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as st

import understudy as us
from evidence import assert_same, assert_scores, assert_uniform_ranks, caught
from problems import choose, features, mdp_offers, ragged_offers, two_files
from understudy import shards
from understudy._arrays import Floats, Ints
from understudy.diagnostics import mcse_mean, mcse_sd
from understudy.engines import fit as door
from understudy.engines import laplace
from understudy.engines.passes import Piece, slopes
from understudy.engines.tally import merged
from understudy.priors import place

PRIOR = us.Gaussian(25.0)
LAPLACE = pytest.mark.proves(model="choices, Gaussian prior", engine="laplace")


def states(count: int) -> us.Decisions:
    rng = np.random.default_rng(4)
    offers = mdp_offers(states=5, actions=3, count=count, seed=5)
    return offers.with_choices(choose(rng, offers, 2.0 * rng.standard_normal(5))[0])


def assert_agree(one: us.Posterior, other: us.Posterior) -> None:
    """Means and sds of two sets of draws agree within their Monte-Carlo errors."""
    moved, pairs = one.sd > 0, ((mcse_mean, one.mean, other.mean), (mcse_sd, one.sd, other.sd))
    scores = [(a - b)[moved] / np.hypot(error(one.draws), error(other.draws))[moved] for error, a, b in pairs]
    assert_scores(scores, false_alarm=1e-6, degrees=np.inf, how="agreement")


PROBLEMS = {"features": features(600), "centred states": states(800)}
PRIORS = {"Gaussian prior": PRIOR, "learnt size": us.Gaussian("learn", scale=3.0)}


@LAPLACE
@pytest.mark.proves(model="choices, {which}")
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("which", PRIORS)
def test_it_agrees_with_the_default_engine(problem: str, which: str) -> None:
    decisions, prior = PROBLEMS[problem], PRIORS[which]
    found = us.fit(decisions, prior, engine="laplace", draws=4000)
    assert found.settings["pareto_k"] < 0.5
    assert found.settings["effective"] > 0.8 * 16_000
    assert_agree(found, us.fit(decisions, prior, draws=4000, seed=1))


def ranks(replications: int, seed: int) -> Ints:
    """(replications, 3) ranks of the true coefficients among 63 draws."""
    offers, rng, prior = ragged_offers(3, 150, seed=7), np.random.default_rng(seed), us.Gaussian(1.0)
    truths = place(prior, offers).draw(rng, replications)
    found = []
    for i, truth in enumerate(truths):
        seen = offers.with_choices(choose(rng, offers, truth)[0])
        post = us.fit(seen, prior, engine="laplace", draws=400, chains=1, seed=i, threads=1)
        found.append((post.values[:63] < truth).sum(axis=0))
    return np.array(found)


@LAPLACE
@pytest.mark.proves(problem="features")
@pytest.mark.parametrize("replications", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_ranks_are_uniform(replications: int) -> None:
    assert_uniform_ranks(ranks(replications, seed=8), 63, false_alarm=1e-6)


def narrow(piece: Piece, v: Floats) -> Floats:
    """Slopes that make proposals come from half the width."""
    out = slopes(piece, v)
    out[1:, 1:] *= 2.0
    return out


@LAPLACE
def test_weights_make_up_for_poor_proposals_and_without_them_it_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions = features(600)
    truth = us.fit(decisions, PRIOR, draws=4000, seed=1)
    monkeypatch.setattr(laplace, "slopes", narrow)
    assert_agree(us.fit(decisions, PRIOR, engine="laplace", draws=4000), truth)
    monkeypatch.setattr(laplace, "pareto_k", lambda weights: 0.0)
    monkeypatch.setattr(laplace, "systematic", lambda rng, weights, count: np.arange(count) % len(weights))
    with caught("importance weights that are not used"):
        assert_agree(us.fit(decisions, PRIOR, engine="laplace", draws=4000), truth)


@LAPLACE
@pytest.mark.proves(model="choices, flat prior", problem="features")
def test_a_flat_prior() -> None:
    decisions = features(600)
    found = us.fit(decisions, us.Flat(), engine="laplace", draws=4000)
    assert_agree(found, us.fit(decisions, us.Flat(), draws=4000, seed=1))


@LAPLACE
@pytest.mark.proves(problem="evidence")
def test_evidence_is_that_of_a_cloud() -> None:
    decisions = features(200)
    by_passes = us.fit(decisions, PRIOR, engine="laplace", draws=2000).stats["log_evidence"][0, 0]
    clouds = us.fit(decisions, PRIOR, engine="ibis", draws=1000, chains=8).stats["log_evidence"][:, 0]
    mean = np.log(np.exp(clouds - clouds.max()).mean()) + clouds.max()
    assert_scores((by_passes - mean) / (clouds.std(ddof=1) / np.sqrt(8)), degrees=7, how="agreement")


@LAPLACE
def test_too_few_proposals_are_followed_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of the same ones, weighed together."""
    monkeypatch.setattr(laplace, "SPARE", 0.3)
    decisions = features(600)
    found = us.fit(decisions, PRIOR, engine="laplace", draws=4000)
    assert found.settings["passes"] > us.fit(decisions, PRIOR, engine="laplace", draws=300).settings["passes"] - 1
    assert found.settings["effective"] > 0.8 * 16_000
    assert found.settings["proposals"] < 20_000
    assert_agree(found, us.fit(decisions, PRIOR, draws=4000, seed=1))


def test_equal_decisions_are_counted() -> None:
    """In a small world a great many decisions are few different ones, and cost no more."""
    world = us.random_mdp(np.random.default_rng(1), 6, 3)
    value = np.random.default_rng(2).standard_normal(6) * 2.0
    seen = world.simulate(np.random.default_rng(3), value, 20_000)
    decisions = world.decisions(seen.states, seen.actions)
    few, times = merged(decisions)
    assert len(few) <= 18
    assert times.sum() == 20_000
    found = us.fit(decisions, PRIOR, engine="laplace", draws=2000)
    assert found.settings["decisions"] == 20_000
    assert len(found.decisions) == 20_000
    z = (found.mean - value + value.mean())[found.sd > 0] / found.sd[found.sd > 0]
    assert (z**2).sum() < st.chi2.isf(1e-6, 6)
    different = features(300)
    assert merged(different)[0] is different


def test_a_posterior_far_from_normal_is_refused() -> None:
    offers = ragged_offers(8, 24, seed=1)
    decisions = offers.with_choices(choose(np.random.default_rng(1), offers, 5.0 * np.ones(8))[0])
    with pytest.raises(
        ValueError, match="cannot certify an answer: the posterior is not close enough to normal: Pareto k"
    ):
        us.fit(decisions, us.Gaussian(2500.0), engine="laplace")


def test_a_wrong_mode_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proposals that stand beside the posterior are not certified as they are, and never wrongly."""
    decisions = features(600)
    monkeypatch.setattr(laplace, "NEAR", np.inf)  # the first step is the last
    monkeypatch.setattr(laplace, "SOME", 5)
    try:
        found = us.fit(decisions, PRIOR, engine="laplace", draws=4000)
    except ValueError:
        return
    assert_agree(found, us.fit(decisions, PRIOR, draws=4000, seed=1))


def test_the_default_engine_takes_this_road_where_it_leads_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "LARGE", 24)
    assert us.fit(features(600), PRIOR).engine == "laplace"
    offers = ragged_offers(8, 24, seed=1)
    decisions = offers.with_choices(choose(np.random.default_rng(1), offers, 5.0 * np.ones(8))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.NotConvergedWarning)
        assert us.fit(decisions, us.Gaussian(2500.0), draws=50, warmup=300).engine == "blended"
        assert us.fit(features(20), PRIOR, draws=50).engine == "blended"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """600 decisions in two files with row groups that cut through decisions."""
    return two_files(tmp_path, features(600), first=350, group=217)


def test_a_folder_is_the_same_decisions(folder: Path) -> None:
    source, decisions = us.from_folder(folder), features(600)
    assert source.count == 600
    pieces = [source.load(i)[0] for i in range(len(source))]
    assert len(pieces) > 5
    assert np.array_equal(np.vstack([p.rows for p in pieces]), decisions.rows)
    assert np.array_equal(
        np.concatenate([p.taken - p.start[:-1] for p in pieces]), decisions.taken - decisions.start[:-1]
    )
    two = us.from_folder(folder, features=["v0", "v2"])
    assert two.names == two.load(1)[0].names == ("v0", "v2")
    assert two.some().actions is not None
    found = us.fit(source, PRIOR, draws=500)
    assert found.engine == "laplace"
    assert found.settings["decisions"] == 600
    whole = us.fit(decisions, PRIOR, engine="laplace", draws=500)
    assert (np.abs(found.mean - whole.mean) < 0.05 * whole.sd).all()  # the last step of Newton's method began elsewhere


@LAPLACE
def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SIZE", 50)
    one, four = (us.fit(features(600), PRIOR, engine="laplace", draws=500, threads=n) for n in (1, 4))
    assert_same(one.draws, four.draws)


@LAPLACE
@pytest.mark.parametrize("stop", [1, 7, 20, 40])
def test_resumed_anywhere_it_gives_the_same_draws(stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SIZE", 50)
    file, decisions = tmp_path / "run.npz", features(600)
    whole = us.fit(decisions, PRIOR, engine="laplace", draws=500)
    seen = 0

    def broken(engine: laplace.Laplace) -> object:
        nonlocal seen
        for share in go(engine):
            seen += 1
            if seen == stop:
                raise KeyboardInterrupt
            yield share

    go = laplace.Laplace.go
    with monkeypatch.context() as patch:
        patch.setattr(laplace.Laplace, "go", broken)
        with pytest.raises(KeyboardInterrupt):
            us.fit(decisions, PRIOR, engine="laplace", draws=500, checkpoint=file)
    again = us.fit(decisions, PRIOR, engine="laplace", draws=500, checkpoint=file, resume=True)
    assert_same(whole.draws, again.draws)


def test_bad_input_is_refused(tmp_path: Path, folder: Path) -> None:
    decisions = features(600)
    with pytest.raises(ValueError, match='the engine "laplace" has no use for init'):
        us.fit(decisions, PRIOR, engine="laplace", init=np.zeros(3))
    with pytest.raises(ValueError, match='a folder or a cluster needs the engine "laplace", not "da"'):
        us.fit(us.from_folder(folder), PRIOR, engine="da")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="there is no Parquet file in the folder"):
        us.from_folder(empty)
    with pytest.raises(ValueError, match="there is no folder"):
        us.from_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="cluster must be a"):
        us.fit(decisions, PRIOR, cluster=3)
    mixed = us.to_frame(decisions[:4]).to_pandas().sample(frac=1.0, random_state=1)
    mixed.to_parquet(empty / "mixed.parquet")
    with pytest.raises(ValueError, match="do not stand together; sort the table"):
        us.from_folder(empty)
