"""RankingModel: what is assumed of players whose results are seen.

A player's performance in a game is its skill plus noise; whoever performs better is in front.
Skills are normal around zero, with a spread that is inferred (half-normal prior with sd 2) where no
prior is given. A team's skill is the sum of its players'.

Noise is normal with variance one; then, where games can be tied, a win needs a margin, inferred too
(half-normal prior with sd 1). Or it is Gumbel's, and orders have the law of Plackett and Luce: the
next place is a logit choice among all who are left. Then a tie says that the order of some entries
was not seen.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.rankings import Rankings
from revealed.models.base import Parameter
from revealed.models.noise import LogitNoise, NormalNoise
from revealed.models.over_time import Constant, MeanReverting, RandomWalk
from revealed.models.priors import Flat, Normal
from revealed.models.propriety import (
    UnboundedSkillWarning,
    unbounded_skills,
    unbounded_team_direction,
)
from revealed.models.skill_paths import ResolvedSkillPaths, resolve_skill_paths


@dataclass(frozen=True, eq=False)
class RankingModel:
    """What is assumed of players; frozen, with a default for each part.

    Parameters
    ----------
    prior
        Of every skill; default: normal, with a spread that is inferred. ``Normal(sd)`` gives it,
        ``Flat()`` has none and is refused where the games leave some skill unbounded. Under the
        others that is worth an UnboundedSkillWarning.
    team_noise
        "entry" gives a team one noise, "player" one for each of its players.
    noise
        Of a performance: ``NormalNoise()``, the default, or ``LogitNoise()``, under which orders
        have the law of Plackett and Luce. A team then has one noise, and of entries that share a
        place the order is taken not to have been seen.
    over_time
        ``Constant()``, one skill for all games; ``RandomWalk()``: the skill of each player moves
        from one of his games to the next, by an sd that is inferred; ``MeanReverting()``: skills
        return to the mean of all players, at a rate that is inferred. Games then need times. The
        prior is that of skills at a player's first game, and of skills that revert at any time.
    components
        What an entry's utility is a sum of, where skills change: "player", which comes first, and
        names of columns of the games, such as "car", or "player*surface" for each player on each
        surface. Each component has a spread and a drift of its own.
    covariates
        Columns of numbers, such as home or a place on the grid, where skills change; their
        coefficients are constant, and inferred.
    covariate_prior
        Of these coefficients: ``Normal(sd)`` with one number.
    newcomer_prior
        Of the mean of first skills of players who come after the first date, zero being that of
        those who were there: ``Normal(sd)`` with one number. Default: newcomers are like all.

    Examples
    --------
    >>> games = rv.Rankings.from_lists([["ann", "bob"]] * 8 + [["bob", "ann"]] * 2)
    >>> found = rv.fit(games, rv.RankingModel(prior=rv.Normal(1.0)), draws=500)
    >>> found.probability_better("ann", "bob") > 0.9
    True

    The law of Plackett and Luce:

    >>> orders = [["ann", "bob", "cid"], ["bob", "cid", "ann"], ["ann", "cid", "bob"]]
    >>> found = rv.fit(orders, rv.RankingModel(noise=rv.LogitNoise()), draws=1000)
    >>> found.table()[0]["player"]
    'ann'
    """

    prior: Normal | Flat | None = None
    team_noise: str = "entry"
    noise: NormalNoise | LogitNoise = field(default_factory=NormalNoise)
    over_time: Constant | RandomWalk | MeanReverting = field(default_factory=Constant)
    components: Sequence[str] = ("player",)
    covariates: Sequence[str] = ()
    covariate_prior: Normal | None = None
    newcomer_prior: Normal | None = None

    def __post_init__(self) -> None:
        if self.team_noise not in ("entry", "player"):
            raise ValueError(f"team_noise must be one of entry, player; it is {self.team_noise!r}")
        if self.noise not in (NormalNoise(), LogitNoise()):
            raise ValueError(
                "the noise of a RankingModel must be rv.NormalNoise() or rv.LogitNoise(); it is "
                f"{self.noise!r}"
            )
        _prior_spread(self.prior)
        _check_over_time(self.over_time)
        # lists from files and callers alike
        for name in ("components", "covariates"):
            object.__setattr__(self, name, check_names(name, getattr(self, name)))
        for prior in (self.covariate_prior, self.newcomer_prior):
            if not np.isfinite(_prior_spread(prior) or 1.0):
                raise ValueError(
                    "a flat prior is one of skills that do not change; give rv.Normal(sd) for "
                    "coefficients and for the mean of newcomers"
                )
        _check_components(self)

    def replace(self, **parts: Any) -> RankingModel:
        """The same model with other parts."""
        return replace(self, **parts)

    @property
    def spread(self) -> float | None:
        """The sd of skills before any game: None to infer it, infinite under a flat prior."""
        return _prior_spread(self.prior)

    @property
    def is_logit(self) -> bool:
        """Whether orders have the law of Plackett and Luce."""
        return isinstance(self.noise, LogitNoise)

    def resolve(self, data: Any) -> ResolvedRankingModel:
        """The model in terms of these games, checked against them."""
        if not isinstance(data, Rankings):
            raise ValueError(
                "a RankingModel is fitted to Rankings; rv.Rankings.from_lists makes them from "
                f"lists of names, best first, and these data are {type(data).__name__}"
            )
        if self.is_logit and self.team_noise == "player" and (data.sizes > 1).any():
            raise ValueError(
                'team_noise="player" goes with normal noise only, for a sum of Gumbel noises has '
                'another law; give team_noise="entry" or noise=rv.NormalNoise()'
            )
        if not isinstance(self.over_time, Constant):
            coefficient_sd = _prior_spread(self.covariate_prior) or 1.0
            newcomer_sd = _prior_spread(self.newcomer_prior) or 0.0
            paths = resolve_skill_paths(
                self.over_time,
                data,
                self.spread,
                self.components,
                self.covariates,
                coefficient_sd,
                newcomer_sd,
            )
            return ResolvedRankingModel(self, data, paths)
        return ResolvedRankingModel(self, data)


@dataclass(frozen=True, eq=False)
class ResolvedRankingModel:
    """A `RankingModel` for one set of games.

    paths: of skills that change; None where they do not.
    """

    model: RankingModel
    data: Rankings
    paths: ResolvedSkillPaths | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Everything unknown, in the order in which it is reported."""
        if self.paths is not None:
            found = [*self.paths.parameters]
        else:
            found = [Parameter("skill", ("player",), {"player": self.data.names})]
            if self.model.spread is None:
                found.append(Parameter("spread"))
        if self.data.has_ties and not self.model.is_logit:
            found.append(Parameter("margin"))
        return (*found, *(() if self.paths is None else self.paths.coefficients))

    def start_at(self, value: Floats | None) -> Floats | None:
        """Where chains start, as it was given."""
        if value is not None and self.paths is not None:
            raise ValueError("skills that change have no starting values; leave value out")
        return value

    def name_draws(self, draws: Mapping[str, Floats]) -> dict[str, Floats]:
        """Draws by the names of `parameters`, as samplers have them."""
        return dict(draws)

    def refuse_improper(self) -> None:
        """Refuse games that leave a skill unbounded under a flat prior; warn of them otherwise."""
        _check_bounded(self.data, isinstance(self.model.prior, Flat), not self.model.is_logit)

    @property
    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with: all that decides the posterior."""
        r, spread = self.data, self.model.spread
        prior = "inferred" if spread is None else repr(spread)
        # normal noise is not named: checkpoints from before there was another go on
        noise = ("logit",) if self.model.is_logit else ()
        return (
            (r.names, self.model.team_noise, prior, *noise),
            r.players,
            r.member_start,
            r.start,
            r.tied,
            r.n_ordered,
            *(() if self.paths is None else self.paths.fingerprint_parts),
        )


def _prior_spread(prior: Normal | Flat | None) -> float | None:
    """The sd of skills that a prior says: None to infer it, infinite under a flat prior."""
    if prior is None:
        return None
    if isinstance(prior, Flat):
        return math.inf
    # skills are exchangeable before any game: one mean, zero, and one sd
    plain = isinstance(prior, Normal) and prior.sum_to_zero is None and not np.any(prior.mean)
    if plain and prior.covariance is None and isinstance(prior.sd, int | float | np.number):
        sd = float(prior.sd)
        if 0.0 < sd < math.inf:
            return sd
        raise ValueError(f"the prior sd of skills must be a positive number; it is {sd:g}")
    raise ValueError(
        f"the prior of skills must be rv.Normal(sd) with one number, or rv.Flat(); it is {prior!r}"
    )


def _check_components(model: RankingModel) -> None:
    """Refuse components and covariates that nothing would be done with."""
    if model.components[:1] != ("player",) or len(set(model.components)) < len(model.components):
        raise ValueError(
            'components must begin with "player", and each be there once; they are '
            f"{', '.join(model.components) or 'none'}"
        )
    more = len(model.components) > 1 or len(model.covariates) > 0
    if more and isinstance(model.over_time, Constant):
        raise ValueError(
            "components and covariates are for skills that change; give over_time=rv.RandomWalk()"
        )
    if model.newcomer_prior is not None and not isinstance(model.over_time, RandomWalk):
        raise ValueError(
            "newcomers have a mean of their own where skills are random walks; give "
            "over_time=rv.RandomWalk(), or leave newcomer_prior out"
        )
    if model.covariate_prior is not None and not model.covariates:
        raise ValueError("there are no covariates; leave covariate_prior out, or name some")


def check_names(what: str, names: Any) -> tuple[str, ...]:
    """Names of columns as a tuple; refuses one text, which would be read letter by letter."""
    found = () if isinstance(names, str) else tuple(np.asarray(names, dtype=object).tolist())
    if isinstance(names, str) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{what} must be a list of names of columns; it is {names!r}")
    return found


def _check_over_time(over_time: Any) -> None:
    """Refuse what is no way for skills to change."""
    if not isinstance(over_time, Constant | RandomWalk | MeanReverting):
        raise ValueError(
            "over_time of a RankingModel must be rv.Constant(), rv.RandomWalk() or "
            f"rv.MeanReverting(); it is {over_time!r}"
        )


def _check_bounded(rankings: Rankings, flat: bool, ties_bound: bool) -> None:
    """Refuse what a flat prior has no posterior for; warn of what a proper one decides alone.

    ties_bound: as in `unbounded_skills`. The warning points at the caller of `rv.fit`, some calls
    above.
    """
    found = unbounded_skills(rankings, ties_bound)
    # of teams, sums of skills may be unbounded where no single skill is
    if flat and not found and not (rankings.sizes == 1).all():
        direction = unbounded_team_direction(rankings, ties_bound)
        found = [] if direction is None else [f"no game contradicts the direction ({direction})"]
    if found and flat:
        raise ValueError(
            f"{found[0]}, so there is no posterior under a flat prior; give rv.Normal(sd), or "
            "leave the prior out"
        )
    if found:
        warnings.warn(
            f"{'; '.join(found)}: there the prior alone sets limits to skills",
            UnboundedSkillWarning,
            stacklevel=6,
        )
