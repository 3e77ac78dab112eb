"""The certificate: what proofs measure arrives there, and what is missing, or wrong, is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certificate
import proofs
import understudy as us
from evidence import MEASURED, Off, assert_error, assert_law, assert_mean, assert_same, assert_uniform_ranks, caught
from understudy.engines.fit import ENGINES

ROOT = Path(__file__).parents[2]


def line(number: int, outcome: str = "passed", **said: Any) -> dict[str, Any]:
    """A proof of this file, as the plugin writes it."""
    MEASURED.clear()
    if outcome == "passed":
        assert_mean(np.random.default_rng(number).standard_normal(1000), 0.0)
        with caught("a mean that is wrong"):
            assert_mean(np.random.default_rng(number).standard_normal(1000), 1.0)
        assert_uniform_ranks(np.random.default_rng(number).integers(0, 16, (200, 2)), 15)
    of = {
        "test": f"tests/unit/test_certificate.py::test_{number}",
        "stamp": proofs.stamp(Path(__file__)),
        "long": False,
    }
    return of | said | {"outcome": outcome, "seconds": 1.0, "measured": list(MEASURED)}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the certificate of some lines where one model is offered with two engines: the exit code, and the page."""
    pairs = [["choices, flat prior", "da"], ["choices, flat prior", "blended"]]
    monkeypatch.setattr(proofs, "offered", lambda: (pairs, [["choices, flat prior", "ibis", "it has no draws"]]))

    def make(*lines: dict[str, Any]) -> tuple[int, str]:
        file = tmp_path / "evidence.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in lines))
        code = certificate.main(str(file), str(tmp_path / "out"))
        return code, (tmp_path / "out" / "certificate.md").read_text(encoding="utf-8")

    return make


DA, BLENDED = ({"model": "choices, flat prior", "engine": engine} for engine in ("da", "blended"))


def test_where_all_is_proven_it_says_so_and_the_page_is_made_of_what_is_stored(make: Any, tmp_path: Path) -> None:
    code, text = make(line(1, **DA), line(2, **BLENDED))
    assert code == 0
    assert "**CERTIFIED: 2 proofs passed, the quick ones; everything that is offered has one.**" in text
    assert "| a mean that is wrong | choices, flat prior, da |" in text
    assert "it has no draws" in text
    stored = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate.page(stored) == text
    assert (tmp_path / "out" / "certificate.png").stat().st_size > 5000


def test_the_page_that_is_kept_is_made_of_the_numbers_that_are_kept() -> None:
    stored = json.loads(proofs.KEPT.read_text(encoding="utf-8"))
    assert certificate.page(stored) == proofs.KEPT.with_suffix(".md").read_text(encoding="utf-8")
    assert proofs.unproven(stored) == []
    assert proofs.failed(stored) == []


