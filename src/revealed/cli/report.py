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
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Write one page of what a posterior says and whether to trust it, pictures included.

    Example: `revealed report posterior.nc --out report.html`
    """
    from revealed.plots.report import write_report
    from revealed.results.posterior import Posterior

    check_writable(out)
    post = Posterior.load(posterior)
    with progress("writing the report", no_progress):
        write_report(post, out, seed=check_seed(seed))
    summary = post.summary()
    # What did not converge is said on stderr, also where the answer is JSON.
    if not summary.converged:
        print_message(summary.message)
    if json:
        print_json({"out": out, "decisions": len(post.decisions), **summary_to_dict(summary)})
        return
    if summary.converged:
        print(summary.message)
    print(f"Report: {out} (open it in a browser)")
