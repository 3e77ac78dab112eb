"""What is foretold of decisions and of games, and by whom: events, with scores of each forecaster.

Of decisions the choices among more than one action; of games pairs of entries whose order was seen,
and winners where some game has more than two entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.time_blocks import Block
from revealed.results.baselines import EloRatings, chance, fit_elo_step, frequencies
from revealed.results.forecasts import Forecasts, Scores, join_scores, score_actions
from revealed.results.game_forecasts import (
    known_pairs,
    pairs_alone,
    score_posterior,
    score_ratings,
    single_winners,
)
from revealed.results.hierarchical import HierarchicalPosterior


def _join_events(
    blocks: list[dict[str, dict[str, Scores]]],
    kind: str,
    order: list[str],
    times: Floats,
    unit: Ints,
) -> Forecasts:
    """Forecasts of one kind of event.

    From the scores of all blocks.
    """
    # forecasters in the order of the table, blocks in that of time
    by = [join_scores([scores[name][kind] for scores in blocks]) for name in order]
    fields = (np.stack(field) for field in zip(*by, strict=True))
    return Forecasts(tuple(order), times, unit, *fields)


class ChoiceEvents:
    """Decisions: what is chosen in each that offers more than one action."""

    elo_step = float("nan")

    def __init__(self, data: Decisions, blocks: list[Block], names: tuple[str, ...]) -> None:
        data.require_choices()
        self.data, self.names = data, names
        # a single action cannot be foretold wrongly
        self.events_of = [block.next[data.sizes[block.next] > 1] for block in blocks]

    def take(self, which: Ints) -> Decisions:
        """Some of the decisions.

        As data of their own.
        """
        return self.data[which]

    def score(self, posterior: Any, following: Decisions) -> dict[str, Scores]:
        """How well a posterior foretells the choices.

        Groups that come later are drawn from the population.
        """
        # a group that was never seen is refused unless it is named
        extra = {}
        if isinstance(posterior, HierarchicalPosterior) and following.groups is not None:
            known = set(posterior.groups)
            extra = {
                "new_groups": [g for g in np.unique(following.groups).tolist() if g not in known]
            }
        found = posterior.predict(following, **extra)
        scores = self._score(found.probabilities, following)["choices"]
        # exact, however small
        exact = found.log_probability_chosen[following.sizes > 1]
        return {"choices": scores._replace(log_probability=exact)}

    def baselines(self, block: Block) -> dict[str, Any]:
        """Scores of what needs no model.

        Each learns from what is seen, as the model does.
        """
        following = self.data[block.next]
        found = {"chance": self._score(chance(following), following)}
        if "frequencies" in self.names:
            found["frequencies"] = self._score(
                frequencies(self.data[block.seen], following), following
            )
        return found

    def _score(self, probabilities: Floats, following: Decisions) -> dict[str, Scores]:
        scores = score_actions(probabilities, following.start, following.require_choices())
        several: Bools = following.sizes > 1
        return {"choices": Scores(*(field[several] for field in scores))}

    def events(
        self, blocks: list[dict[str, dict[str, Scores]]], order: list[str], unit: Ints
    ) -> dict[str, Forecasts]:
        """Forecasts of all choices.

        In the order in which they were foretold.
        """
        # an interrupted walk has fewer blocks
        which = np.concatenate(self.events_of[: len(blocks)])
        assert self.data.times is not None
        return {
            "choices": _join_events(blocks, "choices", order, self.data.times[which], unit[which])
        }


class GameEvents:
    """Rankings: pairs whose order is seen, and winners where games have more than two entries."""

    def __init__(self, data: Rankings, blocks: list[Block], names: tuple[str, ...]) -> None:
        self.data = data
        self.games_of = [block.next for block in blocks]
        self.kinds = ["pairs"] if pairs_alone(data) else ["pairs", "winners"]
        self.elo = None
        if "elo" in names:
            self.elo = EloRatings(data, fit_elo_step(data.take(blocks[0].seen)))

    @property
    def elo_step(self) -> float:
        """The step of the ratings; NaN without any."""
        return float("nan") if self.elo is None else self.elo.step

    def take(self, which: Ints) -> Rankings:
        """Some of the games.

        As data of their own.
        """
        return self.data.take(which)

    def score(self, posterior: Any, following: Rankings) -> dict[str, Scores]:
        """How well a posterior foretells the games.

        Both pairs and winners.
        """
        return score_posterior(posterior, following)._asdict()

    def baselines(self, block: Block) -> dict[str, Any]:
        """Scores of what needs no model."""
        # everybody alike
        level, following = np.zeros(len(self.data.names)), self.data.take(block.next)
        found = {"chance": score_ratings(level, following)._asdict()}
        if self.elo is not None:
            self.elo.learn_before(block.time)
            found["elo"] = score_ratings(self.elo.ratings, following)._asdict()
        return found

    def events(
        self, blocks: list[dict[str, dict[str, Scores]]], order: list[str], unit: Ints
    ) -> dict[str, Forecasts]:
        """Forecasts of all pairs, and of winners.

        In the order in which they were foretold.
        """
        # events know their game, and by it their time and their unit
        games = np.concatenate(self.games_of[: len(blocks)])
        later = self.data.take(games)
        of = {"pairs": games[known_pairs(later).game], "winners": games[single_winners(later)]}
        assert self.data.times is not None
        return {
            kind: _join_events(blocks, kind, order, self.data.times[of[kind]], unit[of[kind]])
            for kind in self.kinds
        }
