"""Nodes of skills that change: in the order of paths, and found again by every entry."""

from __future__ import annotations

import numpy as np
import pytest

import revealed as rv
from revealed.models.skill_nodes import make_skill_nodes


def games(seed: int = 1, count: int = 40) -> rv.Rankings:
    """Games of teams of one to three, on dates in no order."""
    rng = np.random.default_rng(seed)
    names, listed = [f"p{k}" for k in range(9)], []
    for _ in range(count):
        who = rng.permutation(names)[: rng.integers(4, 9)].tolist()
        cut = int(rng.integers(1, 4))
        listed.append([tuple(who[:cut]), *who[cut:]])
    return rv.Rankings.from_lists(listed, times=rng.integers(0, 12, count) * 0.5)


def test_every_member_is_found_at_its_player_and_time() -> None:
    r = games()
    n = make_skill_nodes(r)
    assert r.times is not None
    of_game = np.repeat(np.arange(len(r)), np.diff(r.start))
    member_times = np.repeat(r.times[of_game], r.sizes)
    assert [n.labels[0][k] for k in n.label[n.node]] == [r.names[k] for k in r.players]
    assert np.array_equal(n.times[n.node], member_times)
    # one node for a player and date, and no more
    assert len(n) == len(set(zip(r.players.tolist(), member_times.tolist(), strict=True)))


def test_paths_run_forward_in_time_one_after_another() -> None:
    n = make_skill_nodes(games())
    for label in range(len(n.labels[0])):
        own = n.path(label)
        assert (n.label[own] == label).all()
        assert n.first[own].tolist() == [True] + [False] * (own.stop - own.start - 1)
        assert np.array_equal(n.gap[own][1:], np.diff(n.times[own]))
    assert (n.gap[n.first] == 0.0).all()
    assert n.names()[0] == f"{n.labels[0][n.label[0]]} at {n.times[0]:g}"


def test_two_components_have_paths_of_their_own() -> None:
    r = games()
    car = (np.arange(len(r.players)) % 3).astype(np.int64)
    players = ("player", r.names, r.players)
    n = make_skill_nodes(r, [players, ("car", ("a", "b", "c"), car)])
    alone = make_skill_nodes(r)
    assert np.array_equal(n.node[::2], alone.node)
    assert np.array_equal(n.label[n.node[1::2]] - len(r.names), car)
    assert np.array_equal(n.component, (n.label >= len(r.names)).astype(int))
    assert np.array_equal(n.entry_start, 2 * r.member_start)
    assert n.position[1]["c"] == len(r.names) + 2


def test_players_without_games_have_no_nodes() -> None:
    r = games()
    fewer = r.take(range(3))
    n = make_skill_nodes(fewer)
    for label, played in enumerate(fewer.games):
        own = n.path(label)
        assert (own.stop > own.start) == (played > 0)


def test_games_without_times_are_refused() -> None:
    with pytest.raises(ValueError, match="skills that change need to know when each game"):
        make_skill_nodes(rv.Rankings.from_lists([["ann", "bob"]]))
