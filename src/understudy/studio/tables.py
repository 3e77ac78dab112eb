"""The tables of the studio's database."""

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

VERSION = 1
META = MetaData()

version = Table("understudy_studio", META, Column("version", Integer, primary_key=True))

studies = Table(
    "studies",
    META,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("conditions", Text, nullable=False),  # JSON
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
    Column("tau", Float),
    Column("pieces", Integer),
    Column("learn", Boolean, nullable=False),
    Column("participant", String(32), ForeignKey("participants.id")),
    Column("condition", Integer),
    Column("done", String(8)),  # why it is over, written with its last move
    Column("created", Float, nullable=False),
    UniqueConstraint("participant", "condition"),
)

moves = Table(
    "moves",
    META,
    Column("game", String(32), ForeignKey("games.id"), primary_key=True),
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
    UniqueConstraint("game", "turn"),
)
