"""Skills over time as paths: one node for each label and date, in the order that kernels take.

A label is a player, or whatever else an entry's utility depends on: a car, a player on a surface.
Those of one kind are a component, and each has a path of its own over the dates on which it took
part. The utility of an entry is

    sum over its members and components of skill[node]  +  covariates @ coefficients

Nodes are sorted by component, then label, then date, so that each path is a run of nodes. All of it
is made by sorting integers: a million entries take a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.rankings import Rankings

Column = tuple[str, tuple[str, ...], Ints]
"""A component: its name, what its labels are called, and that of each member, by position."""


@dataclass(frozen=True, eq=False)
class SkillNodes:
    """Nodes of all paths, and where games find them.

    components: (C,) names of kinds of labels. labels: of each component, what its labels are
    called. dates: (D,) different times of games, in order. component, label, date: (N,) of each
    node, as positions; label counts through all components. first: (N,) of a path. gap: (N,) time
    since the node before, zero at a first one. path_start: (L + 1,) where the nodes of each label
    begin; one without games has none. node: (M * C,) of each member of an entry, all components of
    one member after another. entry_start: (E + 1,) where each entry's begin.
    """

    components: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    dates: Floats
    component: Ints
    label: Ints
    date: Ints
    first: Bools
    gap: Floats
    path_start: Ints
    node: Ints
    entry_start: Ints

    def __len__(self) -> int:
        return len(self.date)

    @property
    def times(self) -> Floats:
        """(N,) when each node is."""
        return self.dates[self.date]

    @cached_property
    def label_start(self) -> Ints:
        """(C + 1,) where the labels of each component begin."""
        return np.cumsum([0, *(len(own) for own in self.labels)])

    @cached_property
    def position(self) -> tuple[dict[str, int], ...]:
        """Of each component, the position of a label among those of all components."""
        return tuple(
            {name: int(at) + k for k, name in enumerate(own)}
            for at, own in zip(self.label_start[:-1], self.labels, strict=True)
        )

    def path(self, label: int) -> slice:
        """The nodes of a label, counted through all components."""
        return slice(int(self.path_start[label]), int(self.path_start[label + 1]))

    def names(self) -> list[str]:
        """What each node is called: its label and time, and its component beside others."""
        # players alone need no word before them
        every = [
            own if len(self.components) == 1 else f"{component} {own}"
            for component, labels in zip(self.components, self.labels, strict=True)
            for own in labels
        ]
        times = [f"{time:g}" for time in self.dates.tolist()]
        pairs = zip(self.label.tolist(), self.date.tolist(), strict=True)
        return [f"{every[label]} at {times[date]}" for label, date in pairs]


def component_columns(rankings: Rankings, components: Sequence[str]) -> list[Column]:
    """The components of these games; "player*surface" is a player on each surface."""
    return [_component_column(rankings, name) for name in components]


def _component_column(rankings: Rankings, component: str) -> Column:
    """One component, of a column of the games or of several joined by an asterisk."""
    if component == "player":
        return (component, rankings.names, rankings.players)
    parts = []
    for name in component.split("*"):
        if name != "player" and name not in rankings.columns:
            known = ", ".join(["player", *rankings.columns])
            raise ValueError(
                f"the component {component} needs the column {name!r}, and the games have {known}"
            )
        column = rankings.columns.get(name)
        if column is None:
            column = np.array(rankings.names, dtype=str)[rankings.players]
        # numbers are labels too, as 2 is of a second car
        texts = [f"{number:g}" for number in column] if column.dtype.kind == "f" else column
        parts.append(np.asarray(texts, dtype=str))
    joined = parts[0]
    for part in parts[1:]:
        joined = np.char.add(np.char.add(joined, " / "), part)
    labels, code = np.unique(joined, return_inverse=True)
    return (component, tuple(labels.tolist()), code.astype(np.int64))


def make_skill_nodes(rankings: Rankings, columns: Sequence[Column] | None = None) -> SkillNodes:
    """The nodes of these games, which must have times.

    columns: the components; default: players alone.
    """
    if rankings.times is None:
        raise ValueError(
            "skills that change need to know when each game was played: give times=... to "
            'Rankings, or time="column" to the reader'
        )
    if columns is None:
        columns = [("player", rankings.names, rankings.players)]
    # dates are numbered in order, so that keys below sort by time
    dates, date_of_game = np.unique(rankings.times, return_inverse=True)
    # from games to their entries, and from these to members
    date_of_entry = np.repeat(date_of_game, np.diff(rankings.start))
    date_of_member = np.repeat(date_of_entry, rankings.sizes)
    labels, keys, before = [], [], 0
    for _, own, code in columns:
        # one integer for label and date: sorted, it is the order of nodes
        keys.append((code.astype(np.int64) + before) * len(dates) + date_of_member)
        labels.append(tuple(own))
        before += len(own)
    # member by member, so that the nodes of an entry stand together
    key = np.stack(keys, axis=1).ravel()
    # sorting them finds all nodes at once, and where every member is among them
    found, node = np.unique(key, return_inverse=True)
    label, date = np.divmod(found, len(dates))
    first = np.concatenate([[True], label[1:] != label[:-1]])
    times = dates[date]
    # a label's component is the first that its position lies within
    counts = np.cumsum([len(own) for own in labels])
    return SkillNodes(
        tuple(name for name, _, _ in columns),
        tuple(labels),
        dates,
        np.searchsorted(counts, label, side="right"),
        label,
        date,
        first,
        np.where(first, 0.0, np.diff(times, prepend=times[0])),
        np.searchsorted(label, np.arange(before + 1)),
        node.astype(np.int64),
        rankings.member_start * len(columns),
    )
