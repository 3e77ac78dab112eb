"""What is learnt from one game, decision by decision, and the understudy on the same pieces.

In turn t the understudy knows the decisions before t. It places piece t on a board of its own; it
is asked what it would do on the player's board; and then it learns what the player did. Its value
is a draw from the posterior, with noise of its own at every placement and, where lapses are learnt,
lapses at the rate of that draw; its generator follows from the game's seed and the turn: given the
same moves again, it does the same again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Cells, Floats
from revealed.environments.tetris import PAPER_FEATURES, PIECES
from revealed.models.choice import ChoiceModel
from revealed.models.lapse import KnownLapse
from revealed.models.noise import Noise, NormalNoise, without_lapses
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
from revealed.studio.learning.lapses import lapse_payload


@dataclass(frozen=True)
class GameLearnerSettings:
    """How a game is learnt.

    `prior_sd`: of each coefficient, the paper's in its experiments with people (variance 2500);
    smaller ones pull the first posteriors of a game towards zero. `prediction_particles`: how many
    particles predict the most likely placement; all 1,000 would take most of the time of a move,
    and below a hundred the prediction changes with the particles picked. They also say which
    decisions were probably lapses.
    """

    prior_sd: float
    prediction_particles: int


SETTINGS = GameLearnerSettings(prior_sd=50.0, prediction_particles=200)


@dataclass(frozen=True, eq=False)
class LearnedState:
    """What is known after the first `turn` moves. Never changed, only replaced.

    `payload` is the JSON for a page; `particles` (N, K), their `noise` and `weights` (N,) are the
    posterior, to draw players from.
    """

    turn: int
    payload: dict[str, Any]
    particles: Floats
    weights: Floats
    noise: Noise | KnownLapse

    def draw_player(self, rng: np.random.Generator) -> Player:
        """One player that may have made the moves so far."""
        one = int(rng.choice(len(self.weights), p=self.weights))
        if not isinstance(self.noise, KnownLapse):
            return Player(self.particles[one], self.noise, 0.0)
        return Player(self.particles[one], self.noise.noise, float(self.noise.rate[one]))


class Player(NamedTuple):
    """Somebody with a value (K,), with this noise, who places blindly at this rate."""

    value: Floats
    noise: Noise
    lapse_rate: float


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
    (rotation, column) on the player's board by turn, where it differs from the player's. noise: of
    the player, perhaps with lapses; normal where none is given.
    """

    def __init__(
        self,
        seed: int,
        max_pieces: int | None,
        particles: int,
        noise: Noise | None = None,
    ) -> None:
        self.game = Game(seed, max_pieces)
        self.posterior = OnlineLearner(
            ChoiceModel(prior=Normal(SETTINGS.prior_sd), noise=noise or NormalNoise()),
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
            understudy_choice = choose_placement(rng, rows, self._state().draw_player(rng))
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
        particles, noise = self.posterior.particles[picked], self._noise
        found = choice_probabilities(rows, particles, without_lapses(noise).law())
        if isinstance(noise, KnownLapse):
            found = noise.of_draws(picked).mix(found, np.full(found.shape, 1.0 / len(rows)))
        return int(np.argmax(found.mean(axis=0)))

    @property
    def _noise(self) -> Noise | KnownLapse:
        """The noise, with the rates of lapses of all particles where they are learnt."""
        found = self.posterior.known_noise()
        assert isinstance(found, Noise | KnownLapse)
        return found

    def _state(self) -> LearnedState:
        """What is known now, without what a page shows of it."""
        posterior = self.posterior
        return LearnedState(self.game.turn, {}, posterior.particles, posterior.weights, self._noise)

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
            else place_piece(rng, before.letters, piece, self._state().draw_player(rng))
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
        noise = self._noise
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
            "lapse": self._lapses(noise) if isinstance(noise, KnownLapse) else None,
        }
        self.learned_state = LearnedState(self.game.turn, payload, particles, weights, noise)
        return self.learned_state

    def _lapses(self, noise: KnownLapse) -> dict[str, Any]:
        """The rate of lapses and which decisions they probably were, as JSON for a page.

        By particles that depend on the turn alone: publishing again gives the same again.
        """
        rng = np.random.default_rng([self.game.seed, self.game.turn, len(self.history)])
        weights = self.posterior.weights
        picked = rng.choice(len(weights), SETTINGS.prediction_particles, p=weights)
        return lapse_payload(self.posterior, noise, picked)


@cache
def precompile(noise: Noise | None = None) -> None:
    """Learn a few moves of a game that nobody plays, once, so that all compiled loops are ready.

    Twelve moves are enough for the particles to be moved at least once, which compiles that too.
    """
    # Few particles: compiled loops do not depend on their number.
    learner = GameLearner(0, None, 100, noise)
    for turn in range(12):
        rotation, column, _ = learner.game.placements[turn % 5].tolist()
        learner.learn(Move(turn, rotation, column, False, None))
    learner.publish()


def choose_placement(rng: np.random.Generator, rows: Floats, player: Player) -> int:
    """The placement with the largest utility, rows @ value plus noise; or any, by a lapse."""
    if player.lapse_rate > 0.0 and rng.random() < player.lapse_rate:
        return int(rng.integers(len(rows)))
    return int(np.argmax(rows @ player.value + player.noise.sample(rng, len(rows))))


def place_piece(
    rng: np.random.Generator, letters: Cells, piece: int, player: Player
) -> tuple[Drop, dict[str, Any]] | None:
    """A piece placed by this player: at rest, and as JSON for a page.

    None where no placement is legal.
    """
    placements, rows = TETRIS.placements_with_features(occupied(letters), piece)
    if not len(placements):
        return None
    rotation, column = placements[choose_placement(rng, rows, player)].tolist()
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

    It has pieces of its own, from the seed, and draws a fresh player from the posterior for each.
    """
    rng, played = np.random.default_rng(seed), []
    for _ in range(moves):
        # The order of draws is fixed: piece, player, then the placement.
        piece = int(rng.integers(len(PIECES)))
        placed = place_piece(rng, letters, piece, state.draw_player(rng))
        if placed is None:
            break
        dropped, last = placed
        letters, lines = dropped.letters, lines + dropped.cleared
        played.append({**last, "board": board_text(letters), "lines": lines})
        # A piece in the top row ends the game.
        if letters[0].any():
            break
    return played
