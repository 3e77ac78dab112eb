"""A folder of Parquet files with long tables of decisions, read chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.io.dataframes import from_dataframe
from revealed.io.table_files import reading


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file, and the decisions that begin in it.

    number: its position in the file. skip: how many of its first rows belong to a decision that
    began before. decisions: how many begin in it. rows: how many rows it has.
    """

    file: str
    number: int
    skip: int
    decisions: int
    rows: int


def scan_parquet(path: str | os.PathLike[str], **options: Any) -> ParquetDecisions:
    """Decisions from a folder of Parquet files, read chunk by chunk as they are needed.

    For more decisions than memory holds: ``rv.fit(rv.scan_parquet("decisions/"))``.

    Parameters
    ----------
    path
        A folder with files that end with .parquet or .pq, each a long table. Rows of one
        decision stand together, in one file.
    **options
        Those of `from_dataframe`, but for `time` and `session`.

    Returns
    -------
    ParquetDecisions
        What `rv.fit` takes in place of Decisions.

    Examples
    --------
    >>> import pathlib
    >>> pathlib.Path("drinks").mkdir()
    >>> rows, chosen = [[1.0, 0.0], [0.0, 1.0]] * 20, [0] * 14 + [1] * 6
    >>> d = rv.Decisions(rows, range(0, 41, 2), chosen, names=["tea", "coffee"])
    >>> for day in range(3):
    ...     rv.write_file(d, f"drinks/{day}.parquet")
    >>> folder = rv.scan_parquet("drinks")
    >>> folder.count
    60
    >>> rv.fit(folder, rv.ChoiceModel(prior=rv.Normal(1.0))).mean() > 0.0
    array([ True, False])
    """
    return ParquetDecisions(path, **options)


class ParquetDecisions:
    """A folder of Parquet files with long tables, a chunk for each row group.

    Nothing is held but where decisions begin. Rows of one decision stand together, in one file.
    `options` are those of ``from_dataframe``.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, blocks: Sequence[Block] | None = None, **options: Any
    ) -> None:
        # chunks come in the order of files, which need not be that of time
        asked = [role for role in ("time", "session") if options.get(role) is not None]
        if asked:
            raise ValueError(
                f"a folder is read chunk by chunk, without times; leave out {' and '.join(asked)}, "
                "or read one file"
            )
        self.path, self.options, self._blocks = Path(path), dict(options), blocks
        if not self.path.is_dir():
            raise ValueError(f"there is no folder {self.path}")
        # Sorted, so that chunks are the same whatever order the disk lists files in.
        self.files = sorted(
            str(file) for file in self.path.iterdir() if file.suffix in (".parquet", ".pq")
        )
        if not self.files:
            raise ValueError(f"there is no Parquet file in the folder {self.path}")
        self.groups = [group for file in self.files for group in self._find_row_groups(file)]
        # Names and blocks come from the data themselves, read once.
        first = self.first_chunk()
        self.names, self.blocks = first.names, first.blocks

    def _find_row_groups(self, file: str) -> list[RowGroup]:
        """The row groups of a file in which decisions begin, from the decisions' ids alone."""
        import pyarrow.parquet as pq

        name, found, last_id = self.options.get("decision", "decision"), [], None
        with reading(file, "Parquet"), pq.ParquetFile(file) as source:
            if name not in source.schema_arrow.names:
                columns = ", ".join(map(repr, source.schema_arrow.names))
                raise ValueError(f"{file} has no column {name!r}, only {columns}")
            for number in range(source.num_row_groups):
                # One column of ids is all that is read of each row group.
                ids = source.read_row_group(number, columns=[name]).column(0).to_numpy()
                if not len(ids):
                    continue
                # A decision begins where the id differs from that of the row before.
                is_new = np.concatenate(
                    [[last_id is None or ids[0] != last_id], ids[1:] != ids[:-1]]
                )
                begins = np.flatnonzero(is_new)
                if len(begins):
                    found.append(RowGroup(file, number, int(begins[0]), len(begins), len(ids)))
                last_id = ids[-1]
        if not found:
            raise ValueError(f"{file} holds no decisions")
        return found

    @cached_property
    def count(self) -> int:
        """How many decisions there are in all files."""
        return sum(group.decisions for group in self.groups)

    @property
    def largest_chunk_bytes(self) -> int:
        """About how many bytes the rows of the largest chunk take."""
        # Eight bytes a number, and two columns more for ids and choices.
        return max(8 * (len(self.names) + 2) * group.rows for group in self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def load(self, i: int) -> tuple[Decisions, Floats]:
        """The decisions that begin in row group i, and how often each counts: once.

        They are read without the labels of actions and groups, which no likelihood looks at.
        """
        # The roles are named, so that they are required in every file.
        options = {
            "decision": "decision",
            "chosen": "chosen",
            **self.options,
            "features": self.names,
        }
        decisions = self._read(i, {**options, "action": None, "group": None})
        return decisions, np.ones(len(decisions))

    def first_chunk(self) -> Decisions:
        """The decisions that begin in the first row group, with all that is known of them."""
        return self._read(0, self.options)

    def _read(self, i: int, options: dict[str, Any]) -> Decisions:
        """The decisions that begin in row group i.

        The last of them may go on in row groups in which none begins, and end in the first rows
        of the next one in which one does.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        group = self.groups[i]
        following = self.groups[i + 1] if i + 1 < len(self.groups) else None
        if following is not None and following.file != group.file:
            following = None
        with reading(group.file, "Parquet"), pq.ParquetFile(group.file) as source:
            end = source.num_row_groups if following is None else following.number
            columns = _needed_columns(source.schema_arrow.names, options)
            parts = [source.read_row_group(number, columns) for number in range(group.number, end)]
            if following is not None and following.skip:
                parts.append(next(source.iter_batches(following.skip, [following.number], columns)))
        # Row groups come as tables, the rest of the last decision as a batch of rows.
        table = pa.concat_tables([p if isinstance(p, pa.Table) else pa.table(p) for p in parts])
        decisions = from_dataframe(table.slice(group.skip), blocks=self._blocks, **options)
        # Counted from the ids before: a decision in two places counts as two there, as one here.
        if len(decisions) != group.decisions:
            raise ValueError(
                f"{group.file}: the rows of a decision do not stand together; "
                "sort the table by its decisions"
            )
        return decisions


def _needed_columns(names: Sequence[str], options: dict[str, Any]) -> list[str] | None:
    """The columns of a file to read; None for all of them.

    Features and roles, where the features are given: other columns are not even decompressed.
    """
    features = options.get("features")
    if features is None:
        return None
    roles = {
        options.get(role, role) for role in ("decision", "chosen", "action", "group", "available")
    }
    return [name for name in names if name in features or name in roles]
