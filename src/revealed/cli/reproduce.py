"""`revealed reproduce`: the paper's experiments done again, our results beside the paper's."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from revealed.cli._shared import Json, NoProgress, Seed, check_seed, make_folder, print_json

if TYPE_CHECKING:
    from revealed.replication.study import ReportProgress, Study


class StudyName(StrEnum):
    """The studies that can be reproduced, or all of them."""

    toy = "toy"
    tetris = "tetris"
    human = "human"
    pressure = "pressure"
    all = "all"


def reproduce(
    which: Annotated[StudyName, typer.Argument(help="StudyName study.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="The folder for figures, numbers and pages; it is created.")
    ] = Path("paper-output"),
    games: Annotated[
        Path | None,
        typer.Option(
            help="A person's recorded games, JSON lines; needed for `human`, used by `pressure`.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fewer random MDPs, seeds and draws: to see that it works."),
    ] = False,
    seed: Seed = 1,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Do the paper's experiments again: figures, every number, and a page of verdicts for each.

    Example: `revealed reproduce toy --quick --out paper-output`, or all of it with
    `revealed reproduce all --games games.jsonl --out paper-output`
    """
    from revealed.environments.tetris import read_games
    from revealed.replication.study import write_index, write_study

    check_seed(seed)
    # Only `human` cannot do without a person; the others leave that part out.
    if which is StudyName.human and games is None:
        raise ValueError(
            "the study `human` needs a person's recorded games: --games FILE, JSON lines"
        )
    recorded = None if games is None else read_games(games)
    make_folder(out)
    # Without a person's games some of the studies cannot be done; the page says which.
    left_out: dict[str, str] = {}
    known = [w.value for w in StudyName if w is not StudyName.all]
    # the studies to do, in the order of the paper
    names = list(known) if which is StudyName.all else [which.value]
    # What is left out is named, with the reason.
    if recorded is None:
        if "human" in names:
            names.remove("human")
            left_out["human"] = "left out, because no games of a person were given (--games)"
        if "pressure" in names:
            left_out["pressure, from a person"] = (
                "left out, because no games of a person were given (--games)"
            )
    studies: list[Study] = []
    # One line on a terminal that says what is being done.
    console = Console(stderr=True)
    quiet = no_progress or not sys.stderr.isatty()
    with console.status("", spinner="dots") if not quiet else nullcontext() as status:

        def report_progress(activity: str) -> None:
            if status is not None:
                status.update(activity)

        for name in names:
            study = _run_study(name, recorded, seed, quick, report_progress)
            # Written at once, so that an interruption keeps the studies that are done.
            write_study(study, out / name)
            write_index(out, known, left_out)
            studies.append(study)
            if not json:
                _print_study(study, out / name)
    # The answer for machines: every number of every study.
    if json:
        print_json(
            {
                "out": out,
                "left_out": left_out,
                "studies": {s.name: dict(s.numbers) for s in studies},
            }
        )
    else:
        for name, why in left_out.items():
            print(f"{name}: {why}")
        print(f"\nAll of it on one page: {out / 'index.html'}")


def _run_study(
    name: str, games: Any, seed: int, quick: bool, report_progress: ReportProgress
) -> Study:
    """The study of this name; its module is imported now, because it imports much."""
    if name == "human":
        from revealed.replication import human

        return human.run(games, seed, quick, report_progress)
    if name == "pressure":
        from revealed.replication import time_pressure as pressure

        return pressure.run(games, seed, quick, report_progress)
    if name == "tetris":
        from revealed.replication import tetris

        return tetris.run(seed, quick, report_progress)
    from revealed.replication import toy

    return toy.run(seed, quick, report_progress)


def _print_study(study: Study, folder: Path) -> None:
    """Print what a study found, a line a claim."""
    print(f"{study.title}   ({folder / 'index.html'})")
    for section in study.sections:
        print(f"  {section.title}: {section.ours}")
