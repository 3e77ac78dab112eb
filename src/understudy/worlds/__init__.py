"""Worlds: something that offers actions and says where they lead. Rules are pure functions of an explicit state."""

from understudy.worlds import bus
from understudy.worlds.tetris import Tetris

__all__ = ["Tetris", "bus"]
