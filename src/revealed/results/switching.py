"""SwitchingPosterior: the strategies that take turns, when each was in use, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed
from revealed.data.decisions import Decisions
from revealed.io.netcdf import Variables
from revealed.models.choice import ChoiceModel
from revealed.models.noise import KnownNoise
from revealed.models.switching import ResolvedSwitching
from revealed.results.base import Columns, Posterior
from revealed.results.choice import fixed_coefficients
from revealed.results.draw_batches import plan_draws
from revealed.results.drawn_noise import drawn_noise
from revealed.results.given_draws import check_same_coefficients
from revealed.results.loo import Observations, all_observations
from revealed.results.of_decisions import DecisionsPosterior
from revealed.results.prediction import Prediction
from revealed.results.storage import draw_dimensions, to_label_array
from revealed.results.strategies import (
    DrawnStrategies,
    Strategies,
    log_likelihoods,
    most_probable,
    predict_sequences,
    smoothed,
)


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingPosterior(DecisionsPosterior):
    """Draws of strategies that take turns, with the same labels in all chains.

    ``draws["value"]`` is (chain, draw, S, K), ``draws["switch_probability"]`` (chain, draw, S, S),
    from row to column, and ``draws["initial"]`` (chain, draw, S), of the first strategy of a
    sequence. Labels are those of the rule in `results/relabelling.py`; R-hat is of draws with these
    labels, and that of the log posterior, which no label changes, stands beside them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.repeat([3.0, -3.0, 3.0, -3.0], 50)  # two strategies take turns
    >>> taken = (rng.logistic(size=200) < likes).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken)
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.Switching(states=2))
    >>> post = rv.fit(d, model, draws=500)
    >>> post
    <SwitchingPosterior: 4 chains of 500 draws, 2 strategies of 1 coefficients along 1 sequences,...
    >>> found = post.states()
    >>> bool(found.most_probable[10] == found.most_probable[110] != found.most_probable[60])
    True
    """

    unit: ClassVar[str] = "sequences"

    @property
    def switching(self) -> ResolvedSwitching:
        """The sequences of these decisions, and what was assumed of switching."""
        found: ResolvedSwitching = self.resolved.switching
        return found

    @property
    def strategies(self) -> tuple[int, ...]:
        """What strategies are called: 1 to S."""
        return self.switching.strategies

    def columns(self) -> Columns:
        """Values of each strategy, switch probabilities, the rest, and the log posterior."""
        draws, names = [], list[str]()
        fixed: list[Any] = []
        one = len(self.strategies) == 1
        of_values = fixed_coefficients(self.decisions, self.prior)
        for parameter in self.parameters:
            array = self.draws[parameter.name]
            draws.append(array.reshape(*self.shape, -1))
            count = draws[-1].shape[2]
            # probabilities of a single strategy are one
            flags = np.full(count, one and parameter.name in ("switch_probability", "initial"))
            if parameter.name == "value":
                names += [f"{name} ({s})" for s in self.strategies for name in self.names]
                flags = np.tile(of_values, len(self.strategies))
            elif parameter.name == "switch_probability":
                names += [f"(from {i} to {j})" for i in self.strategies for j in self.strategies]
            elif parameter.name == "initial":
                names += [f"(begins with {s})" for s in self.strategies]
            else:
                names.append(f"({parameter.name.replace('_', ' ')})")
            fixed.append(flags)
        # no label changes it: where it differs between chains, so do their modes
        if "lp" in self.sample_stats:
            draws.append(np.asarray(self.sample_stats["lp"])[:, :, None])
            names.append("(log posterior)")
            fixed.append(np.zeros(1, np.bool_))
        return Columns(np.concatenate(draws, axis=2), tuple(names), np.concatenate(fixed))

    @property
    def _noise(self) -> KnownNoise:
        """The noise under every draw.

        With rates of lapses and degrees of freedom where these are inferred.
        """
        return drawn_noise(self)

    @property
    def _drawn(self) -> DrawnStrategies:
        """All draws, chains one after the other.

        Values, chains of states and noise of one draw belong together.
        """
        return DrawnStrategies(
            self.stacked("value"),
            self.stacked("switch_probability"),
            self.stacked("initial"),
            self._noise,
        )

    def log_likelihood(self) -> Floats:
        """(chain, draw, N) the log-likelihood of each sequence, states summed out."""
        return log_likelihoods(self._drawn, self.decisions).reshape(*self.shape, -1)

    def _observations(self) -> Observations:
        """The sequences, each with all of its choices.

        Choices of one sequence are not independent given the values: what was in use before tells
        of what is in use.
        """
        count = len(self.switching.labels)
        if count == 1:
            raise ValueError(
                "strategies that take turns are left out sequence by sequence, and there is one; "
                "give the decisions sessions=... for the sequences they belong to"
            )
        logs = self.log_likelihood()
        return all_observations(logs.reshape(-1, count))

    def states(self) -> Strategies:
        """Which strategy made each decision: smoothed probabilities, and a most probable sequence.

        The probabilities are averages over all draws; the most probable sequence is that of one
        draw, of the highest log posterior.
        """
        # a sequence of states is that of one point
        drawn, labels = self._drawn, np.asarray(self.strategies)
        lp = self.sample_stats.get("lp")
        best = drawn.count - 1 if lp is None else int(np.argmax(lp))
        path = most_probable(drawn.some(np.array([best])), self.decisions)
        sessions = self.decisions.sessions
        every = np.full(len(self.decisions), "all") if sessions is None else sessions
        return Strategies(smoothed(drawn, self.decisions), labels[path], every, self.decisions)

    def predict(
        self,
        decisions: Decisions,
        method: str = "average",
        *,
        filtered: bool = False,
        seed: Seed = 0,
        draws: int | str | None = None,
    ) -> Prediction:
        """What is chosen in each of these decisions, along sequences of their own.

        Parameters
        ----------
        decisions
            What is offered. Their sessions are sequences, which begin anew; where choices were
            seen, the prediction can be scored.
        method
            "average", the only one: a point has no label that is sure.
        filtered
            Whether each decision is predicted from the earlier choices of its sequence, one step
            ahead; otherwise from none of them.
        seed
            Nothing is drawn; here as for other posteriors.
        draws
            How many draws are used: "all", or at most so many; default: all.
        """
        check_same_coefficients(self.names, decisions.names)
        if method != "average":
            raise ValueError(
                f"strategies that take turns are predicted by averaging over draws, and not by "
                f"{method!r}: leave out method"
            )
        # what was chosen before is what tells which strategy is in use
        if filtered:
            decisions.require_choices()
        plan = plan_draws(*self.shape, "all" if draws is None else draws)
        return predict_sequences(self._drawn, decisions, filtered, self.shape, plan.used)

    def select(self, **coords: Any) -> Posterior:
        """The posterior of one strategy as if it were all there is: ``select(strategy=1)``.

        Draws of its value, as a posterior of values that stay; its data are all decisions.
        """
        from revealed.models.over_time import Constant
        from revealed.results.choice import ChoicePosterior

        label = coords.get("strategy")
        if set(coords) != {"strategy"} or label not in self.strategies:
            raise ValueError(
                f"select takes one strategy, such as select(strategy=1); there are "
                f"{', '.join(map(str, self.strategies))}"
            )
        rest = ("switch_probability", "initial")
        draws = {name: array for name, array in self.draws.items() if name not in rest}
        draws["value"] = draws["value"][:, :, self.strategies.index(label)]
        assert isinstance(self.model, ChoiceModel)
        return ChoicePosterior(
            draws,
            self.data,
            replace(self.model, over_time=Constant()),
            self.sampler,
            self.sample_stats,
            self.settings,
        )

    def groups_of_arrays(self, log_likelihood: bool) -> dict[str, Variables]:
        """Everything that is an array; log-likelihoods are those of sequences."""
        # the labels of decisions do not fit sequences
        groups = super().groups_of_arrays(False)
        if log_likelihood:
            groups["log_likelihood"] = {
                **draw_dimensions(*self.shape),
                "sequence": (("sequence",), to_label_array(self.switching.labels)),
                "choices": (("chain", "draw", "sequence"), self.log_likelihood()),
            }
        return groups

    def _contents(self) -> str:
        return (
            f"{len(self.strategies)} strategies of {len(self.names)} coefficients along "
            f"{len(self.switching.labels)} sequences"
        )
