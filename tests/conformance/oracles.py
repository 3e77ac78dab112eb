"""Exact posteriors of small problems, summed on grids, for every kind of model.

Where the prior sd is inferred, it is integrated out on a grid of its own: given the coefficients it
does not depend on the data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.stats as st
from scipy.special import expit, log_ndtr, ndtr, stdtr

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels.ranking_likelihood import log_ranking_probabilities
from revealed.models.lapse import KnownLapse
from revealed.models.noise import Noise
from revealed.models.priors import resolve_prior
from revealed.samplers.model_kind import Model, ModelKind, kind_of
from revealed.samplers.ranking_hmc import MARGIN_PRIOR_SD, SPREAD_PRIOR_SD
from tests.conformance.problems import (
    AUGMENTATION,
    LAPSE,
    LAPSE_BY_GROUP,
    NEARLY_NORMAL,
    NOISES,
    NOT_NORMAL,
    SCALE,
    STUDENT,
    STUDENT_DF,
    TRANSLATING,
    Draws,
    choose,
    columns,
    even_offers,
    labelled_offers,
    prior_of,
)
from tests.support.cases import features, mdp_offers, ragged_offers, two_states
from tests.support.statistical_asserts import assert_scores, z_of_mean

Moments = tuple[Floats, Floats]


@dataclass(frozen=True)
class Oracle:
    """Data, a model, and the exact means and sds of some columns of its draws.

    twice: the same data with everything seen twice, for a sampler that counts wrongly.
    """

    name: str
    model: Model
    data: Any
    twice: Any
    columns: Callable[[Draws], Floats]
    exact: Callable[[], Moments]
    only: tuple[str, ...] = ()
    not_for: tuple[str, ...] = ()

    @property
    def kind(self) -> ModelKind:
        """Of the model."""
        return kind_of(self.model)

    def is_for(self, sampler: str) -> bool:
        """Whether this sampler is tried on it."""
        return sampler not in self.not_for and (not self.only or sampler in self.only)


# A prior sd that is inferred

LOG_SD = np.linspace(-14.0, 8.0, 301)


def integrate_scale(quad: Floats, width: int, scale: float) -> tuple[Floats, Floats, Floats]:
    """Of v with squared length `quad` (n,): its log prior, and the mean and mean square of log sd.

    The length is that under the prior of sd one, and width the number of free coordinates.
    """
    sd = np.exp(LOG_SD)
    hyper = st.t.logpdf(sd / scale, 4) + LOG_SD - width * LOG_SD
    # no length is less than rounding makes it
    log_joint = hyper - 0.5 * np.minimum(quad[:, None] / sd**2, 1e6)
    top = log_joint.max(axis=1)
    weight = np.exp(log_joint - top[:, None])
    total = weight.sum(axis=1)
    return top + np.log(total), weight @ LOG_SD / total, weight @ LOG_SD**2 / total


def dense_at_zero(count: int, most: float = 40.0) -> tuple[Floats, Floats]:
    """Points on a line, ever closer towards zero, where such a prior has a pole; log distances."""
    even = np.linspace(-14.0, 14.0, count)
    return most * np.sinh(even) / np.sinh(14.0), np.log(np.cosh(even))


def moments_of(weight: Floats, *parts: Floats) -> Moments:
    """Mean and sd of each part (n,) or (n, k) under weights (n,)."""
    each, weight = columns(*parts), weight / weight.sum()
    mean = weight @ each
    return mean, np.sqrt(weight @ (each - mean) ** 2)


def with_scale(found: Moments, weight: Floats, mean: Floats, square: Floats) -> Moments:
    """The same with the moments of the log prior sd, from its own given each point."""
    weight = weight / weight.sum()
    first = float(weight @ mean)
    sd = np.sqrt(float(weight @ square) - first**2)
    return np.append(found[0], first), np.append(found[1], sd)


def assert_moments(found: Floats, exact: Moments) -> None:
    """Mean and sd of every column agree within Monte-Carlo error, by batch means."""
    scores, errors = [], []
    for x, mean, sd in zip(found.T, *exact, strict=True):
        squares = (x - mean) ** 2
        scores += [z_of_mean(x, mean), z_of_mean(squares, sd**2)]
        errors += [abs(x.mean() - mean) / sd, abs(np.sqrt(squares.mean()) / sd - 1.0)]
    assert_scores(scores, false_alarm=1e-6, error=float(max(errors)))


def value_and_scale(draws: Draws) -> Floats:
    """All coefficients, and the log prior sd where it is inferred."""
    scale = [np.log(draws["prior_sd"])] if "prior_sd" in draws else []
    return columns(draws["value"], *scale)


# Pooled decisions: one or two free coordinates


def pooled_moments(
    d: Decisions, model: rv.ChoiceModel, log_likelihood: Callable[[Floats], Floats]
) -> Moments:
    """Of every coefficient, and of the log prior sd where it is inferred."""
    prior = resolve_prior(model.value_prior, d)
    width = prior.basis.shape[1]

    def product(axes: list[Floats]) -> Floats:
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, width)

    def log_prior(grid: Floats, values: Floats) -> tuple[Floats, ...]:
        if prior.scale is None:
            return (prior.log_density(values),)
        quad = np.einsum("ni,ij,nj->n", grid, prior.precision, grid)
        return integrate_scale(quad, width, prior.scale)

    # coarse grids find the mass, a fine one sums it
    low, high = np.full(width, -20.0), np.full(width, 20.0)
    for points in (31, 31, 31, 61 if width == 2 else 2001):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        log_cell = np.zeros(1)
        if points != 31 and prior.scale is not None and (low < 0).all() and (high > 0).all():
            # the pole of the prior is where there is mass
            axis, step = dense_at_zero(120 if width == 2 else 2000, np.abs([low, high]).max())
            axes, log_cell = [axis] * width, product([step] * width).sum(axis=1)
        grid = product(axes)
        values = grid @ prior.basis.T + prior.mean
        log_density, *scale = log_prior(grid, values)
        logs = log_likelihood(values) + log_density + log_cell
        kept = grid[logs > logs.max() - 30]
        step = np.array([a[1] - a[0] for a in axes])
        low, high = kept.min(axis=0) - 2 * step, kept.max(axis=0) + 2 * step
    weight = np.exp(logs - logs.max())
    found = moments_of(weight, values)
    return with_scale(found, weight, *scale) if scale else found


def pooled(name: str, d: Decisions, model: rv.ChoiceModel, **of: Any) -> Oracle:
    """Under independent noise, or correlated noise of two actions.

    Of two actions the covariance is one number, which the scale makes one: the chosen one leads by
    more than a standard normal.
    """
    noise = model.noise

    def log_likelihood(values: Floats) -> Floats:
        if isinstance(noise, Noise):
            return np.asarray(rv.log_likelihood(d, values, noise).sum(axis=1))
        other = np.delete(np.arange(len(d.rows)), d.chosen_row)
        return np.asarray(log_ndtr(values @ (d.rows[d.chosen_row] - d.rows[other]).T).sum(axis=1))

    exact = cache(lambda: pooled_moments(d, model, log_likelihood))
    return Oracle(name, model, d, d + d, value_and_scale, exact, **of)


def three_states() -> Decisions:
    offers = mdp_offers(states=3, actions=3, count=25, seed=5)
    return choose(np.random.default_rng(6), offers, np.array([1.0, -2.0, 1.0]), NOISES["normal"])


def two_features() -> Decisions:
    offers = ragged_offers(features=2, count=25, seed=7)
    return choose(np.random.default_rng(8), offers, np.array([0.8, -0.5]), NOISES["normal"])


def action_rewards() -> Decisions:
    """Two states and two actions with rewards: two centred blocks, whose translations coincide."""
    rng = np.random.default_rng(9)
    mdp = rv.random_mdp(rng, states=2, actions=2)
    offers = mdp.decisions(rng.integers(0, 2, 40), action_rewards=True)
    return choose(rng, offers, np.array([1.0, -1.0, 0.3, -0.3]), NOISES["normal"])


def few_features() -> Decisions:
    """Two features of different sizes, six choices among three actions."""
    rng = np.random.default_rng(8)
    return Decisions(
        rng.standard_normal((18, 2)) * [1.0, 0.4], np.arange(7) * 3, [0, 2, 1, 1, 0, 2]
    )


def skewed_decisions() -> Decisions:
    """Two states, six actions and four choices that all but agree.

    The posterior has one dimension, and is far from normal.
    """
    up = np.array([0.9, 0.85, 0.8, 0.5, 0.3, 0.1])
    return Decisions(
        np.tile(np.stack([up, 1 - up], 1), (4, 1)),
        [0, 6, 12, 18, 24],
        [0, 2, 1, 0],
        blocks=[Block("v", 2, True)],
    )


def three_actions(count: int, seed: int, law: Noise) -> Decisions:
    """Two features, and choices under a noise."""
    offers = even_offers(2, count, seed)
    return choose(np.random.default_rng(seed), offers, np.array([1.2, -0.8]), law)


CORRELATED_PRIOR = rv.Normal(
    rv.HalfStudentT(scale=SCALE), covariance=np.array([[1.0, 0.6], [0.6, 2.0]])
)


def pooled_oracles() -> list[Oracle]:
    """Under independent noise: the example of docs/mathematics.md, and grids of two coordinates."""
    model, found = rv.ChoiceModel, []
    small: dict[str, Any] = {"not_for": NEARLY_NORMAL}
    for prior in ("normal", "flat"):
        of = model(prior=prior_of(prior))
        known = of.replace(prior=prior_of(prior, 3.0**0.5))
        found += [
            pooled("two states", two_states(), known, **small),
            pooled("three states", three_states(), of, **small),
            pooled("two features", two_features(), of, not_for=TRANSLATING + NEARLY_NORMAL),
            pooled("action rewards", action_rewards(), of, **small),
        ]
    inferred = model(prior=prior_of("inferred sd"))
    # rescaling needs a prior mean of zero, and translating a block that sums to zero
    mean = model(prior=rv.Normal(3.0**0.5, mean=[2.0, -2.0]))
    rescaling = ("px-scale", "px-both")
    tied = rv.Normal(covariance=[[4.0, 3.9], [3.9, 4.0]])
    found += [
        pooled("two states", two_states(), inferred, **small),
        pooled(
            "correlated prior",
            few_features(),
            model(prior=CORRELATED_PRIOR),
            not_for=TRANSLATING + NEARLY_NORMAL,
        ),
        pooled("prior mean", two_states(), mean, not_for=rescaling + NEARLY_NORMAL),
        pooled(
            "strongly correlated prior",
            two_features(),
            model(prior=tied),
            not_for=TRANSLATING + NEARLY_NORMAL,
        ),
        pooled(
            "six actions",
            skewed_decisions(),
            model(prior=rv.Normal(30.0**0.5)),
            only=("composite",),
        ),
    ]
    for prior in ("normal", "flat", "inferred sd"):
        many = features(80).rows[:, :2]
        of = model(prior=prior_of(prior))
        d = Decisions(many, features(80).start, features(80).chosen)
        found.append(pooled("many decisions", d, of, only=NEARLY_NORMAL))
        for name, law in NOT_NORMAL.items():
            other = model(prior=prior_of(prior, 1.5), noise=law)
            # each decision of particles takes as long as a whole run of another sampler
            few = three_actions(3, 5, law)
            many = 30 if law.name == "logistic" else 60
            found += [
                pooled(f"{name}, few", few, other, only=("ibis",)),
                pooled(name, three_actions(12, 3, law), other, **small),
                pooled(f"{name}, many", three_actions(many, 4, law), other, only=NEARLY_NORMAL),
            ]
    return found


# Lapses: one coefficient, and the rate


def noise_without_lapses(noise: Noise) -> Noise:
    """The noise of choices that are no lapses."""
    without: Noise = KnownLapse(noise, 0.0).without_lapses
    return without


def lapse_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of coefficients with one free direction and the rate, on a grid of both.

    And of the log prior sd where it is inferred.
    """
    noise, prior = model.noise, model.value_prior
    assert isinstance(noise, Noise)
    assert noise.lapse is not None
    assert isinstance(prior, rv.Normal)
    resolved, scale = resolve_prior(prior, d), list[Floats]()
    if prior.infers_sd:
        # with the distances of points in the prior
        q, step = dense_at_zero(2001, 60.0)
        sd: Any = prior.sd
        log_prior, *scale = integrate_scale(q**2, 1, sd.scale)
        log_prior = log_prior + step
    else:
        z = np.linspace(-8.0, 8.0, 1601)
        q, log_prior = z / np.sqrt(resolved.precision[0, 0]), -0.5 * z**2
    v = q[:, None] @ resolved.basis.T
    # even quantiles of the prior of the rate, so that each has the same weight
    beta = noise.lapse.prior
    rate = st.beta(beta.a, beta.b).ppf((np.arange(400) + 0.5) / 400)
    without = rv.log_likelihood(d, v, noise_without_lapses(noise))
    logs = np.stack(
        [np.logaddexp(np.log1p(-r) + without, np.log(r / d.sizes)).sum(axis=1) for r in rate], 1
    )
    weight = np.exp(logs + log_prior[:, None] - (logs + log_prior[:, None]).max())
    found = moments_of(weight.ravel(), np.repeat(v, len(rate), axis=0), np.tile(rate, len(v)))
    return with_scale(found, weight.sum(axis=1), *scale) if scale else found


