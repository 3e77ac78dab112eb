"""OnlineLearner: one decision in, the posterior out; saved, resumed, refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed import online as module
from tests.support.cases import choose, ragged_offers

MODEL = rv.ChoiceModel(prior=rv.Normal(3.0))


@pytest.fixture(scope="module")
def decisions() -> rv.Decisions:
    offers = ragged_offers(3, 30, seed=4)
    return offers.with_choices(
        choose(np.random.default_rng(4), offers, np.array([2.0, -1.0, 0.5]))[0]
    )


def test_one_by_one_is_all_at_once(decisions: rv.Decisions) -> None:
    whole, single = (rv.OnlineLearner(3, rv.Normal(3.0), 200, seed=3) for _ in range(2))
    whole.update(decisions)
    for t in range(len(decisions)):
        rows = decisions.rows[decisions.start[t] : decisions.start[t + 1]]
        single.update(rows, int(decisions.require_choices()[t]))
    assert np.array_equal(whole.particles, single.particles)
    assert whole.log_evidence == single.log_evidence
    assert len(whole) == 30
    assert "30 decisions" in repr(whole)


def test_a_saved_learner_goes_on_exactly(decisions: rv.Decisions, tmp_path: Path) -> None:
    file = tmp_path / "learner.nc"
    whole = rv.OnlineLearner(3, rv.Normal(3.0), 200, seed=3).update(decisions)
    rv.OnlineLearner(3, rv.Normal(3.0), 200, seed=3).update(decisions[:17]).save(file)
    resumed = rv.OnlineLearner.load(file)
    assert len(resumed) == 17
    resumed.update(decisions[17:])
    assert np.array_equal(whole.particles, resumed.particles)
    assert np.array_equal(whole.weights, resumed.weights)
    assert whole.log_evidence == resumed.log_evidence
    assert rv.load(file).draws["value"].shape == (1, 200, 3)


def test_properties_after_updates(decisions: rv.Decisions) -> None:
    learner = rv.OnlineLearner(["a", "b", "c"], rv.Normal(3.0), 500, seed=3)
    assert np.isclose(learner.probabilities([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).sum(), 1.0)
    learner.update(
        rv.Decisions(decisions.rows, decisions.start, decisions.chosen, names=["a", "b", "c"])
    )
    post = learner.posterior()
    assert post.sampler == "ibis"
    assert np.abs(post.mean() - learner.mean).max() < 0.2 * learner.sd.min()
    assert (learner.mean - post.resolved_prior.mean)[0] > 0
    assert learner.draw(np.random.default_rng(0)) in learner.particles
    assert np.isclose(learner.weights.sum(), 1.0)
    assert 100 < learner.effective_sample_size <= 500


def test_a_step_that_fails_changes_nothing(
    decisions: rv.Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, other = (
        rv.OnlineLearner(3, rv.Normal(3.0), 200, seed=3).update(decisions[:5]) for _ in range(2)
    )

    def fail(*_: object) -> None:
        learner._rng.random()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "assimilate", fail)
        with pytest.raises(KeyboardInterrupt):
            learner.update(decisions[5:6])
    assert len(learner) == 5
    assert np.array_equal(
        learner.update(decisions[5:]).particles, other.update(decisions[5:]).particles
    )


def test_bad_input_is_refused(decisions: rv.Decisions, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="flat prior has none"):
        rv.OnlineLearner(3, rv.Flat())
    with pytest.raises(ValueError, match="particles must be a whole number, at least 100"):
        rv.OnlineLearner(3, particles=5)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        rv.OnlineLearner(3, seed=-1)
    with pytest.raises(ValueError, match="nothing to learn"):
        rv.OnlineLearner([])
    learner = rv.OnlineLearner(3, rv.Normal(3.0), 200)
    with pytest.raises(ValueError, match="decision 0: chosen is 2, but 2 actions are offered"):
        learner.update([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], 2)
    with pytest.raises(ValueError, match="finite"):
        learner.update([[1.0, 2.0, np.nan], [1.0, 2.0, 4.0]], 1)
    with pytest.raises(ValueError, match="names for"):
        learner.update([[1.0, 2.0], [1.0, 2.0]], 1)
    with pytest.raises(ValueError, match="leave out chosen"):
        learner.update(decisions, 1)
    with pytest.raises(ValueError, match="but the learner has"):
        rv.OnlineLearner(["a", "b", "c"], rv.Normal(3.0), 200).update(decisions)
    with pytest.raises(ValueError, match="not seen any decision"):
        learner.save(tmp_path / "none.nc")
    assert len(learner) == 0
    rv.fit(decisions, MODEL, draws=400).save(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="not a learner that could go on"):
        rv.OnlineLearner.load(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="there is no file"):
        rv.OnlineLearner.load(tmp_path / "nowhere.nc")


def test_fit_by_ibis(decisions: rv.Decisions, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    post = rv.fit(decisions, MODEL, sampler="ibis", draws=500, checkpoint=file)
    assert post.draws["value"].shape == (4, 500, 3)
    again = rv.fit(decisions, MODEL, sampler="ibis", draws=500, checkpoint=file, resume=True)
    assert np.array_equal(post.draws["value"], again.draws["value"])
    assert np.ptp(post.sample_stats["log_evidence"][:, 0]) < 1.0
    with pytest.raises(ValueError, match=r'the sampler "ibis" is for .* has a flat prior; choose'):
        rv.fit(decisions, rv.ChoiceModel(prior=rv.Flat()), sampler="ibis")
    for extra in ({"init": np.zeros(3)}, {"thin": 2}, {"options": {"a": 1.0}}):
        with pytest.raises(ValueError, match="has no use for"):
            rv.fit(decisions, MODEL, sampler="ibis", **extra)


def test_models_are_compared(decisions: rv.Decisions) -> None:
    """One feature of three is left out: it is missed."""
    less = rv.Decisions(decisions.rows[:, 1:], decisions.start, decisions.chosen)
    found = rv.compare(
        {
            "less": rv.fit(less, MODEL, sampler="ibis", draws=500),
            "all": rv.fit(decisions, MODEL, sampler="ibis", draws=500),
            "by chains": rv.fit(decisions, MODEL, draws=500),
        }
    )
    assert found.models[-1] == "less"
    evidence = dict(zip(found.models, found.log_evidence, strict=True))
    assert evidence["all"] > evidence["less"] + 2
    assert np.isnan(evidence["by chains"])
    elpd = dict(zip(found.models, found.elpd, strict=True))
    assert abs(elpd["all"] - elpd["by chains"]) < 1.0
    assert "less" in repr(found)


def test_models_of_other_choices_are_refused(decisions: rv.Decisions) -> None:
    post = rv.fit(decisions, MODEL, draws=400)
    with pytest.raises(ValueError, match="at least two"):
        rv.compare({"one": post})
    with pytest.raises(ValueError, match="from 30 observations and b from 29"):
        rv.compare({"a": post, "b": rv.fit(decisions[:29], MODEL, draws=400)})
    other = decisions.with_choices(np.zeros(30, dtype=int))
    with pytest.raises(ValueError, match="saw another choice"):
        rv.compare({"a": post, "b": rv.fit(other, MODEL, draws=400)})
    with pytest.raises(ValueError, match="needs posteriors"):
        rv.compare({"a": post, "b": 3})  # type: ignore[dict-item]
