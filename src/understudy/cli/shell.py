"""What every command shares: sentences instead of tracebacks, exit codes, progress, and answers for machines."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from understudy._files import plain

BAD_INPUT, OUR_MISTAKE, INTERRUPTED = 2, 1, 130

Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")]
Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]


class Doors(TyperGroup):
    """The group of commands. Bad input ends with exit code 2 and one sentence; nothing ends with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed; Ctrl-C ends it quietly."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted; nothing was written")
            raise typer.Exit(INTERRUPTED) from None

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and turn whatever goes wrong into a sentence and an exit code."""
        extra["standalone_mode"] = False  # so that errors arrive here instead of in a box of their own
        try:
            code = super().main(*args, **extra) or 0
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception as error:
            if sys.flags.dev_mode or getattr(error, "errno", None) == errno.EPIPE:
                raise
            code = explain(error)
        sys.exit(code)


def explain(error: Exception) -> int:
    """Say in one sentence what is wrong, and give the exit code."""
    usage = getattr(error, "format_message", None)  # how typer tells of a command it does not understand
    if usage is not None:
        say(_sentence(usage()))
        return BAD_INPUT
    if isinstance(error, ValueError | OSError):
        say(_sentence(str(error)))
        return BAD_INPUT
    what = (
        "there is not enough memory for this" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
    )
    say(_sentence(f"this is a mistake in understudy, not in what you gave it ({what}); please report it"))
    return OUR_MISTAKE


def say(message: str) -> None:
    """A message for the person at the keyboard, on stderr."""
    print(f"understudy: {message}", file=sys.stderr)


def answer(facts: Mapping[str, Any]) -> None:
    """One JSON object on stdout; what is not a finite number is null."""
    print(json.dumps(plain(facts), allow_nan=False))


def console() -> Console:
    """Where tables for people are printed."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@contextmanager
def working(doing: str, no_progress: bool) -> Iterator[None]:
    """A moving bar on stderr while something takes its time; only on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    quiet = no_progress or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
        bar.add_task(doing, total=None)
        yield


def seed_from(seed: int) -> int:
    """The seed, checked."""
    if seed < 0:
        raise ValueError(f"--seed must be a whole number, not negative; it is {seed}")
    return seed


def make_folder(folder: Path) -> None:
    """Make a folder to write into, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise ValueError(f"the folder {folder} cannot be made: {reason.strerror or reason}") from None


def _sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
