"""What the tests of commands share: a small world, and what was learnt from it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import SMALL, works


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with decisions.csv of a small world and posterior.nc learnt from it."""
    folder = tmp_path_factory.mktemp("made")
    works(
        "simulate",
        "--states",
        3,
        "--actions",
        2,
        "--decisions",
        40,
        "--seed",
        3,
        "--out",
        folder / "decisions.csv",
    )
    works(
        "fit", folder / "decisions.csv", "--sum-to-zero", "--out", folder / "posterior.nc", *SMALL
    )
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with copies of what was made; whatever fails in it must leave no file behind."""
    for name in ("decisions.csv", "posterior.nc"):
        shutil.copy(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".part", ".tmp")]
