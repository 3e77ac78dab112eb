"""The addresses for being learnt and mimicked: the posterior, the understudy beside you, on the stage, and in the quiz."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from understudy.studio.faults import Conflict, Refusal, Unavailable
from understudy.studio.games import COLUMNS, ROWS, as_texts
from understudy.studio.learning import Learner
from understudy.studio.live import Live
from understudy.studio.play import games_of
from understudy.studio.pupil import Pupil, play_on
from understudy.studio.quiz import add_question, answer, next_question
from understudy.studio.schemas import Guess, Id, Stage

router = APIRouter()
Turn = Annotated[int | None, Query(ge=0, le=10_000)]


async def _pupil(request: Request, game: str, turn: int | None) -> tuple[Live, Pupil]:
    """The pupil of a game when it knows the moves before a turn, or all of them."""
    live = await games_of(request).find(game)
    if live.facts.participant is not None:
        raise Refusal(
            403, "a game of a study is not learnt while it is played: what the model thinks would change the play"
        )
    if not live.facts.learn:
        raise Refusal(409, "this game is not learnt from; begin one with learn: true")
    learner: Learner = request.app.state.learner
    made = live.game.turn
    return live, await learner.ask(live.facts, made if turn is None else min(turn, made))


@router.get("/api/games/{game}/learning")
async def learning(request: Request, game: Id, turn: Turn = None) -> JSONResponse:
    """What has been learnt from the moves before a turn, as soon as it has, or after five seconds what there is."""
    _, pupil = await _pupil(request, game, turn)
    return JSONResponse(pupil.learnt.answer)


@router.get("/api/games/{game}/understudy")
async def beside(request: Request, game: Id, turn: Turn = None) -> JSONResponse:
    """The understudy's board after a turn that the player has played; the last one unless said."""
    _, pupil = await _pupil(request, game, None if turn is None else turn + 1)
    known = pupil.learnt.turn - 1
    shown = known if turn is None else min(turn, known)
    if shown < 0:
        return JSONResponse({"turn": None, "board": ["." * COLUMNS] * ROWS, "last": None, "over": False, "lines": 0})
    b = pupil.beside[shown]
    return JSONResponse(
        {"turn": shown, "board": as_texts(b.letters), "last": b.last, "over": b.over, "lines": b.lines}
    )  # fmt: skip


@router.post("/api/games/{game}/stage")
async def stage(request: Request, game: Id, wanted: Stage) -> JSONResponse:
    """The understudy plays on from the present board, with pieces of its own."""
    live, pupil = await _pupil(request, game, None)
    seed = secrets.randbits(53) if wanted.seed is None else wanted.seed
    now = live.game
    return JSONResponse(await asyncio.to_thread(play_on, pupil.learnt, now.letters, now.lines, wanted.moves, seed))


@router.post("/api/games/{game}/quiz")
async def ask(request: Request, game: Id) -> JSONResponse:
    """A question: who moved?"""
    games = games_of(request)
    _, pupil = await _pupil(request, game, None)
    facts, moves = await games.record(game)
    others = {turn: place for turn, place in list(pupil.others.items()) if turn < len(moves)}
    for _ in range(3):  # two who ask at once may hit upon the same turn
        question, shown = await asyncio.to_thread(next_question, games.storage, facts, moves, others)
        try:
            await asyncio.wrap_future(games.storage.write(add_question(question)))
        except Conflict:
            continue
        return JSONResponse(shown)
    raise Refusal(409, "others are asking about this game too; try again")


@router.post("/api/games/{game}/quiz/{question}")
async def guess(request: Request, game: Id, question: Id, wanted: Guess) -> JSONResponse:
    """A guess, taken once."""
    games = games_of(request)
    await games.find(game)
    try:
        found: dict[str, Any] | None = await asyncio.wrap_future(
            games.storage.write(answer(game, question, wanted.guess))
        )
    except Unavailable:
        raise Refusal(503, "the guess could not be saved, so it does not count; try again in a moment") from None
    if found is None:
        raise Refusal(404, "there is no such question")
    if not found.pop("taken"):
        raise Refusal(409, "this question was answered before, and only the first answer counts")
    return JSONResponse(found)
