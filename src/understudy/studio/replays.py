"""The addresses for taking a game along: an animated picture for a talk, and the library's own file of games."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from understudy.studio.faults import Refusal
from understudy.studio.games import Game, Move, occupied
from understudy.studio.play import games_of
from understudy.studio.schemas import Id
from understudy.studio.storage import Facts
from understudy.worlds.tetris import Landing, Step
from understudy.worlds.tetris.film import film, picture
from understudy.worlds.tetris.games import as_line

router = APIRouter()
LONGEST = 300  # placements in a picture
Turn = Annotated[int | None, Query(ge=0, le=10_000)]


@router.get("/api/games/{game}/replay.gif")
async def as_picture(
    request: Request,
    game: Id,
    first: Turn = None,
    last: Turn = None,
    speed: Annotated[float, Query(ge=0.5, le=20.0)] = 4.0,
) -> Response:
    """The placements from `first` to `last` as an animated picture; the last ones of the game unless said."""
    facts, moves = await games_of(request).record(game)
    end = len(moves) - 1 if last is None else min(last, len(moves) - 1)
    begin = max(0, end - LONGEST + 1) if first is None else first
    if not moves or begin > end:
        raise Refusal(409, "there is no placement to show")
    if end - begin >= LONGEST:
        raise Refusal(422, f"a picture shows at most {LONGEST} placements; choose first and last closer together")
    async with request.app.state.drawing:  # one at a time
        content = await asyncio.to_thread(_film, facts, moves[: end + 1], begin, speed)
    return Response(content, media_type="image/gif", headers={"Content-Disposition": 'inline; filename="game.gif"'})


def _film(facts: Facts, moves: list[Move], begin: int, speed: float) -> bytes:
    game, pictures = Game(facts.seed, facts.pieces), []
    for move in moves:
        before, piece = game.letters, game.piece_of(move.turn)
        landed = game.make(move)
        if move.turn >= begin:
            pictures.append(picture(before, landed.cells, piece))
    return film(pictures, speed)


@router.get("/api/games/{game}/game.jsonl")
async def as_lines(request: Request, game: Id) -> Response:
    """The game as `read_games` reads it; what was missed is marked."""
    facts, moves = await games_of(request).record(game)
    text = await asyncio.to_thread(_lines, facts, moves)
    headers = {"Content-Disposition": 'attachment; filename="game.jsonl"'}
    return Response(text, media_type="application/jsonl", headers=headers)


def _lines(facts: Facts, moves: list[Move]) -> str:
    game, lines = Game(facts.seed, facts.pieces), []
    for move in moves:
        before, piece = occupied(game.letters), game.piece_of(move.turn)
        landed = game.make(move)
        if landed.cells:
            landing = Landing(min(row for row, _ in landed.cells), occupied(landed.letters), landed.cleared)
            step = Step(before, piece, move.rotation, move.column, landing, 0)
            lines.append(as_line(step, 1, move.turn, seconds=move.seconds, missed=move.missed))
    return "".join(lines)
