"""What kind of model one is, by its parts: all that decides which samplers take it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from revealed.kernels.noise import count_coordinates
from revealed.models.choice import ChoiceModel, ResolvedChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise
from revealed.models.groups import Hierarchical
from revealed.models.lapse import Lapse
from revealed.models.noise import Noise
from revealed.models.over_time import MeanReverting, OverTime, RandomWalk
from revealed.models.priors import Flat, Normal
from revealed.models.ranking import RankingModel, ResolvedRankingModel
from revealed.models.switching import Switching
from revealed.models.transitions import Dirichlet

Model = ChoiceModel | RankingModel
ResolvedModel = ResolvedChoiceModel | ResolvedRankingModel
PriorKind = Literal["normal", "flat", "inferred sd"]
LapseKind = Literal["no", "lapses", "lapses by group", "habit"]
NoiseName = Literal["normal", "logit", "student", "student df", "other", "correlated"]


class ModelKind(NamedTuple):
    """The parts of a model by their kinds, which is all that decides who can sample it.

    Separate groups are as many pooled fits, and count as those.
    """

    data: Literal["decisions", "trajectories", "rankings"]
    prior: PriorKind
    noise: NoiseName = "normal"
    groups: Literal["pooled", "hierarchical"] = "pooled"
    lapses: LapseKind = "no"
    over_time: Literal["constant", "random walk", "reverting", "switching"] = "constant"

    def __str__(self) -> str:
        # only what is not the default is worth a word
        words = {
            "trajectories": "unknown transitions",
            "rankings": "rankings",
            "logit": "logit noise",
            "student": "Student noise",
            "student df": "Student noise whose df is inferred",
            "other": "independent noise that is not normal",
            "correlated": "correlated noise",
            "lapses": "lapses",
            "lapses by group": "lapses by group",
            "habit": "lapses by habit",
            "hierarchical": "hierarchical groups",
            "flat": "a flat prior",
            "inferred sd": "a prior sd that is inferred",
            "random walk": "values that drift",
            "reverting": "values that revert to a mean",
            "switching": "strategies that take turns",
        }
        *rest, last = [words[part] for part in self if part in words] or ["choices"]
        return f"{', '.join(rest)} and {last}" if rest else last


def kind_of(model: Model) -> ModelKind:
    """The kinds of a model's parts."""
    if isinstance(model, RankingModel):
        law: NoiseName = "logit" if model.is_logit else "normal"
        change = _change_of(model.over_time)
        if isinstance(model.prior, Flat):
            return ModelKind("rankings", "flat", law, over_time=change)
        sd: PriorKind = "inferred sd" if model.prior is None else "normal"
        return ModelKind("rankings", sd, law, over_time=change)
    prior = model.value_prior
    prior_kind: PriorKind = (
        "flat"
        if isinstance(prior, Flat)
        else "inferred sd"
        if isinstance(prior, Normal) and prior.infers_sd
        else "normal"
    )
    if isinstance(model.noise, CorrelatedNoise):
        noise: NoiseName = "correlated"
    else:
        noise = _name_of(model.noise)
    return ModelKind(
        "trajectories" if isinstance(model.transitions, Dirichlet) else "decisions",
        prior_kind,
        noise,
        "hierarchical" if isinstance(model.groups, Hierarchical) else "pooled",
        _lapses_of(model.noise),
        _change_of(model.over_time),
    )


def _name_of(noise: Noise) -> NoiseName:
    """Which law independent noise has."""
    law = noise.law()
    if law.is_student:
        return "student df" if count_coordinates(law) else "student"
    return "normal" if law.is_normal else "logit" if law.is_logit else "other"


def _change_of(over_time: OverTime) -> Any:
    """Whether values change, and how."""
    if isinstance(over_time, RandomWalk):
        return "random walk"
    if isinstance(over_time, Switching):
        return "switching"
    return "reverting" if isinstance(over_time, MeanReverting) else "constant"


def _lapses_of(noise: Any) -> LapseKind:
    """Whether choices may be lapses, where to, and whether groups differ in them."""
    lapse: Lapse | None = getattr(noise, "lapse", None)
    if lapse is None:
        return "no"
    if lapse.by == "group":
        return "lapses by group"
    return "habit" if lapse.to == "habit" else "lapses"
