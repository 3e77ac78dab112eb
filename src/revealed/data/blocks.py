"""Blocks of coefficients, and whatever has coefficients in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Block:
    """A run of coefficients that belong together.

    Parameters
    ----------
    name
        What the coefficients are: "value", "action reward".
    size
        How many coefficients there are.
    sum_to_zero
        Whether only differences of the coefficients matter, so that they are made to sum to zero.

    Examples
    --------
    >>> d = rv.Decisions(np.eye(3), [0, 3], [1], blocks=[rv.Block("cities", 3, sum_to_zero=True)])
    >>> post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)))
    >>> post.mean().sum().round(9) + 0.0  # only differences matter
    np.float64(0.0)
    """

    name: str
    size: int
    sum_to_zero: bool = False


class Coefficients(Protocol):
    """Whatever has named coefficients in blocks: decisions, or chunks of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) the names of the coefficients."""
        ...

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of coefficients, in order.

        Their sizes add up to K.
        """
        ...
