"""Values that change: problems to rank, and exact posteriors of a path of two times.

The exact ones know nothing of the package's law of paths: two values on a grid, and the sd of the
step between them, or sd and rate of a path that reverts with its centre integrated out by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.noise import Noise
from tests.conformance.oracles import (
    Moments,
    Oracle,
    dense_at_zero,
    integrate_scale,
    log_student,
)
from tests.conformance.problems import (
    LAPSE,
    NOISES,
    STUDENT,
    STUDENT_DF,
    Draws,
    Problem,
    at_truth,
    choose,
    columns,
    draw_df,
    even_offers,
    known_noise,
    prior_of,
    scale_column,
)
from tests.support.cases import mdp_offers

GAP = 1.7
EACH = 20  # decisions at each of two times
STEP, START, RATE = 0.8, 1.0, 0.6  # scales of half-t priors, in the exact posteriors


def all_noises() -> Iterator[Noise]:
    """Every noise that values may change under, with and without lapses."""
    yield from (*NOISES.values(), STUDENT, STUDENT_DF)
    for law in (rv.NormalNoise(), rv.LogitNoise(), STUDENT, STUDENT_DF):
        yield replace(law, lapse=LAPSE)


def priors_of(over_time: Any) -> tuple[str, ...]:
    """Kinds of priors that are offered with it."""
    return ("normal", "inferred sd") if isinstance(over_time, rv.RandomWalk) else ("normal",)


# Exact posteriors


def two_times(seed: int = 5) -> Decisions:
    """Choices between two actions by one feature, at two times; some against what is valued."""
    rng = np.random.default_rng(seed)
    gap = rng.uniform(0.5, 2.0, 2 * EACH)
    rows = np.stack([gap, np.zeros(2 * EACH)], axis=1).reshape(-1, 1)
    # three of four choices are as the value says, which is 1 and then -1
    against = rng.random(2 * EACH) < 0.25
    chosen = (np.repeat([False, True], EACH) ^ against).astype(int)
    times = np.repeat([3.0, 3.0 + GAP], EACH)
    return Decisions(rows, 2 * np.arange(2 * EACH + 1), chosen, times=times)


def noise_points(noise: Noise) -> list[tuple[float, Any, float]]:
    """Weight, df and rate of lapses: Gauss's nodes in the quantiles of their priors."""
    nodes, weights = np.polynomial.legendre.leggauss(10)
    share = 0.5 * (nodes + 1.0)
    df: Any = getattr(noise, "df", None)
    dfs = [(1.0, df)]
    if isinstance(df, rv.Gamma):
        law = st.gamma(df.shape, scale=1.0 / df.rate)
        low = law.cdf(1.0)
        dfs = list(zip(weights, law.ppf(low + (1.0 - low) * share), strict=True))
    rates = [(1.0, 0.0)]
    if noise.lapse is not None:
        beta = st.beta(noise.lapse.prior.a, noise.lapse.prior.b)
        rates = list(zip(weights, beta.ppf(share), strict=True))
    return [(a * b, d, r) for (a, d), (b, r) in itertools.product(dfs, rates)]


def likelihoods(d: Decisions, noise: Noise, v: Floats) -> Floats:
    """(C, n) the likelihood of decisions at values v (n,), at each of `noise_points`."""
    found = []
    for weight, df, rate in noise_points(noise):
        if isinstance(noise, rv.StudentNoise):
            without = np.exp(log_student(d, v, df))
        else:
            law = type(noise)() if noise.name in ("normal", "logit") else noise
            without = np.exp(rv.log_likelihood(d, v[:, None], law))
        found.append(weight**0.5 * np.prod((1.0 - rate) * without + rate / 2.0, axis=1))
    return np.array(found)


def half_t(count: int, low: float, high: float, scale: float) -> tuple[Floats, Floats]:
    """Points of log sd, and the density of a half-t prior there, on the log scale."""
    log_sd = np.log(scale) + np.linspace(low, high, count)
    return log_sd, 2.0 * st.t.pdf(np.exp(log_sd) / scale, 4) * np.exp(log_sd)


