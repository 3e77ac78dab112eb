"""Separate groups: a fit for each, kept as they come, told in one table, refused in one sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed import api
from revealed.data.decisions import Decisions
from revealed.samplers.separate import FitTask, seed_for
from tests.support.cases import choose
from tests.support.statistical_asserts import assert_same

WHO = ("ann", "ben", "cem", "dee")


def simulated() -> Decisions:
    """Four controllers, taking turns."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((len(WHO) * 20 * 3, 2))
    offers = Decisions(
        rows, np.arange(len(WHO) * 20 + 1) * 3, groups=np.tile(WHO, 20), names=("price", "quality")
    )
    return offers.with_choices(choose(rng, offers, np.array([-1.0, 0.7]))[0])


def quick(
    decisions: Any = None, prior: Any = None, noise: Any = None, groups: Any = None, **settings: Any
) -> rv.SeparatePosterior:
    """Short fits whose convergence does not matter."""
    given = simulated() if decisions is None else decisions
    if groups is not None:
        given = Decisions(given.rows, given.start, given.chosen, groups=groups)
    parts = {} if noise is None else {"noise": noise}
    model = rv.ChoiceModel(prior=prior, groups=rv.Separate(), **parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        found = rv.fit(given, model, **{"draws": 10, "warmup": 20, "chains": 2, **settings})
    assert isinstance(found, rv.SeparatePosterior)
    return found


@pytest.mark.proves(model="separate fits", sampler="composite")
def test_every_controller_has_a_posterior_of_its_own() -> None:
    model = rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Separate())
    found = rv.fit(simulated(), model, draws=500, warmup=300, seed=2)
    assert list(found) == list(WHO)
    assert len(found) == 4
    assert found.not_converged == ()
    assert found.converged
    assert repr(found) == (
        "<SeparatePosterior: 4 chains of 500 draws, 4 groups, 0 not converged, 2 coefficients, "
        "sampler composite>"
    )
    d = simulated()
    assert d.groups is not None
    alone = rv.fit(
        d[d.groups == "cem"],
        rv.ChoiceModel(prior=rv.Normal(2.0)),
        draws=500,
        warmup=300,
        seed=seed_for(2, 2),
    )
    of_cem = found.select(group="cem")
    assert isinstance(of_cem, rv.ChoicePosterior)
    assert_same(of_cem.draws["value"], alone.draws["value"])
    assert of_cem.settings == alone.settings
    assert of_cem.sampler == alone.sampler
    for name, values in alone.sample_stats.items():
        np.testing.assert_array_equal(of_cem.sample_stats[name], values)
    np.testing.assert_array_equal(of_cem.decisions.rows, alone.decisions.rows)
    table = found.to_dataframe()
    assert table.column_names == [
        "group",
        "coefficient",
        "mean",
        "sd",
        "low",
        "high",
        "r_hat",
        "ess",
        "converged",
    ]
    assert table.column("group").to_pylist() == [w for w in WHO for _ in range(2)]
    np.testing.assert_allclose(table.column("mean").to_numpy()[4:6], alone.mean())
    with pytest.raises(
        ValueError, match="there are posteriors of 4 groups, and 'zoe' is not one of them"
    ):
        found.select(group="zoe")


def test_one_warning_says_how_many_have_not_converged() -> None:
    with pytest.warns(
        rv.NotConvergedWarning,
        match=r"4 of 4 groups have not converged \('ann', 'ben', 'cem', ...\)",
    ) as said:
        found = rv.fit(
            simulated(), rv.ChoiceModel(groups=rv.Separate()), draws=5, warmup=5, chains=2
        )
    assert [warning.filename for warning in said] == [__file__]
    assert found.not_converged == WHO
    assert not found.converged


def test_an_interrupted_folder_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, folder = quick(), tmp_path / "fits"
    done: list[int] = []
    original = api.fit_task

    def stopped(task: FitTask) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task.position)
        return original(task)

    def counted(task: FitTask) -> Any:
        done.append(task.position)
        return original(task)

    with monkeypatch.context() as patch:
        patch.setattr(api, "fit_task", stopped)
        with pytest.warns(
            rv.NotConvergedWarning, match="interrupted, and 2 of 4 groups are missing"
        ):
            part = rv.fit(
                simulated(),
                rv.ChoiceModel(groups=rv.Separate()),
                draws=10,
                warmup=20,
                chains=2,
                executor=1,
                checkpoint=folder,
            )
    assert part.not_fitted == ("cem", "dee")
    assert part.groups == ("ann", "ben")
    assert len(part.data) == 40
    assert not part.converged
    assert part.settings["complete"] is False
    # those that were reached were run to their end
    assert part.select(group="ben").settings == whole.select(group="ben").settings
    assert "interrupted" not in part.summaries["ben"].message
    with pytest.raises(ValueError, match="'dee' was not reached before the work was interrupted"):
        part.select(group="dee")

    with monkeypatch.context() as patch:
        patch.setattr(api, "fit_task", counted)
        again = quick(checkpoint=folder, resume=True)
    assert done == [0, 1, 2, 3]
    np.testing.assert_array_equal(again.draws["value"], whole.draws["value"])
    assert again.settings == whole.settings
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(checkpoint=folder, resume=True, seed=9)
    with pytest.raises(
        ValueError, match="is not empty; give resume=True to go on, or another folder"
    ):
        quick(checkpoint=folder)


