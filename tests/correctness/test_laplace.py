"""Laplace importance sampling: a few passes give the posterior, certified, or nothing."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data import chunks
from revealed.data.unique import deduplicate_if_worthwhile
from revealed.kernels.noise import NoiseArguments
from revealed.results.diagnostics import mcse_mean, mcse_sd
from revealed.samplers import laplace, laplace_mode, laplace_proposals, laplace_run
from revealed.samplers.chunk_likelihood import (
    PreparedChunk,
    derivatives,
    log_likelihoods,
    values_and_gradients,
)
from revealed.samplers.cubic import CubicPolynomial
from revealed.samplers.laplace_settings import LAPLACE as LAPLACE_SETTINGS
from tests.support.cases import (
    choose,
    features,
    mark_slow,
    mdp_offers,
    ragged_offers,
    write_two_parquet_files,
)
from tests.support.statistical_asserts import (
    assert_same,
    assert_scores,
    must_fail,
)

PRIOR = rv.Normal(5.0)
MODEL = rv.ChoiceModel(prior=PRIOR)
LAPLACE = pytest.mark.proves(model="choices, normal prior", sampler="laplace")


def states(count: int) -> rv.Decisions:
    rng = np.random.default_rng(4)
    offers = mdp_offers(states=5, actions=3, count=count, seed=5)
    return offers.with_choices(choose(rng, offers, 2.0 * rng.standard_normal(5))[0])


def assert_agree(one: rv.Posterior, other: rv.Posterior) -> None:
    """Means and sds of two sets of draws agree within their Monte-Carlo errors."""
    moved = one.sd() > 0
    pairs = ((mcse_mean, one.mean(), other.mean()), (mcse_sd, one.sd(), other.sd()))
    scores = [
        (a - b)[moved] / np.hypot(error(one.draws["value"]), error(other.draws["value"]))[moved]
        for error, a, b in pairs
    ]
    assert_scores(scores, false_alarm=1e-6, degrees=np.inf, how="agreement")


def patch_settings(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Other tuning of the sampler, for one test."""
    for module in (laplace, laplace_mode):
        monkeypatch.setattr(module, "LAPLACE", dataclasses.replace(LAPLACE_SETTINGS, **changed))


PROBLEMS = {"features": features(600), "centred states": states(800)}
PRIORS = {"normal prior": PRIOR, "inferred prior scale": rv.Normal(rv.HalfStudentT(scale=3.0))}


@LAPLACE
@pytest.mark.proves(model="choices, {prior_name}")
@pytest.mark.parametrize(
    ("problem", "prior_name"),
    mark_slow(
        [(problem, prior) for prior in PRIORS for problem in PROBLEMS],
        lambda case: case == ("centred states", "normal prior"),
        unpack=True,
    ),
)
def test_draws_agree_with_the_default_sampler(problem: str, prior_name: str) -> None:
    decisions, model = PROBLEMS[problem], rv.ChoiceModel(prior=PRIORS[prior_name])
    found = rv.fit(decisions, model, sampler="laplace", draws=4000)
    assert found.settings["pareto_k"] < 0.5
    assert found.settings["effective"] > 0.8 * 16_000
    assert_agree(found, rv.fit(decisions, model, sampler="composite", draws=4000, seed=1))


def derivatives_of_narrow_proposals(
    chunk: PreparedChunk, v: Floats, noise: NoiseArguments
) -> Floats:
    """Derivatives whose curvature is doubled, so that proposals are too narrow."""
    out = derivatives(chunk, v, noise)
    out[1:, 1:] *= 2.0
    return out


