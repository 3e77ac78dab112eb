"""Draws that somebody gives to predict from: a posterior, an array of draws, or a point."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.base import Posterior


def check_draws(posterior: Any, decisions: Decisions) -> Floats:
    """(S, K) draws of the same coefficients as the decisions have; refuses all else.

    A posterior is compared by the names of its coefficients, arrays by their shape.
    """
    if not isinstance(decisions, Decisions):
        raise ValueError(f"predictions are made for Decisions, not for {type(decisions).__name__}")
    # the same coefficients in the same order, as far as names can say
    width = len(decisions.names)
    if hasattr(posterior, "known_noise"):
        check_same_coefficients(posterior.names, decisions.names)
        return np.asarray(posterior.values)
    # groups have values of their own, and the draws of transitions belong to each
    if isinstance(posterior, Posterior):
        raise ValueError(
            f"a {type(posterior).__name__} predicts by itself, by posterior.predict(...); where it "
            "has groups, select one of them first"
        )
    try:
        given = np.asarray(posterior, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"predictions need a Posterior, draws (S, {width}) or a point ({width},), not "
            f"{type(posterior).__name__}"
        ) from None
    if given.ndim == 0 or given.size == 0 or given.shape[-1] != width:
        raise ValueError(
            f"draws have shape {given.shape}, but the decisions have {width} coefficients; give "
            f"(S, {width}) or ({width},)"
        )
    if not np.isfinite(given).all():
        raise ValueError("the draws hold NaN or infinite numbers; they must be finite")
    return given.reshape(-1, width)


def chain_shape(posterior: Any, draws: Floats) -> tuple[int, int]:
    """How many chains of how many draws these are: of an array (S, K), one chain."""
    if isinstance(posterior, Posterior):
        return posterior.shape
    shape = np.shape(posterior)
    return (shape[0], len(draws) // shape[0]) if len(shape) == 3 else (1, len(draws))


def check_same_coefficients(mine: tuple[str, ...], theirs: tuple[str, ...]) -> None:
    """Refuse decisions with other coefficients than the posterior's, and name the first."""
    for k, (own, other) in enumerate(zip(mine, theirs, strict=False)):
        if own != other:
            raise ValueError(
                f"coefficient {k} is {own!r} in the posterior and {other!r} in the decisions; both "
                "must have the same coefficients in the same order"
            )
    if len(mine) != len(theirs):
        longer = max(mine, theirs, key=len)
        raise ValueError(
            f"the posterior has {len(mine)} coefficients and the decisions {len(theirs)}: "
            f"{longer[min(len(mine), len(theirs))]!r} is in only one of them"
        )


def relative_utilities(draws: Floats, decisions: Decisions) -> Floats:
    """(S, P) rows @ v less the best of the decision.

    The difference keeps noise of order one from being rounded away beside large values.
    """
    # only differences within a decision matter
    utilities = np.ascontiguousarray((decisions.rows @ draws.T).T)
    best = np.maximum.reduceat(utilities, decisions.start[:-1], axis=1)
    return np.asarray(utilities - np.repeat(best, decisions.sizes, axis=1))
