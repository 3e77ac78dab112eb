"""Data in their own class, with the model that is meant where none is given."""

from __future__ import annotations

from typing import Any

from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.io.read_data import as_decisions, as_rankings, as_trajectories
from revealed.models.choice import ChoiceModel
from revealed.models.default import default_model
from revealed.models.ranking import RankingModel
from revealed.models.transitions import Dirichlet


def as_data_and_model(
    data: Any, model: ChoiceModel | RankingModel | None
) -> tuple[Any, ChoiceModel | RankingModel]:
    """The data in their own class, and the model of these data where none was given."""
    chosen = default_model(data) if model is None else model
    if isinstance(data, Trajectories | Rankings):
        return data, chosen
    if isinstance(chosen, RankingModel):
        return as_rankings(data), chosen
    unknown = isinstance(chosen.transitions, Dirichlet)
    return (as_trajectories if unknown else as_decisions)(data), chosen
