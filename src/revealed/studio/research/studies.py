"""Studies: conditions, participants, and how far they are.

A study's pieces follow from one seed, so all participants meet the same ones in every condition, as
the paper's player did (section 5.2, Experiment 3). Nobody but the researcher learns that seed, or
anything of another participant.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, cast, func, insert, select, update

from revealed.studio.game.game import Move
from revealed.studio.server.errors import RequestError
from revealed.studio.server.schemas import NewStudy
from revealed.studio.server.settings import new_token
from revealed.studio.storage import tables
from revealed.studio.storage.database import GameRecord, Storage, moves_of
from revealed.studio.storage.writer import Job

# Participants of one study. Its overview, which the page reads every few seconds, has a row for
# each; more would make the page slow, and are better invited to a second study.
MAX_PARTICIPANTS = 2000
studies, people = tables.studies.c, tables.participants.c
games, moves = tables.games.c, tables.moves.c


@dataclass(frozen=True)
class Study:
    """A study as it was made; each condition has `name`, `deadline_seconds` and `pieces`."""

    id: str
    name: str
    conditions: list[dict[str, Any]]
    seed: int
    ended: bool
    created: float


@dataclass(frozen=True)
class StudyGame:
    """One participant's game in one condition; `participant` is the number, not the link."""

    game: str
    participant: int
    condition: int
    done: bool


def add_study(wanted: NewStudy) -> tuple[str, Job]:
    """The id of a new study, and the job that begins it with its participants."""
    # The id is made here, so that the answer need not read it back.
    study = new_token()
    values = {
        "id": study,
        "name": wanted.name,
        "conditions": json.dumps([condition.model_dump() for condition in wanted.conditions]),
        "seed": secrets.randbits(53) if wanted.seed is None else wanted.seed,
        "ended": False,
        "created": time.time(),
    }

    def job(connection: Connection) -> None:
        connection.execute(insert(tables.studies), values)
        _invite(connection, study, 1, wanted.participants)

    return study, job


def add_participants(study: str, count: int) -> Job:
    """A job that invites more participants; it returns a sentence where that is refused."""

    # Checked inside the transaction, against what is stored at that moment.
    def job(connection: Connection) -> str | None:
        if connection.execute(select(studies.ended).where(studies.id == study)).scalar_one():
            return "the study has ended, so nobody can be added"
        # Numbers go on from the last one; the unique constraint guards against two at once.
        last_number = select(func.max(people.number)).where(people.study == study)
        last = connection.execute(last_number).scalar_one()
        if last + count > MAX_PARTICIPANTS:
            return f"a study has at most {MAX_PARTICIPANTS} participants, and this one has {last}"
        _invite(connection, study, last + 1, count)
        return None

    return job


def _invite(connection: Connection, study: str, first: int, count: int) -> None:
    """Add participants with numbers from `first` on, each with a link of its own."""
    # The token in a link is the participant's id: who has it may play, and nobody else.
    new = [{"id": new_token(), "study": study, "number": n} for n in range(first, first + count)]
    connection.execute(insert(tables.participants), new)


def end_study(study: str) -> Job:
    """A job that ends a study: no more games and moves."""
    return lambda connection: connection.execute(
        update(tables.studies).where(studies.id == study).values(ended=True)
    )


def find_study(storage: Storage, study: str) -> Study:
    """A study by its id; RequestError where there is none.

    Reading is done from any thread; `Unavailable` where the database is away.
    """
    with storage.reading() as connection:
        query = select(tables.studies).where(studies.id == study)
        found = connection.execute(query).one_or_none()
    if found is None:
        raise RequestError(404, "there is no such study")
    return _study_from_row(found)


def _study_from_row(row: Any) -> Study:
    """A study from its row in the database."""
    conditions = _read_conditions(row.conditions)
    return Study(**{**row._mapping, "conditions": conditions, "ended": bool(row.ended)})


def _read_conditions(text: str) -> list[dict[str, Any]]:
    """The conditions of a study from their JSON.

    Studies made before the field was called `deadline_seconds` have it under `tau`.
    """
    # Other fields are left as they are.
    conditions: list[dict[str, Any]] = json.loads(text)
    return [
        {"deadline_seconds" if name == "tau" else name: value for name, value in condition.items()}
        for condition in conditions
    ]


def list_studies(storage: Storage) -> list[dict[str, Any]]:
    """All studies as JSON, the newest first.

    Each with its id, name, conditions, the number of its participants, and whether it has ended.
    """
    participants = select(func.count()).where(people.study == studies.id).scalar_subquery()
    query = select(tables.studies, participants.label("participants"))
    with storage.reading() as connection:
        rows = connection.execute(query.order_by(studies.created.desc(), studies.id)).all()
    return [
        {
            "study": row.id,
            "name": row.name,
            "conditions": _read_conditions(row.conditions),
            "ended": bool(row.ended),
            "participants": row.participants,
        }
        for row in rows
    ]


