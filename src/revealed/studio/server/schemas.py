"""The bodies of requests. Anything else is refused with a sentence before it is looked at."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

# 22 letters are the 128 bits of `new_token`; seeds stay exact as JavaScript numbers below 2^53.
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22}$")]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
DeadlineSeconds = Annotated[float, Field(ge=0.2, le=60.0, allow_inf_nan=False)]
Pieces = Annotated[int, Field(ge=1, le=2000)]


def _require_printable(text: str) -> str:
    """The text without spaces around it; ValueError where it is empty or cannot be printed."""
    if not text.strip() or not text.isprintable():
        raise ValueError("it must be written in letters that can be printed")
    return text.strip()


# What people write is shown on pages and in tables: nothing that cannot be printed.
Name = Annotated[
    str, StringConstraints(min_length=1, max_length=100), AfterValidator(_require_printable)
]


# Strict: "3" is not taken for 3, nor true for 1, so mistakes in a client show at once.
class RequestBody(BaseModel):
    """The body of a request: nothing is converted, and an unknown field is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewGame(RequestBody):
    """A game to begin.

    No `deadline_seconds` means as much time as one likes, no `pieces` until the board is full, no
    `seed` a random one. A game is learnt from only where `learn` is true.
    """

    deadline_seconds: DeadlineSeconds | None = None
    pieces: Pieces | None = None
    seed: Seed | None = None
    learn: bool = False


class NewMove(RequestBody):
    """A placement for a turn, or the report that its deadline was missed.

    Either `rotation` and `column` are given, or `missed` is true; the game itself checks that.
    """

    # The turn makes a repeated request harmless: it names the move it means.
    turn: Annotated[int, Field(ge=0, le=10_000)]
    rotation: Annotated[int, Field(ge=0, le=3)] | None = None
    column: Annotated[int, Field(ge=0, le=9)] | None = None
    missed: bool = False


class Continuation(RequestBody):
    """How many moves the understudy plays on from the present board, and the seed of its pieces."""

    moves: Annotated[int, Field(ge=1, le=200)] = 20
    seed: Seed | None = None


class Guess(RequestBody):
    """An answer to the quiz: who made the move?"""

    guess: Literal["player", "understudy"]


class Condition(RequestBody):
    """One condition of a study: seconds to decide about each piece, and how many pieces."""

    name: Name
    deadline_seconds: DeadlineSeconds | None = None
    pieces: Pieces = 100


class NewStudy(RequestBody):
    """A study to begin.

    Conditions are played in the given order. The seed sets the pieces, the same ones for every
    participant and in every condition; without one it is drawn.
    """

    name: Name
    conditions: Annotated[list[Condition], Field(min_length=1, max_length=12)]
    participants: Annotated[int, Field(ge=1, le=500)]
    seed: Seed | None = None


class MoreParticipants(RequestBody):
    """How many participants to add to a study."""

    count: Annotated[int, Field(ge=1, le=500)]
