"""Studies: made, played, watched, downloaded and ended; and what nobody but the researcher may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import understudy as us
from stagehands import TOKEN, Clock, Inside, pick
from understudy.paper.pressure import metric, size_and_direction
from understudy.worlds.tetris import FEATURES

ADMIN = {"Authorization": f"Bearer {TOKEN}"}
CONDITIONS = [{"name": "ten", "tau": 10, "pieces": 15}, {"name": "at leisure", "pieces": 8}]


def made(client: Inside, participants: int = 2, **more: Any) -> dict[str, Any]:
    wanted = {"name": "haste", "conditions": CONDITIONS, "participants": participants, "seed": 1, **more}
    answer = client.post("/api/studies", json=wanted, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    study: dict[str, Any] = answer.json()
    return study


def tokens(study: dict[str, Any]) -> list[str]:
    return [person["link"].removeprefix("/p/") for person in study["participants"]]


def play(client: Inside, token: str, rng: np.random.Generator, clock: Any = None, late: float = 0.0) -> list[str]:
    """Play the next game to its end; the pieces met."""
    state = client.post(f"/api/participants/{token}/next").json()
    pieces = []
    while not state["over"]:
        pieces.append(state["piece"])
        if clock is not None and state["tau"] is not None and rng.random() < late:
            clock.now += state["tau"] + 1.0
        state = client.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
    return pieces


@pytest.fixture
def whole(client: Inside) -> tuple[Inside, dict[str, Any]]:
    """A study that was played by both participants, with some deadlines missed."""
    study, rng, clock = made(client), np.random.default_rng(0), Clock()
    client.state.games.clock = clock
    met = [[play(client, token, rng, clock, 0.2) for _ in CONDITIONS] for token in tokens(study)]
    assert met[0] == met[1], "everybody meets the same pieces"
    assert met[0][0][:8] == met[0][1]
    return client, study


def test_a_study_from_beginning_to_end(whole: tuple[Inside, dict[str, Any]]) -> None:
    client, study = whole
    told = client.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    assert [person["done"] for person in told["participants"]] == [2, 2]
    assert [person["moves"] for person in told["participants"]] == [23, 23]
    first = told["participants"][0]["conditions"]
    assert [(part["name"], part["state"], part["moves"]) for part in first] == [
        ("ten", "done", 15),
        ("at leisure", "done", 8),
    ]
    assert sum(person["misses"] for person in told["participants"]) > 0
    assert first[1]["misses"] == 0
    listed = client.get("/api/studies", headers=ADMIN).json()
    assert [(each["study"], each["participants"]) for each in listed] == [(study["study"], 2)]
    again = client.post(f"/api/participants/{tokens(study)[0]}/next")
    assert again.status_code == 409
    assert "played all games" in again.json()["error"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_decisions_are_downloaded(whole: tuple[Inside, dict[str, Any]], tmp_path: Path, kind: str) -> None:
    client, study = whole
    answer = client.get(f"/api/studies/{study['study']}/decisions.{kind}", headers=ADMIN)
    assert answer.status_code == 200
    file = tmp_path / f"decisions.{kind}"
    file.write_bytes(answer.content)
    d = us.from_file(file, features=FEATURES, group="participant")
    told = client.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    assert len(d) == sum(person["moves"] - person["misses"] for person in told["participants"]), "a miss is no decision"
    assert d.groups is not None
    assert set(d.groups) == {1, 2}


def test_posteriors_by_condition(whole: tuple[Inside, dict[str, Any]], tmp_path: Path) -> None:
    client, study = whole
    answer = client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN).json()
    assert answer["names"] == list(FEATURES)
    told = client.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    for c, part in enumerate(answer["conditions"]):
        people = [person["conditions"][c] for person in told["participants"]]
        assert part["missed"] == sum(person["misses"] for person in people)
        assert part["made"] == sum(person["moves"] - person["misses"] for person in people)
        assert part["consistency"]["low"] < part["consistency"]["median"] < part["consistency"]["high"]
        assert len(part["densities"]) == len(part["direction"]["densities"]) == 3
    assert answer["conditions"][0]["chance"] is None
    assert 0.0 <= answer["conditions"][1]["chance"] <= 1.0
    # the size of the posterior mean, from the downloaded table, lies where consistency says
    file = tmp_path / "decisions.csv"
    file.write_bytes(client.get(f"/api/studies/{study['study']}/decisions.csv", headers=ADMIN).content)
    units = metric(us.from_file(file, features=FEATURES))
    size, _ = size_and_direction(np.array([answer["conditions"][0]["mean"]]), units)
    assert 0.3 * part["consistency"]["low"] < size[0] < 3.0 * answer["conditions"][0]["consistency"]["high"]
    assert client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN).json() == answer


def test_nothing_is_said_of_too_few_decisions(client: Inside) -> None:
    study = made(client)
    answer = client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN)
    assert answer.status_code == 409
    assert "nothing can be said yet" in answer.json()["error"]
    empty = client.get(f"/api/studies/{study['study']}/decisions.csv", headers=ADMIN)
    assert empty.status_code == 200
    assert empty.text.count("\n") == 1


def test_too_many_decisions_are_left_to_the_library(
    whole: tuple[Inside, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, study = whole
    monkeypatch.setattr("understudy.studio.outcomes.MOST", 20)
    answer = client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN)
    assert answer.status_code == 409
    assert "download them" in answer.json()["error"]


def test_more_participants_and_the_end(client: Inside) -> None:
    study = made(client, participants=1)
    more = client.post(f"/api/studies/{study['study']}/participants", json={"count": 2}, headers=ADMIN)
    assert more.status_code == 201
    assert [person["number"] for person in more.json()["participants"]] == [1, 2, 3]
    links = tokens(more.json())
    assert len(set(links)) == 3
    state = client.post(f"/api/participants/{links[0]}/next").json()
    assert state["participant"]
    assert client.post(f"/api/participants/{links[0]}/next").json()["game"] == state["game"]
    ended = client.post(f"/api/studies/{study['study']}/end", headers=ADMIN).json()
    assert ended["ended"]
    late = client.post(f"/api/games/{state['game']}/moves", json=pick(np.random.default_rng(0), state))
    assert late.status_code == 409
    assert "study has ended" in late.json()["error"]
    assert client.post(f"/api/participants/{links[1]}/next").status_code == 409
    assert client.get(f"/api/participants/{links[1]}").json()["ended"]
    again = client.post(f"/api/studies/{study['study']}/participants", json={"count": 1}, headers=ADMIN)
    assert again.status_code == 409
    client.state.games._live.clear()
    assert (
        client.post(f"/api/games/{state['game']}/moves", json=pick(np.random.default_rng(0), state)).status_code == 409
    )


def test_a_study_has_an_upper_bound(shared: Inside) -> None:
    study = made(shared, participants=500)
    for _ in range(3):
        shared.post(f"/api/studies/{study['study']}/participants", json={"count": 500}, headers=ADMIN)
    answer = shared.post(f"/api/studies/{study['study']}/participants", json={"count": 1}, headers=ADMIN)
    assert answer.status_code == 409
    assert "at most 2000 participants" in answer.json()["error"]


@pytest.mark.parametrize("key", [None, "Bearer wrong", "Bearer", TOKEN, f"Basic {TOKEN}", "Bearer é".encode("latin-1")])
def test_only_the_researcher_administers(shared: Inside, key: Any) -> None:
    study = made(shared)
    headers = {} if key is None else {"Authorization": key}
    one = f"/api/studies/{study['study']}"
    for method, path, body in (
        ("GET", "/api/studies", None), ("POST", "/api/studies", {"name": "a", "conditions": CONDITIONS, "participants": 1}),
        ("GET", one, None), ("POST", f"{one}/end", None), ("POST", f"{one}/participants", {"count": 1}),
        ("GET", f"{one}/decisions.csv", None), ("GET", f"{one}/decisions.parquet", None), ("GET", f"{one}/posteriors", None),
    ):  # fmt: skip
        answer = shared.request(method, path, json=body, headers=headers)
        assert answer.status_code == 401, (method, path)
        assert "token" in answer.json()["error"]
        assert study["name"] not in answer.text
    assert not shared.get(one, headers=ADMIN).json()["ended"]


def test_a_participant_sees_only_the_own_games(shared: Inside) -> None:
    study = made(shared)
    one, other = tokens(study)
    theirs = shared.post(f"/api/participants/{other}/next").json()["game"]
    mine = shared.post(f"/api/participants/{one}/next").json()["game"]
    seen = shared.get(f"/api/participants/{one}")
    assert [part["game"] for part in seen.json()["conditions"]] == [mine, None]
    assert theirs not in seen.text
    assert other not in seen.text
    assert study["study"] not in seen.text
    assert "seed" not in seen.text
    unknown = shared.get("/api/participants/" + "a" * 22)
    assert unknown.status_code == 404
    assert "link is not known" in unknown.json()["error"]
    for what in ("learning", "understudy"):
        answer = shared.get(f"/api/games/{mine}/{what}")
        assert answer.status_code == 403
        assert "not learnt while it is played" in answer.json()["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""}, {"name": " "}, {"name": "a\x00b"}, {"name": "\ud800"}, {"name": "a" * 101}, {"name": 5}, {"conditions": []},
        {"conditions": [{"name": "a"}] * 13}, {"conditions": [{"name": "a"}, {"name": "a"}]}, {"conditions": [{"tau": 1}]},
        {"conditions": [{"name": "a", "tau": 0}]}, {"conditions": [{"name": "a", "pieces": 0}]}, {"participants": 0},
        {"participants": 501}, {"seed": -1}, {"more": 1},
    ],
)  # fmt: skip
def test_a_study_that_cannot_be_made(shared: Inside, wrong: dict[str, Any]) -> None:
    wanted = {"name": "not to be", "conditions": CONDITIONS, "participants": 1, **wrong}
    headers = {**ADMIN, "Content-Type": "application/json"}
    answer = shared.post("/api/studies", content=json.dumps(wanted), headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]
    assert wanted["name"] not in [study["name"] for study in shared.get("/api/studies", headers=ADMIN).json()]
