"""Runs that are killed with SIGKILL and resumed, again and again, until they end: the resident half of tests/law/test_endurance.py.

    python tests/mortals.py                     then orders on stdin, a line of JSON each; an answer for each on stdout
    python tests/mortals.py PROBLEM FOLDER      one child, in a process of its own

A process that has loaded the package and its compiled loops forks children; each begins a fit, or resumes it, and dies at a random moment, or
just when it is seen to write. After each death every file must be readable, and the last child's result must be that of
a run that nobody disturbed, bit for bit.
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

import understudy as us
from problems import choose, mdp_offers, ragged_offers, two_files
from understudy import shards
from understudy._files import whole_file
from understudy.engines import drive, run
from understudy.engines.drive import read_checkpoint

Result = dict[str, Any]
PATIENCE = 60.0  # seconds that a child may take when nobody kills it
TRIES = 5  # for a run that was quicker than its killer
SMALL: dict[str, Any] = {"chains": 2, "threads": 2, "progress": False, "seed": 5}


def states() -> us.Decisions:
    offers = mdp_offers(5, 3, 40, seed=3)
    return offers.with_choices(choose(np.random.default_rng(1), offers, np.arange(5.0))[0])


def features(count: int = 60) -> us.Decisions:
    offers = ragged_offers(3, count, seed=2)
    return offers.with_choices(choose(np.random.default_rng(1), offers, np.array([1.0, -0.5, 0.3]))[0])


def labelled() -> us.Decisions:
    rng = np.random.default_rng(1)
    shown = [rng.permutation(4)[: rng.integers(2, 5)] for _ in range(30)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    labels = np.array(list("abcd"))[np.concatenate(shown)]
    return us.Decisions(rng.standard_normal((start[-1], 3)), start, np.zeros(30, int), actions=labels)


def kept(folder: Path | None) -> dict[str, Any]:
    """Where the checkpoint goes, and whether there is one to resume; nothing of it in a run that nobody disturbs."""
    if folder is None:
        return {}
    file = folder / "run.checkpoint"
    return {"checkpoint": file, "resume": file.exists(), "checkpoint_seconds": 0}


def fitted(
    decisions: Callable[[], Any], draws: int, warmup: int = 300, **settings: Any
) -> Callable[[Path | None], Result]:
    def learn(folder: Path | None) -> Result:
        given = {"prior": us.Gaussian(4.0), "draws": draws, "warmup": warmup, **SMALL, **settings, **kept(folder)}
        post = us.fit(decisions(), **given)
        more = {} if post.covariance is None else {"covariance": post.covariance}
        return {"draws": post.draws, **post.stats, **more}

    return learn


def parquet() -> Any:
    place = Path(os.environ["UNDERSTUDY_MORTALS"]) / "parquet"
    if not place.exists():
        place.mkdir()
        two_files(place, features(600), first=350, group=217)
    return us.from_folder(place)


def unknown(folder: Path | None) -> Result:
    seen = us.random_mdp(np.random.default_rng(4), 4, 2).simulate(
        np.random.default_rng(5), np.array([1.0, 0.0, -1.0, 0.5]), 60
    )
    found = us.learn_mdp(seen, 4, 2, prior=us.Gaussian(4.0), draws=300, warmup=300, **SMALL, **kept(folder))
    return {"draws": found.value.draws, "transitions": found.transitions, **found.value.stats}


def players(folder: Path | None) -> Result:
    who = np.repeat(["ann", "bob", "cid"], 20)
    found = us.fit_population(features(), by=who, draws=80, warmup=60, **SMALL, **kept(folder))
    return {"mean": found.mean, "covariance": found.covariance, "values": found.values, **found.stats}


def ranked(folder: Path | None) -> Result:
    rng = np.random.default_rng(3)
    games = [[("ann", "bob", "cid", "dee")[k] for k in rng.permutation(4)[:3]] for _ in range(12)]
    found = us.rank(games, draws=150, warmup=100, **SMALL, **kept(folder))
    return {"skills": found.skills, "spread": found.spread, **found.stats}


def streamed(folder: Path | None) -> Result:
    decisions, file = features(16), (folder or Path(os.environ["UNDERSTUDY_MORTALS"])) / "stream.nc"
    stream = us.Stream.load(file) if file.exists() else us.Stream(3, us.Gaussian(9.0), 100, seed=3)
    for t in range(len(stream), len(decisions)):
        stream.update(decisions[t : t + 1])
        stream.save(file)
    return {"particles": stream.particles, "weights": stream.weights, "evidence": np.array(stream.log_evidence)}


def typed(folder: Path | None) -> Result:
    """The command itself, always with --resume."""
    from understudy.cli import main

    home = Path(os.environ["UNDERSTUDY_MORTALS"]) if folder is None else folder
    table, out = Path(os.environ["UNDERSTUDY_MORTALS"]) / "decisions.csv", home / "posterior.nc"
    if not table.exists():
        us.to_file(states(), table)
    if not out.exists() or out.with_name("posterior.nc.checkpoint").exists():
        words = "--centred --prior-variance 4 --draws 4000 --warmup 300 --chains 2 --seed 5 --json --no-progress --resume --checkpoint-seconds 0"
        sys.argv = ["understudy", "fit", str(table), "--out", str(out), *words.split()]
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"the command ended with {end.code}") from None
    post = us.load(out)
    return {"draws": post.draws, **post.stats}


PROBLEMS: dict[str, Callable[[Path | None], Result]] = {
    "blended": fitted(features, 500, engine="blended"),
    "a learnt size": fitted(states, 400, engine="blended", prior=us.Gaussian("learn")),
    "da": fitted(states, 5000, engine="da"),
    "px-scale": fitted(states, 5000, engine="px-scale"),
    "px-translate": fitted(states, 5000, engine="px-translate"),
    "px-both": fitted(states, 5000, engine="px-both"),
    "ibis": fitted(lambda: features(25), 100, engine="ibis"),
    "laplace": fitted(lambda: features(600), 500, engine="laplace"),
    "a folder": fitted(parquet, 500),
    "conditioned": fitted(labelled, 300, noise=us.FullNoise(base="b")),
    "da with noise": fitted(labelled, 2000, noise=us.FullNoise(base="b"), engine="da"),
    "learn_mdp": unknown,
    "fit_population": players,
    "rank": ranked,
    "stream": streamed,
    "the command": typed,
}


# What may not go unnoticed


@contextmanager
def in_place(path: Path) -> Iterator[BinaryIO]:
    """A file that is written where it stands."""
    content = io.BytesIO()
    yield content
    half = len(content.getvalue()) // 2
    with path.open("wb", buffering=0) as stream:
        stream.write(content.getvalue()[:half])
        time.sleep(0.2)  # a slow disk
        stream.write(content.getvalue()[half:])


def forget(array: str) -> Callable[..., None]:
    """A checkpoint that is resumed without the generators, or without one array of the engine's state."""
    original = run.Run.unpack

    def unpack(self: run.Run, head: dict[str, Any], arrays: dict[str, Any]) -> None:
        fresh = [(c.rng.bit_generator.state, c.engine.start(np.random.default_rng(0), None)) for c in self.chains]
        original(self, head, arrays)
        for chain, (generator, state) in zip(self.chains, fresh, strict=True):
            if array == "generator":
                chain.rng.bit_generator.state = generator
            elif chain.kept.state is not None:
                chain.kept.state[array] = state[array]

    return unpack


