"""One page that says what was inferred and whether to believe it: words, tables and pictures.

It is a single HTML file. Nothing on the page is loaded from anywhere else, so it can be mailed,
archived and read without a network.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed import plots
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.io.atomic import atomic_write
from revealed.models.priors import DEFAULT_SD, Flat, HalfStudentT, Prior
from revealed.plots.report_style import REPORT_STYLE
from revealed.results.identification import Identification, identify
from revealed.results.posterior import Posterior
from revealed.results.prediction import Prediction, predict
from revealed.results.summary import Summary
from revealed.results.text import count_things

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(post: Posterior, path: str | os.PathLike[str], *, seed: Seed = 0) -> None:
    """Write the page: summary and message, posterior, identification, predictions, settings.

    Parameters
    ----------
    post
        A posterior with independent noise, such as ``rv.fit`` returns; of a population, one of its
        groups; of an MDPPosterior, its value. Rankings have no report yet.
    path
        The .html file; it is there whole or not at all.
    seed
        Picks the draws behind the predictions where there are more than enough of them.
    """
    atomic_write(Path(path), page(post, seed=seed).encode())


def page(post: Posterior, *, seed: Seed = 0) -> str:
    """The page as text; the arguments are those of `write_report`."""
    _check_posterior(post)
    summary, identification, d = post.summary(), identify(post), post.decisions
    coefficients = count_things(len(post.names), "coefficient")
    title = f"What {count_things(len(d), 'decision')} say about {coefficients}"
    # each section is HTML, under a heading with an anchor
    sections = {
        "What was learnt": _inferred_section(post, summary, identification),
        "What the decisions leave open": _identification_section(identification),
        "How well it predicts": _prediction_section(_predict_own(post, seed)),
        "How it was drawn": _chains_section(post),
        "Settings": _settings_section(post),
    }
    anchors = {name: name.lower().replace(" ", "-") for name in sections}
    links = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for name, anchor in anchors.items())
    body = "".join(
        f'<section aria-labelledby="{anchors[name]}"><h2 id="{anchors[name]}">{name}</h2>'
        f"{text}</section>"
        for name, text in sections.items()
    )
    # the first word or two of the message in bold
    word, _, reason = summary.message.partition(":")
    kind = "good" if summary.converged else "bad"
    return document(
        title,
        f"""<h1>{escape(title)}</h1>
<p class="quiet">{escape(_describe_decisions(d))}</p>
<p class="message {kind}"><strong>{escape(word)}:</strong> <span>{escape(reason)}</span></p>
<nav aria-label="On this page"><ul>{links}</ul></nav>
{body}
<footer>Made by revealed {escape(version("revealed"))} from draws of the posterior. An action's
utility is its row of numbers times the values plus standard normal noise, and the largest utility
is chosen.</footer>""",
    )


def _check_posterior(post: Any) -> None:
    """Refuse what a report cannot be made of, and say what it can be made of.

    A report tells of one value and independent noise.
    """
    if not isinstance(post, Posterior):
        instead = {
            "Population": "give one of its groups, population.group(label)",
            "MDPPosterior": "give its value, posterior.value",
            "RankingPosterior": "print it, or use plots.skill_intervals",
        }
        kind = type(post).__name__
        hint = f"; {instead[kind]}" if kind in instead else ""
        raise ValueError(f"a report needs a Posterior, such as rv.fit returns, not a {kind}{hint}")
    if post.noise is not None:
        raise ValueError(
            "a report tells of independent noise, and this posterior has learnt a noise covariance"
        )


def document(title: str, body: str) -> str:
    """A complete page in our style, with this title and this HTML as its body.

    Reports of studies use it too.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · revealed</title>
