"""Checkpoints: a file from which a run continues to the same draws, and a folder of results.

A checkpoint file is an archive of numpy arrays with a head in JSON. The head holds the version of
the format, a fingerprint of problem and settings, and whatever small numbers the run needs; the
arrays hold states and draws. A new checkpoint takes the place of the one before in one step, so
that there is always a complete one to resume from, whenever and however the process ends.

Runs that consist of many independent fits keep a folder instead, a `ResultFolder`: one saved result
for each fit, and an index with the same version and the same kind of fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from revealed._validation import check_writable
from revealed.io.atomic import atomic_open, atomic_write


@dataclass(frozen=True)
class CheckpointSettings:
    """How checkpoints are written.

    Attributes
    ----------
    version
        Of the format, in every head and index. Raise it when the content changes: a checkpoint of
        another version is refused, because its numbers would be taken for something else.
    seconds
        Between two checkpoints, about; what is lost at most when a process is killed.
    max_overhead
        Share of the running time that writing checkpoints may take. Larger states are written more
        rarely; without this, a run with gigabytes of draws would do nothing but write.
    index
        Name of the file that says what a folder of results belongs to.
    """

    version: int = 3
    seconds: float = 30.0
    max_overhead: float = 1 / 20
    index: str = "index.json"


CHECKPOINTS = CheckpointSettings()


class RunSnapshot(NamedTuple):
    """Everything a run needs to go on: what JSON can hold, and arrays by name."""

    head: dict[str, Any]
    arrays: dict[str, Any]


class CheckpointMismatch(ValueError):
    """A checkpoint of another problem, or of other settings."""


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint file of one run.

    Attributes
    ----------
    file
        Where it is written.
    fingerprint
        Of problem and settings; a file with another one is refused.
    seconds
        Between two checkpoints, about; 0 for one after every chunk.
    """

    file: Path
    fingerprint: str
    seconds: float = CHECKPOINTS.seconds

    def write(self, snapshot: RunSnapshot) -> None:
        """Write everything needed to go on, in one step that cannot leave half a file.

        A draft beside the file is written first, and then takes its name.
        """
        # the version comes first, so that a reader of another format never gets to the rest
        head = {
            "version": CHECKPOINTS.version,
            "fingerprint": self.fingerprint,
            **snapshot.head,
        }
        # JSON goes into the archive as an array of bytes: one file, and no pickle
        text = json.dumps(head).encode()
        content: dict[str, Any] = {**snapshot.arrays, "head": np.frombuffer(text, dtype=np.uint8)}
        with atomic_open(self.file) as stream:
            np.savez(stream, **content)

    def read(self) -> RunSnapshot:
        """What `write` wrote; raises CheckpointMismatch for a checkpoint of another problem."""
        snapshot = read_checkpoint(self.file)
        # states of another problem would have other shapes at best, and wrong draws at worst
        if snapshot.head["fingerprint"] != self.fingerprint:
            raise CheckpointMismatch(_mismatch(self.file))
        return snapshot

    def seconds_until_next(self, write_seconds: float, age: float) -> float:
        """Seconds from one checkpoint to the next.

        write_seconds: how long the last one took to write. age: seconds since this process began.
        A young process writes more often, so that one that keeps being killed still gets on. Zero
        `seconds` ask for a checkpoint after every chunk, whatever it costs.
        """
        # tests and impatient users ask for a checkpoint after every chunk
        if self.seconds <= 0:
            return 0.0
        return max(write_seconds / CHECKPOINTS.max_overhead, min(self.seconds, age))


def read_checkpoint(file: Path) -> RunSnapshot:
    """The head and the arrays of any checkpoint of this version, whatever run it belongs to.

    A file that is no checkpoint, or was cut short, is refused in a sentence.
    """
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(arrays.pop("head").tobytes())
        # every version has had a fingerprint; without one this is some other archive
        _ = head["fingerprint"]
    except FileNotFoundError:
        raise ValueError(f"there is no checkpoint {file} to resume from") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{file} is not a checkpoint of revealed, or it is damaged") from None
    _refuse_other_version(file, head)
    return RunSnapshot(head, arrays)


def refuse_bad_checkpoint(
    checkpoint: str | os.PathLike[str] | None, resume: bool, seconds: float
) -> Path | None:
    """The checkpoint's file, or None for a run without one; refuses what cannot work.

    This is checked before any work is done, so that a run of hours does not end without a file.
    """
    # True counts as a number in Python, and is a mistake here
    is_number = isinstance(seconds, int | float | np.number) and not isinstance(seconds, bool)
    if not (is_number and 0 <= seconds < float("inf")):
        raise ValueError(
            "checkpoint_seconds must be a number of seconds, 0 for a checkpoint after every chunk; "
            f"it is {seconds!r}"
        )
    if checkpoint is None:
        if resume:
            raise ValueError("resume=True needs the checkpoint file to resume from")
        return None
    check_writable(Path(checkpoint))
    return Path(checkpoint)


def fingerprint(*parts: Any) -> str:
    """The SHA-256 of all that determines a run: what a checkpoint must agree with to be continued.

    A part is a numeric array, a sparse matrix, a mapping of settings, or anything whose `repr` says
    all of it. Each is hashed with its length, so that two lists of parts never look the same.
    """
    digest = hashlib.sha256()
    # the order of the parts matters, as the bytes are hashed one after the other
    for part in parts:
        for content in _contents(part):
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
    return digest.hexdigest()


