"""Geweke's joint test: where a sampler's steps alternate with new choices, values follow the prior.

If the sampler leaves the posterior invariant, then drawing choices given the value and moving the
value given the choices leaves their joint law invariant, whose marginal for the value is the prior.
No long chains, no exact posterior.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate
from revealed.kernels.augmentation import (
    AugmentationDraws,
    AugmentationState,
    run_data_augmentation,
)
from revealed.models.priors import resolve_prior
from revealed.samplers.data_augmentation import (
    EXPANSIONS,
    AugmentationOptions,
    DataAugmentationSampler,
)
from tests.support.cases import (
    VARIANTS,
    build_sampler,
    choose,
    fixed_cycle,
    label,
    mark_slow,
    mdp_offers,
    ragged_offers,
)
from tests.support.statistical_asserts import assert_scores, must_fail, z_of_mean

pytestmark = pytest.mark.proves(model="choices, normal prior")
PRIOR_SD = 2.0
OFFERS = {
    "mdp": mdp_offers(states=5, actions=3, count=12, seed=1),
    "ragged": ragged_offers(4, 12, seed=2),
}
STEPS = 25_000


def joint_draws(
    sampler: DataAugmentationSampler, offers: Decisions, steps: int, seed: int
) -> Floats:
    """(steps, K) values of the joint chain, begun at the prior."""
    rng = np.random.default_rng(seed)
    v = resolve_prior(rv.Normal(PRIOR_SD), offers).draw(rng, 1)[0]
    newton = sampler.options.newton if sampler.options.utilities == "metropolis" else -1
    mode_offset, sd = np.zeros(len(offers)), np.ones(1)
    workspace, rivals = sampler.expansion_workspace(), sampler.rivals_workspace()
    out, acceptance, sds = np.empty((steps, v.size)), np.empty(1), np.empty(1)
    for n in range(steps):
        w = offers.rows @ v + rng.standard_normal(offers.rows.shape[0])
        best = np.repeat(np.maximum.reduceat(w, offers.start[:-1]), offers.sizes)
        run_data_augmentation(
            rng,
            sampler.problem._replace(chosen_row=np.flatnonzero(w == best)),
            sampler.prior_scale,
            newton,
            1,
            workspace,
            rivals,
            AugmentationState(v, w, mode_offset, sd),
            AugmentationDraws(out[n : n + 1], acceptance, sds),
        )
    return out


def joint_draws_of_composite(offers: Decisions, steps: int, seed: int) -> Floats:
    """The same for the composite sampler: a cycle of all its moves.

    Its coordinates are adapted to other choices, and kept.
    """
    rng = np.random.default_rng(seed)
    v = resolve_prior(rv.Normal(PRIOR_SD), offers).draw(rng, 1)[0]
    sampler = build_sampler(
        ("composite", AugmentationOptions()),
        offers.with_choices(choose(rng, offers, v)[0]),
        rv.Normal(PRIOR_SD),
    )
    state = fixed_cycle(sampler, rng, hmc=1, augmentation=1, independence=2)
    out = np.empty((steps, v.size))
    for n in range(steps):
        seen = offers.with_choices(choose(rng, offers, v)[0])
        current = replace(
            sampler,
            decisions=seen,
            unique=deduplicate(seen),
            augmentation_sampler=replace(sampler.augmentation_sampler, decisions=seen),
        )
        state, made, _ = current.sample(rng, state | {"cycle_state": np.zeros(5)}, 1, 4)
        v = out[n] = made["value"][0]
    return out


def assert_prior_moments(draws: Floats, offers: Decisions) -> None:
    """Every mean, second moment and product of two values is that of the prior."""
    resolved_prior = resolve_prior(rv.Normal(PRIOR_SD), offers)
    q = draws @ resolved_prior.basis / PRIOR_SD
    scores = [z_of_mean(q[:, i], 0.0) for i in range(q.shape[1])]
    scores += [
        z_of_mean(q[:, i] * q[:, j], float(i == j)) for i in range(q.shape[1]) for j in range(i + 1)
    ]
    assert_scores(scores, false_alarm=1e-6, how="Geweke")


def _applies(variant: tuple[str, AugmentationOptions], problem: str) -> bool:
    # The joint chain draws utilities, as only the paper's samplers do.
    return variant[0] in EXPANSIONS and (problem == "mdp" or variant[0] in ("da", "px-scale"))


CASES = [(v, p) for p in OFFERS for v in VARIANTS if _applies(v, p)]
ALWAYS = ("da-exact", "px-scale-exact-proper", "px-translate-metropolis", "px-both-exact")
"""One variant of each sampler, on the MDP; the others run with --slow."""


@pytest.mark.parametrize(
    ("variant", "problem"),
    mark_slow(CASES, lambda case: case[1] == "mdp" and label(case[0]) in ALWAYS, unpack=True),
    ids=lambda x: x if isinstance(x, str) else label(x),
)
def test_joint_chain_keeps_the_prior(
    variant: tuple[str, AugmentationOptions], problem: str
) -> None:
    offers = OFFERS[problem]
    chosen, _ = choose(np.random.default_rng(0), offers, np.zeros(len(offers.names)))
    sampler = build_sampler(variant, offers.with_choices(chosen), rv.Normal(PRIOR_SD))
    assert_prior_moments(joint_draws(sampler, offers, STEPS, seed=3), offers)


@pytest.mark.proves(sampler="composite")
@pytest.mark.parametrize("problem", mark_slow(OFFERS, lambda problem: problem == "mdp"))
def test_joint_chain_of_the_composite_sampler_keeps_the_prior(problem: str) -> None:
    draws = joint_draws_of_composite(OFFERS[problem], 10_000, seed=3)
    assert_prior_moments(draws, OFFERS[problem])


def test_wrong_degrees_of_freedom_are_caught() -> None:
    """Half the rows are missing from the scale's shape, as when its Jacobian is forgotten."""
    offers = OFFERS["mdp"]
    chosen, _ = choose(np.random.default_rng(0), offers, np.zeros(5))
    sampler = build_sampler(
        ("px-both", AugmentationOptions()), offers.with_choices(chosen), rv.Normal(PRIOR_SD)
    )
    wrong = replace(sampler, move=sampler.move._replace(lost_df=12.0))
    with must_fail("half the rows missing from the working scale's shape", sampler="px-both"):
        assert_prior_moments(joint_draws(wrong, offers, STEPS, seed=3), offers)
