"""Evidence: `--evidence=FILE` keeps what proofs measure, a line of JSON for each.

`tests/support/certificate.py` makes a page of it. A proof is a test with the mark `proves`, which
says of what: a `model` and a `sampler`, and if need be the `problem`; or else a `part` that
samplers rest on. Words in braces are parameters of the test, and a parameter `variant` is a sampler
with its options.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from revealed.io.atomic import to_jsonable
from tests.support.cases import label
from tests.support.evidence_log import MODELS, passed, stamp
from tests.support.statistical_asserts import MEASURED

# The same examples in every run: seeds are fixed.
hypothesis.settings.register_profile("fixed", derandomize=True)
hypothesis.settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evidence")
    group.addoption(
        "--evidence",
        type=Path,
        metavar="FILE",
        help="add what proofs measure to FILE, a line of JSON each",
    )
    group.addoption(
        "--unproven",
        action="store_true",
        help="leave out proofs that FILE says have passed with these sources",
    )


def proof_of(item: pytest.Item) -> dict[str, Any]:
    """The mark of a test in full; empty where it has none."""
    said: dict[str, Any] = {}
    for mark in item.iter_markers("proves"):  # the closest first
        said = {**mark.kwargs, **said}
    if not said:
        return {}
    given: dict[str, Any] = (
        dict(item.callspec.params)
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    said = {key: text.format(**given) for key, text in said.items()}
    if "variant" in given:
        said |= {"sampler": given["variant"][0], "variant": label(given["variant"])}
    if isinstance(given.get("problem"), str):
        said.setdefault("problem", given["problem"])
    if "part" in said:
        said = {"part": said["part"]}
    long = item.get_closest_marker("slow") is not None
    return {"test": item.nodeid, **said, "long": long, "stamp": stamp(item.path)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    file = config.getoption("--evidence")
    if file is None:
        return
    if config.getoption("collectonly"):
        for proof in filter(None, map(proof_of, items)):
            write(file, proof | {"outcome": "not run"})
    if config.getoption("--unproven"):
        done = passed(file)
        proven = [item for item in items if (item.nodeid, stamp(item.path)) in done]
        items[:] = [item for item in items if item not in proven]
        config.hook.pytest_deselected(items=proven)


def pytest_runtest_setup() -> None:
    MEASURED.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield
    model = proof_of(item).get("model")
    if model is not None and model not in MODELS:
        pytest.fail(f"there is no model {model!r}: see MODELS in tests/support/evidence_log.py")
    if item.get_closest_marker("proves") and not MEASURED:
        pytest.fail("this test says that it proves something, but it has measured nothing")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    if call.when == "call" or call.excinfo is not None:
        proof = proof_of(item)
        if proof:
            item.user_properties.append(("proof", to_jsonable(proof | {"measured": MEASURED})))
    return (yield)


class EvidenceRecorder:
    """Writes proofs down as they end, in the process that all workers report to."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        proof: Any = dict(report.user_properties).get("proof")
        if proof is None or (report.when == "teardown" and report.passed):
            return
        why = (
            {"why": report.longrepr[2]}
            if report.skipped and isinstance(report.longrepr, tuple)
            else {}
        )
        write(
            self.file,
            proof | why | {"outcome": report.outcome, "seconds": round(report.duration, 1)},
        )


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--evidence")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(EvidenceRecorder(file))


def write(file: Path, line: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as out:
        print(json.dumps(line), file=out)
