"""NetCDF files with the groups that ArviZ reads, and a checksum at the end.

What is not an array is text or JSON in the attributes. A file ends with a checksum, which NetCDF
readers pass over, because HDF5 may hang on a damaged file or misread it.
"""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from revealed._validation import check_writable
from revealed.io.atomic import atomic_open
from revealed.io.old_files import OLD

# At the end of a file; 32 bytes follow, the SHA-256 of all bytes before the mark.
CHECKSUM_MARK = b"revealed sha256 "

Array = np.ndarray[Any, Any]
Variables = dict[str, tuple[tuple[str, ...], Array]]
"""Name -> dimensions and numbers; a variable named like its dimension labels it."""
T = TypeVar("T")


class UnreadableModel(Exception):
    """A file is whole, but its model cannot be made here; the message says why."""


def to_arviz(attributes: Mapping[str, Any], groups: Mapping[str, Variables]) -> Any:
    """ArviZ's InferenceData (ArviZ 0.x) or xarray's DataTree (ArviZ 1.x)."""
    try:
        import xarray as xr

        # Importing ArviZ must not print on its own account.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces 1.0 once a day
            import arviz
    except ImportError as missing:
        raise ValueError(
            f'this needs {missing.name}, which is not installed; pip install "revealed[arviz]"'
        ) from None
    # The same groups as in the file.
    sets = {name: xr.Dataset(group) for name, group in groups.items()}
    if "InferenceData" in vars(arviz):
        return arviz.InferenceData(attrs=dict(attributes), **sets)
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(attributes)), **sets})


def write_file(
    path: str | os.PathLike[str], attributes: Mapping[str, Any], groups: Mapping[str, Variables]
) -> None:
    """Write a NetCDF file; it is there whole or not at all.

    attributes: text and numbers by name. groups: variables by group, in ArviZ's layout.
    """
    import h5netcdf

    check_writable(Path(path))
    # Written to memory first: a full disk then meets a plain write, which fails cleanly.
    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        for key, value in attributes.items():
            file.attrs[key] = value
        for name, variables in groups.items():
            _write_group(file.create_group(name), variables)
    # Behind the last byte of HDF5, where readers do not look.
    checksum = hashlib.sha256(image.getbuffer()).digest()
    image.seek(0, os.SEEK_END)
    image.write(CHECKSUM_MARK + checksum)
    with atomic_open(path) as stream:
        stream.write(image.getbuffer())


def read_file(
    path: str | os.PathLike[str],
    what: str,
    newest: int,
    read: Callable[[Any], T],
    others: Mapping[str, tuple[int, Callable[[Any], T]]] | None = None,
) -> T:
    """What `read` makes of a file that `write_file` wrote, of a format up to the newest.

    what: the kind of file, such as "a posterior". others: newest format and `read` of other kinds
    that may be there instead. Any other kind, a file that this package did not write, a newer
    format, and a damaged file are refused in a sentence each.
    """
    import h5py

    source = Path(path)
    other = f"{source} is not {what} saved by revealed"
    damaged = f"{source} is damaged or cut short and cannot be read"
    with _open(source, what) as stream:
        if stream.read(8) != b"\x89HDF\r\n\x1a\n":
            raise ValueError(f"{other}: it is not a NetCDF 4 file")
        if not _is_intact(stream):
            raise ValueError(damaged)
        # Only what is ours, of this kind and not too new is read at all.
        found: T | None = None
        try:
            with h5py.File(stream, "r") as file:
                ours = str(file.attrs.get("created_by")) in OLD.creators
                kind = str(file.attrs.get("kind", "a posterior"))
                if others is not None and kind in others:
                    what, (newest, read) = kind, others[kind]
                version = int(np.ravel(file.attrs["format_version"])[0]) if ours else newest
                if ours and kind == what and version <= newest:
                    found = read(file)
        except UnreadableModel as reason:
            raise ValueError(f"{source} cannot be read: {reason}") from None
        except Exception:  # HDF5 reports damage through nearly every kind of exception there is
            raise ValueError(damaged) from None
    if ours and kind != what:
        raise ValueError(f"{other}: it is {kind}, which rv.load reads")
    if version > newest:
        raise ValueError(
            f"{source} was written by a newer version of revealed (file format {version}; "
            f"this one reads {newest}); upgrade it"
        )
    if found is None:
        raise ValueError(f"{other}: it is some other program's NetCDF file")
    return found


