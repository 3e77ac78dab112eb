"""What is learnt from one game, decision by decision, and the understudy that plays beside it on the same pieces.

In turn t the understudy knows the decisions before t. It places piece t on a board of its own; it is asked what it would do on the
player's board; and then it learns what the player did. Its value is a draw from the posterior, with noise of its own at
every placement, and its generator follows from the game's seed and the turn: fed the same moves again, it does the same again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from understudy._arrays import Cells, Floats
from understudy.engines.sequential import chances
from understudy.priors import Gaussian
from understudy.stream import Stream
from understudy.studio.densities import density, short
from understudy.studio.games import COLUMNS, ROWS, WORLD, Fall, Game, Move, as_texts, fall, occupied
from understudy.worlds.tetris import FEATURES, PIECES

PRIOR_VARIANCE = 2500.0  # as in the paper's experiments with people
JUDGES = 200  # particles


@dataclass(frozen=True, eq=False)
class Learnt:
    """What is known after so many moves: the answer for a page, and particles to play with. Never changed, only replaced."""

    turn: int
    answer: dict[str, Any]
    particles: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Beside:
    """The understudy's board after one turn, and what it placed in it; nothing once its board was full."""

    letters: Cells
    lines: int
    over: bool
    last: dict[str, Any] | None


class Pupil:
    """Learns one game. Belongs to the learner's thread, except for `learnt`, `beside` and `others`, which others may read."""

    def __init__(self, seed: int, most: int | None, particles: int) -> None:
        self.game = Game(seed, most)
        self.stream = Stream(FEATURES, prior=Gaussian(PRIOR_VARIANCE), particles=particles, seed=seed % 2**32)
        self.history: list[dict[str, Any]] = []
        self.beside: list[Beside] = []
        self.others: dict[
            int, tuple[int, int]
        ] = {}  # turn -> the understudy's placement, where it differs from the player's
        self.learnt = self.publish()

    def learn(self, move: Move) -> None:
        """One move more."""
        turn, piece = move.turn, self.game.piece_of(move.turn)
        rng = np.random.default_rng([self.game.seed, turn])
        self.beside.append(self._beside(rng, piece))
        if not move.missed:
            where, rows = self.game.offer()
            guess = choose(rng, rows, self.stream.draw(rng))
            chosen = int(np.flatnonzero((where[:, 0] == move.rotation) & (where[:, 1] == move.column))[0])
            hit = self._likeliest(rng, rows) == chosen
            if guess != chosen:
                self.others[turn] = (int(where[guess, 0]), int(where[guess, 1]))
            before = self.stream.log_evidence
            self.stream.update(rows, chosen)
            chance = float(np.exp(self.stream.log_evidence - before))  # what it was given before it was learnt
            self.history.append({"turn": turn, "probability": short(chance), "hit": hit})
        self.game.make(move)

    def _likeliest(self, rng: np.random.Generator, rows: Floats) -> int:
        """The placement that is most likely next, judged by some of the particles: all of them take most of the time there is."""
        picked = rng.choice(len(self.stream.weights), JUDGES, p=self.stream.weights)
        return int(np.argmax(chances(rows, self.stream.particles[picked]).mean(axis=0)))

    def _beside(self, rng: np.random.Generator, piece: int) -> Beside:
        before = self.beside[-1] if self.beside else Beside(np.zeros((ROWS, COLUMNS), np.uint8), 0, False, None)
        placed = None if before.over else place(rng, before.letters, piece, self.stream.draw(rng))
        if placed is None:
            return Beside(before.letters, before.lines, True, None)
        landed, last = placed
        return Beside(landed.letters, before.lines + landed.cleared, bool(landed.letters[0].any()), last)

    def publish(self) -> Learnt:
        """What is known now."""
        s = self.stream
        particles, weights = np.array(s.particles), np.array(s.weights)
        misses = sum(not past["hit"] for past in self.history)
        answer = {
            "turn": self.game.turn, "decisions": len(self.history), "names": list(FEATURES),
            "mean": [short(m) for m in s.mean], "sd": [short(d) for d in s.sd],
            "densities": [density(particles[:, k], weights) for k in range(len(FEATURES))],
            "history": list(self.history), "error": misses / len(self.history) if self.history else None,
            "log_evidence": short(s.log_evidence), "effective": short(s.effective),
        }  # fmt: skip
        self.learnt = Learnt(self.game.turn, answer, particles, weights)
        return self.learnt


@cache
def rehearse() -> None:
    """Learn a few moves of nobody's, once, so that all compiled loops are ready when somebody comes."""
    pupil = Pupil(0, None, 100)
    for turn in range(12):
        rotation, column, _ = pupil.game.placements[turn % 5].tolist()
        pupil.learn(Move(turn, rotation, column, False, None))
    pupil.publish()


def choose(rng: np.random.Generator, rows: Floats, value: Floats) -> int:
    """The placement with the largest utility: rows @ value plus noise."""
    return int(np.argmax(rows @ value + rng.standard_normal(len(rows))))


def place(rng: np.random.Generator, letters: Cells, piece: int, value: Floats) -> tuple[Fall, dict[str, Any]] | None:
    """Place a piece as one who values features so; None where there is no room."""
    where, rows = WORLD.offer(occupied(letters), piece)
    if not len(where):
        return None
    rotation, column = where[choose(rng, rows, value)].tolist()
    landed = fall(letters, piece, rotation, column)
    assert landed is not None
    return landed, {"piece": PIECES[piece], "rotation": rotation, "column": column, "cells": landed.cells}


def play_on(learnt: Learnt, letters: Cells, lines: int, moves: int, seed: int) -> list[dict[str, Any]]:
    """The understudy plays on from a board, with pieces of its own and a fresh draw from the posterior for each."""
    rng, story = np.random.default_rng(seed), []
    for _ in range(moves):
        piece = int(rng.integers(len(PIECES)))
        value = learnt.particles[rng.choice(len(learnt.weights), p=learnt.weights)]
        placed = place(rng, letters, piece, value)
        if placed is None:
            break
        landed, last = placed
        letters, lines = landed.letters, lines + landed.cleared
        story.append({**last, "board": as_texts(letters), "lines": lines})
        if letters[0].any():
            break
    return story