class Sums:
    """Moments that are added up point by point."""

    def __init__(self) -> None:
        self.total, self.first, self.second = 0.0, np.zeros(0), np.zeros(0)

    def add(self, weight: Floats, each: Floats, square: Floats) -> None:
        """Points with weights (n,): means and mean squares (n, k) of k quantities at each."""
        self.first = self.first + weight @ each if self.total else weight @ each
        self.second = self.second + weight @ square if self.total else weight @ square
        self.total += float(weight.sum())

    def moments(self) -> Moments:
        """Means and sds."""
        mean = self.first / self.total
        return mean, np.sqrt(self.second / self.total - mean**2)


def walk_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of both values, bent, the log sd of a step, and what is inferred of prior and noise."""
    noise: Any = model.noise
    prior: Any = model.value_prior
    first, second = d[:EACH], d[EACH:]
    after = np.linspace(-24.0, 24.0, 385)
    spacing = after[1] - after[0]
    scale: list[Floats] = []
    if prior.infers_sd:
        before, step = dense_at_zero(601, 30.0)
        log_prior, *scale = integrate_scale(before**2, 1, prior.sd.scale)
        density = np.exp(log_prior + step)
    else:
        before = after
        density = np.exp(-0.5 * (before / prior.sd) ** 2)
    left = density * likelihoods(first, noise, before)  # (C, n)
    right = likelihoods(second, noise, after)
    points, sums = noise_points(noise), Sums()
    for log_sd, weight in zip(*half_t(91, -9.0, 6.0, STEP), strict=True):
        # a step of much less than the spacing leaves the value where it is
        sd = max(np.exp(log_sd) * np.sqrt(GAP), 0.6 * spacing)
        move = np.exp(-0.5 * ((after - before[:, None]) / sd) ** 2)
        move /= np.maximum(move.sum(axis=1), sd * np.sqrt(2.0 * np.pi) / spacing)[:, None]
        onward = (left @ move) * right  # (C, n) of the second value
        back = left * (right @ move.T)  # of the first
        mass = back.sum(axis=1)
        own = [
            back @ np.arctan(before),
            onward @ np.arctan(after),
            mass * log_sd,
            *([back @ scale[0]] if scale else []),
        ]
        squares = [
            back @ np.arctan(before) ** 2,
            onward @ np.arctan(after) ** 2,
            mass * log_sd**2,
            *([back @ scale[1]] if scale else []),
        ]
        own += noise_sums(noise, points, mass)
        squares += noise_sums(noise, points, mass, power=2)
        sums.add(
            np.full(len(mass), weight) * mass,
            np.stack(own, axis=1) / mass[:, None],
            np.stack(squares, axis=1) / mass[:, None],
        )
    return sums.moments()


def noise_sums(noise: Any, points: Any, mass: Floats, power: int = 1) -> list[Floats]:
    """Rate of lapses and log df, where they are inferred, times the mass of each point."""
    found = []
    if noise.lapse is not None:
        found.append(mass * np.array([rate for _, _, rate in points]) ** power)
    if isinstance(getattr(noise, "df", None), rv.Gamma):
        found.append(mass * np.log([df for _, df, _ in points]) ** power)
    return found


def reverting_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of both values, bent, log sd, log rate, the centre, and what is inferred of prior and noise."""
    noise: Any = model.noise
    prior: Any = model.value_prior
    # closest about zero, where the likelihood is narrow
    even = np.linspace(-3.0, 3.0, 161)
    v, widths = 24.0 * np.sinh(even) / np.sinh(3.0), np.cosh(even)
    spacing = v[81] - v[80]
    left, right = likelihoods(d[:EACH], noise, v), likelihoods(d[EACH:], noise, v)
    left, right = left * widths, right * widths
    points, sums = noise_points(noise), Sums()
    total, difference = v[:, None] + v, v[:, None] - v
    for (log_sd, a), (log_rate, b) in itertools.product(
        list(zip(*half_t(28, -9.0, 4.5, START), strict=True)),
        list(zip(*half_t(28, -9.0, 4.5, RATE), strict=True)),
    ):
        # sum and difference of the two values are independent, the centre integrated out
        sd, start = max(np.exp(log_sd), 0.5 * spacing), float(prior.sd)
        decay = np.exp(-np.exp(log_rate) * GAP)
        of_sum = 2.0 * sd**2 * (1.0 + decay) + 4.0 * start**2
        of_difference = max(2.0 * sd**2 * (1.0 - decay), 0.36 * spacing**2)
        density = np.exp(-0.5 * (total**2 / of_sum + difference**2 / of_difference))
        density /= np.sqrt(of_sum * of_difference)
        onward, back = (left @ density) * right, left * (right @ density)
        mass = back.sum(axis=1)
        # given both values the centre is normal, about a share of their sum
        share = 2.0 * start**2 / of_sum
        joint = (left * v) @ density
        square_of_sum = back @ v**2 + onward @ v**2 + 2.0 * (joint * right) @ v
        bent = np.arctan(v)
        own = [back @ bent, onward @ bent, mass * log_sd, mass * log_rate]
        own.append(share * (back @ v + onward @ v))
        squares = [back @ bent**2, onward @ bent**2, mass * log_sd**2, mass * log_rate**2]
        variance = start**2 - share * 2.0 * start**2
        squares.append(share**2 * square_of_sum + mass * variance)
        own += noise_sums(noise, points, mass)
        squares += noise_sums(noise, points, mass, power=2)
        sums.add(
            a * b * mass,
            np.stack(own, axis=1) / mass[:, None],
            np.stack(squares, axis=1) / mass[:, None],
        )
    return sums.moments()


