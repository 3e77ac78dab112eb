"""The problems on which priors are compared: training decisions, held-out decisions, the truth.

Real data were made by others. They are looked for in `shared/data` beside the repository, and a
problem whose file is not there is left out.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import revealed as rv
from benchmarks._problems import Value, grid_world
from benchmarks.covariance import read_choices
from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions
from revealed.environments.bus_engine import bus_mdp, read_buses
from revealed.environments.tetris import Tetris, read_games

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

WATER = 116
"""The end of the labyrinth that has the water (Rosenberg and others 2021)."""


@dataclass(frozen=True)
class Split:
    """Decisions to learn from, in random order, and decisions to predict.

    truth: (K,) the values that made them, None where nobody knows.
    """

    train: Decisions
    test: Decisions
    truth: Floats | None = None


@dataclass(frozen=True)
class PriorProblem:
    """One problem: how a split is made from its number, and how many decisions are learnt from.

    file: what it needs in `DATA`, empty for none. goal: the position of the coefficient that is
    known to be wanted most, where there is one.
    """

    name: str
    make: Callable[[int], Split]
    sizes: tuple[int, ...]
    splits: int
    file: str = ""
    goal: int | None = None


# Held-out decisions in each split: enough for a standard error of some hundredths of a nat, and
# few enough that predictions take less time than the fits.
HELD_OUT = 200

# Held-out months of buses: an engine is replaced in one of a hundred.
HELD_OUT_MONTHS = 1400

# Held-out moves in the labyrinth, of two or three actions each: predictions are cheap.
HELD_OUT_MOVES = 1000


def toy(prior_sd: float, split: int) -> Split:
    """The paper's random MDP, with values of this sd."""
    rng = np.random.default_rng([1, 100 + split])
    mdp = rv.random_mdp(rng, 7, 3)
    value = prior_sd * rng.standard_normal(7)
    value -= value.mean()
    return _walks(rng, mdp, value, 100, 100)


def grid(size: int, split: int) -> Split:
    """A grid whose value is one hill, three times as high as the noise; moves may go astray."""
    rng = np.random.default_rng([2, 100 + split])
    row, column = np.divmod(np.arange(size * size), size)
    at = rng.integers(0, size, 2)
    value = -0.75 * (np.abs(row - at[0]) + np.abs(column - at[1]))
    return _walks(rng, grid_world(size, 0.2), value - value.mean(), 300, 4 * size)


def _walks(rng: np.random.Generator, mdp: rv.MDP, value: Floats, count: int, length: int) -> Split:
    """Walks of this length: `count` decisions to learn from, and `HELD_OUT` to predict."""
    total = count + HELD_OUT
    paths = [mdp.simulate(rng, value, min(length, total - t)) for t in range(0, total, length)]
    d = mdp.decisions(
        np.concatenate([p.states for p in paths]), np.concatenate([p.actions for p in paths])
    )
    return _shuffled(rng, d, np.arange(total) >= count, count, value)


def tetris(value: Value, split: int) -> Split:
    """The paper's Tetris, played by a noisy controller."""
    rng = np.random.default_rng([3, 100 + split])
    environment = Tetris()
    d = environment.decisions(environment.simulate(rng, value, 100 + HELD_OUT))
    return _shuffled(rng, d, np.arange(len(d)) >= 100, 100, np.array(value, dtype=np.float64))


def human(split: int) -> Split:
    """A person's placements, the straight drops among them."""
    d = read_games(DATA / "human_tetris.jsonl").decisions()
    return _by_group(np.random.default_rng([4, 100 + split]), d, np.arange(len(d)), 300)


def all_buses() -> tuple[Decisions, Ints]:
    """Rust's group 4, and which bus it is; 90 mileage bins, and a reward of each action."""
    months = read_buses(DATA / "rust1987.csv", groups=[4])
    return months.decisions(bus_mdp(months.increments)), months.bus


def buses(split: int) -> Split:
    """Rust's group 4, some buses held out."""
    d, bus = all_buses()
    return _by_group(np.random.default_rng([5, 100 + split]), d, bus, 1000, HELD_OUT_MONTHS)


