"""The command line: what it prints and writes, what it refuses and how, and what Ctrl-C leaves behind."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import revealed
from revealed.cli import app
from revealed.cli.demo import print_results
from revealed.environments.tetris import (
    Step,
    Tetris,
    drop,
    read_games,
    sampling_policy,
    write_games,
)
from revealed.io.files import read_file
from revealed.results.posterior import Posterior
from revealed.results.prediction import predict

COMMANDS = ("simulate", "fit", "predict", "report", "rank", "play", "replay", "reproduce", "demo")
SMALL = ("--draws", "60", "--warmup", "20", "--chains", "2", "--no-progress")
PROGRAM = Path(sysconfig.get_path("scripts")) / "revealed"


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def works(*words: object) -> Any:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result


def answers(*words: object) -> dict[str, Any]:
    """The JSON object, which is all there is on stdout."""
    printed = works(*words, "--json").stdout
    assert printed.count("\n") == 1
    found = json.loads(printed, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert isinstance(found, dict)
    return found


def refuses(*words: object) -> str:
    """Exit code 2 and one sentence on stderr, nothing on stdout; returns the sentence."""
    result = run(*words)
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert re.fullmatch(r"revealed: [^\n]+\n", result.stderr), result.stderr
    assert "Traceback" not in result.stderr
    return str(result.stderr)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with decisions.csv of a small world and posterior.nc learnt from it."""
    folder = tmp_path_factory.mktemp("made")
    works(
        "simulate",
        "--states",
        3,
        "--actions",
        2,
        "--decisions",
        40,
        "--seed",
        3,
        "--out",
        folder / "decisions.csv",
    )
    works(
        "fit", folder / "decisions.csv", "--sum-to-zero", "--out", folder / "posterior.nc", *SMALL
    )
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with copies of what was made; whatever fails in it must leave no file behind."""
    for name in ("decisions.csv", "posterior.nc"):
        shutil.copy(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".part", ".tmp")]


def write(path: Path, lines: str) -> Path:
    path.write_text(lines)
    return path


# What it does


def test_version_and_common_options() -> None:
    shown = subprocess.run([sys.executable, PROGRAM, "--version"], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (0, f"revealed {revealed.__version__}\n")
    for command in COMMANDS:
        text = works(command, "--help").stdout
        assert [
            option
            for option in ("--seed", "--out", "--no-progress", "--json")
            if option not in text
        ] == []
    assert works().stdout == works("--help").stdout
    again = subprocess.run(
        [sys.executable, "-m", "revealed", "--version"], capture_output=True, text=True
    )
    assert again.stdout == shown.stdout


def test_the_shell_completes_commands_and_options() -> None:
    for words, expected in (("revealed pre", "predict"), ("revealed fit --work", "--workers")):
        typed = {
            "_REVEALED_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        shown = subprocess.run(
            [sys.executable, PROGRAM], capture_output=True, text=True, env={**os.environ, **typed}
        )
        assert shown.stdout.split() == [expected]


def test_help_is_quick_to_load() -> None:
    heavy = [
        "matplotlib",
        "arviz",
        "pyarrow",
        "sklearn",
        "pandas",
        "narwhals",
        "scipy.optimize",
        "xarray",
    ]
    code = f"import sys, revealed as rv; was = set(sys.modules); import revealed.cli; print(*(set({heavy}) & (set(sys.modules) - was)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == []


def test_simulate_writes_the_table_and_the_truth(here: Path) -> None:
    facts = answers(
        "simulate",
        "--states",
        4,
        "--actions",
        2,
        "--decisions",
        9,
        "--seed",
        5,
        "--out",
        "d.parquet",
        "--truth",
        "t.json",
    )
    truth = json.loads(Path("t.json").read_text())
    assert facts["decisions"] == 9
    assert truth["value"] == facts["value"]
    assert abs(sum(truth["value"])) < 1e-12
    transitions = np.array(truth["transitions"])
    assert transitions.shape == (2, 4, 4)
    d = read_file("d.parquet")
    assert len(d) == 9
    assert d.rows == pytest.approx(
        transitions[:, truth["states"]].transpose(1, 0, 2).reshape(18, 4)
    )
    assert d.chosen is not None
    assert d.chosen.tolist() == truth["actions"]


def test_the_same_seed_gives_the_same_files(here: Path) -> None:
    for name in ("a.csv", "b.csv"):
        works("simulate", "--decisions", 8, "--seed", 7, "--out", name)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    works("simulate", "--decisions", 8, "--seed", 8, "--out", "c.csv")
    assert Path("a.csv").read_bytes() != Path("c.csv").read_bytes()


def test_fit_prints_a_table_and_whether_it_converged(here: Path) -> None:
    result = works("fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", *SMALL)
    assert all(name in result.stdout for name in ("V(0)", "V(1)", "V(2)", "R-hat", "p.nc"))
    post = Posterior.load("p.nc")
    assert post.draws.shape == (2, 60, 3)
    assert np.abs(post.draws.sum(axis=2)).max() < 1e-10
    assert not post.summary().converged, "sixty draws are too few, or this test tests nothing"
    assert result.stderr == f"revealed: {post.summary().message}\n"


def test_fit_answers_machines(here: Path) -> None:
    facts = answers(
        "fit",
        "decisions.csv",
        "--sum-to-zero",
        "--prior-sd",
        3,
        "--seed",
        4,
        "--out",
        "p.nc",
        *SMALL,
    )
    post = Posterior.load("p.nc")
    assert post.prior == revealed.Normal(3.0, sum_to_zero=True)
    assert facts["out"] == "p.nc"
    assert (facts["seed"], facts["draws"], facts["warmup"], facts["chains"]) == (4, 60, 20, 2)
    assert facts["converged"] is False
    assert facts["message"].startswith("Do not trust")
    assert facts["warnings"]
    assert [each["name"] for each in facts["coefficients"]] == ["V(0)", "V(1)", "V(2)"]
    assert [each["mean"] for each in facts["coefficients"]] == pytest.approx(post.mean)
    assert set(facts["coefficients"][0]) == {
        "name",
        "mean",
        "sd",
        "mcse",
        "low",
        "high",
        "ess_bulk",
        "ess_tail",
        "r_hat",
    }


def test_the_default_is_the_default_sampler(here: Path) -> None:
    assert (
        answers("fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", *SMALL)["sampler"]
        == "composite"
    )
    works(
        "fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", "--sampler", "composite", *SMALL
    )
    assert (
        answers("fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", "--a", 0, *SMALL)[
            "sampler"
        ]
        == "px-both"
    )


def test_a_folder_and_workers(here: Path) -> None:
    """The same posterior from a table, a folder, and workers on this machine."""
    works(
        "simulate",
        "--states",
        3,
        "--actions",
        2,
        "--decisions",
        500,
        "--seed",
        3,
        "--out",
        "many.parquet",
    )
    (here / "folder").mkdir()
    (here / "many.parquet").rename(here / "folder" / "many.parquet")
    small = ("--sum-to-zero", "--draws", 200, "--chains", 2, "--no-progress", "--prior-sd", 2)
    one = answers("fit", "folder", "--out", "one.nc", *small)
    two = answers("fit", "folder", "--workers", 1, "--out", "two.nc", *small)
    assert (
        (one["sampler"], one["decisions"]) == (two["sampler"], two["decisions"]) == ("laplace", 500)
    )
    assert one["pareto_k"] < 0.3
    assert np.array_equal(Posterior.load("one.nc").draws, Posterior.load("two.nc").draws)
    assert "contradict each other" in refuses(
        "fit", "folder", "--workers", 1, "--cluster", "tcp://x:1", "--out", "p.nc"
    )
    nobody = refuses("fit", "folder", "--cluster", "tcp://127.0.0.1:1", "--out", "p.nc", *small)
    assert "there is no Dask scheduler at tcp://127.0.0.1:1" in nobody


def test_json_has_no_number_that_is_not_one(here: Path) -> None:
    facts = answers(
        "fit",
        "decisions.csv",
        "--sum-to-zero",
        "--out",
        "p.nc",
        "--draws",
        1,
        "--warmup",
        0,
        "--chains",
        1,
    )
    assert facts["coefficients"][0]["sd"] is None


def test_fit_reaches_every_option_of_the_library(here: Path) -> None:
    table = write(
        here / "shop.csv",
        "visit,item,took,there,who,price,size,junk\n"
        + "".join(
            f"{t},{'ab'[i]},{int(i == t % 2)},1,x,{(t * 7 + i * 3) % 5},{(t + i) % 3},0\n"
            for t in range(20)
            for i in (0, 1)
        )
        + "3,c,0,0,x,nan,1,0\n",
    )
    works(
        "fit",
        table,
        "--out",
        "p.nc",
        "--decision",
        "visit",
        "--action",
        "item",
        "--chosen",
        "took",
        "--group",
        "who",
        "--available",
        "there",
        "--features",
        "price,size",
        "--sampler",
        "px-scale",
        "--utilities",
        "metropolis",
        "--a",
        1,
        "--b",
        2,
        "--thin",
        2,
        "--threads",
        1,
        "--seed",
        9,
        "--flat",
        *SMALL,
    )
    post = Posterior.load("p.nc")
    d = post.decisions
    assert (d.names, len(d), d.sizes.max()) == (("price", "size"), 20, 2)
    assert d.actions is not None
    assert set(d.actions) == {"a", "b"}
    assert d.groups is not None
    assert set(d.groups) == {"x"}
    assert (post.sampler, post.prior) == ("px-scale", revealed.Flat())
    assert post.settings["options"] == {"utilities": "metropolis", "a": 1.0, "b": 2.0}
    assert (post.settings["thin"], post.settings["seed"]) == (2, 9)


def test_fit_hints_at_centring_where_rows_are_probabilities(here: Path) -> None:
    hint = "consider --sum-to-zero"
    assert hint in works("fit", "decisions.csv", "--out", "p.nc", *SMALL).stderr
    assert (
        hint not in works("fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", *SMALL).stderr
    )


@pytest.mark.parametrize("method", ["average", "vote", "point"])
def test_predict_scores_what_was_seen(here: Path, method: str) -> None:
    facts = answers(
        "predict",
        "posterior.nc",
        "decisions.csv",
        "--method",
        method,
        "--seed",
        2,
        "--out",
        "p.csv",
    )
    post = Posterior.load("posterior.nc")
    right = predict(post, post.decisions, method, seed=2)
    assert facts["seen"] is True
    assert facts["decisions"] == 40
    assert (facts["error"], facts["log_score"]) == pytest.approx(
        (right.error_rate, right.log_score)
    )
    assert facts["guessing"] == pytest.approx(0.5)
    assert facts["calibration"]["error"] == pytest.approx(right.calibration().error)
    assert sum(each["count"] for each in facts["calibration"]["bins"]) == 40
    with Path("p.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [float(each["probability"]) for each in lines] == pytest.approx(right.probabilities)
    assert set(lines[0]) == {"decision", "action", "probability", "predicted", "chosen"}


def test_predict_tells_people_the_scores(here: Path) -> None:
    shown = works("predict", "posterior.nc", "decisions.csv", "--out", "p.parquet").stdout
    assert all(word in shown for word in ("E_a", "Log score", "Calibration", "p.parquet"))
    import pyarrow.parquet

    assert pyarrow.parquet.read_table("p.parquet").num_rows == 80


def test_predict_needs_no_choices(here: Path) -> None:
    with Path("decisions.csv").open() as file:
        lines = list(csv.DictReader(file))
    table = here / "offers.csv"
    with table.open("w", newline="") as sink:
        out = csv.DictWriter(
            sink, [name for name in lines[0] if name != "chosen"], extrasaction="ignore"
        )
        out.writeheader()
        out.writerows(lines)
    facts = answers("predict", "posterior.nc", table, "--out", "p.csv.gz")
    assert (facts["seen"], facts["error"], facts["log_score"], facts["calibration"]) == (
        False,
        None,
        None,
        None,
    )
    import pyarrow.csv

    assert "chosen" not in pyarrow.csv.read_csv("p.csv.gz").column_names
    assert "cannot be scored" in works("predict", "posterior.nc", table, "--out", "p.csv").stdout
    assert "no column 'chosen'" in refuses(
        "predict", "posterior.nc", table, "--out", "q.csv", "--chosen", "chosen"
    )


class Page(HTMLParser):
    """Collects what a reader and a browser would meet."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.images, self.loads, self.ids, self.links = "", [], [], set(), set()  # type: ignore[var-annotated]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag == "img":
            self.images.append(given)
        if tag in ("link", "script", "iframe", "object"):
            self.loads.append(tag)
        self.loads += [
            v for k, v in given.items() if k in ("src", "srcset") and not v.startswith("data:")
        ]
        self.ids.add(given.get("id"))
        if tag == "a":
            self.links.add(given["href"])

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_report_is_one_page_that_stands_alone(here: Path) -> None:
    lines = Path("decisions.csv").read_text()
    write(here / "odd.csv", lines.replace("V(0)", "<script>x&y</script>"))
    works("fit", "odd.csv", "--sum-to-zero", "--out", "odd.nc", *SMALL)
    facts = answers("report", "odd.nc", "--out", "r.html")
    assert facts["message"] == Posterior.load("odd.nc").summary().message
    text = Path("r.html").read_text()
    page = Page()
    page.feed(text)
    assert page.loads == []
    assert "url(" not in text
    assert "@import" not in text
    assert len(page.images) == 5
    assert all(
        image["src"].startswith("data:image/png;base64,") and len(image["alt"]) > 20
        for image in page.images
    )
    assert page.links == {f"#{name}" for name in page.ids if name}
    words = " ".join(page.words.split())
    assert facts["message"] in words
    for part in (
        "<script>x&y</script>",
        "V(2)",
        "sd / prior sd",
        "directions",
        "E_a",
        "composite",
        "prior",
        "a blind guess",
    ):
        assert part in words


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
    verdict = Posterior.load("shown/posterior.nc").summary().message
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


