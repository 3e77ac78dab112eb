"""Tetris on arrays (paper, section 5.2): where pieces rest, full rows removed, what a state offers, a game played.

A board is (rows, columns) of 0 and 1, the top row first. Every column of a piece is one unbroken run of squares, so a
piece in one rotation is its outline: `width`, and for each of its columns the rows of its `top` and `bottom` square,
counted from the piece's own top row. An outline's arrays are indexed by rotation here; the piece has been picked.
"""

import numpy as np

from understudy._arrays import Cells, Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.tetris_features import (
    BERTSEKAS,
    PAPER,
    RICH,
    measure,
    measure_columns,
    measure_more,
    measure_move,
)


@jit
def skyline(board: Cells, first: Ints) -> None:
    """Write the row of the topmost occupied square of each column; the number of rows for an empty one."""
    rows, columns = board.shape
    for j in range(columns):
        i = 0
        while i < rows and board[i, j] == 0:
            i += 1
        first[j] = i


@jit
def rest(first: Ints, width: int, bottom: Ints, column: int) -> int:
    """The row of the piece's top when it has fallen on the skyline; negative when it does not fit in below the top."""
    row = first[column] - 1 - bottom[0]
    for j in range(1, width):
        row = min(row, first[column + j] - 1 - bottom[j])
    return int(row)


@jit
def settle(board: Cells, row: int, column: int, width: int, top: Ints, bottom: Ints, after: Cells) -> int:
    """Write the board with the piece at rest and full rows removed; returns how many rows were full."""
    rows, columns = board.shape
    to = rows - 1
    for i in range(rows - 1, -1, -1):
        full = True
        for j in range(columns):
            k = j - column
            piece = 0 <= k < width and row + top[k] <= i <= row + bottom[k]
            after[to, j] = 1 if piece else board[i, j]
            full = full and after[to, j] == 1
        if not full:
            to -= 1
    for i in range(to + 1):
        for j in range(columns):
            after[i, j] = 0
    return int(to + 1)


@jit
def count_filled(board: Cells, filled: Ints) -> None:
    """Write the number of occupied squares of each column."""
    rows, columns = board.shape
    for j in range(columns):
        filled[j] = 0
    for i in range(rows):
        for j in range(columns):
            filled[j] += board[i, j]


@jit
def offer(
    kind: int, board: Cells, rotations: int, width: Ints, top: Ints, bottom: Ints, where: Ints, features: Floats
) -> int:
    """Write (rotation, column, row at rest) and the features of every legal placement; returns how many there are.

    A placement that fills no row changes the skyline under the piece and nothing else; only the others need a new board.
    """
    rows, columns = board.shape
    first, filled = np.empty(columns, np.int64), np.empty(columns, np.int64)
    new_first, new_filled = np.empty(columns, np.int64), np.empty(columns, np.int64)
    across = np.zeros(rows, np.int64)
    after = np.empty_like(board)
    skyline(board, first)
    count_filled(board, filled)
    for j in range(columns):
        if first[j] == 0:
            return 0
        for i in range(first[j], rows):
            across[i] += board[i, j]
    count = 0
    for r in range(rotations):
        w = width[r]
        for column in range(columns - w + 1):
            row = rest(first, w, bottom[r], column)
            if row < 0:
                continue
            for j in range(columns):
                new_first[j], new_filled[j] = first[j], filled[j]
            full = False
            for j in range(w):
                new_first[column + j] = row + top[r, j]
                for i in range(row + top[r, j], row + bottom[r, j] + 1):
                    new_filled[column + j] += 1
                    across[i] += 1
                    full = full or across[i] == columns
            eroded, tall = 0, 0
            for j in range(w):
                tall = max(tall, bottom[r, j] + 1)
                for i in range(row + top[r, j], row + bottom[r, j] + 1):
                    eroded += across[i] == columns
            for j in range(w):
                for i in range(row + top[r, j], row + bottom[r, j] + 1):
                    across[i] -= 1
            cleared = 0
            if full or kind > BERTSEKAS:
                cleared = settle(board, row, column, w, top[r], bottom[r], after)
                skyline(after, new_first)
                count_filled(after, new_filled)
            if kind == PAPER:
                measure(new_first, new_filled, rows, features[count])
            elif kind == BERTSEKAS:
                measure_columns(new_first, new_filled, rows, features[count])
            else:
                measure_move(after, row, tall, cleared, eroded, features[count])
                if kind == RICH:
                    measure_more(new_first, rows, cleared, features[count, 6:])
            where[count, 0], where[count, 1], where[count, 2] = r, column, row
            count += 1
    return count


@jit
def offers(
    kind: int, boards: Cells, pieces: Ints, rotations: Ints, width: Ints, top: Ints, bottom: Ints,
    start: Ints, where: Ints, features: Floats,
) -> None:  # fmt: skip
    """Stack the legal placements of many states; `start` says where those of each begin."""
    start[0] = 0
    for t in range(pieces.size):
        p, at = pieces[t], start[t]
        start[t + 1] = at + offer(kind, boards[t], rotations[p], width[p], top[p], bottom[p], where[at:], features[at:])


@jit
def play(
    kind: int, rng: np.random.Generator, board: Cells, value: Floats, rotations: Ints, width: Ints, top: Ints,
    bottom: Ints, boards: Cells, pieces: Ints, taken: Ints, games: Ints,
) -> None:  # fmt: skip
    """Write a noisy controller's states, placements (rotation, column, row) and the number of the game, from `board` on.

    When a game has ended, by an occupied top row or by a piece without room, an empty board and a new piece follow.
    """
    most = 4 * board.shape[1]
    where, features = np.empty((most, 3), np.int64), np.empty((most, value.size))
    board, after = board.copy(), np.empty_like(board)
    game = 0
    for t in range(pieces.size):
        p = int(rng.random() * rotations.size)
        count = offer(kind, board, rotations[p], width[p], top[p], bottom[p], where, features)
        while count == 0:
            game += 1
            board[:] = 0
            p = int(rng.random() * rotations.size)
            count = offer(kind, board, rotations[p], width[p], top[p], bottom[p], where, features)
        best, pick = -np.inf, 0
        for a in range(count):
            w = rng.standard_normal()
            for k in range(value.size):
                w += features[a, k] * value[k]
            if w > best:
                best, pick = w, a
        boards[t], pieces[t], games[t], taken[t] = board, p, game, where[pick]
        r, column, row = where[pick]
        settle(board, row, column, width[p, r], top[p, r], bottom[p, r], after)
        board, after = after, board
