"""Learning while others play: one thread that takes one decision of one game at a time, and never keeps a move waiting.

Games take turns, so a long game that must be learnt again does not hold up the others. Only so many pupils are kept; the one
asked for least recently is forgotten, and learns its game again from the database when somebody asks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import OrderedDict, deque
from contextlib import suppress

from understudy.studio.faults import Refusal, Unavailable
from understudy.studio.games import Move
from understudy.studio.pupil import Learnt, Pupil, rehearse
from understudy.studio.storage import Facts, Storage

log = logging.getLogger("understudy.studio")

PATIENCE = 5.0  # seconds that a question waits for what is being learnt
EVERY = 10  # moves after which something is published while catching up


class Desk:
    """A game to be learnt: its pupil, once there is one, and moves it was told of."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.pupil: Pupil | None = None
        self.moves: deque[Move] = deque()
        self.broken = False

    @property
    def learnt(self) -> Learnt | None:
        """What is known, if anything is."""
        return None if self.pupil is None else self.pupil.learnt


class Learner:
    """The learner of a studio. `tell` and `ask` belong to the event loop."""

    def __init__(self, storage: Storage, most: int, particles: int) -> None:
        self._storage, self._most, self._particles = storage, most, particles
        self._desks: OrderedDict[str, Desk] = OrderedDict()
        self._ready: deque[Desk] = deque()
        self._change = threading.Condition()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = self._rehearsed = False
        self._thread = threading.Thread(target=self._run, name="studio-learner", daemon=True)

    def start(self) -> None:
        """Begin to learn; called by the event loop that will ask."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop after the present decision, or leave what takes longer to die with the process."""
        with self._change:
            self._closed = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def tell(self, facts: Facts, move: Move) -> None:
        """A move was made. Learnt soon, if anybody has asked for this game lately."""
        with self._change:
            desk = self._desks.get(facts.id)
            if desk is not None:
                desk.moves.append(move)
                self._queue(desk)

    def _queue(self, desk: Desk) -> None:
        """To the end of those who wait; but who has no pupil yet, which takes no time, goes first."""
        if desk not in self._ready:
            join = self._ready.append if desk.pupil else self._ready.appendleft
            join(desk)
            self._change.notify()

    def _desk(self, facts: Facts) -> Desk:
        """The desk of a game, the most recently used one from now on."""
        with self._change:
            desk = self._desks.get(facts.id)
            if desk is None or desk.broken:
                desk = self._desks[facts.id] = Desk(facts)
                self._queue(desk)
            self._desks.move_to_end(facts.id)
            while len(self._desks) > self._most:
                self._desks.popitem(last=False)
            return desk

    async def ask(self, facts: Facts, turn: int) -> Pupil:
        """The pupil of a game, when it has learnt the moves before `turn`, or after five seconds what it has."""
        loop = asyncio.get_running_loop()
        desk, end = self._desk(facts), loop.time() + PATIENCE
        while not desk.broken and (desk.learnt is None or desk.learnt.turn < turn):
            word: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(facts.id, []).append(word)
            try:
                async with asyncio.timeout_at(end):
                    await word
            except TimeoutError:
                break
            finally:
                self._stop_waiting(facts.id, word)
        if desk.broken:
            raise Refusal(503, "this game could not be learnt just now; ask again in a moment")
        if not self._rehearsed:
            raise Refusal(
                503, "the studio is still getting ready to learn, which takes a minute or two once; play on meanwhile"
            )
        if desk.pupil is None:
            raise Refusal(503, "other games are being learnt, and this one has to wait; ask again in a moment")
        return desk.pupil

    def _stop_waiting(self, game: str, word: asyncio.Future[None]) -> None:
        words = self._waiting.get(game, [])
        if word in words:
            words.remove(word)
        if not words:
            self._waiting.pop(game, None)

    def _wake(self, game: str) -> None:
        for word in self._waiting.pop(game, []):
            if not word.done():
                word.set_result(None)

    def _run(self) -> None:
        _step_back()
        rehearse()
        self._rehearsed = True
        while True:
            with self._change:
                while not self._ready and not self._closed:
                    self._change.wait()
                if self._closed:
                    return
                desk = self._ready.popleft()
                kept = self._desks.get(desk.facts.id) is desk
            if kept and self._step(desk):
                with self._change:
                    if desk.moves:
                        self._queue(desk)

    def _step(self, desk: Desk) -> bool:
        """Learn one move of a game, or seat its pupil; False where that failed."""
        try:
            pupil = desk.pupil
            if pupil is None:
                found = self._storage.game(desk.facts.id)
                pupil = Pupil(desk.facts.seed, desk.facts.pieces, self._particles)
                with self._change:
                    desk.moves = deque([*(found[1] if found else ()), *desk.moves])
                    desk.pupil = pupil
                self._tell_waiting(desk)
                return True
            while desk.moves and desk.moves[0].turn < pupil.game.turn:
                desk.moves.popleft()  # told of, and in the database too
            if desk.moves:
                pupil.learn(desk.moves.popleft())
            if not desk.moves or pupil.game.turn % EVERY == 0:
                pupil.publish()
                self._tell_waiting(desk)
        except Unavailable:
            desk.broken = True
        except Exception:
            log.exception("learning game %s", desk.facts.id)
            desk.broken = True
        if desk.broken:
            self._tell_waiting(desk)
        return not desk.broken

    def _tell_waiting(self, desk: Desk) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, desk.facts.id)


def _step_back() -> None:
    """Who plays goes before who learns, where the system lets one thread say so."""
    with suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
