"""Which decisions were probably lapses.

Given the value and the rate, the choice of decision t was a lapse with probability

    (rate / M) / P'(choice),    P' = (1 - rate) P + rate / M,

M being the number of actions offered; averaged over the draws.
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


def find_lapses(d: Decisions, values: Floats, noise: KnownLapse) -> Lapses:
    """The probability of each choice of having been a lapse; values (S, K), rates in `noise`."""
    # equal choices in equal decisions once
    where, kind = find_kinds(d, choice_labels(d))
    unique = d[where]
    # of each draw how much of the choice's probability lapses explain
    logs = log_probabilities_of_choices(unique, values, noise)
    rate = np.broadcast_to(noise.rate, len(values))[:, None]
    with np.errstate(divide="ignore"):
        probability = np.exp(np.log(rate / unique.sizes) - logs).mean(axis=0)
    return Lapses(probability[kind], float(noise.rate.mean()), d)
