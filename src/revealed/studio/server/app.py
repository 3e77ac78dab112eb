"""The studio as an application: every address it answers, and every error as one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from revealed.studio.game.live_games import LiveGames
from revealed.studio.learning.learner import Learner
from revealed.studio.server import (
    routes_export,
    routes_games,
    routes_learning,
    routes_pages,
    routes_studies,
)
from revealed.studio.server.errors import RequestError, Unavailable
from revealed.studio.server.middleware import INTERNAL_ERROR, RequestMiddleware
from revealed.studio.server.rate_limit import RateLimit
from revealed.studio.server.settings import Settings
from revealed.studio.storage.database import Storage


def create_app(settings: Settings) -> RequestMiddleware:
    """A studio that can be served.

    The database is opened at once; ValueError says in a sentence why it cannot be. The learner's
    thread starts with the server and is stopped before the database is closed.
    """
    # A database that cannot be used is found before the server listens.
    storage = Storage(settings.database)
    learner = Learner(storage, settings.learners, settings.particles, settings.noise)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        learner.start()
        yield
        # Both may wait for a thread, which must not hold up the event loop.
        await asyncio.to_thread(learner.close)
        await asyncio.to_thread(storage.close)

    app = FastAPI(
        title="revealed studio",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
    )
    # What the routes share; there is no other global state.
    app.state.settings = settings
    app.state.learner = learner
    app.state.games = LiveGames(storage, settings.live, learner.enqueue)
    app.state.new_game_limit = RateLimit(settings.games / 60.0, settings.games)
    # Results of studies and animated pictures take seconds of a core: one of each at a time.
    app.state.cached_results = {}
    app.state.result_lock, app.state.picture_lock = asyncio.Lock(), asyncio.Lock()
    for routes in (routes_games, routes_learning, routes_export, routes_studies, routes_pages):
        app.include_router(routes.router)
    # Last, because it takes every address below /static.
    routes_pages.mount_static(app)
    _add_error_handlers(app)
    return RequestMiddleware(app, settings, storage.name)


def _add_error_handlers(app: FastAPI) -> None:
    """Make every error of the application a JSON object with one sentence."""
    no_such_address = "there is nothing at this address"
    sentences = {404: no_such_address, 405: "this address does not answer to that method"}

    @app.exception_handler(RequestError)
    async def answer_refusal(request: Request, refusal: RequestError) -> JSONResponse:
        headers = {"Retry-After": "1"} if refusal.status in (429, 503) else None
        return JSONResponse(refusal.payload, refusal.status, headers)

    @app.exception_handler(Unavailable)
    async def answer_unavailable(request: Request, reason: Unavailable) -> JSONResponse:
        sentence = (
            "the database cannot be reached at the moment; nothing was changed, try again soon"
        )
        return JSONResponse({"error": sentence}, 503, {"Retry-After": "1"})

    @app.exception_handler(RequestValidationError)
    async def answer_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        # A game's id that cannot be one is an address that does not exist.
        if any(problem["loc"][0] == "path" for problem in error.errors()):
            return JSONResponse({"error": no_such_address}, 404)
        return JSONResponse({"error": _validation_sentence(error.errors()[0])}, 422)

    @app.exception_handler(Exception)
    async def answer_bug(request: Request, error: Exception) -> JSONResponse:
        # The exception goes on to the middleware, which logs it.
        return JSONResponse({"error": INTERNAL_ERROR}, 500)

    @app.exception_handler(HTTPException)
    async def answer_http_error(request: Request, error: HTTPException) -> JSONResponse:
        sentence = sentences.get(error.status_code) or str(error.detail)
        return JSONResponse({"error": sentence}, error.status_code, error.headers)


def _validation_sentence(error: Any) -> str:
    """What was wrong and where, from one of pydantic's validation errors.

    Names of fields come from the request and may be long: both parts are cut.
    """
    # pydantic's location starts with the part of the request: body, query or path.
    where = ".".join(str(part) for part in error["loc"][1:] if isinstance(part, str | int))[:100]
    what = str(error["msg"])[:200]
    if error["type"] in ("json_invalid", "missing") and not where.isidentifier():
        return "the request needs a body: a JSON object"
    return f"{where}: {what[0].lower()}{what[1:]}" if where else what
