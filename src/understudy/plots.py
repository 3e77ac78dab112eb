"""Pictures of a posterior: what was learnt, how it was drawn, and whether its predictions can be believed.

Every function returns a matplotlib Figure that belongs to nobody else: nothing is shown and no global state changes.
``figure.savefig("values.png")`` writes it. Colours are told apart by colour-blind readers and in grey.

>>> d = us.Decisions([[1.0, 0.0], [0.0, 1.0]] * 20, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
>>> post = us.fit(d, us.Gaussian(1.0))
>>> us.plots.posterior_densities(post).savefig("drinks.png")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.along import hazard as hazard
from understudy.along import reward_curve as reward_curve
from understudy.canvas import (
    BLUE,
    CHAINS,
    GREY,
    INK,
    LINES,
    ORANGE,
    finish,
    intervals,
    new_figure,
    panels,
    short,
    style,
)
from understudy.diagnostics import autocorrelation
from understudy.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from understudy.learnt import LearntMDP
    from understudy.population import Population
    from understudy.predict import Prediction
    from understudy.ranking import Ranking
    from understudy.reward import Reward

PANELS = 12  # small multiples in one figure
FEW = 10  # states that are named, with numbers, in a table of transitions
POINTS = 1000  # of a trace: more only makes the line thicker
SMOOTHED = 4000  # draws behind one density curve


def posterior_densities(post: Posterior, truth: Any = None) -> Figure:
    """The posterior of each coefficient: all draws filled, each chain a thin line, the prior dashed.

    Chains that disagree show as lines apart; a posterior no narrower than its prior has learnt nothing.
    `truth` marks K known values, for instance those a simulation used.
    """
    true = None if truth is None else _truth(truth, len(post.names))
    shown, left_out = _worth_showing(post)
    prior = _prior_moments(post)

    def draw(at: Axes, k: int) -> None:
        at.set_title(short(post.names[k]))
        at.set_yticks([])
        at.spines["left"].set_visible(False)
        x = post.draws[:, :, k]
        if np.ptp(x) == 0.0:
            at.axvline(x[0, 0], color=BLUE, lw=2)
            at.set_xlabel(f"always {x[0, 0]:.3g}")
        else:
            away = np.abs(x - np.median(x))
            reach = 1.15 * (np.quantile(away, 0.998) or away.max())
            grid = np.linspace(np.median(x) - reach, np.median(x) + reach, 200)
            whole = density(x.ravel(), grid)
            at.fill_between(grid, whole, color=BLUE, alpha=0.25, lw=0, label="posterior")
            for i, chain in enumerate(x):
                at.plot(grid, density(chain, grid), color=BLUE, lw=0.7, label="each chain" if i == 0 else None)
            if prior is not None:
                height = np.exp(-0.5 * ((grid - prior[0][k]) / prior[1][k]) ** 2) / (prior[1][k] * np.sqrt(2 * np.pi))
                at.plot(grid, height, color=GREY, lw=1.1, ls="--", label="prior")
        if true is not None:
            at.axvline(true[k], color=ORANGE, lw=1.6, label="truth")
        at.set_ylim(bottom=0.0)

    columns = 3 if len(shown) in (3, 5, 6, 9) else 4
    return panels(
        shown, draw, "What was learnt: the posterior of each coefficient", left_out, columns=columns, height=1.5
    )


def traces(post: Posterior) -> Figure:
    """The draws in the order they were made, a line for each chain: they should look like one even band."""
    shown, left_out = _worth_showing(post)
    summary = post.summary()
    chains, draws, _ = post.draws.shape
    when = np.unique(np.linspace(0, draws - 1, min(draws, POINTS)).astype(int))

    def draw(at: Axes, k: int) -> None:
        known = np.isfinite(summary.ess_bulk[k])
        words = f"   R-hat {summary.r_hat[k]:.3f}, {summary.ess_bulk[k]:.0f} effective draws" if known else ""
        at.set_title(short(post.names[k]) + words)
        for i in range(chains):
            at.plot(when, post.draws[i, when, k], lw=0.6, alpha=0.75, **_chain(i, chains))
        at.margins(x=0.01)

    some = f"{len(when)} of {draws} draws a chain are drawn." if len(when) < draws else ""
    note = " ".join(filter(None, (left_out, some)))
    return panels(shown, draw, "How it was drawn: the chains over time", note, columns=2, height=1.45, below="draw")


def autocorrelations(post: Posterior) -> Figure:
    """How long a chain remembers: the correlation between draws some steps apart, a line for each chain."""
    from matplotlib.ticker import MaxNLocator

    shown, left_out = _worth_showing(post)
    chains, draws, _ = post.draws.shape
    memory = {k: autocorrelation(post.draws[:, :, k]) for k in shown}
    # as many steps as the slowest shown coefficient needs to forget, but not so many that only noise is left
    faded = [int(np.argmax(np.append(each.mean(axis=0) < 0.05, True))) for each in memory.values()]
    steps = int(min(max(20, 1.3 * max(faded)), draws // 3))
    noise = 1.96 / np.sqrt(draws)

    def draw(at: Axes, k: int) -> None:
        at.set_title(short(post.names[k]))
        at.axhspan(-noise, noise, color=GREY, alpha=0.2, lw=0, label="what chance alone gives")
        at.axhline(0.0, color=GREY, lw=0.8)
        for i in range(chains):
            at.plot(memory[k][i, : steps + 1], lw=1.0, **_chain(i, chains))
        at.set_ylim(min(-0.25, -1.2 * noise), 1.05)
        at.set_xlim(0, max(steps, 1))
        at.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    title = "How long the chains remember: autocorrelation"
    return panels(shown, draw, title, left_out, columns=4, height=1.45, below="draws apart", share=True)


def value_intervals(post: Posterior, truth: Any = None) -> Figure:
    """Every coefficient on one scale: the mean, the middle half and the middle 90% of its posterior."""
    true = None if truth is None else _truth(truth, len(post.names))
    return intervals(post.values, post.names, true, "What was learnt, with its uncertainty", "value")


def reward_intervals(reward: Reward, truth: Any = None) -> Figure:
    """The reward of each state with its uncertainty; `truth` is centred first, because rewards have no zero."""
    names = [str(state) for state in reward.states]
    true = None if truth is None else _truth(truth, len(names))
    if true is not None:
        true = true - true.mean()
    draws = reward.draws.reshape(-1, len(names))
    return intervals(draws, names, true, "The reward behind the values", "reward, up to an additive constant")


def noise_correlations(post: Posterior) -> Figure:
    """Which actions' noise goes together: mean correlations against the base, with the middle 90% of each."""
    known = post.known_noise
    if known is None:
        raise ValueError("the noise of this posterior is independent; fit with noise=us.FullNoise(base=...)")
    names, size = [short(str(label)) for label in known.others], len(known.others)
    middle = known.correlation.mean(axis=0)
    low, high = np.quantile(known.correlation, [0.05, 0.95], axis=0)
    with style():
        figure = new_figure(2.2 + 0.95 * size, 1.6 + 0.75 * size)
        at = figure.subplots()
        shown = np.where(np.tri(size, k=-1, dtype=bool), middle, np.nan)
        image = at.imshow(shown, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
        for i in range(size):
            at.text(i, i, names[i], ha="center", va="center", fontweight="bold", fontsize=8)
            for j in range(i):
                ink = "white" if abs(middle[i, j]) > 0.6 else INK
                words = f"{middle[i, j]:.2f}\n{low[i, j]:.2f} to {high[i, j]:.2f}"
                at.text(j, i, words, ha="center", va="center", color=ink, fontsize=7.5)
        at.set_xticks([])
        at.set_yticks([])
        for side in at.spines.values():
            side.set_visible(False)
        figure.colorbar(image, ax=at, label="correlation", shrink=0.8)
        finish(
            figure,
            "Which noise goes together?",
            f"Noise of each action less that of {known.base}; mean and middle 90%.",
        )
    return figure


def transitions(learnt: LearntMDP) -> Figure:
    """What was learnt of the transitions: for each action the mean of p(y | x, a), and below it how unsure that is."""
    both = {"mean": learnt.mean_transitions, "sd": learnt.sd_transitions}
    names, count = [short(str(state)) for state in learnt.states], len(learnt.actions)
    few = len(names) <= FEW
    with style():
        figure = new_figure(1.2 + 2.3 * count, 5.2)
        grid = figure.subplots(2, count, squeeze=False)
        for line, (what, numbers) in zip(grid, both.items(), strict=True):
            top = 1.0 if what == "mean" else float(numbers.max()) or 1.0
            for a, at in enumerate(line):
                image = at.imshow(numbers[a], cmap="Blues", vmin=0.0, vmax=top)
                at.set_title(f"action {short(str(learnt.actions[a]))}: {what}")
                for side in at.spines.values():
                    side.set_visible(False)
                if few:
                    at.set_xticks(range(len(names)), names)
                    at.set_yticks(range(len(names)), names)
                    for (x, y), p in np.ndenumerate(numbers[a]):
                        at.text(
                            y,
                            x,
                            f"{p:.2f}",
                            ha="center",
                            va="center",
                            fontsize=7,
                            color="white" if p > 0.6 * top else INK,
                        )
            line[0].set_ylabel("from state")
            figure.colorbar(image, ax=list(line), shrink=0.8)
        for at in grid[-1]:
            at.set_xlabel("to state")
        finish(
            figure,
            "Where actions lead: the transitions that were learnt",
            f"{learnt.counts.sum():,} transitions were seen.",
        )
    return figure


def skill_intervals(ranking: Ranking, most: int = LINES) -> Figure:
    """The skills of the best players, up to forty, best first, with their uncertainty."""
    best = np.argsort(-ranking.values.mean(axis=0))[: min(most, LINES)]
    names = [ranking.names[k] for k in best]
    title = "Who is better, and how sure that is"
    if len(best) < len(ranking.names):
        title += f": the best {len(best)} of {len(ranking.names)}"
    label = "skill, in units of the noise of one game" + (
        "; zero is the average player" if ranking.orders.level else ""
    )
    return intervals(ranking.values[:, best], names, None, title, label)


def calibration(prediction: Prediction) -> Figure:
    """Did predictions made with probability p come true in a share p of the decisions?

    Decisions are gathered by the probability of their predicted action. Points on the diagonal are right; the grey bars
    are where 95% of the points of a right predictor fall, given how few decisions some of them stand for.
    """
    from matplotlib.ticker import MaxNLocator

    bins = prediction.calibration()
    with style():
        figure = new_figure(6.0, 5.2)
        at, counts = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        at.plot([0, 1], [0, 1], color=GREY, lw=1.0, label="as often as predicted")
        reach = 1.96 * bins.standard_error
        low, high = np.maximum(bins.predicted - reach, 0.0), np.minimum(bins.predicted + reach, 1.0)
        at.vlines(bins.predicted, low, high, color=GREY, alpha=0.45, lw=7, label="chance (95%)")
        at.plot(bins.predicted, bins.observed, "o", color=BLUE, mec="white", ms=8, label="what happened")
        at.set_ylim(-0.03, 1.03)
        at.set_ylabel("share that came true")
        counts.bar(bins.low, bins.count, bins.high - bins.low, align="edge", color=BLUE, alpha=0.55, ec="white")
        counts.set_ylabel("decisions")
        counts.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        counts.set_xlabel("probability of the predicted action")
        counts.set_xlim(-0.02, 1.02)
        wrong = f"predicted wrongly: {prediction.error:.0%} of {len(prediction.decisions)} decisions"
        note = f"Error E_a, {wrong}; mean log probability of what was chosen: {prediction.log_score:.3f}."
        finish(figure, "Can its predictions be believed?", note)
    return figure


def shrinkage(population: Population, names: Sequence[str] | None = None) -> Figure:
    """Each player by himself (above) and as one of the population (below), a line between the two.

    `names` picks coefficients; all unless said, up to twelve.
    """
    found = population.shrinkage()
    wanted = found.names if names is None else ([names] if isinstance(names, str) else list(names))
    unknown = [name for name in wanted if name not in found.names]
    if unknown:
        raise ValueError(f"there is no coefficient {unknown[0]!r}; there are {', '.join(found.names)}")
    shown = np.array([found.names.index(name) for name in wanted[:PANELS]])

    def draw(at: Axes, k: int) -> None:
        low, high = np.quantile(found.separate[:, k], [0.01, 0.99])
        low, high = min(low, found.shrunken[:, k].min()), max(high, found.shrunken[:, k].max())
        alone = np.clip(found.separate[:, k], low, high)
        at.set_title(short(found.names[k]))
        at.axvline(found.centre[k], color=GREY, lw=1.0, ls="--", label="mean of the population")
        at.plot([alone, found.shrunken[:, k]], [1, 0], color=GREY, alpha=min(1.0, 20 / len(alone)), lw=0.8)
        many = min(0.9, 40 / len(alone))
        at.plot(alone, np.ones(len(alone)), "o", color=ORANGE, ms=4, alpha=many, mew=0, label="each player alone")
        at.plot(
            found.shrunken[:, k], np.zeros(len(alone)), "o", color=BLUE, ms=4, alpha=many, mew=0, label="as one of many"
        )
        at.set_yticks([1, 0], ["alone", "of many"])
        at.set_ylim(-0.35, 1.35)

    left = len(wanted) - len(shown)
    note = "The outermost hundredth of the players alone is drawn at the edge." + (
        f" {left} coefficients are left out." if left else ""
    )
    return panels(shown, draw, "What the population makes of each player", note, columns=2, height=1.7)


def _chain(i: int, chains: int) -> dict[str, Any]:
    """The colour of a chain, and its label while there are few enough to tell apart."""
    label = f"chain {i + 1}" if chains <= 4 else "each chain"
    return {"color": CHAINS[i % len(CHAINS)], "label": label}


def _worth_showing(post: Posterior) -> tuple[Ints, str]:
    """Which coefficients get a panel, and a sentence when that is not all of them."""
    count = len(post.names)
    if count <= PANELS:
        return np.arange(count), ""
    summary = post.summary()
    care = np.where(summary.fixed, np.inf, summary.ess_bulk)[:count]
    shown = np.sort(np.argsort(care, kind="stable")[:PANELS])
    return shown, f"Shown are the {PANELS} coefficients with the fewest effective draws; {count - PANELS} are left out."


def _truth(truth: Any, count: int) -> Floats:
    given = np.asarray(truth, dtype=np.float64)
    if given.shape != (count,):
        raise ValueError(f"truth has shape {given.shape}; give {count} numbers, one for each")
    return given


def _prior_moments(post: Posterior) -> tuple[Floats, Floats] | None:
    """(K,) means and sds of the prior; None when it is flat."""
    placed = post.placed
    if placed.flat:
        return None
    variance = np.einsum("ki,ij,kj->k", placed.basis, np.linalg.inv(placed.precision), placed.basis)
    return placed.mean, np.sqrt(variance)


def density(draws: Floats, grid: Floats) -> Floats:
    """A smooth density of the draws at each point of the grid."""
    some = draws[:: -(-draws.size // SMOOTHED)]
    quarter = np.subtract(*np.quantile(some, [0.75, 0.25])) / 1.349
    width = 0.9 * (min(some.std(), quarter) or some.std()) * some.size**-0.2
    if width == 0.0:
        return np.zeros_like(grid)  # a chain that stands still has no density to draw
    bumps = np.exp(-0.5 * ((grid[:, None] - some) / width) ** 2)
    return np.asarray(bumps.mean(axis=1) / (width * np.sqrt(2.0 * np.pi)))
