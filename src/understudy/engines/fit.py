"""The main door: decisions and a prior in, a posterior out."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.diagnostics import Summary
from understudy.engines.augmented import MOVES, Augmented, options_from, widest
from understudy.engines.base import Engine
from understudy.engines.blended import Blended
from understudy.engines.conditioned import Conditioned
from understudy.engines.drive import (
    CHECKPOINT_SECONDS,
    Checkpoint,
    OtherRun,
    drive,
    fingerprint_of,
    refuse_bad_checkpoint,
)
from understudy.engines.laplace import Refused
from understudy.engines.large import LARGE, fit_large
from understudy.engines.memory import FEWER, memory_needed, refuse_too_large
from understudy.engines.run import Run
from understudy.engines.sequential import Sequential
from understudy.engines.wishart import Wishart
from understudy.kernels._jit import compiled_before
from understudy.noise import FullNoise, PlacedNoise, place_noise
from understudy.posterior import Posterior
from understudy.priors import Gaussian, Placed, Prior, place
from understudy.separation import find_opening
from understudy.shards import Folder

ENGINES = ("auto", "blended", *MOVES, "ibis", "laplace")
CORRELATED = ("auto", "conditioned", "da")  # engines for a full noise covariance


SMALLER = f"{FEWER}, or put the decisions into a folder of Parquet files, which us.from_folder reads piece by piece"


class NotConvergedWarning(UserWarning):
    """The draws should not be trusted yet; the message says why.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     post = us.fit(d, engine="da", draws=100, warmup=0)
    >>> print(said[0].category.__name__)
    NotConvergedWarning
    """


def fit(
    decisions: Decisions | Folder,
    prior: Prior | None = None,
    engine: str = "auto",
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: int | None = 0,
    init: Any = None,
    options: Mapping[str, Any] | None = None,
    *,
    noise: FullNoise | None = None,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: Any = None,
) -> Posterior:
    """Learn the posterior of the value from decisions.

    Args:
        decisions: what was offered and chosen; or a folder of Parquet files, ``us.from_folder(path)``, read piece by piece.
        prior: ``Gaussian(2500.0)`` unless said.
        engine: "auto" (which is "blended"), or one of the paper's samplers
            "da", "px-scale", "px-translate", "px-both"; or "ibis", a cloud of as many particles as draws in each chain, which takes the
            decisions one by one, needs no warm-up, and tells the evidence; or "laplace", a few passes and a certificate, which "auto" tries
            first from 50,000 decisions on. With `noise`: "auto" (which is "conditioned") or "da".
        draws, warmup, chains, thin: kept draws a chain, iterations before them, chains, iterations a kept draw.
        seed: the same seed gives the same draws with any number of threads; None picks one and records it.
        init: where chains start, (K,) or (chains, K); unless said, around the posterior mode.
        options: of the paper's samplers: {"utilities": "exact" or "metropolis", "a": 0, "b": 0, "newton": 3}.
        noise: ``FullNoise(base=...)`` learns the noise covariance of labelled actions; None keeps noise independent.
        threads: how many chains run at once; all cores unless said.
        progress: show a bar; unless said, only on a terminal.
        checkpoint: a file the run is written to now and then, on Ctrl-C and at the end; resume=True continues it to exactly the draws that
            the run would have given.
        checkpoint_seconds: how often, about. A young run is written more often, and one whose checkpoints take long more rarely, so
            that they take up to a twentieth of the time; 0 writes one after every piece of a quarter of a second, whatever it costs.
        cluster: a ``dask.distributed.Client`` whose workers do the passes of "laplace"; the draws are the same to the last bit.

    Ctrl-C returns the draws made so far. A result that has not converged comes with a NotConvergedWarning.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> post = us.fit(d, us.Gaussian(1.0), seed=1)
    >>> post.names[post.mean.argmax()], post.summary().verdict
    ('tea', 'Converged: ...')
    """
    prior = Gaussian(2500.0) if prior is None else prior
    if not isinstance(decisions, Decisions | Folder):
        raise ValueError(f"fit needs Decisions, not {type(decisions).__name__}; us.from_frame makes them from a table")
    refuse_bad_counts(draws=draws, warmup=warmup, chains=chains, thin=thin, threads=threads, seed=seed)
    file = refuse_bad_checkpoint(checkpoint, resume, checkpoint_seconds)
    used_seed = pick_seed(seed)
    if cluster is None:
        refuse_too_large(memory_needed(decisions, engine, draws, chains, threads), SMALLER)
    asked = engine == "laplace" or isinstance(decisions, Folder) or cluster is not None
    if asked:
        if engine not in ("auto", "laplace"):
            raise ValueError(f'a folder or a cluster needs the engine "laplace", not "{engine}"')
        _refuse_beside("laplace", options=options or None, noise=noise, init=init, thin=None if thin == 1 else thin)
    plain = engine == "auto" and noise is None and not options and init is None and thin == 1
    if asked or (plain and len(decisions) >= LARGE):
        announce_compiling(progress)
        try:
            return fit_large(
                decisions, prior, draws=draws, chains=chains, seed=used_seed, cluster=cluster, threads=threads, progress=progress,
                checkpoint=file, resume=resume, checkpoint_seconds=checkpoint_seconds,
            )  # fmt: skip
        except Refused as reason:
            if asked:
                raise ValueError(f'the engine "laplace" cannot certify an answer: {reason}') from None
            resume = False  # what there was to resume has been refused; chains begin
        except OtherRun:
            if asked:  # otherwise it may belong to the chains that took over
                raise
    assert isinstance(decisions, Decisions)
    _ = decisions.taken  # refuses decisions without choices
    placed = place(prior, decisions)
    announce_compiling(progress)
    if placed.flat and engine != "ibis":  # which refuses every flat prior
        refuse_improper(decisions, placed)
    placed_noise = None if noise is None else place_noise(noise, decisions)
    if engine == "ibis":
        _refuse_beside("ibis", options=options or None, noise=noise, init=init, thin=None if thin == 1 else thin)
        machine: Engine = Sequential(decisions, placed, draws)
        warmup = len(decisions)  # its iterations are the decisions
    else:
        machine = make_engine(engine, decisions, placed, options or {}, placed_noise)
    settings = {
        "seed": used_seed, "draws": draws, "warmup": warmup, "chains": chains, "thin": thin, "options": dict(options or {}),
    }  # fmt: skip
    run = Run(
        machine, draws=draws, warmup=warmup, thin=thin, chains=chains, seed=used_seed,
        init=_starting_points(init, chains, len(decisions.names)),
    )  # fmt: skip

    keeper = None
    if file is not None:
        keeper = Checkpoint(
            file, fingerprint(decisions, placed, machine.name, settings, placed_noise), checkpoint_seconds
        )
    kept, stats, complete = drive(run, machine.name, threads, progress, keeper, resume)
    width = len(decisions.names)
    covariance = None if noise is None else _matrices(kept[:, :, width:])
    posterior = Posterior(
        kept[:, :, :width], decisions, prior, machine.name, stats, {**settings, "complete": complete}, noise, covariance
    )
    warn_unless_trusted(posterior.summary())
    return posterior


def make_engine(
    name: str, decisions: Decisions, placed: Placed, options: Mapping[str, Any], noise: PlacedNoise | None = None
) -> Engine:
    """The engine of that name, prepared for these decisions."""
    if noise is not None:
        refuse_learnt_size(placed, "a noise covariance")
        if name not in CORRELATED:
            raise ValueError(
                f"with a noise covariance there is no engine {name!r}; choose one of {', '.join(CORRELATED)}"
            )
        if options:
            raise ValueError(
                f"with a noise covariance there are no options, but {', '.join(options)} is given; leave it out"
            )
        return Wishart(decisions, placed, noise) if name == "da" else Conditioned(decisions, placed, noise)
    if name == "conditioned":
        raise ValueError(
            'the engine "conditioned" is for a noise covariance; give noise=us.FullNoise(base=...) as well'
        )
    if name not in ENGINES:
        raise ValueError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
    if name == "auto":
        name = widest(decisions, placed) if options else "blended"
    if name != "blended":
        return Augmented.build(name, decisions, placed, options_from(dict(options)))
    if options:
        raise ValueError(f'the engine "blended" has no options, but {", ".join(options)} is given; leave it out')
    return Blended.build(decisions, placed)


def _refuse_beside(engine: str, **given: Any) -> None:
    """What an engine without chains has no use for."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f'the engine "{engine}" has no use for {name}; leave it out')


