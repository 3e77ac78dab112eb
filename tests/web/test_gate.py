"""What every request passes, and what every answer carries."""

from __future__ import annotations

import json
import re
import socket
import time
from typing import Any

import pytest

from stagehands import Inside, Opened
from understudy.studio.limits import ADDRESSES, Limit
from understudy.studio.settings import new_token


@pytest.mark.parametrize(
    "path",
    ["/", "/api/health", "/static/index.html", "/plotly.js", "/nowhere", "/p/" + "a" * 22, "/replay/" + "a" * 22],
)
def test_every_answer_carries_the_policy(shared: Inside, path: str) -> None:
    answer = shared.get(path)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert all(
        policy[name] == "'none'" for name in ("default-src", "object-src", "base-uri", "frame-ancestors", "form-action")
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert ("no-store" in answer.headers["cache-control"]) == path.startswith("/api")


def test_the_pages_are_one_page(shared: Inside) -> None:
    pages = {shared.get(path).text for path in ("/", "/p/" + "a" * 22, "/replay/" + "b" * 22)}
    assert len(pages) == 1
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S", pages.pop()), (
        "a script in the page would not run under the policy"
    )
    assert shared.get("/p/short").status_code == 404


def test_nothing_is_read_outside_the_static_folder(shared: Inside) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/",
    ):
        with socket.create_connection(("127.0.0.1", shared.port), timeout=5) as line:  # a shared would tidy the path
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 404"), (path, answer[:200])


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("127.0.0.1:8000", True), ("localhost", True), ("[::1]:80", True), ("evil.example", False), ("127.0.0.1.evil.example", False),
     ("", False), ("[::", False)],
)  # fmt: skip
def test_on_the_loopback_only_its_own_names_are_answered(shared: Inside, host: str, allowed: bool) -> None:
    answer = shared.get("/api/health", headers={"Host": host})
    assert answer.status_code == (200 if allowed else 400)
    assert allowed or "not known under this name" in answer.json()["error"]


def test_a_studio_for_other_machines_may_have_any_name(opened: Opened) -> None:
    assert opened(hosts=None).get("/api/health", headers={"Host": "studio.example"}).status_code == 200
    assert opened(hosts=("studio.example",)).get("/api/health", headers={"Host": "other.example"}).status_code == 400


@pytest.mark.parametrize(("origin", "status"), [(None, 201), ("own", 201), ("http://evil.example", 403), ("null", 403)])
def test_other_sites_cannot_post(shared: Inside, origin: str | None, status: int) -> None:
    own = f"http://127.0.0.1:{shared.port}"
    headers = {} if origin is None else {"Origin": own if origin == "own" else origin}
    assert shared.post("/api/games", json={}, headers=headers).status_code == status


def test_too_many_requests_are_refused_for_a_while(opened: Opened) -> None:
    client = opened(rate=1.0)
    statuses = [client.get("/api/health").status_code for _ in range(40)]
    assert set(statuses) == {200, 429}
    refused = client.get("/api/health")
    assert refused.headers["retry-after"] == "1"
    assert "too many requests" in refused.json()["error"]
    time.sleep(1.1)
    assert client.get("/api/health").status_code == 200


def test_too_many_games_are_refused(opened: Opened) -> None:
    client = opened(games=3.0)
    answers = [client.post("/api/games", json={}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    assert "too many games" in answers[-1].json()["error"]


def test_a_bucket_fills_again_and_there_are_only_so_many() -> None:
    now = [0.0]
    limit = Limit(2.0, 4.0, lambda: now[0])
    assert [limit.allows("a") for _ in range(5)] == [True] * 4 + [False]
    assert limit.allows("b")
    now[0] = 0.5
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    for number in range(ADDRESSES + 10):
        limit.allows(str(number))
    assert len(limit._buckets) == ADDRESSES


def test_games_in_memory_are_bounded_and_come_back(opened: Opened) -> None:
    client = opened(live=3)
    states = [client.post("/api/games", json={}).json() for _ in range(8)]
    assert len(client.state.games._live) == 3
    for state in states:
        assert client.get(f"/api/games/{state['game']}").json() == state
    assert len(client.state.games._live) == 3


def test_a_slow_body_does_not_hold_others_up(shared: Inside) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=5) as line:
        line.sendall(b"POST /api/games HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{")
        began = time.monotonic()
        assert shared.get("/api/health").status_code == 200
        assert time.monotonic() - began < 10.0


def test_a_mistake_of_ours_is_a_sentence_and_no_traceback(client: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stumble(game: str) -> Any:
        raise RuntimeError("a secret of the studio's")

    monkeypatch.setattr(client.state.games, "state", stumble)
    monkeypatch.setattr("understudy.studio.gate.log.exception", lambda *_: None)
    answer = client.get("/api/games/" + "a" * 22)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "mistake in the studio" in answer.json()["error"]


def test_names_cannot_be_guessed() -> None:
    names = {new_token() for _ in range(1000)}
    assert len(names) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", name) for name in names)


def test_the_schema_is_there_for_those_who_program(shared: Inside) -> None:
    schema = json.loads(shared.get("/api/openapi.json").text)
    assert "/api/games/{game}/moves" in schema["paths"]
    assert shared.get("/docs").status_code == 404
