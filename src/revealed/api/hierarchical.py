"""`fit_population`: many groups, each with a value of its own, and all from one population.

    v_i ~ N(mean, covariance)   for each group i, on the values whose sum-to-zero blocks sum to zero

Mean and covariance are inferred together with the groups. A group with few decisions, or decisions
that say little, is drawn towards the population; one with many stands for itself. A group never
seen before is predicted from the population alone.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed
from revealed.api.choice import decision_parts
from revealed.api.run_settings import RunSettings, announce_compiling, warn_unless_converged
from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group, group_positions
from revealed.io.checkpoints import CHECKPOINTS
from revealed.io.dataframes import with_group_labels
from revealed.models.priors import Flat, Normal, resolve_prior
from revealed.results.population import Population
from revealed.samplers.executors import check_client
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.memory import FEWER_DRAWS, MEMORY, refuse_too_large
from revealed.samplers.per_draw import multiply_draws
from revealed.samplers.run import Run


def fit_population(
    decisions: Any,
    groups: Any = None,
    prior: Normal | None = None,
    scale: float = 5.0,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    *,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINTS.seconds,
    cluster: Any = None,
) -> Population:
    """Infer a population of groups, and each of them, from all their decisions together.

    Parameters
    ----------
    decisions
        What was offered and chosen, with groups that say by whom; or a long table of them.
    groups
        Who decided: the name of the decisions' groups, or one label a decision; with a table, the
        column of groups. Default: the decisions' own groups.
    prior
        Of the population's mean; default: ``Normal(10.0)``.
    scale
        Of the prior of the groups' sds: scale times |t|, t Student with two degrees of freedom, for
        each coefficient; correlations are uniform (Huang and Wand 2013).
    draws, warmup, chains, seed, thin, threads, progress, checkpoint, resume, checkpoint_seconds
        As in ``fit``.
    cluster
        A ``dask.distributed.Client`` whose workers each take some of the groups; the draws are the
        same to the last bit, whatever their number, and a worker may be lost.

    Returns
    -------
    Population
        Draws of mean, covariance and of every group's value.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(300, 2))  # ten people decide fifteen times between two things
    >>> likes = np.repeat(rng.normal([1.0, -1.0], 0.5, (10, 2)), 30, axis=0)
    >>> utility = (rows * likes).sum(axis=1) + rng.normal(size=300)
    >>> best = utility.reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 301, 2), best, groups=np.repeat(range(10), 15))
    >>> rv.fit_population(d, draws=3000).mean.mean(axis=(0, 1)) > 0.0
    array([ True, False])
    """
    if cluster is not None:
        check_client(cluster)
    # check what was given
    decisions, group_of_decision = with_group_labels(decisions, groups)
    settings = RunSettings.check(
        draws=draws,
        warmup=warmup,
        chains=chains,
        thin=thin,
        seed=seed,
        threads=threads,
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
        checkpoint_seconds=checkpoint_seconds,
    )
    # groups are numbered in the order in which they first appear
    labels = tuple(decisions_by_group(group_of_decision))
    prior = Normal(10.0) if prior is None else prior
    _check_population(labels, prior, scale)
    # the values of all groups make the most of the draws
    size = 8.0 * chains * draws * len(decisions.names) * (len(labels) + len(decisions.names))
    refuse_too_large(MEMORY.always + MEMORY.population_draws * size, FEWER_DRAWS)
    resolved_prior = resolve_prior(prior, decisions)
    # the population keeps its decisions, with whoever was said to have made them
    own = {name: getattr(decisions, name) for name in decisions.__dataclass_fields__}
    decisions = Decisions(**{**own, "groups": group_of_decision})

    announce_compiling(progress)
    positions = group_positions(group_of_decision, labels)
    sampler = HierarchicalSampler.build(
        decisions, positions, resolved_prior, float(scale), threads, cluster
    )
    recorded = settings.recorded(scale=scale)
    run, complete = settings.run(
        sampler,
        recorded,
        [str(label) for label in group_of_decision.tolist()],
        *decision_parts(decisions, resolved_prior),
        # a cluster does the work of all chains, and each chain only needs somebody who waits
        threads=None if cluster is None else chains,
    )
    # wrap the draws with all they came from
    population = Population(
        *_collect(run, len(labels), resolved_prior.basis),
        labels,
        decisions,
        prior,
        float(scale),
        run.collect_stats(),
        {**recorded, "complete": complete},
    )
    warn_unless_converged(population.summary(), population.summary_of_groups())
    return population


def _check_population(labels: tuple[Any, ...], prior: Normal | Flat, scale: Any) -> None:
    """Refuse one group alone, a bad scale, and priors of the mean that do not work."""
    # one group says nothing about how groups differ
    if len(labels) < 2:
        raise ValueError(
            f"a population needs two groups or more, and all decisions are by {labels[0]!r}; use "
            "rv.fit"
        )
    if not (isinstance(scale, int | float | np.number) and np.isfinite(scale) and scale > 0):
        raise ValueError(f"the scale of the groups' sds must be a positive number; it is {scale!r}")
    if isinstance(prior, Flat) or (isinstance(prior, Normal) and prior.infers_sd):
        what = "flat" if isinstance(prior, Flat) else "of an sd to be inferred"
        raise ValueError(f"the prior of a population's mean cannot be {what}; give rv.Normal(sd)")


def _collect(run: Run, groups: int, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance and values as (chain, draw, ...), as many draws as every chain has.

    A draw of the sampler is mean (D), covariance (D * D) and values (groups * D) in D free
    coordinates; basis (K, D) leads to the K coefficients. The run lets go of its draws as they are
    copied, because there may be gigabytes of them.
    """
    size, width = basis.shape
    end_of_mean, end_of_covariance = width, width + width * width
    shape = len(run.chains), run.complete_draws
    # allocated once and filled chain by chain, to hold no second copy of the draws
    mean, covariance = np.empty((*shape, size)), np.empty((*shape, size, size))
    values = np.empty((*shape, groups, size))
    for c, chain in enumerate(run.chains):
        copied = 0
        while chain.draws:
            made = chain.draws.pop(0)[: shape[1] - copied]
            now = slice(copied, copied + len(made))
            mean[c, now] = multiply_draws(made[:, :end_of_mean], basis)
            # stacks of matrices: each draw's product is its own already
            free = made[:, end_of_mean:end_of_covariance].reshape(-1, width, width)
            covariance[c, now] = basis @ free @ basis.T
            values[c, now] = made[:, end_of_covariance:].reshape(len(made), -1, width) @ basis.T
            copied += len(made)
    return mean, covariance, values
