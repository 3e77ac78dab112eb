"""Laplace importance sampling: whether to try it, and its run, from decisions to draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revealed.data.chunks import ChunkedDecisions, InMemoryChunks
from revealed.data.unique import deduplicate_if_worthwhile
from revealed.io.checkpoints import Checkpoint, fingerprint
from revealed.io.parquet_folder import ParquetDecisions
from revealed.kernels.noise import AnyNoise, identify_noise
from revealed.models.choice import ResolvedChoiceModel
from revealed.models.priors import ResolvedPrior, resolve_prior
from revealed.samplers.base import Draws
from revealed.samplers.executors import make_executor
from revealed.samplers.laplace import Laplace
from revealed.samplers.laplace_settings import LAPLACE
from revealed.samplers.model_kind import Model, ModelKind, ResolvedModel, kind_of
from revealed.samplers.registry import REGISTRY
from revealed.samplers.run import run_to_end
from revealed.samplers.run_settings import RunSettings


@dataclass(frozen=True)
class LaplaceRule:
    """When the default sampler tries "laplace" first.

    A log-concave posterior has one mode, around which a certificate means what it says, and the
    attempt costs little beside chains: benchmarks/first_answer.py measures it. Others, those
    with an inferred scale or a noise that is not known to be log-concave, may have a second mode
    that no look at one of them shows, unless there are very many decisions.

    max_width: coordinates up to which the attempt costs little and often succeeds.
    min_decisions: from which on posteriors are taken for normal whatever their prior.
    """

    max_width: int = LAPLACE.max_surrogate_width
    min_decisions: int = 50_000


RULE = LaplaceRule()


def needs_laplace(model: Model, data: Any, sampler: str, client: Any) -> bool:
    """Whether "laplace" was asked for: by name, by a folder of files, or by a cluster.

    No other sampler reads pooled decisions chunk by chunk; groups in a folder the model refuses.
    """
    kind = kind_of(model)
    chunked = isinstance(data, ParquetDecisions) and kind.groups == "pooled"
    cluster = client is not None and kind.groups == "pooled"
    if not (chunked or cluster):
        return sampler == "laplace"
    if sampler not in ("auto", "laplace"):
        raise ValueError(f'a folder or a cluster needs the sampler "laplace", not "{sampler}"')
    if not _takes_laplace(kind):
        instead = (
            "read its files into memory with rv.read_parquet"
            if chunked
            else "give executor=threads in place of a Dask client"
        )
        raise ValueError(
            f'a folder or a cluster needs the sampler "laplace", which does not take {kind}; '
            f"change the model, or {instead}"
        )
    return True


def _takes_laplace(kind: ModelKind) -> bool:
    return any(entry.name == "laplace" for entry in REGISTRY.entries_for(kind))


def tries_laplace_first(
    resolved: ResolvedModel, sampler: str, particular: Mapping[str, Any]
) -> bool:
    """Whether the default is to try "laplace" before chains are run; see `LaplaceRule`.

    particular: arguments that only chains have a use for; None where they were not given.
    """
    kind = kind_of(resolved.model)
    plain = sampler == "auto" and all(value is None for value in particular.values())
    if not (plain and isinstance(resolved, ResolvedChoiceModel) and _takes_laplace(kind)):
        return False
    log_concave = kind.prior in ("normal", "flat") and resolved.kernel.is_log_concave
    few = resolved.prior.basis.shape[1] <= RULE.max_width
    return (log_concave and few) or len(resolved.data) >= RULE.min_decisions


def run_laplace(
    resolved: ResolvedChoiceModel, settings: RunSettings
) -> tuple[Draws, Draws, dict[str, Any]]:
    """Draws and stats by the sampler "laplace", dealt out to chains, and what is recorded of it.

    Raises NotCertified where the answer cannot be certified, and KeyboardInterrupt after Ctrl-C:
    there are no draws before the end.
    """
    data = resolved.data
    decisions = data if isinstance(data, ParquetDecisions) else resolved.sampled_decisions
    # equal decisions are counted first: in a small MDP a great many are few different ones
    chunks: ChunkedDecisions = (
        decisions
        if isinstance(decisions, ParquetDecisions)
        else InMemoryChunks(*deduplicate_if_worthwhile(decisions))
    )
    # the coefficients of a folder are known when its chunks are
    resolved_prior = (
        resolve_prior(resolved.model.value_prior, chunks)
        if isinstance(data, ParquetDecisions)
        else resolved.sampled_prior
    )
    # what a result of chains records, so that all results can be read alike
    recorded = settings.with_warmup(0).recorded(options={})
    executor = make_executor(chunks, settings.client, settings.threads)
    sampler = Laplace(
        chunks,
        executor,
        resolved_prior,
        settings.chains,
        settings.draws,
        settings.seed,
        noise=resolved.kernel,
    )
    file = None
    if settings.checkpoint is not None:
        # hashing all rows takes time, so that it is done for a checkpoint only
        own = _fingerprint(chunks, resolved_prior, recorded, resolved.kernel)
        file = Checkpoint(settings.checkpoint, own, settings.checkpoint_seconds)
    title = f"laplace: {chunks.count:,} decisions"
    if not run_to_end(sampler, title, settings.progress, file, settings.resume):
        raise KeyboardInterrupt
    # one chain after the other; draws of a surrogate are independent anyway
    values, stats, diagnostics = sampler.draws()
    shape = (settings.chains, settings.draws)
    drawn: Draws = {"value": values.reshape(*shape, -1)}
    numbers = {name: given.reshape(shape) for name, given in stats.items()}
    # the sd of the prior is a parameter, not a statistic
    if "prior_sd" in numbers:
        drawn["prior_sd"] = numbers.pop("prior_sd")
    return drawn, numbers, {**recorded, "complete": True, **diagnostics}


def _fingerprint(
    chunks: ChunkedDecisions,
    resolved_prior: ResolvedPrior,
    settings: dict[str, Any],
    noise: AnyNoise,
) -> str:
    """What a checkpoint must agree with.

    Files are told apart by name, size and time.
    """
    # the prior in the coordinates of these decisions
    prior = resolved_prior
    parts: list[Any] = [prior.basis, prior.precision, prior.mean, prior.scale]
    parts += identify_noise(noise)
    if isinstance(chunks, InMemoryChunks):
        decisions = chunks.decisions
        parts += [decisions.rows, decisions.start, decisions.chosen_row, chunks.weights]
    elif isinstance(chunks, ParquetDecisions):
        # reading all files only to compare them would take as long as a pass
        for file in chunks.files:
            status = Path(file).stat()
            parts.append((Path(file).name, status.st_size, status.st_mtime_ns))
    return fingerprint("laplace", settings, chunks.count, len(chunks), *parts)
