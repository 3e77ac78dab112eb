"""The main door: seeds, threads, pieces, checkpoints, Ctrl-C, and what it refuses."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.api import NotConvergedWarning
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.models.priors import resolve_prior
from revealed.samplers import run as running
from revealed.samplers.data_augmentation import AugmentationOptions, most_expanded
from tests.support.cases import (
    VARIANTS,
    build_sampler,
    choose,
    given_options,
    label,
    mdp_offers,
    ragged_offers,
    two_states,
)
from tests.support.interrupts import interrupt
from tests.support.statistical_asserts import assert_mean, assert_sd


def quick(decisions: Any, prior: Any = None, **settings: Any) -> rv.ChoicePosterior:
    """A short fit whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = rv.ChoiceModel(prior=rv.Normal(2.0) if prior is None else prior)
        post = rv.fit(decisions, model, **{"draws": 60, "warmup": 20, "chains": 2, **settings})
    assert isinstance(post, rv.ChoicePosterior)
    return post


def test_a_converged_answer_is_silent_and_right() -> None:
    model = rv.ChoiceModel(prior=rv.Normal(3.0**0.5))
    posterior = rv.fit(two_states(), model, sampler="composite", draws=4000, seed=1)
    assert posterior.summary().converged
    assert_mean(posterior.draws["value"][:, :, 0], 0.631026, false_alarm=1e-6)
    assert posterior.draws["value"].shape == (4, 4000, 2)
    assert posterior.settings["complete"] is True
    assert 0.5 < posterior.sample_stats["acceptance_rate"].mean() <= 1.0


def test_chains_that_have_not_converged_say_so() -> None:
    # the paper's sampler moves by a thousandth of this posterior in an iteration, on any machine
    rng = np.random.default_rng(0)
    offers = Decisions(5 * rng.standard_normal((2000, 3)), np.arange(101) * 20)
    decisions = offers.with_choices(choose(rng, offers, np.array([-3.0, -15.0, -1.0]))[0])
    with pytest.warns(NotConvergedWarning, match="Do not trust this yet") as said:
        posterior = rv.fit(
            decisions,
            rv.ChoiceModel(prior=rv.Normal(50.0)),
            sampler="px-scale",
            draws=200,
            warmup=100,
            seed=0,
        )
    assert [warning.filename for warning in said] == [__file__], (
        "it points at the line that asked for the fit"
    )
    assert not posterior.summary().converged


def test_an_unset_seed_is_recorded_and_reproduces_the_draws() -> None:
    one = quick(two_states(), seed=None)
    np.testing.assert_array_equal(
        one.draws["value"], quick(two_states(), seed=one.settings["seed"]).draws["value"]
    )


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_cutting_a_run_into_pieces_does_not_change_its_draws(
    variant: tuple[str, AugmentationOptions],
) -> None:
    sampler = build_sampler(variant, two_states(), rv.Normal(3.0**0.5))
    whole_rng, cut_rng = np.random.default_rng(5), np.random.default_rng(5)
    _, whole, _ = sampler.sample(whole_rng, sampler.init(whole_rng, None), 50, 2)
    state = sampler.init(cut_rng, None)
    pieces = []
    for count in (1, 9, 40):
        state, piece, _ = sampler.sample(cut_rng, state, count, 2)
        pieces.append(piece["value"])
    np.testing.assert_array_equal(np.concatenate(pieces), whole["value"])


def test_thinning_keeps_every_nth_draw() -> None:
    every = quick(two_states(), draws=60)
    third = quick(two_states(), draws=20, thin=3)
    np.testing.assert_array_equal(third.draws["value"], every.draws["value"][:, 2::3])


