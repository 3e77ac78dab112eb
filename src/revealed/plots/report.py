"""One page that says what was inferred and whether to believe it: words, tables and pictures.

It is a single HTML file. Nothing on the page is loaded from anywhere else, so it can be mailed,
archived and read without a network.
"""

from __future__ import annotations

import os
from html import escape
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._validation import Seed
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.io.atomic import atomic_write
from revealed.models.correlated_noise import CorrelatedNoise
from revealed.models.noise import Noise
from revealed.models.ranking import RankingModel
from revealed.plots.check import check_posterior
from revealed.plots.report_html import document
from revealed.plots.report_prediction import prediction_section
from revealed.plots.report_sections import (
    chains_section,
    identification_section,
    inferred_section,
)
from revealed.plots.report_settings import settings_section
from revealed.results.base import Posterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.mdp import MDPPosterior
from revealed.results.paths import PathPosterior
from revealed.results.ranking import RankingPosterior
from revealed.results.separate import SeparatePosterior
from revealed.results.skill_paths import RankingPathPosterior
from revealed.results.switching import SwitchingPosterior
from revealed.results.text import count_things

ALSO_INFERRED = MappingProxyType(
    {
        "prior_sd": "the prior's sd",
        "noise_covariance": "how the noise of actions is correlated",
        "df": "how heavy the tails of the noise are",
        "lapse": "how often it chooses blindly",
        "habit": "what a blind choice follows",
        "spread": "the spread of skills",
        "drift_sd": "how fast skills change",
        "newcomer_mean": "the mean skill of newcomers",
        "margin": "the margin that a win needs",
    }
)
"""Unknowns beside values and skills, in words."""


def write_report(
    post: Posterior, path: str | os.PathLike[str], title: str | None = None, *, seed: Seed = 0
) -> None:
    """Write the page: summary and message, posterior, identification, predictions, settings.

    Parameters
    ----------
    post
        Any that ``rv.fit`` returns.
    path
        The .html file; it is there whole or not at all.
    title
        Of the page; default: how much was seen, and of what.
    seed
        Picks the draws behind the predictions where there are more than enough of them.
    """
    atomic_write(Path(path), page(post, title, seed=seed).encode())


def page(post: Posterior, title: str | None = None, *, seed: Seed = 0) -> str:
    """The page as text; the arguments are those of `write_report`."""
    check_posterior(post, "a report")
    heading = title or _title(post)
    # each section is HTML, under a heading with an anchor
    sections = {
        "What was learnt": inferred_section(post),
        "What the data leave open": identification_section(post),
        "How well it predicts": prediction_section(post, seed),
        "How it was drawn": chains_section(post),
        "Settings": settings_section(post),
    }
    anchors = {name: name.lower().replace(" ", "-") for name in sections}
    links = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for name, anchor in anchors.items())
    body = "".join(
        f'<section aria-labelledby="{anchors[name]}"><h2 id="{anchors[name]}">{name}</h2>'
        f"{text}</section>"
        for name, text in sections.items()
    )
    # the first word or two of the message in bold
    # a message says first whether to believe the draws, and after a colon why
    word, colon, reason = post.message.partition(":")
    kind = "good" if post.converged else "bad"
    return document(
        heading,
        f"""<h1>{escape(heading)}</h1>
<p class="quiet">{escape(_describe_data(post))}</p>
<p>{escape(_describe_inference(post))}</p>
<p class="message {kind}"><strong>{escape(word)}{colon}</strong> <span>{escape(reason)}</span></p>
<nav aria-label="On this page"><ul>{links}</ul></nav>
{body}
<footer>Made by revealed {escape(version("revealed"))} from draws of the posterior.
{escape(_describe_likelihood(post))}</footer>""",
    )


def _title(post: Posterior) -> str:
    """How much was seen, and of what."""
    if isinstance(post, RankingPosterior):
        seen, about = count_things(len(post.data), "game"), count_things(len(post.names), "player")
        return f"What {seen} say about {about}"
    seen = count_things(_count_decisions(post), "decision")
    if isinstance(post, HierarchicalPosterior):
        return f"What {seen} say about {count_things(len(post.groups), 'group')} of one population"
    if isinstance(post, SeparatePosterior):
        return f"What {seen} say about {count_things(len(post.groups), 'group')}, one by one"
    if isinstance(post, MDPPosterior):
        states = count_things(len(post.states), "state")
        actions = count_things(len(post.actions), "action")
        return f"What {seen} say about {states} and where {actions} lead"
    count = len(post.resolved.coefficients.names)
    over_time = " over time" if isinstance(post, PathPosterior) else ""
    if isinstance(post, SwitchingPosterior):
        over_time = f" of {count_things(len(post.strategies), 'strategy')} that take turns"
    return f"What {seen} say about {count_things(count, 'coefficient')}{over_time}"


def _count_decisions(post: Posterior) -> int:
    """How many decisions it was inferred from; of a folder, the posterior keeps only the first."""
    return int(post.settings.get("decisions", len(post.data)))


