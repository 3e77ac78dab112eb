"""Trajectories: what is read, counted, cut, picked and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.trajectories import Trajectory
from revealed.models.transitions import check_concentration, mean_process, row_shapes

HOUSE = ("hall", "kitchen", "garden")
PATHS: list[Any] = [
    (["hall", "kitchen", "hall", "garden"], ["go", "go", "leave"]),  # the last state is an end
    (["kitchen", "kitchen"], ["stay", "go"]),  # where the last action led was not seen
    (["garden", "hall"], ["go"]),
]


def house(**more: Any) -> rv.Trajectories:
    return rv.Trajectories(PATHS, HOUSE, ("stay", "go", "leave"), **more)


def test_labels_and_positions_say_the_same() -> None:
    named, numbered = house(), rv.Trajectories([([0, 1, 0, 2], [1, 1, 2])], 3, 3)
    assert (named.states, named.actions) == (HOUSE, ("stay", "go", "leave"))
    assert (numbered.states, numbered.actions) == ((0, 1, 2), (0, 1, 2))
    np.testing.assert_array_equal(named.paths[0].states, numbered.paths[0].states)
    np.testing.assert_array_equal(named.take([0]).counts, numbered.counts)
    assert len(named) == 6
    assert repr(named) == "<Trajectories: 3 trajectories, 6 decisions, 3 states, 3 actions>"


def test_transitions_are_counted_and_the_last_state_is_no_decision() -> None:
    seen = house()
    assert seen.state_position.tolist() == [0, 1, 0, 1, 1, 2]
    assert seen.action_position.tolist() == [1, 1, 2, 0, 1, 1]
    expected = np.zeros((3, 3, 3), int)  # counts[a, x, y]
    for action, start, end in [(1, 0, 1), (1, 1, 0), (2, 0, 2), (0, 1, 1), (1, 2, 0)]:
        expected[action, start, end] += 1
    np.testing.assert_array_equal(seen.counts, expected)


def test_a_simulated_path_and_a_list_of_them_are_taken() -> None:
    rng = np.random.default_rng(1)
    world = rv.random_mdp(rng, states=3, actions=2)
    one, two = (world.simulate(rng, [1.0, 0.0, -1.0], 20) for _ in range(2))
    assert isinstance(one, Trajectory)
    both = rv.Trajectories([one, two], 3, 2)
    apart = [rv.Trajectories(path, 3, 2) for path in (one, two)]
    np.testing.assert_array_equal(both.counts, apart[0].counts + apart[1].counts)
    assert len(both) == 40


def test_episodes_cut_one_flat_trajectory() -> None:
    x, a = [0, 1, 1, 0, 1], [0, 1, 0, 1, 1]
    flat = rv.Trajectories((x, a), 2, 2, episodes=["mon", "mon", "tue", "tue", "tue"])
    cut = rv.Trajectories([(x[:2], a[:2]), (x[2:], a[2:])], 2, 2)
    assert [len(path) for path in flat.paths] == [2, 3]
    np.testing.assert_array_equal(flat.counts, cut.counts)
    np.testing.assert_array_equal(flat.action_position, cut.action_position)
    groups = rv.Trajectories((x, a), 2, 2, episodes=[1, 1, 2, 2, 2], groups=["ann", "ben"])
    assert groups.group_of_decision.tolist() == ["ann"] * 2 + ["ben"] * 3


def test_groups_are_one_label_a_trajectory() -> None:
    seen = house(groups=["ann", "ben", "ann"])
    assert seen.groups is not None
    assert seen.group_of_decision.tolist() == ["ann"] * 3 + ["ben"] * 2 + ["ann"]
    some = seen.take([0, 2])
    assert some.groups is not None
    assert some.groups.tolist() == ["ann", "ann"]
    assert len(some) == 4
    np.testing.assert_array_equal(some.counts + seen.take([1]).counts, seen.counts)
    with pytest.raises(ValueError, match="do not say whose they are: give groups="):
        _ = house().group_of_decision


def test_counts_of_older_files_stand_for_the_transitions() -> None:
    """Which decision led where is not known any more; decisions and counts are what matters."""
    seen = house()
    decisions = seen.state_position, seen.action_position
    kept = rv.Trajectories.from_counts(decisions, seen.counts, seen.states, seen.actions)
    np.testing.assert_array_equal(kept.state_position, seen.state_position)
    np.testing.assert_array_equal(kept.action_position, seen.action_position)
    np.testing.assert_array_equal(kept.counts, seen.counts)
    assert kept.groups is None
    one, other = (rv.ChoiceModel(transitions=rv.Dirichlet()).resolve(d) for d in (seen, kept))
    np.testing.assert_array_equal(one.coefficients.rows, other.coefficients.rows)  # type: ignore[attr-defined]


def test_the_dirichlet_prior_is_spread_over_the_rows_that_exist() -> None:
    seen = rv.Trajectories(([0, 1, 0], [0, 1]), 2, 2)
    given = rv.Dirichlet([1.0, 3.0], available=[[True, False], [True, True]])
    concentration, exists = check_concentration(given, seen)
    np.testing.assert_array_equal(concentration[0], [[1.0, 3.0], [1.0, 3.0]])
    np.testing.assert_array_equal(concentration[1], [[0.0, 0.0], [1.0, 3.0]])
    np.testing.assert_array_equal(row_shapes(seen, concentration)[1], [[0.0, 0.0], [2.0, 3.0]])
    process = mean_process(seen, concentration, exists)
    np.testing.assert_allclose(process.transitions[0], [[0.2, 0.8], [0.25, 0.75]])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"groups": ["ann", "ben"]}, r"groups has shape \(2,\), but there are 3 trajectories"),
        ({"groups": ["ann", None, "ben"]}, "trajectory 1: the label of who decided is missing"),
        ({"groups": [1.0, 2.0, np.nan]}, "trajectory 2: the label of who decided is missing"),
        ({"episodes": [0, 0, 1]}, "episodes cut one flat trajectory"),
    ],
)
def test_what_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        house(**given)
