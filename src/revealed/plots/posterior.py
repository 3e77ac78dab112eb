"""Figures of a posterior's draws, of any class: densities, traces, autocorrelations, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed._types import Floats
from revealed.plots.check import check_posterior, check_truth
from revealed.plots.columns import (
    Kind,
    column_kinds,
    columns_to_show,
    columns_with_intervals,
    most_clearly_not_zero,
    prior_moments,
)
from revealed.plots.style import (
    LIMITS,
    PALETTE,
    Intervals,
    plot_intervals,
    plot_panels,
    shorten,
)
from revealed.results.base import Posterior
from revealed.results.density import density
from revealed.results.diagnostics import autocorrelation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from revealed.mdp.bellman import Reward


def posterior_densities(post: Posterior, truth: Any = None) -> Figure:
    """The posterior of each quantity, as a panel with a density.

    All draws are filled, each chain is a thin line, and the prior is dashed where it is known.
    Chains that disagree show as lines apart; a posterior no narrower than its prior has learnt
    nothing.

    Parameters
    ----------
    post
        Any that ``rv.fit`` returns.
    truth
        Known numbers to mark, for instance those a simulation used: one for each value (skill,
        population mean), or one for each of ``post.columns()``.
    """
    check_posterior(post, "posterior_densities")
    columns, kinds = post.columns(), column_kinds(post)
    true = _truth_of_columns(truth, kinds, len(columns.names))
    shown, note = columns_to_show(post, columns, main_first=True)
    prior = prior_moments(post)
    kind_of = {k: kind for kind in kinds for k in kind.where.tolist()}

    def draw(axes: Axes, k: int) -> None:
        axes.set_title(shorten(columns.names[k]))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        _draw_density(axes, columns.draws[:, :, k], prior[:, k], kind_of[k])
        if true is not None and np.isfinite(true[k]):
            axes.axvline(true[k], color=PALETTE.orange, lw=1.6, label="truth")
        axes.set_ylim(bottom=0.0)

    title = "What was learnt: the posterior of each quantity"
    across = 3 if len(shown) in (3, 5, 6, 9) else 4
    return plot_panels(shown, draw, title, note, columns=across, height=1.5)


def _draw_density(axes: Axes, x: Floats, prior: Floats, kind: Kind) -> None:
    """The density of the draws (chain, draw) of one quantity, with its normal prior.

    prior: mean and sd; NaN where there is none to draw.
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
    middle = np.median(x)
    grid = np.linspace(max(middle - reach, kind.low), min(middle + reach, kind.high), 200)

    def height(draws: Floats) -> Floats:
        # what the kernels put beyond a limit is reflected at it
        limits = [limit for limit in (kind.low, kind.high) if np.isfinite(limit)]
        reflected = [density(draws, 2.0 * limit - grid) for limit in limits]
        return np.asarray(sum(reflected, density(draws, grid)))

    axes.fill_between(grid, height(x.ravel()), color=blue, alpha=0.25, lw=0, label="posterior")
    # chains that agree lie on one another
    for i, chain in enumerate(x):
        label = "each chain" if i == 0 else None
        axes.plot(grid, height(chain), color=blue, lw=0.7, label=label)
    mean, sd = prior
    # that of a quantity that cannot move has no width
    if sd > 0.0:
        curve = np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        axes.plot(grid, curve, color=PALETTE.grey, lw=1.1, ls="--", label="prior")


def traces(post: Posterior) -> Figure:
    """The draws in the order they were made, a line for each chain.

    They should look like one even band.

    Parameters
    ----------
    post
        Any that ``rv.fit`` returns.
    """
    check_posterior(post, "traces")
    columns, summary = post.columns(), post.summary()
    shown, note = columns_to_show(post, columns)
    chains, draws = post.shape
    # evenly over the whole chain
    when = np.unique(np.linspace(0, draws - 1, min(draws, LIMITS.trace_points)).astype(int))

    def draw(axes: Axes, k: int) -> None:
        r_hat, ess = summary.r_hat[k], summary.ess_bulk[k]
        words = f"   R-hat {r_hat:.3f}, {ess:.0f} effective draws" if np.isfinite(ess) else ""
        axes.set_title(shorten(columns.names[k]) + words)
        for i in range(chains):
            axes.plot(
                when, columns.draws[i, when, k], lw=0.6, alpha=0.75, **_chain_style(i, chains)
            )
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
        Any that ``rv.fit`` returns.
    """
    from matplotlib.ticker import MaxNLocator

    check_posterior(post, "autocorrelations")
    columns = post.columns()
    shown, note = columns_to_show(post, columns)
    chains, draws = post.shape
    correlations = {k: autocorrelation(columns.draws[:, :, k]) for k in shown}
    # as many lags as the slowest quantity shown needs to fade, but not so many that only noise
    # is left
    faded = [
        int(np.argmax(np.append(by_chain.mean(axis=0) < 0.05, True)))
        for by_chain in correlations.values()
    ]
    lags = int(min(max(20, 1.3 * max(faded)), draws // 3))
    # correlations of independent draws stay within this in 95 of 100 lags
    noise = 1.96 / np.sqrt(draws)

    def draw(axes: Axes, k: int) -> None:
        axes.set_title(shorten(columns.names[k]))
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
    """Every quantity with its uncertainty: mean, middle half and middle 90% of its posterior.

    Those of one kind share a scale: values, noise covariances, transition probabilities.

    Parameters
    ----------
    post
        Any that ``rv.fit`` returns.
    truth
        Known numbers to mark, as in `posterior_densities`.
    """
    check_posterior(post, "value_intervals")
    columns, kinds = post.columns(), column_kinds(post)
    true = _truth_of_columns(truth, kinds, len(columns.names))
    draws = columns.draws.reshape(-1, len(columns.names))
    shown, note = columns_with_intervals(columns, kinds)
    parts = [
        Intervals(
            draws[:, where],
            [columns.names[k] for k in where],
            kind.label,
            None if true is None or np.isnan(true[where]).all() else true[where],
        )
        for kind, where in shown
    ]
    return plot_intervals(parts, "What was learnt, with its uncertainty", note)


def _truth_of_columns(truth: Any, kinds: list[Kind], count: int) -> Floats | None:
    """(n,) known numbers, NaN for columns that are not known; None where none are.

    Given for all columns, or for those of the first kind, which a simulation knows.
    """
    first = kinds[0].where
    true = check_truth(truth, len(first), count)
    if true is None or len(true) == count:
        return true
    padded = np.full(count, np.nan)
    padded[first] = true
    return padded


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
    # where there are many, those that are most clearly not average
    shown, note = most_clearly_not_zero(draws, LIMITS.intervals), ""
    if len(shown) < len(names):
        note = (
            f"Shown are the {len(shown)} of {len(names)} that are most clearly not zero; "
            f"{len(names) - len(shown)} are left out."
        )
    part = Intervals(
        draws[:, shown],
        [names[k] for k in shown],
        "reward, up to an additive constant",
        None if true is None else true[shown],
    )
    return plot_intervals([part], "The reward behind the values", note)


def _chain_style(i: int, chains: int) -> dict[str, Any]:
    """The colour of a chain, and its label while there are few enough to tell apart."""
    label = f"chain {i + 1}" if chains <= 4 else "each chain"
    return {"color": PALETTE.chains[i % len(PALETTE.chains)], "label": label}
