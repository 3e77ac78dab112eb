"""Skills that change: problems to rank, and exact posteriors of two sides on two dates.

The exact ones know nothing of the package's law of paths. The games see the difference D of two
sides alone; with k players on both together it is normal with variance k spread^2 on the first
date, and moves by k drift^2 gap; or it shrinks, and keeps that variance. A grid over both
differences, drift (or rate) and spread has all moments; the skill of one player given D is normal
about D / k.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.stats as st
from scipy.special import log_ndtr, ndtr

import revealed as rv
from revealed._types import Floats
from revealed.samplers.ranking_hmc import MARGIN_PRIOR_SD
from tests.conformance.oracles import Moments, Oracle
from tests.conformance.problems import Draws, Problem, columns

GAP = 1.7
STEP, SPREAD = 0.8, 2.0  # scales of half-t priors; that of the spread is the package's
WON, LOST, TIED = 7, 2, 3  # by the first side on the first date, and by the other on the second
WALK = rv.RandomWalk(rv.HalfStudentT(scale=STEP))
REVERTING = rv.MeanReverting(rate=rv.HalfStudentT(scale=STEP))
CHANGES: list[Any] = [WALK, REVERTING]
NOISES: tuple[Any, ...] = (rv.NormalNoise(), rv.LogitNoise())
PRIORS: tuple[Any, ...] = (None, rv.Normal(1.5))


# Exact posteriors


def two_dates(sides: list[Any], ties: bool, times: int = 1) -> rv.Rankings:
    """Games of two sides on two dates, of which the one is better on each."""
    found: dict[str, list[Any]] = {name: [] for name in ("game", "player", "place", "team", "time")}
    game = 0
    for date, better in ((3.0, 0), (3.0 + GAP, 1)):
        places = [(better, 1)] * WON + [(1 - better, 1)] * LOST + [(0, 0)] * TIED * ties
        for first, apart in places * times:
            for side, members in enumerate(sides):
                for player in members:
                    cells = (game, player, 1 + apart * (side != first), side, date)
                    for name, cell in zip(found, cells, strict=True):
                        found[name].append(cell)
            game += 1
    return rv.Rankings.from_columns(
        found["game"], found["player"], found["place"], found["team"], time=found["time"]
    )


def half_t(count: int, low: float, high: float, scale: float) -> tuple[Floats, Floats]:
    """Points of log sd, and the density of a half-t prior there, on the log scale."""
    log_sd = np.log(scale) + np.linspace(low, high, count)
    return log_sd, 2.0 * st.t.pdf(np.exp(log_sd) / scale, 4) * np.exp(log_sd)


def likelihood(noise: Any, d: Floats, margin: float, sign: float, ties: bool) -> Floats:
    """Of the games of one date at differences d, the better side's times sign."""
    if isinstance(noise, rv.LogitNoise):
        # of a tie only the order was not seen, which says nothing of two
        return np.asarray(
            np.exp(-WON * np.log1p(np.exp(-sign * d)) - LOST * np.log1p(np.exp(sign * d)))
        )
    up, down = (margin - sign * d) / np.sqrt(2.0), (margin + sign * d) / np.sqrt(2.0)
    found = np.exp(WON * log_ndtr(-up) + LOST * log_ndtr(-down))
    return np.asarray(found * (ndtr(up) - ndtr(-down)) ** (TIED * ties))


