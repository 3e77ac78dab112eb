"""Values of many groups that change: problems to rank, and exact posteriors of two groups.

The exact ones know nothing of the package's laws: two values of each of two groups on a grid, the
sd of the step between them on another, and all that the groups have in common on a third. Given
that, groups are independent, so that sums over grids are products of matrices.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.group_paths import STEP_POPULATION
from revealed.models.noise import Noise
from revealed.models.priors import resolve_prior
from revealed.samplers.population_prior import scale_groups
from tests.conformance.oracles import Moments, Oracle
from tests.conformance.paths import half_t, likelihoods, timed
from tests.conformance.problems import (
    NOISES,
    STUDENT,
    Draws,
    Problem,
    choose,
    columns,
    draw_population_covariance,
    even_offers,
)
from tests.support.cases import mdp_offers

GAPS = (1.0, 2.5)  # between the two times of each group
EACH = 8  # decisions of a group at a time
STEP, MEAN_SD, SD_SCALE = 0.8, 1.2, 1.0
LAWS = [*NOISES.values(), STUDENT]


def walking_population(noise: Noise, step: Any = None, between: Any = None) -> rv.ChoiceModel:
    """Groups whose values drift, from one population."""
    step = rv.HalfStudentT(scale=STEP) if step is None else step
    return rv.ChoiceModel(
        prior=rv.Normal(MEAN_SD),
        noise=noise,
        groups=rv.Hierarchical(sd_scale=SD_SCALE),
        over_time=rv.RandomWalk(step, between_sessions=between),
    )


# Exact posteriors


def two_groups(seed: int = 5) -> Decisions:
    """Choices of two groups between two actions by one feature; some against what is valued."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.uniform(0.5, 2.0, 4 * EACH), np.zeros(4 * EACH)], axis=1).reshape(-1, 1)
    # the first group comes to like what it did not; the other one likes it all the time
    likes = np.repeat([False, True, True, True], EACH)
    against = np.tile(np.arange(EACH) % 4 == 1, 4)
    times = np.repeat([0.0, GAPS[0], 2.0, 2.0 + GAPS[1]], EACH)
    return Decisions(
        rows,
        2 * np.arange(4 * EACH + 1),
        (~(likes ^ against)).astype(int),
        groups=np.repeat(["a", "b"], 2 * EACH),
        times=times,
    )


def normal_on(points: Floats, mean: Floats, sd: Floats) -> Floats:
    """(n, points) densities of normal laws on an even grid; narrow ones have one of their mass."""
    spacing = points[1] - points[0]
    # an sd of much less than the spacing leaves it where it is
    sd = np.maximum(sd, 0.6 * spacing)[:, None]
    density = np.exp(-0.5 * ((points - mean[:, None]) / sd) ** 2)
    least = sd * np.sqrt(2.0 * np.pi) / spacing
    return np.asarray(density / np.maximum(density.sum(axis=1, keepdims=True), least))


