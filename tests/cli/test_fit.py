"""`revealed fit`: what it prints and writes, its options, checkpoints, and what Ctrl-C leaves behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import revealed
from revealed.results.posterior import Posterior
from tests.support.command_line import SMALL, answers, refuses, run, works, write


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
    out, said = process.communicate(timeout=600)
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
