"""`revealed rank`: skills of players from a table of results."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from revealed._validation import check_writable
from revealed.cli._shared import (
    Json,
    NoProgress,
    Seed,
    check_seed,
    console,
    data_warnings_as_messages,
    print_json,
    print_message,
)
from revealed.cli._tables import READ_SUFFIXES, CsvDecimal, CsvEncoding, CsvSep, csv_format
from revealed.io.atomic import atomic_open, atomic_write

if TYPE_CHECKING:
    from revealed.models.noise import LogitNoise, NormalNoise
    from revealed.models.over_time import Constant, MeanReverting, RandomWalk
    from revealed.results.ranking import RankingPosterior

Results = Annotated[
    Path,
    typer.Argument(
        help=f"A row for each player in each game: {READ_SUFFIXES}.",
        show_default=False,
    ),
]


def rank(
    results: Results,
    out: Annotated[
        Path | None, typer.Option(help="Where the table goes, CSV.", show_default=False)
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Where the draws go, a NetCDF file.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Where the picture goes, PNG, PDF or SVG.", show_default=False),
    ] = None,
    game: Annotated[str, typer.Option(help="The column that identifies games.")] = "game",
    player: Annotated[str, typer.Option(help="The column of players.")] = "player",
    position: Annotated[
        str,
        typer.Option(
            help="The column of finishing positions; equal numbers tie, as do T2 and =2; DNF and "
            "other codes are behind."
        ),
    ] = "position",
    score: Annotated[
        str | None,
        typer.Option(
            help="A column to use in place of positions, of which the largest number is the best.",
            show_default=False,
        ),
    ] = None,
    team: Annotated[
        str | None,
        typer.Option(help="The column of teams, if players play in teams.", show_default=False),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COLUMN",
            help="The column of when games were played, numbers or dates; for skills that change.",
            show_default=False,
        ),
    ] = None,
    winner_only: Annotated[
        bool, typer.Option("--winner-only", help="Look at who won and at nothing else.")
    ] = False,
    prior_sd: Annotated[
        float | None,
        typer.Option(help="Sd of the skills; inferred by default.", show_default=False),
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="A flat prior of the skills.")] = False,
    noise: Annotated[
        str, typer.Option(help="Of a performance: normal, or logit (Plackett-Luce).")
    ] = "normal",
    team_noise: Annotated[
        str, typer.Option(help="entry: a team has one noise; player: each of its players has.")
    ] = "entry",
    next_game: Annotated[
        str | None,
        typer.Option(
            "--next", help="A line-up to foresee, players separated by commas.", show_default=False
        ),
    ] = None,
    over_time: Annotated[
        str,
        typer.Option(
            help="How skills change: constant, random-walk or mean-reverting; --time says when "
            "games were played, and --plot then shows curves of the best."
        ),
    ] = "constant",
    component: Annotated[
        list[str] | None,
        typer.Option(
            help="A column with labels whose skills change too, such as car, or player*surface; "
            "may be given again.",
            show_default=False,
        ),
    ] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of numbers that games depend on, with --over-time; may be given again.",
            show_default=False,
        ),
    ] = None,
    newcomers: Annotated[
        bool,
        typer.Option(
            "--newcomers",
            help="Players who come after the first date have a mean of their own, which is "
            "inferred; with --over-time random-walk.",
        ),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(
            help="When: the date of the table and of --next, with skills that change; default: "
            "that of the last game.",
            show_default=False,
        ),
    ] = None,
    allow_new_players: Annotated[
        bool,
        typer.Option(
            "--allow-new-players",
            help="In --next, treat players never seen before as drawn from the population.",
        ),
    ] = False,
    sep: CsvSep = None,
    decimal: CsvDecimal = None,
    encoding: CsvEncoding = None,
    draws: Annotated[int, typer.Option(help="Draws kept from each chain.")] = 1000,
    warmup: Annotated[int, typer.Option(help="Iterations before the first draw.")] = 500,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Learn skills from finishing orders, ties, teams and retirements included; say who wins next.

    The table has the columns game, player and position; options name others.

    Example: `revealed rank results.csv --out ranking.csv --plot ranking.png --next ann,bob,cid`
    """
    import warnings

    from revealed.api import NotConvergedWarning, fit
    from revealed.data.times import are_dates
    from revealed.io.files import read_columns
    from revealed.io.read_data import read_rankings
    from revealed.models.over_time import Constant
    from revealed.models.priors import Flat, Normal
    from revealed.models.propriety import UnboundedSkillWarning
    from revealed.models.ranking import RankingModel
    from revealed.results.line_up import check_line_up

    # All files that will be written, before any work is done.
    for path in filter(None, (out, save, plot)):
        check_writable(path)
    if plot is not None and plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"{plot}: the picture must be a .png, .pdf or .svg file")
    # Refuse contradictions and unreadable results before any work is done.
    if flat and prior_sd is not None:
        raise ValueError("--flat and --prior-sd contradict each other; give one of them")
    model_noise, team_noise = _choose_noise(noise, team_noise)
    change, date = _choose_change(over_time, time_column, at)
    # None infers the sd of the skills
    prior = Flat() if flat else None if prior_sd is None else Normal(prior_sd)
    parts = [name for joined in component or () for name in joined.split("*") if name != "player"]
    columns = list(dict.fromkeys([*parts, *(covariate or ())]))
    if columns and next_game is not None:
        raise ValueError(
            "--next knows players alone, and the model depends on "
            f"{', '.join(columns)} too; leave one of them out"
        )
    # The line-up is checked before the fit, which may take an hour.
    with data_warnings_as_messages():
        rankings = read_rankings(
            results,
            game=game,
            player=player,
            position=position,
            team=team,
            winner_only=winner_only,
            score=score,
            time=time_column,
            columns=columns,
            **csv_format(sep, decimal, encoding),
        )
    dated = False
    if time_column is not None and not isinstance(change, Constant):
        form = csv_format(sep, decimal, encoding)
        dated = are_dates(read_columns(results, [time_column], csv_format=form)[time_column])
    line_up = None if next_game is None else [name.strip() for name in next_game.split(",")]
    if line_up is not None:
        check_line_up(line_up, rankings.names, allow_new_players)
    began = time.monotonic()
    # Warnings become sentences, as everything else that is said.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnboundedSkillWarning)
        warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says it better
        ranking = fit(
            rankings,
            RankingModel(
                prior=prior,
                team_noise=team_noise,
                noise=model_noise,
                over_time=change,
                components=("player", *(component or ())),
                covariates=tuple(covariate or ()),
                newcomer_prior=Normal(1.0) if newcomers else None,
            ),
            draws=draws,
            warmup=warmup,
            chains=chains,
            seed=check_seed(seed),
            progress=False if no_progress else None,
        )
    # Players whose skill has no bound are named in a sentence each.
    for warning in caught:
        print_message(str(warning.message))
    seconds = time.monotonic() - began
    # of skills that change the table is of one date
    shown = ranking if date is None else ranking.at(date)
    wins = None if line_up is None else shown.win_probabilities(line_up, allow_new_players)
    lines = shown.table()
    # Files first: what is printed afterwards names them.
    if out is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, lines[0])
        writer.writeheader()
        writer.writerows(lines)
        atomic_write(out, text.getvalue().encode())
    if save is not None:
        ranking.save(save)
    # Drawn into the file that is only there when it is whole.
    if plot is not None:
        from revealed.plots.ranking import skill_intervals
        from revealed.plots.skill_paths import skill_curves

        figure = (
            skill_intervals(ranking)
            if isinstance(change, Constant)
            else skill_curves(ranking, dates=dated)
        )
        with atomic_open(plot) as stream:
            figure.savefig(stream, format=plot.suffix[1:].lower())
    # What did not converge is said on stderr, also where the answer is JSON.
    summary = ranking.summary()
    if not summary.converged:
        print_message(summary.message)
    # The answer for machines, or a table for people.
    if json:
        win_probabilities = (
            None
            if wins is None or line_up is None
            else dict(zip(line_up, wins.tolist(), strict=True))
        )
        print_json(
            {
                "games": len(ranking.rankings),
                "players": len(ranking.names),
                "seconds": seconds,
                "out": out,
                "save": save,
                "plot": plot,
                "drift_sd": None if isinstance(change, Constant) else ranking.drift_sd.mean(),
                "spread": None if flat else ranking.spread.mean(),
                "margin": ranking.margin.mean() if "margin" in ranking.draws else None,
                "converged": summary.converged,
                "message": summary.message,
                "ranking": lines,
                "next": win_probabilities,
            }
        )
        return
    _print_ranking(shown)
    if not isinstance(change, Constant):
        unit = "a day" if dated else "one unit of time"
        print(f"Skills move by {ranking.drift_sd.mean():.3g} in {unit}.")
    if line_up is not None and wins is not None:
        print(
            "Next: "
            + ", ".join(f"{name} wins with {p:.0%}" for name, p in zip(line_up, wins, strict=True))
        )
    for what, file in (("Table", out), ("Draws", save), ("Picture", plot)):
        if file is not None:
            print(f"{what}: {file}")
    if summary.converged:
        print(summary.message)


