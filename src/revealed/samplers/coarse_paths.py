"""Paths on fewer nodes: a cheap law of sizes, on which proposals of sizes are made.

Neighbouring nodes are merged to one, at their mean time and with the sum of their stand-ins: what
is left out is how far a path moves within a block of nodes. The evidence of paths on blocks is
close to that of paths on nodes, and costs as much less as there are fewer of them. Moves of sizes
follow it, and the posterior has the last word (`kernels/state_space_moves.py`), so that blocks that
are too long cost acceptance, never correctness.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels.path_process import PathProcess
from revealed.kernels.path_sizes import CoarsePaths
from revealed.kernels.skill_likelihood import SkillData
from revealed.kernels.state_space import (
    NormalPaths,
    PathData,
    PathWorkspace,
    make_path_workspace,
    make_placed,
    place_law,
)


@dataclass(frozen=True)
class CoarseSettings:
    """How many nodes make a block; wrong settings cost time, never correctness.

    longest: block, in nodes, which is halved until the logs of both evidences differ by a number
    whose sd over likely sizes is at most error: an error of one halves acceptance. fewest: blocks;
    of fewer, each is cheap beside what else an iteration does.
    """

    longest: int = 64
    error: float = 0.25
    fewest: int = 100


COARSE = CoarseSettings()


class Blocks(NamedTuple):
    """Blocks of nodes as nodes of a process; begin (B,): the first node of each."""

    process: PathProcess
    begin: Ints


def merge_nodes(process: PathProcess, longest: int) -> Blocks:
    """Blocks of at most so many nodes, about equally long within each path and session.

    Where steps between sessions have a size of their own, no block reaches over one.
    """
    nodes = len(process.gap)
    apart = process.first | process.crosses if process.between else process.first
    sections = np.append(np.flatnonzero(apart), nodes)
    begin = np.concatenate(
        [
            # evenly: a block of few nodes would be a waste
            np.linspace(low, high, -((low - high) // longest), endpoint=False).astype(np.int64)
            for low, high in itertools.pairwise(sections)
        ]
    )
    # a block lies at the mean time of its nodes; steps to another section stay what they are
    time = np.cumsum(np.where(apart, 0.0, process.gap))
    time = np.add.reduceat(time, begin) / np.diff(np.append(begin, nodes))
    gap = np.where(apart[begin], process.gap[begin], np.diff(time, prepend=0.0))
    return Blocks(
        process._replace(
            gap=gap,
            first=process.first[begin],
            crosses=process.crosses[begin],
            component=process.component[begin],
        ),
        begin,
    )


def normal_of_blocks(normal: NormalPaths, blocks: Blocks) -> NormalPaths:
    """Prior and stand-in of paths that have one value in each block."""
    return normal._replace(
        process=blocks.process,
        curvature=np.add.reduceat(normal.curvature, blocks.begin, axis=0),
        linear=np.add.reduceat(normal.linear, blocks.begin, axis=0),
    )


def make_coarse_paths(data: PathData | SkillData, normal: NormalPaths, longest: int) -> CoarsePaths:
    """What moves of sizes follow, with arrays of one chain."""
    # a block of one node is that node: without merging both laws are the same
    coarse = normal_of_blocks(normal, merge_nodes(normal.process, longest))
    nodes, width = coarse.linear.shape
    placed = make_placed(nodes, width, len(normal.theta_centre))
    other = make_placed(nodes, width, len(normal.theta_centre))
    return CoarsePaths(coarse, make_path_workspace(data, nodes, width), (placed, other))


def log_densities(normal: NormalPaths, work: PathWorkspace, thetas: Floats) -> Floats:
    """(n,) the log of p Z at thetas (n, P); NaN where there is no law."""
    nodes, width = normal.linear.shape
    placed = make_placed(nodes, width, thetas.shape[1])
    found = np.full(len(thetas), np.nan)
    for n, theta in enumerate(thetas):
        if place_law(normal, work, theta, placed):
            found[n] = placed.log_density[0]
    return found


def longest_block(data: PathData | SkillData, normal: NormalPaths, thetas: Floats) -> int:
    """How many nodes a block may have, from likely thetas (n, P)."""
    nodes, width = normal.linear.shape
    longest = COARSE.longest
    if longest * COARSE.fewest > nodes:
        longest = max(1, nodes // COARSE.fewest)
    if longest == 1:
        return 1
    exact = log_densities(normal, make_path_workspace(data, nodes, width), thetas)
    while longest > 1:
        coarse = make_coarse_paths(data, normal, longest)
        error = log_densities(coarse.normal, coarse.work, thetas) - exact
        # where neither has a law nothing can be said
        if np.nanstd(error) <= COARSE.error:
            break
        longest //= 2
    return longest
