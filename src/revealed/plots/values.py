"""Figures of states that lie on a line, such as mileage or price.

They show what is done in each state, and what it pays, with the uncertainty of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.plots.style import PALETTE, finish, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from revealed.mdp.bellman import Reward
    from revealed.results.policy import Policy


def hazard(
    policy: Policy,
    action: Any,
    where: Any,
    label: str,
    *,
    seen: tuple[Any, Any] | None = None,
    curves: Mapping[str, Any] | None = None,
    groups: int = 10,
) -> Figure:
    """How probable one action is in states that lie on a line, beside what was done.

    Parameters
    ----------
    policy
        Of one decision for each state, in order: ``rv.policy(post, mdp.decisions(range(N)))``.
    action
        Its label.
    where
        (N,) where each state lies.
    label
        What that is.
    seen
        For each decision its state's position and whether the action was taken. Neighbouring states
        are gathered into `groups` of the same width; a bar holds the rate with probability 90%.
        States beyond are not shown.
    curves
        (N,) probabilities of other models, by name.
    groups
        How many points stand for what was done.
    """
    # the row of the action in each state
    labels = policy.decisions.actions
    mine = np.flatnonzero(np.asarray(labels) == action)
    x = np.asarray(where, dtype=np.float64)
    if labels is None or x.shape != (len(policy.decisions),) or mine.size != x.size:
        raise ValueError(
            "a hazard needs one decision and one place for each state, each offering "
            f"{action!r}; there are {len(policy.decisions)} decisions, {mine.size} of them with "
            f"it, and places of shape {x.shape}"
        )
    # beyond the furthest state seen, only the prior speaks
    end = x.size if seen is None else int(np.max(seen[0])) + 1
    shown = slice(0, end)
    low, mean, high = (
        numbers[mine][shown] for numbers in (policy.low, policy.probability, policy.high)
    )
    with style():
        figure = new_figure(7.6, 4.2)
        axes = figure.subplots()
        blue, interval = PALETTE.blue, "90% of the posterior"
        axes.fill_between(x[shown], low, high, color=blue, alpha=0.22, lw=0, label=interval)
        axes.plot(x[shown], mean, color=blue, lw=2.0, label="posterior mean")
        # other models, told apart by their dashes
        patterns = ((4, 2), (1, 1.5), (6, 2, 1, 2))
        for (name, curve), dashes in zip((curves or {}).items(), patterns, strict=False):
            line = np.asarray(curve)[shown]
            axes.plot(x[shown], line, color=PALETTE.ink, lw=1.3, dashes=dashes, label=name)
        note = ""
        if seen is not None:
            position, taken = np.asarray(seen[0]), np.asarray(seen[1], dtype=bool)
            rates = _group_rates(x[position], taken, groups)
            axes.errorbar(
                rates.x,
                rates.rate,
                [rates.rate - rates.low, rates.high - rates.rate],
                fmt="o",
                color=PALETTE.orange,
                ms=5,
                mec="white",
                elinewidth=1.1,
                clip_on=False,
                zorder=3,
                label="what was done",
            )
            axes.set_ylim(top=1.1 * max(rates.high.max(), mean.max()))
            note = (
                f"{action}: {taken.sum()} times in {taken.size:,} decisions. Bars: 90% intervals "
                "of the rates of neighbouring states."
            )
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(x[0], x[end - 1])
        axes.set_xlabel(label)
        axes.set_ylabel(f"probability of {action}")
        finish(figure, f"When does it {action}?", note)
    return figure


class GroupRates(NamedTuple):
    """Rates of an action in groups of neighbouring states.

    x: the mean place of each group's decisions. low, high: the ends of 90% intervals of the rate.
    """

    x: Floats
    rate: Floats
    low: Floats
    high: Floats


def _group_rates(x: Floats, taken: Any, groups: int) -> GroupRates:
    """The shares of decisions in which an action was taken, of so many groups of neighbours.

    Intervals are the 5% and 95% quantiles of Beta(times + 1/2, times not + 1/2), Jeffreys' rule.
    """
    from scipy.special import betaincinv

    # equal widths; groups without a decision are left out
    width = (np.ptp(x) or 1.0) / groups
    _, group = np.unique(np.minimum((x - x.min()) // width, groups - 1), return_inverse=True)
    count, times = np.bincount(group), np.bincount(group, weights=taken)
    low, high = (betaincinv(times + 0.5, count - times + 0.5, q) for q in (0.05, 0.95))
    rate = times / count
    middle = np.bincount(group, weights=x) / count
    # a rate of zero or one is the end of its own interval
    return GroupRates(middle, rate, np.minimum(low, rate), np.maximum(high, rate))


def reward_curve(
    reward: Reward,
    where: Any,
    label: str,
    *,
    seen: Any = None,
    curves: Mapping[str, Any] | None = None,
) -> Figure:
    """The reward of states that lie on a line, with its uncertainty.

    Draws and other curves are centred over what is shown, because rewards have no zero.

    Parameters
    ----------
    reward
        As ``mdp.reward`` returns it.
    where
        (N,) where each state lies.
    label
        What that is.
    seen
        Positions of states that were visited: beyond the furthest of them nothing is shown.
    curves
        (N,) rewards of other models, by name.
    """
    x, draws = np.asarray(where, dtype=np.float64), reward.draws.reshape(-1, len(reward.states))
    if x.shape != (draws.shape[1],):
        raise ValueError(
            f"where has shape {x.shape}; give one place for each of {draws.shape[1]} states"
        )
    shown = slice(0, x.size if seen is None else int(np.max(seen)) + 1)
    # rewards have no zero: each draw is centred over what is shown
    x, draws = x[shown], draws[:, shown] - draws[:, shown].mean(axis=1, keepdims=True)
    with style():
        figure = new_figure(7.6, 3.6)
        axes = figure.subplots()
        blue = PALETTE.blue
        for tail, strength, name in ((0.05, 0.18, "middle 90%"), (0.25, 0.3, "middle half")):
            low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
            axes.fill_between(x, low, high, color=blue, alpha=strength, lw=0, label=name)
        axes.plot(x, draws.mean(axis=0), color=blue, lw=2.0, label="mean")
        for name, curve in (curves or {}).items():
            line = np.asarray(curve)[shown]
            axes.plot(x, line - line.mean(), color=PALETTE.ink, lw=1.3, dashes=(4, 2), label=name)
        axes.set_xlim(x[0], x[-1])
        axes.set_xlabel(label)
        axes.set_ylabel("reward, up to a constant")
        finish(figure, "The reward behind the values", "")
    return figure
