"""The four commands that do the work: simulate, fit, predict, report."""

from __future__ import annotations

import json as json_format
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy._files import refuse_unwritable
from understudy.cli.shell import (
    INTERRUPTED,
    Json,
    NoProgress,
    Seed,
    answer,
    console,
    say,
    seed_from,
    working,
)

if TYPE_CHECKING:
    from understudy.decisions import Decisions
    from understudy.diagnostics import Summary
    from understudy.predict import Prediction

SHOWN = 40  # coefficients in a printed table
TABLES = ".csv, .csv.gz, .parquet or .pq"

GAMES = ".jsonl"

Table = Annotated[
    Path,
    typer.Argument(help=f"The long table of decisions, {TABLES}; or games of Tetris, {GAMES}.", show_default=False),
]
PosteriorFile = Annotated[Path, typer.Argument(help="A posterior that `understudy fit` wrote.", show_default=False)]


def _column(words: str) -> Any:
    return typer.Option(metavar="COLUMN", help=words, rich_help_panel="Columns of the table")


def _how(words: str, **more: Any) -> Any:
    return typer.Option(help=words, rich_help_panel="How it is drawn", **more)


DecisionColumn = Annotated[str, _column("Decision ids.")]
ActionColumn = Annotated[str, _column("Action labels, if there are any.")]
GroupColumn = Annotated[str, _column("Who decided, if it is told.")]
AvailableColumn = Annotated[str | None, _column("True or false: which actions were on offer.")]


