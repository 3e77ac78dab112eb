"""Strategies that take turns: problems to rank, and exact posteriors by enumeration.

The exact ones know nothing of recursions: every sequence of states of a few decisions is written
out, Dirichlet laws are integrated by hand given each, and the two values stand on a grid. What is
compared does not depend on what strategies are called.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import betaln

import revealed as rv
from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.models.noise import Noise
from tests.conformance.oracles import Moments, Oracle, dense_at_zero, integrate_scale
from tests.conformance.paths import likelihoods, noise_points, noise_sums
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

SWITCHING = rv.Switching(states=2, sticky=1.0)
LENGTHS = (5, 5)  # of two sequences, whose 1,024 sequences of states are enumerated


def switching_noises() -> list[Noise]:
    """Every noise that strategies may have."""
    lapsing = (rv.NormalNoise(lapse=LAPSE), rv.LogitNoise(lapse=LAPSE))
    return [*NOISES.values(), STUDENT, STUDENT_DF, *lapsing]


# Exact posteriors


def two_sequences(seed: int = 2) -> Decisions:
    """Choices between two actions by one feature, liked and disliked in turn."""
    rng = np.random.default_rng(seed)
    count = sum(LENGTHS)
    gap = rng.uniform(1.0, 3.0, count)
    rows = np.stack([gap, np.zeros(count)], axis=1).reshape(-1, 1)
    chosen = np.arange(count) % 2
    return Decisions(
        rows, 2 * np.arange(count + 1), chosen, sessions=np.repeat(["a", "b"], LENGTHS)
    )


def paths_of_states() -> tuple[Ints, Ints, Ints]:
    """All sequences of states (Z, T); how often each pair follows (Z, 2, 2); how often each begins."""
    z = np.array(list(itertools.product((0, 1), repeat=sum(LENGTHS))))
    pairs, begins = np.zeros((len(z), 2, 2), int), np.zeros((len(z), 2), int)
    first = 0
    for length in LENGTHS:
        own = z[:, first : first + length]
        for i, j in itertools.product((0, 1), repeat=2):
            pairs[:, i, j] += ((own[:, :-1] == i) & (own[:, 1:] == j)).sum(axis=1)
        for i in (0, 1):
            begins[:, i] += own[:, 0] == i
        first += length
    return z, pairs, begins


def beta_moment(a: Floats, b: Floats, powers: int, others: int) -> Floats:
    """E[p^powers (1 - p)^others] under Beta(a, b)."""
    return np.asarray(np.exp(betaln(a + powers, b + others) - betaln(a, b)))


def switching_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of the smaller and the larger value, bent; both probabilities to stay, summed; the product of
    those to begin; and what is inferred of prior and noise."""
    noise: Any = model.noise
    prior: Any = model.value_prior
    part: Any = model.over_time
    z, pairs, begins = paths_of_states()
    # given the states Dirichlet laws are conjugate
    a, b = part.concentration + part.sticky, part.concentration
    stay = [(a + pairs[:, i, i], b + pairs[:, i, 1 - i]) for i in (0, 1)]
    begin = (part.initial + begins[:, 0], part.initial + begins[:, 1])
    log_weight = betaln(*begin) - betaln(part.initial, part.initial)
    for own in stay:
        log_weight = log_weight + betaln(*own) - betaln(a, b)
    first, second = (beta_moment(*own, 1, 0) for own in stay)
    stays = first + second
    squares = beta_moment(*stay[0], 2, 0) + beta_moment(*stay[1], 2, 0) + 2.0 * first * second
    product, of_product = beta_moment(*begin, 1, 1), beta_moment(*begin, 2, 2)
    # values on a grid, with the widths of its cells
    scale: list[Floats] = []
    if prior.infers_sd:
        v, log_width = dense_at_zero(321, 60.0)
        quad = np.exp(np.linspace(-40.0, 9.0, 2000))
        log_prior, mean, square = integrate_scale(quad, 2, prior.sd.scale)
        own = np.log(np.maximum(v[:, None] ** 2 + v**2, quad[0]))
        density, *scale = (np.interp(own, np.log(quad), x) for x in (log_prior, mean, square))
        log_density = density + log_width[:, None] + log_width
    else:
        v = np.linspace(-18.0, 18.0, 361)
        log_density = -0.5 * (v[:, None] ** 2 + v**2) / prior.sd**2
    cells = np.exp(log_density)
    # likelihoods of each decision, at each point of the noise: (T, C, n)
    each = np.stack([likelihoods(d[t : t + 1], noise, v) for t in range(len(d))])
    points = noise_points(noise)
    # every point has its weight once, and not to the power of the decisions
    each = each / np.array([w**0.5 for w, _, _ in points])[:, None]
    bent = np.arctan(v)
    low, high = np.minimum(bent[:, None], bent), np.maximum(bent[:, None], bent)
    totals = np.zeros((len(points), 2, 4 + len(scale) // 2))
    mass = np.zeros(len(points))
    for c, (weight, _, _) in enumerate(points):
        ones = np.prod(np.where(z[:, :, None] == 0, each[:, c][None], 1.0), axis=1)
        twos = np.prod(np.where(z[:, :, None] == 1, each[:, c][None], 1.0), axis=1)

        def over(of_states: Any, ones: Floats = ones, twos: Floats = twos) -> Floats:
            joint: Floats = cells * (ones.T @ (np.exp(log_weight)[:, None] * of_states * twos))
            return joint

        joint = weight * over(1.0)
        mass[c] = joint.sum()
        totals[c, 0, :2] = (joint * low).sum(), (joint * high).sum()
        totals[c, 1, :2] = (joint * low**2).sum(), (joint * high**2).sum()
        for k, (one, two) in enumerate(((stays, squares), (product, of_product))):
            totals[c, 0, 2 + k] = weight * over(one[:, None]).sum()
            totals[c, 1, 2 + k] = weight * over(two[:, None]).sum()
        if scale:
            totals[c, :, 4] = (joint * scale[0]).sum(), (joint * scale[1]).sum()
    means = [*totals[:, 0].sum(axis=0), *(x.sum() for x in noise_sums(noise, points, mass))]
    mean_squares = [
        *totals[:, 1].sum(axis=0),
        *(x.sum() for x in noise_sums(noise, points, mass, power=2)),
    ]
    mean = np.array(means) / mass.sum()
    return mean, np.sqrt(np.array(mean_squares) / mass.sum() - mean**2)


def label_free_columns(draws: Draws) -> Floats:
    """The quantities of the exact moments."""
    value, switch = np.sort(draws["value"][:, :, 0], axis=1), draws["switch_probability"]
    parts = [np.arctan(value), switch[:, 0, 0] + switch[:, 1, 1], draws["initial"].prod(axis=1)]
    parts += [np.log(draws["prior_sd"])] if "prior_sd" in draws else []
    parts += [draws["lapse"]] if "lapse" in draws else []
    parts += [np.log(draws["df"])] if "df" in draws else []
    return columns(*parts)


def switching_oracles() -> list[Oracle]:
    """Two sequences, under every noise and both priors."""
    d, found = two_sequences(), []
    double = d + Decisions(
        d.rows, d.start, d.chosen, sessions=np.repeat(["c", "d"], LENGTHS), names=d.names
    )
    for noise, prior in itertools.product(switching_noises(), ("normal", "inferred sd")):
        model = rv.ChoiceModel(prior=prior_of(prior, 3.0, 2.0), noise=noise, over_time=SWITCHING)
        exact = cache(partial(switching_moments, d, model))
        found.append(Oracle("two sequences", model, d, double, label_free_columns, exact))
    return found


# Problems to rank


def sorted_strategies(draws: Draws) -> Draws:
    """The same draws with strategies in the order of their first coefficient."""
    order = np.argsort(draws["value"][:, :, 0], axis=1)
    rows = np.arange(len(order))[:, None]
    switch = draws["switch_probability"][rows[:, :, None], order[:, :, None], order[:, None]]
    return {
        **draws,
        "value": draws["value"][rows, order],
        "switch_probability": switch,
        "initial": draws["initial"][rows, order],
    }


def forward(draws: Draws, logs: Floats, lengths: Any) -> Floats:
    """(n,) log-likelihood of all sequences, from logs (n, S, T) of each decision; by logs of sums."""
    total, first = np.zeros(len(logs)), 0
    for length in lengths:
        before = np.log(draws["initial"]) + logs[:, :, first]
        for t in range(first + 1, first + length):
            through = before[:, :, None] + np.log(draws["switch_probability"])
            before = np.logaddexp.reduce(through, axis=1) + logs[:, :, t]
        total += np.logaddexp.reduce(before, axis=1)
        first += length
    return total


def switching_choices(name: str, model: rv.ChoiceModel, offers: Decisions, lengths: Any) -> Problem:
    """Ranked are values, switch probabilities and the rest, strategies sorted by their values."""
    noise: Any = model.noise
    part: Any = model.over_time
    prior: Any = model.value_prior
    states = part.states

    def draw(rng: np.random.Generator) -> Draws:
        sd = prior.sd.scale * abs(rng.standard_t(4)) if prior.infers_sd else prior.sd
        shape = part.concentration + part.sticky * np.eye(states)
        drawn: Draws = {
            "value": sd * rng.standard_normal((1, states, len(offers.names))),
            "switch_probability": np.stack([rng.dirichlet(row) for row in shape])[None],
            "initial": rng.dirichlet(np.full(states, part.initial))[None],
        }
        drawn |= {"prior_sd": np.array([sd])} if prior.infers_sd else {}
        drawn |= draw_df(rng, noise)
        if noise.lapse is not None:
            drawn["lapse"] = np.array([rng.beta(noise.lapse.prior.a, noise.lapse.prior.b)])
        return drawn

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        chosen, t = np.empty(len(offers), np.int64), 0
        for length in lengths:
            law = truth["initial"][0]
            for _ in range(length):
                s = rng.choice(states, p=law)
                law = truth["switch_probability"][0, s]
                seen = choose(rng, offers[t : t + 1], truth["value"][0, s], at_truth(noise, truth))
                chosen[t] = seen.require_choices()[0]
                t += 1
        if noise.lapse is not None:
            lapses = rng.random(len(offers)) < truth["lapse"][0]
            chosen = np.where(lapses, rng.integers(0, offers.sizes), chosen)
        return offers.with_choices(chosen)

    def rank(data: Any, draws: Draws) -> Floats:
        own = sorted_strategies(draws)
        law = known_noise(noise, draws)
        logs = [rv.log_likelihood(data, own["value"][:, s], law) for s in range(states)]
        fit = forward(own, np.stack(logs, axis=1), lengths)
        rest = [draws[name] for name in ("df", "lapse") if name in draws]
        stay = np.diagonal(own["switch_probability"], axis1=1, axis2=2)
        return columns(own["value"], stay, own["initial"][:, 0], fit, *rest, *scale_column(draws))

    return Problem(name, model, draw, observe, rank)


def switching_problems() -> list[Problem]:
    """Two sequences under every noise and both priors; and three strategies."""
    offers, lengths = even_offers(2, 16, seed=3), (9, 7)
    few = Decisions(
        offers.rows, offers.start, names=offers.names, sessions=np.repeat(["a", "b"], lengths)
    )
    found = []
    for noise, prior in itertools.product(switching_noises(), ("normal", "inferred sd")):
        model = rv.ChoiceModel(prior=prior_of(prior, 1.5, 1.0), noise=noise, over_time=SWITCHING)
        found.append(switching_choices("two strategies", model, few, lengths))
    three = rv.ChoiceModel(
        prior=rv.Normal(1.5), noise=rv.LogitNoise(), over_time=rv.Switching(3, sticky=4.0)
    )
    return [*found, switching_choices("three strategies", three, few, lengths)]
