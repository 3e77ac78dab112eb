"""Which class of posterior a model has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revealed.data.decisions import Decisions
from revealed.io.parquet_folder import ParquetDecisions
from revealed.models.choice import ChoiceModel
from revealed.models.groups import Hierarchical, Separate
from revealed.models.over_time import Constant
from revealed.models.ranking import RankingModel
from revealed.models.switching import Switching
from revealed.models.transitions import Dirichlet
from revealed.results.base import Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.hierarchical_paths import HierarchicalPathPosterior
from revealed.results.mdp import MDPPosterior
from revealed.results.paths import PathPosterior
from revealed.results.ranking import RankingPosterior
from revealed.results.relabelling import relabel
from revealed.results.separate import SeparatePosterior
from revealed.results.skill_paths import RankingPathPosterior
from revealed.results.switching import SwitchingPosterior


def result_class(model: ChoiceModel | RankingModel) -> type[Posterior]:
    """The class of a posterior of this model."""
    if isinstance(model, RankingModel):
        constant = isinstance(model.over_time, Constant)
        return RankingPosterior if constant else RankingPathPosterior
    if isinstance(model.groups, Separate):
        return SeparatePosterior
    if isinstance(model.groups, Hierarchical):
        constant = isinstance(model.over_time, Constant)
        return HierarchicalPosterior if constant else HierarchicalPathPosterior
    if isinstance(model.over_time, Switching):
        return SwitchingPosterior
    if not isinstance(model.over_time, Constant):
        return PathPosterior
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
    if isinstance(model, ChoiceModel) and isinstance(model.over_time, Switching):
        # every chain calls strategies as it likes
        lp = stats.get("lp", np.zeros(np.shape(draws["value"])[:2]))
        draws = relabel(data, draws, lp)
    return result_class(model)(draws, kept_data(data), model, sampler, stats, settings)


def kept_data(data: Any) -> Any:
    """What a posterior keeps of its data: of a folder only the first decisions."""
    most = 1000
    first: Decisions = data.first_chunk()[:most] if isinstance(data, ParquetDecisions) else data
    return first
