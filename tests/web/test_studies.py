"""Studies: made, played, downloaded and ended; and what nobody but the researcher may do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

import revealed as rv
from revealed.environments.tetris import PAPER_FEATURES
from revealed.results.size_and_direction import offered_covariance, size_and_direction
from revealed.studio.research import results
from revealed.studio.storage import tables
from tests.support.studio_server import PATIENCE, TOKEN, LocalStudio, ManualClock, choose_placement

ADMIN = {"Authorization": f"Bearer {TOKEN}"}
CONDITIONS = [
    {"name": "ten", "deadline_seconds": 10, "pieces": 15},
    {"name": "at leisure", "pieces": 8},
]


def made(client: LocalStudio, participants: int = 2, **more: Any) -> dict[str, Any]:
    wanted = {
        "name": "haste",
        "conditions": CONDITIONS,
        "participants": participants,
        "seed": 1,
        **more,
    }
    answer = client.post("/api/studies", json=wanted, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    study: dict[str, Any] = answer.json()
    return study


def tokens(study: dict[str, Any]) -> list[str]:
    return [person["link"].removeprefix("/p/") for person in study["participants"]]


def play(
    client: LocalStudio, token: str, rng: np.random.Generator, clock: Any = None, late: float = 0.0
) -> list[str]:
    """Play the next game to its end; the pieces met."""
    state = client.post(f"/api/participants/{token}/next").json()
    pieces = []
    while not state["over"]:
        pieces.append(state["piece"])
        if clock is not None and state["deadline_seconds"] is not None and rng.random() < late:
            clock.now += state["deadline_seconds"] + 1.0
        state = client.post(
            f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)
        ).json()["state"]
    return pieces


@pytest.fixture
def whole(client: LocalStudio) -> tuple[LocalStudio, dict[str, Any]]:
    """A study that was played by both participants, with some deadlines missed."""
    study, rng, clock = made(client), np.random.default_rng(0), ManualClock()
    client.state.games.clock = clock
    met = [[play(client, token, rng, clock, 0.2) for _ in CONDITIONS] for token in tokens(study)]
    assert met[0] == met[1], "everybody meets the same pieces"
    assert met[0][0][:8] == met[0][1]
    return client, study


def test_overview_of_a_finished_study(whole: tuple[LocalStudio, dict[str, Any]]) -> None:
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
def test_downloaded_decisions_are_read_by_the_library(
    whole: tuple[LocalStudio, dict[str, Any]], tmp_path: Path, kind: str
) -> None:
    client, study = whole
    answer = client.get(f"/api/studies/{study['study']}/decisions.{kind}", headers=ADMIN)
    assert answer.status_code == 200
    file = tmp_path / f"decisions.{kind}"
    file.write_bytes(answer.content)
    d = rv.read_file(file, features=PAPER_FEATURES, group="participant")
    told = client.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    assert len(d) == sum(person["moves"] - person["misses"] for person in told["participants"]), (
        "a miss is no decision"
    )
    assert d.groups is not None
    assert set(d.groups) == {1, 2}


def test_results_by_condition_agree_with_the_decisions(
    whole: tuple[LocalStudio, dict[str, Any]], tmp_path: Path
) -> None:
    client, study = whole
    answer = client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN).json()
    assert answer["names"] == list(PAPER_FEATURES)
    told = client.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    for c, part in enumerate(answer["conditions"]):
        people = [person["conditions"][c] for person in told["participants"]]
        assert part["missed"] == sum(person["misses"] for person in people)
        assert part["made"] == sum(person["moves"] - person["misses"] for person in people)
        assert (
            part["consistency"]["low"] < part["consistency"]["median"] < part["consistency"]["high"]
        )
        assert len(part["densities"]) == len(part["direction"]["densities"]) == 3
    assert answer["conditions"][0]["chance"] is None
    assert 0.0 <= answer["conditions"][1]["chance"] <= 1.0
    # the size of the posterior mean, from the downloaded table, lies where consistency says
    file = tmp_path / "decisions.csv"
    file.write_bytes(
        client.get(f"/api/studies/{study['study']}/decisions.csv", headers=ADMIN).content
    )
    units = offered_covariance(rv.read_file(file, features=PAPER_FEATURES))
    size, _ = size_and_direction(np.array([answer["conditions"][0]["mean"]]), units)
    assert (
        0.3 * part["consistency"]["low"]
        < size[0]
        < 3.0 * answer["conditions"][0]["consistency"]["high"]
    )
    assert client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN).json() == answer


def test_results_of_too_few_decisions_are_refused(client: LocalStudio) -> None:
    study = made(client)
    answer = client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN)
    assert answer.status_code == 409
    assert "nothing can be said yet" in answer.json()["error"]
    empty = client.get(f"/api/studies/{study['study']}/decisions.csv", headers=ADMIN)
    assert empty.status_code == 200
    assert empty.text.count("\n") == 1


def test_results_of_too_many_decisions_are_refused(
    whole: tuple[LocalStudio, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, study = whole
    monkeypatch.setattr(results, "LIMITS", replace(results.LIMITS, max_decisions=20))
    answer = client.get(f"/api/studies/{study['study']}/posteriors", headers=ADMIN)
    assert answer.status_code == 409
    assert "download them" in answer.json()["error"]


def test_ended_study_takes_no_participants_and_no_moves(client: LocalStudio) -> None:
    study = made(client, participants=1)
    more = client.post(
        f"/api/studies/{study['study']}/participants", json={"count": 2}, headers=ADMIN
    )
    assert more.status_code == 201
    assert [person["number"] for person in more.json()["participants"]] == [1, 2, 3]
    links = tokens(more.json())
    assert len(set(links)) == 3
    state = client.post(f"/api/participants/{links[0]}/next").json()
    assert state["participant"]
    assert client.post(f"/api/participants/{links[0]}/next").json()["game"] == state["game"]
    ended = client.post(f"/api/studies/{study['study']}/end", headers=ADMIN).json()
    assert ended["ended"]
    late = client.post(
        f"/api/games/{state['game']}/moves", json=choose_placement(np.random.default_rng(0), state)
    )
    assert late.status_code == 409
    assert "study has ended" in late.json()["error"]
    assert client.post(f"/api/participants/{links[1]}/next").status_code == 409
    assert client.get(f"/api/participants/{links[1]}").json()["ended"]
    again = client.post(
        f"/api/studies/{study['study']}/participants", json={"count": 1}, headers=ADMIN
    )
    assert again.status_code == 409
    client.state.games._live.clear()
    assert (
        client.post(
            f"/api/games/{state['game']}/moves",
            json=choose_placement(np.random.default_rng(0), state),
        ).status_code
        == 409
    )


def test_study_with_too_many_participants_is_refused(shared_studio: LocalStudio) -> None:
    study = made(shared_studio, participants=500)
    for _ in range(3):
        shared_studio.post(
            f"/api/studies/{study['study']}/participants", json={"count": 500}, headers=ADMIN
        )
    answer = shared_studio.post(
        f"/api/studies/{study['study']}/participants", json={"count": 1}, headers=ADMIN
    )
    assert answer.status_code == 409
    assert "at most 2000 participants" in answer.json()["error"]


@pytest.mark.parametrize(
    "key", [None, "Bearer wrong", "Bearer", TOKEN, f"Basic {TOKEN}", "Bearer é".encode("latin-1")]
)
def test_study_addresses_without_the_token_are_refused(
    shared_studio: LocalStudio, key: Any
) -> None:
    study = made(shared_studio)
    headers = {} if key is None else {"Authorization": key}
    one = f"/api/studies/{study['study']}"
    for method, path, body in (
        ("GET", "/api/studies", None),
        ("POST", "/api/studies", {"name": "a", "conditions": CONDITIONS, "participants": 1}),
        ("GET", one, None),
        ("POST", f"{one}/end", None),
        ("POST", f"{one}/participants", {"count": 1}),
        ("GET", f"{one}/decisions.csv", None),
        ("GET", f"{one}/decisions.parquet", None),
        ("GET", f"{one}/posteriors", None),
    ):
        answer = shared_studio.request(method, path, json=body, headers=headers)
        assert answer.status_code == 401, (method, path)
        assert "token" in answer.json()["error"]
        assert study["name"] not in answer.text
    assert not shared_studio.get(one, headers=ADMIN).json()["ended"]


def test_participant_sees_only_the_own_games(shared_studio: LocalStudio) -> None:
    study = made(shared_studio)
    one, other = tokens(study)
    theirs = shared_studio.post(f"/api/participants/{other}/next").json()["game"]
    mine = shared_studio.post(f"/api/participants/{one}/next").json()["game"]
    seen = shared_studio.get(f"/api/participants/{one}")
    assert [part["game"] for part in seen.json()["conditions"]] == [mine, None]
    assert theirs not in seen.text
    assert other not in seen.text
    assert study["study"] not in seen.text
    assert "seed" not in seen.text
    unknown = shared_studio.get("/api/participants/" + "a" * 22)
    assert unknown.status_code == 404
    assert "link is not known" in unknown.json()["error"]
    for what in ("learning", "understudy"):
        answer = shared_studio.get(f"/api/games/{mine}/{what}")
        assert answer.status_code == 403
        assert "not learnt while it is played" in answer.json()["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": " "},
        {"name": "a\x00b"},
        {"name": "\ud800"},
        {"name": "a" * 101},
        {"name": 5},
        {"conditions": []},
        {"conditions": [{"name": "a"}] * 13},
        {"conditions": [{"name": "a"}, {"name": "a"}]},
        {"conditions": [{"deadline_seconds": 1}]},
        {"conditions": [{"name": "a", "deadline_seconds": 0}]},
        {"conditions": [{"name": "a", "pieces": 0}]},
        {"participants": 0},
        {"participants": 501},
        {"seed": -1},
        {"more": 1},
    ],
)
def test_invalid_study_is_refused(shared_studio: LocalStudio, wrong: dict[str, Any]) -> None:
    wanted = {"name": "not to be", "conditions": CONDITIONS, "participants": 1, **wrong}
    headers = {**ADMIN, "Content-Type": "application/json"}
    answer = shared_studio.post("/api/studies", content=json.dumps(wanted), headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]
    assert wanted["name"] not in [
        study["name"] for study in shared_studio.get("/api/studies", headers=ADMIN).json()
    ]


def test_study_stored_with_the_older_field_name_keeps_its_deadlines(client: LocalStudio) -> None:
    study = made(client)
    older = json.dumps([{"name": "ten", "tau": 10.0, "pieces": 15}])
    client.state.games.storage.write(
        lambda connection: connection.execute(update(tables.studies).values(conditions=older))
    ).result(PATIENCE)
    state = client.post(f"/api/participants/{tokens(study)[0]}/next").json()
    assert state["deadline_seconds"] == 10.0
    seen = client.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    assert seen["conditions"] == [{"name": "ten", "deadline_seconds": 10.0, "pieces": 15}]
