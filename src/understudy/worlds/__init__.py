"""Worlds: something that offers actions and says where they lead. Rules are pure functions of an explicit state.

>>> world = us.worlds.Tetris(rows=20)
>>> path = world.simulate(np.random.default_rng(1), [-3.0, -15.0, -1.0], 50)
>>> world.decisions(path)
<Decisions: 50 decisions of 9 to 34 actions, 3 coefficients, dense>
"""

from understudy.worlds import bus
from understudy.worlds.tetris import Tetris

__all__ = ["Tetris", "bus"]
