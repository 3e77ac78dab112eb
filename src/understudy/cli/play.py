"""`understudy play`: what was learnt from a player takes its place at the board."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy._files import refuse_unwritable
from understudy.cli.shell import Json, Seed, answer, console, seed_from

if TYPE_CHECKING:
    from understudy.posterior import Posterior
    from understudy.worlds.tetris.world import Step

PosteriorFile = Annotated[Path, typer.Argument(help="A posterior of a Tetris player's values.", show_default=False)]


def play(
    posterior: PosteriorFile,
    steps: Annotated[int, typer.Option(help="Placements at most.")] = 250,
    rows: Annotated[int, typer.Option(help="Rows of the board.")] = 30,
    columns: Annotated[int, typer.Option(help="Columns of the board.")] = 10,
    alone: Annotated[
        bool, typer.Option("--alone", help="One draw with noise of its own decides, instead of a vote of many.")
    ] = False,
    speed: Annotated[float, typer.Option(help="Placements a second on the screen.")] = 8.0,
    out: Annotated[Path | None, typer.Option(help="Where the game goes, JSON lines.", show_default=False)] = None,
    seed: Seed = 0,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show the last board only.")] = False,
    json: Json = False,
) -> None:
    """Let the understudy play Tetris as it learnt from whoever it watched. Ctrl-C stops the game and keeps its record.

    Example: `understudy play demo-output/posterior.nc --rows 20 --seed 1` plays as the player of `understudy demo`.
    """
    import numpy as np

    from understudy.posterior import load
    from understudy.worlds.tetris import by_one, by_vote, world_for, write_games
    from understudy.worlds.tetris.view import as_rich, free_rows

    for option, number in (("--steps", steps), ("--rows", rows), ("--columns", columns)):
        if number < 1:
            raise ValueError(f"{option} must be at least 1; it is {number}")
    if not speed > 0.0:
        raise ValueError(f"--speed must be a positive number; it is {speed:g}")
    if out is not None:
        refuse_unwritable(out)
    post: Posterior = load(posterior)
    world = world_for(post.names, rows, columns)
    choose = by_one(post.values) if alone else by_vote(post.values)
    game = world.play(np.random.default_rng(seed_from(seed)), choose, steps)
    shown, stopped = _watch(game, None if json or no_progress else speed)
    if out is not None and shown:
        write_games(out, [shown])
    cleared = sum(step.landing.cleared for step in shown)
    ended = not stopped and (len(shown) < steps or bool(shown[-1].landing.board[0].any()))
    if json:
        answer({"placements": len(shown), "rows_removed": cleared, "ended": ended, "out": out})
        return
    if shown:
        console().print(as_rich(shown[-1], free_rows(shown[-1].board) // 2))
    how = "the board is full" if ended else "stopped by hand" if stopped else "it could go on"
    print(f"{len(shown)} placements, {cleared} rows removed; {how}.")
    if out is not None:
        print(f"The game is in {out}.")


def _watch(game: Iterator[Step], speed: float | None) -> tuple[list[Step], bool]:
    """The game's steps, shown as they are made where someone looks on; and whether it was stopped by hand."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from understudy.worlds.tetris.view import as_rich

    shown: list[Step] = []
    screen = console()
    looked_at = speed is not None and screen.is_terminal
    try:
        with Live(console=screen, auto_refresh=False, transient=True) if looked_at else nullcontext() as live:
            for step in game:
                shown.append(step)
                if live is not None:
                    cleared = sum(s.landing.cleared for s in shown)
                    line = Text(f"{len(shown)} placements, {cleared} rows removed   (Ctrl-C stops)")
                    tall = min(len(step.board), max(4, screen.height - 4))
                    live.update(Group(as_rich(step, len(step.board) - tall), line), refresh=True)
                    time.sleep(1.0 / speed if speed else 0.0)
    except KeyboardInterrupt:
        return shown, True
    return shown, False
