"""Ctrl-C in the middle of a run, at a place of one's choosing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from revealed.samplers import run as running


def interrupt(
    patch: pytest.MonkeyPatch, chunk: float, *, step: int | None = None, share: float = 1.0
) -> None:
    """Stop runs whose chunks take about so many seconds.

    They are stopped at this step; or when more than a share of their iterations is done, and every
    chain has a draw, since chains do not advance by the same number of iterations.
    """
    original = running.Run.iterate

    def stopped(run: running.Run) -> Iterator[int]:
        for i, done in enumerate(original(run)):
            drawn = all(chain.draws_done for chain in run.chains)
            if i == step or (drawn and done > share * run.total):
                raise KeyboardInterrupt
            yield done

    patch.setattr(running.Run, "iterate", stopped)
    patch.setattr(running, "CHUNK_SECONDS", chunk)
