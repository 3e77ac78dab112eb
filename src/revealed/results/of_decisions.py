"""What all posteriors have in common whose data are decisions."""

from __future__ import annotations

from dataclasses import dataclass

from revealed.data.decisions import Decisions
from revealed.models.choice import ChoiceModel
from revealed.models.priors import Prior
from revealed.results.base import Posterior


@dataclass(frozen=True, eq=False, repr=False)
class DecisionsPosterior(Posterior):
    """A posterior of decisions under a choice model."""

    @property
    def decisions(self) -> Decisions:
        """What it was inferred from."""
        found: Decisions = self.data
        return found

    @property
    def prior(self) -> Prior:
        """What was assumed of a value before.

        Of values that change it is that of the first one or of the long-run mean, of strategies
        that of each, of a population that of its mean.
        """
        assert isinstance(self.model, ChoiceModel)
        return self.model.value_prior

    @property
    def names(self) -> tuple[str, ...]:
        """The K coefficient names."""
        return self.decisions.names
