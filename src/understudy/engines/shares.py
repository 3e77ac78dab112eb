"""Players in shares: who makes what decisions, and who works on them, threads here or the workers of a Dask cluster.

How players are shared out depends on their decisions alone, and answers come back in the order of the shares: whoever does the work, and
however many do, sums over shares are the same to the last bit. Every task is a function of what is sent with it, so that one whose
worker was lost is done again by another.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.tally import tally
from understudy.kernels.crowd import Crowd

SHARE = 1 << 17  # decisions of a share, about; a pass over them takes a few hundredths of a second
KEPT = 16  # things that a cluster is asked to hold at a time


class Share(NamedTuple):
    """The decisions of some players, those of the first player first; owner (T,) counts the players from zero."""

    decisions: Decisions
    owner: Ints
    basis: Floats


def share_out(decisions: Decisions, owner: Ints, basis: Floats) -> tuple[list[Share], Ints]:
    """All players in shares of whole players; owner (T,) says whose each decision is. Returns also where shares of players begin, then N."""
    order = np.argsort(owner, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(owner))])
    number = first[:-1] // SHARE
    begin = np.concatenate([np.flatnonzero(np.diff(number, prepend=-1)), [len(number)]])
    shares = []
    for low, high in pairwise(begin):
        picked = order[first[low] : first[high]]
        shares.append(Share(decisions[picked], owner[picked] - low, basis))
    return shares, begin


def gather(decisions: Decisions, owner: Ints, basis: Floats) -> Crowd:
    """A share, ready for the kernels: equal decisions of a player counted, rivals' leads in the free coordinates."""
    counted = tally(decisions, owner=owner)
    offers, leads = counted.offers, np.asarray(counted.leads @ basis)
    kind = np.concatenate([[0], np.cumsum(np.bincount(counted.owner))])
    rival = offers.first[kind]
    return Crowd(
        columns=np.concatenate([leads[low:high].T.ravel() for low, high in pairwise(rival)]),
        rival=rival.astype(np.int64),
        kind=kind.astype(np.int64),
        first=np.concatenate([offers.first[a : b + 1] - offers.first[a] for a, b in pairwise(kind)]),
        copies=offers.copies,
        weight=offers.weight,
        most=np.array([max(1, np.diff(rival).max()), max(1, np.diff(offers.first).max()), max(1, counted.unique.sizes.max())]),
    )  # fmt: skip


class Team(Protocol):
    """Whoever works on the shares."""

    def each(self, function: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """function(crowd, *own) for every share in order; each of `given` holds one thing for every share."""
        ...

    def keep(self, whole: Floats, parts: Sequence[Floats]) -> Sequence[Any]:
        """The parts of an array that is not going to change, as things to be given to `each` again and again."""
        ...


class Here:
    """The work done by threads of this process."""

    def __init__(self, shares: Sequence[Share], threads: int | None = None) -> None:
        self.crowds = [gather(*share) for share in shares]
        threads = min(threads or os.cpu_count() or 1, len(shares))
        self._map: Callable[..., Any] = map if threads == 1 else ThreadPoolExecutor(threads).map

    def each(self, function: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """function(crowd, *own) for every share in order."""
        return list(self._map(function, self.crowds, *given))

    def keep(self, whole: Floats, parts: Sequence[Floats]) -> Sequence[Any]:
        """Nothing needs to be done."""
        return parts


class There:
    """The work done by the workers of a ``dask.distributed.Client``; shares stay with them, and numbers travel.

    The scheduler remembers how every share was made, and makes it again where a worker is lost with it.
    """

    def __init__(self, shares: Sequence[Share], client: Any) -> None:
        import dask

        self.client = client
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # they have to be sent
            self.crowds = [client.submit(gather, *share, pure=False) for share in shares]
        self._kept: deque[tuple[Floats, list[Any]]] = deque(maxlen=KEPT)

    def each(self, function: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """function(crowd, *own) for every share in order."""
        futures = self.client.map(_unlocked, [function] * len(self.crowds), self.crowds, *given, pure=False)
        return list(self.client.gather(futures))

    def keep(self, whole: Floats, parts: Sequence[Floats]) -> Sequence[Any]:
        """Sent once, and held by the cluster as long as `whole` is one of the last few that were."""
        for known, held in list(self._kept):
            if known is whole:
                return held
        held = [self.client.submit(_same, part, pure=False) for part in parts]
        self._kept.append((whole, held))
        return held


def _same(part: Floats) -> Floats:
    return part


def _unlocked(function: Callable[..., Any], crowd: Crowd, *given: Any) -> Any:
    """What came over the wire may be read only, and would be compiled for anew."""
    crowd = Crowd(*(_writeable(array) for array in crowd))
    return function(crowd, *(_writeable(thing) if isinstance(thing, np.ndarray) else thing for thing in given))


def _writeable(array: Any) -> Any:
    return array if array.flags.writeable else array.copy()