def test_the_paper_is_reproduced_and_the_same_seed_gives_the_same_numbers(here: Path) -> None:
    first = answers("reproduce", "all", "--quick", "--out", "one", "--no-progress")
    answers("reproduce", "toy", "--quick", "--out", "two", "--no-progress")
    folder = here / "one" / "pressure"
    assert {p.name for p in folder.iterdir()} == {
        "study.json",
        "index.html",
        *(f"figure-{n}.{kind}" for n in (1, 2, 3) for kind in ("png", "pdf")),
    }
    assert "left out" in first["left_out"]["pressure, from a person"]
    made = [path.relative_to(here / "one") for path in (here / "one").rglob("*.*")]
    assert {path.parts[0] for path in made} == {"toy", "tetris", "pressure", "index.html"}
    for path in (
        path for path in made if path.parts[0] == "toy" and path.suffix != ".pdf"
    ):  # whose letters may be ordered anew
        assert (here / "one" / path).read_bytes() == (here / "two" / path).read_bytes(), path
    assert "The paper:" in (folder / "index.html").read_text()


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
    assert revealed.RankingPosterior.load("r.nc").table() == found["ranking"]
    shown = works("rank", "races.csv", *AS_RACES, "--winner-only", "--next", "a,b").stdout
    assert "6 games of 3 players" in shown
    assert "a wins with" in shown
    assert answers("rank", "races.csv", *AS_RACES, "--flat")["spread"] is None
    assert answers("rank", "races.csv", *AS_RACES, "--prior-sd", "2")["spread"] == pytest.approx(
        2.0
    )


