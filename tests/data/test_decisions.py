"""Decisions check themselves at birth, say where they are wrong, and can be cut and joined without loss."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from revealed.data.blocks import Block
from revealed.data.decisions import Decisions

ROWS = np.arange(12.0).reshape(6, 2)
START = [0, 2, 3, 6]
law = settings(deadline=None, derandomize=True)


def small(**changes: Any) -> Decisions:
    """Three decisions of 2, 1 and 3 actions."""
    given: dict[str, Any] = {
        "rows": ROWS,
        "start": START,
        "chosen": [1, 0, 2],
        "names": ["height", "holes"],
        "actions": list("abcdef"),
        "groups": ["ann", "ann", "bob"],
        "ids": [10, 14, 12],
    }
    return Decisions(**{**given, **changes})


def dense(d: Decisions) -> np.ndarray[Any, Any]:
    return np.asarray(d.rows.toarray() if sp.issparse(d.rows) else d.rows)


def same(a: Decisions, b: Decisions, *, ids: bool = True) -> None:
    np.testing.assert_array_equal(dense(a), dense(b))
    for field in ["start", "chosen", "actions", "groups"] + ["ids"] * ids:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert a.names == b.names
    assert a.blocks == b.blocks


# ---- what it holds


def test_the_three_arrays_and_what_follows_from_them() -> None:
    d = small()
    assert len(d) == 3
    np.testing.assert_array_equal(d.sizes, [2, 1, 3])
    np.testing.assert_array_equal(d.decision_of_row, [0, 0, 1, 2, 2, 2])
    np.testing.assert_array_equal(d.chosen_row, [1, 2, 5])
    np.testing.assert_array_equal(d.rows, ROWS)


def test_defaults() -> None:
    d = Decisions(ROWS.tolist(), START)
    assert d.chosen is None
    assert d.actions is None
    assert d.groups is None
    assert d.names == ("v0", "v1")
    assert d.blocks == (Block("value", 2),)
    np.testing.assert_array_equal(d.ids, [0, 1, 2])


def test_whole_floats_count_as_positions() -> None:
    d = small(start=[0.0, 2.0, 3.0, 6.0], chosen=[1.0, 0.0, 2.0])
    assert d.start.dtype == d.sizes.dtype == np.int64
    assert d.chosen is not None
    assert d.chosen.dtype == np.int64


def test_any_layout_becomes_rows_of_doubles() -> None:
    d = small(rows=np.asfortranarray(ROWS, dtype=np.float32))
    assert d.rows.dtype == np.float64
    assert d.rows.flags.c_contiguous


@pytest.mark.parametrize(
    "kind", [sp.csr_matrix, sp.csr_array, sp.coo_array, sp.csc_matrix, sp.lil_array]
)
def test_any_sparse_matrix_becomes_compressed_rows(kind: Any) -> None:
    d = small(rows=kind(ROWS))
    assert isinstance(d.rows, sp.csr_array)
    assert d.rows.dtype == np.float64
    same(d, small())


def test_sparse_entries_given_twice_add_up() -> None:
    twice = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    d = Decisions(twice, [0, 1])
    assert d.rows.nnz == 1
    np.testing.assert_array_equal(dense(d), [[0.0, 3.0]])


def test_repr_says_what_it_is() -> None:
    assert repr(small()) == "<Decisions: 3 decisions of 1 to 3 actions, 2 coefficients, dense>"
    unseen = Decisions(sp.csr_array(ROWS), [0, 3, 6])
    assert (
        repr(unseen)
        == "<Decisions: 2 decisions of 3 actions, 2 coefficients, sparse, choices not seen>"
    )


# ---- what it refuses, in a sentence

NAN_ROWS = ROWS.copy()
NAN_ROWS[4, 1] = np.nan
INFINITE_ROWS = ROWS.copy()
INFINITE_ROWS[2, 0] = -np.inf

REFUSED = [
    ({"start": []}, "start must be a list of positions"),
    ({"start": [[0, 6]]}, "start must be a list of positions"),
    ({"start": [[0], [1, 2]]}, "start must be a flat list, not a list of lists"),
    ({"start": [0]}, "there are no decisions; at least one is needed"),
    ({"start": [0, 2.5, 3, 6]}, "start must be whole numbers"),
    ({"start": [0, 2, 3, np.inf]}, "start must be whole numbers"),
    ({"start": ["0", "2", "3", "6"]}, "start must be whole numbers"),
    ({"start": [1, 2, 3, 6]}, "start must begin with 0 and never decrease"),
    ({"start": [0, 3, 2, 6]}, "start must begin with 0 and never decrease"),
    ({"start": [0, 2, 3, 5]}, "start ends with 5, but there are 6 rows"),
    (
        {"start": [0, 2, 2, 6]},
        "decision 14: no action is offered; every decision needs at least one",
    ),
    ({"rows": [["a", "b"]] * 6}, "rows must be a table of numbers"),
    ({"rows": [[1.0, 2.0], [1.0]]}, "rows must be a table of numbers"),
    (
        {"rows": np.zeros(6)},
        "rows must be a (P, K) table with at least one column; it has shape (6,)",
    ),
    (
        {"rows": np.zeros((6, 0))},
        "rows must be a (P, K) table with at least one column; it has shape (6, 0)",
    ),
    (
        {"rows": sp.csr_array((6, 0))},
        "rows must be a (P, K) table with at least one column; it has shape (6, 0)",
    ),
    (
        {"rows": NAN_ROWS},
        "decision 12, action 1: a feature is NaN or infinite; all features must be finite numbers",
    ),
    ({"rows": INFINITE_ROWS}, "decision 14, action 0: a feature is NaN or infinite"),
    ({"rows": sp.csr_array(NAN_ROWS)}, "decision 12, action 1: a feature is NaN or infinite"),
    ({"chosen": [0, 0]}, "chosen has shape (2,), but there are 3 decisions; give one choice each"),
    ({"chosen": [[0], [0, 1], 0]}, "chosen must be a flat list, not a list of lists"),
    ({"chosen": [0, 0.5, 0]}, "chosen must be whole numbers"),
    ({"chosen": [0, np.nan, 0]}, "chosen must be whole numbers"),
    ({"chosen": [0, np.inf, 0]}, "chosen must be whole numbers"),
    ({"chosen": [0, 1e30, 0]}, "chosen must be whole numbers"),
    ({"chosen": np.array([2**63, 0, 0], dtype=np.uint64)}, "chosen must be whole numbers"),
    ({"chosen": [False, False, True]}, "chosen must be whole numbers"),
    ({"chosen": [0, 1, 0]}, "decision 14: chosen action 1, but 1 are offered (0 to 0)"),
    ({"chosen": [0, 0, 3]}, "decision 12: chosen action 3, but 3 are offered (0 to 2)"),
    ({"chosen": [-1, 0, 0]}, "decision 10: chosen action -1, but 2 are offered (0 to 1)"),
    ({"names": ["one"]}, "1 names for 2 coefficients; give one name for each column of rows"),
    ({"names": ["x", "x"]}, "the coefficient name 'x' is used twice; names must differ"),
    (
        {"actions": ["a"]},
        "actions has shape (1,), but there are 6 rows; give one label for each row",
    ),
    (
        {"groups": ["a"]},
        "groups has shape (1,), but there are 3 decisions; give one label for each decision",
    ),
    (
        {"ids": [1, 2]},
        "ids has shape (2,), but there are 3 decisions; give one label for each decision",
    ),
    ({"ids": [[1], [1, 2], 3]}, "ids must be a flat list, not a list of lists"),
    (
        {"blocks": [Block("a", 1)]},
        "blocks (a: 1) must be non-empty and cover the 2 coefficients exactly",
    ),
    ({"blocks": [Block("a", 2), Block("b", 0)]}, "blocks (a: 2, b: 0) must be non-empty"),
]


@pytest.mark.parametrize(("wrong", "sentence"), REFUSED)
def test_bad_input_is_refused_with_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        small(**wrong)
    assert "\n" not in str(caught.value)


def test_messages_count_decisions_when_there_are_no_ids() -> None:
    with pytest.raises(ValueError, match=r"decision 2: chosen action 7"):
        Decisions(ROWS, START, [0, 0, 7])


def test_unseen_choices_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="these decisions carry no choices"):
        _ = small(chosen=None).chosen_row


# ---- frozen


@pytest.mark.parametrize("field", ["rows", "start", "chosen", "actions", "groups", "ids"])
def test_arrays_cannot_be_written_and_are_not_the_callers(field: str) -> None:
    given = {
        "rows": ROWS.copy(),
        "start": np.array(START),
        "chosen": np.array([1, 0, 2]),
        "actions": np.array(list("abcdef")),
        "groups": np.array(["ann", "ann", "bob"]),
        "ids": np.array([10, 14, 12]),
    }
    d = small(**given)
    kept = getattr(d, field)
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = kept[-1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(d, field, kept)
    assert given[field].flags.writeable
    assert not np.shares_memory(kept, given[field])
    given[field][0] = given[field][-1]
    same(d, small())


def test_sparse_parts_cannot_be_written_and_are_not_the_callers() -> None:
    given = sp.csr_array(ROWS)
    d = small(rows=given)
    for part in ("data", "indices", "indptr"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(d.rows, part)[0] = 1
        assert getattr(given, part).flags.writeable
    given.data[:] = 0.0
    same(d, small())


def test_slices_are_frozen_too() -> None:
    with pytest.raises(ValueError, match="read-only"):
        small()[1:].rows[0, 0] = 1.0


# ---- cutting


@pytest.mark.parametrize(
    ("which", "positions"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        (1, [1]),
        (-1, [2]),
        (np.int64(2), [2]),
        ([2, 0], [2, 0]),
        ([1, 1], [1, 1]),
        (np.array([0, 2]), [0, 2]),
        ([True, False, True], [0, 2]),
        (np.array([False, False, True]), [2]),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_picking_decisions(which: Any, positions: list[int], sparse: bool) -> None:
    d = small(rows=sp.csr_array(ROWS)) if sparse else small()
    got = d[which]
    rows = np.concatenate([np.arange(START[t], START[t + 1]) for t in positions])
    assert sp.issparse(got.rows) == sparse
    np.testing.assert_array_equal(dense(got), ROWS[rows])
    np.testing.assert_array_equal(got.sizes, np.diff(START)[positions])
    np.testing.assert_array_equal(got.chosen, np.array([1, 0, 2])[positions])
    np.testing.assert_array_equal(got.actions, np.array(list("abcdef"))[rows])
    np.testing.assert_array_equal(got.groups, np.array(["ann", "ann", "bob"])[positions])
    np.testing.assert_array_equal(got.ids, np.array([10, 14, 12])[positions])
    assert got.names == d.names


def test_picking_keeps_blocks_and_unseen_choices() -> None:
    d = Decisions(ROWS, START, blocks=[Block("a", 1, True), Block("b", 1)])
    assert d[1:].blocks == d.blocks
    assert d[1:].chosen is None


def test_messages_after_a_cut_keep_the_ids() -> None:
    with pytest.raises(ValueError, match=r"^decision 14: chosen action 5"):
        small()[1:].with_choices([5, 0])


def test_first() -> None:
    same(small().first(2), small()[:2])
    same(small().first(3), small())
    for count in (0, -1, 4):
        with pytest.raises(
            ValueError, match=re.escape(f"first({count}): there are 3 decisions; ask for 1 to 3")
        ):
            small().first(count)


@pytest.mark.parametrize("which", [slice(3, None), [], np.zeros(3, dtype=bool)])
def test_picking_nothing_is_refused(which: Any) -> None:
    with pytest.raises(ValueError, match=r"no decisions are left: .* picks none of the 3"):
        _ = small()[which]


@pytest.mark.parametrize("which", [None, np.array([[0, 1]])])
def test_picking_by_something_else_is_refused(which: Any) -> None:
    with pytest.raises(
        ValueError,
        match="decisions are picked by a slice, a position, a list of positions or a mask",
    ):
        _ = small()[which]


@pytest.mark.parametrize("which", [3, [0, 3], [True, False], "a"])
def test_positions_that_do_not_exist_are_index_errors(which: Any) -> None:
    with pytest.raises(IndexError):
        _ = small()[which]


def test_decisions_can_be_walked_through() -> None:
    one_by_one: Any = small()
    assert [int(d.ids[0]) for d in one_by_one] == [10, 14, 12]


# ---- joining


@pytest.mark.parametrize("left", [np.array, sp.csr_array])
@pytest.mark.parametrize("right", [np.array, sp.csr_array])
def test_joining(left: Any, right: Any) -> None:
    joined = small(rows=left(ROWS)) + small(rows=right(ROWS + 1.0))
    assert sp.issparse(joined.rows) == (sp.csr_array in (left, right))
    np.testing.assert_array_equal(dense(joined), np.vstack([ROWS, ROWS + 1.0]))
    np.testing.assert_array_equal(joined.start, [0, 2, 3, 6, 8, 9, 12])
    np.testing.assert_array_equal(joined.chosen, [1, 0, 2, 1, 0, 2])
    np.testing.assert_array_equal(joined.actions, list("abcdefabcdef"))
    np.testing.assert_array_equal(joined.groups, ["ann", "ann", "bob"] * 2)
    np.testing.assert_array_equal(
        joined.ids, range(6)
    )  # two sets may use the same ids, so they are counted anew
    assert joined.names == ("height", "holes")


def test_joining_keeps_blocks_and_unseen_choices() -> None:
    d = Decisions(ROWS, START, blocks=[Block("a", 1, True), Block("b", 1)])
    assert (d + d).blocks == d.blocks
    assert (d + d).chosen is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"names": ["height", "depth"]},
            "only decisions with the same coefficient names and blocks can be joined",
        ),
        (
            {"blocks": [Block("value", 2, True)]},
            "only decisions with the same coefficient names and blocks",
        ),
        (
            {"chosen": None},
            "one side has chosen and the other has none; give chosen to both, or to neither",
        ),
        ({"actions": None}, "one side has actions and the other has none"),
        ({"groups": None}, "one side has groups and the other has none"),
    ],
)
def test_what_cannot_be_joined(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _ = small() + small(**changes)
    with pytest.raises(ValueError, match=sentence):
        _ = small(**changes) + small()


def test_only_decisions_are_joined() -> None:
    with pytest.raises(TypeError):
        _ = small() + 1  # type: ignore[operator]


def test_other_choices_on_the_same_offers() -> None:
    d = small().with_choices([0, 0, 0])
    np.testing.assert_array_equal(d.chosen, [0, 0, 0])
    same(d.with_choices([1, 0, 2]), small())
    assert d.with_choices(None).chosen is None
    sparse = small(rows=sp.csr_array(ROWS)).with_choices([0, 0, 0])
    assert sp.issparse(sparse.rows)


# ---- laws


@st.composite
def some_decisions(draw: st.DrawFn) -> Decisions:
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=12))
    width = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows: Any = rng.integers(-2, 3, (sum(sizes), width)) * rng.standard_exponential()
    return Decisions(
        sp.csr_array(rows) if draw(st.booleans()) else rows,
        np.concatenate([[0], np.cumsum(sizes)]),
        rng.integers(0, sizes) if draw(st.booleans()) else None,
        actions=rng.integers(0, 9, sum(sizes)).astype(str) if draw(st.booleans()) else None,
        groups=rng.integers(0, 3, len(sizes)) if draw(st.booleans()) else None,
        blocks=[Block(f"b{k}", 1, bool(k % 2)) for k in range(width)],
    )


@law
@given(some_decisions(), st.data())
def test_cutting_then_joining_changes_nothing(d: Decisions, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(d) - 1))
    joined = d[:at] + d[at:]
    same(joined, d)
    assert sp.issparse(joined.rows) == sp.issparse(d.rows)


@law
@given(some_decisions(), st.data())
def test_reordering_there_and_back_changes_nothing(d: Decisions, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(len(d)))))
    same(d[order][np.argsort(order)], d)


@law
@given(some_decisions(), st.data())
def test_a_mask_and_its_positions_pick_the_same(d: Decisions, data: st.DataObject) -> None:
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(d), max_size=len(d)).filter(any))
    )
    same(d[mask], d[np.flatnonzero(mask)])
    same(d[mask], d[np.flatnonzero(mask).tolist()])
