"""`fit_separately`: an independent fit for every controller, by threads or on a Dask cluster.

Nothing is shared between controllers, which is the difference to `fit_population`. The seed of the
i-th controller (in the order of first appearance) is made of (seed, i), so that its draws are the
same whoever does the work, and whoever else is there.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from revealed._validation import Seed, as_seed_number, check_counts
from revealed.api.choice import decision_parts, fit
from revealed.api.run_settings import NotConvergedWarning, announce_compiling
from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group
from revealed.io.checkpoints import ResultFolder, fingerprint
from revealed.io.dataframes import with_group_labels
from revealed.models.priors import Normal, Prior, resolve_prior
from revealed.results.posterior import Posterior
from revealed.results.summary import Summary
from revealed.samplers.executors import EXECUTORS, check_client
from revealed.samplers.progress import progress_bar


@dataclass(frozen=True, eq=False, repr=False)
class SeparatePosteriors(Mapping[Hashable, Posterior]):
    """A posterior for every controller, by its label.

    ``found[label]``, ``len(found)`` and ``for label in found`` work as with any mapping.

    Parameters
    ----------
    found
        The posteriors, by label.
    not_fitted
        The labels of those that are missing, because the work was interrupted.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(400, 1))
    >>> best = (rows[:, 0] + rng.normal(size=400)).reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 401, 2), best, groups=np.repeat(["ann", "ben"], 100))
    >>> found = rv.fit_separately(d, prior=rv.Normal(2.0))
    >>> list(found), found.not_converged
    (['ann', 'ben'], ())
    """

    found: Mapping[Hashable, Posterior]
    not_fitted: tuple[Hashable, ...] = ()

    def __getitem__(self, label: Hashable) -> Posterior:
        if label not in self.found:
            why = (
                "was not reached before the work was interrupted"
                if label in self.not_fitted
                else "is not one of them"
            )
            raise KeyError(
                f"there are posteriors of {len(self.found)} controllers, and {label!r} {why}"
            )
        return self.found[label]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @cached_property
    def summaries(self) -> dict[Hashable, Summary]:
        """The summary of each controller's draws, by label."""
        return {label: posterior.summary() for label, posterior in self.found.items()}

    @property
    def not_converged(self) -> tuple[Hashable, ...]:
        """The labels of those whose draws have not converged.

        Each has a message of its own in `summaries`.
        """
        return tuple(label for label, summary in self.summaries.items() if not summary.converged)

    def to_dataframe(self) -> Any:
        """A pyarrow table, one row a coefficient of a controller.

        Columns: controller, coefficient, mean, sd, low, high, r_hat, ess, converged.
        """
        import pyarrow as pa

        # one row for each coefficient of each controller, long as databases like it
        summaries = list(self.summaries.items())
        columns: dict[str, Any] = {
            "controller": [label for label, s in summaries for _ in s.names],
            "coefficient": [name for _, s in summaries for name in s.names],
        }
        for name in ("mean", "sd", "low", "high", "r_hat"):
            columns[name] = np.concatenate([getattr(s, name) for _, s in summaries])
        columns["ess"] = np.concatenate([np.minimum(s.ess_bulk, s.ess_tail) for _, s in summaries])
        columns["converged"] = [s.converged for _, s in summaries for _ in s.names]
        return pa.table(columns)

    def __repr__(self) -> str:
        missing = f", {len(self.not_fitted)} not fitted" if self.not_fitted else ""
        return (
            f"<SeparatePosteriors: {len(self.found)} controllers, "
            f"{len(self.not_converged)} not converged{missing}>"
        )


