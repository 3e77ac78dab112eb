"""OnlineLearner: one decision in, the posterior out; saved, resumed, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.samplers import particle_filter as module
from revealed.samplers.separate import seed_for
from tests.support.cases import choose, ragged_offers

MODEL = rv.ChoiceModel(prior=rv.Normal(3.0))


@pytest.fixture(scope="module")
def decisions() -> rv.Decisions:
    offers = ragged_offers(3, 30, seed=4)
    return offers.with_choices(
        choose(np.random.default_rng(4), offers, np.array([2.0, -1.0, 0.5]))[0]
    )


def test_one_by_one_is_all_at_once(decisions: rv.Decisions) -> None:
    whole, single = (rv.OnlineLearner(MODEL, 3, 200, seed=3) for _ in range(2))
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
    whole = rv.OnlineLearner(MODEL, 3, 200, seed=3).update(decisions)
    rv.OnlineLearner(MODEL, 3, 200, seed=3).update(decisions[:17]).save(file)
    resumed = rv.OnlineLearner.load(file)
    assert len(resumed) == 17
    resumed.update(decisions[17:])
    assert np.array_equal(whole.particles, resumed.particles)
    assert np.array_equal(whole.weights, resumed.weights)
    assert whole.log_evidence == resumed.log_evidence
    assert rv.load(file).draws["value"].shape == (1, 200, 3)


def test_properties_after_updates(decisions: rv.Decisions) -> None:
    learner = rv.OnlineLearner(MODEL, ["a", "b", "c"], 500, seed=3)
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
        rv.OnlineLearner(MODEL, 3, 200, seed=3).update(decisions[:5]) for _ in range(2)
    )

    def fail(*_: object) -> None:
        learner._filters.of(None).rng.random()
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
        rv.OnlineLearner(rv.ChoiceModel(prior=rv.Flat()), 3)
    with pytest.raises(ValueError, match="particles must be a whole number, at least 100"):
        rv.OnlineLearner(MODEL, 3, particles=5)
    with pytest.raises(ValueError, match="seed must be a whole number"):
        rv.OnlineLearner(MODEL, 3, seed=-1)
    with pytest.raises(ValueError, match="nothing to learn"):
        rv.OnlineLearner(MODEL, [])
    learner = rv.OnlineLearner(MODEL, 3, 200)
    with pytest.raises(ValueError, match="decision 0: chosen is 2, but 2 actions are offered"):
        learner.update([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], 2)
    with pytest.raises(ValueError, match="finite"):
        learner.update([[1.0, 2.0, np.nan], [1.0, 2.0, 4.0]], 1)
    with pytest.raises(ValueError, match="names for"):
        learner.update([[1.0, 2.0], [1.0, 2.0]], 1)
    with pytest.raises(ValueError, match="leave out chosen"):
        learner.update(decisions, 1)
    with pytest.raises(ValueError, match="but the learner has"):
        rv.OnlineLearner(MODEL, ["a", "b", "c"], 200).update(decisions)
    with pytest.raises(ValueError, match="not seen any decision"):
        learner.save(tmp_path / "none.nc")
    assert len(learner) == 0
    rv.fit(decisions, MODEL, draws=400).save(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="not a learner that could go on"):
        rv.OnlineLearner.load(tmp_path / "post.nc")
    with pytest.raises(ValueError, match="there is no file"):
        rv.OnlineLearner.load(tmp_path / "nowhere.nc")


def four_people(count: int = 24) -> rv.Decisions:
    """Decisions of four people between two or three labelled actions."""
    rng = np.random.default_rng(5)
    sizes = np.tile([3, 3, 2], count)[:count]
    start = np.concatenate([[0], np.cumsum(sizes)])
    actions = np.concatenate([rng.permutation(["bus", "car", "tram"])[:size] for size in sizes])
    return rv.Decisions(
        rng.normal(size=(start[-1], 2)),
        start,
        rng.integers(sizes),
        groups=np.array(["ann", "ben", "cid", "dan"])[np.arange(count) % 4],
        actions=actions,
    )


ACTIONS = ["tram", "bus", "car"]
PARTS = {
    "separate": MODEL.replace(groups=rv.Separate()),
    "hierarchical": MODEL.replace(groups=rv.Hierarchical()),
    "correlated": MODEL.replace(noise=rv.CorrelatedNoise()),
    "separate, correlated": MODEL.replace(groups=rv.Separate(), noise=rv.CorrelatedNoise()),
    "lapses": MODEL.replace(noise=rv.LogitNoise(lapse=rv.Lapse())),
    "separate, lapses": MODEL.replace(
        groups=rv.Separate(), noise=rv.NormalNoise(lapse=rv.Lapse(rv.Beta(2.0, 8.0)))
    ),
    "habits": MODEL.replace(noise=rv.LogitNoise(lapse=rv.Lapse(to="habit"))),
}
LABELLED = ("correlated", "separate, correlated", "habits")
POOLED = ("correlated", "lapses", "habits")


def make(name: str) -> rv.OnlineLearner:
    actions = ACTIONS if name in LABELLED else None
    return rv.OnlineLearner(PARTS[name], ["a", "b"], 100, seed=3, actions=actions)


def named(d: rv.Decisions) -> rv.Decisions:
    return rv.Decisions(
        d.rows, d.start, d.chosen, names=["a", "b"], groups=d.groups, actions=d.actions
    )


def state(learner: rv.OnlineLearner) -> list[object]:
    return [learner.particles.tolist(), learner.weights.tolist(), learner.log_evidence]


@pytest.mark.parametrize("name", PARTS)
def test_every_part_goes_on_from_a_file_to_the_bit(name: str, tmp_path: Path) -> None:
    d, file = named(four_people()), tmp_path / "learner.nc"
    whole = make(name).update(d)
    for seen in (1, 15):
        make(name).update(d[:seen]).save(file)
        resumed = rv.OnlineLearner.load(file)
        assert len(resumed) == seen
        assert state(resumed.update(d[seen:])) == state(whole)
    whole.save(file)
    told: dict[str, Any] = {} if name in POOLED else {"group": "ann"}
    labels: dict[str, Any] = {"actions": ["car", "tram"]} if name in LABELLED else {}
    again = rv.OnlineLearner.load(file)
    for one in (whole, again):
        assert one.probabilities(np.eye(2), **told, **labels).sum() == pytest.approx(1.0)
        assert one.draw(4, **told).shape == (2,)
    assert np.array_equal(again.posterior().draws["value"], whole.posterior().draws["value"])
    assert np.array_equal(rv.load(file).draws["value"], whole.posterior().draws["value"])
    assert type(whole.posterior()) is type(rv.load(file))
    groups = 4 if told else 0
    assert whole.mean.shape == whole.sd.shape == ((groups, 2) if groups else (2,))
    assert np.abs(whole.posterior().mean("value") - whole.mean).max() < whole.sd.max()


@pytest.mark.parametrize("name", PARTS)
def test_decisions_one_by_one_with_labels_are_all_at_once(name: str) -> None:
    d, single = named(four_people()), make(name)
    assert d.groups is not None
    assert d.actions is not None
    for t in range(len(d)):
        mine = slice(d.start[t], d.start[t + 1])
        told: dict[str, Any] = {} if name in POOLED else {"group": d.groups[t]}
        labels: dict[str, Any] = {"actions": d.actions[mine]} if name in LABELLED else {}
        single.update(d.rows[mine], int(d.require_choices()[t]), **told, **labels)
    assert state(single) == state(make(name).update(d))
    assert "24 decisions" in repr(single)


@pytest.mark.parametrize("name", PARTS)
def test_a_step_of_any_part_that_fails_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while particles move, at a decision of a group never met before."""
    d = named(four_people())
    learner, other = make(name).update(d[:3]), make(name).update(d[:3])

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "assimilate", fail)
        with pytest.raises(KeyboardInterrupt):
            learner.update(d[3:4])
    assert len(learner) == 3
    assert learner.groups == other.groups
    assert state(learner.update(d[3:])) == state(other.update(d[3:]))


