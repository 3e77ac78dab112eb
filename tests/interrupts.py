"""Ctrl-C in the middle of a run, at a place of one's choosing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from understudy.engines import run as running


def interrupt(patch: pytest.MonkeyPatch, piece: float, *, turn: int | None = None, share: float = 1.0) -> None:
    """Runs whose pieces take about so many seconds are stopped at a turn, or when more than a share of them is done."""
    original = running.Run.go

    def stopped(run: running.Run, threads: int) -> Iterator[int]:
        for at, done in enumerate(original(run, threads)):
            if at == turn or done > share * run.total:
                raise KeyboardInterrupt
            yield done

    patch.setattr(running.Run, "go", stopped)
    patch.setattr(running, "PIECE_SECONDS", piece)
