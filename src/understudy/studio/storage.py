"""Where games are kept: SQLite in a file, or PostgreSQL by address; the same tables and the same questions in both.

Writing goes through one `Writer`, so that a move is on disk before it is answered. Reading may be done from any thread.
SQLite keeps a write-ahead log that is synchronised at every commit: a power cut or `kill -9` loses nothing acknowledged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, insert, inspect, make_url, select, update
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from understudy._files import refuse_unwritable
from understudy.studio import tables
from understudy.studio.faults import Unavailable
from understudy.studio.games import Move
from understudy.studio.writer import Job, Writer

PATIENCE = 5  # seconds to wait for a lock or a connection


@dataclass(frozen=True)
class Facts:
    """What a game was begun with, and for whom: the condition of a participant, or nobody in particular."""

    id: str
    seed: int
    tau: float | None
    pieces: int | None
    learn: bool
    participant: str | None = None
    condition: int | None = None
    study: str | None = None
    ended: bool = False  # whether its study has ended


def address(database: str) -> URL:
    """The address of a database from what a person wrote: an address, or the name of a file."""
    try:
        url = make_url(database if "://" in database else f"sqlite:///{database}")
    except ArgumentError:
        raise ValueError(
            "the database's address cannot be read; write a file's name or postgresql://user@host/name"
        ) from None
    kind = url.get_backend_name()
    if kind == "sqlite":
        if not url.database or url.database == ":memory:":
            raise ValueError("the database must be a file: what is only in memory would be lost")
        return url
    if kind == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise ValueError(
        f"a database of the kind {kind} is not supported; it must be a file for SQLite, or postgresql://..."
    )


def seen_at(database: str) -> str:
    """What is at an address, in words; nothing is changed. Raises ValueError where a studio could not use it."""
    url = address(database)
    name, file = _named(url), _file(url)
    if file is not None:
        if not file.exists():
            refuse_unwritable(file)
            return f"{name} is not there yet, and can be made"
        url = url.set(database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})
    engine = _engine(url, name)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(tables.version.name) or not _made_by_this_version(connection):
                return f"{name} can be reached, and is empty"
            count = connection.execute(select(func.count()).select_from(tables.games)).scalar()
            return f"{name} can be reached; games in it: {count}"
    except (SQLAlchemyError, OSError) as reason:
        raise ValueError(f"the database {name} cannot be opened: {_short(reason)}") from None
    finally:
        engine.dispose()


class Storage:
    """An open database. Raises ValueError with one sentence where it cannot be opened or is not a studio's."""

    def __init__(self, database: str) -> None:
        url = address(database)
        self.name, self._file = _named(url), _file(url)
        self.engine = _engine(url, self.name)
        try:
            if self._file is not None:
                _make_private(self._file)
                event.listen(self.engine, "connect", _sqlite)
            self._begin()
            self._inode = self._identity()
        except (SQLAlchemyError, OSError) as reason:
            self.engine.dispose()
            raise ValueError(f"the database {self.name} cannot be opened: {_short(reason)}") from None
        self._writer = Writer(self.engine, self._refuse_lost_file)

    def _begin(self) -> None:
        with self.engine.begin() as connection:
            tables.META.create_all(connection)
            if not _made_by_this_version(connection):
                connection.execute(insert(tables.version), {"version": tables.VERSION})

    def _identity(self) -> tuple[int, int] | None:
        if self._file is None:
            return None
        found = os.stat(self._file)
        return found.st_dev, found.st_ino

    def _refuse_lost_file(self) -> None:
        """A file that was deleted or replaced can still be written to, but nobody would ever read it."""
        if self._identity() != self._inode:
            raise OSError("the database's file was replaced by another")

    def close(self) -> None:
        """Write what is waiting, and close."""
        self._writer.close()
        self.engine.dispose()

    def write(self, job: Job) -> Future[Any]:
        """Have something written; fulfilled when it is on disk."""
        return self._writer.submit(job)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as reason:
            raise Unavailable(_short(reason)) from None

    def game(self, game: str) -> tuple[Facts, list[Move]] | None:
        """A game and its moves so far."""
        g, p, s = tables.games.c, tables.participants.c, tables.studies.c
        whole = tables.games.outerjoin(tables.participants, g.participant == p.id).outerjoin(
            tables.studies, p.study == s.id
        )
        asked = select(g.id, g.seed, g.tau, g.pieces, g.learn, g.participant, g.condition, p.study, s.ended)
        with self.reading() as connection:
            found = connection.execute(asked.select_from(whole).where(g.id == game)).one_or_none()
            if found is None:
                return None
            facts = Facts(**{**found._mapping, "ended": bool(found.ended)})
            return facts, moves_of(connection, game)


def _file(url: URL) -> Path | None:
    """SQLite's file; PostgreSQL has none."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def _named(url: URL) -> str:
    """The address without a password."""
    return str(_file(url) or url.render_as_string(hide_password=True))


def _engine(url: URL, name: str) -> Engine:
    here = {"timeout": PATIENCE}
    there = {"connect_timeout": PATIENCE, "options": f"-c statement_timeout={PATIENCE * 1000}"}
    try:
        return create_engine(url, pool_pre_ping=True, connect_args=there if _file(url) is None else here)
    except (SQLAlchemyError, ImportError) as reason:
        raise ValueError(f"the database {name} cannot be opened: {_short(reason)}") from None


def _made_by_this_version(connection: Connection) -> bool:
    """Whether a studio's tables are there that this one can use; not, where they have never been used."""
    found = connection.execute(select(tables.version.c.version)).scalars().all()
    if found and found != [tables.VERSION]:
        raise OSError(f"it was made by another version of the studio ({found[0]}, and this one is {tables.VERSION})")
    return bool(found)


_m = tables.moves.c
_MOVES = select(_m.turn, _m.rotation, _m.column, _m.missed, _m.seconds)


def moves_of(connection: Connection, game: str) -> list[Move]:
    """The moves of a game, in order."""
    rows = connection.execute(_MOVES.where(_m.game == game).order_by(_m.turn))
    return [Move(*row) for row in rows]


def add_game(facts: Facts) -> Job:
    """Begin a game."""
    values = {
        "id": facts.id, "seed": facts.seed, "tau": facts.tau, "pieces": facts.pieces, "learn": facts.learn,
        "participant": facts.participant, "condition": facts.condition, "done": None, "created": time.time(),
    }  # fmt: skip
    return lambda connection: connection.execute(insert(tables.games), values)


def add_move(game: str, move: Move, done: str | None) -> Job:
    """Write a move down, and with the last one why the game is over."""
    values = {
        "game": game, "turn": move.turn, "rotation": move.rotation, "column": move.column, "missed": move.missed,
        "seconds": move.seconds,
    }  # fmt: skip

    def job(connection: Connection) -> None:
        connection.execute(insert(tables.moves), values)
        if done is not None:
            connection.execute(update(tables.games).where(tables.games.c.id == game).values(done=done))

    return job


def _make_private(file: Path) -> None:
    """A new file that only its owner may read: it holds links that are as good as keys."""
    with suppress(OSError):  # where it is there already, or cannot be, SQLite finds the words
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))


def _sqlite(connection: Any, _: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={PATIENCE * 1000}"):
        connection.execute(f"PRAGMA {pragma}").close()


def _short(reason: BaseException) -> str:
    """The database's own words, on one line."""
    return " ".join(str(getattr(reason, "orig", None) or reason).split())[:300]
