"""The parts of a report about what was inferred, what the data leave open, and the chains."""

from __future__ import annotations

from html import escape

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.rankings import Rankings
from revealed.models.correlated_noise import NoiseCovariance
from revealed.models.propriety import unbounded_skills, unbounded_team_direction
from revealed.models.ranking import RankingModel
from revealed.plots.columns import columns_to_show, prior_moments
from revealed.plots.lapses import WithLapses, lapse_probabilities
from revealed.plots.noise import noise_correlations
from revealed.plots.population import shrinkage
from revealed.plots.posterior import (
    autocorrelations,
    posterior_densities,
    traces,
    value_intervals,
)
from revealed.plots.ranking import skill_intervals
from revealed.plots.report_changes import (
    paths_section,
    skill_paths_section,
    strategies_section,
)
from revealed.plots.report_html import numbers, picture, table
from revealed.plots.style import LIMITS
from revealed.plots.transitions import transitions
from revealed.results.base import Posterior
from revealed.results.drawn_noise import drawn_noise
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.hierarchical_paths import HierarchicalPathPosterior
from revealed.results.identification import Identification
from revealed.results.mdp import MDPPosterior
from revealed.results.ranking import RankingPosterior
from revealed.results.separate import SeparatePosterior
from revealed.results.summary import Summary


def inferred_section(post: Posterior) -> str:
    """Intervals, the table of the summary and densities, and what only this class has."""
    if isinstance(post, RankingPosterior):
        intervals = picture(
            skill_intervals(post),
            "Posterior mean, middle half and middle 90% of each skill, the best player first; the "
            "numbers are in the table below.",
        )
        parts = _introduce_skills() + skill_paths_section(post) + intervals + _players_table(post)
    else:
        intervals = picture(
            value_intervals(post),
            "Posterior mean, middle half and middle 90% of each quantity; the numbers are in the "
            "table below.",
        )
        parts = _introduce_values() + paths_section(post) + strategies_section(post) + intervals
    if isinstance(post, HierarchicalPosterior):
        parts += (
            "<p>This is the population: the mean of its groups, and the sd between them. The "
            "groups themselves are below.</p>"
        )
    # separate groups have nothing in common: their table is the answer
    if isinstance(post, SeparatePosterior):
        parts += _groups_table(post) + "<p>Every number of every group:</p>"
    parts += _summary_table(post) + _densities(post)
    if isinstance(post, HierarchicalPosterior):
        # values that change have no one number of a group by itself
        changes = isinstance(post, HierarchicalPathPosterior)
        parts += ("" if changes else _shrinkage(post)) + _groups_table(post)
    if not isinstance(post, SeparatePosterior) and "noise_covariance" in post.draws:
        parts += _noise(post)
    if isinstance(post, WithLapses) and "lapse" in post.draws:
        parts += _lapses(post)
    if isinstance(post, MDPPosterior):
        parts += _transitions(post)
    return parts


def _introduce_values() -> str:
    return (
        "<p>The posterior is what can be said of each value after seeing the choices: a mean, and "
        "how far off it may be. With probability 90% a value lies between its 5% and 95% marks. "
        "Where the sd is as large as the prior's, nothing was learnt.</p>"
    )


def _introduce_skills() -> str:
    return (
        "<p>The posterior is what can be said of each player's skill after seeing the games: a "
        "mean, and how far off it may be. With probability 90% a skill lies between its 5% and 95% "
        "marks. The noise of one game has sd 1.</p>"
    )


def _summary_table(post: Posterior) -> str:
    """The table of the summary; of very many numbers, those with the fewest effective draws."""
    summary = post.summary()
    shown, note = _rows_to_show(post, summary)
    prior_sd = prior_moments(post)[1]
    # what cannot move had no spread before or after
    ratio = np.where(prior_sd > 0.0, summary.sd / np.where(prior_sd > 0.0, prior_sd, 1.0), np.nan)
    columns = {
        "mean": numbers(summary.mean[shown], ".3g"),
        "sd": numbers(summary.sd[shown], ".3g"),
        "sd / prior sd": numbers(ratio[shown], ".2f", missing=""),
        "5%": numbers(summary.low[shown], ".3g"),
        "95%": numbers(summary.high[shown], ".3g"),
        "Monte-Carlo error": numbers(summary.mcse[shown], ".2g"),
        "effective draws": numbers(summary.ess_bulk[shown], ".0f"),
        "in the tails": numbers(summary.ess_tail[shown], ".0f"),
        "R-hat": numbers(summary.r_hat[shown], ".3f"),
    }
    # under a flat prior there is nothing to compare with
    if np.isnan(ratio[shown]).all():
        del columns["sd / prior sd"]
    return note + table([summary.names[k] for k in shown], columns)


def _rows_to_show(post: Posterior, summary: Summary) -> tuple[Ints, str]:
    """The rows of a table, and a paragraph where these are not all."""
    count = len(summary.names)
    if count <= LIMITS.rows:
        return np.arange(count), ""
    shown, note = columns_to_show(post, post.columns(), LIMITS.rows, main_first=True)
    return shown, f"<p>{note}</p>"


