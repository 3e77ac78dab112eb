"""The richer features of Tetris against slow counts of the same, and a user's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revealed as rv
from revealed._types import Cells
from revealed.environments.tetris import PIECES, Move, Tetris, drop, features, tetris_with_features
from revealed.environments.tetris.features import FEATURE_SETS, feature_set_named
from revealed.environments.tetris.pieces import rotations


def random_board(seed: int, rows: int = 9, columns: int = 6) -> Cells:
    """A ragged heap, with holes, that leaves the upper rows free."""
    rng = np.random.default_rng(seed)
    board = np.zeros((rows, columns), np.uint8)
    board[4:] = rng.random((rows - 4, columns)) < rng.uniform(0.2, 0.9)
    board[np.arange(rows), rng.integers(columns, size=rows)] = (
        0  # a full row is never seen: it has been removed
    )
    return board


def by_column(board: Cells) -> list[float]:
    """Heights, steps between neighbours, the largest height, holes; square by square."""
    rows, columns = board.shape
    heights = [next((rows - i for i in range(rows) if board[i, j]), 0) for j in range(columns)]
    holes = sum(
        1 for j in range(columns) for i in range(rows) if not board[i, j] and board[:i, j].any()
    )
    return [
        *heights,
        *(abs(heights[j + 1] - heights[j]) for j in range(columns - 1)),
        max(heights),
        holes,
    ]


def of_move(before: Cells, piece: str, rotation: int, column: int) -> list[float]:
    """Dellacherie's six, by their definitions, with the walls written into the board."""
    shape = rotations(piece, "literal")[rotation]
    landing = drop(before, piece, rotation, column)
    rows, columns = before.shape
    full = before.copy()
    full[landing.row : landing.row + shape.shape[0], column : column + shape.shape[1]] |= shape
    gone = [i for i in range(rows) if full[i].all()]
    eroded = sum(
        int(shape[i - landing.row].sum()) for i in gone if 0 <= i - landing.row < shape.shape[0]
    )
    after = landing.board
    walled = np.ones((rows, columns + 2), np.uint8)
    walled[:, 1:-1] = after
    floored = np.vstack([np.zeros((1, columns), np.uint8), after, np.ones((1, columns), np.uint8)])
    wells = 0
    for j in range(columns):
        run = 0
        for i in range(rows):
            run = run + 1 if not after[i, j] and walled[i, j] and walled[i, j + 2] else 0
            wells += run
    top, bottom = rows - landing.row, rows - landing.row - shape.shape[0] + 1
    across, down = (
        np.abs(np.diff(cells.astype(int), axis=axis)).sum()
        for cells, axis in ((walled, 1), (floored, 0))
    )
    return [0.5 * (top + bottom), len(gone) * eroded, across, down, by_column(after)[-1], wells]


def rich(before: Cells, piece: str, rotation: int, column: int) -> list[float]:
    """Dellacherie's six, and the six that look at the whole board and at what was removed."""
    landing = drop(before, piece, rotation, column)
    heights = np.array(by_column(landing.board)[: before.shape[1]])
    edges = [heights.max(), np.sum(np.diff(heights) ** 2), heights[0], heights[-1]]
    return [
        *of_move(before, piece, rotation, column),
        *edges,
        landing.cleared,
        float(landing.cleared == 4),
    ]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(PIECES), st.sampled_from(["distinct", "literal"]))
def test_every_placement_has_the_features_that_a_slow_count_finds(
    seed: int, piece: str, actions: str
) -> None:
    board = random_board(seed)
    worlds = {name: Tetris(9, 6, actions, features=name) for name in FEATURE_SETS}
    where, paper = worlds["paper"].placements_with_features(board, piece)
    for i, (rotation, column) in enumerate(where.tolist()):
        after = drop(board, piece, rotation, column).board
        np.testing.assert_array_equal(paper[i], features(after))
        np.testing.assert_array_equal(
            worlds["bertsekas"].placements_with_features(board, piece)[1][i], by_column(after)
        )
        np.testing.assert_array_equal(
            worlds["dellacherie"].placements_with_features(board, piece)[1][i],
            of_move(board, piece, rotation, column),
        )
        np.testing.assert_array_equal(
            worlds["rich"].placements_with_features(board, piece)[1][i],
            rich(board, piece, rotation, column),
        )


