"""Trajectories with unknown rows, as the kernels take them: rows, and choices between them."""

from __future__ import annotations

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.trajectories import Trajectories
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.noise import count_coordinates
from revealed.kernels.unknown_transitions import RowChoices, TransitionRows
from revealed.models.choice import ResolvedChoiceModel
from revealed.models.noise_coordinates import with_noise_coordinates
from revealed.models.transitions import Dirichlet, mean_process, row_shapes
from revealed.samplers.unknown_transitions import UnknownTransitionsSampler


def build_unknown_transitions(resolved: ResolvedChoiceModel) -> UnknownTransitionsSampler:
    """The sampler for what was seen.

    It begins at the means p(. | x, a) that the transitions alone suggest, with each kind of choice
    as one decision.
    """
    seen, dirichlet = resolved.data, resolved.model.transitions
    assert isinstance(seen, Trajectories)
    assert isinstance(dirichlet, Dirichlet)
    concentration, exists = resolved.concentration, resolved.exists
    assert concentration is not None
    assert exists is not None
    process = mean_process(seen, concentration, exists)
    rows = transition_rows(row_shapes(seen, concentration), exists, dirichlet.action_rewards)
    choices, x, a = count_choices(seen, exists, rows.start)
    unique = process.decisions(x, a, action_rewards=dirichlet.action_rewards)
    # what is unknown of the noise is a coefficient that no row has
    return UnknownTransitionsSampler(
        rows,
        choices._replace(noise=resolved.kernel),
        resolved.sampled_prior,
        with_noise_coordinates(unique, count_coordinates(resolved.kernel)),
    )


def transition_rows(shape: Floats, exists: Bools, action_rewards: bool) -> TransitionRows:
    """The rows of Dirichlet shapes (M, N, N), state by state, with the cells not ruled out."""
    N = len(exists)
    # pairs in the order of states, and of actions within a state
    owner, offered = np.nonzero(exists)
    cells = shape[offered, owner]
    row, next_state = np.nonzero(cells > 0.0)
    return TransitionRows(
        start=np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int64),
        cell_start=np.searchsorted(row, np.arange(len(owner) + 1)).astype(np.int64),
        next_state=next_state.astype(np.int64),
        shape=np.ascontiguousarray(cells[row, next_state]),
        reward_index=(N + offered if action_rewards else np.full(len(offered), -1)).astype(
            np.int64
        ),
    )


def count_choices(seen: Trajectories, exists: Bools, start: Ints) -> tuple[RowChoices, Ints, Ints]:
    """The choices, equal ones counted once; and the state and action of each kind.

    start: (N + 1,) where the rows of each state begin.
    """
    N, M = exists.shape
    # how often each action was chosen in each state is all that matters
    times = np.zeros((N, M))
    np.add.at(times, (seen.state_position, seen.action_position), 1.0)
    x, a = np.nonzero(times)
    position_in_state = np.cumsum(exists, axis=1) - 1
    chosen = start[x] + position_in_state[x, a]
    # the rivals of a choice are all other rows of its state
    rivals = [
        np.setdiff1d(np.arange(start[i], start[i + 1]), [row])
        for i, row in zip(x, chosen, strict=True)
    ]
    first = np.concatenate([[0], np.cumsum([len(rows) for rows in rivals])])
    rival = np.concatenate(rivals)
    index = RivalIndex(first.astype(np.int64), np.ones(len(rival)), times[x, a])
    kinds = np.searchsorted(x, np.arange(N + 1))
    choices = RowChoices(
        kinds.astype(np.int64), chosen.astype(np.int64), rival.astype(np.int64), index
    )
    return choices, x, a
