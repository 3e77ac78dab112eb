"""Which directions the choices leave open.

Moving the coefficients along q makes every choice seen at least as likely when (row_chosen - row_j) q >= 0 for all
rivals j. If such a q exists, the decisions alone set no limit in its direction: under a flat prior the posterior is
improper, and under a Gaussian one the prior decides how far the values go. Either the two sides are always equal
(the direction was never put to a test), or every test was passed (the choices are separable along it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Floats
from understudy.decisions import Decisions, Rows


@dataclass(frozen=True, eq=False)
class Opening:
    """A direction of the coefficients that no choice contradicts; `tested` tells whether any choice speaks for it."""

    direction: Floats
    tested: bool
    names: tuple[str, ...]

    def __str__(self) -> str:
        """The direction in words: its largest coefficients."""
        return in_words(self.direction, self.names)


def in_words(direction: Floats, names: tuple[str, ...]) -> str:
    """A direction as its largest coefficients, such as "+1 height -0.5 holes"."""
    size = np.round(np.abs(direction) / np.abs(direction).max(), 9)  # equals keep their order, whatever the last digit
    order = [k for k in np.argsort(-size, kind="stable") if size[k] > 0.05]
    parts = [f"{direction[k]:+.3g} {names[k]}" for k in order[:6]]
    return " ".join(parts) + (f" and {len(order) - 6} more" if len(order) > 6 else "")


def margins(decisions: Decisions) -> Rows:
    """(P - T, K) rows of the chosen action minus each of its rivals; sparse when the decisions are."""
    taken = decisions.taken
    rivals = np.setdiff1d(np.arange(decisions.rows.shape[0]), taken, assume_unique=True)
    return decisions.rows[taken[decisions.decision_of_row[rivals]]] - decisions.rows[rivals]


def untested(decisions: Decisions, basis: Floats) -> Floats:
    """(K, n) orthonormal directions within `basis` along which all actions of every decision are equal."""
    return _kernel(margins(decisions), basis)


def find_opening(decisions: Decisions, basis: Floats, constants: Floats) -> Opening | None:
    """A direction that no choice contradicts, or None when the choices bound the coefficients on all sides.

    basis, constants: the prior's coordinates (`priors.coordinates`); directions are sought in the span of basis.
    """
    won = margins(decisions)
    never = _kernel(won, basis)
    if never.shape[1]:
        return Opening(never[:, 0] / np.abs(never[:, 0]).max(), False, decisions.names)
    # Neither the scale of a feature nor the length of a margin changes the answer: put both to one, for the solver.
    won = sp.csr_array(won)
    scale = _lengths(won, axis=0)
    scaled = won @ sp.diags_array(1.0 / scale)
    scaled = sp.csr_array(sp.diags_array(1.0 / _lengths(scaled, axis=1)) @ scaled)
    # Some of the margins are often enough to rule every direction out; those found wanting join them.
    working = np.zeros(scaled.shape[0], np.bool_)
    working[:: max(1, scaled.shape[0] // (20 * scaled.shape[1]))] = True
    while True:
        found = _passing(scaled[working], constants / scale[:, None])
        if found is None:
            if working.all() or not _kernel(won[working], basis).shape[1]:
                return None
            joining = ~working
        else:
            margin = scaled @ found
            joining = (margin < -1e-8 * margin.max()) & ~working
            if not joining.any():
                direction = found / scale
                return Opening(direction / np.abs(direction).max(), True, decisions.names)
        spread = np.flatnonzero(joining)
        working[spread[:: 1 + len(spread) // (1 + int(working.sum()))]] = True


def _passing(won: Rows, constants: Floats) -> Floats | None:
    """A direction with won q >= 0 and as many of them positive as can be, or None when that is none.

    max sum(passed) with passed <= won q and 0 <= passed <= 1: each margin that can be positive can be made one.
    """
    import scipy.optimize as opt  # takes long to import, and few need it

    count, width = won.shape
    found = opt.linprog(
        np.concatenate([np.zeros(width), -np.ones(count)]),
        A_ub=sp.hstack([-won, sp.eye_array(count)]),
        b_ub=np.zeros(count),
        A_eq=np.hstack([constants.T, np.zeros((constants.shape[1], count))]) if constants.shape[1] else None,
        b_eq=np.zeros(constants.shape[1]) if constants.shape[1] else None,
        bounds=[(None, None)] * width + [(0.0, 1.0)] * count,
        method="highs",
    )
    if found.status != 0:
        raise ValueError(f"whether the choices bound the coefficients could not be decided: {found.message}")
    return np.asarray(found.x[:width]) if -found.fun > 0.5 else None


def _kernel(won: Rows, basis: Floats) -> Floats:
    """(K, n) orthonormal directions within `basis` along which all margins are zero."""
    gram = won.T @ won
    gram = gram.toarray() if sp.issparse(gram) else np.asarray(gram)
    # Features may be millions or millionths: judge each direction on the scale of the features themselves.
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, scale, 1.0)
    ortho, _ = np.linalg.qr(basis * scale[:, None])
    values, vectors = np.linalg.eigh(ortho.T @ (gram / np.outer(scale, scale)) @ ortho)
    # Rounding leaves 1e-15 or so of the largest; a feature that differs from others by a millionth stays above.
    flat = ortho @ vectors[:, values <= 1e-13 * max(values.max(initial=0.0), 1.0)] / scale[:, None]
    return np.linalg.qr(flat / np.linalg.norm(flat, axis=0))[0]


def _lengths(rows: Rows, axis: int) -> Floats:
    """The length of each column or row, one where it is zero."""
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=axis)).ravel())
    return np.where(length > 0, length, 1.0)
