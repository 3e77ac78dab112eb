"""`fit_mdp`: trajectories in, values and transitions out (in the paper's section 2 they are known).

Each row p(. | x, a) has a Dirichlet prior. The transitions seen inform it, and so do the choices:
an action that is always taken says something about where it leads.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed._validation import Seed
from revealed.api.run_settings import RunSettings, announce_compiling, warn_unless_converged
from revealed.data.decisions import Decisions
from revealed.io.checkpoints import CHECKPOINTS
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.unknown_transitions import RowChoices, TransitionRows
from revealed.mdp.process import MDP
from revealed.mdp.transition_counts import TransitionCounts, check_concentration, count_transitions
from revealed.models.priors import Normal, resolve_prior
from revealed.results.mdp import MDPPosterior
from revealed.results.posterior import Posterior
from revealed.samplers.registry import refuse_inferred_scale
from revealed.samplers.unknown_transitions import UnknownTransitionsSampler


def fit_mdp(
    trajectories: Any,
    states: Any,
    actions: Any,
    *,
    concentration: Any = 1.0,
    prior: Normal | None = None,
    action_rewards: bool = False,
    available: Any = None,
    episodes: Any = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    thin: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINTS.seconds,
) -> MDPPosterior:
    """Infer what a controller values, and the transitions of its MDP, from trajectories alone.

    Each row p(. | x, a) is Dirichlet(concentration) before anything is seen. Controller and
    observer are taken to mean the same transitions. Ctrl-C returns the draws made so far. A result
    that has not converged, in values or transitions, comes with a NotConvergedWarning. Draws take 8
    bytes for each value and possible transition: more than 400 MB are refused.

    Parameters
    ----------
    trajectories
        A pair (states, actions), what ``mdp.simulate`` returns, or a list of these; labels or
        positions. The last state needs no action. Flat columns of many episodes are one pair, cut
        by `episodes`.
    states, actions
        How many there are, or their labels.
    concentration
        Of the Dirichlet priors: a number, one for each next state, or (M, N, N) as
        ``concentration[a, x, y]``. Zero rules a transition out. Transitions counted elsewhere may
        be added to it.
    prior
        Of the value; default: ``Normal(50.0)``.
    action_rewards
        Infer a reward for each action besides; see ``MDP.decisions``.
    available
        (N, M) booleans, which actions each state has; default: all.
    episodes
        One label for each decision of a flat pair.
    draws, warmup, chains, thin, seed, threads, progress, checkpoint, resume, checkpoint_seconds
        As in ``fit``.

    Returns
    -------
    MDPPosterior
        Draws of values and transitions.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> maze = rv.random_mdp(rng, states=3, actions=2)
    >>> path = maze.simulate(rng, [2.0, 0.0, -2.0], 200)
    >>> rv.fit_mdp(path, states=3, actions=2, prior=rv.Normal(2.0))
    <MDPPosterior: ...>
    """
    # check what was given
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
    value_prior = Normal(50.0) if prior is None else prior
    if not isinstance(value_prior, Normal):
        raise ValueError(
            f"fit_mdp needs a normal prior of the value, not {value_prior!r}: no choice can be "
            "sure to bound a value while the rows that weigh it are unknown"
        )
    # transitions inform the rows by their counts alone, choices by which rows they compare
    seen = count_transitions(trajectories, states, actions, episodes)
    concentrations, exists = check_concentration(concentration, available, seen)
    sampler, unique = build_sampler(seen, concentrations, exists, value_prior, action_rewards)
    width = len(unique.names)
    _refuse_too_many(chains * draws * (width + sampler.rows.next_state.size))
    announce_compiling(progress)
    recorded = settings.recorded()
    resolved_prior, choices = sampler.resolved_prior, sampler.choices
    run, complete = settings.run(
        sampler,
        recorded,
        *sampler.rows,
        choices.chosen_row,
        choices.rival_index.weight,
        resolved_prior.basis,
        resolved_prior.precision,
        resolved_prior.mean,
    )
    # a draw is the value, then the probabilities of all possible transitions
    kept, stats = run.collect()
    transition_probs = kept[..., width:]
    mean_decisions = decisions_at_mean_transitions(
        seen, concentrations, exists, transition_probs, action_rewards
    )
    value = Posterior(
        kept[..., :width],
        mean_decisions,
        value_prior,
        sampler.name,
        stats,
        {**recorded, "complete": complete},
    )
    posterior = MDPPosterior(
        value,
        transition_probs,
        concentrations,
        seen.counts,
        exists,
        seen.state_position,
        seen.states,
        seen.actions,
    )
    warn_unless_converged(posterior.summary())
    return posterior


def _refuse_too_many(numbers: int) -> None:
    """Refuse draws that would take more than 400 MB."""
    # doubles; more than this is nearly always a mistake in the number of states
    most = 50_000_000
    if numbers > most:
        raise ValueError(
            f"the draws would be {numbers:,} numbers, and at most {most:,} are kept; ask for fewer "
            "draws or chains (thin lets them be further apart), or rule transitions out with a "
            "concentration of zero"
        )


def build_sampler(
    seen: TransitionCounts,
    concentrations: Floats,
    exists: Bools,
    value_prior: Normal,
    action_rewards: bool,
) -> tuple[UnknownTransitionsSampler, Decisions]:
    """The sampler for what was seen; and each kind of choice as a decision.

    The rows of these decisions are the means p(. | x, a) that the transitions alone suggest, where
    the sampler begins.
    """
    # given the transitions alone, a row is Dirichlet(concentration + counts)
    shape = concentrations + seen.counts * (concentrations > 0.0)
    # pairs that do not exist have no row, and a sum of zero
    mean = shape / np.where(exists.T, shape.sum(axis=2), 1.0)[:, :, None]
    mdp = MDP(mean, exists, states=seen.states, actions=seen.actions)
    rows = transition_rows(shape, exists, action_rewards)
    choices, x, a = count_choices(seen, exists, rows.start)
    unique = mdp.decisions(x, a, action_rewards=action_rewards)
    resolved_prior = resolve_prior(value_prior, unique)
    refuse_inferred_scale(resolved_prior, "unknown transitions")
    return UnknownTransitionsSampler.build(rows, choices, resolved_prior, unique), unique


def transition_rows(shape: Floats, exists: Bools, action_rewards: bool) -> TransitionRows:
    """The rows of Dirichlet shapes (M, N, N), state by state, with the cells not ruled out."""
    N = len(exists)
    # pairs in the order of states, and of actions within a state
    owner, offered = np.nonzero(exists)
    cells = shape[offered, owner]
    row, next_state = np.nonzero(cells > 0.0)
    return TransitionRows(
        start=np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int64),
        cell_start=np.searchsorted(row, np.arange(len(owner) + 1)).astype(np.int64),
        next_state=next_state.astype(np.int64),
        shape=np.ascontiguousarray(cells[row, next_state]),
        reward_index=(N + offered if action_rewards else np.full(len(offered), -1)).astype(
            np.int64
        ),
    )


def count_choices(
    seen: TransitionCounts, exists: Bools, start: Ints
) -> tuple[RowChoices, Ints, Ints]:
    """The choices, equal ones counted once; and the state and action of each kind.

    start: (N + 1,) where the rows of each state begin.
    """
    N, M = exists.shape
    # how often each action was chosen in each state is all that matters
    times = np.zeros((N, M))
    np.add.at(times, (seen.state_position, seen.action_position), 1.0)
    x, a = np.nonzero(times)
    position_in_state = np.cumsum(exists, axis=1) - 1
    chosen = start[x] + position_in_state[x, a]
    # the rivals of a choice are all other rows of its state
    rivals = [
        np.setdiff1d(np.arange(start[i], start[i + 1]), [row])
        for i, row in zip(x, chosen, strict=True)
    ]
    first = np.concatenate([[0], np.cumsum([len(rows) for rows in rivals])])
    rival = np.concatenate(rivals)
    index = RivalIndex(first.astype(np.int64), np.ones(len(rival)), times[x, a])
    kinds = np.searchsorted(x, np.arange(N + 1))
    choices = RowChoices(
        kinds.astype(np.int64), chosen.astype(np.int64), rival.astype(np.int64), index
    )
    return choices, x, a


def decisions_at_mean_transitions(
    seen: TransitionCounts,
    concentrations: Floats,
    exists: Bools,
    transition_probs: Floats,
    action_rewards: bool,
) -> Decisions:
    """The decisions seen, with the posterior means of the rows.

    transition_probs: (chain, draw, C) draws of the probabilities of possible transitions.
    """
    mean = np.zeros(concentrations.shape)
    # possible transitions, in the order in which the sampler has them
    x, a, y = np.nonzero(concentrations.transpose(1, 0, 2) > 0.0)
    mean[a, x, y] = transition_probs.mean(axis=(0, 1))
    mdp = MDP(mean, exists, states=seen.states, actions=seen.actions)
    return mdp.decisions(seen.state_position, seen.action_position, action_rewards=action_rewards)
