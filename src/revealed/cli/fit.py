"""`revealed fit`: the posterior of the values behind a table of decisions."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed._validation import check_writable
from revealed.cli._cluster import dask_client
from revealed.cli._model import (
    OverTime,
    States,
    check_groups_known,
    choose_groups,
    choose_noise,
    choose_over_time,
    choose_prior,
    choose_transitions,
    with_base_of,
)
from revealed.cli._resume import can_resume, made_so_far, refuse_other_checkpoint
from revealed.cli._shared import (
    ExitCode,
    Json,
    NoProgress,
    Seed,
    check_seed,
    data_warnings_as_messages,
    print_json,
    print_message,
)
from revealed.cli._tables import (
    GAMES_SUFFIX,
    READ_SUFFIXES,
    ActionColumn,
    AvailableColumn,
    CsvDecimal,
    CsvEncoding,
    CsvSep,
    DecisionColumn,
    GroupColumn,
    SessionColumn,
    TimeColumn,
    column_option,
    csv_format,
    is_games_file,
    print_summary,
    read_tetris_decisions,
    refuse_times,
    sampling_option,
    summary_to_dict,
)
from revealed.samplers.model_kind import ModelKind, kind_of
from revealed.samplers.registry import REGISTRY

# The names of samplers, in the help.
SAMPLERS = REGISTRY.describe(ModelKind("decisions", "normal"))

if TYPE_CHECKING:
    from revealed.data.decisions import Decisions


def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help=f"The long table of decisions, {READ_SUFFIXES}; a folder of Parquet files; "
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
    groups: Annotated[
        str,
        typer.Option(
            help="Whose value it is: pooled, one for all; separate, one for each group; or "
            "hierarchical, one for each, all from one population."
        ),
    ] = "pooled",
    noise: Annotated[
        str,
        typer.Option(
            help="normal or logit, independent; student, with heavy tails; or correlated, with a "
            "covariance of labelled actions."
        ),
    ] = "normal",
    df: Annotated[
        float | None,
        typer.Option(
            help="Degrees of freedom, with --noise student; without it they are inferred.",
            show_default=False,
        ),
    ] = None,
    lapse: Annotated[
        str | None,
        typer.Option(
            metavar="[uniform|habit]",
            help="Some choices may be made blindly, at a rate that is inferred: each action as "
            "likely as another, or by habit, in proportion to inferred frequencies of their "
            "labels.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="The action that others' noise is measured against, with --noise correlated.",
            show_default=False,
        ),
    ] = None,
    over_time: OverTime = "constant",
    states: States = None,
    transitions: Annotated[
        str,
        typer.Option(
            help="Of a finite MDP: known, the rows of the table have them; or unknown, inferred "
            "from a table of trajectories, with the columns state, action and episode."
        ),
    ] = "known",
    concentration: Annotated[
        float | None,
        typer.Option(
            help="Of the Dirichlet prior, with --transitions unknown; default 1.",
            show_default=False,
        ),
    ] = None,
    sampler: Annotated[
        str,
        sampling_option(f"{SAMPLERS}."),
    ] = "auto",
    draws: Annotated[int, sampling_option("Draws kept from each chain.")] = 1000,
    warmup: Annotated[
        int | None,
        sampling_option(
            "Iterations before the first draw; default: what the sampler needs.", show_default=False
        ),
    ] = None,
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
    time_column: TimeColumn = None,
    session: SessionColumn = None,
    state: Annotated[str, column_option("States, in a table of trajectories.")] = "state",
    episode: Annotated[str, column_option("Episodes, in a table of trajectories.")] = "episode",
    features: Annotated[
        str | None,
        column_option(
            "The features, separated by commas; default: all other columns. With games of "
            "Tetris, a set: paper, bertsekas, dellacherie or rich."
        ),
    ] = None,
    sep: CsvSep = None,
    decimal: CsvDecimal = None,
    encoding: CsvEncoding = None,
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

    Where actions lead inferred as well: `revealed fit steps.csv --transitions unknown --out mdp.nc`

    For more decisions than memory holds: `revealed fit folder/ --workers 4 --out posterior.nc`
    """
    from revealed.api import NotConvergedWarning
    from revealed.api import fit as fit_posterior
    from revealed.io.checkpoints import remove_checkpoint
    from revealed.io.read_trajectories import read_trajectories
    from revealed.models.choice import ChoiceModel

    check_writable(out)
    model = ChoiceModel(
        prior=choose_prior(flat, prior_sd, infer_prior_sd, sum_to_zero, groups),
        noise=choose_noise(noise, base, lapse, df),
        groups=choose_groups(groups),
        transitions=choose_transitions(transitions, concentration),
        over_time=choose_over_time(over_time, time_column, session, states),
    )
    # Refuse contradictions before the table is read, which may take long.
    REGISTRY.find(sampler, kind_of(model))
    if workers is not None and cluster is not None:
        raise ValueError("--workers and --cluster contradict each other; give one of them")
    columns: dict[str, str | None] = {
        "decision": decision,
        "chosen": chosen,
        "action": action,
        "group": group,
    }
    columns |= {"available": available, "time": time_column, "session": session}
    # Before the table is read, as all contradictions.
    if transitions == "unknown":
        refuse_times(columns, "trajectories")
    form = csv_format(sep, decimal, encoding)
    roles = {"episode": episode, "state": state, "action": action, "group": group}
    with data_warnings_as_messages():
        data = (
            _read_decisions(table, features, columns, form)
            if transitions == "known"
            else read_trajectories(table, **roles, **form)
        )
    check_groups_known(data, groups, group)
    model = with_base_of(model, data)
    # The checkpoint lies beside the posterior that it becomes; of separate groups it is a folder.
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    refuse_other_checkpoint(checkpoint, groups == "separate", resume)
    resume = can_resume(out, checkpoint, resume)
    # Only what was given is passed on: samplers refuse options that they do not have.
    given = {"utilities": utilities, "a": a, "b": b}
    options = {name: value for name, value in given.items() if value is not None}
    # Ctrl-C during the fit leaves a checkpoint, and what has been drawn so far.
    began = time.monotonic()
    try:
        with (
            data_warnings_as_messages(),
            warnings.catch_warnings(),
            dask_client(workers, cluster) as client,
        ):
            warnings.simplefilter("ignore", NotConvergedWarning)  # the summary says it better
            post = fit_posterior(
                data,
                model,
                sampler=sampler,
                draws=draws,
                warmup=warmup,
                chains=chains,
                seed=check_seed(seed),
                options=options,
                thin=thin,
                executor=threads if client is None else client,
                progress=False if no_progress else None,
                checkpoint=checkpoint,
                resume=resume,
                checkpoint_seconds=checkpoint_seconds,
            )
        made = made_so_far(post, draws)
    except KeyboardInterrupt:
        made = (
            "before the first group was finished"
            if groups == "separate"
            else f"after 0 of {draws} draws a chain"
        )
    # An interrupted run returns what it has; its checkpoint is beside --out.
    if made is not None:
        typed = shlex.join(
            ["revealed", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"]
        )
        print_message(f"interrupted {made}; nothing is lost, go on with: {typed}")
        raise typer.Exit(ExitCode.INTERRUPTED)
    # Saved before the checkpoint goes: whatever happens, one of them is there.
    post.save(out)
    remove_checkpoint(checkpoint)

    # The posterior of a folder keeps a sample of its decisions; the settings have their number.
    count = post.settings.get("decisions", len(post.data))
    if not sum_to_zero and transitions == "known" and _rows_have_equal_sums(post.data):
        print_message(
            "note: the rows of each decision add up to the same number, as in a finite MDP; "
            "consider --sum-to-zero"
        )
    # What did not converge is said on stderr, also where the answer is JSON.
    if not post.converged:
        print_message(post.message)
    if json:
        print_json(
            {
                "out": out,
                "sampler": post.sampler,
                "decisions": count,
                "seconds": time.monotonic() - began,
                **summary_to_dict(post),
                **post.settings,
            }
        )
        return
    print_summary(
        post, f"{count} decisions, sampler {post.sampler}, {chains} chains of {draws} draws"
    )
    print(f"Posterior: {out}")
    print(f"Next: revealed report {out} --out report.html")


def _read_decisions(
    table: Path, features: str | None, columns: dict[str, str | None], form: dict[str, str]
) -> Any:
    """Decisions from recorded games, from one table, or from a folder that is read in chunks.

    `columns` maps what a column holds to its name; `form` is how a CSV file is written.
    """
    from revealed.io.files import read_file
    from revealed.io.parquet_folder import scan_parquet

    if form and (is_games_file(table) or table.is_dir()):
        raise ValueError(f"{table}: this is no CSV file, so leave out --{', --'.join(form)}")
    if is_games_file(table):
        refuse_times(columns, "games of Tetris")
        return read_tetris_decisions(table, features or "paper")
    # a folder is read chunk by chunk, a file at once
    read: Any = scan_parquet if table.is_dir() else read_file
    picked = None if features is None else features.split(",")
    return read(table, features=picked, **columns, **form)


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