def lapses(name: str, d: Decisions, model: rv.ChoiceModel, **of: Any) -> Oracle:
    """A model with lapses on these decisions."""

    def both(draws: Draws) -> Floats:
        scale = [np.log(draws["prior_sd"])] if "prior_sd" in draws else []
        return columns(draws["value"], draws["lapse"], *scale)

    return Oracle(name, model, d, d + d, both, cache(lambda: lapse_moments(d, model)), **of)


def habit_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of the coefficient, the rate, two of three habits, the log prior sd and log df.

    Those of the last two that are inferred.
    """
    noise = model.noise
    assert isinstance(noise, Noise)
    law = noise_without_lapses(noise) if not is_df_inferred(noise) else None
    if law is not None:
        return habit_posterior(d, model, law)[1]
    assert isinstance(noise, rv.StudentNoise)
    assert isinstance(noise.df, rv.Gamma)
    return mix_over_df(noise.df, lambda df: habit_posterior(d, model, rv.StudentNoise(df)))


def is_df_inferred(noise: Noise) -> bool:
    """Whether degrees of freedom are unknown."""
    return isinstance(getattr(noise, "df", None), rv.Gamma)


def habit_posterior(d: Decisions, model: rv.ChoiceModel, law: Noise) -> tuple[float, Moments]:
    """The log evidence, and these moments under a noise that is known, on a grid of all."""
    noise, prior = model.noise, model.value_prior
    assert isinstance(noise, Noise)
    assert noise.lapse is not None
    assert isinstance(prior, rv.Normal)
    assert d.actions is not None
    sd: Any = prior.sd
    scale: list[Floats] = []
    if prior.infers_sd:
        v, step = dense_at_zero(401, 60.0)
        log_prior, *scale = integrate_scale(v**2, 1, sd.scale)
        log_prior = log_prior + step
    else:
        v = np.linspace(-6.0, 6.0, 241) * float(sd)
        log_prior = -0.5 * (v / float(sd)) ** 2
    # Gauss's nodes on the unit interval, as quantiles: of the rate, and of a broken stick
    nodes, weights = np.polynomial.legendre.leggauss(24 if not is_df_inferred(noise) else 12)
    unit, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    rate = st.beta(noise.lapse.prior.a, noise.lapse.prior.b).ppf(unit)
    first, part = st.beta(1, 2).ppf(unit), unit
    habits = np.array([[p, (1 - p) * u, (1 - p) * (1 - u)] for p in first for u in part])
    without = np.exp(rv.log_likelihood(d, v[:, None], law))
    prior_mass = np.exp(log_prior - log_prior.max())[:, None] * weights
    of_row = np.unique(d.actions, return_inverse=True)[1]
    moments, total, over_v = np.zeros((2, 4)), 0.0, np.zeros(len(v))
    for pi, habit_weight in zip(habits, np.outer(weights, weights).ravel(), strict=True):
        # the habit of what was chosen among the labels of its own decision
        blind = pi[of_row[d.chosen_row]] / np.add.reduceat(pi[of_row], d.start[:-1])
        likely = np.ones((len(v), len(rate)))
        for t in range(len(d)):
            likely *= np.outer(without[:, t], 1 - rate) + rate * blind[t]
        mass = likely * prior_mass * habit_weight
        total += mass.sum()
        over_v += mass.sum(axis=1)
        for power in (1, 2):
            moments[power - 1, 0] += mass.sum(axis=1) @ v**power
            moments[power - 1, 1] += mass.sum(axis=0) @ rate**power
            moments[power - 1, 2:] += mass.sum() * pi[:2] ** power
    mean, square = moments / total
    found = mean, np.sqrt(square - mean**2)
    found = with_scale(found, over_v, *scale) if scale else found
    return float(np.log(total)), found


def habits(name: str, d: Decisions, model: rv.ChoiceModel, **of: Any) -> Oracle:
    """A model with lapses by habit, of three labels, on these decisions."""

    def each(draws: Draws) -> Floats:
        rest = [np.log(draws[name]) for name in ("prior_sd", "df") if name in draws]
        return columns(draws["value"], draws["lapse"], draws["habit"][:, :2], *rest)

    return Oracle(name, model, d, d + d, each, cache(lambda: habit_moments(d, model)), **of)


def by_sampler(d: Decisions, model: rv.ChoiceModel) -> list[Oracle]:
    """Habits in these decisions; for particles, which take long for each, in the first of them."""
    return [
        habits("habits", d, model, not_for=("ibis",)),
        habits("habits, few", d[:4], model, only=("ibis",)),
    ]


def against_the_grain(count: int, wrong: int, by: float) -> Decisions:
    """Choices of the better of two, but for some that are wrong by far.

    Either the value is small, or these were lapses: the posterior has two modes.
    """
    rng = np.random.default_rng(7)
    gap = np.append(rng.uniform(0.5, 1.5, count), np.full(wrong, -by))
    rows = np.stack([gap, np.zeros(len(gap))], axis=1).reshape(-1, 1)
    return Decisions(rows, 2 * np.arange(len(gap) + 1), np.zeros(len(gap), int))


def lapse_oracles() -> list[Oracle]:
    """One mode and two, under both noises; with habits, labels that are not always offered."""
    states = rv.ChoiceModel(prior=prior_of("normal"), noise=rv.NormalNoise(lapse=LAPSE))
    found = [lapses("two states", two_states(), states, only=AUGMENTATION)]
    offers = labelled_offers(16, 3, features=1, actions="abc")
    for noise in (rv.NormalNoise(lapse=LAPSE), rv.LogitNoise(lapse=LAPSE)):
        model, rng = rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise), np.random.default_rng(3)
        few = choose(rng, even_offers(1, 12, 3), np.array([1.5]), noise)
        found += [
            lapses("lapses", few, model, not_for=("da", *TRANSLATING)),
            lapses("two modes", against_the_grain(14, 3, 6.0), model, only=("composite",)),
            lapses("lapses", few, model.replace(prior=prior_of("inferred sd", scale=1.0))),
        ]
        by_habit = model.replace(noise=replace(noise, lapse=replace(LAPSE, to="habit")))
        seen = choose(rng, offers, np.array([1.5]), noise)
        wide = by_habit.replace(prior=prior_of("inferred sd", scale=1.0))
        found += [habits("habits", seen, by_habit), *by_sampler(seen, wide)]
    for law in (STUDENT, STUDENT_DF):
        tails = replace(law, lapse=replace(LAPSE, to="habit"))
        found += by_sampler(seen, rv.ChoiceModel(prior=rv.Normal(2.0), noise=tails))
    return found


# Student noise: one coefficient; where df is inferred, posteriors with df known are mixed


def log_student(d: Decisions, v: Floats, df: float) -> Floats:
    """(n, T) the log probability of each choice between two actions, at coefficients v (n,).

    The difference of their noise, over the root of two, has Student's distribution.
    """
    other = np.setdiff1d(np.arange(len(d.rows)), d.chosen_row)
    lead = np.outer(v, np.asarray(d.rows)[d.chosen_row, 0] - np.asarray(d.rows)[other, 0])
    return np.asarray(st.t.logcdf(lead / np.sqrt(2.0), df))


def quantiles_of_df(prior: rv.Gamma, p: Floats) -> Floats:
    """(n,) quantiles of the prior of df at probabilities p (n,); it is cut off below one."""
    law = st.gamma(prior.shape, scale=1.0 / prior.rate)
    low = law.cdf(1.0)
    return np.asarray(law.ppf(low + (1.0 - low) * p))


def mix_over_df(prior: rv.Gamma, at: Callable[[float], tuple[float, Moments]]) -> Moments:
    """The moments of a posterior over df, and of log df, from those with df known.

    at: the log evidence and the moments, at this df.
    """
    # Gauss's nodes in the quantiles of the prior
    nodes, weights = np.polynomial.legendre.leggauss(16)
    df = quantiles_of_df(prior, 0.5 * (nodes + 1.0))
    found = [at(each) for each in df]
    logs = np.array([log_evidence for log_evidence, _ in found]) + np.log(weights)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    means, sds = (np.array([moments[i] for _, moments in found]) for i in (0, 1))
    mean = np.append(share @ means, share @ np.log(df))
    square = np.append(share @ (means**2 + sds**2), share @ np.log(df) ** 2)
    return mean, np.sqrt(square - mean**2)


def student_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of the coefficient, the rate of lapses, the log prior sd and log df, where inferred."""
    noise, prior = model.noise, model.value_prior
    assert isinstance(noise, rv.StudentNoise)
    assert isinstance(prior, rv.Normal)
    sd: Any = prior.sd
    scale: list[Floats] = []
    if prior.infers_sd:
        v, step = dense_at_zero(1001, 60.0)
        log_prior, *scale = integrate_scale(v**2, 1, sd.scale)
        log_prior = log_prior + step
    else:
        v = np.linspace(-8.0, 8.0, 801) * float(sd)
        log_prior = -0.5 * (v / float(sd)) ** 2
    rates = np.zeros(1)
    if noise.lapse is not None:
        # even quantiles of the prior of the rate, so that each has the same weight
        beta = st.beta(noise.lapse.prior.a, noise.lapse.prior.b)
        rates = beta.ppf((np.arange(400) + 0.5) / 400)

    def at(df: float) -> tuple[float, Moments]:
        without = np.exp(log_student(d, v, df))
        logs = np.stack([np.log((1 - r) * without + r / 2).sum(axis=1) for r in rates], axis=1)
        logs += log_prior[:, None]
        weight = np.exp(logs - logs.max())
        parts = [np.repeat(v, len(rates)), np.tile(rates, len(v))]
        found = moments_of(weight.ravel(), *parts[: 1 + (noise.lapse is not None)])
        found = with_scale(found, weight.sum(axis=1), *scale) if scale else found
        return float(logs.max() + np.log(weight.sum())), found

    return at(noise.df)[1] if not isinstance(noise.df, rv.Gamma) else mix_over_df(noise.df, at)


