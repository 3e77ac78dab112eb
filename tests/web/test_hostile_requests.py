"""Requests made from the studio's own OpenAPI schema: right, nearly right and wild.

Never is there a 5xx, nor a word of anybody else's. The attacker knows a game of its own and a
participant's link of its own. A study, its other participants and their games belong to others, and
must neither show up in an answer nor change.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from revealed.studio.learning import learner
from revealed.studio.server.app import create_app
from revealed.studio.server.settings import Settings
from tests.support.studio_server import (
    COMPILE_PATIENCE,
    PATIENCE,
    TOKEN,
    LocalStudio,
    choose_placement,
)

AT_ONCE = 25  # requests of an example
LEGAL = "a legal move"
WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


class Attacked:
    """A studio that is called without a network, and the `secrets` that no answer may contain."""

    def __init__(self, folder: Path) -> None:
        given = Settings(
            str(folder / "studio.db"), TOKEN, rate=1e9, games=1e9, particles=100, learners=4
        )
        self.middleware = create_app(given)
        self.loop = asyncio.new_event_loop()
        self.app = cast(Any, self.middleware.app)
        self._life = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self._life.__aenter__())
        self.schema = self.ask("GET", "/api/openapi.json")[1]
        admin = [(b"authorization", f"Bearer {TOKEN}".encode())]
        wanted = {
            "name": "xylophone",
            "conditions": [{"name": "zeppelin", "pieces": 9, "deadline_seconds": 60}],
            "participants": 4,
        }
        self.study = self.ask("POST", "/api/studies", wanted, admin)[1]
        links = [person["link"].removeprefix("/p/") for person in self.study["participants"]]
        games = [self.ask("POST", f"/api/participants/{link}/next")[1]["game"] for link in links]
        stranger = self.ask("POST", "/api/games", {"learn": True})[1]["game"]
        self.own = {
            "game": [games[0], self.ask("POST", "/api/games", {"learn": True})[1]["game"]],
            "token": [links[0]],
        }
        self.secrets = [TOKEN, self.study["study"], *links[1:], *games[1:], stranger]
        self.before = [
            self.ask("GET", f"/api/games/{game}/moves")[1] for game in (*games[1:], stranger)
        ]
        self.foreign = [*games[1:], stranger]
        self.admin = admin

    def ask(
        self, method: str, path: str, body: Any = None, headers: Any = (), query: bytes = b""
    ) -> tuple[int, Any]:
        """One request; the status, and the answer as JSON or bytes."""
        content = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": query,
            "root_path": "",
            "client": ("127.0.0.1", 1),
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), *headers],
            "server": ("127.0.0.1", 1),
        }
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        self.loop.run_until_complete(self.middleware(scope, receive, send))
        answer = b"".join(message.get("body", b"") for message in sent)
        try:
            return sent[0]["status"], json.loads(answer)
        except ValueError:
            return sent[0]["status"], answer

    def close(self) -> None:
        self.loop.run_until_complete(self._life.__aexit__(None, None, None))
        self.loop.close()


@pytest.fixture(scope="module")
def attacked(
    tmp_path_factory: pytest.TempPathFactory, compiled_learner: None
) -> Iterator[Attacked]:
    studio = Attacked(tmp_path_factory.mktemp("attacked"))
    assert studio.app.state.learner.ready.wait(COMPILE_PATIENCE)
    # Requests wait for the learner as long as it takes: a busy machine is no answer of 503.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(learner, "PACE", replace(learner.PACE, max_wait_seconds=PATIENCE))
        yield studio
    studio.close()


def fitting(schema: dict[str, Any], whole: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows, or nearly."""
    if "$ref" in schema:
        return fitting(whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        return st.one_of(*(fitting(each, whole) for each in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        low, high = (
            schema.get("minimum", -3),
            schema.get("maximum", schema.get("exclusiveMaximum", 2**70)),
        )
        near = [low - 1, low, low + 1, high - 1, high, high + 1, 0, -1, 2**31, 2**63, 2**64, 1e308]
        return st.sampled_from(near) | st.integers(int(low), min(int(high), 12))
    if kind == "string":
        return st.text(min_size=1, max_size=12) | st.sampled_from(
            ["", "a" * 101, "\x00", "\ud800", "x\ny", "' OR 1=1 --"]
        )
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if kind == "array":
        return st.lists(fitting(schema["items"], whole), max_size=schema.get("maxItems", 3) + 1)
    if kind == "object":
        parts = {name: fitting(each, whole) for name, each in schema.get("properties", {}).items()}
        needed = {name: parts.pop(name) for name in schema.get("required", [])}
        return st.fixed_dictionaries(needed, optional=parts)
    return WILD


def spoilt(body: Any, noise: Any, how: int) -> Any:
    """A body with something wrong in it."""
    if isinstance(body, dict) and body:
        key = sorted(body)[how % len(body)]
        if how % 3 == 0:
            return {k: v for k, v in body.items() if k != key}
        return {**body, key if how % 3 == 1 else f"{key}_": noise}
    return noise


def requests(studio: Attacked) -> st.SearchStrategy[tuple[Any, ...]]:
    """One request: method, path, body, headers and query."""
    whole, ways = studio.schema, []
    ids = st.sampled_from(["a" * 22, "..", "%2e%2e", "", "\x00" * 22, "é" * 22]) | st.text(
        "abcXYZ019_-", min_size=22, max_size=22
    )
    for path, methods in whole["paths"].items():
        for method, told in methods.items():
            body = (
                told.get("requestBody", {})
                .get("content", {})
                .get("application/json", {})
                .get("schema")
            )
            sound = st.none() if body is None else fitting(body, whole)
            bodies = (
                sound
                | st.builds(spoilt, sound, WILD, st.integers(0, 20))
                | WILD
                | st.binary(max_size=60)
            )
            named = [part["name"] for part in told.get("parameters", []) if part["in"] == "path"]
            values = {
                name: st.sampled_from(studio.own[name]) | ids if name in studio.own else ids
                for name in named
            }
            asked = [part["name"] for part in told.get("parameters", []) if part["in"] == "query"]
            query = st.dictionaries(
                st.sampled_from(asked or ["q"]),
                st.integers(-2, 9) | st.text(max_size=6),
                max_size=2,
            )
            verb = st.just(method.upper()) | st.sampled_from(
                ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"]
            )
            if path.endswith("/moves") and body is not None:
                bodies |= st.just(LEGAL)
            ways.append(
                st.tuples(verb, st.just(path), st.fixed_dictionaries(values), bodies, query)
            )
    keys = st.sampled_from([b"", b"Bearer ", b"Bearer \xff", b"Basic eA==", b"Bearer " + b"a" * 21])
    return st.tuples(st.one_of(ways), keys)


def attack(studio: Attacked, asked: tuple[Any, ...]) -> None:
    (method, path, values, body, query), key = asked
    for name, value in values.items():
        path = path.replace("{" + name + "}", value)
    if body == LEGAL:  # so that the attacker's games go on
        state = studio.ask("GET", path.removesuffix("/moves"))[1]
        body = choose_placement(np.random.default_rng(0), state) if state.get("placements") else {}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    words = "&".join(
        f"{name}={quote(str(value).encode('utf-8', 'replace'))}" for name, value in query.items()
    ).encode()
    status, answer = studio.ask(
        method, path, content, [(b"authorization", key)] if key else [], words
    )
    assert status < 500, (method, path, content, words, answer)
    text = answer.decode("latin-1") if isinstance(answer, bytes) else json.dumps(answer)
    assert not any(secret in text for secret in studio.secrets), (method, path, content)
    if path.startswith("/api/studies"):
        assert status in (400, 401, 404, 405, 422), (method, path, status)
    if status >= 400 and method != "HEAD":
        assert isinstance(answer, dict), (method, path, answer)
        assert isinstance(answer["error"], str), (method, path, answer)


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_hostile_requests_get_no_server_error_and_no_secret(attacked: Attacked, count: int) -> None:
    made = 0

    @settings(
        max_examples=count // AT_ONCE,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
    @given(st.lists(requests(attacked), min_size=AT_ONCE, max_size=AT_ONCE))
    def storm(asked: list[tuple[Any, ...]]) -> None:
        nonlocal made
        for each in asked:
            attack(attacked, each)
            made += 1

    storm()
    assert made >= 0.9 * count
    after = [attacked.ask("GET", f"/api/games/{game}/moves")[1] for game in attacked.foreign]
    assert after == attacked.before
    study = attacked.ask("GET", f"/api/studies/{attacked.study['study']}", headers=attacked.admin)[
        1
    ]
    assert not study["ended"]
    assert len(study["participants"]) == 4
    assert attacked.ask("GET", "/api/health") == (200, {"ok": True, "learning": True})


def test_leaks_and_server_errors_would_be_noticed(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A studio that tells of somebody else, or that stumbles, does not pass."""
    way: tuple[Any, ...] = (
        "GET",
        "/api/participants/{token}",
        {"token": attacked.own["token"][0]},
        None,
        {},
    )
    attack(attacked, (way, b""))
    monkeypatch.setattr(
        "revealed.studio.research.studies.participant_view",
        lambda *_: {"study": attacked.secrets[1]},
    )
    with pytest.raises(AssertionError):
        attack(attacked, (way, b""))
    monkeypatch.setattr("revealed.studio.research.studies.participant_view", lambda *_: 1 / 0)
    monkeypatch.setattr("revealed.studio.server.middleware.log.exception", lambda *_: None)
    with pytest.raises(AssertionError):
        attack(attacked, (way, b""))


RAW = [
    b"GARBAGE\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"POST /api/games HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/games HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\n",
    b"POST /api/games HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /static/../app.py HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /static/%2e%2e/app.py HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\nHost: [::\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
]


@pytest.mark.parametrize("words", RAW, ids=range(len(RAW)))
def test_broken_requests_leave_the_server_running(shared_studio: LocalStudio, words: bytes) -> None:
    with socket.create_connection(("127.0.0.1", shared_studio.port), timeout=PATIENCE) as line:
        line.sendall(words)
        line.shutdown(socket.SHUT_WR)
        try:
            answer = line.recv(4096)
        except ConnectionResetError:
            answer = b""
    assert not answer or answer.split(b" ")[1][:1] in (b"2", b"4"), answer
    assert b"create_app" not in answer
    assert shared_studio.get("/api/health").status_code == 200


def test_too_large_request_is_refused(shared_studio: LocalStudio) -> None:
    state = shared_studio.post("/api/games", json={}).json()
    for headers in ({}, {"transfer-encoding": "chunked"}):
        content: Any = b" " * 70_000 if not headers else (b" " * 7_000 for _ in range(10))
        answer = shared_studio.post(f"/api/games/{state['game']}/moves", content=content)
        assert answer.status_code == 413
        assert "larger than 64 kB" in answer.json()["error"]
    move = choose_placement(np.random.default_rng(0), state)
    assert shared_studio.post(f"/api/games/{state['game']}/moves", json=move).status_code == 200
