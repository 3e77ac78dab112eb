"""Features of a Tetris board after a placement: the paper's three, and three richer sets.

Two arrays describe the surface of a board of `rows` rows:

    column_top    (columns,)  the row of each column's topmost occupied square; `rows` when empty
    column_count  (columns,)  how many squares of each column are occupied

so the height of column j is `rows - column_top[j]`, and its holes are the height minus
`column_count[j]`. Every function writes its features into `out`.

Singh, Chopin and Whiteley (2013), section 5.2; Bertsekas and Tsitsiklis (1996), Neuro-dynamic
programming; Fahey (2003), Tetris AI, for Dellacherie's features.
"""

from typing import NamedTuple

from revealed._types import Cells, Floats, Ints
from revealed.kernels._compile import compiled


class FeatureSetCodes(NamedTuple):
    """The numbers by which compiled loops know the feature sets."""

    paper: int
    bertsekas: int
    dellacherie: int
    rich: int


FEATURE_SETS = FeatureSetCodes(paper=0, bertsekas=1, dellacherie=2, rich=3)


@compiled
def write_paper_features(column_top: Ints, column_count: Ints, rows: int, out: Floats) -> None:
    """Write height, holes and bumps, the paper's three features (section 5.2).

    Height is the largest column height, holes the empty squares below an occupied one, and
    bumps the sum of squared height differences of adjacent columns.
    """
    # one pass over the columns, each compared with its left neighbour
    height, holes, bumps = 0, 0, 0
    for j in range(column_top.size):
        height = max(height, rows - column_top[j])
        holes += rows - column_top[j] - column_count[j]
        if j > 0:
            bumps += (column_top[j] - column_top[j - 1]) ** 2
    out[0], out[1], out[2] = height, holes, bumps


@compiled
def write_bertsekas_features(column_top: Ints, column_count: Ints, rows: int, out: Floats) -> None:
    """Write the 2 x columns + 1 features of Bertsekas and Tsitsiklis (1996).

    Every column's height, every absolute difference between neighbours, the largest height, and
    the number of holes, in this order.
    """
    # heights first, then steps, then the two that look at all columns
    columns = column_top.size
    height, holes = 0, 0
    for j in range(columns):
        out[j] = rows - column_top[j]
        height = max(height, rows - column_top[j])
        holes += rows - column_top[j] - column_count[j]
        if j > 0:
            out[columns + j - 1] = abs(column_top[j] - column_top[j - 1])
    out[2 * columns - 1], out[2 * columns] = height, holes


@compiled
def write_dellacherie_features(
    after: Cells, row: int, piece_rows: int, cleared: int, eroded: int, out: Floats
) -> None:
    """Write Dellacherie's six features of a placement (Fahey 2003).

    They are landing height, eroded squares, row transitions, column transitions, holes and
    wells. `after` is the board with full rows removed. `row` and `piece_rows` are top row and
    height of the piece at rest, before the removal; `eroded` counts its squares in full rows.
    Walls and floor count as occupied, the sky does not. A well is a run of empty squares between
    occupied neighbours; one of depth d counts 1 + ... + d.
    """
    rows, columns = after.shape
    row_transitions, column_transitions, holes, wells = 0, 0, 0, 0
    # Along each row, from the left wall (occupied) to the right wall.
    for i in range(rows):
        before = 1
        for j in range(columns):
            row_transitions += after[i, j] != before
            before = after[i, j]
        row_transitions += before == 0
    # Down each column, from the sky (free) to the floor; holes and wells on the way.
    for j in range(columns):
        before, covered, depth = 0, False, 0
        for i in range(rows):
            square = after[i, j]
            column_transitions += square != before
            before = square
            covered = covered or square == 1
            holes += covered and square == 0
            walled = (j == 0 or after[i, j - 1] == 1) and (j == columns - 1 or after[i, j + 1] == 1)
            # Adding the depth at each square of a well makes 1 + ... + d of it.
            depth = depth + 1 if walled and square == 0 else 0
            wells += depth
        column_transitions += before == 0
    # The landing height is that of the piece's middle; erosion is rows times squares lost.
    out[0], out[1], out[2] = rows - row - 0.5 * (piece_rows - 1), cleared * eroded, row_transitions
    out[3], out[4], out[5] = column_transitions, holes, wells


@compiled
def write_rich_features(column_top: Ints, rows: int, cleared: int, out: Floats) -> None:
    """Write the six features that the rich set adds to Dellacherie's.

    Height, bumps, the heights of the left and the right edge, rows removed, and whether they
    were four at once, which is what a player who saves up for four looks at.
    """
    height, bumps = 0, 0
    for j in range(column_top.size):
        height = max(height, rows - column_top[j])
        if j > 0:
            bumps += (column_top[j] - column_top[j - 1]) ** 2
    out[0], out[1] = height, bumps
    out[2], out[3] = rows - column_top[0], rows - column_top[-1]
    out[4], out[5] = cleared, cleared == 4
