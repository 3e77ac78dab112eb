"""NetCDF files with the groups that ArviZ reads, sealed with a checksum.

What is not an array is text or JSON in the attributes. A file ends with a checksum, which NetCDF readers pass over, because HDF5 may hang on a
damaged one or misread it.
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

from understudy._files import refuse_unwritable, whole_file

SEAL = b"understudy sha256 "  # then 32 bytes: the checksum of all bytes before the seal

Array = np.ndarray[Any, Any]
Variables = dict[str, tuple[tuple[str, ...], Array]]
"""Name -> dimensions and numbers; a variable named like its dimension labels it."""
T = TypeVar("T")


def to_arviz(attributes: Mapping[str, Any], groups: Mapping[str, Variables]) -> Any:
    """ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x)."""
    try:
        import xarray as xr

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces 1.0 once a day
            import arviz
    except ImportError as missing:
        raise ValueError(
            f'this needs {missing.name}, which is not installed; pip install "understudy[arviz]"'
        ) from None
    sets = {name: xr.Dataset(group) for name, group in groups.items()}
    if "InferenceData" in vars(arviz):
        return arviz.InferenceData(attrs=dict(attributes), **sets)
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(attributes)), **sets})


def write_file(path: str | os.PathLike[str], attributes: Mapping[str, Any], groups: Mapping[str, Variables]) -> None:
    """Write a NetCDF file; it is there whole or not at all."""
    import h5netcdf

    refuse_unwritable(Path(path))
    # written to memory first: a full disk then meets a plain write, which fails cleanly
    image = io.BytesIO()
    with h5netcdf.File(image, "w") as file:
        for key, value in attributes.items():
            file.attrs[key] = value
        for name, variables in groups.items():
            _write(file.create_group(name), variables)
    seal = SEAL + hashlib.sha256(image.getbuffer()).digest()
    image.seek(0, os.SEEK_END)
    image.write(seal)
    with whole_file(path) as stream:
        stream.write(image.getbuffer())


def read_file(path: str | os.PathLike[str], what: str, newest: int, read: Callable[[Any], T]) -> T:
    """What `read` makes of a file that `write_file` wrote, of a format up to the newest; `what` is "a posterior", say."""
    import h5py

    source = Path(path)
    try:
        stream = source.open("rb")
    except FileNotFoundError:
        raise ValueError(f"there is no file {source}") from None
    except IsADirectoryError:
        raise ValueError(f"{source} is a folder, not a saved {what.split()[-1]}") from None
    except OSError as reason:
        raise ValueError(f"{source} cannot be read: {reason.strerror or reason}") from None
    other = f"{source} is not {what} saved by understudy"
    with stream:
        if stream.read(8) != b"\x89HDF\r\n\x1a\n":
            raise ValueError(f"{other}: it is not a NetCDF 4 file")
        damaged = f"{source} is damaged or cut short and cannot be read"
        if not _intact(stream):
            raise ValueError(damaged)
        found: T | None = None
        try:
            with h5py.File(stream, "r") as file:
                ours = str(file.attrs.get("created_by")) == "understudy"
                kind = str(file.attrs.get("kind", "a posterior"))
                version = int(np.ravel(file.attrs["format_version"])[0]) if ours else newest
                if ours and kind == what and version <= newest:
                    found = read(file)
        except Exception:  # HDF5 reports damage through nearly every kind of exception there is
            raise ValueError(damaged) from None
    if ours and kind != what:
        raise ValueError(f"{other}: it is {kind}")
    if version > newest:
        raise ValueError(
            f"{source} was written by a newer understudy (file format {version}; this one reads {newest}); upgrade it"
        )
    if found is None:
        raise ValueError(f"{other}: it is some other program's NetCDF file")
    return found


def content(variable: Any) -> Array:
    """What `write_file` was given for a variable of the file, in its own type."""
    import h5py

    data = variable.asstr()[...] if h5py.check_string_dtype(variable.dtype) else variable[...]
    kind = variable.attrs.get("dtype")
    return np.asarray(data if kind is None else data.astype(kind))


def _intact(stream: BinaryIO) -> bool:
    """Whether the seal is unbroken; a file without one, which ArviZ may have written anew, is left to HDF5."""
    end = max(0, stream.seek(0, os.SEEK_END) - len(SEAL) - 32)
    stream.seek(end)
    seal = stream.read()
    if not seal.startswith(SEAL):
        return True
    digest = hashlib.sha256()
    stream.seek(0)
    while end > 0:
        piece = stream.read(min(end, 1 << 20))
        digest.update(piece)
        end -= len(piece)
    return seal == SEAL + digest.digest()


def _write(group: Any, variables: Variables) -> None:
    """One group of the file. What NetCDF has no type for is written as text or whole numbers, its type beside it."""
    import h5py

    group.dimensions = {
        name: size for dims, data in variables.values() for name, size in zip(dims, data.shape, strict=True)
    }
    for key, (dims, data) in variables.items():
        if data.dtype.kind in "iu" or (data.dtype.kind == "f" and data.dtype.itemsize in (4, 8)):
            group.create_variable(key, dims, data=data)
            continue
        if data.dtype.kind == "U" or (data.dtype.kind == "O" and all(isinstance(x, str) for x in data.flat)):
            odd = [str(x) for x in data.flat if "\0" in x or x.encode("utf-8", "ignore").decode() != x]
            if odd:
                raise ValueError(f"{key} {odd[0]!r} has a character that a NetCDF file cannot hold; rename it")
            variable = group.create_variable(key, dims, dtype=h5py.string_dtype(), data=data.astype(object))
        elif data.dtype.kind in "bmM":
            whole = np.int8 if data.dtype.kind == "b" else np.int64
            variable = group.create_variable(key, dims, data=data.astype(whole))
        else:
            kind = "mixed types" if data.dtype.kind == "O" else str(data.dtype)
            raise ValueError(
                f"the {key} are of {kind}, which a NetCDF file cannot hold; make them all text or all numbers"
            )
        variable.attrs["dtype"] = "bool" if data.dtype.kind == "b" else data.dtype.str
