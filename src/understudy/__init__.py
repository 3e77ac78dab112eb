"""Watch a controller decide, learn what it values, predict it, and stand in for it."""

from understudy.decisions import Block, Decisions
from understudy.priors import Flat, Gaussian

__all__ = ["Block", "Decisions", "Flat", "Gaussian"]
__version__ = "0.1.0"
