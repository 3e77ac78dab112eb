"""`understudy replay`: recorded games as a moving picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy._files import refuse_unwritable, write_whole
from understudy.cli.shell import Json, NoProgress, Seed, answer, seed_from, working


def replay(
    games: Annotated[Path, typer.Argument(help="Recorded games of Tetris, .jsonl.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Where the picture goes, .gif.", show_default=False)],
    game: Annotated[int | None, typer.Option(help="Which game; the first unless said.", show_default=False)] = None,
    first: Annotated[int, typer.Option(help="The first placement to show, counted from 0.", min=0)] = 0,
    last: Annotated[int | None, typer.Option(help="The last one to show.", show_default=False)] = None,
    speed: Annotated[float, typer.Option(help="Placements a second.")] = 4.0,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Turn a recorded game into an animated picture for a talk.

    Example: `understudy replay demo-output/game.jsonl --out game.gif` shows the game that `understudy demo` recorded.
    """
    from understudy.worlds.tetris import read_games
    from understudy.worlds.tetris.board import Landing
    from understudy.worlds.tetris.film import film, pictures_of
    from understudy.worlds.tetris.world import Step

    seed_from(seed)
    refuse_unwritable(out)
    if out.suffix.lower() != ".gif":
        raise ValueError(f"{out} must end in .gif; other kinds of moving pictures are not written")
    played = read_games(games).placements
    number = played[0].game if game is None else game
    chosen = [p for p in played if p.game == number]
    if not chosen:
        known = sorted({p.game for p in played})
        raise ValueError(f"there is no game {number} in {games}; its games are {', '.join(map(str, known[:20]))}")
    part = chosen[first : None if last is None else last + 1]
    with working("drawing", no_progress):
        steps = [Step(p.board, p.piece, p.rotation, p.column, Landing(p.row, p.board, 0), 0) for p in part]
        write_whole(out, film(pictures_of(steps), speed))
    if json:
        answer({"out": out, "game": number, "placements": len(part)})
        return
    print(f"{len(part)} placements of game {number}: {out}")
