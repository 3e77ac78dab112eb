"""What is unknown of a choice model for its data, and what tells one posterior from all others.

Both are read from the parts of a `ResolvedChoiceModel`; samplers, results and files read them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.data.decisions import Decisions
from revealed.data.trajectories import Trajectories
from revealed.kernels.noise import LapseArguments, count_coordinates, identify_noise
from revealed.models.base import Parameter
from revealed.models.groups import Hierarchical, Separate
from revealed.models.noise_draws import lapse_parameters


def parameters_of(resolved: Any) -> tuple[Parameter, ...]:
    """Everything unknown, in the order in which it is reported."""
    names, over_time = resolved.coefficients.names, resolved.over_time
    group_paths = resolved.group_paths
    coefficient = {"coefficient": names}
    found: list[Parameter] = []
    if isinstance(resolved.model.groups, Hierarchical):
        pair = {**coefficient, "other_coefficient": names}
        dims = ("coefficient", "other_coefficient")
        group = {"group": resolved.groups, **coefficient}
        found += [
            Parameter("population_mean", ("coefficient",), coefficient),
            Parameter("population_covariance", dims, pair),
        ]
        if group_paths is None:
            found.append(Parameter("value", ("group", "coefficient"), group))
        else:
            found += [group_paths.value_parameter(names), *group_paths.population_parameters]
    elif over_time is not None:
        # a value at every time at which something was decided
        at = {"time": tuple(over_time.times.tolist()), **coefficient}
        found.append(Parameter("value", ("time", "coefficient"), at))
        found += _parameters_of_steps(over_time, coefficient)
    elif group_paths is not None:
        found.append(group_paths.value_parameter(names))
        found += _parameters_of_steps(group_paths.of_first, coefficient)
    elif resolved.switching is not None:
        strategies = {"strategy": resolved.switching.strategies}
        found.append(Parameter("value", ("strategy", "coefficient"), strategies | coefficient))
        found += resolved.switching.parameters
    else:
        found.append(Parameter("value", ("coefficient",), coefficient))
    if resolved.prior.scale is not None:
        found.append(Parameter("prior_sd"))
    if count_coordinates(resolved.law):
        found.append(Parameter("df"))
    if isinstance(resolved.kernel, LapseArguments):
        found += lapse_parameters(names, resolved.groups, resolved.own_coordinates)
    if resolved.habit is not None:
        found.append(Parameter("habit", ("action",), {"action": resolved.habit.labels}))
    if resolved.noise is not None:
        labels = resolved.noise.non_base
        dims = ("action", "other_action")
        coords = {"action": labels, "other_action": labels}
        found.append(Parameter("noise_covariance", dims, coords))
    if resolved.concentration is not None:
        found.append(Parameter("transition", ("cell",), {"cell": _cell_names(resolved)}))
    # separate groups have all of these, each its own
    if isinstance(resolved.model.groups, Separate):
        group = {"group": resolved.groups}
        # nodes are each group's own already
        found = [
            p if "node" in p.dims else Parameter(p.name, ("group", *p.dims), {**group, **p.coords})
            for p in found
        ]
    return tuple(found)


def _parameters_of_steps(over_time: Any, coefficient: Any) -> list[Parameter]:
    """What is unknown of how a value changes, its long-run mean too."""
    found = list(over_time.parameters)
    if over_time.process.reverts:
        found.append(Parameter("long_run_mean", ("coefficient",), coefficient))
    return found


def _cell_names(resolved: Any) -> tuple[str, ...]:
    """Each possible transition, state by state, as p(next state | state, action)."""
    states, actions = resolved.data.states, resolved.data.actions
    cells = np.argwhere(resolved.concentration.transpose(1, 0, 2) > 0.0).tolist()
    return tuple(f"p({states[y]} | {states[x]}, {actions[a]})" for x, a, y in cells)


def fingerprint_of(resolved: Any) -> tuple[Any, ...]:
    """What a checkpoint must agree with: all that decides the posterior."""
    prior, noise, data = resolved.prior, resolved.noise, resolved.data
    parts: list[Any] = [prior.basis, prior.precision, prior.mean, prior.scale]
    if isinstance(data, Decisions):
        parts += [data.rows, data.start, data.chosen_row]
    if resolved.group_of_decision is not None:
        parts += [resolved.group_of_decision, [str(label) for label in resolved.groups]]
    if isinstance(resolved.model.groups, Hierarchical):
        parts.append(resolved.model.groups.sd_scale)
        lapse = getattr(resolved.model.noise, "lapse", None)
        parts += [] if lapse is None else [lapse.by, lapse.sd_scale]
    parts += identify_noise(resolved.kernel)
    if resolved.over_time is not None:
        # other gaps between times are another posterior
        parts += resolved.over_time.fingerprint_parts
    if resolved.group_paths is not None:
        parts += resolved.group_paths.fingerprint_parts
    if resolved.switching is not None:
        parts += resolved.switching.fingerprint_parts
    if resolved.habit is not None:
        parts += [[str(label) for label in resolved.habit.labels], resolved.habit.of_row]
    if noise is not None:
        parts += [noise.labels, noise.base, noise.scale, noise.df, noise.root.tolist()]
    if isinstance(data, Trajectories):
        parts += [data.state_position, data.action_position, data.counts]
        parts += [resolved.concentration, resolved.exists]
    return tuple(parts)
