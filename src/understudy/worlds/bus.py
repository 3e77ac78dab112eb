"""Harold Zurcher's buses (Rust 1987): each month a bus is kept, or its engine is replaced and its mileage begins anew.

The state is mileage in bins of 5,000 miles. A month adds 0, 1, 2 ... bins with probabilities that do not depend on mileage:

    keep      x -> x + step
    replace   x -> 0 + step

so that in a new bus both lead to the same place, and only rewards of the actions themselves can tell them apart. Rust's model
pays -cost x for a month at mileage x and -replacement for a new engine, with noise of the logistic kind; ours learns the value
of every mileage from a prior that only says that it is smooth.

The data are Rust's, as the Zurcher data project publishes them (columns group, bus_id, period, state, replace); they are read
from a file of yours. `simulate_buses` makes up others like them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Decisions
from understudy.mdp import MDP
from understudy.mdp_input import discount_of, numbers_of
from understudy.priors import Gaussian

BINS = 90  # of 5,000 miles, as in the paper
MILES = 5000
COLUMNS = ("group", "bus_id", "period", "state", "replace")
GUMBEL = np.pi / np.sqrt(6.0)  # the sd of a logit model's noise; ours has sd 1


@dataclass(frozen=True, eq=False, repr=False)
class BusMonths:
    """Months in the life of some buses, one bus after the other, each in order.

    bus: (T,) whose month it is. state: (T,) mileage in bins. replaced: (T,) whether the engine was replaced then.
    """

    bus: Ints
    state: Ints
    replaced: Bools
    bins: int = BINS
    simulated: bool = False

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        kind = "simulated bus-months" if self.simulated else "bus-months"
        return (
            f"<BusMonths: {len(self):,} {kind} of {len(np.unique(self.bus))} buses, {self.replaced.sum()} replacements>"
        )

    @property
    def increments(self) -> Floats:
        """(J,) the share of months that added 0, 1, ... bins; a replaced engine starts from bin 0."""
        following = np.flatnonzero(self.bus[1:] == self.bus[:-1])
        step = self.state[following + 1] - np.where(self.replaced, 0, self.state)[following]
        if step.size == 0:
            raise ValueError("no bus was seen in two months, so nobody knows how far a month takes it")
        if step.min() < 0:
            t = int(following[np.argmin(step)])
            raise ValueError(
                f"bus {self.bus[t]}: mileage falls from bin {self.state[t]} to {self.state[t + 1]} without a replacement"
            )
        return np.asarray(np.bincount(step) / step.size)

    def decisions(self, mdp: MDP) -> Decisions:
        """What was decided each month, in this MDP, with a reward for each action."""
        return mdp.decisions(self.state, self.replaced.astype(np.int64), action_rewards=True)


def read_buses(path: str | os.PathLike[str], groups: Sequence[int] = (4,), bins: int = BINS) -> BusMonths:
    """Read bus-months of these groups from a CSV file with the columns group, bus_id, period, state and replace."""
    source = Path(path)
    try:
        with source.open(newline="", encoding="utf-8") as stream:
            table = csv.DictReader(stream)
            missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
            if missing:
                raise ValueError(f"{source} has no column {missing[0]!r}; bus data need {', '.join(COLUMNS)}")
            months = [_month(source, line, row) for line, row in enumerate(table, start=2)]
    except FileNotFoundError:
        raise ValueError(f"there is no file {source}") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise ValueError(f"{source} cannot be read: {reason}") from None
    wanted = [month for month in months if month[0] in tuple(groups)]
    if not wanted:
        known = sorted({month[0] for month in months})
        raise ValueError(f"{source} has no bus of group {', '.join(map(str, groups))}; its groups are {known}")
    _, bus, period, state, replaced = np.array(wanted, dtype=np.int64).T
    wrong = np.flatnonzero((bus[1:] == bus[:-1]) & (period[1:] != period[:-1] + 1))
    if wrong.size:
        raise ValueError(
            f"bus {bus[wrong[0]]}: month {period[wrong[0] + 1]} follows month {period[wrong[0]]}; months must follow one another"
        )
    if state.min() < 0 or state.max() >= bins:
        worst = state.min() if state.min() < 0 else state.max()
        raise ValueError(f"{source}: mileage bin {worst}, but there are {bins} bins (0 to {bins - 1}); give bins")
    return BusMonths(bus, state, replaced == 1, bins)


def _month(source: Path, line: int, row: dict[str, Any]) -> list[int]:
    try:
        month = [int(row[name]) for name in COLUMNS]
    except (TypeError, ValueError):
        raise ValueError(f"{source}, line {line}: {', '.join(COLUMNS)} must be whole numbers") from None
    if month[-1] not in (0, 1):
        raise ValueError(f"{source}, line {line}: replace is {month[-1]}; it must be 0 or 1")
    return month


def simulate_buses(
    rng: np.random.Generator, replacing: Any, increments: Any, buses: int = 37, months: int = 117
) -> BusMonths:
    """Bus-months of a made-up fleet: every month, replace with the probability of the bin, then drive."""
    chance, step = numbers_of("replacing", replacing), _probabilities(increments)
    if chance.ndim != 1 or chance.min() < 0.0 or chance.max() > 1.0:
        raise ValueError("replacing must be one probability for each mileage bin")
    state = np.empty((buses, months), np.int64)
    replaced = np.empty((buses, months), bool)
    now = np.zeros(buses, np.int64)
    for month in range(months):
        state[:, month] = now
        replaced[:, month] = rng.random(buses) < chance[now]
        driven = rng.choice(len(step), size=buses, p=step)
        now = np.minimum(np.where(replaced[:, month], 0, now) + driven, len(chance) - 1)
    whose = np.repeat(np.arange(buses), months)
    return BusMonths(whose, state.ravel(), replaced.ravel(), len(chance), simulated=True)


def bus_mdp(increments: Any, bins: int = BINS) -> MDP:
    """The MDP of a bus: actions keep and replace, a month adds 0, 1, ... bins; the last bin is not left by driving."""
    step = _probabilities(increments)
    keep = np.zeros((bins, bins))
    for j, share in enumerate(step):
        keep[np.arange(bins), np.minimum(np.arange(bins) + j, bins - 1)] += share
    return MDP([keep, np.tile(keep[0], (bins, 1))], actions=["keep", "replace"])


def smooth_prior(bins: int = BINS, sd: float = 5.0, length: float = 40.0, action_sd: float = 10.0) -> Gaussian:
    """A prior under which the value is a smooth curve over mileage: a Gaussian process of Matern's kind (5/2).

    Args:
        bins: how many mileage bins there are.
        sd: how far values may lie from one another, in units of the noise.
        length: over how many bins the curve may turn; 40 are 200,000 miles.
        action_sd: of the rewards of keeping and replacing.
    """
    if not (sd > 0.0 and length > 0.0 and action_sd > 0.0):
        raise ValueError(f"sd, length and action_sd must be positive; they are {sd:g}, {length:g} and {action_sd:g}")
    apart = np.sqrt(5.0) * np.abs(np.subtract.outer(np.arange(bins), np.arange(bins))) / length
    covariance = np.zeros((bins + 2, bins + 2))
    covariance[:bins, :bins] = sd**2 * (1.0 + apart + apart**2 / 3.0) * np.exp(-apart)
    covariance[bins:, bins:] = action_sd**2 * np.eye(2)
    return Gaussian(variance=covariance)


@dataclass(frozen=True)
class Logit:
    """Rust's model: a month at bin x costs 0.001 cost x, a new engine `replacement`, and the noise is Gumbel's.

    The published fit to group 4 with discount 0.9999 is the default.
    """

    replacement: float = 10.075
    cost: float = 2.293
    discount: float = 0.9999

    def replacing(self, increments: Any, bins: int = BINS) -> Floats:
        """(bins,) the probability of replacement at each mileage.

        Bellman's equation V(x) = log(exp(keep(x)) + exp(replace(x))), with keep(x) = -0.001 cost x + discount E V(x + step) and
        replace(x) = -replacement + discount E V(step), is solved by Newton's method from V = 0.
        """
        beta, drive = discount_of(self.discount), bus_mdp(increments, bins).transitions[0]
        if beta == 1.0:
            raise ValueError("Rust's equation needs a discount below 1")
        value = np.zeros(bins)
        for _ in range(100):
            keep = -0.001 * self.cost * np.arange(bins) + beta * drive @ value
            replace = -self.replacement + beta * drive[0] @ value
            share = 1.0 / (1.0 + np.exp(keep - replace))
            moves = beta * ((1.0 - share)[:, None] * drive + share[:, None] * drive[0])
            short = np.logaddexp(keep, replace) - value
            value = value + np.linalg.solve(np.eye(bins) - moves, short)
            if np.abs(short).max() < 1e-9 * max(1.0, np.abs(value).max()):
                return np.asarray(share)
        raise ValueError("Bellman's equation was not solved in 100 steps; give smaller costs or a smaller discount")

    def log_likelihood(self, months: BusMonths, increments: Any = None) -> float:
        """Log probability of what was decided; increments are estimated from the same months unless given."""
        chance = self.replacing(months.increments if increments is None else increments, months.bins)[months.state]
        return float(np.log(np.where(months.replaced, chance, 1.0 - chance)).sum())


def _probabilities(increments: Any) -> Floats:
    step = numbers_of("increments", increments)
    if step.ndim != 1 or step.size == 0 or step.min() < 0.0 or abs(step.sum() - 1.0) > 1e-8:
        raise ValueError("increments must be the probabilities of 0, 1, 2, ... bins a month, adding to 1")
    return step
