"""`understudy rank`: skills from a table of results."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy._files import refuse_unwritable, whole_file, write_whole
from understudy.cli.shell import Json, NoProgress, Seed, answer, console, say, seed_from

if TYPE_CHECKING:
    from understudy.ranking import Ranking

SHOWN = 25  # players in a printed table

Results = Annotated[
    Path, typer.Argument(help="A row for each player in each game: .csv, .csv.gz, .parquet or .pq.", show_default=False)
]


def rank(
    results: Results,
    out: Annotated[Path | None, typer.Option(help="Where the table goes, CSV.", show_default=False)] = None,
    save: Annotated[Path | None, typer.Option(help="Where the draws go, a NetCDF file.", show_default=False)] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Where the picture goes, PNG, PDF or SVG.", show_default=False)
    ] = None,
    game: Annotated[str, typer.Option(help="The column that tells games apart.")] = "game",
    player: Annotated[str, typer.Option(help="The column of players.")] = "player",
    position: Annotated[
        str, typer.Option(help="The column of finishing positions; equal numbers tie, DNF and the like are behind.")
    ] = "position",
    team: Annotated[
        str | None, typer.Option(help="The column of teams, if players play in teams.", show_default=False)
    ] = None,
    winner_only: Annotated[bool, typer.Option("--winner-only", help="Look at who won and at nothing else.")] = False,
    prior_variance: Annotated[
        float | None, typer.Option(help="Variance of the skills; learnt unless said.", show_default=False)
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="A flat prior of the skills.")] = False,
    noise: Annotated[str, typer.Option(help="entry: a team has one noise; player: each of its players has.")] = "entry",
    next_game: Annotated[
        str | None,
        typer.Option("--next", help="A line-up to foresee, players separated by commas.", show_default=False),
    ] = None,
    strangers: Annotated[
        bool, typer.Option("--strangers", help="In --next, take players never seen before for anybody.")
    ] = False,
    draws: Annotated[int, typer.Option(help="Draws kept from each chain.")] = 1000,
    warmup: Annotated[int, typer.Option(help="Iterations before the first draw.")] = 500,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Learn skills from finishing orders, ties, teams and retirements included, and say who wins next.

    The table has the columns game, player and position, unless others are named.

    Example: `understudy rank results.csv --out ranking.csv --plot ranking.png --next ann,bob,cid`
    """
    import warnings

    from understudy.engines.fit import NotConvergedWarning
    from understudy.limits import OpenEndedWarning
    from understudy.priors import Flat, Gaussian
    from understudy.ranking import refuse_bad_line_up
    from understudy.skills import rank as learn
    from understudy.skills import read_orders

    for path in filter(None, (out, save, plot)):
        refuse_unwritable(path)
    if plot is not None and plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"{plot}: the picture must be a .png, .pdf or .svg file")
    if flat and prior_variance is not None:
        raise ValueError("--flat and --prior-variance contradict each other; give one of them")
    prior = Flat() if flat else None if prior_variance is None else Gaussian(prior_variance)
    orders = read_orders(results, game, player, position, team, winner_only)
    line_up = None if next_game is None else [name.strip() for name in next_game.split(",")]
    if line_up is not None:
        refuse_bad_line_up(line_up, orders.names, strangers)
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpenEndedWarning)
        warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says it better
        found = learn(
            orders, prior, noise=noise, draws=draws, warmup=warmup, chains=chains, seed=seed_from(seed),
            progress=False if no_progress else None,
        )  # fmt: skip
    for warning in caught:
        say(str(warning.message))
    seconds = time.monotonic() - began
    wins = None if line_up is None else found.win_probabilities(line_up, strangers)
    lines = found.table()
    if out is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, lines[0])
        writer.writeheader()
        writer.writerows(lines)
        write_whole(out, text.getvalue().encode())
    if save is not None:
        found.save(save)
    if plot is not None:
        from understudy.plots import skill_intervals

        with whole_file(plot) as stream:
            skill_intervals(found).savefig(stream, format=plot.suffix[1:].lower())
    summary = found.summary()
    if not summary.trusted:
        say(summary.verdict)
    if json:
        chances = None if wins is None or line_up is None else dict(zip(line_up, wins.tolist(), strict=True))
        answer({
            "games": len(found.orders), "players": len(found.names), "seconds": seconds, "out": out, "save": save, "plot": plot,
            "spread": None if flat else found.spread.mean(), "margin": found.margin.mean() if found.orders.has_ties else None,
            "trusted": summary.trusted, "verdict": summary.verdict, "ranking": lines, "next": chances,
        })  # fmt: skip
        return
    _print(found)
    if line_up is not None and wins is not None:
        print("Next: " + ", ".join(f"{name} wins with {p:.0%}" for name, p in zip(line_up, wins, strict=True)))
    for what, file in (("Table", out), ("Draws", save), ("Picture", plot)):
        if file is not None:
            print(f"{what}: {file}")
    if summary.trusted:
        print(summary.verdict)


def _print(found: Ranking) -> None:
    import numpy as np
    from rich.table import Table as Grid

    lines = found.table()
    grid = Grid(
        title=f"{len(found.orders)} games of {len(found.names)} players", title_justify="left", title_style="bold",
        caption_justify="left",
    )  # fmt: skip
    grid.add_column("")
    for head in ("skill", "sd", "likely place", "the best", "games"):
        grid.add_column(head, justify="right")
    for line in lines[:SHOWN]:
        places = f"{line['place_low']} - {line['place_high']}"
        cells = (f"{line['skill']:.2f}", f"{line['sd']:.2f}", places, f"{line['best']:.0%}", str(line["games"]))
        grid.add_row(line["player"], *cells)
    if len(lines) > SHOWN:
        grid.caption = f"The best {SHOWN}; {len(lines) - SHOWN} more."
    console().print(grid)
    if np.isfinite(found.spread).all():
        print(f"Skills are spread by {found.spread.mean():.2f} times the noise of one game.")
    if found.orders.has_ties:
        print(f"Closer than {found.margin.mean():.2f} times that noise is a tie.")
