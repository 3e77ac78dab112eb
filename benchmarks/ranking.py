"""Who wins the next race, and who finishes in front of whom: ours, TrueSkill and OpenSkill.

NASCAR 2002 and Formula 1 2018 to 2022, in one run. Every race from the second third of NASCAR's
season, and from Formula 1's second season, is predicted from those before it: who wins, and of any
two who finish, who is in front. All methods see the same: who finished, in which order. Ours looks
at all races before at once, again after every race (Formula 1: every second), with two chains of
150 draws; the others are updated after each race with their own default settings (TrueSkill
without draws, OpenSkill's Plackett-Luce). Ours takes skills to stay as they are, where theirs may
drift; a second version of ours therefore forgets all but the last 20 races. A driver never seen
before is what each method takes a newcomer for.

The score is the mean log probability of what happened, nearer to zero being better, with the share
predicted rightly in brackets. Closely ranked pairs, which are hardest to predict, are those at
most three places apart among the starters, on average over the methods. What ours gains comes with
95 % intervals from resampling races.
[Skills from results](ranking.md#beside-trueskill-and-openskill) says what was found. The data are
looked for in `shared/data` beside the repository.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow.csv
from scipy.special import log_ndtr, ndtr

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, table
from revealed._types import Bools, Floats

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CLOSE_PLACES = 3.0
WINDOW_RACES = 20  # races
BOOTSTRAP_SAMPLES = 4000  # of races, for the intervals

Race = list[str]  # who finished, first to last


@dataclass(frozen=True)
class Sport:
    """Its races in time, the first to be predicted, and how many lie between two fits of ours."""

    name: str
    races: list[Race]
    first: int
    every: int


@dataclass(frozen=True)
class Score:
    """One method on one sport: mean log probability and share predicted rightly.

    Winner, all pairs, closely ranked pairs.
    """

    sport: str
    method: str
    races: int
    winner: tuple[float, float]
    pairs: tuple[float, float]
    close: tuple[float, float]


@dataclass(frozen=True)
class Gain:
    """What ours is better by than another method, in mean log probability.

    And the ends of a 95 % interval.
    """

    sport: str
    ours: str
    over: str
    winner: tuple[float, float, float]
    pairs: tuple[float, float, float]
    close: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class RacePrediction:
    """What one method said of one race.

    Log P of the winner, whether it was the favourite, log P of each pair's order.
    """

    winner: float
    favourite: bool
    pairs: Floats


class Method(Protocol):
    """Something that learns from races and predicts the next one."""

    def learn(self, races: Sequence[Race]) -> None:
        """All races so far."""
        ...

    def predict(self, starters: Race) -> tuple[Floats, Floats, Floats]:
        """(n,) log P to win, (n, n) log P of the row being in front of the column.

        (n,) how good each is.
        """
        ...


class Ours:
    """All races before at once, or the last ones of them, again after every few."""

    def __init__(self, every: int, latest: int = 0) -> None:
        self.every, self.latest = every, latest
        self.fitted = -every
        self.found: rv.RankingPosterior | None = None

    def learn(self, races: Sequence[Race]) -> None:
        if len(races) - self.fitted < self.every:
            return
        self.fitted = len(races)
        print(
            f"after {len(races)} races{f', the last {self.latest}' if self.latest else ''}",
            file=sys.stderr,
            flush=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", rv.NotConvergedWarning
            )  # 300 draws are enough for a mean, not for its verdict
            warnings.simplefilter("ignore", rv.UnboundedSkillWarning)
            self.found = rv.fit(
                races[-self.latest :],
                rv.RankingModel(),
                draws=150,
                warmup=100,
                chains=2,
                executor=1,
                progress=False,
            )

    def predict(self, starters: Race) -> tuple[Floats, Floats, Floats]:
        assert self.found is not None
        _, worth, _ = self.found.draw_strengths(starters, allow_new_players=True)
        front = np.log(ndtr((worth[:, None] - worth[None]) / math.sqrt(2.0)).mean(axis=2))
        return (
            np.log(self.found.win_probabilities(starters, allow_new_players=True)),
            front,
            worth.mean(axis=1),
        )


class TrueSkill:
    """Race by race, with its default settings, without draws."""

    def __init__(self) -> None:
        self.model: Any = importlib.import_module("trueskill").TrueSkill(draw_probability=0.0)
        self.rating: dict[str, Any] = {}
        self.n_learnt = 0

    def new(self) -> Any:
        return self.model.create_rating()

    def learn(self, races: Sequence[Race]) -> None:
        for race in races[self.n_learnt :]:
            groups = [[self.rating.get(name) or self.new()] for name in race]
            for name, (rating,) in zip(
                race, self.model.rate(groups, ranks=list(range(len(race)))), strict=True
            ):
                self.rating[name] = rating
        self.n_learnt = len(races)

    def predict(self, starters: Race) -> tuple[Floats, Floats, Floats]:
        got = [self.rating.get(name) or self.new() for name in starters]
        mean, sd = (
            np.array([r.mu for r in got]),
            np.sqrt([r.sigma**2 + self.model.beta**2 for r in got]),
        )
        front = log_ndtr((mean[:, None] - mean) / np.sqrt(sd[:, None] ** 2 + sd**2))
        # the largest of independent normals: the integral of each one's density times the others'
        # distribution functions
        x = np.linspace((mean - 9.0 * sd).min(), (mean + 9.0 * sd).max(), 2001)
        z = (x - mean[:, None]) / sd[:, None]
        below = log_ndtr(z)
        win = (
            np.exp(below.sum(axis=0) - below - 0.5 * z**2).sum(axis=1)
            * (x[1] - x[0])
            / sd
            / math.sqrt(2.0 * math.pi)
        )
        return np.log(win), front, mean


class OpenSkill(TrueSkill):
    """OpenSkill's Plackett-Luce, race by race.

    With its default settings and its own predictions.
    """

    def __init__(self) -> None:
        self.model = importlib.import_module("openskill.models").PlackettLuce()
        self.rating = {}
        self.n_learnt = 0

    def new(self) -> Any:
        return self.model.rating()

    def predict(self, starters: Race) -> tuple[Floats, Floats, Floats]:
        got = [self.rating.get(name) or self.new() for name in starters]
        front = np.zeros((len(got), len(got)))
        for a, b in itertools.combinations(range(len(got)), 2):
            front[a, b], front[b, a] = np.log(
                np.maximum(self.model.predict_win([[got[a]], [got[b]]]), 1e-300)
            )
        return (
            np.log(self.model.predict_win([[r] for r in got])),
            front,
            np.array([r.mu for r in got]),
        )


def sports() -> list[Sport]:
    """Those whose file is there."""
    found = []
    for name, file, race, driver, position, known, every in (
        ("NASCAR 2002", "nascar2002.csv", ("race",), "driver", "finish", 12, 1),
        ("Formula 1", "f1_2018_2022.csv", ("year", "round"), "driver", "position", 2018, 2),
    ):
        path = DATA / file
        if not path.exists():
            print(
                f"{name} is left out: shared/data/{file} is looked for beside the repository",
                file=sys.stderr,
            )
            continue
        table = pyarrow.csv.read_csv(path).to_pydict()
        races: dict[Any, list[tuple[int, str]]] = {}
        for row in range(len(table[driver])):
            at = str(table[position][row])
            if at.isdigit():
                races.setdefault(tuple(table[c][row] for c in race), []).append(
                    (int(at), table[driver][row])
                )
        keys = sorted(races)
        ordered = [[who for _, who in sorted(races[key])] for key in keys]
        found.append(Sport(name, ordered, sum(key[0] <= known for key in keys), every))
    return found


def predict_races(sport: Sport, most: int) -> tuple[list[Score], list[Gain]]:
    """Predict race after race by every method that is installed."""
    ours = {
        "revealed": Ours(sport.every),
        f"revealed, last {WINDOW_RACES} races": Ours(sport.every, WINDOW_RACES),
    }
    peers: dict[str, Method] = {}
    for name, module, make in (
        ("TrueSkill", "trueskill", TrueSkill),
        ("OpenSkill", "openskill", OpenSkill),
    ):
        if importlib.util.find_spec(module) is None:
            print(
                f"{name} is not installed and is left out; scripts/bench installs it",
                file=sys.stderr,
            )
        else:
            peers[name] = make()
    methods = {**ours, **peers}
    predicted: dict[str, list[RacePrediction]] = {name: [] for name in methods}
    close: list[Bools] = []
    last = min(len(sport.races), sport.first + most) if most else len(sport.races)
    for g in range(sport.first, last):
        race = sport.races[g]
        front_runner, other = np.triu_indices(len(race), 1)
        places = np.zeros(len(race))
        for name, method in methods.items():
            method.learn(sport.races[:g])
            win, front, worth = method.predict(race)
            predicted[name].append(
                RacePrediction(float(win[0]), bool(win[0] >= win.max()), front[front_runner, other])
            )
            places += np.argsort(np.argsort(-worth)) / len(methods)
        close.append(np.abs(places[front_runner] - places[other]) <= CLOSE_PLACES)
    scores = [_score(sport.name, name, said, close) for name, said in predicted.items()]
    return scores, [
        _gain(sport.name, mine, peer, predicted, close) for mine in ours for peer in peers
    ]


def _score(sport: str, name: str, predicted: list[RacePrediction], close: list[Bools]) -> Score:
    def mean_and_share(parts: list[Floats]) -> tuple[float, float]:
        logs = np.concatenate(parts)
        return float(logs.mean()), float((logs > math.log(0.5)).mean())

    near = [race.pairs[which] for race, which in zip(predicted, close, strict=True)]
    winner = (
        float(np.mean([race.winner for race in predicted])),
        float(np.mean([race.favourite for race in predicted])),
    )
    return Score(
        sport,
        name,
        len(predicted),
        winner,
        mean_and_share([race.pairs for race in predicted]),
        mean_and_share(near),
    )


def _gain(
    sport: str, mine: str, peer: str, predicted: dict[str, list[RacePrediction]], close: list[Bools]
) -> Gain:
    both = list(zip(predicted[mine], predicted[peer], strict=True))
    by_pair = [a.pairs - b.pairs for a, b in both]
    by_close = [part[near] for part, near in zip(by_pair, close, strict=True)]
    by_winner = [np.array([a.winner - b.winner]) for a, b in both]
    return Gain(
        sport,
        mine,
        peer,
        _bootstrap_mean(by_winner),
        _bootstrap_mean(by_pair),
        _bootstrap_mean(by_close),
    )


def _bootstrap_mean(parts: list[Floats]) -> tuple[float, float, float]:
    """The mean over all parts, and the ends of a 95 % interval with races drawn anew."""
    sums, counts = np.array([part.sum() for part in parts]), np.array([part.size for part in parts])
    drawn = np.random.default_rng(1).integers(len(parts), size=(BOOTSTRAP_SAMPLES, len(parts)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return float(sums.sum() / counts.sum()), float(low), float(high)


def measure(only: str, most: int) -> Result:
    """Every sport whose file is there."""
    found = [predict_races(sport, most) for sport in sports() if only.lower() in sport.name.lower()]
    if not found:
        raise ValueError(
            "no sport has its file in shared/data beside the repository, or none has that name"
        )
    return {
        "scores": [asdict(s) for scores, _ in found for s in scores],
        "gains": [asdict(g) for _, gains in found for g in gains],
    }


def tables(result: Result) -> str:
    """How well each method predicted, and what ours gains."""
    scores, gains = (
        [Score(**line) for line in result["scores"]],
        [Gain(**line) for line in result["gains"]],
    )
    return "\n\n".join(
        [
            table(
                ("sport, races predicted", "method", "winner", "pairs", "close pairs"),
                [
                    (
                        f"{s.sport}, {s.races}",
                        s.method,
                        *(
                            f"{log:.4f} ({right:.1%})"
                            for log, right in (s.winner, s.pairs, s.close)
                        ),
                    )
                    for s in scores
                ],
            ),
            "What ours gains, with 95 % intervals:",
            table(
                ("sport", "gain of", "over", "winner", "pairs", "close pairs"),
                [
                    (
                        g.sport,
                        g.ours,
                        g.over,
                        *(
                            f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"
                            for mean, low, high in (g.winner, g.pairs, g.close)
                        ),
                    )
                    for g in gains
                ],
            ),
        ]
    )


def finding(result: Result) -> str:
    """What all races gain over TrueSkill, on the next winner."""
    gains = [g for g in result["gains"] if (g["ours"], g["over"]) == ("revealed", "TrueSkill")]
    each = ", ".join(f"{g['sport']} {g['winner'][0]:+.2f}" for g in gains)
    return (
        f"log probability of the winner against TrueSkill: {each}"
        if each
        else "TrueSkill took no part"
    )


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="The next race predicted",
    takes="six minutes",
    options={
        "only": Option("", "sports with this in their name"),
        "most": Option(0, "predict so many races of each sport at most; 0 is all", quick=2),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("trueskill", "openskill"),
)
