"""Tables in and out, exactly: dataframes, Parquet and CSV; bad tables are refused in a sentence."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.io.dataframes import from_dataframe, to_dataframe
from revealed.io.files import read_csv, read_file, read_parquet, write_file

MAKERS: dict[str, Any] = {
    "pyarrow": pa.table,
    "chunks": lambda columns: pa.concat_tables([pa.table(columns)[:2], pa.table(columns)[2:]]),
    "pandas": pd.DataFrame,
    "pandas, joined": lambda columns: pd.concat(
        [pd.DataFrame(columns)[:2], pd.DataFrame(columns)[2:]]
    ),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
}
# Random numbers and labels may look like ids, or differ in case only.
unlikely = pytest.mark.filterwarnings("ignore::revealed.data.data_warning.DataWarning")
law = settings(deadline=None, derandomize=True)
SUFFIXES = [".parquet", ".pq", ".csv", ".csv.gz"]


def columns(**changes: Any) -> dict[str, Any]:
    """Decisions 12 and 7 of three and two actions, their rows interleaved."""
    given = {
        "decision": [12, 7, 12, 7, 12],
        "action": ["left", "left", "right", "stay", "stay"],
        "chosen": [False, True, False, False, True],
        "height": [3.0, 4.0, 2.5, -1.0, 0.1],
        "holes": [1, 0, 2, 5, 3],
    }
    return {name: values for name, values in {**given, **changes}.items() if values is not None}


def same(a: Decisions, b: Decisions) -> None:
    np.testing.assert_array_equal(a.rows, b.rows.toarray() if sp.issparse(b.rows) else b.rows)
    for field in ("start", "chosen", "groups", "ids"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    positions = np.arange(b.start[-1]) - np.repeat(
        b.start[:-1], b.sizes
    )  # stand in for labels that b lacks
    np.testing.assert_array_equal(a.actions, positions if b.actions is None else b.actions)
    assert a.names == b.names
    assert a.ids.dtype.kind == b.ids.dtype.kind


# ---- reading a table


@pytest.mark.parametrize("maker", MAKERS)
def test_any_dataframe_gives_its_decisions(maker: str) -> None:
    d = from_dataframe(MAKERS[maker](columns()))
    np.testing.assert_array_equal(d.ids, [12, 7])
    np.testing.assert_array_equal(d.start, [0, 3, 5])
    np.testing.assert_array_equal(d.chosen, [2, 0])
    np.testing.assert_array_equal(d.rows, [[3, 1], [2.5, 2], [0.1, 3], [4, 0], [-1, 5]])
    np.testing.assert_array_equal(d.actions, ["left", "right", "stay", "left", "stay"])
    assert d.names == ("height", "holes")
    assert d.groups is None


@pytest.mark.parametrize("maker", MAKERS)
def test_text_ids_and_groups(maker: str) -> None:
    table = MAKERS[maker](
        columns(decision=list("badab"), player=["x", "y", "z", "y", "x"], chosen=[1, 1, 1, 0, 0])
    )
    d = from_dataframe(table, group="player")
    np.testing.assert_array_equal(d.ids, ["b", "a", "d"])
    np.testing.assert_array_equal(d.groups, ["x", "y", "z"])
    assert d.ids.dtype.kind == "U"
    assert d.names == ("height", "holes")


def test_a_column_called_group_is_the_group() -> None:
    d = from_dataframe(pa.table(columns(group=[5, 6, 5, 6, 5])))
    np.testing.assert_array_equal(d.groups, [5, 6])
    assert d.names == ("height", "holes")


def test_column_names_are_options() -> None:
    table = pa.table(columns()).rename_columns(["game", "move", "took", "height", "holes"])
    same(
        from_dataframe(table, decision="game", action="move", chosen="took"),
        from_dataframe(pa.table(columns())),
    )


def test_features_can_be_picked_in_any_order() -> None:
    table = pa.table(columns(note=["some", "text", "that", "is", "ignored"]))
    d = from_dataframe(table, features=["holes", "height"])
    assert d.names == ("holes", "height")
    np.testing.assert_array_equal(d.rows[0], [1.0, 3.0])
    assert from_dataframe(table, features="height").names == ("height",)
    assert from_dataframe(pa.table(columns(action=[1, 2, 3, 4, 5])), features=["action"]).names == (
        "action",
    )


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True, True, False],
        pa.array([1, 0, 1, 1, 0], pa.uint8()),
        pa.array([1, 0, 1, 1, 0], pa.float32()),
        pa.array([1, 0, 1, 1, 0]).cast(pa.decimal128(30, 3)),
        pd.Series([1, 0, 1, 1, 0], dtype="Int64"),
    ],
)
def test_features_may_be_any_numbers(values: Any) -> None:
    d = from_dataframe(pa.table(columns(holes=values)))
    np.testing.assert_array_equal(d.rows[:, 1], [1, 1, 0, 0, 1])


def test_whole_numbers_too_long_for_a_double_are_rounded() -> None:
    assert from_dataframe(pa.table(columns(holes=[2**62 + 1, 0, 0, 0, 0]))).rows[0, 1] == 2.0**62


@pytest.mark.parametrize("maker", ["pyarrow", "pandas", "polars"])
def test_chosen_may_be_marked_by_truth_or_number(maker: str) -> None:
    for kind in (bool, int, float, np.uint8, np.float32):
        marks = np.array([0, 1, 0, 0, 1]).astype(kind)
        d = from_dataframe(MAKERS[maker](columns(chosen=marks)))
        np.testing.assert_array_equal(d.chosen, [2, 0], err_msg=str(kind))


def test_table_without_choices_gives_decisions_without_choices() -> None:
    d = from_dataframe(pa.table(columns(chosen=None)), chosen=None)
    assert d.chosen is None
    assert d.names == ("height", "holes")


def test_a_column_called_chosen_is_never_a_feature_unless_asked_for() -> None:
    d = from_dataframe(pa.table(columns()), chosen=None)
    assert d.chosen is None
    assert d.names == ("height", "holes")
    assert from_dataframe(pa.table(columns()), action=None).names == ("height", "holes")


def test_action_labels_are_optional() -> None:
    assert from_dataframe(pa.table(columns(action=None))).actions is None
    assert from_dataframe(pa.table(columns()), action=None).actions is None


def test_categories_are_labels() -> None:
    frame = pd.DataFrame(columns(decision=list("babab")))
    frame["decision"] = pd.Categorical(frame["decision"], categories=["unused", "a", "b"])
    frame["action"] = pd.Categorical(frame["action"])
    d = from_dataframe(frame)
    np.testing.assert_array_equal(d.ids, ["b", "a"])
    np.testing.assert_array_equal(d.actions, ["left", "right", "stay", "left", "stay"])


@pytest.mark.parametrize(
    "marks", [[1, 1, 0, 1, 1], [True, True, False, True, True], [1.0, 1.0, 0.0, 1.0, 1.0]]
)
def test_actions_not_available_are_left_out(marks: list[Any]) -> None:
    d = from_dataframe(pa.table(columns(legal=marks)), available="legal")
    np.testing.assert_array_equal(d.start, [0, 2, 4])
    np.testing.assert_array_equal(d.chosen, [1, 0])
    np.testing.assert_array_equal(d.rows, [[3, 1], [0.1, 3], [4, 0], [-1, 5]])
    np.testing.assert_array_equal(d.actions, ["left", "stay", "left", "stay"])
    assert d.names == ("height", "holes")


def test_actions_not_available_may_lack_features() -> None:
    table = pa.table(columns(legal=[1, 1, 0, 1, 1], height=[3.0, 4.0, None, -1.0, 0.1]))
    np.testing.assert_array_equal(
        from_dataframe(table, available="legal").rows[:, 0], [3.0, 0.1, 4.0, -1.0]
    )


def test_blocks_are_passed_on() -> None:
    blocks = (Block("a", 1, True), Block("b", 1))
    assert from_dataframe(pa.table(columns()), blocks=blocks).blocks == blocks


def test_the_row_numbers_of_pandas_are_no_feature(tmp_path: Path) -> None:
    frame = pd.DataFrame(columns()).set_index(np.array([5, 3, 8, 1, 0]))
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    for name in ("a.parquet", "a.csv"):
        same(read_file(tmp_path / name), from_dataframe(pa.table(columns())))


# ---- tables that are refused

NOT_FLAGS = "it must hold true or false, yes or no, or 1 or 0"
NOT_FINITE = "a feature is missing, NaN or infinite; all features must be finite numbers"
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"chosen": [0, 1, 0, 0, 0]},
        {},
        "decision 12: no action is marked chosen; exactly one must be",
    ),
    (
        {"chosen": [0, 1, 0, 1, 1]},
        {},
        "decision 7: 2 actions are marked chosen; exactly one must be",
    ),
    ({"chosen": [0, 1, 0, 0, 2]}, {}, f"decision 12: column 'chosen' holds 2; {NOT_FLAGS}"),
    ({"chosen": [0, 0.5, 0, 0, 1]}, {}, f"decision 7: column 'chosen' holds 0.5; {NOT_FLAGS}"),
    (
        {"chosen": [0, None, 0, 0, 1]},
        {},
        f"decision 7: column 'chosen' holds no value; {NOT_FLAGS}",
    ),
    (
        {"chosen": ["no", "yes", "no", "no", "maybe"]},
        {},
        f"decision 12: column 'chosen' holds 'maybe'; {NOT_FLAGS}",
    ),
    (
        {"chosen": ["no", "yes", "no", None, "yes"]},
        {},
        f"decision 7: column 'chosen' holds no value; {NOT_FLAGS}",
    ),
    (
        {"chosen": [[0], [1], [0], [0], [1]]},
        {},
        f"column 'chosen' holds list<item: int64>; {NOT_FLAGS}",
    ),
    ({"decision": [12, 7, None, 7, 12]}, {}, "row 2 of the table: column 'decision' has no value"),
    (
        {"decision": [12, 7, 12, np.nan, 12]},
        {},
        "row 3 of the table: column 'decision' has no value",
    ),
    (
        {"decision": ["a", "b", "a", "b", None]},
        {},
        "row 4 of the table: column 'decision' has no value",
    ),
    (
        {"decision": [[1], [2], [1], [2], [1]]},
        {},
        "column 'decision' holds list<item: int64>; labels must be numbers",
    ),
    (
        {"action": ["left", None, "a", "b", "c"]},
        {},
        "row 1 of the table: column 'action' has no value",
    ),
    ({"height": [3.0, 4.0, 2.5, np.nan, 0.1]}, {}, f"decision 7, column 'height': {NOT_FINITE}"),
    ({"height": [3.0, 4.0, -np.inf, 1.0, 0.1]}, {}, f"decision 12, column 'height': {NOT_FINITE}"),
    ({"holes": [1, None, 2, 5, 3]}, {}, f"decision 7, column 'holes': {NOT_FINITE}"),
    ({"holes": pa.nulls(5)}, {}, f"decision 12, column 'holes': {NOT_FINITE}"),
    (
        {"holes": list("12345")},
        {},
        "column 'holes' holds text, and features are numbers; pass features=[...] (on the",
    ),
    (
        {"holes": pa.array(list("abcde"), pa.large_string())},
        {"features": ["height", "holes"]},
        "column 'holes' holds text, and features are numbers; leave it out of features, or make",
    ),
    (
        {"holes": ["1,5", "2", "3", "4", "5"]},
        {},
        "column 'holes' has numbers with a decimal comma, such as '1,5'; read the file with decimal",
    ),
    (
        {
            "action": ["left", "left", "right", "stay", "left"],
            "height": [3.0] * 5,
            "holes": [1, 2, 3, 4, 1],
        },
        {},
        "decision 12: action 'left' is in the table twice, with the same features; give every",
    ),
    (
        {"chosen": None, "Chosen ": [0, 1, 0, 0, 1]},
        {},
        "the table has no column 'chosen', only 'decision', 'action', 'height', 'holes', 'Chosen ';"
        " 'Chosen ' differs only in case or blanks",
    ),
    (
        {"holes": None},
        {"features": ["holes"]},
        "the table has no column 'holes', only 'decision', 'action', 'chosen', 'height'",
    ),
    ({"chosen": None}, {}, "'height', 'holes'; pass chosen=None if choices were not seen"),
    (
        {"decision": None},
        {},
        "the table has no column 'decision', only 'action', 'chosen', 'height', 'holes'",
    ),
    ({}, {"action": "move"}, "the table has no column 'move', only"),
    ({}, {"group": "player"}, "the table has no column 'player', only"),
    ({}, {"available": "legal"}, "the table has no column 'legal', only"),
    (
        {"height": None, "holes": None},
        {},
        "the table has no feature column, only 'decision', 'action', 'chosen'",
    ),
    ({}, {"features": []}, "the table has no feature column"),
    (
        {},
        {"features": ["holes", "holes"]},
        "the coefficient name 'holes' is used twice; names must differ",
    ),
    (
        {"player": ["ann", "bob", "ann", "bob", "eve"]},
        {"group": "player"},
        "decision 12: column 'player' holds both ann and eve; one decision belongs to one group",
    ),
    ({"group": [1, 2, 1, None, 1]}, {}, "row 3 of the table: column 'group' has no value"),
    (
        {"legal": [1, 0, 1, 1, 1]},
        {"available": "legal"},
        "decision 7: the chosen action is marked as not available; what was chosen was on offer",
    ),
    (
        {"legal": [1, 0, 1, 1, 0]},
        {"available": "legal"},
        "decision 12: the chosen action is marked as not available",
    ),
    (
        {"legal": [1, 0, 1, 0, 1]},
        {"available": "legal", "chosen": None},
        "decision 7: no action is available; every decision needs at least one",
    ),
    (
        {"legal": [1, 3, 1, 1, 1]},
        {"available": "legal"},
        f"decision 7: column 'legal' holds 3; {NOT_FLAGS}",
    ),
    (
        {"legal": list("yynyo")},
        {"available": "legal"},
        f"decision 12: column 'legal' holds 'o'; {NOT_FLAGS}",
    ),
]


def test_bad_tables_are_refused_with_a_sentence() -> None:
    for changes, options, sentence in REFUSED:
        with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
            from_dataframe(pa.table(columns(**changes)), **options)
        assert "\n" not in str(caught.value), sentence


@pytest.mark.parametrize("maker", MAKERS)
def test_an_empty_table_is_refused(maker: str) -> None:
    table = MAKERS[maker]({name: values[:0] for name, values in columns().items()})
    with pytest.raises(ValueError, match="the table has no rows; at least one decision is needed"):
        from_dataframe(table)


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_values_of_pandas_are_refused(missing: Any) -> None:
    with pytest.raises(ValueError, match=f"decision 7, column 'height': {NOT_FINITE}"):
        from_dataframe(pd.DataFrame(columns(height=[1.0, missing, 2.0, 3.0, 4.0])))
    with pytest.raises(ValueError, match="row 1 of the table: column 'decision' has no value"):
        from_dataframe(pd.DataFrame(columns(decision=[12, missing, 12, 7, 12])))


def test_ids_that_are_nan_in_polars_are_refused() -> None:
    with pytest.raises(ValueError, match="row 1 of the table: column 'decision' has no value"):
        from_dataframe(pl.DataFrame(columns(decision=[1.5, np.nan, 1.5, 2.5, 1.5])))


@pytest.mark.parametrize("table", [[1, 2], {"decision": [1]}, "moves.csv", None, pd.Series([1, 2])])
def test_object_that_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(
        ValueError, match=f"table must be a dataframe .*, not {type(table).__name__}"
    ):
        from_dataframe(table)


def test_a_column_name_used_twice_is_refused() -> None:
    twice = "the table uses a column name twice .*'x'.*; names must differ"
    with pytest.raises(ValueError, match=twice):
        from_dataframe(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(ValueError, match=twice):
        from_dataframe(pa.table([[1], [2]], names=["x", "x"]))


def test_column_names_that_are_no_text_are_refused() -> None:
    with pytest.raises(
        ValueError, match="the table has a column called 0; column names must be text"
    ):
        from_dataframe(pd.DataFrame([[1, 2]]))


def test_columns_of_mixed_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="column 'action' mixes values of several kinds"):
        from_dataframe(pd.DataFrame(columns(action=[1, "a", 2, "b", 3])))


# ---- files


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_are_told_apart_by_their_names(tmp_path: Path, suffix: str) -> None:
    d = from_dataframe(pa.table(columns(group=["x", "y", "x", "y", "x"])))
    write_file(d, tmp_path / f"moves{suffix}")
    same(read_file(tmp_path / f"moves{suffix}"), d)
    same(read_file(str(tmp_path / f"moves{suffix}")), d)
    reader = read_csv if "csv" in suffix else read_parquet
    same(reader(tmp_path / f"moves{suffix}"), d)
    start = (tmp_path / f"moves{suffix}").read_bytes()[:4]
    assert (start == b'"dec') == (suffix == ".csv")
    assert start.startswith(b"\x1f\x8b") == (suffix == ".csv.gz")
    assert (start == b"PAR1") == (suffix in (".parquet", ".pq"))


def test_options_reach_the_table(tmp_path: Path) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("game,took,legal,note,x\n007,0,1,hm,1\n007,1,1,,2\n08,1,1,NA,3\n08,0,0,,\n")
    d = read_file(path, decision="game", chosen="took", available="legal", features=["x"])
    np.testing.assert_array_equal(d.ids, ["007", "08"])
    np.testing.assert_array_equal(d.sizes, [2, 1])


def test_csv_as_pandas_writes_it(tmp_path: Path) -> None:
    frame = pd.DataFrame(columns())
    for name in ("a.csv", "a.csv.gz"):
        frame.to_csv(tmp_path / name, index=False)
        same(read_file(tmp_path / name), from_dataframe(frame))


def test_csv_numbers_may_change_kind_late(tmp_path: Path) -> None:
    count = 200_000  # more than the first block that a reader looks at to guess types
    lines = [f"{t},1,1" for t in range(count)] + [f"{count},1,0.5"]
    (tmp_path / "a.csv").write_text("decision,chosen,x\n" + "\n".join(lines))
    d = read_csv(tmp_path / "a.csv")
    assert len(d) == count + 1
    assert d.rows[-1, 0] == 0.5


def test_csv_keeps_awkward_labels(tmp_path: Path) -> None:
    labels = [
        "",
        "NA",
        "null",
        "nan",
        "1",
        "007",
        " pad ",
        'quo"te',
        "com,ma",
        "new\nline",
        "return\r",
        "é",
    ]
    d = Decisions(np.ones((len(labels), 1)), np.arange(len(labels) + 1), actions=labels)
    write_file(d, tmp_path / "a.csv")
    np.testing.assert_array_equal(read_csv(tmp_path / "a.csv", chosen=None).actions, d.actions)


def test_csv_labels_may_break_lines_anywhere(tmp_path: Path) -> None:
    # four megabytes: more than one block, so that a label's line break meets the edge of a block
    count = 20_000
    d = Decisions(np.ones((count, 1)), np.arange(count + 1), actions=["x" + "\n" * 200] * count)
    write_file(d, tmp_path / "a.csv")
    np.testing.assert_array_equal(read_csv(tmp_path / "a.csv", chosen=None).actions, d.actions)


@pytest.mark.parametrize("line", ["1,1,", "1,1,NA", "1,1,nan", "1,1,inf"])
def test_csv_cells_without_a_number_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.csv").write_text(f"decision,chosen,x\n0,1,1.5\n{line}\n")
    with pytest.raises(ValueError, match=f"decision 1, column 'x': {NOT_FINITE}"):
        read_csv(tmp_path / "a.csv")


def test_csv_rows_without_an_id_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("decision,chosen,x\na,1,1.5\n,1,2\n")
    with pytest.raises(ValueError, match="row 1 of the table: column 'decision' has no value"):
        read_csv(tmp_path / "a.csv")


@pytest.mark.parametrize("read", [read_file, read_csv, read_parquet])
def test_missing_file_is_refused(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "moves.csv"
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: there is no such file$"):
        read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_folder_in_place_of_a_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"moves{suffix}"
    path.mkdir()
    with pytest.raises(
        ValueError, match=f"^{re.escape(str(path))}: this is a folder; give the .* file itself$"
    ):
        read_file(path)


CORRUPT = (
    b"",
    b"PAR1 and nothing else",
    b"\x00\xff\xfe\x01" * 50,
    b"a,b\n1,2\n3\n",
    b'a,b\n"x\ny"\n',
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_corrupt_files_are_refused(tmp_path: Path, suffix: str) -> None:
    for content in CORRUPT:
        assert_refused_as_corrupt(tmp_path / f"moves{suffix}", content)


def assert_refused_as_corrupt(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"this is not a .* file that can be read|the table has no"
    ) as caught:
        read_file(path)
    assert "\n" not in str(caught.value)
    assert "rv.read_file reads" not in str(caught.value)
    if "the table" not in str(caught.value):  # text that parses, but is no table of decisions
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("suffix", [".xlsx", ".dta", ".parquet"])
def test_file_of_another_format_is_refused_with_what_reads_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"moves{suffix}"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match=f"not a CSV file .*; rv.read_file reads {suffix} files$"):
        read_csv(path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv.gz"])
def test_truncated_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"moves{suffix}"
    write_file(from_dataframe(pa.table(columns())), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        ValueError, match=f"^{re.escape(str(path))}: this is not a .* file that can be read"
    ):
        read_file(path)


@pytest.mark.parametrize("name", ["moves", "moves.sav", "moves.gz", "moves.parquet.txt"])
def test_unknown_suffix_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    sentence = (
        f"^{re.escape(str(path))}: the file name must end with .parquet, .pq, .csv or .csv.gz$"
    )
    with pytest.raises(ValueError, match=r"or .dta; read other formats with pandas, and give"):
        read_file(path)
    with pytest.raises(ValueError, match=sentence):
        write_file(from_dataframe(pa.table(columns())), path)
    assert not path.exists()


# ---- writing


def test_written_table_has_the_standard_columns() -> None:
    d = from_dataframe(pa.table(columns(group=["x", "y", "x", "y", "x"])))
    table = to_dataframe(d)
    assert table.column_names == ["decision", "action", "group", "chosen", "height", "holes"]
    assert table["decision"].to_pylist() == [12, 12, 12, 7, 7]
    assert table["group"].to_pylist() == ["x", "x", "x", "y", "y"]
    assert table["chosen"].to_pylist() == [False, False, True, True, False]
    assert table["height"].to_pylist() == [3.0, 2.5, 0.1, 4.0, -1.0]


def test_columns_of_what_is_not_known_are_left_out() -> None:
    table = to_dataframe(Decisions([[1.0], [2.0], [3.0]], [0, 2, 3]))
    assert table.column_names == ["decision", "action", "v0"]
    assert table["action"].to_pylist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("backend", "kind"), [("pyarrow", pa.Table), ("pandas", pd.DataFrame), ("polars", pl.DataFrame)]
)
def test_every_backend_gives_its_own_kind_of_table(backend: str, kind: Any) -> None:
    d = from_dataframe(pa.table(columns()))
    table = to_dataframe(d, backend)
    assert isinstance(table, kind)
    same(from_dataframe(table), d)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(
        ValueError, match="backend must be 'pyarrow', 'pandas' or 'polars', not 'excel'"
    ):
        to_dataframe(from_dataframe(pa.table(columns())), "excel")


@pytest.mark.parametrize("name", ["decision", "action", "group", "chosen", "", "__index_level_0__"])
def test_a_feature_name_that_is_taken_is_refused(tmp_path: Path, name: str) -> None:
    d = Decisions([[1.0, 2.0]], [0, 1], names=["x", name])
    sentence = (
        f"a feature is called {name!r}, a column name with a meaning of its own; "
        "rename it before writing"
    )
    with pytest.raises(ValueError, match=sentence):
        to_dataframe(d)
    with pytest.raises(ValueError, match=sentence):
        write_file(d, tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_ids_used_twice_are_refused() -> None:
    d = from_dataframe(pa.table(columns()))
    with pytest.raises(
        ValueError, match="two decisions have the same id, and a table could not tell them apart"
    ):
        to_dataframe(d[[0, 0]])


def test_labels_a_column_cannot_hold_are_refused() -> None:
    mixed = np.array([1, "a"], dtype=object)
    with pytest.raises(
        ValueError,
        match="groups mixes values of several kinds; a table column holds numbers or text",
    ):
        to_dataframe(Decisions([[1.0], [2.0]], [0, 1, 2], groups=mixed))
    with pytest.raises(ValueError, match="ids has a label that is missing or NaN"):
        to_dataframe(Decisions([[1.0], [2.0]], [0, 1, 2], ids=[1.0, np.nan]))


@pytest.mark.parametrize(
    "labels", [["1", "2"], ["0.5", "1.5"], ["true", "false"], np.array([1, 2], "datetime64[s]")]
)
def test_labels_that_csv_would_change_are_refused(tmp_path: Path, labels: Any) -> None:
    for field in ("ids", "actions", "groups"):
        d = Decisions([[1.0], [2.0]], [0, 1, 2], **{field: labels})
        with pytest.raises(
            ValueError, match=r"would come back from CSV as another type; write \.parquet"
        ):
            write_file(d, tmp_path / "a.csv")
        assert list(tmp_path.iterdir()) == []
        write_file(d, tmp_path / "a.parquet")
        back = read_file(tmp_path / "a.parquet", chosen=None)
        np.testing.assert_array_equal(getattr(back, field), getattr(d, field))
        (tmp_path / "a.parquet").unlink()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    d = from_dataframe(pa.table(columns()))
    path = tmp_path / "moves.csv"
    path.write_text("old " * 10_000)
    write_file(d, path)
    same(read_file(path), d)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_path_that_cannot_be_written_is_refused(tmp_path: Path, suffix: str) -> None:
    d = from_dataframe(pa.table(columns()))
    (tmp_path / "file").write_text("in the way")
    (tmp_path / f"folder{suffix}").mkdir()
    for path in (
        tmp_path / "nowhere" / f"a{suffix}",
        tmp_path / "file" / f"a{suffix}",
        tmp_path / f"folder{suffix}",
    ):
        with pytest.raises(
            ValueError,
            match=f"{re.escape(str(path))} is a folder|"
            f"there is no folder {re.escape(str(path.parent))}",
        ):
            write_file(d, path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", f"folder{suffix}"]
    assert list((tmp_path / f"folder{suffix}").iterdir()) == []


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_breaks_off_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("old")

    def half(table: Any, sink: Any) -> None:
        sink.write(b"half of it")
        raise failure

    monkeypatch.setattr(pyarrow.csv, "write_csv", half)
    expected: Any = ValueError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        write_file(from_dataframe(pa.table(columns())), path)
    if isinstance(failure, OSError):
        assert str(caught.value) == f"{path} cannot be written: No space left on device"
    assert [p.name for p in tmp_path.iterdir()] == ["moves.csv"]
    assert path.read_text() == "old"


# ---- laws

LABEL = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
# larger ones are refused
NUMBER = st.floats(-1e99, 1e99, allow_nan=False, allow_subnormal=True)


@st.composite
def some_decisions(draw: st.DrawFn) -> Decisions:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    names = draw(st.lists(LABEL.map(lambda name: f"x{name}"), min_size=1, max_size=3, unique=True))
    total = sum(sizes)
    rows: Any = np.array(
        draw(
            st.lists(
                st.lists(NUMBER, min_size=len(names), max_size=len(names)),
                min_size=total,
                max_size=total,
            )
        )
    )

    def labels(count: int, unique: bool) -> Any:
        # A letter in front: text that reads as a number has a test of its own.
        text = LABEL.map(lambda label: f"t{label}")
        kind = draw(
            st.sampled_from(
                [text, st.integers(-(2**62), 2**62), st.booleans()][: 2 if unique else 3]
            )
        )
        return draw(st.lists(kind, min_size=count, max_size=count, unique=unique))

    # No action is twice in a decision.
    position = np.concatenate([np.arange(size) for size in sizes])
    distinct = np.array(labels(max(sizes), True))
    return Decisions(
        sp.csr_array(rows) if draw(st.booleans()) else rows,
        np.concatenate([[0], np.cumsum(sizes)]),
        [draw(st.integers(0, size - 1)) for size in sizes] if draw(st.booleans()) else None,
        names=names,
        actions=distinct[position].tolist() if draw(st.booleans()) else None,
        groups=labels(len(sizes), False) if draw(st.booleans()) else None,
        ids=labels(len(sizes), True),
    )


def marks(d: Decisions) -> dict[str, Any]:
    return {} if d.chosen is not None else {"chosen": None}


@unlikely
@law
@given(some_decisions(), st.sampled_from(["pyarrow", "pandas", "polars"]))
def test_tables_give_back_what_they_were_given(d: Decisions, backend: str) -> None:
    same(from_dataframe(to_dataframe(d, backend), **marks(d)), d)


@unlikely
@law
@given(some_decisions(), st.sampled_from(SUFFIXES))
def test_files_give_back_what_they_were_given(d: Decisions, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"moves{suffix}")
        write_file(d, path)
        same(read_file(path, **marks(d)), d)


@unlikely
@law
@given(some_decisions(), st.sampled_from(["pyarrow", "pandas", "polars"]), st.data())
def test_interleaved_rows_are_brought_together(
    d: Decisions, backend: str, data: st.DataObject
) -> None:
    """Deal the decisions' rows like cards: each keeps its own order, whatever comes between."""
    turn = np.array(data.draw(st.permutations(d.decision_of_row.tolist())))
    rows = np.empty(len(turn), dtype=np.int64)
    rows[np.argsort(turn, kind="stable")] = np.arange(len(turn))
    table = to_dataframe(d).take(pa.array(rows))
    as_backend: dict[str, Any] = {
        "pyarrow": pa.table,
        "pandas": pa.Table.to_pandas,
        "polars": pl.from_arrow,
    }
    shuffled = as_backend[backend](table)
    first = np.array(list(dict.fromkeys(turn.tolist())))
    same(from_dataframe(shuffled, **marks(d)), d[first])


