"""Data in their own class, with the model that is meant where none is given."""

from __future__ import annotations

from typing import Any

from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.io.read_data import as_decisions, as_rankings
from revealed.models.choice import ChoiceModel
from revealed.models.default import default_model
from revealed.models.ranking import RankingModel


def as_data_and_model(
    data: Any, model: ChoiceModel | RankingModel | None
) -> tuple[Any, ChoiceModel | RankingModel]:
    """The data in their own class, and the model of these data where none was given."""
    chosen = default_model(data) if model is None else model
    if isinstance(data, Trajectories | Rankings):
        return data, chosen
    read = as_rankings if isinstance(chosen, RankingModel) else as_decisions
    return read(data), chosen