def simulate(
    out: Annotated[Path, typer.Option(help=f"Where the decisions go, {TABLES}.", show_default=False)],
    states: Annotated[int, typer.Option(help="States of the world.")] = 7,
    actions: Annotated[int, typer.Option(help="Actions in each state.")] = 3,
    decisions: Annotated[int, typer.Option(help="Decisions to watch.")] = 50,
    kappa: Annotated[float, typer.Option(help="Prior variance that the controller's values are drawn with.")] = 4.0,
    truth: Annotated[
        Path | None, typer.Option(help="Where the values and the transitions go, JSON.", show_default=False)
    ] = None,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Watch a noisy controller in a random finite world, and write down its decisions.

    Example: `understudy simulate --states 7 --actions 3 --decisions 50 --kappa 4 --seed 1 --out decisions.csv`
    """
    import numpy as np

    from understudy._files import write_whole
    from understudy.frames import to_file
    from understudy.mdp import random_mdp
    from understudy.priors import Gaussian, place

    _refuse_other_table(out)
    for path in filter(None, (out, truth)):
        refuse_unwritable(path)
    _refuse_not_positive("--kappa", kappa)
    with working("watching the controller", no_progress):
        rng = np.random.default_rng(seed_from(seed))
        world = random_mdp(rng, states, actions)
        value = place(Gaussian(kappa), world.decisions([0])).draw(rng, 1)[0]
        seen = world.simulate(rng, value, decisions)
        to_file(world.decisions(seen.states, seen.actions), out)
        if truth is not None:
            known = {
                "value": value.tolist(), "transitions": world.transitions.tolist(), "states": seen.states.tolist(),
                "actions": seen.actions.tolist(), "kappa": kappa, "seed": seed,
            }  # fmt: skip
            write_whole(truth, json_format.dumps(known).encode())
    if json:
        answer({"out": out, "truth": truth, "decisions": decisions, "states": states, "actions": actions,
                "kappa": kappa, "seed": seed, "value": value})  # fmt: skip
        return
    print(f"{decisions} decisions among {actions} actions in {states} states: {out}")
    if truth is not None:
        print(f"The values behind them and the transitions: {truth}")
    print(f"Next: understudy fit {out} --centred --prior-variance {kappa:g} --out posterior.nc")


def fit(
    table: Table,
    out: Annotated[Path, typer.Option(help="Where the posterior goes, NetCDF.", show_default=False)],
    prior_variance: Annotated[
        float | None, typer.Option(help="Variance of the Gaussian prior (kappa); 2500 unless said.", show_default=False)
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="A flat prior instead of a Gaussian one.")] = False,
    learn_prior: Annotated[
        bool, typer.Option("--learn-prior", help="Learn the size of the Gaussian prior from the decisions too.")
    ] = False,
    centred: Annotated[
        bool,
        typer.Option("--centred", help="The values sum to zero, as in a finite MDP, where only differences matter."),
    ] = False,
    engine: Annotated[str, _how("auto, blended, da, px-scale, px-translate or px-both.")] = "auto",
    draws: Annotated[int, _how("Draws kept from each chain.")] = 1000,
    warmup: Annotated[int, _how("Iterations before the first draw.")] = 1000,
    chains: Annotated[int, _how("Independent chains.")] = 4,
    thin: Annotated[int, _how("Iterations for each draw kept.")] = 1,
    threads: Annotated[int | None, _how("Chains run at once; all cores unless said.", min=1)] = None,
    utilities: Annotated[str, _how("How utilities are drawn: exact or metropolis.")] = "exact",
    a: Annotated[float, _how("Shape of the working scale's prior; 0 for the improper one.")] = 0.0,
    b: Annotated[float, _how("Rate of the working scale's prior; 0 for the improper one.")] = 0.0,
    decision: DecisionColumn = "decision",
    chosen: Annotated[str, _column("True on the action taken.")] = "chosen",
    action: ActionColumn = "action",
    group: GroupColumn = "group",
    available: AvailableColumn = None,
    features: Annotated[
        str | None,
        _column(
            "The features, separated by commas; all other columns unless said. With games of Tetris, a set: paper, bertsekas, "
            "dellacherie or rich."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the checkpoint that a run left which was interrupted or killed, if there is one.",
        ),
    ] = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(help="Seconds between checkpoints, about; 0 for one after every piece of work.")
    ] = 30.0,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Learn the posterior of the values from a table of decisions, and say whether to trust it.

    A run that is interrupted or killed leaves a checkpoint beside --out; the same command with --resume ends with the same draws.

    Example: `understudy fit decisions.csv --centred --prior-variance 4 --out posterior.nc`, or
    `understudy fit games.jsonl --features rich --out player.nc` and then `understudy play player.nc`
    """
    from understudy.engines.fit import NotConvergedWarning
    from understudy.engines.fit import fit as run
    from understudy.frames import from_file
    from understudy.priors import Flat, Gaussian

    refuse_unwritable(out)
    given = {"--flat": flat, "--prior-variance": prior_variance is not None, "--learn-prior": learn_prior}
    if sum(given.values()) > 1:
        named = " and ".join(name for name, said in given.items() if said)
        raise ValueError(f"{named} contradict each other; give one of them")
    if prior_variance is not None:
        _refuse_not_positive("--prior-variance", prior_variance)
    centre = True if centred else None
    variance: Any = "learn" if learn_prior else 2500.0 if prior_variance is None else prior_variance
    prior = Flat(centre) if flat else Gaussian(variance, centred=centre)
    columns = {"decision": decision, "chosen": chosen, "action": action, "group": group, "available": available}
    if _holds_games(table):
        d = _played(table, features or "paper")
    else:
        d = from_file(table, features=None if features is None else features.split(","), **columns)

    checkpoint = out.with_name(f"{out.name}.checkpoint")
    if checkpoint.exists() and not resume:
        say(f"note: starting afresh; {checkpoint} is from a run that was interrupted, and --resume would continue it")
    if resume and not checkpoint.exists():
        if out.exists():
            raise ValueError(
                f"there is no checkpoint {checkpoint} to resume from, and {out} is there already; leave out --resume to learn it afresh"
            )
        say(f"note: starting afresh; there is no checkpoint {checkpoint} to resume from")
        resume = False
    options = {"utilities": utilities, "a": a, "b": b}
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says it better
            post = run(
                d, prior, engine, draws, warmup, chains, seed_from(seed), options=options, thin=thin, threads=threads,
                progress=False if no_progress else None, checkpoint=checkpoint, resume=resume,
                checkpoint_seconds=checkpoint_seconds,
            )  # fmt: skip
        made = post.draws.shape[1]
    except KeyboardInterrupt:
        made = 0
    if made < draws:
        typed = shlex.join(["understudy", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"])
        say(f"interrupted after {made} of {draws} draws a chain; nothing is lost, go on with: {typed}")
        raise typer.Exit(INTERRUPTED)
    post.save(out)
    checkpoint.unlink(missing_ok=True)

    if not centred and _rows_have_one_sum(d):
        say("note: the rows of each decision add up to the same number, as in a finite MDP; consider --centred")
    summary = post.summary()
    if not summary.trusted:
        say(summary.verdict)
    if json:
        answer({"out": out, "engine": post.engine, "decisions": len(d), "seconds": time.monotonic() - began,
                **_facts(summary), **post.settings})  # fmt: skip
        return
    _print(summary, f"{len(d)} decisions, engine {post.engine}, {chains} chains of {draws} draws")
    print(f"Posterior: {out}")
    print(f"Next: understudy report {out} --out report.html")


def predict(
    posterior: PosteriorFile,
    table: Table,
    out: Annotated[Path, typer.Option(help=f"Where the probabilities go, {TABLES}.", show_default=False)],
    method: Annotated[str, typer.Option(help="average, vote or point.")] = "average",
    decision: DecisionColumn = "decision",
    chosen: Annotated[str | None, _column("True on the action taken; `chosen` if there is such a column.")] = None,
    action: ActionColumn = "action",
    group: GroupColumn = "group",
    available: AvailableColumn = None,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Predict the choices in a table of decisions, and where they are known say how good the predictions were.

    Example: `understudy predict posterior.nc decisions.csv --out predictions.csv`
    """
    from understudy.frames import from_file
    from understudy.posterior import load
    from understudy.predict import predict as foresee

    _refuse_other_table(out)
    refuse_unwritable(out)
    post = load(posterior)
    if _holds_games(table):
        d, chosen = _played(table, post.names), "chosen"
    else:
        if chosen is None and "chosen" in _columns(table):
            chosen = "chosen"
        columns = {"decision": decision, "chosen": chosen, "action": action, "group": group, "available": available}
        d = from_file(table, features=post.names, **columns)
    with working("predicting", no_progress):
        found = foresee(post, d, method, seed=seed_from(seed))
        _write_table(found.to_frame(), out)
    facts = {"out": out, "method": method, "decisions": len(d), "seen": chosen is not None, **_scores(found)}
    if json:
        answer(facts)
        return
    print(f"The probability of each action in {len(d)} decisions: {out}")
    if chosen is None:
        print(
            f"There is no column of choices, so the predictions cannot be scored; they are {facts['confidence']:.0%} sure."
        )
        return
    print(f"Error E_a: {found.error:.1%} were predicted wrongly (guessing: {facts['guessing']:.1%}).")
    print(f"Log score: {found.log_score:.4f}, the mean log probability of what was chosen; 0 is perfect.")
    print(
        f"Calibration: on average {facts['confidence']:.0%} sure and {1 - found.error:.0%} right; "
        f"calibration error {facts['calibration']['error']:.3f}."
    )


def report(
    posterior: PosteriorFile,
    out: Annotated[Path, typer.Option(help="Where the page goes, HTML.", show_default=False)],
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Write one page of what a posterior says and whether to trust it: words, tables and pictures in one file.

    Example: `understudy report posterior.nc --out report.html`
    """
    from understudy.posterior import load
    from understudy.report import write_report

    refuse_unwritable(out)
    post = load(posterior)
    with working("writing the report", no_progress):
        write_report(post, out, seed=seed_from(seed))
    summary = post.summary()
    if not summary.trusted:
        say(summary.verdict)
    if json:
        answer({"out": out, "decisions": len(post.decisions), **_facts(summary)})
        return
    if summary.trusted:
        print(summary.verdict)
    print(f"Report: {out} (open it in a browser)")


def _scores(found: Prediction) -> dict[str, Any]:
    facts = {
        "confidence": found.confidence.mean(),
        "guessing": 1.0 - (1.0 / found.decisions.sizes).mean(),
        "error": None,
        "log_score": None,
        "calibration": None,
    }
    if found.decisions.chosen is None:
        return facts
    bins = found.calibration()
    columns = ("low", "high", "count", "predicted", "observed", "standard_error")
    rows = [{column: getattr(bins, column)[i] for column in columns} for i in range(len(bins.count))]
    return {
        **facts,
        "error": found.error,
        "log_score": found.log_score,
        "calibration": {"error": bins.error, "bins": rows},
    }


def _holds_games(table: Path) -> bool:
    return table.name.lower().endswith(GAMES)


def _played(path: Path, features: str | Sequence[str]) -> Decisions:
    """The straight drops in recorded games of Tetris, with a named set of features, or the set that has these names."""
    from understudy.worlds.tetris import read_games
    from understudy.worlds.tetris.features import set_with

    games = read_games(path)
    return games.decisions(features=features if isinstance(features, str) else set_with(features, games.columns))


def _columns(table: Path) -> list[str]:
    """The column names of a table; none when it cannot be read, which reading it in full explains better."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if table.name.lower().endswith((".parquet", ".pq")):
            return list(pa.parquet.read_schema(table).names)
        with pa.csv.open_csv(table) as file:
            return list(file.schema.names)
    except (OSError, pa.ArrowException):
        return []


def _write_table(table: Any, path: Path) -> None:
    import gzip
    import io

    import pyarrow.csv
    import pyarrow.parquet

    from understudy._files import write_whole

    whole = io.BytesIO()
    if path.name.lower().endswith((".parquet", ".pq")):
        pyarrow.parquet.write_table(table, whole)
    else:
        pyarrow.csv.write_csv(table, whole)
    content = whole.getvalue()
    write_whole(path, gzip.compress(content, mtime=0) if path.name.lower().endswith(".gz") else content)


def _facts(summary: Summary) -> dict[str, Any]:
    columns = ("mean", "sd", "mcse", "low", "high", "ess_bulk", "ess_tail", "r_hat")
    return {
        "trusted": summary.trusted,
        "verdict": summary.verdict,
        "warnings": summary.warnings,
        "coefficients": [
            {"name": name, **{column: getattr(summary, column)[k] for column in columns}}
            for k, name in enumerate(summary.names)
        ],
    }


def _print(summary: Summary, title: str) -> None:
    import numpy as np
    from rich.table import Table as Grid

    grid = Grid(title=title, title_justify="left", title_style="bold", caption_justify="left")
    grid.add_column("")
    for head in ("mean", "sd", "5%", "95%", "MC error", "effective draws", "R-hat"):
        grid.add_column(head, justify="right")
    shown = np.arange(len(summary.names))
    if len(shown) > SHOWN:
        grid.caption = (
            f"The {SHOWN} coefficients with the fewest effective draws; {len(shown) - SHOWN} more are in the file."
        )
        shown = np.sort(np.argsort(summary.ess_bulk, kind="stable")[:SHOWN])
    for k in shown:
        numbers = (summary.mean, summary.sd, summary.low, summary.high)
        cells = [*(f"{each[k]:.3g}" for each in numbers), f"{summary.mcse[k]:.1g}", f"{summary.ess_bulk[k]:.0f}"]
        grid.add_row(summary.names[k], *cells, f"{summary.r_hat[k]:.3f}")
    console().print(grid)
    if summary.trusted:
        print(summary.verdict)


def _rows_have_one_sum(d: Decisions) -> bool:
    import numpy as np

    sums = np.asarray(d.rows.sum(axis=1))
    return bool(np.allclose(sums, sums[d.start[:-1]][d.decision_of_row], rtol=1e-9, atol=1e-9) and len(d.names) > 1)


def _refuse_not_positive(option: str, number: float) -> None:
    if not 0.0 < number < float("inf"):
        raise ValueError(f"{option} must be a positive number; it is {number:g}")


def _refuse_other_table(path: Path) -> None:
    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet", ".pq")):
        raise ValueError(f"{path}: the file name must end with {TABLES}")
