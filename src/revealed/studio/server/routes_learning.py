"""The addresses for what is learnt: the posterior, the understudy's board and play, the quiz."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from revealed.studio.game.game import TETRIS, board_text
from revealed.studio.game.live_games import LiveGame
from revealed.studio.game.quiz import add_question, draw_question, record_guess
from revealed.studio.learning.game_learner import GameLearner, continue_game
from revealed.studio.learning.learner import Learner
from revealed.studio.server.errors import Conflict, RequestError, Unavailable
from revealed.studio.server.routes_games import games_of
from revealed.studio.server.schemas import Continuation, Guess, Id

router = APIRouter()
Turn = Annotated[int | None, Query(ge=0, le=10_000)]


async def _learner_of(
    request: Request, game: str, turn: int | None
) -> tuple[LiveGame, GameLearner]:
    """A game and its learner, once the moves before `turn` are learnt; default: all moves so far.

    Refused for games of studies and for games that are not to be learnt from.
    """
    live = await games_of(request).find(game)
    if live.record.participant is not None:
        raise RequestError(
            403,
            "a game of a study is not learnt while it is played: "
            "what the model thinks would change the play",
        )
    if not live.record.learn:
        raise RequestError(409, "this game is not learnt from; begin one with learn: true")
    # Asking makes the game one that is learnt from now on.
    learner: Learner = request.app.state.learner
    # Nobody can ask for what was not played yet, and wait for it.
    made = live.game.turn
    return live, await learner.wait_for(live.record, made if turn is None else min(turn, made))


@router.get("/api/games/{game}/learning")
async def learning(request: Request, game: Id, turn: Turn = None) -> JSONResponse:
    """What is learnt from the moves before a turn.

    Answered as soon as those moves are learnt, or after five seconds with what there is; `turn` in
    the answer says how many moves it knows.
    """
    _, learner = await _learner_of(request, game, turn)
    return JSONResponse(learner.learned_state.payload)


@router.get("/api/games/{game}/understudy")
async def understudy_board(request: Request, game: Id, turn: Turn = None) -> JSONResponse:
    """The understudy's board after a turn that the player has played; default: the last one.

    It has placed the same pieces as the player, never one that the player has not seen. Before the
    first move, `turn` is null and the board empty.
    """
    _, learner = await _learner_of(request, game, None if turn is None else turn + 1)
    # Boards may be one turn ahead of what was published; those are not shown yet.
    last_turn = learner.learned_state.turn - 1
    shown_turn = last_turn if turn is None else min(turn, last_turn)
    if shown_turn < 0:
        empty = ["." * TETRIS.columns] * TETRIS.rows
        return JSONResponse({"turn": None, "board": empty, "last": None, "over": False, "lines": 0})
    board = learner.understudy_boards[shown_turn]
    return JSONResponse(
        {
            "turn": shown_turn,
            "board": board_text(board.letters),
            "last": board.last,
            "over": board.over,
            "lines": board.lines,
        }
    )


@router.post("/api/games/{game}/continuation")
async def continuation(request: Request, game: Id, wanted: Continuation) -> JSONResponse:
    """The moves of the understudy as it plays on from the present board, with pieces of its own."""
    live, learner = await _learner_of(request, game, None)
    seed = secrets.randbits(53) if wanted.seed is None else wanted.seed
    # The player may go on meanwhile: this is the board of now.
    present = live.game
    moves = await asyncio.to_thread(
        continue_game, learner.learned_state, present.letters, present.lines, wanted.moves, seed
    )
    return JSONResponse(moves)


@router.post("/api/games/{game}/quiz")
async def ask_question(request: Request, game: Id) -> JSONResponse:
    """A question of the quiz: who made this move?

    Each turn is asked once. Two who ask at the same moment may draw the same turn; the second one's
    question is then refused by the database, and another is drawn.
    """
    games = games_of(request)
    _, learner = await _learner_of(request, game, None)
    record, moves = await games.record(game)
    # A copy, because the learner's thread adds to the original; and only moves that are on disk.
    differing = {
        turn: placement
        for turn, placement in list(learner.differing_placements.items())
        if turn < len(moves)
    }
    # Three draws of the same turn in a row mean that very many ask at once.
    for _ in range(3):
        question, payload = await asyncio.to_thread(
            draw_question, games.storage, record, moves, differing
        )
        try:
            await asyncio.wrap_future(games.storage.write(add_question(question)))
        except Conflict:
            continue
        return JSONResponse(payload)
    raise RequestError(409, "others are asking about this game too; try again")


@router.post("/api/games/{game}/quiz/{question}")
async def answer_question(request: Request, game: Id, question: Id, wanted: Guess) -> JSONResponse:
    """Whether a guess was right, who made the move, and the score; only the first guess counts."""
    games = games_of(request)
    await games.find(game)
    try:
        found: dict[str, Any] | None = await asyncio.wrap_future(
            games.storage.write(record_guess(game, question, wanted.guess))
        )
    except Unavailable:
        raise RequestError(
            503, "the guess could not be saved, so it does not count; try again in a moment"
        ) from None
    # The game is there, so it is the question that is not.
    if found is None:
        raise RequestError(404, "there is no such question")
    if not found.pop("taken"):
        raise RequestError(
            409, "this question was answered before, and only the first answer counts"
        )
    return JSONResponse(found)
