"""Decisions: what a controller was offered, and what it chose (paper, section 2).

A controller makes T decisions. Decision t offers M_t actions, and each action is a row of K
numbers: the probabilities of the next states, the expected features of the next state, a player's
indicator. All rows are stacked, so choice sets of different sizes need no padding:

    rows   (P, K)    P = sum of M_t
    start  (T + 1,)  rows[start[t]:start[t + 1]] are the actions of decision t
    chosen (T,)      which of them was chosen, counted from zero within the decision

Every special case of the paper is a builder of these three arrays, and no sampler knows which one
it got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints, Labels
from revealed.data.blocks import Block
from revealed.data.checks import (
    check_flat,
    check_labels,
    check_rows,
    check_starts,
    check_whole,
    find_bad_row,
)
from revealed.data.times import check_sessions, check_times

Rows = Any  # a dense Floats array, or a scipy.sparse.csr_array


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Decisions:
    """T decisions as stacked rows; frozen, and checked when made.

    Parameters
    ----------
    rows
        (P, K) finite numbers, a dense array or any scipy sparse matrix; one row an action.
    start
        (T + 1,) where each decision's rows begin, ending with P.
    chosen
        (T,) the action chosen, from 0 to M_t - 1; None where choices were not seen, for
        instance to predict them.
    names
        K coefficient names; default ``v0, v1, ...``.
    actions
        P labels of the rows, such as "left"; optional.
    groups
        T labels of who decided; optional.
    group_name
        What a group is, such as "person"; optional.
    blocks
        The coefficient blocks in order, each a ``Block``; default: one block, not sum-to-zero.
    ids
        T labels of the decisions, used in tables and messages; default 0, 1, ...
    times
        T finite numbers, when each decision was made, such as the number of its trial. Dates of
        Python, numpy and pandas become days since 1970-01-01; optional.
    sessions
        T labels of the sessions in which decisions were made; optional.

    Examples
    --------
    >>> d = rv.Decisions([[0.8, 0.2], [0.3, 0.7]], start=[0, 2], chosen=[1])
    >>> len(d), d.names
    (1, ('v0', 'v1'))
    >>> day = np.array(["1970-01-03T12:00"], dtype="datetime64[h]")
    >>> rv.Decisions([[0.8, 0.2], [0.3, 0.7]], [0, 2], [1], times=day).times
    array([2.5])
    """

    rows: Rows
    start: Ints
    chosen: Ints | None
    names: tuple[str, ...]
    actions: Labels | None
    groups: Labels | None
    group_name: str | None
    blocks: tuple[Block, ...]
    ids: Labels
    times: Floats | None
    sessions: Labels | None

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
        times: Any = None,
        sessions: Any = None,
    ) -> None:
        # The ids come early, because every message about a decision names it by its id.
        self._set("start", check_starts(start))
        count = len(self.start) - 1
        self._set(
            "ids", np.arange(count) if ids is None else check_labels("ids", ids, count, "decision")
        )
        self._set("rows", check_rows(rows))
        self._check_offers()
        self._set("chosen", None if chosen is None else self._check_chosen(chosen))

        # What the coefficients are called, and which of them belong together.
        width = self.rows.shape[1]
        default_names = (f"v{k}" for k in range(width))
        self._set("names", tuple(default_names if names is None else map(str, names)))
        self._set("blocks", (Block("value", width),) if blocks is None else tuple(blocks))
        self._check_coefficients()

        # Labels of rows and decisions, which no likelihood looks at.
        rows_count = self.rows.shape[0]
        self._set(
            "actions",
            None if actions is None else check_labels("actions", actions, rows_count, "row"),
        )
        self._set(
            "groups", None if groups is None else check_labels("groups", groups, count, "decision")
        )
        self._set("group_name", None if groups is None else group_name)
        self._set("times", None if times is None else check_times(times, self.ids))
        self._set("sessions", None if sessions is None else check_sessions(sessions, self.ids))

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def chosen_row(self) -> Ints:
        """(T,) the row index of each chosen action.

        `chosen` counts within a decision, this counts all rows: start[:-1] + chosen. Refuses
        decisions without choices.
        """
        return self.start[:-1] + self.require_choices()

    def require_choices(self) -> Ints:
        """(T,) what was chosen; refuses decisions whose choices were not seen.

        Examples
        --------
        >>> rv.Decisions([[0.8], [0.3]], start=[0, 2]).require_choices()
        Traceback (most recent call last):
            ...
        ValueError: these decisions carry no choices (chosen is None), and this needs to know ...
        """
        if self.chosen is None:
            raise ValueError(
                "these decisions carry no choices (chosen is None), "
                "and this needs to know what was chosen"
            )
        return self.chosen

    @property
    def sizes(self) -> Ints:
        """(T,) how many actions each decision offers."""
        return np.diff(self.start)

    @property
    def decision_of_row(self) -> Ints:
        """(P,) the decision each row belongs to, as a position.

        The inverse of `start`: rows p with decision_of_row[p] = t are those of decision t.
        """
        return np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)

    def first(self, count: int) -> Decisions:
        """The first `count` decisions, as Decisions.

        Parameters
        ----------
        count
            From 1 to the number of decisions.

        Returns
        -------
        Decisions
            ``self[:count]``.
        """
        if not 1 <= count <= len(self):
            raise ValueError(
                f"first({count}): there are {len(self)} decisions; ask for 1 to {len(self)}"
            )
        return self[:count]

    def __getitem__(self, which: slice | int | Sequence[int] | Ints) -> Decisions:
        """The decisions that are picked, in the order in which they are picked.

        `which` is a slice, a position, a list of positions or a mask.
        """
        picked = np.atleast_1d(np.arange(len(self), dtype=np.int64)[which])
        # A table of positions would make a table of decisions.
        if picked.ndim != 1:
            raise ValueError(
                "decisions are picked by a slice, a position, a list of positions or a mask"
            )
        if picked.size == 0:
            raise ValueError(f"no decisions are left: {which} picks none of the {len(self)}")
        # Pick the rows of every decision without a loop.
        # Row p of the new stack is p minus its decision's new start plus its old one.
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
            times=None if self.times is None else self.times[picked],
            sessions=None if self.sessions is None else self.sessions[picked],
        )

    def __add__(self, other: Decisions) -> Decisions:
        """These decisions followed by `other`'s.

        Both must have the same coefficient names and blocks, and the same kinds of labels. The new
        decisions are called 0, 1, ..., because ids of both sides may be equal.
        """
        if not isinstance(other, Decisions):
            return NotImplemented
        if self.names != other.names or self.blocks != other.blocks:
            raise ValueError(
                "only decisions with the same coefficient names and blocks can be joined"
            )
        # What one side knows and the other does not could not be joined without inventing it.
        for field in ("chosen", "actions", "groups", "times", "sessions"):
            if (getattr(self, field) is None) != (getattr(other, field) is None):
                raise ValueError(
                    f"one side has {field} and the other has none; "
                    f"give {field} to both, or to neither"
                )

        def join(field: str) -> Any:
            mine, theirs = getattr(self, field), getattr(other, field)
            return None if mine is None else np.concatenate([mine, theirs])

        # One sparse side makes both sparse: the dense one is usually the smaller.
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
            times=join("times"),
            sessions=join("sessions"),
        )

    def with_choices(self, chosen: Any) -> Decisions:
        """The same offers with other choices, for instance simulated ones.

        Parameters
        ----------
        chosen
            (T,) the action chosen in each decision, counted from zero; or None.

        Returns
        -------
        Decisions
            New decisions; these are left as they are.

        Examples
        --------
        >>> d = rv.Decisions([[0.8, 0.2], [0.3, 0.7]], start=[0, 2], chosen=[1])
        >>> d.with_choices([0]).chosen
        array([0])
        """
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Decisions(**{**fields, "chosen": chosen})

    def __repr__(self) -> str:
        sizes = self.sizes
        # Most data have choice sets of one size; then the range is a number.
        span = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        kind = "sparse" if sp.issparse(self.rows) else "dense"
        unseen = "" if self.chosen is not None else ", choices not seen"
        return (
            f"<Decisions: {len(self)} decisions of {span} actions, "
            f"{len(self.names)} coefficients, {kind}{unseen}>"
        )

    def _set(self, field: str, value: Any) -> None:
        """Set a field of this frozen object, while it is being made.

        Arrays become read-only, so that nobody changes decisions behind a posterior's back.
        """
        # Frozen all the way down: a field cannot be replaced, and its numbers cannot be changed.
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(self, field, value)

    def _check_offers(self) -> None:
        """Check that start fits the rows, and that no decision is empty.

        Also that all features are finite: a single NaN would make the likelihood of everything NaN.
        Messages name the decision by its id.
        """
        if self.start[-1] != self.rows.shape[0]:
            raise ValueError(
                f"start ends with {self.start[-1]}, but there are {self.rows.shape[0]} rows"
            )
        empty = np.flatnonzero(np.diff(self.start) == 0)
        if empty.size:
            raise ValueError(
                f"decision {self.ids[empty[0]]}: no action is offered; "
                "every decision needs at least one"
            )
        bad = find_bad_row(self.rows)
        if bad is not None:
            row, wrong = bad
            t = int(np.searchsorted(self.start, row, side="right")) - 1
            raise ValueError(f"decision {self.ids[t]}, action {row - self.start[t]}: {wrong}")

    def _check_chosen(self, chosen: Any) -> Ints:
        """(T,) the choices as int64, each among the actions its decision offers."""
        given = check_flat("chosen", chosen)
        if given.shape != (len(self),):
            raise ValueError(
                f"chosen has shape {given.shape}, but there are {len(self)} decisions; "
                "give one choice each"
            )
        positions = check_whole("chosen", given)
        # Negative positions, which Python counts from the end, are a mistake in every file.
        wrong = np.flatnonzero((positions < 0) | (positions >= self.sizes))
        if wrong.size:
            t = int(wrong[0])
            raise ValueError(
                f"decision {self.ids[t]}: chosen action {positions[t]}, "
                f"but {self.sizes[t]} are offered (0 to {self.sizes[t] - 1})"
            )
        return positions

    def _check_coefficients(self) -> None:
        """Check names and blocks of the coefficients.

        There is one name for each column of rows and no name twice; blocks are not empty and cover
        all coefficients exactly.
        """
        width = self.rows.shape[1]
        if len(self.names) != width:
            raise ValueError(
                f"{len(self.names)} names for {width} coefficients; "
                "give one name for each column of rows"
            )
        # Names are how coefficients are asked for, in posteriors and in tables.
        if len(set(self.names)) != width:
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(f"the coefficient name {twice!r} is used twice; names must differ")
        # Blocks follow one another, so that their sizes alone say which coefficients are whose.
        if any(b.size < 1 for b in self.blocks) or sum(b.size for b in self.blocks) != width:
            sizes = ", ".join(f"{b.name}: {b.size}" for b in self.blocks)
            raise ValueError(
                f"blocks ({sizes}) must be non-empty and cover the {width} coefficients exactly"
            )
