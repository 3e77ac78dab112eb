"""Section 5.2, Experiment 3: less time, fewer decisions. And what the paper leaves open: noisier, or other wishes?

The value has a size and a direction. Measured in the units of what is offered, |v| = sqrt(v' S v) with S the mean covariance
of the features within a decision: it is signal over noise, how consistently the player follows its wishes. The
direction v / |v| is what is wanted. Pressure that only adds noise shrinks the first and leaves the second alone.

The prior has no opinion on direction, v ~ N(0, SIZE^2 S^-1), and holds consistency to about SIZE: a wide one that takes no account of what
is offered turns the direction of a player who is seen too seldom. Two directions differ if their means lie further apart than
chance would have it, measured in the posterior covariance of both on the plane that touches the sphere between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.paper.figures import by_condition
from understudy.paper.study import Section, Study, Tell, learn
from understudy.posterior import Posterior
from understudy.priors import Gaussian
from understudy.worlds.tetris import FEATURES, Games, Path, Tetris
from understudy.worlds.tetris.board import drop, has_ended, resting_row
from understudy.worlds.tetris.pieces import PIECES, outlines

TAUS = (10.0, 5.0, 3.0, 1.0)
PAPER_MADE = (100, 72, 55, 17)
BLOCKS = 100
SIZE = 5.0
WISHES = np.array([-0.6, -3.0, -0.2])
CARELESS = np.array([-0.6, -0.6, -0.2])  # what is wanted by one who no longer minds holes when time is short
SHORT = 5.0  # seconds or less
DIFFERENT = 0.01  # how often a difference in direction may be seen where there is none
THINKING, SPREAD = 3.3, 0.9  # seconds to a decision: lognormal with this median and this log sd
SHARES = (1.0, 0.75, 0.5, 0.25)  # of a person's decisions that are quick enough
THIN = 20  # decisions below which the prior sets the size
NOISIER = {10.0: 1.0, 5.0: 1.3, 3.0: 1.8, 1.0: 3.0}  # the noise's sd by time allowed, for a player whom haste makes so


@dataclass(frozen=True)
class Player:
    """One who is simulated: its story, and what it wants with how much noise, by time allowed."""

    title: str
    story: str
    noise: Callable[[float], float]
    wishes: Callable[[float], Floats]


PLAYERS = {
    "steady": Player("Less time, fewer decisions", "always the same noise", lambda tau: 1.0, lambda tau: WISHES),
    "hasty": Player(
        "Haste that only adds noise", f"noise of sd {', '.join(f'{s:g}' for s in NOISIER.values())}",
        lambda tau: NOISIER[tau], lambda tau: WISHES,
    ),
    "careless": Player(
        "Haste that changes what is wanted", f"the same noise, who minds holes a fifth as much with {SHORT:g} seconds or fewer",
        lambda tau: 1.0, lambda tau: CARELESS if tau <= SHORT else WISHES,
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Condition:
    """One time allowed: the decisions made in time, and how many were missed."""

    tau: float
    decisions: Decisions
    missed: int

    @property
    def share(self) -> float:
        """The share of blocks for which no decision was made."""
        return self.missed / (self.missed + len(self.decisions))


def run(games: Games | None, seed: int, quick: bool, tell: Tell) -> Study:
    """Simulated players under deadlines; and a person's quick decisions, where games are given."""
    repeats = 1 if quick else 5
    numbers: dict[str, Any] = {"taus": TAUS}
    sections = []
    for name, player in PLAYERS.items():
        tell(f"pressure: a {name} player")
        conditions = [_watched(seed, tau, player, BLOCKS * repeats) for tau in TAUS]
        numbers[name], section = _told(player, conditions, seed, repeats)
        sections.append(section)
    if games is not None:
        tell("pressure: a person's quick decisions")
        numbers["person"], section = _person(games, seed, quick)
        sections.append(section)
    return Study(
        "pressure", "Tetris under time pressure",
        "Section 5.2, Experiment 3. Until people are recorded under deadlines, a player is simulated who needs a while to decide: "
        f"lognormal with a median of {THINKING:g} s. After tau seconds the block falls as it is and no decision is recorded.",
        numbers, sections,
    )  # fmt: skip


