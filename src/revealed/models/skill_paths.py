"""How skills change, for one set of games: nodes, the process of their paths, and what is unknown.

    skill(first date) ~ N(0, spread^2),   skill(t + gap) = skill(t) + N(0, drift_sd^2 gap)

for every label of a component by itself; or, of skills that revert to the mean of all players,

    skill(t + gap) = d skill(t) + N(0, (1 - d^2) spread^2),   d = exp(-reversion_rate gap).

Each component has a spread and a drift or rate of its own, with half-t priors of four degrees of
freedom where they are not given. Random walks of players who come after the first date may begin
about a mean of their own in place of zero; it is the same number at all of a player's dates, so
that kernels take it for the coefficient of a covariate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Bools, Floats
from revealed.data.rankings import Rankings
from revealed.kernels.path_process import PathProcess
from revealed.models.base import Parameter
from revealed.models.over_time import SCALES, MeanReverting, RandomWalk, Sd
from revealed.models.priors import HalfStudentT
from revealed.models.skill_nodes import SkillNodes, component_columns, make_skill_nodes


@dataclass(frozen=True, eq=False)
class ResolvedSkillPaths:
    """Skills that change, for one set of games.

    process: as kernels take it. known: (P,) numbers of theta that are given, on the log scale, NaN
    where one is inferred, of each component: drifts, then spreads; of skills that revert spreads,
    then rates, and their centre, which is zero. covariates (E, P): of entries,
    the sums of those of members. coefficient_sd: of the normal prior of their coefficients.
    newcomer_sd: of the prior of the mean of newcomers; zero where they are like all.
    """

    part: RandomWalk | MeanReverting
    nodes: SkillNodes
    process: PathProcess
    known: Floats
    covariate_names: tuple[str, ...] = ()
    covariates: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    coefficient_sd: float = 1.0
    newcomer_sd: float = 0.0

    @cached_property
    def newcomer(self) -> Bools:
        """(N,) whether a node is of a player who came after the first date."""
        nodes = self.nodes
        begins = nodes.date[nodes.path_start[nodes.label]]
        return np.asarray((nodes.component == 0) & (begins > 0))

    @property
    def newcomers(self) -> Floats:
        """(E,) how many newcomers are in each entry."""
        nodes = self.nodes
        return np.add.reduceat(self.newcomer[nodes.node].astype(np.float64), nodes.entry_start[:-1])

    @property
    def places(self) -> dict[str, int]:
        """Where the numbers of each name begin in theta.

        Those that are known too.
        """
        count = len(self.nodes.components)
        if self.process.reverts:
            return {"spread": 0, "reversion_rate": count}
        return {"drift_sd": 0, "spread": count}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What is unknown of paths.

        Sizes that were given are left out.
        """
        # one number for each component, also where there is only one
        components = {"component": self.nodes.components}
        sizes = tuple(
            Parameter(name, ("component",), components)
            for name, at in self.places.items()
            if np.isnan(self.known[at])
        )
        return (Parameter("skill", ("node",), {"node": tuple(self.nodes.names())}), *sizes)

    @property
    def coefficients(self) -> tuple[Parameter, ...]:
        """What is unknown of covariates and newcomers.

        Nothing where there are none.
        """
        names = {"covariate": self.covariate_names}
        found = [Parameter("coefficient", ("covariate",), names)] if self.covariate_names else []
        return (*found, *([Parameter("newcomer_mean")] if self.newcomer_sd else []))

    @property
    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with.

        Nodes, gaps, scales of priors, and numbers that were given.
        """
        p = self.process
        known = np.nan_to_num(self.known)
        games = self.nodes.node, self.covariates, [self.coefficient_sd]
        # walks are not named: checkpoints from before there was another way go on
        way = (("reverting",),) if p.reverts else ()
        way = (*way, [self.newcomer_sd]) if self.newcomer_sd else way
        return (p.gap, p.first, p.component, p.scales, known, *games, *way)


def resolve_skill_paths(
    part: RandomWalk | MeanReverting,
    rankings: Rankings,
    spread: float | None,
    components: Sequence[str] = ("player",),
    covariates: Sequence[str] = (),
    coefficient_sd: float = 1.0,
    newcomer_sd: float = 0.0,
) -> ResolvedSkillPaths:
    """How skills change in these games.

    spread: of first skills, None to infer it. components, covariates: names of columns.
    coefficient_sd, newcomer_sd: as of `ResolvedSkillPaths`.
    """
    _refuse_parts(part, spread)
    columns = component_columns(rankings, components) if rankings.times is not None else None
    nodes = make_skill_nodes(rankings, columns)
    # each component has a spread, and a drift or rate
    count = len(nodes.components)
    span = float(nodes.dates[-1] - nodes.dates[0]) or 1.0
    reverts = isinstance(part, MeanReverting)
    if isinstance(part, MeanReverting):
        pace = _scales_and_known("rate", part.rate, SCALES.reversions / span, nodes.components)
    else:
        # steps add up like their variances: over the whole time the change has the scale
        scale = SCALES.change / np.sqrt(span)
        pace = _scales_and_known("sd", part.sd, scale, nodes.components)
    # the spread that a prior gives is the same for all components
    start = _scales_and_known("spread", spread, SCALES.spread, nodes.components)
    # of what reverts the spread comes first, as it is the sd of all nodes
    parts = (start, pace) if reverts else (pace, start)
    scales, known = (np.concatenate(both) for both in zip(*parts, strict=True))
    # games see differences alone, so that zero is as good a centre as any
    known = np.append(known, 0.0) if reverts else known
    # no sessions, and first values that are independent
    process = PathProcess(
        nodes.gap,
        nodes.first,
        np.zeros(len(nodes), np.bool_),
        np.zeros(1, np.int64),
        count,
        False,
        reverts,
        np.eye(1),
        False,
        scales,
        nodes.component,
        0 if reverts else count,
    )
    return ResolvedSkillPaths(
        part,
        nodes,
        process,
        known,
        tuple(covariates),
        covariates_of_entries(rankings, covariates),
        coefficient_sd,
        newcomer_sd,
    )


def _refuse_parts(part: RandomWalk | MeanReverting, spread: float | None) -> None:
    """Refuse what skills have no use for; the sentence says what to give in its place."""
    if isinstance(part, MeanReverting) and part.sd is not None:
        raise ValueError(
            "the sd of skills that revert is that of the model's prior: leave sd out, and give "
            "prior=rv.Normal(sd)"
        )
    if isinstance(part, RandomWalk) and part.between_sessions is not None:
        raise ValueError(
            "games have no sessions: leave between_sessions out, and the time between two games "
            "says how far a skill may move"
        )
    if part.shared:
        raise ValueError("skills have one drift for each component already; leave shared out")
    if spread is not None and np.isinf(spread):
        raise ValueError(
            "skills that change need a proper prior of where they begin; give rv.Normal(sd), or "
            "leave the prior out to infer its sd"
        )


def _scales_and_known(
    what: str, given: Sd, default: float, components: Sequence[str]
) -> tuple[Floats, Floats]:
    """(C,) scales of half-t priors, zero where a number is given; and (C,) logs of what is given.

    Those of what is inferred are NaN.
    """
    count = len(components)
    if given is None or isinstance(given, HalfStudentT):
        scale = default if given is None else given.scale
        return np.full(count, float(scale)), np.full(count, np.nan)
    # what is known has no prior, and a row of zeros in coordinates of theta
    numbers = np.atleast_1d(np.asarray(given, np.float64))
    if numbers.size not in (1, count):
        raise ValueError(
            f"{what} has {numbers.size} numbers, and there are {count} components, "
            f"{', '.join(components)}; give one, or one for each"
        )
    return np.zeros(count), np.log(np.broadcast_to(numbers, count))


def covariates_of_entries(rankings: Rankings, names: Sequence[str]) -> Floats:
    """(E, P) numbers of entries: the sums of those of their members."""
    found = np.zeros((len(rankings.tied), len(names)))
    for p, name in enumerate(names):
        column = rankings.columns.get(name)
        if column is None or column.dtype.kind != "f":
            known = [key for key, own in rankings.columns.items() if own.dtype.kind == "f"]
            raise ValueError(
                f"the covariate {name!r} needs a column of numbers; the games have "
                f"{', '.join(known) or 'none'}"
            )
        found[:, p] = np.add.reduceat(column, rankings.member_start[:-1])
    return found
