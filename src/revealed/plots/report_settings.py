"""The part of a report about how a posterior was made: the model part by part, and the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise
from revealed.models.groups import Groups, Hierarchical, Separate
from revealed.models.over_time import Constant
from revealed.models.priors import DEFAULT_SD, Flat, HalfStudentT, Prior
from revealed.models.ranking import RankingModel
from revealed.models.transitions import Dirichlet
from revealed.plots.report_html import settings_table
from revealed.results.base import Posterior


def settings_section(post: Posterior) -> str:
    """A table of the model and the run, and the means of the run's statistics.

    Enough to run it again.
    """
    chains, draws = post.shape
    facts: dict[str, Any] = {
        **describe_model(post),
        "sampler": post.sampler,
        "chains": chains,
        "draws a chain": draws,
    }
    words = {
        "warmup": "warm-up iterations",
        "thin": "iterations a draw",
        "seed": "seed",
        "options": "sampler options",
    }
    # settings in words, as far as they were recorded
    facts |= {word: post.settings[key] for key, word in words.items() if key in post.settings}
    options = facts.get("sampler options")
    if isinstance(options, dict):
        listed = ", ".join(f"{name} = {value}" for name, value in options.items())
        facts["sampler options"] = listed or "none"
    facts |= {
        f"mean {name.replace('_', ' ')}": f"{np.mean(values):.3g}"
        for name, values in post.sample_stats.items()
        if values.dtype.kind in "fiu"
    }
    return (
        "<p>What was assumed, part by part, and how the draws were made; with the same data, this "
        f"is enough to make them again.</p>{settings_table(facts)}"
    )


def describe_model(post: Posterior) -> dict[str, str]:
    """What each part of the model says, in words."""
    model = post.model
    if isinstance(model, RankingModel):
        return _describe_ranking(model, post.data.has_ties)
    hierarchical = isinstance(model.groups, Hierarchical)
    prior = describe_prior(model.value_prior)
    return {
        "model": "choices: the action of the largest utility is chosen",
        "prior of the population's mean" if hierarchical else "prior of the values": prior,
        "noise": _describe_noise(post, model),
        "groups": _describe_groups(model.groups),
        "transitions": _describe_transitions(model),
        "over time": model.over_time.description,
    }


def _describe_ranking(model: RankingModel, ties: bool) -> dict[str, str]:
    """The parts of a ranking model."""
    spread = model.spread
    changes = not isinstance(model.over_time, Constant)
    law = "half-t prior with scale 2" if changes else "half-normal prior with sd 2"
    prior = (
        f"normal around zero; its sd, the spread of skills, is inferred under a {law}"
        if spread is None
        else "flat"
        if np.isinf(spread)
        else f"normal around zero, sd {spread:g}"
    )
    team = {
        "entry": "standard normal, one for each entry of a game",
        "player": "standard normal for each player, so that a team of n has variance n",
    }
    gumbel = "Gumbel's, one for each entry of a game: orders follow Plackett and Luce"
    tied = (
        "the order among those who share a place was not seen"
        if model.is_logit
        else "a win needs a margin, which is inferred"
    )
    return {
        "model": "rankings: whoever performs better in a game is in front",
        "prior of the skills": prior,
        "noise": gumbel if model.is_logit else team[model.team_noise],
        "ties": tied if ties else "there are none",
        **({"over time": model.over_time.description} if changes else {}),
    }


def _describe_noise(post: Posterior, model: ChoiceModel) -> str:
    """The law of the noise, and how that of different actions is correlated."""
    if not isinstance(model.noise, CorrelatedNoise):
        # what is inferred of the noise is said with its prior
        lapse = model.noise.lapse
        if lapse is None:
            return model.noise.description
        prior = f"inferred under the prior Beta({lapse.prior.a:g}, {lapse.prior.b:g})"
        blindly = "made by habit" if lapse.to == "habit" else "made blindly"
        rate = (
            f"at a rate that is {prior}"
            if lapse.by == "all"
            else f"at a rate of each group; that of the median group is {prior}, and the sd of the "
            f"rates' coordinates has the prior {lapse.sd_scale:g} |t| with 2 degrees of freedom"
        )
        return f"{model.noise.description}; with lapses, choices {blindly}, {rate}"
    scale = {
        "trace": "the variances have mean one",
        "first": "the first variance is one",
    }[model.noise.scale]
    resolved = post.resolved.noise
    base = resolved.labels[resolved.base]
    centre = model.noise.centre
    around = (
        "the identity"
        if centre is None
        else "that of independent noise"
        if isinstance(centre, str)
        else "a given matrix"
    )
    return (
        f"normal with a covariance that is inferred, measured against {base}; {scale}; the prior "
        f"is inverse Wishart with {resolved.df:g} degrees of freedom around {around}"
    )


def _describe_groups(groups: Groups) -> str:
    """Who shares values with whom."""
    if isinstance(groups, Hierarchical):
        return (
            "hierarchical: each group's values come from one normal population; the sds between "
            f"groups have the prior {groups.sd_scale:g} |t| with 2 degrees of freedom"
        )
    if isinstance(groups, Separate):
        return "separate: each group has values of its own, which say nothing about another"
    return "pooled: one value for all decisions, whoever made them"


def _describe_transitions(model: ChoiceModel) -> str:
    """Whether the rows are known."""
    given = model.transitions
    if not isinstance(given, Dirichlet):
        return "known: the rows of the decisions are what the controller goes by"
    concentration = (
        f"{float(given.concentration):g}"
        if np.ndim(given.concentration) == 0
        else f"a {np.shape(given.concentration)} array"
    )
    rewards = "; actions have rewards of their own" if given.action_rewards else ""
    some = "" if given.available is None else "; not every state has every action"
    return f"inferred, under a Dirichlet prior with concentration {concentration}{some}{rewards}"


def describe_prior(prior: Prior) -> str:
    """The prior in words."""
    constraint = {True: ", summing to zero", False: ", not summing to zero", None: ""}
    ending = constraint[prior.sum_to_zero]
    if isinstance(prior, Flat):
        return f"flat{ending}"
    # around zero is not worth a word
    mean = np.asarray(prior.mean, dtype=np.float64)
    if mean.any():
        around = f"{float(mean):g}" if mean.ndim == 0 else "given means"
        ending = f", around {around}{ending}"
    times = "" if prior.covariance is None else ", times a given covariance"
    if isinstance(prior.sd, HalfStudentT):
        return (
            f"normal, its sd inferred under {prior.sd.scale:g} |t| with {prior.sd.df} degrees of "
            f"freedom{times}{ending}"
        )
    # a number, one for each coefficient, or one for each block
    given: Any = prior.sd
    if given is None:
        if times:
            return f"normal, of a given covariance{ending}"
        return f"normal, sd {DEFAULT_SD:g}{ending}"
    if isinstance(given, int | float):
        given = f"{given:g}"
    elif np.ndim(given) > 0:
        given = f"a {np.shape(given)} array"
    elif isinstance(given, Mapping):
        given = ", ".join(f"{sd:g} ({name})" for name, sd in given.items())
    return f"normal, sd {given}{times}{ending}"
