"""The stacked rows as a linear map: X v, and X' y.

Dense rows are held by column, so that both products run along contiguous memory; tabular designs with a handful of
non-zeros a row are held as compressed sparse rows.
"""

from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import reduction


class Design(NamedTuple):
    """X of shape (P, K): `columns` is X' when dense and empty when sparse; the other three are its sparse rows."""

    columns: Floats
    indptr: Ints
    indices: Ints
    data: Floats

    @staticmethod
    def of(rows: Any) -> "Design":
        """A design from rows that are dense, or compressed sparse rows."""
        return Design.sparse(rows.indptr, rows.indices, rows.data) if hasattr(rows, "indptr") else Design.dense(rows)

    @staticmethod
    def dense(rows: Floats) -> "Design":
        """A design from a dense (P, K) array."""
        none = np.zeros(0, dtype=np.int64)
        return Design(np.ascontiguousarray(rows.T), none, none, np.zeros(0))

    @staticmethod
    def sparse(indptr: Ints, indices: Ints, data: Floats) -> "Design":
        """A design from compressed sparse rows."""
        return Design(np.zeros((0, 0)), indptr.astype(np.int64), indices.astype(np.int64), data.astype(np.float64))


@reduction
def multiply(design: Design, v: Floats, out: Floats) -> None:
    """Write X v into out (P,)."""
    columns, indptr, indices, data = design
    if columns.size > 0:
        for p in range(out.size):
            out[p] = columns[0, p] * v[0]
        for k in range(1, v.size):
            coefficient = v[k]
            for p in range(out.size):
                out[p] += columns[k, p] * coefficient
    else:
        for p in range(out.size):
            total = 0.0
            for i in range(indptr[p], indptr[p + 1]):
                total += data[i] * v[indices[i]]
            out[p] = total


@reduction
def transpose_multiply(design: Design, y: Floats, out: Floats) -> None:
    """Write X' y into out (K,)."""
    columns, indptr, indices, data = design
    if columns.size > 0:
        for k in range(out.size):
            total = 0.0
            for p in range(y.size):
                total += columns[k, p] * y[p]
            out[k] = total
    else:
        out[:] = 0.0
        for p in range(y.size):
            for i in range(indptr[p], indptr[p + 1]):
                out[indices[i]] += data[i] * y[p]


@reduction
def dot(x: Floats, y: Floats) -> float:
    """x'y."""
    total = 0.0
    for p in range(x.size):
        total += x[p] * y[p]
    return total
