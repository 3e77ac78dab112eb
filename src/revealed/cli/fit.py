"""`revealed fit`: the posterior of the values behind a table of decisions."""

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

from revealed._validation import check_positive, check_writable
from revealed.cli._shared import (
    ExitCode,
    Json,
    NoProgress,
    Seed,
    check_seed,
    print_json,
    print_message,
)
from revealed.cli._tables import (
    GAMES_SUFFIX,
    TABLE_SUFFIXES,
    ActionColumn,
    AvailableColumn,
    DecisionColumn,
    GroupColumn,
    column_option,
    is_games_file,
    print_summary,
    read_tetris_decisions,
    sampling_option,
    summary_to_dict,
)
from revealed.samplers.registry import REGISTRY

if TYPE_CHECKING:
    from revealed.data.decisions import Decisions
    from revealed.models.priors import Prior


def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help=f"The long table of decisions, {TABLE_SUFFIXES}; a folder of Parquet files; "
            f"or games of Tetris, {GAMES_SUFFIX}.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Where the posterior goes, NetCDF.", show_default=False)
    ],
    prior_sd: Annotated[
        float | None, typer.Option(help="Sd of the normal prior; default 50.", show_default=False)
    ] = None,
    flat: Annotated[
        bool, typer.Option("--flat", help="A flat prior instead of a normal one.")
    ] = False,
    infer_prior_sd: Annotated[
        bool,
        typer.Option(
            "--infer-prior-sd", help="Infer the sd of the normal prior from the decisions too."
        ),
    ] = False,
    sum_to_zero: Annotated[
        bool,
        typer.Option(
            "--sum-to-zero",
            help="The values sum to zero, as in a finite MDP, where only differences matter.",
        ),
    ] = False,
    sampler: Annotated[
        str,
        sampling_option(f"{REGISTRY.describe()}."),
    ] = "auto",
    draws: Annotated[int, sampling_option("Draws kept from each chain.")] = 1000,
    warmup: Annotated[int, sampling_option("Iterations before the first draw.")] = 1000,
    chains: Annotated[int, sampling_option("Independent chains.")] = 4,
    thin: Annotated[int, sampling_option("Iterations for each draw kept.")] = 1,
    threads: Annotated[
        int | None, sampling_option("Chains run at once; default: all cores.", min=1)
    ] = None,
    utilities: Annotated[
        str | None,
        sampling_option(
            "How da and px-... draw utilities: exact, the default, or metropolis.",
            show_default=False,
        ),
    ] = None,
    a: Annotated[
        float | None,
        sampling_option(
            "Shape of the working scale's prior in px-...; default: 0, the improper one.",
            show_default=False,
        ),
    ] = None,
    b: Annotated[float | None, sampling_option("Rate of the same.", show_default=False)] = None,
    workers: Annotated[
        int | None,
        sampling_option(
            "So many Dask workers on this machine make the passes of laplace.",
            min=1,
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        sampling_option(
            "The address of a Dask scheduler whose workers do, such as tcp://head:8786.",
            show_default=False,
        ),
    ] = None,
    decision: DecisionColumn = "decision",
    chosen: Annotated[str, column_option("True on the action taken.")] = "chosen",
    action: ActionColumn = "action",
    group: GroupColumn = "group",
    available: AvailableColumn = None,
    features: Annotated[
        str | None,
        column_option(
            "The features, separated by commas; default: all other columns. With games of "
            "Tetris, a set: paper, bertsekas, dellacherie or rich."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the checkpoint of a run that was interrupted or killed, if there "
            "is one.",
        ),
    ] = False,
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            help="Seconds between checkpoints, about; 0 for one after every chunk of work."
        ),
    ] = 30.0,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Learn the posterior of the values from a table of decisions, and say whether to trust it.

    A run that is interrupted or killed leaves a checkpoint beside --out; the same command with
    --resume ends with the same draws.

    Example: `revealed fit decisions.csv --sum-to-zero --prior-sd 2 --out posterior.nc`

    From recorded games: `revealed fit demo-output/game.jsonl --features rich --out player.nc`,
    and then `revealed play player.nc`

    For more decisions than memory holds: `revealed fit folder/ --workers 4 --out posterior.nc`
    """
    from revealed.api.choice import fit as fit_posterior
    from revealed.api.run_settings import NotConvergedWarning

    check_writable(out)
    prior = _choose_prior(flat, prior_sd, infer_prior_sd, sum_to_zero)
    # Refuse contradictions before the table is read, which may take long.
    if workers is not None and cluster is not None:
        raise ValueError("--workers and --cluster contradict each other; give one of them")
    columns = {
        "decision": decision,
        "chosen": chosen,
        "action": action,
        "group": group,
        "available": available,
    }
    decisions = _read_decisions(table, features, columns)
    # The checkpoint lies beside the posterior that it becomes.
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    resume = _can_resume(out, checkpoint, resume)
    # Only what was given is passed on: samplers refuse options that they do not have.
    given = {"utilities": utilities, "a": a, "b": b}
    options = {name: value for name, value in given.items() if value is not None}
    # Ctrl-C during the fit leaves a checkpoint, and what has been drawn so far.
    began = time.monotonic()
    try:
        with warnings.catch_warnings(), dask_client(workers, cluster) as client:
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says it better
            post = fit_posterior(
                decisions,
                prior,
                sampler,
                draws,
                warmup,
                chains,
                check_seed(seed),
                options=options,
                thin=thin,
                threads=threads,
                progress=False if no_progress else None,
                checkpoint=checkpoint,
                resume=resume,
                checkpoint_seconds=checkpoint_seconds,
                cluster=client,
            )
        n_draws = post.draws.shape[1]
    except KeyboardInterrupt:
        n_draws = 0
    # An interrupted run returns what it has; its checkpoint is beside --out.
    if n_draws < draws:
        typed = shlex.join(
            ["revealed", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"]
        )
        print_message(
            f"interrupted after {n_draws} of {draws} draws a chain; nothing is lost, "
            f"go on with: {typed}"
        )
        raise typer.Exit(ExitCode.INTERRUPTED)
    # Saved before the checkpoint goes: whatever happens, one of them is there.
    post.save(out)
    checkpoint.unlink(missing_ok=True)

    # The posterior of a folder keeps a sample of its decisions; the settings have their number.
    count = post.settings.get("decisions", len(post.decisions))
    if not sum_to_zero and _rows_have_equal_sums(post.decisions):
        print_message(
            "note: the rows of each decision add up to the same number, as in a finite MDP; "
            "consider --sum-to-zero"
        )
    # What did not converge is said on stderr, also where the answer is JSON.
    summary = post.summary()
    if not summary.converged:
        print_message(summary.message)
    if json:
        print_json(
            {
                "out": out,
                "sampler": post.sampler,
                "decisions": count,
                "seconds": time.monotonic() - began,
                **summary_to_dict(summary),
                **post.settings,
            }
        )
        return
    print_summary(
        summary, f"{count} decisions, sampler {post.sampler}, {chains} chains of {draws} draws"
    )
    print(f"Posterior: {out}")
    print(f"Next: revealed report {out} --out report.html")


def _choose_prior(
    flat: bool, prior_sd: float | None, infer_prior_sd: bool, sum_to_zero: bool
) -> Prior:
    """The prior that the options ask for.

    At most one of the first three may be given; without any it is the default normal prior.
    """
    from revealed.models.priors import Flat, HalfStudentT, Normal

    # Three ways to say which prior; saying two of them is a mistake.
    given = {"--flat": flat, "--prior-sd": prior_sd is not None, "--infer-prior-sd": infer_prior_sd}
    if sum(given.values()) > 1:
        named = " and ".join(name for name, is_given in given.items() if is_given)
        raise ValueError(f"{named} contradict each other; give one of them")
    if prior_sd is not None:
        check_positive("--prior-sd", prior_sd)
    # None leaves it to the blocks of the decisions, which know it where they come from an MDP.
    zero = True if sum_to_zero else None
    if flat:
        return Flat(zero)
    return Normal(HalfStudentT() if infer_prior_sd else prior_sd, sum_to_zero=zero)


def _read_decisions(table: Path, features: str | None, columns: dict[str, str | None]) -> Any:
    """Decisions from recorded games, from one table, or from a folder that is read in chunks.

    `columns` maps what a column holds to its name.
    """
    from revealed.io.files import read_file
    from revealed.io.parquet_folder import scan_parquet

    if is_games_file(table):
        return read_tetris_decisions(table, features or "paper")
    # a folder is read chunk by chunk, a file at once
    read: Any = scan_parquet if table.is_dir() else read_file
    return read(table, features=None if features is None else features.split(","), **columns)


def _can_resume(out: Path, checkpoint: Path, resume: bool) -> bool:
    """Whether there is a checkpoint to resume from, if that was asked for.

    Whoever starts afresh beside a checkpoint, or resumes without one, is told so; a finished
    posterior is never overwritten by a resumed run that cannot resume.
    """
    # A run that starts afresh overwrites the checkpoint of another.
    if checkpoint.exists() and not resume:
        print_message(
            f"note: starting afresh; {checkpoint} is from a run that was interrupted, "
            "and --resume would continue it"
        )
    # A finished posterior has no checkpoint: resuming it would compute it again.
    if resume and not checkpoint.exists():
        if out.exists():
            raise ValueError(
                f"there is no checkpoint {checkpoint} to resume from, and {out} is there already; "
                "leave out --resume to learn it afresh"
            )
        print_message(f"note: starting afresh; there is no checkpoint {checkpoint} to resume from")
        return False
    return resume


def _rows_have_equal_sums(d: Decisions) -> bool:
    """Whether the rows of each decision add up to the same number, as probabilities do.

    Then a constant added to all coefficients changes no choice, and only a sum-to-zero prior
    makes sense.
    """
    import numpy as np

    # rows of a finite MDP are probabilities, which add up to one
    sums = np.asarray(d.rows.sum(axis=1))
    first_of_decision = sums[d.start[:-1]][d.decision_of_row]
    return bool(np.allclose(sums, first_of_decision, rtol=1e-9, atol=1e-9) and len(d.names) > 1)


@contextmanager
def dask_client(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A Dask client of `workers` local processes, or of the scheduler at `cluster`.

    None where neither is given: then threads of this process do the work.
    """
    if workers is None and cluster is None:
        yield None
        return
    # Dask is an extra: only this needs it.
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ValueError(
            'a cluster needs Dask, which is not installed; pip install "revealed[cluster]"'
        ) from None
    # Ten seconds are enough for a scheduler that is there.
    if cluster is not None:
        try:
            client = distributed.Client(cluster, timeout=10)
        except (OSError, ValueError, TimeoutError) as reason:
            raise ValueError(
                f"there is no Dask scheduler at {cluster}: {str(reason).splitlines()[0]}"
            ) from None
        with client:
            yield client
        return
    # Workers of our own listen on the loopback interface only.
    loopback = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **loopback) as local,
        distributed.Client(local) as client,
    ):
        yield client