def student_columns(draws: Draws) -> Floats:
    """The quantities of `student_moments`."""
    rest = [draws["lapse"]] if "lapse" in draws else []
    rest += [np.log(draws[name]) for name in ("prior_sd", "df") if name in draws]
    return columns(draws["value"], *rest)


def student_oracles() -> list[Oracle]:
    """Two actions, the better of them but for some that are wrong by far.

    Particles take each decision as long as a whole run of another sampler: where they also infer
    the rate of lapses and the prior sd, there are few.
    """
    d, few, found = against_the_grain(10, 2, 3.0), against_the_grain(3, 1, 3.0), []
    for law in (STUDENT, STUDENT_DF):
        for prior, noise in itertools.product(
            ("normal", "inferred sd"), (law, replace(law, lapse=LAPSE))
        ):
            model = rv.ChoiceModel(prior=prior_of(prior, 2.0, 1.0), noise=noise)
            long = prior == "inferred sd" and noise.lapse is not None
            for name, seen, of in (
                ("two actions", d, {"not_for": ("ibis",)} if long else {}),
                *([("few", few, {"only": ("ibis",)})] if long else []),
            ):
                exact = cache(partial(student_moments, seen, model))
                found.append(Oracle(name, model, seen, seen + seen, student_columns, exact, **of))
    return found


