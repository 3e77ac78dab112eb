"""docs/combinations.md says what the registry of samplers says."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import revealed as rv
from revealed.samplers.registry import REGISTRY, SamplerRegistry
from tests.conformance import cases, record

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "combinations.md"


@pytest.fixture
def tables() -> Any:
    """The module scripts/combinations.py."""
    path = ROOT / "scripts" / "combinations.py"
    spec = importlib.util.spec_from_file_location("combinations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_has_the_tables_of_the_registry(tables: Any) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert tables.with_tables(page) == page, "run scripts/combinations.py"


def test_every_kind_of_the_registry_is_in_the_table(tables: Any) -> None:
    shown = {kind for row in tables.rows() for kind in row}
    assert {kind for entry in REGISTRY.entries for kind in entry.kinds} <= shown


def test_sampler_that_is_taken_away_changes_every_table(
    tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = tuple(entry for entry in REGISTRY.entries if "hierarchical" not in entry.name)
    before = {name: make() for name, make in tables.TABLES.items()}
    monkeypatch.setattr(tables, "REGISTRY", SamplerRegistry(fewer))
    monkeypatch.setattr(cases, "REGISTRY", SamplerRegistry(fewer))
    assert [name for name, make in tables.TABLES.items() if make() == before[name]] == []


@pytest.mark.slow  # of `scripts/certify --full`, which sees all pairs
def test_every_pair_is_on_record() -> None:
    """With these sources or others, which the page tells apart."""
    stored = json.loads(record.FILE.read_text(encoding="utf-8"))
    lacks = [str(pair) for pair in cases.pairs() if not record.is_seen(stored, pair)]
    assert lacks == [], "run scripts/certify --conformance"


def seen_once(check: str = "passed") -> dict[str, Any]:
    """A record in which one pair was seen, with this outcome of its oracle."""
    done = {"outcome": "passed", "tests": 1, "size": 40}
    seen = {record.key(cases.pairs()[0]): {"oracle": done | {"outcome": check}, "resume": done}}
    return {"made": "today", "fingerprint": record.fingerprint(), "seen": seen}


def test_record_of_other_sources_is_stale(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen_once()
    monkeypatch.setattr(tables, "stored_record", lambda: found)
    assert "✓" in tables.combinations()
    monkeypatch.setattr(record, "fingerprint", lambda: "of tomorrow")
    assert "✓" not in tables.combinations()
    assert "(stale)" in tables.combinations()
    assert "stale: " in tables.conformance()


def test_pair_that_failed_is_not_marked(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = cases.pairs()[0]
    monkeypatch.setattr(tables, "stored_record", lambda: seen_once("failed"))
    assert tables.mark(pair) == f"`{pair.entry.name}` (not seen)"
    assert "**failed**" in tables.conformance()


def test_page_without_a_place_for_a_table_is_refused(tables: Any) -> None:
    with pytest.raises(ValueError, match="no place for the table 'combinations'"):
        tables.with_tables("# What combines with what\n")


def test_what_is_said_to_be_missing_is_refused_with_the_part_to_change() -> None:
    d = rv.Decisions([[1.0], [0.0]] * 4, range(0, 9, 2), [0, 1, 0, 1], groups=["ann", "ben"] * 2)
    model = rv.ChoiceModel(prior=rv.Flat(), groups=rv.Hierarchical())
    with pytest.raises(
        ValueError, match=r"hierarchical groups together; give prior=rv.Normal\(sd\)"
    ):
        rv.fit(d, model)
