"""Seeing a run through: a bar to look at, checkpoints to fall back on, and what there is when Ctrl-C ends it.

A checkpoint is one file, an archive of numpy arrays with a head in JSON: a fingerprint of problem and settings, and of every chain its
generator, its state and its draws so far. It takes the place of the one before in one step, so that there is always a whole
one to resume from, whenever the process ends and however.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Floats
from understudy._files import refuse_unwritable, whole_file
from understudy.engines.run import Packed, Run

CHECKPOINT_SECONDS = 30.0
SPACING = (
    20.0  # checkpoints are apart at least so many times what the last one took: they take up to a twentieth of the time
)


class OtherRun(ValueError):
    """A checkpoint of another problem, or of other settings."""


@dataclass(frozen=True)
class Checkpoint:
    """The file of a run that is known by its mark, to be written about every so many seconds."""

    file: Path
    mark: str
    seconds: float = CHECKPOINT_SECONDS

    def write(self, packed: Packed) -> None:
        """Write everything needed to go on, in one step that cannot leave half a file."""
        head, arrays = packed
        text = json.dumps({"fingerprint": self.mark, **head}).encode()
        whole: dict[str, Any] = {**arrays, "head": np.frombuffer(text, dtype=np.uint8)}
        with whole_file(self.file) as stream:
            np.savez(stream, **whole)

    def read(self) -> Packed:
        """What `write` wrote; refuses a checkpoint of another problem."""
        head, arrays = read_checkpoint(self.file)
        if head["fingerprint"] != self.mark:
            raise OtherRun(
                f"the checkpoint {self.file} belongs to other decisions, prior or settings; run without resuming"
            )
        return head, arrays

    def wait(self, took: float, age: float) -> float:
        """Seconds from one checkpoint to the next, by how long the last one took to write and how old this process is.

        A young process writes more often, so that one that keeps being killed gets on. Zero seconds ask for one after every piece,
        whatever it costs.
        """
        return max(SPACING * took, min(self.seconds, age)) if self.seconds > 0 else 0.0


def read_checkpoint(file: Path) -> Packed:
    """The head and the arrays of a checkpoint, whosever it is."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(arrays.pop("head").tobytes())
        _ = head["fingerprint"]
    except FileNotFoundError:
        raise ValueError(f"there is no checkpoint {file} to resume from") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{file} is not a checkpoint of understudy, or it is damaged") from None
    return head, arrays


def fingerprint_of(told: str, *parts: Any) -> str:
    """Of words, arrays and sparse matrices: what a checkpoint must agree with before it is continued."""
    digest = hashlib.sha256(told.encode())
    for part in parts:
        for array in (part.indptr, part.indices, part.data) if sp.issparse(part) else (part,):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def refuse_bad_checkpoint(checkpoint: str | os.PathLike[str] | None, resume: bool, seconds: float) -> Path | None:
    """The checkpoint's file, if there is to be one; refuses what cannot work before any work is done."""
    number = isinstance(seconds, int | float | np.number) and not isinstance(seconds, bool)
    if not (number and 0 <= seconds < float("inf")):
        raise ValueError(
            f"checkpoint_seconds must be a number of seconds, 0 for a checkpoint after every piece; it is {seconds!r}"
        )
    if checkpoint is None:
        if resume:
            raise ValueError("resume=True needs the checkpoint file to resume from")
        return None
    refuse_unwritable(Path(checkpoint))
    return Path(checkpoint)


def drive(
    run: Run, name: str, threads: int | None, progress: bool | None, checkpoint: Checkpoint | None, resume: bool
) -> tuple[Floats, dict[str, Floats], bool]:
    """Draws, stats, and whether they are complete, of a run that is seen through to its end or to Ctrl-C."""
    complete = run_through(run, name, threads, progress, checkpoint, resume)
    return *run.collect(), complete


def run_through(
    run: Run, name: str, threads: int | None, progress: bool | None, checkpoint: Checkpoint | None, resume: bool
) -> bool:
    """Run all chains to the end, from where a checkpoint left them if it is to be resumed.

    Returns whether the draws are complete: after Ctrl-C they are those made so far. Before the first it is an interrupt.
    """
    if resume:
        assert checkpoint is not None
        run.unpack(*checkpoint.read())
    workers = threads or min(len(run.chains), os.cpu_count() or 1)
    title = f"{name}: {len(run.chains)} chains"
    complete = see_through(run.go(workers), run.packed, title, run.done, run.total, progress, checkpoint, resume)
    if not all(chain.done for chain in run.chains):
        raise KeyboardInterrupt
    return complete


def see_through(
    steps: Iterable[float],
    packed: Callable[[], Packed],
    title: str,
    done: float,
    total: float,
    progress: bool | None,
    checkpoint: Checkpoint | None,
    resumed: bool,
) -> bool:
    """Take all steps, each of which tells how much is done, with a bar and checkpoints; False when Ctrl-C ended it.

    packed: what has to be written down, as it was after some whole step. It is written before the first step, unless resumed;
    now and then; and at the end, be it the last step, Ctrl-C or a mistake.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    if checkpoint is not None and not resumed:
        checkpoint.write(packed())
    show = sys.stderr.isatty() if progress is None else progress
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    began = written = time.monotonic()
    took = 0.0
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not show) as bar:
        task = bar.add_task(title, total=total)
        bar.update(task, completed=done)
        try:
            for now_done in steps:
                bar.update(task, completed=now_done)
                now = time.monotonic()
                if checkpoint is not None and now - written >= checkpoint.wait(took, now - began):
                    checkpoint.write(packed())
                    written = time.monotonic()
                    took = written - now
        except KeyboardInterrupt:
            return False
        finally:
            if checkpoint is not None:
                checkpoint.write(packed())
    return True