def _describe_data(post: Posterior) -> str:
    """What was seen, in a sentence."""
    data = post.data
    if isinstance(data, Rankings):
        entries = _span(np.diff(data.start), "entry", "entries")
        teams = "" if (data.sizes == 1).all() else f", of {_span(data.sizes, 'player', 'players')}"
        ties = "Some tied." if data.has_ties else "Nobody tied."
        return f"Each game has {entries}{teams}; {data.start[-1]} results in all. {ties}"
    if isinstance(data, Trajectories):
        paths = count_things(len(data.paths), "trajectory")
        return (
            f"{paths} through {count_things(len(data.states), 'state')} with "
            f"{count_things(len(data.actions), 'action')}; {data.counts.sum()} transitions were "
            f"seen{_describe_groups(data.groups)}."
        )
    assert isinstance(data, Decisions)
    offers = f"Each decision offers {_span(data.sizes, 'action', 'actions')}"
    if _count_decisions(post) > len(data):
        return (
            f"{offers}. They were in a folder, of which a posterior keeps the first {len(data)} "
            "decisions: what is left open, and how well it predicts, is told of these."
        )
    rows = f"{data.rows.shape[0]} rows in all"
    return f"{offers}; {rows}{_describe_groups(data.groups)}."


def _span(sizes: Any, one: str, many: str) -> str:
    """One number where all sizes are the same, or the smallest and the largest."""
    if sizes.min() == sizes.max():
        return f"{sizes[0]} {one if sizes[0] == 1 else many}"
    return f"{sizes.min()} to {sizes.max()} {many}"


def _describe_groups(groups: Any) -> str:
    """How many groups decided, where that was recorded."""
    return "" if groups is None else f", made by {count_things(len(np.unique(groups)), 'group')}"


def _describe_inference(post: Posterior) -> str:
    """What the page is about: which unknowns were inferred."""
    also = [words for name, words in ALSO_INFERRED.items() if name in post.draws]
    listed = " and ".join(filter(None, [", ".join(also[:-1]), *also[-1:]]))
    more = f", and with it {listed}" if also else ""
    if isinstance(post, RankingPosterior):
        dated = " on each date" if isinstance(post, RankingPathPosterior) else ""
        return f"This page is about the skill of each player{dated}, inferred from results{more}."
    names = post.resolved.coefficients.names
    some = f" Values: {', '.join(names[:5])}{', ...' if len(names) > 5 else '.'}"
    if isinstance(post, HierarchicalPosterior):
        noise = (
            "; and how the noise of actions is correlated"
            if "noise_covariance" in post.draws
            else " at each time, with how fast they change"
            if post.resolved.group_paths is not None
            else ""
        )
        return (
            "This page is about what a population of groups values, inferred from choices: the "
            f"mean of the groups, how far they differ, and the values of each{noise}.{some}"
        )
    if isinstance(post, SeparatePosterior):
        what = " and where its actions lead" if "transition" in post.draws else ""
        what += " at each time" if post.resolved.group_paths is not None else ""
        return (
            f"This page is about what each group values{what}, inferred from the choices of that "
            f"group alone.{some}"
        )
    if isinstance(post, MDPPosterior):
        return (
            "This page is about what a controller values and where its actions lead, inferred "
            f"together from trajectories.{some}"
        )
    if isinstance(post, PathPosterior):
        span = f"{post.times[0]:g} to {post.times[-1]:g}"
        return (
            f"This page is about what a controller values at each time from {span}, and how fast "
            f"that changes, inferred from choices.{some}"
        )
    if isinstance(post, SwitchingPosterior):
        return (
            f"This page is about {len(post.strategies)} hidden strategies that take turns along "
            f"{count_things(len(post.switching.labels), 'sequence')}: what each values, and how "
            f"often one follows another, inferred from choices.{some}"
        )
    return f"This page is about what a controller values, inferred from choices{more}.{some}"


def _describe_likelihood(post: Posterior) -> str:
    """The model of what was seen, in a sentence or two."""
    model = post.model
    if isinstance(model, RankingModel):
        law = "Gumbel noise (Plackett-Luce)" if model.is_logit else "standard normal noise"
        return (
            f"A player's performance in a game is its skill plus {law}, and whoever performs "
            "better is in front."
        )
    row = (
        "the expected value of the next state"
        if "transition" in post.draws
        else "its row of numbers times the values"
    )
    return f"An action's utility is {row} plus {_noise_in_words(model.noise)}."


def _noise_in_words(noise: Noise | CorrelatedNoise) -> str:
    """The noise as the end of a sentence, with what is chosen."""
    chosen = "and the largest utility is chosen"
    if isinstance(noise, CorrelatedNoise):
        return f"normal noise whose covariance was inferred, {chosen}"
    names = {"normal": "standard normal noise", "logit": "Gumbel noise (the logit model)"}
    law = names.get(noise.name, f"{noise.name} noise")
    if noise.lapse is None:
        return f"{law}, {chosen}"
    return f"{law}, {chosen}, unless the choice is a lapse, which is made blindly"
