"""The door for unknown transitions: trajectories in, values and transitions out (paper, section 2: there they are known)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.drive import CHECKPOINT_SECONDS, Checkpoint, drive, fingerprint_of, refuse_bad_checkpoint
from understudy.engines.fit import (
    announce_compiling,
    pick_seed,
    refuse_bad_counts,
    refuse_learnt_size,
    warn_unless_trusted,
)
from understudy.engines.joint import Joint
from understudy.engines.run import Run
from understudy.kernels.collapsed import Offers
from understudy.kernels.unknown import Choices, Rows
from understudy.learnt import LearntMDP
from understudy.mdp import MDP
from understudy.posterior import Posterior
from understudy.priors import Gaussian, place
from understudy.trajectories import Seen, concentrations, see

MOST = 50_000_000  # numbers that the draws may be, 400 MB


def learn_mdp(
    trajectories: Any,
    states: Any,
    actions: Any,
    *,
    concentration: Any = 1.0,
    prior: Gaussian | None = None,
    action_rewards: bool = False,
    available: Any = None,
    episodes: Any = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: int | None = 0,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> LearntMDP:
    """Learn what a controller values, and the transitions of its world, from trajectories alone.

    Each row p(. | x, a) is Dirichlet(concentration) before anything is seen. The transitions seen inform it, and so do the
    choices: who always takes an action tells where it leads. Controller and observer are taken to mean the same transitions.

    Args:
        trajectories: a pair (states, actions), what ``mdp.simulate`` returns, or a list of these; labels or positions. The
            last state needs no action. Flat columns of many episodes are one pair, cut by `episodes`.
        states, actions: how many there are, or their labels.
        concentration: of the Dirichlet priors: a number, one for each next state, or (M, N, N) as
            ``concentration[a, x, y]``. Zero rules a transition out. Transitions counted elsewhere may be added to it.
        prior: of the value, ``Gaussian(2500.0)`` unless said.
        action_rewards: learn a reward for each action besides; see ``MDP.decisions``.
        available: (N, M) booleans, which actions each state has; default all.
        episodes: one label for each decision of a flat pair.
        draws, warmup, chains, thin, seed, threads, progress, checkpoint, resume, checkpoint_seconds: as in ``fit``.

    Ctrl-C returns the draws made so far. A result that has not converged, in values or transitions, comes with a
    NotConvergedWarning. Draws take 8 bytes for each value and possible transition: more than 400 MB are refused.

    >>> rng = np.random.default_rng(1)
    >>> world = us.random_mdp(rng, states=3, actions=2)
    >>> us.learn_mdp(world.simulate(rng, [2.0, 0.0, -2.0], 200), states=3, actions=2, prior=us.Gaussian(4.0))
    <LearntMDP: ...>
    """
    refuse_bad_counts(draws=draws, warmup=warmup, chains=chains, thin=thin, threads=threads, seed=seed)
    file = refuse_bad_checkpoint(checkpoint, resume, checkpoint_seconds)
    belief = Gaussian(2500.0) if prior is None else prior
    if not isinstance(belief, Gaussian):
        raise ValueError(
            f"learn_mdp needs a Gaussian prior of the value, not {belief!r}: no choice can be sure to bound a value "
            "while the rows that weigh it are unknown"
        )
    seen = see(trajectories, states, actions, episodes)
    shapes, exists = concentrations(concentration, available, seen)
    engine, met = prepare(seen, shapes, exists, belief, action_rewards)
    size = chains * draws * (len(met.names) + engine.rows.where.size)
    if size > MOST:
        raise ValueError(
            f"the draws would be {size:,} numbers, and at most {MOST:,} are kept; ask for fewer draws or chains (thin lets "
            "them be further apart), or rule transitions out with a concentration of zero"
        )
    announce_compiling(progress)
    used_seed = pick_seed(seed)
    settings = {"seed": used_seed, "draws": draws, "warmup": warmup, "chains": chains, "thin": thin}
    run = Run(engine, draws=draws, warmup=warmup, thin=thin, chains=chains, seed=used_seed, init=None)
    keeper = None if file is None else Checkpoint(file, _fingerprint(engine, settings), checkpoint_seconds)
    kept, stats, complete = drive(run, engine.name, threads, progress, keeper, resume)
    width = len(met.names)
    answer = _answer(seen, shapes, exists, kept[..., width:], action_rewards)
    value = Posterior(kept[..., :width], answer, belief, engine.name, stats, {**settings, "complete": complete})
    learnt = LearntMDP(value, kept[..., width:], shapes, seen.counts, exists, seen.x, seen.states, seen.actions)
    warn_unless_trusted(learnt.summary())
    return learnt


def prepare(
    seen: Seen, prior: Floats, exists: Bools, belief: Gaussian, action_rewards: bool
) -> tuple[Joint, Decisions]:
    """The engine for what was seen; and each kind of choice as a decision, with the rows that transitions alone suggest."""
    shape = prior + seen.counts * (prior > 0.0)
    mean = shape / np.where(exists.T, shape.sum(axis=2), 1.0)[:, :, None]
    mdp = MDP(mean, exists, states=seen.states, actions=seen.actions)
    rows = lay_out(shape, exists, action_rewards)
    choices, x, a = count_choices(seen, exists, rows.start)
    met = mdp.decisions(x, a, action_rewards=action_rewards)
    placed = place(belief, met)
    refuse_learnt_size(placed, "unknown transitions")
    return Joint.build(rows, choices, placed, met), met


def lay_out(shape: Floats, exists: Bools, action_rewards: bool) -> Rows:
    """The rows of shapes (M, N, N), state by state, with the cells that are not ruled out."""
    N = len(exists)
    owner, offered = np.nonzero(exists)
    cells = shape[offered, owner]
    row, where = np.nonzero(cells > 0.0)
    return Rows(
        start=np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int64),
        begin=np.searchsorted(row, np.arange(len(owner) + 1)).astype(np.int64),
        where=where.astype(np.int64),
        shape=np.ascontiguousarray(cells[row, where]),
        extra=(N + offered if action_rewards else np.full(len(offered), -1)).astype(np.int64),
    )


def count_choices(seen: Seen, exists: Bools, start: Ints) -> tuple[Choices, Ints, Ints]:
    """The choices, equal ones counted; and the state and action of each kind."""
    N, M = exists.shape
    times = np.zeros((N, M))
    np.add.at(times, (seen.x, seen.a), 1.0)
    x, a = np.nonzero(times)
    place_in_state = np.cumsum(exists, axis=1) - 1
    taken = start[x] + place_in_state[x, a]
    rivals = [np.setdiff1d(np.arange(start[i], start[i + 1]), [row]) for i, row in zip(x, taken, strict=True)]
    first = np.concatenate([[0], np.cumsum([len(each) for each in rivals])])
    rival = np.concatenate(rivals)
    offers = Offers(first.astype(np.int64), np.ones(len(rival)), times[x, a])
    kinds = np.searchsorted(x, np.arange(N + 1))
    return Choices(kinds.astype(np.int64), taken.astype(np.int64), rival.astype(np.int64), offers), x, a


def _answer(seen: Seen, prior: Floats, exists: Bools, cells: Floats, action_rewards: bool) -> Decisions:
    """The decisions seen, with the posterior means of the rows."""
    mean = np.zeros(prior.shape)
    x, a, y = np.nonzero(prior.transpose(1, 0, 2) > 0.0)
    mean[a, x, y] = cells.mean(axis=(0, 1))
    mdp = MDP(mean, exists, states=seen.states, actions=seen.actions)
    return mdp.decisions(seen.x, seen.a, action_rewards=action_rewards)


def _fingerprint(engine: Joint, settings: dict[str, Any]) -> str:
    """What a checkpoint must agree with before it is continued."""
    placed, choices = engine.placed, engine.choices
    return fingerprint_of(
        repr((engine.name, sorted(settings.items()))),
        *engine.rows, choices.taken, choices.offers.weight, placed.basis, placed.precision, placed.mean,
    )  # fmt: skip
