"""Values at any time, from draws of a path; and decisions whose values differ from time to time.

Between two nodes i and j of a path a value is normal given both, and after the last one given that:
with decay and variance of the two steps,

    precision = 1 / variance_1 + decay_2^2 / variance_2
    mean      = (decay_1 u_i / variance_1 + decay_2 u_j / variance_2) / precision

which is the bridge of a random walk where decay is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.path_process import PathProcess


@dataclass(frozen=True, eq=False)
class Steps:
    """The law of steps of a path under every draw, in the free coordinates.

    sd, rate (S, D), between (S, D) or None, centre (S, D). A random walk has no rate: None.
    """

    sd: Floats
    rate: Floats | None
    between: Floats | None
    centre: Floats

    def step(self, gap: float, crosses: bool) -> tuple[Floats, Floats]:
        """Decay and variance (S, D) of a step of this length.

        crosses: whether it leads from one session to another.
        """
        if self.rate is not None:
            # a rate may be tiny: expm1 keeps the digits of a small variance
            elapsed = self.rate * gap
            return np.exp(-elapsed), -(self.sd**2) * np.expm1(-2.0 * elapsed)
        if crosses and self.between is not None:
            return np.ones_like(self.sd), self.between**2
        return np.ones_like(self.sd), self.sd**2 * gap


def draw_between(
    rng: np.random.Generator,
    steps: Steps,
    times: Floats,
    sessions: Any,
    paths: Floats,
    wanted: Floats,
    wanted_sessions: Any,
) -> Floats:
    """(S, M, D) values at wanted times, in order, given paths (S, N, D) at times (N,).

    sessions: (N,) of the nodes, wanted_sessions: (M,); None where there are none. One draw of the
    path goes on in all of them, so that what lies between two nodes is one path too.
    """
    out = np.empty((len(paths), len(wanted), paths.shape[2]))
    before_time, before_session, before = times[0], _label(sessions, 0), paths[:, 0]
    n = 0
    for m, time in enumerate(wanted.tolist()):
        # the last node that is not later, unless a wanted time after it was drawn already
        while n < len(times) and times[n] <= time:
            before_time, before_session, before = times[n], _label(sessions, n), paths[:, n]
            n += 1
        if before_time == time:
            out[:, m] = before
            continue
        session = _label(wanted_sessions, m)
        decay, variance = steps.step(time - before_time, session != before_session)
        # given what was before it alone
        mean = decay * (before - steps.centre)
        if n < len(times):
            crosses = session != _label(sessions, n)
            decay_2, variance_2 = steps.step(times[n] - time, crosses)
            after = paths[:, n] - steps.centre
            # a node follows: both sides count, by their precisions
            precision = 1.0 / variance + decay_2**2 / variance_2
            mean = (mean / variance + decay_2 * after / variance_2) / precision
            variance = 1.0 / precision
        before = steps.centre + mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
        before_time, before_session = time, session
        out[:, m] = before
    return out


def _label(labels: Any, i: int) -> Any:
    """One of some labels; None where there are none.

    All nodes are in one session then.
    """
    return None if labels is None else labels[i]


def first_positions(node: Ints) -> Ints:
    """(N,) the position of the first decision of every node."""
    return np.unique(node, return_index=True)[1]


def parts_of(decisions: Decisions, rows_at_once: int = 1000) -> dict[Any, Ints]:
    """Decisions in parts of about so many rows, as positions, counted from zero.

    Utilities of a part are held under all draws: 32 MB with 4,000 of these.
    """
    # a part begins where the count of rows passes a multiple of the size
    number = decisions.start[:-1] // rows_at_once
    # one decision is never split, however many rows it has
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts[1:], len(decisions))
    return {i: np.arange(a, b) for i, (a, b) in enumerate(zip(starts, ends, strict=True))}


def with_utilities(
    decisions: Decisions, values_of: Callable[[Ints], Floats], which: Ints
) -> tuple[Decisions, Floats]:
    """Some decisions with a coefficient for each of their rows, and draws (S, p) of these.

    Each coefficient is the utility of its row without noise, so that whatever is worked out from
    decisions and draws of one value also is where every time has a value of its own. values_of:
    from positions of n decisions to draws (S, n, K) of their values.
    """
    some = decisions[which]
    rows = some.rows.toarray() if sp.issparse(some.rows) else some.rows
    values = values_of(which)
    # by decision: all of its rows have the value of its time
    utilities = np.einsum("pk,spk->sp", rows, values[:, some.decision_of_row])
    count = len(rows)
    # utilities are the coefficients, and a row picks its own
    alone = Decisions(
        sp.eye_array(count, format="csr"),
        some.start,
        some.chosen,
        actions=some.actions,
        ids=some.ids,
    )
    return alone, np.ascontiguousarray(utilities)


def sizes_in_coordinates(process: PathProcess, drawn: Floats) -> Floats:
    """(S, D) the sd of each free coordinate, from those of the sizes (S, J).

    Coordinates of one block share theirs.
    """
    return np.asarray(drawn[:, process.size])