def test_paths_of_groups_are_fits_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups have times of their own, and a night lies between other decisions of each."""
    d, calls = simulated(), list[int]()
    times = np.repeat(np.arange(20.0), 4)
    times[d.groups == "ben"] //= 3.0
    nights = (times > np.where(d.groups == "cem", 5.0, 12.0)).astype(int)
    names = d.names
    dated = Decisions(
        d.rows, d.start, d.chosen, groups=d.groups, times=times, sessions=nights, names=names
    )
    walk = rv.RandomWalk(between_sessions=rv.HalfStudentT(scale=1.0))
    model = rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Separate(), over_time=walk)

    def fitted(**settings: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rv.NotConvergedWarning)
            return rv.fit(dated, model, draws=10, warmup=20, chains=2, seed=3, **settings)

    folder = tmp_path / "fits"
    post = fitted(checkpoint=folder)
    assert post.draws["value"].shape == (2, 10, 67, 2)
    assert post.parameter().coords["node"][20:22] == ("ben at 0", "ben at 1")
    assert post.draws["drift_sd_between_sessions"].shape == (2, 10, 4, 2)
    ben = post.select(group="ben")
    assert isinstance(ben, rv.PathPosterior)
    np.testing.assert_array_equal(ben.times, np.arange(7.0))
    assert_same(ben.draws["value"], post.draws["value"][:, :, 20:27])
    # who was fitted is read from the folder
    original = api.fit_task

    def counted(task: FitTask) -> Any:
        calls.append(task.position)
        return original(task)

    (folder / "1.nc").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(api, "fit_task", counted)
        again = fitted(checkpoint=folder, resume=True, executor=2)
    assert calls == [1]
    assert_same(again.draws["value"], post.draws["value"])
    # others' nights are not ben's: what is known of all at once would mix them
    offers = dated[np.flatnonzero(dated.groups == "ben")]
    found = post.predict(offers, draws="all")
    np.testing.assert_array_equal(
        found.probabilities, ben.predict(offers, draws="all").probabilities
    )
    with pytest.raises(ValueError, match="a prediction needs to know when"):
        post.predict(d)
    with pytest.raises(ValueError, match="values that change need to know when"):
        rv.fit(d, model)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"resume": True}, "resume=True needs the checkpoint folder"),
        ({"checkpoint": "nowhere/fits"}, "there is no folder nowhere to make fits in"),
        ({"checkpoint": "absent", "resume": True}, "there is no folder absent to resume from"),
        ({"checkpoint": "file"}, "the checkpoint of many fits is a folder, and file is a file"),
        (
            {"checkpoint": "bare", "resume": True},
            "bare is not a checkpoint folder of revealed, or it is damaged",
        ),
        ({"draws": 0}, "draws must be a whole number, at least 1"),
        ({"groups": ["ann"]}, r"groups has shape \(1,\), but there are 80 decisions"),
        ({"executor": 0}, "executor must be a whole number, at least 1"),
        ({"sampler": "nuts"}, "there is no sampler 'nuts'"),
        ({"sampler": "ghk-hmc"}, 'the sampler "ghk-hmc" is for correlated noise'),
        ({"thin": 2, "sampler": "ibis"}, 'the sampler "ibis" has no use for thin'),
        (
            {"decisions": Decisions(np.ones((2, 1)), [0, 2], [0])},
            "the decisions do not say who decided",
        ),
        (
            {"groups": [None, *"a" * 79]},
            "decision 0: the label of who decided is missing",
        ),
        (
            {"prior": rv.Flat(), "groups": np.arange(80)},
            "group 0: the posterior under a flat prior is improper",
        ),
    ],
)
def test_what_is_refused(
    given: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "notes.txt").touch()
    with pytest.raises(ValueError, match=sentence):
        quick(**given)