def refuse_improper(decisions: Decisions, placed: Placed) -> None:
    """Under a flat prior, refuse decisions that leave a direction open, and name it."""
    opening = find_opening(decisions, placed.basis, placed.constants)
    if opening is None:
        return
    why = "every choice agrees with it, however far it is taken" if opening.tested else "no choice ever tests it"
    raise ValueError(
        f"the posterior under a flat prior is improper along the direction ({opening}): {why}; "
        "use us.Gaussian(variance), or decisions that bound this direction"
    )


def refuse_learnt_size(placed: Placed, beside: str) -> None:
    """Refuse a prior whose size is to be learnt where that is not done."""
    if placed.scale is not None:
        raise ValueError(
            f'the size of a prior is not learnt beside {beside}; give us.Gaussian(variance) instead of "learn"'
        )


def announce_compiling(progress: bool | None) -> None:
    """Say why nothing moves for a while the first time."""
    if progress is not False and not compiled_before():
        print("understudy: compiling its loops for this machine, once; this takes half a minute or so", file=sys.stderr)


def pick_seed(seed: int | None) -> int:
    """The seed that was given, or else one of our own."""
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed


def warn_unless_trusted(*summaries: Summary) -> None:
    """Tell the caller of a door of the first result that has not converged."""
    for summary in summaries:
        if not summary.trusted:
            warnings.warn(summary.verdict, NotConvergedWarning, stacklevel=3)
            return


