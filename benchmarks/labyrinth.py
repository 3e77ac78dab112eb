"""Mice in a labyrinth: do strategies that take turns predict their moves?

Rosenberg's labyrinth (Rosenberg, Zhang, Perona and Meister 2021) is a binary tree of 127 cells; 238
bouts of 500 moves each were recorded. Every fifth bout (0, 5, 10, ...) is held out; what is
compared is the mean log probability of its moves, each predicted from the earlier ones of its bout.
A strategy values moves by features: of the cell and where the move leads (`cell`); of the cell
before as well (`previous`); or of these with the last four cells as kinds of moves, which are the
same at all places: back, inwards, outwards, to the sibling, which way it turns, and whether it
returns to a cell (`history`). Features and the number of strategies were chosen on the training
bouts, every fifth of them set aside. Frequency tables of the last cells, each shrunk towards the
shorter one, are what to beat.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._record import Benchmark, Option, Result, cell, table

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "labyrinth.npz"
# kinds of moves; 4: outwards, to the other child
BACK, INWARDS, SIBLING, OUTWARDS, STAY, BEGIN = 0, 1, 2, 3, 5, 6
KINDS = {"cell": ("cell",), "previous": ("edge",), "history": ("edge", "moves", "turn", "returns")}


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


def table_score(
    maze: Labyrinth, states: Any, actions: Any, held_out: Any, order: int, weight: float
) -> float:
    """Mean log probability of held-out moves by frequencies given the last cells."""
    counts: list[Any] = [defaultdict(lambda: np.zeros(4)) for _ in range(order + 1)]
    total, moves = 0.0, 0
    # training bouts first, then those held out
    for seen in (False, True):
        for bout in np.flatnonzero(held_out == seen):
            for t, action in enumerate(actions[bout]):
                p = maze.allowed[states[bout, t]] / maze.allowed[states[bout, t]].sum()
                for k in range(order + 1):
                    own = counts[k][tuple(states[bout, max(0, t - k) : t + 1])]
                    if not seen:
                        own[action] += 1.0
                    else:
                        p = (own + weight * p) / (own.sum() + weight)
                if seen:
                    total, moves = total + np.log(p[action]), moves + 1
    return float(total / moves)


def measure(
    strategies: str,
    features: str,
    prior_sd: float,
    weight: float,
    bouts: int,
    draws: int,
    warmup: int,
    chains: int,
    seed: int,
) -> Result:
    """Held-out scores of tables and of each model."""
    import warnings

    import revealed as rv

    stored = np.load(DATA)
    states, actions = stored["states"][:bouts], stored["actions"][:bouts]
    maze = Labyrinth(stored["next_state"], stored["states"], stored["actions"])
    held_out = np.arange(len(states)) % 5 == 0
    found: Result = {"tables": [], "models": []}
    for order in range(4):
        found["tables"].append([order, table_score(maze, states, actions, held_out, order, weight)])
    for kinds in features.split(","):
        d = decisions(maze, states, actions, KINDS[kinds])
        of_move = np.repeat(held_out, states.shape[1])
        train, test = d[np.flatnonzero(~of_move)], d[np.flatnonzero(of_move)]
        for count in strategies.split(","):
            model = rv.ChoiceModel(
                prior=rv.Normal(prior_sd), noise=rv.LogitNoise(), over_time=rv.Switching(int(count))
            )
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rv.NotConvergedWarning)
                # rows of one feature each add up to the same: the prior bounds what choices do not
                warnings.simplefilter("ignore", rv.UninformedWarning)
                post = rv.fit(
                    train,
                    model,
                    draws=draws,
                    warmup=warmup,
                    chains=chains,
                    seed=seed,
                    executor=1,
                    progress=False,
                )
            seconds = time.process_time() - began
            score = post.predict(test, filtered=True)
            summary = post.summary()
            by_bout = score.log_probability_chosen.reshape(int(held_out.sum()), -1).mean(axis=1)
            found["models"].append(
                {
                    "features": kinds,
                    "strategies": int(count),
                    "coefficients": len(d.names),
                    "score": score.log_score,
                    "error": float(by_bout.std() / np.sqrt(len(by_bout))),
                    "plain": post.predict(test).log_score,
                    "r_hat_of_log_posterior": float(summary.r_hat[-1]),
                    "largest_r_hat": float(np.nanmax(summary.r_hat)),
                    "seconds": seconds,
                }
            )
    return found


def tables(result: Result) -> str:
    """Markdown: frequency tables, then models."""
    lines = [
        [f"frequencies given {order} cells before", "", "", cell(score, ".4f"), "", "", ""]
        for order, score in result["tables"]
    ]
    lines += [
        [
            f"features `{m['features']}` ({m['coefficients']})",
            str(m["strategies"]),
            cell(m["plain"], ".4f"),
            cell(m["score"], ".4f"),
            cell(m["error"], ".4f"),
            cell(m["r_hat_of_log_posterior"], ".3f"),
            cell(m["seconds"], ".0f", " s"),
        ]
        for m in result["models"]
    ]
    heads = [
        "model",
        "strategies",
        "without earlier moves",
        "nats a move",
        "se over bouts",
        "R-hat of log posterior",
        "CPU time",
    ]
    return table(heads, lines)


def finding(result: Result) -> str:
    """The best model and the best table."""
    best = max(result["models"], key=lambda m: m["score"])
    order, score = max(result["tables"], key=lambda pair: pair[1])
    return (
        f"{best['strategies']} strategies with features `{best['features']}`: "
        f"{best['score']:.4f} nats a move on held-out bouts; the best table, of order {order}, "
        f"{score:.4f}"
    )


def missed(result: Result) -> str:
    """A sentence where no model predicts better than every table."""
    best = max(m["score"] for m in result["models"])
    return (
        ""
        if best > max(score for _, score in result["tables"])
        else "No model predicts better than every frequency table."
    )


BENCHMARK = Benchmark(
    module=__name__,
    about=__doc__,
    title="Strategies of mice in a labyrinth",
    takes="an hour or two",
    options={
        "strategies": Option("1,3", "numbers of strategies", "1,2"),
        "features": Option("cell,previous,history", "sets of features", "cell"),
        "prior_sd": Option(1.0, "of each coefficient, chosen on the training bouts"),
        "weight": Option(10.0, "of the shorter table in each longer one"),
        "bouts": Option(238, "of the record", 10),
        "draws": Option(100, "kept from each chain", 10),
        "warmup": Option(200, "iterations before", 20),
        "chains": Option(2, "independent chains", 1),
        "seed": Option(1, "of the chains"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
