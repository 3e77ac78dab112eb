"""Fits in a process of their own, which is killed where one does not end.

A compiled loop that never ends would hold up the whole suite. One process makes many fits, so that
it starts once; after a fit that did not end there is a new one.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

# Seconds of a fit, which may have to compile first: far more than any needs on a slow machine.
LIMIT = 1200.0
# What stands in for a fit that never ends, in the test of this very module.
ENDLESS = "a fit without an end"


@dataclass(frozen=True)
class Outcome:
    """What came of a fit: its draws, or the sentence it was refused with; and its warnings.

    warned: the names of the warnings' classes, sorted, each once.
    """

    draws: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    warned: tuple[str, ...] = ()
    sampler: str = ""


class FitProcess:
    """A process that fits what it is given, one thing after the other."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def fit(self, data: Any, model: Any, limit: float = LIMIT, **settings: Any) -> Outcome:
        """The outcome of `rv.fit`; the test fails if there is none within the limit."""
        self.connection.send((data, model, settings))
        if not self.connection.poll(limit):
            self.close()
            pytest.fail(f"the fit has not ended after {limit:g} seconds, and was killed")
        try:
            outcome = self.connection.recv()
        except EOFError:
            self.close()
            pytest.fail(f"the process of the fit has died: exit code {self.process.exitcode}")
        if isinstance(outcome, str):
            pytest.fail(f"the fit was neither made nor refused:\n{outcome}")
        assert isinstance(outcome, Outcome)
        return outcome

    @property
    def alive(self) -> bool:
        """Whether it can take another fit."""
        return self.process.is_alive()

    def close(self) -> None:
        """Kill it, whatever it does."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def serve(connection: Any) -> None:
    """Fit what comes through the connection until it is closed."""
    while True:
        try:
            data, model, settings = connection.recv()
        except EOFError:
            return
        if isinstance(data, str) and data == ENDLESS:
            while True:
                time.sleep(1.0)
        connection.send(attempt(data, model, settings))


def attempt(data: Any, model: Any, settings: dict[str, Any]) -> Outcome | str:
    """The outcome of one fit, or the traceback of an error that is no refusal."""
    import revealed as rv

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            post = rv.fit(data, model, progress=False, **settings)
        except ValueError as refusal:
            return Outcome(refused=str(refusal))
        except BaseException:
            return traceback.format_exc()
    warned = tuple(sorted({each.category.__name__ for each in caught}))
    draws = {name: np.asarray(each) for name, each in post.draws.items()}
    return Outcome(draws, warned=warned, sampler=post.sampler)
