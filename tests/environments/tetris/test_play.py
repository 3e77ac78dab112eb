"""Players, games that are written down and read again, the terminal's view, and the Gymnasium environment."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed.environments.tetris import (
    PIECES,
    Tetris,
    as_text,
    has_ended,
    read_games,
    sampling_policy,
    voting_policy,
    write_games,
)
from revealed.environments.tetris.text import as_rich, board_with_piece, count_empty_rows
from tests.support.statistical_asserts import assert_scores

VALUE = np.array([-3.0, -15.0, -1.0])


def test_policies_lapse_as_often_as_the_draws_say() -> None:
    """Of two placements of which the first is hopeless, lapses take each equally often."""
    rows, count = np.array([[-100.0], [0.0]]), 4000
    rng, blind = np.random.default_rng(3), np.array([0.0, 0.8])
    noise = rv.KnownLapse(rv.LogitNoise(), blind)
    choose = sampling_policy(np.ones((2, 1)), noise)
    hopeless = sum(choose(rng, rows) == 0 for _ in range(count))
    p = blind.mean() / 2.0
    assert_scores((hopeless / count - p) / np.sqrt(p * (1.0 - p) / count), false_alarm=1e-6)
    # most voters lapse, and among their votes nothing decides: the others do
    vote = voting_policy(np.ones((200, 1)), noise=rv.KnownLapse(rv.LogitNoise(), 0.5))
    assert [vote(rng, rows) for _ in range(20)] == [1] * 20
    everybody = voting_policy(np.ones((200, 1)), noise=rv.KnownLapse(rv.LogitNoise(), 1.0))
    assert {everybody(rng, rows) for _ in range(40)} == {0, 1}
    with pytest.raises(ValueError, match="no habits among them"):
        sampling_policy(np.ones(1), rv.KnownLapse(rv.LogitNoise(), 0.5, {"a": 0.5, "b": 0.5}))


def test_a_game_goes_on_from_board_to_board_until_it_ends() -> None:
    world = Tetris(8, 6)
    steps = list(world.play(np.random.default_rng(1), sampling_policy([0.0, 5.0, 0.0]), 200))
    assert 2 < len(steps) < 200
    for one, two in itertools.pairwise(steps):
        np.testing.assert_array_equal(one.landing.board, two.board)
    assert has_ended(steps[-1].landing.board) or not len(
        world.placements(steps[-1].landing.board, 0)
    )


def test_pieces_may_be_given_and_the_same_seed_plays_the_same_game() -> None:
    world = Tetris(12)
    games = [
        list(world.play(np.random.default_rng(5), voting_policy(VALUE), 20, pieces="IOTSZJL"))
        for _ in range(2)
    ]
    assert [PIECES[step.piece] for step in games[0]] == list("IOTSZJL")
    assert [(s.rotation, s.column) for s in games[0]] == [(s.rotation, s.column) for s in games[1]]


def test_one_that_might_be_the_controller_chooses_as_often_as_the_exact_probabilities_say() -> None:
    import revealed as rv

    world = Tetris(12)
    board = world.empty()
    board[-1, 2:7] = 1
    _, rows = world.placements_with_features(board, "T")
    probability = rv.choice_probabilities(rv.Decisions(rows, [0, len(rows)]), 0.1 * VALUE)
    choose, rng = sampling_policy(0.1 * VALUE), np.random.default_rng(2)
    counts = np.bincount([choose(rng, rows) for _ in range(20_000)], minlength=len(rows))
    off = (counts - 20_000 * probability) / np.sqrt(20_000 * probability * (1 - probability))
    assert_scores(off, false_alarm=1e-6, degrees=np.inf)


def test_the_vote_of_many_draws_takes_the_likely_best() -> None:
    world = Tetris(12)
    where, rows = world.placements_with_features(world.empty(), "I")
    picked = voting_policy(np.tile(VALUE, (50, 1)))(np.random.default_rng(1), rows)
    assert where[picked].tolist()[0] == 0  # a bar is laid down


def test_written_games_replay_bit_for_bit(tmp_path: Path) -> None:
    world, rng = Tetris(10, 6, "literal"), np.random.default_rng(9)
    games = [list(world.play(rng, sampling_policy(0.2 * VALUE), 30)) for _ in range(3)]
    write_games(tmp_path / "games.jsonl", games, seconds=np.arange(sum(map(len, games))))
    again = read_games(tmp_path / "games.jsonl")
    flat = [step for game in games for step in game]
    assert len(again) == len(flat)
    for placed, step in zip(again.placements, flat, strict=True):
        np.testing.assert_array_equal(placed.board, step.board)
        assert (placed.piece, placed.column, placed.row) == (
            step.piece,
            step.column,
            step.landing.row,
        )
    assert len(again.within(4.0)) == 5
    write_games(tmp_path / "untimed.jsonl", games)
    with pytest.raises(ValueError, match="do not say how many seconds"):
        read_games(tmp_path / "untimed.jsonl").within(1.0)


def test_a_board_is_drawn_with_the_piece_just_placed() -> None:
    step = next(Tetris(6, 4).play(np.random.default_rng(1), lambda rng, rows: 0, 1, pieces="O"))
    assert board_with_piece(step)[-2:, :2].tolist() == [[2, 2], [2, 2]]
    assert as_rich(step).plain.splitlines()[-2] == "│████ · ·│"
    assert as_text(step.landing.board).splitlines()[-1] == "└────────┘"
    assert count_empty_rows(step.landing.board) == 4
    assert count_empty_rows(step.board) == 6


def test_gymnasium_accepts_the_environment() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    from revealed.environments.tetris.gym import ENVIRONMENT_ID

    env = gymnasium.make(ENVIRONMENT_ID, rows=12)
    check_env(env.unwrapped, skip_render_check=True)


def test_the_environment_follows_the_world() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from revealed.environments.tetris.gym import ENVIRONMENT_ID

    env = gymnasium.make(ENVIRONMENT_ID, rows=8, columns=6, render_mode="ansi")
    seen, info = env.reset(seed=3)
    world, steps = Tetris(8, 6), 0
    while True:
        legal = world.placements(seen["board"], int(seen["piece"]))
        assert set(np.flatnonzero(info["action_mask"])) == {6 * r + c for r, c in legal.tolist()}
        refused = int(np.flatnonzero(info["action_mask"] == 0)[0])
        same, reward, ended, cut, _ = env.step(refused)
        assert (reward, ended, cut) == (-1.0, False, False)
        np.testing.assert_array_equal(same["board"], seen["board"])
        rotation, column = legal[len(legal) // 2].tolist()
        landing = world.drop(seen["board"], int(seen["piece"]), rotation, column)
        seen, reward, ended, cut, info = env.step(6 * rotation + column)
        np.testing.assert_array_equal(seen["board"], landing.board)
        assert reward == landing.cleared
        assert env.render() == as_text(landing.board)
        steps += 1
        if ended:
            break
    assert steps > 3
    assert has_ended(seen["board"]) or not info["action_mask"].any()
