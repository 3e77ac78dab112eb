"""Decisions: what a controller was offered, and what it took (paper, section 2).

A controller makes T decisions. Decision t offers M_t actions, and each action is a row of K numbers: the
probabilities of the next states, the expected features of the next state, a player's indicator. All rows
are stacked, so choice sets of different sizes need no padding:

    rows   (P, K)    P = sum of M_t
    start  (T + 1,)  rows[start[t]:start[t + 1]] are the actions of decision t
    chosen (T,)      which of them was taken, counted from zero within the decision

Every special case of the paper is a builder of these three arrays, and no engine knows which one it got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Ints

Rows = Any  # a dense Floats array, or a scipy.sparse.csr_array


@dataclass(frozen=True)
class Block:
    """A run of coefficients that belong together. Centred: only their differences matter, so they sum to zero.

    >>> d = us.Decisions(np.eye(3), [0, 3], [1], blocks=[us.Block("places", 3, centred=True)])
    >>> us.fit(d, us.Gaussian(1.0)).mean.sum().round(9) + 0.0  # only differences matter
    np.float64(0.0)
    """

    name: str
    size: int
    centred: bool = False


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Decisions:
    """T decisions as stacked rows; frozen, and checked when made.

    Args:
        rows: (P, K) finite numbers, a dense array or any scipy sparse matrix; one row an action.
        start: (T + 1,) where each decision's rows begin, ending with P.
        chosen: (T,) the action taken, from 0 to M_t - 1; None where choices were not seen (to predict them).
        names: K coefficient names; default ``v0, v1, ...``.
        actions: P labels of the rows, such as "left"; optional.
        groups: T labels of who decided; optional.
        group_name: what a group is, such as "player"; optional.
        blocks: the coefficient blocks in order, each a ``Block``; default one block that is not centred.
        ids: T labels of the decisions, used in tables and messages; default 0, 1, ...

    >>> d = us.Decisions([[0.8, 0.2], [0.3, 0.7]], start=[0, 2], chosen=[1])
    >>> len(d), d.names
    (1, ('v0', 'v1'))
    """

    rows: Rows
    start: Ints
    chosen: Ints | None
    names: tuple[str, ...]
    actions: np.ndarray[Any, Any] | None
    groups: np.ndarray[Any, Any] | None
    group_name: str | None
    blocks: tuple[Block, ...]
    ids: np.ndarray[Any, Any]

    def __init__(
        self,
        rows: Any,
        start: Any,
        chosen: Any = None,
        *,
        names: Sequence[str] | None = None,
        actions: Any = None,
        groups: Any = None,
        group_name: str | None = None,
        blocks: Sequence[Block] | None = None,
        ids: Any = None,
    ) -> None:
        def put(field: str, value: Any) -> None:
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field, value)

        put("start", _starts(start))
        count = len(self.start) - 1
        put("ids", np.arange(count) if ids is None else _labels("ids", ids, count, "decision"))
        put("rows", _rows(rows))
        if self.start[-1] != self.rows.shape[0]:
            raise ValueError(f"start ends with {self.start[-1]}, but there are {self.rows.shape[0]} rows")
        empty = np.flatnonzero(np.diff(self.start) == 0)
        if empty.size:
            raise ValueError(f"decision {self.ids[empty[0]]}: no action is offered; every decision needs at least one")
        self._refuse_bad_numbers()
        put("chosen", None if chosen is None else self._chosen(chosen))

        width = self.rows.shape[1]
        put("names", tuple(f"v{k}" for k in range(width)) if names is None else tuple(map(str, names)))
        if len(self.names) != width:
            raise ValueError(f"{len(self.names)} names for {width} coefficients; give one name for each column of rows")
        if len(set(self.names)) != width:
            twice = next(n for n in self.names if self.names.count(n) > 1)
            raise ValueError(f"the coefficient name {twice!r} is used twice; names must differ")
        put("actions", None if actions is None else _labels("actions", actions, self.rows.shape[0], "row"))
        put("groups", None if groups is None else _labels("groups", groups, count, "decision"))
        put("group_name", None if groups is None else group_name)
        put("blocks", (Block("value", width),) if blocks is None else tuple(blocks))
        if any(b.size < 1 for b in self.blocks) or sum(b.size for b in self.blocks) != width:
            sizes = ", ".join(f"{b.name}: {b.size}" for b in self.blocks)
            raise ValueError(f"blocks ({sizes}) must be non-empty and cover the {width} coefficients exactly")

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def taken(self) -> Ints:
        """(T,) the row index of each chosen action; refuses decisions whose choices were not seen."""
        if self.chosen is None:
            raise ValueError(
                "these decisions carry no choices (chosen is None), and this needs to know what was chosen"
            )
        return self.start[:-1] + self.chosen

    @property
    def sizes(self) -> Ints:
        """(T,) how many actions each decision offers."""
        return np.diff(self.start)

    @property
    def decision_of_row(self) -> Ints:
        """(P,) the decision each row belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)

    def first(self, count: int) -> Decisions:
        """The first `count` decisions."""
        if not 1 <= count <= len(self):
            raise ValueError(f"first({count}): there are {len(self)} decisions; ask for 1 to {len(self)}")
        return self[:count]

    def __getitem__(self, which: slice | int | Sequence[int] | Ints) -> Decisions:
        """The decisions picked by a slice, a position, a list of positions or a mask, in that order."""
        picked = np.atleast_1d(np.arange(len(self), dtype=np.int64)[which])
        if picked.ndim != 1:
            raise ValueError("decisions are picked by a slice, a position, a list of positions or a mask")
        if picked.size == 0:
            raise ValueError(f"no decisions are left: {which} picks none of the {len(self)}")
        sizes = self.sizes[picked]
        start = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.start[picked] - start[:-1], sizes) + np.arange(start[-1])
        return Decisions(
            self.rows[rows],
            start,
            None if self.chosen is None else self.chosen[picked],
            names=self.names,
            actions=None if self.actions is None else self.actions[rows],
            groups=None if self.groups is None else self.groups[picked],
            group_name=self.group_name,
            blocks=self.blocks,
            ids=self.ids[picked],
        )

    def __add__(self, other: Decisions) -> Decisions:
        """These decisions followed by `other`'s; both must speak of the same coefficients."""
        if not isinstance(other, Decisions):
            return NotImplemented
        if self.names != other.names or self.blocks != other.blocks:
            raise ValueError("only decisions with the same coefficient names and blocks can be joined")
        for field in ("chosen", "actions", "groups"):
            if (getattr(self, field) is None) != (getattr(other, field) is None):
                raise ValueError(f"one side has {field} and the other has none; give {field} to both, or to neither")

        def join(field: str) -> Any:
            mine, theirs = getattr(self, field), getattr(other, field)
            return None if mine is None else np.concatenate([mine, theirs])

        sparse = sp.issparse(self.rows) or sp.issparse(other.rows)
        rows = sp.vstack([self.rows, other.rows]) if sparse else np.vstack([self.rows, other.rows])
        return Decisions(
            rows,
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            join("chosen"),
            names=self.names,
            actions=join("actions"),
            groups=join("groups"),
            group_name=self.group_name if self.group_name == other.group_name else None,
            blocks=self.blocks,
        )

    def with_choices(self, chosen: Any) -> Decisions:
        """The same offers with other choices, for instance simulated ones."""
        return Decisions(**{**{f: getattr(self, f) for f in self.__dataclass_fields__}, "chosen": chosen})

    def __repr__(self) -> str:
        sizes = self.sizes
        span = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        kind = "sparse" if sp.issparse(self.rows) else "dense"
        seen = "" if self.chosen is not None else ", choices not seen"
        return f"<Decisions: {len(self)} decisions of {span} actions, {len(self.names)} coefficients, {kind}{seen}>"

    def _refuse_bad_numbers(self) -> None:
        cells = sp.coo_array(self.rows) if sp.issparse(self.rows) else self.rows
        bad = cells.row[~np.isfinite(cells.data)] if sp.issparse(cells) else np.nonzero(~np.isfinite(cells))[0]
        if bad.size == 0:
            return
        row = int(bad[0])
        t = int(np.searchsorted(self.start, row, side="right")) - 1
        raise ValueError(
            f"decision {self.ids[t]}, action {row - self.start[t]}: "
            "a feature is NaN or infinite; all features must be finite numbers"
        )

    def _chosen(self, chosen: Any) -> Ints:
        given = _flat("chosen", chosen)
        if given.shape != (len(self),):
            raise ValueError(
                f"chosen has shape {given.shape}, but there are {len(self)} decisions; give one choice each"
            )
        whole = _whole("chosen", given)
        wrong = np.flatnonzero((whole < 0) | (whole >= self.sizes))
        if wrong.size:
            t = int(wrong[0])
            raise ValueError(
                f"decision {self.ids[t]}: chosen action {whole[t]}, "
                f"but {self.sizes[t]} are offered (0 to {self.sizes[t] - 1})"
            )
        return whole


