"""Runs that are killed with SIGKILL and resumed, again and again, until they end.

The resident half of tests/correctness/test_kill_and_resume.py.

    python -m tests.support.kill_and_resume                 orders on stdin, answers on stdout
    python -m tests.support.kill_and_resume PROBLEM FOLDER  one child, in a process of its own

An order is a line of JSON, the arguments of `rounds`, and so is its answer. A process that has
loaded the package and its compiled kernels forks children; each begins a fit, or resumes it, and
dies at a random moment, or just when it is seen to write. After each death every file must be
readable, and the last child's result must be that of an uninterrupted run, bit for bit.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

import revealed as rv
from revealed.data import chunks
from revealed.io import checkpoints
from revealed.io.atomic import atomic_open
from revealed.io.checkpoints import RunSnapshot, read_checkpoint
from revealed.samplers import run
from tests.support.cases import choose, mdp_offers, ragged_offers, write_two_parquet_files

Result = dict[str, Any]
MAX_SECONDS = 60.0  # seconds that a child may take when nobody kills it
MAX_ATTEMPTS = 5  # for a run that was quicker than its killer
SMALL: dict[str, Any] = {"chains": 2, "executor": 2, "progress": False, "seed": 5}


def states() -> rv.Decisions:
    offers = mdp_offers(5, 3, 40, seed=3)
    return offers.with_choices(choose(np.random.default_rng(1), offers, np.arange(5.0))[0])


def features(count: int = 60) -> rv.Decisions:
    offers = ragged_offers(3, count, seed=2)
    return offers.with_choices(
        choose(np.random.default_rng(1), offers, np.array([1.0, -0.5, 0.3]))[0]
    )


def labelled() -> rv.Decisions:
    rng = np.random.default_rng(1)
    shown = [rng.permutation(4)[: rng.integers(2, 5)] for _ in range(30)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    labels = np.array(list("abcd"))[np.concatenate(shown)]
    return rv.Decisions(
        rng.standard_normal((start[-1], 3)), start, np.zeros(30, int), actions=labels
    )


def checkpoint_settings(folder: Path | None) -> dict[str, Any]:
    """Where the checkpoint goes, and whether there is one to resume; empty without a folder."""
    if folder is None:
        return {}
    file = folder / "run.checkpoint"
    return {"checkpoint": file, "resume": file.exists(), "checkpoint_seconds": 0}


NORMAL = rv.ChoiceModel(prior=rv.Normal(2.0))
CORRELATED = NORMAL.replace(noise=rv.CorrelatedNoise(base="b"))


def fit_problem(
    data: Callable[[], Any],
    draws: int,
    warmup: int = 300,
    model: rv.ChoiceModel | rv.RankingModel = NORMAL,
    **settings: Any,
) -> Callable[[Path | None], Result]:
    """A problem of `rv.fit`: a function that runs it, with checkpoints in a folder or without."""

    def fit(folder: Path | None) -> Result:
        given = {**SMALL, **settings, **checkpoint_settings(folder)}
        post = rv.fit(data(), model, draws=draws, warmup=warmup, **given)
        return {**post.draws, **post.sample_stats}

    return fit


def parquet() -> Any:
    place = Path(os.environ["REVEALED_KILL_AND_RESUME"]) / "parquet"
    if not place.exists():
        place.mkdir()
        write_two_parquet_files(place, features(600), first=350, group=217)
    return rv.scan_parquet(place)


def trajectories() -> rv.Trajectories:
    seen = rv.random_mdp(np.random.default_rng(4), 4, 2).simulate(
        np.random.default_rng(5), np.array([1.0, 0.0, -1.0, 0.5]), 60
    )
    return rv.Trajectories(seen, 4, 2)


def people(*names: str) -> rv.Decisions:
    """The decisions of so many people, as many of each."""
    d = features()
    whose = np.repeat(names, len(d) // len(names))
    return rv.Decisions(d.rows, d.start, d.chosen, groups=whose)


def labelled_people() -> rv.Decisions:
    """Labelled decisions of three people."""
    d = labelled()
    whose = np.repeat(["ann", "bob", "cid"], 10)
    return rv.Decisions(d.rows, d.start, d.chosen, actions=d.actions, groups=whose)


def games() -> rv.Rankings:
    rng = np.random.default_rng(3)
    return rv.Rankings.from_lists(
        [[("ann", "bob", "cid", "dee")[k] for k in rng.permutation(4)[:3]] for _ in range(12)]
    )


def online_problem(folder: Path | None) -> Result:
    decisions = features(16)
    file = (folder or Path(os.environ["REVEALED_KILL_AND_RESUME"])) / "learner.nc"
    learner = (
        rv.OnlineLearner.load(file)
        if file.exists()
        else rv.OnlineLearner(rv.ChoiceModel(prior=rv.Normal(3.0)), 3, 100, seed=3)
    )
    for t in range(len(learner), len(decisions)):
        learner.update(decisions[t : t + 1])
        learner.save(file)
    return {
        "particles": learner.particles,
        "weights": learner.weights,
        "evidence": np.array(learner.log_evidence),
    }


def command_problem(folder: Path | None) -> Result:
    """The command itself, always with --resume."""
    from revealed.cli import main

    home = Path(os.environ["REVEALED_KILL_AND_RESUME"]) if folder is None else folder
    table, out = (
        Path(os.environ["REVEALED_KILL_AND_RESUME"]) / "decisions.csv",
        home / "posterior.nc",
    )
    if not table.exists():
        rv.write_file(states(), table)
    if not out.exists() or out.with_name("posterior.nc.checkpoint").exists():
        words = (
            "--sum-to-zero --prior-sd 2 --draws 4000 --warmup 300 --chains 2 --seed 5 --json "
            "--no-progress --resume --checkpoint-seconds 0"
        )
        sys.argv = ["revealed", "fit", str(table), "--out", str(out), *words.split()]
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"the command ended with {end.code}") from None
    post = rv.load(out)
    return {**post.draws, **post.sample_stats}


PROBLEMS: dict[str, Callable[[Path | None], Result]] = {
    "composite": fit_problem(features, 500, sampler="composite"),
    "inferred prior scale": fit_problem(
        states,
        400,
        model=rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT())),
        sampler="composite",
    ),
    "da": fit_problem(states, 5000, sampler="da"),
    "px-scale": fit_problem(states, 5000, sampler="px-scale"),
    "px-translate": fit_problem(states, 5000, sampler="px-translate"),
    "px-both": fit_problem(states, 5000, sampler="px-both"),
    "ibis": fit_problem(lambda: features(25), 100, sampler="ibis"),
    "laplace": fit_problem(lambda: features(600), 500, sampler="laplace"),
    "Parquet folder": fit_problem(parquet, 500),
    "ghk-hmc": fit_problem(labelled, 300, model=CORRELATED),
    "da with noise": fit_problem(labelled, 2000, model=CORRELATED, sampler="da"),
    "unknown transitions": fit_problem(
        trajectories, 300, model=NORMAL.replace(transitions=rv.Dirichlet())
    ),
    "population": fit_problem(
        lambda: people("ann", "bob", "cid"),
        80,
        60,
        model=rv.ChoiceModel(groups=rv.Hierarchical()),
    ),
    "population with noise": fit_problem(
        labelled_people, 100, 60, model=CORRELATED.replace(groups=rv.Hierarchical())
    ),
    # twelve people, because each of them is one file, and a run may be killed at the eighth
    "separate groups": fit_problem(
        lambda: people(*"abcdefghijkl"),
        4000,
        model=NORMAL.replace(groups=rv.Separate()),
        sampler="px-scale",
    ),
    "rankings": fit_problem(games, 150, 100, model=rv.RankingModel()),
    "OnlineLearner": online_problem,
    "revealed fit": command_problem,
}


# Wrong checkpoints


@contextmanager
def write_in_place(path: Path) -> Iterator[BinaryIO]:
    """A file that is written under its own name, and slowly: a mutant of `atomic_open`."""
    content = io.BytesIO()
    yield content
    half = len(content.getvalue()) // 2
    with path.open("wb", buffering=0) as stream:
        stream.write(content.getvalue()[:half])
        time.sleep(0.2)  # a slow disk
        stream.write(content.getvalue()[half:])


def forgetful_restore(array: str) -> Callable[..., None]:
    """Resuming without the generators, or without one array of the sampler's state."""
    original = run.Run.restore

    def restore(self: run.Run, snapshot: RunSnapshot) -> None:
        fresh = [
            (c.rng.bit_generator.state, c.sampler.init(np.random.default_rng(0), None))
            for c in self.chains
        ]
        original(self, snapshot)
        for chain, (generator, state) in zip(self.chains, fresh, strict=True):
            if array == "generator":
                chain.rng.bit_generator.state = generator
            elif chain.snapshot.state is not None:
                chain.snapshot.state[array] = state[array]

    return restore


