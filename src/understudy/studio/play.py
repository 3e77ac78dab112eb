"""The addresses for playing: begin a game, look at it, make a move, replay it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from understudy.studio.faults import Refusal
from understudy.studio.live import LiveGames
from understudy.studio.schemas import Id, NewGame, NewMove

router = APIRouter()


def games_of(request: Request) -> LiveGames:
    """The studio's games."""
    games: LiveGames = request.app.state.games
    return games


def address_of(request: Request) -> str:
    """Who asks."""
    return request.client.host if request.client else ""


@router.get("/api/health")
async def health() -> JSONResponse:
    """Whether the studio runs."""
    return JSONResponse({"ok": True})


@router.post("/api/games", status_code=201)
async def begin(request: Request, wanted: NewGame) -> JSONResponse:
    """Begin a game; answers with its first state."""
    if not request.app.state.beginnings.allows(address_of(request)):
        raise Refusal(429, "too many games were begun from your address; wait a minute")
    games = games_of(request)
    live = await games.begin(wanted)
    return JSONResponse(live.state(games.clock()), 201)


@router.get("/api/games/{game}")
async def state(request: Request, game: Id) -> JSONResponse:
    """The state of a game."""
    return JSONResponse(await games_of(request).state(game))


@router.post("/api/games/{game}/moves")
async def move(request: Request, game: Id, wanted: NewMove) -> JSONResponse:
    """Make a move; answers with the move as it was recorded and the next state."""
    games = games_of(request)
    live, made = await games.move(game, wanted)
    return JSONResponse({"move": made, "state": live.state(games.clock())})


@router.get("/api/games/{game}/moves")
async def moves(request: Request, game: Id) -> JSONResponse:
    """All moves so far."""
    made: list[dict[str, Any]] = await games_of(request).replay(game)
    return JSONResponse(made)
