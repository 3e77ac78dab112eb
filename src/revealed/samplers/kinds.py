"""Sets of kinds of models, from which the entries of the registry are put together.

Most samplers take a part of a model with every choice of the others; what they do not take is said
here, with the reason.
"""

from __future__ import annotations

from typing import Any

from revealed.samplers.model_kind import ModelKind, NoiseName, PriorKind

ANY_PRIOR: tuple[PriorKind, ...] = ("normal", "flat", "inferred sd")
INDEPENDENT: tuple[NoiseName, ...] = ("normal", "logit", "other")


def kinds_of(
    data: Any, priors: tuple[PriorKind, ...], noises: tuple[Any, ...] = ("normal",), **parts: Any
) -> tuple[ModelKind, ...]:
    """Every kind of model with one of these priors and one of these noises."""
    return tuple(ModelKind(data, prior, noise, **parts) for noise in noises for prior in priors)


# a flat prior is improper with lapses
WITH_LAPSES = tuple(
    kind
    for lapses in ("lapses", "habit")
    for kind in kinds_of("decisions", ("normal", "inferred sd"), ("normal", "logit"), lapses=lapses)
)


def student_kinds(data: Any, priors: tuple[PriorKind, ...], **parts: Any) -> tuple[ModelKind, ...]:
    """Every kind of model under Student noise with one of these priors, df known and inferred.

    A flat prior is refused, and "laplace" was not tried.
    """
    return kinds_of(data, priors, ("student", "student df"), **parts)


def pooled_student_kinds() -> tuple[ModelKind, ...]:
    """Those of pooled decisions; habits with an inferred sd nobody has tried."""
    priors: tuple[PriorKind, ...] = ("normal", "inferred sd")
    with_lapses = student_kinds("decisions", priors, lapses="lapses")
    return (
        student_kinds("decisions", priors)
        + with_lapses
        + student_kinds("decisions", ("normal",), lapses="habit")
    )


INDEPENDENT_GROUPS = kinds_of(
    "decisions", ("normal", "inferred sd"), INDEPENDENT, groups="hierarchical"
)
GROUPS_WITH_LAPSES = tuple(
    kind
    for lapses in ("lapses", "lapses by group")
    for kind in kinds_of(
        "decisions",
        ("normal", "inferred sd"),
        ("normal", "logit", "student", "student df"),
        groups="hierarchical",
        lapses=lapses,
    )
)


def changing_kinds(
    *changes: tuple[str, tuple[PriorKind, ...]], without_lapses: tuple[str, ...] = ("other",)
) -> tuple[ModelKind, ...]:
    """Every kind of model whose values change like this: pooled decisions, independent noise."""
    noises = (*INDEPENDENT, "student", "student df")
    return tuple(
        kind
        for over_time, priors in changes
        for lapses in ("no", "lapses")
        for kind in kinds_of("decisions", priors, noises, over_time=over_time, lapses=lapses)
        if lapses == "no" or kind.noise not in without_lapses
    )
