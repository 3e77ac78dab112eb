"""Tetris on arrays: where pieces land, which rows are full, what a state offers, games played.

The game is that of Singh, Chopin and Whiteley (2013), section 5.2. A board is (rows, columns) of
0 and 1, the top row first. Every column of a piece is one unbroken run of squares, so a piece in
one rotation is fully described by its outline (`Outlines`): its width, and for each of its
columns the rows of the topmost and of the lowest square, counted from the piece's own top row.
A piece whose outline has lowest squares b_j, dropped at column c, comes to rest with its top in

    row = min over its columns j of (column_top[c + j] - 1 - b_j)
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Cells, Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.tetris_features import (
    FEATURE_SETS,
    write_bertsekas_features,
    write_dellacherie_features,
    write_paper_features,
    write_rich_features,
)


class Outlines(NamedTuple):
    """The seven pieces as outlines; the first axis is the piece, the second the rotation.

    `rotations` (7,) is how many rotations of each piece are offered. `width` is (7, 4). `top`
    and `bottom` (7, 4, 4) hold, for each column of the piece, the rows of its topmost and of its
    lowest square; entries beyond `width` are not read.
    """

    rotations: Ints
    width: Ints
    top: Ints
    bottom: Ints


@compiled
def find_column_tops(board: Cells, column_top: Ints) -> None:
    """Write the row of the topmost occupied square of each column into `column_top`.

    An empty column gets the number of rows.
    """
    rows, columns = board.shape
    for j in range(columns):
        # down from the top, until a square is occupied
        i = 0
        while i < rows and board[i, j] == 0:
            i += 1
        column_top[j] = i


@compiled
def count_column_squares(board: Cells, column_count: Ints) -> None:
    """Write the number of occupied squares of each column into `column_count`."""
    rows, columns = board.shape
    for j in range(columns):
        column_count[j] = 0
    for i in range(rows):
        for j in range(columns):
            column_count[j] += board[i, j]


@compiled
def landing_row(column_top: Ints, width: int, bottom: Ints, column: int) -> int:
    """The row of the piece's top square when it has fallen onto the surface `column_top`.

    Negative when the piece would stick out above the board.
    """
    # the first column to meet the surface stops the piece
    row = column_top[column] - 1 - bottom[0]
    for j in range(1, width):
        row = min(row, column_top[column + j] - 1 - bottom[j])
    return int(row)


@compiled
def place_and_clear(
    board: Cells, row: int, column: int, width: int, top: Ints, bottom: Ints, after: Cells
) -> int:
    """Write the board with the piece at rest and full rows removed into `after`.

    Returns how many rows were full.
    """
    rows, columns = board.shape
    # From the bottom up, each row is copied to the lowest free row of `after`. A row that turns
    # out full is overwritten by the next one, which removes it.
    target = rows - 1
    for i in range(rows - 1, -1, -1):
        full = True
        for j in range(columns):
            k = j - column
            in_piece = 0 <= k < width and row + top[k] <= i <= row + bottom[k]
            after[target, j] = 1 if in_piece else board[i, j]
            full = full and after[target, j] == 1
        if not full:
            target -= 1
    # As many empty rows appear at the top as were removed.
    for i in range(target + 1):
        for j in range(columns):
            after[i, j] = 0
    return int(target + 1)


@compiled
def legal_placements(
    feature_set: int,
    board: Cells,
    shapes: Outlines,
    piece: int,
    placements: Ints,
    features: Floats,
) -> int:
    """Write every legal placement of a piece and its features; returns how many there are.

    A row of `placements` is (rotation, column, row at rest), by rotation and then from left to
    right; the same row of `features` holds the features of the board after it. `feature_set` is
    one of `FEATURE_SETS`. A placement that fills no row changes the surface under the piece and
    nothing else; only the others need a new board.
    """
    rows, columns = board.shape
    width, top, bottom = shapes.width[piece], shapes.top[piece], shapes.bottom[piece]
    column_top, column_count = np.empty(columns, np.int64), np.empty(columns, np.int64)
    new_top, new_count = np.empty(columns, np.int64), np.empty(columns, np.int64)
    row_count = np.zeros(rows, np.int64)
    after = np.empty_like(board)
    find_column_tops(board, column_top)
    count_column_squares(board, column_count)
    # Occupied squares of each row; an occupied top row has ended the game.
    for j in range(columns):
        if column_top[j] == 0:
            return 0
        for i in range(column_top[j], rows):
            row_count[i] += board[i, j]
    count = 0
    for r in range(shapes.rotations[piece]):
        w = width[r]
        for column in range(columns - w + 1):
            # A placement that sticks out at the top is not legal.
            row = landing_row(column_top, w, bottom[r], column)
            if row < 0:
                continue
            # Put the piece on the surface, and see whether it fills a row.
            for j in range(columns):
                new_top[j], new_count[j] = column_top[j], column_count[j]
            full = False
            for j in range(w):
                new_top[column + j] = row + top[r, j]
                for i in range(row + top[r, j], row + bottom[r, j] + 1):
                    new_count[column + j] += 1
                    row_count[i] += 1
                    full = full or row_count[i] == columns
            # Squares of the piece in full rows, and its height; then take it off again.
            eroded, piece_rows = 0, 0
            for j in range(w):
                piece_rows = max(piece_rows, bottom[r, j] + 1)
                for i in range(row + top[r, j], row + bottom[r, j] + 1):
                    eroded += row_count[i] == columns
            for j in range(w):
                for i in range(row + top[r, j], row + bottom[r, j] + 1):
                    row_count[i] -= 1
            # A new board is only made where a row goes, or where the features need it.
            cleared = 0
            if full or feature_set > FEATURE_SETS.bertsekas:
                cleared = place_and_clear(board, row, column, w, top[r], bottom[r], after)
                find_column_tops(after, new_top)
                count_column_squares(after, new_count)
            # Each set writes its own columns; the rich one adds to Dellacherie's.
            if feature_set == FEATURE_SETS.paper:
                write_paper_features(new_top, new_count, rows, features[count])
            elif feature_set == FEATURE_SETS.bertsekas:
                write_bertsekas_features(new_top, new_count, rows, features[count])
            else:
                write_dellacherie_features(after, row, piece_rows, cleared, eroded, features[count])
                if feature_set == FEATURE_SETS.rich:
                    write_rich_features(new_top, rows, cleared, features[count, 6:])
            placements[count, 0], placements[count, 1], placements[count, 2] = r, column, row
            count += 1
    return count


@compiled
def stack_legal_placements(
    feature_set: int,
    boards: Cells,
    pieces: Ints,
    shapes: Outlines,
    start: Ints,
    placements: Ints,
    features: Floats,
) -> None:
    """Write the legal placements of many states, one state after the other.

    Those of state t are rows `start[t]` to `start[t + 1]` of `placements` and `features`.
    """
    start[0] = 0
    for t in range(pieces.size):
        # the next state's rows follow those of this one
        begin = start[t]
        start[t + 1] = begin + legal_placements(
            feature_set, boards[t], shapes, pieces[t], placements[begin:], features[begin:]
        )


@compiled
def simulate_games(
    feature_set: int,
    rng: np.random.Generator,
    board: Cells,
    value: Floats,
    shapes: Outlines,
    boards: Cells,
    pieces: Ints,
    chosen: Ints,
    games: Ints,
) -> None:
    """Write what a noisy controller does from `board` on: states, placements, game numbers.

    At each step the piece is drawn evenly, and the placement with the largest utility

        w_a = e_a + features_a @ value,    e_a ~ N(0, 1)

    is chosen. `boards`, `pieces`, `chosen` (rotation, column, row) and `games` get one entry a
    step. When a game has ended, by an occupied top row or by a piece that does not fit, the next
    step begins a new game with an empty board and a new piece.
    """
    # four rotations at every column are the most there can be
    max_placements = 4 * board.shape[1]
    placements = np.empty((max_placements, 3), np.int64)
    features = np.empty((max_placements, value.size))
    board, after = board.copy(), np.empty_like(board)
    game = 0
    for t in range(pieces.size):
        piece = int(rng.random() * shapes.rotations.size)
        count = legal_placements(feature_set, board, shapes, piece, placements, features)
        # Nothing is legal: the game has ended, and another begins.
        while count == 0:
            game += 1
            board[:] = 0
            piece = int(rng.random() * shapes.rotations.size)
            count = legal_placements(feature_set, board, shapes, piece, placements, features)
        # The largest utility wins.
        best, pick = -np.inf, 0
        for a in range(count):
            w = rng.standard_normal()
            for k in range(value.size):
                w += features[a, k] * value[k]
            if w > best:
                best, pick = w, a
        boards[t], pieces[t], games[t], chosen[t] = board, piece, game, placements[pick]
        r, column, row = placements[pick]
        place_and_clear(
            board,
            row,
            column,
            shapes.width[piece, r],
            shapes.top[piece, r],
            shapes.bottom[piece, r],
            after,
        )
        board, after = after, board