def refuse_bad_counts(**counts: int | None) -> None:
    """Refuse what is not a whole number, or too small, by its name; None leaves threads and seed to us."""
    for what, number in counts.items():
        least = 0 if what in ("warmup", "seed") else 1
        if number is None and what in ("threads", "seed"):
            continue
        if not isinstance(number, int | np.integer) or number < least:
            raise ValueError(f"{what} must be a whole number, at least {least}; it is {number!r}")


def _starting_points(init: Any, chains: int, width: int) -> Floats | None:
    if init is None:
        return None
    given = np.asarray(init, dtype=np.float64)
    if given.shape not in ((width,), (chains, width)):
        raise ValueError(
            f"init has shape {given.shape}; give {width} numbers, or {chains} rows of {width}, one a chain"
        )
    if not np.isfinite(given).all():
        raise ValueError("init must be finite numbers")
    return given


def _matrices(lower: Floats) -> Floats:
    """(chain, draw, D, D) from the rows of lower triangles, (chain, draw, D (D + 1) / 2)."""
    size = (np.sqrt(8 * lower.shape[-1] + 1) - 1) / 2
    i, j = np.tril_indices(round(size))
    out = np.empty((*lower.shape[:2], round(size), round(size)))
    out[:, :, i, j] = out[:, :, j, i] = lower
    return out


def fingerprint(
    decisions: Decisions, placed: Placed, engine: str, settings: Mapping[str, Any], noise: PlacedNoise | None = None
) -> str:
    """What a checkpoint must agree with before it is continued."""
    told = None if noise is None else (noise.labels, noise.base, noise.scale, noise.df, noise.root.tolist())
    size = () if placed.scale is None else (f"size {placed.scale}".encode(),)
    return fingerprint_of(
        repr((engine, sorted(settings.items()), told)),
        decisions.rows, decisions.start, decisions.taken, placed.basis, placed.precision, placed.mean, *size,
    )  # fmt: skip
