"""SkillFilter: skills that change, kept up to date as games come, by their mode.

Where `rv.fit` draws paths and sizes, this finds the mode of all skills and the sizes of most
evidence (`skill_mode.py`): seconds in place of hours, and a new date costs a few steps of Newton's
method from where the last one ended. Of what comes next, nodes without games carry the variance
that has grown since a player's last one. With a gap of mean m and variance s^2, and z standard
normal, one entry comes in front of another with probability

    logit noise     E 1 / (1 + exp(-m - s z)),
    normal noise    Phi(m / sqrt(sd^2 + s^2)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_ndtr, logsumexp, softmax

from revealed._types import Floats, Ints
from revealed.data.rankings import Rankings
from revealed.models.ranking import RankingModel
from revealed.models.skill_nodes import SkillNodes
from revealed.results.forecasts import score_pairs
from revealed.results.game_forecasts import GameScores, known_pairs, score_winners
from revealed.samplers.skill_mode import MODE, SkillMode, order_games


@dataclass(frozen=True)
class ForecastSettings:
    """How forecasts average over skills.

    points: of Gauss and Hermite's quadrature of one gap; fewer are wrong where a gap is hardly
    known. draws: of games with more entries, whose places depend on all of them. grid: points
    of the integral of who is chosen last; too few, and it is a rough sum.
    """

    points: int = 31
    draws: int = 400
    grid: int = 200


FORECAST = ForecastSettings()


class SkillFilter:
    """Skills that change, by the mode of all of them.

    Parameters
    ----------
    games
        ``Rankings`` with times and without ties.
    model
        A ``RankingModel`` with ``over_time=rv.RandomWalk()``; under normal noise games have two
        entries.
    seen
        From how many games, in the order of their times, it learns at first; default: all. Later
        ones are learnt from by `learn`, which is quicker than `update`, as their nodes are there.
    from_last
        Whether places are chosen from the last one up, each by the least utility, in place of from
        the first one down by the largest: noise is then Gumbel's turned round, under which it is
        the bad days that are long remembered. Every entry of a game needs a place.

    Examples
    --------
    >>> games = [["ann", "bob"]] * 8 + [["bob", "ann"]] * 8
    >>> d = rv.Rankings.from_lists(games, times=range(16))
    >>> found = rv.SkillFilter(d, rv.RankingModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk()))
    >>> found
    <SkillFilter: 2 players, 16 games, drift ... a root of time, spread ...>
    >>> more = rv.Rankings.from_lists([["bob", "ann"]] * 4, times=[16] * 4)
    >>> found.update(more).table()[0]["player"]
    'bob'
    """

    def __init__(
        self,
        games: Rankings,
        model: RankingModel,
        seen: int | None = None,
        *,
        from_last: bool = False,
    ) -> None:
        self.model, self.from_last = model, from_last
        if from_last and not model.is_logit:
            raise ValueError(
                "places are chosen from the last one up under logit noise only; give "
                "noise=rv.LogitNoise(), or leave from_last out"
            )
        self._take(games)
        # sizes first: a mode is one of given sizes
        self._seen = len(games) if seen is None else seen
        self._sized = self._seen
        self._mode.fit_sizes(self._seen)

    def _take(self, games: Rankings) -> None:
        """Nodes and arrays of these games."""
        if self.model.covariates or self.model.newcomer_prior is not None:
            raise ValueError(
                "the road by the mode has no coefficients; leave covariates and newcomer_prior "
                "out, or use rv.fit"
            )
        resolved = self.model.resolve(games)
        paths = resolved.paths
        if paths is None or paths.process.reverts:
            raise ValueError(
                "the road by the mode is of random walks; give over_time=rv.RandomWalk()"
            )
        self.games, self._nodes = games, paths.nodes
        ordered = order_games(
            games,
            paths.nodes,
            self.model.is_logit,
            self.model.team_noise == "player",
            self.from_last,
        )
        self._mode = SkillMode(ordered, paths.nodes, paths.process.scales, paths.known)

    @property
    def log_evidence(self) -> float:
        """Laplace's log evidence of the games learnt from, at these sizes."""
        return self._mode.log_evidence(self._seen)

    @property
    def drift_sd(self) -> float:
        """How far a skill moves in one unit of time."""
        return float(np.exp(self._mode.theta[0]))

    @property
    def spread(self) -> float:
        """The sd of skills at a player's first game."""
        return float(np.exp(self._mode.theta[len(self._nodes.components)]))

    def __len__(self) -> int:
        return self._seen

    def __repr__(self) -> str:
        return (
            f"<SkillFilter: {len(self.games.names)} players, {self._seen} games, drift "
            f"{self.drift_sd:.4g} a root of time, spread {self.spread:.3g}>"
        )

    def learn(self, seen: int) -> SkillFilter:
        """Learn from the first `seen` of its own games, in the order of their times.

        Sizes are found anew where there are a quarter more games than when they were found last.

        Parameters
        ----------
        seen
            At least as many as before.

        Returns
        -------
        SkillFilter
            Itself.
        """
        if not self._seen <= seen <= len(self.games):
            raise ValueError(
                f"seen must be a whole number from {self._seen} to {len(self.games)}, the games "
                f"that there are; it is {seen!r}"
            )
        self._seen = int(seen)
        # sizes hardly change with a few games more, and take many modes to be found
        if seen > MODE.grown * self._sized:
            self._mode.fit_sizes(self._seen)
            self._sized = self._seen
        else:
            self._mode.find(self._seen)
        return self

    def update(self, new: Rankings) -> SkillFilter:
        """Learn from games that came since, also of players who are new.

        Parameters
        ----------
        new
            With times, in any order; none may be before the last game so far.

        Returns
        -------
        SkillFilter
            Itself.
        """
        if self._seen < len(self.games):
            raise ValueError(
                "it has games of its own that it has not learnt from; call "
                f"learn({len(self.games)}) first"
            )
        if not isinstance(new, Rankings) or new.times is None:
            raise ValueError("update takes Rankings with times")
        last = float(self._times.max())
        if new.times.min() < last:
            raise ValueError(
                f"a new game was played at {new.times.min():g}, before the last one so far, at "
                f"{last:g}; make a new SkillFilter of all games"
            )
        # everything but the nodes of the new games is as it was
        old, nodes, theta = self._mode, self._nodes, self._mode.theta
        self._take(self.games + new)
        self._mode.set_sizes(theta)
        self._mode.value = _start_from(nodes, old.value, self._nodes)
        return self.learn(len(self.games))

    @property
    def _times(self) -> Floats:
        """When games were played; there are nodes only of games with times."""
        assert self.games.times is not None
        return self.games.times

    def at(self, time: float) -> tuple[Floats, Floats]:
        """Mean and sd (K,) of each player's skill at a time; those never seen have the spread's.

        Parameters
        ----------
        time
            From the first date on.
        """
        nodes, variance = self._nodes, self._mode.variances()
        mean, square = (
            np.zeros(len(self.games.names)),
            np.full(len(self.games.names), self.spread**2),
        )
        # the last node of each path that is not later; before that one, the path has its beginning
        last = np.searchsorted(nodes.dates, time, side="right") - 1
        of_player = nodes.component == 0
        usable = np.flatnonzero(of_player & (nodes.date <= last))
        mean[nodes.label[usable]] = self._mode.value[usable]
        gap = time - nodes.times[usable]
        square[nodes.label[usable]] = variance[usable] + self.drift_sd**2 * gap
        return mean, np.sqrt(square)

    def table(self, time: float | None = None) -> list[dict[str, Any]]:
        """A line a player, best first, at a time; default: that of the last game.

        Parameters
        ----------
        time
            From the first date on.

        Returns
        -------
        list of dict
            player, skill, sd.
        """
        # as of today, if nothing else is asked for
        mean, sd = self.at(float(self._times.max()) if time is None else time)
        return [
            {"player": self.games.names[k], "skill": float(mean[k]), "sd": float(sd[k])}
            for k in np.argsort(-mean)
        ]

    def score(self, games: Ints) -> GameScores:
        """How well it foretells some of its own games that it has not learnt from.

        Parameters
        ----------
        games
            Their positions.
        """
        these = self.games.take(games)
        entry = _entries_of(self.games, games)
        pairs = known_pairs(these)
        # of two entries one gap is all there is, and quadrature has its mean
        if (np.diff(these.start) == 2).all():
            better, worse = self._pair_logs(entry[pairs.better], entry[pairs.worse])
            scores = score_pairs(better, worse)
            return GameScores(scores, scores)
        return self._score_by_draws(these, entry)

    def _pair_logs(self, better: Ints, worse: Ints) -> tuple[Floats, Floats]:
        """Log probabilities that entries come in front of others, and behind them."""
        mean, variance = self._strengths()
        # players are taken to be independent: what they share matters to no gap
        gap = mean[better] - mean[worse]
        sd = np.sqrt(variance[better] + variance[worse])
        if not self.model.is_logit:
            # both noises and what is not known of skills add up
            noise = self._noise_variance[better] + self._noise_variance[worse]
            scaled = gap / np.sqrt(noise + sd**2)
            return log_ndtr(scaled), log_ndtr(-scaled)
        # sums of logs, so that what is hardly possible keeps its digits
        points, weights = np.polynomial.hermite_e.hermegauss(FORECAST.points)
        spots = gap[:, None] + sd[:, None] * points
        logs = np.log(weights / weights.sum())
        return (
            logsumexp(log_expit(spots) + logs, axis=1),
            logsumexp(log_expit(-spots) + logs, axis=1),
        )

    @property
    def _noise_variance(self) -> Floats:
        """(E,) of each entry under normal noise."""
        sizes = self.games.sizes.astype(np.float64)
        return sizes if self.model.team_noise == "player" else np.ones_like(sizes)

    def _strengths(self) -> tuple[Floats, Floats]:
        """Mean and variance (E,) of the utility of each entry."""
        nodes, variance = self._nodes, self._mode.variances()
        begin = nodes.entry_start[:-1]
        return (
            np.add.reduceat(self._mode.value[nodes.node], begin),
            np.add.reduceat(variance[nodes.node], begin),
        )

    def _score_by_draws(self, these: Rankings, entry: Ints) -> GameScores:
        """Scores of games whose places depend on all entries, by draws of all their skills."""
        nodes, rng = self._nodes, np.random.default_rng(self._seen)
        # draws of those nodes alone that these games need
        members = np.diff(nodes.entry_start)[entry]
        start = np.concatenate([[0], np.cumsum(members)])
        within = np.arange(start[-1]) - np.repeat(start[:-1], members)
        kept, place = np.unique(
            nodes.node[np.repeat(nodes.entry_start[entry], members) + within], return_inverse=True
        )
        drawn = self._mode.draws(rng, self._seen, FORECAST.draws, kept)
        # an entry is the sum of its players
        utility = np.add.reduceat(drawn[:, place], start[:-1], axis=1)
        pairs = known_pairs(these)
        gap = utility[:, pairs.better] - utility[:, pairs.worse]
        count = np.log(len(drawn))
        scores = score_pairs(
            logsumexp(log_expit(gap), axis=0) - count, logsumexp(log_expit(-gap), axis=0) - count
        )
        law = last_chosen if self.from_last else _first_chosen
        winners = [
            law(utility[:, a:b]) for a, b in zip(these.start[:-1], these.start[1:], strict=True)
        ]
        return GameScores(scores, score_winners(these, winners))


