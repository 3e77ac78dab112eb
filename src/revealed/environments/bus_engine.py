"""Harold Zurcher's buses (Rust 1987): keep a bus, or replace its engine and start from zero.

The state is mileage in bins of 5,000 miles. A month adds 0, 1, 2 ... bins with probabilities that
do not depend on mileage:

    keep      x -> x + step
    replace   x -> 0 + step

so that in a new bus both lead to the same state, and only rewards of the actions themselves can
distinguish them. Rust's model pays -cost x for a month at mileage x and -replacement for a new
engine, with Gumbel noise; ours infers the value of every mileage from a prior that only says that
it is smooth.

The data are Rust's, as the Zurcher data project publishes them (columns group, bus_id, period,
state, replace); they are read from a file of yours. `simulate_buses` makes up others like them.

Rust (1987), Optimal replacement of GMC bus engines, Econometrica 55, 999-1033.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.mdp.checks import check_discount, check_finite_table
from revealed.mdp.process import MDP
from revealed.models.priors import Normal

BINS = 90
"""How many bins of 5,000 miles there are, as in Rust's paper; a bus never reached the last."""
GUMBEL_SD = np.pi / np.sqrt(6.0)
"""The sd of a logit model's noise, by which Rust's numbers are divided; ours has sd 1."""
COLUMNS = ("group", "bus_id", "period", "state", "replace")
"""The columns of the Zurcher data project's file."""


@dataclass(frozen=True, eq=False, repr=False)
class BusMonths:
    """Months in the life of some buses, one bus after the other, each in order.

    bus: (T,) which bus it is. state: (T,) mileage in bins. replaced: (T,) whether the engine was
    replaced that month. bins: how many mileage bins there are.
    """

    bus: Ints
    state: Ints
    replaced: Bools
    bins: int = BINS
    simulated: bool = False

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        # nobody should take made-up data for Rust's
        kind = "simulated bus-months" if self.simulated else "bus-months"
        return (
            f"<BusMonths: {len(self):,} {kind} of {len(np.unique(self.bus))} buses, "
            f"{self.replaced.sum()} replacements>"
        )

    @property
    def increments(self) -> Floats:
        """(J,) the share of months that added 0, 1, ... bins.

        These are Rust's estimates of the mileage transitions. A month with a replacement starts
        from bin 0.
        """
        # months after which the same bus is observed again
        following = np.flatnonzero(self.bus[1:] == self.bus[:-1])
        # bins that were added in the month after each of them
        step = self.state[following + 1] - np.where(self.replaced, 0, self.state)[following]
        if step.size == 0:
            raise ValueError(
                "no bus was seen in two months, so nobody knows how far a month takes it"
            )
        if step.min() < 0:
            t = int(following[np.argmin(step)])
            raise ValueError(
                f"bus {self.bus[t]}: mileage falls from bin {self.state[t]} to {self.state[t + 1]} "
                "without a replacement"
            )
        return np.asarray(np.bincount(step) / step.size)

    def decisions(self, mdp: MDP) -> Decisions:
        """The decisions of each month, keep or replace, in this MDP.

        Each action has a reward of its own, because in a new bus both lead to the same state.
        """
        return mdp.decisions(self.state, self.replaced.astype(np.int64), action_rewards=True)