def side_moments(noise: Any, prior: Any, players: int, ties: bool, reverts: bool) -> Moments:
    """Of both differences and the first player's skills, bent, log pace, and what else is unknown.

    The pace is a drift, or of skills that revert a rate.
    """
    d = np.linspace(-16.0, 16.0, 321)
    spacing = d[1] - d[0]
    margins, weights = [0.0], [1.0]
    if ties and isinstance(noise, rv.NormalNoise):
        nodes, shares = np.polynomial.legendre.leggauss(14)
        margins = (st.halfnorm.ppf(0.5 * (nodes + 1.0)) * MARGIN_PRIOR_SD).tolist()
        weights = shares.tolist()
    each = list(zip(margins, weights, strict=True))
    left = np.array([w * likelihood(noise, d, m, 1.0, ties) for m, w in each])
    right = np.array([likelihood(noise, d, m, -1.0, ties) for m, _ in each])
    spreads = half_t(41, -7.0, 4.0, SPREAD)
    if prior is not None:
        spreads = np.log([prior.sd]), np.ones(1)
    hermite, shares = np.polynomial.hermite_e.hermegauss(24)
    shares = shares / shares.sum()

    def bent(sd: float) -> tuple[Floats, Floats]:
        # of a player whose skill given d is normal about its share of d
        own = np.arctan(d[:, None] / players + sd * np.sqrt(1.0 - 1.0 / players) * hermite)
        return own @ shares, own**2 @ shares

    total, first, second = 0.0, 0.0, 0.0
    for (log_pace, a), (log_spread, b) in itertools.product(
        zip(*half_t(61, -7.0, 4.5, STEP), strict=True), zip(*spreads, strict=True)
    ):
        pace, spread = np.exp(log_pace), np.exp(log_spread)
        decay, moved = 1.0, pace * np.sqrt(GAP)
        if reverts:
            decay, moved = np.exp(-pace * GAP), spread * np.sqrt(-np.expm1(-2.0 * pace * GAP))
        # a law narrower than the spacing stands on one point
        begin = max(spread * np.sqrt(players), 0.6 * spacing)
        step = max(moved * np.sqrt(players), 0.6 * spacing)
        start = np.exp(-0.5 * (d / begin) ** 2) / begin
        move = np.exp(-0.5 * ((d - decay * d[:, None]) / step) ** 2) / step
        onward, back = ((left * start) @ move) * right, (left * start) * (right @ move.T)
        by_margin = back.sum(axis=1)
        before, after = back.sum(axis=0), onward.sum(axis=0)
        later = bent(np.hypot(decay * spread, moved))
        mass = before.sum()
        one, two = list[Any](), list[Any]()
        for power, out in ((1, one), (2, two)):
            out += [before @ np.arctan(d) ** power, after @ np.arctan(d) ** power]
            out += [before @ bent(spread)[power - 1], after @ later[power - 1]]
            out += [mass * log_pace**power]
            out += [mass * log_spread**power] if prior is None else []
            out += [by_margin @ np.asarray(margins) ** power] if len(margins) > 1 else []
        total += a * b * mass
        first, second = first + a * b * np.array(one), second + a * b * np.array(two)
    mean = first / total
    return np.asarray(mean), np.asarray(np.sqrt(second / total - mean**2))


def side_columns(players: int, draws: Draws) -> Floats:
    """The quantities of the exact moments; nodes are sorted by player, then date."""
    # the last player is the other side
    signs = np.where(np.arange(players) == players - 1, -1.0, 1.0)
    before, after = draws["skill"][:, ::2], draws["skill"][:, 1::2]
    parts = [np.arctan(each @ signs) for each in (before, after)]
    parts += [np.arctan(each[:, 0]) for each in (before, after)]
    sizes = ("drift_sd", "reversion_rate", "spread")
    parts += [np.log(draws[name]) for name in sizes if name in draws]
    parts += [draws["margin"]] if "margin" in draws else []
    return columns(*parts)


def skill_oracles() -> list[Oracle]:
    """Two players, and a team against one; under both noises and both priors."""
    found = []
    for noise, prior, (of, sides), over_time in itertools.product(
        NOISES, PRIORS, (("two players", ["a", "b"]), ("a team", ["ab", "c"])), CHANGES
    ):
        players, ties = sum(map(len, sides)), of == "two players"
        reverts = over_time is REVERTING
        name = f"{of} who revert" if reverts else of
        model = rv.RankingModel(prior=prior, noise=noise, over_time=over_time)
        once, twice = (two_dates(sides, ties, times) for times in (1, 2))
        exact = cache(partial(side_moments, noise, prior, players, ties, reverts))
        found.append(Oracle(name, model, once, twice, partial(side_columns, players), exact))
    return found


# Problems to rank

DATES = np.array([0.0, 0.5, 2.0])
PLAYERS = 4


def line_ups(teams: bool, away: int = 1) -> list[tuple[int, list[tuple[int, ...]]]]:
    """Date and entries of each game, always the same; the last player is away on one date."""
    rng, found = np.random.default_rng(1), []
    for date, games in enumerate((5, 4, 5)):
        for g in range(games):
            who = rng.permutation(PLAYERS)[: 4 if g == 0 else int(rng.integers(2, 5))]
            who = who[who < PLAYERS - 1] if date == away else who
            entries: list[tuple[int, ...]] = [(int(p),) for p in who]
            if teams and len(entries) > 2 and g % 2 == 0:
                entries = [entries[0] + entries[1], *entries[2:]]
            if len(entries) > 1:
                found.append((date, entries))
    return found


