"""`revealed predict`: scores, and predictions without choices."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from revealed import Normal, RankingModel, read_file
from revealed.api import fit_quietly
from revealed.results.load import load
from revealed.results.predictive import predict
from tests.support.command_line import SMALL, answers, refuses, works, write


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
    post = load("posterior.nc")
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
    columns = {"decision", "action", "probability", "standard_error", "predicted", "chosen"}
    assert set(lines[0]) == columns
    assert [float(each["standard_error"]) for each in lines] == pytest.approx(right.standard_error)
    assert facts["standard_error"] == pytest.approx(right.standard_error.max())
    assert facts["log_score_standard_error"] == pytest.approx(right.log_score_standard_error)
    assert facts["draws"] == [right.draws.min(), right.draws.max()]


def test_predict_tells_people_the_scores(here: Path) -> None:
    shown = works("predict", "posterior.nc", "decisions.csv", "--out", "p.parquet").stdout
    assert all(word in shown for word in ("E_a", "Log score", "Calibration", "p.parquet"))
    assert "draws, Monte-Carlo error at most" in shown
    assert "(Monte-Carlo error" in shown
    import pyarrow.parquet

    assert pyarrow.parquet.read_table("p.parquet").num_rows == 80


def test_so_many_draws_are_used(here: Path) -> None:
    words = ("predict", "posterior.nc", "decisions.csv", "--out", "p.csv", "--draws")
    assert answers(*words, "7")["draws"] == [7, 7]
    facts = answers(*words, "all")
    assert facts["draws"] == [facts["draws_available"]] * 2
    for wrong in ("0", "many", "-3"):
        assert "--draws must be a number from 1 on, or all" in refuses(*words, wrong)


def test_decisions_of_one_action_are_not_scored(here: Path) -> None:
    with Path("decisions.csv").open() as file:
        lines = list(csv.DictReader(file))
    taken = next(line for line in lines if line["chosen"].lower() in ("1", "true"))
    forced = {**taken, "decision": "1000000"}
    table = here / "forced.csv"
    with table.open("w", newline="") as sink:
        out = csv.DictWriter(sink, list(forced))
        out.writeheader()
        out.writerows([*lines, forced])
    words = ("predict", "posterior.nc", table, "--out", "p.csv")
    facts = answers(*words)
    assert (facts["decisions"], facts["forced"]) == (41, 1)
    without = answers("predict", "posterior.nc", "decisions.csv", "--out", "p.csv")
    assert facts["error"] == pytest.approx(without["error"])
    assert "1 of 41 decisions offer a single action" in works(*words).stdout


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


# Several groups


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of two people and hierarchical.nc and separate.nc learnt from it."""
    folder, rng = tmp_path_factory.mktemp("groups"), np.random.default_rng(5)
    lines = [
        f"{t},{i},{int(i == t % 2)},{who},{rng.normal():.4f},{rng.normal():.4f}"
        for t, who in enumerate(np.repeat(["ann", "bob"], 15))
        for i in (0, 1)
    ]
    table = write(folder / "people.csv", HEAD + "\n".join(lines) + "\n")
    for groups in ("hierarchical", "separate"):
        words = ("--groups", groups, "--prior-sd", 2, "--out", folder / f"{groups}.nc", *SMALL)
        works("fit", table, *words)
    return folder


HEAD = "decision,action,chosen,group,price,size\n"


@pytest.mark.parametrize("groups", ["hierarchical", "separate"])
def test_each_group_is_predicted_by_its_own_value(
    fitted: Path, groups: str, tmp_path: Path
) -> None:
    file, table, out = fitted / f"{groups}.nc", fitted / "people.csv", tmp_path / "p.csv"
    facts = answers("predict", file, table, "--out", out)
    post = load(file)
    right = post.predict(post.data)
    assert (facts["decisions"], facts["method"]) == (30, "average")
    assert (facts["error"], facts["log_score"]) == pytest.approx(
        (right.error_rate, right.log_score)
    )
    with out.open() as stream:
        found = [float(line["probability"]) for line in csv.DictReader(stream)]
    alone = post.select(group="bob").predict(post.data[15:])
    assert found[30:] == pytest.approx(alone.probabilities)
    for method in ("vote", "point"):
        facts = answers("predict", file, table, "--out", out, "--method", method)
        assert facts["log_score"] == pytest.approx(post.predict(post.data, method).log_score)


