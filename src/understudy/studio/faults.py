"""What a studio refuses, in one sentence each, and with which status."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is refused: the status, one sentence, and what else the asker should know."""

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.status = status
        self.answer: dict[str, Any] = {"error": sentence, **more}


class Unavailable(Exception):
    """The database cannot be read or written now. What was to be written is not there, unless the database says otherwise."""


class Conflict(Exception):
    """The database holds another record under the same key."""
