"""Checkpoints: when they are written and what they hold, warm-ups in pieces, and files that are there whole or not at all."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.api import NotConvergedWarning
from revealed.io import atomic as _files
from revealed.io.atomic import atomic_open, atomic_write
from revealed.io.checkpoints import CHECKPOINTS, Checkpoint, read_checkpoint
from revealed.models.correlated_noise import resolve_noise
from revealed.models.priors import resolve_prior
from revealed.models.propriety import UnboundedSkillWarning
from revealed.samplers import run as running
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.data_augmentation import DataAugmentationSampler
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.laplace import Laplace
from revealed.samplers.laplace_mode import NotCertified
from revealed.samplers.transition_problem import build_unknown_transitions
from tests.support.interrupts import interrupt
from tests.support.kill_and_resume import features, labelled, states

PRIOR = rv.Normal(2.0)
DOCS = Path(__file__).parents[2] / "docs"
GAMES = [["ann", "bob", "cid"], ["bob", "cid", "ann"], ["cid", "ann", "bob"], ["ann", "cid", "bob"]]


def quick(decisions: Any = None, prior: rv.Normal = PRIOR, **settings: Any) -> rv.ChoicePosterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        data = states() if decisions is None else decisions
        given = {"draws": 60, "warmup": 20, "chains": 2, **settings}
        post = rv.fit(data, rv.ChoiceModel(prior=prior), **given)
    assert isinstance(post, rv.ChoicePosterior)
    return post


def quick_rank(
    games: Any = GAMES,
    prior: Any = None,
    team_noise: str = "entry",
    noise: Any = rv.NormalNoise(),  # noqa: B008
    **settings: Any,
) -> rv.RankingPosterior:
    model = rv.RankingModel(prior=prior, team_noise=team_noise, noise=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", UnboundedSkillWarning)
        post = rv.fit(games, model, draws=40, warmup=30, chains=2, **settings)
    assert isinstance(post, rv.RankingPosterior)
    return post


# Warm-up in pieces


def learner(name: str) -> Any:
    if name == "ghk-hmc":
        d = labelled()
        return GHKSampler(
            d, resolve_prior(PRIOR, d), resolve_noise(rv.CorrelatedNoise(base="b"), d)
        )
    if name == "joint":
        world = rv.random_mdp(np.random.default_rng(4), 3, 2)
        seen = rv.Trajectories(
            world.simulate(np.random.default_rng(5), np.array([1.0, 0.0, -1.0]), 40), 3, 2
        )
        model = rv.ChoiceModel(prior=PRIOR, transitions=rv.Dirichlet(1.0))
        return build_unknown_transitions(model.resolve(seen))
    d = states() if name == "composite" else features()
    return CompositeSampler.build(
        d, resolve_prior(rv.Normal(rv.HalfStudentT()) if name == "learnt size" else PRIOR, d)
    )


@pytest.mark.parametrize("count", [40, 107, 160])
@pytest.mark.parametrize("name", ["composite", "learnt size", "ghk-hmc", "joint"])
def test_a_warm_up_in_pieces_is_the_same_warm_up(name: str, count: int) -> None:
    sampler = learner(name)
    ends = []
    for piece in (count, 7, 1):
        rng, left = np.random.default_rng(1), count
        state = sampler.init(rng, None)
        calls = 0
        while left:
            before = {key: value.copy() for key, value in state.items()}
            new, made = sampler.warmup(rng, state, left, piece)
            for key in before:  # a piece that is broken off leaves what it began with
                np.testing.assert_array_equal(before[key], state[key])
            assert 0 < made <= left
            state, left, calls = new, left - made, calls + 1
        assert (calls == 1) == (
            piece == count or (count < 100 and isinstance(sampler, CompositeSampler))
        )
        ends.append((state, rng.bit_generator.state))
    for state, generator in ends[1:]:
        assert generator == ends[0][1]
        assert state.keys() == ends[0][0].keys()
        for key, value in state.items():
            np.testing.assert_array_equal(value, ends[0][0][key], err_msg=key)


# What a checkpoint holds


def test_a_piece_that_fails_half_way_leaves_what_was_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"sampler": "da", "executor": 1}
    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-5)
    whole = quick(**settings)
    original, calls = DataAugmentationSampler.sample, 0

    def failing(self: DataAugmentationSampler, rng: np.random.Generator, *more: Any) -> Any:
        nonlocal calls
        calls += 1
        made = original(self, rng, *more)
        if calls == 70:
            raise MemoryError  # the generator has moved on, and nothing else
        return made

    settings |= {"checkpoint": tmp_path / "run.checkpoint"}
    with monkeypatch.context() as patch:
        patch.setattr(DataAugmentationSampler, "sample", failing)
        with pytest.raises(MemoryError):
            quick(**settings)
    assert calls >= 70
    np.testing.assert_array_equal(
        quick(resume=True, **settings).draws["value"], whole.draws["value"]
    )


def test_numbers_that_are_not_finite_are_refused_again_after_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = DataAugmentationSampler.sample

    def broken(self: DataAugmentationSampler, *given: Any) -> Any:
        state, draws, stats = original(self, *given)
        return state, {name: made * np.nan for name, made in draws.items()}, stats

    monkeypatch.setattr(DataAugmentationSampler, "sample", broken)
    settings: dict[str, Any] = {"sampler": "da", "checkpoint": tmp_path / "run.checkpoint"}
    for resume in (False, True):
        with pytest.raises(ValueError, match="not finite"):
            quick(resume=resume, **settings)


def test_proposals_that_were_drawn_in_vain_are_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"sampler": "laplace", "draws": 300}
    whole = quick(features(200), **settings)

    def interrupted(sampler: Laplace, *_: Any) -> None:
        raise KeyboardInterrupt

    settings |= {"checkpoint": tmp_path / "run.checkpoint"}
    with monkeypatch.context() as patch:
        patch.setattr(Laplace, "_begin_draws", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick(features(200), **settings)
    np.testing.assert_array_equal(
        quick(features(200), resume=True, **settings).draws["value"], whole.draws["value"]
    )


def test_chains_that_took_over_from_laplace_are_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Laplace) -> Any:
        yield 0.5
        raise NotCertified("not normal")

    settings: dict[str, Any] = {
        "draws": 200,
        "warmup": None,
        "checkpoint": tmp_path / "run.checkpoint",
    }
    whole = quick(draws=200, warmup=None, sampler="composite")
    monkeypatch.setattr(Laplace, "iterate", refuse)
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-5, step=30)
        partial = quick(**settings)
    assert partial.sampler == "composite"
    assert 0 < partial.shape[1] < 200
    np.testing.assert_array_equal(
        quick(resume=True, **settings).draws["value"], whole.draws["value"]
    )
    with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
        quick(resume=True, **settings | {"draws": 201})


def test_laplace_that_is_refused_after_resuming_hands_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: Laplace) -> Any:
        yield 0.5
        raise KeyboardInterrupt

    def refuse(_: Laplace) -> Any:
        yield 0.5
        raise NotCertified("not normal")

    with monkeypatch.context() as patch:
        patch.setattr(Laplace, "iterate", killed)
        with pytest.raises(KeyboardInterrupt):
            quick(checkpoint=tmp_path / "run.checkpoint", warmup=None)
    with monkeypatch.context() as patch:
        patch.setattr(Laplace, "iterate", refuse)
        again = quick(checkpoint=tmp_path / "run.checkpoint", warmup=None, resume=True)
        assert again.sampler == "composite"


def test_rankings_are_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, whole = tmp_path / "run.checkpoint", quick_rank()
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-5, share=0.7)
        part = quick_rank(checkpoint=file)
    assert 0 < part.shape[1] < 40
    again = quick_rank(checkpoint=file, resume=True)
    np.testing.assert_array_equal(again.draws["skill"], whole.draws["skill"])
    np.testing.assert_array_equal(again.spread, whole.spread)
    others: list[dict[str, Any]] = [
        {"games": GAMES[::-1]},
        {"games": [[name.upper() for name in g] for g in GAMES]},
        {"prior": rv.Normal(2.0**0.5)},
        {"team_noise": "player"},
        {"noise": rv.LogitNoise()},
        {"seed": 1},
    ]
    for other in others:
        with pytest.raises(ValueError, match="belongs to other decisions, prior or settings"):
            quick_rank(checkpoint=file, resume=True, **other)


# When they are written


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "often", None, True])
def test_bad_seconds_are_refused_at_every_door(seconds: Any) -> None:
    sentence = "checkpoint_seconds must be a number of seconds, 0 for a checkpoint after every chunk; it is"
    d = features()
    grouped = rv.Decisions(d.rows, d.start, d.chosen, groups=np.arange(60) % 3)
    doors: list[Any] = [
        lambda: rv.fit(features(), checkpoint_seconds=seconds),
        lambda: rv.fit(GAMES, rv.RankingModel(), checkpoint_seconds=seconds),
        lambda: rv.fit(
            grouped, rv.ChoiceModel(groups=rv.Hierarchical()), checkpoint_seconds=seconds
        ),
        lambda: rv.fit(grouped, rv.ChoiceModel(groups=rv.Separate()), checkpoint_seconds=seconds),
        lambda: rv.fit(
            rv.Trajectories(([0, 1], [0, 1]), 2, 2),
            rv.ChoiceModel(transitions=rv.Dirichlet()),
            checkpoint_seconds=seconds,
        ),
    ]
    for each in doors:
        with pytest.raises(ValueError, match=sentence):
            each()


def test_how_long_it_waits() -> None:
    every = Checkpoint(Path("x"), "", 30.0)
    assert every.seconds_until_next(0.0, age=0.25) == 0.25  # soon, in a young process
    assert every.seconds_until_next(0.001, age=500.0) == 30.0
    assert every.seconds_until_next(3.0, age=500.0) == 60.0  # a twentieth of the time
    assert Checkpoint(Path("x"), "", 0).seconds_until_next(3.0, age=500.0) == 0.0
    assert CHECKPOINTS.seconds == 30.0


@pytest.mark.parametrize("version", [None, 1, CHECKPOINTS.version + 1])
def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, version: int | None) -> None:
    """Those of version 0.1.0 have no number at all."""
    file = tmp_path / "run.checkpoint"
    quick(sampler="da", checkpoint=file)
    head, arrays = read_checkpoint(file)
    assert head.pop("version") == CHECKPOINTS.version
    if version is not None:
        head["version"] = version
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    with file.open("wb") as stream:
        np.savez(stream, **arrays, head=text)
    with pytest.raises(ValueError, match="by another version of revealed, and this one reads"):
        quick(sampler="da", checkpoint=file, resume=True)


def test_checkpoints_of_version_0_1_0_are_refused() -> None:
    old = Path(__file__).parents[1] / "old_files" / "checkpoints"
    for file in old.glob("*.checkpoint"):
        with pytest.raises(ValueError, match="was written without a format number by another"):
            read_checkpoint(file)


@pytest.mark.parametrize(("seconds", "least", "most"), [(1e6, 2, 12), (0, 40, 400)])
def test_the_first_is_written_before_any_work(
    seconds: float, least: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    original = Checkpoint.write

    def noted(self: Checkpoint, snapshot: Any) -> None:
        original(self, snapshot)
        seen.append(
            [
                chain["warmup_done"] + chain["draws_done"]
                for chain in read_checkpoint(self.file)[0]["chains"]
            ]
        )

    monkeypatch.setattr(Checkpoint, "write", noted)
    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-9)
    quick(sampler="da", checkpoint=tmp_path / "run.checkpoint", checkpoint_seconds=seconds)
    assert seen[0] == [0, 0]
    assert seen[-1] == [80, 80]
    assert least <= len(seen) <= most
    settings: dict[str, Any] = {
        "sampler": "da",
        "checkpoint": tmp_path / "run.checkpoint",
        "resume": True,
    }
    again = quick(checkpoint_seconds=17.0, **settings)  # how often is not part of what a run is
    assert again.settings["complete"] is True


# Files


def draft_of_the_dead(target: Path) -> None:
    """Somebody begins to write, and is killed."""
    code = (
        "import os, signal, sys\nfrom revealed.io.atomic import atomic_open\n"
        f"with atomic_open({str(target)!r}) as stream:\n"
        "    stream.write(b'half'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment).returncode == -signal.SIGKILL
    )


def test_what_the_dead_leave_is_removed_and_the_living_are_let_alone(tmp_path: Path) -> None:
    target, other = tmp_path / "a.nc", tmp_path / "b.nc"
    atomic_write(target, b"old")
    draft_of_the_dead(target)
    draft_of_the_dead(other)
    assert target.read_bytes() == b"old"
    assert not other.exists()
    assert len(list(tmp_path.glob(".revealed-*.tmp"))) == 2
    with atomic_open(target) as slow:
        slow.write(b"slow")
        atomic_write(target, b"quick")  # takes the dead one's draft away, and not this one's
        assert target.read_bytes() == b"quick"
        assert len(list(tmp_path.glob(".revealed-*.tmp"))) == 2
    assert target.read_bytes() == b"slow"
    atomic_write(other, b"b")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.nc", "b.nc"]


def test_many_may_write_the_same_file_at_once(tmp_path: Path) -> None:
    target, wrong = tmp_path / "a.nc", []

    def write(letter: str) -> None:
        try:
            for _ in range(60):
                atomic_write(target, letter.encode() * 5000)
                if len(set(target.read_bytes())) != 1:
                    wrong.append("mixed")
        except Exception as reason:
            wrong.append(str(reason))

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [file.name for file in tmp_path.iterdir()] == ["a.nc"]


def test_a_draft_that_was_taken_for_dead_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = _files._lock_file, 0

    def late(handle: int, wait: bool) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:  # between making the draft and locking it, somebody clears up
            _files.remove_stale_drafts(tmp_path / "a.nc")
        original(handle, wait)

    monkeypatch.setattr(_files, "_lock_file", late)
    atomic_write(tmp_path / "a.nc", b"a")
    assert calls == 3
    assert [file.name for file in tmp_path.iterdir()] == ["a.nc"]


def test_the_disk_is_asked_for_content_then_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(handle: int) -> None:
        happened.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "content")
        fsync(handle)

    def noted_replace(self: Path, target: Path) -> Path:
        happened.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    atomic_write(tmp_path / "a.nc", b"a")
    if os.path.isdir("/proc/self/fd"):
        assert happened == ["content", "name", "folder"]


# The loop of docs/checkpoints.md


@pytest.mark.parametrize(
    ("ends", "attempts", "code"), [("exit 0", 3, 0), ("exit 2", 3, 0), ("exit 1", 3, 0)]
)
def test_the_loop_of_the_page_goes_on_when_killed_and_ends_otherwise(
    ends: str, attempts: int, code: int, tmp_path: Path
) -> None:
    """A command that is killed twice, and then ends well, or complains."""
    loop = re.search(
        r"```bash\n(until .*?)```", (DOCS / "checkpoints.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert loop is not None
    program = tmp_path / "revealed"
    program.write_text(
        "#!/bin/bash\n"
        f'echo "$*" >> {tmp_path}/attempts\n'
        f"[ $(wc -l < {tmp_path}/attempts) -lt 3 ] && kill -9 $$\n"
        f"{ends}\n"
    )
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    text = loop[1].replace("sleep 1", "sleep 0.01")
    done = subprocess.run(
        ["bash", "-c", text], env=environment, cwd=tmp_path, timeout=600, capture_output=True
    )
    assert done.returncode == code
    assert (tmp_path / "attempts").read_text().splitlines() == [
        "fit decisions.csv --out posterior.nc --resume"
    ] * attempts
