"""What every command shares: exit codes, messages, progress bars, and answers for machines.

A command never ends with a traceback. What the user did wrong is one sentence and exit code 2;
a mistake of ours is exit code 1; Ctrl-C is 130, as shells have it.
"""

from __future__ import annotations

import errno
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from revealed.io.atomic import to_jsonable


class ExitCode(IntEnum):
    """What a command returns to the shell when it does not succeed."""

    INTERNAL_ERROR = 1
    BAD_INPUT = 2
    INTERRUPTED = 130  # 128 plus the number of the signal, as shells have it


# Options that most commands have, so that they read the same everywhere.
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")]
Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]


class CommandGroup(TyperGroup):
    """The group of all commands; errors end with one sentence and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed; `--lapse` by itself is `--lapse uniform`."""
        # typer has no options whose value may be left out
        read: list[str] = []
        for word, following in zip_longest(args, args[1:]):
            read.append(word)
            if word == "--lapse" and following not in ("uniform", "habit"):
                read.append("uniform")
        # what follows may be the next option, or the file
        found: list[str] = super().parse_args(ctx, read)
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed; Ctrl-C ends it quietly."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_message("interrupted; nothing was written")
            raise typer.Exit(ExitCode.INTERRUPTED) from None

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and turn whatever goes wrong into a sentence and an exit code.

        Under `python -X dev` errors are raised as they are, for whoever looks for their cause.
        """
        # Errors must arrive here, instead of in a box that typer draws.
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra) or 0
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
        except Exception as error:
            # A closed pipe, as in `revealed ... | head`, is nobody's mistake: Python handles it.
            if sys.flags.dev_mode or getattr(error, "errno", None) == errno.EPIPE:
                raise
            code = report_error(error)
        sys.exit(code)


def report_error(error: Exception) -> int:
    """Print one sentence on what is wrong; returns the exit code.

    Errors of usage, values and files are the user's to correct; all others are ours.
    """
    # typer's own errors, about commands and options it does not understand, format themselves.
    usage_error = getattr(error, "format_message", None)
    if usage_error is not None:
        print_message(_one_sentence(usage_error()))
        return ExitCode.BAD_INPUT
    # the package raises ValueError for what its user gave it
    if isinstance(error, ValueError | OSError):
        print_message(_one_sentence(str(error)))
        return ExitCode.BAD_INPUT
    # anything else is a mistake of ours, and says how to find it
    reason = (
        "there is not enough memory for this"
        if isinstance(error, MemoryError)
        else f"{type(error).__name__}: {error}"
    )
    print_message(
        _one_sentence(
            f"this is a mistake in revealed, not in what you gave it ({reason}); please report it"
        )
    )
    return ExitCode.INTERNAL_ERROR


def print_message(message: str) -> None:
    """Print a message for the person at the keyboard.

    It goes to stderr, so that stdout has only results.
    """
    print(f"revealed: {message}", file=sys.stderr)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, for machines.

    What is not a finite number becomes null, because JSON has no word for it.
    """
    print(json.dumps(to_jsonable(content), allow_nan=False))


def console() -> Console:
    """Where tables for people are printed.

    120 columns wide where there is no terminal, so that files do not depend on the window.
    """
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@contextmanager
def progress(description: str, no_progress: bool) -> Iterator[None]:
    """A moving bar on stderr while something takes its time.

    It is shown only on a terminal, and goes away at the end.
    """
    from revealed.samplers.progress import progress_bar

    with progress_bar(description, show=False if no_progress else None):
        yield


@contextmanager
def data_warnings_as_messages() -> Iterator[None]:
    """While data are read or fitted: what looks like a mistake is said in a sentence on stderr.

    That is a mistake in the data, or coefficients that the choices cannot inform.
    """
    from revealed.data.data_warning import DataWarning
    from revealed.models.informed import UninformedWarning

    shown = DataWarning, UninformedWarning
    with warnings.catch_warnings(record=True) as caught:
        for category in shown:
            warnings.simplefilter("always", category)
        yield
    for warning in caught:
        if issubclass(warning.category, shown):
            print_message(f"warning: {warning.message}")
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def check_seed(seed: int) -> int:
    """The seed, which must not be negative."""
    if seed < 0:
        raise ValueError(f"--seed must be a whole number, not negative; it is {seed}")
    return seed


def make_folder(folder: Path) -> None:
    """Make a folder to write into, if it does not exist."""
    try:
        # a folder that exists already is fine
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise ValueError(
            f"the folder {folder} cannot be made: {reason.strerror or reason}"
        ) from None


def _one_sentence(text: str) -> str:
    """A text on one line, without the full stop at its end."""
    return " ".join(text.split()).rstrip(".")