def fit_separately(
    decisions: Any,
    groups: Any = None,
    prior: Prior | None = None,
    sampler: str = "auto",
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    options: Mapping[str, Any] | None = None,
    *,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    cluster: Any = None,
) -> SeparatePosteriors:
    """Infer every controller by itself: an independent ``fit`` of the decisions of each.

    Ctrl-C returns the controllers fitted so far. If some have not converged, one
    NotConvergedWarning says how many.

    Parameters
    ----------
    decisions
        What was offered and chosen, with groups that say by whom; or a long table of them.
    groups
        Who decided, as in ``fit_population``.
    prior, sampler, draws, warmup, chains, options, thin
        Of every fit, as in ``fit``.
    seed
        That of the i-th controller is made of (seed, i); None picks one.
    threads
        How many controllers are fitted at once; default: all cores.
    progress
        Whether there is a progress bar; default: only on a terminal.
    checkpoint
        A folder to which the posterior of each controller is saved as soon as it is there, as a
        NetCDF file that ``load`` reads.
    resume
        Go on with the controllers that are missing in the folder.
    cluster
        A ``dask.distributed.Client`` whose workers do the fits; the draws are the same to the last
        bit.

    Returns
    -------
    SeparatePosteriors
        A mapping from labels to posteriors.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(400, 1))
    >>> best = (rows[:, 0] + rng.normal(size=400)).reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 401, 2), best, groups=np.repeat(["ann", "ben"], 100))
    >>> found = rv.fit_separately(d, prior=rv.Normal(2.0))
    >>> found["ann"].mean > 0.0
    array([ True])
    """
    if cluster is not None:
        check_client(cluster)
    # check what was given
    decisions, group_of_decision = with_group_labels(decisions, groups)
    check_counts(draws=draws, warmup=warmup, chains=chains, thin=thin, threads=threads, seed=seed)
    prior = Normal(50.0) if prior is None else prior
    used_seed = as_seed_number(seed)
    # every fit has the same settings, and a seed of its own
    settings = {
        "sampler": sampler,
        "draws": draws,
        "warmup": warmup,
        "chains": chains,
        "options": dict(options or {}),
        "thin": thin,
    }
    # controllers are numbered in the order in which they first appear
    positions = decisions_by_group(group_of_decision)
    labels = tuple(positions)

    def make_fingerprint() -> str:
        return fingerprint(
            "separate",
            {**settings, "seed": used_seed},
            [str(label) for label in group_of_decision.tolist()],
            *decision_parts(decisions, resolve_prior(prior, decisions)),
        )

    # what an earlier run has finished need not be done again
    folder = ResultFolder.open(checkpoint, resume, make_fingerprint, _load_complete)
    found = {label: kept for i, label in enumerate(labels) if (kept := folder.get(i)) is not None}
    tasks = (
        FitTask(i, label, decisions[positions[label]], prior, seed_for(used_seed, i), settings)
        for i, label in enumerate(labels)
        if label not in found
    )
    announce_compiling(progress)
    bar = progress_bar(
        "controllers", total=len(labels), completed=len(found), show=progress, counted=True
    )
    # one warning at the end stands for those of all fits
    with bar as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        try:
            for i, label, posterior in _fit_all(tasks, threads, cluster):
                folder.put(i, posterior)
                found[label] = posterior
                update(len(found))
        except KeyboardInterrupt:
            if not found:
                raise
    # in the order of the labels, not of the work
    result = SeparatePosteriors(
        {label: found[label] for label in labels if label in found},
        tuple(label for label in labels if label not in found),
    )
    problems = _problems(result, len(labels))
    if problems:
        warnings.warn("; also ".join(problems), NotConvergedWarning, stacklevel=2)
    return result


def _load_complete(file: Path) -> Posterior | None:
    """The posterior of a file; None where its run was interrupted.

    Such a one is run again from the beginning.
    """
    posterior = Posterior.load(file)
    return posterior if posterior.settings.get("complete") else None


def _problems(result: SeparatePosteriors, total: int) -> list[str]:
    """What is wrong with the posteriors as a whole, a sentence each."""
    problems = []
    if result.not_fitted:
        problems.append(
            f"the work was interrupted, and {len(result.not_fitted)} of {total} controllers are "
            "missing"
        )
    failed = result.not_converged
    if failed:
        some = ", ".join(repr(label) for label in failed[:3]) + (", ..." if len(failed) > 3 else "")
        problems.append(
            f"{len(failed)} of {len(result)} controllers have not converged ({some}); run longer"
        )
    return problems


def seed_for(seed: int, position: int) -> int:
    """The seed of the controller at this position.

    Made of both numbers, so that controllers are independent of one another.
    """
    return int(np.random.SeedSequence([seed, position]).generate_state(1, np.uint64)[0])


class FitTask(NamedTuple):
    """The fit of one controller: its position and label, what it decided, and how it is fitted."""

    position: int
    label: Hashable
    decisions: Decisions
    prior: Prior
    seed: int
    settings: Mapping[str, Any]


def fit_one(task: FitTask) -> tuple[int, Hashable, Posterior]:
    """The position, label and posterior of one controller, fitted by a single thread."""
    with warnings.catch_warnings():
        # on a cluster; in threads the caller has said so already
        warnings.simplefilter("ignore", NotConvergedWarning)
        try:
            posterior = fit(
                task.decisions,
                task.prior,
                seed=task.seed,
                threads=1,
                progress=False,
                **task.settings,
            )
        except ValueError as reason:
            raise ValueError(f"controller {task.label!r}: {reason}") from None
    return task.position, task.label, posterior


def _fit_all(
    tasks: Iterator[FitTask], threads: int | None, cluster: Any
) -> Iterator[tuple[int, Hashable, Posterior]]:
    """The results of all tasks in order, with so many under way as keep all workers busy.

    On Ctrl-C also of those that were finished before their turn.
    """
    workers = (
        (threads or os.cpu_count() or 1) if cluster is None else sum(cluster.nthreads().values())
    )
    # both hand out futures; Dask must not take two tasks for the same because they look alike
    pool: Any = ThreadPoolExecutor(workers) if cluster is None else cluster
    extra = {} if cluster is None else {"pure": False}
    waiting: deque[Any] = deque()
    try:
        # decisions are cut out only when their task is submitted, which bounds the memory
        for task in tasks:
            waiting.append(pool.submit(fit_one, task, **extra))
            if len(waiting) >= EXECUTORS.queued_per_thread * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except KeyboardInterrupt:
        for future in waiting:
            if not future.cancelled() and future.done():
                yield future.result()
        raise
    finally:
        for future in waiting:
            future.cancel()
        if cluster is None:
            pool.shutdown()
