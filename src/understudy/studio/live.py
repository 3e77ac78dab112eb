"""Games being played: the clock of a turn, the checks of a move, and a bounded number of games in memory.

A game in memory is only a copy. Whenever it is in doubt whether the database agrees, the copy is thrown away and replayed.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from understudy.studio.faults import Conflict, Refusal, Unavailable
from understudy.studio.games import Game, Move, replay, told
from understudy.studio.schemas import NewGame, NewMove
from understudy.studio.settings import new_token
from understudy.studio.storage import Facts, Storage, add_game, add_move

GRACE = 0.25  # seconds that a placement may travel after its deadline
EARLY = 0.05  # seconds by which two clocks may differ over when the deadline was
NOT_SAVED = "the move could not be saved, so it was not accepted; the board is as it was, try again in a moment"
NOT_READ = "the game cannot be read from the database at the moment; try again soon"

Clock = Callable[[], float]
Listener = Callable[[Facts, Move], None]
"""Is told of every move of a game that is learnt from, when it is on disk."""


class Live:
    """A game in memory: its facts, the game, since when its present turn has been seen, and its last move."""

    def __init__(self, facts: Facts, moves: list[Move]) -> None:
        self.facts, self.ended = facts, facts.ended
        self.game = Game(facts.seed, facts.pieces, moves)
        self.seen: float | None = None
        self.last: dict[str, Any] | None = None  # the last move, as it was answered
        self.lock = asyncio.Lock()

    def state(self, now: float) -> dict[str, Any]:
        """What the player sees; the clock of the turn starts with the first look."""
        if self.seen is None:
            self.seen = now
        tau, facts = self.facts.tau, self.facts
        clock = None if tau is None or self.game.over else round(max(0.0, tau - (now - self.seen)), 3)
        return {
            "game": facts.id, **self.game.shown(), "tau": tau, "remaining": clock, "learn": facts.learn,
            "participant": facts.participant is not None,
        }  # fmt: skip


class LiveGames:
    """The games of a studio. All methods belong to the event loop; what waits for the disk waits elsewhere."""

    def __init__(self, storage: Storage, most: int, made: Listener, clock: Clock = time.monotonic) -> None:
        self.storage, self._most, self._made, self.clock = storage, most, made, clock
        self._live: OrderedDict[str, Live] = OrderedDict()
        self._loading: dict[str, asyncio.Task[Live]] = {}

    async def begin(self, wanted: NewGame) -> Live:
        """A new game, on disk before it is answered."""
        seed = secrets.randbits(53) if wanted.seed is None else wanted.seed
        return await self.add(Facts(new_token(), seed, wanted.tau, wanted.pieces, wanted.learn))

    async def add(self, facts: Facts) -> Live:
        """A game with these facts."""
        try:
            await asyncio.wrap_future(self.storage.write(add_game(facts)))
        except Unavailable:
            raise Refusal(503, "the game could not be saved, so it was not begun; try again in a moment") from None
        live = Live(facts, [])
        self._keep(live)
        return live

    async def find(self, game: str) -> Live:
        """A game by its id, replayed from the database if it is not in memory."""
        live = self._live.get(game)
        if live is None:
            task = self._loading.get(game)
            if task is None:
                task = self._loading[game] = asyncio.ensure_future(self._load(game))
                task.add_done_callback(lambda _: self._loading.pop(game, None))
            live = await asyncio.shield(task)
        if game in self._live:
            self._live.move_to_end(game)
        return live

    async def record(self, game: str) -> tuple[Facts, list[Move]]:
        """What the database holds of a game."""
        try:
            found = await asyncio.to_thread(self.storage.game, game)
        except Unavailable:
            raise Refusal(503, NOT_READ) from None
        if found is None:
            raise Refusal(404, "there is no such game")
        return found

    async def replay(self, game: str) -> list[dict[str, Any]]:
        """All moves of a game, as a page is told of them."""
        facts, moves = await self.record(game)
        return await asyncio.to_thread(replay, facts.seed, facts.pieces, moves)

    async def _load(self, game: str) -> Live:
        facts, moves = await self.record(game)
        live = await asyncio.to_thread(Live, facts, moves)
        self._keep(live)
        return live

    def _keep(self, live: Live) -> None:
        self._live[live.facts.id] = live
        while len(self._live) > self._most:
            self._live.popitem(last=False)

    def end_study(self, study: str) -> None:
        """No more moves in the games of a study."""
        for live in self._live.values():
            live.ended |= live.facts.study == study

    async def state(self, game: str) -> dict[str, Any]:
        """What the player of a game sees now."""
        live = await self.find(game)
        return live.state(self.clock())

    async def move(self, game: str, wanted: NewMove) -> tuple[Live, dict[str, Any]]:
        """Make a move: refused, recognised as one already made, or on disk. Returns the move as it was recorded."""
        arrived = self.clock()
        live = await self.find(game)
        async with live.lock:
            if wanted.turn != live.game.turn:
                return live, await self._made_before(live, wanted)
            move = self._checked(live, wanted, arrived)
            return live, await self._write(live, move)

    async def _write(self, live: Live, move: Move) -> dict[str, Any]:
        """Save a move, then make it on the board. While its fate is unknown, the copy in memory is not to be trusted."""
        ahead = copy.copy(live.game)
        landed, saved = ahead.make(move), False
        try:
            await asyncio.wrap_future(self.storage.write(add_move(live.facts.id, move, ahead.why)))
            saved = True
        except Unavailable:
            raise Refusal(503, NOT_SAVED) from None
        except Conflict:
            raise Refusal(409, "another server has made a move in this game; load it again") from None
        finally:
            if not saved:
                self._forget(live)
        live.game, live.seen = ahead, None
        live.last = told(move, ahead.piece_of(move.turn), landed)
        if live.facts.learn:
            self._made(live.facts, move)
        return live.last

    def _forget(self, live: Live) -> None:
        if self._live.get(live.facts.id) is live:
            del self._live[live.facts.id]

    def _checked(self, live: Live, wanted: NewMove, now: float) -> Move:
        """The move to record, or a sentence on why there is none."""
        game, tau = live.game, live.facts.tau
        placed = wanted.rotation is not None and wanted.column is not None
        if wanted.missed == placed or (wanted.rotation is None) != (wanted.column is None):
            raise Refusal(422, "a move is a rotation and a column, or missed: true where the deadline has passed")
        if game.over:
            raise Refusal(409, "the game is over", state=live.state(now))
        if live.ended:
            raise Refusal(409, "the study has ended, so no more moves are taken", state=live.state(now))
        took = None if live.seen is None else max(0.0, now - live.seen)
        if wanted.missed:
            if tau is None:
                raise Refusal(409, "this game has no deadline that could be missed", state=live.state(now))
            if took is None or took < tau - EARLY:
                raise Refusal(409, "the deadline has not passed yet", state=live.state(now))
            return game.missed(took)
        assert wanted.rotation is not None
        assert wanted.column is not None
        if not game.allows(wanted.rotation, wanted.column):
            raise Refusal(
                422, f"rotation {wanted.rotation} at column {wanted.column} is not a legal placement of this piece"
            )
        if tau is not None and took is not None and took > tau + GRACE:
            return game.missed(took)
        return Move(game.turn, wanted.rotation, wanted.column, False, took)

    async def _made_before(self, live: Live, wanted: NewMove) -> dict[str, Any]:
        """The move of an earlier turn, where it is the very one that is asked for: its answer may have been lost on the way."""
        if wanted.turn < live.game.turn:
            made = live.last
            if made is None or made["turn"] != wanted.turn:
                made = (await self.replay(live.facts.id))[wanted.turn]
            if _same(made, wanted):
                return made
        sentence = f"turn {wanted.turn} is not the present one, which is {live.game.turn}; perhaps the game was played on elsewhere"
        raise Refusal(409, sentence, state=live.state(self.clock()))


def _same(made: dict[str, Any], wanted: NewMove) -> bool:
    """Whether a move on record is the one asked for. What came too late is on record as a miss."""
    if made["missed"]:
        return wanted.missed or wanted.rotation is not None
    return not wanted.missed and (made["rotation"], made["column"]) == (wanted.rotation, wanted.column)