def _watched(seed: int, tau: float, player: Player, blocks: int) -> Condition:
    """A player under one deadline; the blocks are the same under every one."""
    world, rng = Tetris(), np.random.default_rng([seed, round(10 * tau)])
    pieces = np.random.default_rng([seed, 7]).integers(len(PIECES), size=blocks)
    board, seen, missed = world.empty(), [], 0
    for game_piece in pieces.tolist():
        where, rows = world.offer(board, game_piece)
        if not len(where) or has_ended(board):
            board = world.empty()
            where, rows = world.offer(board, game_piece)
        if rng.lognormal(np.log(THINKING), SPREAD) > tau:
            missed += 1
            column = (world.columns - int(outlines().width[game_piece, 0])) // 2
            if resting_row(board, game_piece, 0, column) is None:
                board = world.empty()
            board = drop(board, game_piece, 0, column).board
            continue
        pick = int(np.argmax(rows @ player.wishes(tau) + player.noise(tau) * rng.standard_normal(len(rows))))
        rotation, column = where[pick].tolist()
        seen.append((board, game_piece, rotation, column))
        board = drop(board, game_piece, rotation, column).board
    boards, *rest = zip(*seen, strict=True)
    piece, turned, across = (np.array(each, np.int64) for each in rest)
    path = Path(np.stack(boards), piece, turned, across, np.zeros(len(seen), np.int64))
    return Condition(tau, world.decisions(path), missed)


def metric(decisions: Decisions) -> Floats:
    """(K, K) the mean covariance of the features within a decision: the units that consistency is measured in."""
    rows = np.asarray(decisions.rows)
    middle = np.add.reduceat(rows, decisions.start[:-1], axis=0) / decisions.sizes[:, None]
    off = rows - np.repeat(middle, decisions.sizes, axis=0)
    return np.asarray((off / np.repeat(decisions.sizes, decisions.sizes)[:, None]).T @ off / len(decisions))


def size_and_direction(values: Floats, units: Floats) -> tuple[Floats, Floats]:
    """(n,) how large draws of v (n, K) are in these units, and (n, K) where they point: shares of each feature's own scale."""
    size = np.sqrt(np.einsum("ni,ij,nj->n", values, units, values))
    return size, values * np.sqrt(np.diag(units)) / size[:, None]


def _told(player: Player, conditions: list[Condition], seed: int, repeats: int) -> tuple[dict[str, Any], Section]:
    units = metric(conditions[0].decisions)
    posts = _posts(conditions, units, seed)
    found = _found(conditions, posts, units)
    wanted = np.array([player.wishes(c.tau) / player.noise(c.tau) for c in conditions])
    true_size, true_direction = size_and_direction(wanted, units)
    found["true_size"], found["true_direction"] = true_size, true_direction
    covered = sum(
        bool(low <= true <= high) for (low, high), true in zip(found["size_interval"], true_size, strict=True)
    )
    paper = (
        "as the time allowed grows, more decisions are made and the posterior marginals concentrate; modes differ between tau = 10 and 5. "
        f"Of 100 blocks {', '.join(map(str, PAPER_MADE))} decisions were made in 10, 5, 3 and 1 seconds."
    )
    ours = (
        f"a player with {player.story}: of {BLOCKS * repeats} blocks {', '.join(map(str, found['made']))} decisions are made in time "
        f"(missed: {', '.join(f'{c.share:.0%}' for c in conditions)}). Consistency, signal over noise, is truly {', '.join(f'{s:.1f}' for s in true_size)}; "
        f"it is found to be {_sizes(found)}, and the truth lies inside {covered} of {len(conditions)} 90 % intervals. {_turning(found)}"
    )
    return found, Section(
        player.title, paper, ours, _drawn(player.title, conditions, posts, units, true_size, true_direction),
        "Consistency and direction of the value by time allowed.",
    )  # fmt: skip


def _posts(conditions: list[Condition], units: Floats, seed: int) -> list[Posterior]:
    """What each condition alone says, under a prior without an opinion on direction."""
    prior = Gaussian(SIZE**2 * np.linalg.inv(units))
    return [learn(c.decisions, prior, seed=seed) for c in conditions]


def _sizes(found: dict[str, Any]) -> str:
    """Consistency by condition in words; where it rests on few decisions, it is the prior's."""
    parts = []
    for made, size, (low, high) in zip(found["made"], found["size"], found["size_interval"], strict=True):
        rests = ", which is the prior's doing" if made < THIN else ""
        parts.append(f"{size:.1f} [{low:.1f} - {high:.1f}]{rests}")
    return ", ".join(parts)


