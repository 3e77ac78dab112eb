"""The door for very many decisions: pieces and a prior in, a certified posterior out."""

from __future__ import annotations

import hashlib
import json
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from understudy._files import whole_file
from understudy.decisions import Decisions
from understudy.engines.laplace import Laplace, Refused
from understudy.engines.passes import Labourers, Threads
from understudy.engines.tally import merged
from understudy.posterior import Posterior
from understudy.priors import Placed, Prior, place
from understudy.shards import Folder, Held, Shards

LARGE = 50_000  # decisions from which on the default engine takes this road first
KEPT = 1000  # decisions that a posterior learnt from a folder holds on to
CHECKPOINT_SECONDS = 30.0


class OtherRun(ValueError):
    """A checkpoint belongs to another run."""


def fit_large(
    decisions: Decisions | Folder,
    prior: Prior,
    *,
    draws: int,
    chains: int,
    seed: int,
    cluster: Any = None,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    asked: bool = True,
) -> Posterior | None:
    """Run the engine "laplace" with a bar and checkpoints.

    Where the answer cannot be certified, or the checkpoint is of another engine: says so if this engine was asked for, else None.
    """
    shards = decisions if isinstance(decisions, Folder) else Held(*merged(decisions))
    placed = place(prior, shards)
    settings = {"seed": seed, "draws": draws, "warmup": 0, "chains": chains, "thin": 1, "options": {}}
    engine = Laplace(shards, _labourers(shards, cluster, threads), placed, draws * chains, seed)
    mark = "" if checkpoint is None else fingerprint(shards, placed, settings)
    try:
        if resume:
            assert checkpoint is not None
            restore(engine, checkpoint, mark)
        _drive(engine, progress, checkpoint, mark)
    except OtherRun:
        if asked:
            raise
        return None
    except Refused as reason:
        if asked:
            raise ValueError(f'the engine "laplace" cannot certify an answer: {reason}') from None
        return None
    values, stats, told = engine.draws()
    shape = (chains, draws)
    kept = decisions.some()[:KEPT] if isinstance(decisions, Folder) else decisions
    return Posterior(
        values.reshape(*shape, -1), kept, prior, "laplace", {name: s.reshape(shape) for name, s in stats.items()},
        {**settings, "complete": True, **told},
    )  # fmt: skip


def _labourers(shards: Shards, cluster: Any, threads: int | None) -> Labourers:
    """Threads, or the workers of a cluster."""
    if cluster is None:
        return Threads(shards, threads)
    from understudy.engines.workers import Workers, refuse_no_client

    refuse_no_client(cluster)
    return Workers(shards, cluster)


def _drive(engine: Laplace, progress: bool | None, file: Path | None, mark: str) -> None:
    """Work to the end with a bar and checkpoints, the last of them on Ctrl-C too."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    show = sys.stderr.isatty() if progress is None else progress
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    written = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not show) as bar:
        task = bar.add_task(f"laplace: {engine.shards.count} decisions", total=1.0)
        try:
            for share in engine.go():
                bar.update(task, completed=share)
                if file is not None and time.monotonic() - written > CHECKPOINT_SECONDS:
                    save(engine, file, mark)
                    written = time.monotonic()
        finally:
            if file is not None and engine.state:
                save(engine, file, mark)


def save(engine: Laplace, path: Path, mark: str) -> None:
    """Write everything needed to go on, in one step that cannot leave half a file."""
    head = json.dumps({"fingerprint": mark})
    arrays: dict[str, Any] = {**engine.state, "head": np.frombuffer(head.encode(), dtype=np.uint8)}
    with whole_file(path) as stream:
        np.savez(stream, **arrays)


def restore(engine: Laplace, path: Path, mark: str) -> None:
    """Pick up where `save` left off; refuses a checkpoint of another problem."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(arrays.pop("head").tobytes())
    except FileNotFoundError:
        raise ValueError(f"there is no checkpoint {path} to resume from") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path} is not a checkpoint of understudy, or it is damaged") from None
    if head["fingerprint"] != mark:
        raise OtherRun(f"the checkpoint {path} belongs to other decisions, prior or settings; run without resuming")
    engine.state = arrays


def fingerprint(shards: Shards, placed: Placed, settings: dict[str, Any]) -> str:
    """What a checkpoint must agree with before it is continued; files are told by name, size and time."""
    digest = hashlib.sha256(repr(("laplace", sorted(settings.items()), shards.count, len(shards))).encode())
    parts: list[Any] = [placed.basis, placed.precision, placed.mean]
    if isinstance(shards, Held):
        d = shards.decisions
        rows = d.rows
        parts += [rows.indptr, rows.indices, rows.data] if hasattr(rows, "indptr") else [rows]
        parts += [d.start, d.taken, shards.weights]
    elif isinstance(shards, Folder):
        for file in shards.files:
            found = Path(file).stat()
            digest.update(f"{Path(file).name} {found.st_size} {found.st_mtime_ns}".encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