def read_buses(
    path: str | os.PathLike[str], groups: Sequence[int] = (4,), bins: int = BINS
) -> BusMonths:
    """Bus-months of some of Rust's groups, read from a CSV file.

    The file has the columns group, bus_id, period, state and replace. Rust's main estimates are
    from group 4, the default. `bins` is the number of mileage bins.
    """
    source = Path(path)
    try:
        with source.open(newline="", encoding="utf-8") as stream:
            # The header is checked first: a file without these columns is another file.
            table = csv.DictReader(stream)
            missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
            if missing:
                raise ValueError(
                    f"{source} has no column {missing[0]!r}; bus data need {', '.join(COLUMNS)}"
                )
            months = [_parse_month(source, line, row) for line, row in enumerate(table, start=2)]
    # What is wrong with a file is said in one sentence.
    except FileNotFoundError:
        raise ValueError(f"there is no file {source}") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise ValueError(f"{source} cannot be read: {reason}") from None
    # Only the groups that were asked for; a file has eight.
    wanted = [month for month in months if month[0] in tuple(groups)]
    if not wanted:
        known = sorted({month[0] for month in months})
        raise ValueError(
            f"{source} has no bus of group {', '.join(map(str, groups))}; its groups are {known}"
        )
    # From rows to columns.
    _, bus, period, state, replaced = np.array(wanted, dtype=np.int64).T
    # Months of one bus must follow one another, or transitions would be counted wrongly.
    gaps = np.flatnonzero((bus[1:] == bus[:-1]) & (period[1:] != period[:-1] + 1))
    if gaps.size:
        t = gaps[0]
        raise ValueError(
            f"bus {bus[t]}: month {period[t + 1]} follows month {period[t]}; "
            "months must follow one another"
        )
    # a bus beyond the last bin needs more bins
    if state.min() < 0 or state.max() >= bins:
        worst = state.min() if state.min() < 0 else state.max()
        raise ValueError(
            f"{source}: mileage bin {worst}, but there are {bins} bins (0 to {bins - 1}); give bins"
        )
    return BusMonths(bus, state, replaced == 1, bins)


def _parse_month(source: Path, line: int, row: dict[str, Any]) -> list[int]:
    """The five numbers of a row, in the order of `COLUMNS`."""
    # line 1 is the header, so that the number is that of an editor
    try:
        month = [int(row[name]) for name in COLUMNS]
    except (TypeError, ValueError):
        raise ValueError(
            f"{source}, line {line}: {', '.join(COLUMNS)} must be whole numbers"
        ) from None
    if month[-1] not in (0, 1):
        raise ValueError(f"{source}, line {line}: replace is {month[-1]}; it must be 0 or 1")
    return month


def simulate_buses(
    seed: Seed,
    replacement_probability: Any,
    increments: Any,
    buses: int = 37,
    months: int = 117,
) -> BusMonths:
    """Bus-months of a made-up fleet, all buses new in the first month.

    Every month, an engine is replaced with the probability of its mileage bin, then the bus
    drives. `replacement_probability` is (bins,) and `increments` (J,) the probabilities of 0, 1,
    ... bins a month. The defaults are the size of Rust's group 4. `seed` is a number,
    None, or a numpy Generator, which is used.
    """
    rng = as_generator(seed)
    chance = check_finite_table("replacement_probability", replacement_probability)
    step = _check_increments(increments)
    # a probability for each bin, which also says how many bins there are
    if chance.ndim != 1 or chance.min() < 0.0 or chance.max() > 1.0:
        raise ValueError("replacement_probability must be one probability for each mileage bin")
    # All buses at once, month by month.
    state = np.empty((buses, months), np.int64)
    replaced = np.empty((buses, months), bool)
    now = np.zeros(buses, np.int64)
    for month in range(months):
        # Decide on the mileage that is seen, then drive from it, or from zero.
        state[:, month] = now
        replaced[:, month] = rng.random(buses) < chance[now]
        driven = rng.choice(len(step), size=buses, p=step)
        now = np.minimum(np.where(replaced[:, month], 0, now) + driven, len(chance) - 1)
    bus = np.repeat(np.arange(buses), months)
    return BusMonths(bus, state.ravel(), replaced.ravel(), len(chance), simulated=True)


def bus_mdp(increments: Any, bins: int = BINS) -> MDP:
    """The MDP of a bus, with the actions keep and replace.

    A month adds 0, 1, ... bins with the probabilities `increments`; the last bin is not left by
    driving.
    """
    step = _check_increments(increments)
    # Row x of `keep` spreads its probability over x, x + 1, ...; the last bin takes the rest.
    keep = np.zeros((bins, bins))
    for j, share in enumerate(step):
        keep[np.arange(bins), np.minimum(np.arange(bins) + j, bins - 1)] += share
    # Replacing leads from anywhere to where keeping leads from bin 0.
    return MDP([keep, np.tile(keep[0], (bins, 1))], actions=["keep", "replace"])


