"""`fit`: decisions and a prior in, a posterior out.

The steps are: check what was given; where there are very many decisions, try Laplace importance
sampling, which certifies its answer or gives none; otherwise choose a sampler, run its chains, and
put draws, decisions and settings together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed
from revealed.api.run_settings import (
    NotConvergedWarning,
    RunSettings,
    announce_compiling,
    warn_unless_converged,
)
from revealed.data.decisions import Decisions
from revealed.io.checkpoints import CHECKPOINTS, CheckpointMismatch
from revealed.io.parquet_folder import ParquetDecisions
from revealed.models.noise import CorrelatedNoise, ResolvedNoise, resolve_noise
from revealed.models.priors import Normal, Prior, ResolvedPrior, resolve_prior
from revealed.models.propriety import find_unbounded_direction
from revealed.results.posterior import Posterior
from revealed.samplers.background_compile import start_background_compile
from revealed.samplers.laplace import NotCertified
from revealed.samplers.laplace_run import fit_laplace
from revealed.samplers.memory import FEWER_DRAWS, estimate_memory, refuse_too_large
from revealed.samplers.registry import REGISTRY, make_sampler

__all__ = ["NotConvergedWarning", "decision_parts", "fit"]

# Decisions from which on the default sampler tries "laplace" first: there its passes are quicker
# than chains, and posteriors are nearly always close to normal. With a smaller number more fits
# would try in vain, which costs them a few passes.
LAPLACE_MIN_DECISIONS = 50_000


def fit(
    decisions: Decisions | ParquetDecisions,
    prior: Prior | None = None,
    sampler: str = "auto",
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    init: Any = None,
    options: Mapping[str, Any] | None = None,
    *,
    noise: CorrelatedNoise | None = None,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINTS.seconds,
    cluster: Any = None,
) -> Posterior:
    """Infer the posterior of the value from decisions.

    Ctrl-C returns the draws made so far. A result that has not converged comes with a
    NotConvergedWarning.

    Parameters
    ----------
    decisions
        What was offered and chosen; or a folder of Parquet files, ``rv.scan_parquet(path)``, read
        chunk by chunk.
    prior
        Of the value; default: ``Normal(50.0)``.
    sampler
        "auto" (which is "composite"), or one of the paper's samplers "da", "px-scale",
        "px-translate", "px-both"; or "ibis", as many particles as draws in each chain, which take
        the decisions one by one, need no warm-up, and give the evidence; or "laplace", a few passes
        with a diagnostic that certifies them, which "auto" tries first from 50,000 decisions on.
        With `noise`: "auto" (which is "ghk-hmc") or "da".
    draws, warmup, chains, thin
        Kept draws a chain, iterations before them, chains, iterations a kept draw.
    seed
        The same number gives the same draws with any number of threads; None picks one and records
        it, and so does a numpy Generator.
    init
        Where chains start, (K,) or (chains, K); default: around the posterior mode.
    options
        Of the paper's samplers: {"utilities": "exact" or "metropolis", "a": 0, "b": 0,
        "newton": 3}.
    noise
        ``CorrelatedNoise(base=...)`` infers the noise covariance of labelled actions; default:
        independent noise.
    threads
        How many chains run at once; default: all cores.
    progress
        Whether there is a progress bar; default: only on a terminal.
    checkpoint
        A file the run is written to now and then, on Ctrl-C and at the end.
    resume
        Continue the run of the checkpoint, to exactly the draws that it would have given.
    checkpoint_seconds
        How often the checkpoint is written, about. A young run is written more often, and one whose
        checkpoints take long more rarely, so that they take up to a twentieth of the time; 0 writes
        one after every chunk of a quarter of a second, whatever it costs.
    cluster
        A ``dask.distributed.Client`` whose workers do the passes of "laplace"; the draws are the
        same to the last bit.

    Returns
    -------
    Posterior
        Draws of the value, with all they came from.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> post = rv.fit(d, rv.Normal(1.0), seed=1)
    >>> post.names[post.mean.argmax()], post.summary().message
    ('tea', 'Converged: ...')
    """
    # check what was given, before any work is done
    prior = Normal(50.0) if prior is None else prior
    if not isinstance(decisions, Decisions | ParquetDecisions):
        raise ValueError(
            f"fit needs Decisions, not {type(decisions).__name__}; rv.from_dataframe makes them "
            "from a table"
        )
    settings = RunSettings.check(
        draws=draws,
        warmup=warmup,
        chains=chains,
        thin=thin,
        seed=seed,
        threads=threads,
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
        checkpoint_seconds=checkpoint_seconds,
    )
    # the workers of a cluster have memory of their own
    if cluster is None:
        _refuse_too_large(decisions, sampler, settings)

    # very many decisions: a certified answer in a few passes, or chains after all
    asked = sampler == "laplace" or isinstance(decisions, ParquetDecisions) or cluster is not None
    unused = {"options": options or None, "noise": noise, "init": init}
    unused["thin"] = None if thin == 1 else thin
    if asked:
        _check_laplace(sampler, unused)
    plain = sampler == "auto" and all(value is None for value in unused.values())
    if asked or (plain and len(decisions) >= LAPLACE_MIN_DECISIONS):
        posterior, resume = _try_laplace(decisions, prior, settings, cluster, asked)
        if posterior is not None:
            return posterior
        settings = replace(settings, resume=resume)

    # only decisions in memory get here: a folder asks for "laplace"
    assert isinstance(decisions, Decisions)
    if sampler == "ibis":
        _refuse_unused("ibis", unused)
    posterior = _fit_chains(decisions, prior, sampler, settings, init, options or {}, noise)
    warn_unless_converged(posterior.summary())
    return posterior


def _refuse_too_large(
    decisions: Decisions | ParquetDecisions, sampler: str, settings: RunSettings
) -> None:
    """Refuse a fit that would not fit into memory, and say what would."""
    needed = estimate_memory(decisions, sampler, settings.draws, settings.chains, settings.threads)
    refuse_too_large(
        needed,
        f"{FEWER_DRAWS}, or put the decisions into a folder of Parquet files, which "
        "rv.scan_parquet reads chunk by chunk",
    )


def _check_laplace(sampler: str, unused: Mapping[str, Any]) -> None:
    """Refuse what does not go together with "laplace", where that was asked for."""
    # no other sampler reads decisions chunk by chunk
    if sampler not in ("auto", "laplace"):
        raise ValueError(f'a folder or a cluster needs the sampler "laplace", not "{sampler}"')
    _refuse_unused("laplace", unused)


def _refuse_unused(sampler: str, unused: Mapping[str, Any]) -> None:
    """Refuse arguments that a sampler has no use for; those not given are None.

    An argument that is silently ignored would be taken for one that worked.
    """
    for name, value in unused.items():
        if value is not None:
            raise ValueError(f'the sampler "{sampler}" has no use for {name}; leave it out')


def _try_laplace(
    decisions: Decisions | ParquetDecisions,
    prior: Prior,
    settings: RunSettings,
    cluster: Any,
    asked: bool,
) -> tuple[Posterior | None, bool]:
    """The posterior by "laplace", or None where chains have to be run; and whether these resume.

    asked: whether the caller wants this sampler and no other; then its failures are errors.
    """
    announce_compiling(settings.progress)
    try:
        posterior = fit_laplace(
            decisions,
            prior,
            draws=settings.draws,
            chains=settings.chains,
            seed=settings.seed,
            cluster=cluster,
            threads=settings.threads,
            progress=settings.progress,
            checkpoint=settings.checkpoint,
            resume=settings.resume,
            checkpoint_seconds=settings.checkpoint_seconds,
        )
    except NotCertified as reason:
        if asked:
            raise ValueError(f'the sampler "laplace" cannot certify an answer: {reason}') from None
        # the checkpoint was of the passes that came to nothing; chains begin afresh
        return None, False
    except CheckpointMismatch:
        if asked:
            raise
        # the checkpoint may belong to the chains that took over in an earlier run
        return None, settings.resume
    return posterior, False


def _fit_chains(
    decisions: Decisions,
    prior: Prior,
    sampler_name: str,
    settings: RunSettings,
    init: Any,
    options: Mapping[str, Any],
    noise: CorrelatedNoise | None,
) -> Posterior:
    """Choose the sampler, run its chains, and put the posterior together.

    The arguments are those of `fit`, checked as far as they can be without the data.
    """
    # offers without choices say nothing of the value
    decisions.require_choices()
    resolved_prior = resolve_prior(prior, decisions)
    announce_compiling(settings.progress)
    # "ibis" refuses every flat prior, with a sentence of its own
    if resolved_prior.flat and sampler_name != "ibis":
        refuse_improper(decisions, resolved_prior)
    resolved_noise = None if noise is None else resolve_noise(noise, decisions)
    if noise is None and sampler_name in ("auto", REGISTRY.find("auto").name):
        start_background_compile()
    sampler = make_sampler(
        sampler_name, decisions, resolved_prior, options, resolved_noise, settings.draws
    )
    if sampler_name == "ibis":
        # its iterations are the decisions
        settings = replace(settings, warmup=len(decisions))
    # what decides the draws is recorded with them, and stands in the fingerprint
    recorded = settings.recorded(options=dict(options))
    run, complete = settings.run(
        sampler,
        recorded,
        *decision_parts(decisions, resolved_prior),
        *_noise_parts(resolved_noise),
        init=_starting_points(init, settings.chains, len(decisions.names)),
    )
    # a draw is the coefficients, then the lower triangle of the noise covariance
    kept, stats = run.collect()
    width = len(decisions.names)
    return Posterior(
        kept[:, :, :width],
        decisions,
        prior,
        sampler.name,
        stats,
        {**recorded, "complete": complete},
        noise,
        None if noise is None else _symmetric_matrices(kept[:, :, width:]),
    )


def refuse_improper(decisions: Decisions, resolved_prior: ResolvedPrior) -> None:
    """Under a flat prior, refuse decisions that leave a direction unbounded, and name it.

    The posterior would be improper: it could not be normalised, and chains would drift away.
    """
    # a linear programme looks for a direction along which no choice speaks against the value
    unbounded = find_unbounded_direction(
        decisions, resolved_prior.basis, resolved_prior.constant_directions
    )
    if unbounded is None:
        return
    why = (
        "every choice agrees with it, however far it is taken"
        if unbounded.tested
        else "no choice ever tests it"
    )
    raise ValueError(
        "the posterior under a flat prior is improper along the direction "
        f"({unbounded}): {why}; use rv.Normal(sd), or decisions that bound this direction"
    )


def _starting_points(init: Any, chains: int, width: int) -> Floats | None:
    """Where chains start, checked: (K,) for all or (chains, K); None leaves it to the sampler."""
    if init is None:
        return None
    given = np.asarray(init, dtype=np.float64)
    if given.shape not in ((width,), (chains, width)):
        raise ValueError(
            f"init has shape {given.shape}; give {width} numbers, or {chains} rows of {width}, one "
            "a chain"
        )
    if not np.isfinite(given).all():
        raise ValueError("init must be finite numbers")
    return given


def _symmetric_matrices(lower: Floats) -> Floats:
    """(chain, draw, D, D) from the rows of lower triangles, (chain, draw, D (D + 1) / 2)."""
    # D (D + 1) / 2 numbers make a triangle of size D
    size = round((np.sqrt(8 * lower.shape[-1] + 1) - 1) / 2)
    i, j = np.tril_indices(size)
    out = np.empty((*lower.shape[:2], size, size))
    out[:, :, i, j] = out[:, :, j, i] = lower
    return out


def decision_parts(decisions: Decisions, resolved_prior: ResolvedPrior) -> tuple[Any, ...]:
    """What a checkpoint must agree with of decisions and prior; see `fingerprint`.

    The rows, the choices, and the prior in the coordinates of these decisions.
    """
    return (
        decisions.rows,
        decisions.start,
        decisions.chosen_row,
        resolved_prior.basis,
        resolved_prior.precision,
        resolved_prior.mean,
        resolved_prior.scale,
    )


def _noise_parts(noise: ResolvedNoise | None) -> tuple[Any, ...]:
    """The same of what is assumed of a noise covariance."""
    if noise is None:
        return ()
    return (noise.labels, noise.base, noise.scale, noise.df, noise.root.tolist())
