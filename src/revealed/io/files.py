"""Long tables in files: decisions read and written, and columns of other tables."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from typing import Any

from revealed.data.decisions import Decisions
from revealed.io.atomic import atomic_open
from revealed.io.column_values import is_text
from revealed.io.columns import Arrow, collect_lists, open_dataframe
from revealed.io.dataframes import from_dataframe, to_dataframe
from revealed.io.table_checks import missing_column
from revealed.io.table_files import (
    CsvFormat,
    csv_options,
    format_of,
    format_to_write,
    read_csv_table,
    read_parquet_table,
    read_table,
)


def read_file(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a .parquet (.pq), .csv (.csv.gz), .xlsx or .dta file.

    Parameters
    ----------
    path
        A file whose name ends with .parquet, .pq, .csv, .csv.gz, .xlsx or .dta. The first sheet of
        an Excel file and the table of a Stata file are read by pandas, where it is installed.
    **options
        Those of `from_dataframe`, and of a CSV file those of `read_csv`.

    Returns
    -------
    Decisions
        As `read_parquet`, `read_csv` or `from_dataframe` reads them.

    Examples
    --------
    >>> d = rv.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"])
    >>> rv.write_file(d, "drinks.csv")
    >>> rv.read_file("drinks.csv")
    <Decisions: 1 decisions of 2 actions, 2 coefficients, dense>
    """
    if format_of(path) in ("csv", "csv.gz"):
        return read_csv(path, **options)
    form = {name: options.pop(name) for name in csv_options() if name in options}
    return from_dataframe(read_table(path, csv_format=form), **options)


def read_parquet(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a Parquet file.

    Parameters
    ----------
    path
        A Parquet file with a long table.
    **options
        Those of `from_dataframe`.

    Returns
    -------
    Decisions
        In the order of the table.

    Examples
    --------
    >>> d = rv.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"])
    >>> rv.write_file(d, "drinks.parquet")
    >>> rv.read_parquet("drinks.parquet", features=["tea"]).names
    ('tea',)
    """
    return from_dataframe(read_parquet_table(path), **options)


def read_csv(
    path: str | os.PathLike[str],
    *,
    sep: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    **options: Any,
) -> Decisions:
    """Decisions from a CSV file, plain or .gz.

    Labels are numbers when all of them are written as numbers are, and otherwise stay as they
    are: 007 is text.

    Parameters
    ----------
    path
        A CSV file with a long table and a line of column names.
    sep, decimal
        What is between two columns, and before the decimals of a number: ";" and "," in files of
        many spreadsheets.
    encoding
        Of the text, such as "latin-1", "cp1252" or "utf-16".
    **options
        Those of `from_dataframe`.

    Returns
    -------
    Decisions
        In the order of the table.

    Examples
    --------
    >>> import pathlib
    >>> table = "trip,by,took,minutes\\n1,bus,0,30\\n1,car,1,20\\n"
    >>> _ = pathlib.Path("trips.csv").write_text(table)
    >>> d = rv.read_csv("trips.csv", decision="trip", action="by", chosen="took")
    >>> d, d.actions.tolist()
    (<Decisions: 1 decisions of 2 actions, 1 coefficients, dense>, ['bus', 'car'])
    """
    # Columns of labels are read as text, so that 007 does not become 7.
    labels = {options.get(role, role) for role in ("decision", "action", "group")}
    # A column of sessions is one only where it is asked for.
    labels |= {options.get("session")}
    labels -= {None, *(options.get("features") or ())}
    table = read_csv_table(path, labels, CsvFormat(sep, decimal, encoding))
    # Labels that all look like numbers become numbers after all.
    for at, name in enumerate(table.column_names):
        if name in labels:
            table = table.set_column(at, name, _infer_type(table.column(at)))
    return from_dataframe(table, **options)


def write_file(decisions: Decisions, path: str | os.PathLike[str]) -> None:
    """Write the decisions to a .parquet (.pq) or .csv (.csv.gz) file: all of it, or nothing.

    Parameters
    ----------
    decisions
        What `to_dataframe` makes a table of.
    path
        A file name that ends with .parquet, .pq, .csv or .csv.gz.

    Examples
    --------
    >>> d = rv.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"])
    >>> rv.write_file(d, "drinks.parquet")
    >>> rv.read_file("drinks.parquet").names
    ('tea', 'coffee')
    """
    import pyarrow.csv
    import pyarrow.parquet

    kind = format_to_write(path)
    # The table is made before the file, so that a mistake leaves no file.
    table = to_dataframe(decisions)
    if kind != "parquet":
        _check_csv_keeps_labels(table, decisions.sessions is not None)
    with atomic_open(path) as stream:
        if kind == "parquet":
            pyarrow.parquet.write_table(table, stream)
        elif kind == "csv":
            pyarrow.csv.write_csv(table, stream)
        else:
            # Without a time inside, so that equal decisions make equal files.
            with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1, mtime=0) as packed:
                pyarrow.csv.write_csv(table, packed)


def read_columns(
    table: Any,
    names: Sequence[str],
    optional: Sequence[str] = (),
    csv_format: Mapping[str, Any] | None = None,
) -> dict[str, list[Any]]:
    """Some columns of a dataframe or of a file, as lists.

    The text of a CSV file stays as it was written. optional: columns that need not be there.
    csv_format: how a CSV file is written, where that is not as usual.
    """
    unknown = set(csv_format or {}) - set(csv_options())
    if unknown:
        raise TypeError(f"there is no argument {', '.join(sorted(unknown))}")
    if isinstance(table, str | os.PathLike):
        table = read_table(table, (*names, *optional), csv_format, quoted_null=True)
    elif csv_format:
        raise ValueError(f"a dataframe is read already, so leave out {', '.join(csv_format)}")
    # A file is a table by now; a dataframe is taken as it is.
    frame, columns = open_dataframe(table)
    for name in names:
        if name not in columns:
            raise ValueError(missing_column(name, columns))
    found = [name for name in optional if name in columns]
    return collect_lists(frame, [*names, *found])


def _infer_type(text: Arrow) -> Arrow:
    """Text labels as numbers (or true and false) if writing those gives the same text back."""
    import pyarrow as pa

    distinct = text.unique()
    # The narrowest type first: 7 is a whole number, 7.5 is not.
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            if distinct.cast(kind).cast(pa.string()).equals(distinct):
                return text.cast(kind)
        except pa.ArrowException:
            continue
    return text


def _check_csv_keeps_labels(table: Arrow, has_sessions: bool) -> None:
    """Refuse labels that would come back from CSV as another type, such as the text "7".

    has_sessions: whether a column called session is one of labels, and no feature.
    """
    import pyarrow as pa

    for name in ("decision", "action", "group", *(["session"] if has_sessions else [])):
        if name in table.column_names:
            column = table[name].unique()
            # What reading would make of what writing writes.
            back = _infer_type(column.cast(pa.string()))
            if is_text(back.type) != is_text(column.type):
                raise ValueError(
                    f"the labels in column {name!r}, such as {column[0]}, would come back from CSV "
                    "as another type; write .parquet, or change the labels"
                )
