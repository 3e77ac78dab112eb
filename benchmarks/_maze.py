"""The labyrinth of Rosenberg and others (2021): its tree, features of moves, frequency tables."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "labyrinth.npz"
# kinds of moves; 4: outwards, to the other child
BACK, INWARDS, SIBLING, OUTWARDS, STAY, BEGIN = 0, 1, 2, 3, 5, 6
MOVES = ("moves", "turn", "returns")
KINDS = {
    "cell": ("cell",),
    "previous": ("edge",),
    "kinds": ("cell", *MOVES),
    "history": ("edge", *MOVES),
}


class Labyrinth:
    """Where moves lead, and what kind of move each is."""

    def __init__(self, next_state: Any, states: Any, actions: Any) -> None:
        self.next = next_state.astype(int)
        self.allowed = np.zeros(next_state.shape, bool)
        self.allowed[states.ravel(), actions.ravel()] = True
        self.parent, self.side = np.full(len(next_state), -1), np.zeros(len(next_state), int)
        order = [0]
        for x in order:
            children = sorted({y for y in self.next[x].tolist() if y not in (0, x, self.parent[x])})
            for side, y in enumerate(children):
                self.parent[y], self.side[y] = x, side
            order += children

    def kind(self, before: int | None, x: int, y: int) -> int:
        """The kind of the move from x to y of who came from `before`."""
        if y == x:
            return STAY
        if before is None:
            return BEGIN
        if y == before:
            return BACK
        if y == self.parent[x]:
            return INWARDS
        # from the parent, or from nowhere, a child is further out; from a child it is the sibling
        return OUTWARDS + int(self.side[y]) if before in (self.parent[x], x) or x == 0 else SIBLING

    def turn(self, before: int | None, x: int, y: int) -> int:
        """Quarters of a turn between two moves; 4 where there is none before."""
        if before is None or before == x:
            return 4
        first, second = (np.flatnonzero(self.next[a] == b)[0] for a, b in ((before, x), (x, y)))
        return int(second - first) % 4

    def features(
        self, past: tuple[int | None, ...], kinds: tuple[str, ...]
    ) -> list[list[tuple[Any, ...]]]:
        """Of each move that is possible: names of the features that are one.

        past: the present cell and four before it. Going back is what others are measured against.
        """
        x, p, pp, ppp, first = past
        moves = np.flatnonzero(self.allowed[x])
        h1 = BEGIN if p is None else self.kind(pp, p, x)  # type: ignore[arg-type]
        h2 = BEGIN if pp is None else self.kind(ppp, pp, p)  # type: ignore[arg-type]
        found: list[list[tuple[Any, ...]]] = []
        for y in self.next[x][moves].tolist():
            own = self.kind(p, x, y)  # type: ignore[arg-type]
            names: dict[str, tuple[Any, ...]] = {"cell": ("cell", x, y)}
            if y != p:
                names["edge"] = ("edge", p, x, y)
                names["moves"] = ("moves", h2, h1, own)
                last = 5 if p is None else self.turn(pp, p, x)  # type: ignore[arg-type]
                names["turn"] = ("turn", last, self.turn(p, x, y))  # type: ignore[arg-type]
                names["returns"] = ("returns", y == pp, y == ppp, y == first, own)
            # a single move is always made
            found.append([names[kind] for kind in kinds if kind in names] if len(moves) > 1 else [])
        return found


def decisions(maze: Labyrinth, states: Any, actions: Any, kinds: tuple[str, ...]) -> Any:
    """The moves as decisions; each bout is a session."""
    import scipy.sparse as sp

    import revealed as rv

    columns: dict[Any, int] = {}
    offers: dict[Any, list[list[int]]] = {}
    indices, indptr, start, chosen = list[int](), [0], [0], list[int]()
    for bout in range(len(states)):
        path = [None] * 4 + states[bout].tolist()
        for t, action in enumerate(actions[bout].tolist()):
            past = tuple(path[t + 4 - k] for k in range(5))
            if past not in offers:
                offers[past] = [
                    [columns.setdefault(name, len(columns)) for name in names]
                    for names in maze.features(past, kinds)
                ]
            for own in offers[past]:
                indices += own
                indptr.append(len(indices))
            start.append(len(indptr) - 1)
            chosen.append(int(maze.allowed[past[0], :action].sum()))
    rows = sp.csr_array(
        (np.ones(len(indices)), np.array(indices), np.array(indptr)),
        shape=(start[-1], len(columns)),
    )
    sessions = np.repeat(np.arange(len(states)), states.shape[1])
    return rv.Decisions(rows, start, chosen, sessions=sessions)


def table_scores(
    maze: Labyrinth, states: Any, actions: Any, held_out: Any, order: int, weight: float
) -> Any:
    """Of each held-out bout, the mean log probability by frequencies given the last cells."""
    counts: list[Any] = [defaultdict(lambda: np.zeros(4)) for _ in range(order + 1)]
    found = []
    # training bouts first, then those held out
    for seen in (False, True):
        for bout in np.flatnonzero(held_out == seen):
            total = 0.0
            for t, action in enumerate(actions[bout]):
                p = maze.allowed[states[bout, t]] / maze.allowed[states[bout, t]].sum()
                for k in range(order + 1):
                    own = counts[k][tuple(states[bout, max(0, t - k) : t + 1])]
                    if not seen:
                        own[action] += 1.0
                    else:
                        p = (own + weight * p) / (own.sum() + weight)
                if seen:
                    total += np.log(p[action])
            found.append(total / states.shape[1])
    return np.array(found)[-int(held_out.sum()) :]
