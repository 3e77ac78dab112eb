"""Writing files that are there whole or not at all, and values as JSON knows them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


def refuse_unwritable(path: Path) -> None:
    """Is there a folder for this file, and may we write into it? Worth asking before hours of work."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the name of a file to write")
    if not os.path.isdir(path.parent):
        raise ValueError(f"there is no folder {path.parent} to write {path.name} into; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: the folder {path.parent} is not writable")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` in one step at the end; on any failure nothing changes."""
    target = Path(path)
    refuse_unwritable(target)
    draft = target.parent / f".understudy-{secrets.token_hex(8)}.tmp"
    try:
        with draft.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except OSError as reason:
        raise ValueError(f"{target} cannot be written: {reason.strerror or reason}") from None
    finally:
        draft.unlink(missing_ok=True)


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
