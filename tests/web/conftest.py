"""What the tests of the studio share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stagehands import TOKEN, Inside, Opened, Postgres, Studio, postgres_binaries, studio


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


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens studios in this process, with settings of one's own; all are closed at the end."""
    running: list[Inside] = []

    def make(**settings: Any) -> Inside:
        given = {"database": str(tmp_path / "studio.db"), "token": TOKEN, "rate": 1e6, "games": 1e6, **settings}
        running.append(Inside(given))
        return running[-1]

    yield make
    for each in running:
        each.close()


@pytest.fixture
def client(opened: Opened) -> Inside:
    """A studio in this process, on SQLite."""
    return opened()


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio in a process of its own, for all tests of the page."""
    import httpx

    from theatre import begin, play

    with studio(str(tmp_path_factory.mktemp("house") / "studio.db"), "--rate", "1000", "--games", "1000") as running:
        with httpx.Client(base_url=running.address, timeout=60) as client:  # what is compiled is compiled now
            state = play(client, begin(client, learn=True), 12)
            for _ in range(120):
                if client.get(f"/api/games/{state['game']}/learning?turn={state['turn']}").status_code != 503:
                    break
        yield running


@pytest.fixture(scope="module")  # no longer: its event loop would be in the way of other tests
def browser() -> Iterator[Any]:
    """One browser for all tests of a module."""
    from theatre import chromium

    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Any, house: Studio) -> Iterator[Any]:
    """Lets visitors in; at the end nobody may have heard a complaint from the page."""
    from theatre import Visitor

    visitors: list[Visitor] = []

    def enter(**how: Any) -> Visitor:
        visitors.append(Visitor(browser, house.address, **how))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.leave()


@pytest.fixture
def ask(house: Studio) -> Iterator[Any]:
    """The server, asked without a page."""
    import httpx

    with httpx.Client(base_url=house.address, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """One for all who leave nothing behind that others could stumble over."""
    folder = tmp_path_factory.mktemp("shared")
    running = Inside({"database": str(folder / "studio.db"), "token": TOKEN, "rate": 1e6, "games": 1e6})
    yield running
    running.close()
