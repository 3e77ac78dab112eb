"""The addresses of studies: the researcher's, which need the token, and the participants' own."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, StreamingResponse

from revealed.studio.research import studies
from revealed.studio.research.results import condition_results, write_decision_table
from revealed.studio.server.errors import Conflict, RequestError, Unavailable
from revealed.studio.server.routes_games import games_of
from revealed.studio.server.schemas import Id, MoreParticipants, NewStudy
from revealed.studio.storage.writer import Job


def require_token(request: Request) -> None:
    """Refuse whoever does not have the researcher's token; compared in constant time."""
    # The header reads: Bearer <token>.
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    token: str = request.app.state.settings.token
    if kind.lower() != "bearer" or not secrets.compare_digest(
        given.strip().encode(), token.encode()
    ):
        raise RequestError(401, "this needs the token that the studio printed when it started")


router = APIRouter()
admin = APIRouter(prefix="/api/studies", dependencies=[Depends(require_token)])


async def _save(request: Request, job: Job) -> Any:
    """What a job returns, once it is on disk."""
    try:
        return await asyncio.wrap_future(games_of(request).storage.write(job))
    except Unavailable:
        raise RequestError(
            503, "this could not be saved, so nothing was changed; try again in a moment"
        ) from None


async def _overview(request: Request, study: str) -> dict[str, Any]:
    """The overview of a study, read in a thread."""
    return await asyncio.to_thread(studies.study_overview, games_of(request).storage, study)


@admin.post("", status_code=201)
async def begin_study(request: Request, wanted: NewStudy) -> JSONResponse:
    """Begin a study; answers with its overview, participants' links included."""
    # The table of decisions tells conditions apart by name.
    names = [condition.name for condition in wanted.conditions]
    if len(set(names)) < len(names):
        raise RequestError(422, "two conditions have the same name; each needs one of its own")
    # One job: a study never exists without its participants.
    study, job = studies.add_study(wanted)
    await _save(request, job)
    return JSONResponse(await _overview(request, study), 201)


@admin.get("")
async def list_studies(request: Request) -> JSONResponse:
    """All studies, the newest first."""
    return JSONResponse(await asyncio.to_thread(studies.list_studies, games_of(request).storage))


@admin.get("/{study}")
async def overview(request: Request, study: Id) -> JSONResponse:
    """How far a study is, by participant and condition."""
    return JSONResponse(await _overview(request, study))


@admin.post("/{study}/participants", status_code=201)
async def add_participants(request: Request, study: Id, wanted: MoreParticipants) -> JSONResponse:
    """Add participants; answers with the overview, their links included.

    Refused when the study has ended, or would have more than it can.
    """
    await asyncio.to_thread(studies.find_study, games_of(request).storage, study)
    reason: str | None = await _save(request, studies.add_participants(study, wanted.count))
    if reason is not None:
        raise RequestError(409, reason)
    return JSONResponse(await _overview(request, study), 201)


@admin.post("/{study}/end")
async def end_study(request: Request, study: Id) -> JSONResponse:
    """End a study: no more games and moves.

    What was decided stays, and can be downloaded.
    """
    games = games_of(request)
    await asyncio.to_thread(studies.find_study, games.storage, study)
    await _save(request, studies.end_study(study))
    # Games in memory must know it too.
    games.end_study(study)
    return JSONResponse(await _overview(request, study))


@admin.get("/{study}/decisions.csv")
async def download_csv(request: Request, study: Id) -> StreamingResponse:
    """All decisions of a study as CSV."""
    return await _download_table(request, study, ".csv", "text/csv")


@admin.get("/{study}/decisions.parquet")
async def download_parquet(request: Request, study: Id) -> StreamingResponse:
    """All decisions of a study as Parquet."""
    return await _download_table(request, study, ".parquet", "application/vnd.apache.parquet")


async def _download_table(
    request: Request, study: str, suffix: str, media_type: str
) -> StreamingResponse:
    """The table of decisions as a download.

    It is written to a temporary file first, game by game, so that a large study does not have to
    fit into memory and a failure is told before the download begins.
    """
    storage = games_of(request).storage
    # Refused before anything is written where there is no such study.
    found = await asyncio.to_thread(studies.find_study, storage, study)

    def write() -> BinaryIO:
        with tempfile.TemporaryDirectory(prefix="revealed-") as folder:
            path = Path(folder) / f"decisions{suffix}"
            write_decision_table(storage, found, path)
            # An open file stays readable after its folder is removed.
            return path.open("rb")

    try:
        async with request.app.state.result_lock:
            table = await asyncio.to_thread(write)
    except OSError:
        raise RequestError(
            503, "the table could not be written; there may be no room on the disk"
        ) from None
    headers = {"Content-Disposition": f'attachment; filename="decisions{suffix}"'}
    return StreamingResponse(_read_chunks(table), media_type=media_type, headers=headers)


def _read_chunks(file: BinaryIO) -> Iterator[bytes]:
    """The content of a file in chunks of 64 kB; closes it."""
    with file:
        while chunk := file.read(1 << 16):
            yield chunk


@admin.get("/{study}/posteriors")
async def study_results(request: Request, study: Id) -> JSONResponse:
    """By condition: densities, consistency and direction of the values, and missed deadlines.

    Computed once for the same moves: the counts of moves and misses by participant are the key of
    the cache, which keeps the fifty most recent studies.
    """
    games, cache = games_of(request), request.app.state.cached_results
    async with request.app.state.result_lock:
        found = await asyncio.to_thread(studies.find_study, games.storage, study)
        progress = await _overview(request, study)
        # Moves are only ever added, so their counts say whether anything is new.
        key = [(person["moves"], person["misses"]) for person in progress["participants"]]
        if cache.get(study, (None, None))[0] != key:
            cache[study] = key, await asyncio.to_thread(condition_results, games.storage, found)
            # A result has about 100 kB.
            while len(cache) > 50:
                cache.pop(next(iter(cache)))
        return JSONResponse(cache[study][1])


@router.get("/api/participants/{token}")
async def participant(request: Request, token: Id) -> JSONResponse:
    """What a participant sees of a study: the own games alone.

    The link is the key; no token is needed.
    """
    return JSONResponse(
        await asyncio.to_thread(studies.participant_view, games_of(request).storage, token)
    )


@router.post("/api/participants/{token}/next")
async def next_game(request: Request, token: Id) -> JSONResponse:
    """The game a participant is in, or the next one, begun.

    Where another tab begins the same game at the same moment, the database refuses the second one,
    and the game of the first is answered.
    """
    games = games_of(request)
    # The second round finds the game that the first one lost the race for.
    for _ in range(2):
        game, record = await asyncio.to_thread(studies.find_next_game, games.storage, token)
        if game is not None:
            return JSONResponse(await games.state_payload(game))
        # There is a game, or a record of one to begin.
        assert record is not None
        try:
            live = await games.add(record)
        except Conflict:
            continue
        return JSONResponse(live.state_payload(games.clock()), 201)
    raise RequestError(409, "the game is being begun elsewhere; try again")


router.include_router(admin)
