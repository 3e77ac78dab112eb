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
from revealed.samplers.model_kind import (
    Model,
    ModelKind,
    NoiseName,
    PriorKind,
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
        structure += kind.lapses == other.lapses
        return kind.data == other.data, structure, kind.prior == other.prior

    return max(known, key=likeness)


ANY_PRIOR: tuple[PriorKind, ...] = ("normal", "flat", "inferred sd")
INDEPENDENT: tuple[NoiseName, ...] = ("normal", "logit", "other")


def _kinds(
    data: Any, priors: tuple[PriorKind, ...], noises: tuple[Any, ...] = ("normal",), **parts: Any
) -> tuple[ModelKind, ...]:
    """Every kind of model with one of these priors and one of these noises."""
    return tuple(ModelKind(data, prior, noise, **parts) for noise in noises for prior in priors)


# a flat prior is improper with lapses
WITH_LAPSES = tuple(
    kind
    for lapses in ("lapses", "habit")
    for kind in _kinds("decisions", ("normal", "inferred sd"), ("normal", "logit"), lapses=lapses)
    if lapses != "habit" or kind.prior == "normal"
)


def _student(data: Any, priors: tuple[PriorKind, ...], **parts: Any) -> tuple[ModelKind, ...]:
    """Every kind of model under Student noise with one of these priors, df known and inferred.

    A flat prior is refused, and "laplace" was not tried.
    """
    return _kinds(data, priors, ("student", "student df"), **parts)


def _pooled_student() -> tuple[ModelKind, ...]:
    """Those of pooled decisions; with habits nobody has tried it."""
    with_lapses = _student("decisions", ("normal",), lapses="lapses")
    return _student("decisions", ("normal", "inferred sd")) + with_lapses


INDEPENDENT_GROUPS = _kinds(
    "decisions", ("normal", "inferred sd"), INDEPENDENT, groups="hierarchical"
)
GROUPS_WITH_LAPSES = tuple(
    kind
    for lapses in ("lapses", "lapses by group")
    for kind in _kinds(
        "decisions",
        ("normal", "inferred sd"),
        ("normal", "logit"),
        groups="hierarchical",
        lapses=lapses,
    )
)


def _augmentation(name: str, summary: str) -> SamplerEntry:
    """One of the paper's samplers, which differ in the working parameters that they move.

    They take the same models and the same memory, and have the same options.
    """
    return SamplerEntry(
        name,
        # lapses by their indicators; a habit of actions that are not always offered has no
        # distribution to be drawn from, and moving an inferred sd would need to know the lapses
        (*_kinds("decisions", ANY_PRIOR), *_kinds("decisions", ("normal",), lapses="lapses")),
        memory_factor=1.5,
        summary=summary,
        build=builders.build_augmentation(name),
        takes=("thin", "init", "options"),
    )


REGISTRY = SamplerRegistry(
    (
        SamplerEntry(
            "composite",
            _kinds("decisions", ANY_PRIOR, INDEPENDENT) + WITH_LAPSES + _pooled_student(),
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
            _kinds("decisions", ("normal", "inferred sd"), INDEPENDENT)
            + WITH_LAPSES
            + _pooled_student(),
            memory_factor=12.0,
            summary="particles that take the decisions one by one, and give the evidence",
            build=builders.build_ibis,
            takes=(),
        ),
        SamplerEntry(
            "laplace",
            _kinds("decisions", ANY_PRIOR, INDEPENDENT),
            memory_factor=6.0,
            summary="a few passes over very many decisions, with a diagnostic that certifies them",
            warmup=0,
            takes=(),
            on_cluster=True,
        ),
        SamplerEntry(
            "ghk-hmc",
            _kinds("decisions", ANY_PRIOR, noises=("correlated",)),
            memory_factor=12.0,
            summary="Hamiltonian moves on the GHK integral; the default with a noise covariance",
            build=builders.build_ghk,
            takes=("thin", "init"),
        ),
        SamplerEntry(
            "da",
            _kinds("decisions", ("normal", "flat"), noises=("correlated",)),
            memory_factor=1.5,
            summary="data augmentation, with the noise covariance drawn by Gibbs steps",
            build=builders.build_covariance_gibbs,
            takes=("thin", "init"),
        ),
        SamplerEntry(
            "hierarchical-hmc",
            INDEPENDENT_GROUPS
            + GROUPS_WITH_LAPSES
            + _student("decisions", ("normal", "inferred sd"), groups="hierarchical"),
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
            _kinds("decisions", ("normal", "inferred sd"), ("correlated",), groups="hierarchical"),
            memory_factor=4.0,
            summary="data augmentation of groups, their population and one noise covariance",
            build=builders.build_hierarchical_gibbs,
        ),
        SamplerEntry(
            "transitions-hmc",
            _kinds("trajectories", ("normal", "inferred sd"), INDEPENDENT)
            + _student("trajectories", ("normal", "inferred sd"))
            + _kinds(
                "trajectories", ("normal", "inferred sd"), ("normal", "logit"), lapses="lapses"
            ),
            memory_factor=12.0,
            summary="values and transition rows together, by Hamiltonian moves",
            build=builders.build_transitions,
        ),
        SamplerEntry(
            "ranking-hmc",
            _kinds("rankings", ANY_PRIOR, ("normal", "logit")),
            memory_factor=12.0,
            summary="skills, their spread and the margin of a tie, by Hamiltonian moves",
            build=builders.build_ranking,
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
