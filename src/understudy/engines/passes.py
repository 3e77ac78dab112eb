"""Passes over decisions in pieces: a function of every piece, summed in the order of the pieces.

The order is what makes a pass come out the same to the last bit, whoever does the work and however many do. Only the value goes out to
the pieces, and only K numbers, a K x K matrix or one number a proposal come back.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.tally import tally
from understudy.kernels.batch import add_log_likelihoods
from understudy.kernels.collapsed import Offers, make_room
from understudy.kernels.design import Design
from understudy.likelihood import weighted_slopes
from understudy.shards import Shards

BLOCK = 4096  # decisions that are looked at together: their rivals fit into a core's own memory
HELD = 1.5e9  # bytes of prepared pieces that are kept between passes; beyond, they are read again


class Prepared(NamedTuple):
    """Some decisions with equal ones counted: the different ones, and their rivals' leads."""

    unique: Decisions
    offers: Offers
    design: Design

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 2 * (self.design.columns.nbytes + 2 * self.design.data.nbytes) + 3 * self.offers.copies.nbytes


Piece = list[Prepared]


def prepare(decisions: Decisions, weights: Floats) -> Piece:
    """A piece in blocks, ready for passes; labels are left behind."""
    counted = tally(Decisions(decisions.rows, decisions.start, decisions.taken - decisions.start[:-1]), weights)
    unique, (begin, copies, weight) = counted.unique, counted.offers
    blocks = []
    for low in range(0, len(unique), BLOCK):
        high = min(low + BLOCK, len(unique))
        rivals = slice(begin[low], begin[high])
        offers = Offers(begin[low : high + 1] - begin[low], copies[rivals], weight[low:high])
        blocks.append(Prepared(unique[low:high], offers, Design.of(counted.leads[rivals])))
    return blocks


def heights(piece: Piece, values: Floats) -> Floats:
    """(S,) log P of a piece's choices at each of values (S, K)."""
    out = np.zeros(len(values))
    for block in piece:
        add_log_likelihoods(block.design, block.offers, make_room(block.offers), values, out)
    return out


def slopes(piece: Piece, v: Floats) -> Floats:
    """(K + 1, K + 1) of a piece's choices at v: log P, then its gradient, and minus its Hessian, in one array."""
    out = np.zeros((len(v) + 1, len(v) + 1))
    out[0, 0] = heights(piece, v[None])[0]
    for block in piece:
        gradient, information = weighted_slopes(block.unique, v, block.offers.weight)
        out[0, 1:] += gradient
        out[1:, 1:] += information
    return out


class Labourers(Protocol):
    """Whoever does the work of a pass."""

    def each(self, function: Callable[..., Floats], *given: Any, first: int = 0) -> Iterator[Floats]:
        """function(piece, *given) for every piece from `first` on, in order."""
        ...


class Threads:
    """The work done here, by threads; pieces are prepared once, if there is room to keep them."""

    def __init__(self, shards: Shards, workers: int | None = None) -> None:
        self.shards, self.workers = shards, workers or os.cpu_count() or 1
        self._kept: dict[int, Piece] = {}
        self._room = HELD

    def each(self, function: Callable[..., Floats], *given: Any, first: int = 0) -> Iterator[Floats]:
        """function(piece, *given) for every piece from `first` on, in order."""
        waiting: deque[Future[Floats]] = deque()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                for i in range(first, len(self.shards)):
                    waiting.append(pool.submit(lambda i: function(self._piece(i), *given), i))
                    if len(waiting) > self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _piece(self, i: int) -> Piece:
        if i in self._kept:
            return self._kept[i]
        piece = prepare(*self.shards.load(i))
        size = sum(block.size for block in piece)
        if size <= self._room:
            self._room -= size
            self._kept[i] = piece
        return piece
