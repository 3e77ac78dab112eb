"""Many controllers, each by itself: an independent fit for every one, mapped over threads or over a Dask cluster.

Nothing is shared between them, which is what tells `fit_each` from `fit_population`. The seed of the i-th controller (in the order of
first appearance) is made of (seed, i), so that its draws are the same whoever does the work, and whoever else is there.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from understudy._files import write_whole
from understudy.decisions import Decisions
from understudy.diagnostics import Summary
from understudy.engines.fit import (
    NotConvergedWarning,
    announce_compiling,
    fingerprint,
    fit,
    pick_seed,
    refuse_bad_counts,
)
from understudy.engines.workers import refuse_no_client
from understudy.groups import decided, whose
from understudy.posterior import Posterior, load
from understudy.priors import Gaussian, Prior, place

AHEAD = 4  # fits that wait for each thread that works
MARK = "each.json"  # the file that says what a folder of posteriors belongs to


@dataclass(frozen=True, eq=False, repr=False)
class Each(Mapping[Hashable, Posterior]):
    """A posterior for every controller, by its label: `found[label]`, `len(found)`, `for label in found`.

    found: those that were learnt. missing: the labels of those that were not, because the work was interrupted.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(400, 1))
    >>> best = (rows[:, 0] + rng.normal(size=400)).reshape(-1, 2).argmax(axis=1)
    >>> d = us.Decisions(rows, range(0, 401, 2), best, groups=np.repeat(["ann", "ben"], 100))
    >>> found = us.fit_each(d, prior=us.Gaussian(4.0))
    >>> list(found), found.untrusted
    (['ann', 'ben'], ())
    """

    found: Mapping[Hashable, Posterior]
    missing: tuple[Hashable, ...] = ()

    def __getitem__(self, label: Hashable) -> Posterior:
        if label not in self.found:
            late = "was not reached before the work was interrupted" if label in self.missing else "is not one of them"
            raise KeyError(f"there are posteriors of {len(self.found)} controllers, and {label!r} {late}")
        return self.found[label]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @cached_property
    def summaries(self) -> dict[Hashable, Summary]:
        """What the draws say of each controller, and how far to trust it."""
        return {label: posterior.summary() for label, posterior in self.found.items()}

    @property
    def untrusted(self) -> tuple[Hashable, ...]:
        """The labels of those whose draws have not converged."""
        return tuple(label for label, summary in self.summaries.items() if not summary.trusted)

    def to_frame(self) -> Any:
        """A pyarrow table, one row a coefficient of a controller: controller, coefficient, mean, sd, low, high, ess, r_hat, trusted."""
        import pyarrow as pa

        told = list(self.summaries.items())
        columns: dict[str, Any] = {
            "controller": [label for label, s in told for _ in s.names],
            "coefficient": [name for _, s in told for name in s.names],
        }
        for name in ("mean", "sd", "low", "high", "r_hat"):
            columns[name] = np.concatenate([getattr(s, name) for _, s in told])
        columns["ess"] = np.concatenate([np.minimum(s.ess_bulk, s.ess_tail) for _, s in told])
        columns["trusted"] = [s.trusted for _, s in told for _ in s.names]
        return pa.table(columns)

    def __repr__(self) -> str:
        late = f", {len(self.missing)} missing" if self.missing else ""
        return f"<Each: {len(self.found)} controllers, {len(self.untrusted)} not converged{late}>"


def fit_each(
    decisions: Any,
    by: Any = None,
    prior: Prior | None = None,
    engine: str = "auto",
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: int | None = 0,
    options: Mapping[str, Any] | None = None,
    *,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    cluster: Any = None,
) -> Each:
    """Learn every controller by itself: an independent ``fit`` of the decisions of each.

    Args:
        decisions: what was offered and chosen, with groups that say by whom; or a long table of them.
        by: who decided, as in ``fit_population``.
        prior, engine, draws, warmup, chains, options, thin: of every fit, as in ``fit``.
        seed: that of the i-th controller is made of (seed, i); None picks one.
        threads: how many controllers are learnt at once; all cores unless said.
        progress: show a bar; unless said, only on a terminal.
        checkpoint: a folder to which the posterior of each controller is saved as soon as it is there; resume=True goes on with those
            that are missing. Posteriors are NetCDF files that ``load`` reads.
        cluster: a ``dask.distributed.Client`` whose workers do the fits; the draws are the same to the last bit.

    Ctrl-C returns the controllers learnt so far. If some have not converged, one NotConvergedWarning says how many.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(400, 1))
    >>> best = (rows[:, 0] + rng.normal(size=400)).reshape(-1, 2).argmax(axis=1)
    >>> d = us.Decisions(rows, range(0, 401, 2), best, groups=np.repeat(["ann", "ben"], 100))
    >>> found = us.fit_each(d, prior=us.Gaussian(4.0))
    >>> found["ann"].mean > 0.0
    array([ True])
    """
    if cluster is not None:
        refuse_no_client(cluster)
    decisions, who = decided(decisions, by)
    refuse_bad_counts(draws=draws, warmup=warmup, chains=chains, thin=thin, threads=threads, seed=seed)
    prior = Gaussian(2500.0) if prior is None else prior
    used_seed = pick_seed(seed)
    settings = {
        "engine": engine,
        "draws": draws,
        "warmup": warmup,
        "chains": chains,
        "options": dict(options or {}),
        "thin": thin,
    }
    parts = whose(who)
    labels = tuple(parts)
    shelf = Shelf.open(
        checkpoint, resume, decisions, prior, {**settings, "seed": used_seed, "who": [str(x) for x in who.tolist()]}
    )
    found = {label: kept for i, label in enumerate(labels) if (kept := shelf.get(i)) is not None}
    left = [(i, label) for i, label in enumerate(labels) if label not in found]
    work = ((i, label, decisions[parts[label]], prior, seed_of(used_seed, i), settings) for i, label in left)
    announce_compiling(progress)
    with _Bar(progress, len(labels), len(found)) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        try:
            for i, label, posterior in _mapped(work, threads, cluster):
                shelf.put(i, posterior)
                found[label] = posterior
                bar.step()
        except KeyboardInterrupt:
            if not found:
                raise
    answer = Each(
        {label: found[label] for label in labels if label in found}, tuple(x for x in labels if x not in found)
    )
    faults = []
    if answer.missing:
        faults.append(f"the work was interrupted, and {len(answer.missing)} of {len(labels)} controllers are missing")
    if answer.untrusted:
        some = ", ".join(repr(label) for label in answer.untrusted[:3]) + (", ..." if len(answer.untrusted) > 3 else "")
        faults.append(f"{len(answer.untrusted)} of {len(answer)} controllers have not converged ({some}); run longer")
    if faults:
        warnings.warn("; also ".join(faults), NotConvergedWarning, stacklevel=2)
    return answer


def seed_of(seed: int, position: int) -> int:
    """The seed of one controller."""
    return int(np.random.SeedSequence([seed, position]).generate_state(1, np.uint64)[0])


Task = tuple[int, Hashable, Decisions, Prior, int, Mapping[str, Any]]


def one_fit(task: Task) -> tuple[int, Hashable, Posterior]:
    """The fit of one controller, by a single thread."""
    i, label, decisions, prior, seed, settings = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # on a cluster; here the caller has said so already
        try:
            return i, label, fit(decisions, prior, seed=seed, threads=1, progress=False, **settings)
        except ValueError as reason:
            raise ValueError(f"controller {label!r}: {reason}") from None


def _mapped(work: Iterator[Task], threads: int | None, cluster: Any) -> Iterator[tuple[int, Hashable, Posterior]]:
    """What came of every task, in order; so many at a time as keep everybody busy. On Ctrl-C, also of those that are done out of turn."""
    hands = (threads or os.cpu_count() or 1) if cluster is None else sum(cluster.nthreads().values())
    pool: Any = ThreadPoolExecutor(hands) if cluster is None else cluster
    extra = {} if cluster is None else {"pure": False}
    waiting: deque[Any] = deque()
    try:
        for task in work:
            waiting.append(pool.submit(one_fit, task, **extra))
            if len(waiting) >= AHEAD * hands:
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


class Shelf:
    """A folder of posteriors, or none."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @staticmethod
    def open(
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
        decisions: Decisions,
        prior: Prior,
        settings: dict[str, Any],
    ) -> Shelf:
        """Make the folder, or find it as it was left; refuses one that belongs to something else."""
        if checkpoint is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint folder to resume from")
            return Shelf(None)
        folder = Path(checkpoint)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"the checkpoint of many fits is a folder, and {folder} is a file")
        if not folder.exists():
            if resume:
                raise ValueError(f"there is no folder {folder} to resume from")
            if not folder.parent.is_dir():
                raise ValueError(f"there is no folder {folder.parent} to make {folder.name} in; make it first")
            folder.mkdir()
        own = fingerprint(decisions, place(prior, decisions), "each", settings)
        mark = folder / MARK
        if resume:
            try:
                known = json.loads(mark.read_text(encoding="utf-8"))["fingerprint"]
            except (OSError, ValueError, KeyError, TypeError):
                raise ValueError(f"{folder} is not a checkpoint folder of understudy, or it is damaged") from None
            if known != own:
                raise ValueError(
                    f"the checkpoint {folder} belongs to other decisions, prior or settings; run without resuming"
                )
        else:
            if any(folder.iterdir()):
                raise ValueError(
                    f"the checkpoint folder {folder} is not empty; give resume=True to go on, or another folder"
                )
            write_whole(mark, json.dumps({"fingerprint": own}).encode())
        return Shelf(folder)

    def get(self, i: int) -> Posterior | None:
        """The posterior at this place, if it is there and was run to its end."""
        if self.folder is None or not (file := self.folder / f"{i}.nc").exists():
            return None
        kept = load(file)
        return kept if kept.settings.get("complete") else None

    def put(self, i: int, posterior: Posterior) -> None:
        """Keep one."""
        if self.folder is not None:
            posterior.save(self.folder / f"{i}.nc")


class _Bar:
    """A bar of controllers."""

    def __init__(self, progress: bool | None, total: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        show = sys.stderr.isatty() if progress is None else progress
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not show)
        self._task = self._bar.add_task("controllers", total=total, completed=done)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self) -> None:
        """One more."""
        self._bar.advance(self._task)
