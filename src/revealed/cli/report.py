"""`revealed report`: one HTML page about a posterior."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from revealed._validation import check_writable
from revealed.cli._shared import (
    Json,
    NoProgress,
    Seed,
    check_seed,
    print_json,
    print_message,
    progress,
)
from revealed.cli._tables import PosteriorFile, summary_to_dict


def report(
    posterior: PosteriorFile,
    out: Annotated[Path, typer.Option(help="Where the page goes, HTML.", show_default=False)],
    group: Annotated[
        str | None,
        typer.Option(help="One group of several, for a page of its own.", show_default=False),
    ] = None,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Write one page of what a posterior says and whether to trust it, pictures included.

    Example: `revealed report posterior.nc --out report.html`
    """
    from revealed.data.rankings import Rankings
    from revealed.plots.report import write_report
    from revealed.results.load import load

    check_writable(out)
    post = load(posterior)
    if group is not None:
        # labels are typed as text, and may be numbers
        labels = {str(label): label for label in getattr(post, "groups", ())}
        post = post.select(group=labels.get(group, group))
    with progress("writing the report", no_progress):
        write_report(post, out, seed=check_seed(seed))
    # What did not converge is said on stderr, also where the answer is JSON.
    if not post.converged:
        print_message(post.message)
    if json:
        seen = "games" if isinstance(post.data, Rankings) else "decisions"
        print_json({"out": out, seen: len(post.data), **summary_to_dict(post)})
        return
    if post.converged:
        print(post.message)
    print(f"Report: {out} (open it in a browser)")
