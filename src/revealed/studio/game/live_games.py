"""Games being played: the clock of a turn, the checks of a move, and a bounded number in memory.

A game in memory is only a copy. Whenever it is in doubt whether the database agrees, the copy is
thrown away and replayed.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from revealed.studio.game.game import Game, Move, move_payload, replay_moves
from revealed.studio.server.errors import Conflict, RequestError, Unavailable
from revealed.studio.server.schemas import NewGame, NewMove
from revealed.studio.server.settings import new_token
from revealed.studio.storage.database import GameRecord, Storage, add_game, add_move


@dataclass(frozen=True)
class DeadlineTolerance:
    """Seconds by which the clocks of server and browser may disagree over a deadline.

    `late_seconds`: how long a placement may travel after its deadline; too little, and who decides
    in time over a slow line is said to have missed; too much, and deadlines are longer than said.
    `early_seconds`: by how much a browser may report a miss too early: timers are that exact.
    """

    late_seconds: float
    early_seconds: float


DEADLINE_TOLERANCE = DeadlineTolerance(late_seconds=0.25, early_seconds=0.05)

Clock = Callable[[], float]
MoveListener = Callable[[GameRecord, Move], None]
"""Called with every move of a game that is learnt from, once the move is on disk."""


class LiveGame:
    """A game in memory.

    `shown_at` is when the present turn was first shown to the player, None before; its deadline
    counts from then. `last_move` is the last move as it was answered. `lock` is held while a move
    is checked and written, so that two tabs cannot both make it.
    """

    def __init__(self, record: GameRecord, moves: list[Move]) -> None:
        self.record, self.ended = record, record.ended
        self.game = Game(record.seed, record.pieces, moves)
        self.shown_at: float | None = None
        self.last_move: dict[str, Any] | None = None
        self.lock = asyncio.Lock()

    def state_payload(self, now: float) -> dict[str, Any]:
        """What the player sees, as JSON; the clock of the turn starts when it is first shown."""
        if self.shown_at is None:
            self.shown_at = now
        record, deadline = self.record, self.record.deadline_seconds
        # The page counts down from what the server says is left.
        remaining = (
            None
            if deadline is None or self.game.over
            else round(max(0.0, deadline - (now - self.shown_at)), 3)
        )
        return {
            "game": record.id,
            **self.game.state_payload(),
            "deadline_seconds": deadline,
            "remaining": remaining,
            "learn": record.learn,
            "participant": record.participant is not None,
        }


class LiveGames:
    """The games of a studio, at most `max_games` of them in memory.

    All methods belong to the event loop; what waits for the disk waits in another thread.
    """

    def __init__(
        self,
        storage: Storage,
        max_games: int,
        on_move: MoveListener,
        clock: Clock = time.monotonic,
    ) -> None:
        self.storage, self._max_games, self._on_move = storage, max_games, on_move
        self.clock = clock
        # Least recently used first; games being read are in `_loading`, so that each is read once.
        self._live: OrderedDict[str, LiveGame] = OrderedDict()
        self._loading: dict[str, asyncio.Task[LiveGame]] = {}

    async def begin(self, wanted: NewGame) -> LiveGame:
        """A new game as it was asked for, on disk before it is answered."""
        # 53 bits are exact in JavaScript, which shows the seed of a study to its researcher.
        seed = secrets.randbits(53) if wanted.seed is None else wanted.seed
        record = GameRecord(new_token(), seed, wanted.deadline_seconds, wanted.pieces, wanted.learn)
        return await self.add(record)

    async def add(self, record: GameRecord) -> LiveGame:
        """A new game with this record; RequestError where it cannot be saved.

        `Conflict` goes through: the caller knows what a second game under the same key means.
        """
        try:
            await asyncio.wrap_future(self.storage.write(add_game(record)))
        except Unavailable:
            raise RequestError(
                503, "the game could not be saved, so it was not begun; try again in a moment"
            ) from None
        # Only what is on disk is kept in memory.
        live = LiveGame(record, [])
        self._keep(live)
        return live

    async def find(self, game: str) -> LiveGame:
        """A game by its id, replayed from the database if it is not in memory.

        Several requests for the same game share one reading. RequestError where there is no such
        game.
        """
        live = self._live.get(game)
        if live is None:
            task = self._loading.get(game)
            if task is None:
                task = self._loading[game] = asyncio.ensure_future(self._load(game))
                task.add_done_callback(lambda _: self._loading.pop(game, None))
            # Shielded: who goes away must not take the game from others who wait for it.
            live = await asyncio.shield(task)
        # It may have been pushed out while it was read.
        if game in self._live:
            self._live.move_to_end(game)
        return live

    async def record(self, game: str) -> tuple[GameRecord, list[Move]]:
        """The record of a game and its moves, as the database holds them."""
        try:
            found = await asyncio.to_thread(self.storage.game, game)
        except Unavailable:
            raise RequestError(
                503, "the game cannot be read from the database at the moment; try again soon"
            ) from None
        if found is None:
            raise RequestError(404, "there is no such game")
        return found

    async def replay(self, game: str) -> list[dict[str, Any]]:
        """All moves of a game, as JSON for a page."""
        record, moves = await self.record(game)
        return await asyncio.to_thread(replay_moves, record.seed, record.pieces, moves)

    async def _load(self, game: str) -> LiveGame:
        """A game replayed from the database, and kept."""
        record, moves = await self.record(game)
        live = await asyncio.to_thread(LiveGame, record, moves)
        self._keep(live)
        return live

    def _keep(self, live: LiveGame) -> None:
        """Keep a game in memory; the least recently used ones go where there are too many."""
        # The newest is at the end, where the least recently used are not.
        self._live[live.record.id] = live
        while len(self._live) > self._max_games:
            self._live.popitem(last=False)

    def end_study(self, study: str) -> None:
        """Take no more moves in the games of a study; those on disk are marked by its own row."""
        for live in self._live.values():
            live.ended |= live.record.study == study

    async def state_payload(self, game: str) -> dict[str, Any]:
        """What the player of a game sees now, as JSON."""
        live = await self.find(game)
        return live.state_payload(self.clock())

    async def move(self, game: str, wanted: NewMove) -> tuple[LiveGame, dict[str, Any]]:
        """Make a move: refused, recognised as one already made, or on disk.

        Returns the game and the move as it was recorded. The time is taken before anything is
        waited for, so that a busy server does not make a player miss a deadline.
        """
        arrived_at = self.clock()
        live = await self.find(game)
        async with live.lock:
            if wanted.turn != live.game.turn:
                return live, await self._find_repeated(live, wanted)
            move = self._check(live, wanted, arrived_at)
            return live, await self._write(live, move)

    async def _write(self, live: LiveGame, move: Move) -> dict[str, Any]:
        """The payload of a move, once it is on disk and made on the board in memory.

        While it is unknown whether the move was saved, the copy in memory is not to be trusted: it
        is thrown away in every case but success.
        """
        # A shallow copy is enough: `apply` replaces arrays and never writes into them.
        after = copy.copy(live.game)
        dropped, is_saved = after.apply(move), False
        try:
            job = add_move(live.record.id, move, after.end_reason)
            await asyncio.wrap_future(self.storage.write(job))
            is_saved = True
        except Unavailable:
            raise RequestError(
                503,
                "the move could not be saved, so it was not accepted; "
                "the board is as it was, try again in a moment",
            ) from None
        except Conflict:
            raise RequestError(
                409, "another server has made a move in this game; load it again"
            ) from None
        finally:
            if not is_saved:
                self._forget(live)
        # The next turn's clock starts when its state is shown.
        live.game, live.shown_at = after, None
        live.last_move = move_payload(move, after.piece_at(move.turn), dropped)
        if live.record.learn:
            self._on_move(live.record, move)
        return live.last_move

    def _forget(self, live: LiveGame) -> None:
        """Throw a copy away, unless another has taken its place."""
        if self._live.get(live.record.id) is live:
            del self._live[live.record.id]

    def _check(self, live: LiveGame, wanted: NewMove, now: float) -> Move:
        """The move to record, or a RequestError that says why there is none.

        A placement that comes after its deadline and the tolerance is recorded as a miss.
        """
        game, deadline = live.game, live.record.deadline_seconds
        # First the shape of the request, then whether the game goes on, then the deadline.
        is_placed = wanted.rotation is not None and wanted.column is not None
        if wanted.missed == is_placed or (wanted.rotation is None) != (wanted.column is None):
            raise RequestError(
                422,
                "a move is a rotation and a column, or missed: true where the deadline has passed",
            )
        if game.over:
            raise RequestError(409, "the game is over", state=live.state_payload(now))
        if live.ended:
            raise RequestError(
                409,
                "the study has ended, so no more moves are taken",
                state=live.state_payload(now),
            )
        # A turn that was never shown, as after a restart, has no time that could be held against
        # anybody.
        seconds = None if live.shown_at is None else max(0.0, now - live.shown_at)
        # The page reports a miss; the server's own clock decides whether it was one.
        if wanted.missed:
            if deadline is None:
                raise RequestError(
                    409,
                    "this game has no deadline that could be missed",
                    state=live.state_payload(now),
                )
            if seconds is None or seconds < deadline - DEADLINE_TOLERANCE.early_seconds:
                raise RequestError(
                    409, "the deadline has not passed yet", state=live.state_payload(now)
                )
            return game.missed_move(seconds)
        assert wanted.rotation is not None
        assert wanted.column is not None
        # Whatever a page may send, only what the rules allow is recorded.
        if not game.allows(wanted.rotation, wanted.column):
            raise RequestError(
                422,
                f"rotation {wanted.rotation} at column {wanted.column} "
                "is not a legal placement of this piece",
            )
        if (
            deadline is not None
            and seconds is not None
            and seconds > deadline + DEADLINE_TOLERANCE.late_seconds
        ):
            return game.missed_move(seconds)
        return Move(game.turn, wanted.rotation, wanted.column, False, seconds)

    async def _find_repeated(self, live: LiveGame, wanted: NewMove) -> dict[str, Any]:
        """The move of an earlier turn, where it is the very one that is asked for.

        Its answer may have been lost on the way, so the page sends it again. Anything else for a
        turn that is not the present one is refused, with the present state.
        """
        # A turn to come cannot have been made yet.
        if wanted.turn < live.game.turn:
            # The last move is at hand; older ones are replayed from the database.
            made = live.last_move
            if made is None or made["turn"] != wanted.turn:
                made = (await self.replay(live.record.id))[wanted.turn]
            if _is_same_move(made, wanted):
                return made
        raise RequestError(
            409,
            f"turn {wanted.turn} is not the present one, which is {live.game.turn}; "
            "perhaps the game was played on elsewhere",
            state=live.state_payload(self.clock()),
        )


def _is_same_move(made: dict[str, Any], wanted: NewMove) -> bool:
    """Whether a move on record is the one asked for; what came too late is on record as a miss."""
    if made["missed"]:
        return wanted.missed or wanted.rotation is not None
    return not wanted.missed and (made["rotation"], made["column"]) == (
        wanted.rotation,
        wanted.column,
    )
