"""What all functions that run a sampler have in common: their settings, and how chains are run."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revealed._types import Floats
from revealed._validation import Seed, as_seed_number, check_counts
from revealed.io.checkpoints import Checkpoint, fingerprint, refuse_bad_checkpoint
from revealed.kernels._compile import is_compiled
from revealed.results.summary import Summary
from revealed.samplers.base import Sampler
from revealed.samplers.run import Run, run_chains


class NotConvergedWarning(UserWarning):
    """The draws should not be relied on yet; the message says why.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     post = rv.fit(d, sampler="da", draws=100, warmup=0)
    >>> print(said[0].category.__name__)
    NotConvergedWarning
    """


@dataclass(frozen=True)
class RunSettings:
    """How chains are run, checked: the arguments that all fits share, under their names there."""

    draws: int
    warmup: int
    chains: int
    thin: int
    seed: int
    threads: int | None
    progress: bool | None
    checkpoint: Path | None
    resume: bool
    checkpoint_seconds: float

    @staticmethod
    def check(
        *,
        draws: int,
        warmup: int,
        chains: int,
        seed: Seed,
        threads: int | None,
        progress: bool | None,
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
        checkpoint_seconds: float,
        thin: int = 1,
    ) -> RunSettings:
        """The settings; refuses counts that are not whole numbers, and files that cannot work."""
        # before anything is read or computed: a typing error should not cost minutes
        check_counts(
            draws=draws, warmup=warmup, chains=chains, thin=thin, threads=threads, seed=seed
        )
        file = refuse_bad_checkpoint(checkpoint, resume, checkpoint_seconds)
        return RunSettings(
            draws,
            warmup,
            chains,
            thin,
            as_seed_number(seed),
            threads,
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

    def run(
        self,
        sampler: Sampler,
        *parts: Any,
        init: Floats | None = None,
        threads: int | None = None,
    ) -> tuple[Run, bool]:
        """Run the sampler's chains; returns them, and whether they were run to the end.

        parts: what a checkpoint must agree with, besides the sampler's name. threads: in place of
        those of the settings.
        """
        run = Run(
            sampler,
            draws=self.draws,
            warmup=self.warmup,
            thin=self.thin,
            chains=self.chains,
            seed=self.seed,
            init=init,
            threads=threads or self.threads,
        )
        file = None
        if self.checkpoint is not None:
            # hashing the data takes time, and only a checkpoint needs it
            own = fingerprint(sampler.name, *parts)
            file = Checkpoint(self.checkpoint, own, self.checkpoint_seconds)
        return run, run_chains(run, sampler.name, self.progress, file, self.resume)


def announce_compiling(progress: bool | None) -> None:
    """Say on stderr why nothing moves for a while the first time.

    Not where a progress bar was switched off, as then nothing is to be said.
    """
    if progress is not False and not is_compiled():
        print(
            "revealed: compiling its loops for this machine, once; this takes half a minute or so",
            file=sys.stderr,
        )


def warn_unless_converged(*summaries: Summary) -> None:
    """Warn of the first result that has not converged.

    To be called by the public function itself, so that the warning points at that one's caller.
    """
    # one warning is enough: the first problem is usually the cause of the others
    for summary in summaries:
        if not summary.converged:
            warnings.warn(summary.message, NotConvergedWarning, stacklevel=3)
            return
