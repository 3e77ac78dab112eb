"""One page that says what was learnt and whether to believe it: words, tables and pictures in a single HTML file.

Nothing on the page is loaded from anywhere else, so it can be mailed, archived and read without a network.
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

from understudy import plots
from understudy._files import write_whole
from understudy.decisions import Decisions
from understudy.diagnostics import Summary
from understudy.identify import Identifiability, identify
from understudy.posterior import Posterior
from understudy.predict import Prediction, predict
from understudy.priors import Flat, Prior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 100  # of the summary table
CELLS = 20_000_000  # draws times rows that are predicted from

STYLE = """
:root { color-scheme: light dark; --page: #fbfbf9; --card: #ffffff; --ink: #22262b; --quiet: #5b6069; --line: #e2e2dc;
  --good: #00704f; --good-back: #e8f5ef; --bad: #a33c00; --bad-back: #fdf0e6; --link: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --page: #16181b; --card: #1f1f1f; --ink: #e6e7e9; --quiet: #a3a8b0;
  --line: #34383e; --good: #5ccfa4; --good-back: #14302a; --bad: #ffb27a; --bad-back: #38251a; --link: #7cc4f0; }
  img { filter: invert(0.88) hue-rotate(180deg); } } /* white becomes --card, hues stay */
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .6rem; }
p { max-width: 46rem; margin: .6rem 0; }
a { color: var(--link); }
.quiet { color: var(--quiet); }
.verdict { border-left: 5px solid; border-radius: 4px; padding: .8rem 1.1rem; margin: 1.4rem 0; max-width: none; }
.good { color: var(--good); background: var(--good-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.verdict span { color: var(--ink); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; padding: 0; margin: 1rem 0 0; }
figure { margin: 1.2rem 0; padding: .8rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { color: var(--quiet); font-weight: 600; white-space: normal; vertical-align: bottom; }
tbody th { font-weight: 500; }
.settings td { text-align: left; white-space: normal; }
section ul { padding-left: 1.2rem; max-width: 46rem; }
section li { margin: .3rem 0; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .88rem; color: var(--quiet); }
"""


def write_report(post: Posterior, path: str | os.PathLike[str], *, seed: int = 0) -> None:
    """Write the page: summary and verdict, posterior, identifiability, predictions, chains and settings.

    Args:
        post: the posterior to tell of.
        path: the .html file; it is there whole or not at all.
        seed: picks the draws behind the predictions where there are more than enough of them.
    """
    write_whole(Path(path), page(post, seed=seed).encode())


def page(post: Posterior, *, seed: int = 0) -> str:
    """The page as text."""
    if post.noise is not None:
        raise ValueError("a report tells of independent noise, and this posterior has learnt a noise covariance")
    summary, known, d = post.summary(), identify(post), post.decisions
    title = f"What {_count(len(d), 'decision')} say about {_count(len(post.names), 'coefficient')}"
    sections = {
        "What was learnt": _learnt(post, summary, known),
        "What the decisions leave open": _open(known),
        "How well it predicts": _predicts(_prediction(post, seed)),
        "How it was drawn": _drawn(post),
        "Settings": _settings(post),
    }
    anchors = {name: name.lower().replace(" ", "-") for name in sections}
    links = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for name, anchor in anchors.items())
    body = "".join(
        f'<section aria-labelledby="{anchors[name]}"><h2 id="{anchors[name]}">{name}</h2>{text}</section>'
        for name, text in sections.items()
    )
    word, _, reason = summary.verdict.partition(":")
    return document(
        title,
        f"""<h1>{escape(title)}</h1>
<p class="quiet">{escape(_facts(d))}</p>
<p class="verdict {"good" if summary.trusted else "bad"}"><strong>{escape(word)}:</strong> <span>{escape(reason)}</span></p>
<nav aria-label="On this page"><ul>{links}</ul></nav>
{body}
<footer>Made by understudy {escape(version("understudy"))} from draws of the posterior. An action's utility is its row
of numbers times the values plus standard normal noise, and the largest utility is chosen.</footer>""",
    )


def document(title: str, body: str) -> str:
    """A page of our looks, whole in itself."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · understudy</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _facts(d: Decisions) -> str:
    sizes = d.sizes
    offered = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    by = "" if d.groups is None else f", made by {_count(len(np.unique(d.groups)), 'group')}"
    return f"Each decision offers {offered} actions; {d.rows.shape[0]} rows in all{by}."


def _learnt(post: Posterior, summary: Summary, known: Identifiability) -> str:
    count = len(post.names)
    shown = np.arange(count)
    note = ""
    if count > ROWS:
        shown = np.sort(np.argsort(summary.ess_bulk, kind="stable")[:ROWS])
        note = f"<p>The table shows the {ROWS} coefficients with the fewest effective draws; {count - ROWS} are left out.</p>"
    columns = {
        "mean": (summary.mean, ".3g"),
        "sd": (summary.sd, ".3g"),
        **({} if known.prior_sd is None else {"sd / prior sd": (known.ratio, ".2f")}),
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
        "Posterior mean, middle half and middle 90% of each coefficient; the numbers are in the table below.",
    )
    densities = picture(
        plots.posterior_densities(post),
        "Posterior density of each coefficient, for all draws and for each chain, beside the prior.",
    )
    return (
        "<p>The posterior is what can be said of each value after seeing the choices: a mean, and how far off it may be. "
        "With probability 90% a value lies between its 5% and 95% marks. Where the sd is as large as the prior's, nothing was "
        "learnt.</p>"
        f"{intervals}{note}{table}"
        "<p>Where a curve is as wide as the dashed prior, the decisions have said nothing; where the thin lines differ, "
        f"the chains do not agree yet.</p>{densities}"
    )


def _open(known: Identifiability) -> str:
    """The identifiability report without its table: paragraphs, their indented lines as lists."""
    _, *paragraphs = str(known).split("\n\n")
    parts = []
    for paragraph in paragraphs:
        head, *lines = paragraph.split("\n")
        parts.append(f"<p>{escape(head)}</p>")
        if lines:
            parts.append(f"<ul>{''.join(f'<li>{escape(line.strip())}</li>' for line in lines)}</ul>")
    return "".join(parts)


def _prediction(post: Posterior, seed: int) -> Prediction:
    """Of the decisions it was learnt from, with as many draws as a minute allows."""
    draws = post.values
    enough = int(np.clip(CELLS // post.decisions.rows.shape[0], 50, 1000))
    if len(draws) > enough:
        draws = draws[np.sort(np.random.default_rng(seed).choice(len(draws), enough, replace=False))]
    return predict(draws, post.decisions)


def _predicts(found: Prediction) -> str:
    guessing = 1.0 - (1.0 / found.decisions.sizes).mean()
    drawn = picture(
        plots.calibration(found),
        "How often predictions came true, by how probable they were said to be; points near the diagonal are right.",
    )
    return (
        f"<p>Asked for the most likely action in each of the {len(found.decisions)} decisions it was learnt from, it is wrong in "
        f"<strong>{found.error:.1%}</strong> (the paper's E_a); a blind guess would be wrong in {guessing:.1%}. It is "
        f"{found.confidence.mean():.0%} sure on average and right in {1.0 - found.error:.0%}. The mean log probability of what was "
        f"chosen (log score) is {found.log_score:.3f}; 0 would be perfect.</p>"
        "<p>These decisions are the ones it learnt from, so this flatters it: judge it by decisions it has not seen, with "
        "<code>understudy predict</code>.</p>"
        f"{drawn}"
    )


def _drawn(post: Posterior) -> str:
    over_time = picture(
        plots.traces(post), "Each coefficient's draws in the order they were made, a line for each chain."
    )
    memory = picture(
        plots.autocorrelations(post), "Correlation between draws some steps apart, for each coefficient and chain."
    )
    return (
        "<p>The draws come from chains that were started apart and must forget where. Each panel should look like one even "
        f"band without drifts or steps, in which no chain stands out.</p>{over_time}"
        "<p>Neighbouring draws resemble each other, and the slower that fades the fewer independent draws they are "
        f"worth.</p>{memory}"
    )


def _settings(post: Posterior) -> str:
    chains, draws, _ = post.draws.shape
    facts: dict[str, Any] = {
        "engine": post.engine,
        "prior": _prior(post.prior),
        "chains": chains,
        "draws a chain": draws,
    }
    words = {"warmup": "warm-up iterations", "thin": "iterations a draw", "seed": "seed", "options": "engine options"}
    facts |= {word: post.settings[key] for key, word in words.items() if key in post.settings}
    if isinstance(facts.get("engine options"), dict):
        facts["engine options"] = ", ".join(f"{k} = {v}" for k, v in facts["engine options"].items()) or "none"
    facts |= {
        f"mean {name}": f"{np.mean(values):.3f}" for name, values in post.stats.items() if values.dtype.kind in "fiu"
    }
    lines = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table class="settings"><tbody>{lines}</tbody></table>'


def _prior(prior: Prior) -> str:
    centred = {True: ", centred", False: ", not centred", None: ""}[prior.centred]
    if isinstance(prior, Flat):
        return f"flat{centred}"
    given: Any = prior.variance
    if prior.learns:
        of = "" if prior.shape is None else ", of a given shape"
        return f"Gaussian, its size learnt under {prior.scale:g} |t| with 4 degrees of freedom{of}{centred}"
    if isinstance(given, int | float):
        given = f"{given:g}"
    elif np.ndim(given) > 0:
        given = f"a {np.shape(given)} array"
    elif isinstance(given, Mapping):
        given = ", ".join(f"{each:g} ({name})" for name, each in given.items())
    return f"Gaussian, variance {given}{centred}"


def picture(figure: Figure, words: str) -> str:
    """The figure inside the page, with words for those who cannot see it."""
    image = io.BytesIO()
    figure.savefig(image, format="png", metadata={"Software": None})
    data = base64.b64encode(image.getvalue()).decode()
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    source = f'src="data:image/png;base64,{data}" width="{width}" height="{height}"'
    return f'<figure><img {source} alt="{escape(words)}"></figure>'


def _number(value: float, form: str) -> str:
    return "?" if np.isnan(value) else format(value, form)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