def _densities(post: Posterior) -> str:
    """The densities, with how to read them."""
    has_prior = np.isfinite(prior_moments(post)[1]).any()
    prior_words = ", beside the prior" if has_prior else ""
    width = (
        "Where a curve is as wide as the dashed prior, the data have said nothing; where"
        if has_prior
        else "Where"
    )
    figure = picture(
        posterior_densities(post),
        f"Posterior density of each quantity, for all draws and for each chain{prior_words}.",
    )
    return f"<p>{width} the thin lines differ, the chains do not agree yet.</p>{figure}"


def _noise(post: Posterior) -> str:
    """Correlations of the noise, with how to read them."""
    known = drawn_noise(post)
    assert isinstance(known, NoiseCovariance)
    if len(known.others) < 2:
        return ""
    figure = picture(
        noise_correlations(post),
        "Correlations between the noise of actions, each less that of the base: the mean and the "
        "middle 90%.",
    )
    return (
        "<p>Where the noise of two actions is correlated, who likes one of them more than its row "
        f"explains likes the other more too, both compared with {escape(str(known.base))}.</p>"
        f"{figure}"
    )


def _lapses(post: WithLapses) -> str:
    """Which choices were probably lapses, with how to read it."""
    # a reader wants to look these decisions up
    found = post.lapses()
    likely = found.likeliest(10)
    figure = picture(
        lapse_probabilities(post),
        "How probable it is that each choice was a lapse; the likeliest are marked.",
    )
    rows = table(
        [str(found.decisions.ids[t]) for t in likely],
        {"probability of a lapse": numbers(found.probability[likely], ".2f")},
    )
    blindly = (
        "in proportion to how often each action is taken by habit"
        if "habit" in post.draws
        else "each action being as likely as another"
    )
    return (
        f"<p>A lapse is a choice made blindly, {blindly}. "
        f"{found.probability.sum():.1f} of {len(found.probability)} choices are expected to have "
        f"been lapses. The decisions that were most probably lapses:</p>{figure}{rows}"
    )


def _transitions(post: MDPPosterior) -> str:
    """Where actions lead, with how to read it."""
    figure = picture(
        transitions(post),
        "For each action a table of the probability of each next state, given the state; below "
        "it the sds.",
    )
    return (
        "<p>Where actions lead was inferred with the values: from the transitions that were seen, "
        f"and from the choices. A large sd marks what was hardly seen.</p>{figure}"
    )


def _shrinkage(post: HierarchicalPosterior) -> str:
    """What pooling does to each group."""
    figure = picture(
        shrinkage(post),
        "The most likely value of each group by itself, and its posterior mean as one of the "
        "population, with a line between the two.",
    )
    return (
        "<p>As one of the population, a group with few decisions is drawn towards the mean of all; "
        f"one with many stays where its own decisions put it.</p>{figure}"
    )


def _groups_table(post: HierarchicalPosterior | SeparatePosterior) -> str:
    """A row for each group: its decisions, its values, and how well they mix."""
    names, groups = post.names, post.groups
    label = str(getattr(post.data, "group_name", None) or "group")
    means, sds, when = post.mean("value"), post.sd("value"), ""
    if (paths := post.resolved.group_paths) is not None:
        # of a path the value that it has come to
        last = paths.start[1:] - 1
        means, sds, when = means[last], sds[last], " at its last time"
    ess, r_hat = _group_diagnostics(post)
    shown, note = np.arange(len(groups)), ""
    if len(groups) > LIMITS.rows:
        shown = np.sort(np.argsort(ess, kind="stable")[: LIMITS.rows])
        note = (
            f" The table shows the {LIMITS.rows} groups with the fewest effective draws; "
            f"{len(groups) - LIMITS.rows} are left out."
        )
    if len(names) > LIMITS.group_columns:
        note += (
            f" It has the first {LIMITS.group_columns} of {len(names)} values; "
            f"<code>select({escape(label)}=...)</code> has the others."
        )
    columns = {"decisions": [str(n) for n in _decisions_of_groups(post)[shown]]}
    for k, name in enumerate(names[: LIMITS.group_columns]):
        columns[name] = [f"{means[i, k]:.2f} ± {sds[i, k]:.2f}" for i in shown]
    columns["fewest effective draws"] = numbers(ess[shown], ".0f")
    columns["largest R-hat"] = numbers(r_hat[shown], ".3f")
    missing = ""
    if isinstance(post, SeparatePosterior) and post.not_fitted:
        some = ", ".join(post.not_fitted[:10]) + (", ..." if len(post.not_fitted) > 10 else "")
        missing = (
            f"<p>The work was interrupted, and {len(post.not_fitted)} groups are missing: "
            f"{escape(some)}.</p>"
        )
    rows = [str(groups[i]) for i in shown]
    return (
        f"<p>Each group: posterior mean ± sd of its values{when}.{note}</p>{missing}"
        f"{table(rows, columns, corner=label)}"
    )


