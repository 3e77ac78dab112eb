"""How each sampler is built from a model that was resolved against its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from revealed._types import Ints
from revealed.kernels.noise import count_coordinates
from revealed.models.choice import ResolvedChoiceModel
from revealed.models.groups import Hierarchical
from revealed.models.noise_coordinates import with_noise_coordinates
from revealed.models.priors import ResolvedPrior
from revealed.models.ranking import ResolvedRankingModel
from revealed.samplers.base import Sampler
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.covariance_gibbs import CovarianceGibbsSampler
from revealed.samplers.data_augmentation import DataAugmentationSampler, parse_options
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.hidden_markov import HiddenMarkovSampler
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.hierarchical_gibbs import HierarchicalGibbsSampler
from revealed.samplers.hierarchical_hmc import HierarchicalHMCSampler
from revealed.samplers.hierarchical_paths import HierarchicalPathSampler
from revealed.samplers.ibis import IBISSampler
from revealed.samplers.path_augmentation import PathAugmentationSampler
from revealed.samplers.ranking_hmc import RankingSampler
from revealed.samplers.skill_paths import SkillPathSampler
from revealed.samplers.state_space import StateSpaceSampler
from revealed.samplers.transition_problem import build_unknown_transitions


class BuildArguments(NamedTuple):
    """What a sampler is built from, besides the model and its data.

    options: of the paper's samplers. draws: kept from each chain, which is the number of particles
    where there are particles. threads: how many may be used, None for all. client: of a Dask
    cluster, or None.
    """

    options: Mapping[str, Any]
    draws: int
    threads: int | None = None
    client: Any = None


def build_composite(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """The default of pooled decisions.

    With the coordinates of a noise among its coefficients.
    """
    # what is unknown of the noise is a coefficient to it
    decisions, prior = resolved.sampled_decisions, resolved.sampled_prior
    return CompositeSampler.build(decisions, prior, noise=resolved.kernel)


def build_augmentation(name: str) -> Callable[[Any, BuildArguments], Sampler]:
    """What builds one of the paper's samplers.

    name: by which users ask for it.
    """

    def build(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
        # refuses options that the paper's samplers do not have
        options = parse_options(dict(given.options))
        lapse = getattr(resolved.model.noise, "lapse", None)
        return DataAugmentationSampler.build(
            name, resolved.decisions, resolved.prior, options, lapse
        )

    return build


def build_ibis(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Particles, as many as draws.

    With the coordinates of a noise among their coefficients.
    """
    decisions, prior = resolved.sampled_decisions, resolved.sampled_prior
    return IBISSampler(decisions, prior, given.draws, resolved.kernel)


def build_ghk(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """The default with a noise covariance.

    It is inferred with the coefficients.
    """
    assert resolved.noise is not None
    return GHKSampler(resolved.decisions, resolved.prior, resolved.noise)


def build_covariance_gibbs(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Data augmentation with a noise covariance.

    Imai and van Dyk's, corrected.
    """
    assert resolved.noise is not None
    return CovarianceGibbsSampler(resolved.decisions, resolved.prior, resolved.noise)


def groups_of(resolved: ResolvedChoiceModel) -> tuple[Ints, ResolvedPrior, float]:
    """Whose each decision is, the prior of the mean, and the scale of the prior of the sds."""
    groups, position = resolved.model.groups, resolved.group_of_decision
    assert isinstance(groups, Hierarchical)
    assert position is not None
    return position, resolved.prior, groups.sd_scale


def build_hierarchical(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Groups and their population in turn.

    On threads, or on a cluster.
    """
    return HierarchicalSampler.build(
        resolved.decisions,
        *groups_of(resolved),
        given.threads,
        given.client,
        resolved.law,
    )


def build_hierarchical_hmc(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Groups and their population together.

    On this machine alone.
    """
    if given.client is not None:
        if count_coordinates(resolved.kernel):
            raise ValueError(
                "hierarchical groups with lapses are fitted on this machine alone; give "
                "executor=threads in place of a Dask client, or leave out lapses"
            )
        raise ValueError(
            'the sampler "hierarchical-hmc" runs on this machine alone; give executor=threads in '
            'place of a Dask client, or sampler="hierarchical"'
        )
    group, prior, scale = groups_of(resolved)
    # what each group has of the noise for itself is a coefficient of it
    own, lapse = resolved.own_coordinates, getattr(resolved.model.noise, "lapse", None)
    return HierarchicalHMCSampler.build(
        with_noise_coordinates(resolved.decisions, own),
        group,
        prior.with_standard_normal(own),
        scale,
        resolved.kernel,
        own,
        1.0 if lapse is None else lapse.sd_scale,
    )


def build_hierarchical_gibbs(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Groups with one noise covariance.

    On this machine alone.
    """
    noise = resolved.noise
    assert noise is not None
    if given.client is not None:
        raise ValueError(
            'the sampler "hierarchical-gibbs" runs on this machine alone; give executor=threads '
            "in place of a Dask client, or independent noise"
        )
    return HierarchicalGibbsSampler.build(resolved.decisions, *groups_of(resolved), noise)


def build_hierarchical_paths(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Paths of groups that have a population.

    On this machine alone.
    """
    assert resolved.group_paths is not None
    if given.client is not None:
        raise ValueError(
            'the sampler "hierarchical-state-space" runs on this machine alone; give '
            "executor=threads in place of a Dask client, or groups=rv.Separate()"
        )
    return HierarchicalPathSampler.build(
        resolved.decisions, *groups_of(resolved), resolved.group_paths, resolved.kernel
    )


def build_transitions(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Values and transition rows.

    For trajectories whose rows are unknown.
    """
    return build_unknown_transitions(resolved)


def build_state_space(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Paths of values.

    With the sizes of their steps.
    """
    assert resolved.over_time is not None
    return StateSpaceSampler.build(
        resolved.decisions, resolved.prior, resolved.over_time, resolved.kernel
    )


def build_path_augmentation(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Paths of values, by the paper's data augmentation.

    Under normal noise.
    """
    assert resolved.over_time is not None
    return PathAugmentationSampler.build(resolved.decisions, resolved.prior, resolved.over_time)


def build_hidden_markov(resolved: ResolvedChoiceModel, given: BuildArguments) -> Sampler:
    """Strategies that take turns.

    States are summed out.
    """
    assert resolved.switching is not None
    return HiddenMarkovSampler.build(
        resolved.decisions, resolved.prior, resolved.switching, resolved.kernel
    )


def build_ranking(resolved: ResolvedRankingModel, given: BuildArguments) -> Sampler:
    """Skills of players.

    Under either noise.
    """
    # the likelihood is chosen when loops are compiled, by the noise
    model = resolved.model
    return RankingSampler.build(resolved.data, model.spread, model.team_noise, model.is_logit)


def build_skill_paths(resolved: ResolvedRankingModel, given: BuildArguments) -> Sampler:
    """Skills that change.

    Under either noise.
    """
    model = resolved.model
    assert resolved.paths is not None
    return SkillPathSampler.build_for(
        resolved.data, resolved.paths, model.team_noise, model.is_logit
    )