<style>{REPORT_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _describe_decisions(d: Decisions) -> str:
    """How many actions the decisions offer, in a sentence."""
    # one number where all decisions offer as many actions
    sizes = d.sizes
    offered = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    by = "" if d.groups is None else f", made by {count_things(len(np.unique(d.groups)), 'group')}"
    return f"Each decision offers {offered} actions; {d.rows.shape[0]} rows in all{by}."


def _inferred_section(post: Posterior, summary: Summary, identification: Identification) -> str:
    """Intervals, the table of the summary, and densities."""
    count = len(post.names)
    shown = np.arange(count)
    note = ""
    # a longer table would not be read, and makes the page slow
    most = 100
    if count > most:
        shown = np.sort(np.argsort(summary.ess_bulk, kind="stable")[:most])
        note = (
            f"<p>The table shows the {most} coefficients with the fewest effective draws; "
            f"{count - most} are left out.</p>"
        )
    # a flat prior has no sd to compare with
    ratio: dict[str, Any] = {}
    if identification.prior_sd is not None:
        ratio = {"sd / prior sd": (identification.sd_ratio, ".2f")}
    columns = {
        "mean": (summary.mean, ".3g"),
        "sd": (summary.sd, ".3g"),
        **ratio,
        "5%": (summary.low, ".3g"),
        "95%": (summary.high, ".3g"),
        "Monte-Carlo error": (summary.mcse, ".2g"),
        "effective draws": (summary.ess_bulk, ".0f"),
        "in the tails": (summary.ess_tail, ".0f"),
        "R-hat": (summary.r_hat, ".3f"),
    }
    lines = []
    for k in shown:
        cells = "".join(f"<td>{_number(values[k], form)}</td>" for values, form in columns.values())
        lines.append(f'<tr><th scope="row">{escape(post.names[k])}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    table = (
        '<div class="scroll"><table><thead><tr><th scope="col"></th>'
        f"{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
    intervals = picture(
        plots.value_intervals(post),
        "Posterior mean, middle half and middle 90% of each coefficient; the numbers are in the "
        "table below.",
    )
    densities = picture(
        plots.posterior_densities(post),
        "Posterior density of each coefficient, for all draws and for each chain, beside the "
        "prior.",
    )
    return (
        "<p>The posterior is what can be said of each value after seeing the choices: a mean, and "
        "how far off it may be. With probability 90% a value lies between its 5% and 95% marks. "
        "Where the sd is as large as the prior's, nothing was learnt.</p>"
        f"{intervals}{note}{table}"
        "<p>Where a curve is as wide as the dashed prior, the decisions have said nothing; where "
        f"the thin lines differ, the chains do not agree yet.</p>{densities}"
    )


def _identification_section(identification: Identification) -> str:
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


def _predict_own(post: Posterior, seed: Seed) -> Prediction:
    """The prediction of the decisions it was inferred from.

    With as many draws as a minute allows, picked at random.
    """
    draws = post.values
    # draws times rows that are predicted from
    cells = 20_000_000
    enough = int(np.clip(cells // post.decisions.rows.shape[0], 50, 1000))
    if len(draws) > enough:
        draws = draws[np.sort(as_generator(seed).choice(len(draws), enough, replace=False))]
    return predict(draws, post.decisions)


def _prediction_section(prediction: Prediction) -> str:
    """Error, log score and calibration in words and a figure."""
    # the error of somebody who picks an action blindly
    guessing = 1.0 - (1.0 / prediction.decisions.sizes).mean()
    calibration = picture(
        plots.calibration(prediction),
        "How often predictions came true, by how probable they were said to be; points near the "
        "diagonal are right.",
    )
    return (
        f"<p>Asked for the most likely action in each of the {len(prediction.decisions)} decisions "
        f"it was learnt from, it is wrong in <strong>{prediction.error_rate:.1%}</strong> (the "
        f"paper's E_a); a blind guess would be wrong in {guessing:.1%}. It is "
        f"{prediction.confidence.mean():.0%} sure on average and right in "
        f"{1.0 - prediction.error_rate:.0%}. The mean log probability of what was chosen (log "
        f"score) is {prediction.log_score:.3f}; 0 would be perfect.</p>"
        "<p>These decisions are the ones it learnt from, so this flatters it: judge it by "
        "decisions it has not seen, with <code>revealed predict</code>.</p>"
        f"{calibration}"
    )


def _chains_section(post: Posterior) -> str:
    """Traces and autocorrelations."""
    over_time = picture(
        plots.traces(post),
        "Each coefficient's draws in the order they were made, a line for each chain.",
    )
    memory = picture(
        plots.autocorrelations(post),
        "Correlation between draws some steps apart, for each coefficient and chain.",
    )
    return (
        "<p>The draws come from chains that were started apart and must forget where. Each panel "
        "should look like one even band without drifts or steps, in which no chain stands out.</p>"
        f"{over_time}"
        "<p>Neighbouring draws resemble each other, and the slower that fades the fewer "
        f"independent draws they are worth.</p>{memory}"
    )


def _settings_section(post: Posterior) -> str:
    """A table of how the posterior was made, and the means of its statistics.

    Enough to run it again.
    """
    chains, draws, _ = post.draws.shape
    facts: dict[str, Any] = {
        "sampler": post.sampler,
        "prior": _describe_prior(post.prior),
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
        f"mean {name}": f"{np.mean(values):.3f}"
        for name, values in post.stats.items()
        if values.dtype.kind in "fiu"
    }
    lines = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table class="settings"><tbody>{lines}</tbody></table>'


def _describe_prior(prior: Prior) -> str:
    """The prior in words."""
    constraint = {True: ", summing to zero", False: ", not summing to zero", None: ""}
    ending = constraint[prior.sum_to_zero]
    if isinstance(prior, Flat):
        return f"flat{ending}"
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


def picture(figure: Figure, words: str) -> str:
    """The figure inside the page, with words for those who cannot see it.

    A PNG image as a data URL, at 100 pixels an inch.
    """
    # inside the page as text, so that one file is all there is to mail
    image = io.BytesIO()
    figure.savefig(image, format="png", metadata={"Software": None})
    data = base64.b64encode(image.getvalue()).decode()
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    source = f'src="data:image/png;base64,{data}" width="{width}" height="{height}"'
    return f'<figure><img {source} alt="{escape(words)}"></figure>'


def _number(value: float, form: str) -> str:
    """A number in this format; a question mark where there is none."""
    return "?" if np.isnan(value) else format(value, form)
