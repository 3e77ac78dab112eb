"""Skills that change: paths of players, the sizes of their steps, and what else games depend on.

The posterior, its coordinates and the moves of paths are those of values that change
(`state_space.py`), with one node for each label and date. What differs is the stand-in: a diagonal
curvature, so that one bidiagonal factor serves all paths, and moves of sizes that do not rely on it
(`kernels/joint_moves.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats
from revealed.data.rankings import Rankings
from revealed.kernels.common_shift import make_common_shift
from revealed.kernels.plackett_luce import make_luce_games
from revealed.kernels.ranking_likelihood import Games
from revealed.kernels.skill_likelihood import SkillData, margin_of
from revealed.models.priors import ResolvedPrior
from revealed.models.skill_paths import ResolvedSkillPaths
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.path_reference import PathReference, ReferenceFinder, first_guess
from revealed.samplers.ranking_hmc import MARGIN_PRIOR_SD
from revealed.samplers.skill_mode import SkillMode, order_games, why_no_mode
from revealed.samplers.state_space import StateSpaceSampler


@dataclass(frozen=True)
class SkillSettings:
    """Settings of stand-ins and warm-up; wrong ones cost time, never correctness.

    probes: random signs of nodes that a curvature is measured with; more make it less noisy.
    """

    probes: int = 2


SKILLS = SkillSettings()


class SkillReferenceFinder(ReferenceFinder):
    """Finds stand-ins whose curvature is diagonal.

    With signs s of nodes that are random, s * (H s) has the diagonal of H as its mean, whatever
    players of a game have in common (Hutchinson 1990).
    """

    def curvature(self, path: Floats, noise: Floats) -> Floats:
        """(N, 1, 1) a noisy diagonal of minus the second derivatives at a path."""
        total, rng = np.zeros_like(path), np.random.default_rng(self.probed)
        self.probed += 1
        for _ in range(SKILLS.probes):
            # one difference for all nodes at once, whose signs cancel what they have in common
            signs = np.where(rng.random(path.shape) < 0.5, -1.0, 1.0)
            move = signs * self.steps
            above, below = (self.slopes(path + step, noise)[1] for step in (move, -move))
            total += signs * (below - above) / (2.0 * self.steps)
        return (total / SKILLS.probes)[:, :, None]

    # how many curvatures were measured: each has signs of its own, the same in every run
    probed: int = 0

    def _usable(self, curvature: Floats) -> Floats:
        """Curvatures that are not negative.

        Rounding and noise may leave some that are.
        """
        return np.ascontiguousarray(np.maximum(curvature, 0.0))


@dataclass(frozen=True, eq=False)
class SkillPathSampler(StateSpaceSampler):
    """The sampler, ready for one set of games."""

    # (N,) whose skill has the mean of newcomers in it; None where they are like all
    newcomer: Bools | None = None

    @property
    def name(self) -> str:
        """What users see."""
        return "skill-paths"

    @staticmethod
    def build_for(
        rankings: Rankings, paths: ResolvedSkillPaths, team_noise: str, logit: bool
    ) -> SkillPathSampler:
        """The sampler for these games.

        team_noise and logit: as of skills that do not change.
        """
        # chains begin near a mode of the paths, with sizes that a normal stand-in finds likely
        data = skill_data(rankings, paths, team_noise, logit)
        start = _where_chains_begin(rankings, paths, data, team_noise, logit)
        return SkillPathSampler.begun_at(start, data, rankings, paths)

    @staticmethod
    def begun_at(
        start: PathReference, data: SkillData, rankings: Rankings, paths: ResolvedSkillPaths
    ) -> SkillPathSampler:
        """The sampler, where it is known where chains begin."""
        process, known, nodes = paths.process, paths.known, paths.nodes
        # shifts of a date, hats where there are many dates
        # a shift of a date is free where teams have equally many players
        components = len(nodes.components)
        shift = make_common_shift(nodes.date, len(nodes.dates), nodes.component, components)
        if not rankings.location_free:
            shift = shift._replace(knots=0)
        newcomer = paths.newcomer if paths.newcomer_sd else None
        return SkillPathSampler(
            data, process, known, paths.places, _of_one_skill(), start, shift, newcomer
        )

    @property
    def finder(self) -> ReferenceFinder:
        """What finds stand-ins.

        Chains are made at once, so each has one of its own.
        """
        return SkillReferenceFinder(self.data, self.process, self.known)

    @property
    def follows_evidence(self) -> bool:
        """No: a diagonal curvature has none that is worth following."""
        return False

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        new, theta, noise, paths, stats, _ = self._run(rng, state, draws, thin, keep_paths=True)
        # width one: a node is a number
        drawn: Draws = {"skill": paths[:, :, 0]}
        # theta has logs; those of sizes that were given are not drawn
        for name, at in self.places.items():
            if np.isnan(self.known[at]):
                drawn[name] = np.exp(theta[:, at : at + self.process.sizes])
        data, at = self.data, 0
        assert isinstance(data, SkillData)
        if data.margin_sd > 0.0:
            drawn["margin"] = np.array([margin_of(xi, data.margin_sd)[0] for xi in noise[:, 0]])
            at = 1
        coefficients = noise[:, at:] * data.coefficient_sd
        if self.newcomer is not None:
            # the mean of newcomers is a part of their skill, at all of their dates
            coefficients, drawn["newcomer_mean"] = coefficients[:, :-1], coefficients[:, -1]
            drawn["skill"] = drawn["skill"] + drawn["newcomer_mean"][:, None] * self.newcomer
        if coefficients.shape[1]:
            drawn["coefficient"] = coefficients
        return new, drawn, stats._asdict()


def _where_chains_begin(
    rankings: Rankings, paths: ResolvedSkillPaths, data: SkillData, team_noise: str, logit: bool
) -> PathReference:
    """Likely sizes, and the mode of all skills given them."""
    process, known, nodes = paths.process, paths.known, paths.nodes
    finder, noise = SkillReferenceFinder(data, process, known), np.zeros(data.coordinates)
    more = process.reverts or paths.coefficients
    if more or why_no_mode(rankings, logit, from_last=False):
        return finder.find(first_guess(process, known), np.zeros((len(nodes), 1)), noise)
    # with what players of a game have in common, which a diagonal curvature does not know of
    ordered = order_games(rankings, nodes, logit, team_noise == "player", from_last=False)
    mode = SkillMode(ordered, nodes, process.scales, known)
    mode.fit_sizes(len(rankings))
    path = mode.value[:, None]
    return finder.reference(finder.within_range(mode.theta), path, finder.stand_in(path, noise))


def skill_data(
    rankings: Rankings, paths: ResolvedSkillPaths, team_noise: str, logit: bool
) -> SkillData:
    """Games as kernels take them, with every entry a player of its own."""
    # the likelihoods of orders take utilities of entries for skills of players
    entries = len(rankings.tied)
    own, start = np.arange(entries), np.arange(entries + 1)
    orders = rankings.tied, rankings.n_ordered
    games: Any
    if logit:
        games = make_luce_games(own, start, rankings.start, *orders, entries)
    else:
        # independent noise of an entry's players adds up
        variance = rankings.sizes if team_noise == "player" else np.ones(entries)
        sd = np.sqrt(variance.astype(np.float64))
        games = Games(own, start, rankings.start, sd, *orders)
    nodes, covariates = paths.nodes, paths.covariates
    sds = np.full(len(paths.covariate_names), paths.coefficient_sd)
    if paths.newcomer_sd:
        # one covariate more, which counts newcomers
        covariates = np.column_stack([covariates, paths.newcomers])
        sds = np.append(sds, paths.newcomer_sd)
    # under logit noise a tie has no margin: the order was not seen
    return SkillData(
        games,
        nodes.node,
        nodes.entry_start,
        np.ascontiguousarray(covariates),
        sds,
        MARGIN_PRIOR_SD * (rankings.has_ties and not logit),
    )


def _of_one_skill() -> ResolvedPrior:
    """The coordinates of a path of single numbers.

    Its sds are in theta, and not here.
    """
    one = np.eye(1)
    return ResolvedPrior(one, np.zeros((1, 0)), one, np.zeros(1), False)
