"""The noise of a posterior as predictions and tables need it, its covariance perhaps inferred."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate_if_worthwhile
from revealed.kernels.noise import AnyNoise
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import NoiseCovariance, ResolvedNoise
from revealed.models.habit import bind_habits, kinds_of_offers, label_positions
from revealed.models.lapse import KnownLapse
from revealed.models.noise import KnownNoise, Noise
from revealed.models.student import StudentDraws
from revealed.results.base import Columns, Posterior


def resolved_noise(post: Posterior) -> ResolvedNoise:
    """Which labels the noise covariance has; refuses where noise is independent."""
    found: ResolvedNoise | None = post.resolved.noise
    if found is None:
        raise ValueError("the noise of this posterior is independent and has no covariance")
    return found


def drawn_noise(post: Posterior) -> KnownNoise:
    """The law of the noise.

    With a covariance, lapses or degrees of freedom that were inferred, the draws of that, chains
    one after the other.
    """
    assert isinstance(post.model, ChoiceModel)
    if isinstance(post.model.noise, Noise):
        noise = drawn_law(post)
        if post.model.noise.lapse is None:
            return noise
        # every draw has a rate and habits of its own
        labels = () if post.resolved.habit is None else post.resolved.habit.labels
        habit = dict(zip(labels, post.stacked("habit").T, strict=True)) if labels else None
        return KnownLapse(noise, post.stacked("lapse"), habit)
    # covariances and values of one draw belong together: both in the order of `stacked`
    resolved = resolved_noise(post)
    return NoiseCovariance(
        resolved.labels[resolved.base], resolved.non_base, post.stacked("noise_covariance")
    )


def drawn_law(post: Posterior) -> Noise:
    """The noise of choices that are no lapses, with draws of df where they were inferred."""
    assert isinstance(post.model, ChoiceModel)
    assert isinstance(post.model.noise, Noise)
    return StudentDraws(post.stacked("df")) if "df" in post.draws else post.model.noise


def law_at_mean(post: Posterior) -> Noise:
    """The same with df at its posterior mean."""
    law = drawn_law(post)
    return law.at_mean() if isinstance(law, StudentDraws) else law


def kernel_at_mean(post: Posterior) -> AnyNoise:
    """Independent noise as compiled loops take it, lapses and df at their posterior mean.

    Habits know which labels each of the decisions of the posterior offers.
    """
    assert isinstance(post.model, ChoiceModel)
    noise, lapse = law_at_mean(post), getattr(post.model.noise, "lapse", None)
    if lapse is None:
        return noise.law()
    # a point that stands for all draws: identification looks at the curvature in one place
    rate, habit = float(post.draws["lapse"].mean()), post.resolved.habit
    if habit is None:
        return noise.law_with_lapses(rate)
    kernel = noise.law_with_lapses(rate, post.draws["habit"].mean(axis=(0, 1)))
    return bind_habits(kernel, post.resolved.decisions, habit.of_row)


def counted_decisions(post: Any) -> tuple[Decisions, Floats, AnyNoise]:
    """The different decisions, how often each was made, and their noise, lapses at their mean."""
    noise, habit = kernel_at_mean(post), post.resolved.habit
    d, weight = deduplicate_if_worthwhile(post.decisions, kinds_of_offers(noise))
    # habits were bound to all decisions, and have to be bound to the different ones
    if habit is not None:
        noise = bind_habits(noise, d, label_positions(habit.labels, d))
    return d, weight, noise


def with_noise_columns(post: Posterior, columns: Columns) -> Columns:
    """The columns, and after them the noise covariance's lower triangle where it was inferred."""
    if "noise_covariance" not in post.draws:
        return columns
    covariance, noise = post.draws["noise_covariance"], resolved_noise(post)
    i, j = np.tril_indices(covariance.shape[-1])
    # the scale of the covariance is fixed, on one scale by its first element
    fixed = (i + j == 0) & (noise.scale == "first" or len(noise.non_base) == 1)
    return Columns(
        np.concatenate([columns.draws, covariance[:, :, i, j]], axis=2),
        (*columns.names, *covariance_names(noise.non_base)),
        np.concatenate([columns.fixed, fixed]),
    )


def covariance_names(labels: tuple[Any, ...]) -> list[str]:
    """The names of a covariance's lower triangle, row by row."""
    i, j = np.tril_indices(len(labels))
    return [
        f"var({labels[a]})" if a == b else f"cov({labels[a]}, {labels[b]})"
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]


def refuse_noise_covariance(post: Posterior) -> None:
    """Refuse identification of a posterior with a noise covariance."""
    if post.resolved.noise is not None:
        raise ValueError(
            "what the decisions identify is worked out for independent noise, and this posterior "
            "has inferred a noise covariance"
        )
