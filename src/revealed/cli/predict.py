"""`revealed predict`: probabilities of the actions in a table of decisions, and their scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed._validation import check_writable
from revealed.cli._shared import (
    Json,
    NoProgress,
    Seed,
    check_seed,
    data_warnings_as_messages,
    print_json,
    progress,
)
from revealed.cli._tables import (
    TABLE_SUFFIXES,
    ActionColumn,
    AvailableColumn,
    CsvDecimal,
    CsvEncoding,
    CsvSep,
    DecisionColumn,
    GroupColumn,
    PosteriorFile,
    SessionColumn,
    Table,
    TimeColumn,
    check_table_suffix,
    column_option,
    csv_format,
    is_games_file,
    load_choices,
    read_tetris_decisions,
    refuse_times,
)

if TYPE_CHECKING:
    from revealed.data.decisions import Decisions
    from revealed.results.prediction import Prediction


def predict(
    posterior: PosteriorFile,
    table: Table,
    out: Annotated[
        Path,
        typer.Option(help=f"Where the probabilities go, {TABLE_SUFFIXES}.", show_default=False),
    ],
    method: Annotated[
        str, typer.Option(help="average, vote or point; with groups, average.")
    ] = "average",
    new_groups: Annotated[
        str | None,
        typer.Option(
            help="Groups never seen before, separated by commas, which a hierarchical fit predicts "
            "from its population.",
            show_default=False,
        ),
    ] = None,
    decision: DecisionColumn = "decision",
    chosen: Annotated[
        str | None, column_option("True on the action taken; `chosen` if there is such a column.")
    ] = None,
    action: ActionColumn = "action",
    group: GroupColumn = "group",
    available: AvailableColumn = None,
    time_column: TimeColumn = None,
    session: SessionColumn = None,
    sep: CsvSep = None,
    decimal: CsvDecimal = None,
    encoding: CsvEncoding = None,
    draws: Annotated[
        str | None,
        typer.Option(
            help="How many draws are used: a number, or `all`; default: as many as bring the "
            "Monte-Carlo error of each probability down to 0.002.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Predict the choices in a table of decisions; where they are known, score the predictions.

    Example: `revealed predict posterior.nc decisions.csv --out predictions.csv`
    """
    from revealed.io.files import read_file
    from revealed.io.table_files import read_names

    # Refuse what cannot be written before anything is read.
    wanted = _check_draws(draws)
    check_table_suffix(out)
    check_writable(out)
    post = load_choices(posterior)
    _refuse_new_groups(post, new_groups)
    columns: dict[str, str | None] = {"time": time_column, "session": session}
    # Features are looked for by the posterior's names, in games as in tables.
    if is_games_file(table):
        refuse_times(columns, "games of Tetris")
        d, chosen = read_tetris_decisions(table, post.names), "chosen"
    else:
        # what changes with times: paths of one, or of each group
        changes = ("over_time", "group_paths")
        if time_column is None and any(getattr(post.resolved, name, None) for name in changes):
            raise ValueError(
                "values change, so that a prediction needs to know when; give --time COLUMN"
            )
        form = csv_format(sep, decimal, encoding)
        if chosen is None and "chosen" in read_names(table, form):
            chosen = "chosen"
        columns |= {
            "decision": decision,
            "chosen": chosen,
            "action": action,
            "group": group,
            "available": available,
        }
        with data_warnings_as_messages():
            d = read_file(table, features=post.names, **columns, **form)
    with progress("predicting", no_progress):
        predicted = _predict(post, d, method, new_groups, check_seed(seed), wanted)
        _write_table(predicted.to_dataframe(), out)
    # Scores need choices; without them only the confidence is known.
    scores = _scores(predicted)
    # The answer for machines, or some sentences for people.
    if json:
        print_json(
            {
                "out": out,
                "method": method,
                "decisions": len(d),
                "seen": chosen is not None,
                **scores,
            }
        )
        return
    print(f"The probability of each action in {len(d)} decisions: {out}")
    words = predicted.describe_draws()
    if words:
        print(f"Worked out from {words}.")
    if chosen is None:
        print(
            "There is no column of choices, so the predictions cannot be scored; "
            f"they are {scores['confidence']:.0%} sure."
        )
        return
    if scores["forced"]:
        print(
            f"{scores['forced']} of {len(d)} decisions offer a single action, and count in "
            "neither error nor calibration."
        )
    log_score = (
        f"Log score: {predicted.log_score:.4f} (Monte-Carlo error "
        f"{predicted.log_score_standard_error:.1g}), the mean log probability of what was chosen; "
        "0 is perfect."
    )
    if scores["error"] is None:
        print(log_score)
        return
    print(
        f"Error E_a: {predicted.error_rate:.1%} were predicted wrongly "
        f"(guessing: {scores['guessing']:.1%})."
    )
    print(log_score)
    print(
        f"Calibration: on average {scores['confidence']:.0%} sure and "
        f"{1 - predicted.error_rate:.0%} right; "
        f"calibration error {scores['calibration']['error']:.3f}."
    )