def _turning(found: dict[str, Any]) -> str:
    """Whether what is wanted differs from the first condition by more than chance would have it."""
    turned = zip(found["angle"][1:], found["unsure"][1:], strict=True)
    parts = ", ".join(f"{angle:.0f} (unsure by {unsure:.0f})" for angle, unsure in turned)
    different = [made for made, p in zip(found["made"][1:], found["chance"][1:], strict=True) if p < DIFFERENT]
    verdict = (
        f"which chance alone would do: no sign of other wishes (smallest probability {min(found['chance'][1:]):.2g})"
        if not different
        else f"more than chance alone would do in {len(different)} of {len(found['chance']) - 1}: other wishes, not only noise"
    )
    return f"The direction turns by {parts} degrees from that of the first condition, {verdict}."


def _found(conditions: list[Condition], posts: list[Posterior], units: Floats) -> dict[str, Any]:
    """Size and direction by condition; the angle between its mean direction and the first's, how unsure both are, and
    how likely chance alone would turn it as far."""
    parts = [size_and_direction(post.values, units) for post in posts]
    root = np.linalg.cholesky(units)
    unit = [(post.values @ root) / size[:, None] for post, (size, _) in zip(posts, parts, strict=True)]
    middle = [_scaled(u.mean(axis=0)) for u in unit]
    spread = [np.sqrt(np.mean(_degrees(u @ m) ** 2)) for u, m in zip(unit, middle, strict=True)]
    return {
        "made": [len(c.decisions) for c in conditions],
        "missed_share": [c.share for c in conditions],
        "size": [float(np.median(size)) for size, _ in parts],
        "size_interval": [np.quantile(size, [0.05, 0.95]).tolist() for size, _ in parts],
        "direction": [np.median(direction, axis=0).tolist() for _, direction in parts],
        "angle": [float(_degrees(m @ middle[0])) for m in middle],
        "unsure": [float(np.hypot(s, spread[0])) for s in spread],
        "chance": [1.0, *(chance_of_turning(unit[0], u) for u in unit[1:])],
    }


def chance_of_turning(one: Floats, other: Floats) -> float:
    """How likely two posteriors of a direction, draws of unit length (n, K), would be as far apart if there were one direction."""
    between = _scaled(one.mean(axis=0) + other.mean(axis=0))
    plane = np.linalg.svd(between[None])[2][1:].T
    a, b = one @ plane, other @ plane
    apart = b.mean(axis=0) - a.mean(axis=0)
    both = np.atleast_2d(np.cov(a.T) + np.cov(b.T))
    return float(chi2.sf(apart @ np.linalg.solve(both, apart), df=len(apart)))


def _scaled(direction: Floats) -> Floats:
    return np.asarray(direction / np.linalg.norm(direction))


def _degrees(cosine: Any) -> Any:
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _drawn(
    title: str, conditions: list[Condition], posts: list[Posterior], units: Floats, size: Any, direction: Any
) -> Any:
    parts = [size_and_direction(post.values, units) for post in posts]
    panels: dict[str, Any] = {"consistency": [each for each, _ in parts]}
    truths: dict[str, Any] = {"consistency": size}
    for k, name in enumerate(FEATURES):
        panels[f"direction: {name}"] = [each[:, k] for _, each in parts]
        truths[f"direction: {name}"] = None if direction is None else direction[:, k]
    labels = [f"{c.tau:g} s ({len(c.decisions)} made, {c.share:.0%} missed)" for c in conditions]
    return by_condition(
        title,
        labels,
        panels,
        truths,
        "Consistency is signal over noise; the direction is what is wanted, in units of each feature.",
    )


def _person(games: Games, seed: int, quick: bool) -> tuple[dict[str, Any], Section]:
    """All decisions of a person, and those made within times that a share of them took at most."""
    straight = Games(games.straight[: 200 if quick else None], games.rows, games.columns)
    seconds = straight.seconds
    conditions = []
    for tau in dict.fromkeys([*(np.ceil(10.0 * np.quantile(seconds, SHARES)) / 10.0).tolist()]):
        within = straight.within(tau)
        conditions.append(Condition(tau, within.decisions(), len(straight) - len(within)))
    units = metric(conditions[0].decisions)
    posts = _posts(conditions, units, seed)
    found = _found(conditions, posts, units) | {"taus": [c.tau for c in conditions]}
    title = "A person's quick decisions"
    return found, Section(
        title,
        "a person was recorded under four deadlines.",
        f"an emulation: of {len(straight):,} decisions made without a deadline we keep those that took at most "
        f"{', '.join(f'{c.tau:g}' for c in conditions)} seconds: {', '.join(map(str, found['made']))}. That also selects easy decisions, so a difference is no proof of what "
        f"pressure does. Consistency is {_sizes(found)}. {_turning(found)}",
        _drawn(title, conditions, posts, units, None, None),
        "Consistency and direction by how quickly decisions were made.",
    )