def test_sparse_rows_give_the_draws_of_dense_rows() -> None:
    import scipy.sparse as sp

    offers = mdp_offers(5, 3, 20, seed=3)
    dense = offers.with_choices(choose(np.random.default_rng(1), offers, np.arange(5.0))[0])
    sparse = Decisions(sp.csr_array(dense.rows), dense.start, dense.chosen, blocks=dense.blocks)
    for sampler in ("px-both", "da"):
        np.testing.assert_allclose(
            quick(dense, sampler=sampler).draws["value"],
            quick(sparse, sampler=sampler).draws["value"],
            atol=1e-6,
        )


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_ctrl_c_returns_what_there_is_and_the_checkpoint_continues_to_the_same_draws(
    variant: tuple[str, AugmentationOptions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = variant
    common = {
        "sampler": name,
        "options": given_options(variant),
        "draws": 500,
        "warmup": 200 if name == "composite" else 20,
    }
    settings = {**common, "checkpoint": tmp_path / "run.checkpoint"}
    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-3)
    whole = quick(two_states(), **common)
    with monkeypatch.context() as patch:
        interrupt(patch, 2e-5, step=30)
        partial = quick(two_states(), **settings)
    assert partial.settings["complete"] is False
    assert 0 < partial.draws["value"].shape[1] < 500
    assert "interrupted" in str(partial.summary())
    np.testing.assert_array_equal(
        partial.draws["value"], whole.draws["value"][:, : partial.draws["value"].shape[1]]
    )
    resumed = quick(two_states(), resume=True, **settings)
    np.testing.assert_array_equal(resumed.draws["value"], whole.draws["value"])
    np.testing.assert_array_equal(
        resumed.sample_stats["acceptance_rate"], whole.sample_stats["acceptance_rate"]
    )
    again = quick(two_states(), resume=True, **settings)
    np.testing.assert_array_equal(again.draws["value"], whole.draws["value"])


def test_ctrl_c_before_the_first_draw_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interrupt(monkeypatch, 1e-6, step=0)
    with pytest.raises(KeyboardInterrupt):
        quick(two_states(), warmup=1000, checkpoint=tmp_path / "run.checkpoint")
    assert (tmp_path / "run.checkpoint").exists()


def test_a_checkpoint_of_another_problem_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "run.checkpoint"
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-6, step=0)
        with pytest.raises(KeyboardInterrupt):
            quick(two_states(), checkpoint=path)
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(two_states(), prior=rv.Normal(5.0**0.5), checkpoint=path, resume=True)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="not a checkpoint of revealed, or it is damaged"):
        quick(two_states(), checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="there is no checkpoint"):
        quick(two_states(), checkpoint=tmp_path / "none", resume=True)
    with pytest.raises(ValueError, match="needs the checkpoint file"):
        quick(two_states(), resume=True)


def test_chains_start_where_they_are_told() -> None:
    sampler = build_sampler(("da", AugmentationOptions()), two_states(), rv.Normal(3.0**0.5))
    far = sampler.init(np.random.default_rng(1), np.array([100.0, 100.0]))
    assert far["w"].min() > 90.0
    with pytest.raises(ValueError, match=r"init has shape \(3,\); give 2 numbers"):
        quick(two_states(), init=np.zeros(3))
    with pytest.raises(ValueError, match="init must be finite"):
        quick(two_states(), init=[np.nan, 0.0])


def test_the_widest_move_takes_every_expansion_that_the_problem_allows() -> None:
    mdp = mdp_offers(4, 3, 10, seed=1)
    mdp = mdp.with_choices(np.zeros(10, dtype=int))
    ragged = ragged_offers(3, 10, seed=1)
    ragged = ragged.with_choices(np.zeros(10, dtype=int))
    assert most_expanded(mdp, resolve_prior(rv.Normal(2.0), mdp)) == "px-both"
    assert most_expanded(ragged, resolve_prior(rv.Normal(2.0), ragged)) == "px-scale"
    assert (
        most_expanded(mdp, resolve_prior(rv.Normal(2.0, mean=[1.0, 0, 0, 0]), mdp))
        == "px-translate"
    )
    assert most_expanded(ragged, resolve_prior(rv.Normal(2.0, mean=1.0), ragged)) == "da"


def test_auto_is_blended_unless_options_ask_for_the_papers_samplers() -> None:
    assert quick(two_states()).sampler == "composite"
    assert quick(two_states(), options={"utilities": "metropolis"}).sampler == "px-both"


def test_a_coefficient_that_cannot_move_stays_where_it_is() -> None:
    """A centred block of one has nothing to learn, and the default sampler's warm-up must not stumble over it."""
    offers = ragged_offers(3, 30, seed=5)
    seen = Decisions(
        offers.rows,
        offers.start,
        choose(np.random.default_rng(1), offers, np.ones(3))[0],
        blocks=[Block("alone", 1, True), Block("features", 2)],
    )
    posterior = rv.fit(seen, rv.ChoiceModel(prior=rv.Normal(2.0)), draws=500, warmup=200)
    np.testing.assert_allclose(posterior.draws["value"][:, :, 0], 0.0, atol=1e-12)
    assert posterior.draws["value"][:, :, 1:].std() > 0.05


