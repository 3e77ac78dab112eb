"""The model of data for which none was given: each part at its default."""

from __future__ import annotations

from typing import Any

from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.models.choice import ChoiceModel
from revealed.models.ranking import RankingModel
from revealed.models.transitions import Dirichlet


def default_model(data: Any) -> ChoiceModel | RankingModel:
    """The model that these data are fitted with where the caller names none."""
    if isinstance(data, Rankings):
        return RankingModel()
    # the rows of trajectories are never given
    return ChoiceModel(transitions=Dirichlet()) if isinstance(data, Trajectories) else ChoiceModel()
