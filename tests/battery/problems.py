"""More than forty problems of fourteen kinds, each with an exact posterior made by other means.

near-separable; huge priors; tiny priors; scales from 1e-9 to 1e9; one decision; thousands of equal
decisions; 1e5 actions; 60 coefficients and 30 decisions; nothing to learn; flat priors; inferred
prior sds; offsets and blocks; groups and noise; rankings.
"""

from __future__ import annotations

from tests.battery import choice_problems, model_problems

PROBLEMS = [
    *choice_problems.near_separable(),
    *choice_problems.huge_priors(),
    *choice_problems.tiny_priors(),
    *choice_problems.feature_scales(),
    *choice_problems.one_decision(),
    *choice_problems.equal_decisions(),
    *choice_problems.many_equal_actions(),
    *model_problems.many_coefficients(),
    *model_problems.nothing_to_learn(),
    *model_problems.flat_priors(),
    *model_problems.inferred_priors(),
    *model_problems.offsets_and_blocks(),
    *model_problems.groups_and_noise(),
    *model_problems.rankings(),
]
