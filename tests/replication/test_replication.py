"""The pieces that the reproduction of the paper is made of; whole studies are run by the command line's tests and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

from revealed.data.decisions import Decisions
from revealed.environments.tetris import PIECES, Tetris, read_games
from revealed.io.atomic import to_jsonable
from revealed.replication import human, tetris, toy
from revealed.replication import time_pressure as pressure
from revealed.replication.study import Section, Study, write_index, write_study
from revealed.replication.tetris_players import VALUES
from revealed.results.size_and_direction import (
    direction_p_value,
    offered_covariance,
    size_and_direction,
)
from tests.support.cases import mark_slow
from tests.support.short_studies import FEW_DRAWS, limit_draws
from tests.support.statistical_asserts import BATCHES, assert_mean, assert_scores

HUMAN = Path(__file__).resolve().parents[3] / "shared" / "data" / "human_tetris.jsonl"


def quiet(what: str) -> None:
    pass


def test_consistency_is_signal_over_noise_and_direction_does_not_know_it() -> None:
    d = Decisions([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]], [0, 2, 4], [1, 1])
    units = offered_covariance(d)
    np.testing.assert_allclose(units, [[0.5, 0.0], [0.0, 0.5]])
    size, direction = size_and_direction(np.array([[1.0, -2.0], [10.0, -20.0]]), units)
    assert size[1] == pytest.approx(10.0 * size[0])
    np.testing.assert_allclose(direction[0], direction[1])
    assert np.square(direction[0]).sum() == pytest.approx(1.0)


def test_a_missed_deadline_drops_the_block_and_records_no_decision() -> None:
    made = [
        pressure._simulate_condition(1, tau, pressure.PLAYERS["steady"], 300)
        for tau in pressure.PLAN.deadlines
    ]
    counts = [len(c.decisions) for c in made]
    assert counts == sorted(counts, reverse=True)
    assert all(len(c.decisions) + c.missed == 300 for c in made)
    assert made[-1].share > 0.8


def test_noise_does_not_look_like_other_wishes_and_other_wishes_do() -> None:
    numbers = pressure.run(None, 1, False, quiet).numbers
    for name in ("steady", "hasty"):
        assert (
            min(numbers[name]["chance"][1:]) > pressure.PLAN.p_value
        )  # false alarm in 6 comparisons: 6 %; seed fixed
    assert max(numbers["careless"]["chance"][1:3]) < 1e-6
    assert numbers["hasty"]["size"][0] > 1.5 * numbers["hasty"]["size"][2]
    for name, player in pressure.PLAYERS.items():
        inside = [lo <= true <= hi for (lo, hi), true in zip(*_sizes(numbers[name]), strict=True)]
        assert sum(inside) >= 3, (name, player.story)


def _sizes(found: Any) -> tuple[Any, Any]:
    return found["size_interval"], found["true_size"]


def test_directions_of_one_posterior_differ_by_chance_only() -> None:
    rng = np.random.default_rng(1)

    def draws(x: float, sd: float) -> Any:
        v = np.array([x, 1.0, 0.0]) + sd * rng.standard_normal((2000, 3))
        return v / np.linalg.norm(v, axis=1)[:, None]

    # means of posteriors that are themselves as unsure as their draws: 1.4 sds apart is a squared
    # distance of 1.4^2 / 2; so narrow that the sphere is flat where they are
    exact = float(st.chi2.sf(1.4**2 / 2.0, df=2))
    found = [direction_p_value(draws(0.0, 0.01), draws(0.014, 0.01)) for _ in range(BATCHES)]
    assert_mean(found, exact)
    assert direction_p_value(draws(0.0, 0.1), draws(1.0, 0.1)) < 1e-4


def test_placements_are_scored_by_where_the_piece_ends_up() -> None:
    world = Tetris(actions="literal")
    path = world.simulate(np.random.default_rng(2), VALUES["efficient"], 150)
    d = world.decisions(path)
    chosen = np.asarray(d[100:].chosen)
    assert tetris._wrong_placement_rate(world, path, chosen) == 0.0
    moved = (chosen + 1) % d[100:].sizes  # the next column, or the next rotation
    assert tetris._wrong_placement_rate(world, path, moved) > 0.9
    turned, same = chosen.copy(), 0
    for t in range(100, 150):
        where = world.placements(path.boards[t], int(path.pieces[t])).tolist()
        upside_down = [(int(path.rotations[t]) + 2) % 4, int(path.columns[t])]
        if PIECES[path.pieces[t]] in "IOSZ" and upside_down in where:  # looks the same
            turned[t - 100] = where.index(upside_down)
            same += 1
    assert same > 10
    assert tetris._wrong_placement_rate(world, path, turned) == 0.0


def test_values_drawn_far_out_leave_a_flat_prior_without_a_posterior() -> None:
    open_at = {
        sd: sum(toy._is_unbounded(toy.simulate_decisions(s, 50, sd)) for s in range(10))
        for sd in (50.0, 3.0)
    }
    assert open_at[50.0] > open_at[3.0]


def test_a_study_is_written_whole(tmp_path: Path) -> None:
    study = Study(
        "one",
        "One study",
        "about it",
        {"a": np.array([1.0, np.nan])},
        [Section("Claim", "it says <so>", "we see")],
    )
    write_study(study, tmp_path / "one")
    assert json.loads((tmp_path / "one" / "study.json").read_text()) == {
        "title": "One study",
        "about": "about it",
        "numbers": {"a": [1.0, None]},
        "claims": [{"title": "Claim", "paper": "it says <so>", "ours": "we see"}],
    }
    page = (tmp_path / "one" / "index.html").read_text()
    assert "it says &lt;so&gt;" in page
    write_study(Study("two", "Another", "of it", {}, []), tmp_path / "two")
    write_index(tmp_path, ["one", "two", "three"], {"human": "left out"})
    index = (tmp_path / "index.html").read_text()
    assert index.index('href="one/index.html"') < index.index('href="two/index.html"')
    assert "three" not in index
    assert "human: left out" in index
    assert to_jsonable({"x": (np.int64(3), float("inf"))}) == {"x": [3, None]}


@pytest.mark.parametrize("draws", mark_slow([FEW_DRAWS, "all"], lambda draws: draws == FEW_DRAWS))
def test_a_person_is_predicted_as_a_prototype_did_and_better_with_richer_features(
    monkeypatch: pytest.MonkeyPatch, draws: Any
) -> None:
    if draws != "all":
        limit_draws(monkeypatch, draws)
    if not HUMAN.exists():
        pytest.skip(
            "the person's games are not here: shared/data/human_tetris.jsonl is looked for beside the repository"
        )
    numbers = human.run(read_games(HUMAN), 1, True, quiet).numbers
    # the standard error of a share of the decisions predicted; both were wrong in the same ones
    # mostly, so that their difference has a smaller one
    theirs = np.array(human.PLAN.prototype_errors)
    count = human.PLAN.decisions - human.PLAN.first_predicted
    scores = (numbers["errors"]["paper"] - theirs) / np.sqrt(theirs * (1.0 - theirs) / count)
    assert_scores(scores, false_alarm=1e-3, degrees=np.inf)
    assert numbers["chosen"] != "paper"
    assert numbers["gain"] > 3.0 * numbers["gain_standard_error"]
    assert numbers["log_scores"][numbers["chosen"]][-1] > numbers["log_scores"]["paper"][-1] + 0.3


def test_too_few_games_get_a_sentence(tmp_path: Path) -> None:
    from revealed.environments.tetris import sampling_policy, write_games

    write_games(
        tmp_path / "g.jsonl",
        [list(Tetris().play(np.random.default_rng(1), sampling_policy([-3.0, -15.0, -1.0]), 20))],
    )
    with pytest.raises(
        ValueError, match="the games hold 20 straight drops; Experiment 2 needs 500"
    ):
        human.run(read_games(tmp_path / "g.jsonl"), 1, True, quiet)