def test_separate_groups_are_learners_of_their_own() -> None:
    """Each has the particles that its decisions alone give, by a seed of its position."""
    d = named(four_people())
    both = make("separate").update(d)
    alone = rv.OnlineLearner(MODEL, ["a", "b"], 100, seed=seed_for(3, 1)).update(d[1::4])
    assert np.array_equal(both.particles[:, 1], alone.particles)
    assert np.array_equal(both.weights[:, 1], alone.weights)
    one = both.posterior().select(group="ben")
    assert np.array_equal(one.draws["value"], alone.posterior().draws["value"])


def test_somebody_never_met_is_predicted() -> None:
    d = named(four_people())
    for name in ("separate", "hierarchical"):
        learner = make(name)
        assert learner.mean.shape == (0, 2)
        learner.update(d)
        before = state(learner)
        assert learner.probabilities(np.eye(2), group="eve").sum() == pytest.approx(1.0)
        assert learner.draw(1, group="eve").shape == (2,)
        assert state(learner) == before
        assert learner.groups == ("ann", "ben", "cid", "dan")


def test_a_learner_without_a_posterior_yet_is_saved(tmp_path: Path) -> None:
    d, file = named(four_people()), tmp_path / "learner.nc"
    one = make("hierarchical").update(d[:1])
    with pytest.raises(ValueError, match="no posterior yet: a population needs decisions of two"):
        one.posterior()
    one.save(file)
    with pytest.raises(ValueError, match="an online learner without a posterior yet"):
        rv.load(file)
    two = make("correlated").update(d[2:3])
    with pytest.raises(ValueError, match="has not been offered yet"):
        two.posterior()


