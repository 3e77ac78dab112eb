"""Tetris as a Gymnasium environment, `revealed/Tetris-v0`.

An action is a placement, and a mask in `info` says which are legal:

    import gymnasium, revealed.environments.tetris.gym
    env = gymnasium.make("revealed/Tetris-v0", rows=20)
    observation, info = env.reset(seed=1)
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

The observation is the board and the piece. Action a is rotation a // columns at column
a % columns; one that is not legal changes nothing and earns `illegal`. The reward is the number
of rows removed. `info` has the mask, and height, holes and bumps of the board.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.environments.tetris.board import drop, has_ended
from revealed.environments.tetris.environment import Tetris
from revealed.environments.tetris.features import features
from revealed.environments.tetris.pieces import PIECES
from revealed.environments.tetris.text import as_text

try:
    import gymnasium
except ImportError:
    raise ImportError(
        'this environment needs gymnasium, which is not installed; pip install "revealed[gym]"'
    ) from None

ENVIRONMENT_ID = "revealed/Tetris-v0"


class TetrisEnv(gymnasium.Env[dict[str, Any], Any]):
    """Tetris in Gymnasium's interface.

    `rows`, `columns` and `actions` are those of `Tetris`; `illegal` is the reward of a placement
    that is not legal. `render_mode` is None, "ansi" (text) or "rgb_array" (pixels).
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        rows: int = 30,
        columns: int = 10,
        actions: str = "distinct",
        illegal: float = -1.0,
        render_mode: str | None = None,
    ) -> None:
        self.tetris = Tetris(rows, columns, actions)
        self.illegal = float(illegal)
        self.render_mode = render_mode
        # What Gymnasium needs to know: the observations, and how many actions there are.
        self.observation_space = gymnasium.spaces.Dict(
            {
                "board": gymnasium.spaces.Box(0, 1, (rows, columns), np.uint8),
                "piece": gymnasium.spaces.Discrete(len(PIECES)),
            }
        )
        self.action_space = gymnasium.spaces.Discrete(4 * columns)
        self.board, self.piece = self.tetris.empty(), 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a game with an empty board, or `options["board"]`; observation and info."""
        # seeds np_random, where the pieces come from
        super().reset(seed=seed)
        given = (options or {}).get("board")
        self.board = self.tetris.empty() if given is None else self.tetris.check_board(given)
        self.piece = int(self.np_random.integers(len(PIECES)))
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Place the piece; observation of the next one, reward, terminated, truncated, info."""
        columns = self.tetris.columns
        if not self.action_space.contains(action):
            raise ValueError(
                f"the action {action!r} is unknown; it must be from 0 to {4 * columns - 1}"
            )
        rotation, column = divmod(int(action), columns)
        # An illegal placement changes nothing, and costs.
        if not self._action_mask()[int(action)]:
            return self._observation(), self.illegal, False, False, self._info()
        # Place it, draw the next piece, and see whether that has a placement.
        landing = drop(self.board, self.piece, rotation, column)
        self.board = landing.board
        self.piece = int(self.np_random.integers(len(PIECES)))
        terminated = has_ended(self.board) or not self._action_mask().any()
        info = self._info() | {"cleared": landing.cleared}
        return self._observation(), float(landing.cleared), terminated, False, info

    def render(self) -> Any:
        """The board as text, or as pixels (16 x rows, 16 x columns, 3), by the render mode."""
        # text for terminals, pixels for films; both are Gymnasium's names
        if self.render_mode == "ansi":
            return as_text(self.board)
        if self.render_mode == "rgb_array":
            shade = np.where(self.board == 1, 0, 255).astype(np.uint8)
            return np.repeat(np.kron(shade, np.ones((16, 16), np.uint8))[:, :, None], 3, axis=2)
        return None

    def _observation(self) -> dict[str, Any]:
        return {"board": self.board.copy(), "piece": np.int64(self.piece)}

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._action_mask(), "features": features(self.board)}

    def _action_mask(self) -> Any:
        """(4 x columns,) 1 for each action that is legal now, as Gymnasium's `sample` takes it."""
        mask = np.zeros(4 * self.tetris.columns, np.int8)
        placements = self.tetris.placements(self.board, self.piece)
        mask[placements[:, 0] * self.tetris.columns + placements[:, 1]] = 1
        return mask


# Registering twice would warn, and a reload imports this again.
if ENVIRONMENT_ID not in gymnasium.registry:
    gymnasium.register(ENVIRONMENT_ID, entry_point="revealed.environments.tetris.gym:TetrisEnv")