@contextmanager
def broken_checkpoints(mutant: str) -> Iterator[None]:
    """Checkpoints that are wrong on purpose, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        if mutant == "in place":
            patch.setattr(checkpoints, "atomic_open", write_in_place)
        elif mutant:
            patch.setattr(run.Run, "restore", forgetful_restore(mutant))
        yield


# Deaths


def run_child(problem: str, folder: Path) -> None:
    """What a child does, from the beginning or from where the last one died."""
    try:
        result = PROBLEMS[problem](folder)
        with atomic_open(folder / "result.npz") as stream:
            np.savez(stream, **result)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def unreadable_files(folder: Path) -> list[str]:
    """A sentence for each file that cannot be read, or has more than one draft."""
    found = []
    # the checkpoint of separate groups is a folder, with a file for each
    files = [file for file in folder.rglob("*") if file.is_file()]
    for file in files:
        try:
            if file.suffix == ".checkpoint":
                read_checkpoint(file)
            elif file.suffix == ".nc":
                rv.load(file)
            elif file.suffix == ".npz":
                with np.load(file) as stored:
                    _ = [stored[name] for name in stored.files]
        except Exception as reason:
            found.append(f"{file.name}: {reason}")
    drafts = [file.name.rsplit("-", 1)[0] for file in files if file.suffix == ".tmp"]
    return found + [
        f"{drafts.count(each)} drafts of one file" for each in set(drafts) if drafts.count(each) > 1
    ]


def kill_when(child: int, folder: Path, aim: str, number: float) -> bool:
    """Kill a child after so many seconds, or when it writes for the number-th time.

    aim: "moment", "draft" (a draft has just appeared) or "rename" (a file has just changed).
    Returns whether it was killed; False if it ended before.
    """
    began, seen, count = time.monotonic(), folder_state(folder, aim), 0
    while time.monotonic() - began < MAX_SECONDS:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
        if aim == "moment":
            if time.monotonic() - began >= number:
                break
        elif (now := folder_state(folder, aim)) != seen:
            seen, count = now, count + bool(now)
            if count >= number:
                break
        time.sleep(5e-4)
    os.kill(child, signal.SIGKILL)
    return True


def folder_state(folder: Path, aim: str) -> Any:
    """The drafts in a folder, or when each of its other files has last changed."""
    names = {os.path.join(place, name) for place, _, inside in os.walk(folder) for name in inside}
    drafts = {name for name in names if name.endswith(".tmp")}
    if aim == "draft":
        return drafts
    changed = {}
    for name in names - drafts:
        with suppress(FileNotFoundError):  # gone since
            changed[name] = Path(name).stat().st_mtime_ns
    return changed


def start_child(problem: str, folder: Path, fresh: bool) -> int:
    """A child: a fork of this process, or a new one that has nothing loaded."""
    if fresh:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "tests.support.kill_and_resume", problem, str(folder)],
            os.environ,
        )
    child = os.fork()
    if child == 0:
        run_child(problem, folder)
    return child


def kill_then_finish(
    problem: str, folder: Path, deaths: list[tuple[str, float]], whole: Result, fresh: bool = False
) -> tuple[int, list[str]]:
    """Run a problem with these deaths, then to its end: how many there were, and what is wrong."""
    died, wrong = 0, []
    for aim, number in [*deaths, ("moment", MAX_SECONDS)]:
        child = start_child(problem, folder, fresh)
        struck = kill_when(child, folder, aim, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        wrong += unreadable_files(folder)
        if code == 0:
            break
        died += 1
        if code != -signal.SIGKILL or (struck and number == MAX_SECONDS):
            wrong.append(f"{aim} {number:.3g}: a child ended with {code}")
            return died, wrong
    with np.load(folder / "result.npz") as stored:
        result = {name: stored[name] for name in stored.files}
    for name in {*whole, *result}:
        same = (
            name in whole
            and name in result
            and np.asarray(whole[name]).tobytes() == result[name].tobytes()
        )
        if not same:
            wrong.append(f"{name} differs after {deaths}")
    return died, wrong + [f"a draft is left: {file.name}" for file in folder.rglob("*.tmp")]


def rounds(
    problem: str,
    count: int,
    seed: Any,
    deaths: list[tuple[str, float]] | None = None,
    mutant: str = "",
    fresh: bool = False,
) -> dict[str, Any]:
    """So many runs, each with one to three random deaths, or with those given."""
    place, rng = Path(os.environ["REVEALED_KILL_AND_RESUME"]), random.Random(f"{problem} {seed}")
    whole, seconds, wrong = uninterrupted_run(problem)
    died = []
    for i in range(count):
        planned = deaths or [random_death(rng, seconds) for _ in range(rng.randint(1, 3))]
        number = tries = 0
        while number == 0 and tries < MAX_ATTEMPTS:
            folder = place / f"{problem} {seed} {i} {tries}"
            folder.mkdir()
            with broken_checkpoints(mutant):
                number, found = kill_then_finish(problem, folder, planned, whole, fresh)
            wrong = wrong + found
            tries += 1
        died.append(number)
    return {"deaths": died, "wrong": wrong, "seconds": seconds}


@cache
def uninterrupted_run(problem: str) -> tuple[Result, float, list[str]]:
    """The result without checkpoints; how long it takes with them, and what is wrong then."""
    whole = PROBLEMS[problem](None)
    folder = Path(os.environ["REVEALED_KILL_AND_RESUME"]) / f"{problem} whole"
    folder.mkdir()
    began = time.monotonic()
    _, wrong = kill_then_finish(problem, folder, [], whole)
    return whole, time.monotonic() - began, wrong


def random_death(rng: random.Random, seconds: float) -> tuple[str, float]:
    aim = rng.choice(["moment", "moment", "draft", "rename"])
    return aim, rng.uniform(0.0, 0.9 * seconds) if aim == "moment" else rng.randint(1, 8)


def main() -> None:
    warnings.simplefilter("ignore")
    run.CHUNK_SECONDS = 0.005
    chunks.CHUNK_SIZE = 50
    if sys.argv[1:]:
        run_child(sys.argv[1], Path(sys.argv[2]))
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # whatever else is printed
        for line in sys.stdin:
            print(json.dumps(rounds(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
