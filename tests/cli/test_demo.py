"""`revealed demo`, and `revealed play` with what it has learnt."""

from __future__ import annotations

from pathlib import Path

import pytest

from revealed.cli.demo import print_results
from revealed.environments.tetris import Step, drop, read_games
from revealed.results.load import load
from tests.support.command_line import answers


def test_the_demo_goes_from_nothing_to_an_understudy_that_plays(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = answers("demo", "--quick", "--out", "shown", "--no-progress")
    for name in (
        "decisions.csv",
        "posterior.nc",
        "values.png",
        "boards.png",
        "game.jsonl",
        "report.html",
    ):
        assert (here / "shown" / name).stat().st_size > 0
        assert facts["files"][name] == str(Path("shown") / name)
    verdict = load("shown/posterior.nc").summary().message
    assert facts["message"] == verdict
    assert facts["converged"] == verdict.startswith("Converged")
    assert len(facts["truth"]) == len(facts["mean"]) == 3
    assert facts["error"] < 0.5 * facts["error_guessing"]
    game = read_games("shown/game.jsonl")
    assert len(game) == facts["game"]["placements"]

    last = game.placements[-1]
    landing = drop(last.board, last.piece, last.rotation, last.column)
    print_results(facts, Step(last.board, last.piece, last.rotation, last.column, landing, 0))
    shown = capsys.readouterr().out
    for part in (
        "1. Watching",
        verdict,
        "blind guess",
        "4. Standing in",
        "██",
        "report.html",
        "revealed fit",
    ):
        assert part in shown

    played = answers(
        "play",
        "shown/posterior.nc",
        "--rows",
        "12",
        "--steps",
        "20",
        "--out",
        "again.jsonl",
        "--seed",
        "4",
    )
    assert played["placements"] == len(read_games("again.jsonl")) <= 20
    assert (
        answers("play", "shown/posterior.nc", "--rows", "12", "--steps", "20", "--seed", "4")[
            "rows_removed"
        ]
        == played["rows_removed"]
    )
    assert answers("play", "shown/posterior.nc", "--alone", "--steps", "3")["placements"] == 3
    # an understudy of a player who lapses does so too
    lapsing = ("--noise", "logit", "--lapse", "--draws", "100", "--out", "lapsing.nc")
    answers("fit", "shown/game.jsonl", "--features", "paper", *lapsing)
    for how in ([], ["--alone"]):
        assert answers("play", "lapsing.nc", *how, "--steps", "3")["placements"] == 3
