"""Section 5.2, Experiment 3: less time, fewer decisions; and a question the paper leaves open.

Under time pressure, is a player noisier, or does it want something else? A value has a size and a
direction (`revealed.results.size_and_direction`): with S the mean covariance of the features
within a decision, |v| = sqrt(v' S v) is signal over noise, how consistently the player follows
its preferences, and v / |v| is what is preferred. Pressure that only adds noise shrinks the first
and leaves the second alone.

The paper's people were recorded under four deadlines tau. Here players are simulated whose answer
is known, and a person's quick decisions stand in for decisions under a deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.api import fit_quietly
from revealed.data.decisions import Decisions
from revealed.environments.tetris import PAPER_FEATURES, Games, Rollout, Tetris
from revealed.environments.tetris.board import drop, has_ended, resting_row
from revealed.environments.tetris.pieces import PIECES, outlines
from revealed.models.choice import ChoiceModel
from revealed.replication.figures import plot_by_condition
from revealed.replication.study import ReportProgress, Section, Study
from revealed.results.choice import ChoicePosterior
from revealed.results.size_and_direction import (
    direction_p_value,
    offered_covariance,
    prior_for_direction,
    size_and_direction,
    unit_vectors,
)


@dataclass(frozen=True)
class PressurePlan:
    """The settings of the experiment.

    deadlines, blocks: the paper's, in seconds and in pieces under each deadline.
    made_in_paper: decisions of the paper's person, deadline by deadline.
    thinking_median, thinking_log_sd: the simulated time to a decision, lognormal, in seconds;
        chosen so that about as many decisions are missed as in the paper.
    short_deadline: from here down the careless player minds holes less, in seconds.
    p_value: how often a difference in direction may be seen where there is none.
    person_quantiles: the shares of a person's decisions that are kept as quick enough.
    min_decisions: below so many, the size is the prior's rather than the data's.
    """

    deadlines: tuple[float, ...] = (10.0, 5.0, 3.0, 1.0)
    blocks: int = 100
    made_in_paper: tuple[int, ...] = (100, 72, 55, 17)
    thinking_median: float = 3.3
    thinking_log_sd: float = 0.9
    short_deadline: float = 5.0
    p_value: float = 0.01
    person_quantiles: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)
    min_decisions: int = 20


PLAN = PressurePlan()


@dataclass(frozen=True)
class SimulatedPlayer:
    """A player whose answer is known: the sd of its noise and its value, by time allowed."""

    title: str
    story: str
    noise: Callable[[float], float]
    value: Callable[[float], Floats]


def _simulated_players() -> dict[str, SimulatedPlayer]:
    """One player whom deadlines do not change, one they make noisier, one they make careless."""
    # The second no longer minds holes; the noise grows as time gets short.
    value, careless_value = np.array([-0.6, -3.0, -0.2]), np.array([-0.6, -0.6, -0.2])
    noise_by_deadline = {10.0: 1.0, 5.0: 1.3, 3.0: 1.8, 1.0: 3.0}
    return {
        "steady": SimulatedPlayer(
            "Less time, fewer decisions",
            "always the same noise",
            lambda tau: 1.0,
            lambda tau: value,
        ),
        "hasty": SimulatedPlayer(
            "Haste that only adds noise",
            f"noise of sd {', '.join(f'{s:g}' for s in noise_by_deadline.values())}",
            lambda tau: noise_by_deadline[tau],
            lambda tau: value,
        ),
        "careless": SimulatedPlayer(
            "Haste that changes what is wanted",
            "the same noise, who minds holes a fifth as much "
            f"with {PLAN.short_deadline:g} seconds or fewer",
            lambda tau: 1.0,
            lambda tau: careless_value if tau <= PLAN.short_deadline else value,
        ),
    }


PLAYERS = MappingProxyType(_simulated_players())


@dataclass(frozen=True, eq=False)
class Condition:
    """One deadline tau: the decisions made in time, and how many were missed."""

    tau: float
    decisions: Decisions
    missed: int

    @property
    def share(self) -> float:
        """The share of blocks for which no decision was made."""
        return self.missed / (self.missed + len(self.decisions))


def run(games: Games | None, seed: int, quick: bool, report_progress: ReportProgress) -> Study:
    """The study: simulated players under deadlines, and a person's quick decisions.

    The person is left out where no games are given. `quick` simulates a fifth of the blocks.
    """
    repeats = 1 if quick else 5
    numbers: dict[str, Any] = {"taus": PLAN.deadlines}
    sections = []
    # Each player under every deadline, then compared with the first.
    for name, player in PLAYERS.items():
        report_progress(f"pressure: a {name} player")
        blocks = PLAN.blocks * repeats
        conditions = [_simulate_condition(seed, tau, player, blocks) for tau in PLAN.deadlines]
        numbers[name], section = _player_section(player, conditions, seed, repeats)
        sections.append(section)
    if games is not None:
        report_progress("pressure: a person's quick decisions")
        numbers["person"], section = _person_section(games, seed, quick)
        sections.append(section)
    return Study(
        "pressure",
        "Tetris under time pressure",
        "Section 5.2, Experiment 3. Until people are recorded under deadlines, a player is "
        "simulated who needs a while to decide: "
        f"lognormal with a median of {PLAN.thinking_median:g} s. After tau seconds the block "
        "falls as it is and no decision is recorded.",
        numbers,
        sections,
    )


def _simulate_condition(seed: int, tau: float, player: SimulatedPlayer, blocks: int) -> Condition:
    """The decisions of a player under one deadline; the blocks are the same under every one."""
    tetris, rng = Tetris(), np.random.default_rng([seed, round(10 * tau)])
    # The same pieces under every deadline; the noise differs.
    pieces = np.random.default_rng([seed, 7]).integers(len(PIECES), size=blocks)
    board, decided, missed = tetris.empty(), [], 0
    for piece in pieces.tolist():
        placements, rows = tetris.placements_with_features(board, piece)
        # The game is over: the same piece begins another.
        if not len(placements) or has_ended(board):
            board = tetris.empty()
            placements, rows = tetris.placements_with_features(board, piece)
        # Too slow: the block falls in the middle, as it came, and nothing is recorded.
        if rng.lognormal(np.log(PLAN.thinking_median), PLAN.thinking_log_sd) > tau:
            missed += 1
            column = (tetris.columns - int(outlines().width[piece, 0])) // 2
            if resting_row(board, piece, 0, column) is None:
                board = tetris.empty()
            board = drop(board, piece, 0, column).board
            continue
        utilities = rows @ player.value(tau) + player.noise(tau) * rng.standard_normal(len(rows))
        rotation, column = placements[int(np.argmax(utilities))].tolist()
        decided.append((board, piece, rotation, column))
        board = drop(board, piece, rotation, column).board
    boards, *placed = zip(*decided, strict=True)
    of_piece, of_rotation, of_column = (np.array(column, np.int64) for column in placed)
    one_game = np.zeros(len(decided), np.int64)
    rollout = Rollout(np.stack(boards), of_piece, of_rotation, of_column, one_game)
    return Condition(tau, tetris.decisions(rollout), missed)


def _player_section(
    player: SimulatedPlayer, conditions: list[Condition], seed: int, repeats: int
) -> tuple[dict[str, Any], Section]:
    """The numbers and the section of one simulated player, beside its true size and direction."""
    units = offered_covariance(conditions[0].decisions)
    posts = _fit_conditions(conditions, units, seed)
    found = _compare_conditions(conditions, posts, units)
    # In units of the noise, a noisier player's value is smaller.
    true_values = np.array([player.value(c.tau) / player.noise(c.tau) for c in conditions])
    true_size, true_direction = size_and_direction(true_values, units)
    found["true_size"], found["true_direction"] = true_size, true_direction
    # how often the truth lies inside its interval
    covered = sum(
        bool(low <= true <= high)
        for (low, high), true in zip(found["size_interval"], true_size, strict=True)
    )
    paper = (
        "as the time allowed grows, more decisions are made and the posterior marginals "
        "concentrate; modes differ between tau = 10 and 5. "
        f"Of 100 blocks {', '.join(map(str, PLAN.made_in_paper))} decisions were made in "
        "10, 5, 3 and 1 seconds."
    )
    ours = (
        f"a player with {player.story}: of {PLAN.blocks * repeats} blocks "
        f"{', '.join(map(str, found['made']))} decisions are made in time "
        f"(missed: {', '.join(f'{c.share:.0%}' for c in conditions)}). Consistency, signal over "
        f"noise, is truly {', '.join(f'{s:.1f}' for s in true_size)}; "
        f"it is found to be {_format_consistency(found)}, and the truth lies inside {covered} of "
        f"{len(conditions)} 90 % intervals. {_format_direction_change(found)}"
    )
    return found, Section(
        player.title,
        paper,
        ours,
        _plot_conditions(player.title, conditions, posts, units, true_size, true_direction),
        "Consistency and direction of the value by time allowed.",
    )


def _fit_conditions(conditions: list[Condition], units: Floats, seed: int) -> list[ChoicePosterior]:
    """The posterior of each condition alone, under a prior without an opinion on direction."""
    # one prior for all, so that conditions can be compared
    prior = prior_for_direction(units)
    return [fit_quietly(c.decisions, ChoiceModel(prior), seed=seed) for c in conditions]


def _format_consistency(found: dict[str, Any]) -> str:
    """Consistency by condition in words; where it rests on few decisions, that is said."""
    parts = []
    for made, size, (low, high) in zip(
        found["made"], found["size"], found["size_interval"], strict=True
    ):
        # few decisions leave the size to the prior
        caveat = ", which is the prior's doing" if made < PLAN.min_decisions else ""
        parts.append(f"{size:.1f} [{low:.1f} - {high:.1f}]{caveat}")
    return ", ".join(parts)


def _format_direction_change(found: dict[str, Any]) -> str:
    """Whether the direction differs from the first condition's by more than chance, in words."""
    changes = zip(found["angle"][1:], found["unsure"][1:], strict=True)
    parts = ", ".join(f"{angle:.0f} (unsure by {unsure:.0f})" for angle, unsure in changes)
    # conditions whose direction differs by more than chance
    different = sum(p < PLAN.p_value for p in found["chance"][1:])
    verdict = (
        "which chance alone would do: no sign of other wishes "
        f"(smallest probability {min(found['chance'][1:]):.2g})"
        if not different
        else f"more than chance alone would do in {different} of {len(found['chance']) - 1}: "
        "other wishes, not only noise"
    )
    return f"The direction turns by {parts} degrees from that of the first condition, {verdict}."


