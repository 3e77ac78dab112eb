"""Values that change, of several groups: each has times of its own, and a path.

Paths stand one after the other in one array, group by group in the order in which groups appear.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from revealed._types import Ints
from revealed.data.decisions import Decisions
from revealed.models.base import Parameter
from revealed.models.over_time import (
    MeanReverting,
    RandomWalk,
    ResolvedOverTime,
    resolve_over_time,
)
from revealed.models.priors import ResolvedPrior


@dataclass(frozen=True)
class StepPopulation:
    """What is assumed of how groups differ in the sizes of their steps.

    spread: sd of the half-normal prior of s, by how much the logs of groups' sds differ: e^.5,
    about two thirds more or less. Much smaller, and all groups have one sd; much larger, and each
    has only itself to learn from.
    """

    spread: float = 0.5


STEP_POPULATION = StepPopulation()


@dataclass(frozen=True, eq=False)
class GroupPaths:
    """How the values of each group change.

    groups: G labels. paths: of each group, for its own decisions.
    """

    groups: tuple[Hashable, ...]
    paths: tuple[ResolvedOverTime, ...]

    @cached_property
    def start(self) -> Ints:
        """(G + 1,) where the nodes of each group begin among those of all."""
        return np.concatenate([[0], np.cumsum([len(path.times) for path in self.paths])])

    def nodes_of(self, i: int) -> slice:
        """The nodes of the group at position i."""
        return slice(int(self.start[i]), int(self.start[i + 1]))

    @cached_property
    def node_labels(self) -> tuple[str, ...]:
        """What nodes are called: "ann at 3"."""
        # with all digits that times are told apart by
        return tuple(
            f"{group} at {time:.15g}"
            for group, path in zip(self.groups, self.paths, strict=True)
            for time in path.times.tolist()
        )

    @property
    def of_first(self) -> ResolvedOverTime:
        """The path of the first group: what is inferred of steps is called the same in all."""
        return self.paths[0]

    def value_parameter(self, names: tuple[str, ...]) -> Parameter:
        """The values of all groups, (nodes, coefficients)."""
        coords = {"node": self.node_labels, "coefficient": names}
        return Parameter("value", ("node", "coefficient"), coords)

    @property
    def population_parameters(self) -> tuple[Parameter, ...]:
        """What is inferred of steps where groups have a population: each group's, then m and s."""
        found = []
        for parameter in self.of_first.parameters:
            # what groups have, and the law that it comes from
            own = {"group": self.groups, **parameter.coords}
            found.append(Parameter(parameter.name, ("group", *parameter.dims), own))
            found += [
                Parameter(f"{parameter.name}_{what}", parameter.dims, parameter.coords)
                for what in ("population", "spread")
            ]
        return tuple(found)

    @property
    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with."""
        parts = [path.fingerprint_parts for path in self.paths]
        return tuple(part for path in parts for part in path)


def resolve_group_paths(
    part: RandomWalk | MeanReverting,
    decisions: Decisions,
    prior: ResolvedPrior,
    groups: tuple[Hashable, ...],
    group_of_decision: Ints,
    *,
    of_population: bool,
) -> GroupPaths:
    """How the values of each group change in its own decisions.

    of_population: whether sds of groups have one prior, whose scale then is the median of those
    that groups would have alone.
    """
    if decisions.times is None:
        # refused there, before decisions are cut into groups
        resolve_over_time(part, decisions, prior)
    # decisions of each group, in the order in which they stand
    order = np.argsort(group_of_decision, kind="stable")
    ends = np.searchsorted(group_of_decision[order], np.arange(len(groups) + 1))
    paths = tuple(
        resolve_over_time(part, decisions[np.sort(order[a:b])], prior)
        for a, b in pairwise(ends.tolist())
    )
    if of_population:
        # one prior for all groups, whatever time each was seen for
        scales = np.median([path.process.scales for path in paths], axis=0)
        paths = tuple(replace(path, process=path.process._replace(scales=scales)) for path in paths)
    return GroupPaths(groups, paths)
