"""What samplers, many fits and commands say while they work: a bar, or lines now and then.

On a terminal there is a bar. Elsewhere, in a batch job or behind a pipe, the logger "revealed" says
how long the work will take as soon as its pace is known, then at growing intervals how much is done
and how long the rest will take. Work of a few seconds is done in silence.
`logging.getLogger("revealed").setLevel("WARNING")` switches that off, and so does progress=False.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from revealed.kernels._compile import is_compiled

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass(frozen=True)
class ProgressRule:
    """What is said, and when: quick fits stay silent, and a night's work fills no disk.

    Attributes
    ----------
    first, factor, longest
        Seconds before the first line, and between lines: each interval is the last times a factor,
        up to the longest.
    measured
        Seconds whose pace tells how long it will all take: fewer are too few, as a warm-up begins
        slowly.
    unseen
        Seconds before a bar appears for what is mostly quick: sooner, it would only flash.
    memory
        Bytes that a fit takes without a word. Most machines have eight times as much.
    """

    first: float = 10.0
    factor: float = 2.0
    longest: float = 600.0
    measured: float = 1.0
    unseen: float = 1.0
    memory: float = 1e9


RULE = ProgressRule()
# Whether something is being shown: of work within other work only the outer is.
_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)


class _LastResortHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stderr where the program has set up no logging of its own.

    As Python's own last resort does for warnings; with handlers of the program, the record reaches
    these, and is not to be said twice.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message, unless somebody else does."""
        if not logging.getLogger().handlers:
            self.stream = sys.stderr  # the one of this moment: tests and notebooks replace it
            super().emit(record)


LOGGER = logging.getLogger("revealed")
if not LOGGER.handlers:
    _handler = _LastResortHandler()
    _handler.setFormatter(logging.Formatter("revealed: %(message)s"))
    LOGGER.addHandler(_handler)
    # where nobody has said otherwise: progress is information, not a warning
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)


@dataclass
class ProgressLog:
    """Says now and then how far some work is.

    A call sets how much is completed.
    """

    title: str
    total: float | None
    completed: float
    clock: Callable[[], float]
    interval: float = RULE.first
    began: float | None = None
    next_line: float = 0.0
    foretold: bool = False

    def __call__(self, now_completed: float) -> None:
        """Note how much is completed, and say so where it is time."""
        now = self.clock()
        # the clock starts after the first step, which may have compiled
        if self.began is None:
            self.began, self.completed = now, now_completed
            self.next_line = now + self.interval
        passed = now - self.began
        # the rest at the pace of this run; what an earlier one has done took none of its time
        pace = (now_completed - self.completed) / passed if passed > 0.0 else 0.0
        rest = (self.total - now_completed) / pace if self.total and pace > 0.0 else None
        if not self.foretold and rest is not None and passed >= RULE.measured:
            self.foretold = True
            if now < self.next_line < now + rest:
                LOGGER.info("%s: this will take about %s", self.title, format_seconds(rest))
        if now < self.next_line:
            return
        self.interval = min(self.interval * RULE.factor, RULE.longest)
        self.next_line = now + self.interval
        if self.total is None:
            LOGGER.info("%s: %s so far", self.title, format_seconds(passed))
            return
        share = now_completed / self.total
        remaining = "" if rest is None else f", about {format_seconds(rest)} more"
        LOGGER.info(
            "%s: %.0f %% after %s%s", self.title, 100.0 * share, format_seconds(passed), remaining
        )


def format_seconds(seconds: float) -> str:
    """A duration for people: "45 s", "12 min", "3.5 h"."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


@contextmanager
def progress_bar(
    title: str,
    *,
    total: float | None = None,
    completed: float = 0.0,
    show: bool | None = None,
    counted: bool = False,
    after: float = 0.0,
) -> Iterator[Callable[[float], None]]:
    """A bar on stderr that disappears at the end, or lines in the log where there is no terminal.

    Gives a function that sets how much is completed.

    Parameters
    ----------
    title
        What is being done.
    total
        How much there is to do, in any unit; None where nobody knows, for a moving bar with the
        time that has passed.
    completed
        How much of it was done before.
    show
        Whether there is a bar; default: only where stderr is a terminal, lines elsewhere. False:
        neither.
    counted
        Whether the bar says "3/10" instead of a percentage.
    after
        Seconds of work before the bar appears, for work that is mostly quick.
    """
    if show is False or _SHOWN.get():
        yield lambda now: None
        return
    outer = _SHOWN.set(True)
    try:
        if show or sys.stderr.isatty():
            with _bar(title, total, completed, counted, after) as update:
                yield update
        else:
            yield ProgressLog(title, total, completed, time.monotonic)
    finally:
        _SHOWN.reset(outer)


@contextmanager
def _bar(
    title: str, total: float | None, completed: float, counted: bool, after: float
) -> Iterator[Callable[[float], None]]:
    """As `progress_bar`, on a terminal."""
    began, bar = time.monotonic(), None

    def update(now: float) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - began >= after:
            bar = _start_bar(title, total, counted)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=now)

    update(completed)
    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()


def _start_bar(title: str, total: float | None, counted: bool) -> Progress:
    """A bar of one task on stderr."""
    # rich takes a tenth of a second to import, which those who show no bar need not wait for
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    # title and bar, then how much, then how long
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    if total is None:
        columns.append(TimeElapsedColumn())
    else:
        percentage = TextColumn("{task.percentage:>3.0f}%")
        columns += [MofNCompleteColumn() if counted else percentage, TimeRemainingColumn()]
    # stdout belongs to answers, which may be read by another program
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(title, total=total)
    bar.start()
    return bar


def announce_compiling(progress: bool | None) -> None:
    """Say on stderr why nothing moves for a while the first time.

    Not where a progress bar was switched off, as then nothing is to be said.
    """
    if progress is not False and not is_compiled():
        LOGGER.info("compiling its loops for this machine, once; this takes half a minute or so")


def announce_memory(needed: float, progress: bool | None) -> None:
    """Say before a fit how much memory it will take at most, where that is much."""
    if progress is not False and needed > RULE.memory:
        LOGGER.info("this fit will take up to %.1f GB of memory", needed / 1e9)
