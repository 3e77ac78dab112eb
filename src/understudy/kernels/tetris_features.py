"""What a board of Tetris looks like after a placement, in numbers: the paper's three, and three richer sets.

`first` (columns,) is the skyline, the row of each column's topmost occupied square; `filled` (columns,) counts occupied squares.
"""

from understudy._arrays import Cells, Floats, Ints
from understudy.kernels._jit import jit

PAPER, BERTSEKAS, DELLACHERIE, RICH = 0, 1, 2, 3


@jit
def measure(first: Ints, filled: Ints, rows: int, out: Floats) -> None:
    """Height, holes, bumps (paper, section 5.2)."""
    height, holes, bumps = 0, 0, 0
    for j in range(first.size):
        height = max(height, rows - first[j])
        holes += rows - first[j] - filled[j]
        if j > 0:
            bumps += (first[j] - first[j - 1]) ** 2
    out[0], out[1], out[2] = height, holes, bumps


@jit
def measure_columns(first: Ints, filled: Ints, rows: int, out: Floats) -> None:
    """Every column's height, every step between neighbours, the largest height, holes (Bertsekas and Tsitsiklis 1996)."""
    columns = first.size
    height, holes = 0, 0
    for j in range(columns):
        out[j] = rows - first[j]
        height = max(height, rows - first[j])
        holes += rows - first[j] - filled[j]
        if j > 0:
            out[columns + j - 1] = abs(first[j] - first[j - 1])
    out[2 * columns - 1], out[2 * columns] = height, holes


@jit
def measure_move(after: Cells, row: int, tall: int, cleared: int, eroded: int, out: Floats) -> None:
    """Landing height, eroded squares, transitions in rows and columns, holes, wells (Dellacherie; Fahey 2003).

    row, tall: of the piece at rest, before full rows go. eroded: its squares that go with them. Walls and floor count as
    occupied, the sky does not. A well is a run of empty squares between occupied ones; one of depth d counts 1 + ... + d.
    """
    rows, columns = after.shape
    across, down, holes, wells = 0, 0, 0, 0
    for i in range(rows):
        before = 1
        for j in range(columns):
            across += after[i, j] != before
            before = after[i, j]
        across += before == 0
    for j in range(columns):
        before, covered, depth = 0, False, 0
        for i in range(rows):
            here = after[i, j]
            down += here != before
            before = here
            covered = covered or here == 1
            holes += covered and here == 0
            walled = (j == 0 or after[i, j - 1] == 1) and (j == columns - 1 or after[i, j + 1] == 1)
            depth = depth + 1 if walled and here == 0 else 0
            wells += depth
        down += before == 0
    out[0], out[1], out[2] = rows - row - 0.5 * (tall - 1), cleared * eroded, across
    out[3], out[4], out[5] = down, holes, wells


@jit
def measure_more(first: Ints, rows: int, cleared: int, out: Floats) -> None:
    """Height, bumps, the heights of both edges, rows removed, and whether they were four at once."""
    height, bumps = 0, 0
    for j in range(first.size):
        height = max(height, rows - first[j])
        if j > 0:
            bumps += (first[j] - first[j - 1]) ** 2
    out[0], out[1], out[2], out[3] = height, bumps, rows - first[0], rows - first[-1]
    out[4], out[5] = cleared, cleared == 4
