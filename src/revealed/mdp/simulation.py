"""A path of a noisy controller through a finite MDP."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Rows
from revealed.data.trajectories import Trajectory
from revealed.kernels.noise import NoiseArguments
from revealed.kernels.simulate_mdp import simulate_path
from revealed.mdp.bellman import state_of_row


def walk(
    rng: np.random.Generator,
    rows: Rows,
    start: Ints,
    offered: Ints,
    utilities: Floats,
    noise: NoiseArguments,
    lapse_rate: float,
    state: int,
    length: int,
) -> Trajectory:
    """A path from `state`, of `length` decisions, or fewer where it ends before.

    rows, start, offered: of the MDP, as in `bellman.py`. utilities: (P,) what each row's action is
    worth before the noise. lapse_rate: how often an action is taken blindly.
    """
    # The kernel walks along the possible next states of a row only.
    cells, begin, acts = sp.csr_array(rows), start, np.diff(start) > 0
    if not acts.all():
        # It never stops: where nothing is offered it stays, and the path is cut afterwards.
        at = start[:-1][~acts]
        stay = sp.eye_array(len(acts), format="csr")[np.flatnonzero(~acts)]
        states = np.append(state_of_row(start), np.flatnonzero(~acts))
        cells = sp.csr_array(sp.vstack([cells, stay]))[np.argsort(states, kind="stable")]
        begin = start + np.append(0, np.cumsum(~acts))
        utilities, offered = np.insert(utilities, at, 0.0), np.insert(offered, at, -1)
    path = Trajectory(np.empty(length, np.int64), np.empty(length, np.int64))
    simulate_path(
        rng,
        state,
        utilities,
        noise.is_logit,
        float(noise.parameters[0]) if noise.is_student else 0.0,
        lapse_rate,
        begin,
        offered,
        cells.data.copy(),
        cells.indices.astype(np.int64),
        cells.indptr.astype(np.int64),
        path.states,
        path.actions,
    )
    ended = np.flatnonzero(path.actions < 0)
    if not ended.size:
        return path
    return Trajectory(path.states[: ended[0] + 1], path.actions[: ended[0]])
