"""Running Laplace importance sampling: very many decisions and a prior in, a posterior out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from revealed.data.chunks import ChunkedDecisions, InMemoryChunks
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate_if_worthwhile
from revealed.io.checkpoints import Checkpoint, fingerprint
from revealed.io.parquet_folder import ParquetDecisions
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.models.priors import Prior, ResolvedPrior, resolve_prior
from revealed.results.posterior import Posterior
from revealed.samplers.executors import make_executor
from revealed.samplers.laplace import Laplace
from revealed.samplers.run import run_to_end


def fit_laplace(
    decisions: Decisions | ParquetDecisions,
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
    noise: NoiseArguments = NORMAL,
) -> Posterior:
    """The posterior by the sampler "laplace", its draws dealt out to so many chains.

    The arguments are those of `rv.fit`, checked, and the noise as kernels take it. Raises
    NotCertified where the answer cannot be certified, and KeyboardInterrupt after Ctrl-C: there
    are no draws before the end.
    """
    # equal decisions are counted first: in a small MDP a great many are few different ones
    chunks: ChunkedDecisions = (
        decisions
        if isinstance(decisions, ParquetDecisions)
        else InMemoryChunks(*deduplicate_if_worthwhile(decisions))
    )
    resolved_prior = resolve_prior(prior, chunks)
    # what a result of chains records, so that all results can be read alike
    settings = {
        "seed": seed,
        "draws": draws,
        "warmup": 0,
        "chains": chains,
        "thin": 1,
        "options": {},
    }
    executor = make_executor(chunks, cluster, threads)
    sampler = Laplace(chunks, executor, resolved_prior, draws * chains, seed, noise=noise)
    file = None
    if checkpoint is not None:
        # hashing all rows takes time, so that it is done for a checkpoint only
        own = _fingerprint(chunks, resolved_prior, settings, noise)
        file = Checkpoint(checkpoint, own, checkpoint_seconds)
    title = f"laplace: {chunks.count:,} decisions"
    if not run_to_end(sampler, title, progress, file, resume):
        raise KeyboardInterrupt
    # independent draws, which may be dealt out to chains in any way
    values, stats, diagnostics = sampler.draws()
    shape = (chains, draws)
    # a posterior carries its decisions along; of a folder it keeps only the first ones
    max_kept_decisions = 1000
    kept = (
        decisions.first_chunk()[:max_kept_decisions]
        if isinstance(decisions, ParquetDecisions)
        else decisions
    )
    return Posterior(
        values.reshape(*shape, -1),
        kept,
        prior,
        "laplace",
        {name: numbers.reshape(shape) for name, numbers in stats.items()},
        {**settings, "complete": True, **diagnostics},
    )


def _fingerprint(
    chunks: ChunkedDecisions,
    resolved_prior: ResolvedPrior,
    settings: dict[str, Any],
    noise: NoiseArguments,
) -> str:
    """What a checkpoint must agree with; files are told apart by name, size and time."""
    # the prior in the coordinates of these decisions
    parts: list[Any] = [resolved_prior.basis, resolved_prior.precision, resolved_prior.mean]
    if noise.kind is not None:
        parts += [noise.kind.name, noise.kind.digest, noise.parameters]
    if isinstance(chunks, InMemoryChunks):
        decisions = chunks.decisions
        parts += [decisions.rows, decisions.start, decisions.chosen_row, chunks.weights]
    elif isinstance(chunks, ParquetDecisions):
        # reading all files only to compare them would take as long as a pass
        for file in chunks.files:
            status = Path(file).stat()
            parts.append((Path(file).name, status.st_size, status.st_mtime_ns))
    return fingerprint("laplace", settings, chunks.count, len(chunks), *parts)
