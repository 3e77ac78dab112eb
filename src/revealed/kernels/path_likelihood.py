"""The log-likelihood of a path: of choices or of games, which loops choose when compiled."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex, make_choice_workspace
from revealed.kernels.noise import AnyNoise, count_coordinates
from revealed.kernels.path_process import PathMoments, make_path_moments
from revealed.kernels.skill_likelihood import SkillData, skill_log_likelihood


class PathData(NamedTuple):
    """What was chosen at N nodes.

    rows (R, D): of rivals less those of the chosen actions, in the free coordinates, node by node.
    offset (R,): utility gaps at a value of zero. node_start (N + 1,): where each node's rivals
    begin. rivals: of all decisions. noise: under which they chose.
    """

    rows: Floats
    offset: Floats
    node_start: Ints
    rivals: RivalIndex
    noise: AnyNoise

    @property
    def coordinates(self) -> int:
        """E, how many numbers of the noise are unknown.

        None under a noise that is known, one for a rate of lapses or degrees of freedom.
        """
        return count_coordinates(self.noise)

    @property
    def gaps(self) -> int:
        """R, how many utilities a likelihood is made of.

        Those of rivals, less those of the chosen actions.
        """
        return len(self.offset)

    @property
    def is_log_concave(self) -> bool:
        """Whether the likelihood is log-concave in the path.

        As its noise is.
        """
        return bool(self.noise.is_log_concave)

    def make_workspace(self) -> ChoiceWorkspace:
        """Arrays that the likelihood writes to.

        One for each chain.
        """
        return make_choice_workspace(self.rivals)


class PathWorkspace(NamedTuple):
    """Arrays that moves write to.

    gaps, slopes (R + E,). right, whitened (N, D). moments: of the normal law of paths. choice: what
    the likelihood writes to.
    """

    gaps: Floats
    slopes: Floats
    right: Floats
    whitened: Floats
    moments: PathMoments
    choice: Any


def make_path_workspace(data: PathData | SkillData, nodes: int, width: int) -> PathWorkspace:
    """Arrays for one chain."""
    size, line = data.gaps + data.coordinates, (nodes, width)
    return PathWorkspace(
        np.zeros(size),
        np.zeros(size),
        np.zeros(line),
        np.zeros(line),
        make_path_moments(nodes, width),
        data.make_workspace(),
    )


def path_log_likelihood(
    data: PathData | SkillData,
    work: PathWorkspace,
    value: Floats,
    noise: Floats,
    slope: Floats,
    own: Floats,
) -> float:
    """As `evaluate_path`, for loops, which choose between choices and games when compiled."""
    raise NotImplementedError("only loops call this")


@overload(path_log_likelihood, strict=False, inline="always")  # type: ignore[untyped-decorator]
def _choose_path_log_likelihood(
    data: Any, work: Any, value: Any, noise: Any, slope: Any, own: Any
) -> Any:
    def of_choices(
        data: PathData, work: Any, value: Floats, noise: Floats, slope: Floats, own: Floats
    ) -> float:
        return choices_log_likelihood(data, work, value, noise, slope, own)

    def of_games(
        data: SkillData, work: Any, value: Floats, noise: Floats, slope: Floats, own: Floats
    ) -> float:
        return skill_log_likelihood(data, work.gaps, work.slopes, value, noise, slope, own)

    # by the class of the data, as those of noises by that of the noise
    return of_games if data.instance_class is SkillData else of_choices


@compiled
def evaluate_path(
    data: PathData | SkillData,
    work: PathWorkspace,
    value: Floats,
    noise: Floats,
    slope: Floats,
    own: Floats,
) -> float:
    """The log-likelihood of a path (N, D) under a noise (E,); its slopes in both."""
    # called from Python too, which an overload cannot be
    return path_log_likelihood(data, work, value, noise, slope, own)


@compiled_internal
def choices_log_likelihood(
    data: PathData, work: PathWorkspace, value: Floats, noise: Floats, slope: Floats, own: Floats
) -> float:
    """As `evaluate_path`, of choices."""
    # gaps of utility, node by node: each has a value of its own
    rivals, width = data.offset.size, value.shape[1]
    for n in range(value.shape[0]):
        for r in range(data.node_start[n], data.node_start[n + 1]):
            total = data.offset[r]
            for k in range(width):
                total += data.rows[r, k] * value[n, k]
            work.gaps[r] = total
    # what is unknown of the noise stands behind the gaps, as loops of every noise expect
    work.gaps[rivals:] = noise
    # slopes in the gaps come with it
    found = log_likelihood(data.noise, work.gaps, data.rivals, work.choice, -np.inf, work.slopes)
    for n in range(value.shape[0]):
        for k in range(width):
            slope[n, k] = 0.0
        for r in range(data.node_start[n], data.node_start[n + 1]):
            for k in range(width):
                slope[n, k] += work.slopes[r] * data.rows[r, k]
    # and those in the noise
    own[:] = work.slopes[rivals:]
    return found
