"""The door for very many decisions: pieces and a prior in, a certified posterior out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from understudy.decisions import Decisions
from understudy.engines.drive import Checkpoint, fingerprint_of, see_through
from understudy.engines.laplace import Laplace
from understudy.engines.passes import Labourers, Threads
from understudy.engines.tally import merged
from understudy.posterior import Posterior
from understudy.priors import Placed, Prior, place
from understudy.shards import Folder, Held, Shards

LARGE = 50_000  # decisions from which on the default engine takes this road first
KEPT = 1000  # decisions that a posterior learnt from a folder holds on to


def fit_large(
    decisions: Decisions | Folder,
    prior: Prior,
    *,
    draws: int,
    chains: int,
    seed: int,
    cluster: Any,
    threads: int | None,
    progress: bool | None,
    checkpoint: Path | None,
    resume: bool,
    checkpoint_seconds: float,
) -> Posterior:
    """Run the engine "laplace" with a bar and checkpoints. Raises Refused where the answer cannot be certified."""
    shards = decisions if isinstance(decisions, Folder) else Held(*merged(decisions))
    placed = place(prior, shards)
    settings = {"seed": seed, "draws": draws, "warmup": 0, "chains": chains, "thin": 1, "options": {}}
    engine = Laplace(shards, _labourers(shards, cluster, threads), placed, draws * chains, seed)
    keeper = None
    if checkpoint is not None:
        keeper = Checkpoint(checkpoint, fingerprint(shards, placed, settings), checkpoint_seconds)
    if resume:
        assert keeper is not None
        _, engine.state = keeper.read()
    title = f"laplace: {shards.count:,} decisions"
    if not see_through(engine.go(), lambda: ({}, engine.state), title, engine.share, 1.0, progress, keeper, resume):
        raise KeyboardInterrupt
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


def fingerprint(shards: Shards, placed: Placed, settings: dict[str, Any]) -> str:
    """What a checkpoint must agree with before it is continued; files are told by name, size and time."""
    told = repr(("laplace", sorted(settings.items()), shards.count, len(shards)))
    parts: list[Any] = [placed.basis, placed.precision, placed.mean]
    if isinstance(shards, Held):
        d = shards.decisions
        parts += [d.rows, d.start, d.taken, shards.weights]
    elif isinstance(shards, Folder):
        for file in shards.files:
            found = Path(file).stat()
            told += f"{Path(file).name} {found.st_size} {found.st_mtime_ns}"
    return fingerprint_of(told, *parts)