def path_columns(draws: Draws) -> Floats:
    """The quantities of the exact moments: of values, whose tails may be long, the arctangent."""
    logs = ("drift_sd", "stationary_sd", "reversion_rate")
    parts = [np.arctan(draws["value"][:, n]) for n in (0, 1)]
    parts += [np.log(draws[name]) for name in logs if name in draws]
    parts += [draws["long_run_mean"]] if "long_run_mean" in draws else []
    parts += [np.log(draws["prior_sd"])] if "prior_sd" in draws else []
    parts += [draws["lapse"]] if "lapse" in draws else []
    parts += [np.log(draws["df"])] if "df" in draws else []
    return columns(*parts)


def path_oracles() -> list[Oracle]:
    """Two times, under every noise and both priors; walks and paths that revert."""
    d, found = two_times(), []
    walk = rv.RandomWalk(rv.HalfStudentT(scale=STEP))
    reverting = rv.MeanReverting(rv.HalfStudentT(scale=START), rv.HalfStudentT(scale=RATE))
    for over_time, moments in ((walk, walk_moments), (reverting, reverting_moments)):
        for noise in all_noises():
            for prior in priors_of(over_time):
                model = rv.ChoiceModel(
                    prior=prior_of(prior, 1.5, 1.0), noise=noise, over_time=over_time
                )
                exact = cache(partial(moments, d, model))
                found.append(Oracle("two times", model, d, d + d, path_columns, exact))
    return found


# Problems to rank


def draw_half_t(rng: np.random.Generator, scale: float, count: int) -> Floats:
    """So many draws of a half-t prior."""
    return np.asarray(scale * np.abs(rng.standard_t(4, count)))


def draw_path(rng: np.random.Generator, model: rv.ChoiceModel, offers: Decisions) -> Draws:
    """Steps, path and all else from the prior, step by step."""
    resolved: Any = model.resolve(offers.with_choices(np.zeros(len(offers), int)))
    over_time, basis = resolved.over_time, resolved.prior.basis
    prior: Any = model.value_prior
    part: Any = model.over_time
    times, sizes, width = over_time.times, len(over_time.sizes), basis.shape[1]
    size = over_time.process.size
    start = prior.sd.scale * abs(rng.standard_t(4)) if prior.infers_sd else prior.sd
    drawn: Draws = {"prior_sd": np.array([start])} if prior.infers_sd else {}
    path = np.empty((len(times), width))
    if isinstance(part, rv.RandomWalk):
        sd = draw_half_t(rng, part.sd.scale, sizes)  # type: ignore[union-attr]
        drawn["drift_sd"] = sd[None]
        between = sd
        if part.between_sessions is not None:
            between = draw_half_t(rng, part.between_sessions.scale, sizes)  # type: ignore[union-attr]
            drawn["drift_sd_between_sessions"] = between[None]
        path[0] = start * rng.standard_normal(width)
        labels = None if offers.sessions is None else offers.sessions.tolist()
        own = None if labels is None else dict(zip(offers.times.tolist(), labels, strict=True))  # type: ignore[union-attr]
        for n in range(1, len(times)):
            a, b = times[n - 1], times[n]
            crosses = part.between_sessions is not None and own is not None and own[a] != own[b]
            step = between if crosses else sd * np.sqrt(b - a)
            path[n] = path[n - 1] + step[size] * rng.standard_normal(width)
    else:
        sd, rate = (draw_half_t(rng, p.scale, sizes) for p in (part.sd, part.rate))
        drawn |= {"stationary_sd": sd[None], "reversion_rate": rate[None]}
        centre = start * rng.standard_normal(width)
        drawn["long_run_mean"] = (basis @ centre)[None]
        path[0] = centre + sd[size] * rng.standard_normal(width)
        for n in range(1, len(times)):
            decay = np.exp(-rate[size] * (times[n] - times[n - 1]))
            noise = sd[size] * np.sqrt(1.0 - decay**2) * rng.standard_normal(width)
            path[n] = centre + decay * (path[n - 1] - centre) + noise
    return drawn | {"value": (path @ basis.T)[None]}