def test_open_ends_are_told_and_do_not_stop_a_ranking(here: Path) -> None:
    write(here / "races.csv", RACES + "9,x,1\n9,a,2\n")
    result = works("rank", "races.csv", *AS_RACES)
    assert "x was never beaten: there the prior alone sets limits to skills" in result.stderr
    assert "x was never beaten" not in result.stdout


BAD_RESULTS = {
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


def a_game() -> list[dict[str, Any]]:
    """Sixty placements of a careful player on twelve rows, as records."""
    player = sampling_policy([-3.0, -15.0, -1.0])
    write_games("good.jsonl", [list(Tetris(12, 6).play(np.random.default_rng(2), player, 60))])
    return [json.loads(line) for line in Path("good.jsonl").read_text().splitlines()]


def test_recorded_games_are_learnt_from_predicted_and_played(here: Path) -> None:
    count = len(a_game())
    learnt = answers(
        "fit", "good.jsonl", "--features", "dellacherie", "--prior-sd", "5", "--out", "p.nc", *SMALL
    )
    assert learnt["decisions"] == count
    assert [c["name"] for c in learnt["coefficients"]][:2] == ["landing height", "eroded"]
    assert answers("predict", "p.nc", "good.jsonl", "--out", "q.csv")["error"] < 0.5
    assert answers("play", "p.nc", "--steps", "5")["placements"] == 5


BAD_GAMES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]] = {
    "a board of the wrong width": (
        lambda g: g[6].update(board=["00000"] * 12),
        "line 7: row 0 of the board is 5 squares wide; it must be 6",
    ),
    "an unknown piece": (lambda g: g[4].update(piece="X"), "line 5: the piece 'X' is unknown"),
    "an illegal placement": (lambda g: g[2].update(column=6), "line 3: the piece"),
    "a game that does not replay": (
        lambda g: g.__delitem__(3),
        "line 4: game 1 does not replay: turn 4 follows turn 2",
    ),
}


