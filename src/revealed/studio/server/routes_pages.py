"""The page, the files it is made of, and the library that draws its charts."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from revealed.studio.server.schemas import Id

router = APIRouter(include_in_schema=False)
STATIC_FOLDER = Path(__file__).parents[1].joinpath("static")


@router.get("/")
async def main_page() -> FileResponse:
    """The page; its script shows the view that the address names.

    There is one page for all views; the part of the address after # never reaches the server.
    """
    return FileResponse(STATIC_FOLDER / "index.html")


@router.get("/p/{token}")
async def participant_page(token: Id) -> FileResponse:
    """The same page for a participant of a study."""
    return FileResponse(STATIC_FOLDER / "index.html")


@router.get("/replay/{game}")
async def replay_page(game: Id) -> FileResponse:
    """The same page, replaying a game."""
    return FileResponse(STATIC_FOLDER / "index.html")


@router.get("/plotly.js")
async def plotly_bundle() -> Response:
    """Plotly's own bundle, from its Python package: no other server is asked for it."""
    # A package may be inside an archive; as_file makes a file of it.
    with as_file(files("plotly") / "package_data" / "plotly.min.js") as bundle:
        return FileResponse(
            bundle, media_type="text/javascript", headers={"Cache-Control": "public, max-age=86400"}
        )


def mount_static(app: FastAPI) -> None:
    """Serve the modules and styles of the page below /static."""
    # Starlette refuses paths that lead out of the folder.
    app.mount("/static", StaticFiles(directory=STATIC_FOLDER), name="static")
