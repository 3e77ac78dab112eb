"""Stream: one decision in, the posterior out; saved, resumed, refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import understudy as us
from problems import choose, ragged_offers
from understudy import stream as module


@pytest.fixture(scope="module")
def decisions() -> us.Decisions:
    offers = ragged_offers(3, 30, seed=4)
    return offers.with_choices(choose(np.random.default_rng(4), offers, np.array([2.0, -1.0, 0.5]))[0])


def test_one_by_one_is_all_at_once(decisions: us.Decisions) -> None:
    whole, single = (us.Stream(3, us.Gaussian(9.0), 200, seed=3) for _ in range(2))
    whole.update(decisions)
    for t in range(len(decisions)):
        single.update(decisions.rows[decisions.start[t] : decisions.start[t + 1]], int(decisions.chosen[t]))  # type: ignore[index]
    assert np.array_equal(whole.particles, single.particles)
    assert whole.log_evidence == single.log_evidence
    assert len(whole) == 30
    assert "30 decisions" in repr(whole)


def test_a_saved_stream_goes_on_exactly(decisions: us.Decisions, tmp_path: Path) -> None:
    file = tmp_path / "stream.nc"
    whole = us.Stream(3, us.Gaussian(9.0), 200, seed=3).update(decisions)
    us.Stream(3, us.Gaussian(9.0), 200, seed=3).update(decisions[:17]).save(file)
    resumed = us.Stream.load(file)
    assert len(resumed) == 17
    resumed.update(decisions[17:])
    assert np.array_equal(whole.particles, resumed.particles)
    assert np.array_equal(whole.weights, resumed.weights)
    assert whole.log_evidence == resumed.log_evidence
    assert us.load(file).draws.shape == (1, 200, 3)


def test_what_it_tells(decisions: us.Decisions) -> None:
    stream = us.Stream(["a", "b", "c"], us.Gaussian(9.0), 500, seed=3)
    assert np.isclose(stream.probabilities([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).sum(), 1.0)
    stream.update(us.Decisions(decisions.rows, decisions.start, decisions.chosen, names=["a", "b", "c"]))
    post = stream.posterior()
    assert post.engine == "ibis"
    assert np.abs(post.mean - stream.mean).max() < 0.2 * stream.sd.min()
    assert (stream.mean - post.placed.mean)[0] > 0
    assert stream.draw(np.random.default_rng(0)) in stream.particles
    assert np.isclose(stream.weights.sum(), 1.0)
    assert 100 < stream.effective <= 500


def test_a_step_that_fails_changes_nothing(decisions: us.Decisions, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, other = (us.Stream(3, us.Gaussian(9.0), 200, seed=3).update(decisions[:5]) for _ in range(2))

    def fail(*_: object) -> None:
        stream._rng.random()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "learn_one", fail)
        with pytest.raises(KeyboardInterrupt):
            stream.update(decisions[5:6])
    assert len(stream) == 5
    assert np.array_equal(stream.update(decisions[5:]).particles, other.update(decisions[5:]).particles)


def test_bad_input_is_refused(decisions: us.Decisions, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="flat prior has none"):
        us.Stream(3, us.Flat())
    with pytest.raises(ValueError, match="particles must be a whole number, at least 100"):
        us.Stream(3, particles=5)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        us.Stream(3, seed=-1)
    with pytest.raises(ValueError, match="nothing to learn"):
        us.Stream([])
    stream = us.Stream(3, us.Gaussian(9.0), 200)
    with pytest.raises(ValueError, match="decision 0: chosen is 2, but 2 actions are offered"):
        stream.update([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], 2)
    with pytest.raises(ValueError, match="finite"):
        stream.update([[1.0, 2.0, np.nan], [1.0, 2.0, 4.0]], 1)
    with pytest.raises(ValueError, match="names for"):
        stream.update([[1.0, 2.0], [1.0, 2.0]], 1)
    with pytest.raises(ValueError, match="leave out chosen"):
        stream.update(decisions, 1)
    with pytest.raises(ValueError, match="but the stream learns"):
        us.Stream(["a", "b", "c"], us.Gaussian(9.0), 200).update(decisions)
    with pytest.raises(ValueError, match="not learnt any decision"):
        stream.save(tmp_path / "none.nc")
    assert len(stream) == 0
    us.fit(decisions, us.Gaussian(9.0), draws=400).save(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="not a stream that could go on"):
        us.Stream.load(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="there is no file"):
        us.Stream.load(tmp_path / "nowhere.nc")


def test_fit_by_ibis(decisions: us.Decisions, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    post = us.fit(decisions, us.Gaussian(9.0), engine="ibis", draws=500, checkpoint=file)
    assert post.draws.shape == (4, 500, 3)
    again = us.fit(decisions, us.Gaussian(9.0), engine="ibis", draws=500, checkpoint=file, resume=True)
    assert np.array_equal(post.draws, again.draws)
    assert np.ptp(post.stats["log_evidence"][:, 0]) < 1.0
    with pytest.raises(ValueError, match="flat prior has none"):
        us.fit(decisions, us.Flat(), engine="ibis")
    for extra in ({"init": np.zeros(3)}, {"thin": 2}, {"options": {"a": 1.0}}):
        with pytest.raises(ValueError, match="has no use for"):
            us.fit(decisions, us.Gaussian(9.0), engine="ibis", **extra)


def test_models_are_compared(decisions: us.Decisions) -> None:
    """One feature of three is left out: it is missed."""
    less = us.Decisions(decisions.rows[:, 1:], decisions.start, decisions.chosen)
    found = us.compare({
        "less": us.fit(less, us.Gaussian(9.0), engine="ibis", draws=500),
        "all": us.fit(decisions, us.Gaussian(9.0), engine="ibis", draws=500),
        "by chains": us.fit(decisions, us.Gaussian(9.0), draws=500),
    })  # fmt: skip
    assert found.models[-1] == "less"
    evidence = dict(zip(found.models, found.log_evidence, strict=True))
    assert evidence["all"] > evidence["less"] + 2
    assert np.isnan(evidence["by chains"])
    elpd = dict(zip(found.models, found.elpd, strict=True))
    assert abs(elpd["all"] - elpd["by chains"]) < 1.0
    assert "less" in repr(found)


def test_models_of_other_choices_are_refused(decisions: us.Decisions) -> None:
    post = us.fit(decisions, us.Gaussian(9.0), draws=400)
    with pytest.raises(ValueError, match="at least two"):
        us.compare({"one": post})
    with pytest.raises(ValueError, match="from 30 decisions and b from 29"):
        us.compare({"a": post, "b": us.fit(decisions[:29], us.Gaussian(9.0), draws=400)})
    other = decisions.with_choices(np.zeros(30, dtype=int))
    with pytest.raises(ValueError, match="saw another choice"):
        us.compare({"a": post, "b": us.fit(other, us.Gaussian(9.0), draws=400)})
    with pytest.raises(ValueError, match="needs posteriors"):
        us.compare({"a": post, "b": 3})  # type: ignore[dict-item]
