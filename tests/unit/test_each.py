"""fit_each: a fit for every controller, kept as they come, told in one table, refused in one sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import understudy as us
from evidence import assert_same
from problems import choose
from understudy import each
from understudy.decisions import Decisions

WHO = ("ann", "ben", "cem", "dee")


def simulated() -> Decisions:
    """Four controllers, taking turns."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((len(WHO) * 20 * 3, 2))
    offers = Decisions(rows, np.arange(len(WHO) * 20 + 1) * 3, groups=np.tile(WHO, 20), names=("price", "quality"))
    return offers.with_choices(choose(rng, offers, np.array([-1.0, 0.7]))[0])


def quick(decisions: Any = None, **settings: Any) -> us.Each:
    """Short fits whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.NotConvergedWarning)
        given = simulated() if decisions is None else decisions
        return us.fit_each(given, **{"draws": 10, "warmup": 20, "chains": 2, **settings})


@pytest.mark.proves(model="each controller", engine="blended")
def test_every_controller_has_a_posterior_of_its_own() -> None:
    found = us.fit_each(simulated(), prior=us.Gaussian(4.0), draws=500, warmup=300, seed=2)
    assert list(found) == list(WHO)
    assert len(found) == 4
    assert found.untrusted == ()
    assert repr(found) == "<Each: 4 controllers, 0 not converged>"
    d = simulated()
    assert d.groups is not None
    alone = us.fit(d[d.groups == "cem"], us.Gaussian(4.0), draws=500, warmup=300, seed=each.seed_of(2, 2))
    assert_same(found["cem"].draws, alone.draws)
    table = found.to_frame()
    assert table.column_names == [
        "controller", "coefficient", "mean", "sd", "low", "high", "r_hat", "ess", "trusted",
    ]  # fmt: skip
    assert table.column("controller").to_pylist() == [w for w in WHO for _ in range(2)]
    np.testing.assert_allclose(table.column("mean").to_numpy()[4:6], alone.mean)
    with pytest.raises(KeyError, match="there are posteriors of 4 controllers, and 'zoe' is not one of them"):
        found["zoe"]


def test_one_warning_says_how_many_have_not_converged() -> None:
    with pytest.warns(
        us.NotConvergedWarning, match=r"4 of 4 controllers have not converged \('ann', 'ben', 'cem', ...\)"
    ):
        found = us.fit_each(simulated(), draws=5, warmup=5, chains=2)
    assert found.untrusted == WHO


def test_an_interrupted_folder_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, folder = quick(), tmp_path / "fits"
    done: list[int] = []
    original = each.one_fit

    def stopped(task: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task[0])
        return original(task)

    def counted(task: Any) -> Any:
        done.append(task[0])
        return original(task)

    with monkeypatch.context() as patch:
        patch.setattr(each, "one_fit", stopped)
        with pytest.warns(us.NotConvergedWarning, match="interrupted, and 2 of 4 controllers are missing"):
            part = us.fit_each(simulated(), draws=10, warmup=20, chains=2, threads=1, checkpoint=folder)
    assert part.missing == ("cem", "dee")
    with pytest.raises(KeyError, match="'dee' was not reached before the work was interrupted"):
        part["dee"]

    with monkeypatch.context() as patch:
        patch.setattr(each, "one_fit", counted)
        again = quick(checkpoint=folder, resume=True)
    assert done == [0, 1, 2, 3]
    for label in WHO:
        np.testing.assert_array_equal(again[label].draws, whole[label].draws)
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(checkpoint=folder, resume=True, seed=9)
    with pytest.raises(ValueError, match="is not empty; give resume=True to go on, or another folder"):
        quick(checkpoint=folder)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"resume": True}, "resume=True needs the checkpoint folder"),
        ({"checkpoint": "nowhere/fits"}, "there is no folder nowhere to make fits in"),
        ({"checkpoint": "absent", "resume": True}, "there is no folder absent to resume from"),
        ({"checkpoint": "file"}, "the checkpoint of many fits is a folder, and file is a file"),
        ({"checkpoint": "bare", "resume": True}, "bare is not a checkpoint folder of understudy, or it is damaged"),
        ({"draws": 0}, "draws must be a whole number, at least 1"),
        ({"by": ["ann"]}, r"by has shape \(1,\), but there are 80 decisions"),
        ({"prior": us.Flat(), "by": np.arange(80)}, "controller 0: the posterior under a flat prior is improper"),
    ],
)
def test_what_is_refused(given: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=sentence):
        quick(**given)