def _compare_conditions(
    conditions: list[Condition], posts: list[ChoicePosterior], units: Floats
) -> dict[str, Any]:
    """Size and direction of each condition, and how far its direction is from the first's.

    "angle" is between mean directions, in degrees, "unsure" the root mean square angle of the
    draws around them, of both together, and "chance" the p-value of no difference.
    """
    parts = [size_and_direction(post.values, units) for post in posts]
    # Angles are measured on the unit sphere, where the units are those of what is offered.
    on_sphere = [
        unit_vectors(post.values, size, units) for post, (size, _) in zip(posts, parts, strict=True)
    ]
    middle = [_unit_vector(u.mean(axis=0)) for u in on_sphere]
    spread = [
        np.sqrt(np.mean(_angle_in_degrees(u @ m) ** 2))
        for u, m in zip(on_sphere, middle, strict=True)
    ]
    return {
        "made": [len(c.decisions) for c in conditions],
        "missed_share": [c.share for c in conditions],
        "size": [float(np.median(size)) for size, _ in parts],
        "size_interval": [np.quantile(size, [0.05, 0.95]).tolist() for size, _ in parts],
        "direction": [np.median(direction, axis=0).tolist() for _, direction in parts],
        "angle": [float(_angle_in_degrees(m @ middle[0])) for m in middle],
        "unsure": [float(np.hypot(s, spread[0])) for s in spread],
        "chance": [1.0, *(direction_p_value(on_sphere[0], u) for u in on_sphere[1:])],
    }


