"""What samplers, many fits and commands show on the terminal while they work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from revealed.kernels._compile import is_compiled


@contextmanager
def progress_bar(
    title: str,
    *,
    total: float | None = None,
    completed: float = 0.0,
    show: bool | None = None,
    counted: bool = False,
) -> Iterator[Callable[[float], None]]:
    """A bar on stderr that disappears at the end; gives a function that sets how much is completed.

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
        Whether there is a bar; default: only where stderr is a terminal.
    counted
        Whether the bar says "3/10" instead of a percentage.
    """
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
    shown = sys.stderr.isatty() if show is None else show
    # stdout belongs to answers, which may be read by another program
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task(title, total=total)
        bar.update(task, completed=completed)
        yield lambda now: bar.update(task, completed=now)


def announce_compiling(progress: bool | None) -> None:
    """Say on stderr why nothing moves for a while the first time.

    Not where a progress bar was switched off, as then nothing is to be said.
    """
    if progress is not False and not is_compiled():
        print(
            "revealed: compiling its loops for this machine, once; this takes half a minute or so",
            file=sys.stderr,
        )