def test_an_engine_without_a_proof_is_told(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = make(line(1, **DA))
    assert code == 1
    assert "NOT CERTIFIED: 0 proofs failed, 1 of 2 things that are offered have no proof" in text
    assert "| choices, flat prior | `blended` **no proof** |" in text
    assert "no proof of choices, flat prior, blended" in capsys.readouterr().out


def test_a_mutant_that_was_caught_is_no_proof_of_the_right_engine(make: Any) -> None:
    only = line(2, **BLENDED)
    only["measured"] = [each for each in only["measured"] if each["how"] == "mutant"]
    assert make(line(1, **DA), only)[0] == 1


def test_a_proof_that_failed_is_told(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = make(line(1, **DA), line(2, **BLENDED), line(3, "failed", **DA))
    assert code == 1
    assert "NOT CERTIFIED: 1 proofs failed" in text
    assert "failed: tests/unit/test_certificate.py::test_3" in capsys.readouterr().out


def test_the_last_word_counts_and_evidence_of_other_sources_does_not(make: Any) -> None:
    assert make(line(1, "failed", **DA), line(1, **DA), line(2, **BLENDED))[0] == 0
    assert make(line(1, **DA), line(2, **BLENDED), line(2, "failed", **BLENDED))[0] == 1
    assert make(line(1, **DA), line(2, **BLENDED) | {"stamp": "of yesterday"})[0] == 1


def test_a_line_that_was_cut_off_is_no_evidence_and_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "evidence.jsonl"
    file.write_text(json.dumps(line(1, **DA)) + "\n" + json.dumps(line(2, **DA))[:-9])
    assert [test.partition("::")[2] for test, _ in proofs.passed(file)] == ["test_1"]


def test_long_proofs_that_are_missing_are_named(make: Any) -> None:
    late = line(3, "not run", **DA) | {"long": True}
    skipped = line(4, "skipped", **DA) | {"long": True, "why": "Skipped: something is not installed"}
    code, text = make(late, line(1, **DA), line(2, **BLENDED) | {"long": True}, skipped)
    assert code == 0
    assert "1 long ones among them; 2 long ones are still to come" in text
    assert "| `unit/test_certificate.py::test_3` | 1 | not run |" in text
    assert "| `unit/test_certificate.py::test_4` | 1 | something is not installed |" in text
    assert (
        "2 proofs passed, 1 long ones among them; everything"
        in make(late, line(3, **DA) | {"long": True}, line(2, **BLENDED))[1]
    )


def test_a_new_engine_or_door_is_asked_for_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(us, "fit", lambda *_, **__: None)
    monkeypatch.setattr(proofs, "ENGINES", (*ENGINES, "px-new"))
    monkeypatch.setattr(us, "learn_more", lambda decisions, warmup=10: None, raising=False)
    monkeypatch.setattr(us, "__all__", [*us.__all__, "learn_more"])
    pairs, refused = proofs.offered()
    assert ["choices, Gaussian prior", "px-new"] in pairs
    assert ["the door learn_more", ""] in pairs
    assert refused == []


def test_what_is_refused_is_known() -> None:
    """An engine that came to refuse what it took would otherwise need no proof any more."""
    assert [(model, engine) for model, engine, _ in proofs.offered()[1]] == [("choices, flat prior", "ibis")]


def test_every_door_of_the_package_has_a_model() -> None:
    assert sorted(set(proofs.MODELS.values())) == sorted(proofs.doors())


def test_checks_object_and_write_down_what_they_saw() -> None:
    rng = np.random.default_rng(1)
    MEASURED.clear()
    wrong: dict[str, Callable[[], None]] = {
        "oracle": lambda: assert_mean(rng.standard_normal(1000), 1.0),
        "calibration": lambda: assert_uniform_ranks(
            np.column_stack([rng.integers(0, 16, 200), np.zeros(200, int)]), 15
        ),
        "law": lambda: assert_law(rng.random(1000) ** 2),
        "error": lambda: assert_error([1e-9, np.nan], 1e-8),
        "same": lambda: assert_same(np.zeros(3), np.array([0.0, 0.0, 1e-300])),
    }
    for check in wrong.values():
        with pytest.raises(Off):
            check()
    assert [each["how"] for each in MEASURED] == list(wrong)


def test_a_mutant_is_told_with_the_clearest_objection(make: Any) -> None:
    lines = [line(1, **DA), line(2, **BLENDED), line(3, "failed", **DA)]
    with caught("two mistakes"):
        for error in (1e-3, 2e-2, 0.0):
            assert_error(error, 1e-4)
    text = make(*lines[:2], lines[2] | {"outcome": "passed", "measured": list(MEASURED)})[1]
    assert "| two mistakes | choices, flat prior, da | error 0.02 (1e-04) |" in text


def test_a_mutant_that_passes_is_a_failure() -> None:
    with (
        pytest.raises(pytest.fail.Exception, match="the mutant 'nothing wrong' passes for a right sampler"),
        caught("nothing wrong"),
    ):
        assert_error(0.0, 1.0)


PROOFS = """
import pytest
from evidence import assert_error, caught

@pytest.mark.proves(model="choices, {which} prior", engine="da")
@pytest.mark.parametrize("which", ["flat", "other"])
def test_right(which):
    assert_error(1e-9, 1e-8)
    with caught("a mistake", model="another"):
        assert_error(1.0, 1e-8)

@pytest.mark.proves(part="something")
def test_wrong():
    assert_error(1.0, 1e-8)

@pytest.mark.proves(part="something")
def test_empty():
    pass

@pytest.mark.slow
@pytest.mark.proves(part="something")
def test_long():
    assert_error(1e-9, 1e-8)

def test_no_proof():
    assert_error(1e-9, 1e-8)
"""


def test_what_tests_measure_is_kept_also_by_workers_and_what_has_passed_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "test_proofs.py").write_text(PROOFS)
    evidence = tmp_path / "evidence.jsonl"
    words = [
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "--evidence",
        str(evidence),
    ]

    def run(*more: str) -> tuple[str, list[dict[str, Any]]]:
        command = [sys.executable, "-m", "pytest", "-q", *words, *more, str(tmp_path)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])}
        said = subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout
        return said, [json.loads(each) for each in evidence.read_text().splitlines()]

    assert [each["outcome"] for each in run("--collect-only")[1]] == 5 * ["not run"]
    said, lines = run("-n", "2")
    assert "2 failed, 3 passed" in said
    assert "says that it proves something, but it has measured nothing" in said
    last = {each["test"].partition("::")[2]: each for each in lines[5:]}
    assert {name: each["outcome"] for name, each in last.items()} == {
        "test_right[flat]": "passed", "test_right[other]": "passed", "test_wrong": "failed", "test_empty": "failed",
    }  # fmt: skip
    assert last["test_right[other]"]["model"] == "choices, other prior"
    right, mistake = last["test_right[flat]"]["measured"]
    assert right == {"how": "error", "error": 1e-9, "limit": 1e-8, "count": 1}
    assert (mistake["mutant"], mistake["model"], mistake["by"][0]["error"]) == ("a mistake", "another", 1.0)
    said, lines = run("--unproven", "-m", "")
    assert "2 failed, 2 passed, 2 deselected" in said
    assert last.keys() | {"test_long"} == {each["test"].partition("::")[2] for each in lines}
