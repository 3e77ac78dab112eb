"""Before and after a fit: simulate, predict, report."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy._files import refuse_unwritable
from understudy.cli.shell import Json, NoProgress, Seed, answer, say, seed_from, working
from understudy.cli.tables import (
    TABLES,
    ActionColumn,
    AvailableColumn,
    DecisionColumn,
    GroupColumn,
    PosteriorFile,
    Table,
    column,
    facts,
    holds_games,
    played,
    refuse_not_positive,
    refuse_other_table,
)

if TYPE_CHECKING:
    from understudy.predict import Prediction


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
    from understudy.mdp import random_mdp
    from understudy.priors import Gaussian, place
    from understudy.table_files import to_file

    refuse_other_table(out)
    for path in filter(None, (out, truth)):
        refuse_unwritable(path)
    refuse_not_positive("--kappa", kappa)
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


def predict(
    posterior: PosteriorFile,
    table: Table,
    out: Annotated[Path, typer.Option(help=f"Where the probabilities go, {TABLES}.", show_default=False)],
    method: Annotated[str, typer.Option(help="average, vote or point.")] = "average",
    decision: DecisionColumn = "decision",
    chosen: Annotated[str | None, column("True on the action taken; `chosen` if there is such a column.")] = None,
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
    from understudy.posterior import load
    from understudy.predict import predict as foresee
    from understudy.table_files import from_file

    refuse_other_table(out)
    refuse_unwritable(out)
    post = load(posterior)
    if holds_games(table):
        d, chosen = played(table, post.names), "chosen"
    else:
        if chosen is None and "chosen" in _columns(table):
            chosen = "chosen"
        columns = {"decision": decision, "chosen": chosen, "action": action, "group": group, "available": available}
        d = from_file(table, features=post.names, **columns)
    with working("predicting", no_progress):
        found = foresee(post, d, method, seed=seed_from(seed))
        _write_table(found.to_frame(), out)
    told = {"out": out, "method": method, "decisions": len(d), "seen": chosen is not None, **_scores(found)}
    if json:
        answer(told)
        return
    print(f"The probability of each action in {len(d)} decisions: {out}")
    if chosen is None:
        print(
            f"There is no column of choices, so the predictions cannot be scored; they are {told['confidence']:.0%} sure."
        )
        return
    print(f"Error E_a: {found.error:.1%} were predicted wrongly (guessing: {told['guessing']:.1%}).")
    print(f"Log score: {found.log_score:.4f}, the mean log probability of what was chosen; 0 is perfect.")
    print(
        f"Calibration: on average {told['confidence']:.0%} sure and {1 - found.error:.0%} right; "
        f"calibration error {told['calibration']['error']:.3f}."
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
        answer({"out": out, "decisions": len(post.decisions), **facts(summary)})
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
