"""DatedRanking: skills that change, on one date; it answers all that a ranking does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.data.entries import Team
from revealed.data.rankings import Rankings
from revealed.models.base import Parameter
from revealed.models.over_time import Constant
from revealed.models.ranking import RankingModel
from revealed.results.ranking import RankingPosterior


@dataclass(frozen=True, eq=False, repr=False)
class DatedRanking(RankingPosterior):
    """Skills on one date: as a `RankingPosterior` of the players who had played by then.

    Where games say nothing of a common level, `values` are relative to the mean of these players;
    ``draws["skill"]`` are as paths have them, so that players never seen can be compared with them.
    """

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Skills, and what was inferred of the rest from all games.

        Also a margin from ties that came later.
        """
        skill = Parameter("skill", ("player",), {"player": self.data.names})
        names = ("spread", "margin", "newcomer_mean")
        rest = tuple(Parameter(name) for name in names if name in self.draws)
        return (skill, *rest)

    @property
    def values(self) -> Floats:
        """(chains * draws, K) skills, relative to their mean where only differences are seen."""
        skills = self.stacked("skill")
        # teams of several sizes tell where zero is
        if not self.rankings.location_free:
            return skills
        return np.asarray(skills - skills.mean(axis=1, keepdims=True))

    @property
    def _strengths(self) -> Floats:
        return self.stacked("skill")

    @property
    def _location_is_free(self) -> bool:
        # paths have the level of the population, about which new players are drawn
        return False

    def _contents(self) -> str:
        return f"{len(self.names)} players on one date"


def without_changes(model: RankingModel) -> RankingModel:
    """The model of one date, on which nothing changes: a ranking as any other.

    What components and covariates add is in the skills already.
    """
    return model.replace(
        over_time=Constant(),
        components=("player",),
        covariates=(),
        covariate_prior=None,
        newcomer_prior=None,
    )


def of_players_met(games: Rankings) -> Rankings:
    """The same games with the names of those alone who are in them."""
    met = np.flatnonzero(games.games)
    # where each player stands among those who are left
    position = np.cumsum(games.games > 0) - 1
    # arrays of games stay, but for who the players are
    names: Team = tuple(games.names[k] for k in met.tolist())
    return Rankings(
        names,
        position[games.players],
        games.member_start,
        games.start,
        games.tied,
        games.n_ordered,
        games.ids,
        games.times,
    )
