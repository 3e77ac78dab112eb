"""Long tables in files, Parquet or CSV: decisions read and written, and columns of other tables."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from revealed.data.decisions import Decisions
from revealed.io.atomic import atomic_open
from revealed.io.columns import Arrow, collect_columns, open_dataframe
from revealed.io.dataframes import from_dataframe, to_dataframe


def read_file(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a .parquet (.pq) or .csv (.csv.gz) file.

    Parameters
    ----------
    path
        A file whose name ends with .parquet, .pq, .csv or .csv.gz.
    **options
        Those of `from_dataframe`.

    Returns
    -------
    Decisions
        As `read_parquet` or `read_csv` reads them.

    Examples
    --------
    >>> d = rv.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"])
    >>> rv.write_file(d, "drinks.csv")
    >>> rv.read_file("drinks.csv")
    <Decisions: 1 decisions of 2 actions, 2 coefficients, dense>
    """
    read = read_parquet if _format(path) == "parquet" else read_csv
    return read(path, **options)


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
    return from_dataframe(_read_parquet_table(path), **options)


def read_csv(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a CSV file, plain or .gz.

    Labels are numbers when all of them are written as numbers are, and otherwise stay as they
    are: 007 is text.

    Parameters
    ----------
    path
        A CSV file with a long table and a line of column names.
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
    import pyarrow as pa
    import pyarrow.csv

    # Columns of labels are read as text, so that 007 does not become 7.
    labels = {options.get(role, role) for role in ("decision", "action", "group")}
    labels -= {None, *(options.get("features") or ())}
    with reading(path, "CSV"):
        table = pa.csv.read_csv(
            path,
            # A quoted label may hold a line break.
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in labels},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
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

    kind = _format(path)
    # The table is made before the file, so that a mistake leaves no file.
    table = to_dataframe(decisions)
    if kind != "parquet":
        _check_csv_keeps_labels(table)
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
    table: Any, names: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """Some columns of a dataframe or of a .parquet, .pq, .csv or .csv.gz file, as lists.

    The text of a CSV file stays as it was written. optional: columns that need not be there.
    """
    import pyarrow as pa
    import pyarrow.csv

    if isinstance(table, str | os.PathLike):
        path = table
        if _format(path) == "parquet":
            table = _read_parquet_table(path)
        else:
            as_text = pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in (*names, *optional)},
                strings_can_be_null=True,
            )
            with reading(path, "CSV"):
                table = pa.csv.read_csv(path, convert_options=as_text)
    # A file is a pyarrow table by now; a dataframe is taken as it is.
    frame, columns = open_dataframe(table)
    for name in names:
        if name not in columns:
            raise ValueError(
                f"the table has no column {name!r}, only {', '.join(map(repr, columns))}"
            )
    found = [name for name in optional if name in columns]
    collected = collect_columns(frame, [*names, *found])
    return {name: column.to_pylist() for name, column in collected.items()}


def _format(path: str | os.PathLike[str]) -> str:
    """The format that the ending of a file's name stands for: "parquet", "csv" or "csv.gz"."""
    name = os.fspath(path).lower()
    for ending, kind in (
        (".parquet", "parquet"),
        (".pq", "parquet"),
        (".csv", "csv"),
        (".csv.gz", "csv.gz"),
    ):
        if name.endswith(ending):
            return kind
    raise ValueError(f"{path}: the file name must end with .parquet, .pq, .csv or .csv.gz")


def _read_parquet_table(path: str | os.PathLike[str]) -> Arrow:
    """The table in a Parquet file, as pyarrow reads it.

    A file that is missing, a folder, or no Parquet file is refused in a sentence that names it.
    """
    import pyarrow.parquet as pq

    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        return file.read()


@contextmanager
def reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """While a file is read: what goes wrong becomes one sentence that names the file."""
    import pyarrow as pa

    # Asked beforehand, because the library's messages about these say little.
    if os.path.isdir(path):
        raise ValueError(f"{path}: this is a folder; give the {kind} file itself")
    if not os.path.exists(path):
        raise ValueError(f"{path}: there is no such file")
    try:
        yield
    except (OSError, EOFError, pa.ArrowException) as error:
        # The library's own reason, as far as its first line.
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ValueError(f"{path}: this is not a {kind} file that can be read ({reason})") from None


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


def _check_csv_keeps_labels(table: Arrow) -> None:
    """Refuse labels that would come back from CSV as another type, such as the text "7"."""
    import pyarrow as pa

    for name in ("decision", "action", "group"):
        if name in table.column_names:
            column = table[name].unique()
            # What reading would make of what writing writes.
            back = _infer_type(column.cast(pa.string()))
            if pa.types.is_string(back.type) != pa.types.is_string(column.type):
                raise ValueError(
                    f"the labels in column {name!r}, such as {column[0]}, would come back from CSV "
                    "as another type; write .parquet, or change the labels"
                )