def correlated_oracles() -> list[Oracle]:
    """Two actions; `tests/correctness/test_noise_covariance.py` compares samplers on more."""
    rows = np.random.default_rng(2).normal(size=(24, 2))
    chosen = [0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0]
    d = Decisions(rows, range(0, 25, 2), chosen, actions=["a", "b"] * 12)
    noise = rv.CorrelatedNoise(base="a")
    return [
        pooled("two actions", d, rv.ChoiceModel(prior=prior_of(prior), noise=noise))
        for prior in ("normal", "flat", "inferred sd")
    ]


# A population of values of one coefficient. Given mean and sd, groups are integrated one by one.

SD_SCALE, MEAN_SD = 1.0, 2.0**0.5


def population_moments(by_group: list[Decisions], model: rv.ChoiceModel) -> Moments:
    """Of the mean, the log sd, the first group's value, and the log prior sd if it is inferred.

    And of log df, if that is inferred.
    """
    noise = model.noise
    assert isinstance(noise, Noise)
    if isinstance(noise, rv.StudentNoise) and isinstance(noise.df, rv.Gamma):

        def at(df: float) -> tuple[float, Moments]:
            return population_posterior(by_group, model, rv.StudentNoise(df))

        return mix_over_df(noise.df, at)
    return population_posterior(by_group, model, noise)[1]