def _choose_noise(noise: str, team_noise: str) -> tuple[NormalNoise | LogitNoise, str]:
    """The noise of a performance, and whose it is."""
    from revealed.models.noise import LogitNoise, NormalNoise

    # --noise once said what --team-noise says
    if noise in ("entry", "player"):
        return NormalNoise(), noise
    kinds: dict[str, NormalNoise | LogitNoise] = {"normal": NormalNoise(), "logit": LogitNoise()}
    if noise not in kinds:
        raise ValueError(f"--noise must be normal or logit; it is {noise!r}")
    return kinds[noise], team_noise


def _choose_change(
    over_time: str, time_column: str | None, at: str | None
) -> tuple[Constant | RandomWalk | MeanReverting, float | None]:
    """How skills change, and the date that was asked for, as a number."""
    from revealed.data.times import texts_to_times
    from revealed.models.over_time import Constant, MeanReverting, RandomWalk

    if over_time not in ("constant", "random-walk", "mean-reverting"):
        raise ValueError(
            f"--over-time must be constant, random-walk or mean-reverting; it is {over_time!r}"
        )
    # a date means nothing to skills that do not change
    if over_time == "constant":
        if at is not None:
            raise ValueError("--at is for skills that change; give --over-time random-walk")
        return Constant(), None
    if time_column is None:
        raise ValueError(
            f"--over-time {over_time} needs to know when games were played; give --time COLUMN"
        )
    change = MeanReverting() if over_time == "mean-reverting" else RandomWalk()
    return change, None if at is None else float(texts_to_times("--at", [at])[0])


