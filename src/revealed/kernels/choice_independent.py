"""The likelihood of all decisions under independent noise without lapses: which loop adds it up."""

from typing import Any

from numba.extending import overload

from revealed._types import Floats
from revealed.kernels import choice_fast, choice_formula, choice_logit, choice_student
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.noise import NoiseArguments, formula_of

normal_log_likelihood = choice_fast.log_likelihood
logit_log_likelihood = choice_logit.log_likelihood
student_log_likelihood = choice_student.log_likelihood
formula_log_likelihood = choice_formula.log_likelihood


def log_likelihood(
    noise: NoiseArguments,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """The sum of log P over all decisions, from the rivals' utility gaps (R,), for loops.

    After the gaps comes the coordinate of the noise, where it has one (`noise.py`). Minus infinity
    once it is sure to be below `floor`. Its derivative in all of them goes into slope, unless that
    is empty.
    """
    raise NotImplementedError("only loops call this")


@overload(log_likelihood, strict=False, inline="always")  # type: ignore[untyped-decorator]
def _choose_log_likelihood(
    noise: Any, utility_gap: Any, rival_index: Any, workspace: Any, floor: Any, slope: Any
) -> Any:
    def under_normal_noise(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return normal_log_likelihood(utility_gap, rival_index, workspace, floor, slope)

    def under_logit_noise(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return logit_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    def under_student_noise(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return student_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    def by_formula(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return formula_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    kind = formula_of(noise)
    if kind is None:
        return under_normal_noise
    if kind.is_student:
        return under_student_noise
    return under_logit_noise if kind.is_logit else by_formula
