"""What samplers, many fits and commands say while they work: a bar, or lines now and then.

On a terminal there is a bar. Elsewhere, in a batch job or behind a pipe, the logger "revealed" says
after some seconds how much is done and how long the rest will take, and again at growing intervals.
`logging.getLogger("revealed").setLevel("WARNING")` switches that off, and so does progress=False.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from revealed.kernels._compile import is_compiled


@dataclass(frozen=True)
class LogIntervals:
    """Seconds before the first line, and between lines: each interval is the last times a factor.

    Quick fits stay silent, and a night's work fills no disk.
    """

    first: float = 10.0
    factor: float = 2.0
    longest: float = 600.0


INTERVALS = LogIntervals()


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
    interval: float = INTERVALS.first
    began: float | None = None
    next_line: float = 0.0

    def __call__(self, now_completed: float) -> None:
        """Note how much is completed, and say so where it is time."""
        now = self.clock()
        # the clock starts after the first step, which may have compiled
        if self.began is None:
            self.began, self.completed = now, now_completed
            self.next_line = now + self.interval
        if now < self.next_line:
            return
        self.interval = min(self.interval * INTERVALS.factor, INTERVALS.longest)
        self.next_line = now + self.interval
        passed = now - self.began
        if self.total is None:
            LOGGER.info("%s: %s so far", self.title, format_seconds(passed))
            return
        share = now_completed / self.total
        # the rest at the pace of this run; what an earlier one has done took none of its time
        pace = (now_completed - self.completed) / passed
        rest = (self.total - now_completed) / pace if pace > 0.0 else None
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
    """
    shown = sys.stderr.isatty() if show is None else show
    if not shown:
        yield (
            ProgressLog(title, total, completed, time.monotonic)
            if show is None
            else lambda now: None
        )
        return
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
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        bar.update(task, completed=completed)
        yield lambda now: bar.update(task, completed=now)


def announce_compiling(progress: bool | None) -> None:
    """Say on stderr why nothing moves for a while the first time.

    Not where a progress bar was switched off, as then nothing is to be said.
    """
    if progress is not False and not is_compiled():
        LOGGER.info("compiling its loops for this machine, once; this takes half a minute or so")
