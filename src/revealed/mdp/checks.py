"""What callers give for an MDP, checked: transitions, available actions, labels, numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Bools, Floats, Ints
from revealed._validation import check_finite
from revealed.data.decisions import Rows
from revealed.data.labels import to_positions
from revealed.kernels.noise import NORMAL, NoiseArguments, count_coordinates
from revealed.models.lapse import KnownLapse


def stack_transitions(transitions: Any) -> tuple[Rows, int, int]:
    """All rows as one (M N, N) table, action by action, with M and N.

    transitions: (M, N, N), or a list of M matrices of which some are sparse; then so is the table.
    """
    if sp.issparse(transitions):
        raise ValueError(
            "transitions is one sparse matrix; "
            "give a list of them, one (N, N) matrix for each action"
        )
    if isinstance(transitions, list | tuple) and any(sp.issparse(one) for one in transitions):
        return _stack_sparse(transitions)
    table = check_table("transitions", transitions)
    if table.ndim != 3 or 0 in table.shape or table.shape[1] != table.shape[2]:
        message = (
            f"transitions has shape {table.shape}; it must be (M, N, N), "
            "transitions[a, x, y] = p(y | x, a)"
        )
        # Two axes in the wrong order are the usual mistake, and easy to tell.
        if table.ndim == 3 and table.shape[0] == table.shape[2]:
            message += ": this looks like [x, a, y], so give transitions.transpose(1, 0, 2)"
        elif table.ndim == 3 and table.shape[0] == table.shape[1]:
            message += ": this looks like [x, y, a], so give transitions.transpose(2, 0, 1)"
        raise ValueError(message)
    return table.reshape(-1, table.shape[2]), table.shape[0], table.shape[1]


def _stack_sparse(transitions: Sequence[Any]) -> tuple[Rows, int, int]:
    """The sparse matrices of all actions under one another, with M and N.

    Each is (N, N) and holds real numbers; the table is (M N, N).
    """
    try:
        matrices = [sp.csr_array(one) for one in transitions]
    except (TypeError, ValueError):
        raise ValueError(
            "transitions must be a list of (N, N) matrices of numbers, one for each action"
        ) from None
    # All actions lead from the same states to the same states.
    N = matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (N, N) or N == 0:
            raise ValueError(
                f"transitions[{a}] has shape {matrix.shape}; every action needs an (N, N) matrix"
            )
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"transitions[{a}] must hold real numbers, not {matrix.dtype}")
    stacked = sp.csr_array(sp.vstack(matrices), dtype=np.float64, copy=True)
    # Cells given twice add up, and stored zeros are no transitions.
    stacked.sum_duplicates()
    stacked.eliminate_zeros()
    return stacked, len(matrices), N


def check_transition_rows(rows: Rows, describe_row: Callable[[int], str]) -> None:
    """Check that rows (P, N) are distributions: finite, not negative, with sums of one.

    describe_row: what a message calls a row, by its position.
    """
    sparse = sp.issparse(rows)
    cells = rows.data if sparse else rows.ravel()
    for is_bad, fault in ((~np.isfinite(cells), "NaN or infinite"), (cells < 0.0, "negative")):
        if is_bad.any():
            at = int(np.flatnonzero(is_bad)[0])
            # Dense cells are counted row by row; stored cells by the row pointers.
            row = at // rows.shape[1]
            if sparse:
                row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise ValueError(
                f"{describe_row(row)}: a transition probability is {fault} ({cells[at]:g})"
            )
    # Rounding of many terms stays far below this; a forgotten term does not.
    sums = np.asarray(rows.sum(axis=1))
    wrong = np.flatnonzero(np.abs(sums - 1.0) > 1e-8)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"{describe_row(row)}: the transition probabilities sum to {sums[row]:.10g}, not 1; "
            "transitions[a, x, y] is p(y | x, a), and pairs that do not exist are marked in "
            "available"
        )


def check_availability(available: Any, N: int, M: int) -> Bools:
    """(N, M) which actions each state has.

    All of them where nothing is given; otherwise a table of True and False, or of 1 and 0.
    """
    if available is None:
        return np.ones((N, M), bool)
    # Numbers 0 and 1 are taken too, as a table from a file may have them.
    given = check_table("available", available)
    if given.shape != (N, M):
        hint = "; this is its transpose" if given.shape == (M, N) else ""
        raise ValueError(
            f"available has shape {given.shape}, but must be (N, M) = ({N}, {M}), "
            f"states first{hint}"
        )
    if not np.isin(given, (0.0, 1.0)).all():
        raise ValueError("available must be True or False for each state and action")
    return given.astype(bool)


def check_table(what: str, given: Any) -> np.ndarray[Any, Any]:
    """What was given as an array of floats, of any shape."""
    try:
        # A ragged list, text or objects are refused in one sentence.
        table = np.array(given)
        if table.dtype.kind not in "biuf":
            raise TypeError
        return table.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a table of numbers, with rows of equal length") from None


def check_finite_table(what: str, given: Any) -> Floats:
    """What was given as an array of finite floats, of any shape."""
    return check_finite(what, check_table(what, given))


def positions_among_available(
    x: Ints, actions: Any, available: Bools, states: tuple[Any, ...], labels: tuple[Any, ...]
) -> Ints:
    """(T,) each action's position among those available in its state x (T,).

    actions: T labels or positions. available: (N, M). states, labels: those of states and actions.
    """
    a = to_positions("time", "action", actions, labels)
    # One action for each state: here the last state has one too.
    if a.size != x.size:
        raise ValueError(
            f"there are {x.size} states and {a.size} actions; give one action for each state"
        )
    wrong = np.flatnonzero(~available[x, a])
    if wrong.size:
        t = int(wrong[0])
        offer = ", ".join(str(labels[k]) for k in np.flatnonzero(available[x[t]]))
        raise ValueError(
            f"time {t}: action {labels[a[t]]} is not available "
            f"in state {states[x[t]]}, which offers {offer}"
        )
    # How many available actions come before it in its state.
    return np.asarray((np.cumsum(available, axis=1) - 1)[x, a])


def check_action_reward(given: Any, M: int, draws_shape: tuple[int, ...] = ()) -> Floats:
    """(M,) finite action rewards, or (..., M) like the draws of the value."""
    # One number an action for all draws, or one for each draw.
    by_action, full = check_finite_table("action_reward", given), (*draws_shape, M)
    if by_action.shape not in ((M,), full):
        hint = f", or {full} like the draws of the value" if draws_shape else ""
        raise ValueError(
            f"action_reward has shape {by_action.shape}, but must be {(M,)}, "
            f"one number an action{hint}"
        )
    return by_action


def split_value(value: Any, action_reward: Any, N: int, M: int) -> tuple[Floats, Floats | None]:
    """The values of the states (..., N), and the action rewards (M,) or (..., M) or None.

    value: (..., N), or (..., N + M) with the action rewards behind; action_reward: where they are
    not, or None.
    """
    v = check_finite_table("value", value)
    if v.size == 0 or v.ndim == 0 or v.shape[-1] not in (N, N + M):
        raise ValueError(
            f"value has shape {v.shape}; "
            f"the last axis must hold the {N} states, or them and the {M} actions"
        )
    # The length of the last axis says whether action rewards are behind the value.
    if v.shape[-1] == N:
        if action_reward is None:
            return v, None
        return v, check_action_reward(action_reward, M, v.shape[:-1])
    if action_reward is not None:
        raise ValueError(
            "value holds the action rewards already (N + M numbers); leave action_reward out"
        )
    return v[..., :N], v[..., N:]


def check_discount(discount: Any) -> float:
    """A discount: above 0 and at most 1."""
    if (
        not isinstance(discount, int | float | np.integer | np.floating)
        or not 0.0 < discount <= 1.0
    ):
        raise ValueError(f"discount must be above 0 and at most 1; it is {discount}")
    return float(discount)


def check_noise(noise: Any) -> NoiseArguments | None:
    """The law of a controller's noise; None where there is none, or it does not count.

    noise: True for normal noise, False, or a noise whose expected maximum is known.
    """
    if noise is True or noise is False:
        return NORMAL if noise else None
    if isinstance(noise, KnownLapse) or getattr(noise, "lapse", None) is not None:
        raise ValueError(
            "nobody counts on lapses, so that they are no part of a reward; give the noise without "
            "them, such as rv.LogitNoise()"
        )
    law = _law_of(noise)
    if law is None or not (law.is_normal or law.is_logit):
        raise ValueError(
            "noise must be True, False, rv.NormalNoise() or rv.LogitNoise(), whose expected "
            f"maximum is known; it is {noise!r}"
        )
    return law


def check_simulated_noise(noise: Any) -> tuple[NoiseArguments | None, float]:
    """The law of a controller's noise, which is only drawn, and how often it chooses blindly.

    noise: as in `check_noise`, Student noise of known df, or either with lapses at a known rate.
    """
    if getattr(noise, "lapse", None) is not None:
        raise ValueError(
            "a controller lapses at a known rate: give rv.KnownLapse(noise, rate) in place of a "
            "noise whose rate is to be inferred"
        )
    if isinstance(noise, KnownLapse):
        if noise.habit is not None or noise.rate.ndim > 0:
            raise ValueError(
                "a controller lapses at one rate, each action as likely as another: give "
                "rv.KnownLapse(noise, rate) with one number and without habits"
            )
        return check_simulated_noise(noise.without_lapses)[0], float(noise.rate)
    law = _law_of(noise)
    if law is None or not law.is_student:
        return check_noise(noise), 0.0
    if count_coordinates(law):
        raise ValueError(f"noise is drawn with known df; give a number in {noise!r}")
    return law, 0.0


def _law_of(noise: Any) -> NoiseArguments | None:
    """The law of a noise without lapses; None where it has lapses, or is none.

    A class in place of an instance is none.
    """
    law = noise.kernel() if hasattr(noise, "kernel") else None
    return law if isinstance(law, NoiseArguments) else None
