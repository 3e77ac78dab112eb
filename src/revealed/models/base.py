"""What every model is: parts that were assumed, and parameters that are to be inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """Something unknown that samplers draw, and how its numbers are laid out.

    name: as in ``draws[name]``. dims: its dimensions after chain and draw; a number has none.
    coords: the labels along each dimension.
    """

    name: str
    dims: tuple[str, ...] = ()
    coords: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many numbers there are along each dimension."""
        return tuple(len(self.coords[dim]) for dim in self.dims)