def changing_skills(
    name: str,
    noise: Any,
    prior: Any,
    teams: bool = False,
    ties: bool = False,
    cars: bool = False,
    newcomers: bool = False,
    over_time: Any = WALK,
) -> Problem:
    """Ranked are all skills, drifts, spreads, the margin of a tie, and a coefficient.

    With cars, every player drives one of two, whose skill changes too, from a place on the grid.
    With newcomers, the last player comes on the second date, about a mean of his own.
    """
    games = line_ups(teams, away=0 if newcomers else 1)
    grid = np.random.default_rng(2).standard_normal(sum(PLAYERS for _ in games))
    # a game of each player and date tells which nodes there are
    of_players = sorted({(0, p, d) for d, entries in games for entry in entries for p in entry})
    of_cars = sorted({(1, (p + g) % 2, games[g][0]) for g, p in _drivers(games)})
    nodes = [*of_players, *(of_cars if cars else [])]
    more: dict[str, Any] = (
        {"components": ("player", "car"), "covariates": ("grid",)} if cars else {}
    )
    if newcomers:
        more["newcomer_prior"] = rv.Normal(1.5)
    model = rv.RankingModel(prior=prior, noise=noise, over_time=over_time, **more)
    pace_name = "drift_sd" if over_time is WALK else "reversion_rate"
    at = {node: n for n, node in enumerate(nodes)}

    def draw(rng: np.random.Generator) -> Draws:
        pace = STEP * np.abs(rng.standard_t(4, 1 + cars))
        spread = SPREAD * np.abs(rng.standard_t(4, 1 + cars))
        if prior is not None:
            spread[:] = prior.sd
        skill, mean = np.empty(len(nodes)), 1.5 * rng.standard_normal() if newcomers else 0.0
        for n, (component, label, date) in enumerate(nodes):
            if n == 0 or nodes[n - 1][:2] != (component, label):
                skill[n] = spread[component] * rng.standard_normal()
                skill[n] += mean if date > 0 and component == 0 else 0.0
            else:
                gap = DATES[date] - DATES[nodes[n - 1][2]]
                decay, moved = 1.0, pace[component] * np.sqrt(gap)
                if over_time is REVERTING:
                    decay = np.exp(-pace[component] * gap)
                    moved = spread[component] * np.sqrt(1.0 - decay**2)
                skill[n] = decay * skill[n - 1] + moved * rng.standard_normal()
        truth = {"skill": skill[None], pace_name: pace[None]}
        if prior is None:
            truth["spread"] = spread[None]
        if ties:
            truth["margin"] = np.array([MARGIN_PRIOR_SD * abs(rng.standard_normal())])
        if newcomers:
            truth["newcomer_mean"] = np.array([mean])
        if cars:
            truth["coefficient"] = rng.standard_normal((1, 1))
        return truth

    def observe(rng: np.random.Generator, truth: Draws) -> Any:
        margin = float(truth["margin"][0]) if ties else 0.0
        skill, players, sizes, tied, ordered = truth["skill"][0], [], [], [], []
        driven, places = [], []
        for g, (date, entries) in enumerate(games):

            def worth(p: int, g: int = g, date: int = date) -> float:
                own = float(skill[at[0, p, date]])
                if cars:
                    own += skill[at[1, (p + g) % 2, date]]
                    own += grid[g * PLAYERS + p] * truth["coefficient"][0, 0]
                return own

            seen = np.array([sum(map(worth, e)) for e in entries])
            seen = seen + noise.sample(rng, len(entries))
            order = np.argsort(-seen)
            # in every third game the last two retire
            count = max(1, len(order) - 2) if g % 3 == 0 else len(order)
            for k, e in enumerate(order):
                close = 0 < k < count and seen[order[k - 1]] - seen[e] <= margin
                tied.append(bool(ties and close))
                players += entries[e]
                sizes.append(len(entries[e]))
                driven += [f"car {(p + g) % 2}" for p in entries[e]]
                places += [grid[g * PLAYERS + p] for p in entries[e]]
            ordered.append(count)
        if ties and not any(tied):
            return None
        start = np.cumsum([0, *(len(entries) for _, entries in games)])
        return rv.Rankings(
            tuple(f"p{p}" for p in range(PLAYERS)),
            np.array(players),
            np.cumsum([0, *sizes]),
            start,
            np.array(tied),
            np.array(ordered),
            tuple(range(len(games))),
            DATES[[date for date, _ in games]],
            {"car": np.array(driven), "grid": np.array(places)} if cars else {},
        )

    def rank(data: Any, draws: Draws) -> Floats:
        logs = (np.log(draws[key]) for key in (pace_name, "spread") if key in draws)
        others = ("margin", "coefficient", "newcomer_mean")
        rest = (draws[key] for key in others if key in draws)
        return columns(draws["skill"], *logs, *rest)

    return Problem(name, model, draw, observe, rank, some_left_out=ties)


def _drivers(games: Any) -> list[tuple[int, int]]:
    """Game and player of everybody who takes part."""
    return [(g, p) for g, (_, entries) in enumerate(games) for entry in entries for p in entry]


def skill_problems() -> list[Problem]:
    """Players and teams under both noises and both priors; ties under normal noise."""
    found = []
    for noise, prior in itertools.product(NOISES, PRIORS):
        of_noise = ", logit noise" if isinstance(noise, rv.LogitNoise) else ""
        found += [
            changing_skills(f"skills on three dates{of_noise}", noise, prior),
            changing_skills(f"teams on three dates{of_noise}", noise, prior, teams=True),
            changing_skills(f"cars on three dates{of_noise}", noise, prior, cars=True),
        ]
        if of_noise:
            found.append(changing_skills("newcomers on three dates", noise, prior, newcomers=True))
        else:
            found.append(changing_skills("ties on three dates", noise, prior, ties=True))
        name = f"skills that revert on three dates{of_noise}"
        found.append(changing_skills(name, noise, prior, over_time=REVERTING))
    return found
