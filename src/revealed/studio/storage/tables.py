"""The tables of the studio's database.

Ids are the 22 letters of `new_token`. A game's rows follow from its seed and its moves, so boards
are never stored.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

# Raised when a table changes in a way that an older studio could not read.
VERSION = 1
# All tables below; `create_all` makes those that are missing.
META = MetaData()

# One row: the version of the studio that made the tables.
version = Table("revealed_studio", META, Column("version", Integer, primary_key=True))

studies = Table(
    "studies",
    META,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("conditions", Text, nullable=False),  # a JSON list of name, deadline, pieces
    Column("seed", BigInteger, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("created", Float, nullable=False),
)

participants = Table(
    "participants",
    META,
    Column("id", String(32), primary_key=True),  # the link's token
    Column("study", String(32), ForeignKey("studies.id"), nullable=False),
    Column("number", Integer, nullable=False),
    UniqueConstraint("study", "number"),
)

games = Table(
    "games",
    META,
    Column("id", String(32), primary_key=True),
    Column("seed", BigInteger, nullable=False),
    Column("tau", Float, key="deadline_seconds"),  # the name in databases of older versions
    Column("pieces", Integer),
    Column("learn", Boolean, nullable=False),
    Column("participant", String(32), ForeignKey("participants.id")),
    Column("condition", Integer),
    Column("done", String(8)),  # why it is over, written with its last move
    Column("created", Float, nullable=False),
    # Two tabs cannot begin the same game of a participant.
    UniqueConstraint("participant", "condition"),
)

moves = Table(
    "moves",
    META,
    Column("game", String(32), ForeignKey("games.id"), primary_key=True),
    # The key makes a second move for the same turn a conflict.
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("rotation", Integer, nullable=False),
    Column("column", Integer, nullable=False),
    Column("missed", Boolean, nullable=False),
    Column("seconds", Float),
)

questions = Table(
    "questions",
    META,
    Column("id", String(32), primary_key=True),
    Column("game", String(32), ForeignKey("games.id"), nullable=False),
    Column("turn", Integer, nullable=False),
    Column("mover", String(12), nullable=False),
    Column("rotation", Integer, nullable=False),
    Column("column", Integer, nullable=False),
    Column("guess", String(12)),
    # Each turn of a game is asked about once.
    UniqueConstraint("game", "turn"),
)
