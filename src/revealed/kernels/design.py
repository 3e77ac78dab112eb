"""The stacked rows as a linear map: X v, and X' y.

Dense rows are held by column, so that both products run along contiguous memory; tabular designs
with a handful of non-zeros a row are held as compressed sparse rows.
"""

from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled_within
from revealed.kernels.vectors import dot, multiply_add


class Design(NamedTuple):
    """A matrix X of shape (P, K), dense or sparse.

    columns: (K, P) X' when dense, empty when sparse. indptr, indices, data: X in compressed sparse
    rows when sparse, empty when dense.
    """

    columns: Floats
    indptr: Ints
    indices: Ints
    data: Floats

    @staticmethod
    def from_rows(rows: Any) -> "Design":
        """A design from rows (P, K): a dense array, or a scipy matrix of compressed sparse rows."""
        return (
            Design.from_csr(rows.indptr, rows.indices, rows.data)
            if hasattr(rows, "indptr")
            else Design.from_dense(rows)
        )

    @staticmethod
    def from_dense(rows: Floats) -> "Design":
        """A design from a dense (P, K) array."""
        # Both kinds have the same fields and types, so that a loop is compiled once for them.
        none = np.zeros(0, dtype=np.int64)
        return Design(np.ascontiguousarray(rows.T), none, none, np.zeros(0))

    @staticmethod
    def from_csr(indptr: Ints, indices: Ints, data: Floats) -> "Design":
        """A design from the three arrays of compressed sparse rows."""
        return Design(
            np.zeros((0, 0)),
            indptr.astype(np.int64),
            indices.astype(np.int64),
            data.astype(np.float64),
        )


@compiled_within
def multiply(design: Design, v: Floats, out: Floats) -> None:
    """Write X v into out (P,), for v (K,).

    Dense: one pass over out for each column, whose entries lie side by side. Sparse: row by row.
    """
    columns, indptr, indices, data = design
    if columns.size > 0:
        # The first column sets what the others add to: no pass to zero the output.
        for p in range(out.size):
            out[p] = columns[0, p] * v[0]
        for k in range(1, v.size):
            # Read once: the compiler cannot know that `out` and `v` do not overlap.
            coefficient = v[k]
            for p in range(out.size):
                out[p] = multiply_add(columns[k, p], coefficient, out[p])
    else:
        for p in range(out.size):
            total = 0.0
            for i in range(indptr[p], indptr[p + 1]):
                total = multiply_add(data[i], v[indices[i]], total)
            out[p] = total


@compiled_within
def transpose_multiply(design: Design, y: Floats, out: Floats) -> None:
    """Write X' y into out (K,), for y (P,).

    Dense: an inner product for each column. Sparse: each row adds to the columns it has.
    """
    columns, indptr, indices, data = design
    if columns.size > 0:
        for k in range(out.size):
            out[k] = dot(columns[k], y)
    else:
        # Rows are met in order, columns are not: start from zero.
        out[:] = 0.0
        for p in range(y.size):
            for i in range(indptr[p], indptr[p + 1]):
                out[indices[i]] = multiply_add(data[i], y[p], out[indices[i]])