def group_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of the population, of both groups' values, bent, and of the sizes of steps, in logs."""
    noise: Any = model.noise
    v = np.linspace(-18.0, 18.0, 289)
    log_sd = np.log(STEP) + np.arange(-9.0, 9.01, 0.2)
    log_m, of_m = half_t(70, -9.0, 5.5, STEP)
    log_s = np.log(STEP_POPULATION.spread) + np.linspace(-9.0, 1.4, 50)
    of_s = np.exp(log_s - 0.5 * np.exp(2.0 * log_s) / STEP_POPULATION.spread**2)
    mean, log_omega = np.linspace(-6.0, 6.0, 49), np.log(SD_SCALE) + np.linspace(-7.0, 5.0, 49)
    of_omega = st.t.pdf(np.exp(log_omega) / SD_SCALE, 2) * np.exp(log_omega)
    # points of what groups have in common, first values times steps
    a_mean, a_omega = (part.ravel() for part in np.meshgrid(mean, log_omega, indexing="ij"))
    b_m, b_s = (part.ravel() for part in np.meshgrid(log_m, log_s, indexing="ij"))
    prior = np.outer(st.norm.pdf(mean, scale=MEAN_SD), of_omega).ravel()[:, None]
    prior = prior * np.outer(of_m, of_s).ravel()
    first = normal_on(v, a_mean, np.exp(a_omega))  # (population, v)
    step = normal_on(log_sd, b_m, np.exp(b_s)).T  # (log sd, population)
    bent = np.arctan(v)
    found: dict[str, Floats] = {}
    evidence = []
    for g, gap in enumerate(GAPS):
        own = d[2 * g * EACH : 2 * (g + 1) * EACH]
        left, right = (likelihoods(each, noise, v)[0] for each in (own[:EACH], own[EACH:]))
        # (v, log sd) of the first value, summed over the second one
        onward = {power: np.empty((len(v), len(log_sd))) for power in (0, 1, 2)}
        for t, each in enumerate(log_sd):
            move = normal_on(v, v, np.full(len(v), np.exp(each) * np.sqrt(gap)))
            for power, into in onward.items():
                into[:, t] = left * (move @ (right * bent**power))

        def joint(parts: Floats) -> Floats:
            return np.asarray(first @ parts @ step)

        evidence.append(joint(onward[0]))
        for power in (1, 2):
            found[f"first {g} {power}"] = joint(bent[:, None] ** power * onward[0])
            found[f"last {g} {power}"] = joint(onward[power])
            found[f"sd {g} {power}"] = joint(onward[0] * log_sd**power)
    posterior = prior * evidence[0] * evidence[1]
    total = posterior.sum()
    sums = {}
    for name, points in (("mean", a_mean), ("omega", a_omega)):
        sums[name] = [posterior.sum(axis=1) @ points**power / total for power in (1, 2)]
    for name, points in (("m", b_m), ("s", b_s)):
        sums[name] = [posterior.sum(axis=0) @ points**power / total for power in (1, 2)]
    for g in (0, 1):
        for name in ("first", "last", "sd"):
            own_sum = [found[f"{name} {g} {power}"] for power in (1, 2)]
            sums[f"{name} {g}"] = [
                float((prior * evidence[1 - g] * x).sum()) / total for x in own_sum
            ]
    order = ["mean", "omega", "m", "s"]
    order += [f"{name} {g}" for name in ("first", "last", "sd") for g in (0, 1)]
    one, two = (np.array([sums[name][power] for name in order]) for power in (0, 1))
    return one, np.sqrt(two - one**2)


def group_columns(draws: Draws) -> Floats:
    """The quantities of the exact moments."""
    return columns(
        draws["population_mean"],
        0.5 * np.log(draws["population_covariance"][:, 0]),
        np.log(draws["drift_sd_population"]),
        np.log(draws["drift_sd_spread"]),
        np.arctan(draws["value"][:, [0, 2, 1, 3], 0]),
        np.log(draws["drift_sd"][:, :, 0]),
    )


def path_group_oracles() -> list[Oracle]:
    """Two groups of two times, under every noise."""
    d = two_groups()
    # each decision twice, at the times of their groups
    twice = d + d
    return [
        Oracle(
            "two groups, two times",
            walking_population(noise),
            d,
            twice,
            group_columns,
            cache(partial(group_moments, d, walking_population(noise))),
        )
        for noise in LAWS
    ]


# Problems to rank


