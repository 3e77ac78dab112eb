"""Every pair of a kind of model and a sampler in the registry, and what is tried on each.

Nothing here names a pair: a sampler or a kind that is added to the registry is tried on what
`problems.py` and `oracles.py` have for its kind, and what is missing there fails with a sentence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import revealed as rv
from revealed._types import Ints
from revealed.samplers.model_kind import Model, ModelKind
from revealed.samplers.registry import REGISTRY, BuildArguments, SamplerEntry
from tests.conformance.every import ALL_PROBLEMS
from tests.conformance.problems import Draws, Problem
from tests.support.cases import VARIANTS, given_options, label, warmed_up_draws
from tests.support.evidence_log import model_name

Spoil = Callable[[Any], Any]


class Pair(NamedTuple):
    """A sampler with a kind of model that it takes."""

    kind: ModelKind
    entry: SamplerEntry

    def __str__(self) -> str:
        return f"{self.entry.name}: {self.kind}"


def pairs() -> list[Pair]:
    """All pairs of the registry."""
    return [Pair(kind, entry) for entry in REGISTRY.entries for kind in entry.kinds]


@dataclass(frozen=True)
class Pace:
    """How a sampler is run where its draws have to be nearly independent.

    thin: iterations between draws, one and a half times the longest autocorrelation time or more:
    ranks are uniform only among independent draws. warmup: before the first draw.
    """

    warmup: int
    thin: int


def pace(kind: ModelKind, name: str, problem: str) -> Pace:
    """By sampler, where it mixes slowly; one that nobody has put here is run for long."""
    if name in ("da", "px-scale", "px-translate", "px-both"):
        if kind.noise == "correlated":
            return Pace(200, 25)
        if kind.over_time != "constant":
            return Pace(500, 150)
        if kind.prior == "inferred sd":
            thin = {"px-both": 30, "px-scale": 60}.get(name, 100)
            return Pace(5 * thin, thin)
        # scales matter with ragged features, and data augmentation moves them slowly
        thin = {"da": 60, "px-scale": 40}.get(name, 25) if problem == "ragged" else 25
        return Pace(10 * thin, thin)
    return {
        "composite": Pace(100, 10),
        "ghk-hmc": Pace(300, 3),
        "hierarchical": Pace(160, 9),
        "hierarchical-hmc": Pace(160, 15 if kind.prior == "inferred sd" else 8),
        "hierarchical-gibbs": Pace(60, 4),
        "transitions-hmc": Pace(200, 8),
        "ranking-hmc": Pace(150, 3),
        "state-space": Pace(200, 8),
        "hierarchical-state-space": Pace(200, 8),
        "hidden-markov": Pace(200, 8),
        "skill-paths": Pace(200, 12),
    }.get(name, Pace(500, 20))


PARTICLES = 240
"""Of a set that a few are drawn from; also the draws of a sampler that has no chains."""


def build(pair: Pair, model: Model, data: Any, options: dict[str, Any], draws: int) -> Any:
    """The sampler as the registry builds it, on one thread."""
    assert pair.entry.build is not None
    return pair.entry.build(model.resolve(data), BuildArguments(options, draws, threads=1))


def named(model: Model, data: Any, draws: Draws) -> Draws:
    """A sampler's draws by the names of the model's parameters."""
    return model.resolve(data).name_draws(draws)


def independent_draws(
    rng: np.random.Generator,
    pair: Pair,
    problem: Problem,
    data: Any,
    options: dict[str, Any],
    count: int,
    spoil: Spoil | None = None,
) -> Draws:
    """So many draws that are nearly independent.

    spoil: makes a wrong sampler of the right one.
    """
    entry = pair.entry
    if entry.build is None:
        post = fit(data, problem.model, entry.name, PARTICLES, seed=int(rng.integers(2**31)))
        made = {name: each[0] for name, each in post.draws.items()}
    elif entry.name == "ibis":
        sampler = build(pair, problem.model, data, options, PARTICLES)
        sampler = spoil(sampler) if spoil else sampler
        made, _ = warmed_up_draws(rng, sampler, len(data), PARTICLES)
        made = named(problem.model, data, made)
    else:
        speed = pace(pair.kind, entry.name, problem.name)
        sampler = build(pair, problem.model, data, options, count)
        sampler = spoil(sampler) if spoil else sampler
        made, _ = warmed_up_draws(rng, sampler, speed.warmup, count, speed.thin)
        return named(problem.model, data, made)
    # particles and resampled draws repeat one another: few of many are nearly independent
    some = rng.choice(PARTICLES, count, replace=False)
    return {name: each[some] for name, each in made.items()}


def fit(data: Any, model: Model, sampler: str, draws: int, **settings: Any) -> Any:
    """`rv.fit` of one chain on one thread, whose convergence is not asked for."""
    given = {"chains": 1, "executor": 1, "progress": False} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(data, model, sampler=sampler, draws=draws, **given)


RANKED = 15
"""Draws that a truth is ranked among: as many as the bins of the test have edges."""


def ranks(
    pair: Pair,
    problem: Problem,
    options: dict[str, Any],
    replications: int,
    seed: int,
    spoil: Spoil | None = None,
) -> Ints:
    """(data sets, quantities) ranks of the truth among RANKED draws."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(replications):
        truth = problem.draw(rng)
        data = problem.observe(rng, truth)
        if data is None:
            continue
        draws = independent_draws(rng, pair, problem, data, options, RANKED, spoil)
        below = problem.rank(data, draws) < problem.rank(data, truth)
        found.append(below.sum(axis=0))
    assert len(found) > 0.3 * replications
    return np.array(found)