@contextmanager
def broken(mutant: str) -> Iterator[None]:
    """Checkpoints that are wrong on purpose, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        if mutant == "in place":
            patch.setattr(drive, "whole_file", in_place)
        elif mutant:
            patch.setattr(run.Run, "unpack", forget(mutant))
        yield


# Deaths


def live(problem: str, folder: Path) -> None:
    """What a child does, from the beginning or from where the last one died."""
    try:
        result = PROBLEMS[problem](folder)
        with whole_file(folder / "result.npz") as stream:
            np.savez(stream, **result)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def unreadable(folder: Path) -> list[str]:
    """What cannot be read; of drafts, there may be one for each file that was being written."""
    found = []
    for file in folder.iterdir():
        try:
            if file.suffix == ".checkpoint":
                read_checkpoint(file)
            elif file.suffix == ".nc":
                us.load(file)
            elif file.suffix == ".npz":
                with np.load(file) as stored:
                    _ = [stored[name] for name in stored.files]
        except Exception as reason:
            found.append(f"{file.name}: {reason}")
    drafts = [file.name.rsplit("-", 1)[0] for file in folder.iterdir() if file.suffix == ".tmp"]
    return found + [f"{drafts.count(each)} drafts of one file" for each in set(drafts) if drafts.count(each) > 1]


def strike(child: int, folder: Path, aim: str, number: float) -> bool:
    """Kill a child after so many seconds, or when it writes for the number-th time; False if it ended before. `aim`: "moment",
    "draft" (a draft has just appeared) or "rename" (a file has just changed).
    """
    began, seen, count = time.monotonic(), look(folder, aim), 0
    while time.monotonic() - began < PATIENCE:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
        if aim == "moment":
            if time.monotonic() - began >= number:
                break
        elif (now := look(folder, aim)) != seen:
            seen, count = now, count + bool(now)
            if count >= number:
                break
        time.sleep(5e-4)
    os.kill(child, signal.SIGKILL)
    return True


def look(folder: Path, aim: str) -> Any:
    """The drafts in a folder, or when each of its other files has last changed."""
    names = {entry.name for entry in os.scandir(folder)}
    drafts = {name for name in names if name.endswith(".tmp")}
    if aim == "draft":
        return drafts
    changed = {}
    for name in names - drafts:
        with suppress(FileNotFoundError):  # gone since
            changed[name] = (folder / name).stat().st_mtime_ns
    return changed


def bear(problem: str, folder: Path, fresh: bool) -> int:
    """A child: a fork of this process, or a new one that has nothing loaded."""
    if fresh:
        return os.posix_spawn(sys.executable, [sys.executable, __file__, problem, str(folder)], os.environ)
    child = os.fork()
    if child == 0:
        live(problem, folder)
    return child


def survive(
    problem: str, folder: Path, deaths: list[tuple[str, float]], whole: Result, fresh: bool = False
) -> tuple[int, list[str]]:
    """Die as told, then live: how many deaths there were, and what is wrong."""
    died, wrong = 0, []
    for aim, number in [*deaths, ("moment", PATIENCE)]:
        child = bear(problem, folder, fresh)
        struck = strike(child, folder, aim, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        wrong += unreadable(folder)
        if code == 0:
            break
        died += 1
        if code != -signal.SIGKILL or (struck and number == PATIENCE):
            wrong.append(f"{aim} {number:.3g}: a child ended with {code}")
            return died, wrong
    with np.load(folder / "result.npz") as stored:
        result = {name: stored[name] for name in stored.files}
    for name in {*whole, *result}:
        same = name in whole and name in result and np.asarray(whole[name]).tobytes() == result[name].tobytes()
        if not same:
            wrong.append(f"{name} differs after {deaths}")
    return died, wrong + [f"a draft is left: {file.name}" for file in folder.glob("*.tmp")]


def rounds(
    problem: str,
    count: int,
    seed: Any,
    deaths: list[tuple[str, float]] | None = None,
    mutant: str = "",
    fresh: bool = False,
) -> dict[str, Any]:
    """So many runs, each with one to three deaths, or with those told."""
    place, rng = Path(os.environ["UNDERSTUDY_MORTALS"]), random.Random(f"{problem} {seed}")
    whole, seconds, wrong = undisturbed(problem)
    died = []
    for i in range(count):
        told, number, tries = deaths or [dying(rng, seconds) for _ in range(rng.randint(1, 3))], 0, 0
        while number == 0 and tries < TRIES:
            folder = place / f"{problem} {seed} {i} {tries}"
            folder.mkdir()
            with broken(mutant):
                number, found = survive(problem, folder, told, whole, fresh)
            wrong = wrong + found
            tries += 1
        died.append(number)
    return {"deaths": died, "wrong": wrong, "seconds": seconds}


@cache
def undisturbed(problem: str) -> tuple[Result, float, list[str]]:
    """The result without checkpoints; how long it takes with them when nobody dies, and what is wrong then."""
    whole = PROBLEMS[problem](None)
    folder = Path(os.environ["UNDERSTUDY_MORTALS"]) / f"{problem} whole"
    folder.mkdir()
    began = time.monotonic()
    _, wrong = survive(problem, folder, [], whole)
    return whole, time.monotonic() - began, wrong


def dying(rng: random.Random, seconds: float) -> tuple[str, float]:
    aim = rng.choice(["moment", "moment", "draft", "rename"])
    return aim, rng.uniform(0.0, 0.9 * seconds) if aim == "moment" else rng.randint(1, 8)


def main() -> None:
    warnings.simplefilter("ignore")
    run.PIECE_SECONDS = 0.005
    shards.SIZE = 50
    if sys.argv[1:]:
        live(sys.argv[1], Path(sys.argv[2]))
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # whatever else is printed
        for line in sys.stdin:
            print(json.dumps(rounds(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
