"""The addresses for playing: begin a game, look at it, make a move, replay it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from revealed.studio.game.live_games import LiveGames
from revealed.studio.server.errors import RequestError
from revealed.studio.server.schemas import Id, NewGame, NewMove

router = APIRouter()


def games_of(request: Request) -> LiveGames:
    """The games of the studio that a request was made to."""
    # Typed here, because the state of an application has no types.
    games: LiveGames = request.app.state.games
    return games


def client_address(request: Request) -> str:
    """The network address that a request comes from; empty where it is not known."""
    return request.client.host if request.client else ""


@router.get("/api/health")
async def health(request: Request) -> JSONResponse:
    """Whether the studio runs, and whether it can learn already.

    `learning` becomes true when the compiled loops are ready, which takes minutes after an
    installation and a second later on; games are played meanwhile.
    """
    return JSONResponse({"ok": True, "learning": request.app.state.learner.ready.is_set()})


@router.post("/api/games", status_code=201)
async def begin_game(request: Request, wanted: NewGame) -> JSONResponse:
    """Begin a game; answers with its first state.

    Its id is the key to it: whoever knows it can play on.
    """
    # Each game is a row in the database for ever, so beginning one has a limit of its own.
    if not request.app.state.new_game_limit.allows(client_address(request)):
        raise RequestError(429, "too many games were begun from your address; wait a minute")
    games = games_of(request)
    live = await games.begin(wanted)
    return JSONResponse(live.state_payload(games.clock()), 201)


@router.get("/api/games/{game}")
async def game_state(request: Request, game: Id) -> JSONResponse:
    """The state of a game: board, piece, legal placements, and the time left."""
    return JSONResponse(await games_of(request).state_payload(game))


@router.post("/api/games/{game}/moves")
async def make_move(request: Request, game: Id, wanted: NewMove) -> JSONResponse:
    """Make a move; answers with the move as it was recorded and the next state.

    A placement after its deadline is recorded as missed. A move that was made before is answered
    again.
    """
    games = games_of(request)
    # The state is shown with the answer, so the next turn's clock starts now.
    live, made = await games.move(game, wanted)
    return JSONResponse({"move": made, "state": live.state_payload(games.clock())})


@router.get("/api/games/{game}/moves")
async def list_moves(request: Request, game: Id) -> JSONResponse:
    """All moves so far, each with the squares it covered."""
    made: list[dict[str, Any]] = await games_of(request).replay(game)
    return JSONResponse(made)