def all_travel() -> Decisions:
    """Greene's travellers: constants of modes, waiting, cost, time, and income where one flies."""
    with (DATA / "travelmode.csv").open(newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    modes = ["air", "train", "bus", "car"]
    features = ["wait", "vcost", "travel", "gcost"]
    rows = np.array(
        [
            [
                *(float(line["mode"] == mode) for mode in modes[:3]),
                *(float(line[name]) for name in features),
                float(line["income"]) * (line["mode"] == "air"),
            ]
            for line in lines
        ]
    )
    chosen = np.flatnonzero([line["choice"] == "yes" for line in lines]) % 4
    names = [*modes[:3], *features, "income x air"]
    return Decisions(rows, np.arange(len(chosen) + 1) * 4, chosen, names=names)


def travel(split: int) -> Split:
    """Greene's travellers, some held out."""
    d = all_travel()
    return _by_group(np.random.default_rng([6, 100 + split]), d, np.arange(len(d)), 110)


def all_electricity() -> tuple[Decisions, Ints]:
    """Stated choices among contracts, and who made them; all people are taken for one."""
    names = ["pf", "cl", "loc", "wk", "tod", "seas"]
    with gzip.open(DATA / "electricity.csv.gz", "rt", newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    rows = np.array([[float(line[name]) for name in names] for line in lines])
    chosen = np.flatnonzero([line["choice"] == "TRUE" for line in lines]) % 4
    person = np.array([int(line["id"]) for line in lines[::4]])
    return Decisions(rows, np.arange(len(chosen) + 1) * 4, chosen, names=names), person


def electricity(split: int) -> Split:
    """Stated choices among contracts, some people held out."""
    d, person = all_electricity()
    return _by_group(np.random.default_rng([7, 100 + split]), d, person, 2000)


def labyrinth(split: int) -> Split:
    """Mice, some bouts held out; a free value of each of 127 places, moves that occur offered."""
    with np.load(DATA / "labyrinth.npz") as file:
        states, actions, lands = (
            file[name].astype(np.int64) for name in ("states", "actions", "next_state")
        )
    places, moves = lands.shape
    offered = np.zeros((places, moves), np.bool_)
    offered[states.ravel(), actions.ravel()] = True
    sure = [
        sp.csr_array((np.ones(places), (np.arange(places), lands[:, a])), shape=(places, places))
        for a in range(moves)
    ]
    mdp = rv.MDP(sure, available=offered)
    d = mdp.decisions(states.ravel(), actions.ravel())
    bout = np.repeat(np.arange(len(states)), states.shape[1])
    return _by_group(np.random.default_rng([8, 100 + split]), d, bout, 1000, HELD_OUT_MOVES)


def detergents(split: int) -> Split:
    """Six brands, an intercept of each but one, and the price, whose coefficient is large."""
    d = read_choices(DATA / "detergent.txt")
    return _by_group(np.random.default_rng([9, 100 + split]), d, np.arange(len(d)), 1500)


def _by_group(
    rng: np.random.Generator, d: Decisions, group: Ints, count: int, held_out: int = HELD_OUT
) -> Split:
    """A third of the groups held out; `count` of the other decisions to learn from."""
    groups = rng.permutation(np.unique(group))
    out = np.isin(group, groups[: max(1, len(groups) // 3)])
    return _shuffled(rng, d, out, count, held_out=held_out)


def _shuffled(
    rng: np.random.Generator,
    d: Decisions,
    out: Bools,
    count: int,
    truth: Floats | None = None,
    held_out: int = HELD_OUT,
) -> Split:
    """At most `count` decisions that are not `out`, and some that are, in random order."""
    train, test = (rng.permutation(np.flatnonzero(which)) for which in (~out, out))
    return Split(d[train[:count]], d[test[:held_out]], truth)


def problems() -> list[PriorProblem]:
    """All of them, whether their files are here or not."""
    few, more = (20, 100), (100, 1000)
    return [
        PriorProblem("toy, values of sd 50", lambda i: toy(50.0, i), few, 3),
        PriorProblem("toy, values of sd 3", lambda i: toy(3.0, i), few, 3),
        PriorProblem("grid 5 x 5", lambda i: grid(5, i), (20, 300), 2),
        PriorProblem("Tetris (-3, -15, -1)", lambda i: tetris((-3, -15, -1), i), few, 1),
        PriorProblem("Tetris (-20, 0, 1)", lambda i: tetris((-20, 0, 1), i), few, 1),
        PriorProblem("human Tetris", human, few, 2, "human_tetris.jsonl"),
        PriorProblem("buses", buses, more, 1, "rust1987.csv"),
        PriorProblem("travel modes", travel, few, 2, "travelmode.csv"),
        PriorProblem("electricity", electricity, (*few, 2000), 1, "electricity.csv.gz"),
        PriorProblem("detergents", detergents, (*few, 1500), 1, "detergent.txt"),
        PriorProblem("labyrinth", labyrinth, more, 1, "labyrinth.npz", WATER),
    ]