def test_floats_survive_csv_to_the_last_bit(tmp_path: Path) -> None:
    bits = np.random.default_rng(3).integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    values = bits[np.abs(bits) < 1e99]  # larger ones, and NaN, are refused
    d = Decisions(values[:, None], np.arange(len(values) + 1), np.zeros(len(values)))
    write_file(d, tmp_path / "a.csv")
    np.testing.assert_array_equal(
        read_file(tmp_path / "a.csv").rows.view(np.uint64), d.rows.view(np.uint64)
    )


def test_a_million_shuffled_rows_come_back_together() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 20, 100_000)
    total = int(sizes.sum())
    d = Decisions(
        rng.standard_normal((total, 3)),
        np.concatenate([[0], np.cumsum(sizes)]),
        rng.integers(0, sizes),
        ids=np.arange(len(sizes)).astype(str),
    )
    back = from_dataframe(to_dataframe(d).take(pa.array(rng.permutation(total))))
    place = {label: t for t, label in enumerate(d.ids)}
    order = np.array([place[label] for label in back.ids])
    np.testing.assert_array_equal(back.sizes, d.sizes[order])
    np.testing.assert_array_equal(back.rows[back.chosen_row], d.rows[d.chosen_row][order])


def test_importing_the_module_stays_light() -> None:
    heavy = "{'pyarrow', 'narwhals', 'pandas', 'polars'}"
    code = (
        "import sys, revealed.io.files\n"
        f"found = {heavy} & set(sys.modules)\n"
        "assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_compressed_csv_is_ordinary_gzip(tmp_path: Path) -> None:
    write_file(from_dataframe(pa.table(columns())), tmp_path / "a.csv.gz")
    with gzip.open(tmp_path / "a.csv.gz", "rt") as file:
        assert file.readline() == '"decision","action","chosen","height","holes"\n'