def population_posterior(
    by_group: list[Decisions], model: rv.ChoiceModel, noise: Noise
) -> tuple[float, Moments]:
    """The log evidence, up to a constant, and these moments under a noise that is known."""
    v = np.linspace(-16.0, 16.0, 1601)
    logs = np.array([rv.log_likelihood(d, v[:, None], noise).sum(axis=1) for d in by_group])
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    mean, step = dense_at_zero(301, most=14.0)
    log_sd = np.linspace(-9.0, 4.0, 131)
    total = np.empty((len(mean), len(log_sd)))
    value, square = np.empty_like(total), np.empty_like(total)
    spacing = v[1] - v[0]
    for j, sd in enumerate(np.exp(log_sd)):
        if sd < 2.0 * spacing:  # all groups are at the mean
            at = np.array([np.interp(mean, v, each) for each in likelihood])
            value[:, j], square[:, j] = mean, mean**2
        else:
            density = np.exp(-0.5 * ((v - mean[:, None]) / sd) ** 2) * spacing / sd
            density /= np.sqrt(2.0 * np.pi)
            at = np.maximum((density @ likelihood.T).T, 1e-300)
            first = density * likelihood[0]
            value[:, j], square[:, j] = first @ v / at[0], first @ v**2 / at[0]
        total[:, j] = np.log(np.maximum(at, 1e-300)).sum(axis=0)
    # scale times |t| with two degrees of freedom
    total += st.t.logpdf(np.exp(log_sd) / SD_SCALE, 2) + log_sd + step[:, None]
    prior: Any = model.value_prior
    if prior.infers_sd:
        log_prior, tau, tau_square = integrate_scale(mean**2, 1, prior.sd.scale)
    else:
        log_prior = st.norm.logpdf(mean, scale=prior.sd)
    total += log_prior[:, None]
    weight = np.exp(total - total.max())
    log_evidence = float(total.max() + np.log(weight.sum()) + logs.max(axis=1).sum())
    weight /= weight.sum()
    over_mean, over_sd = weight.sum(axis=1), weight.sum(axis=0)
    first_value = float((weight * value).sum())
    means = np.array([over_mean @ mean, over_sd @ log_sd, first_value])
    squares = np.array([over_mean @ mean**2, over_sd @ log_sd**2, (weight * square).sum()])
    found = means, np.sqrt(squares - means**2)
    if prior.infers_sd:
        found = with_scale(found, over_mean, tau, tau_square)
    return log_evidence, found


def population_columns(draws: Draws) -> Floats:
    """The quantities of `population_moments`."""
    found = [draws["population_mean"], 0.5 * np.log(draws["population_covariance"][:, 0, 0])]
    rest = [np.log(draws[name]) for name in ("prior_sd", "df") if name in draws]
    return columns(*found, draws["value"][:, 0, 0], *rest)


