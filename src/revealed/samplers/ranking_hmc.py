"""The sampler for finishing orders: Hamiltonian moves on the exact likelihood of the orders.

Unknown are the skills, spread * z with z standard normal; the spread, unless it is given; and the
margin of a tie, if there are any. Paths go over z, log spread and log margin at once
(`kernels/ranking_hmc.py`). Before each the spread moves given the skills: where games say much,
skills stay and the spread follows; where they say little, z stays and the skills follow; the two
together do both (interweaving). Under logit noise there is no margin, and all else is the same.

Where all entries of a game have as many players, adding a number to all skills changes nothing that
was observed: the skills are location-free. Their mean is then drawn from its prior and taken off
the draws: skills sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revealed._types import Floats
from revealed.data.rankings import Rankings
from revealed.kernels.hmc import (
    PathPlan,
    PathStatistics,
    init_dual_averaging,
    make_path_statistics,
)
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.plackett_luce import LuceGames, make_luce_games
from revealed.kernels.ranking_hmc import (
    RankingLikelihood,
    RankingPrior,
    ScaledRanking,
    evaluate_likelihood,
    move_unknowns,
)
from revealed.kernels.ranking_likelihood import Games
from revealed.samplers.adaptation import WINDOW, WindowPlan, run_windows, settle_step_size
from revealed.samplers.base import Draws, State, Stats

# The half-normal priors of spread and margin have these sds, in units of an entry's noise. Weakly
# informative: two thirds of all spreads are below 2, where the better of two players one sd apart
# wins nine games of ten. Documented for users; changing them changes posteriors.
SPREAD_PRIOR_SD = 2.0
MARGIN_PRIOR_SD = 1.0


@dataclass(frozen=True)
class RankingSettings:
    """Settings of warm-up and moves; wrong ones cost time, never correctness.

    target_acceptance: that dual averaging aims at; Stan's default. path_length: in units of the
    posterior sd, a quarter of a period, pi / 2. spread_moves: random walk steps of the spread given
    the skills, before each path; they cost nothing. initial_step_size: in units of the posterior
    sd.
    walk_scale: of the random walk, in sds of the log spread given the skills; in one dimension 2.4
    is best under a normal law (Gelman, Roberts and Gilks 1996), and somewhat less costs little.
    """

    target_acceptance: float = 0.8
    path_length: float = 1.6
    spread_moves: int = 10
    initial_step_size: float = 0.5
    walk_scale: float = 1.7


SETTINGS = RankingSettings()
# Every window adapts the step size; the second and the third measure the widths of the posterior.
WINDOWS = WindowPlan((0.1, 0.2, 0.3, 0.4))


def _make_games(orders: Rankings, team_noise: str, logit: bool) -> Games | LuceGames:
    """Games as the loops of a noise take them."""
    members = orders.players, orders.member_start, orders.start
    if logit:
        return make_luce_games(*members, orders.tied, orders.n_ordered, len(orders.names))
    # independent noise of an entry's players adds up
    variance = orders.sizes if team_noise == "player" else np.ones(len(orders.sizes))
    return Games(*members, np.sqrt(variance.astype(np.float64)), orders.tied, orders.n_ordered)


@dataclass(frozen=True, eq=False)
class RankingSampler:
    """The sampler, ready to run on one set of orders."""

    orders: Rankings
    games: Games | LuceGames
    prior: RankingPrior

    @property
    def name(self) -> str:
        """What users call it."""
        return "ranking-hmc"

    @staticmethod
    def build(
        orders: Rankings, spread: float | None, team_noise: str, logit: bool = False
    ) -> RankingSampler:
        """The sampler for these orders.

        spread: of the skills, None to infer it, infinite under a flat prior. team_noise: "entry"
        gives every entry a noise of sd one, "player" every player in it. logit: whether the noise
        is Gumbel's in place of normal.
        """
        flat = spread is not None and np.isinf(spread)
        prior = RankingPrior(
            z_precision=0.0 if flat else 1.0,
            spread=1.0 if flat else (spread or 0.0),
            spread_prior_sd=SPREAD_PRIOR_SD,
            # under logit noise a tie has no margin
            margin_prior_sd=MARGIN_PRIOR_SD * (orders.has_ties and not logit),
        )
        return RankingSampler(orders, _make_games(orders, team_noise, logit), prior)

    @cached_property
    def location_free(self) -> bool:
        """Whether adding a number to all skills leaves every game as it is."""
        return self.orders.location_free

    @property
    def n_players(self) -> int:
        """How many players there are."""
        return len(self.orders.names)

    @property
    def infers_spread(self) -> bool:
        """Whether the spread is unknown."""
        return self.prior.spread == 0.0

    @property
    def infers_margin(self) -> bool:
        """Whether the margin is unknown: some games are tied, and a win needs one."""
        return self.prior.margin_prior_sd > 0.0

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """At `position`, or at random skills half as far apart as the noise of a game.

        Or as far apart as the prior has them, if that is less.
        """
        k, infers_spread = self.n_players, self.infers_spread
        spread = 1.0 if infers_spread else self.prior.spread
        x = 0.5 * rng.standard_normal(k + infers_spread + self.infers_margin)
        x[:k] *= min(1.0, 1.0 / spread)
        # guesses of the posterior sds; a game is worth about 0.3 of a direct observation
        scale = np.full(x.size, 0.2)
        if infers_spread:
            x[k] *= 0.2
            scale[k] = 1.0 / np.sqrt(1.0 + 2.0 * k)
        if self.infers_margin:
            x[-1] -= 1.0
        if position is not None:
            x[:k] = position / (np.exp(x[k]) if infers_spread else spread)
        scale[:k] = 1.0 / np.sqrt(1.0 + 0.3 * self.orders.games * spread**2)
        # the likelihood at x is part of the state: a path needs it to begin with
        likelihood = RankingLikelihood(np.empty(1), np.empty(1), np.empty(k))
        evaluate_likelihood(self.games, self.prior, x, likelihood)
        return {
            "x": x,
            **likelihood._asdict(),
            "gradient": np.zeros(x.size),
            "scale": scale,
            "adaptation": init_dual_averaging(SETTINGS.initial_step_size),
            "done": np.zeros(1),  # iterations of the warm-up
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt the step size throughout, and the widths of the posterior in the middle."""
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while the step size adapts.

        Number, sum and squares of the unknowns and of the gradient are added to the window's.
        """
        new = {name: array.copy() for name, array in state.items()}
        sums = new.setdefault(f"{WINDOW}sums", np.zeros((5, new["x"].size)))
        statistics = make_path_statistics(count)
        for n in range(count):
            self._move(rng, new, SETTINGS.target_acceptance, statistics, n, 1)
            # a free location would count as spread
            centred = new["x"].copy()
            if self.location_free:
                centred[: self.n_players] -= centred[: self.n_players].mean()
            gradient = new["gradient"]
            sums += np.ones_like(centred), centred, centred**2, gradient, gradient**2
        return new

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle the step size, and after the second and the third window the widths."""
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        return new | {"scale": self._measured_scale(state)} if window in (1, 2) else new

    def _measured_scale(self, state: State) -> Floats:
        """Units of a path's coordinates: geometric means of two sds, shrunk towards the last ones.

        Of the posterior sd, and of that given all other coordinates, which is one over the sd of
        the gradient.
        """
        sums = state[f"{WINDOW}sums"]
        n = sums[0, 0]
        mean, square, gradient_mean, gradient_square = sums[1:] / n
        # their product, as a variance: sd times one over the sd of the gradient
        variance = np.sqrt(
            np.maximum(square - mean**2, 0.0)
            / np.maximum(gradient_square - gradient_mean**2, 1e-12)
        )
        weight = n / (n + 10.0)
        return np.asarray(np.sqrt(weight * variance + (1.0 - weight) * state["scale"] ** 2))

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin moves."""
        new = {name: array.copy() for name, array in state.items()}
        # skills on the user's scale, centred where only differences are seen
        x, k = new["x"], self.n_players
        out, statistics = np.empty((draws, k + 2)), make_path_statistics(draws)
        for n in range(draws):
            for _ in range(thin):
                self._move(rng, new, 0.0, statistics, n, thin)
            spread = np.exp(x[k]) if self.infers_spread else self.prior.spread
            out[n, :k] = spread * (x[:k] - (x[:k].mean() if self.location_free else 0.0))
            out[n, k] = spread
            out[n, k + 1] = np.exp(x[-1]) if self.infers_margin else 0.0
        drawn = {"skill": out[:, :k]}
        if self.infers_spread:
            drawn["spread"] = out[:, k]
        if self.infers_margin:
            drawn["margin"] = out[:, k + 1]
        return new, drawn, statistics._asdict()

    def _move(
        self,
        rng: np.random.Generator,
        state: State,
        target_acceptance: float,
        statistics: PathStatistics,
        n: int,
        thin: int,
    ) -> None:
        """Location and spread, then a path, in place, which is added to the statistics of draw n.

        Where target_acceptance > 0, the step size adapts.
        """
        raise_if_stopping()
        # the mean of z given all differences has its prior as its law
        x = state["x"]
        z = x[: self.n_players]
        if self.location_free:
            location = self.prior.z_precision * rng.standard_normal() / np.sqrt(self.n_players)
            z += location - z.mean()
        if self.infers_spread:
            self._update_spread(rng, x)
        # neither location nor spread given the skills change the likelihood: it stays as it is
        move_unknowns(
            rng,
            ScaledRanking(self.games, self.prior, state["scale"]),
            PathPlan(SETTINGS.path_length, target_acceptance, state["adaptation"]),
            x,
            RankingLikelihood(
                state["log_likelihood"], state["grad_log_margin"], state["grad_skills"]
            ),
            state["gradient"],
            statistics,
            n,
            thin,
        )

    def _update_spread(self, rng: np.random.Generator, x: Floats) -> None:
        """The spread given the skills, by a random walk on its logarithm; z follows, in place."""
        k = self.n_players
        sum_of_squares = float(x[:k] @ x[:k]) * np.exp(2.0 * x[k])

        def log_density(log_spread: float) -> float:
            # normal skills, half-normal spread, and the Jacobian of the logarithm
            spread = np.exp(log_spread)
            return float(
                (1.0 - k) * log_spread
                - 0.5 * sum_of_squares / spread**2
                - 0.5 * (spread / SPREAD_PRIOR_SD) ** 2
            )

        # a random walk of about two sds of the log spread, 1 / sqrt(2 K), given K skills
        log_spread = float(x[k])
        width = SETTINGS.walk_scale / np.sqrt(1.0 + 2.0 * k)
        for _ in range(SETTINGS.spread_moves):
            proposed = log_spread + width * rng.standard_normal()
            if np.log(rng.random()) < log_density(proposed) - log_density(log_spread):
                log_spread = proposed
        x[:k] *= np.exp(x[k] - log_spread)
        x[k] = log_spread