def test_a_move_that_removes_rows_by_hand() -> None:
    """The bar stands up in the gap: one row goes with one of its squares, and three squares stay in a well's place."""
    world = Tetris(6, 4, features="dellacherie")
    where, rows = world.placements_with_features(
        ["0000", "0000", "0000", "0000", "1010", "1011"], "I"
    )
    found = dict(zip(map(tuple, where.tolist()), rows.tolist(), strict=True))[(1, 1)]
    # landing rows 2 to 5: heights 1 to 4, centre 2.5; the bottom row is full and goes with one square of the bar
    assert dict(zip(FEATURE_SETS["dellacherie"].names(4), found, strict=True)) == {
        "landing height": 2.5,
        "eroded": 1.0,
        "row transitions": 3 * 2 + 2 * 4 + 2,
        "column transitions": 4,
        "holes": 0.0,
        "wells": (1 + 2) + 1,
    }


def test_four_rows_at_once_are_told_from_four_one_by_one() -> None:
    world = Tetris(8, 4, features="rich")
    where, rows = world.placements_with_features(["0000"] * 4 + ["1110"] * 4, "I")
    found = dict(zip(map(tuple, where.tolist()), rows.tolist(), strict=True))[(1, 3)]
    assert dict(zip(world.feature_names, found, strict=True)) == {
        "landing height": 2.5,
        "eroded": 16.0,
        "row transitions": 16,
        "column transitions": 4,
        "holes": 0.0,
        "wells": 0.0,
        "height": 0.0,
        "bumps": 0.0,
        "left edge": 0.0,
        "right edge": 0.0,
        "lines": 4.0,
        "four lines": 1.0,
    }


def test_there_are_twenty_one_of_bertsekas_and_tsitsiklis_on_ten_columns() -> None:
    assert len(Tetris(features="bertsekas").feature_names) == 21


def lines_and_height(move: Move) -> list[float]:
    return [move.cleared, float(move.board.any(axis=1).sum())]


def test_a_function_of_ones_own_is_a_feature_set_like_any_other() -> None:
    world = Tetris(12, 6, features=lines_and_height, names=["cleared", "tall"])
    rng = np.random.default_rng(3)
    path = world.simulate(rng, [1.0, -2.0], 40)
    seen = world.decisions(path)
    assert seen.names == ("cleared", "tall")
    where, rows = world.placements_with_features(path.boards[7], int(path.pieces[7]))
    np.testing.assert_array_equal(seen.rows[seen.start[7] : seen.start[8]], rows)
    landing = drop(path.boards[7], int(path.pieces[7]), *where[0].tolist())
    assert rows[0].tolist() == [landing.cleared, landing.board.any(axis=1).sum()]
    model = rv.ChoiceModel(prior=rv.Normal(5.0))
    assert rv.fit(seen, model, draws=200, progress=False)["tall"].mean() < 0


def test_the_world_a_posterior_can_play_in_is_known_by_its_names() -> None:
    for name in FEATURE_SETS:
        assert tetris_with_features(Tetris(features=name).feature_names).features == name
    with pytest.raises(
        ValueError, match="V\\(0\\), V\\(1\\): these are not the features of a named set"
    ):
        feature_set_named(["V(0)", "V(1)"], 10)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"features": "all"},
            "features is 'all'; it must be one of paper, bertsekas, dellacherie, rich, or a function",
        ),
        ({"names": ["a"]}, "the features 'paper' have names of their own; leave names out"),
    ],
)
def test_bad_feature_sets_get_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", "\\(")):
        Tetris(**arguments)  # type: ignore[arg-type]


def test_a_function_that_is_not_finite_or_changes_its_mind_gets_a_sentence() -> None:
    def uneven(move: Move) -> list[float]:
        return [1.0] * (1 + move.column)

    with pytest.raises(ValueError, match="must return as many finite numbers for every move"):
        Tetris(features=uneven).placements_with_features(Tetris().empty(), "T")
    with pytest.raises(ValueError, match="must return as many finite numbers"):
        Tetris(features=lambda move: [np.nan]).placements_with_features(Tetris().empty(), "T")
    with pytest.raises(
        ValueError, match="3 names were given, but the feature function returns 2 numbers"
    ):
        Tetris(features=lines_and_height, names=["a", "b", "c"]).simulate(
            np.random.default_rng(0), [1.0, 1.0], 3
        )