def _first_chosen(utility: Floats) -> Floats:
    """(n,) the probability to be chosen first, the mean over draws (S, n) of utilities."""
    return np.asarray(softmax(utility, axis=1).mean(axis=0))


def last_chosen(utility: Floats) -> Floats:
    """(n,) the probability to be chosen last, from the last place up.

    Entries are chosen as by clocks of rates r_j = exp(-u_j), the first to ring being the last; so

        P(i first) = integral over t of r_i exp(-r_i t) product over others of (1 - exp(-r_j t)),

    in steps of log t, and the mean of it over draws (S, n).
    """
    # from before any clock has rung to after all have
    low, high = utility.min() - 12.0, utility.max() + 4.0
    logs = np.linspace(low, high, FORECAST.grid)
    rung = np.exp(logs[:, None, None] - utility)
    # of a clock that rings late 1 - exp(-x) is x: expm1 keeps its digits
    with np.errstate(divide="ignore"):
        not_yet = np.log(-np.expm1(-rung))
    whole = not_yet.sum(axis=2, keepdims=True)
    density = np.exp(np.log(rung) - rung + whole - not_yet).sum(axis=0)
    return np.asarray((density / density.sum(axis=1, keepdims=True)).mean(axis=0))


def _entries_of(games: Rankings, which: Ints) -> Ints:
    """Positions of the entries of some games, one game after another."""
    # runs of entries, as long as each game is
    sizes = np.diff(games.start)[which]
    start = np.concatenate([[0], np.cumsum(sizes)])
    offset = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
    return np.asarray(np.repeat(games.start[which], sizes) + offset)


def _start_from(old: SkillNodes, value: Floats, new: SkillNodes) -> Floats:
    """Where Newton's method begins with more games: at the old mode, or a player's last skill."""
    # new labels come between those of several components, so that old ones are found by name
    moved = [of[name] for of, own in zip(new.position, old.labels, strict=True) for name in own]
    label = np.array(moved)[old.label]
    key = label * len(new.dates) + np.searchsorted(new.dates, old.dates)[old.date]
    order = np.argsort(key, kind="stable")
    wanted = new.label * len(new.dates) + new.date
    last = order[np.maximum(np.searchsorted(key[order], wanted, side="right") - 1, 0)]
    # of the same label, and not later
    same = (label[last] == new.label) & (key[last] <= wanted)
    return np.where(same, value[last], 0.0)
