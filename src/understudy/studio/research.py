"""The addresses for studies: the researcher's, which need the token, and the participants', which need their link."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, StreamingResponse

from understudy.studio import studies
from understudy.studio.faults import Conflict, Refusal, Unavailable
from understudy.studio.outcomes import posteriors, write_table
from understudy.studio.play import games_of
from understudy.studio.schemas import Id, More, NewStudy
from understudy.studio.writer import Job


def researcher(request: Request) -> None:
    """Let through whoever has the token."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    token: str = request.app.state.settings.token
    if kind.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), token.encode()):
        raise Refusal(401, "this needs the token that the studio printed when it started")


router = APIRouter()
admin = APIRouter(prefix="/api/studies", dependencies=[Depends(researcher)])


async def _save(request: Request, job: Job) -> Any:
    try:
        return await asyncio.wrap_future(games_of(request).storage.write(job))
    except Unavailable:
        raise Refusal(503, "this could not be saved, so nothing was changed; try again in a moment") from None


@admin.post("", status_code=201)
async def begin(request: Request, wanted: NewStudy) -> JSONResponse:
    """Begin a study; answers with its overview, participants' links included."""
    names = [condition.name for condition in wanted.conditions]
    if len(set(names)) < len(names):
        raise Refusal(422, "two conditions have the same name; each needs one of its own")
    study, job = studies.add_study(wanted)
    await _save(request, job)
    return JSONResponse(await asyncio.to_thread(studies.overview, games_of(request).storage, study), 201)


@admin.get("")
async def listed(request: Request) -> JSONResponse:
    """All studies."""
    return JSONResponse(await asyncio.to_thread(studies.listed, games_of(request).storage))


@admin.get("/{study}")
async def overview(request: Request, study: Id) -> JSONResponse:
    """How far a study is."""
    return JSONResponse(await asyncio.to_thread(studies.overview, games_of(request).storage, study))


@admin.post("/{study}/participants", status_code=201)
async def invite(request: Request, study: Id, wanted: More) -> JSONResponse:
    """Add participants."""
    storage = games_of(request).storage
    await asyncio.to_thread(studies.find, storage, study)
    refused: str | None = await _save(request, studies.add_participants(study, wanted.count))
    if refused is not None:
        raise Refusal(409, refused)
    return JSONResponse(await asyncio.to_thread(studies.overview, storage, study), 201)


@admin.post("/{study}/end")
async def end(request: Request, study: Id) -> JSONResponse:
    """End a study: no more games and moves."""
    games = games_of(request)
    await asyncio.to_thread(studies.find, games.storage, study)
    await _save(request, studies.end_study(study))
    games.end_study(study)
    return JSONResponse(await asyncio.to_thread(studies.overview, games.storage, study))


@admin.get("/{study}/decisions.csv")
async def as_csv(request: Request, study: Id) -> StreamingResponse:
    """All decisions as CSV."""
    return await _table(request, study, ".csv", "text/csv")


@admin.get("/{study}/decisions.parquet")
async def as_parquet(request: Request, study: Id) -> StreamingResponse:
    """All decisions as Parquet."""
    return await _table(request, study, ".parquet", "application/vnd.apache.parquet")


async def _table(request: Request, study: str, ending: str, kind: str) -> StreamingResponse:
    storage = games_of(request).storage
    found = await asyncio.to_thread(studies.find, storage, study)

    def written() -> BinaryIO:
        with tempfile.TemporaryDirectory(prefix="understudy-") as folder:
            path = Path(folder) / f"decisions{ending}"
            write_table(storage, found, path)
            return path.open("rb")  # what is open stays readable when the folder has gone

    try:
        async with request.app.state.computing:
            table = await asyncio.to_thread(written)
    except OSError:
        raise Refusal(503, "the table could not be written; there may be no room on the disk") from None
    headers = {"Content-Disposition": f'attachment; filename="decisions{ending}"'}
    return StreamingResponse(_pieces(table), media_type=kind, headers=headers)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(1 << 16):
            yield piece


@admin.get("/{study}/posteriors")
async def by_condition(request: Request, study: Id) -> JSONResponse:
    """By condition: densities, consistency and direction of the values, and misses. Computed once for the same moves."""
    games, kept = games_of(request), request.app.state.posteriors
    async with request.app.state.computing:  # one at a time
        found = await asyncio.to_thread(studies.find, games.storage, study)
        made = await asyncio.to_thread(studies.overview, games.storage, study)
        key = [(part["moves"], part["misses"]) for part in made["participants"]]
        if kept.get(study, (None, None))[0] != key:
            kept[study] = key, await asyncio.to_thread(posteriors, games.storage, found)
            while len(kept) > 50:
                kept.pop(next(iter(kept)))
        return JSONResponse(kept[study][1])


@router.get("/api/participants/{token}")
async def participant(request: Request, token: Id) -> JSONResponse:
    """What a participant sees of a study."""
    return JSONResponse(await asyncio.to_thread(studies.own_view, games_of(request).storage, token))


@router.post("/api/participants/{token}/next")
async def next_game(request: Request, token: Id) -> JSONResponse:
    """The game a participant is in, or the next one, begun."""
    games = games_of(request)
    for _ in range(2):
        game, facts = await asyncio.to_thread(studies.next_game, games.storage, token)
        if game is not None:
            return JSONResponse(await games.state(game))
        assert facts is not None
        try:
            live = await games.add(facts)
        except Conflict:  # begun in another tab at this very moment
            continue
        return JSONResponse(live.state(games.clock()), 201)
    raise Refusal(409, "the game is being begun elsewhere; try again")


router.include_router(admin)
