"""TrueSkill, OpenSkill and TrueSkill Through Time, made ready to foretell races.

An entry is a tuple of names: a driver, or a driver and his car. What each has to choose is chosen
by the pairs of the second half of the races that are known before the first forecast.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from benchmarks.ranking import OpenSkill, TrueSkill
from revealed._types import Floats
from revealed.results.forecasts import Scores, join_scores, score_actions, score_pairs

Entry = tuple[str, ...]
Race = list[Entry]  # who finished, first to last

EVERY = 2  # races from one fit to the next, for everybody
PERFORMANCES = 50_000  # of a race, by which TrueSkill Through Time's winners are foretold
# drifts to choose from, in each package's own units: a root of a race, and a race
GAMMAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
AFTERWARDS = 0.15  # of these the best for what was foretold, which nobody could have known
TAUS = (0.04, 25.0 / 300.0, 0.2, 0.4, 0.8, 1.2, 1.6, 2.4)


class TunedTrueSkill(TrueSkill):
    """TrueSkill with another drift than its own."""

    def __init__(self, tau: float) -> None:
        package: Any = importlib.import_module("trueskill")
        self.model = package.TrueSkill(draw_probability=0.0, tau=tau)
        self.rating = {}
        self.n_learnt = 0


class ThroughTime:
    """TrueSkill Through Time: all races so far at once, each race one unit of time."""

    def __init__(self, gamma: float) -> None:
        self.package: Any = importlib.import_module("trueskillthroughtime")
        self.gamma = gamma
        self.latest: dict[str, tuple[float, float, float]] = {}
        self.next_race = 0

    def learn(self, races: Sequence[Race]) -> None:
        """All races so far."""
        entries = [[list(entry) for entry in race] for race in races]
        # the package takes the highest result for the best
        results = [list(range(len(race), 0, -1)) for race in races]
        found = self.package.History(
            entries, results, times=list(range(len(races))), gamma=self.gamma
        )
        found.convergence(epsilon=0.01, iterations=10, verbose=False)
        for name, curve in found.learning_curves().items():
            at, skill = curve[-1]
            self.latest[name] = (at, skill.mu, skill.sigma)
        self.next_race = len(races)

    def predict(self, starters: Race) -> tuple[Floats, Floats, Floats]:
        """Log P to win and to be in front of each other, of the race after the last one."""
        names = sorted({name for entry in starters for name in entry})
        beginner = (float(self.next_race), 0.0, float(self.package.SIGMA))
        at, mean, sd = np.array([self.latest.get(name, beginner) for name in names]).T
        # what has moved since a driver's last race
        sd = np.sqrt(sd**2 + self.gamma**2 * (self.next_race - at))
        member = np.array([[name in entry for name in names] for entry in starters], float)
        # two drivers of one car differ by themselves alone
        root = member * sd
        noise = float(self.package.BETA) ** 2 * member.sum(axis=1)
        worth, shared = member @ mean, root @ root.T
        own = np.diag(shared) + noise
        gap = worth[:, None] - worth
        variance = own[:, None] + own - 2.0 * (shared - np.diag(np.diag(shared)))
        front = log_ndtr(gap / np.sqrt(variance))
        rng = np.random.default_rng(self.next_race)
        performance = worth + rng.standard_normal((PERFORMANCES, len(names))) @ root.T
        performance += rng.standard_normal(performance.shape) * np.sqrt(noise)
        wins = 0.5 + np.bincount(performance.argmax(axis=1), minlength=len(starters))
        self.next_race += 1
        return np.log(wins / wins.sum()), front, worth


def peer_scores(method: Any, races: list[Race], first: int, last: int) -> dict[str, Scores]:
    """Scores of pairs and winners, learnt before every second race."""
    pairs, winners = [], []
    for g in range(first, last):
        if (g - first) % EVERY == 0:
            method.learn(races[:g])
        win, front, _ = method.predict(races[g])
        i, j = np.triu_indices(len(win), 1)
        pairs.append(score_pairs(front[i, j], front[j, i]))
        share = np.exp(win - np.logaddexp.reduce(win))
        winners.append(score_actions(share, np.array([0, len(win)]), np.zeros(1, np.int64)))
    return {"pairs": join_scores(pairs), "winners": join_scores(winners)}


class Peer(NamedTuple):
    """A method under the name that the page has, and whether it looks at cars too."""

    name: str
    method: Any
    cars: bool = False


def peers(drivers: list[Race], both: list[Race], first: int) -> Iterator[Peer]:
    """Those that are installed.

    drivers, both: the same races without and with cars.
    """

    def best(make: Callable[[float], Any], grid: Sequence[float], races: list[Race]) -> float:
        def loss(one: float) -> float:
            found = peer_scores(make(one), races, first // 2, first)
            return float(-found["pairs"].log_probability.mean())

        return min(grid, key=loss)

    if _installed("trueskill"):
        yield Peer("TrueSkill", TrueSkill())
        tau = best(TunedTrueSkill, TAUS, drivers)
        yield Peer(f"TrueSkill, drift {tau:.2g} chosen in 2018", TunedTrueSkill(tau))
    if _installed("openskill"):
        yield Peer("OpenSkill", OpenSkill())
    if _installed("trueskillthroughtime"):
        chosen = best(ThroughTime, GAMMAS, drivers)
        name = "TrueSkill Through Time"
        yield Peer(f"{name}, drift {chosen:.2g} chosen in 2018", ThroughTime(chosen))
        yield Peer(f"{name}, drift {AFTERWARDS:.2g}, the best afterwards", ThroughTime(AFTERWARDS))
        chosen = best(ThroughTime, GAMMAS, both)
        yield Peer(f"{name}, driver and car, drift {chosen:.2g}", ThroughTime(chosen), True)


def _installed(module: str) -> bool:
    """Whether a package is there; otherwise a word about it."""
    there = importlib.util.find_spec(module) is not None
    if not there:
        print(f"{module} is not installed; scripts/bench installs it", file=sys.stderr)
    return there
