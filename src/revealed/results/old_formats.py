"""Files of version 0.1.0, which had a format for each kind of result.

Their draws are those of today under other names; what they say of prior, noise and groups makes the
model.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.io.old_files import prior_fields
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise
from revealed.models.groups import Hierarchical
from revealed.models.noise import NormalNoise
from revealed.models.priors import Flat, HalfStudentT, Normal, Prior
from revealed.models.ranking import RankingModel
from revealed.models.transitions import Dirichlet
from revealed.results.base import Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.mdp import MDPPosterior
from revealed.results.ranking import RankingPosterior
from revealed.results.storage import (
    array_reader,
    read_decisions,
    read_sampler_name,
    read_stats,
)


def read_old(file: Any) -> Posterior:
    """The posterior of an open file of an older format."""
    kind = str(file.attrs.get("kind", "a posterior"))
    if kind == "a ranking":
        return _read_ranking(file)
    if kind == "a population":
        return _read_population(file)
    return _read_mdp(file) if "labels" in file.attrs else _read_choice(file)


def read_prior(file: Any) -> Prior:
    """The prior of an older file, with arrays where JSON has lists."""
    stored = prior_fields(json.loads(file.attrs["prior"]))
    kind: Any = {"normal": Normal, "flat": Flat}[stored.pop("kind")]
    fields: dict[str, Any] = {
        key: np.array(value, float) if isinstance(value, list) else value
        for key, value in stored.items()
    }
    if isinstance(fields.get("sd"), dict) and set(fields["sd"]) == {"df", "scale"}:
        fields["sd"] = HalfStudentT(**fields["sd"])
    prior: Prior = kind(**fields)
    return prior


def _read_choice(file: Any) -> ChoicePosterior:
    """One value; the prior's sd stood among the statistics."""
    get, stats = array_reader(file), read_stats(file)
    noise = json.loads(file.attrs["noise"]) if "noise" in file.attrs else None
    draws = {"value": get("posterior/v")}
    if "prior_sd" in stats:
        draws["prior_sd"] = stats.pop("prior_sd")
    if noise is not None:
        draws["noise_covariance"] = get("posterior/noise_covariance")
    return ChoicePosterior(
        draws,
        read_decisions(file),
        ChoiceModel(
            prior=read_prior(file),
            noise=NormalNoise() if noise is None else CorrelatedNoise(**noise),
        ),
        read_sampler_name(file),
        stats,
        json.loads(file.attrs["settings"]),
    )


def _read_population(file: Any) -> HierarchicalPosterior:
    """A population and its groups."""
    get = array_reader(file)
    old = {"population_mean": "mean", "population_covariance": "covariance", "value": "v"}
    scale = float(np.ravel(file.attrs["scale"])[0])
    return HierarchicalPosterior(
        {name: get(f"posterior/{stored}") for name, stored in old.items()},
        read_decisions(file),
        ChoiceModel(prior=read_prior(file), groups=Hierarchical(scale)),
        read_sampler_name(file),
        read_stats(file),
        json.loads(file.attrs["settings"]),
    )


def _read_mdp(file: Any) -> MDPPosterior:
    """Values and transitions; of the trajectories only their counts were kept."""
    get, labels = array_reader(file), json.loads(file.attrs["labels"])
    states, actions = (
        tuple(range(len(labels[0][name])) if labels[1][name] else labels[0][name])
        for name in ("states", "actions")
    )
    available = get("constant_data/available").astype(bool)
    visited = get("constant_data/visited")
    decisions: Decisions = read_decisions(file)
    # an action stood as its position among those of its state
    taken = np.array(
        [
            np.flatnonzero(available[x])[k]
            for x, k in zip(visited, decisions.require_choices(), strict=True)
        ]
    )
    dirichlet = Dirichlet(
        get("constant_data/concentration"),
        available,
        action_rewards=len(decisions.names) > len(states),
    )
    return MDPPosterior(
        {"value": get("posterior/v"), "transition": get("posterior/transitions")},
        Trajectories.from_counts((visited, taken), get("constant_data/counts"), states, actions),
        ChoiceModel(prior=read_prior(file), transitions=dirichlet),
        read_sampler_name(file),
        read_stats(file),
        json.loads(file.attrs["settings"]),
    )


def _read_ranking(file: Any) -> RankingPosterior:
    """Skills; spread and margin stood there also where they were not inferred."""
    get, settings = array_reader(file), json.loads(file.attrs["settings"])
    rankings = Rankings(
        names=tuple(get("posterior/player").tolist()),
        players=get("observed_data/member"),
        member_start=get("constant_data/first"),
        start=get("constant_data/start"),
        tied=get("observed_data/tied").astype(bool),
        n_ordered=get("observed_data/known"),
        ids=tuple(get("observed_data/game").tolist()),
    )
    kind = settings["prior"]
    prior = None if kind == "learnt" else Flat() if kind == "flat" else Normal(float(np.sqrt(kind)))
    draws = {"skill": get("posterior/skill")}
    if prior is None:
        draws["spread"] = get("posterior/spread")
    if rankings.has_ties:
        draws["margin"] = get("posterior/margin")
    return RankingPosterior(
        draws,
        rankings,
        RankingModel(prior, str(file.attrs["noise"])),
        "ranking-hmc",
        read_stats(file),
        settings,
    )
