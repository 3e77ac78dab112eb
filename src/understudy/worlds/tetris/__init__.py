"""Tetris: the pieces, the board, its features, the world that plays, and games that were recorded (paper, section 5.2)."""

from understudy.worlds.tetris.board import Landing, drop, has_ended
from understudy.worlds.tetris.features import FEATURES, features
from understudy.worlds.tetris.games import Games, Placement, read_games
from understudy.worlds.tetris.pieces import PIECES
from understudy.worlds.tetris.world import Path, Tetris

__all__ = [
    "FEATURES",
    "PIECES",
    "Games",
    "Landing",
    "Path",
    "Placement",
    "Tetris",
    "drop",
    "features",
    "has_ended",
    "read_games",
]
