"""The quiz "Who moved?": a blind test, with its score kept.

A question shows a position of the player's and a placement, which is the player's or the
understudy's. Only turns in which the two differ are asked, each once. The understudy's placement is
what it would have done before it learnt what the player did.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from revealed.environments.tetris import PIECES
from revealed.studio.game.game import Game, Move, board_text, drop_piece
from revealed.studio.server.errors import RequestError
from revealed.studio.server.settings import new_token
from revealed.studio.storage import tables
from revealed.studio.storage.database import GameRecord, Storage
from revealed.studio.storage.writer import Job

questions = tables.questions.c


@dataclass(frozen=True)
class Question:
    """A placement in a turn of a game; `mover` is who made it, "player" or "understudy"."""

    id: str
    game: str
    turn: int
    mover: str
    rotation: int
    column: int


def read_score(connection: Connection, game: str) -> dict[str, int]:
    """How many questions about a game were answered, and how many rightly."""
    # Only questions with a guess count: one may be asked and never answered.
    answered = select(func.count()).where(questions.game == game, questions.guess.is_not(None))
    right = answered.where(questions.guess == questions.mover)
    return {
        "asked": connection.execute(answered).scalar_one(),
        "right": connection.execute(right).scalar_one(),
    }


def draw_question(
    storage: Storage,
    record: GameRecord,
    moves: list[Move],
    differing: dict[int, tuple[int, int]],
) -> tuple[Question, dict[str, Any]]:
    """A question that was not asked yet, and its payload for the page; refused while there is none.

    `differing` is the understudy's (rotation, column) by turn, where it differs from the player's.
    Turn and mover are drawn so that they cannot be foreseen: a fair coin decides whose placement
    is shown.
    """
    with storage.reading() as connection:
        asked_turns = select(questions.turn).where(questions.game == record.id)
        asked = set(connection.execute(asked_turns).scalars())
        score = read_score(connection, record.id)
    # Sorted, so that the choice does not depend on the order of a set.
    open_turns = sorted(set(differing) - asked)
    if not open_turns:
        raise RequestError(
            409,
            "there is no question now: the understudy has agreed with you, "
            "or all was asked; play on",
        )
    # Not from a seed: whoever knows the game must not be able to work out the answer.
    turn, is_player = secrets.choice(open_turns), secrets.randbelow(2) == 0
    rotation, column = (moves[turn].rotation, moves[turn].column) if is_player else differing[turn]
    mover = "player" if is_player else "understudy"
    question = Question(new_token(), record.id, turn, mover, rotation, column)
    # The position is the player's own game up to that turn.
    game = Game(record.seed, record.pieces, moves[:turn])
    dropped = drop_piece(game.letters, game.piece_at(turn), rotation, column)
    assert dropped is not None
    return question, {
        "question": question.id,
        "board": board_text(game.letters),
        "piece": PIECES[game.piece_at(turn)],
        "cells": dropped.cells,
        **score,
    }


def add_question(question: Question) -> Job:
    """A job that keeps a question, so that it can be answered once."""
    return lambda connection: connection.execute(
        insert(tables.questions), {**vars(question), "guess": None}
    )


def record_guess(game: str, question: str, guess: str) -> Job:
    """A job that takes a guess, once; it returns who moved and the score, or None.

    "taken" in what it returns says whether this was the first guess. The condition that there is
    none yet is part of the update, so of two at the same moment only one counts.
    """

    def job(connection: Connection) -> dict[str, Any] | None:
        this_question = (questions.id == question) & (questions.game == game)
        # Only where no guess was taken yet.
        taken = connection.execute(
            update(tables.questions)
            .where(this_question, questions.guess.is_(None))
            .values(guess=guess)
        ).rowcount
        # The mover is read in any case: a second guess is told from a question that is not there.
        mover = connection.execute(
            select(questions.mover).where(this_question)
        ).scalar_one_or_none()
        if mover is None:
            return None
        # In the same transaction, so that the score includes this guess.
        score = read_score(connection, game)
        return {
            "taken": bool(taken),
            "right": guess == mover,
            "mover": mover,
            "asked": score["asked"],
            "right_so_far": score["right"],
        }

    return job