def changing_choices(name: str, model: rv.ChoiceModel, offers: Decisions) -> Problem:
    """Ranked are values at all times, sizes of steps, their log-likelihood and the rest."""
    noise: Any = model.noise
    assert offers.times is not None
    times, node = np.unique(offers.times, return_inverse=True)

    def draw(rng: np.random.Generator) -> Draws:
        drawn = draw_path(rng, model, offers) | draw_df(rng, noise)
        if noise.lapse is not None:
            beta = noise.lapse.prior
            drawn["lapse"] = np.array([rng.beta(beta.a, beta.b)])
        return drawn

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        chosen = np.empty(len(offers), np.int64)
        for n in range(len(times)):
            own = np.flatnonzero(node == n)
            seen = choose(rng, offers[own], truth["value"][0, n], at_truth(noise, truth))
            chosen[own] = seen.require_choices()
        if noise.lapse is not None:
            lapses = rng.random(len(offers)) < truth["lapse"][0]
            chosen = np.where(lapses, rng.integers(0, offers.sizes), chosen)
        return offers.with_choices(chosen)

    def rank(data: Any, draws: Draws) -> Floats:
        law, fit = known_noise(noise, draws), np.zeros(len(draws["value"]))
        for n in range(len(times)):
            own = data[np.flatnonzero(node == n)]
            fit = fit + rv.log_likelihood(own, draws["value"][:, n], law).sum(axis=1)
        logs = ("drift_sd", "drift_sd_between_sessions", "stationary_sd", "reversion_rate")
        rest = [np.log(draws[name]) for name in logs if name in draws]
        rest += [draws[name] for name in ("long_run_mean", "df", "lapse") if name in draws]
        return columns(draws["value"], fit, *rest, *scale_column(draws))

    return Problem(name, model, draw, observe, rank)


def timed(offers: Decisions, times: Any, sessions: Any = None) -> Decisions:
    """The same offers at these times."""
    return Decisions(
        offers.rows,
        offers.start,
        names=offers.names,
        blocks=offers.blocks,
        times=times,
        sessions=sessions,
    )


def path_problems() -> list[Problem]:
    """Three times under every noise and both priors; sessions, and values of states."""
    few, found = timed(even_offers(2, 9, seed=3), np.repeat([0.0, 0.5, 2.0], 3)), []
    walk = rv.RandomWalk(rv.HalfStudentT(scale=0.7))
    reverting = rv.MeanReverting(rv.HalfStudentT(scale=1.0), rv.HalfStudentT(scale=0.8))
    changes: list[Any] = [walk, reverting]
    for over_time, noise in itertools.product(changes, all_noises()):
        for prior in priors_of(over_time):
            model = rv.ChoiceModel(
                prior=prior_of(prior, 1.2, 1.0), noise=noise, over_time=over_time
            )
            found.append(changing_choices("three times", model, few))
    sessions = timed(few, few.times, np.repeat(["a", "a", "b"], 3))
    of_sessions = replace(walk, between_sessions=rv.HalfStudentT(scale=1.5))
    states = timed(mdp_offers(4, 3, 20, seed=1), np.repeat([0.0, 1.0, 2.5, 3.0], 5))
    for noise in (rv.NormalNoise(), rv.LogitNoise()):
        plain = rv.ChoiceModel(prior=rv.Normal(1.2), noise=noise, over_time=walk)
        found += [
            changing_choices("sessions", plain.replace(over_time=of_sessions), sessions),
            changing_choices("states", plain, states),
        ]
    return found