@pytest.mark.filterwarnings("ignore::revealed.UninformedWarning")
def test_a_prior_mean_is_where_uninformative_choices_leave_the_value() -> None:
    lone = Decisions(np.ones((5, 2)), np.arange(6), np.zeros(5))
    posterior = rv.fit(
        lone, rv.ChoiceModel(prior=rv.Normal(2.0**0.5, mean=[3.0, -1.0])), draws=4000, seed=2
    )
    for k, mean in enumerate((3.0, -1.0)):
        assert_mean(posterior.draws["value"][:, :, k], mean, false_alarm=1e-6)
        assert_sd(posterior.draws["value"][:, :, k], mean, np.sqrt(2.0), false_alarm=1e-6)


SEPARABLE = Decisions(
    [[1.0, 0.0], [0.0, 1.0]] * 3, [0, 2, 4, 6], [0, 0, 0], names=["height", "holes"]
)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"sampler": "nuts"},
            "there is no sampler 'nuts'; choose one of auto, composite, da, px-scale",
        ),
        (
            {"sampler": "composite", "options": {"a": 1}},
            'the sampler "composite" has no use for options; leave it out',
        ),
        ({"draws": 0}, "draws must be a whole number, at least 1; it is 0"),
        ({"warmup": -1}, "warmup must be a whole number, at least 0"),
        ({"chains": 1.5}, "chains must be a whole number"),
        ({"thin": 0}, "thin must be a whole number"),
        ({"executor": 0}, "executor must be a whole number, at least 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
        ({"checkpoint": "nowhere/run.checkpoint"}, "there is no folder nowhere"),
        ({"prior": rv.Normal(0.0)}, "the prior sd must be positive; it is 0"),
        ({"prior": rv.Normal(-2.0)}, "the prior sd must be positive; it is -2"),
        ({"prior": rv.Normal(float("nan"))}, "the prior sd must be finite"),
        ({"prior": 3.0}, "prior must be rv.Normal"),
        ({"options": {"colour": 1}}, "unknown option 'colour'; this sampler knows utilities"),
        ({"options": {"utilities": "gibbs"}}, 'utilities must be "exact" or "metropolis"'),
        ({"options": {"a": 1}}, "needs a and b both positive, or both zero"),
        ({"options": {"newton": -1}}, "cannot be -1"),
        (
            {"sampler": "da", "options": {"a": 1, "b": 1}},
            'describe a working scale, and "da" has none',
        ),
        (
            {"sampler": "px-both", "prior": rv.Normal(2.0**0.5, sum_to_zero=False)},
            "shifts a sum-to-zero block",
        ),
        (
            {"sampler": "px-scale", "prior": rv.Normal(2.0**0.5, mean=1.0)},
            "needs a prior mean of zero",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    decisions = ragged_offers(2, 5, seed=1).with_choices(np.zeros(5, dtype=int))
    with pytest.raises(ValueError, match=sentence) as caught:
        quick(decisions, **settings)
    assert "\n" not in str(caught.value)


def test_a_flat_prior_on_separable_choices_is_refused_with_the_direction() -> None:
    with pytest.raises(
        ValueError, match=r"improper along the direction .*height.*every choice agrees"
    ):
        rv.fit(SEPARABLE, rv.ChoiceModel(prior=rv.Flat(sum_to_zero=True)))
    with pytest.raises(ValueError, match=r"improper along the direction .*no choice ever tests it"):
        rv.fit(SEPARABLE, rv.ChoiceModel(prior=rv.Flat()))


def test_a_flat_prior_with_an_unreached_state_is_refused_though_the_design_looks_fine() -> None:
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(2), size=40)
    rows = np.hstack([0.7 * rows, np.full((40, 1), 0.3)])
    offers = Decisions(rows, np.arange(21) * 2, blocks=[rv.Block("value", 3, True)])
    decisions = offers.with_choices(rng.integers(0, 2, 20))
    assert (
        np.linalg.cond(
            resolve_prior(rv.Flat(), decisions).basis.T
            @ rows.T
            @ rows
            @ resolve_prior(rv.Flat(), decisions).basis
        )
        < 100
    )
    with pytest.raises(ValueError, match=r"v2.*no choice ever tests it"):
        rv.fit(decisions, rv.ChoiceModel(prior=rv.Flat()))


def test_decisions_without_choices_or_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="carry no choices"):
        rv.fit(mdp_offers(3, 2, 5, seed=1))
    with pytest.raises(
        ValueError, match=r"a ChoiceModel is fitted to Decisions; .* these data are list"
    ):
        rv.fit([1, 2, 3])
