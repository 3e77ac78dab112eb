"""Small problems whose posteriors are known, and every sampler there is to try on them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.models.priors import Prior
from revealed.samplers.data_augmentation import EXPANSIONS, AugmentationOptions
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments, samplers_for

VARIANTS = [
    (name, AugmentationOptions(utilities, a, b))
    for name, (scale, _) in EXPANSIONS.items()
    for utilities in ("exact", "metropolis")
    for a, b in ([(0.0, 0.0), (2.0, 3.0)] if scale else [(0.0, 0.0)])
]
VARIANTS.append(("composite", AugmentationOptions()))
"""Every sampler with both ways to draw utilities and, if it has a scale, both working priors.

Only the paper's samplers have options; for others they are the default, and not looked at.
"""


def mark_slow(
    cases: Iterable[Any], always: Callable[[Any], bool], unpack: bool = False
) -> list[Any]:
    """Cases for `parametrize`: those that `always` accepts run by default, the others with --slow.

    unpack: whether a case is a tuple of several parameters.
    """
    return [
        case
        if always(case)
        else pytest.param(*(case if unpack else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]


def label(variant: tuple[str, AugmentationOptions]) -> str:
    """A variant in a few words, for the names of tests."""
    name, options = variant
    return f"{name}-{options.utilities}" + ("-proper" if options.a else "")


def features(count: int, seed: int = 3) -> Decisions:
    """Decisions of one to seven actions on three features, chosen by a noisy controller."""
    offers = ragged_offers(3, count, seed)
    return offers.with_choices(
        choose(np.random.default_rng(seed), offers, np.array([1.0, -0.5, 0.2]))[0]
    )


def write_two_parquet_files(folder: Path, decisions: Decisions, first: int, group: int) -> Path:
    """The folder, with the decisions in two Parquet files.

    first: how many are in the first file. group: rows of a row group, which may cut a decision.
    """
    import pyarrow.parquet as pq

    for i, part in enumerate((decisions[:first], decisions[first:])):
        pq.write_table(rv.to_dataframe(part), folder / f"part-{i}.parquet", row_group_size=group)
    return folder


def two_states() -> Decisions:
    """The example of docs/mathematics.md: rows [.8 .2; .3 .7] four times, chosen 0, 0, 1, 0."""
    return Decisions(
        [[0.8, 0.2], [0.3, 0.7]] * 4,
        [0, 2, 4, 6, 8],
        [0, 0, 1, 0],
        blocks=[Block("value", 2, True)],
    )


def mdp_offers(states: int, actions: int, count: int, seed: int) -> Decisions:
    """Decisions of a random MDP in random states; choices not seen."""
    rng = np.random.default_rng(seed)
    mdp = rv.random_mdp(rng, states, actions)
    return mdp.decisions(rng.integers(0, states, count))


def ragged_offers(features: int, count: int, seed: int, feature_sd: float = 1.0) -> Decisions:
    """Decisions of one to seven actions with normal features of that sd; choices not seen."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    return Decisions(
        feature_sd * rng.standard_normal((sizes.sum(), features)),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def choose(rng: np.random.Generator, offers: Decisions, v: Floats) -> tuple[Any, Floats]:
    """(T,) choices of a noisy controller with value v, and the (P,) utilities behind them."""
    w = offers.rows @ v + rng.standard_normal(offers.rows.shape[0])
    chosen = [
        int(np.argmax(w[a:b])) for a, b in zip(offers.start[:-1], offers.start[1:], strict=True)
    ]
    return np.array(chosen), w


def given_options(variant: tuple[str, AugmentationOptions]) -> dict[str, Any]:
    """What `rv.fit` takes as options for a variant; only the paper's samplers have any."""
    name, options = variant
    return dict(vars(options)) if name in EXPANSIONS else {}


def build_sampler(
    variant: tuple[str, AugmentationOptions], decisions: Decisions, prior: Prior
) -> Any:
    """A sampler as the registry builds it; skips the test of a prior that it does not take."""
    name, model = variant[0], rv.ChoiceModel(prior=prior)
    kind = kind_of(model)
    if name not in samplers_for(model):
        pytest.skip(f"{name} takes no prior of this kind: {kind.prior}")
    arguments = BuildArguments(given_options(variant), draws=1000)
    built = REGISTRY.find(name, kind).build
    assert built is not None
    return built(model.resolve(decisions), arguments)


