"""`revealed replay`: a recorded game as an animated GIF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from revealed._validation import check_writable
from revealed.cli._shared import Json, NoProgress, Seed, check_seed, print_json, progress
from revealed.io.atomic import atomic_write


def replay(
    games: Annotated[
        Path, typer.Argument(help="Recorded games of Tetris, .jsonl.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Where the picture goes, .gif.", show_default=False)],
    game: Annotated[
        int | None, typer.Option(help="Which game; default: the first.", show_default=False)
    ] = None,
    first: Annotated[
        int, typer.Option(help="The first placement to show, counted from 0.", min=0)
    ] = 0,
    last: Annotated[
        int | None, typer.Option(help="The last one to show.", show_default=False)
    ] = None,
    speed: Annotated[float, typer.Option(help="Placements a second.")] = 4.0,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Turn a recorded game into an animated picture for a talk.

    Example: `revealed replay demo-output/game.jsonl --out game.gif` shows the game that
    `revealed demo` recorded.
    """
    from revealed.environments.tetris import read_games
    from revealed.environments.tetris.board import Landing
    from revealed.environments.tetris.gif import draw_frames, encode_gif
    from revealed.environments.tetris.rollout import Step

    # nothing here is random, but a bad seed is refused like everywhere
    check_seed(seed)
    check_writable(out)
    if out.suffix.lower() != ".gif":
        raise ValueError(f"{out} must end in .gif; other kinds of moving pictures are not written")
    placements = read_games(games).placements
    # the first game of the file, if none is named
    number = placements[0].game if game is None else game
    of_game = [p for p in placements if p.game == number]
    # Say which games there are, or at most twenty of them.
    if not of_game:
        known = sorted({p.game for p in placements})
        raise ValueError(
            f"there is no game {number} in {games}; its games are {', '.join(map(str, known[:20]))}"
        )
    shown = of_game[first : None if last is None else last + 1]
    # Drawing takes a few milliseconds a frame.
    with progress("drawing", no_progress):
        # A frame needs the board before a placement and where the piece came to rest; the board
        # after it is not drawn.
        steps = [
            Step(p.board, p.piece, p.rotation, p.column, Landing(p.row, p.board, 0), 0)
            for p in shown
        ]
        atomic_write(out, encode_gif(draw_frames(steps), speed))
    if json:
        print_json({"out": out, "game": number, "placements": len(shown)})
        return
    print(f"{len(shown)} placements of game {number}: {out}")
