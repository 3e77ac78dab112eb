"""More games for skills that were drawn already: chains go on from the draws there are.

As `path_update.py` does for values that change. Each player's path goes on to the dates of the new
games as its law says, and who is new begins where the population does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from revealed._types import Floats, Ints
from revealed.kernels.skill_likelihood import SkillData
from revealed.models.ranking import ResolvedRankingModel
from revealed.models.skill_paths import ResolvedSkillPaths
from revealed.samplers.adaptation import covariance_roots
from revealed.samplers.base import Draws
from revealed.samplers.path_reference import PathReference
from revealed.samplers.path_update import PathUpdateSampler, noise_of_all
from revealed.samplers.skill_paths import SkillPathSampler, SkillReferenceFinder, skill_data
from revealed.samplers.state_space import STATE_SPACE, Position


@dataclass(frozen=True, eq=False)
class SkillUpdateSampler(PathUpdateSampler, SkillPathSampler):
    """The sampler of all games, begun from draws of a fit to fewer."""


def chosen_draws(chains: int, count: int) -> Ints:
    """Draws whose paths are needed, counted through all chains.

    Some that are spread over all of them, then the last one of each chain.
    """
    some = np.linspace(0, chains * count - 1, STATE_SPACE.paths).round().astype(np.int64)
    return np.append(some, np.arange(1, chains + 1) * count - 1)


def skill_update_sampler(
    resolved: ResolvedRankingModel, draws: Draws, paths: Floats
) -> SkillUpdateSampler:
    """The sampler of all games, from draws of a fit to fewer of them.

    draws: (chain, draw, ...) by the names of the model's parameters. paths: (n, N) skills at all
    dates, the new ones too, of `chosen_draws`.
    """
    own, model = resolved.paths, resolved.model
    assert own is not None
    data = skill_data(resolved.data, own, model.team_noise, model.is_logit)
    theta, noise = skill_theta(own, draws), skill_noise(own, data, draws)
    chains, count = theta.shape[:2]
    which = chosen_draws(chains, count)
    all_theta, all_noise = theta.reshape(chains * count, -1), noise.reshape(chains * count, -1)
    if own.newcomer_sd:
        # kernels have the mean of newcomers apart from their paths
        mean = draws["newcomer_mean"].reshape(-1)[which]
        paths = paths - mean[:, None] * own.newcomer
    some, last = np.split(paths[:, :, None], [len(which) - chains])
    finder = SkillReferenceFinder(data, own.process, own.known)
    stand_in = finder.mean_stand_in(some, all_noise[which[:-chains]])
    unknown = np.flatnonzero(np.isnan(own.known))
    root = np.zeros((theta.shape[2], len(unknown)))
    root[unknown] = covariance_roots(all_theta[:, unknown], power=1.0)[0]
    start = PathReference(all_theta.mean(axis=0), last[-1], stand_in, root)
    bare = SkillPathSampler.begun_at(start, data, resolved.data, own)
    fields = {name: getattr(bare, name) for name in bare.__dataclass_fields__}
    position = Position(theta[:, -1], noise[:, -1], last)
    return SkillUpdateSampler(**fields, position=position, of_noise=noise_of_all(all_noise))


def skill_theta(own: ResolvedSkillPaths, draws: Draws) -> Floats:
    """(chain, draw, P) theta of draws by name: the inverse of how the sampler names them."""
    shape = draws["skill"].shape[:2]
    theta = np.broadcast_to(own.known, (*shape, len(own.known))).copy()
    for name, at in own.places.items():
        if name in draws:
            theta[..., at : at + own.process.sizes] = np.log(draws[name])
    return theta


def skill_noise(own: ResolvedSkillPaths, data: SkillData, draws: Draws) -> Floats:
    """(chain, draw, E) coordinates of margin, coefficients and mean of newcomers.

    Before any game each is standard normal. Where the first ties are among the new games, chains
    begin in the middle of the margin's prior.
    """
    shape, parts = draws["skill"].shape[:2], []
    if data.margin_sd > 0.0:
        coordinate = np.zeros(shape)
        if "margin" in draws:
            # P(margin above) = 2 Phi(-margin / sd) is P(coordinate above) = Phi(-coordinate)
            above = np.log(2.0) + log_ndtr(-draws["margin"] / data.margin_sd)
            coordinate = -np.asarray(ndtri_exp(np.minimum(above, -1e-12)))
        parts.append(coordinate[..., None])
    if own.covariate_names:
        parts.append(draws["coefficient"] / own.coefficient_sd)
    if own.newcomer_sd:
        parts.append(draws["newcomer_mean"][..., None] / own.newcomer_sd)
    return np.concatenate(parts, axis=2) if parts else np.zeros((*shape, 0))
