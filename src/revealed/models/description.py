"""Models as JSON, and back: each part by its name and its fields."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from revealed.io.netcdf import UnreadableModel
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise
from revealed.models.groups import Hierarchical, Pooled, Separate
from revealed.models.lapse import Beta, Lapse
from revealed.models.noise import LogitNoise, Noise, NormalNoise
from revealed.models.over_time import Constant, MeanReverting, RandomWalk
from revealed.models.priors import Flat, HalfStudentT, Normal
from revealed.models.ranking import RankingModel
from revealed.models.student import Gamma, StudentNoise
from revealed.models.switching import Switching
from revealed.models.transitions import Dirichlet, Known

PARTS: dict[str, Any] = {
    part.__name__: part
    for part in (
        ChoiceModel,
        RankingModel,
        Normal,
        Flat,
        HalfStudentT,
        NormalNoise,
        LogitNoise,
        StudentNoise,
        Gamma,
        Lapse,
        Beta,
        CorrelatedNoise,
        Pooled,
        Separate,
        Hierarchical,
        Known,
        Dirichlet,
        Constant,
        RandomWalk,
        MeanReverting,
        Switching,
    )
}
"""Every part that a model may have, by the name it has in files."""


def describe(part: Any) -> Any:
    """A model, or a part of one, as what JSON can hold; arrays and mappings are left as they are.

    A part is a mapping with its name under "part".
    """
    if isinstance(part, Noise) or (is_dataclass(part) and not isinstance(part, type)):
        named = fields(part) if is_dataclass(part) else ()
        given = {field.name: getattr(part, field.name) for field in named}
        # what is left at these defaults is written as it was before there was anything else
        none = type(None)
        plain = {"lapse": none, "over_time": Constant}
        plain |= {"covariate_prior": none, "newcomer_prior": none}
        unset = {"components": ("player",), "covariates": ()}
        own = {
            name: describe(x)
            for name, x in given.items()
            if not isinstance(x, plain.get(name, ())) and not (name in unset and x == unset[name])
        }
        return {"part": type(part).__name__, **own}
    return part


def from_description(stored: Any) -> Any:
    """The model, or part, that `describe` made into JSON, with arrays where JSON has lists."""
    if isinstance(stored, list):
        # names of columns stay what they are
        names = stored and all(isinstance(item, str) for item in stored)
        return tuple(stored) if names else np.array(stored, float)
    if not (isinstance(stored, dict) and "part" in stored):
        return stored
    own = {name: from_description(value) for name, value in stored.items() if name != "part"}
    # somebody's noise may have the name of one of ours, which comes first
    kinds = {noise.__name__: noise for noise in _all_subclasses(Noise)} | PARTS
    if stored["part"] not in kinds:
        raise UnreadableModel(
            f"its model has the part {stored['part']!r}, which this program does not know; import "
            "the module that defines it"
        )
    return kinds[stored["part"]](**own)


def _all_subclasses(cls: type) -> list[type]:
    """Every class derived from this one, by whatever number of steps."""
    direct: list[type] = cls.__subclasses__()
    return direct + [below for child in direct for below in _all_subclasses(child)]