@LAPLACE
def test_importance_weights_correct_narrow_proposals_and_their_absence_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decisions = features(600)
    truth = rv.fit(decisions, MODEL, sampler="composite", draws=4000, seed=1)
    monkeypatch.setattr(laplace, "derivatives", derivatives_of_narrow_proposals)
    patch_settings(monkeypatch, max_surrogate_width=0)
    assert_agree(rv.fit(decisions, MODEL, sampler="laplace", draws=4000), truth)
    monkeypatch.setattr(laplace, "pareto_k", lambda weights: 0.0)
    monkeypatch.setattr(
        laplace,
        "independence_chains",
        lambda rng, weights, chains, draws: np.arange(chains * draws) % len(weights),
    )
    with must_fail("importance weights that are not used"):
        assert_agree(rv.fit(decisions, MODEL, sampler="laplace", draws=4000), truth)


@LAPLACE
@pytest.mark.parametrize("count", [60, 600])
def test_surrogate_and_weighed_proposals_agree_and_a_normal_approximation_does_not(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 600 decisions the surrogate is good enough by itself; with 60 its draws are weighed."""
    decisions = features(count)
    truth = rv.fit(decisions, MODEL, sampler="composite", draws=4000, seed=1)
    found = rv.fit(decisions, MODEL, sampler="laplace", draws=4000)
    assert (found.settings["evaluations"] < 400) == (count == 600)
    assert_agree(found, truth)
    if count == 600:  # where the cubic term changes less than so many draws can tell
        return
    # without its cubic term, and with nobody looking at what is left
    fit = CubicPolynomial.fit

    def quadratic(*args: Any) -> CubicPolynomial:
        made = fit(*args)
        return dataclasses.replace(made, cubic=np.zeros_like(made.cubic))

    monkeypatch.setattr(CubicPolynomial, "fit", staticmethod(quadratic))
    patch_settings(monkeypatch, max_residual_sd=np.inf)
    with must_fail("a normal approximation"):
        assert_agree(rv.fit(decisions, MODEL, sampler="laplace", draws=4000), truth)


@LAPLACE
def test_exact_slope_at_the_mode_corrects_that_of_the_fast_likelihood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decisions = features(600)
    truth = rv.fit(decisions, MODEL, sampler="composite", draws=4000, seed=1)
    tilt = 0.3 / truth.sd()

    def tilted(chunk: PreparedChunk, values: Floats, noise: NoiseArguments) -> Floats:
        out = values_and_gradients(chunk, values, noise)
        tilts = np.column_stack([values @ tilt, np.broadcast_to(tilt, values.shape)])
        return np.asarray(out + tilts)

    def tilted_values(chunk: PreparedChunk, values: Floats, noise: NoiseArguments) -> Floats:
        return np.asarray(log_likelihoods(chunk, values, noise) + values @ tilt)

    monkeypatch.setattr(laplace, "values_and_gradients", tilted)
    monkeypatch.setattr(laplace, "log_likelihoods", tilted_values)
    assert_agree(rv.fit(decisions, MODEL, sampler="laplace", draws=4000), truth)
    monkeypatch.setattr(laplace_proposals.Coordinates, "gradients", without_single_point)
    with must_fail("a slope that is not corrected"):
        assert_agree(rv.fit(decisions, MODEL, sampler="laplace", draws=4000), truth)


def without_single_point(coordinates: laplace_proposals.Coordinates, by_value: Floats) -> Floats:
    """Derivatives in the coordinates, but none of a single point: that of the slope's error."""
    made = np.asarray(by_value @ coordinates.prior.basis @ coordinates.root)
    return made if len(made) > 1 else np.zeros_like(made)


@LAPLACE
@pytest.mark.proves(model="choices, flat prior", problem="features")
def test_flat_prior_agrees_with_the_default_sampler() -> None:
    decisions = features(600)
    found = rv.fit(decisions, rv.ChoiceModel(prior=rv.Flat()), sampler="laplace", draws=4000)
    model = rv.ChoiceModel(prior=rv.Flat())
    assert_agree(found, rv.fit(decisions, model, sampler="composite", draws=4000, seed=1))


@LAPLACE
@pytest.mark.proves(problem="evidence")
def test_evidence_is_that_of_ibis() -> None:
    decisions = features(200)
    by_laplace = rv.fit(decisions, MODEL, sampler="laplace", draws=2000)
    by_ibis = rv.fit(decisions, MODEL, sampler="ibis", draws=1000, chains=8)
    found = by_laplace.sample_stats["log_evidence"][0, 0]
    chains = by_ibis.sample_stats["log_evidence"][:, 0]
    mean = np.log(np.exp(chains - chains.max()).mean()) + chains.max()
    error = chains.std(ddof=1) / np.sqrt(8)
    assert_scores((found - mean) / error, degrees=7, how="agreement")


@LAPLACE
def test_more_proposals_are_added_where_there_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from the same law, and are weighted together with the first."""
    patch_settings(monkeypatch, proposals_per_draw=0.3, max_surrogate_width=0)
    decisions = features(600)
    found = rv.fit(decisions, MODEL, sampler="laplace", draws=4000)
    assert (
        found.settings["passes"]
        > rv.fit(decisions, MODEL, sampler="laplace", draws=300).settings["passes"] - 1
    )
    assert found.settings["effective"] > 0.8 * 16_000
    assert found.settings["evaluations"] < 20_000
    assert_agree(found, rv.fit(decisions, MODEL, sampler="composite", draws=4000, seed=1))


def test_equal_decisions_are_counted() -> None:
    """In a small MDP very many decisions are few different ones, and cost no more than these."""
    world = rv.random_mdp(np.random.default_rng(1), 6, 3)
    value = np.random.default_rng(2).standard_normal(6) * 2.0
    seen = world.simulate(np.random.default_rng(3), value, 20_000)
    decisions = world.decisions(seen.states, seen.actions)
    few, times = deduplicate_if_worthwhile(decisions)
    assert len(few) <= 18
    assert times.sum() == 20_000
    found = rv.fit(decisions, MODEL, sampler="laplace", draws=2000)
    assert found.settings["decisions"] == 20_000
    assert len(found.decisions) == 20_000
    moved = found.sd() > 0
    z = (found.mean() - value + value.mean())[moved] / found.sd()[moved]
    assert (z**2).sum() < st.chi2.isf(1e-6, 6)
    different = features(300)
    assert deduplicate_if_worthwhile(different)[0] is different


def test_posterior_far_from_normal_is_refused() -> None:
    offers = ragged_offers(8, 24, seed=1)
    decisions = offers.with_choices(choose(np.random.default_rng(1), offers, 5.0 * np.ones(8))[0])
    with pytest.raises(
        ValueError,
        match="cannot certify an answer: the posterior is not close enough to normal: Pareto k",
    ):
        rv.fit(decisions, rv.ChoiceModel(prior=rv.Normal(50.0)), sampler="laplace")


def test_proposals_about_a_wrong_mode_are_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless more passes bring them to the right one."""
    decisions = features(600)
    # the first step is the last
    patch_settings(monkeypatch, newton_tolerance=np.inf, initial_decisions=(5,))
    try:
        found = rv.fit(decisions, MODEL, sampler="laplace", draws=4000)
    except ValueError:
        return
    assert_agree(found, rv.fit(decisions, MODEL, sampler="composite", draws=4000, seed=1))


def test_auto_is_laplace_where_it_is_certified_and_nobody_asks_for_chains() -> None:
    offers = ragged_offers(8, 24, seed=1)
    decisions = offers.with_choices(choose(np.random.default_rng(1), offers, 5.0 * np.ones(8))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        assert rv.fit(features(600), MODEL, draws=50).sampler == "laplace"
        assert rv.fit(features(600), MODEL, draws=50, warmup=300).sampler == "composite"
        far_from_normal = rv.ChoiceModel(prior=rv.Normal(50.0))
        assert rv.fit(decisions, far_from_normal, draws=50).sampler == "composite"


def test_auto_tries_laplace_with_an_inferred_scale_only_where_decisions_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a posterior may have a second mode, which a look at one of them does not show."""
    model = rv.ChoiceModel(prior=PRIORS["inferred prior scale"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        assert rv.fit(features(100), model, draws=50).sampler == "composite"
    monkeypatch.setattr(laplace_run, "RULE", laplace_run.LaplaceRule(min_decisions=100))
    assert rv.fit(features(100), model, draws=50).sampler == "laplace"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """600 decisions in two files with row groups that cut through decisions."""
    return write_two_parquet_files(tmp_path, features(600), first=350, group=217)


def test_folder_gives_the_same_decisions_and_posterior(folder: Path) -> None:
    source, decisions = rv.scan_parquet(folder), features(600)
    assert source.count == 600
    pieces = [source.load(i)[0] for i in range(len(source))]
    assert len(pieces) > 5
    assert np.array_equal(np.vstack([p.rows for p in pieces]), decisions.rows)
    assert np.array_equal(
        np.concatenate([p.chosen_row - p.start[:-1] for p in pieces]),
        decisions.chosen_row - decisions.start[:-1],
    )
    two = rv.scan_parquet(folder, features=["v0", "v2"])
    assert two.names == two.load(1)[0].names == ("v0", "v2")
    assert two.first_chunk().actions is not None
    found = rv.fit(source, MODEL, draws=500)
    assert found.sampler == "laplace"
    assert found.settings["decisions"] == 600
    whole = rv.fit(decisions, MODEL, sampler="laplace", draws=500)
    # not the same draws: the last step of Newton's method began elsewhere
    assert (np.abs(found.mean() - whole.mean()) < 0.05 * whole.sd()).all()


@LAPLACE
@pytest.mark.parametrize("stop", [1, 7, 20, 40])
def test_run_resumed_anywhere_gives_the_same_draws(
    stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 50)
    file, decisions = tmp_path / "run.npz", features(600)
    whole = rv.fit(decisions, MODEL, sampler="laplace", draws=500)
    seen = 0

    def broken(sampler: laplace.Laplace) -> object:
        nonlocal seen
        for share in iterate(sampler):
            seen += 1
            if seen == stop:
                raise KeyboardInterrupt
            yield share

    iterate = laplace.Laplace.iterate
    with monkeypatch.context() as patch:
        patch.setattr(laplace.Laplace, "iterate", broken)
        with pytest.raises(KeyboardInterrupt):
            rv.fit(decisions, MODEL, sampler="laplace", draws=500, checkpoint=file)
    again = rv.fit(decisions, MODEL, sampler="laplace", draws=500, checkpoint=file, resume=True)
    assert_same(whole.draws["value"], again.draws["value"])


def test_bad_input_is_refused(tmp_path: Path, folder: Path) -> None:
    decisions = features(600)
    with pytest.raises(ValueError, match='the sampler "laplace" has no use for init'):
        rv.fit(decisions, MODEL, sampler="laplace", init=np.zeros(3))
    with pytest.raises(
        ValueError, match='a folder or a cluster needs the sampler "laplace", not "da"'
    ):
        rv.fit(rv.scan_parquet(folder), MODEL, sampler="da")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="there is no Parquet file in the folder"):
        rv.scan_parquet(empty)
    with pytest.raises(ValueError, match="there is no folder"):
        rv.scan_parquet(tmp_path / "nowhere")
    with pytest.raises(
        ValueError, match=r"executor must be a number of threads or a dask.distributed.Client"
    ):
        rv.fit(decisions, MODEL, executor=3.0)
    mixed = rv.to_dataframe(decisions[:4]).to_pandas().sample(frac=1.0, random_state=1)
    mixed.to_parquet(empty / "mixed.parquet")
    with pytest.raises(ValueError, match="do not stand together; sort the table"):
        rv.scan_parquet(empty)
