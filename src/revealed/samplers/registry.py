"""The table of samplers for choices: what each is called, what it takes, and how it is built.

One entry a sampler. `rv.fit`, the estimate of memory, the help of the command line and the tests
that every sampler must pass are made from this table, so that a new sampler is a new entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from revealed.data.decisions import Decisions
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.models.noise import ResolvedNoise
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Sampler
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.covariance_gibbs import CovarianceGibbsSampler
from revealed.samplers.data_augmentation import (
    DataAugmentationSampler,
    most_expanded,
    parse_options,
)
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.ibis import IBISSampler

Noise = Literal["independent", "correlated"]
PriorKind = Literal["normal", "flat", "inferred sd"]


class SamplerInput(NamedTuple):
    """What a sampler is built from.

    draws: kept from each chain, which is the number of particles where there are particles. noise:
    None where it is independent. kernel: the law of independent noise, as kernels take it.
    """

    decisions: Decisions
    prior: ResolvedPrior
    options: Mapping[str, Any]
    noise: ResolvedNoise | None
    draws: int
    kernel: NoiseArguments = NORMAL


@dataclass(frozen=True)
class SamplerEntry:
    """One sampler.

    Attributes
    ----------
    name
        What users call it.
    noise
        Which noise it is for.
    priors
        The kinds of prior it takes.
    memory_factor
        Bytes it takes at most for each byte of the rows, as seen by
        `tests/correctness/test_memory.py`. Too small, and a machine runs out of memory half-way.
    summary
        A few words for help texts.
    build
        Makes the sampler, ready to run; None where draws do not come from chains.
    """

    name: str
    noise: Noise
    priors: tuple[PriorKind, ...]
    memory_factor: float
    summary: str
    build: Callable[[SamplerInput], Sampler] | None = None


class SamplerRegistry(NamedTuple):
    """All samplers, the default of each noise first."""

    entries: tuple[SamplerEntry, ...]

    def names(self, noise: Noise = "independent") -> tuple[str, ...]:
        """The names that `rv.fit` takes under this noise, "auto" for the default first.

        In the order of the table, which is that of help texts.
        """
        return ("auto", *(entry.name for entry in self.entries if entry.noise == noise))

    def find(self, name: str, noise: Noise = "independent") -> SamplerEntry:
        """The sampler of this name; refuses a name that is not in the table."""
        # the first entry of each noise is its default
        for entry in self.entries:
            if entry.noise == noise and name in ("auto", entry.name):
                return entry
        # a name that is not there: say which are
        choose = f"choose one of {', '.join(self.names(noise))}"
        if noise == "correlated":
            raise ValueError(f"with a noise covariance there is no sampler {name!r}; {choose}")
        # a sampler of the other noise deserves a better hint than that it does not exist
        if any(entry.name == name for entry in self.entries):
            raise ValueError(
                f'the sampler "{name}" is for a noise covariance; give '
                "noise=rv.CorrelatedNoise(base=...) as well"
            )
        raise ValueError(f"there is no sampler {name!r}; {choose}")

    def describe(self, noise: Noise = "independent") -> str:
        """The names in one line, for help texts: "auto, composite, ... or laplace"."""
        *names, last = self.names(noise)
        return f"{', '.join(names)} or {last}"


def _build_composite(given: SamplerInput) -> Sampler:
    if given.options:
        raise ValueError(
            f'the sampler "composite" has no options, but {", ".join(given.options)} is given; '
            "leave it out"
        )
    return CompositeSampler.build(given.decisions, given.prior, noise=given.kernel)


def _build_augmentation(name: str) -> Callable[[SamplerInput], Sampler]:
    def build(given: SamplerInput) -> Sampler:
        if not given.kernel.is_normal:
            raise ValueError(
                f'the sampler "{name}" draws normal utilities, and is for normal noise only; '
                'use "composite"'
            )
        # refuses options that the paper's samplers do not have
        options = parse_options(dict(given.options))
        return DataAugmentationSampler.build(name, given.decisions, given.prior, options)

    return build


def _build_ibis(given: SamplerInput) -> Sampler:
    return IBISSampler(given.decisions, given.prior, given.draws, given.kernel)


def _build_ghk(given: SamplerInput) -> Sampler:
    assert given.noise is not None
    return GHKSampler(given.decisions, given.prior, given.noise)


def _build_covariance_gibbs(given: SamplerInput) -> Sampler:
    assert given.noise is not None
    return CovarianceGibbsSampler(given.decisions, given.prior, given.noise)


def _augmentation(name: str, summary: str) -> SamplerEntry:
    """One of the paper's samplers, which differ in the working parameters that they move.

    They take the same priors and the same memory, and have the same options.
    """
    return SamplerEntry(
        name,
        noise="independent",
        priors=("normal", "flat", "inferred sd"),
        memory_factor=1.5,
        summary=summary,
        build=_build_augmentation(name),
    )


REGISTRY = SamplerRegistry(
    (
        SamplerEntry(
            "composite",
            noise="independent",
            priors=("normal", "flat", "inferred sd"),
            memory_factor=12.0,
            summary="Hamiltonian, augmentation and independence moves in turn; the default",
            build=_build_composite,
        ),
        _augmentation("da", "the paper's data augmentation"),
        _augmentation("px-scale", "data augmentation, with a working scale"),
        _augmentation("px-translate", "data augmentation, with a working translation"),
        _augmentation("px-both", "data augmentation, with both working parameters"),
        SamplerEntry(
            "ibis",
            noise="independent",
            priors=("normal", "inferred sd"),
            memory_factor=12.0,
            summary="particles that take the decisions one by one, and give the evidence",
            build=_build_ibis,
        ),
        SamplerEntry(
            "laplace",
            noise="independent",
            priors=("normal", "flat", "inferred sd"),
            memory_factor=6.0,
            summary="a few passes over very many decisions, with a diagnostic that certifies them",
        ),
        SamplerEntry(
            "ghk-hmc",
            noise="correlated",
            priors=("normal", "flat"),
            memory_factor=12.0,
            summary="Hamiltonian moves on the GHK integral; the default with a noise covariance",
            build=_build_ghk,
        ),
        SamplerEntry(
            "da",
            noise="correlated",
            priors=("normal", "flat"),
            memory_factor=1.5,
            summary="data augmentation, with the noise covariance drawn by Gibbs steps",
            build=_build_covariance_gibbs,
        ),
    )
)


def make_sampler(
    name: str,
    decisions: Decisions,
    resolved_prior: ResolvedPrior,
    options: Mapping[str, Any],
    noise: ResolvedNoise | None = None,
    draws: int = 1000,
    kernel: NoiseArguments = NORMAL,
) -> Sampler:
    """The sampler of that name, prepared for these decisions; "auto" is the default.

    draws: how many particles "ibis" has; other samplers do not need to know. kernel: the law of
    independent noise.
    """
    # a name may stand for two samplers, one for each noise
    kind: Noise = "independent" if noise is None else "correlated"
    if noise is not None:
        refuse_inferred_scale(resolved_prior, "a noise covariance")
    # options are those of the paper's samplers, so that asking for one asks for the best of these
    if name == "auto" and options and noise is None:
        name = most_expanded(decisions, resolved_prior)
    entry = REGISTRY.find(name, kind)
    if noise is not None and options:
        raise ValueError(
            f"with a noise covariance there are no options, but {', '.join(options)} is given; "
            "leave it out"
        )
    # its draws are not those of a chain, and `fit` runs it another way
    if entry.build is None:
        raise ValueError(f'the sampler "{entry.name}" has no chains; use rv.fit')
    return entry.build(SamplerInput(decisions, resolved_prior, options, noise, draws, kernel))


def memory_factor(name: str) -> float:
    """Bytes a sampler takes for each byte of the rows.

    An unknown name, which is refused a moment later, counts as the most frugal one.
    """
    for entry in REGISTRY.entries:
        if name in ("auto", entry.name):
            return entry.memory_factor
    return min(entry.memory_factor for entry in REGISTRY.entries)


def refuse_inferred_scale(resolved_prior: ResolvedPrior, model_part: str) -> None:
    """Refuse a prior whose sd is to be inferred where no sampler does that."""
    if resolved_prior.scale is not None:
        raise ValueError(
            f"the sd of a prior is not inferred beside {model_part}; give a number, rv.Normal(sd)"
        )