def _contents(part: Any) -> Iterator[bytes]:
    """The bytes of one part of a fingerprint."""
    # a sparse matrix is its three arrays; in another order of storage it would be another matrix
    if sp.issparse(part):
        for array in (part.indptr, part.indices, part.data):
            yield np.ascontiguousarray(array).tobytes()
    # the shape tells (2, 3) from (3, 2), whose bytes may be the same
    elif isinstance(part, np.ndarray):
        yield repr(part.shape).encode()
        yield np.ascontiguousarray(part).tobytes()
    # settings in any order are the same settings
    elif isinstance(part, Mapping):
        yield repr(sorted(part.items())).encode()
    else:
        yield repr(part).encode()


class Saved(Protocol):
    """A result that can be saved to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file."""
        ...


R = TypeVar("R", bound=Saved)


class ResultFolder(Generic[R]):
    """A folder of saved results, one for each of many fits; or none, and nothing is kept.

    folder: where they are, `0.nc`, `1.nc` and so on, with an index. load: reads one of the files,
    and gives None for a result that was not run to its end.
    """

    def __init__(self, folder: Path | None, load: Callable[[Path], R | None]) -> None:
        self.folder, self.load = folder, load

    @staticmethod
    def open(
        checkpoint: str | os.PathLike[str] | None,
        resume: bool,
        make_fingerprint: Callable[[], str],
        load: Callable[[Path], R | None],
    ) -> ResultFolder[R]:
        """Make the folder, or find it as it was left; refuses one that belongs to something else.

        make_fingerprint: called only where there is a folder, because it reads all the data.
        """
        # without a folder results are only in memory, which is the default
        if checkpoint is None:
            if resume:
                raise ValueError("resume=True needs the checkpoint folder to resume from")
            return ResultFolder(None, load)
        folder = Path(checkpoint)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"the checkpoint of many fits is a folder, and {folder} is a file")
        if not folder.exists():
            _make_folder(folder, resume, make_fingerprint)
        # a folder of another run must not be added to: its results would be taken for ours
        elif resume:
            if _read_index(folder) != make_fingerprint():
                raise CheckpointMismatch(_mismatch(folder))
        # somebody's files, or a run that should be resumed: neither is written over
        elif any(folder.iterdir()):
            raise ValueError(
                f"the checkpoint folder {folder} is not empty; give resume=True to go on, or "
                "another folder"
            )
        else:
            _write_index(folder, make_fingerprint())
        return ResultFolder(folder, load)

    def get(self, i: int) -> R | None:
        """The result of the i-th fit, if it is there and was run to its end.

        One that was interrupted is run again, which takes its place.
        """
        if self.folder is None or not (file := self.folder / f"{i}.nc").exists():
            return None
        return self.load(file)

    def put(self, i: int, result: R) -> None:
        """Save the result of the i-th fit, where there is a folder."""
        if self.folder is not None:
            result.save(self.folder / f"{i}.nc")


def remove_checkpoint(checkpoint: Path) -> None:
    """Remove the checkpoint of a finished run: a file, or a folder with one result for each fit.

    Of a folder only what `ResultFolder` put there; one that has anything else in it stays.
    """
    if not checkpoint.is_dir():
        checkpoint.unlink(missing_ok=True)
        return
    # the index goes last: until then the folder can still be resumed from
    for file in (*checkpoint.glob("[0-9]*.nc"), checkpoint / CHECKPOINTS.index):
        file.unlink(missing_ok=True)
    if not any(checkpoint.iterdir()):
        checkpoint.rmdir()


def _make_folder(folder: Path, resume: bool, make_fingerprint: Callable[[], str]) -> None:
    """Make a folder that is not there yet, below one that is; it appears with its index."""
    if resume:
        raise ValueError(f"there is no folder {folder} to resume from")
    if not folder.parent.is_dir():
        raise ValueError(
            f"there is no folder {folder.parent} to make {folder.name} in; make it first"
        )
    # under another name first: a run that is killed here leaves no folder without an index
    draft = folder.with_name(f".{folder.name}.tmp")
    draft.mkdir(exist_ok=True)
    _write_index(draft, make_fingerprint())
    draft.rename(folder)


def _write_index(folder: Path, own: str) -> None:
    """Write what a folder of results belongs to: its fingerprint."""
    head = {"version": CHECKPOINTS.version, "fingerprint": own}
    atomic_write(folder / CHECKPOINTS.index, json.dumps(head).encode())


def _read_index(folder: Path) -> str:
    """The fingerprint of what a folder of results belongs to.

    Refuses a folder without an index, or with one of another version.
    """
    # before version 2 the index had this name, and no version inside
    old = folder / "each.json"
    index = folder / CHECKPOINTS.index
    try:
        head = json.loads((index if index.exists() else old).read_text(encoding="utf-8"))
        found = str(head["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(
            f"{folder} is not a checkpoint folder of revealed, or it is damaged"
        ) from None
    _refuse_other_version(folder, head)
    return found


def _refuse_other_version(path: Path, head: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another format; those of version 0.1.0 have no number at all.

    Its numbers might be read as something else, and the draws would be wrong without a sign.
    """
    # version 0.1.0 wrote no number, which get() makes None
    found = head.get("version")
    if found != CHECKPOINTS.version:
        written = "without a format number" if found is None else f"in format {found}"
        raise ValueError(
            f"the checkpoint {path} was written {written} by another version of revealed, and this "
            f"one reads format {CHECKPOINTS.version}; run without resuming"
        )


def _mismatch(path: Path) -> str:
    """The sentence about a checkpoint of something else."""
    return (
        f"the checkpoint {path} belongs to other decisions, prior or settings; run without resuming"
    )
