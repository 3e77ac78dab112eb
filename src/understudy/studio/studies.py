"""Studies: conditions, participants, and how far they are.

A study's pieces follow from one seed, so all participants meet the same ones in every condition, as the paper's player did
(section 5.2, Experiment 3). Nobody but the researcher learns that seed, or anything of another participant.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, cast, func, insert, select, update

from understudy.studio import tables
from understudy.studio.faults import Refusal
from understudy.studio.games import Move
from understudy.studio.schemas import NewStudy
from understudy.studio.settings import new_token
from understudy.studio.storage import Facts, Storage, moves_of
from understudy.studio.writer import Job

MOST = 2000  # participants of a study
s, p, g, m = tables.studies.c, tables.participants.c, tables.games.c, tables.moves.c


@dataclass(frozen=True)
class Study:
    """A study as it was made."""

    id: str
    name: str
    conditions: list[dict[str, Any]]
    seed: int
    ended: bool
    created: float


@dataclass(frozen=True)
class Played:
    """One participant's game in one condition."""

    game: str
    participant: int  # the number, not the link
    condition: int
    done: bool


def add_study(wanted: NewStudy) -> tuple[str, Job]:
    """Begin a study with its participants: its id, and the job."""
    study = new_token()
    values = {
        "id": study, "name": wanted.name, "conditions": json.dumps([c.model_dump() for c in wanted.conditions]),
        "seed": secrets.randbits(53) if wanted.seed is None else wanted.seed, "ended": False, "created": time.time(),
    }  # fmt: skip

    def job(connection: Connection) -> None:
        connection.execute(insert(tables.studies), values)
        _invite(connection, study, 1, wanted.participants)

    return study, job


def add_participants(study: str, count: int) -> Job:
    """Invite more."""

    def job(connection: Connection) -> str | None:
        if connection.execute(select(s.ended).where(s.id == study)).scalar_one():
            return "the study has ended, so nobody can be added"
        last = connection.execute(select(func.max(p.number)).where(p.study == study)).scalar_one()
        if last + count > MOST:
            return f"a study has at most {MOST} participants, and this one has {last}"
        _invite(connection, study, last + 1, count)
        return None

    return job


def _invite(connection: Connection, study: str, first: int, count: int) -> None:
    new = [{"id": new_token(), "study": study, "number": n} for n in range(first, first + count)]
    connection.execute(insert(tables.participants), new)


def end_study(study: str) -> Job:
    """No more games and moves."""
    return lambda connection: connection.execute(update(tables.studies).where(s.id == study).values(ended=True))


def find(storage: Storage, study: str) -> Study:
    """A study by its id."""
    with storage.reading() as connection:
        found = connection.execute(select(tables.studies).where(s.id == study)).one_or_none()
    if found is None:
        raise Refusal(404, "there is no such study")
    return _study(found)


def _study(row: Any) -> Study:
    return Study(**{**row._mapping, "conditions": json.loads(row.conditions), "ended": bool(row.ended)})


def listed(storage: Storage) -> list[dict[str, Any]]:
    """All studies, the newest first."""
    count = select(func.count()).where(p.study == s.id).scalar_subquery()
    with storage.reading() as connection:
        rows = connection.execute(select(tables.studies, count.label("many")).order_by(s.created.desc(), s.id)).all()
    return [
        {
            "study": r.id,
            "name": r.name,
            "conditions": json.loads(r.conditions),
            "ended": bool(r.ended),
            "participants": r.many,
        }
        for r in rows
    ]


def overview(storage: Storage, study: str) -> dict[str, Any]:
    """How far a study is, participant by participant and condition by condition."""
    known = find(storage, study)
    missed = func.coalesce(func.sum(cast(m.missed, Integer)), 0)
    with storage.reading() as connection:
        people = connection.execute(select(p.id, p.number).where(p.study == study).order_by(p.number)).all()
        rows = connection.execute(
            select(g.participant, g.condition, g.id, g.done, func.count(m.turn), missed)
            .select_from(
                tables.games.join(tables.participants, g.participant == p.id).outerjoin(tables.moves, m.game == g.id)
            )
            .where(p.study == study)
            .group_by(g.id, g.participant, g.condition, g.done)
        ).all()
    played = {(who, condition): rest for who, condition, *rest in rows}
    return {
        "study": known.id, "name": known.name, "conditions": known.conditions, "ended": known.ended,
        "participants": [_progress(token, number, known.conditions, played) for token, number in people],
    }  # fmt: skip


def _progress(token: str, number: int, conditions: list[dict[str, Any]], played: dict[Any, Any]) -> dict[str, Any]:
    parts = []
    for c, condition in enumerate(conditions):
        game, done, moves, misses = played.get((token, c), (None, None, 0, 0))
        state = "done" if done else "playing" if game else "to come"
        parts.append({"name": condition["name"], "state": state, "moves": moves, "misses": int(misses), "game": game})
    return {
        "number": number, "link": f"/p/{token}", "done": sum(part["state"] == "done" for part in parts),
        "moves": sum(part["moves"] for part in parts), "misses": sum(part["misses"] for part in parts), "conditions": parts,
    }  # fmt: skip


def invited(storage: Storage, token: str) -> tuple[Study, dict[int, tuple[str, bool]]]:
    """A participant's study, and by condition the game and whether it is done."""
    with storage.reading() as connection:
        joined = tables.studies.join(tables.participants, p.study == s.id)
        row = connection.execute(select(tables.studies).select_from(joined).where(p.id == token)).one_or_none()
        if row is None:
            raise Refusal(404, "this link is not known; ask whoever gave it to you")
        games = connection.execute(select(g.condition, g.id, g.done).where(g.participant == token)).all()
    return _study(row), {condition: (game, done is not None) for condition, game, done in games}


def own_view(storage: Storage, token: str) -> dict[str, Any]:
    """What a participant sees of a study: the own games."""
    study, games = invited(storage, token)
    parts = []
    for c, condition in enumerate(study.conditions):
        game, done = games.get(c, (None, False))
        parts.append({**condition, "state": "done" if done else "playing" if game else "to come", "game": game})
    return {"study": study.name, "conditions": parts, "ended": study.ended}


def next_game(storage: Storage, token: str) -> tuple[str | None, Facts | None]:
    """The game a participant is in, or else the facts of the next one to begin."""
    study, games = invited(storage, token)
    if study.ended:
        raise Refusal(409, "the study has ended; thank you")
    for c, condition in enumerate(study.conditions):
        game, done = games.get(c, (None, False))
        if done:
            continue
        if game is not None:
            return game, None
        return None, Facts(new_token(), study.seed, condition["tau"], condition["pieces"], False, token, c, study.id)
    raise Refusal(409, "you have played all games of this study; thank you")


def games_of_study(storage: Storage, study: Study) -> Iterator[tuple[Played, list[Move]]]:
    """The games of a study with their moves, by participant and condition."""
    joined = tables.games.join(tables.participants, g.participant == p.id)
    asked = select(g.id, p.number, g.condition, g.done).select_from(joined).where(p.study == study.id)
    with storage.reading() as connection:
        rows = connection.execute(asked.order_by(p.number, g.condition)).all()
    for game, number, condition, done in rows:
        with storage.reading() as connection:
            yield Played(game, number, condition, done is not None), moves_of(connection, game)
