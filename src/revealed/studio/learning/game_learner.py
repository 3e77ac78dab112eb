"""What is learnt from one game, decision by decision, and the understudy on the same pieces.

In turn t the understudy knows the decisions before t. It places piece t on a board of its own; it
is asked what it would do on the player's board; and then it learns what the player did. Its value
is a draw from the posterior, with noise of its own at every placement, and its generator follows
from the game's seed and the turn: given the same moves again, it does the same again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from revealed._types import Cells, Floats
from revealed.environments.tetris import PAPER_FEATURES, PIECES
from revealed.models.choice import ChoiceModel
from revealed.models.priors import Normal
from revealed.online import OnlineLearner
from revealed.samplers.particles import choice_probabilities
from revealed.studio.game.game import (
    TETRIS,
    Drop,
    Game,
    Move,
    board_text,
    drop_piece,
    occupied,
)
from revealed.studio.learning.density import density_curve, round_to_six_digits


@dataclass(frozen=True)
class GameLearnerSettings:
    """How a game is learnt.

    `prior_sd`: of each coefficient, the paper's in its experiments with people (variance 2500);
    smaller ones pull the first posteriors of a game towards zero. `prediction_particles`: how many
    particles predict the most likely placement; all 1,000 would take most of the time of a move,
    and below a hundred the prediction changes with the particles picked.
    """

    prior_sd: float
    prediction_particles: int


SETTINGS = GameLearnerSettings(prior_sd=50.0, prediction_particles=200)


@dataclass(frozen=True, eq=False)
class LearnedState:
    """What is known after the first `turn` moves. Never changed, only replaced.

    `payload` is the JSON for a page; `particles` (N, K) and `weights` (N,) are the posterior, to
    draw values from.
    """

    turn: int
    payload: dict[str, Any]
    particles: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class UnderstudyBoard:
    """The understudy's board after one turn.

    `last` is what it placed, as JSON for a page; None once its board was full (`over`).
    """

    letters: Cells
    lines: int
    over: bool
    last: dict[str, Any] | None


class GameLearner:
    """Learns one game, and lets the understudy play beside it.

    Belongs to the learner's thread, except for `learned_state`, `understudy_boards` (one a turn)
    and `differing_placements`, which other threads may read. The latter is the understudy's
    (rotation, column) on the player's board by turn, where it differs from the player's.
    """

    def __init__(self, seed: int, max_pieces: int | None, particles: int) -> None:
        self.game = Game(seed, max_pieces)
        self.posterior = OnlineLearner(
            ChoiceModel(prior=Normal(SETTINGS.prior_sd)),
            PAPER_FEATURES,
            particles=particles,
            seed=seed % 2**32,
        )
        # One entry a decision, for the chart of predictions.
        self.history: list[dict[str, Any]] = []
        self.understudy_boards: list[UnderstudyBoard] = []
        self.differing_placements: dict[int, tuple[int, int]] = {}
        self.learned_state = self.publish()

    def learn(self, move: Move) -> None:
        """Let the understudy play a turn, then learn the player's move of it.

        The order is part of what is claimed: everything the understudy does in this turn, and the
        probability given to the player's move, comes from the posterior before that move.
        """
        turn, piece = move.turn, self.game.piece_at(move.turn)
        # A generator of this turn's own: learning the game again repeats every draw.
        rng = np.random.default_rng([self.game.seed, turn])
        self.understudy_boards.append(self._play_understudy(rng, piece))
        if not move.missed:
            placements, rows = self.game.offered_features()
            # What it would do on the player's board, with a fresh draw of the value.
            understudy_choice = choose_placement(rng, rows, self.posterior.draw(rng))
            # The player's move as a position among the offered placements.
            chosen = int(
                np.flatnonzero(
                    (placements[:, 0] == move.rotation) & (placements[:, 1] == move.column)
                )[0]
            )
            # Whether the prediction was right, by the posterior predictive probabilities.
            hit = self._most_likely(rng, rows) == chosen
            if understudy_choice != chosen:
                rotation, column = placements[understudy_choice].tolist()
                self.differing_placements[turn] = (rotation, column)
            # The evidence grows by the probability that the move was given before it was learnt.
            evidence_before = self.posterior.log_evidence
            self.posterior.update(rows, chosen)
            probability = float(np.exp(self.posterior.log_evidence - evidence_before))
            self.history.append(
                {"turn": turn, "probability": round_to_six_digits(probability), "hit": hit}
            )
        self.game.apply(move)

    def _most_likely(self, rng: np.random.Generator, rows: Floats) -> int:
        """The most likely placement of those with rows (M, K), by some of the particles."""
        weights = self.posterior.weights
        # Resampling by weight makes a plain mean over particles right.
        picked = rng.choice(len(weights), SETTINGS.prediction_particles, p=weights)
        particles = self.posterior.particles[picked]
        return int(np.argmax(choice_probabilities(rows, particles).mean(axis=0)))

    def _play_understudy(self, rng: np.random.Generator, piece: int) -> UnderstudyBoard:
        """The understudy's board after it has placed a piece as it believes the player would."""
        # The understudy starts on an empty board, and stays where it is once that is full.
        empty = np.zeros((TETRIS.rows, TETRIS.columns), np.uint8)
        before = (
            self.understudy_boards[-1]
            if self.understudy_boards
            else UnderstudyBoard(empty, 0, False, None)
        )
        placed = (
            None
            if before.over
            else place_piece(rng, before.letters, piece, self.posterior.draw(rng))
        )
        if placed is None:
            return UnderstudyBoard(before.letters, before.lines, True, None)
        dropped, last = placed
        return UnderstudyBoard(
            dropped.letters, before.lines + dropped.cleared, bool(dropped.letters[0].any()), last
        )

    def publish(self) -> LearnedState:
        """What is known now.

        Also kept as `learned_state`, in one assignment: other threads see all of it or nothing.
        """
        posterior = self.posterior
        # Copies: the learner goes on to change its own while pages read these.
        particles, weights = np.array(posterior.particles), np.array(posterior.weights)
        # The prediction error: how often the most likely placement was not the one made.
        wrong = sum(not past["hit"] for past in self.history)
        payload = {
            "turn": self.game.turn,
            "decisions": len(self.history),
            "names": list(PAPER_FEATURES),
            "mean": [round_to_six_digits(m) for m in posterior.mean],
            "sd": [round_to_six_digits(d) for d in posterior.sd],
            "densities": [
                density_curve(particles[:, k], weights) for k in range(len(PAPER_FEATURES))
            ],
            "history": list(self.history),
            "error": wrong / len(self.history) if self.history else None,
            "log_evidence": round_to_six_digits(posterior.log_evidence),
            "effective": round_to_six_digits(posterior.effective_sample_size),
        }
        self.learned_state = LearnedState(self.game.turn, payload, particles, weights)
        return self.learned_state


