"""Policy: which action is best in each decision, over all that is unknown of the value.

An action is optimal for a value v where its row @ v is the largest of its decision; the share of
draws in which it is optimal is the posterior probability of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.models.likelihood import choice_probabilities
from revealed.models.noise import KnownNoise
from revealed.results.actions import action_table, first_best, row_flags
from revealed.results.draw_batches import split_rows
from revealed.results.given_draws import check_draws, relative_utilities
from revealed.results.votes import MAX_CELLS


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """What the controller holds best in each decision, its noise set aside, and how sure that is.

    `optimal` (P,): the posterior probability that the action has the largest rows @ v of its
    decision (equals share). `probability` (P,): how probably the noisy controller takes it, with
    `low` and `high` the 5% and 95% quantiles over the draws: the interval says how unsure the value
    leaves that probability.
    """

    optimal: Floats
    probability: Floats
    low: Floats
    high: Floats
    decisions: Decisions

    @property
    def best(self) -> Ints:
        """(T,) the action most probably optimal, as a position in the decision; first of equals."""
        return first_best(self.optimal, self.decisions.start)

    @property
    def certainty(self) -> Floats:
        """(T,) the posterior probability that `best` is optimal."""
        return np.asarray(np.maximum.reduceat(self.optimal, self.decisions.start[:-1]))

    def to_dataframe(self) -> Any:
        """A pyarrow table, one row an action.

        Columns: decision, action, optimal, probability, low, high, best.
        """
        # numbers of each action, and a mark on the best
        numbers = {name: getattr(self, name) for name in ("optimal", "probability", "low", "high")}
        return action_table(
            self.decisions, {**numbers, "best": row_flags(self.decisions, self.best)}
        )

    def __repr__(self) -> str:
        return (
            f"<Policy: {len(self.decisions)} decisions, certainty {self.certainty.mean():.2f} on "
            "average>"
        )


def policy(posterior: Any, decisions: Decisions, noise: KnownNoise | None = None) -> Policy:
    """Which action is best in each of these decisions, and how sure that is.

    Parameters
    ----------
    posterior
        A ChoicePosterior; or draws (..., K); or a point (K,).
    decisions
        What is offered, for instance ``mdp.decisions(all_states)``; choices need not have been
        seen.
    noise
        The law of each action's noise; default: that of the posterior, normal noise for draws.

    Returns
    -------
    Policy
        For every action, how probably it is optimal and how probably it is taken.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [3.0]], start=[0, 3], chosen=None)
    >>> choice = rv.policy(np.array([[0.5], [0.4], [-0.1]]), d)  # three draws of a value
    >>> choice.best, choice.certainty.round(2)
    (array([2]), array([0.67]))
    """
    # everything below works on (S, K) draws
    draws = check_draws(posterior, decisions)
    noise = getattr(posterior, "known_noise", None) if noise is None else noise
    # equal utilities may come out different in their last digits
    largest = abs(decisions.rows).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(largest) else largest
    rounding = 1e-12 * (np.abs(draws) @ largest)[:, None]
    parts = []
    # quantiles need all draws of a row, so that rows are cut and not draws
    for which in split_rows(decisions.start, MAX_CELLS // len(draws)):
        some = decisions[which]
        best = (relative_utilities(draws, some) >= -rounding).astype(np.float64)
        # equally good actions share the draw
        ties = np.add.reduceat(best, some.start[:-1], axis=1)
        best /= np.repeat(ties, some.sizes, axis=1)
        probabilities = choice_probabilities(some, draws, noise)
        low, high = np.quantile(probabilities, [0.05, 0.95], axis=0)
        parts.append((best.mean(axis=0), probabilities.mean(axis=0), low, high))
    columns = zip(*parts, strict=True)
    optimal, probability, low, high = (np.concatenate(column) for column in columns)
    return Policy(optimal, probability, low, high, decisions)
