"""The database of games: SQLite in a file, or PostgreSQL by address, with the same tables in both.

Writing goes through one `Writer`, so that a move is on disk before it is answered. Reading may be
done from any thread. SQLite keeps a write-ahead log that is synchronised at every commit: a power
cut or `kill -9` loses nothing acknowledged.
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

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Integer,
    TableClause,
    column,
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    table,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from revealed._validation import check_writable
from revealed.io.old_files import OLD
from revealed.studio.game.game import Move
from revealed.studio.server.errors import Unavailable
from revealed.studio.storage import tables
from revealed.studio.storage.writer import Job, Writer

# Seconds to wait for a lock, a connection or a statement. Commits take milliseconds; a page asks
# again after 15 seconds, so a longer wait would only pile up requests behind a dead database.
LOCK_TIMEOUT_SECONDS = 5


@dataclass(frozen=True)
class GameRecord:
    """What a game was begun with.

    `deadline_seconds` is None without a deadline, `pieces` None where the game goes on until the
    board is full. `participant`, `condition` and `study` are None outside studies; `ended` says
    whether the study has ended.
    """

    id: str
    seed: int
    deadline_seconds: float | None
    pieces: int | None
    learn: bool
    participant: str | None = None
    condition: int | None = None
    study: str | None = None
    ended: bool = False


def database_url(database: str) -> URL:
    """The address of a database from what a person wrote: an address, or the name of a file.

    ValueError where it cannot be read, names another kind of database, or keeps nothing on disk.
    """
    try:
        # A plain name is SQLite's file.
        url = make_url(database if "://" in database else f"sqlite:///{database}")
    except ArgumentError:
        raise ValueError(
            "the database's address cannot be read; "
            "write a file's name or postgresql://user@host/name"
        ) from None
    kind = url.get_backend_name()
    # Anything in memory would be lost with the process, and an acknowledged move must not be.
    if kind == "sqlite":
        if not url.database or url.database == ":memory:":
            raise ValueError("the database must be a file: what is only in memory would be lost")
        return url
    if kind == "postgresql":
        # psycopg 3, whatever driver SQLAlchemy would choose.
        return url.set(drivername="postgresql+psycopg")
    raise ValueError(
        f"a database of the kind {kind} is not supported; "
        "it must be a file for SQLite, or postgresql://..."
    )


def describe_database(database: str) -> str:
    """What is at an address, in words; ValueError where a studio could not use it.

    Nothing is changed: SQLite's file is opened read-only, and not made where it is missing.
    """
    url = database_url(database)
    name, file = _display_name(url), _sqlite_path(url)
    if file is not None:
        if not file.exists():
            check_writable(file)
            return f"{name} is not there yet, and can be made"
        # mode=ro: looking must not leave a file or a write-ahead log behind.
        url = url.set(database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})
    engine = _make_engine(url, name)
    try:
        with engine.connect() as connection:
            # A PostgreSQL database may exist without any table of ours.
            version_table = _find_version_table(connection)
            if version_table is None or not _made_by_this_version(connection, version_table):
                return f"{name} can be reached, and is empty"
            count = connection.execute(select(func.count()).select_from(tables.games)).scalar()
            return f"{name} can be reached; games in it: {count}"
    except (SQLAlchemyError, OSError) as reason:
        raise ValueError(f"the database {name} cannot be opened: {_short_reason(reason)}") from None
    finally:
        engine.dispose()


class Storage:
    """An open database.

    ValueError with one sentence where it cannot be opened or is not a studio's. `name` is its
    address without a password.
    """

    def __init__(self, database: str) -> None:
        url = database_url(database)
        self.name, self._file = _display_name(url), _sqlite_path(url)
        self.engine = _make_engine(url, self.name)
        try:
            if self._file is not None:
                # Before SQLite makes the file with the usual permissions.
                _make_private(self._file)
                event.listen(self.engine, "connect", _set_pragmas)
            self._begin()
            # Remembered, to notice that somebody has replaced the file.
            self._inode = self._identity()
        except (SQLAlchemyError, OSError) as reason:
            self.engine.dispose()
            raise ValueError(
                f"the database {self.name} cannot be opened: {_short_reason(reason)}"
            ) from None
        # One writer: SQLite allows no more, and moves share commits.
        self._writer = Writer(self.engine, self._refuse_lost_file)

    def _begin(self) -> None:
        """Make the tables where they are missing, and check that this version can use them."""
        # A table of an older version is renamed first, or a second, empty one would be made.
        with self.engine.begin() as connection:
            _rename_old_version_table(connection)
            tables.META.create_all(connection)
            if not _made_by_this_version(connection, tables.version):
                connection.execute(insert(tables.version), {"version": tables.VERSION})

    def _identity(self) -> tuple[int, int] | None:
        """Device and inode of SQLite's file; None for PostgreSQL."""
        if self._file is None:
            return None
        found = os.stat(self._file)
        return found.st_dev, found.st_ino

    def _refuse_lost_file(self) -> None:
        """OSError where SQLite's file was deleted or replaced.

        An open file can still be written to then, but nobody would ever read it.
        """
        if self._identity() != self._inode:
            raise OSError("the database's file was replaced by another")

    def close(self) -> None:
        """Write what is waiting, and close."""
        # Jobs that wait are written before connections go.
        self._writer.close()
        self.engine.dispose()

    def write(self, job: Job) -> Future[Any]:
        """A future that ends with what the job returns, once that is on disk."""
        return self._writer.submit(job)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with; `Unavailable` where the database fails meanwhile."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as reason:
            raise Unavailable(_short_reason(reason)) from None

    def game(self, game: str) -> tuple[GameRecord, list[Move]] | None:
        """The record of a game and its moves so far; None where there is no such game.

        The columns are selected by name in the order of `GameRecord`'s fields.
        """
        games, people, studies = tables.games.c, tables.participants.c, tables.studies.c
        # Outer joins: games outside studies have neither participant nor study.
        joined = tables.games.outerjoin(
            tables.participants, games.participant == people.id
        ).outerjoin(tables.studies, people.study == studies.id)
        columns = select(
            games.id,
            games.seed,
            games.deadline_seconds.label("deadline_seconds"),
            games.pieces,
            games.learn,
            games.participant,
            games.condition,
            people.study,
            studies.ended,
        )
        query = columns.select_from(joined).where(games.id == game)
        with self.reading() as connection:
            found = connection.execute(query).one_or_none()
            if found is None:
                return None
            # SQLite returns 0 and 1, and NULL outside studies.
            record = GameRecord(**{**found._mapping, "ended": bool(found.ended)})
            return record, moves_of(connection, game)