def _flat(what: str, values: Any) -> np.ndarray[Any, Any]:
    try:
        return np.array(values)
    except ValueError:  # numpy's word for lists of different lengths inside the list
        raise ValueError(f"{what} must be a flat list, not a list of lists") from None


def _whole(what: str, given: np.ndarray[Any, Any]) -> Ints:
    if given.dtype.kind not in "iuf" or not ((np.floor(given) == given) & (given < 2**62) & (given > -(2**62))).all():
        raise ValueError(f"{what} must be whole numbers")
    return given.astype(np.int64)


def _starts(start: Any) -> Ints:
    given = _flat("start", start)
    if given.ndim != 1 or given.size == 0:
        raise ValueError("start must be a list of positions: where each decision's rows begin, then the number of rows")
    if given.size == 1:
        raise ValueError("there are no decisions; at least one is needed")
    whole = _whole("start", given)
    if whole[0] != 0 or (np.diff(whole) < 0).any():
        raise ValueError("start must begin with 0 and never decrease")
    return whole


def _rows(rows: Any) -> Rows:
    if sp.issparse(rows):
        tidy = sp.csr_array(rows, dtype=np.float64, copy=True)
        tidy.sum_duplicates()
        for part in (tidy.data, tidy.indices, tidy.indptr):
            part.flags.writeable = False
        given: Rows = tidy
    else:
        try:
            given = np.array(rows, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise ValueError("rows must be a table of numbers, one row an action, all of the same length") from None
    if given.ndim != 2 or given.shape[1] == 0:
        raise ValueError(f"rows must be a (P, K) table with at least one column; it has shape {given.shape}")
    return given


def _labels(what: str, labels: Any, count: int, each: str) -> np.ndarray[Any, Any]:
    given = _flat(what, labels)
    if given.shape != (count,):
        raise ValueError(
            f"{what} has shape {given.shape}, but there are {count} {each}s; give one label for each {each}"
        )
    return given
