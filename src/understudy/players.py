"""Many controllers, each watched only a few times: every one has a value of its own, and all come from one population.

    v_i ~ N(mean, covariance)   for each player i, on the values whose centred blocks sum to zero

Mean and covariance are learnt with the players. Who decided rarely, or says little, is drawn towards the population; who
decided often stands for himself. A player never seen before is predicted from the population alone.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.drive import CHECKPOINT_SECONDS, Checkpoint, refuse_bad_checkpoint, run_through
from understudy.engines.fit import announce_compiling, fingerprint, pick_seed, refuse_bad_counts, warn_unless_trusted
from understudy.engines.hierarchy import Hierarchy
from understudy.engines.memory import ALWAYS, FEWER, refuse_too_large
from understudy.engines.run import Run
from understudy.engines.workers import refuse_no_client
from understudy.groups import decided, numbered, whose
from understudy.population import Population
from understudy.priors import Flat, Gaussian, place

COPIES = 3.0  # of the draws, at most: as they are made, as they are kept, and what the diagnostics look at


def fit_population(
    decisions: Any,
    by: Any = None,
    prior: Gaussian | None = None,
    scale: float = 5.0,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: int | None = 0,
    *,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: Any = None,
) -> Population:
    """Learn a population of players, and each of them, from all their decisions together.

    Args:
        decisions: what was offered and chosen, with groups that say by whom; or a long table of them.
        by: who decided: None for the decisions' own groups, the name of these groups, or one label a decision; with a
            table, the column of players.
        prior: of the population's mean; ``Gaussian(100.0)`` unless said.
        scale: of the prior of the players' sds: scale times |t|, t Student with two degrees of freedom, for each
            coefficient; correlations are uniform (Huang and Wand 2013).
        draws, warmup, chains, seed, thin, threads, progress, checkpoint, resume, checkpoint_seconds: as in ``fit``.
        cluster: a ``dask.distributed.Client`` whose workers each take some of the players; the draws are the same to the last bit,
            whatever their number, and a worker may be lost.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(300, 2))  # ten people decide fifteen times between two things
    >>> likes = np.repeat(rng.normal([1.0, -1.0], 0.5, (10, 2)), 30, axis=0)
    >>> utility = (rows * likes).sum(axis=1) + rng.normal(size=300)
    >>> d = us.Decisions(rows, range(0, 301, 2), utility.reshape(-1, 2).argmax(axis=1), groups=np.repeat(range(10), 15))
    >>> us.fit_population(d, draws=3000).mean.mean(axis=(0, 1)) > 0.0
    array([ True, False])
    """
    if cluster is not None:
        refuse_no_client(cluster)
    decisions, who = decided(decisions, by)
    refuse_bad_counts(draws=draws, warmup=warmup, chains=chains, thin=thin, threads=threads, seed=seed)
    file = refuse_bad_checkpoint(checkpoint, resume, checkpoint_seconds)
    players = tuple(whose(who))
    if len(players) < 2:
        raise ValueError(f"a population needs two players or more, and all decisions are by {players[0]!r}; use us.fit")
    if not (isinstance(scale, int | float | np.number) and np.isfinite(scale) and scale > 0):
        raise ValueError(f"the scale of the players' sds must be a positive number; it is {scale!r}")
    prior = Gaussian(100.0) if prior is None else prior
    if isinstance(prior, Flat) or (isinstance(prior, Gaussian) and prior.learns):
        what = "flat" if isinstance(prior, Flat) else "of a size to be learnt"
        raise ValueError(f"the prior of a population's mean cannot be {what}; give us.Gaussian(variance)")
    size = 8.0 * chains * draws * len(decisions.names) * (len(players) + len(decisions.names))
    refuse_too_large(ALWAYS + COPIES * size, FEWER)
    placed = place(prior, decisions)
    decisions = Decisions(**{**{f: getattr(decisions, f) for f in decisions.__dataclass_fields__}, "groups": who})
    announce_compiling(progress)
    engine = Hierarchy.build(decisions, numbered(who, players), placed, float(scale), threads, cluster)
    used_seed = pick_seed(seed)
    settings = {"seed": used_seed, "draws": draws, "warmup": warmup, "chains": chains, "thin": thin, "scale": scale}
    run = Run(engine, draws=draws, warmup=warmup, thin=thin, chains=chains, seed=used_seed, init=None)
    keeper = None
    if file is not None:
        named = {**settings, "players": [str(label) for label in who.tolist()]}
        keeper = Checkpoint(file, fingerprint(decisions, placed, engine.name, named), checkpoint_seconds)
    complete = run_through(run, engine.name, threads if cluster is None else chains, progress, keeper, resume)
    population = Population(
        *_collect(run, engine, placed.basis), players, decisions, prior, float(scale), _stats(run), {**settings, "complete": complete},
    )  # fmt: skip
    warn_unless_trusted(population.summary(), population.summary_of_players())
    return population


def _collect(run: Run, engine: Hierarchy, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance and values as (chain, draw, ...), as many draws as every chain has; the run lets go of them as they are copied."""
    (to, of), width, size = engine.parts, engine.width, len(basis)
    shape = len(run.chains), min(chain.done for chain in run.chains)
    mean, covariance = np.empty((*shape, size)), np.empty((*shape, size, size))
    values = np.empty((*shape, engine.players, size))
    for c, chain in enumerate(run.chains):
        at = 0
        while chain.draws:
            made = chain.draws.pop(0)[: shape[1] - at]
            now = slice(at, at + len(made))
            mean[c, now] = made[:, :to] @ basis.T
            covariance[c, now] = basis @ made[:, to:of].reshape(-1, width, width) @ basis.T
            values[c, now] = made[:, of:].reshape(len(made), -1, width) @ basis.T
            at += len(made)
    return mean, covariance, values


def _stats(run: Run) -> dict[str, Floats]:
    """(chain, draw) stats, as many as every chain has."""
    count = min(chain.done for chain in run.chains)
    each = [{n: np.concatenate([s[n] for s in chain.stats])[:count] for n in chain.stats[0]} for chain in run.chains]
    return {name: np.stack([stats[name] for stats in each]) for name in each[0]}
