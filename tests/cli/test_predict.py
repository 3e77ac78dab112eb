"""`revealed predict`: scores, and predictions without choices."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from revealed.results.posterior import Posterior
from revealed.results.prediction import predict
from tests.support.command_line import answers, refuses, works


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
