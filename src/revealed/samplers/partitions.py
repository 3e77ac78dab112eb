"""Groups in partitions: who makes what decisions, and who works on them.

How groups are divided depends on their decisions alone, and answers come back in the order of the
partitions: whoever does the work, threads of this process or the workers of a Dask cluster, and
however many do, sums over partitions are the same to the last bit. Every task is a function of what
is sent with it, so that one whose worker was lost is done again by another.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate
from revealed.kernels.group_values import GroupedDecisions
from revealed.kernels.noise import NORMAL, AnyNoise, NoiseArguments
from revealed.samplers.executors import submit_parts

# About how many decisions a partition has: a pass over them takes a few hundredths of a second.
# Fewer spend their time on sending tasks, more leave workers idle. Changing it changes draws.
DECISIONS_PER_PARTITION = 1 << 17
# Arrays that a cluster is asked to hold at a time; each chain has two of them.
MAX_CACHED_ARRAYS = 16


class Partition(NamedTuple):
    """The decisions of some groups, those of the first group first.

    group (T,) counts the groups from zero. basis (K, D): from free coordinates to coefficients.
    noise: under which they chose.
    """

    decisions: Decisions
    group: Ints
    basis: Floats
    noise: NoiseArguments = NORMAL


def make_partitions(
    decisions: Decisions, group: Ints, basis: Floats, noise: NoiseArguments = NORMAL
) -> tuple[list[Partition], Ints]:
    """All groups in partitions of whole groups, and where each partition's groups begin, then N.

    group (T,) says whose each decision is, counted from zero.
    """
    # decisions group by group, in their own order within each
    order = np.argsort(group, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(group))])
    # a group belongs where its first decision falls
    number = first[:-1] // DECISIONS_PER_PARTITION
    start = np.concatenate([np.flatnonzero(np.diff(number, prepend=-1)), [len(number)]])
    partitions = []
    for low, high in pairwise(start):
        picked = order[first[low] : first[high]]
        partitions.append(Partition(decisions[picked], group[picked] - low, basis, noise))
    return partitions, start


def prepare_partition(
    decisions: Decisions,
    group: Ints,
    basis: Floats,
    noise: AnyNoise = NORMAL,
    weights: Floats | None = None,
) -> GroupedDecisions:
    """A partition, ready for the kernels.

    Equal decisions of a group are counted once; rows of rivals less the chosen ones are in the
    free coordinates. weights: (T,) how often each decision counts, default: once.
    """
    # the likelihood is evaluated once for equal decisions of a group
    counted = deduplicate(decisions, weights, group)
    rivals, rows = counted.rival_index, np.asarray(counted.rival_minus_chosen @ basis)
    decision_start = np.concatenate([[0], np.cumsum(np.bincount(counted.group))])
    rival_start = rivals.start[decision_start]
    return GroupedDecisions(
        columns=np.concatenate([rows[low:high].T.ravel() for low, high in pairwise(rival_start)]),
        rival_start=rival_start.astype(np.int64),
        decision_start=decision_start.astype(np.int64),
        start=np.concatenate(
            [rivals.start[a : b + 1] - rivals.start[a] for a, b in pairwise(decision_start)]
        ),
        multiplicity=rivals.multiplicity,
        weight=rivals.weight,
        max_rivals=max(1, int(np.diff(rival_start).max())),
        max_distinct_rivals=max(1, int(np.diff(rivals.start).max())),
        max_actions=max(1, int(counted.unique.sizes.max())),
        noise=noise,
    )


class PartitionExecutor(Protocol):
    """What works on the partitions; `executors.py` says why chunks have others."""

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """function(groups, *own) for every partition in order.

        Each of `arguments` holds one thing for every partition.
        """
        ...

    def cache(self, whole: Floats, parts: Sequence[Floats]) -> Sequence[Any]:
        """The parts of an array that is not going to change, to be given to `map` repeatedly."""
        ...


class ThreadPartitionExecutor:
    """The work done by threads of this process."""

    def __init__(self, partitions: Sequence[Partition], threads: int | None = None) -> None:
        self.partitions = [prepare_partition(*partition) for partition in partitions]
        # kernels release the interpreter's lock, so threads are enough
        threads = min(threads or os.cpu_count() or 1, len(partitions))
        self._map: Callable[..., Any] = map if threads == 1 else ThreadPoolExecutor(threads).map

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """function(groups, *own) for every partition in order."""
        return list(self._map(function, self.partitions, *arguments))

    def cache(self, whole: Floats, parts: Sequence[Floats]) -> Sequence[Any]:
        """The parts as they are: nothing needs to be sent."""
        return parts


class DaskPartitionExecutor:
    """The work done by the workers of a ``dask.distributed.Client``.

    Partitions stay with them, and only numbers travel.
    """

    def __init__(self, partitions: Sequence[Partition], client: Any) -> None:
        self.client = client
        self.partitions = submit_parts(client, prepare_partition, partitions)
        self._cached: deque[tuple[Floats, list[Any]]] = deque(maxlen=MAX_CACHED_ARRAYS)

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """function(groups, *own) for every partition in order."""
        # pure=False: a task with equal arguments is a new one, not a cached answer
        futures = self.client.map(
            _call_with_writeable_arrays,
            [function] * len(self.partitions),
            self.partitions,
            *arguments,
            pure=False,
        )
        return list(self.client.gather(futures))

    def cache(self, whole: Floats, parts: Sequence[Floats]) -> Sequence[Any]:
        """The parts as futures: sent once, and held by the cluster.

        As long as `whole` is one of the last few arrays that were cached.
        """
        # identity, not equality: arrays of the state are replaced, never changed
        for array, held in list(self._cached):
            if array is whole:
                return held
        held = [self.client.submit(_identity, part, pure=False) for part in parts]
        self._cached.append((whole, held))
        return held


def _identity(part: Floats) -> Floats:
    """The argument itself: a task whose result the cluster then holds."""
    return part


def _call_with_writeable_arrays(
    function: Callable[..., Any], groups: GroupedDecisions, *arguments: Any
) -> Any:
    """function(groups, *arguments) with arrays that can be written to.

    Those that came over the wire may be read only, and kernels would be compiled for them anew.
    """
    groups = GroupedDecisions(*(_writeable(field) for field in groups))
    return function(groups, *(_writeable(argument) for argument in arguments))


def _writeable(thing: Any) -> Any:
    """The same, or a copy where it is an array that is read only."""
    if isinstance(thing, NoiseArguments):
        return NoiseArguments(thing.kind, *(_writeable(field) for field in thing[1:]))
    return thing.copy() if isinstance(thing, np.ndarray) and not thing.flags.writeable else thing
