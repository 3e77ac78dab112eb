"""kill -9 at any moment: every file can be read, and resuming ends with the same draws.

`tests/support/kill_and_resume.py` does the killing, from one resident process; a round is one run
with one to three deaths, at random moments or just when a file is being written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from tests.support.cases import mark_slow
from tests.support.kill_and_resume import PROBLEMS
from tests.support.statistical_asserts import must_fail, record_check

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here"),
    pytest.mark.proves(part="killed and resumed: {problem}"),
]
ALWAYS = "composite"  # the problem that is tried by default; the others run with --slow
ROUNDS = 7  # for each of 18 problems: 126 in all


class Ask(Protocol):
    """A function that runs rounds of deaths, and returns what was seen."""

    def __call__(self, problem: str, count: int, seed: Any, **more: Any) -> Any: ...


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The function, which sends its arguments to a resident process."""
    folder = tmp_path_factory.mktemp("kill_and_resume")
    environment = os.environ | {
        "REVEALED_KILL_AND_RESUME": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.kill_and_resume"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
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


def assert_same_draws(found: Any, deaths: int) -> None:
    """As many deaths at least, and the draws of an uninterrupted run."""
    assert sum(found["deaths"]) >= deaths
    record_check(
        found["wrong"] == [],
        f"not the same: {found['wrong']}",
        how="same",
        count=sum(found["deaths"]),
    )


@pytest.mark.parametrize("problem", mark_slow(PROBLEMS, lambda problem: problem == ALWAYS))
def test_killed_run_resumes_to_the_same_draws(ask: Ask, problem: str) -> None:
    assert_same_draws(ask(problem, 1, seed=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_run_killed_many_times_resumes_to_the_same_draws(ask: Ask, problem: str) -> None:
    assert_same_draws(ask(problem, ROUNDS, seed=2), ROUNDS)


@pytest.mark.parametrize("problem", mark_slow(PROBLEMS, lambda problem: problem == ALWAYS))
def test_new_process_resumes_to_the_same_draws(ask: Ask, problem: str) -> None:
    """What a process has loaded before, and in which order, does not matter to the last digit."""
    # Writes may follow one another faster than they are seen, and the run end before the twelfth.
    for late in (12, 8, 4):
        found = ask(problem, 1, seed=f"fresh {late}", deaths=[("rename", late)], fresh=True)
        if found["deaths"] == [1] or found["wrong"]:
            break
    assert_same_draws(found, 1)


MUTANTS = {
    "in place": (
        "da",
        "a checkpoint that is not written atomically",
        "not a checkpoint of revealed, or it is damaged",
    ),
    "generator": ("px-both", "a checkpoint that forgets the generator", "value differs"),
    "cycle": ("composite", "one that forgets the cycle that warm-up found", "value differs"),
    "adaptation": ("ghk-hmc", "one that forgets the adaptation of the step size", "value differs"),
    "warmup_step": (
        "inferred prior scale",
        "one that forgets how far warm-up has come",
        "value differs",
    ),
}


@pytest.mark.proves(part="killed and resumed")
@pytest.mark.parametrize("mutant", mark_slow(MUTANTS, lambda mutant: mutant == "cycle"))
def test_wrong_checkpoint_is_caught(ask: Ask, mutant: str) -> None:
    problem, description, complaint = MUTANTS[mutant]
    early, late = (
        [("rename", 2), ("rename", 1), ("rename", 1)],
        [("rename", 5), ("rename", 6), ("rename", 7)],
    )
    deaths = early if mutant == "warmup_step" else late  # of seven steps, the first ones
    found = ask(problem, 1, seed=f"without {mutant}", deaths=deaths, mutant=mutant)
    assert any(complaint in each for each in found["wrong"]), found
    with must_fail(description):
        assert_same_draws(found, 1)
