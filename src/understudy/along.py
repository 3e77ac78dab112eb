"""Pictures of states that lie on a line, such as mileage or price: what is done there, and what it pays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._arrays import Floats
from understudy.canvas import BLUE, INK, ORANGE, finish, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from understudy.predict import Policy
    from understudy.reward import Reward


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
    """How probable one action is in states that lie on a line, with its uncertainty, beside what was done.

    Args:
        policy: of one decision for each state, in order: ``us.policy(post, mdp.decisions(range(N)))``.
        action: its label.
        where: (N,) where each state lies, and `label` says what that is.
        seen: for each decision its state's position and whether the action was taken. Neighbouring states are gathered
            into `groups` of the same width; a bar holds the rate with probability 90%. States beyond are not shown.
        curves: (N,) probabilities of other models, by name.
    """
    of_action = policy.decisions.actions
    mine = np.flatnonzero(np.asarray(of_action) == action)
    x = np.asarray(where, dtype=np.float64)
    if of_action is None or x.shape != (len(policy.decisions),) or mine.size != x.size:
        raise ValueError(
            f"a hazard needs one decision and one place for each state, each offering {action!r}; there are "
            f"{len(policy.decisions)} decisions, {mine.size} of them with it, and places of shape {x.shape}"
        )
    end = x.size if seen is None else int(np.max(seen[0])) + 1
    shown = slice(0, end)
    with style():
        figure = new_figure(7.6, 4.2)
        at = figure.subplots()
        low, middle, high = (each[mine][shown] for each in (policy.low, policy.probability, policy.high))
        at.fill_between(x[shown], low, high, color=BLUE, alpha=0.22, lw=0, label="90% of the posterior")
        at.plot(x[shown], middle, color=BLUE, lw=2.0, label="posterior mean")
        for (name, curve), dashes in zip((curves or {}).items(), ((4, 2), (1, 1.5), (6, 2, 1, 2)), strict=False):
            at.plot(x[shown], np.asarray(curve)[shown], color=INK, lw=1.3, dashes=dashes, label=name)
        note = ""
        if seen is not None:
            place, hit = np.asarray(seen[0]), np.asarray(seen[1], dtype=bool)
            rate, lowest, highest, middle_of = _rates(x[place], hit, groups)
            at.errorbar(
                middle_of, rate, [rate - lowest, highest - rate], fmt="o", color=ORANGE, ms=5, mec="white", elinewidth=1.1,
                clip_on=False, zorder=3, label="what was done",
            )  # fmt: skip
            at.set_ylim(top=1.1 * max(highest.max(), middle.max()))
            note = f"{action}: {hit.sum()} times in {hit.size:,} decisions. Bars: 90% intervals of the rates of neighbouring states."
        at.set_ylim(bottom=0.0)
        at.set_xlim(x[0], x[end - 1])
        at.set_xlabel(label)
        at.set_ylabel(f"probability of {action}")
        finish(figure, f"When does it {action}?", note)
    return figure


def _rates(x: Floats, hit: Any, groups: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Shares of hits in groups of neighbours, the 5% and 95% quantiles of Beta(hits + 1/2, misses + 1/2), and where they lie."""
    from scipy.special import betaincinv

    width = (np.ptp(x) or 1.0) / groups
    _, group = np.unique(np.minimum((x - x.min()) // width, groups - 1), return_inverse=True)
    tries, hits = np.bincount(group), np.bincount(group, weights=hit)
    low, high = (betaincinv(hits + 0.5, tries - hits + 0.5, q) for q in (0.05, 0.95))
    rate = hits / tries
    return rate, np.minimum(low, rate), np.maximum(high, rate), np.bincount(group, weights=x) / tries


def reward_curve(
    reward: Reward, where: Any, label: str, *, seen: Any = None, curves: Mapping[str, Any] | None = None
) -> Figure:
    """The reward of states that lie on a line, with its uncertainty.

    `where` (N,) says where each state lies, `seen` which were visited: beyond the furthest of them nothing is shown. Draws
    and other `curves` (N,) are centred over what is shown.
    """
    x, draws = np.asarray(where, dtype=np.float64), reward.draws.reshape(-1, len(reward.states))
    if x.shape != (draws.shape[1],):
        raise ValueError(f"where has shape {x.shape}; give one place for each of {draws.shape[1]} states")
    shown = slice(0, x.size if seen is None else int(np.max(seen)) + 1)
    x, draws = x[shown], draws[:, shown] - draws[:, shown].mean(axis=1, keepdims=True)
    with style():
        figure = new_figure(7.6, 3.6)
        at = figure.subplots()
        for reach, strength, name in ((0.05, 0.18, "middle 90%"), (0.25, 0.3, "middle half")):
            low, high = np.quantile(draws, [reach, 1.0 - reach], axis=0)
            at.fill_between(x, low, high, color=BLUE, alpha=strength, lw=0, label=name)
        at.plot(x, draws.mean(axis=0), color=BLUE, lw=2.0, label="mean")
        for name, curve in (curves or {}).items():
            line = np.asarray(curve)[shown]
            at.plot(x, line - line.mean(), color=INK, lw=1.3, dashes=(4, 2), label=name)
        at.set_xlim(x[0], x[-1])
        at.set_xlabel(label)
        at.set_ylabel("reward, up to a constant")
        finish(figure, "The reward behind the values", "")
    return figure
