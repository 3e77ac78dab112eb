"""Studies of the paper with fewer draws and coarse images, for the tests that run every time."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

import revealed
from revealed import api
from revealed.replication import tetris_mixing

FEW_DRAWS = 200


def limit_draws(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let no chain of a study be longer than that: its pages are as long, its numbers rougher.

    Images have few pixels: most of the time of a short study would go into drawing them.
    """

    def fit(*words: Any, **more: Any) -> Any:
        lengths = {name: min(more.get(name, most), most) for name in ("draws", "warmup")}
        return revealed.fit(*words, **{"chains": 2} | more | lengths)

    save = Figure.savefig

    def savefig(figure: Figure, *words: Any, **more: Any) -> None:
        save(figure, *words, **more, dpi=20)

    monkeypatch.setattr(api, "fit", fit)
    monkeypatch.setattr(Figure, "savefig", savefig)
    # autocorrelations are shown up to lags that such chains have
    lags = tetris_mixing.LAGS
    monkeypatch.setattr(tetris_mixing, "LAGS", lags[lags < most])
