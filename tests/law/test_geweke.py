"""Geweke's joint test: alternate one step of the engine with fresh choices, and the values must follow the prior.

If the engine leaves the posterior invariant, then drawing choices given the value and moving the value given the
choices leaves their joint law invariant, whose marginal for the value is the prior. No long chains, no oracle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from evidence import assert_scores, caught, z_of_mean
from problems import VARIANTS, build, choose, fixed_round, label, mdp_offers, ragged_offers
from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.augmented import Augmented, Options
from understudy.engines.tally import tally
from understudy.kernels.augmentation import sweep
from understudy.kernels.expansion import Scratch
from understudy.priors import place

pytestmark = pytest.mark.proves(model="choices, Gaussian prior")
KAPPA = 4.0
OFFERS = {"mdp": mdp_offers(states=5, actions=3, count=12, seed=1), "ragged": ragged_offers(4, 12, seed=2)}
STEPS = 25_000


def joint_draws(engine: Augmented, offers: Decisions, steps: int, seed: int) -> Floats:
    """(steps, K) values of the joint chain, begun at the prior."""
    rng = np.random.default_rng(seed)
    v = place(us.Gaussian(KAPPA), offers).draw(rng, 1)[0]
    newton = engine.options.newton if engine.options.utilities == "metropolis" else -1
    near, lead = np.empty(int(offers.sizes.max())), np.zeros(len(offers))
    scratch = Scratch(np.empty(v.size), np.empty(engine.move.factor.shape[1]), np.empty(v.size))
    out, acceptance, sd, sizes = np.empty((steps, v.size)), np.empty(1), np.ones(1), np.empty(1)
    for n in range(steps):
        w = offers.rows @ v + rng.standard_normal(offers.rows.shape[0])
        best = np.repeat(np.maximum.reduceat(w, offers.start[:-1]), offers.sizes)
        sweep(
            rng, engine.design, offers.start, np.flatnonzero(w == best), engine.move, engine.size, newton, 1,
            scratch, near, lead, v, w, sd, out[n : n + 1], acceptance, sizes,
        )  # fmt: skip
    return out


def joint_draws_of_blended(offers: Decisions, steps: int, seed: int) -> Floats:
    """The same for the blended engine: a round of all its moves, in coordinates learnt from other choices and kept."""
    rng = np.random.default_rng(seed)
    v = place(us.Gaussian(KAPPA), offers).draw(rng, 1)[0]
    engine = build(("blended", Options()), offers.with_choices(choose(rng, offers, v)[0]), us.Gaussian(KAPPA))
    state = fixed_round(engine, rng, paths=1, sweeps=1, leaps=2)
    out = np.empty((steps, v.size))
    for n in range(steps):
        seen = offers.with_choices(choose(rng, offers, v)[0])
        now = replace(engine, decisions=seen, counted=tally(seen), inner=replace(engine.inner, decisions=seen))
        state, made, _ = now.advance(rng, state | {"carried": np.zeros(5)}, 1, 4)
        v = out[n] = made[0]
    return out


def check(draws: Floats, offers: Decisions) -> None:
    """Every mean, second moment and product of two values is that of the prior."""
    placed = place(us.Gaussian(KAPPA), offers)
    q = draws @ placed.basis / np.sqrt(KAPPA)
    scores = [z_of_mean(q[:, i], 0.0) for i in range(q.shape[1])]
    scores += [z_of_mean(q[:, i] * q[:, j], float(i == j)) for i in range(q.shape[1]) for j in range(i + 1)]
    assert_scores(scores, false_alarm=1e-6, how="Geweke")


def _applies(variant: tuple[str, Options], problem: str) -> bool:
    return variant[0] != "blended" and (problem == "mdp" or variant[0] in ("da", "px-scale"))


CASES = [(v, p) for p in OFFERS for v in VARIANTS if _applies(v, p)]


@pytest.mark.parametrize(("variant", "problem"), CASES, ids=lambda x: x if isinstance(x, str) else label(x))
def test_joint_chain_keeps_the_prior(variant: tuple[str, Options], problem: str) -> None:
    offers = OFFERS[problem]
    chosen, _ = choose(np.random.default_rng(0), offers, np.zeros(len(offers.names)))
    engine = build(variant, offers.with_choices(chosen), us.Gaussian(KAPPA))
    check(joint_draws(engine, offers, STEPS, seed=3), offers)


@pytest.mark.proves(engine="blended")
@pytest.mark.parametrize("problem", OFFERS)
def test_joint_chain_of_the_blended_engine_keeps_the_prior(problem: str) -> None:
    check(joint_draws_of_blended(OFFERS[problem], 10_000, seed=3), OFFERS[problem])


def test_a_wrong_shape_is_caught() -> None:
    """The mutant: half the rows missing from the scale's shape, as when its Jacobian is forgotten."""
    offers = OFFERS["mdp"]
    chosen, _ = choose(np.random.default_rng(0), offers, np.zeros(5))
    engine = build(("px-both", Options()), offers.with_choices(chosen), us.Gaussian(KAPPA))
    wrong = replace(engine, move=engine.move._replace(lost=12.0))
    with caught("half the rows missing from the scale's shape", engine="px-both"):
        check(joint_draws(wrong, offers, STEPS, seed=3), offers)
