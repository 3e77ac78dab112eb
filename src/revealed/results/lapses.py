"""Which decisions were probably lapses.

Given the value and the rate, the choice of decision t was a lapse with probability

    rate q / P'(choice),    P' = (1 - rate) P + rate q,

q being how probable the choice is where it is a lapse: one over the number of actions offered, or
its habit's share; averaged over the draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.unique import choice_labels, find_kinds
from revealed.models.drawn_probabilities import log_probabilities_of_choices
from revealed.models.lapse import KnownLapse
from revealed.models.noise import KnownNoise


@dataclass(frozen=True, eq=False, repr=False)
class Lapses:
    """How probable it is that each choice was a lapse.

    Attributes
    ----------
    probability
        (T,) of each decision.
    rate
        The posterior mean of the rate of lapses.
    decisions
        Whose choices they are.
    """

    probability: Floats
    rate: float
    decisions: Decisions

    def likeliest(self, count: int = 10) -> Ints:
        """Positions of the decisions that were most probably lapses, the likeliest first."""
        return np.argsort(-self.probability, kind="stable")[:count]

    def to_dataframe(self) -> Any:
        """A pandas table with a row for each decision: its id, its choice, and the probability."""
        import pandas as pd

        d = self.decisions
        return pd.DataFrame(
            {"decision": list(d.ids), "chosen": d.chosen, "lapse": self.probability}
        )

    def __repr__(self) -> str:
        first = self.likeliest(1)[0]
        return (
            f"<Lapses: {self.probability.sum():.1f} of {len(self.probability)} decisions expected; "
            f"likeliest is decision {self.decisions.ids[first]}, {self.probability[first]:.2f}>"
        )


def find_lapses(d: Decisions, values: Floats, noise: KnownNoise) -> Lapses:
    """The probability of each choice of having been a lapse; values (S, K), rates in `noise`.

    Refuses a noise without lapses.
    """
    noise = require_lapses(noise)
    # equal choices in equal decisions once
    where, kind = find_kinds(d, choice_labels(d), noise.label_of_row(d))
    unique = d[where]
    # of each draw how much of the choice's probability lapses explain
    logs = log_probabilities_of_choices(unique, values, noise)
    probability = lapse_share(logs, noise, noise.shares_of_choices(unique))
    return Lapses(probability[kind], float(noise.rate.mean()), d)


def require_lapses(noise: KnownNoise | None) -> KnownLapse:
    """The noise; refuses one without lapses."""
    if not isinstance(noise, KnownLapse):
        raise ValueError("this model has no lapses; give noise=rv.NormalNoise(lapse=rv.Lapse())")
    return noise


def lapse_share(logs: Floats, noise: KnownLapse, shares: Floats) -> Floats:
    """(n,) how much of each choice's probability lapses explain, averaged over the draws.

    logs: (S, n) the log probabilities of the choices, lapses included. shares: (n,) or (S, n) that
    of a choice among all that a lapse may choose.
    """
    rate = np.broadcast_to(noise.rate, len(logs))[:, None]
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(rate * shares) - logs).mean(axis=0))