def warmed_up_draws(
    rng: np.random.Generator,
    sampler: Any,
    warmup: int,
    draws: int,
    thin: int = 1,
    init: Floats | None = None,
) -> tuple[dict[str, Floats], Any]:
    """The draws of each parameter, from one chain after a warm-up, and their stats."""
    state, _ = sampler.warmup(rng, sampler.init(rng, init), warmup, warmup)
    _, kept, stats = sampler.sample(rng, state, draws, thin)
    return kept, stats


def long_run(sampler: Any, draws: int, seed: int, init: Floats) -> Floats:
    """(draws, K) values from one long chain after a short warm-up."""
    made, _ = warmed_up_draws(np.random.default_rng(seed), sampler, 1000, draws, init=init)
    return made["value"]


def fixed_cycle(
    sampler: Any, rng: np.random.Generator, hmc: int, augmentation: int, independence: int
) -> Any:
    """A state of the composite sampler with a cycle of our choosing, in linear coordinates.

    Its proposal is as wide as the normal approximation.
    """
    state = sampler.init(rng, None)
    mixture = fixed_mixture(sampler, state["x"].size)
    return (
        state
        | {f"mixture/{name}": part for name, part in mixture._asdict().items()}
        | {"cycle": np.array([hmc, augmentation, independence, 0.5, 2.0, 4.0, 1.0])}
    )


def skewed_cycle(
    sampler: Any, rng: np.random.Generator, hmc: int, augmentation: int, independence: int
) -> Any:
    """The same in coordinates that skew every coefficient, mix them and leave constants free."""
    state = fixed_cycle(sampler, rng, hmc, augmentation, independence)
    width = len(sampler.mode)
    unwhiten = np.eye(width) + 0.3 * np.tri(width, k=-1)
    mixture = fixed_mixture(sampler, width)
    return (
        state
        | {"x": np.zeros(width), "gradient": np.zeros(width), "transform/centre": sampler.mode}
        | {
            "transform/scale": np.linspace(2.0, 3.0, width),
            "transform/skew": np.linspace(0.7, -0.5, width),
        }
        | {"transform/unwhiten": unwhiten, "transform/whiten": np.linalg.inv(unwhiten)}
        | {f"mixture/{name}": part for name, part in mixture._asdict().items()}
    )


def fixed_mixture(sampler: Any, width: int) -> Any:
    """A proposal somewhat wider than a standard normal, of the sampler's own kind."""
    # the sampler of a mutant package takes the proposal of its own package
    package = type(sampler).__module__.rpartition(".")[0]
    proposal = importlib.import_module(f"{package}.proposal")
    # these points have the identity as covariance
    points = np.sqrt(width) * np.vstack([np.eye(width), -np.eye(width)])
    components = (np.ones(1), np.zeros((1, width)), np.eye(width)[None])
    return proposal.add_student_tail(components, points, np.full(2 * width, 0.5 / width))


def build_patched_sampler(
    package: ModuleType,
    variant: tuple[str, AugmentationOptions],
    decisions: Decisions,
    prior: Prior,
) -> Any:
    """The same sampler made of a mutant package's classes, which are not those of this one."""

    def load(module: str) -> Any:
        return importlib.import_module(f"{package.__name__}.{module}")

    data, priors = load("data.decisions"), load("models.priors")
    # what it is built from is made again of the mutant's own classes
    blocks = [data.Block(b.name, b.size, b.sum_to_zero) for b in decisions.blocks]
    copy = data.Decisions(decisions.rows, decisions.start, decisions.chosen, blocks=blocks)
    settings = dict(vars(prior))
    if isinstance(settings.get("sd"), rv.HalfStudentT):
        settings["sd"] = priors.HalfStudentT(**vars(settings["sd"]))
    own_prior = (priors.Flat if isinstance(prior, rv.Flat) else priors.Normal)(**settings)
    model, registry = load("models.choice").ChoiceModel(prior=own_prior), load("samplers.registry")
    entry = registry.REGISTRY.find(variant[0], registry.kind_of(model))
    arguments = registry.BuildArguments(given_options(variant), draws=1000)
    return entry.build(model.resolve(copy), arguments)
