"""Decisions of many groups in the order of their times, as loops on their paths take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Ints
from revealed.data.decisions import Decisions
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.noise import AnyNoise
from revealed.kernels.path_groups import PathGroups
from revealed.kernels.path_process import PathProcess
from revealed.kernels.state_space import PathData
from revealed.models.group_paths import GroupPaths
from revealed.models.priors import ResolvedPrior
from revealed.samplers.path_data import make_path_data


def data_of_groups(
    decisions: Decisions,
    group: Ints,
    prior: ResolvedPrior,
    paths: GroupPaths,
    noise: AnyNoise,
) -> list[PathData]:
    """What each group chose at its nodes; group (T,): whose each decision is."""
    return [
        make_path_data(decisions[np.flatnonzero(group == g)], prior, path, noise)
        for g, path in enumerate(paths.paths)
    ]


def join_groups(parts: list[PathData], paths: GroupPaths) -> PathGroups:
    """What all groups chose, one after the other."""
    # where the arrays of each group begin
    rivals = [part.rivals for part in parts]
    rival = _ends([part.gaps for part in parts])
    decision = _ends([len(index.weight) for index in rivals])
    # all of them as the data of one set of paths
    data = PathData(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.offset for part in parts]),
        _joined([part.node_start for part in parts], rival),
        RivalIndex(
            _joined([index.start for index in rivals], rival),
            np.concatenate([index.multiplicity for index in rivals]),
            np.concatenate([index.weight for index in rivals]),
        ),
        parts[0].noise,
    )
    process, at = _joined_process([path.process for path in paths.paths])
    return PathGroups(
        data,
        process,
        paths.start.astype(np.int64),
        decision,
        rival,
        np.concatenate([part.node_start for part in parts]),
        np.concatenate([index.start for index in rivals]),
        at,
        paths.of_first.process.sizes,
        np.zeros(len(process.gap), np.int64),
    )


def _ends(counts: list[int]) -> Ints:
    """(G + 1,) where each group begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _joined(starts: list[Ints], before: Ints) -> Ints:
    """Starts of all groups in one count, from those of each by itself.

    before: how many rivals the groups before have.
    """
    parts = [start[:-1] + n for start, n in zip(starts, before[:-1], strict=True)]
    return np.concatenate([*parts, before[-1:]]).astype(np.int64)


def _joined_process(processes: list[PathProcess]) -> tuple[PathProcess, Ints]:
    """The law of all paths, each with sds of its own; (G, P) where those of a group stand."""
    first, count = processes[0], len(processes)
    sizes = first.sizes
    kinds = 2 if first.between else 1
    # all sds within sessions, then all between them, group by group
    own = np.arange(sizes)[None] + sizes * np.arange(count)[:, None]
    at = np.concatenate([own + kind * count * sizes for kind in range(kinds)], axis=1)
    # every group has the same priors
    scales = np.empty(at.size)
    scales[at] = np.stack([process.scales for process in processes])
    width = len(first.size)

    def all_of(name: str) -> Any:
        return np.concatenate([getattr(process, name) for process in processes])

    # whose sds move each node
    component = [np.full(len(p.gap), g * sizes) for g, p in enumerate(processes)]
    return (
        first._replace(
            gap=all_of("gap"),
            first=all_of("first"),
            crosses=all_of("crosses"),
            sizes=count * sizes,
            start_precision=np.eye(width),
            scales=scales,
            component=np.concatenate(component),
            mean=np.zeros(width),
        ),
        at.astype(np.int64),
    )
