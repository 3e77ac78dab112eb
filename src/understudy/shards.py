"""Decisions in pieces, for passes over more of them than one wants to hold at a time.

A piece is itself Decisions, and pieces are the same whoever reads them, so that sums over them are too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Block, Decisions
from understudy.frames import from_frame
from understudy.priors import Coefficients
from understudy.table_files import reading

SIZE = 8_192  # decisions of a piece in memory


class Shards(Coefficients, Protocol):
    """Decisions in so many pieces."""

    @property
    def count(self) -> int:
        """How many decisions there are in all pieces."""
        ...

    def __len__(self) -> int:
        """How many pieces there are."""
        ...

    def load(self, i: int) -> tuple[Decisions, Floats]:
        """One piece, and how often each of its decisions counts."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """Decisions in memory, cut into pieces."""

    decisions: Decisions
    weights: Floats  # (T,) how often each decision counts

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return self.decisions.names

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Of the coefficients."""
        return self.decisions.blocks

    @property
    def count(self) -> int:
        """How many decisions there are."""
        return round(float(self.weights.sum()))

    def __len__(self) -> int:
        return -(-len(self.decisions) // SIZE)

    def load(self, i: int) -> tuple[Decisions, Floats]:
        """One piece, and how often each of its decisions counts."""
        part = slice(i * SIZE, (i + 1) * SIZE)
        return self.decisions[part], self.weights[part]


@dataclass(frozen=True)
class Group:
    """A row group of a file: how many of its first rows belong to a decision that began before, and how many decisions begin in it."""

    file: str
    number: int
    skip: int
    decisions: int
    rows: int  # of the whole group


def from_folder(path: str | os.PathLike[str], **options: Any) -> Folder:
    """Decisions from a folder of Parquet files, read piece by piece as they are needed; the options are those of `from_frame`.

    For more decisions than memory holds: ``us.fit(us.from_folder("decisions/"))``.

    >>> import pathlib
    >>> pathlib.Path("drinks").mkdir()
    >>> for day in range(3):
    ...     d = us.Decisions([[1.0, 0.0], [0.0, 1.0]] * 20, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
    ...     us.to_file(d, f"drinks/{day}.parquet")
    >>> folder = us.from_folder("drinks")
    >>> folder.count
    60
    >>> us.fit(folder, us.Gaussian(1.0)).mean > 0.0
    array([ True, False])
    """
    return Folder(path, **options)


class Folder:
    """A folder of Parquet files with long tables, a piece for each row group; nothing is held but where decisions begin.

    Rows of one decision stand together, in one file. `options` are those of ``from_frame``.
    """

    def __init__(self, path: str | os.PathLike[str], *, blocks: Sequence[Block] | None = None, **options: Any) -> None:
        self.path, self.options, self._blocks = Path(path), dict(options), blocks
        if not self.path.is_dir():
            raise ValueError(f"there is no folder {self.path}")
        self.files = sorted(str(file) for file in self.path.iterdir() if file.suffix in (".parquet", ".pq"))
        if not self.files:
            raise ValueError(f"there is no Parquet file in the folder {self.path}")
        self.groups = [group for file in self.files for group in self._scan(file)]
        some = self.some()
        self.names, self.blocks = some.names, some.blocks

    def _scan(self, file: str) -> list[Group]:
        """Where decisions begin, from their ids alone."""
        import pyarrow.parquet as pq

        name, found, last = self.options.get("decision", "decision"), [], None
        with reading(file, "Parquet"), pq.ParquetFile(file) as source:
            if name not in source.schema_arrow.names:
                raise ValueError(
                    f"{file} has no column {name!r}, only {', '.join(map(repr, source.schema_arrow.names))}"
                )
            for number in range(source.num_row_groups):
                ids = source.read_row_group(number, columns=[name]).column(0).to_numpy()
                if not len(ids):
                    continue
                new = np.flatnonzero(np.concatenate([[last is None or ids[0] != last], ids[1:] != ids[:-1]]))
                if len(new):
                    found.append(Group(file, number, int(new[0]), len(new), len(ids)))
                last = ids[-1]
        if not found:
            raise ValueError(f"{file} holds no decisions")
        return found

    @cached_property
    def count(self) -> int:
        """How many decisions there are in all files."""
        return sum(group.decisions for group in self.groups)

    @property
    def largest(self) -> int:
        """About how many bytes the rows of the largest piece take."""
        return max(8 * (len(self.names) + 2) * group.rows for group in self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def load(self, i: int) -> tuple[Decisions, Floats]:
        """The decisions that begin in one row group, without labels of actions and groups; each counts once."""
        options = {"decision": "decision", "chosen": "chosen", **self.options, "features": self.names}
        decisions = self._read(i, {**options, "action": None, "group": None})
        return decisions, np.ones(len(decisions))

    def some(self) -> Decisions:
        """The decisions that begin in the first row group, with all that is known of them."""
        return self._read(0, self.options)

    def _read(self, i: int, options: dict[str, Any]) -> Decisions:
        import pyarrow as pa
        import pyarrow.parquet as pq

        group, picked = self.groups[i], options.get("features")
        roles = {role: options.get(role, role) for role in ("decision", "chosen", "action", "group", "available")}
        later = self.groups[i + 1] if i + 1 < len(self.groups) and self.groups[i + 1].file == group.file else None
        with reading(group.file, "Parquet"), pq.ParquetFile(group.file) as source:
            end = source.num_row_groups if later is None else later.number
            columns = None
            if picked is not None:
                columns = [name for name in source.schema_arrow.names if name in picked or name in roles.values()]
            parts = [source.read_row_group(number, columns) for number in range(group.number, end)]
            if later is not None and later.skip:
                parts.append(next(source.iter_batches(later.skip, [later.number], columns)))
        whole = pa.concat_tables([p if isinstance(p, pa.Table) else pa.table(p) for p in parts])
        decisions = from_frame(whole.slice(group.skip), blocks=self._blocks, **options)
        if len(decisions) != group.decisions:
            raise ValueError(
                f"{group.file}: the rows of a decision do not stand together; sort the table by its decisions"
            )
        return decisions