def _group_diagnostics(post: HierarchicalPosterior | SeparatePosterior) -> tuple[Floats, Floats]:
    """(N,) the fewest effective draws and the largest R-hat of each group."""
    if isinstance(post, SeparatePosterior):
        summaries = post.summaries
        worst = [_worst(summaries[label]) for label in post.groups]
    else:
        whole, width = post.summary_of_groups(), len(post.names)
        ess = np.where(whole.fixed, np.nan, whole.ess_bulk)
        first = np.arange(0, len(ess), width)
        if isinstance(post, HierarchicalPathPosterior):
            widths = [len(part.names) for part in post.columns_of_groups()]
            first = np.cumsum([0, *widths[:-1]])
        return np.fmin.reduceat(ess, first), np.fmax.reduceat(whole.r_hat, first)
    return np.array([ess for ess, _ in worst]), np.array([r for _, r in worst])


def _worst(summary: Summary) -> tuple[float, float]:
    """The fewest effective draws and the largest R-hat of what can move."""
    moving = ~summary.fixed
    return float(summary.ess_bulk[moving].min()), float(summary.r_hat[moving].max())


def _decisions_of_groups(post: HierarchicalPosterior | SeparatePosterior) -> Ints:
    """(N,) how many decisions each group made."""
    return np.bincount(post.resolved.group_of_decision, minlength=len(post.groups))


def _players_table(post: RankingPosterior) -> str:
    """A row for each player, best first: skill, likely places, and the probability to be best."""
    lines = post.table()
    note = (
        ""
        if len(lines) <= LIMITS.rows
        else f"<p>The best {LIMITS.rows} of {len(lines)} players; the others are left out.</p>"
    )
    lines = lines[: LIMITS.rows]
    columns = {
        "skill": [f"{line['skill']:.2f}" for line in lines],
        "sd": [f"{line['sd']:.2f}" for line in lines],
        "5%": [f"{line['low']:.2f}" for line in lines],
        "95%": [f"{line['high']:.2f}" for line in lines],
        "likely places": [f"{line['place_low']} to {line['place_high']}" for line in lines],
        "the best of all": [f"{line['best']:.0%}" for line in lines],
        "games": [str(line["games"]) for line in lines],
    }
    after = "<p>How well these numbers are known from the draws:</p>"
    return note + table([line["player"] for line in lines], columns, corner="player") + after


def identification_section(post: Posterior) -> str:
    """What the data identify, or the sentence why that is not told."""
    try:
        found = post.identification()
    except ValueError as reason:
        sentence = str(reason)
        text = f"<p>{escape(sentence[0].upper() + sentence[1:])}.</p>"
        if isinstance(post.data, Rankings):
            ties_bound = not (isinstance(post.model, RankingModel) and post.model.is_logit)
            return text + _unbounded(post.data, ties_bound)
        return text + (
            "<p>In the tables above, an sd as large as the prior's marks what the decisions have "
            "not said.</p>"
        )
    return _identification_in_words(found)


def _unbounded(rankings: Rankings, ties_bound: bool) -> str:
    """Which skills the games alone do not bound."""
    found = unbounded_skills(rankings, ties_bound)
    # of teams, sums of skills may be unbounded where no single skill is
    if not found and not (rankings.sizes == 1).all():
        direction = unbounded_team_direction(rankings, ties_bound)
        found = [] if direction is None else [f"no game contradicts the direction ({direction})"]
    if not found:
        return (
            "<p>No player, and no group of players, won or lost every comparison with the others: "
            "the games bound every skill.</p>"
        )
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in found)
    return f"<p>Here the prior alone sets limits to skills:</p><ul>{items}</ul>"


def _identification_in_words(identification: Identification) -> str:
    """The report of identification without its table: paragraphs, indented lines as lists."""
    # the table of the text has numbers that the page shows already
    _, *paragraphs = str(identification).split("\n\n")
    parts = []
    for paragraph in paragraphs:
        head, *lines = paragraph.split("\n")
        parts.append(f"<p>{escape(head)}</p>")
        if lines:
            items = "".join(f"<li>{escape(line.strip())}</li>" for line in lines)
            parts.append(f"<ul>{items}</ul>")
    return "".join(parts)


def chains_section(post: Posterior) -> str:
    """Traces and autocorrelations."""
    over_time = picture(
        traces(post),
        "Draws of each quantity in the order they were made, a line for each chain.",
    )
    memory = picture(
        autocorrelations(post),
        "Correlation between draws some steps apart, for each quantity and chain.",
    )
    return (
        "<p>The draws come from chains that were started apart and must forget where. Each panel "
        "should look like one even band without drifts or steps, in which no chain stands out.</p>"
        f"{over_time}"
        "<p>Neighbouring draws resemble each other, and the slower that fades the fewer "
        f"independent draws they are worth.</p>{memory}"
    )