# What is tried on each pair


def variants(pair: Pair) -> list[tuple[str, dict[str, Any]]]:
    """A label and options: every combination for a sampler that has options, else one of none."""
    if "options" not in pair.entry.takes:
        return [("", {})]
    own = [each for each in VARIANTS if each[0] == pair.entry.name]
    # which choices were lapses is drawn without utilities, which are then drawn exactly
    if pair.kind.lapses != "no":
        own = [each for each in own if each[1].utilities == "exact"]
    return [(label(each), given_options(each)) for each in own]


LONG_TO_COMPILE = ("other", "student", "student df")
"""Noises whose loops are compiled for each of their samplers anew, and take longest."""


@cache
def tried_each_time(pair: Pair) -> bool:
    """Whether a pair is tried by default; all others run with --slow.

    Every sampler is, with each part beside the simplest others: the first pair of its model and
    sampler on the certificate. What differs from that in the prior's sd or in df alone is not, nor
    what joins two parts and one of these noises, or two parts under normal noise of which lapses
    are one: its loops are compiled for nothing else, which takes most of the time.
    """
    own = model_name(pair.kind), pair.entry.name
    if pair != next(p for p in pairs() if (model_name(p.kind), p.entry.name) == own):
        return False
    kind = pair.kind
    parts = (kind.groups != "pooled") + (kind.lapses != "no") + (kind.over_time != "constant")
    parts += kind.data == "trajectories"
    if kind.noise in LONG_TO_COMPILE:
        return parts == 0
    return parts < 2 or kind.lapses == "no" or kind.noise == "logit"


def is_default(variant: tuple[str, dict[str, Any]]) -> bool:
    """Whether a variant has the default options."""
    return not variant[0] or variant[0].endswith("-exact")


def problems_for(pair: Pair) -> list[Problem]:
    """The problems of a pair's kind that are for its sampler."""
    return [p for p in ALL_PROBLEMS if p.kind == pair.kind and p.is_for(pair.entry.name)]


def case(pair: Pair, check: str, *values: Any, slow: bool, name: str = "", **of: str) -> Any:
    """A case for `parametrize`, marked with what it proves."""
    said = {"model": model_name(pair.kind), "sampler": pair.entry.name, "check": check, **of}
    said["kind"] = "|".join(pair.kind)
    marks = [pytest.mark.proves(**{key: text for key, text in said.items() if text})]
    marks += [pytest.mark.slow] if slow else []
    words = [pair.entry.name if not of.get("variant") else of["variant"], *pair.kind, name]
    return pytest.param(*values, marks=marks, id="-".join(filter(None, words)).replace(" ", "_"))


def missing(check: str, lacks: Iterable[Pair]) -> list[str]:
    """A sentence for each pair that a check has no case for."""
    return [f"{check}: there is no case for {pair}" for pair in lacks]