def study_overview(storage: Storage, study: str) -> dict[str, Any]:
    """How far a study is, participant by participant and condition by condition, as JSON."""
    known = find_study(storage, study)
    # The sum of no rows is NULL, and booleans are not added up by PostgreSQL.
    misses = func.coalesce(func.sum(cast(moves.missed, Integer)), 0)
    # One row for each game of the study, with the number of its moves and missed deadlines.
    joined = tables.games.join(tables.participants, games.participant == people.id).outerjoin(
        tables.moves, moves.game == games.id
    )
    counts = (
        select(
            games.participant, games.condition, games.id, games.done, func.count(moves.turn), misses
        )
        .select_from(joined)
        .where(people.study == study)
        .group_by(games.id, games.participant, games.condition, games.done)
    )
    # Participants without any game have rows of zeros.
    invited = select(people.id, people.number).where(people.study == study)
    with storage.reading() as connection:
        participants = connection.execute(invited.order_by(people.number)).all()
        rows = connection.execute(counts).all()
    # Games that were not begun have no row.
    played = {(token, condition): rest for token, condition, *rest in rows}
    return {
        "study": known.id,
        "name": known.name,
        "conditions": known.conditions,
        "ended": known.ended,
        "participants": [
            _participant_progress(token, number, known.conditions, played)
            for token, number in participants
        ],
    }


def _participant_progress(
    token: str, number: int, conditions: list[dict[str, Any]], played: dict[Any, Any]
) -> dict[str, Any]:
    """How far one participant is, as JSON.

    `played` maps (token, position of the condition) to game, reason of its end, moves and misses.
    """
    parts = []
    for position, condition in enumerate(conditions):
        # A game that was not begun has no moves.
        game, done, made, misses = played.get((token, position), (None, None, 0, 0))
        parts.append(
            {
                "name": condition["name"],
                "state": _progress_word(game, bool(done)),
                "moves": made,
                "misses": int(misses),
                "game": game,
            }
        )
    return {
        "number": number,
        "link": f"/p/{token}",
        "done": sum(part["state"] == "done" for part in parts),
        "moves": sum(part["moves"] for part in parts),
        "misses": sum(part["misses"] for part in parts),
        "conditions": parts,
    }


def _progress_word(game: str | None, done: bool) -> str:
    """How far a game of a study is: "to come" before there is one, "playing", or "done"."""
    return "done" if done else "playing" if game else "to come"


def find_participant(storage: Storage, token: str) -> tuple[Study, dict[int, tuple[str, bool]]]:
    """A participant's study, and by condition the game and whether it is done.

    RequestError where no participant has this token.
    """
    with storage.reading() as connection:
        joined = tables.studies.join(tables.participants, people.study == studies.id)
        # The participant's token leads to the study; the study's id is never shown.
        row = connection.execute(
            select(tables.studies).select_from(joined).where(people.id == token)
        ).one_or_none()
        if row is None:
            raise RequestError(404, "this link is not known; ask whoever gave it to you")
        own_games = select(games.condition, games.id, games.done)
        rows = connection.execute(own_games.where(games.participant == token)).all()
    # A game is done when the reason of its end was written with its last move.
    by_condition = {condition: (game, done is not None) for condition, game, done in rows}
    return _study_from_row(row), by_condition


def participant_view(storage: Storage, token: str) -> dict[str, Any]:
    """What a participant sees of a study, as JSON: the own games, and nothing of anybody else."""
    study, own_games = find_participant(storage, token)
    parts = []
    for position, condition in enumerate(study.conditions):
        game, done = own_games.get(position, (None, False))
        parts.append({**condition, "state": _progress_word(game, done), "game": game})
    return {"study": study.name, "conditions": parts, "ended": study.ended}


def find_next_game(storage: Storage, token: str) -> tuple[str | None, GameRecord | None]:
    """The game a participant is in, or else the record of the next one to begin.

    Conditions are played in order; RequestError after the last one, and when the study has ended.
    """
    study, own_games = find_participant(storage, token)
    if study.ended:
        raise RequestError(409, "the study has ended; thank you")
    for position, condition in enumerate(study.conditions):
        game, done = own_games.get(position, (None, False))
        if done:
            continue
        # Begun and not done: the participant goes on with it.
        if game is not None:
            return game, None
        return None, GameRecord(
            id=new_token(),
            seed=study.seed,
            deadline_seconds=condition["deadline_seconds"],
            pieces=condition["pieces"],
            learn=False,
            participant=token,
            condition=position,
            study=study.id,
        )
    raise RequestError(409, "you have played all games of this study; thank you")


def games_of_study(storage: Storage, study: Study) -> Iterator[tuple[StudyGame, list[Move]]]:
    """The games of a study with their moves, by participant and condition.

    One game is read at a time, so that a large study does not have to fit into memory.
    """
    joined = tables.games.join(tables.participants, games.participant == people.id)
    query = (
        select(games.id, people.number, games.condition, games.done)
        .select_from(joined)
        .where(people.study == study.id)
    )
    with storage.reading() as connection:
        rows = connection.execute(query.order_by(people.number, games.condition)).all()
    # A connection for each game, so that none is held while the caller computes.
    for game, number, condition, done in rows:
        with storage.reading() as connection:
            yield StudyGame(game, number, condition, done is not None), moves_of(connection, game)
