"""Bad input of every command is refused in a sentence, and leaves no file behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import GOOD, SMALL, refuses, write

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
    "another kind of table": (("fit", "good.sav", "--out", "p.nc"), "must end with"),
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


def test_an_old_output_survives_a_run_that_fails(here: Path) -> None:
    write(here / "good.csv", GOOD)
    old = Path("posterior.nc").read_bytes()
    refuses("fit", "good.csv", "--flat", "--out", "posterior.nc", *SMALL)
    assert Path("posterior.nc").read_bytes() == old
