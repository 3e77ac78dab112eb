"""The table of samplers: which parts of a model each takes, what it is called, how it is built.

One entry a sampler. `rv.fit`, `rv.samplers_for`, the estimate of memory, the help of the command
line, the documentation's table and the tests that every sampler must pass are made from it, so that
a new sampler is a new entry. Models know nothing of samplers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from revealed.models.choice import ResolvedChoiceModel
from revealed.samplers import builders
from revealed.samplers.base import Sampler
from revealed.samplers.builders import BuildArguments as BuildArguments
from revealed.samplers.data_augmentation import (
    most_expanded,
)
from revealed.samplers.kinds import (
    ANY_PRIOR,
    GROUPS_WITH_LAPSES,
    INDEPENDENT,
    INDEPENDENT_GROUPS,
    WITH_LAPSES,
    changing_kinds,
    kinds_of,
    pooled_student_kinds,
    student_kinds,
)
from revealed.samplers.model_kind import (
    Model,
    ModelKind,
    ResolvedModel,
    kind_of,
)


@dataclass(frozen=True)
class SamplerEntry:
    """One sampler.

    Attributes
    ----------
    name
        What users call it.
    kinds
        The models it takes.
    memory_factor
        Bytes it takes at most for each byte of the rows, as seen by
        `tests/correctness/test_memory.py`. Too small, and a machine runs out of memory half-way.
    summary
        A few words for help texts.
    build
        Makes the sampler, ready to run; None where draws do not come from chains.
    warmup
        Iterations before the first draw, where the caller does not say.
    takes
        Arguments of `rv.fit` that only some samplers have a use for.
    on_cluster
        Whether the workers of a Dask cluster can do its work.
    """

    name: str
    kinds: tuple[ModelKind, ...]
    memory_factor: float
    summary: str
    build: Callable[[Any, BuildArguments], Sampler] | None = None
    warmup: int = 1000
    takes: tuple[str, ...] = ("thin",)
    on_cluster: bool = False


class SamplerRegistry(NamedTuple):
    """All samplers; of those for one kind of model, the default comes first."""

    entries: tuple[SamplerEntry, ...]

    def entries_for(self, kind: ModelKind) -> tuple[SamplerEntry, ...]:
        """The samplers that take this kind of model, the default first."""
        return tuple(entry for entry in self.entries if kind in entry.kinds)

    def names(self, kind: ModelKind) -> tuple[str, ...]:
        """The names that `rv.fit` takes for this kind of model, "auto" for the default first."""
        return ("auto", *(entry.name for entry in self.entries_for(kind)))

    def find(self, name: str, kind: ModelKind, on_cluster: bool = False) -> SamplerEntry:
        """The sampler of this name for this kind of model; refuses what is not in the table.

        on_cluster: whether there is a cluster, which "auto" then makes use of if any sampler can.
        """
        found = self.entries_for(kind)
        if not found:
            raise ValueError(self._no_sampler(kind))
        if name == "auto" and on_cluster:
            return next((entry for entry in found if entry.on_cluster), found[0])
        for entry in found:
            if name in ("auto", entry.name):
                return entry
        # a sampler of other models deserves a better hint than that it does not exist
        choose = f"choose one of {', '.join(self.names(kind))}"
        others = [known for entry in self.entries if entry.name == name for known in entry.kinds]
        if others:
            nearest = _nearest(kind, others)
            raise ValueError(
                f'the sampler "{name}" is for {nearest}, and this model has {kind}; {choose}'
            )
        raise ValueError(f"there is no sampler {name!r}; {choose}")

    def describe(self, kind: ModelKind) -> str:
        """The names in one line, for help texts: "auto, composite, ... or laplace"."""
        *names, last = self.names(kind)
        return f"{', '.join(names)} or {last}"

    def nearest(self, kind: ModelKind) -> ModelKind:
        """The kind of model that some sampler takes and that shares most parts with this one."""
        return _nearest(kind, [known for entry in self.entries for known in entry.kinds])

    def _no_sampler(self, kind: ModelKind) -> str:
        """The sentence about a combination that no sampler takes, with parts that would help."""
        # each part as most samplers take it, and what callers write for it
        easier: dict[str, tuple[ModelKind, str]] = {
            "prior": (kind._replace(prior="normal"), "prior=rv.Normal(sd)"),
            "noise": (kind._replace(noise="normal"), "noise=rv.NormalNoise()"),
            "groups": (kind._replace(groups="pooled"), "groups=rv.Separate()"),
            "habit": (kind._replace(lapses="lapses"), 'rv.Lapse(to="uniform")'),
            "lapses": (kind._replace(lapses="no"), "no lapse"),
            "data": (kind._replace(data="decisions"), "transitions=rv.Known()"),
            "over_time": (kind._replace(over_time="constant"), "over_time=rv.Constant()"),
        }
        if kind.lapses == "no":
            del easier["habit"]
        helps = [said for other, said in easier.values() if other != kind and self.takes(other)]
        instead = f"give {' or '.join(helps)}" if helps else f"the nearest is {self.nearest(kind)}"
        return f"no sampler takes {kind} together; {instead}"

    def takes(self, kind: ModelKind) -> bool:
        """Whether some sampler takes this kind of model."""
        return bool(self.entries_for(kind))


def _nearest(kind: ModelKind, known: Iterable[ModelKind]) -> ModelKind:
    """The kind of model in `known` that shares most parts with this one; the first of equals.

    Data are what they are, and a prior is the part that is easiest to replace.
    """

    def likeness(other: ModelKind) -> tuple[bool, int, bool]:
        structure = (kind.noise == other.noise) + (kind.groups == other.groups)
        structure += (kind.lapses == other.lapses) + (kind.over_time == other.over_time)
        return kind.data == other.data, structure, kind.prior == other.prior

    return max(known, key=likeness)


def _augmentation(name: str, summary: str) -> SamplerEntry:
    """One of the paper's samplers, which differ in the working parameters that they move.

    They take the same models and the same memory, and have the same options.
    """
    return SamplerEntry(
        name,
        # lapses by their indicators; a habit of actions that are not always offered has no
        # distribution to be drawn from, and moving an inferred sd would need to know the lapses
        (*kinds_of("decisions", ANY_PRIOR), *kinds_of("decisions", ("normal",), lapses="lapses")),
        memory_factor=1.5,
        summary=summary,
        build=builders.build_augmentation(name),
        takes=("thin", "init", "options"),
    )


REGISTRY = SamplerRegistry(
    (
        SamplerEntry(
            "composite",
            kinds_of("decisions", ANY_PRIOR, INDEPENDENT) + WITH_LAPSES + pooled_student_kinds(),
            memory_factor=12.0,
            summary="Hamiltonian, augmentation and independence moves in turn; the default",
            build=builders.build_composite,
            takes=("thin", "init"),
        ),
        _augmentation("da", "the paper's data augmentation"),
        _augmentation("px-scale", "data augmentation, with a working scale"),
        _augmentation("px-translate", "data augmentation, with a working translation"),
        _augmentation("px-both", "data augmentation, with both working parameters"),
        SamplerEntry(
            "ibis",
            kinds_of("decisions", ("normal", "inferred sd"), INDEPENDENT)
            + WITH_LAPSES
            + pooled_student_kinds(),
            memory_factor=12.0,
            summary="particles that take the decisions one by one, and give the evidence",
            build=builders.build_ibis,
            takes=(),
        ),
        SamplerEntry(
            "laplace",
            kinds_of("decisions", ANY_PRIOR, INDEPENDENT),
            memory_factor=6.0,
            summary="a few passes over very many decisions, with a diagnostic that certifies them",
            warmup=0,
            takes=(),
            on_cluster=True,
        ),
        SamplerEntry(
            "ghk-hmc",
            kinds_of("decisions", ANY_PRIOR, noises=("correlated",)),
            memory_factor=12.0,
            summary="Hamiltonian moves on the GHK integral; the default with a noise covariance",
            build=builders.build_ghk,
            takes=("thin", "init"),
        ),
        SamplerEntry(
            "da",
            kinds_of("decisions", ("normal", "flat"), noises=("correlated",)),
            memory_factor=1.5,
            summary="data augmentation, with the noise covariance drawn by Gibbs steps",
            build=builders.build_covariance_gibbs,
            takes=("thin", "init"),
        ),
        SamplerEntry(
            "hierarchical-hmc",
            INDEPENDENT_GROUPS
            + GROUPS_WITH_LAPSES
            + student_kinds("decisions", ("normal", "inferred sd"), groups="hierarchical"),
            memory_factor=12.0,
            summary="a population and its groups along one Hamiltonian path; the default",
            build=builders.build_hierarchical_hmc,
            warmup=500,
        ),
        SamplerEntry(
            "hierarchical",
            INDEPENDENT_GROUPS,
            memory_factor=12.0,
            summary="groups given their population, and the population given its groups",
            build=builders.build_hierarchical,
            on_cluster=True,
        ),
        SamplerEntry(
            "hierarchical-gibbs",
            kinds_of(
                "decisions", ("normal", "inferred sd"), ("correlated",), groups="hierarchical"
            ),
            memory_factor=4.0,
            summary="data augmentation of groups, their population and one noise covariance",
            build=builders.build_hierarchical_gibbs,
        ),
        SamplerEntry(
            "transitions-hmc",
            kinds_of("trajectories", ("normal", "inferred sd"), INDEPENDENT)
            + student_kinds("trajectories", ("normal", "inferred sd"))
            + kinds_of(
                "trajectories",
                ("normal", "inferred sd"),
                ("normal", "logit", "student", "student df"),
                lapses="lapses",
            ),
            memory_factor=12.0,
            summary="values and transition rows together, by Hamiltonian moves",
            build=builders.build_transitions,
        ),
        SamplerEntry(
            "state-space",
            # a long-run mean and the sd of its prior, inferred together, make a funnel whose neck
            # paths do not reach
            changing_kinds(("random walk", ("normal", "inferred sd")), ("reverting", ("normal",))),
            memory_factor=12.0,
            summary="paths of values and the sizes of their steps, by Hamiltonian moves",
            build=builders.build_state_space,
            warmup=500,
        ),
        SamplerEntry(
            "da",
            kinds_of("decisions", ("normal", "inferred sd"), over_time="random walk")
            + kinds_of("decisions", ("normal",), over_time="reverting"),
            memory_factor=12.0,
            summary="data augmentation, with paths filtered forwards and drawn backwards",
            build=builders.build_path_augmentation,
        ),
        SamplerEntry(
            "hierarchical-state-space",
            kinds_of(
                "decisions",
                ("normal",),
                (*INDEPENDENT, "student"),
                groups="hierarchical",
                over_time="random walk",
            ),
            memory_factor=24.0,
            summary="paths of groups and their population, by Hamiltonian and Gibbs moves",
            build=builders.build_hierarchical_paths,
            warmup=500,
        ),
        SamplerEntry(
            "hidden-markov",
            changing_kinds(
                ("switching", ("normal", "inferred sd")),
                without_lapses=("other", "student", "student df"),
            ),
            memory_factor=12.0,
            summary="strategies that take turns, their states summed out, by Hamiltonian moves",
            build=builders.build_hidden_markov,
            warmup=500,
        ),
        SamplerEntry(
            "ranking-hmc",
            kinds_of("rankings", ANY_PRIOR, ("normal", "logit")),
            memory_factor=12.0,
            summary="skills, their spread and the margin of a tie, by Hamiltonian moves",
            build=builders.build_ranking,
            warmup=500,
        ),
        SamplerEntry(
            "skill-paths",
            kinds_of(
                "rankings", ("normal", "inferred sd"), ("normal", "logit"), over_time="random walk"
            )
            + kinds_of(
                "rankings", ("normal", "inferred sd"), ("normal", "logit"), over_time="reverting"
            ),
            memory_factor=12.0,
            summary="skills that change and the sizes of their steps, by Hamiltonian moves",
            build=builders.build_skill_paths,
            warmup=500,
        ),
    )
)


def samplers_for(model: Model) -> tuple[str, ...]:
    """The names of the samplers that take this model, the default first.

    Parameters
    ----------
    model
        A ``ChoiceModel`` or ``RankingModel``.

    Examples
    --------
    >>> rv.samplers_for(rv.ChoiceModel(noise=rv.CorrelatedNoise()))
    ('ghk-hmc', 'da')
    >>> rv.samplers_for(rv.RankingModel())
    ('ranking-hmc',)
    """
    return REGISTRY.names(kind_of(model))[1:]


def choose_entry(
    name: str,
    model: Model,
    unused: Mapping[str, Any],
    resolved: ResolvedModel | None = None,
    on_cluster: bool = False,
) -> SamplerEntry:
    """The entry of the sampler for this model; "auto" is the default, or that of a cluster.

    unused: arguments of `rv.fit` that only some samplers take; those that were not given are None.
    One that the sampler has no use for is refused: silently ignored, it would be taken for one
    that worked.
    """
    kind = kind_of(model)
    # options are those of the paper's samplers, so that asking for one asks for the best of these
    entry = REGISTRY.find(name, kind, on_cluster)
    if name == "auto" and unused.get("options"):
        paper = [other for other in REGISTRY.entries_for(kind) if "options" in other.takes]
        if paper and isinstance(resolved, ResolvedChoiceModel):
            entry = REGISTRY.find(most_expanded(resolved.decisions, resolved.prior), kind)
        elif paper:
            entry = paper[-1]
    for argument, value in unused.items():
        if value is not None and argument not in entry.takes:
            raise ValueError(f'the sampler "{entry.name}" has no use for {argument}; leave it out')
    return entry
