"""The demonstration: a Tetris player whose values are hidden is watched, learnt, predicted, and replaced (paper, section 5.2)."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy._files import refuse_unwritable
from understudy.cli.shell import Json, NoProgress, Seed, answer, console, make_folder, seed_from, working

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from understudy.worlds.tetris import Step

VALUE = (-3.0, -15.0, -1.0)  # of height, holes and bumps: the paper's first player
LEARN, TEST, GAME = 100, 400, 250
KAPPA = 2500.0
FILES = ("decisions.csv", "posterior.nc", "values.png", "boards.png", "game.jsonl", "report.html")


def demo(
    out: Annotated[Path, typer.Option(help="The folder for what is made; it is created.")] = Path("demo-output"),
    quick: Annotated[bool, typer.Option("--quick", help="A shorter game at the end.")] = False,
    seed: Seed = 1,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Watch a simulated Tetris player, learn what it values, predict it, and let the understudy play.

    Example: `understudy demo --quick --out demo-output`
    """
    import numpy as np

    from understudy import plots
    from understudy.paper.figures import boards
    from understudy.paper.study import learn
    from understudy.predict import predict
    from understudy.priors import Gaussian
    from understudy.report import write_report
    from understudy.table_files import to_file
    from understudy.worlds.tetris import Tetris, by_one, by_vote, write_games
    from understudy.worlds.tetris.view import with_piece

    make_folder(out)
    files = {name: out / name for name in FILES}
    for path in files.values():
        refuse_unwritable(path)
    rng, world = np.random.default_rng(seed_from(seed)), Tetris()
    bar = {"no_progress": no_progress}
    with working("waking up: the first run compiles, later runs do not", **bar):
        d = world.decisions(world.simulate(rng, VALUE, LEARN + TEST))
        seen, unseen = d[:LEARN], d[LEARN:]
        to_file(seen, files["decisions.csv"])
        learn(seen, Gaussian(KAPPA), draws=10, seed=seed)
    began = time.monotonic()
    post = learn(seen, Gaussian(KAPPA), seed=seed)
    seconds = time.monotonic() - began
    post.save(files["posterior.nc"])
    with working("predicting, playing, drawing the pictures", **bar):
        some = post.values[:: max(1, len(post.values) // 1000)]
        found = predict(some, unseen)
        steps = 60 if quick else GAME
        true = list(world.play(rng, by_one(VALUE), steps))
        game = list(world.play(rng, by_vote(post.values), steps))
        write_games(files["game.jsonl"], [game])
        _save(plots.value_intervals(post, truth=np.array(VALUE)), files["values.png"])
        last = {"": [with_piece(true[-1]), with_piece(game[-1])]}
        note = (
            f"The last of {len(true)} and {len(game)} placements, on different pieces; the piece just placed is orange."
        )
        _save(
            boards("The player and its understudy", last, ["the player", "the understudy"], note), files["boards.png"]
        )
        write_report(post, files["report.html"], seed=seed)
    summary = post.summary()
    facts: dict[str, Any] = {
        "files": files, "seed": seed, "seconds": seconds, "engine": post.engine, "trusted": summary.trusted,
        "verdict": summary.verdict, "names": post.names, "truth": VALUE, "mean": summary.mean, "low": summary.low,
        "high": summary.high, "covered": int(((summary.low <= VALUE) & (summary.high >= VALUE)).sum()),
        "error": found.error, "log_score": found.log_score, "error_guessing": float(1.0 - (1.0 / unseen.sizes).mean()),
        "error_knowing_the_values": predict(VALUE, unseen, "point").error,
        "game": _told(game, steps), "player_game": _told(true, steps),
    }  # fmt: skip
    if json:
        answer(facts)
    else:
        tell(facts, game[-1])


def _told(game: list[Step], steps: int) -> dict[str, Any]:
    return {
        "placements": len(game),
        "rows_removed": sum(step.landing.cleared for step in game),
        "ended": len(game) < steps or bool(game[-1].landing.board[0].any()),
    }


def _save(figure: Figure, path: Path) -> None:
    from understudy._files import write_whole

    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_whole(path, image.getvalue())


def tell(facts: dict[str, Any], last: Step) -> None:
    """What happened, in plain words, and where to look next."""
    from rich.table import Table

    from understudy.worlds.tetris.view import as_rich, free_rows

    files, show = facts["files"], console()
    show.print("[bold]1. Watching[/bold]")
    print("   A noisy player of Tetris looks at the height, the holes and the bumps that a placement leaves behind.")
    print(f"   We see {LEARN} of its placements, and not what it values.\n")
    show.print("[bold]2. Learning[/bold]")
    print(
        f"   The posterior of its values, in {facts['seconds']:.1f} s, against the truth that the simulation knows:\n"
    )
    grid = Table(show_edge=False, pad_edge=True)
    for head in ("feature", "true value", "posterior mean", "90% interval", ""):
        grid.add_column(head, justify="left" if head in ("feature", "") else "right")
    for k, name in enumerate(facts["names"]):
        grid.add_row(name, f"{facts['truth'][k]:.2f}", f"{facts['mean'][k]:.2f}", *_interval(facts, k))
    show.print(grid)
    print(f"\n   {facts['verdict']}\n")
    show.print("[bold]3. Predicting[/bold]")
    print(f"   {TEST} placements it has never seen: {facts['error']:.1%} predicted wrongly. A blind guess is wrong in")
    knowing = facts["error_knowing_the_values"]
    print(
        f"   {facts['error_guessing']:.0%}; someone who knows the true values is wrong in {knowing:.1%}, for the player is noisy.\n"
    )
    show.print("[bold]4. Standing in[/bold]")
    game = facts["game"]
    print(f"   The understudy plays {game['placements']} placements and removes {game['rows_removed']} rows:\n")
    show.print(as_rich(last, max(0, free_rows(last.board) - 4)))
    show.print("\n[bold]Where to look next[/bold]")
    print(f"   {files['report.html']}   open it in a browser: everything about this posterior on one page")
    print(f"   {files['values.png']}, {files['boards.png']}   the values, and both at play")
    print(f"   understudy play {files['posterior.nc']}   watch it play here")
    print(f"   understudy fit {files['decisions.csv']} --prior-variance {KAPPA:g} --out my-posterior.nc")
    print(f"   understudy predict {files['posterior.nc']} {files['decisions.csv']} --out my-predictions.csv")


def _interval(facts: dict[str, Any], k: int) -> tuple[str, str]:
    low, high = facts["low"][k], facts["high"][k]
    return f"{low:.2f} to {high:.2f}", "inside" if low <= facts["truth"][k] <= high else "outside"
