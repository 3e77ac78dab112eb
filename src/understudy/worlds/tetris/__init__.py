"""Tetris: pieces, board, features, the world, a player made of a posterior, and games that were recorded (paper, section 5.2).

`understudy.worlds.tetris.gym` is the Gymnasium environment; it is imported by those who have Gymnasium.
"""

from understudy.worlds.tetris.board import Landing, drop, has_ended
from understudy.worlds.tetris.features import FEATURES, Move, features
from understudy.worlds.tetris.games import Games, Placement, read_games, write_games
from understudy.worlds.tetris.pieces import PIECES
from understudy.worlds.tetris.player import by_one, by_vote, world_for
from understudy.worlds.tetris.view import as_text
from understudy.worlds.tetris.world import Path, Step, Tetris

__all__ = [
    "FEATURES",
    "PIECES",
    "Games",
    "Landing",
    "Move",
    "Path",
    "Placement",
    "Step",
    "Tetris",
    "as_text",
    "by_one",
    "by_vote",
    "drop",
    "features",
    "has_ended",
    "read_games",
    "world_for",
    "write_games",
]
