"""Long tables in files, Parquet or CSV: decisions read and written, and columns of any other table."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from understudy._files import whole_file
from understudy.decisions import Decisions
from understudy.frames import Arrow, collected, from_frame, opened, to_frame


def from_file(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a .parquet (.pq) or .csv (.csv.gz) file; the options are those of `from_frame`.

    >>> us.to_file(us.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"]), "drinks.csv")
    >>> us.from_file("drinks.csv")
    <Decisions: 1 decisions of 2 actions, 2 coefficients, dense>
    """
    return from_parquet(path, **options) if _format(path) == "parquet" else from_csv(path, **options)


def from_parquet(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a Parquet file; the options are those of `from_frame`.

    >>> us.to_file(us.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"]), "drinks.parquet")
    >>> us.from_parquet("drinks.parquet", features=["tea"]).names
    ('tea',)
    """
    return from_frame(_parquet(path), **options)


def from_csv(path: str | os.PathLike[str], **options: Any) -> Decisions:
    """Decisions from a CSV file, plain or .gz; the options are those of `from_frame`.

    Labels are numbers when all of them are written as numbers are, and otherwise stay as they are: 007 is text.

    >>> import pathlib
    >>> _ = pathlib.Path("trips.csv").write_text("trip,by,took,minutes\\n1,bus,0,30\\n1,car,1,20\\n")
    >>> d = us.from_csv("trips.csv", decision="trip", action="by", chosen="took")
    >>> d, d.actions.tolist()
    (<Decisions: 1 decisions of 2 actions, 1 coefficients, dense>, ['bus', 'car'])
    """
    import pyarrow as pa
    import pyarrow.csv

    labels = {options.get(role, role) for role in ("decision", "action", "group")}
    labels -= {None, *(options.get("features") or ())}
    with reading(path, "CSV"):
        table = pa.csv.read_csv(
            path,
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in labels},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    for at, name in enumerate(table.column_names):
        if name in labels:
            table = table.set_column(at, name, _typed(table.column(at)))
    return from_frame(table, **options)


def to_file(decisions: Decisions, path: str | os.PathLike[str]) -> None:
    """Write the decisions to a .parquet (.pq) or .csv (.csv.gz) file: all of it, or nothing.

    >>> us.to_file(us.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"]), "drinks.parquet")
    >>> us.from_file("drinks.parquet").names
    ('tea', 'coffee')
    """
    import pyarrow.csv
    import pyarrow.parquet

    kind = _format(path)
    table = to_frame(decisions)
    if kind != "parquet":
        _refuse_changed_by_csv(table)
    with whole_file(path) as stream:
        if kind == "parquet":
            pyarrow.parquet.write_table(table, stream)
        elif kind == "csv":
            pyarrow.csv.write_csv(table, stream)
        else:
            with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1, mtime=0) as packed:
                pyarrow.csv.write_csv(table, packed)


def read_columns(table: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Some columns of a dataframe or of a .parquet, .pq, .csv or .csv.gz file, as lists; text stays as it was written."""
    import pyarrow as pa
    import pyarrow.csv

    if isinstance(table, str | os.PathLike):
        path = table
        if _format(path) == "parquet":
            table = _parquet(path)
        else:
            text = pa.csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=True)
            with reading(path, "CSV"):
                table = pa.csv.read_csv(path, convert_options=text)
    frame, columns = opened(table)
    for name in names:
        if name not in columns:
            raise ValueError(f"the table has no column {name!r}, only {', '.join(map(repr, columns))}")
    return {name: column.to_pylist() for name, column in collected(frame, list(names)).items()}


def _format(path: str | os.PathLike[str]) -> str:
    for ending, kind in ((".parquet", "parquet"), (".pq", "parquet"), (".csv", "csv"), (".csv.gz", "csv.gz")):
        if os.fspath(path).lower().endswith(ending):
            return kind
    raise ValueError(f"{path}: the file name must end with .parquet, .pq, .csv or .csv.gz")


def _parquet(path: str | os.PathLike[str]) -> Arrow:
    import pyarrow.parquet as pq

    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        return file.read()


@contextmanager
def reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """While a file is read: what goes wrong becomes one sentence that names it."""
    import pyarrow as pa

    if os.path.isdir(path):
        raise ValueError(f"{path}: this is a folder; give the {kind} file itself")
    if not os.path.exists(path):
        raise ValueError(f"{path}: there is no such file")
    try:
        yield
    except (OSError, EOFError, pa.ArrowException) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ValueError(f"{path}: this is not a {kind} file that can be read ({reason})") from None


def _typed(text: Arrow) -> Arrow:
    """Text labels as numbers (or true and false) if writing those gives the same text back."""
    import pyarrow as pa

    distinct = text.unique()
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            if distinct.cast(kind).cast(pa.string()).equals(distinct):
                return text.cast(kind)
        except pa.ArrowException:
            continue
    return text


def _refuse_changed_by_csv(table: Arrow) -> None:
    import pyarrow as pa

    for name in ("decision", "action", "group"):
        if name in table.column_names:
            column = table[name].unique()
            back = _typed(column.cast(pa.string()))
            if pa.types.is_string(back.type) != pa.types.is_string(column.type):
                raise ValueError(
                    f"the labels in column {name!r}, such as {column[0]}, would come back from CSV as another type; "
                    "write .parquet, or change the labels"
                )
