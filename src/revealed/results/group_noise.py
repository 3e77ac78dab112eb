"""The noise of groups that have a population: shared by all, or each with a rate of lapses.

    (v_i, z_i) ~ N(mean, covariance),   rate_i a function of z_i   for each group i

A group that was never seen has its value and its rate from the population, both from one draw of
it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels.noise import AnyNoise
from revealed.models.choice import ChoiceModel
from revealed.models.coordinates import coordinates
from revealed.models.lapse import KnownLapse
from revealed.models.noise import KnownNoise, Noise, as_kernel
from revealed.models.noise_draws import name_noise
from revealed.results.base import Columns, Posterior
from revealed.results.drawn_noise import drawn_law, drawn_noise, law_at_mean


class GroupDraws(NamedTuple):
    """Draws of one group: its values (S, K), and the noise under which it chooses."""

    values: Floats
    noise: KnownNoise


def has_own_noise(post: Posterior) -> bool:
    """Whether each group has a rate of lapses of its own."""
    return "population_noise_mean" in post.draws


def draws_of_group(post: Posterior, i: int) -> GroupDraws:
    """Draws of the group at position i, chains one after the other."""
    values = post.stacked("value")[:, i]
    if not has_own_noise(post):
        return GroupDraws(values, drawn_noise(post))
    assert isinstance(post.model, ChoiceModel)
    return GroupDraws(values, KnownLapse(drawn_law(post), post.stacked("lapse")[:, i]))


def kernel_of_group(post: Posterior, i: int) -> AnyNoise:
    """Independent noise of the group at position i as loops take it, a rate at its mean."""
    noise = draws_of_group(post, i).noise
    if isinstance(noise, KnownLapse):
        return as_kernel(KnownLapse(law_at_mean(post), noise.rate.mean()))
    if isinstance(noise, Noise):
        return law_at_mean(post).kernel()
    found: AnyNoise = post.resolved.kernel
    return found


def draw_new_group(post: Posterior, rng: np.random.Generator) -> GroupDraws:
    """A group that was never seen, one from each draw of the population."""
    assert isinstance(post.model, ChoiceModel)
    # in the free coordinates, where the covariance is positive definite
    basis = coordinates(post.data, post.model.value_prior.sum_to_zero)[0]
    covariance = basis.T @ post.draws["population_covariance"] @ basis
    free, own = basis.shape[1], 0
    if has_own_noise(post):
        # what is a group's own of the noise may go with its value
        rest = post.draws["population_noise_covariance"]
        own = rest.shape[-2]
        across = rest[..., : len(basis)] @ basis
        covariance = np.concatenate(
            [
                np.concatenate([covariance, across.swapaxes(-1, -2)], axis=-1),
                np.concatenate([across, rest[..., len(basis) :]], axis=-1),
            ],
            axis=-2,
        )
    z = rng.standard_normal((*post.shape, free + own))
    offset = np.einsum("...ij,...j->...i", np.linalg.cholesky(covariance), z)
    values = post.draws["population_mean"] + offset[..., :free] @ basis.T
    values = np.asarray(values.reshape(-1, len(basis)))
    if own == 0:
        return GroupDraws(values, drawn_noise(post))
    noise = post.draws["population_noise_mean"] + offset[..., free:]
    rate = name_noise(post.resolved.kernel, noise)["lapse"]
    return GroupDraws(values, KnownLapse(drawn_law(post), rate.ravel()))


def lapse_columns(post: Posterior) -> Columns:
    """The rate of lapses; where groups differ, that of the median group and the sd of z."""
    if not has_own_noise(post):
        return Columns(post.draws["lapse"][..., None], ("(lapse)",), np.zeros(1, np.bool_))
    mean, covariance = (post.draws[f"population_noise_{what}"] for what in ("mean", "covariance"))
    rate = name_noise(post.resolved.kernel, mean)["lapse"]
    # the variances of the noise's own coordinates stand at the end of each row
    width = covariance.shape[-1] - covariance.shape[-2]
    sd = np.sqrt(covariance[..., 0, width])
    return Columns(
        np.stack([rate, sd], axis=-1),
        ("(lapse of the median group)", "(sd of lapse coordinates)"),
        np.zeros(2, np.bool_),
    )
