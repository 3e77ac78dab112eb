"""ChoicePosterior: what one controller values, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed._validation import Seed
from revealed.data.decisions import Decisions
from revealed.data.unique import choice_labels, find_kinds
from revealed.models.correlated_noise import ResolvedNoise
from revealed.models.drawn_probabilities import log_probabilities_of_choices
from revealed.models.likelihood import log_likelihood
from revealed.models.noise import KnownNoise, label_of_row
from revealed.models.priors import Prior, ResolvedPrior
from revealed.results.base import Columns
from revealed.results.drawn_noise import drawn_noise, resolved_noise, with_noise_columns
from revealed.results.identification import Identification, identify
from revealed.results.lapses import Lapses, find_lapses
from revealed.results.loo import Observations
from revealed.results.of_decisions import DecisionsPosterior
from revealed.results.policy import Policy, policy
from revealed.results.prediction import Prediction
from revealed.results.predictive import predict


@dataclass(frozen=True, eq=False, repr=False)
class ChoicePosterior(DecisionsPosterior):
    """Draws of one value for all decisions.

    ``draws["value"]`` is (chain, draw, K); where the noise covariance was inferred,
    ``draws["noise_covariance"]`` is (chain, draw, D, D), of the actions' noise less the base's; and
    where the prior's sd was, ``draws["prior_sd"]`` is (chain, draw).

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
    >>> post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)))
    >>> post.names[post.mean().argmax()], post["tea"].shape, post.values.shape
    ('tea', (4, 1000), (4000, 2))
    >>> post.predict(d[:1]).predicted
    array([0])
    """

    @property
    def values(self) -> Floats:
        """(chains * draws, K) the draws of the value, chains one after the other."""
        return self.stacked("value")

    def __getitem__(self, name: str) -> Floats:
        """(chain, draw) the draws of one coefficient."""
        # a typing error in a name is best answered with the names
        if name not in self.names:
            some = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
            raise ValueError(f"there is no coefficient {name!r}; there are {some}")
        return self.draws["value"][:, :, self.names.index(name)]

    @property
    def resolved_noise(self) -> ResolvedNoise:
        """Which labels the noise covariance has.

        Refuses where noise is independent.
        """
        return resolved_noise(self)

    @property
    def known_noise(self) -> KnownNoise:
        """The noise as predictions need it.

        With a covariance, the draws of it, chains one after the other.
        """
        return drawn_noise(self)

    @property
    def resolved_prior(self) -> ResolvedPrior:
        """The prior in the coordinates of the decisions.

        Where its sd was inferred, it is taken at the median of the draws of it.
        """
        prior: ResolvedPrior = self.resolved.prior
        if prior.scale is None:
            return prior
        return prior.at_scale(float(np.median(self.draws["prior_sd"])))

    def columns(self) -> Columns:
        """The coefficients, then the prior's sd and the noise covariance, where inferred."""
        draws, names = [self.draws["value"]], list(self.names)
        fixed = [fixed_coefficients(self.decisions, self.prior)]
        # an inferred sd mixes worst of all where it mixes badly, so that it must be looked at
        if "prior_sd" in self.draws:
            draws.append(self.draws["prior_sd"][:, :, None])
            names.append("(prior sd)")
            fixed.append(np.zeros(1, np.bool_))
        if "df" in self.draws:
            draws.append(self.draws["df"][:, :, None])
            names.append("(df)")
            fixed.append(np.zeros(1, np.bool_))
        # of all that is unknown, the rate may have two modes: it must be looked at too
        if "lapse" in self.draws:
            draws.append(self.draws["lapse"][:, :, None])
            names.append("(lapse)")
            fixed.append(np.zeros(1, np.bool_))
        if "habit" in self.draws:
            draws.append(self.draws["habit"])
            names += [f"(habit {label})" for label in self.resolved.habit.labels]
            fixed.append(np.zeros(draws[-1].shape[-1], np.bool_))
        columns = Columns(np.concatenate(draws, axis=2), tuple(names), np.concatenate(fixed))
        return with_noise_columns(self, columns)

    def log_likelihood(self) -> Floats:
        """(chain, draw, T) the exact log-likelihood of every choice under every draw."""
        found = log_likelihood(self.decisions, self.values, self.known_noise)
        return found.reshape(*self.shape, len(self.decisions))

    def _observations(self) -> Observations:
        """The choices, equal ones in equal decisions once."""
        d, noise = self.decisions, self.known_noise
        where, kind = find_kinds(d, choice_labels(d), label_of_row(noise, d))

        def logs_of(which: Ints) -> Floats:
            return log_probabilities_of_choices(d[where[which]], self.values, noise)

        return Observations(kind, logs_of)

    def predict(
        self,
        decisions: Decisions,
        method: str = "average",
        *,
        seed: Seed = 0,
        draws: int | str | None = None,
    ) -> Prediction:
        """What is chosen in each of these decisions; see ``rv.predict``.

        Parameters
        ----------
        decisions
            What is offered. Where choices were seen, the prediction can be scored against them.
        method
            "average", "vote" or "point".
        seed
            Of the votes' noise.
        draws
            How many draws are used: "all", or at most so many; default: as the error asks for.
        """
        return predict(self, decisions, method, seed=seed, draws=draws)

    def lapses(self) -> Lapses:
        """How probable it is that each choice was a lapse; refuses a model without lapses."""
        return find_lapses(self.decisions, self.values, self.known_noise)

    def policy(self, decisions: Decisions) -> Policy:
        """Which action is best in each of these decisions, and how sure that is."""
        return policy(self, decisions)

    def identification(self) -> Identification:
        """What the decisions identify, and what only the prior says.

        Print it for a report.
        """
        return identify(self)

    def _contents(self) -> str:
        return f"{len(self.names)} coefficients"


def fixed_coefficients(decisions: Decisions, prior: Prior) -> Bools:
    """(K,) which coefficients can only be zero, being alone in a block that sums to zero.

    They never move, which is not a fault of the sampler.
    """
    blocks, sum_to_zero = decisions.blocks, prior.sum_to_zero
    alone = [
        block.size == 1 and (block.sum_to_zero if sum_to_zero is None else sum_to_zero)
        for block in blocks
    ]
    return np.repeat(alone, [block.size for block in blocks])
