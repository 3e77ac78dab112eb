"""The settings that a studio is started with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from revealed.models.noise import Noise, NormalNoise

# The names under which a browser on the same machine reaches a server on the loopback.
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


def new_token() -> str:
    """A name that cannot be guessed: 128 random bits in 22 letters."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True)
class Settings:
    """How a studio runs.

    Args:
        database: the address of the database: sqlite:///file.db, postgresql://..., or the name of
            a file.
        token: whoever has it may make studies and read them.
        hosts: the names under which the studio may be called, without port; None allows all. Where
            it listens on the loopback only, these are the loopback's names, so that no page
            elsewhere can reach it through a name of its own.
        rate: requests a second that one address may make in the long run; four seconds' worth may
            come at once.
        games: games a minute that one address may begin.
        live: games kept in memory; others are replayed from the database when they are asked for.
        learners: games whose posterior is kept in memory; others are learnt again when they are
            asked for.
        particles: how many particles each posterior has.
        noise: of the players who are learnt, perhaps with lapses.
    """

    # Fields in the order of the command line's options; the defaults suit one machine.
    database: str
    token: str = field(default_factory=new_token, repr=False)
    hosts: tuple[str, ...] | None = LOOPBACK_NAMES
    rate: float = 100.0
    games: float = 60.0
    live: int = 2000
    learners: int = 32
    particles: int = 1000
    noise: Noise = field(default_factory=NormalNoise)
