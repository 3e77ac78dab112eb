"""`understudy reproduce`: the paper's experiments done again, ours beside the paper's."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from understudy.cli.shell import Json, NoProgress, Seed, answer, make_folder, seed_from

if TYPE_CHECKING:
    from understudy.paper.study import Study, Tell


class Which(StrEnum):
    """The studies."""

    toy = "toy"
    tetris = "tetris"
    human = "human"
    pressure = "pressure"
    all = "all"


def reproduce(
    which: Annotated[Which, typer.Argument(help="Which study.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder for figures, numbers and pages; it is created.")] = Path(
        "paper-output"
    ),
    games: Annotated[
        Path | None,
        typer.Option(
            help="A person's recorded games, JSON lines; needed for `human`, used by `pressure`.", show_default=False
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer worlds, seeds and draws: to see that it works.")
    ] = False,
    seed: Seed = 1,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Do the paper's experiments again: figures, a JSON of every number, and a page of verdicts for each.

    Example: `understudy reproduce toy --quick --out paper-output`, or all of it with
    `understudy reproduce all --games games.jsonl --out paper-output`
    """
    from understudy.paper.study import write_index, write_study
    from understudy.worlds.tetris import read_games

    seed_from(seed)
    if which is Which.human and games is None:
        raise ValueError("the study `human` needs a person's recorded games: --games FILE, JSON lines")
    played = None if games is None else read_games(games)
    make_folder(out)
    left_out: dict[str, str] = {}
    known = [w.value for w in Which if w is not Which.all]
    names = list(known) if which is Which.all else [which.value]
    if played is None:
        if "human" in names:
            names.remove("human")
            left_out["human"] = "left out, because no games of a person were given (--games)"
        if "pressure" in names:
            left_out["pressure, from a person"] = "left out, because no games of a person were given (--games)"
    studies: list[Study] = []
    console = Console(stderr=True)
    quiet = no_progress or not sys.stderr.isatty()
    with console.status("", spinner="dots") if not quiet else _silence() as status:
        tell: Tell = (lambda what: None) if quiet else (lambda what: status.update(what))
        for name in names:
            study = _run(name, played, seed, quick, tell)
            write_study(study, out / name)
            write_index(out, known, left_out)
            studies.append(study)
            if not json:
                _say(study, out / name)
    if json:
        answer({"out": out, "left_out": left_out, "studies": {s.name: dict(s.numbers) for s in studies}})
    else:
        for name, why in left_out.items():
            print(f"{name}: {why}")
        print(f"\nAll of it on one page: {out / 'index.html'}")


def _run(name: str, games: Any, seed: int, quick: bool, tell: Tell) -> Study:
    if name == "human":
        from understudy.paper import human

        return human.run(games, seed, quick, tell)
    if name == "pressure":
        from understudy.paper import pressure

        return pressure.run(games, seed, quick, tell)
    if name == "tetris":
        from understudy.paper import tetris

        return tetris.run(seed, quick, tell)
    from understudy.paper import toy

    return toy.run(seed, quick, tell)


def _say(study: Study, folder: Path) -> None:
    print(f"{study.title}   ({folder / 'index.html'})")
    for section in study.sections:
        print(f"  {section.title}: {section.ours}")


def _silence() -> Any:
    from contextlib import nullcontext

    return nullcontext()
