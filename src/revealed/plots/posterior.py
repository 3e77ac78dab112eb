"""Figures of a posterior's draws: densities, traces, autocorrelations, intervals, noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.plots.style import (
    LIMITS,
    PALETTE,
    check_truth,
    finish,
    new_figure,
    plot_intervals,
    plot_panels,
    shorten,
    style,
)
from revealed.results.density import density
from revealed.results.diagnostics import autocorrelation
from revealed.results.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from revealed.mdp.bellman import Reward


def posterior_densities(post: Posterior, truth: Any = None) -> Figure:
    """The posterior of each coefficient, as a panel with a density.

    All draws are filled, each chain is a thin line, and the prior is dashed. Chains that disagree
    show as lines apart; a posterior no narrower than its prior has learnt nothing.

    Parameters
    ----------
    post
        As ``rv.fit`` returns it.
    truth
        K known values to mark, for instance those a simulation used.
    """
    check_posterior(post, "posterior_densities")
    true = check_truth(truth, len(post.names))
    shown, note = _coefficients_to_show(post)
    # a normal law, also where the sd was inferred: then at its median
    prior = _prior_moments(post)

    def draw(axes: Axes, k: int) -> None:
        axes.set_title(shorten(post.names[k]))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        _draw_density(axes, post.draws[:, :, k], None if prior is None else prior[:, k])
        if true is not None:
            axes.axvline(true[k], color=PALETTE.orange, lw=1.6, label="truth")
        axes.set_ylim(bottom=0.0)

    title = "What was learnt: the posterior of each coefficient"
    columns = 3 if len(shown) in (3, 5, 6, 9) else 4
    return plot_panels(shown, draw, title, note, columns=columns, height=1.5)


def _draw_density(axes: Axes, x: Floats, prior: Floats | None) -> None:
    """The density of the draws (chain, draw) of one coefficient, with its normal prior.

    prior: mean and sd; None where there is none to draw.
    """
    blue = PALETTE.blue
    # a quantity that never varies has no density
    if np.ptp(x) == 0.0:
        axes.axvline(x[0, 0], color=blue, lw=2)
        axes.set_xlabel(f"always {x[0, 0]:.3g}")
        return
    # nearly all draws, and as far to one side of the median as to the other
    distance = np.abs(x - np.median(x))
    reach = 1.15 * (np.quantile(distance, 0.998) or distance.max())
    grid = np.linspace(np.median(x) - reach, np.median(x) + reach, 200)
    axes.fill_between(
        grid, density(x.ravel(), grid), color=blue, alpha=0.25, lw=0, label="posterior"
    )
    # chains that agree lie on one another
    for i, chain in enumerate(x):
        label = "each chain" if i == 0 else None
        axes.plot(grid, density(chain, grid), color=blue, lw=0.7, label=label)
    if prior is not None:
        mean, sd = prior
        height = np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        axes.plot(grid, height, color=PALETTE.grey, lw=1.1, ls="--", label="prior")


def traces(post: Posterior) -> Figure:
    """The draws in the order they were made, a line for each chain.

    They should look like one even band.

    Parameters
    ----------
    post
        As ``rv.fit`` returns it.
    """
    check_posterior(post, "traces")
    shown, note = _coefficients_to_show(post)
    summary = post.summary()
    chains, draws, _ = post.draws.shape
    # evenly over the whole chain
    when = np.unique(np.linspace(0, draws - 1, min(draws, LIMITS.trace_points)).astype(int))

    def draw(axes: Axes, k: int) -> None:
        r_hat, ess = summary.r_hat[k], summary.ess_bulk[k]
        words = f"   R-hat {r_hat:.3f}, {ess:.0f} effective draws" if np.isfinite(ess) else ""
        axes.set_title(shorten(post.names[k]) + words)
        for i in range(chains):
            axes.plot(when, post.draws[i, when, k], lw=0.6, alpha=0.75, **_chain_style(i, chains))
        axes.margins(x=0.01)

    some = f"{len(when)} of {draws} draws a chain are drawn." if len(when) < draws else ""
    title = "How it was drawn: the chains over time"
    both = " ".join(filter(None, (note, some)))
    return plot_panels(shown, draw, title, both, columns=2, height=1.45, below="draw")


def autocorrelations(post: Posterior) -> Figure:
    """The correlation between draws some steps apart, a line for each chain.

    Parameters
    ----------
    post
        As ``rv.fit`` returns it.
    """
    from matplotlib.ticker import MaxNLocator

    check_posterior(post, "autocorrelations")
    shown, note = _coefficients_to_show(post)
    chains, draws, _ = post.draws.shape
    correlations = {k: autocorrelation(post.draws[:, :, k]) for k in shown}
    # as many lags as the slowest coefficient shown needs to fade, but not so many that only noise
    # is left
    faded = [
        int(np.argmax(np.append(by_chain.mean(axis=0) < 0.05, True)))
        for by_chain in correlations.values()
    ]
    lags = int(min(max(20, 1.3 * max(faded)), draws // 3))
    # correlations of independent draws stay within this in 95 of 100 lags
    noise = 1.96 / np.sqrt(draws)

    def draw(axes: Axes, k: int) -> None:
        axes.set_title(shorten(post.names[k]))
        label = "what chance alone gives"
        axes.axhspan(-noise, noise, color=PALETTE.grey, alpha=0.2, lw=0, label=label)
        axes.axhline(0.0, color=PALETTE.grey, lw=0.8)
        for i in range(chains):
            axes.plot(correlations[k][i, : lags + 1], lw=1.0, **_chain_style(i, chains))
        axes.set_ylim(min(-0.25, -1.2 * noise), 1.05)
        axes.set_xlim(0, max(lags, 1))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    title = "How long the chains remember: autocorrelation"
    return plot_panels(
        shown, draw, title, note, columns=4, height=1.45, below="draws apart", share=True
    )


def value_intervals(post: Posterior, truth: Any = None) -> Figure:
    """Every coefficient on one scale: mean, middle half and middle 90% of its posterior.

    Parameters
    ----------
    post
        As ``rv.fit`` returns it.
    truth
        K known values to mark.
    """
    check_posterior(post, "value_intervals")
    true = check_truth(truth, len(post.names))
    title = "What was learnt, with its uncertainty"
    return plot_intervals(post.values, post.names, true, title, "value")


def reward_intervals(reward: Reward, truth: Any = None) -> Figure:
    """The reward of each state with its uncertainty.

    Parameters
    ----------
    reward
        As ``mdp.reward`` returns it.
    truth
        Known rewards to mark; they are centred first, because rewards have no zero.
    """
    # labels of states may be numbers
    names = [str(state) for state in reward.states]
    true = check_truth(truth, len(names))
    if true is not None:
        true = true - true.mean()
    draws = reward.draws.reshape(-1, len(names))
    label = "reward, up to an additive constant"
    return plot_intervals(draws, names, true, "The reward behind the values", label)


def noise_correlations(post: Posterior) -> Figure:
    """Which actions' noise goes together: mean correlations against the base, and their middle 90%.

    Parameters
    ----------
    post
        Of a fit with ``noise=rv.CorrelatedNoise(base=...)``.
    """
    check_posterior(post, "noise_correlations")
    known = post.known_noise
    if known is None:
        raise ValueError(
            "the noise of this posterior is independent; fit with "
            "noise=rv.CorrelatedNoise(base=...)"
        )
    names, size = [shorten(str(label)) for label in known.others], len(known.others)
    # correlations of each draw, then their mean and quantiles
    mean = known.correlation.mean(axis=0)
    low, high = np.quantile(known.correlation, [0.05, 0.95], axis=0)
    with style():
        figure = new_figure(2.2 + 0.95 * size, 1.6 + 0.75 * size)
        axes = figure.subplots()
        # the matrix is symmetric: numbers below the diagonal, and names on it
        below = np.where(np.tri(size, k=-1, dtype=bool), mean, np.nan)
        image = axes.imshow(below, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
        for i in range(size):
            axes.text(i, i, names[i], ha="center", va="center", fontweight="bold", fontsize=8)
            for j in range(i):
                ink = "white" if abs(mean[i, j]) > 0.6 else PALETTE.ink
                words = f"{mean[i, j]:.2f}\n{low[i, j]:.2f} to {high[i, j]:.2f}"
                axes.text(j, i, words, ha="center", va="center", color=ink, fontsize=7.5)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        figure.colorbar(image, ax=axes, label="correlation", shrink=0.8)
        note = f"Noise of each action less that of {known.base}; mean and middle 90%."
        finish(figure, "Which noise goes together?", note)
    return figure


def check_posterior(given: Any, what: str) -> None:
    """Refuse what is not a posterior of one controller, and say what to do with it.

    what: the name of the function that was called.
    """
    if isinstance(given, Posterior):
        return
    instead = {
        "Population": "give one of its groups, population.group(label), or use plots.shrinkage",
        "RankingPosterior": "use plots.skill_intervals",
        "MDPPosterior": "give its value, or use plots.transitions",
    }
    kind = type(given).__name__
    hint = f"; {instead[kind]}" if kind in instead else ""
    raise ValueError(f"{what} needs a Posterior, such as rv.fit returns, not a {kind}{hint}")


def _chain_style(i: int, chains: int) -> dict[str, Any]:
    """The colour of a chain, and its label while there are few enough to tell apart."""
    label = f"chain {i + 1}" if chains <= 4 else "each chain"
    return {"color": PALETTE.chains[i % len(PALETTE.chains)], "label": label}


def _coefficients_to_show(post: Posterior) -> tuple[Ints, str]:
    """Which coefficients get a panel, and a sentence when that is not all of them.

    Up to twelve panels; of more coefficients, those with the fewest effective draws.
    """
    count, most = len(post.names), LIMITS.panels
    if count <= most:
        return np.arange(count), ""
    summary = post.summary()
    # those that mix worst are those to look at
    ess = np.where(summary.fixed, np.inf, summary.ess_bulk)[:count]
    shown = np.sort(np.argsort(ess, kind="stable")[:most])
    note = (
        f"Shown are the {most} coefficients with the fewest effective draws; {count - most} are "
        "left out."
    )
    return shown, note


def _prior_moments(post: Posterior) -> Floats | None:
    """(2, K) means and sds of the prior; None when it is flat."""
    prior = post.resolved_prior
    if prior.flat:
        return None
    # the diagonal of basis P^-1 basis'
    covariance = np.linalg.inv(prior.precision)
    variance = np.einsum("ki,ij,kj->k", prior.basis, covariance, prior.basis)
    return np.stack([prior.mean, np.sqrt(variance)])