def _refuse_new_groups(post: Any, new_groups: str | None) -> None:
    """Refuse new groups where there is no population to predict them from."""
    from revealed.results.hierarchical import HierarchicalPosterior

    if new_groups is not None and not isinstance(post, HierarchicalPosterior):
        raise ValueError(
            "--new-groups are predicted from a population, which only a fit with --groups "
            "hierarchical has"
        )


def _predict(
    post: Any,
    decisions: Decisions,
    method: str,
    new_groups: str | None,
    seed: int,
    draws: int | str | None,
) -> Prediction:
    """The prediction: of one value for all, or of each group by its own."""
    from revealed.results.choice import ChoicePosterior
    from revealed.results.hierarchical import HierarchicalPosterior
    from revealed.results.paths import PathPosterior

    if isinstance(post, ChoicePosterior | PathPosterior):
        return post.predict(decisions, method, seed=seed, draws=draws)
    if decisions.groups is None:
        raise ValueError(
            f"this posterior is of {len(post.groups)} groups, and the table does not say who "
            "decides; name the column with --group"
        )
    # labels are typed as text, and may be numbers in the table
    given = [] if new_groups is None else [label.strip() for label in new_groups.split(",")]
    labels = dict.fromkeys(decisions.groups.tolist())
    unknown = [label for label in labels if label not in post.groups]
    refused = [label for label in unknown if str(label) not in given]
    hierarchical = isinstance(post, HierarchicalPosterior)
    if refused:
        how = (
            f"--new-groups {','.join(map(str, refused[:3]))} predicts from the population"
            if hierarchical
            else "only a fit with --groups hierarchical predicts new groups"
        )
        raise ValueError(f"group {refused[0]!r} made none of the decisions of this fit; {how}")
    found: Prediction
    if not hierarchical:
        found = post.predict(decisions, method, seed=seed, draws=draws)
        return found
    named = [label for label in labels if str(label) in given]
    found = post.predict(decisions, method, new_groups=named, seed=seed, draws=draws)
    return found


def _scores(predicted: Prediction) -> dict[str, Any]:
    """How good predictions are, for machines; scores that need choices are None without them.

    `guessing` is the error rate of a guess among the actions of each decision, and `forced` how
    many decisions have a single action, which count in neither error nor calibration.
    """
    free = predicted.scored
    without_choices = {
        "draws": [predicted.draws.min(), predicted.draws.max()],
        "draws_available": predicted.draws_available,
        "standard_error": _finite(predicted.standard_error.max()),
        "forced": int((~free).sum()),
        "confidence": predicted.confidence[free].mean() if free.any() else 1.0,
        "guessing": _finite(predicted.guessing_error),
        "error": None,
        "log_score": None,
        "log_score_standard_error": None,
        "calibration": None,
    }
    # nothing was chosen, or nobody wrote it down
    if predicted.decisions.chosen is None:
        return without_choices
    log_score = {
        "log_score": predicted.log_score,
        "log_score_standard_error": _finite(predicted.log_score_standard_error),
    }
    if not free.any():
        return {**without_choices, **log_score}
    # how often what was predicted with some probability happened
    bins = predicted.calibration()
    columns = ("low", "high", "count", "predicted", "observed", "standard_error")
    rows = [
        {column: getattr(bins, column)[i] for column in columns} for i in range(len(bins.count))
    ]
    return {
        **without_choices,
        **log_score,
        "error": predicted.error_rate,
        "calibration": {"error": bins.error, "bins": rows},
    }


def _finite(number: float) -> float | None:
    """The number, or None for one that JSON does not have."""
    return float(number) if math.isfinite(number) else None


def _check_draws(given: str | None) -> int | str | None:
    """How many draws are asked for, as `predict` takes it."""
    if given is None or given == "all":
        return given
    if not given.isdecimal() or int(given) == 0:
        raise ValueError(f"--draws must be a number from 1 on, or all; it is {given!r}")
    return int(given)


def _write_table(table: Any, path: Path) -> None:
    """Write a table of pyarrow, whole or not at all.

    The file's name says in which format: Parquet, CSV, or CSV compressed by gzip.
    """
    import gzip
    import io

    import pyarrow.csv
    import pyarrow.parquet

    from revealed.io.atomic import atomic_write

    # Made in memory first, so that an interruption leaves no half of a file.
    stream = io.BytesIO()
    if path.name.lower().endswith((".parquet", ".pq")):
        pyarrow.parquet.write_table(table, stream)
    else:
        pyarrow.csv.write_csv(table, stream)
    content = stream.getvalue()
    # No time stamp inside: the same predictions give the same bytes.
    compressed = path.name.lower().endswith(".gz")
    atomic_write(path, gzip.compress(content, mtime=0) if compressed else content)
