"""`revealed doctor`: what is installed, kept and within reach."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import socket
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from revealed.cli import app
from revealed.studio.storage.database import Storage

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
doctor: Any = importlib.import_module(
    "revealed.cli.doctor"
)  # the module; the package has the command by that name


def run_doctor(*words: str, code: int = 0) -> tuple[str, dict[str, Any]]:
    """What is said to a person, and what to a machine."""
    told, facts = (CliRunner().invoke(app, ["doctor", *words, *more]) for more in ([], ["--json"]))
    assert (told.exit_code, facts.exit_code, told.stderr, facts.stderr) == (code, code, "", "")
    return " ".join(told.stdout.split()), json.loads(facts.stdout)


def test_doctor_reports_what_is_installed() -> None:
    told, facts = run_doctor()
    assert told.endswith("All that is needed is there.")
    assert facts["ok"]
    assert {"numba", "pyarrow", "scikit-learn"} <= set(facts["required"])
    assert facts["extras"]["studio"]["missing"] == facts["extras"]["cluster"]["missing"] == []


def test_the_extras_are_those_of_the_package() -> None:
    listed = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = {
        extra: tuple(re.findall(r"^\w+", line)[0] for line in lines)
        for extra, lines in listed.items()
    }
    assert {name: extra.packages for name, extra in doctor.EXTRAS.items()} == {
        extra: parts for extra, parts in names.items() if extra != "dev"
    }


def test_what_an_extra_would_add_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert (
        'Extra cluster: not installed; pip install "revealed[cluster]" adds fits on a Dask'
        in run_doctor()[0]
    )
    monkeypatch.setattr(doctor, "_required_packages", lambda: ["numba", "no-such-package"])
    told, facts = run_doctor(code=2)
    assert "no-such-package MISSING" in told
    assert told.endswith("Something is wrong with: no-such-package")
    assert not facts["ok"]


def test_what_is_compiled_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    told, facts = run_doctor()
    assert "Compiled loops: none yet" in told
    folder = Path(facts["compiled"]["folder"])
    folder.mkdir(parents=True)
    (folder / "loop.nbc").write_bytes(bytes(3_000_000))
    told, facts = run_doctor()
    assert f"Compiled loops: 3 MB in {folder}".replace(" ", "") in told.replace(" ", "")
    assert facts["compiled"] == {"folder": str(folder), "bytes": 3_000_000, "writable": True}
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "every process compiles anew" in run_doctor()[0]


def test_the_studios_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(doctor, "DEFAULT_PORT", port)
        taken.listen()
        assert f"port {port} is not free" in run_doctor()[1]["reach"]["studio"]["found"]
    assert run_doctor()[1]["reach"]["studio"]["found"] == f"port {port} is free on this machine"


def test_a_database(tmp_path: Path) -> None:
    place = tmp_path / "games.db"
    assert "is not there yet, and can be made" in run_doctor("--database", str(place))[0]
    assert not place.exists()
    Storage(str(place)).close()
    assert "can be reached; games in it: 0" in run_doctor("--database", str(place))[0]
    place.write_text("not a database, but long enough that nobody could think otherwise\n" * 20)
    told, facts = run_doctor("--database", str(place), code=2)
    assert "cannot be opened" in facts["reach"]["database"]["found"]
    assert told.endswith("Something is wrong with: database")


def test_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, **here) as cluster:
        address = cluster.scheduler_address
        told = f"{address} can be reached; its workers: 1, with threads: 2"
        assert run_doctor("--cluster", address)[1]["reach"]["cluster"] == {
            "ok": True,
            "found": told,
        }
        at_home, known = os.getpid(), version("revealed")
        monkeypatch.setattr(
            doctor, "version", lambda name: "0.0.1" if os.getpid() == at_home else known
        )
        facts = run_doctor("--cluster", address, code=2)[1]
        assert (
            f"another version of revealed than 0.0.1, which is here: {known}"
            in facts["reach"]["cluster"]["found"]
        )