def test_groups_are_found_in_a_column_of_another_name(fitted: Path, tmp_path: Path) -> None:
    text = (fitted / "people.csv").read_text()
    table = write(tmp_path / "who.csv", text.replace(",group,", ",who,"))
    words = ("predict", fitted / "separate.nc", table, "--out", tmp_path / "p.csv")
    assert "the table does not say who decides; name the column with --group" in refuses(*words)
    assert answers(*words, "--group", "who")["decisions"] == 30


def test_new_groups_are_predicted_from_the_population(fitted: Path, tmp_path: Path) -> None:
    text = (fitted / "people.csv").read_text()
    table = write(tmp_path / "new.csv", text.replace(",bob,", ",zed,"))
    words = ("predict", fitted / "hierarchical.nc", table, "--out", tmp_path / "p.csv")
    refused = refuses(*words)
    assert "group 'zed' made none of the decisions of this fit" in refused
    assert "--new-groups zed predicts from the population" in refused
    facts = answers(*words, "--new-groups", "zed", "--seed", 4)
    post, d = load(fitted / "hierarchical.nc"), read_file(table)
    assert facts["log_score"] == pytest.approx(
        post.predict(d, new_groups=["zed"], seed=4).log_score
    )
    separate = ("predict", fitted / "separate.nc", table, "--out", tmp_path / "p.csv")
    assert "only a fit with --groups hierarchical predicts new groups" in refuses(*separate)
    assert "--new-groups are predicted from a population" in refuses(
        *separate, "--new-groups", "zed"
    )


def test_groups_whose_labels_are_numbers_are_named_as_they_are_typed(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    lines = [
        f"{t},{i},{int(i == t % 2)},{7 + t % 3},{rng.normal():.4f},{rng.normal():.4f}"
        for t in range(18)
        for i in (0, 1)
    ]
    table = write(tmp_path / "all.csv", HEAD + "\n".join(lines) + "\n")
    some = [line for line in lines if line.split(",")[3] != "9"]
    fitted = write(tmp_path / "some.csv", HEAD + "\n".join(some) + "\n")
    out = tmp_path / "p.nc"
    works("fit", fitted, "--groups", "hierarchical", "--out", out, *SMALL)
    words = ("predict", out, table, "--out", tmp_path / "p.csv")
    assert "--new-groups 9 predicts" in refuses(*words)
    assert answers(*words, "--new-groups", "9")["decisions"] == 18


def test_posterior_of_games_is_refused(fitted: Path, tmp_path: Path) -> None:
    model = RankingModel(prior=Normal(1.0))
    games = [["ann", "bob"], ["bob", "ann"]] * 3
    fit_quietly(games, model, draws=20, warmup=20, chains=1).save(tmp_path / "r.nc")
    words = (tmp_path / "r.nc", fitted / "people.csv", "--out", tmp_path / "p.csv")
    assert "was learnt from games" in refuses("predict", *words)


@pytest.mark.parametrize("groups", ["pooled", "separate"])
def test_values_that_change_are_predicted_at_times(groups: str, tmp_path: Path) -> None:
    """From a table to a table; without its column of times they are refused."""
    rng = np.random.default_rng(2)
    lines = ["decision,group,day,action,chosen,price"]
    for t in range(24):
        price = rng.normal(size=2)
        best = int(np.argmin(price + rng.gumbel(size=2)))
        lines += [f"{t},{'ab'[t % 2]},{t // 2},{a},{a == best},{price[a]:.6f}" for a in (0, 1)]
    table, post = write(tmp_path / "t.csv", "\n".join(lines) + "\n"), tmp_path / "post.nc"
    change = ("--time", "day", "--over-time", "random-walk", "--groups", groups)
    made = answers("fit", table, "--features", "price", *change, *SMALL, "--out", post)
    assert made["decisions"] == 24
    out = tmp_path / "p.csv"
    assert answers("predict", post, table, "--time", "day", "--out", out)["decisions"] == 24
    assert "needs to know when; give --time COLUMN" in refuses("predict", post, table, "--out", out)
    games = write(tmp_path / "g.jsonl", "{}")
    said = refuses("predict", post, games, "--time", "day", "--out", out)
    assert "games of Tetris are read without times and sessions; leave out --time" in said
    if groups == "pooled":
        assert "has values that change, and a player keeps to one" in refuses("play", post)
