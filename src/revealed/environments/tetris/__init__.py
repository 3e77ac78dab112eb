"""Tetris, as in the paper's section 5.2.

The modules are, from the bottom up: pieces and their rotations, the board, features of a board,
the environment, a player made of a posterior, and recorded games. `text` and `gif` show boards.
`revealed.environments.tetris.gym` is the Gymnasium environment; import it where Gymnasium is
installed.
"""

from revealed.environments.tetris.board import Landing, drop, has_ended
from revealed.environments.tetris.environment import Tetris
from revealed.environments.tetris.features import PAPER_FEATURES, Move, features
from revealed.environments.tetris.pieces import PIECES
from revealed.environments.tetris.player import (
    sampling_policy,
    tetris_with_features,
    voting_policy,
)
from revealed.environments.tetris.recordings import Games, Placement, read_games, write_games
from revealed.environments.tetris.rollout import Rollout, Step
from revealed.environments.tetris.text import as_text

__all__ = [
    "PAPER_FEATURES",
    "PIECES",
    "Games",
    "Landing",
    "Move",
    "Placement",
    "Rollout",
    "Step",
    "Tetris",
    "as_text",
    "drop",
    "features",
    "has_ended",
    "read_games",
    "sampling_policy",
    "tetris_with_features",
    "voting_policy",
    "write_games",
]