def _open(source: Path, what: str) -> BinaryIO:
    """The file opened for reading; why it cannot be is said in a sentence."""
    try:
        return source.open("rb")
    except FileNotFoundError:
        raise ValueError(f"there is no file {source}") from None
    except IsADirectoryError:
        raise ValueError(f"{source} is a folder, not a saved {what.split()[-1]}") from None
    except OSError as reason:
        raise ValueError(f"{source} cannot be read: {reason.strerror or reason}") from None


def content(variable: Any) -> Array:
    """What `write_file` was given for a variable of the file.

    In its own numpy type, which stands beside it where NetCDF has no such type.
    """
    import h5py

    # HDF5 holds text as bytes.
    data = variable.asstr()[...] if h5py.check_string_dtype(variable.dtype) else variable[...]
    kind = variable.attrs.get("dtype")
    return np.asarray(data if kind is None else data.astype(kind))


def _is_intact(stream: BinaryIO) -> bool:
    """Whether the checksum is right.

    Both marks are tried, today's and that of 0.1.0, since they differ in length. A file without
    a checksum, which ArviZ may have written anew, is left to HDF5.
    """
    size = stream.seek(0, os.SEEK_END)
    for mark in (CHECKSUM_MARK, OLD.checksum_mark):
        end = max(0, size - len(mark) - 32)
        stream.seek(end)
        tail = stream.read()
        # A mark at the right distance from the end is a mark.
        if tail.startswith(mark):
            return tail == mark + _checksum(stream, end)
    return True


def _checksum(stream: BinaryIO, end: int) -> bytes:
    """SHA-256 of the first `end` bytes, read a megabyte at a time."""
    digest = hashlib.sha256()
    stream.seek(0)
    # Files may be larger than memory.
    while end > 0:
        chunk = stream.read(min(end, 1 << 20))
        digest.update(chunk)
        end -= len(chunk)
    return digest.digest()


def _write_group(group: Any, variables: Variables) -> None:
    """One group of the file.

    What NetCDF has no type for is written as text or whole numbers, its numpy type beside it in
    the attribute `dtype`, from which `content` restores it.
    """
    import h5py

    # NetCDF wants the sizes of dimensions before the variables.
    group.dimensions = {
        name: size
        for dims, data in variables.values()
        for name, size in zip(dims, data.shape, strict=True)
    }
    for key, (dims, data) in variables.items():
        kind = data.dtype.kind
        if kind in "iu" or (kind == "f" and data.dtype.itemsize in (4, 8)):
            group.create_variable(key, dims, data=data)
            continue
        if kind == "U" or (kind == "O" and all(isinstance(x, str) for x in data.flat)):
            _check_text(key, data)
            variable = group.create_variable(
                key, dims, dtype=h5py.string_dtype(), data=data.astype(object)
            )
        elif kind in "bmM":
            stored_type = np.int8 if kind == "b" else np.int64
            variable = group.create_variable(key, dims, data=data.astype(stored_type))
        else:
            found = "mixed types" if kind == "O" else str(data.dtype)
            raise ValueError(
                f"the {key} are of {found}, which a NetCDF file cannot hold; "
                "make them all text or all numbers"
            )
        variable.attrs["dtype"] = "bool" if kind == "b" else data.dtype.str


def _check_text(key: str, texts: Array) -> None:
    """Refuse texts with a zero character, or with half of a surrogate pair."""
    odd = [str(x) for x in texts.flat if "\0" in x or x.encode("utf-8", "ignore").decode() != x]
    if odd:
        raise ValueError(
            f"{key} {odd[0]!r} has a character that a NetCDF file cannot hold; rename it"
        )
