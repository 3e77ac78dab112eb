"""`revealed rank`: skills from results, and results that are refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import revealed
from tests.support.command_line import SMALL, answers, refuses, works, write

RACES = "race,driver,finish\n" + "".join(
    f"{race},{driver},{place}\n"
    for race, order in enumerate(["abc", "acb", "bac", "abc", "cab"])
    for place, driver in enumerate(order, 1)
)
AS_RACES = ("--game", "race", "--player", "driver", "--position", "finish", *SMALL)


def test_results_are_ranked(here: Path) -> None:
    write(here / "races.csv", RACES + "9,a,1\n9,b,DNF\n")
    files = ("--out", "r.csv", "--save", "r.nc", "--plot", "r.png")
    found = answers(
        "rank", "races.csv", *AS_RACES, *files, "--next", "a,c,new", "--allow-new-players"
    )
    assert (found["games"], found["players"], found["margin"]) == (6, 3, None)
    assert found["ranking"][0]["player"] == "a"
    assert sum(found["next"].values()) == pytest.approx(1.0, abs=1e-6)
    with Path("r.csv").open() as table:
        assert [line["player"] for line in csv.DictReader(table)] == [
            line["player"] for line in found["ranking"]
        ]
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")
    assert revealed.load("r.nc").table() == found["ranking"]
    shown = works("rank", "races.csv", *AS_RACES, "--winner-only", "--next", "a,b").stdout
    assert "6 games of 3 players" in shown
    assert "a wins with" in shown
    assert answers("rank", "races.csv", *AS_RACES, "--flat")["spread"] is None
    assert answers("rank", "races.csv", *AS_RACES, "--prior-sd", "2")["spread"] == pytest.approx(
        2.0
    )


def test_times_of_games_are_kept(here: Path) -> None:
    lines = RACES.splitlines()
    dated = [f"{lines[0]},day", *(f"{line},1970-01-0{2 + int(line[0])}" for line in lines[1:])]
    write(here / "races.csv", "\n".join(dated) + "\n")
    works("rank", "races.csv", *AS_RACES, "--time", "day", "--save", "r.nc")
    times = revealed.load("r.nc").rankings.times
    assert times is not None
    assert times.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert "no column 'date'" in refuses("rank", "races.csv", *AS_RACES, "--time", "date")


def test_open_ends_are_told_and_do_not_stop_a_ranking(here: Path) -> None:
    write(here / "races.csv", RACES + "9,x,1\n9,a,2\n")
    result = works("rank", "races.csv", *AS_RACES)
    assert "x was never beaten: there the prior alone sets limits to skills" in result.stderr
    assert "x was never beaten" not in result.stdout


def test_goals_are_ranked_by_their_number_and_told_from_positions(here: Path) -> None:
    results = [
        "a,3 b,1",
        "b,2 c,0",
        "a,4 c,0",
        "c,1 a,0",
        "a,2 b,1",
        "b,3 c,0",
        "a,1 b,0",
        "a,5 c,2",
    ]
    goals = "game,player,goals\n" + "".join(
        f"{g},{line}\n" for g, game in enumerate(results, 1) for line in game.split()
    )
    write(here / "goals.csv", goals)
    found = answers("rank", "goals.csv", "--score", "goals", *SMALL)
    assert found["ranking"][0]["player"] == "a"
    mistaken = works("rank", "goals.csv", "--position", "goals", *SMALL)
    assert "revealed: warning: game 2: 0 is no position among 2 entries" in mistaken.stderr
    assert "--score" in mistaken.stderr


def test_noise_is_chosen(here: Path) -> None:
    """A tie under logit noise has no margin; what --noise once said, --team-noise says."""
    write(here / "races.csv", RACES + "9,a,1\n9,b,1\n")
    found = answers("rank", "races.csv", *AS_RACES, "--noise", "logit", "--save", "r.nc")
    assert found["margin"] is None
    assert revealed.load("r.nc").model.noise == revealed.LogitNoise()
    assert "is a tie" not in works("rank", "races.csv", *AS_RACES, "--noise", "logit").stdout
    assert answers("rank", "races.csv", *AS_RACES)["margin"] > 0.0
    for words in (("--noise", "player"), ("--team-noise", "player")):
        answers("rank", "races.csv", *AS_RACES, *words, "--save", "r.nc")
        model = revealed.load("r.nc").model
        assert (model.team_noise, model.noise) == ("player", revealed.NormalNoise())


BAD_RESULTS = {
    "a noise that nobody knows": (
        RACES,
        ("--noise", "cauchy"),
        "--noise must be normal or logit; it is 'cauchy'",
    ),
    "a code that nobody knows": (
        RACES + "9,a,1\n9,b,retired\n",
        (),
        "row 16: the position 'retired' is no number, a tie such as T2 or =2 or a code that is known",
    ),
    "another separator": (RACES.replace(",", ";"), (), "pass sep=';' (on the command line --sep"),
    "positions and scores": (
        RACES,
        ("--score", "finish"),
        "give position, where 1 is the best, or score, where the largest is",
    ),
    "no winner": (
        RACES + "9,a,DNF\n9,b,DNF\n",
        (),
        "game 9: there is no winner; nobody has a position",
    ),
    "one entry": (RACES + "9,a,1\n", (), "game 9: there is one entry"),
    "a driver twice": (RACES + "9,a,1\n9,a,2\n", (), "game 9: a takes part twice"),
    "no such column": (RACES, ("--team", "stable"), "the table has no column 'stable'"),
    "a line-up of one": (
        RACES,
        ("--next", "a"),
        "a line-up needs at least two entries; there are 1",
    ),
    "a new player": (
        RACES,
        ("--next", "a,zebra"),
        "'zebra' was in no game; pass allow_new_players=True to treat such a player as drawn from",
    ),
    "a champion under a flat prior": (
        RACES + "9,x,1\n9,a,2\n",
        ("--flat",),
        "x was never beaten, so there is no posterior under a flat prior",
    ),
    "two leagues under a flat prior": (
        RACES + "9,x,1\n9,y,2\n10,y,1\n10,x,2\n",
        ("--flat",),
        "no game links x and y with the others",
    ),
    "two priors": (
        RACES,
        ("--flat", "--prior-sd", "1"),
        "--flat and --prior-sd contradict each other",
    ),
    "a negative sd": (
        RACES,
        ("--prior-sd", "-1"),
        "the prior sd of skills must be a positive number; it is -1",
    ),
    "a picture of no kind": (
        RACES,
        ("--plot", "r.txt"),
        "the picture must be a .png, .pdf or .svg file",
    ),
}


@pytest.mark.parametrize("what", BAD_RESULTS)
def test_bad_results_are_refused(here: Path, what: str) -> None:
    table, more, sentence = BAD_RESULTS[what]
    write(here / "races.csv", table)
    assert sentence in refuses("rank", "races.csv", *AS_RACES, *more)


def test_skills_over_time(here: Path) -> None:
    lines = RACES.splitlines()
    dated = [f"{lines[0]},day", *(f"{line},1970-01-0{2 + int(line[0])}" for line in lines[1:])]
    write(here / "races.csv", "\n".join(dated) + "\n")
    walk = (*AS_RACES, "--over-time", "random-walk")
    files = ("--save", "r.nc", "--plot", "r.png")
    timed = (*walk, "--time", "day")
    found = answers("rank", "races.csv", *timed, *files, "--next", "a,c", "--at", "1970-01-09")
    assert found["drift_sd"] > 0.0
    assert sum(found["next"].values()) == pytest.approx(1.0, abs=1e-6)
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")
    post = revealed.load("r.nc")
    assert post.at(8.0).table() == found["ranking"]
    assert " in a day." in works("rank", "races.csv", *timed).stdout
    assert "give --time COLUMN" in refuses("rank", "races.csv", *walk)
    assert "--at is for skills that change" in refuses("rank", "races.csv", *AS_RACES, "--at", "3")
    reverting = ("--over-time", "mean-reverting", "--time", "day")
    assert answers("rank", "races.csv", *AS_RACES, *reverting)["drift_sd"] > 0.0
    assert "must be constant, random-walk or mean-reverting" in refuses(
        "rank", "races.csv", *AS_RACES, "--over-time", "walk"
    )
