"""kill -9 at any moment: every file can be read, and resuming ends with exactly the draws of a run that nobody disturbed.

`tests/mortals.py` does the killing, from one resident process; a round is one run with one to three deaths, at random moments or
just when a file is being written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from evidence import caught, judge
from mortals import PROBLEMS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here"),
    pytest.mark.proves(part="killed and resumed: {problem}"),
]
TESTS = Path(__file__).parents[1]
ALIKE = ("px-scale", "px-translate", "a learnt size")  # engines whose siblings are killed every time
ROUNDS = 7  # for each of 16 problems: 112 in all


class Ask(Protocol):
    """Rounds of deaths: what was seen."""

    def __call__(self, problem: str, count: int, seed: Any, **more: Any) -> Any: ...


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A resident process that does as asked."""
    folder = tmp_path_factory.mktemp("mortals")
    environment = os.environ | {"UNDERSTUDY_MORTALS": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, str(TESTS / "mortals.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(problem: str, count: int, seed: Any, **more: Any) -> Any:
            order = {"problem": problem, "count": count, "seed": seed, **more}
            print(json.dumps(order), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())  # type: ignore[union-attr]

        try:
            yield ask
        finally:
            process.stdin.close()


def check(found: Any, deaths: int) -> None:
    """As many deaths at least, and the draws of an undisturbed run."""
    assert sum(found["deaths"]) >= deaths
    judge(found["wrong"] == [], f"not the same after all: {found['wrong']}", how="same", count=sum(found["deaths"]))


@pytest.mark.parametrize("problem", [pytest.param(p, marks=pytest.mark.slow) if p in ALIKE else p for p in PROBLEMS])
def test_killed_and_resumed_it_ends_with_the_same_draws(ask: Ask, problem: str) -> None:
    check(ask(problem, 1, seed=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_hundred_rounds(ask: Ask, problem: str) -> None:
    check(ask(problem, ROUNDS, seed=2), ROUNDS)


@pytest.mark.parametrize(
    "problem", [p if p == "blended" else pytest.param(p, marks=pytest.mark.slow) for p in PROBLEMS]
)
def test_a_new_process_goes_on_to_the_same_draws(ask: Ask, problem: str) -> None:
    """What a process has loaded before, and in which order, must not matter to the last digit."""
    # Writes may follow one another faster than they are seen, and the run end before the twelfth.
    for late in (12, 8, 4):
        found = ask(problem, 1, seed=f"fresh {late}", deaths=[("rename", late)], fresh=True)
        if found["deaths"] == [1] or found["wrong"]:
            break
    check(found, 1)


MUTANTS = {
    "in place": (
        "da",
        "a checkpoint that is written where it stands",
        "not a checkpoint of understudy, or it is damaged",
    ),
    "generator": ("px-both", "a checkpoint that forgets the generator", "draws differs"),
    "round": ("blended", "one that forgets what warm-up learnt", "draws differs"),
    "tempo": ("conditioned", "one that forgets how far the step has come", "draws differs"),
    "stage": ("a learnt size", "one that forgets how far warm-up has come", "draws differs"),
}


@pytest.mark.proves(part="killed and resumed")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_checkpoints_are_noticed(ask: Ask, mutant: str) -> None:
    problem, description, complaint = MUTANTS[mutant]
    early, late = [("rename", 2), ("rename", 1), ("rename", 1)], [("rename", 5), ("rename", 6), ("rename", 7)]
    deaths = early if mutant == "stage" else late  # of seven stages, the first ones
    found = ask(problem, 1, seed=f"without {mutant}", deaths=deaths, mutant=mutant)
    assert any(complaint in each for each in found["wrong"]), found
    with caught(description):
        check(found, 1)
