"""Writing files that are there whole or not at all, and values in the types that JSON has.

A file is written as a draft beside it, which takes its place in one step. A process that is killed
leaves its draft behind; whoever writes the same file next removes it. A writer holds a lock on its
draft, and the operating system releases the locks of a process that ended: so the drafts of those
who are still writing are left alone.
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

from revealed._validation import check_writable
from revealed.io.old_files import OLD

LOCKS_DRAFTS = os.name == "posix"  # on Windows, nobody can remove a file that somebody has open


@contextlib.contextmanager
def atomic_open(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` in one step when the block ends.

    On any failure nothing changes. When the block is over, content and name are on the disk, as
    far as the operating system keeps its promise to have written them.
    """
    target = Path(path)
    check_writable(target)
    draft: Path | None = None
    # Both are None until they exist, so that the end knows what to clean up.
    lock: int | None = None
    try:
        # Whoever writes a file cleans up after those who were killed while writing it.
        remove_stale_drafts(target)
        draft, stream, lock = _open_locked_draft(target)
        with stream:
            yield stream
            stream.flush()
            # On the disk before the name is: a power cut must not leave an empty file of this name.
            os.fsync(stream.fileno())
        # One step, in which readers see the old content or the new.
        draft.replace(target)
        _sync_folder(target.parent)
    except OSError as reason:
        raise ValueError(f"{target} cannot be written: {reason.strerror or reason}") from None
    finally:
        # After a success there is no draft any more: it has become the target.
        if draft is not None:
            draft.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def atomic_write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to a file: all of it, or nothing.

    What was there before stays until the new content is on the disk.
    """
    with atomic_open(path) as stream:
        stream.write(content)


def remove_stale_drafts(target: Path) -> None:
    """Remove the drafts of `target` whose writers have ended.

    A draft that can be locked has no writer. On systems without such locks (Windows) the attempt
    to remove a file that somebody has open fails, which serves as well.
    """
    prefixes = _draft_prefixes(target)
    for name in os.listdir(target.parent):
        if not (name.startswith(prefixes) and name.endswith(".tmp")):
            continue
        draft = target.parent / name
        try:
            with draft.open("rb") as stream:
                if LOCKS_DRAFTS:
                    _lock_file(stream.fileno(), wait=False)
                    draft.unlink()
            if not LOCKS_DRAFTS:
                draft.unlink()
        except OSError:
            continue  # its writer is alive, or somebody else removed it first


def _draft_prefixes(target: Path) -> tuple[str, str]:
    """How the names of its drafts begin, now and in version 0.1.0.

    A hash of the file's name keeps the drafts of different files apart.
    """
    digest = hashlib.sha256(target.name.encode()).hexdigest()[:12]
    return f".revealed-{digest}-", f"{OLD.draft_prefix}{digest}-"


def _open_locked_draft(target: Path) -> tuple[Path, BinaryIO, int | None]:
    """A new draft, the stream into it, and the handle that holds its lock until it is closed.

    The handle is a second one for the same file, so that the lock outlives the stream: the draft
    stays locked until it has taken the target's place.
    """
    while True:
        draft = target.parent / f"{_draft_prefixes(target)[0]}{secrets.token_hex(8)}.tmp"
        # x: a name that exists already, however unlikely, is not written over.
        stream = draft.open("xb")
        if not LOCKS_DRAFTS:
            return draft, stream, None
        lock = os.dup(stream.fileno())
        # A file system may have no locks; then nobody takes a draft for a stale one either.
        with contextlib.suppress(OSError):
            _lock_file(lock, wait=True)
        if draft.exists():
            return draft, stream, lock
        # Somebody took it for a stale one in the moment before it was locked: try again.
        stream.close()
        os.close(lock)


def _lock_file(handle: int, wait: bool) -> None:
    """Lock an open file; without waiting, an OSError means that somebody else has locked it."""
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """Write a folder's list of names to the disk, where the system can be asked for that.

    A new name is on the disk only when the folder it stands in is.
    """
    with contextlib.suppress(OSError):
        # A folder is opened like a file, on systems that allow it.
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def to_jsonable(value: Any) -> Any:
    """A value as numbers, texts, lists and mappings only, the types that JSON has.

    Arrays become lists and paths become texts. JSON has no NaN and no infinity: they become None.
    """
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    # Through Python's own numbers, which JSON can write.
    if isinstance(value, np.ndarray | np.generic):
        return to_jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [to_jsonable(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
