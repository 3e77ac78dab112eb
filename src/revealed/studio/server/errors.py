"""The errors of a studio: a request that is refused, and a database that cannot be used."""

from __future__ import annotations

from typing import Any


class RequestError(Exception):
    """A request that is refused, in one sentence for whoever made it.

    `status` is the HTTP status. `payload` is the JSON object of the answer: the sentence under
    "error", and whatever else was given as keywords, such as the state of the game.
    """

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        # The sentence is the exception's text too, for logs and tests.
        super().__init__(sentence)
        self.status = status
        self.payload: dict[str, Any] = {"error": sentence, **more}


class Unavailable(Exception):
    """The database cannot be read or written now.

    What was to be written is not there, unless the database itself says otherwise later: the
    connection may break between a commit and its confirmation.
    """


class Conflict(Exception):
    """The database holds another record under the same key."""
