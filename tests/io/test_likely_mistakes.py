"""Tables that can be read and are likely mistaken are warned of, and other ways to write them are named."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import revealed as rv
from tests.support.command_line import SMALL, refuses, works, write

MAKERS: dict[str, Any] = {"pyarrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}
TRIPS: dict[str, Any] = {
    "decision": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
    "action": ["air", "bus", "car"] * 4,
    "chosen": [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0],
    "price": [5.0, 1.0, 2.0, 4.0, 2.0, 3.0, 6.0, 2.0, 1.0, 7.0, 3.0, 2.0],
}


def said(table: Any, **options: Any) -> list[str]:
    """What reading a table warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rv.from_dataframe(table, **options)
    assert all(warning.category is rv.DataWarning for warning in caught)
    # the warning points at the line that reads, not at the package
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


# --- columns that nobody asked for


DOUBTED = {
    "respondent": (
        [7] * 6 + [8] * 6,
        "'respondent' is the same for all actions of every decision and cannot inform a choice",
    ),
    "size": ([1.5] * 12, "'size' is the same for all actions of every decision"),
    "person_id": (np.arange(12) % 5, "'person_id' is named like an id"),
    "ID": (np.arange(12) % 5, "'ID' is named like an id"),
    "respondentID": (np.arange(12) % 5, "'respondentID' is named like an id"),
    "line": (np.arange(100, 112), "'line' counts the rows"),
    "mode": ([1, 2, 3] * 4, "'mode' numbers the actions of each decision"),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", DOUBTED)
def test_a_column_that_looks_like_no_feature_is_named(maker: str, name: str) -> None:
    values, doubt = DOUBTED[name]
    table = MAKERS[maker]({**TRIPS, name: values})
    (sentence,) = said(table)
    assert sentence.startswith(f"every column was taken for a feature ('price', '{name}'), but ")
    assert doubt in sentence
    assert sentence.endswith(
        "; pass features=[...] (on the command line --features) to pick the columns"
    )
    # who asks for it gets it
    assert said(table, features=["price", name]) == []
    assert rv.from_dataframe(table, features=["price", name]).names == ("price", name)


def test_several_are_named_in_one_sentence() -> None:
    table = pa.table({**TRIPS, "person": [1] * 6 + [2] * 6, "row_id": np.arange(12)})
    (sentence,) = said(table)
    assert "'person' is the same" in sentence
    assert "'row_id' is named like an id" in sentence


def test_plain_features_are_read_quietly() -> None:
    plain = {
        "paid": [0, 1, 0] * 4,  # ends with id, and is no id
        "price_index": np.arange(12) % 7,
        "is_second": [0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0],
        "wait": [3, 1, 2, 9, 8, 7, 12, 11, 10, 6, 5, 4],  # whole numbers, all different
        "V(far)": [0.0] * 12,  # a state that no action leads to
    }
    assert said(pa.table({**TRIPS, **plain})) == []
    # of decisions with one action nothing can be said
    alone = pa.table({"decision": [1, 2, 3], "chosen": [1, 1, 1], "x": [2.0, 3.0, 5.0]})
    assert said(alone) == []
    pairs = pa.table({"decision": [1, 1, 2, 2], "chosen": [1, 0, 0, 1], "new": [0, 1, 0, 1]})
    assert said(pairs) == []
    # one decision says little of a column, and one whose choice was not seen nothing
    one = pa.table({"decision": [1, 1], "chosen": [1, 0], "x": [2.0, 2.0]})
    assert said(one) == []
    assert said(pa.table({**TRIPS, "size": [1.5] * 12}), chosen=None) == []


# --- labels and rows


@pytest.mark.parametrize("other", ["AIR", "air ", " Air"])
def test_labels_that_differ_in_case_or_blanks_are_told(other: str) -> None:
    table = {**TRIPS, "action": ["air", "bus", "car"] * 3 + [other, "bus", "car"]}
    (sentence,) = said(pa.table(table))
    assert sentence == (
        f"column 'action': 'air' and '{other}' differ only in case or blanks, and are taken for "
        "two; write them alike if they are one"
    )
    by_person = {**TRIPS, "group": ["ann"] * 6 + ["Ann"] * 6}
    (sentence,) = said(pa.table(by_person))
    assert sentence.startswith("column 'group': 'ann' and 'Ann' differ only in case or blanks")
    table["action"][4] = "bus "
    (sentence,) = said(pa.table(table))
    assert "(and 1 more like them), and are taken for two" in sentence


def test_an_action_twice_with_other_features_is_told() -> None:
    (sentence,) = said(pa.table({**TRIPS, "action": ["air", "bus", "bus"] * 4}))
    assert sentence.startswith("decision 1: action 'bus' is in the table twice, with other feature")
    # what was not on offer is no action twice
    offered = [True, True, False] * 4
    table = {**TRIPS, "action": ["air", "bus", "bus"] * 4, "legal": offered}
    table["chosen"] = [1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0]
    assert said(pa.table(table), available="legal") == []


@pytest.mark.parametrize("twice", [0, 1])
def test_a_row_twice_is_refused_whether_chosen_or_not(twice: int) -> None:
    rows = [*range(12), twice]
    table = {name: [values[row] for row in rows] for name, values in TRIPS.items()}
    label = TRIPS["action"][twice]
    with pytest.raises(ValueError, match=f"decision 1: action '{label}' is in the table twice"):
        rv.from_dataframe(pa.table(table))


# --- flags


@pytest.mark.parametrize(
    ("yes", "no"), [("yes", "no"), ("Y", "N"), ("TRUE", "False"), ("1", "0"), ("1.0", " 0.0 ")]
)
@pytest.mark.parametrize("maker", MAKERS)
def test_choices_may_be_words(maker: str, yes: str, no: str) -> None:
    words = [yes if flag else no for flag in TRIPS["chosen"]]
    d = rv.from_dataframe(MAKERS[maker]({**TRIPS, "chosen": words}))
    np.testing.assert_array_equal(d.chosen, [0, 1, 2, 0])


def test_choices_may_be_categories() -> None:
    frame = pd.DataFrame({**TRIPS, "chosen": pd.Categorical(["no", "yes"] * 6)})
    with pytest.raises(ValueError, match="decision 2: 2 actions are marked chosen"):
        rv.from_dataframe(frame)


# --- files


def lines(sep: str = ",", decimal: str = ".") -> str:
    rows = zip(*TRIPS.values(), strict=True)
    body = [sep.join(str(cell).replace(".", decimal) for cell in row) for row in rows]
    return "\n".join([sep.join(TRIPS), *body]).replace("air", "aéro") + "\n"


@pytest.mark.parametrize(("sep", "shown"), [(";", ";"), ("\t", "tab"), ("|", "|")])
def test_another_separator_is_named_and_read(tmp_path: Path, sep: str, shown: str) -> None:
    path = write(tmp_path / "trips.csv", lines(sep))
    sentence = (
        f"{path}: the columns are separated by {sep!r}, not by ','; pass sep={sep!r} "
        f'(on the command line --sep "{shown}")'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        rv.read_csv(path)
    assert rv.read_csv(path, sep=sep).names == ("price",)
    assert rv.read_file(path, sep=sep).actions is not None
    with pytest.raises(ValueError, match="separated by ',', not by ';'"):
        rv.read_csv(write(tmp_path / "plain.csv", lines()), sep=";")


def test_a_decimal_comma_is_named_and_read(tmp_path: Path) -> None:
    path = write(tmp_path / "trips.csv", lines(";", ","))
    with pytest.raises(ValueError, match="has numbers with a decimal comma, such as '5,0'; read t"):
        rv.read_csv(path, sep=";")
    d = rv.read_csv(path, sep=";", decimal=",")
    np.testing.assert_array_equal(d.rows[:, 0], TRIPS["price"])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_named_and_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "trips.csv"
    path.write_bytes(lines().encode(encoding))
    sentence = f'the text is not utf-8; pass encoding="{encoding}" (on the command line --encoding'
    with pytest.raises(ValueError, match=re.escape(sentence)):
        rv.read_csv(path)
    actions = rv.read_csv(path, encoding=encoding).actions
    assert actions is not None
    assert actions[0] == "aéro"
    # the name of a column
    path.write_bytes(lines().replace("price", "prié").encode("latin-1"))
    with pytest.raises(ValueError, match="the text is not utf-8"):
        rv.read_csv(path)


def test_a_text_feature_in_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_bytes("decision,chosen,x\n1,1,é\n1,0,à\n".encode("latin-1"))
    with pytest.raises(ValueError, match="column 'x' holds text that is not UTF-8; pass encoding="):
        rv.read_csv(path)


def test_formats_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "trips.csv", lines())
    with pytest.raises(
        ValueError, match="sep must be one character, such as ',' or ';'; it is '::'"
    ):
        rv.read_csv(path, sep="::")
    with pytest.raises(ValueError, match="encoding 'klingon' is not known; give one such as utf-8"):
        rv.read_csv(path, encoding="klingon")
    rv.write_file(rv.read_csv(path), tmp_path / "trips.parquet")
    with pytest.raises(ValueError, match="this is no CSV file, so leave out sep"):
        rv.read_file(tmp_path / "trips.parquet", sep=";")
    with pytest.raises(ValueError, match="a dataframe is read already, so leave out sep"):
        rv.read_rankings(pa.table({"game": [1]}), sep=";")
    with pytest.raises(TypeError, match="there is no argument separator"):
        rv.read_rankings(path, separator=";")


def test_stata_files_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(TRIPS)
    frame["chosen"] = pd.Categorical(["yes" if flag else "no" for flag in frame["chosen"]])
    frame.to_stata(tmp_path / "trips.dta", write_index=False)
    d = rv.read_file(tmp_path / "trips.dta")
    np.testing.assert_array_equal(d.chosen, [0, 1, 2, 0])
    write(tmp_path / "broken.dta", "no Stata")
    with pytest.raises(ValueError, match=r"broken.dta: this Stata file cannot be read"):
        rv.read_file(tmp_path / "broken.dta")


def test_excel_files_are_read_by_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first sheet, with the row numbers that pandas wrote; the library for it need not be there."""
    path = write(tmp_path / "trips.xlsx", "a sheet")
    frame = pd.DataFrame({"Unnamed: 0": np.arange(12), **TRIPS})
    monkeypatch.setattr(pd, "read_excel", lambda _, engine: frame)
    assert rv.read_file(path).names == ("price",)
    assert len(rv.read_rankings(path, game="decision", player="action", score="price")) == 4


@pytest.mark.parametrize(
    ("name", "missing", "needs"),
    [
        (
            "trips.xlsx",
            "openpyxl",
            r"\.xlsx needs pandas and openpyxl \(pip install pandas openpyxl\)",
        ),
        ("trips.dta", "pandas", r"\.dta needs pandas \(pip install pandas\)"),
    ],
)
def test_what_a_format_needs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, missing: str, needs: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    # a workbook is a zip archive, by which pandas knows it
    (tmp_path / name).write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(ValueError, match=f"reading {needs}; or save the table as .csv"):
        rv.read_file(tmp_path / name)


# --- the command line


def test_the_command_line_says_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    body = lines(";", ",").replace("price", "price;person")
    rows = [f"{line};{t // 6}" for t, line in enumerate(body.splitlines()[1:])]
    Path("trips.csv").write_bytes("\n".join([body.splitlines()[0], *rows, ""]).encode("latin-1"))
    fit = ("fit", "trips.csv", "--out", "p.nc", *SMALL)
    form: tuple[str, ...]
    assert '(on the command line --sep ";")' in refuses(*fit)
    assert "--encoding latin-1" in refuses(*fit, "--sep", ";")
    form = ("--sep", ";", "--encoding", "latin-1")
    assert '--decimal ","' in refuses(*fit, *form)
    form = (*form, "--decimal", ",")
    result = works(*fit, *form)
    assert "revealed: warning: every column was taken for a feature" in result.stderr
    assert "'person' is the same for all actions" in result.stderr
    quiet = works(*fit, *form, "--features", "price")
    assert "warning" not in quiet.stderr
    predicted = works("predict", "p.nc", "trips.csv", *form, "--out", "o.csv", "--no-progress")
    assert "Error E_a" in predicted.stdout
    assert "this is no CSV file, so leave out --sep" in refuses(
        "fit", ".", "--out", "q.nc", "--sep", ";"
    )
