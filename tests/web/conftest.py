"""What the tests of the studio share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.studio_server import (
    COMPILE_PATIENCE,
    PATIENCE,
    TOKEN,
    LocalStudio,
    OpenStudio,
    Postgres,
    StudioProcess,
    choose_placement,
    postgres_binaries,
    run_studio,
)

UNLIMITED = {"token": TOKEN, "rate": 1e6, "games": 1e6}


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for all tests of a worker."""
    if postgres_binaries() is None:
        pytest.skip("PostgreSQL's programs are not installed (on Debian, the package postgresql)")
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database: SQLite's, then PostgreSQL's."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studio.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture(scope="session")
def compiled_learner() -> None:
    """The compiled loops of the learner, before any studio needs them.

    Studios compile in a thread of low priority, which on a busy machine takes very long; what is
    compiled here is in memory for studios in this process, and on disk for those in their own.
    """
    from revealed.studio.learning.game_learner import precompile

    precompile()


@pytest.fixture
def open_studio(tmp_path: Path, compiled_learner: None) -> Iterator[OpenStudio]:
    """Opens studios in this process, with settings of the test's own; all are closed at the end."""
    running: list[LocalStudio] = []

    def make(**settings: Any) -> LocalStudio:
        given = {"database": str(tmp_path / "studio.db"), **UNLIMITED, **settings}
        running.append(LocalStudio(given))
        return running[-1]

    yield make
    for each in running:
        each.close()


@pytest.fixture
def client(open_studio: OpenStudio) -> LocalStudio:
    """A studio in this process, on SQLite."""
    return open_studio()


@pytest.fixture(scope="session")
def shared_studio(
    tmp_path_factory: pytest.TempPathFactory, compiled_learner: None
) -> Iterator[LocalStudio]:
    """One studio for all tests that leave nothing behind which could disturb others."""
    folder = tmp_path_factory.mktemp("shared")
    running = LocalStudio({"database": str(folder / "studio.db"), **UNLIMITED})
    yield running
    running.close()


@pytest.fixture(scope="session")
def studio_process(
    tmp_path_factory: pytest.TempPathFactory, compiled_learner: None
) -> Iterator[StudioProcess]:
    """A studio in a process of its own, for all tests of the page; what it compiles is compiled.

    No page is opened before: a test must not wait for the compiler.
    """
    folder = tmp_path_factory.mktemp("pages")
    with run_studio(str(folder / "studio.db"), "--rate", "1000", "--games", "1000") as running:
        running.wait_until_learning()
        yield running


@pytest.fixture(scope="session")
def compiled_results(studio_process: StudioProcess) -> None:
    """The results of a small study, computed once, so that the sampler behind them is compiled."""
    import httpx
    import numpy as np

    rng, headers = np.random.default_rng(0), {"Authorization": f"Bearer {TOKEN}"}
    wanted: dict[str, Any] = {
        "name": "to compile",
        "conditions": [{"name": "first", "pieces": 8}, {"name": "second", "pieces": 8}],
        "participants": 1,
    }
    with httpx.Client(base_url=studio_process.address, timeout=PATIENCE) as api:
        study = api.post("/api/studies", json=wanted, headers=headers).json()
        token = study["participants"][0]["link"].rpartition("/")[2]
        for _ in wanted["conditions"]:
            state = api.post(f"/api/participants/{token}/next").json()
            while not state["over"]:
                move = choose_placement(rng, state)
                state = api.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
        address = f"/api/studies/{study['study']}/posteriors"
        assert api.get(address, headers=headers, timeout=COMPILE_PATIENCE).status_code == 200


@pytest.fixture(scope="module")  # no longer: its event loop would be in the way of other tests
def browser() -> Iterator[Any]:
    """One browser for all tests of a module."""
    from tests.support.browser import chromium

    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Any, studio_process: StudioProcess) -> Iterator[Any]:
    """Makes visitors; at the end, no page may have had an error."""
    from tests.support.browser import Visitor

    visitors: list[Visitor] = []

    def enter(**how: Any) -> Visitor:
        visitors.append(Visitor(browser, studio_process.address, **how))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.leave()


@pytest.fixture
def api(studio_process: StudioProcess) -> Iterator[Any]:
    """The server of the pages, asked without a page."""
    import httpx

    with httpx.Client(base_url=studio_process.address, timeout=PATIENCE) as client:
        yield client