def population_oracles() -> list[Oracle]:
    """Groups whose choices contradict one another, so that all moments exist."""
    found = []
    for noise in (*NOISES.values(), STUDENT, STUDENT_DF):
        # fewer under a noise that takes longer
        groups, times = (3, 8) if noise is NOISES["normal"] else (2, 4)
        rows = np.random.default_rng(4).standard_normal((groups * times * 2, 1))
        # the better action but for every fourth time
        better = rows[1::2, 0] > rows[::2, 0]
        chosen = better ^ np.tile([False, False, True, False], groups * times // 4)
        group = np.repeat(np.arange(groups), times)
        d = Decisions(rows, np.arange(groups * times + 1) * 2, chosen.astype(int), groups=group)
        by_group = [d[group == g] for g in range(groups)]
        for prior in ("normal", "inferred sd"):
            model = rv.ChoiceModel(
                prior=prior_of(prior, MEAN_SD, 1.0),
                noise=noise,
                groups=rv.Hierarchical(sd_scale=SD_SCALE),
            )
            exact = cache(partial(population_moments, by_group, model))
            found.append(Oracle("one feature", model, d, d + d, population_columns, exact))
            if noise is NOISES["normal"]:
                found.append(two_labelled_actions(d, model, exact))
    return found


# Lapses in a population of one coefficient: what a million draws from the prior are worth


def with_lapses(prior: Any, lapse: rv.Lapse, rng: np.random.Generator, count: int) -> Draws:
    """Draws of a population and of two groups from their prior.

    A covariance of two is the inverse of a Wishart draw, by Bartlett's triangle.
    """
    sd = np.full(count, 1.0 if prior.infers_sd else prior.sd)
    if prior.infers_sd:
        sd = prior.sd.scale * np.abs(rng.standard_t(4, count))
    draws = {"prior_sd": sd, "population_mean": sd * rng.standard_normal(count)}
    if lapse.by == "all":
        spread = SD_SCALE * np.abs(rng.standard_t(2, count))
        draws["lapse"] = rng.beta(lapse.prior.a, lapse.prior.b, count)
        z = rng.standard_normal((2, count))
        return draws | {"sd": spread, "value": draws["population_mean"] + spread * z}
    # the scale matrix 4 diag(1 / a), 1 / a being gamma, and three degrees of freedom
    scale = np.stack([np.full(count, s * s) for s in (SD_SCALE, lapse.sd_scale)])
    root = np.sqrt(4.0 * scale * rng.standard_gamma(0.5, (2, count)))
    first, second = (np.sqrt(rng.chisquare(df, count)) for df in (3, 2))
    low = rng.standard_normal(count)
    # (L L')^-1 with L = [[first, 0], [low, second]]
    variance = (second**2 + low**2) / (first * second) ** 2 * root[0] ** 2
    across = -low / (first * second**2) * root[0] * root[1]
    of_rates = root[1] ** 2 / second**2
    centre = rng.standard_normal(count)
    z = rng.standard_normal((2, 2, count))
    value = draws["population_mean"] + np.sqrt(variance) * z[0]
    rest = np.sqrt(np.maximum(of_rates - across**2 / variance, 0.0))
    coordinate = centre + across / np.sqrt(variance) * z[0] + rest * z[1]
    rate = st.beta(lapse.prior.a, lapse.prior.b).ppf(ndtr(coordinate))
    draws |= {"sd": np.sqrt(variance), "value": value, "lapse": rate, "centre": centre}
    return draws | {"sd_of_rates": np.sqrt(of_rates), "across": across}


def lapsing_population_moments(d: Decisions, model: rv.ChoiceModel) -> Moments:
    """Of bounded functions, as values of groups that chose little have no variance.

    Draws from the prior, weighed by the likelihood of two groups that chose between two actions.
    """
    noise, prior = model.noise, model.value_prior
    assert isinstance(noise, Noise)
    assert isinstance(prior, rv.Normal)
    assert noise.lapse is not None
    # Student's distribution takes longer, and so do samplers under it, which make fewer draws
    df: Any = getattr(noise, "df", None)
    rng, count = np.random.default_rng(1), 1_000_000 if df is None else 300_000
    draws = with_lapses(prior, noise.lapse, rng, count)
    if isinstance(df, rv.Gamma):
        df = quantiles_of_df(df, rng.random(count))
    other = np.asarray(d.rows)[np.delete(np.arange(len(d.rows)), d.chosen_row), 0]
    lead = np.asarray(d.rows)[d.chosen_row, 0] - other
    logs = np.zeros(len(draws["sd"]))
    rates = np.broadcast_to(draws["lapse"], draws["value"].shape)
    for gap, group in zip(lead, np.asarray(d.groups), strict=True):
        utility = gap * draws["value"][group]
        if df is not None:
            p = stdtr(df, utility / np.sqrt(2.0))
        elif isinstance(noise, rv.LogitNoise):
            p = expit(utility)
        else:
            p = ndtr(utility / np.sqrt(2.0))
        logs += np.log(np.maximum((1.0 - rates[group]) * p + 0.5 * rates[group], 1e-300))
    parts = [draws["population_mean"], np.log(draws["sd"]), draws["value"][0]]
    if "across" in draws:
        spread = draws["sd_of_rates"]
        parts += [draws["centre"], np.log(spread), draws["across"] / draws["sd"] / spread]
    parts.append(rates[0])
    parts += [np.log(draws["prior_sd"])] if prior.infers_sd else []
    parts += [np.log(df)] if np.ndim(df) else []
    return moments_of(np.exp(logs - logs.max()), *map(np.arctan, parts))


def lapsing_population_columns(draws: Draws) -> Floats:
    """The quantities of `lapsing_population_moments`."""
    sd = np.sqrt(draws["population_covariance"][:, 0, 0])
    found = [draws["population_mean"], np.log(sd), draws["value"][:, 0, 0]]
    if "population_noise_mean" in draws:
        across, variance = draws["population_noise_covariance"][:, 0].T
        spread = np.sqrt(variance)
        found += [draws["population_noise_mean"], np.log(spread), across / sd / spread]
    rate = draws["lapse"]
    found.append(rate if rate.ndim == 1 else rate[:, 0])
    rest = [np.log(draws[name]) for name in ("prior_sd", "df") if name in draws]
    return np.asarray(np.arctan(columns(*found, *rest)))


def lapsing_population_oracles() -> list[Oracle]:
    """Two groups of different size, under all noises, with one rate and with two."""
    rng, found = np.random.default_rng(9), []
    group = np.repeat([0, 1], [10, 8])
    rows = rng.standard_normal((36, 1))
    # the better action but for every third time: too often for lapses alone
    chosen = (rows[1::2, 0] > rows[::2, 0]) ^ (np.arange(18) % 3 == 1)
    d = Decisions(rows, np.arange(19) * 2, chosen.astype(int), groups=group)
    for law, lapse, prior in itertools.product(
        (rv.NormalNoise(), rv.LogitNoise(), STUDENT, STUDENT_DF),
        (LAPSE, LAPSE_BY_GROUP),
        ("normal", "inferred sd"),
    ):
        model = rv.ChoiceModel(
            prior=prior_of(prior, MEAN_SD, 1.0),
            noise=replace(law, lapse=lapse),  # type: ignore[type-var]
            groups=rv.Hierarchical(sd_scale=SD_SCALE),
        )
        exact = cache(partial(lapsing_population_moments, d, model))
        found.append(
            Oracle("two groups that lapse", model, d, d + d, lapsing_population_columns, exact)
        )
    return found


def two_labelled_actions(
    d: Decisions, model: rv.ChoiceModel, exact: Callable[[], Moments]
) -> Oracle:
    """The posterior of independent noise as that of correlated noise.

    Of two actions the covariance is one number, which the scale makes one, where the difference of
    independent noise has variance two: rows are divided by its root.
    """
    rows, labels = np.asarray(d.rows) / np.sqrt(2.0), np.tile(["a", "b"], len(d))
    labelled = Decisions(rows, d.start, d.chosen, groups=d.groups, actions=labels)
    correlated = model.replace(noise=rv.CorrelatedNoise(base="a"))
    return Oracle(
        "two actions", correlated, labelled, labelled + labelled, population_columns, exact
    )


# Unknown transitions: two states and two actions. Only p = p(0 | 0, first) is unknown: the other
# rows lead to one state each.

ACTION_COUNTS = np.array([[9, 2], [3, 1]])  # how often each action was taken in each state
NEXT_STATE_COUNTS = (1, 3)  # the unknown row led to state 0 once, to state 1 three times
CONCENTRATION = 0.7  # of that row
ONE_UNKNOWN_ROW = np.zeros((2, 2, 2))
ONE_UNKNOWN_ROW[0, 0] = CONCENTRATION
ONE_UNKNOWN_ROW[1, 0, 1] = ONE_UNKNOWN_ROW[0, 1, 0] = ONE_UNKNOWN_ROW[1, 1, 1] = 1.0


def transition_counts(times: int = 1) -> tuple[tuple[Any, Any], Any]:
    """States and actions of the decisions, and how often each row led where."""
    x = np.repeat([0, 0, 1, 1], times * ACTION_COUNTS.ravel())
    a = np.repeat([0, 1, 0, 1], times * ACTION_COUNTS.ravel())
    counts = np.zeros((2, 2, 2), np.int64)
    counts[0, 0] = times * np.array(NEXT_STATE_COUNTS)
    return (x, a), counts


def transition_moments(model: rv.ChoiceModel) -> Moments:
    """Those of `transition_posterior`; where df is inferred, over all of them, and of log df."""
    noise = model.noise
    assert isinstance(noise, Noise)
    if isinstance(noise, rv.StudentNoise) and isinstance(noise.df, rv.Gamma):
        student = noise
        return mix_over_df(
            noise.df, lambda df: transition_posterior(model, replace(student, df=df))
        )
    return transition_posterior(model, noise)[1]


def transition_posterior(model: rv.ChoiceModel, noise: Noise) -> tuple[float, Moments]:
    """The log evidence, and moments of the value of state 0, of p, their product, the log prior sd.

    v = (s, -s). In state 0 the utilities are (2 p - 1) s and -s before noise, in state 1 s and -s.
    """
    gap = np.linspace(-90.0, 90.0, 18_001)
    first = Decisions([[1.0], [0.0]], [0, 2], [0])  # better by the coefficient, and chosen
    # beyond what is computed, logs go on as they are to the last digit that matters here
    if isinstance(noise, rv.StudentNoise):
        assert not isinstance(noise.df, rv.Gamma)
        log_p = st.t.logcdf(gap / np.sqrt(2.0), noise.df)
    else:
        log_p = rv.log_likelihood(first, gap[:, None], noise_without_lapses(noise))[:, 0]

    def log_chosen(logs: Floats, rate: float) -> Floats:
        return np.asarray(logs if rate == 0.0 else np.log((1.0 - rate) * np.exp(logs) + 0.5 * rate))

    # Gauss's nodes in the quantiles of the rate's prior
    rates, weights = np.zeros(1), np.ones(1)
    if noise.lapse is not None:
        nodes, weights = np.polynomial.legendre.leggauss(12)
        beta = st.beta(noise.lapse.prior.a, noise.lapse.prior.b)
        rates = beta.ppf(0.5 * (nodes + 1.0))
    prior: Any = model.prior
    if prior.infers_sd:
        s, step = dense_at_zero(400 if noise.lapse else 1500)
        log_prior, mean, square = integrate_scale(2.0 * s**2, 1, prior.sd.scale)
    else:
        s = np.linspace(-12.0, 12.0, 301 if noise.lapse else 1201)
        step, log_prior = np.zeros_like(s), -(s**2) / prior.sd**2
    logit = np.linspace(-30.0, 30.0, 301 if noise.lapse else 1501)
    p, rest = 1.0 / (1.0 + np.exp(-logit)), 1.0 / (1.0 + np.exp(logit))
    # in state 0 the first action leads by 2 p s, in state 1 by 2 s
    lead = 2.0 * p * s[:, None]
    known = (
        (log_prior + step)[:, None]
        + (CONCENTRATION + NEXT_STATE_COUNTS[0]) * np.log(p)
        # and the logit's Jacobian, p (1 - p)
        + (CONCENTRATION + NEXT_STATE_COUNTS[1]) * np.log(rest)
    )
    better, worse = (np.interp(sign * lead, gap, log_p) for sign in (1.0, -1.0))
    first_better, first_worse = (np.interp(sign * s, gap, log_p) for sign in (2.0, -2.0))
    logs = np.stack(
        [
            known
            + np.log(weight)
            + ACTION_COUNTS[0, 0] * log_chosen(better, rate)
            + ACTION_COUNTS[0, 1] * log_chosen(worse, rate)
            + (ACTION_COUNTS[1, 0] * log_chosen(first_better, rate))[:, None]
            + (ACTION_COUNTS[1, 1] * log_chosen(first_worse, rate))[:, None]
            for rate, weight in zip(rates, weights, strict=True)
        ]
    )
    by_rate = np.exp(logs - logs.max())
    log_evidence = float(logs.max() + np.log(by_rate.sum()))
    by_rate /= by_rate.sum()
    weight, over_rate = by_rate.sum(axis=0), by_rate.sum(axis=(1, 2))
    over_s, over_p = weight.sum(axis=1), weight.sum(axis=0)
    means = [over_s @ s, over_p @ p, s @ weight @ p]
    squares = [over_s @ s**2, over_p @ p**2, s**2 @ weight @ p**2]
    if noise.lapse is not None:
        means.append(over_rate @ rates)
        squares.append(over_rate @ rates**2)
    found = np.array(means), np.sqrt(np.array(squares) - np.array(means) ** 2)
    if prior.infers_sd:
        found = with_scale(found, over_s, mean, square)
    return log_evidence, found


def transition_columns(draws: Draws) -> Floats:
    """The quantities of `transition_moments`; of the cells, the first one is p."""
    value, p = draws["value"][:, 0], draws["transition"][:, 0]
    rest = [draws["lapse"]] if "lapse" in draws else []
    rest += [np.log(draws[name]) for name in ("prior_sd", "df") if name in draws]
    return columns(value, p, value * p, *rest)


def transition_oracles() -> list[Oracle]:
    """Under all noises, with both priors."""
    found = []
    lapsing = [
        replace(law, lapse=LAPSE)
        for law in (rv.NormalNoise(), rv.LogitNoise(), STUDENT, STUDENT_DF)
    ]
    for noise in (*NOISES.values(), STUDENT, STUDENT_DF, *lapsing):
        for prior in ("normal", "inferred sd"):
            model = rv.ChoiceModel(
                prior=prior_of(prior, 6.0**0.5),
                noise=noise,
                transitions=rv.Dirichlet(ONE_UNKNOWN_ROW),
            )
            once, twice = (
                rv.Trajectories.from_counts(*transition_counts(times), (0, 1), (0, 1))
                for times in (1, 2)
            )
            exact = cache(partial(transition_moments, model))
            found.append(Oracle("one unknown row", model, once, twice, transition_columns, exact))
    return found


# Rankings


def pair_moments() -> Moments:
    """Of (a - b) / 2, log spread and log margin: a won six games, b two, and four were tied."""
    z = np.linspace(-6.0, 6.0, 121)[:, None, None]
    log_spread = np.linspace(-9.0, 2.0, 221)[None, :, None]
    log_margin = np.linspace(-4.0, 1.5, 111)[None, None, :]
    spread, margin = np.exp(log_spread), np.exp(log_margin)
    gap = np.sqrt(2.0) * spread * z
    up, down = (margin + gap) / np.sqrt(2.0), (margin - gap) / np.sqrt(2.0)
    logs = (
        -0.5 * z**2
        + log_spread
        - 0.5 * (spread / SPREAD_PRIOR_SD) ** 2
        + log_margin
        - 0.5 * (margin / MARGIN_PRIOR_SD) ** 2
        + 6.0 * log_ndtr(-down)
        + 2.0 * log_ndtr(-up)
        + 4.0 * np.log(np.maximum(ndtr(up) - ndtr(-down), 1e-300))
    )
    weight = np.exp(logs - logs.max())
    parts = (np.broadcast_to(each, weight.shape) for each in (0.5 * gap, log_spread, log_margin))
    return moments_of(weight.ravel(), *(part.ravel() for part in parts))


RANKINGS_OF_THREE = [["a", "b", "c"]] * 5 + [["b", "a", "c"], ["c", "a", "b"], ["a", "c", "b"]]


def three_player_moments(spread: float) -> Moments:
    """Of all three skills, which sum to zero and are normal there."""
    axis = np.linspace(-5.0, 6.0, 61)
    one, two = (part.ravel() for part in np.meshgrid(axis, axis))
    skill = np.stack([one, two, -one - two], axis=1)
    logs = -0.5 * (skill**2).sum(axis=1) / spread**2
    for order in itertools.permutations("abc"):
        at = ["abc".index(name) for name in order]
        if (often := RANKINGS_OF_THREE.count(list(order))) > 0:
            logs += often * log_ranking_probabilities(
                np.ascontiguousarray(skill[:, at]),
                np.ones(3),
                np.zeros(3, np.bool_),
                3,
                np.zeros(len(skill)),
            )
    return moments_of(np.exp(logs - logs.max()), skill)


def flat_moments() -> Moments:
    """Of half the difference of two players under a flat prior, seven wins to three."""
    x = np.linspace(-4.0, 5.0, 2_001)
    logs = 7.0 * log_ndtr(np.sqrt(2.0) * x) + 3.0 * log_ndtr(-np.sqrt(2.0) * x)
    return moments_of(np.exp(logs - logs.max()), x)


def tied_pairs(times: int) -> rv.Rankings:
    positions = ([1, 2] * 6 + [2, 1] * 2 + [1, 1] * 4) * times
    who = [g for g in range(12 * times) for _ in range(2)]
    return rv.Rankings.from_columns(who, ["a", "b"] * 12 * times, positions)


PLACES_OF_THREE: list[tuple[Any, ...]] = [
    *[(1, 2, 3)] * 3,
    *[(2, 1, 3), (3, 2, 1), (2, 3, 1)],
    *[(1, 1, 2)] * 2,
    *[(1, 2, 2), (2, 1, 1), (1, 1, 1)],
    *[(1, "DNF", "DNF")] * 2,
    *[("DNF", "DNF", 1), ("DNF", 1, "DNF")],
]
"""The places of a, b and c in each game; of equal ones the order was not seen."""


def places_of_three(times: int) -> rv.Rankings:
    places = PLACES_OF_THREE * times
    game = [g for g in range(len(places)) for _ in "abc"]
    return rv.Rankings.from_columns(game, list("abc") * len(places), [p for g in places for p in g])


def log_luce_likelihood(skill: Floats) -> Floats:
    """(n,) of the places above: sums over all orders of products of logit choices."""
    strength, total = np.exp(skill), np.zeros(len(skill))
    for places in PLACES_OF_THREE:
        rank = [9 if place == "DNF" else place for place in places]
        agree = np.zeros(len(skill))
        for order in itertools.permutations(range(3)):
            if all(rank[one] <= rank[two] for one, two in itertools.pairwise(order)):
                first, second, third = (strength[:, k] for k in order)
                agree += first / (first + second + third) * second / (second + third)
        total += np.log(agree)
    return total


def luce_moments(prior: str, spread: float) -> Moments:
    """Of all three skills, which sum to zero, and of the log spread where that is inferred."""
    axis = np.linspace(-8.0, 8.0, 161)
    one, two = (part.ravel() for part in np.meshgrid(axis, axis))
    skill = np.stack([one, two, -one - two], axis=1)
    logs, square = log_luce_likelihood(skill), (skill**2).sum(axis=1)
    if prior != "inferred sd":
        logs -= 0.0 if prior == "flat" else 0.5 * square / spread**2
        return moments_of(np.exp(logs - logs.max()), skill)
    # a narrow spread has all its mass between the points of a grid: skills in units of it
    log_spread = np.linspace(-9.0, 2.5, 231)
    found = []
    for each in np.exp(log_spread):
        unit = np.linspace(-6.0, 6.0, 81)
        one, two = (part.ravel() for part in np.meshgrid(unit, unit))
        z = np.stack([one, two, -one - two], axis=1)
        logs = log_luce_likelihood(each * z) - 0.5 * (z**2).sum(axis=1)
        logs += np.log(each) - 0.5 * (each / SPREAD_PRIOR_SD) ** 2
        found.append((each * z, np.full(len(z), np.log(each)), np.exp(logs)))
    skills, logs_of_spread, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    return moments_of(weights, skills, logs_of_spread)


def luce_oracles() -> list[Oracle]:
    """Three players under logit noise, with orders that were not seen and retirements."""
    priors: dict[str, rv.Normal | rv.Flat | None] = {
        "normal": rv.Normal(1.5),
        "flat": rv.Flat(),
        "inferred sd": None,
    }

    def skill_and_spread(draws: Draws) -> Floats:
        spread = [np.log(draws["spread"])] if "spread" in draws else []
        return columns(draws["skill"], *spread)

    return [
        Oracle(
            "three players, logit noise",
            rv.RankingModel(prior=prior, noise=rv.LogitNoise()),
            places_of_three(1),
            places_of_three(2),
            skill_and_spread,
            cache(partial(luce_moments, name, 1.5)),
        )
        for name, prior in priors.items()
    ]


def ranking_oracles() -> list[Oracle]:
    """A spread that is inferred, one that is given, and a flat prior."""
    orders = [["a", "b"]] * 7 + [["b", "a"]] * 3
    return [
        Oracle(
            "pairs with ties",
            rv.RankingModel(),
            tied_pairs(1),
            tied_pairs(2),
            lambda draws: columns(
                draws["skill"][:, 0], np.log(draws["spread"]), np.log(draws["margin"])
            ),
            cache(pair_moments),
        ),
        Oracle(
            "three players",
            rv.RankingModel(prior=rv.Normal(1.5)),
            rv.Rankings.from_lists(RANKINGS_OF_THREE),
            rv.Rankings.from_lists(RANKINGS_OF_THREE * 2),
            lambda draws: draws["skill"],
            cache(lambda: three_player_moments(1.5)),
        ),
        Oracle(
            "two players",
            rv.RankingModel(prior=rv.Flat()),
            rv.Rankings.from_lists(orders),
            rv.Rankings.from_lists(orders * 2),
            lambda draws: draws["skill"][:, :1],
            cache(flat_moments),
        ),
    ]


ORACLES = [
    *pooled_oracles(),
    *lapse_oracles(),
    *student_oracles(),
    *correlated_oracles(),
    *population_oracles(),
    *lapsing_population_oracles(),
    *transition_oracles(),
    *ranking_oracles(),
    *luce_oracles(),
]
"""All of them: at least one for each kind of model."""


def find_oracle(name: str, prior: str, noise: str = "normal") -> Oracle:
    """The first of this name with this kind of prior and noise."""
    return next(o for o in ORACLES if (o.name, o.kind.prior, o.kind.noise) == (name, prior, noise))
