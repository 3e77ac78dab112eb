"""Environments: something that offers actions and says where they lead.

Rules are pure functions of an explicit state, so that a recorded game can be replayed exactly.
`Tetris` is the game of the paper's section 5.2, `GridWorld` a map of squares with walls, and
`bus_engine` the replacement of bus engines (Rust 1987).

>>> tetris = rv.environments.Tetris(rows=20)
>>> rollout = tetris.simulate(np.random.default_rng(1), [-3.0, -15.0, -1.0], 50)
>>> tetris.decisions(rollout)
<Decisions: 50 decisions of 9 to 34 actions, 3 coefficients, dense>
"""

from revealed.environments import bus_engine
from revealed.environments.gridworld import GridWorld
from revealed.environments.tetris import Tetris

__all__ = ["GridWorld", "Tetris", "bus_engine"]
