"""`revealed fit --transitions unknown`: trajectories in a table, values and transitions out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed.results.load import load
from revealed.results.mdp import MDPPosterior
from revealed.results.separate import SeparatePosterior
from tests.support.command_line import SMALL, answers, refuses, works, write


@pytest.fixture
def steps(here: Path) -> str:
    """Two people's walks through three rooms."""
    rng = np.random.default_rng(5)
    maze = rv.random_mdp(rng, 3, 2)
    lines = ["walk,who,room,move"]
    for walk in range(4):
        path = maze.simulate(rng, [1.0, 0.0, -1.0], 25)
        who = "ann" if walk % 2 else "bob"
        lines += [
            f"{walk},{who},{'xyz'[x]},{'lr'[a]}"
            for x, a in zip(path.states, path.actions, strict=True)
        ]
        lines.append(f"{walk},{who},x,")
    return str(write(here / "steps.csv", "\n".join(lines) + "\n"))


COLUMNS = ("--episode", "walk", "--state", "room", "--action", "move", "--group", "who")
UNKNOWN = ("--transitions", "unknown", "--prior-sd", 2, *COLUMNS)


def test_values_and_transitions_are_written_and_reported(steps: str) -> None:
    result = works("fit", steps, *UNKNOWN, "--out", "m.nc", *SMALL)
    assert all(name in result.stdout for name in ("V(x)", "p(y | x, l)", "100 decisions"))
    post = load("m.nc")
    assert isinstance(post, MDPPosterior)
    assert post.draws["transition"].shape[:2] == (2, 60)
    assert works("report", "m.nc", "--out", "r.html").exit_code == 0
    assert "trajectories" in Path("r.html").read_text()


def test_every_group_by_itself(steps: str) -> None:
    facts = answers("fit", steps, *UNKNOWN, "--groups", "separate", "--out", "m.nc", *SMALL)
    assert facts["decisions"] == 100
    post = load("m.nc")
    assert isinstance(post, SeparatePosterior)
    assert sorted(map(str, post.groups)) == ["ann", "bob"]


def test_the_concentration_is_that_of_the_prior(steps: str) -> None:
    works("fit", steps, *UNKNOWN, "--concentration", 50, "--out", "m.nc", *SMALL)
    assert load("m.nc").model.transitions.concentration == 50.0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--transitions", "maybe"), "known or unknown"),
        (("--concentration", "2"), "goes with --transitions unknown"),
        (("--transitions", "unknown"), "no column 'state'"),
        (("--transitions", "unknown", "--flat"), "unknown transitions and a flat prior"),
    ],
)
def test_what_is_refused(steps: str, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refuses("fit", steps, *words, "--out", "m.nc")
