"""The certificate has what proofs measured, and says what is missing or wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.samplers.model_kind import ModelKind, kind_of
from revealed.samplers.registry import REGISTRY, SamplerRegistry
from tests.conformance import (
    cases,
    test_calibration,
    test_geweke,
    test_oracles,
    test_same_draws,
)
from tests.support import certificate, evidence_log
from tests.support.statistical_asserts import (
    MEASURED,
    OutsideTolerance,
    assert_error,
    assert_law,
    assert_mean,
    assert_same,
    assert_uniform_ranks,
    must_fail,
)

ROOT = Path(__file__).parents[2]


def line(number: int, outcome: str = "passed", **said: Any) -> dict[str, Any]:
    """A proof of this file, as tests/conftest.py writes it."""
    MEASURED.clear()
    if outcome == "passed":
        assert_mean(np.random.default_rng(number).standard_normal(1000), 0.0)
        with must_fail("a mean that is wrong"):
            assert_mean(np.random.default_rng(number).standard_normal(1000), 1.0)
        assert_uniform_ranks(np.random.default_rng(number).integers(0, 16, (200, 2)), 15)
    of = {
        "test": f"tests/project/test_certificate.py::test_{number}",
        "stamp": evidence_log.stamp(Path(__file__)),
        "long": False,
    }
    return of | said | {"outcome": outcome, "seconds": 1.0, "measured": list(MEASURED)}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes the certificate of some lines: its exit code, and the page.

    One model is offered, with two samplers.
    """
    pairs = [["choices, flat prior", "da"], ["choices, flat prior", "composite"]]
    monkeypatch.setattr(
        evidence_log,
        "offered",
        lambda: (pairs, [["choices, flat prior", "ibis", "it has no draws"]]),
    )

    def make(*lines: dict[str, Any]) -> tuple[int, str]:
        file = tmp_path / "evidence.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in lines))
        code = certificate.main(str(file), str(tmp_path / "out"))
        return code, (tmp_path / "out" / "certificate.md").read_text(encoding="utf-8")

    return make


DA, COMPOSITE = (
    {"model": "choices, flat prior", "sampler": sampler} for sampler in ("da", "composite")
)


def test_complete_evidence_is_certified_and_the_page_is_made_of_what_is_stored(
    make: Any, tmp_path: Path
) -> None:
    code, text = make(line(1, **DA), line(2, **COMPOSITE))
    assert code == 0
    assert (
        "**CERTIFIED: 2 proofs passed, the quick ones; everything that is offered has one.**"
        in text
    )
    assert "| a mean that is wrong | choices, flat prior, da |" in text
    assert "it has no draws" in text
    stored = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate.page(stored) == text
    assert (tmp_path / "out" / "certificate.png").stat().st_size > 5000


def test_stored_page_is_made_of_the_stored_numbers() -> None:
    stored = json.loads(evidence_log.STORED_CERTIFICATE.read_text(encoding="utf-8"))
    assert certificate.page(stored) == evidence_log.STORED_CERTIFICATE.with_suffix(".md").read_text(
        encoding="utf-8"
    )
    assert evidence_log.unproven(stored) == []
    assert evidence_log.failed_proofs(stored) == []


