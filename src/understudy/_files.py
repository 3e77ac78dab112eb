"""Writing files that are there whole or not at all, and values as JSON knows them.

A file is written as a draft beside it, which takes its place in one step. A process that is killed leaves its draft behind; whoever writes the
same file next removes it. Drafts are locked by whoever writes them, and the system takes the lock off the dead: so those of others
who are still at work are let alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

LOCKS = os.name == "posix"  # on Windows, nobody can remove a file that somebody has open


def refuse_unwritable(path: Path) -> None:
    """Is there a folder for this file, and may we write into it? Worth asking before hours of work."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the name of a file to write")
    if not os.path.isdir(path.parent):
        raise ValueError(f"there is no folder {path.parent} to write {path.name} into; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: the folder {path.parent} is not writable")


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` in one step at the end; on any failure nothing changes.

    It is on the disk when this is over, name and all, as far as the system keeps its word.
    """
    target = Path(path)
    refuse_unwritable(target)
    draft: Path | None = None
    lock: int | None = None
    try:
        _remove_drafts_of_the_dead(target)
        draft, stream, lock = _locked_draft(target)
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
        _sync_folder(target.parent)
    except OSError as reason:
        raise ValueError(f"{target} cannot be written: {reason.strerror or reason}") from None
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _drafts(target: Path) -> str:
    """How the names of its drafts begin; those of another file begin otherwise."""
    return f".understudy-{hashlib.sha256(target.name.encode()).hexdigest()[:12]}-"


def _locked_draft(target: Path) -> tuple[Path, BinaryIO, int | None]:
    """A new draft, the stream into it, and what holds its lock until it is closed."""
    while True:
        draft = target.parent / f"{_drafts(target)}{secrets.token_hex(8)}.tmp"
        stream = draft.open("xb")
        if not LOCKS:
            return draft, stream, None
        lock = os.dup(stream.fileno())
        with contextlib.suppress(OSError):  # a file system without locks, where nobody takes drafts for dead
            _take(lock, wait=True)
        if draft.exists():
            return draft, stream, lock
        stream.close()  # somebody took it for a dead one's in the moment before it was locked
        os.close(lock)


def _remove_drafts_of_the_dead(target: Path) -> None:
    begin = _drafts(target)
    for name in os.listdir(target.parent):
        if not (name.startswith(begin) and name.endswith(".tmp")):
            continue
        draft = target.parent / name
        try:
            with draft.open("rb") as stream:
                if LOCKS:
                    _take(stream.fileno(), wait=False)
                    draft.unlink()
            if not LOCKS:
                draft.unlink()
        except OSError:
            continue  # its writer lives, or was quicker


def _take(handle: int, wait: bool) -> None:
    """Lock an open file; without waiting, an OSError says that somebody else has."""
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """A new name is on the disk only when its folder is; not every system can be asked for that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to a file: all of it, or nothing."""
    with whole_file(path) as stream:
        stream.write(content)


def plain(value: Any) -> Any:
    """Numbers, texts, lists and mappings only, as JSON knows them; what is not a finite number is None."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