@pytest.mark.parametrize("what", BAD_GAMES)
def test_bad_games_are_refused_with_their_line(here: Path, what: str) -> None:
    spoil, expected = BAD_GAMES[what]
    game = a_game()
    spoil(game)
    write(here / "bad.jsonl", "".join(json.dumps(record) + "\n" for record in game))
    assert expected in refuses("reproduce", "human", "--games", "bad.jsonl", "--out", "o")
    assert expected in refuses("fit", "bad.jsonl", "--out", "p.nc")
    assert not Path("p.nc").exists()


def test_a_line_cut_short_is_refused_with_its_number(here: Path) -> None:
    a_game()
    write(here / "cut.jsonl", Path("good.jsonl").read_text()[:-40])
    assert "this is not a whole JSON record; the line may have been cut short" in refuses(
        "fit", "cut.jsonl", "--out", "p.nc"
    )


# What it refuses

HEAD = "decision,action,chosen,x,y\n"
GOOD = HEAD + "7,a,1,0.0,1.0\n7,b,0,1.0,0.5\n8,a,0,0.3,0.2\n8,b,1,0.9,0.1\n"
BAD_TABLES = {
    "a NaN feature": (GOOD.replace("0.3", "nan"), "decision 8"),
    "an infinite feature": (GOOD.replace("0.3", "inf"), "decision 8"),
    "an empty feature": (GOOD.replace("0.3", ""), "decision 8"),
    "no chosen row": (GOOD.replace("8,b,1", "8,b,0"), "decision 8: no action is marked chosen"),
    "two chosen rows": (GOOD.replace("8,a,0", "8,a,1"), "decision 8: 2 actions are marked chosen"),
    "words for features": (GOOD.replace("0.3", "tall"), "'x' is not numeric"),
    "no rows": (HEAD, "no rows"),
    "nothing at all": ("", "CSV"),
    "no feature column": ("decision,chosen\n7,1\n", "no feature column"),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables_are_refused_by_fit(here: Path, what: str) -> None:
    lines, expected = BAD_TABLES[what]
    write(here / "bad.csv", lines)
    assert expected in refuses("fit", "bad.csv", "--out", "p.nc")
    assert not Path("p.nc").exists()


FIT = ("fit", "good.csv", "--out", "p.nc", *SMALL)
REFUSED = {
    "unknown column": ((*FIT, "--chosen", "picked"), "no column 'picked'"),
    "unknown feature": ((*FIT, "--features", "x,z"), "no column 'z'"),
    "prior sd zero": ((*FIT, "--prior-sd", "0"), "--prior-sd must be a positive number; it is 0"),
    "prior sd negative": ((*FIT, "--prior-sd", "-1"), "must be a positive number"),
    "prior sd nan": ((*FIT, "--prior-sd", "nan"), "must be a positive number"),
    "flat prior on separable data": ((*FIT, "--flat"), "improper along the direction"),
    "two priors": ((*FIT, "--flat", "--prior-sd", "2"), "contradict"),
    "no such sampler": ((*FIT, "--sampler", "warp"), "there is no sampler 'warp'"),
    "no such utilities": ((*FIT, "--utilities", "guessed"), "utilities must be"),
    "half a working prior": ((*FIT, "--a", "1"), "both positive"),
    "no draws": ((*FIT, "--draws", "0"), "draws must be a whole number"),
    "no threads": ((*FIT, "--threads", "0"), "--threads"),
    "a seed below zero": ((*FIT, "--seed", "-1"), "--seed"),
    "nothing to resume": (
        ("fit", "good.csv", "--out", "posterior.nc", "--resume"),
        "no checkpoint posterior.nc.checkpoint to resume from, and posterior.nc is there already",
    ),
    "seconds below zero": (
        (*FIT, "--checkpoint-seconds", "-1"),
        "checkpoint_seconds must be a number of seconds",
    ),
    "a missing table": (("fit", "none.csv", "--out", "p.nc"), "none.csv: there is no such file"),
    "another kind of table": (("fit", "good.xlsx", "--out", "p.nc"), "must end with"),
    "a table that is a folder": (("fit", "folder.csv", "--out", "p.nc"), "folder"),
    "an output in no folder": (
        ("fit", "none.csv", "--out", "nowhere/p.nc"),
        "there is no folder nowhere",
    ),
    "an output that is a folder": (
        ("fit", "none.csv", "--out", "folder.csv"),
        "folder.csv is a folder",
    ),
    "an output below a file": (
        ("fit", "none.csv", "--out", "good.csv/p.nc"),
        "there is no folder good.csv",
    ),
    "a missing posterior": (
        ("predict", "none.nc", "good.csv", "--out", "o.csv"),
        "there is no file none.nc",
    ),
    "a text as posterior": (
        ("predict", "good.csv", "good.csv", "--out", "o.csv"),
        "not a posterior saved by revealed",
    ),
    "a cut posterior": (("report", "cut.nc", "--out", "o.html"), "damaged or cut short"),
    "a foreign posterior": (
        ("report", "foreign.nc", "--out", "o.html"),
        "some other program's NetCDF file",
    ),
    "other features": (
        ("predict", "posterior.nc", "good.csv", "--out", "o.csv"),
        "no column 'V(0)'",
    ),
    "no such method": (
        ("predict", "posterior.nc", "decisions.csv", "--out", "o.csv", "--method", "guess"),
        "'guess'",
    ),
    "another kind of output": (
        ("predict", "posterior.nc", "decisions.csv", "--out", "o.txt"),
        "must end with",
    ),
    "predictions in no folder": (
        ("predict", "none.nc", "x.csv", "--out", "nowhere/o.csv"),
        "no folder nowhere",
    ),
    "a report in no folder": (
        ("report", "none.nc", "--out", "nowhere/o.html"),
        "no folder nowhere",
    ),
    "simulated without a prior sd": (
        ("simulate", "--prior-sd", "0", "--out", "o.csv"),
        "--prior-sd must be a positive number",
    ),
    "simulated without states": (("simulate", "--states", "0", "--out", "o.csv"), "states"),
    "no decisions": (("simulate", "--decisions", "0", "--out", "o.csv"), "at least 1"),
    "a simulation in no folder": (("simulate", "--out", "nowhere/o.csv"), "no folder nowhere"),
    "a truth in no folder": (
        ("simulate", "--out", "o.csv", "--truth", "nowhere/t.json"),
        "no folder nowhere",
    ),
    "a player of no game": (
        ("play", "posterior.nc"),
        "these are not the features of a named set of Tetris",
    ),
    "a game of no steps": (("play", "posterior.nc", "--steps", "0"), "--steps must be at least 1"),
    "a game recorded nowhere": (
        ("play", "posterior.nc", "--out", "nowhere/g.jsonl"),
        "no folder nowhere",
    ),
    "a person without games": (
        ("reproduce", "human", "--out", "o"),
        "needs a person's recorded games",
    ),
    "games that are a table": (
        ("reproduce", "human", "--games", "good.csv", "--out", "o"),
        "line 1: this is not a whole JSON record",
    ),
    "games that are not there": (
        ("reproduce", "all", "--games", "none.jsonl", "--out", "o"),
        "none.jsonl",
    ),
    "a reproduction on a file": (
        ("reproduce", "toy", "--out", "good.csv"),
        "folder good.csv cannot be made",
    ),
    "no such study": (("reproduce", "chess", "--out", "o"), "chess"),
    "a demo on a file": (("demo", "--out", "good.csv"), "folder good.csv cannot be made"),
    "no such command": (("fitt",), "No such command 'fitt'"),
    "no such option": (("fit", "good.csv", "--out", "p.nc", "--warmpu", "3"), "--warmpu"),
    "no output": (("fit", "good.csv"), "--out"),
    "a word for a number": ((*FIT, "--draws", "many"), "--draws"),
    "no such first option": (("--loud",), "--loud"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_refused_in_a_sentence(here: Path, what: str) -> None:
    import h5netcdf

    write(here / "good.csv", GOOD)
    (here / "folder.csv").mkdir()
    whole = Path("posterior.nc").read_bytes()
    Path("cut.nc").write_bytes(whole[: len(whole) // 2])
    with h5netcdf.File("foreign.nc", "w") as file:
        file.attrs["created_by"] = "somebody else"
    before = sorted(here.rglob("*"))
    words, expected = REFUSED[what]
    assert expected in refuses(*words)
    assert sorted(here.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(here: Path) -> None:
    (here / "locked").mkdir(mode=0o500)
    assert "not writable" in refuses("fit", "none.csv", "--out", "locked/p.nc")


def test_a_damaged_checkpoint_is_refused(here: Path) -> None:
    write(here / "p.nc.checkpoint", "not a checkpoint")
    assert "not a checkpoint" in refuses(
        "fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", "--resume", *SMALL
    )


def test_resuming_begins_where_there_is_nothing_yet(here: Path) -> None:
    words = ("fit", "decisions.csv", "--sum-to-zero", *SMALL)
    begun = works(*words, "--out", "p.nc", "--resume", "--checkpoint-seconds", "0")
    assert (
        "note: starting afresh; there is no checkpoint p.nc.checkpoint to resume from"
        in begun.stderr
    )
    works(*words, "--out", "whole.nc")
    assert np.array_equal(Posterior.load("p.nc").draws, Posterior.load("whole.nc").draws)
    assert not Path("p.nc.checkpoint").exists()


def test_killed_before_the_checkpoint_is_removed_it_resumes_to_the_same_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", *SMALL)

    def killed(self: Path, missing_ok: bool = False) -> None:
        if self.name == "p.nc.checkpoint":
            raise SystemExit(137)
        unlink(self, missing_ok)

    unlink = Path.unlink
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        assert run(*words).exit_code == 137
    assert Path("p.nc.checkpoint").exists()
    draws = Posterior.load("p.nc").draws
    works(*words, "--resume")
    assert np.array_equal(Posterior.load("p.nc").draws, draws)
    assert not Path("p.nc.checkpoint").exists()


def test_an_old_output_survives_a_run_that_fails(here: Path) -> None:
    write(here / "good.csv", GOOD)
    old = Path("posterior.nc").read_bytes()
    refuses("fit", "good.csv", "--flat", "--out", "posterior.nc", *SMALL)
    assert Path("posterior.nc").read_bytes() == old


def test_a_mistake_of_ours_is_said_without_a_traceback(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("revealed.plots.report.write_report", broken)
    result = run("report", "posterior.nc", "--out", "o.html")
    assert result.exit_code == 1
    assert re.fullmatch(r"revealed: [^\n]*mistake in revealed[^\n]*oops[^\n]*\n", result.stderr)


def test_the_installed_program_refuses_too(here: Path) -> None:
    shown = subprocess.run(
        [sys.executable, PROGRAM, "fit", "none.csv", "--out", "p.nc"],
        capture_output=True,
        text=True,
        cwd=here,
    )
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == "revealed: none.csv: there is no such file\n"


# What Ctrl-C leaves

LONG = (
    "--sum-to-zero",
    "--draws",
    "150",
    "--thin",
    "1000",
    "--warmup",
    "10",
    "--chains",
    "2",
    "--seed",
    "6",
    "--json",
)

# The program itself, in small pieces and out of breath: it says on stderr when a piece is done, and Ctrl-C comes.
WATCHED = """
import signal, sys, time
import revealed.samplers.run as run
from revealed.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us deaf to it
iterate = run.Run.iterate
def loud(self):
    for done in iterate(self):
        print("going on", file=sys.stderr, flush=True)
        time.sleep(0.1)
        yield done
run.Run.iterate, run.CHUNK_SECONDS = loud, 0.01
sys.argv[0] = "revealed"
main()
"""


def test_ctrl_c_leaves_a_checkpoint_that_resumes_to_the_same_draws(here: Path) -> None:
    words = ["fit", "decisions.csv", *LONG, "--out", "p.nc"]
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
    )
    assert process.stderr is not None
    for _ in range(3):
        assert process.stderr.readline() == "going on\n"
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert out == ""
    assert "Traceback" not in said
    last = said.splitlines()[-1]
    assert re.search(r"interrupted after \d+ of 150 draws a chain", last)
    assert last.endswith("revealed fit decisions.csv " + " ".join(LONG) + " --out p.nc --resume")
    assert not Path("p.nc").exists()
    assert Path("p.nc.checkpoint").exists()

    assert "belongs to other decisions, prior or settings" in refuses(
        *words, "--resume", "--seed", "7"
    )
    works(*words, "--resume")
    assert not Path("p.nc.checkpoint").exists()
    works("fit", "decisions.csv", *LONG, "--out", "whole.nc")
    assert np.array_equal(Posterior.load("p.nc").draws, Posterior.load("whole.nc").draws)


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "posterior.nc", "decisions.csv", "--out", "o.csv"),
        ("report", "posterior.nc", "--out", "o.html"),
    ],
)
def test_ctrl_c_elsewhere_ends_quietly(
    here: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module in ("revealed.results.prediction", "revealed.plots.report"):
        monkeypatch.setattr(importlib.import_module(module), "predict", pressed)
    result = run(*words)
    assert result.exit_code == 130
    assert result.stderr == "revealed: interrupted; nothing was written\n"
    assert not Path(words[-1]).exists()
