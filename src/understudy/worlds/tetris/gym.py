"""Tetris as a Gymnasium environment, `understudy/Tetris-v0`: an action is a placement, and a mask says which are legal.

    import gymnasium, understudy.worlds.tetris.gym
    env = gymnasium.make("understudy/Tetris-v0", rows=20)
    observation, info = env.reset(seed=1)
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)

The observation is the board and the piece. Action a is rotation a // columns at column a % columns; one that is not
legal changes nothing and earns `illegal`. The reward is the number of rows removed. `info` has the mask, and height,
holes and bumps of the board.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.worlds.tetris.board import drop, has_ended
from understudy.worlds.tetris.features import features
from understudy.worlds.tetris.pieces import PIECES
from understudy.worlds.tetris.view import as_text
from understudy.worlds.tetris.world import Tetris

try:
    import gymnasium
except ImportError:
    raise ImportError(
        'this environment needs gymnasium, which is not installed; pip install "understudy[gym]"'
    ) from None

NAME = "understudy/Tetris-v0"


class TetrisEnv(gymnasium.Env[dict[str, Any], Any]):
    """See the module; arguments are those of `Tetris`, and `illegal`, the reward of a placement that is not legal."""

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        rows: int = 30,
        columns: int = 10,
        actions: str = "distinct",
        illegal: float = -1.0,
        render_mode: str | None = None,
    ) -> None:
        self.world = Tetris(rows, columns, actions)
        self.illegal = float(illegal)
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Dict(
            {
                "board": gymnasium.spaces.Box(0, 1, (rows, columns), np.uint8),
                "piece": gymnasium.spaces.Discrete(len(PIECES)),
            }
        )
        self.action_space = gymnasium.spaces.Discrete(4 * columns)
        self.board, self.piece = self.world.empty(), 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """An empty board, or `options["board"]`, and a piece."""
        super().reset(seed=seed)
        given = (options or {}).get("board")
        self.board = self.world.empty() if given is None else self.world.checked(given)
        self.piece = int(self.np_random.integers(len(PIECES)))
        return self._seen(), self._known()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Place the piece; the next one appears."""
        if not self.action_space.contains(action):
            raise ValueError(f"the action {action!r} is unknown; it must be from 0 to {4 * self.world.columns - 1}")
        rotation, column = divmod(int(action), self.world.columns)
        if not self._mask()[int(action)]:
            return self._seen(), self.illegal, False, False, self._known()
        landing = drop(self.board, self.piece, rotation, column)
        self.board = landing.board
        self.piece = int(self.np_random.integers(len(PIECES)))
        ended = has_ended(self.board) or not self._mask().any()
        return self._seen(), float(landing.cleared), ended, False, self._known() | {"cleared": landing.cleared}

    def render(self) -> Any:
        """The board as text, or as a picture of (rows, columns, 3) magnified."""
        if self.render_mode == "ansi":
            return as_text(self.board)
        if self.render_mode == "rgb_array":
            shade = np.where(self.board == 1, 0, 255).astype(np.uint8)
            return np.repeat(np.kron(shade, np.ones((16, 16), np.uint8))[:, :, None], 3, axis=2)
        return None

    def _seen(self) -> dict[str, Any]:
        return {"board": self.board.copy(), "piece": np.int64(self.piece)}

    def _known(self) -> dict[str, Any]:
        return {"action_mask": self._mask(), "features": features(self.board)}

    def _mask(self) -> Any:
        mask = np.zeros(4 * self.world.columns, np.int8)
        where = self.world.placements(self.board, self.piece)
        mask[where[:, 0] * self.world.columns + where[:, 1]] = 1
        return mask


if NAME not in gymnasium.registry:
    gymnasium.register(NAME, entry_point="understudy.worlds.tetris.gym:TetrisEnv")
