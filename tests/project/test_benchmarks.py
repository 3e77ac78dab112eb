"""Benchmarks: one entry point, records that say how they were made, and a generated page."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import revealed as rv

ROOT = Path(__file__).parents[2]
with pytest.MonkeyPatch.context() as _patch:
    _patch.syspath_prepend(str(ROOT))
    from benchmarks import __main__ as entry_point
    from benchmarks import _page, _record
    from benchmarks._record import NAMES, Benchmark, Option, Result

OLD = '{"versions": {"numpy": "1", "pytest": "1"}}'


def measured(rounds: int, place: str) -> Result:
    return {"rounds": rounds}


def interrupted(rounds: int, place: str) -> Result:
    raise KeyboardInterrupt


def broken(rounds: int, place: str) -> Result:
    raise RuntimeError("half-way")


def refused(rounds: int, place: str) -> Result:
    raise ValueError("the data are not there")


FAKE = Benchmark(
    "benchmarks.costs",
    "What is measured.",
    title="A fake",
    takes="no time",
    options={"rounds": Option(3, "rounds", quick=1), "place": Option("", "where", recorded=False)},
    measure=measured,
    tables=lambda result: f"{result['rounds']} rounds",
    finding=lambda result: "nothing",
    packages=("pytest", "nobody"),
    missed=lambda result: "",
)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for benchmarks/results, with an old result."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "costs.json").write_text(OLD)
    monkeypatch.setattr(entry_point, "RESULTS", folder)
    monkeypatch.setattr(_record, "use_one_core", lambda: None)
    monkeypatch.setattr(_page, "write", lambda: "the page")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return folder


def run(monkeypatch: pytest.MonkeyPatch, *words: str, **changed: Any) -> int:
    monkeypatch.setattr(_record, "load", lambda name: dataclasses.replace(FAKE, **changed))
    return entry_point.main(["costs", *words])


def kept(results: Path) -> bool:
    return [(file.name, file.read_text()) for file in results.iterdir()] == [("costs.json", OLD)]


def test_every_file_holds_one_benchmark() -> None:
    assert sorted(NAMES) == sorted(file.stem for file in (ROOT / "benchmarks").glob("[!_]*.py"))
    for benchmark in map(_record.load, NAMES):
        assert benchmark.about
        assert benchmark.takes
        assert list(inspect.signature(benchmark.measure).parameters) == list(benchmark.options)
        assert benchmark.settings(quick=True) != benchmark.settings(quick=False)
    assert len({_record.load(name).title for name in NAMES}) == len(NAMES)


def test_a_record_says_with_what_and_on_what_it_was_measured() -> None:
    made = _record.record(FAKE, {"rounds": 2, "place": "postgresql://somebody:secret@somewhere"})
    there = {
        name: importlib.metadata.version(name) for name in ("numpy", "numba", "scipy", "pytest")
    }
    assert made["versions"] == {"python": platform.python_version(), **there}
    assert made["revealed"]["version"] == importlib.metadata.version("revealed")
    assert len(made["revealed"]["source"]) == 12
    assert set(made["machine"]) == {"architecture", "model", "cores", "memory_gb"}
    assert (made["arguments"], made["result"]) == ({"rounds": 2}, {"rounds": 2})
    assert {"date", "seconds", "load"} < set(made)
    assert "secret" not in json.dumps(made)


def test_versions_of_peers_that_are_no_python_packages_are_recorded() -> None:
    peer = dataclasses.replace(
        FAKE, measure=lambda rounds, place: {"versions": {"MNP": "3.1"}, "rounds": 1}
    )
    made = _record.record(peer, peer.settings(quick=True))
    assert made["versions"]["MNP"] == "3.1"
    assert made["result"] == {"rounds": 1}


def test_a_full_run_takes_the_place_of_the_stored_result(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch) == 0
    made = json.loads((results / "costs.json").read_text())
    assert made["result"] == {"rounds": 3}
    assert [file.name for file in results.iterdir()] == ["costs.json"]


@pytest.mark.parametrize(("measure", "code"), [(interrupted, 130), (refused, 2)])
def test_an_interrupted_or_refused_run_keeps_the_old_result(
    measure: Callable[..., Result],
    code: int,
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, measure=measure) == code
    assert kept(results)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_run_that_fails_keeps_the_old_result(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="half-way"):
        run(monkeypatch, measure=broken)
    assert kept(results)


@pytest.mark.parametrize("words", [["--quick"], ["--rounds", "5"]])
def test_quick_runs_and_those_with_own_options_do_not_touch_the_stored_result(
    words: list[str], results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, *words) == 0
    assert kept(results)
    assert run(monkeypatch, *words, "--out", str(results)) == 0  # unless told
    assert not kept(results)


def test_a_run_without_a_peer_of_the_stored_result_keeps_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, packages=()) == 0
    assert kept(results)
    assert "pytest took no part" in capsys.readouterr().err


def test_a_missed_claim_is_stored_and_reported(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, missed=lambda result: "too slow") == 1
    assert not kept(results)
    assert (
        run(monkeypatch, "--quick", missed=lambda result: "too slow") == 0
    )  # which claims nothing


@pytest.mark.parametrize(
    "words", [["costs", "nonsense"], ["costs", "tetris", "--rounds", "3"], ["--page", "costs"]]
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry_point.main(words) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_page_is_what_the_records_make_of_it(tmp_path: Path) -> None:
    page = _page.write(tmp_path)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / page.name).read_text(
        encoding="utf-8"
    ), "docs/benchmarks.md is made by scripts/bench --page, and is not edited"
    for benchmark in map(_record.load, NAMES):
        if benchmark.figure is not None:
            assert (tmp_path / benchmark.figure[0]).stat().st_size > 10_000


def test_a_section_says_when_where_and_with_what_it_was_measured() -> None:
    made = _record.record(FAKE, {"rounds": 3000, "place": ""})
    told = _page.section(
        FAKE,
        {**made, "date": "2026-11-05", "load": 0.25, "seconds": 200.0, "circumstances": "At noon."},
    )
    host = made["machine"]
    assert "- Measured on 5 November 2026, in 3 minutes, with rounds 3,000. At noon.\n" in told
    assert (
        f"revealed {made['revealed']['version']} (source {made['revealed']['source']}), Python 3"
        in told
    )
    assert f"numpy {made['versions']['numpy']}" in told
    assert f"- Machine: {host['model']}, {host['architecture']}, {host['cores']} cores, " in told
    assert "a load of 0.2 at the start" in told
    assert "`scripts/bench costs` (no time)" in told


def test_claims_without_a_record_are_listed_as_not_measured(tmp_path: Path) -> None:
    page = _page.render(tmp_path)
    assert (
        page.count(f"| {_page.UNMEASURED} |")
        == page.count(f"\n\n{_page.UNMEASURED.capitalize()}.\n")
        == len(NAMES)
    )


def test_a_quick_run_of_the_cheapest(tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in _record.RESULTS.iterdir()}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "tetris", "--quick", "--rounds=1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert "| all placements of a state, paper features |" in done.stdout
    (written,) = tmp_path.rglob("tetris.json")
    assert json.loads(written.read_text())["arguments"] == {"rounds": 1}
    assert {file: file.read_bytes() for file in _record.RESULTS.iterdir()} == before


def test_the_page_on_the_default_prior_says_what_was_measured() -> None:
    record = _record.stored("default_prior")
    assert record is not None
    page = (ROOT / "docs" / "default-prior.md").read_text(encoding="utf-8")
    shown = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in page.splitlines()
        if line.startswith("| ") and " of 38 |" in line
    ]
    standings = importlib.import_module("benchmarks.default_prior").standings(record["result"])
    assert sorted(shown) == sorted(
        [
            f"{s.loss:.3f}",
            f"{s.worst:.2f}",
            f"{s.calibration:.3f}",
            f"{s.covered:.0%}",
            f"{s.warned} of {s.fits}",
        ]
        for s in standings
    )
    # the default is what the rule of the benchmark chooses
    chosen = next(s.prior for s in standings if s.eligible)
    assert (chosen, rv.ChoiceModel().value_prior) == ("Normal(50)", rv.Normal(50.0))
