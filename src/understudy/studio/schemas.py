"""What may be asked of a studio; anything else is refused with a sentence before it is looked at."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22}$")]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
Tau = Annotated[float, Field(ge=0.2, le=60.0, allow_inf_nan=False)]
Pieces = Annotated[int, Field(ge=1, le=2000)]


def _printable(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("it must be written in letters that can be printed")
    return text.strip()


Name = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_printable)]


class Asked(BaseModel):
    """A body: nothing is converted, and a field nobody knows is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewGame(Asked):
    """A game to begin."""

    tau: Tau | None = None
    pieces: Pieces | None = None
    seed: Seed | None = None
    learn: bool = False


class NewMove(Asked):
    """A placement for a turn, or word that its deadline was missed."""

    turn: Annotated[int, Field(ge=0, le=10_000)]
    rotation: Annotated[int, Field(ge=0, le=3)] | None = None
    column: Annotated[int, Field(ge=0, le=9)] | None = None
    missed: bool = False


class Stage(Asked):
    """How long the understudy plays on."""

    moves: Annotated[int, Field(ge=1, le=200)] = 20
    seed: Seed | None = None


class Guess(Asked):
    """Who moved?"""

    guess: Literal["player", "understudy"]


class Condition(Asked):
    """One condition of a study: seconds to decide, and how many pieces."""

    name: Name
    tau: Tau | None = None
    pieces: Pieces = 100


class NewStudy(Asked):
    """A study to begin."""

    name: Name
    conditions: Annotated[list[Condition], Field(min_length=1, max_length=12)]
    participants: Annotated[int, Field(ge=1, le=500)]
    seed: Seed | None = None


class More(Asked):
    """How many participants to add."""

    count: Annotated[int, Field(ge=1, le=500)]
