"""Decisions in chunks, for passes over more of them than one wants to hold at a time.

A chunk is itself Decisions, and chunks are the same whoever reads them, so that sums over them are
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from revealed._types import Floats
from revealed.data.blocks import Block, Coefficients
from revealed.data.decisions import Decisions

# Decisions of a chunk in memory. Fewer cost overhead, more leave threads without work; sums over
# chunks, and so results in their last digits, depend on it.
CHUNK_SIZE = 8_192


class ChunkedDecisions(Coefficients, Protocol):
    """Decisions in chunks: `len` of them, with `count` decisions in all.

    Chunks may lie in memory or in a folder of files; samplers that make passes over the data
    (`samplers/laplace.py`) know only this.
    """

    @property
    def count(self) -> int:
        """How many decisions there are in all chunks."""
        ...

    def __len__(self) -> int:
        """How many chunks there are."""
        ...

    def load(self, i: int) -> tuple[Decisions, Floats]:
        """Chunk i, and how often each of its decisions counts."""
        ...


@dataclass(frozen=True, eq=False)
class InMemoryChunks:
    """Decisions in memory, cut into chunks of `CHUNK_SIZE`.

    weights: (T,) how often each decision counts, more than once where equal decisions were counted
    together.
    """

    decisions: Decisions
    weights: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) the names of the coefficients."""
        return self.decisions.names

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of coefficients."""
        return self.decisions.blocks

    @property
    def count(self) -> int:
        """How many decisions there are.

        The sum of the weights, which are whole numbers, not the number of different decisions.
        """
        # Floats, because kernels multiply by them; their sum is exact up to 2^53.
        return round(float(self.weights.sum()))

    def __len__(self) -> int:
        # Divided and rounded up.
        return -(-len(self.decisions) // CHUNK_SIZE)

    def load(self, i: int) -> tuple[Decisions, Floats]:
        """Chunk i, and how often each of its decisions counts."""
        # The last chunk may be shorter: a slice beyond the end is cut.
        part = slice(i * CHUNK_SIZE, (i + 1) * CHUNK_SIZE)
        return self.decisions[part], self.weights[part]
