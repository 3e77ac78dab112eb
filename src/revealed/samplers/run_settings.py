"""How a sampler is run: counts, seed, executor, checkpoint; checked in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed, as_seed_number, check_counts
from revealed.io.checkpoints import Checkpoint, fingerprint, refuse_bad_checkpoint
from revealed.samplers.base import Sampler
from revealed.samplers.executors import check_client
from revealed.samplers.run import Run, run_chains


@dataclass(frozen=True)
class RunSettings:
    """How chains are run, checked: arguments of `rv.fit`, under their names there.

    warmup: None leaves it to the sampler. threads: how many work at once, None for all cores.
    client: of a Dask cluster, or None.
    """

    draws: int
    warmup: int | None
    chains: int
    thin: int
    seed: int
    threads: int | None
    client: Any
    progress: bool | None
    checkpoint: Path | None
    resume: bool
    checkpoint_seconds: float

    @staticmethod
    def check(
        *,
        draws: int,
        warmup: int | None,
        chains: int,
        thin: int,
        seed: Seed,
        executor: Any,
        progress: bool | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
        checkpoint_seconds: float,
    ) -> RunSettings:
        """The settings; refuses counts that are not whole numbers, and files that cannot work."""
        # before anything is read or computed: a typing error should not cost minutes
        threads, client = _check_executor(executor)
        check_counts(draws=draws, warmup=warmup, chains=chains, thin=thin, seed=seed)
        file = refuse_bad_checkpoint(checkpoint, resume, checkpoint_seconds)
        return RunSettings(
            draws,
            warmup,
            chains,
            thin,
            as_seed_number(seed),
            threads,
            client,
            progress,
            file,
            resume,
            checkpoint_seconds,
        )

    def recorded(self, **more: Any) -> dict[str, Any]:
        """What a result records of how it was run; all that decides its draws.

        more: settings that only this kind of fit has.
        """
        # not threads and checkpoints, which leave the draws as they are
        return {
            "seed": self.seed,
            "draws": self.draws,
            "warmup": self.warmup,
            "chains": self.chains,
            "thin": self.thin,
            **more,
        }

    def with_warmup(self, default: int) -> RunSettings:
        """The settings with a warm-up of this length, unless the caller gave one."""
        return self if self.warmup is not None else replace(self, warmup=default)

    def run(self, sampler: Sampler, *parts: Any, init: Floats | None = None) -> tuple[Run, bool]:
        """Run the sampler's chains; returns them, and whether they were run to the end.

        parts: what a checkpoint must agree with, besides the sampler's name.
        """
        assert self.warmup is not None
        run = Run(
            sampler,
            draws=self.draws,
            warmup=self.warmup,
            thin=self.thin,
            chains=self.chains,
            seed=self.seed,
            init=init,
            # a cluster does the work of all chains, and each only needs somebody who waits
            threads=self.threads if self.client is None else self.chains,
        )
        file = None
        if self.checkpoint is not None:
            # hashing the data takes time, and only a checkpoint needs it
            own = fingerprint(sampler.name, *parts)
            file = Checkpoint(self.checkpoint, own, self.checkpoint_seconds)
        return run, run_chains(run, sampler.name, self.progress, file, self.resume)


def _check_executor(executor: Any) -> tuple[int | None, Any]:
    """Threads and Dask client, of which at most one is given."""
    if executor is None:
        return None, None
    if isinstance(executor, int | np.integer) and not isinstance(executor, bool):
        check_counts(executor=executor)
        return int(executor), None
    check_client(executor)
    return None, executor


def check_init(init: Any, chains: int, width: int) -> Floats | None:
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
