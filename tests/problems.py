"""Small problems whose posteriors are known, and every engine there is to try on them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import understudy as us
from understudy._arrays import Floats
from understudy.decisions import Block, Decisions
from understudy.engines.augmented import MOVES, Augmented, Options
from understudy.engines.blended import Blended
from understudy.priors import Prior, place

VARIANTS = [
    (name, Options(utilities, a, b))
    for name, (scale, _) in MOVES.items()
    for utilities in ("exact", "metropolis")
    for a, b in ([(0.0, 0.0), (2.0, 3.0)] if scale else [(0.0, 0.0)])
]
VARIANTS.append(("blended", Options()))
"""Every engine with both ways to draw utilities and, where there is a scale, both kinds of working prior."""


def label(variant: tuple[str, Options]) -> str:
    name, options = variant
    return f"{name}-{options.utilities}" + ("-proper" if options.a else "")


def features(count: int, seed: int = 3) -> Decisions:
    """Decisions of one to seven actions on three features, chosen by a noisy controller."""
    offers = ragged_offers(3, count, seed)
    return offers.with_choices(choose(np.random.default_rng(seed), offers, np.array([1.0, -0.5, 0.2]))[0])


def two_files(folder: Path, decisions: Decisions, first: int, group: int) -> Path:
    """The folder, with the decisions in two Parquet files: so many in the first, in row groups that cut through decisions."""
    import pyarrow.parquet as pq

    for i, part in enumerate((decisions[:first], decisions[first:])):
        pq.write_table(us.to_frame(part), folder / f"part-{i}.parquet", row_group_size=group)
    return folder


def two_states() -> Decisions:
    """The example of docs/mathematics.md: rows [.8 .2; .3 .7] four times, chosen 0, 0, 1, 0."""
    return Decisions([[0.8, 0.2], [0.3, 0.7]] * 4, [0, 2, 4, 6, 8], [0, 0, 1, 0], blocks=[Block("value", 2, True)])


def mdp_offers(states: int, actions: int, count: int, seed: int) -> Decisions:
    """Decisions of a random MDP in random states; choices not seen."""
    rng = np.random.default_rng(seed)
    mdp = us.random_mdp(rng, states, actions)
    return mdp.decisions(rng.integers(0, states, count))


def ragged_offers(features: int, count: int, seed: int, size: float = 1.0) -> Decisions:
    """Decisions of one to seven actions with normal features of that size; choices not seen."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    return Decisions(size * rng.standard_normal((sizes.sum(), features)), np.concatenate([[0], np.cumsum(sizes)]))


def choose(rng: np.random.Generator, offers: Decisions, v: Floats) -> tuple[Any, Floats]:
    """What a noisy controller with value v takes: (T,) choices, and the (P,) utilities behind them."""
    w = offers.rows @ v + rng.standard_normal(offers.rows.shape[0])
    chosen = [int(np.argmax(w[a:b])) for a, b in zip(offers.start[:-1], offers.start[1:], strict=True)]
    return np.array(chosen), w


def build(variant: tuple[str, Options], decisions: Decisions, prior: Prior) -> Any:
    name, options = variant
    placed = place(prior, decisions)
    return Blended.build(decisions, placed) if name == "blended" else Augmented.build(name, decisions, placed, options)


def warm_draws(
    rng: np.random.Generator, engine: Any, warmup: int, draws: int, thin: int = 1, init: Floats | None = None
) -> tuple[Floats, Any]:
    """(draws, K) from one chain after a warm-up, and their stats."""
    state, _ = engine.warm(rng, engine.start(rng, init), warmup, warmup)
    _, kept, stats = engine.advance(rng, state, draws, thin)
    return np.asarray(kept), stats


def long_run(engine: Any, draws: int, seed: int, init: Floats) -> Floats:
    """(draws, K) from one long chain after a short warm-up."""
    return warm_draws(np.random.default_rng(seed), engine, 1000, draws, init=init)[0]


def fixed_round(engine: Any, rng: np.random.Generator, paths: int, sweeps: int, leaps: int) -> Any:
    """A state of the blended engine with a round of our choosing and a proposal as wide as the normal approximation."""
    state = engine.start(rng, None)
    mixture = fixed_mixture(engine, state["x"].size)
    return (
        state
        | {f"mixture/{name}": part for name, part in mixture._asdict().items()}
        | {"round": np.array([paths, sweeps, leaps, 0.5, 2.0, 4.0, 1.0])}
    )


def bent_round(engine: Any, rng: np.random.Generator, paths: int, sweeps: int, leaps: int) -> Any:
    """The same in coordinates that bend every coefficient, turn them into one another and let constants loose."""
    state = fixed_round(engine, rng, paths, sweeps, leaps)
    width = len(engine.mode)
    turn = np.eye(width) + 0.3 * np.tri(width, k=-1)
    mixture = fixed_mixture(engine, width)
    return (
        state
        | {"x": np.zeros(width), "gradient": np.zeros(width), "chart/centre": engine.mode}
        | {"chart/slope": np.linspace(2.0, 3.0, width), "chart/bend": np.linspace(0.7, -0.5, width)}
        | {"chart/turn": turn, "chart/back": np.linalg.inv(turn)}
        | {f"mixture/{name}": part for name, part in mixture._asdict().items()}
    )


def fixed_mixture(engine: Any, width: int) -> Any:
    """A proposal somewhat wider than a standard normal, of the engine's own kind."""
    adapt = importlib.import_module(type(engine).__module__.replace("blended", "adapt"))
    points = np.sqrt(width) * np.vstack([np.eye(width), -np.eye(width)])  # have the identity as covariance
    parts = (np.ones(1), np.zeros((1, width)), np.eye(width)[None])
    return adapt.with_tail(parts, points, np.full(2 * width, 0.5 / width))


def rebuild(package: ModuleType, variant: tuple[str, Options], decisions: Decisions, prior: Prior) -> Any:
    """The same engine made of a mutant package's parts."""
    rooms = ("decisions", "priors", "engines.augmented", "engines.blended")
    part = {n: importlib.import_module(f"{package.__name__}.{n}") for n in rooms}
    blocks = [part["decisions"].Block(b.name, b.size, b.centred) for b in decisions.blocks]
    copy = part["decisions"].Decisions(decisions.rows, decisions.start, decisions.chosen, blocks=blocks)
    kind = part["priors"].Flat if isinstance(prior, us.Flat) else part["priors"].Gaussian
    belief = kind(**vars(prior))
    name, options = variant
    augmented = part["engines.augmented"]
    own = augmented.Options(options.utilities, options.a, options.b, options.newton)
    placed = part["priors"].place(belief, copy)
    if name == "blended":
        return part["engines.blended"].Blended.build(copy, placed)
    return augmented.Augmented.build(name, copy, placed, own)


CALIBRATED = {
    "mdp": mdp_offers(states=5, actions=3, count=20, seed=1), "ragged": ragged_offers(4, 12, seed=2, size=0.5),
}  # fmt: skip
"""What is offered where truths are drawn from the prior, and learnt again."""
CALIBRATIONS = [(v, p) for p in CALIBRATED for v in VARIANTS if p == "mdp" or v[0] in ("da", "px-scale", "blended")]