def _print_ranking(ranking: RankingPosterior) -> None:
    """Print the best players with their skills, likely positions and chances to be the best.

    The unit of skills is the sd of the noise of one game, or its scale under logit noise.
    """
    import numpy as np
    from rich.table import Table as Grid

    max_rows = 25  # about one screen
    lines = ranking.table()
    # A row a player, best first.
    grid = Grid(
        title=f"{len(ranking.rankings)} games of {len(ranking.names)} players",
        title_justify="left",
        title_style="bold",
        caption_justify="left",
    )
    grid.add_column("")
    for head in ("skill", "sd", "likely place", "the best", "games"):
        grid.add_column(head, justify="right")
    for line in lines[:max_rows]:
        places = f"{line['place_low']} - {line['place_high']}"
        cells = (
            f"{line['skill']:.2f}",
            f"{line['sd']:.2f}",
            places,
            f"{line['best']:.0%}",
            str(line["games"]),
        )
        grid.add_row(line["player"], *cells)
    if len(lines) > max_rows:
        grid.caption = f"The best {max_rows}; {len(lines) - max_rows} more."
    console().print(grid)
    # a flat prior has no spread
    if np.isfinite(ranking.spread).all():
        print(f"Skills are spread by {ranking.spread.mean():.2f} times the noise of one game.")
    if "margin" in ranking.draws:
        print(f"Closer than {ranking.margin.mean():.2f} times that noise is a tie.")