def test_sampler_without_a_proof_is_named(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = make(line(1, **DA))
    assert code == 1
    assert "NOT CERTIFIED: 0 proofs failed, 1 of 2 things that are offered have no proof" in text
    assert "| choices, flat prior | `composite` **no proof** |" in text
    assert "no proof of choices, flat prior, composite" in capsys.readouterr().out


def test_caught_mutant_is_no_proof_of_the_right_sampler(make: Any) -> None:
    only = line(2, **COMPOSITE)
    only["measured"] = [each for each in only["measured"] if each["how"] == "mutant"]
    assert make(line(1, **DA), only)[0] == 1


def test_failed_proof_is_named(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = make(line(1, **DA), line(2, **COMPOSITE), line(3, "failed", **DA))
    assert code == 1
    assert "NOT CERTIFIED: 1 proofs failed" in text
    assert "failed: tests/project/test_certificate.py::test_3" in capsys.readouterr().out


def test_last_line_counts_and_evidence_of_other_sources_does_not(make: Any) -> None:
    assert make(line(1, "failed", **DA), line(1, **DA), line(2, **COMPOSITE))[0] == 0
    assert make(line(1, **DA), line(2, **COMPOSITE), line(2, "failed", **COMPOSITE))[0] == 1
    assert make(line(1, **DA), line(2, **COMPOSITE) | {"stamp": "of yesterday"})[0] == 1


def test_incomplete_line_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "evidence.jsonl"
    file.write_text(json.dumps(line(1, **DA)) + "\n" + json.dumps(line(2, **DA))[:-9])
    assert [test.partition("::")[2] for test, _ in evidence_log.passed(file)] == ["test_1"]


def test_missing_long_proofs_are_named(make: Any) -> None:
    late = line(3, "not run", **DA) | {"long": True}
    skipped = line(4, "skipped", **DA) | {
        "long": True,
        "why": "Skipped: something is not installed",
    }
    code, text = make(late, line(1, **DA), line(2, **COMPOSITE) | {"long": True}, skipped)
    assert code == 0
    assert "1 long ones among them; 2 long ones are still to come" in text
    assert "| `project/test_certificate.py::test_3` | 1 | not run |" in text
    assert "| `project/test_certificate.py::test_4` | 1 | something is not installed |" in text
    assert (
        "2 proofs passed, 1 long ones among them; everything"
        in make(late, line(3, **DA) | {"long": True}, line(2, **COMPOSITE))[1]
    )


def test_what_has_long_proofs_alone_waits_for_them(make: Any) -> None:
    late = line(3, "not run", **COMPOSITE) | {"long": True}
    code, text = make(line(1, **DA), late)
    assert code == 0
    assert "1 long ones are still to come; of 1 things that are offered all proofs are long" in text
    assert "| choices, flat prior | `composite` (long proofs, not run) |" in text
    # a quick one that has not run, or a long one that has failed, is no proof to wait for
    assert make(line(1, **DA), late | {"long": False})[0] == 1
    assert make(line(1, **DA), late | {"outcome": "failed"})[0] == 1


def test_new_sampler_or_function_needs_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    added = replace(REGISTRY.entries[0], name="px-new")
    new_kind = ModelKind("decisions", "flat", groups="hierarchical")
    for_others = replace(REGISTRY.entries[0], name="flat-new", kinds=(new_kind,))
    registry = SamplerRegistry((*REGISTRY.entries, added, for_others))
    monkeypatch.setattr(evidence_log, "REGISTRY", registry)
    monkeypatch.setattr("revealed.samplers.registry.REGISTRY", registry)
    monkeypatch.setattr(rv, "fit_more", lambda decisions, warmup=10: None, raising=False)
    monkeypatch.setattr(rv, "__all__", [*rv.__all__, "fit_more"])
    pairs, refused = evidence_log.offered()
    assert ["choices, normal prior", "px-new"] in pairs
    assert ["a flat prior and hierarchical groups", "flat-new"] in pairs
    assert ["the function fit_more", ""] in pairs
    # which takes populations under a flat prior alone
    assert {pair[1] for pair in refused if pair[1].endswith("-new")} == {"flat-new"}


def test_new_kind_of_model_fails_the_conformance_suite_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flat = ModelKind("decisions", "flat", groups="hierarchical")
    added = replace(REGISTRY.entries[0], name="flat-new", kinds=(flat,))
    monkeypatch.setattr(cases, "REGISTRY", SamplerRegistry((*REGISTRY.entries, added)))
    what = "there is no case for flat-new: a flat prior and hierarchical groups"
    with pytest.raises(AssertionError, match=f"oracle: {what}"):
        test_oracles.test_every_pair_has_an_exact_posterior()
    with pytest.raises(AssertionError, match=f"resume: {what}"):
        test_same_draws.test_every_pair_has_data()
    walkers = ModelKind("trajectories", "normal", groups="hierarchical")
    proper = replace(added, kinds=(walkers,))
    monkeypatch.setattr(cases, "REGISTRY", SamplerRegistry((proper,)))
    with pytest.raises(AssertionError, match="calibration: there is no case for flat-new"):
        test_calibration.test_every_pair_with_a_proper_prior_has_a_problem()
    with pytest.raises(AssertionError, match="NOT_POSSIBLE why not"):
        test_geweke.test_every_sampler_has_a_joint_chain_or_a_reason()


AUGMENTATION = ("da", "px-scale", "px-translate", "px-both")


def test_refused_pairs_are_those_that_the_registry_leaves_out() -> None:
    """A sampler that came to refuse what it took would otherwise need no proof any more."""
    kinds = {
        "choices, normal prior": ModelKind("decisions", "normal"),
        "choices, flat prior": ModelKind("decisions", "flat"),
        "choices, inferred prior scale": ModelKind("decisions", "inferred sd"),
        "choices, logit noise": ModelKind("decisions", "flat", "logit"),
        "choices, normal noise with lapses": ModelKind("decisions", "inferred sd", lapses="lapses"),
        "choices, noise covariance": ModelKind("decisions", "inferred sd", "correlated"),
    }
    left_out = [
        (model, entry.name)
        for model, kind in kinds.items()
        for entry in REGISTRY.entries
        if any(kind._replace(prior=other.prior) == other for other in entry.kinds)
        and kind not in entry.kinds
    ]
    assert left_out == [
        ("choices, flat prior", "ibis"),
        ("choices, logit noise", "ibis"),
        *(("choices, normal noise with lapses", name) for name in AUGMENTATION),
        ("choices, noise covariance", "da"),
    ]
    assert [(model, sampler) for model, sampler, _ in evidence_log.offered()[1]] == left_out


def test_every_kind_of_model_in_the_registry_is_tried_and_has_a_name() -> None:
    kinds = {kind for entry in REGISTRY.entries for kind in evidence_log.own_kinds(entry)}
    assert {kind_of(model) for _, model in evidence_log.examples()} == kinds
    assert {evidence_log.model_name(kind) for kind in kinds} <= set(evidence_log.MODELS)


def test_every_fitting_function_has_a_model() -> None:
    assert sorted(set(evidence_log.MODELS.values())) == sorted(evidence_log.fitting_functions())


def test_checks_object_and_record_what_they_measured() -> None:
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
        with pytest.raises(OutsideTolerance):
            check()
    assert [each["how"] for each in MEASURED] == list(wrong)


def test_mutant_is_listed_with_its_clearest_objection(make: Any) -> None:
    lines = [line(1, **DA), line(2, **COMPOSITE), line(3, "failed", **DA)]
    with must_fail("two mistakes"):
        for error in (1e-3, 2e-2, 0.0):
            assert_error(error, 1e-4)
    text = make(*lines[:2], lines[2] | {"outcome": "passed", "measured": list(MEASURED)})[1]
    assert "| two mistakes | choices, flat prior, da | error 0.02 (1e-04) |" in text


def test_mutant_that_is_not_caught_is_a_failure() -> None:
    with (
        pytest.raises(
            pytest.fail.Exception, match="the mutant 'nothing wrong' passes for a right sampler"
        ),
        must_fail("nothing wrong"),
    ):
        assert_error(0.0, 1.0)


PROOFS = """
import pytest
from tests.support.statistical_asserts import assert_error, must_fail

@pytest.mark.proves(model="choices, {which} prior", sampler="da")
@pytest.mark.parametrize("which", ["flat", "normal"])
def test_right(which):
    assert_error(1e-9, 1e-8)
    with must_fail("a mistake", model="another"):
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


def test_evidence_is_kept_also_by_workers_and_passed_proofs_are_not_run_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_proofs.py").write_text(PROOFS)
    evidence = tmp_path / "evidence.jsonl"
    words = [
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        "--evidence",
        str(evidence),
    ]

    def run(*more: str) -> tuple[str, list[dict[str, Any]]]:
        command = [sys.executable, "-m", "pytest", "-q", *words, *more, str(tmp_path)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        said = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False
        ).stdout
        return said, [json.loads(each) for each in evidence.read_text().splitlines()]

    assert [each["outcome"] for each in run("--collect-only")[1]] == 5 * ["not run"]
    said, lines = run("-n", "1")
    assert "2 failed, 3 passed" in said
    assert "says that it proves something, but it has measured nothing" in said
    last = {each["test"].partition("::")[2]: each for each in lines[5:]}
    assert {name: each["outcome"] for name, each in last.items()} == {
        "test_right[flat]": "passed",
        "test_right[normal]": "passed",
        "test_wrong": "failed",
        "test_empty": "failed",
    }
    assert last["test_right[normal]"]["model"] == "choices, normal prior"
    right, mistake = last["test_right[flat]"]["measured"]
    assert right == {"how": "error", "error": 1e-9, "limit": 1e-8, "count": 1}
    assert (mistake["mutant"], mistake["model"], mistake["by"][0]["error"]) == (
        "a mistake",
        "another",
        1.0,
    )
    said, lines = run("--unproven", "-m", "")
    assert "2 failed, 2 passed, 2 deselected" in said
    assert last.keys() | {"test_long"} == {each["test"].partition("::")[2] for each in lines}
