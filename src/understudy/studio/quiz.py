"""Who moved? A position of the player's and a placement, the player's or the understudy's: a blind test with its score kept.

Only turns in which the two differ are asked, each once. The understudy's placement is what it would have done before it learnt
what the player did.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from understudy.studio import tables
from understudy.studio.faults import Refusal
from understudy.studio.games import Game, Move, as_texts, fall
from understudy.studio.settings import new_token
from understudy.studio.storage import Facts, Storage
from understudy.studio.writer import Job
from understudy.worlds.tetris import PIECES

q = tables.questions.c


@dataclass(frozen=True)
class Question:
    """A placement in a turn of a game, and who made it."""

    id: str
    game: str
    turn: int
    mover: str
    rotation: int
    column: int


def score(connection: Connection, game: str) -> dict[str, int]:
    """How many questions about a game were answered, and how many rightly."""
    answered = select(func.count()).where(q.game == game, q.guess.is_not(None))
    return {
        "asked": connection.execute(answered).scalar_one(),
        "right": connection.execute(answered.where(q.guess == q.mover)).scalar_one(),
    }


def next_question(
    storage: Storage, facts: Facts, moves: list[Move], others: dict[int, tuple[int, int]]
) -> tuple[Question, dict[str, Any]]:
    """A question that was not asked yet, and the page's view of it; refused while there is none."""
    with storage.reading() as connection:
        known = set(connection.execute(select(q.turn).where(q.game == facts.id)).scalars())
        so_far = score(connection, facts.id)
    open_turns = sorted(set(others) - known)
    if not open_turns:
        raise Refusal(409, "there is no question now: the understudy has agreed with you, or all was asked; play on")
    turn, own = secrets.choice(open_turns), secrets.randbelow(2) == 0
    rotation, column = (moves[turn].rotation, moves[turn].column) if own else others[turn]
    question = Question(new_token(), facts.id, turn, "player" if own else "understudy", rotation, column)
    game = Game(facts.seed, facts.pieces, moves[:turn])
    landed = fall(game.letters, game.piece_of(turn), rotation, column)
    assert landed is not None
    return question, {
        "question": question.id, "board": as_texts(game.letters), "piece": PIECES[game.piece_of(turn)], "cells": landed.cells,
        **so_far,
    }  # fmt: skip


def add_question(question: Question) -> Job:
    """Keep a question, so that it can be answered once."""
    return lambda connection: connection.execute(insert(tables.questions), {**vars(question), "guess": None})


def answer(game: str, question: str, guess: str) -> Job:
    """Take a guess, once; gives who moved and the score."""

    def job(connection: Connection) -> dict[str, Any] | None:
        which = (q.id == question) & (q.game == game)
        taken = connection.execute(
            update(tables.questions).where(which, q.guess.is_(None)).values(guess=guess)
        ).rowcount
        mover = connection.execute(select(q.mover).where(which)).scalar_one_or_none()
        if mover is None:
            return None
        so_far = score(connection, game)
        return {
            "taken": bool(taken), "right": guess == mover, "mover": mover,
            "asked": so_far["asked"], "right_so_far": so_far["right"],
        }  # fmt: skip

    return job
