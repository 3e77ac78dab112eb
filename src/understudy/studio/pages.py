"""The page, what it is made of, and the library that draws its charts."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from understudy.studio.schemas import Id

router = APIRouter(include_in_schema=False)
STATIC = Path(__file__).parent / "static"


@router.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(STATIC / "index.html")


@router.get("/p/{token}")
async def participant(token: Id) -> FileResponse:
    """The same page for a participant of a study."""
    return FileResponse(STATIC / "index.html")


@router.get("/replay/{game}")
async def replay(game: Id) -> FileResponse:
    """The same page, replaying a game."""
    return FileResponse(STATIC / "index.html")


@router.get("/plotly.js")
async def plotly() -> Response:
    """Plotly's own bundle, from its Python package."""
    with as_file(files("plotly") / "package_data" / "plotly.min.js") as bundle:
        return FileResponse(bundle, media_type="text/javascript", headers={"Cache-Control": "public, max-age=86400"})


def mount(app: FastAPI) -> None:
    """Serve the modules and styles of the page."""
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
