"""Exact posteriors and problems of every kind of model, from the files that have them."""

from tests.conformance.oracles import ORACLES
from tests.conformance.path_groups import path_group_oracles, path_group_problems
from tests.conformance.paths import path_oracles, path_problems
from tests.conformance.problems import PROBLEMS
from tests.conformance.skills import skill_oracles, skill_problems
from tests.conformance.switching import switching_oracles, switching_problems

ALL_ORACLES = [
    *ORACLES,
    *path_oracles(),
    *path_group_oracles(),
    *skill_oracles(),
    *switching_oracles(),
]
"""Exact posteriors of every kind of model."""
ALL_PROBLEMS = [
    *PROBLEMS,
    *path_problems(),
    *path_group_problems(),
    *skill_problems(),
    *switching_problems(),
]
"""Problems of every kind of model with a proper prior."""
