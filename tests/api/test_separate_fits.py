"""fit_separately: a fit for every controller, kept as they come, told in one table, refused in one sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.api import separate as each
from revealed.data.decisions import Decisions
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


def quick(decisions: Any = None, **settings: Any) -> rv.SeparatePosteriors:
    """Short fits whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        given = simulated() if decisions is None else decisions
        return rv.fit_separately(given, **{"draws": 10, "warmup": 20, "chains": 2, **settings})


@pytest.mark.proves(model="separate fits", sampler="composite")
def test_every_controller_has_a_posterior_of_its_own() -> None:
    found = rv.fit_separately(simulated(), prior=rv.Normal(2.0), draws=500, warmup=300, seed=2)
    assert list(found) == list(WHO)
    assert len(found) == 4
    assert found.not_converged == ()
    assert repr(found) == "<SeparatePosteriors: 4 controllers, 0 not converged>"
    d = simulated()
    assert d.groups is not None
    alone = rv.fit(
        d[d.groups == "cem"], rv.Normal(2.0), draws=500, warmup=300, seed=each.seed_for(2, 2)
    )
    assert_same(found["cem"].draws, alone.draws)
    table = found.to_dataframe()
    assert table.column_names == [
        "controller",
        "coefficient",
        "mean",
        "sd",
        "low",
        "high",
        "r_hat",
        "ess",
        "converged",
    ]
    assert table.column("controller").to_pylist() == [w for w in WHO for _ in range(2)]
    np.testing.assert_allclose(table.column("mean").to_numpy()[4:6], alone.mean)
    with pytest.raises(
        KeyError, match="there are posteriors of 4 controllers, and 'zoe' is not one of them"
    ):
        found["zoe"]


def test_one_warning_says_how_many_have_not_converged() -> None:
    with pytest.warns(
        rv.NotConvergedWarning,
        match=r"4 of 4 controllers have not converged \('ann', 'ben', 'cem', ...\)",
    ):
        found = rv.fit_separately(simulated(), draws=5, warmup=5, chains=2)
    assert found.not_converged == WHO


def test_an_interrupted_folder_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, folder = quick(), tmp_path / "fits"
    done: list[int] = []
    original = each.fit_one

    def stopped(task: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task[0])
        return original(task)

    def counted(task: Any) -> Any:
        done.append(task[0])
        return original(task)

    with monkeypatch.context() as patch:
        patch.setattr(each, "fit_one", stopped)
        with pytest.warns(
            rv.NotConvergedWarning, match="interrupted, and 2 of 4 controllers are missing"
        ):
            part = rv.fit_separately(
                simulated(), draws=10, warmup=20, chains=2, threads=1, checkpoint=folder
            )
    assert part.not_fitted == ("cem", "dee")
    with pytest.raises(KeyError, match="'dee' was not reached before the work was interrupted"):
        part["dee"]

    with monkeypatch.context() as patch:
        patch.setattr(each, "fit_one", counted)
        again = quick(checkpoint=folder, resume=True)
    assert done == [0, 1, 2, 3]
    for label in WHO:
        np.testing.assert_array_equal(again[label].draws, whole[label].draws)
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(checkpoint=folder, resume=True, seed=9)
    with pytest.raises(
        ValueError, match="is not empty; give resume=True to go on, or another folder"
    ):
        quick(checkpoint=folder)


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
        (
            {"prior": rv.Flat(), "groups": np.arange(80)},
            "controller 0: the posterior under a flat prior is improper",
        ),
    ],
)
def test_what_is_refused(
    given: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=sentence):
        quick(**given)
