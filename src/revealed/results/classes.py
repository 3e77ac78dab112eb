"""Which class of posterior a model has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from revealed.data.decisions import Decisions
from revealed.io.parquet_folder import ParquetDecisions
from revealed.models.choice import ChoiceModel
from revealed.models.groups import Hierarchical, Separate
from revealed.models.ranking import RankingModel
from revealed.models.transitions import Dirichlet
from revealed.results.base import Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.mdp import MDPPosterior
from revealed.results.ranking import RankingPosterior
from revealed.results.separate import SeparatePosterior


def result_class(model: ChoiceModel | RankingModel) -> type[Posterior]:
    """The class of a posterior of this model."""
    if isinstance(model, RankingModel):
        return RankingPosterior
    if isinstance(model.groups, Separate):
        return SeparatePosterior
    if isinstance(model.groups, Hierarchical):
        return HierarchicalPosterior
    return MDPPosterior if isinstance(model.transitions, Dirichlet) else ChoicePosterior


def make_posterior(
    model: ChoiceModel | RankingModel,
    data: Any,
    draws: Mapping[str, Any],
    sampler: str,
    stats: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Posterior:
    """The posterior of a run, with all it came from."""
    return result_class(model)(draws, kept_data(data), model, sampler, stats, settings)


def kept_data(data: Any) -> Any:
    """What a posterior keeps of its data: of a folder only the first decisions."""
    most = 1000
    first: Decisions = data.first_chunk()[:most] if isinstance(data, ParquetDecisions) else data
    return first
