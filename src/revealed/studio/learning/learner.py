"""Learning while others play: one thread, one decision of one game at a time.

A move never waits for it. Games take turns, so a long game that must be learnt again does not hold
up the others. Only so many games are kept; the one asked for least recently is forgotten, and is
learnt again from the database when somebody asks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass

from revealed.models.noise import Noise
from revealed.studio.game.game import Move
from revealed.studio.learning.game_learner import (
    GameLearner,
    LearnedState,
    precompile,
)
from revealed.studio.server.errors import RequestError, Unavailable
from revealed.studio.storage.database import GameRecord, Storage

log = logging.getLogger("revealed.studio")


@dataclass(frozen=True)
class LearnerPace:
    """How long requests wait for the learner, and how often it shows something.

    `max_wait_seconds`: well below the 30 seconds after which a page gives up. `publish_every`:
    moves between two published states while catching up; publishing after each would double the
    time, and rarely would leave the page without news.
    """

    max_wait_seconds: float
    publish_every: int


PACE = LearnerPace(max_wait_seconds=5.0, publish_every=10)


class LearningJob:
    """A game to be learnt: its learner, None before the first step, and the moves still to learn.

    `failed` is set where the game could not be learnt; the next request starts a new job.
    """

    def __init__(self, record: GameRecord) -> None:
        self.record = record
        self.learner: GameLearner | None = None
        self.moves: deque[Move] = deque()
        self.failed = False

    @property
    def learned_state(self) -> LearnedState | None:
        """What was published last; None before the first step."""
        return None if self.learner is None else self.learner.learned_state


class Learner:
    """The learner of a studio: a thread that learns, and methods for the event loop.

    `enqueue` and `wait_for` belong to the event loop; `max_games` jobs are kept. `_jobs` and
    `_ready` are shared with the thread and guarded by `_changed`.
    """

    def __init__(
        self, storage: Storage, max_games: int, particles: int, noise: Noise | None = None
    ) -> None:
        self._storage, self._max_games = storage, max_games
        self._particles, self._noise = particles, noise
        # Jobs by game, least recently used first, and those that have something to do.
        self._jobs: OrderedDict[str, LearningJob] = OrderedDict()
        self._ready: deque[LearningJob] = deque()
        self._changed = threading.Condition()
        # Futures of requests that wait for a game; used in the event loop alone.
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self.ready = threading.Event()  # set once the loops are compiled
        self._thread = threading.Thread(target=self._run, name="studio-learner", daemon=True)

    def start(self) -> None:
        """Start the thread; called in the event loop that will ask.

        The loop is remembered, because the thread wakes requests through it.
        """
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Stop after the present decision; what takes longer ends with the process."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def enqueue(self, record: GameRecord, move: Move) -> None:
        """Have a move learnt soon, if anybody has asked for its game lately."""
        with self._changed:
            job = self._jobs.get(record.id)
            if job is not None:
                # Games that nobody looks at are not learnt: their moves are in the database.
                job.moves.append(move)
                self._queue(job)

    def _queue(self, job: LearningJob) -> None:
        """Put a job at the end of those that are ready.

        One without a learner goes first: its first step takes no time, and lets its page show
        something.
        """
        if job not in self._ready:
            append = self._ready.append if job.learner else self._ready.appendleft
            append(job)
            self._changed.notify()

    def _job_of(self, record: GameRecord) -> LearningJob:
        """The job of a game, begun where there is none; now the most recently used one."""
        with self._changed:
            job = self._jobs.get(record.id)
            # A failed job is replaced: the database may be back.
            if job is None or job.failed:
                job = self._jobs[record.id] = LearningJob(record)
                self._queue(job)
            self._jobs.move_to_end(record.id)
            while len(self._jobs) > self._max_games:
                self._jobs.popitem(last=False)
            return job

    async def wait_for(self, record: GameRecord, turn: int) -> GameLearner:
        """The learner of a game, when the moves before `turn` are learnt.

        After five seconds it is returned with what it has learnt by then; RequestError where there
        is nothing yet.
        """
        loop = asyncio.get_running_loop()
        # One limit for all rounds together.
        job, end = self._job_of(record), loop.time() + PACE.max_wait_seconds
        while not job.failed and (job.learned_state is None or job.learned_state.turn < turn):
            # Each round waits for one published state; most of them are the last.
            published: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(record.id, []).append(published)
            try:
                async with asyncio.timeout_at(end):
                    await published
            except TimeoutError:
                break
            finally:
                self._stop_waiting(record.id, published)
        if job.failed:
            raise RequestError(503, "this game could not be learnt just now; ask again in a moment")
        # Nothing was learnt yet: say why, so that the page can tell its reader.
        if not self.ready.is_set():
            raise RequestError(
                503,
                "the studio is still getting ready to learn, "
                "which takes a minute or two once; play on meanwhile",
            )
        if job.learner is None:
            raise RequestError(
                503, "other games are being learnt, and this one has to wait; ask again in a moment"
            )
        return job.learner

    def _stop_waiting(self, game: str, published: asyncio.Future[None]) -> None:
        """Remove a future from those who wait for a game."""
        futures = self._waiting.get(game, [])
        if published in futures:
            futures.remove(published)
        if not futures:
            self._waiting.pop(game, None)

    def _wake(self, game: str) -> None:
        """Fulfil the futures of all who wait for a game; runs in the event loop."""
        for published in self._waiting.pop(game, []):
            if not published.done():
                published.set_result(None)

    def _run(self) -> None:
        """The loop of the thread: one step of one job, then the next job."""
        lower_thread_priority()
        # Compiling takes minutes after an installation; games are played meanwhile.
        precompile(self._noise)
        self.ready.set()
        while True:
            with self._changed:
                while not self._ready and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job = self._ready.popleft()
                # A job that was forgotten or replaced meanwhile is dropped.
                is_current = self._jobs.get(job.record.id) is job
            if is_current and self._step(job):
                with self._changed:
                    if job.moves:
                        self._queue(job)

    def _step(self, job: LearningJob) -> bool:
        """Learn one move of a game, or make its learner; False where that failed."""
        try:
            learner = job.learner
            if learner is None:
                # Moves from the database come first; those enqueued meanwhile may be among them.
                found = self._storage.game(job.record.id)
                learner = GameLearner(
                    job.record.seed, job.record.pieces, self._particles, self._noise
                )
                with self._changed:
                    job.moves = deque([*(found[1] if found else ()), *job.moves])
                    job.learner = learner
                self._announce(job)
                return True
            # Moves that were both enqueued and in the database are learnt once.
            while job.moves and job.moves[0].turn < learner.game.turn:
                job.moves.popleft()
            if job.moves:
                learner.learn(job.moves.popleft())
            # While catching up with a long game, pages see something now and then.
            if not job.moves or learner.game.turn % PACE.publish_every == 0:
                learner.publish()
                self._announce(job)
        # The database is away: the next request tries again.
        except Unavailable:
            job.failed = True
        except Exception:
            log.exception("learning game %s", job.record.id)
            job.failed = True
        if job.failed:
            self._announce(job)
        return not job.failed

    def _announce(self, job: LearningJob) -> None:
        """Wake those who wait for a game, from the learner's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, job.record.id)


def lower_thread_priority() -> None:
    """Let threads that serve players run before this one, where the system can do that."""
    with suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