@cache
def precompile() -> None:
    """Learn a few moves of a game that nobody plays, once, so that all compiled loops are ready.

    Twelve moves are enough for the particles to be moved at least once, which compiles that too.
    """
    # Few particles: compiled loops do not depend on their number.
    learner = GameLearner(0, None, 100)
    for turn in range(12):
        rotation, column, _ = learner.game.placements[turn % 5].tolist()
        learner.learn(Move(turn, rotation, column, False, None))
    learner.publish()


def choose_placement(rng: np.random.Generator, rows: Floats, value: Floats) -> int:
    """The placement with the largest utility: rows @ value plus standard normal noise."""
    return int(np.argmax(rows @ value + rng.standard_normal(len(rows))))


def place_piece(
    rng: np.random.Generator, letters: Cells, piece: int, value: Floats
) -> tuple[Drop, dict[str, Any]] | None:
    """A piece placed by a player with this value (K,): at rest, and as JSON for a page.

    None where no placement is legal.
    """
    placements, rows = TETRIS.placements_with_features(occupied(letters), piece)
    if not len(placements):
        return None
    rotation, column = placements[choose_placement(rng, rows, value)].tolist()
    dropped = drop_piece(letters, piece, rotation, column)
    assert dropped is not None
    return dropped, {
        "piece": PIECES[piece],
        "rotation": rotation,
        "column": column,
        "cells": dropped.cells,
    }


def continue_game(
    state: LearnedState, letters: Cells, lines: int, moves: int, seed: int
) -> list[dict[str, Any]]:
    """The moves of the understudy as it plays on from a board, at most so many, until it is full.

    It has pieces of its own, from the seed, and draws a fresh value from the posterior for each.
    """
    rng, played = np.random.default_rng(seed), []
    for _ in range(moves):
        # The order of draws is fixed: piece, value, then the noise of the placement.
        piece = int(rng.integers(len(PIECES)))
        value = state.particles[rng.choice(len(state.weights), p=state.weights)]
        placed = place_piece(rng, letters, piece, value)
        if placed is None:
            break
        dropped, last = placed
        letters, lines = dropped.letters, lines + dropped.cleared
        played.append({**last, "board": board_text(letters), "lines": lines})
        # A piece in the top row ends the game.
        if letters[0].any():
            break
    return played