def draw_groups(rng: np.random.Generator, model: rv.ChoiceModel, offers: Decisions) -> Draws:
    """Population, sizes of steps and paths of all groups from the prior, step by step."""
    resolved: Any = model.resolve(offers.with_choices(np.zeros(len(offers), int)))
    part: Any = model.over_time
    free, paths = resolve_prior(rv.Normal(1.0), offers), resolved.group_paths
    basis, width = free.basis, free.basis.shape[1]
    mean = MEAN_SD * rng.standard_normal(width)
    covariance = draw_population_covariance(rng, scale_groups(free))
    root = np.linalg.cholesky(covariance)
    drawn: Draws = {
        "population_mean": (basis @ mean)[None],
        "population_covariance": (basis @ covariance @ basis.T)[None],
    }
    sizes, count, sds = len(paths.of_first.sizes), len(paths.groups), {}
    for name, given in (
        ("drift_sd", part.sd),
        ("drift_sd_between_sessions", part.between_sessions),
    ):
        if given is None:
            continue
        m = given.scale * np.abs(rng.standard_t(4, sizes))
        s = STEP_POPULATION.spread * np.abs(rng.standard_normal(sizes))
        sds[name] = m * np.exp(s * rng.standard_normal((count, sizes)))
        drawn |= {name: sds[name][None], f"{name}_population": m[None], f"{name}_spread": s[None]}
    values = []
    for g, path in enumerate(paths.paths):
        process = path.process
        here = mean + root @ rng.standard_normal(width)
        values.append(here)
        for n in range(1, len(path.times)):
            sd = sds["drift_sd"][g] * np.sqrt(path.times[n] - path.times[n - 1])
            if process.crosses[n]:
                sd = sds["drift_sd_between_sessions"][g]
            here = here + sd[process.size] * rng.standard_normal(width)
            values.append(here)
    return drawn | {"value": (np.array(values) @ basis.T)[None]}


def changing_groups(name: str, model: rv.ChoiceModel, offers: Decisions) -> Problem:
    """Ranked are the population, the sizes of steps, the first group's path, and the likelihood."""
    noise: Any = model.noise
    paths: Any = model.resolve(offers.with_choices(np.zeros(len(offers), int))).group_paths
    group = np.unique(np.asarray(offers.groups), return_inverse=True)[1]
    nodes = np.empty(len(offers), np.int64)
    for g, path in enumerate(paths.paths):
        nodes[group == g] = paths.start[g] + path.node

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        chosen = np.empty(len(offers), np.int64)
        for n in range(paths.start[-1]):
            own = np.flatnonzero(nodes == n)
            chosen[own] = choose(rng, offers[own], truth["value"][0, n], noise).require_choices()
        return offers.with_choices(chosen)

    def rank(data: Any, draws: Draws) -> Floats:
        fit = np.zeros(len(draws["value"]))
        for n in range(paths.start[-1]):
            own = data[np.flatnonzero(nodes == n)]
            fit = fit + rv.log_likelihood(own, draws["value"][:, n], noise).sum(axis=1)
        covariance = draws["population_covariance"]
        first = draws["value"][:, : paths.start[1]]
        logs = [np.log(draws[name]) for name in draws if name.startswith("drift_sd")]
        # groups are alike: of their own sds two are enough
        logs = [x[:, :2] if x.ndim == 3 else x for x in logs]
        sds = np.log(np.einsum("skk->sk", covariance))
        return columns(draws["population_mean"], sds, covariance[:, 0, 1], first, fit, *logs)

    return Problem(name, model, partial(draw_groups, model=model, offers=offers), observe, rank)


def grouped(offers: Decisions, groups: Any, times: Any, sessions: Any = None) -> Decisions:
    """The same offers to these groups, at these times."""
    made = timed(offers, times, sessions)
    return Decisions(
        made.rows,
        made.start,
        names=made.names,
        blocks=made.blocks,
        groups=groups,
        times=times,
        sessions=sessions,
    )


def path_group_problems() -> list[Problem]:
    """Three groups with one to three times, under every noise; sessions, and values of states."""
    who, when = np.repeat([0, 1, 2], [6, 4, 5]), [0, 0, 1, 1, 3, 3, 0, 0, 2, 2, 5, 5, 5, 5, 5]
    few = grouped(even_offers(2, 15, seed=3), who, np.array(when, float))
    found = [changing_groups("three groups", walking_population(noise), few) for noise in LAWS]
    nights = grouped(few, who, few.times, np.array(when) > 1)
    night = rv.HalfStudentT(scale=1.5)
    states = grouped(mdp_offers(4, 3, 20, seed=1), np.repeat([0, 1], 10), np.tile([0.0, 2.0], 10))
    law = rv.LogitNoise()
    found += [
        changing_groups("sessions", walking_population(law, between=night), nights),
        changing_groups("states", walking_population(law), states),
    ]
    return found
