"""Tables in files: Parquet and CSV, and through pandas the sheets of Excel and files of Stata."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from revealed.io.columns import Arrow


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written.

    sep: what is between two columns. decimal: what is before the decimals of a number. encoding: of
    its text.
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        # A shell has no tab on its keyboard.
        if self.sep in ("\\t", "tab"):
            object.__setattr__(self, "sep", "\t")
        for what, given in (("sep", self.sep), ("decimal", self.decimal)):
            if not isinstance(given, str) or len(given) != 1:
                raise ValueError(
                    f"{what} must be one character, such as ',' or ';'; it is {given!r}"
                )
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError):
            raise ValueError(
                f"encoding {self.encoding!r} is not known; give one such as utf-8, latin-1, cp1252 "
                "or utf-16"
            ) from None


def csv_options() -> tuple[str, ...]:
    """How a CSV file is written, as the names of arguments."""
    return tuple(field.name for field in fields(CsvFormat))


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the ending of a file's name stands for, of those that can be read."""
    name = os.fspath(path).lower()
    for kind in ("parquet", "pq", "csv", "csv.gz", "xlsx", "dta"):
        if name.endswith(f".{kind}"):
            return "parquet" if kind == "pq" else kind
    raise ValueError(
        f"{path}: the file name must end with .parquet, .pq, .csv, .csv.gz, .xlsx or .dta; "
        "read other formats with pandas, and give the dataframe"
    )


def format_to_write(path: str | os.PathLike[str]) -> str:
    """The same, of those that can be written."""
    if not os.fspath(path).lower().endswith((".parquet", ".pq", ".csv", ".csv.gz")):
        raise ValueError(f"{path}: the file name must end with .parquet, .pq, .csv or .csv.gz")
    return format_of(path)


def read_table(
    path: str | os.PathLike[str],
    text: Iterable[str] = (),
    csv_format: Mapping[str, Any] | None = None,
    quoted_null: bool = False,
) -> Any:
    """The table in a file, as pyarrow or pandas reads it.

    text: columns of a CSV file that stay as they are written. csv_format: the fields of CsvFormat
    that differ. quoted_null: whether a quoted NA is missing too.
    """
    kind = format_of(path)
    given = dict(csv_format or {})
    if kind in ("csv", "csv.gz"):
        return read_csv_table(path, text, CsvFormat(**given), quoted_null)
    if given:
        raise ValueError(f"{path}: this is no CSV file, so leave out {', '.join(given)}")
    return read_parquet_table(path) if kind == "parquet" else _read_by_pandas(path, kind)


def read_names(path: str | os.PathLike[str], csv_format: Mapping[str, Any]) -> list[str]:
    """The names of a file's columns.

    None where it cannot be read: reading it in full, which follows, explains that better.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    try:
        kind = format_of(path)
        # Only the names are read, where a format allows that.
        if kind == "parquet":
            return list(pa.parquet.read_schema(path).names)
        if kind in ("csv", "csv.gz"):
            form = CsvFormat(**csv_format)
            with pa.csv.open_csv(
                path,
                read_options=pa.csv.ReadOptions(encoding=form.encoding),
                parse_options=pa.csv.ParseOptions(delimiter=form.sep),
            ) as file:
                return list(file.schema.names)
        return [str(name) for name in _read_by_pandas(path, kind).columns]
    except (OSError, ValueError, pa.ArrowException):
        return []


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
        # whoever asked for another format by name is told what reads this one
        ending = os.path.splitext(path)[1].lower()
        its_own = {".csv": "CSV", ".parquet": "Parquet", ".pq": "Parquet"}
        its_own |= {".xlsx": "Excel", ".dta": "Stata"}
        other = its_own.get(ending, kind) != kind
        way_out = f"; rv.read_file reads {ending} files" if other else ""
        raise ValueError(
            f"{path}: this is not a {kind} file that can be read ({reason}){way_out}"
        ) from None


def read_parquet_table(path: str | os.PathLike[str]) -> Arrow:
    """The table in a Parquet file, as pyarrow reads it.

    A file that is missing, a folder, or no Parquet file is refused in a sentence that names it.
    """
    import pyarrow.parquet as pq

    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        return file.read()


def read_csv_table(
    path: str | os.PathLike[str], text: Iterable[str], form: CsvFormat, quoted_null: bool = False
) -> Arrow:
    """The table in a CSV file, as pyarrow reads it.

    Text and quoted_null as in `read_table`.
    """
    import pyarrow as pa
    import pyarrow.csv

    with reading(path, "CSV"):
        _check_first_line(path, form)
        try:
            return pa.csv.read_csv(
                path,
                read_options=pa.csv.ReadOptions(encoding=form.encoding),
                # A quoted label may hold a line break.
                parse_options=pa.csv.ParseOptions(delimiter=form.sep, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types={name: pa.string() for name in text},
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=quoted_null,
                    decimal_point=form.decimal,
                ),
            )
        except (UnicodeError, pa.ArrowInvalid) as error:
            if isinstance(error, UnicodeError) or "UTF8" in str(error):
                raise ValueError(_other_encoding(path, form, "latin-1")) from None
            raise


def _check_first_line(path: str | os.PathLike[str], form: CsvFormat) -> None:
    """Refuse a file whose first line says that it is written otherwise, with the way out.

    Every table here has two columns at least, so what is between them is in the first line.
    """
    packed = os.fspath(path).lower().endswith(".gz")
    with gzip.open(path) if packed else open(path, "rb") as file:
        line = file.readline(65536)
    if form.encoding == "utf-8" and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(_other_encoding(path, form, "utf-16"))
    try:
        names = line.decode(form.encoding)
    except UnicodeError:
        return  # the reader says where
    others = [sep for sep in (";", "\t", "|", ",") if sep in names]
    if form.sep not in names and others:
        shown = {"\t": "tab"}.get(others[0], others[0])
        raise ValueError(
            f"{path}: the columns are separated by {others[0]!r}, not by {form.sep!r}; "
            f'pass sep={others[0]!r} (on the command line --sep "{shown}")'
        )


def _other_encoding(path: str | os.PathLike[str], form: CsvFormat, likely: str) -> str:
    """The sentence for a file whose text has another encoding."""
    return (
        f"{path}: the text is not {form.encoding}; "
        f'pass encoding="{likely}" (on the command line --encoding {likely}), '
        "or the one that it was written in"
    )


def _read_by_pandas(path: str | os.PathLike[str], kind: str) -> Any:
    """The first sheet of an Excel file, or the table of a Stata file, as pandas reads it."""
    needs = "pandas and openpyxl" if kind == "xlsx" else "pandas"
    name = "Excel" if kind == "xlsx" else "Stata"
    with reading(path, name):
        try:
            import pandas as pd

            read = partial(pd.read_excel, engine="openpyxl") if kind == "xlsx" else pd.read_stata
            return read(path)
        except ImportError:
            raise ValueError(
                f"{path}: reading .{kind} needs {needs} (pip install {needs.replace(' and', '')}); "
                "or save the table as .csv"
            ) from None
        except Exception as error:
            # Both formats are read by code that raises whatever happens to it.
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise ValueError(f"{path}: this {name} file cannot be read ({reason})") from None