def smooth_prior(
    bins: int = BINS, sd: float = 5.0, length: float = 40.0, action_sd: float = 10.0
) -> Normal:
    """A prior under which the value is a smooth curve over mileage.

    It is a Gaussian process with Matern's kernel of smoothness 5/2,

        k(d) = sd^2 (1 + r + r^2 / 3) exp(-r),    r = sqrt(5) d / length,

    and independent normals for the rewards of the two actions.

    Parameters
    ----------
    bins
        How many mileage bins there are.
    sd
        How far values may lie from one another, in units of the noise.
    length
        Over how many bins the curve may turn; 40 are 200,000 miles.
    action_sd
        The sd of the rewards of keeping and replacing.

    Returns
    -------
    Normal
        A prior of bins + 2 coefficients.
    """
    # zero would make the covariance singular
    if not (sd > 0.0 and length > 0.0 and action_sd > 0.0):
        raise ValueError(
            "sd, length and action_sd must be positive; "
            f"they are {sd:g}, {length:g} and {action_sd:g}"
        )
    distance = np.sqrt(5.0) * np.abs(np.subtract.outer(np.arange(bins), np.arange(bins))) / length
    # One block for the values by mileage, one for the rewards of the two actions.
    covariance = np.zeros((bins + 2, bins + 2))
    covariance[:bins, :bins] = sd**2 * (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    covariance[bins:, bins:] = action_sd**2 * np.eye(2)
    return Normal(covariance=covariance)


@dataclass(frozen=True)
class RustLogit:
    """Rust's model: a month at bin x costs 0.001 cost x, a new engine `replacement`.

    The noise is Gumbel's, so choices are logit. The defaults are the published fit to group 4
    with discount 0.9999.
    """

    replacement: float = 10.075
    cost: float = 2.293
    discount: float = 0.9999

    def replacement_probability(self, increments: Any, bins: int = BINS) -> Floats:
        """(bins,) the probability of replacement at each mileage.

        Bellman's equation V(x) = log(exp(keep(x)) + exp(replace(x))), with

            keep(x) = -0.001 cost x + discount E V(x + step)
            replace(x) = -replacement + discount E V(step)

        is solved by Newton's method from V = 0.
        """
        beta, drive = check_discount(self.discount), bus_mdp(increments, bins).transitions[0]
        if beta == 1.0:
            raise ValueError("Rust's equation needs a discount below 1")
        # Newton from V = 0; it takes about ten steps.
        value = np.zeros(bins)
        for _ in range(100):
            # the value of both actions, given V of the next month
            keep = -0.001 * self.cost * np.arange(bins) + beta * drive @ value
            replace = -self.replacement + beta * drive[0] @ value
            probability = 1.0 / (1.0 + np.exp(keep - replace))
            # Newton's step: V enters its own right side through the chosen transitions.
            discounted = beta * (
                (1.0 - probability)[:, None] * drive + probability[:, None] * drive[0]
            )
            residual = np.logaddexp(keep, replace) - value
            value = value + np.linalg.solve(np.eye(bins) - discounted, residual)
            # converged to about nine digits of the value
            if np.abs(residual).max() < 1e-9 * max(1.0, np.abs(value).max()):
                return np.asarray(probability)
        raise ValueError(
            "Bellman's equation was not solved in 100 steps; "
            "give smaller costs or a smaller discount"
        )

    def log_likelihood(self, months: BusMonths, increments: Any = None) -> float:
        """The log probability of the decisions.

        `increments` are the mileage transitions; default: estimated from the same months.
        """
        # The transitions are estimated first, as Rust does, then the decisions are scored.
        chance = self.replacement_probability(
            months.increments if increments is None else increments, months.bins
        )[months.state]
        return float(np.log(np.where(months.replaced, chance, 1.0 - chance)).sum())


def _check_increments(increments: Any) -> Floats:
    """(J,) probabilities of 0, 1, ... bins a month, checked."""
    step = check_finite_table("increments", increments)
    # probabilities, up to rounding
    if step.ndim != 1 or step.size == 0 or step.min() < 0.0 or abs(step.sum() - 1.0) > 1e-8:
        raise ValueError(
            "increments must be the probabilities of 0, 1, 2, ... bins a month, adding to 1"
        )
    return step