def _sqlite_path(url: URL) -> Path | None:
    """The path of SQLite's file; None for PostgreSQL."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def _display_name(url: URL) -> str:
    """The address as it may be shown: SQLite's file, or PostgreSQL's URL without a password."""
    return str(_sqlite_path(url) or url.render_as_string(hide_password=True))


def _make_engine(url: URL, name: str) -> Engine:
    """SQLAlchemy's engine for a database, with the same timeouts in both kinds.

    Connections are tried before they are used, so that a PostgreSQL server that was started again
    is found without an error.
    """
    if _sqlite_path(url) is None:
        timeouts: dict[str, Any] = {
            "connect_timeout": LOCK_TIMEOUT_SECONDS,
            "options": f"-c statement_timeout={LOCK_TIMEOUT_SECONDS * 1000}",
        }
    else:
        timeouts = {"timeout": LOCK_TIMEOUT_SECONDS}
    try:
        return create_engine(url, pool_pre_ping=True, connect_args=timeouts)
    except (SQLAlchemyError, ImportError) as reason:
        raise ValueError(f"the database {name} cannot be opened: {_short_reason(reason)}") from None


def _find_version_table(connection: Connection) -> TableClause | None:
    """The table that holds the version: that of today, that of 0.1.0, or None in a new database."""
    found = inspect(connection)
    if found.has_table(tables.version.name):
        return tables.version
    old = OLD.studio_version_table
    return table(old, column("version", Integer)) if found.has_table(old) else None


def _rename_old_version_table(connection: Connection) -> None:
    """Give the version table of a 0.1.0 database its name of today.

    It is all that differs. Without it, `create_all` would make a second, empty version table, and
    an old database would open unchecked. It is one statement in a transaction: SQLite and
    PostgreSQL both do all of it or nothing.
    """
    old = _find_version_table(connection)
    if old is not None and old is not tables.version:
        # A database that cannot be used is refused, and left as it is.
        _made_by_this_version(connection, old)
        quote = connection.dialect.identifier_preparer.quote
        connection.execute(
            text(f"ALTER TABLE {quote(old.name)} RENAME TO {quote(tables.version.name)}")
        )


def _made_by_this_version(connection: Connection, version_table: TableClause) -> bool:
    """Whether this version of the studio has made the tables; False where they are still empty.

    OSError where another version made them.
    """
    found = connection.execute(select(version_table.c.version)).scalars().all()
    if found and found != [tables.VERSION]:
        raise OSError(
            f"it was made by another version of the studio "
            f"({found[0]}, and this one is {tables.VERSION})"
        )
    return bool(found)


def moves_of(connection: Connection, game: str) -> list[Move]:
    """The moves of a game, in order of their turns.

    Read on a connection of the caller's, to be one with what it reads beside.
    """
    moves = tables.moves.c
    query = select(moves.turn, moves.rotation, moves.column, moves.missed, moves.seconds)
    rows = connection.execute(query.where(moves.game == game).order_by(moves.turn))
    return [Move(*row) for row in rows]


def add_game(record: GameRecord) -> Job:
    """A job that begins a game.

    `done` is empty until the last move; `created` is in seconds since 1970.
    """
    values = {
        "id": record.id,
        "seed": record.seed,
        "deadline_seconds": record.deadline_seconds,
        "pieces": record.pieces,
        "learn": record.learn,
        "participant": record.participant,
        "condition": record.condition,
        "done": None,
        "created": time.time(),
    }
    return lambda connection: connection.execute(insert(tables.games), values)


def add_move(game: str, move: Move, done: str | None) -> Job:
    """A job that adds a move; with the last one also `done`, the reason why the game is over."""
    values = {
        "game": game,
        "turn": move.turn,
        "rotation": move.rotation,
        "column": move.column,
        "missed": move.missed,
        "seconds": move.seconds,
    }

    def job(connection: Connection) -> None:
        # One transaction: a game that is over always has its last move.
        connection.execute(insert(tables.moves), values)
        if done is not None:
            connection.execute(
                update(tables.games).where(tables.games.c.id == game).values(done=done)
            )

    return job


def _make_private(file: Path) -> None:
    """Make a new file that only its owner may read: it holds links that are as good as keys.

    Where the file is there already, or cannot be made, SQLite says so when it opens it.
    """
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))


def _set_pragmas(connection: Any, _: Any) -> None:
    """Settings of a new SQLite connection.

    A write-ahead log lets reading go on while a move is written; `synchronous=FULL` makes every
    commit wait for the disk, which is what an acknowledged move rests on.
    """
    # Settings belong to a connection, so each new one gets them.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={LOCK_TIMEOUT_SECONDS * 1000}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _short_reason(reason: BaseException) -> str:
    """The database's own words, on one line of at most 300 characters."""
    return " ".join(str(getattr(reason, "orig", None) or reason).split())[:300]
