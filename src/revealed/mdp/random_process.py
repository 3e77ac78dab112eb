"""Random Markov decision processes, for examples, tests and experiments."""

from __future__ import annotations

import numpy as np

from revealed._validation import Seed, as_generator
from revealed.mdp.process import MDP


def random_mdp(seed: Seed, states: int = 7, actions: int = 3, concentration: float = 1.0) -> MDP:
    """An MDP whose rows are drawn from Dirichlet(concentration, ...).

    Parameters
    ----------
    seed
        A numpy Generator, which is used; or a number, or None.
    states, actions
        How many; by default as many as in the paper's toy example.
    concentration
        Positive; small numbers make rows with few likely next states.

    Returns
    -------
    MDP
        With states and actions called 0, 1, ...

    Examples
    --------
    >>> rv.random_mdp(np.random.default_rng(1), states=4, actions=2)
    <MDP: 4 states, 2 actions, dense>
    """
    rng = as_generator(seed)
    # Whole numbers of states and actions, and a Dirichlet law that exists.
    whole = all(isinstance(count, int | np.integer) and count >= 1 for count in (states, actions))
    if not whole or not 0.0 < concentration < np.inf:
        raise ValueError(
            "a random MDP needs a whole number of states and of actions, at least one, and a "
            f"positive concentration; these are {states}, {actions} and {concentration}"
        )
    return MDP(rng.dirichlet(np.full(states, concentration), size=(actions, states)))
