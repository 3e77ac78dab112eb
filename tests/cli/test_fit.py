"""`revealed fit`: what it prints and writes, its options, checkpoints, and what Ctrl-C leaves behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed
from revealed import api
from revealed.api import fit_quietly
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.load import load
from revealed.results.summary import Summary
from tests.support.command_line import SMALL, answers, refuses, run, works, write


def same_draws(one: str, other: str) -> bool:
    """Whether two files have the same draws of the same parameters, bit for bit."""
    a, b = load(one).draws, load(other).draws
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


def test_fit_prints_a_table_and_whether_it_converged(here: Path) -> None:
    result = works("fit", "decisions.csv", "--sum-to-zero", "--out", "p.nc", *SMALL)
    assert all(name in result.stdout for name in ("V(0)", "V(1)", "V(2)", "R-hat", "p.nc"))
    post = load("p.nc")
    assert post.draws["value"].shape == (2, 60, 3)
    assert np.abs(post.draws["value"].sum(axis=2)).max() < 1e-10
    assert not post.summary().converged, "sixty draws are too few, or this test tests nothing"
    assert result.stderr == f"revealed: {post.summary().message}\n"


def test_times_and_sessions_are_kept(here: Path) -> None:
    rows = ["7,a,1,0.0,1970-01-05,b", "7,b,0,1.0,1970-01-05,b"]
    rows += ["8,a,0,0.3,1970-01-02,a", "8,b,1,0.9,1970-01-02,a"]
    write(here / "dated.csv", "\n".join(["decision,action,chosen,x,day,visit", *rows]) + "\n")
    named = ("--time", "day", "--session", "visit")
    works("fit", "dated.csv", *named, "--prior-sd", 2, "--out", "p.nc", *SMALL)
    d = load("p.nc").decisions
    assert d.names == ("x",)
    assert d.times is not None
    assert d.times.tolist() == [4.0, 1.0]
    assert d.sessions is not None
    assert d.sessions.tolist() == ["b", "a"]
    unknown = refuses("fit", "dated.csv", "--transitions", "unknown", *named, "--out", "q.nc")
    assert "trajectories are read without times and sessions; leave out --time" in unknown
    games = refuses("fit", "game.jsonl", "--session", "visit", "--out", "q.nc")
    assert "games of Tetris are read without times and sessions; leave out --session" in games


def test_values_may_change_over_time(here: Path) -> None:
    rng = np.random.default_rng(1)
    taken = rng.logistic(size=60) < np.linspace(-3.0, 3.0, 60)
    lines = ["decision,action,chosen,x,day"]
    for t, yes in enumerate(taken):
        lines += [f"{t},no,{int(not yes)},0.0,{t}", f"{t},yes,{int(yes)},1.0,{t}"]
    write(here / "diary.csv", "\n".join(lines) + "\n")
    weeks = ["week", *(str(t // 20) for t in range(60) for _ in "ny")]
    both = [f"{line},{week}" for line, week in zip(lines, weeks, strict=True)]
    write(here / "weeks.csv", "\n".join(both) + "\n")
    drifting = ("--noise", "logit", "--time", "day", "--over-time", "random-walk")
    works("fit", "diary.csv", *drifting, "--out", "p.nc", *SMALL)
    post = load("p.nc")
    assert post.draws["value"].shape == (2, 60, 60, 1)
    assert post.mean()[0, 0] < 0.0 < post.mean()[-1, 0]
    assert post.model.over_time.between_sessions is None
    works("fit", "weeks.csv", *drifting, "--session", "week", "--out", "q.nc", *SMALL)
    assert load("q.nc").draws["drift_sd_between_sessions"].shape == (2, 60, 1)
    returning = ("fit", "diary.csv", *drifting[:-1])
    works(*returning, "mean-reverting", "--out", "s.nc", *SMALL)
    assert load("s.nc").draws["reversion_rate"].shape == (2, 60, 1)
    timeless = refuses("fit", "diary.csv", "--over-time", "random-walk", "--out", "r.nc")
    assert "--over-time random-walk needs --time, the column of times" in timeless
    unknown = refuses(*returning, "sideways", "--out", "r.nc")
    assert "--over-time must be constant, random-walk, mean-reverting or switching" in unknown
    turns = ("--noise", "logit", "--session", "week", "--over-time", "switching")
    works("fit", "weeks.csv", *turns, "--features", "x", "--states", 3, "--out", "t.nc", *SMALL)
    post = load("t.nc")
    assert post.draws["value"].shape == (2, 60, 3, 1)
    assert post.switching.labels == (0, 1, 2)
    alone = refuses("fit", "weeks.csv", "--states", 3, "--out", "t.nc")
    assert "--states goes with --over-time switching" in alone


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
    post = load("p.nc")
    assert post.prior == revealed.Normal(3.0, sum_to_zero=True)
    assert facts["out"] == "p.nc"
    assert (facts["seed"], facts["draws"], facts["warmup"], facts["chains"]) == (4, 60, 20, 2)
    assert facts["converged"] is False
    assert facts["message"].startswith("Do not trust")
    assert facts["warnings"]
    assert [each["name"] for each in facts["coefficients"]] == ["V(0)", "V(1)", "V(2)"]
    assert [each["mean"] for each in facts["coefficients"]] == pytest.approx(post.mean())
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
    assert same_draws("one.nc", "two.nc")
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
    post = load("p.nc")
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
    assert same_draws("p.nc", "whole.nc")
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
    draws = load("p.nc").draws["value"]
    works(*words, "--resume")
    assert np.array_equal(load("p.nc").draws["value"], draws)
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
    assert same_draws("p.nc", "whole.nc")


# Groups and noise


@pytest.fixture
def people(here: Path) -> Path:
    """Decisions of three people between two things of three, which have labels."""
    rng = np.random.default_rng(4)
    lines = [
        f"{t},{thing},{int(i == t % 2)},{who},{rng.normal():.4f},{rng.normal():.4f}"
        for t, who in enumerate(np.repeat(["ann", "bob", "cid"], 12))
        for i, thing in enumerate(rng.permutation([1, 2, 3])[:2])
    ]
    return write(
        here / "people.csv", "decision,action,chosen,group,price,size\n" + "\n".join(lines) + "\n"
    )


PRIOR = ("--prior-sd", 2)


def test_groups_that_are_pooled_are_the_default(people: Path) -> None:
    works("fit", people, "--out", "p.nc", *PRIOR, *SMALL)
    works("fit", people, "--groups", "pooled", "--noise", "normal", "--out", "q.nc", *PRIOR, *SMALL)
    assert same_draws("p.nc", "q.nc")
    assert isinstance(load("p.nc"), revealed.ChoicePosterior)


def test_hierarchical_groups_have_the_draws_of_the_library(people: Path) -> None:
    words = ("fit", people, "--groups", "hierarchical", "--out", "p.nc", "--seed", 3, *SMALL)
    facts = answers(*words)
    post = load("p.nc")
    assert isinstance(post, revealed.HierarchicalPosterior)
    assert post.groups == ("ann", "bob", "cid")
    assert post.prior == revealed.Normal(10.0)
    assert facts["sampler"] == "hierarchical-hmc"
    named = [each["name"] for each in facts["coefficients"]]
    assert named == ["mean price", "mean size", "sd price", "sd size"]
    assert facts["converged"] is post.converged is False
    assert facts["message"] == post.message
    whole = fit_quietly(
        revealed.read_file(people),
        revealed.ChoiceModel(groups=revealed.Hierarchical()),
        draws=60,
        warmup=20,
        chains=2,
        seed=3,
    )
    assert np.array_equal(post.draws["value"], whole.draws["value"])
    works("fit", people, "--groups", "hierarchical", "--sum-to-zero", "--out", "z.nc", *SMALL)
    assert load("z.nc").prior == revealed.Normal(10.0, sum_to_zero=True)


class Converged(Summary):
    """A summary that finds no fault."""

    @property
    def converged(self) -> bool:
        return True


def test_converged_population_with_groups_that_have_not_is_said_not_to_have_converged(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = revealed.HierarchicalPosterior.summary

    def of_population(post: revealed.HierarchicalPosterior) -> Summary:
        found = summary(post)
        return Converged(**{field.name: getattr(found, field.name) for field in fields(found)})

    monkeypatch.setattr(revealed.HierarchicalPosterior, "summary", of_population)
    result = works("fit", people, "--groups", "hierarchical", "--out", "p.nc", *SMALL)
    assert result.stderr == f"revealed: {load('p.nc').summary_of_groups().message}\n"
    assert "Converged" not in result.stdout


def test_separate_groups_are_saved_whole_and_leave_no_folder(people: Path) -> None:
    facts = answers("fit", people, "--groups", "separate", "--out", "p.nc", *PRIOR, *SMALL)
    post = load("p.nc")
    assert isinstance(post, revealed.SeparatePosterior)
    assert list(post) == ["ann", "bob", "cid"]
    assert [each["name"] for each in facts["coefficients"]][:3] == [
        "ann price",
        "ann size",
        "bob price",
    ]
    assert (facts["converged"], facts["message"]) == (False, post.message)
    assert "of 3 groups have not converged" in facts["message"]
    assert not Path("p.nc.checkpoint").exists()


def test_separate_groups_that_are_interrupted_resume_to_the_same_draws(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("fit", people, "--groups", "separate", *PRIOR, "--threads", 1, *SMALL)
    works(*words, "--out", "whole.nc")
    fit_task, reached = api.fit_task, []

    def interrupted(task: Any) -> Any:
        if task.label == "cid":
            raise KeyboardInterrupt
        reached.append(task.label)
        return fit_task(task)

    monkeypatch.setattr(sys, "argv", ["revealed", *map(str, words), "--out", "p.nc"])
    with monkeypatch.context() as patch:
        patch.setattr(api, "fit_task", interrupted)
        result = run(*words, "--out", "p.nc")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr.startswith(
        "revealed: interrupted after 2 of 3 groups; nothing is lost, go on with: revealed fit "
    )
    assert result.stderr.endswith("--out p.nc --resume\n")
    assert not Path("p.nc").exists()
    assert sorted(file.name for file in Path("p.nc.checkpoint").glob("*.nc")) == ["0.nc", "1.nc"]

    # finished posteriors are not thrown away because --resume was forgotten
    assert "--groups separate --resume continues them" in refuses(*words, "--out", "p.nc")
    assert "--groups separate --resume continues them" in refuses(
        "fit", people, *PRIOR, "--out", "p.nc", "--resume", *SMALL
    )
    assert "belongs to other decisions, prior or settings" in refuses(
        *words, "--out", "p.nc", "--resume", "--seed", 8
    )

    again: list[Any] = []

    def counted(task: Any) -> Any:
        again.append(task.label)
        return fit_task(task)

    monkeypatch.setattr(api, "fit_task", counted)
    works(*words, "--out", "p.nc", "--resume")
    assert (reached, again) == (["ann", "bob"], ["cid"])
    assert same_draws("p.nc", "whole.nc")
    assert not Path("p.nc.checkpoint").exists()


def test_separate_groups_interrupted_before_the_first_is_finished_say_how_to_go_on(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(task: Any) -> Any:
        raise KeyboardInterrupt

    words = ("fit", people, "--groups", "separate", *PRIOR, "--out", "p.nc", *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(api, "fit_task", interrupted)
        result = run(*words)
    assert result.exit_code == 130
    assert "interrupted before the first group was finished" in result.stderr
    works(*words, "--resume")
    assert len(load("p.nc")) == 3


def test_checkpoint_folder_with_other_files_in_it_is_not_removed(people: Path) -> None:
    words = ("fit", people, "--groups", "separate", *PRIOR, "--out", "p.nc", *SMALL)
    fit_quietly(
        revealed.read_file(people),
        revealed.ChoiceModel(prior=revealed.Normal(2.0), groups=revealed.Separate()),
        draws=60,
        warmup=20,
        chains=2,
        checkpoint="p.nc.checkpoint",
    )
    write(Path("p.nc.checkpoint") / "notes.txt", "mine")
    works(*words, "--resume")
    assert [file.name for file in Path("p.nc.checkpoint").iterdir()] == ["notes.txt"]


def test_correlated_noise_and_its_base(people: Path) -> None:
    words = ("fit", people, "--noise", "correlated", *PRIOR, *SMALL)
    facts = answers(*words, "--base", 2, "--out", "p.nc")
    post = load("p.nc")
    # what is typed is text, and the table's labels are numbers
    assert post.model.noise.base == 2
    assert post.resolved_noise.non_base == (1, 3)
    assert facts["sampler"] == "ghk-hmc"
    named = [each["name"] for each in facts["coefficients"]]
    assert named == ["price", "size", "var(1)", "cov(3, 1)", "var(3)"]
    works(*words, "--out", "q.nc")
    assert load("q.nc").resolved_noise.non_base == (2, 3)
    refused = refuses(*words, "--base", 7, "--out", "r.nc")
    assert "the base action '7' is never offered; the actions are 1, 2, 3" in refused
    works(*words, "--sampler", "da", "--out", "s.nc")
    assert load("s.nc").sampler == "da"


def test_correlated_noise_of_a_population(people: Path) -> None:
    words = ("--noise", "correlated", "--groups", "hierarchical", "--base", 2, "--out", "p.nc")
    facts = answers("fit", people, *words, *SMALL)
    assert facts["sampler"] == "hierarchical-gibbs"
    named = [each["name"] for each in facts["coefficients"]]
    assert named[:2] + named[-3:] == [
        "mean price", "mean size", "var(1)", "cov(3, 1)", "var(3)",
    ]  # fmt: skip
    post = load("p.nc")
    assert isinstance(post, HierarchicalPosterior)
    works("predict", "p.nc", people, "--out", "q.csv")


def test_lapses_are_uniform_or_by_habit(people: Path) -> None:
    words = ("fit", people, "--noise", "logit", *PRIOR, *SMALL, "--out", "p.nc")
    works(*words, "--lapse")
    assert load("p.nc").model.noise.lapse == revealed.Lapse()
    facts = answers(*words, "--lapse", "habit")
    assert load("p.nc").model.noise.lapse == revealed.Lapse(to="habit")
    named = [each["name"] for each in facts["coefficients"]]
    assert named[-4:] == ["(lapse)", "(habit 1)", "(habit 2)", "(habit 3)"]


def test_student_noise_has_its_df_or_infers_it(people: Path) -> None:
    words = ("fit", people, "--noise", "student", *PRIOR, *SMALL, "--out", "p.nc")
    works(*words, "--df", "4")
    assert load("p.nc").model.noise == revealed.StudentNoise(4.0)
    named = [each["name"] for each in answers(*words)["coefficients"]]
    assert load("p.nc").model.noise == revealed.StudentNoise(revealed.Gamma())
    assert named[-1] == "(df)"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--lapse=home", 'a lapse goes to "uniform" or "habit", not \'home\''),
        ("--noise correlated --lapse", "--lapse goes with --noise normal, logit or student"),
        ("--df 4", "--df goes with --noise student; give both, or neither"),
        ("--groups all", "--groups must be pooled, separate or hierarchical; it is 'all'"),
        ("--noise grey", "--noise must be normal, logit, student or correlated; it is 'grey'"),
        ("--base 2", "--base goes with --noise correlated; give both, or neither"),
        ("--base 2 --noise normal", "--base goes with --noise correlated"),
        ("--groups hierarchical --flat", "no sampler takes a flat prior and hierarchical groups"),
        ("--noise correlated --groups hierarchical --flat", "no sampler takes a flat prior"),
        ("--groups hierarchical --sampler da", 'the sampler "da" is for choices'),
        ("--noise correlated --sampler ibis", 'the sampler "ibis" is for'),
        ("--groups separate --sampler hierarchical", 'the sampler "hierarchical" is for'),
        ("--noise correlated --a 1", "has no use for options"),
    ],
)
def test_contradictions_are_refused(people: Path, words: str, sentence: str) -> None:
    assert sentence in refuses("fit", people, *words.split(), "--out", "p.nc", *SMALL)
    assert not Path("p.nc").exists()


@pytest.mark.parametrize("groups", ["separate", "hierarchical"])
def test_groups_without_anybody_who_decided_are_refused(here: Path, groups: str) -> None:
    refused = refuses("fit", "decisions.csv", "--groups", groups, "--out", "p.nc", *SMALL)
    assert f"--groups {groups} needs to know who decided" in refused
    assert "no column 'group'; name the right one with --group" in refused
    (here / "folder").mkdir()
    revealed.write_file(revealed.read_file("decisions.csv"), here / "folder" / "a.parquet")
    refused = refuses("fit", "folder", "--groups", groups, "--out", "p.nc", *SMALL)
    assert "a folder is not read group by group" in refused


def test_checkpoint_of_another_kind_of_run_is_refused(people: Path) -> None:
    write(people.with_name("p.nc.checkpoint"), "of a run without groups")
    refused = refuses("fit", people, "--groups", "separate", *PRIOR, "--out", "p.nc", *SMALL)
    assert "p.nc.checkpoint is from a run without separate groups" in refused
