"""The addresses for downloading a game: an animated picture, and the library's own format."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from revealed.environments.tetris import Landing, Step
from revealed.environments.tetris.gif import draw_frame, encode_gif
from revealed.environments.tetris.recordings import placement_to_json
from revealed.studio.game.game import Game, Move, occupied
from revealed.studio.server.errors import RequestError
from revealed.studio.server.routes_games import games_of
from revealed.studio.server.schemas import Id
from revealed.studio.storage.database import GameRecord

router = APIRouter()

# Placements in one animated picture: about a minute to look at and a second to draw. More of them
# would keep a core busy, and the picture would be too long to be looked at.
MAX_PICTURE_PLACEMENTS = 300
Turn = Annotated[int | None, Query(ge=0, le=10_000)]


@router.get("/api/games/{game}/replay.gif")
async def download_gif(
    request: Request,
    game: Id,
    first: Turn = None,
    last: Turn = None,
    speed: Annotated[float, Query(ge=0.5, le=20.0)] = 4.0,
) -> Response:
    """The placements from turn `first` to turn `last` as an animated picture.

    Default: the last 300 of the game. `speed` is in placements a second. One picture is drawn at a
    time, in a thread.
    """
    record, moves = await games_of(request).record(game)
    # Positions beyond the end mean the end, so that a running game can be asked for.
    end = len(moves) - 1 if last is None else min(last, len(moves) - 1)
    begin = max(0, end - MAX_PICTURE_PLACEMENTS + 1) if first is None else first
    if not moves or begin > end:
        raise RequestError(409, "there is no placement to show")
    if end - begin >= MAX_PICTURE_PLACEMENTS:
        raise RequestError(
            422,
            f"a picture shows at most {MAX_PICTURE_PLACEMENTS} placements; "
            "choose first and last closer together",
        )
    async with request.app.state.picture_lock:
        content = await asyncio.to_thread(_draw_gif, record, moves[: end + 1], begin, speed)
    return Response(
        content,
        media_type="image/gif",
        headers={"Content-Disposition": 'inline; filename="game.gif"'},
    )


def _draw_gif(record: GameRecord, moves: list[Move], begin: int, speed: float) -> bytes:
    """The animated picture of the moves from turn `begin` on, as the bytes of a GIF.

    The moves before it are replayed too, because the board follows from all of them.
    """
    game, frames = Game(record.seed, record.pieces), []
    for move in moves:
        before, piece = game.letters, game.piece_at(move.turn)
        dropped = game.apply(move)
        if move.turn >= begin:
            frames.append(draw_frame(before, dropped.cells, piece))
    return encode_gif(frames, speed)


@router.get("/api/games/{game}/game.jsonl")
async def download_jsonl(request: Request, game: Id) -> Response:
    """The game as `read_games` reads it; a missed deadline is marked."""
    record, moves = await games_of(request).record(game)
    text = await asyncio.to_thread(_format_jsonl, record, moves)
    headers = {"Content-Disposition": 'attachment; filename="game.jsonl"'}
    return Response(text, media_type="application/jsonl", headers=headers)


def _format_jsonl(record: GameRecord, moves: list[Move]) -> str:
    """One JSON object a line for each placement, with the board before it.

    A missed piece for which there was no space covers no squares, and has no line.
    """
    game, lines = Game(record.seed, record.pieces), []
    for move in moves:
        before, piece = occupied(game.letters), game.piece_at(move.turn)
        dropped = game.apply(move)
        if dropped.cells:
            # The environment names a landing by its topmost row.
            top_row = min(row for row, _ in dropped.cells)
            landing = Landing(top_row, occupied(dropped.letters), dropped.cleared)
            step = Step(before, piece, move.rotation, move.column, landing, 0)
            lines.append(
                placement_to_json(step, 1, move.turn, seconds=move.seconds, missed=move.missed)
            )
    return "".join(lines)