def test_parts_that_do_not_fit_are_refused() -> None:
    rows = np.eye(2)
    with pytest.raises(ValueError, match="takes the model first, then the names"):
        rv.OnlineLearner(["a", "b"], rv.Normal(1.0))  # type: ignore[arg-type]
    hierarchical = rv.ChoiceModel(groups=rv.Hierarchical(), noise=rv.CorrelatedNoise())
    with pytest.raises(ValueError, match="hierarchical groups or correlated noise, not both"):
        rv.OnlineLearner(hierarchical, 2, actions=ACTIONS)
    by_group = rv.LogitNoise(lapse=rv.Lapse(by="group"))
    with pytest.raises(ValueError, match=r"such as lapses; give groups=rv.Separate\(\)"):
        rv.OnlineLearner(rv.ChoiceModel(groups=rv.Hierarchical(), noise=by_group), 2)
    with pytest.raises(ValueError, match="where lapses follow habits a learner has to know"):
        rv.OnlineLearner(PARTS["habits"], 2)
    with pytest.raises(ValueError, match="habits need to know which action is which"):
        make("habits").update(rows, 0)
    with pytest.raises(ValueError, match="transitions cannot be unknown"):
        rv.OnlineLearner(rv.ChoiceModel(transitions=rv.Dirichlet()), 2)
    with pytest.raises(ValueError, match="takes a value for constant"):
        rv.OnlineLearner(rv.ChoiceModel(over_time=rv.RandomWalk()), 2)
    with pytest.raises(ValueError, match="which actions there are"):
        rv.OnlineLearner(PARTS["correlated"], 2)
    with pytest.raises(ValueError, match="leave out actions"):
        rv.OnlineLearner(MODEL, 2, actions=ACTIONS)
    with pytest.raises(ValueError, match="leave out group"):
        rv.OnlineLearner(MODEL, 2).update(rows, 0, group="ann")
    with pytest.raises(ValueError, match="say who decides"):
        make("separate").update(rows, 0)
    with pytest.raises(ValueError, match="of another kind than 'ann'"):
        make("separate").update(rows, 0, group="ann").update(rows, 0, group=1)
    with pytest.raises(ValueError, match="which action is which"):
        make("correlated").update(rows, 0)
    with pytest.raises(ValueError, match="offers 'car' twice"):
        make("correlated").update(rows, 0, actions=["car", "car"])
    with pytest.raises(ValueError, match="offers 'ship', and the learner was told of 'bus'"):
        make("correlated").update(rows, 0, actions=["car", "ship"])


def test_lapses_are_learnt_and_found() -> None:
    """Of a worthless action among good choices, the learner says that it was taken blindly."""
    rng, noise = np.random.default_rng(2), rv.LogitNoise(lapse=rv.Lapse())
    learner = rv.OnlineLearner(MODEL.replace(noise=noise), ["a"], 500, seed=1)
    for _ in range(30):
        rows = np.sort(4.0 * rng.normal(size=(3, 1)), axis=0)
        learner.update(rows, 2)
    blunder = len(learner)
    learner.update([[-9.0], [0.0], [9.0]], 0)
    post = learner.posterior()
    assert post.draws["lapse"].shape == (1, 500)
    assert learner.particles.shape == (500, 1)
    assert post.lapses().likeliest(1).tolist() == [blunder]
    # rates are those of probabilities: a hopeless action is taken by lapses alone
    hopeless = learner.probabilities([[-50.0], [0.0], [50.0]])[0]
    error = post.draws["lapse"].std() / np.sqrt(learner.effective_sample_size)
    assert abs(hopeless - post.draws["lapse"].mean() / 3.0) < 5.0 * error


def test_a_label_may_be_offered_twice_to_habits() -> None:
    learner = make("habits").update([[1.0, 0.0], [0.0, 1.0]], 0, actions=["car", "car"])
    assert len(learner) == 1


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
            "by chains": rv.fit(decisions, MODEL, sampler="composite", draws=500),
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
