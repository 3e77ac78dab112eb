"""`revealed play`: the understudy, a posterior, plays Tetris in the player's place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from revealed._validation import check_writable
from revealed.cli._shared import Json, Seed, check_seed, console, print_json
from revealed.cli._tables import load_choices

if TYPE_CHECKING:
    from revealed.environments.tetris.rollout import Step

PosteriorFile = Annotated[
    Path, typer.Argument(help="A posterior of a Tetris player's values.", show_default=False)
]


def play(
    posterior: PosteriorFile,
    steps: Annotated[int, typer.Option(help="Placements at most.")] = 250,
    rows: Annotated[int, typer.Option(help="Rows of the board.")] = 30,
    columns: Annotated[int, typer.Option(help="Columns of the board.")] = 10,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone", help="One draw with noise of its own decides, instead of a vote of many."
        ),
    ] = False,
    speed: Annotated[float, typer.Option(help="Placements a second on the screen.")] = 8.0,
    out: Annotated[
        Path | None, typer.Option(help="Where the game goes, JSON lines.", show_default=False)
    ] = None,
    seed: Seed = 0,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="Show the last board only.")
    ] = False,
    json: Json = False,
) -> None:
    """Let the understudy play Tetris as it learnt from whoever it watched.

    Ctrl-C stops the game and keeps its record.

    Example: `revealed play demo-output/posterior.nc --rows 20 --seed 1` plays as the player of
    `revealed demo`.
    """
    import numpy as np

    from revealed.environments.tetris import (
        sampling_policy,
        tetris_with_features,
        voting_policy,
        write_games,
    )
    from revealed.environments.tetris.text import as_rich, count_empty_rows
    from revealed.models.correlated_noise import NoiseCovariance
    from revealed.results.choice import ChoicePosterior
    from revealed.results.paths import PathPosterior

    # Refuse what makes no game before the posterior is read.
    for option, number in (("--steps", steps), ("--rows", rows), ("--columns", columns)):
        if number < 1:
            raise ValueError(f"{option} must be at least 1; it is {number}")
    if not speed > 0.0:
        raise ValueError(f"--speed must be a positive number; it is {speed:g}")
    if out is not None:
        check_writable(out)
    post = load_choices(posterior)
    if isinstance(post, PathPosterior):
        raise ValueError(
            f"{posterior} has values that change, and a player keeps to one; fit a model whose "
            "values are constant"
        )
    # several groups have several values, and a game has one player
    if not isinstance(post, ChoicePosterior):
        raise ValueError(
            f"{posterior} has {len(post.groups)} groups, and one player plays; save one of them: "
            f"rv.load(...).select(group={post.groups[0]!r}).save(...)"
        )
    # The names of the coefficients say which features the player looked at.
    tetris = tetris_with_features(post.names, rows, columns)
    # one controller that might have been observed, or the vote of all
    noise = post.known_noise
    if isinstance(noise, NoiseCovariance):
        raise ValueError(f"{posterior} has correlated noise, and placements have no labels")
    policy = (
        sampling_policy(post.values, noise) if alone else voting_policy(post.values, noise=noise)
    )
    game = tetris.play(np.random.default_rng(check_seed(seed)), policy, steps)
    # The game is made while it is shown: Ctrl-C ends both.
    played, stopped = _show_game(game, None if json or no_progress else speed)
    # written before anything is printed, and also after Ctrl-C
    if out is not None and played:
        write_games(out, [played])
    cleared = sum(step.landing.cleared for step in played)
    # it ended by itself if it is shorter than asked, or reached the top
    ended = not stopped and (len(played) < steps or bool(played[-1].landing.board[0].any()))
    # The answer for machines, or the last board and a sentence.
    if json:
        print_json({"placements": len(played), "rows_removed": cleared, "ended": ended, "out": out})
        return
    if played:
        console().print(as_rich(played[-1], count_empty_rows(played[-1].board) // 2))
    reason = "the board is full" if ended else "stopped by hand" if stopped else "it could go on"
    print(f"{len(played)} placements, {cleared} rows removed; {reason}.")
    if out is not None:
        print(f"The game is in {out}.")


def _show_game(game: Iterator[Step], speed: float | None) -> tuple[list[Step], bool]:
    """The steps of a game, shown as they are made, and whether it was stopped by hand.

    `speed` is in placements a second; None shows nothing. Nothing is shown either where the
    output is not a terminal.
    """
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from revealed.environments.tetris.text import as_rich

    shown: list[Step] = []
    # Nobody watches a file: boards are only drawn on a terminal.
    screen = console()
    visible = speed is not None and screen.is_terminal
    try:
        with (
            Live(console=screen, auto_refresh=False, transient=True)
            if visible
            else nullcontext() as live
        ):
            # Each step is made when it is asked for, then shown, then a pause.
            for step in game:
                shown.append(step)
                if live is not None:
                    cleared = sum(s.landing.cleared for s in shown)
                    line = Text(f"{len(shown)} placements, {cleared} rows removed   (Ctrl-C stops)")
                    # a tall board is cut at the top to fit the screen
                    tall = min(len(step.board), max(4, screen.height - 4))
                    live.update(Group(as_rich(step, len(step.board) - tall), line), refresh=True)
                    time.sleep(1.0 / speed if speed else 0.0)
    except KeyboardInterrupt:
        return shown, True
    return shown, False
