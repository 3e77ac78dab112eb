"""Strategies that take turns: values of a hidden Markov chain, and the sequences it runs along.

    Switching(states=S)    decision t is made with value v_s, s the strategy in use;
                           the next one has strategy j with probability switch_sj

Each v_s has the prior of the model, by itself. Row s of the switch probabilities has the prior
Dirichlet(concentration + sticky [j = s]), which favours staying (Fox, Sudderth, Jordan and Willsky
2011); the strategy of a sequence's first decision has a law of its own, Dirichlet(initial). All of
these are alike for every strategy, so that which is called first means nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats, Ints
from revealed._validation import check_count, check_positive
from revealed.data.decisions import Decisions
from revealed.models.base import Parameter
from revealed.models.groups import Pooled
from revealed.models.priors import Flat


@dataclass(frozen=True)
class SwitchingLimits:
    """What is refused.

    concentration: a Dirichlet law with less has a good part of its mass where probabilities are too
    small for sums of them. states: more are not told apart by any data that fit into memory.
    """

    concentration: float = 0.1
    states: int = 50


LIMITS = SwitchingLimits()


@dataclass(frozen=True)
class Switching:
    """Hidden strategies that take turns, each with a value of its own.

    Sequences are the decisions' sessions: they share strategies, but each begins anew. Within one,
    decisions go in the order of their times, or as they stand where there are none.

    Parameters
    ----------
    states
        How many strategies there are; compare several by leaving sequences out.
    concentration
        Of the Dirichlet law of switch probabilities: what each strategy counts before any choice.
    sticky
        What staying counts on top.
    initial
        Of the Dirichlet law of a sequence's first strategy.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.repeat([3.0, -3.0, 3.0, -3.0], 50)  # two strategies take turns
    >>> taken = (rng.logistic(size=200) < likes).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken)
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.Switching(states=2))
    >>> post = rv.fit(d, model, draws=500)
    >>> np.sign(np.sort(post.mean("value").ravel()))
    array([-1.,  1.])
    """

    states: int = 2
    concentration: float = 1.0
    sticky: float = 10.0
    initial: float = 1.0

    def __post_init__(self) -> None:
        # one strategy is allowed: others are compared with it
        check_count("states", self.states)
        if self.states > LIMITS.states:
            raise ValueError(f"states must be at most {LIMITS.states}; it is {self.states}")
        for name in ("concentration", "initial"):
            given = getattr(self, name)
            check_positive(name, given)
            if given < LIMITS.concentration:
                raise ValueError(
                    f"{name} must be at least {LIMITS.concentration}; it is {given!r}: with less, "
                    "probabilities are too small to be summed"
                )
        # none is a number too
        if self.sticky != 0.0:
            check_positive("sticky", self.sticky)

    @property
    def description(self) -> str:
        """In words, for reports."""
        # one strategy is a value that stays
        if self.states == 1:
            return "one strategy for all times"
        return (
            f"{self.states} strategies that take turns; staying counts {self.sticky:g} more than "
            f"the {self.concentration:g} of every other"
        )


def refuse_with_switching(prior: Any, groups: Any) -> None:
    """Refuse parts of a model that strategies which take turns do not go with.

    The sentence says what to give in their place.
    """
    # a strategy may be out of use in all sequences: its value has the prior alone
    if isinstance(prior, Flat):
        raise ValueError(
            "strategies that take turns need a proper prior: under a flat one the posterior is "
            "improper, as a strategy may never be in use and no choice then bounds its value; "
            "give rv.Normal(sd)"
        )
    if not isinstance(groups, Pooled):
        raise ValueError(
            "strategies that take turns are inferred for one group: give groups=rv.Pooled() and "
            "the decisions of one group, with sessions=... for its sequences"
        )


@dataclass(frozen=True, eq=False)
class ResolvedSwitching:
    """Strategies that take turns, for one set of decisions.

    labels: of the N sequences. order (T,): decisions sequence by sequence, as they follow one
    another. start (N + 1,): where each sequence begins in that order.
    """

    part: Switching
    labels: tuple[Hashable, ...]
    order: Ints
    start: Ints

    @property
    def strategies(self) -> tuple[int, ...]:
        """What strategies are called: 1 to S."""
        return tuple(range(1, self.part.states + 1))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What is unknown beside the values.

        In the order in which it is reported.
        """
        coords = {"strategy": self.strategies, "next_strategy": self.strategies}
        return (
            Parameter("switch_probability", ("strategy", "next_strategy"), coords),
            Parameter("initial", ("strategy",), {"strategy": self.strategies}),
        )

    @property
    def switch_shape(self) -> Floats:
        """(S, S) of the Dirichlet laws of rows.

        Staying counts more, for every strategy alike.
        """
        states = self.part.states
        shape = np.full((states, states), float(self.part.concentration))
        return shape + self.part.sticky * np.eye(states)

    @property
    def initial_shape(self) -> Floats:
        """(S,) of the Dirichlet law of the first strategy."""
        return np.full(self.part.states, float(self.part.initial))

    @property
    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with."""
        return (self.order, self.start, self.switch_shape, self.initial_shape)


def resolve_switching(part: Switching, decisions: Decisions) -> ResolvedSwitching:
    """Strategies that take turns along the sequences of these decisions.

    A decision without others in its sequence is one by itself.
    """
    labels, order, start = sequences_of(decisions)
    return ResolvedSwitching(part, labels, order, start)


def sequences_of(decisions: Decisions) -> tuple[tuple[Hashable, ...], Ints, Ints]:
    """Labels of the N sequences; the order (T,) of decisions along them, and its bounds (N + 1,).

    Sequences in the order of first appearance; decisions at equal times as they stand.
    """
    count = len(decisions)
    labels: tuple[Hashable, ...] = ("all",)
    code = np.zeros(count, np.int64)
    if decisions.sessions is not None:
        found, first, code = np.unique(decisions.sessions, return_index=True, return_inverse=True)
        # unique sorts; sequences stand as they appear
        rank = np.argsort(np.argsort(first))
        code, labels = rank[code], tuple(found[np.argsort(first)].tolist())
    # without times decisions stand as they follow one another
    times = np.zeros(count) if decisions.times is None else decisions.times
    order = np.lexsort((np.arange(count), times, code))
    start = np.searchsorted(code[order], np.arange(len(labels) + 1))
    return labels, order.astype(np.int64), start.astype(np.int64)


def simplex_basis(states: int) -> Floats:
    """(S, S - 1) an orthonormal basis of what sums to zero.

    Log-ratio coordinates in it treat all strategies alike.
    """
    return np.ascontiguousarray(sla.helmert(states).T) if states > 1 else np.zeros((1, 0))
