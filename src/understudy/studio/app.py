"""The studio as an application: every address it answers to, wired to what answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from understudy.studio import mimic, pages, play, replays, research
from understudy.studio.faults import Refusal, Unavailable
from understudy.studio.gate import OUR_MISTAKE, Gate
from understudy.studio.learning import Learner
from understudy.studio.limits import Limit
from understudy.studio.live import LiveGames
from understudy.studio.settings import Settings
from understudy.studio.storage import Storage

WORDS = {404: "there is nothing at this address", 405: "this address does not answer to that method"}


def create_app(settings: Settings) -> Gate:
    """A studio that can be served. Opens the database at once; ValueError says in a sentence why it cannot."""
    storage = Storage(settings.database)
    learner = Learner(storage, settings.learners, settings.particles)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        learner.start()
        yield
        await asyncio.to_thread(learner.close)
        await asyncio.to_thread(storage.close)

    app = FastAPI(
        title="understudy studio", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json",
        redirect_slashes=False,
    )  # fmt: skip
    app.state.settings = settings
    app.state.learner = learner
    app.state.games = LiveGames(storage, settings.live, learner.tell)
    app.state.beginnings = Limit(settings.games / 60.0, settings.games)
    app.state.posteriors, app.state.computing, app.state.drawing = {}, asyncio.Lock(), asyncio.Lock()
    for part in (play, mimic, replays, research, pages):
        app.include_router(part.router)
    pages.mount(app)
    _sentences(app)
    return Gate(app, settings, storage.name)


def _sentences(app: FastAPI) -> None:
    """Every refusal is one sentence."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> JSONResponse:
        more = {"Retry-After": "1"} if refusal.status in (429, 503) else None
        return JSONResponse(refusal.answer, refusal.status, more)

    @app.exception_handler(Unavailable)
    async def unavailable(request: Request, reason: Unavailable) -> JSONResponse:
        sentence = "the database cannot be reached at the moment; nothing was changed, try again soon"
        return JSONResponse({"error": sentence}, 503, {"Retry-After": "1"})

    @app.exception_handler(RequestValidationError)
    async def misunderstood(request: Request, error: RequestValidationError) -> JSONResponse:
        if any(each["loc"][0] == "path" for each in error.errors()):
            return JSONResponse({"error": "there is nothing at this address"}, 404)
        return JSONResponse({"error": _sentence(error.errors()[0])}, 422)

    @app.exception_handler(Exception)
    async def stumbled(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": OUR_MISTAKE}, 500)  # the gate writes down what it was

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        sentence = WORDS.get(error.status_code) or str(error.detail)
        return JSONResponse({"error": sentence}, error.status_code, error.headers)


def _sentence(error: Any) -> str:
    """What was wrong and where, from a validation error."""
    where = ".".join(str(part) for part in error["loc"][1:] if isinstance(part, str | int))[:100]
    what = str(error["msg"])[:200]
    if error["type"] in ("json_invalid", "missing") and not where.isidentifier():
        return "the request needs a body: a JSON object"
    return f"{where}: {what[0].lower()}{what[1:]}" if where else what
