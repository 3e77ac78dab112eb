"""Grid worlds: their rules, the published values of a known one, walks, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csgraph

import revealed as rv
from revealed.data.trajectories import Trajectory
from revealed.environments.gridworld import GridWorld
from tests.support.statistical_asserts import assert_mean, must_fail

MAZE = """
    S..#...
    .#.#.#.
    .#...#G
"""
FOUR_BY_THREE = ["...P", ".#.M", "S..."]
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def random_layout(rng: np.random.Generator) -> list[str]:
    """Some rows of walls, plain squares and a mark; the first square is no wall."""
    rows, columns = rng.integers(2, 7, 2)
    text = "".join(rng.choice(list("#..G"), rows * columns))
    text = "." + text[1:]
    return [text[row * columns : (row + 1) * columns] for row in range(rows)]


def transitions_by_loops(layout: list[str], slip: float, sideways: bool) -> np.ndarray[Any, Any]:
    """(4, N, N) from the definition, square by square."""
    squares = [
        (i, j) for i in range(len(layout)) for j in range(len(layout[0])) if layout[i][j] != "#"
    ]
    found = np.zeros((4, len(squares), len(squares)))
    for a, (down, right) in enumerate(STEPS.values()):
        for x, (i, j) in enumerate(squares):
            for also_down, also_right in STEPS.values():
                same = (also_down, also_right) == (down, right)
                # Directions at right angles have a zero product.
                at_right_angles = down * also_down + right * also_right == 0
                slips = slip / 2 * at_right_angles if sideways else slip / 3
                wanted = (i + also_down, j + also_right)
                y = squares.index(wanted) if wanted in squares else x
                found[a, x, y] += 1.0 - slip if same else slips
    return found


@pytest.mark.parametrize("slip", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("direction", ["other", "sideways"])
def test_transitions_are_those_of_the_definition(slip: float, direction: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        layout = random_layout(rng)
        mdp = GridWorld(layout, slip, direction).mdp
        found = np.array([matrix.toarray() for matrix in mdp.transitions])
        expected = transitions_by_loops(layout, slip, direction == "sideways")
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-15)
        assert mdp.rows.nnz == np.count_nonzero(expected)


def test_values_of_the_four_by_three_world_are_the_published_ones() -> None:
    """Russell and Norvig, figure 17.3: the ends pay 1 and -1 once, every other square -0.04.

    Ours are never left, so they pay (1 - discount) for ever, and the discount is almost one.
    """

    def solve(**settings: Any) -> tuple[np.ndarray[Any, Any], str]:
        world = GridWorld(FOUR_BY_THREE, ends="PM", **settings)
        rest = 1e-7
        reward = world.reward({"P": rest, "M": -rest}, otherwise=-0.04)
        value = world.mdp.solve(reward, discount=1.0 - rest)
        return world.to_grid(value), world.draw(world.mdp.policy(value))

    published = [
        [0.812, 0.868, 0.918, 1.0],
        [0.762, np.nan, 0.660, -1.0],
        [0.705, 0.655, 0.611, 0.388],
    ]
    value, policy = solve(slip=0.2, slip_direction="sideways")
    # three decimals are published
    np.testing.assert_allclose(value, published, rtol=0.0, atol=5.1e-4)
    assert policy.splitlines() == ["→→→P", "↑#↑M", "↑←←←"]
    for wrong in ({"slip": 0.2}, {"slip": 0.1, "slip_direction": "sideways"}):
        assert np.nanmax(np.abs(solve(**wrong)[0] - published)) > 0.01


def steps_to_goal(world: GridWorld, goal: tuple[int, int]) -> dict[tuple[int, int], int]:
    """How many steps it is to the goal, by breadth-first search backwards over the rules."""
    distance = {goal: 0}
    while True:
        near = {
            square: 1 + distance[world.step(square, action)]
            for square in world.marks
            if square not in distance
            for action in world.actions(square)
            if world.step(square, action) in distance
        }
        if not near:
            return distance
        distance |= near


def test_value_of_a_maze_without_slips_is_the_way_to_its_end() -> None:
    world = GridWorld(MAZE, ends="G")
    assert world.find("S") == [(0, 0)]
    value = world.mdp.solve(world.reward({"G": 0.0}, otherwise=-1.0), discount=0.9)
    distance = steps_to_goal(world, (2, 6))
    assert distance[0, 0] == 12
    steps = np.array([distance[square] for square in world.marks])
    # One is paid for every step: a geometric sum.
    np.testing.assert_allclose(value, -(1.0 - 0.9**steps) / 0.1, rtol=1e-12, atol=1e-12)
    # The best way is walked: twelve decisions, then the end.
    (walk,) = world.simulate(1, 1000.0 * value, walks=1, length=50, start="S")
    assert [world.mdp.states[x] for x in walk.states[[0, -1]]] == [(0, 0), (2, 6)]
    assert (len(walk), len(world.decisions([walk]))) == (13, 12)
    assert world.mdp.actions[walk.actions[-1]] == "stay"


def test_rules_are_functions_of_the_square_alone() -> None:
    world = GridWorld(["..", "#G"], slip=0.3, ends="G", stay=True)
    assert world.actions((0, 0)) == ("up", "down", "left", "right", "stay")
    assert world.actions((1, 1)) == ("stay",)
    assert world.step((0, 0), "down") == (0, 0)  # a wall
    assert world.step((0, 0), "left") == (0, 0)  # the edge
    assert world.step((0, 1), "down") == (1, 1)
    for _ in range(2):
        assert world.outcomes((0, 0), "right") == pytest.approx({(0, 1): 0.7, (0, 0): 0.3})
        assert world.outcomes((0, 0), "stay") == {(0, 0): 1.0}
        assert world.outcomes((1, 1), "stay") == {(1, 1): 1.0}
    assert GridWorld([".."]).outcomes((0, 0), "right") == {(0, 1): 1.0}  # no slips, no zeros
    assert world == GridWorld("..\n#G", slip=0.3, ends="G", stay=True)
    assert repr(world.mdp) == "<MDP: 3 states, 5 actions, 11 available pairs, sparse>"


def test_walks_choose_and_slip_as_told() -> None:
    """Shares of actions against choice probabilities, and of arrivals against transitions."""
    world = GridWorld(["...", "..."], slip=0.2)
    value = np.linspace(-1.0, 1.0, 6)
    walks = world.simulate(3, value, walks=4000, length=2, start=(0, 1))
    first = np.array([walk.actions[0] for walk in walks])
    arrived = np.array([walk.states[1] for walk in walks])
    assert {len(walk) for walk in walks} == {2}
    offered = world.mdp.decisions([(0, 1)])
    for action, probability in enumerate(rv.choice_probabilities(offered, value)):
        assert_mean(first == action, float(probability))
    slips = arrived[first == 3] != world.mdp.states.index((0, 2))
    assert_mean(slips, 0.2)
    with must_fail("slips of another probability"):
        assert_mean(slips, 0.3)


def test_walks_start_where_they_are_told_and_by_default_on_no_end() -> None:
    world = GridWorld(["AB", "AG"], ends="G")
    value = np.zeros(4)
    started = {
        start: {world.mdp.states[w.states[0]] for w in world.simulate(1, value, 60, 1, start)}
        for start in (None, "A", (0, 1))
    }
    assert started == {None: {(0, 0), (0, 1), (1, 0)}, "A": {(0, 0), (1, 0)}, (0, 1): {(0, 1)}}
    walks = world.simulate(1, value, walks=30, length=4)
    again = world.simulate(1, value, walks=30, length=4)
    for one, other in zip(walks, again, strict=True):
        np.testing.assert_array_equal(one.states, other.states)
    ends = world.mdp.states.index((1, 1))
    decided = sum(int((walk.states != ends).sum()) for walk in walks)
    assert decided < sum(map(len, walks))
    assert len(world.decisions(walks)) == decided
    assert all((walk.states[:-1] != ends).all() for walk in walks)
    # At most four decisions, and the arrival.
    assert {int((walk.states != ends).sum()) for walk in walks} == {1, 2, 3, 4}
    assert max(map(len, walks)) == 5


def test_reward_and_grid_have_numbers_where_the_squares_are() -> None:
    world = GridWorld(["A#", "BA"])
    reward = world.reward({"A": 2.0}, otherwise=-1.0)
    np.testing.assert_array_equal(reward, [2.0, -1.0, 2.0])
    np.testing.assert_array_equal(world.to_grid(reward), [[2.0, np.nan], [-1.0, 2.0]])
    assert world.to_grid(np.zeros((5, 3))).shape == (5, 2, 2)
    assert world.draw(["up", "right", "left"]) == "↑#\n→←"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: GridWorld([]), "lines of text, at least one, all equally long"),
        (lambda: GridWorld(7), "lines of text, at least one"),  # type: ignore[arg-type]
        (lambda: GridWorld(["...", ".."]), "all equally long"),
        (lambda: GridWorld(["..", ".?"]), r"has a '\?', which is unknown; '#' is a wall"),
        (lambda: GridWorld(["##"]), "walls only"),
        (lambda: GridWorld([".."], slip=1.5), "slip must be a probability, from 0 to 1; it is 1.5"),
        (lambda: GridWorld([".."], slip=float("nan")), "slip must be a probability"),
        (lambda: GridWorld([".."], slip_direction="back"), '"other" or "sideways"; it is \'back\''),
        (lambda: GridWorld(["G."], ends="H"), r"no square has the mark 'H'; the marks are \., G"),
        (lambda: GridWorld(["G."], ends=None), "ends must be a text"),  # type: ignore[arg-type]
        (lambda: GridWorld([".#"]).actions((0, 1)), r"\(0, 1\) is not a square"),
        (lambda: GridWorld([".."]).step((0, 0), "stay"), "does not offer 'stay', only"),
        (lambda: GridWorld([".."]).outcomes((0, 5), "up"), r"\(0, 5\) is not a square"),
        (lambda: GridWorld([".."]).reward({"G": 1.0}), "no square has the mark 'G'"),
        (lambda: GridWorld(["G."]).reward({"G": np.nan}), "NaN or infinite"),
        (lambda: GridWorld([".."]).simulate(1, [0.0, 0.0], 0, 5), "walks must be a whole number"),
        (lambda: GridWorld([".."]).simulate(1, [0.0, 0.0], 5, 0), "length must be a whole number"),
        (lambda: GridWorld(["G."], ends="G").simulate(1, [0, 0], 1, 1, "G"), "that is no end"),
        (lambda: GridWorld([".."]).simulate(1, [0, 0], 1, 1, (1, 0)), "is not a square"),
        (lambda: GridWorld([".."]).decisions([]), "at least one of them"),
        (lambda: GridWorld([".."]).decisions([([0], [0])]), "what simulate returns"),  # type: ignore[list-item]
        (
            lambda: GridWorld([".."]).decisions([Trajectory(np.array([7]), np.array([0]))]),
            "time 0: state 7 is unknown",
        ),
        (lambda: GridWorld([".."]).to_grid(1.0), r"shape \(\); the last axis must be 2 squares"),
        (lambda: GridWorld([".."]).draw([0]), "policy has 1 actions; give one for each of 2"),
        (lambda: GridWorld([".."]).draw([0, 9]), "policy: action 9 is unknown"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_maze_without_discount_is_the_shortest_path() -> None:
    """Steps that cost one each: the value is minus the distance, though one may walk for ever."""
    world = GridWorld(["..#.G", ".##..", "....."], ends="G", stay=True)
    value = world.mdp.solve(world.reward({"G": 0.0}, otherwise=-1.0), discount=1.0)
    squares = list(world.marks)
    near = np.zeros((len(squares), len(squares)))
    for (i, one), (j, other) in itertools.product(enumerate(squares), enumerate(squares)):
        near[i, j] = abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1
    distance = csgraph.shortest_path(near, unweighted=True)[squares.index(world.find("G")[0])]
    np.testing.assert_allclose(value, -distance, atol=1e-12)
