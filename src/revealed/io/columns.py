"""Columns of any dataframe, as Arrow arrays: pandas, polars, pyarrow, or what narwhals knows."""

from __future__ import annotations

from typing import Any

Arrow = Any  # a pyarrow array or table; pyarrow is imported only where it is used


def open_dataframe(table: Any) -> tuple[Any, list[str]]:
    """A dataframe of any kind as narwhals sees it, and the names of its columns.

    Names must be text and differ from one another. What is no dataframe is refused in a sentence.
    """
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        # Lazy tables are accepted too; only their schema is read at first.
        frame = nw.from_native(table)
        columns = frame.collect_schema().names()
    except DuplicateError as error:
        twice = ", ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        raise ValueError(
            f"the table uses a column name twice ({twice}); names must differ"
        ) from None
    except TypeError:
        raise ValueError(
            f"table must be a dataframe (pandas, polars, pyarrow, ...), not {type(table).__name__}"
        ) from None
    for name in columns:
        if not isinstance(name, str):
            raise ValueError(f"the table has a column called {name!r}; column names must be text")
    return frame, columns


def collect_columns(frame: Any, columns: list[str]) -> dict[str, Arrow]:
    """The columns as Arrow arrays by name.

    Each is one array of plain values, neither chunked nor categorical. A table without rows is
    refused.
    """
    import pyarrow as pa

    frame, table = _collect(frame, columns), {}
    for name in columns:
        # Columns of Python objects may hold what Arrow has no type for.
        try:
            values = frame[name].to_arrow()
        except (pa.ArrowException, TypeError):
            raise ValueError(
                f"column {name!r} mixes values of several kinds, or holds one that is not known"
            ) from None
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        # Categories become the values they stand for.
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        table[name] = values
    return table


def collect_lists(frame: Any, columns: list[str]) -> dict[str, list[Any]]:
    """The columns as lists by name, with None where a value is missing.

    A column may mix values of several kinds, such as the positions 1, 2 and "DNF".
    """
    frame, table = _collect(frame, columns), {}
    for name in columns:
        try:
            table[name] = collect_columns(frame, [name])[name].to_pylist()
        except ValueError:
            listed = frame[name].to_list()
            # NaN is the only value that differs from itself.
            table[name] = [None if item is None or item != item else item for item in listed]
    return table


def _collect(frame: Any, columns: list[str]) -> Any:
    """Some columns of a dataframe, read.

    A table without rows is refused.
    """
    import narwhals as nw

    frame = frame.select(columns)
    # Only the columns that are needed are ever computed.
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect("pyarrow")
    if len(frame) == 0:
        raise ValueError("the table has no rows; at least one decision is needed")
    return frame
