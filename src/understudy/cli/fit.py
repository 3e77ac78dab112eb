"""The command that learns: fit."""

from __future__ import annotations

import importlib
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy._files import refuse_unwritable
from understudy.cli.shell import INTERRUPTED, Json, NoProgress, Seed, answer, say, seed_from
from understudy.cli.tables import (
    GAMES,
    TABLES,
    ActionColumn,
    AvailableColumn,
    DecisionColumn,
    GroupColumn,
    column,
    facts,
    holds_games,
    how,
    played,
    print_summary,
    refuse_not_positive,
)

if TYPE_CHECKING:
    from understudy.decisions import Decisions


def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help=f"The long table of decisions, {TABLES}; a folder of Parquet files; or games of Tetris, {GAMES}.",
            show_default=False,
        ),
    ],
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
    engine: Annotated[str, how("auto, blended, laplace, ibis, da, px-scale, px-translate or px-both.")] = "auto",
    draws: Annotated[int, how("Draws kept from each chain.")] = 1000,
    warmup: Annotated[int, how("Iterations before the first draw.")] = 1000,
    chains: Annotated[int, how("Independent chains.")] = 4,
    thin: Annotated[int, how("Iterations for each draw kept.")] = 1,
    threads: Annotated[int | None, how("Chains run at once; all cores unless said.", min=1)] = None,
    utilities: Annotated[
        str | None, how("How da and px-... draw utilities: exact, unless said, or metropolis.", show_default=False)
    ] = None,
    a: Annotated[
        float | None,
        how("Shape of the working scale's prior in px-...; 0, the improper one, unless said.", show_default=False),
    ] = None,
    b: Annotated[float | None, how("Rate of the same.", show_default=False)] = None,
    workers: Annotated[
        int | None, how("So many Dask workers on this machine make the passes of laplace.", min=1, show_default=False)
    ] = None,
    cluster: Annotated[
        str | None,
        how("The address of a Dask scheduler whose workers do, such as tcp://head:8786.", show_default=False),
    ] = None,
    decision: DecisionColumn = "decision",
    chosen: Annotated[str, column("True on the action taken.")] = "chosen",
    action: ActionColumn = "action",
    group: GroupColumn = "group",
    available: AvailableColumn = None,
    features: Annotated[
        str | None,
        column(
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

    Example: `understudy fit decisions.csv --centred --prior-variance 4 --out posterior.nc`

    From recorded games: `understudy fit demo-output/game.jsonl --features rich --out player.nc`, and then `understudy play player.nc`

    For more decisions than memory holds: `understudy fit folder/ --workers 4 --out posterior.nc`
    """
    from understudy.engines.fit import NotConvergedWarning
    from understudy.engines.fit import fit as run
    from understudy.priors import Flat, Gaussian
    from understudy.shards import from_folder
    from understudy.table_files import from_file

    refuse_unwritable(out)
    given = {"--flat": flat, "--prior-variance": prior_variance is not None, "--learn-prior": learn_prior}
    if sum(given.values()) > 1:
        named = " and ".join(name for name, said in given.items() if said)
        raise ValueError(f"{named} contradict each other; give one of them")
    if prior_variance is not None:
        refuse_not_positive("--prior-variance", prior_variance)
    centre = True if centred else None
    variance: Any = "learn" if learn_prior else 2500.0 if prior_variance is None else prior_variance
    prior = Flat(centre) if flat else Gaussian(variance, centred=centre)
    columns = {"decision": decision, "chosen": chosen, "action": action, "group": group, "available": available}
    if workers is not None and cluster is not None:
        raise ValueError("--workers and --cluster contradict each other; give one of them")
    d: Any
    if holds_games(table):
        d = played(table, features or "paper")
    else:
        read = from_folder if table.is_dir() else from_file
        d = read(table, features=None if features is None else features.split(","), **columns)

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
    said = {"utilities": utilities, "a": a, "b": b}
    options = {name: value for name, value in said.items() if value is not None}
    began = time.monotonic()
    try:
        with warnings.catch_warnings(), at_work(workers, cluster) as client:
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says it better
            post = run(
                d, prior, engine, draws, warmup, chains, seed_from(seed), options=options, thin=thin, threads=threads,
                progress=False if no_progress else None, checkpoint=checkpoint, resume=resume,
                checkpoint_seconds=checkpoint_seconds, cluster=client,
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

    count = post.settings.get("decisions", len(post.decisions))
    if not centred and _rows_have_one_sum(post.decisions):
        say("note: the rows of each decision add up to the same number, as in a finite MDP; consider --centred")
    summary = post.summary()
    if not summary.trusted:
        say(summary.verdict)
    if json:
        answer({"out": out, "engine": post.engine, "decisions": count, "seconds": time.monotonic() - began,
                **facts(summary), **post.settings})  # fmt: skip
        return
    print_summary(summary, f"{count} decisions, engine {post.engine}, {chains} chains of {draws} draws")
    print(f"Posterior: {out}")
    print(f"Next: understudy report {out} --out report.html")


def _rows_have_one_sum(d: Decisions) -> bool:
    import numpy as np

    sums = np.asarray(d.rows.sum(axis=1))
    return bool(np.allclose(sums, sums[d.start[:-1]][d.decision_of_row], rtol=1e-9, atol=1e-9) and len(d.names) > 1)


@contextmanager
def at_work(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A Dask client: of so many workers here, of the scheduler at an address, or none."""
    if workers is None and cluster is None:
        yield None
        return
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ValueError('a cluster needs Dask, which is not installed; pip install "understudy[cluster]"') from None
    if cluster is not None:
        try:
            client = distributed.Client(cluster, timeout=10)
        except (OSError, ValueError, TimeoutError) as reason:
            raise ValueError(f"there is no Dask scheduler at {cluster}: {str(reason).splitlines()[0]}") from None
        with client:
            yield client
        return
    only_here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **only_here) as local,
        distributed.Client(local) as client,
    ):
        yield client
