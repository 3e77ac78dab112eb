"""The rules of Tetris against a plain reference that moves squares one by one, known positions, and a controller's play."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revealed as rv
from revealed._types import Floats, Ints
from revealed.environments import Tetris
from revealed.environments.tetris import PAPER_FEATURES, PIECES, Rollout, drop, features, has_ended
from revealed.environments.tetris.pieces import rotations
from tests.support.statistical_asserts import assert_mean, assert_uniform_ranks

Square = tuple[int, int]
Rows = list[list[int]]

SHAPES = {
    "I": {(0, 0), (0, 1), (0, 2), (0, 3)},
    "O": {(0, 0), (0, 1), (1, 0), (1, 1)},
    "T": {(0, 0), (0, 1), (0, 2), (1, 1)},
    "S": {(0, 1), (0, 2), (1, 0), (1, 1)},
    "Z": {(0, 0), (0, 1), (1, 1), (1, 2)},
    "J": {(0, 0), (0, 1), (0, 2), (1, 2)},
    "L": {(0, 0), (0, 1), (0, 2), (1, 0)},
}


def turned(squares: set[Square]) -> set[Square]:
    """A quarter turn clockwise, moved back to the corner: row i, column j goes to row j, column -i."""
    left = min(-i for i, _ in squares)
    return {(j, -i - left) for i, j in squares}


def four(piece: str) -> list[set[Square]]:
    return list(itertools.accumulate(range(3), lambda s, _: turned(s), initial=SHAPES[piece]))


def plain_offers(
    board: Rows, piece: str, literal: bool
) -> dict[Square, tuple[int, Rows, list[float]]]:
    """(rotation, column) -> row at rest, board and features; the piece starts above the board and sinks row by row."""
    rows, columns = len(board), len(board[0])
    found: dict[Square, tuple[int, Rows, list[float]]] = {}
    if any(board[0]):
        return found
    shapes = four(piece)
    for r, shape in enumerate(shapes):
        if not literal and shape in shapes[:r]:
            continue
        for column in range(columns):
            if any(column + j >= columns for _, j in shape):
                continue
            row = -4
            while all(
                row + 1 + i < rows and not (row + 1 + i >= 0 and board[row + 1 + i][column + j])
                for i, j in shape
            ):
                row += 1
            if row < 0:
                continue
            after = [list(line) for line in board]
            for i, j in shape:
                after[row + i][column + j] = 1
            kept = [line for line in after if not all(line)]
            after = [[0] * columns for _ in range(rows - len(kept))] + kept
            found[r, column] = row, after, plain_features(after)
    return found


def plain_features(board: Rows) -> list[float]:
    heights, holes = [], 0
    for j in range(len(board[0])):
        column = [line[j] for line in board]
        heights.append(len(column) - column.index(1) if 1 in column else 0)
        holes += sum(1 for i, square in enumerate(column) if not square and any(column[:i]))
    return [
        float(max(heights)),
        float(holes),
        float(sum((a - b) ** 2 for a, b in itertools.pairwise(heights))),
    ]


@st.composite
def boards(draw: st.DrawFn) -> Rows:
    """Boards of all sizes without full rows: many rows lack few squares, so that pieces fill them; few reach the top."""
    columns = draw(st.integers(4, 11))
    crowded = st.lists(st.integers(0, 5), min_size=columns, max_size=columns).map(
        lambda s: [int(x > 0) for x in s]
    )
    sparse = st.lists(st.integers(0, 1), min_size=columns, max_size=columns)
    occupied = draw(
        st.lists(
            st.one_of(crowded, sparse).filter(lambda row: not all(row)), min_size=2, max_size=8
        )
    )
    return [[0] * columns for _ in range(draw(st.integers(0, 6)))] + occupied


@given(boards(), st.sampled_from(PIECES), st.booleans())
@settings(max_examples=300, deadline=None)
def test_offers_are_those_of_the_plain_rules(board: Rows, piece: str, literal: bool) -> None:
    world = Tetris(len(board), len(board[0]), "literal" if literal else "distinct")
    expected = plain_offers(board, piece, literal)
    where, rows = world.placements_with_features(board, piece)
    assert [tuple(w) for w in where.tolist()] == sorted(expected)
    for (rotation, column), row in zip(where.tolist(), rows.tolist(), strict=True):
        at, after, felt = expected[rotation, column]
        landing = world.drop(board, piece, rotation, column)
        assert landing.row == at
        assert landing.board.tolist() == after
        assert landing.cleared == sum(map(all, board_with(board, piece, rotation, column, at)))
        assert row == felt
        assert features(landing.board).tolist() == felt


def board_with(board: Rows, piece: str, rotation: int, column: int, row: int) -> Rows:
    after = [list(line) for line in board]
    for i, j in four(piece)[rotation]:
        after[row + i][column + j] = 1
    return after


def test_pieces_turn_clockwise_and_repetitions_are_dropped() -> None:
    assert [len(rotations(piece)) for piece in PIECES] == [2, 1, 4, 2, 2, 4, 4]
    assert {len(rotations(piece, "literal")) for piece in PIECES} == {4}
    assert rotations("L")[1].tolist() == [[1, 1], [0, 1], [0, 1]]
    for piece in PIECES:
        for shape, squares in zip(rotations(piece, "literal"), four(piece), strict=True):
            assert {tuple(map(int, s)) for s in np.argwhere(shape)} == squares


def test_an_empty_board_offers_what_the_paper_counts() -> None:
    distinct, literal = Tetris(), Tetris(actions="literal")
    assert [len(distinct.placements(distinct.empty(), p)) for p in PIECES] == [
        17,
        9,
        34,
        17,
        17,
        34,
        34,
    ]
    assert [len(literal.placements(literal.empty(), p)) for p in PIECES] == [
        34,
        36,
        34,
        34,
        34,
        34,
        34,
    ]


def test_features_of_a_known_board() -> None:
    board = ["00000", "01000", "01001", "00101", "10101"]
    # heights 1, 4, 2, 0, 3; holes: the two squares below the overhang of column 1
    assert features(board).tolist() == [4.0, 2.0, 9.0 + 4.0 + 4.0 + 9.0]
    assert features(np.zeros((6, 3), np.uint8)).tolist() == [0.0, 0.0, 0.0]


def test_four_rows_at_once() -> None:
    board = ["0000", "0100", "1110", "1110", "1110", "1110"]
    landing = drop(board, "I", 1, 3)
    assert (landing.row, landing.cleared) == (2, 4)
    assert landing.board.tolist() == [[0, 0, 0, 0]] * 5 + [[0, 1, 0, 0]]


def test_rows_that_fill_apart_from_one_another_are_removed_and_the_one_between_stays() -> None:
    board = ["0000", "0000", "0111", "0011", "0111"]
    landing = drop(board, "I", 1, 0)
    assert landing.cleared == 2
    assert landing.board.tolist() == [[0, 0, 0, 0]] * 3 + [[1, 0, 0, 0], [1, 0, 1, 1]]


def test_a_top_row_that_a_full_row_brings_down_does_not_end_the_game() -> None:
    landing = drop(["0000", "0111", "0110", "0110"], "I", 1, 0)
    assert (landing.row, landing.cleared) == (0, 1)
    assert not has_ended(landing.board)
    assert has_ended(drop(["0000", "0110", "0110", "0110"], "I", 1, 0).board)


def test_a_piece_that_would_stick_out_is_not_offered_even_if_it_would_complete_a_row() -> None:
    board = ["0000", "0111", "1011"]
    world = Tetris(3, 4)
    assert [0, 0] in world.placements(board, "I").tolist()
    assert not [p for p in world.placements(board, "I").tolist() if p[0] == 1]
    with pytest.raises(
        ValueError, match="the piece I cannot be placed with rotation 1 at column 0"
    ):
        world.drop(board, "I", 1, 0)


def test_a_piece_is_not_slid_in_below_an_overhang_at_the_top() -> None:
    # L turned three times stands as X., X., XX: at the top, its foot would lie free below the square at row 1.
    board = ["000", "010", "000", "000", "000"]
    world = Tetris(5, 3)
    assert rotations("L")[3].tolist() == [[1, 0], [1, 0], [1, 1]]
    assert [3, 0] not in world.placements(board, "L").tolist()


@pytest.mark.parametrize(
    "board", [["0001", "0000", "0000", "0000"], ["0000", "0110", "0110", "0110"]]
)
def test_a_game_that_has_ended_offers_nothing(board: list[str]) -> None:
    assert Tetris(4, 4).placements(board, "O").shape == (0, 2)
    assert has_ended(board) == (board[0] != "0000")


def test_a_controller_plays_by_the_rules_and_starts_again_when_a_game_has_ended() -> None:
    world = Tetris(8, 6)
    rollout = world.simulate(np.random.default_rng(3), [0.0, 5.0, 0.0], 300)
    assert rollout.games[-1] > 20
    for t in range(len(rollout) - 1):
        after = world.drop(
            rollout.boards[t], rollout.pieces[t], rollout.rotations[t], rollout.columns[t]
        ).board
        if rollout.games[t + 1] == rollout.games[t]:
            assert np.array_equal(rollout.boards[t + 1], after)
        else:
            assert rollout.games[t + 1] == rollout.games[t] + 1
            assert not rollout.boards[t + 1].any()
            assert has_ended(after) or any(
                not len(world.placements(after, piece)) for piece in PIECES
            )


def test_pieces_are_drawn_evenly() -> None:
    rollout = Tetris().simulate(np.random.default_rng(5), [-3, -15, -1], 7000)
    assert_uniform_ranks(rollout.pieces, 6)


def test_the_controller_takes_the_largest_noisy_utility() -> None:
    """Without a value the noise decides alone and evenly; with a large one the best is taken; in between, as the model says."""
    world = Tetris(12, 4)
    rollout = world.simulate(np.random.default_rng(6), [0.0, 0.0, 0.0], 5000)
    begin = world.decisions(rollout)[
        (rollout.pieces == PIECES.index("T")) & ~rollout.boards.any(axis=(1, 2))
    ]
    assert_uniform_ranks(begin.chosen, 9)
    value = np.array([-1e6, -3e6, 2e6])
    decisions = world.decisions(world.simulate(np.random.default_rng(7), value, 300))
    utilities = decisions.rows @ value
    assert (
        utilities[decisions.chosen_row] == np.maximum.reduceat(utilities, decisions.start[:-1])
    ).all()
    value = np.array([0.3, -0.6, 0.1])
    decisions = world.decisions(world.simulate(np.random.default_rng(8), value, 5000))
    probability = rv.choice_probabilities(decisions, value)
    best = np.maximum.reduceat(probability, decisions.start[:-1])
    assert_mean(
        (probability[decisions.chosen_row] == best).astype(float)
        - ties(probability, decisions.start),
        0.0,
    )


def ties(probability: Floats, start: Ints) -> Floats:
    """(T,) how probable it is that one of the likeliest actions is taken; equal ones are likeliest together."""
    best = np.repeat(np.maximum.reduceat(probability, start[:-1]), np.diff(start))
    return np.asarray(np.add.reduceat(probability * (probability == best), start[:-1]))


def test_decisions_carry_names_labels_and_the_placements_that_were_taken() -> None:
    world = Tetris()
    rollout = world.simulate(np.random.default_rng(1), [-3, -15, -1], 60)
    decisions = world.decisions(rollout)
    assert decisions.names == PAPER_FEATURES == ("height", "holes", "bumps")
    assert decisions.actions is not None
    for t, row in enumerate(decisions.chosen_row):
        assert (
            decisions.actions[row]
            == f"rotation {rollout.rotations[t]}, column {rollout.columns[t]}"
        )
        where, rows = world.placements_with_features(rollout.boards[t], rollout.pieces[t])
        assert np.array_equal(decisions.rows[decisions.start[t] : decisions.start[t + 1]], rows)
        assert len(where) == decisions.sizes[t]


def test_the_same_seed_plays_the_same_games() -> None:
    one, two = (Tetris().simulate(np.random.default_rng(9), [-20, 0, 1], 200) for _ in range(2))
    assert np.array_equal(one.boards, two.boards)
    assert np.array_equal(one.columns, two.columns)


def test_literal_actions_repeat_rows() -> None:
    world = Tetris(actions="literal")
    where, rows = world.placements_with_features(world.empty(), "O")
    assert np.array_equal(rows.reshape(4, 9, 3)[0], rows.reshape(4, 9, 3)[3])
    assert where[:, 0].tolist() == np.repeat(range(4), 9).tolist()


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda: Tetris(actions="all"), "actions is 'all'; it must be one of distinct, literal"),
        (lambda: Tetris(rows=0), "rows must be a whole number, at least 1"),
        (lambda: Tetris(3, 2), "the piece I does not fit on a board of 3 x 2"),
        (
            lambda: Tetris().placements(np.zeros((30, 9), np.uint8), "I"),
            "30 rows and 9 columns; this environment has 30 and 10",
        ),
        (
            lambda: Tetris().placements(Tetris().empty(), "X"),
            "the piece 'X' is unknown; the pieces are I, O, T",
        ),
        (lambda: Tetris().placements(Tetris().empty(), 7), "the piece 7 is unknown"),
        (lambda: features([[0, 2]]), "a board is a table of 0 and 1"),
        (lambda: features([[0, -1]]), "a board is a table of 0 and 1"),
        (lambda: features(["01", "0"]), "a board is a table of 0 and 1"),
        (lambda: features(3), "a board is a table of 0 and 1"),
        (
            lambda: drop(Tetris().empty(), "O", 0, 9),
            "the piece O cannot be placed with rotation 0 at column 9",
        ),
        (lambda: drop(Tetris().empty(), "O", 4, 0), "the piece O cannot be placed with rotation 4"),
        (lambda: drop(Tetris().empty(), "O", 0, -1), "at column -1"),
        (lambda: Tetris().simulate(-1, [0, 0, 0], 5), "seed must be a whole number, at least 0"),
        (
            lambda: Tetris().simulate(np.random.default_rng(1), [0, 0], 5),
            "value must be 3 finite numbers",
        ),
        (
            lambda: Tetris().simulate(np.random.default_rng(1), [0, 0, np.nan], 5),
            "value must be 3 finite numbers",
        ),
        (
            lambda: Tetris().simulate(np.random.default_rng(1), [0, 0, 0], 0),
            "count must be a whole number",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(act: object, sentence: str) -> None:
    assert callable(act)
    with pytest.raises(ValueError, match=sentence):
        act()


def test_a_path_with_an_illegal_placement_is_refused_by_its_decision() -> None:
    world = Tetris()
    rollout = world.simulate(np.random.default_rng(1), [-3, -15, -1], 5)
    columns = rollout.columns.copy()
    columns[3] = 10
    with pytest.raises(
        ValueError,
        match=r"decision 3: the placement of piece . with rotation . at column 10 is not legal",
    ):
        world.decisions(
            Rollout(rollout.boards, rollout.pieces, rollout.rotations, columns, rollout.games)
        )
    with pytest.raises(ValueError, match="5 boards of 20 x 10 are needed"):
        Tetris(20).decisions(rollout)
