"""Which numbers of a posterior a figure shows: by kind, and how many of each.

The columns of a posterior are of several kinds, such as values and transition probabilities.
Numbers of one kind share a scale and a prior, and the kinds that a fit is made for come first where
not all can be shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.plots.style import LIMITS
from revealed.results.base import Columns, Posterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.paths import PathPosterior
from revealed.results.ranking import RankingPosterior
from revealed.results.separate import SeparatePosterior
from revealed.results.skill_paths import RankingPathPosterior
from revealed.results.switching import SwitchingPosterior

# How values change: sizes of steps, and what figures call them.
STEPS = MappingProxyType(
    {
        "drift_sd": "sd of a step",
        "drift_sd_between_sessions": "sd of a step between sessions",
        "stationary_sd": "sd in the long run",
        "reversion_rate": "rate of reversion",
    }
)
# What is inferred with skills, and what figures call it.
OF_SKILLS = MappingProxyType({"spread": "spread of skills", "margin": "margin of a tie"})


@dataclass(frozen=True, eq=False)
class Kind:
    """Columns of one kind.

    label: what they are. where: (n,) their positions. main: whether they are what the fit is made
    for. low, high: what they cannot pass, such as zero for an sd. per_time: how many of them belong
    to each of several times, one time after the other; zero where there are no times.
    """

    label: str
    where: Ints
    main: bool = True
    low: float = -np.inf
    high: float = np.inf
    per_time: int = 0


def column_kinds(post: Posterior) -> list[Kind]:
    """The columns of any posterior by kind, in the order of `post.columns()`."""
    if isinstance(post, SeparatePosterior):
        # every group has columns of the same kinds, one group after the other; of values that
        # change as many as it has times
        same = post.resolved.group_paths is None
        some = post.groups[:1] if same else post.groups
        parts = [column_kinds(post.select(group=label)) for label in some]
        parts = parts * len(post.groups) if same else parts
        widths = [sum(len(kind.where) for kind in part) for part in parts]
        first = np.cumsum([0, *widths[:-1]])
        return [
            replace(
                of_kind[0],
                where=np.concatenate([f + k.where for f, k in zip(first, of_kind, strict=True)]),
            )
            for of_kind in zip(*parts, strict=True)
        ]
    kinds: list[Kind] = []

    def add(label: str, count: int, **more: Any) -> None:
        before = sum(len(kind.where) for kind in kinds)
        kinds.append(Kind(label, before + np.arange(count), **more))

    if isinstance(post, RankingPathPosterior):
        # as its columns: sizes and margin, then some skills of those who played most
        labels = {**STEPS, **OF_SKILLS}
        for name in ("drift_sd", "spread", "reversion_rate", "margin"):
            if name in post.draws:
                add(labels[name], post.draws[name][0, 0].size, main=False, low=0.0)
        if "coefficient" in post.draws:
            add("coefficient", post.draws["coefficient"].shape[-1], main=False)
        add("skill", len(post.shown_nodes))
        return kinds
    if isinstance(post, RankingPosterior):
        add("skill", len(post.names))
        for name, label in OF_SKILLS.items():
            if name in post.draws:
                add(label, 1, main=False, low=0.0)
        return kinds
    count = len(post.resolved.coefficients.names)
    if isinstance(post, SwitchingPosterior):
        states = len(post.strategies)
        add("value", states * count)
        add("probability to switch", states * states, main=False, low=0.0, high=1.0)
        add("probability to begin", states, main=False, low=0.0, high=1.0)
    elif isinstance(post, PathPosterior):
        for name, label in STEPS.items():
            if name in post.draws:
                add(label, post.draws[name].shape[-1], low=0.0)
        if "long_run_mean" in post.draws:
            add("long-run mean", count)
    elif isinstance(post, HierarchicalPosterior):
        add("population mean", count)
        add("population sd", count, low=0.0)
        # of values that change, each step's median and its spread: as its columns
        for name, label in STEPS.items():
            if f"{name}_population" in post.draws:
                width = post.draws[name].shape[-1]
                add(f"{label}, median group", width, low=0.0)
                add(f"spread of log {label}", width, main=False, low=0.0)
    else:
        add("value", count)
    if "prior_sd" in post.draws:
        add("prior sd", 1, main=False, low=0.0)
    if "df" in post.draws:
        add("degrees of freedom", 1, main=False, low=1.0)
    if "lapse" in post.draws:
        add("rate of lapses", 1, main=False, low=0.0, high=1.0)
    if "population_noise_mean" in post.draws:
        add("sd of lapse coordinates", 1, main=False, low=0.0)
    if "habit" in post.draws:
        add("habit", post.draws["habit"].shape[-1], main=False, low=0.0, high=1.0)
    if "noise_covariance" in post.draws:
        size = post.draws["noise_covariance"].shape[-1]
        add("noise covariance", size * (size + 1) // 2, main=False)
    if "transition" in post.draws:
        cells = post.draws["transition"].shape[-1]
        add("transition probability", cells, main=False, low=0.0, high=1.0)
    if isinstance(post, PathPosterior):
        add("value", count * len(post.shown_times), per_time=count)
    if isinstance(post, SwitchingPosterior) and "lp" in post.sample_stats:
        add("log posterior", 1, main=False)
    return kinds


def prior_moments(post: Posterior) -> Floats:
    """(2, n) mean and sd of the normal prior of each column; NaN where none is known.

    Known are those of values and of a population's mean. Where the prior's sd was inferred, it is
    taken at its median.
    """
    if isinstance(post, SeparatePosterior):
        return np.hstack([prior_moments(post.select(group=label)) for label in post.groups])
    moments = np.full((2, sum(len(kind.where) for kind in column_kinds(post))), np.nan)
    if isinstance(post, RankingPosterior) or post.resolved.prior.flat:
        return moments
    prior = post.resolved.prior
    if prior.scale is not None:
        prior = prior.at_scale(float(np.median(post.draws["prior_sd"])))
    # the diagonal of basis P^-1 basis'
    covariance = np.linalg.inv(prior.precision)
    variance = np.einsum("ki,ij,kj->k", prior.basis, covariance, prior.basis)
    # of values that change, the prior is of the first one, or of what they revert to
    with_prior = ("value", "population mean", "long-run mean")
    known = next(k for k in column_kinds(post) if k.label in with_prior)
    own = known.where[: len(variance)]
    moments[:, own] = prior.mean, np.sqrt(variance)
    # every strategy has the same prior
    if isinstance(post, SwitchingPosterior):
        moments[:, known.where] = np.tile(moments[:, own], len(post.strategies))
    return moments


def columns_to_show(
    post: Posterior, columns: Columns, most: int = LIMITS.panels, *, main_first: bool = False
) -> tuple[Ints, str]:
    """Which columns get a panel, or a row, and a sentence where that is not all of them.

    Of too many, those with the fewest effective draws. main_first: only then those of other kinds
    than the main ones.
    """
    count = len(columns.names)
    if count <= most:
        return np.arange(count), ""
    # those that mix worst are those to look at; what cannot move, last
    ess = np.where(columns.fixed, np.inf, post.summary().ess_bulk)
    kinds, other = column_kinds(post), np.zeros(count, np.bool_)
    for kind in kinds:
        other[kind.where] = main_first and not kind.main
    shown = np.sort(np.lexsort((ess, other))[:most])
    if other.any():
        return shown, (
            f"Shown are {most} of {count} quantities, {kinds[0].label}s before others; of each "
            "kind, those with the fewest effective draws."
        )
    return shown, (
        f"Shown are the {most} quantities with the fewest effective draws; {count - most} are left "
        "out."
    )


def columns_with_intervals(
    columns: Columns, kinds: list[Kind]
) -> tuple[list[tuple[Kind, Ints]], str]:
    """Which columns of each kind get a line, and a sentence where that is not all of them.

    Up to forty lines: the main kinds share them, others have what is left. A number that is alone
    of its kind is always shown.
    """
    left = LIMITS.intervals
    taken: dict[str, Ints] = {}
    several = [kind for kind in kinds if len(kind.where) > 1]
    several.sort(key=lambda kind: not kind.main)
    for i, kind in enumerate(several):
        sharing = sum(later.main for later in several[i:]) if kind.main else 1
        # a population's sds are shown of the same coefficients as its means
        paired = i > 0 and kind.main and len(kind.where) == len(several[0].where)
        taken[kind.label] = (
            kind.where[np.isin(several[0].where, taken[several[0].label])]
            if paired
            else _pick(columns, kind, left // sharing)
        )
        left -= len(taken[kind.label])
    every = [(kind, taken.get(kind.label, kind.where)) for kind in kinds]
    shown = [(kind, where) for kind, where in every if len(where)]
    count, lines = len(columns.names), sum(len(where) for _, where in shown)
    if lines == count:
        return shown, ""
    if any(kind.per_time for kind in kinds):
        return shown, (
            f"Shown are {lines} of {count}, of values those at some times, spread evenly; "
            f"{count - lines} are left out."
        )
    return shown, (
        f"Shown are {lines} of {count}: {kinds[0].label}s that are most clearly not zero before "
        f"others; {count - lines} are left out."
    )


def _pick(columns: Columns, kind: Kind, most: int) -> Ints:
    """Positions of so many columns of a kind, in order: those most clearly not zero.

    Of numbers that cannot be negative, which are never zero, the first; of values at several times,
    all of some times from first to last.
    """
    if kind.low >= 0.0:
        return kind.where[:most]
    if 0 < 2 * kind.per_time <= most < len(kind.where):
        of_time = kind.where.reshape(-1, kind.per_time)
        some = np.linspace(0, len(of_time) - 1, most // kind.per_time)
        return np.asarray(of_time[some.round().astype(int)].ravel())
    # what cannot move is known without any data
    movable = kind.where[~columns.fixed[kind.where]]
    if len(kind.where) <= most or not len(movable):
        return kind.where[:most]
    draws = columns.draws[:, :, movable].reshape(-1, len(movable))
    return movable[most_clearly_not_zero(draws, most)]


def most_clearly_not_zero(draws: Floats, most: int) -> Ints:
    """Positions of so many quantities of (S, n) draws whose medians are most sds from zero."""
    distance = np.abs(np.median(draws, axis=0)) / np.maximum(draws.std(axis=0), 1e-300)
    return np.sort(np.argsort(-distance, kind="stable")[:most])
