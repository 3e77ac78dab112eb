"""`revealed demo`: a Tetris player is observed, learnt, predicted and replaced.

The player is the first of the paper's section 5.2, whose values are known, so that everybody can
see how close the posterior comes.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed._validation import check_writable
from revealed.cli._shared import (
    Json,
    NoProgress,
    Seed,
    check_seed,
    console,
    make_folder,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from revealed.environments.tetris import Step


@dataclass(frozen=True)
class DemoPlan:
    """What the demonstration does; all but `game_steps` as in the paper's first experiment.

    value: true weights of height, holes and bumps, the paper's first player.
    learn_from, predict: how many placements are learnt from, and how many predicted.
    game_steps: placements of the understudy's game; `--quick` plays `quick_game_steps`.
    prior_sd: the paper's kappa = 2500. A much smaller one would pull the values to zero.
    """

    value: tuple[float, float, float] = (-3.0, -15.0, -1.0)
    learn_from: int = 100
    predict: int = 400
    game_steps: int = 250
    quick_game_steps: int = 60
    prior_sd: float = 50.0
    files: tuple[str, ...] = (
        "decisions.csv",
        "posterior.nc",
        "values.png",
        "boards.png",
        "game.jsonl",
        "report.html",
    )


PLAN = DemoPlan()


def demo(
    out: Annotated[Path, typer.Option(help="The folder for what is made; it is created.")] = Path(
        "demo-output"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A shorter game at the end.")] = False,
    seed: Seed = 1,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Watch a simulated Tetris player, infer what it values, predict it, let the understudy play.

    Example: `revealed demo --quick --out demo-output`
    """
    import numpy as np

    from revealed import plots
    from revealed.api import fit_quietly
    from revealed.environments.tetris import Tetris, sampling_policy, voting_policy, write_games
    from revealed.environments.tetris.text import board_with_piece
    from revealed.io.files import write_file
    from revealed.models.choice import ChoiceModel
    from revealed.models.priors import Normal
    from revealed.plots.report import write_report
    from revealed.replication.figures import plot_boards
    from revealed.results.predictive import predict

    # Every file is checked before the first second of work.
    make_folder(out)
    files = {name: out / name for name in PLAN.files}
    for path in files.values():
        check_writable(path)
    rng, tetris = np.random.default_rng(check_seed(seed)), Tetris()
    model = ChoiceModel(prior=Normal(PLAN.prior_sd))
    bar = {"no_progress": no_progress}
    with progress("waking up: the first run compiles, later runs do not", **bar):
        # The first fit compiles; a short one before the clock starts keeps that out of the time.
        d = tetris.decisions(tetris.simulate(rng, PLAN.value, PLAN.learn_from + PLAN.predict))
        seen, unseen = d[: PLAN.learn_from], d[PLAN.learn_from :]
        write_file(seen, files["decisions.csv"])
        fit_quietly(seen, model, draws=10, seed=seed)
    # Only this fit is timed: what a user would wait for.
    began = time.monotonic()
    post = fit_quietly(seen, model, seed=seed)
    seconds = time.monotonic() - began
    post.save(files["posterior.nc"])
    with progress("predicting, playing, drawing the pictures", **bar):
        # A thousand draws predict as well as all of them.
        thinned = post.values[:: max(1, len(post.values) // 1000)]
        predicted = predict(thinned, unseen)
        steps = PLAN.quick_game_steps if quick else PLAN.game_steps
        # Both play on pieces of their own, the player with its true values.
        true_game = list(tetris.play(rng, sampling_policy(PLAN.value), steps))
        game = list(tetris.play(rng, voting_policy(post.values), steps))
        write_games(files["game.jsonl"], [game])
        _save_figure(plots.value_intervals(post, truth=np.array(PLAN.value)), files["values.png"])
        # The last board of each game, side by side.
        last = {"": [board_with_piece(true_game[-1]), board_with_piece(game[-1])]}
        note = (
            f"The last of {len(true_game)} and {len(game)} placements, on different pieces; "
            "the piece just placed is orange."
        )
        _save_figure(
            plot_boards(
                "The player and its understudy", last, ["the player", "the understudy"], note
            ),
            files["boards.png"],
        )
        # The report is the page that `revealed report` makes.
        write_report(post, files["report.html"], seed=seed)
    summary = post.summary()
    # Everything that is printed, for machines too.
    results: dict[str, Any] = {
        "files": files,
        "seed": seed,
        "seconds": seconds,
        "sampler": post.sampler,
        "converged": summary.converged,
        "message": summary.message,
        "names": post.names,
        "truth": PLAN.value,
        "mean": summary.mean,
        "low": summary.low,
        "high": summary.high,
        "covered": int(((summary.low <= PLAN.value) & (summary.high >= PLAN.value)).sum()),
        "error": predicted.error_rate,
        "log_score": predicted.log_score,
        "error_guessing": float(1.0 - (1.0 / unseen.sizes).mean()),
        "error_knowing_the_values": predict(PLAN.value, unseen, "point").error_rate,
        "game": _count_game(game, steps),
        "player_game": _count_game(true_game, steps),
    }
    if json:
        print_json(results)
    else:
        print_results(results, game[-1])


def _count_game(game: list[Step], steps: int) -> dict[str, Any]:
    """How many placements a game has, how many rows went, and whether it ended."""
    return {
        "placements": len(game),
        "rows_removed": sum(step.landing.cleared for step in game),
        "ended": len(game) < steps or bool(game[-1].landing.board[0].any()),
    }


def _save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    from revealed.io.atomic import atomic_write

    # drawn in memory first, so that an interruption leaves no half of a file
    image = io.BytesIO()
    figure.savefig(image, format="png")
    atomic_write(path, image.getvalue())


def print_results(results: dict[str, Any], last: Step) -> None:
    """Print what happened, in plain words, and where to look next.

    `results` are those of `--json`, and `last` is the last step of the understudy's game.
    """
    from rich.table import Table

    from revealed.environments.tetris.text import as_rich, count_empty_rows

    files, show = results["files"], console()
    # Four steps, each with its result, and then what to try next.
    show.print("[bold]1. Watching[/bold]")
    print(
        "   A noisy player of Tetris looks at the height, the holes and the bumps "
        "that a placement leaves behind."
    )
    print(f"   We see {PLAN.learn_from} of its placements, and not what it values.\n")
    show.print("[bold]2. Learning[/bold]")
    print(
        f"   The posterior of its values, in {results['seconds']:.1f} s, "
        "against the truth that the simulation knows:\n"
    )
    # Truth and posterior side by side, a row a feature.
    grid = Table(show_edge=False, pad_edge=True)
    for head in ("feature", "true value", "posterior mean", "90% interval", ""):
        grid.add_column(head, justify="left" if head in ("feature", "") else "right")
    for k, name in enumerate(results["names"]):
        grid.add_row(
            name,
            f"{results['truth'][k]:.2f}",
            f"{results['mean'][k]:.2f}",
            *_format_interval(results, k),
        )
    show.print(grid)
    print(f"\n   {results['message']}\n")
    show.print("[bold]3. Predicting[/bold]")
    print(
        f"   {PLAN.predict} placements it has never seen: {results['error']:.1%} predicted "
        "wrongly. A blind guess is wrong in"
    )
    # the floor: noise cannot be predicted
    knowing = results["error_knowing_the_values"]
    print(
        f"   {results['error_guessing']:.0%}; someone who knows the true values is wrong in "
        f"{knowing:.1%}, for the player is noisy.\n"
    )
    show.print("[bold]4. Standing in[/bold]")
    game = results["game"]
    print(
        f"   The understudy plays {game['placements']} placements "
        f"and removes {game['rows_removed']} rows:\n"
    )
    # The last board, without most of the empty rows above the pile.
    show.print(as_rich(last, max(0, count_empty_rows(last.board) - 4)))
    show.print("\n[bold]Where to look next[/bold]")
    print(
        f"   {files['report.html']}   open it in a browser: "
        "everything about this posterior on one page"
    )
    print(f"   {files['values.png']}, {files['boards.png']}   the values, and both at play")
    print(f"   revealed play {files['posterior.nc']}   watch it play here")
    print(
        f"   revealed fit {files['decisions.csv']} --prior-sd {PLAN.prior_sd:g} "
        "--out my-posterior.nc"
    )
    print(
        f"   revealed predict {files['posterior.nc']} {files['decisions.csv']} "
        "--out my-predictions.csv"
    )


def _format_interval(results: dict[str, Any], k: int) -> tuple[str, str]:
    """The 90% interval of a coefficient, and whether the truth lies inside."""
    low, high = results["low"][k], results["high"][k]
    return f"{low:.2f} to {high:.2f}", "inside" if low <= results["truth"][k] <= high else "outside"
