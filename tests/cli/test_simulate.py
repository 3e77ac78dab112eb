"""`revealed simulate`: the table and the truth behind it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revealed.io.files import read_file
from tests.support.command_line import answers, refuses, works


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


def test_the_controller_has_the_noise_and_the_lapses_that_are_asked_for(here: Path) -> None:
    tables = {}
    for name, options in {
        "normal": [],
        "logit": ["--noise", "logit"],
        "lapses": ["--noise", "logit", "--lapse-rate", "0.5"],
    }.items():
        said = str(works("simulate", "--decisions", 40, *options, "--out", f"{name}.csv").stdout)
        tables[name] = Path(f"{name}.csv").read_bytes()
        assert ("--noise logit" in said) == (name != "normal")
        assert ("--lapse" in said) == (name == "lapses")
    assert len(set(tables.values())) == 3
    assert "must be normal or logit" in refuses("simulate", "--noise", "probit", "--out", "d.csv")
    assert "from 0 to 1" in refuses("simulate", "--lapse-rate", "2", "--out", "d.csv")


def test_the_same_seed_gives_the_same_files(here: Path) -> None:
    for name in ("a.csv", "b.csv"):
        works("simulate", "--decisions", 8, "--seed", 7, "--out", name)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    works("simulate", "--decisions", 8, "--seed", 8, "--out", "c.csv")
    assert Path("a.csv").read_bytes() != Path("c.csv").read_bytes()
