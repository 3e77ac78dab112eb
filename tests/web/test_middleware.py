"""What every request passes, and what every answer carries."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import replace
from typing import Any

import pytest

from revealed.studio.server import middleware
from revealed.studio.server.rate_limit import RateLimit
from revealed.studio.server.settings import new_token
from tests.support.studio_server import PATIENCE, LocalStudio, ManualClock, OpenStudio


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/health",
        "/static/index.html",
        "/plotly.js",
        "/nowhere",
        "/p/" + "a" * 22,
        "/replay/" + "a" * 22,
    ],
)
def test_every_answer_has_the_security_headers(shared_studio: LocalStudio, path: str) -> None:
    answer = shared_studio.get(path)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert all(
        policy[name] == "'none'"
        for name in ("default-src", "object-src", "base-uri", "frame-ancestors", "form-action")
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert ("no-store" in answer.headers["cache-control"]) == path.startswith("/api")


def test_all_page_addresses_serve_one_page(shared_studio: LocalStudio) -> None:
    pages = {
        shared_studio.get(path).text for path in ("/", "/p/" + "a" * 22, "/replay/" + "b" * 22)
    }
    assert len(pages) == 1
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S", pages.pop()), (
        "a script in the page would not run under the policy"
    )
    assert shared_studio.get("/p/short").status_code == 404


def test_nothing_is_read_outside_the_static_folder(shared_studio: LocalStudio) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/",
    ):
        with socket.create_connection(
            ("127.0.0.1", shared_studio.port), timeout=PATIENCE
        ) as line:  # a client would tidy the path
            line.sendall(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
            )
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 404"), (path, answer[:200])


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("[::1]:80", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[::", False),
    ],
)
def test_loopback_answers_only_to_its_own_names(
    shared_studio: LocalStudio, host: str, allowed: bool
) -> None:
    answer = shared_studio.get("/api/health", headers={"Host": host})
    assert answer.status_code == (200 if allowed else 400)
    assert allowed or "not known under this name" in answer.json()["error"]


def test_studio_for_other_machines_answers_to_allowed_names(open_studio: OpenStudio) -> None:
    assert (
        open_studio(hosts=None).get("/api/health", headers={"Host": "studio.example"}).status_code
        == 200
    )
    assert (
        open_studio(hosts=("studio.example",))
        .get("/api/health", headers={"Host": "other.example"})
        .status_code
        == 400
    )


@pytest.mark.parametrize(
    ("origin", "status"), [(None, 201), ("own", 201), ("http://evil.example", 403), ("null", 403)]
)
def test_post_from_another_site_is_refused(
    shared_studio: LocalStudio, origin: str | None, status: int
) -> None:
    own = f"http://127.0.0.1:{shared_studio.port}"
    headers = {} if origin is None else {"Origin": own if origin == "own" else origin}
    assert shared_studio.post("/api/games", json={}, headers=headers).status_code == status


def test_too_many_requests_are_refused_for_a_while(open_studio: OpenStudio) -> None:
    client, clock = open_studio(), ManualClock()
    client.middleware._limit = RateLimit(1.0, 4.0, clock)
    statuses = [client.get("/api/health").status_code for _ in range(40)]
    assert statuses == [200] * 4 + [429] * 36
    refused = client.get("/api/health")
    assert refused.headers["retry-after"] == "1"
    assert "too many requests" in refused.json()["error"]
    clock.now += 1.1
    assert client.get("/api/health").status_code == 200


def test_too_many_games_are_refused(open_studio: OpenStudio) -> None:
    client = open_studio()
    client.state.new_game_limit = RateLimit(0.05, 3.0, ManualClock())
    answers = [client.post("/api/games", json={}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    assert "too many games" in answers[-1].json()["error"]


def test_token_buckets_refill_and_are_bounded() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 4.0, lambda: now[0], max_addresses=100)
    assert [limit.allows("a") for _ in range(5)] == [True] * 4 + [False]
    assert limit.allows("b")
    now[0] = 0.5
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    for number in range(110):
        limit.allows(str(number))
    assert len(limit._buckets) == 100


def test_games_in_memory_are_bounded_and_come_back(open_studio: OpenStudio) -> None:
    client = open_studio(live=3)
    states = [client.post("/api/games", json={}).json() for _ in range(8)]
    assert len(client.state.games._live) == 3
    for state in states:
        assert client.get(f"/api/games/{state['game']}").json() == state
    assert len(client.state.games._live) == 3


def test_slow_body_does_not_hold_others_up(
    shared_studio: LocalStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(middleware.BODY_LIMITS, max_seconds=PATIENCE)
    monkeypatch.setattr(middleware, "BODY_LIMITS", limits)
    with socket.create_connection(("127.0.0.1", shared_studio.port), timeout=PATIENCE) as line:
        line.sendall(b"POST /api/games HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{")
        assert shared_studio.get("/api/health").status_code == 200
        # The other one is still waiting for its body.
        line.setblocking(False)
        with pytest.raises(BlockingIOError):
            line.recv(1)


def test_internal_error_is_a_sentence_without_traceback(
    client: LocalStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stumble(game: str) -> Any:
        raise RuntimeError("a secret of the studio's")

    monkeypatch.setattr(client.state.games, "state_payload", stumble)
    monkeypatch.setattr("revealed.studio.server.middleware.log.exception", lambda *_: None)
    answer = client.get("/api/games/" + "a" * 22)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "mistake in the studio" in answer.json()["error"]


def test_new_tokens_differ_and_have_22_letters() -> None:
    names = {new_token() for _ in range(1000)}
    assert len(names) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", name) for name in names)


def test_openapi_schema_is_served(shared_studio: LocalStudio) -> None:
    schema = json.loads(shared_studio.get("/api/openapi.json").text)
    assert "/api/games/{game}/moves" in schema["paths"]
    assert shared_studio.get("/docs").status_code == 404