def _unit_vector(direction: Floats) -> Floats:
    """A vector (K,) divided by its length."""
    return np.asarray(direction / np.linalg.norm(direction))


def _angle_in_degrees(cosine: Any) -> Any:
    """The angle with this cosine, which rounding may have moved beyond 1."""
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _plot_conditions(
    title: str,
    conditions: list[Condition],
    posts: list[ChoicePosterior],
    units: Floats,
    true_size: Any,
    true_direction: Any,
) -> Any:
    """A figure of size and direction by condition; the truth is marked where it is known."""
    parts = [size_and_direction(post.values, units) for post in posts]
    # one panel for the size, one for each feature of the direction
    panels: dict[str, Any] = {"consistency": [size for size, _ in parts]}
    truths: dict[str, Any] = {"consistency": true_size}
    for k, name in enumerate(PAPER_FEATURES):
        panels[f"direction: {name}"] = [direction[:, k] for _, direction in parts]
        truths[f"direction: {name}"] = None if true_direction is None else true_direction[:, k]
    labels = [f"{c.tau:g} s ({len(c.decisions)} made, {c.share:.0%} missed)" for c in conditions]
    return plot_by_condition(
        title,
        labels,
        panels,
        truths,
        "Consistency is signal over noise; the direction is what is wanted, "
        "in units of each feature.",
    )


def _person_section(games: Games, seed: int, quick: bool) -> tuple[dict[str, Any], Section]:
    """The numbers and the section of a person's quick decisions.

    The times allowed are quantiles of the times that the person took, rounded up to a tenth of a
    second.
    """
    # Only straight drops are decisions among all that the model offers.
    straight = Games(games.straight[: 200 if quick else None], games.rows, games.columns)
    times = np.ceil(10.0 * np.quantile(straight.seconds, PLAN.person_quantiles)) / 10.0
    conditions = []
    # Equal times would be the same condition twice.
    for tau in dict.fromkeys(times.tolist()):
        within = straight.within(tau)
        conditions.append(Condition(tau, within.decisions(), len(straight) - len(within)))
    units = offered_covariance(conditions[0].decisions)
    posts = _fit_conditions(conditions, units, seed)
    found = _compare_conditions(conditions, posts, units) | {"taus": [c.tau for c in conditions]}
    title = "A person's quick decisions"
    return found, Section(
        title,
        "a person was recorded under four deadlines.",
        f"an emulation: of {len(straight):,} decisions made without a deadline we keep those that "
        f"took at most {', '.join(f'{c.tau:g}' for c in conditions)} seconds: "
        f"{', '.join(map(str, found['made']))}. That also selects easy decisions, so a difference "
        f"is no proof of what pressure does. Consistency is {_format_consistency(found)}. "
        f"{_format_direction_change(found)}",
        _plot_conditions(title, conditions, posts, units, None, None),
        "Consistency and direction by how quickly decisions were made.",
    )
