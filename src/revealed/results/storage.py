"""How results are laid out in NetCDF files: what is text, what is an array, and how both are read.

Files have the groups that ArviZ reads (posterior, sample_stats, observed_data, constant_data). What
is not an array is JSON in the attributes. A variable named like its dimension labels it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories, Trajectory
from revealed.io.netcdf import Array, Variables, content
from revealed.io.old_files import sampler_name, stat_name
from revealed.models.base import Parameter
from revealed.models.description import describe

# Of the file; raise it when an older version could no longer read what is written, so that it says
# so instead of misreading.
FORMAT = 4


def to_json_value(value: Any) -> Any:
    """What JSON does not know of, as what it does: arrays as lists, mappings as objects."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def model_attributes(
    model: Any, data: Any, sampler: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The attributes of any result, as text.

    Who made the file, in which format, by which sampler, with which settings, model and data.
    """
    attributes = {
        "created_by": "revealed",
        "format_version": FORMAT,
        "sampler": sampler,
        "settings": json.dumps(dict(settings)),
        "model": json.dumps(describe(model), default=to_json_value),
        "data": type(data).__name__,
    }
    # blocks are needed to place a prior, whose coordinates depend on them
    if isinstance(data, Decisions):
        blocks = [[block.name, block.size, block.sum_to_zero] for block in data.blocks]
        attributes["blocks"] = json.dumps(blocks, default=to_json_value)
        if data.group_name is not None:
            attributes["group_name"] = data.group_name
    if isinstance(data, Trajectories):
        # labels as text, and whether they were only counted
        labels = {name: [str(x) for x in getattr(data, name)] for name in ("states", "actions")}
        counted = {
            name: all(isinstance(x, int | np.integer) for x in getattr(data, name))
            for name in labels
        }
        attributes["labels"] = json.dumps([labels, counted])
    return attributes


def draw_dimensions(chains: int, draws: int) -> Variables:
    """The labels of the dimensions that all draws have: chains and draws, counted from zero."""
    return {
        "chain": (("chain",), np.arange(chains)),
        "draw": (("draw",), np.arange(draws)),
    }


def stat_variables(
    chains: int, draws: int, stats: Mapping[str, Any], dims: Mapping[str, tuple[Any, ...]]
) -> Variables:
    """The group of statistics of the draws, each (chain, draw) and these other dimensions."""
    by_draw = ("chain", "draw", *dims)
    return {
        **draw_dimensions(chains, draws),
        **{dim: ((dim,), to_label_array(labels)) for dim, labels in dims.items()},
        **{name: (by_draw, np.asarray(values)) for name, values in stats.items()},
    }


def likelihood_variables(data: Any, logs: Array) -> Variables:
    """The group of the log-likelihood of every observation, (chain, draw, n), with their labels."""
    name, dim, labels = (
        ("order", "game", to_label_array(data.ids))
        if isinstance(data, Rankings)
        else ("choice", "decision", data.ids if isinstance(data, Decisions) else None)
    )
    # decisions of trajectories are counted
    labels = np.arange(logs.shape[2]) if labels is None else labels
    return {
        **draw_dimensions(*logs.shape[:2]),
        dim: ((dim,), labels),
        name: (("chain", "draw", dim), logs),
    }


def parameter_variables(parameters: tuple[Parameter, ...], draws: Mapping[str, Array]) -> Variables:
    """The group of draws, each (chain, draw, ...), and the labels of their dimensions."""
    chains, count = draws[parameters[0].name].shape[:2]
    variables = draw_dimensions(chains, count)
    for parameter in parameters:
        for dim in parameter.dims:
            variables[dim] = ((dim,), to_label_array(parameter.coords[dim]))
        variables[parameter.name] = (("chain", "draw", *parameter.dims), draws[parameter.name])
    return variables


def to_label_array(labels: Iterable[Any]) -> Array:
    """Labels as an array that NetCDF can hold: all of one kind, or all text."""
    given = list(labels)
    array = np.array(given, dtype=object) if not given else np.array(given)
    if array.ndim != 1 or array.dtype.kind not in "iuU" or len({type(x) for x in given}) > 1:
        return np.array([str(x) for x in given], dtype=object)
    return array.astype(object) if array.dtype.kind == "U" else array


def data_groups(data: Any) -> dict[str, Variables]:
    """What was observed, as groups of arrays."""
    if isinstance(data, Rankings):
        return ranking_groups(data)
    if isinstance(data, Trajectories):
        return trajectory_groups(data)
    return decision_groups(data)


def ranking_groups(r: Rankings) -> dict[str, Variables]:
    """Games as groups of arrays: who finished where, and which entries belong to which game."""
    game: Variables = {"game": (("game",), to_label_array(r.ids))}
    observed: Variables = {
        **game,
        "known": (("game",), r.n_ordered),
        "tied": (("entry",), r.tied),
        "member": (("place",), r.players),
    }
    constant: Variables = {
        "player": (("player",), np.array(r.names, dtype=object)),
        "first": (("entry_boundary",), r.member_start),
        "start": (("game_boundary",), r.start),
    }
    # optional, so that files without times stay as they were
    if r.times is not None:
        constant["times"] = (("game",), r.times)
    for i, (name, column) in enumerate(r.columns.items()):
        # any name may be a column's: it stands beside, and not among names of variables
        constant[f"column_{i}_name"] = ((), np.array(name, dtype=object))
        numbers = column.dtype.kind == "f"
        constant[f"column_{i}"] = (("place",), column if numbers else column.astype(object))
    return {"observed_data": observed, "constant_data": constant}


def trajectory_groups(data: Trajectories) -> dict[str, Variables]:
    """Trajectories as groups of arrays: states and actions one after the other, and their ends."""
    states, actions = (
        [getattr(path, name) for path in data.paths] for name in ("states", "actions")
    )
    observed: Variables = {
        "visited": (("visit",), np.concatenate(states)),
        "taken": (("decision",), np.concatenate(actions)),
    }
    constant: Variables = {
        "state_end": (("trajectory",), np.cumsum([len(part) for part in states])),
        "action_end": (("trajectory",), np.cumsum([len(part) for part in actions])),
        "counts": (("action_position", "state_position", "next_position"), data.counts),
    }
    if data.groups is not None:
        constant["groups"] = (("trajectory",), data.groups)
    return {"observed_data": observed, "constant_data": constant}


def decision_groups(decisions: Decisions) -> dict[str, Variables]:
    """Decisions as groups of arrays: what was chosen, and what was offered.

    Rows are stored dense or sparse, as they are.
    """
    d = decisions
    # what was chosen is data, what was offered is constant: ArviZ keeps them apart
    observed: Variables = {
        "decision": (("decision",), d.ids),
        "chosen": (("decision",), d.chosen_row - d.start[:-1]),
    }
    constant: Variables = {
        "coefficient": (("coefficient",), np.array(d.names, dtype=object)),
        "start": (("boundary",), d.start),
        "ids": (("decision",), d.ids),
    }
    # NetCDF has no sparse matrices: three arrays stand for one
    if sp.issparse(d.rows):
        constant["rows_indptr"] = (("pointer",), d.rows.indptr)
        constant["rows_indices"] = (("cell",), d.rows.indices)
        constant["rows_data"] = (("cell",), d.rows.data)
    else:
        constant["rows"] = (("row", "coefficient"), d.rows)
    # labels are optional, and absent is not the same as empty
    for label, dimension, values in (
        ("actions", "row", d.actions),
        ("groups", "decision", d.groups),
        ("times", "decision", d.times),
        ("sessions", "decision", d.sessions),
    ):
        if values is not None:
            constant[label] = ((dimension,), values)
    return {"observed_data": observed, "constant_data": constant}


def array_reader(file: Any) -> Callable[..., Any]:
    """A function that reads an array of the file by its name, in the type it had."""

    def get(name: str, optional: bool = False) -> Any:
        return None if optional and name not in file else content(file[name])

    return get


def read_data(file: Any) -> Any:
    """What was observed, checked afresh: a file that was changed by hand is refused."""
    readers = {
        "Decisions": read_decisions,
        "Rankings": read_rankings,
        "Trajectories": read_trajectories,
    }
    return readers[str(file.attrs["data"])](file)


def read_decisions(file: Any) -> Decisions:
    """The decisions behind a result."""
    get = array_reader(file)
    # sparse where they were stored so
    names = get("constant_data/coefficient", optional=True)
    names = get("posterior/coefficient") if names is None else names
    start = get("constant_data/start")
    rows = get("constant_data/rows", optional=True)
    if rows is None:
        parts = tuple(get(f"constant_data/rows_{part}") for part in ("data", "indices", "indptr"))
        rows = sp.csr_array(parts, shape=(int(start[-1]), len(names)))
    group_name = file.attrs.get("group_name")
    return Decisions(
        rows,
        start,
        get("observed_data/chosen"),
        names=names,
        actions=get("constant_data/actions", optional=True),
        groups=get("constant_data/groups", optional=True),
        group_name=None if group_name is None else str(group_name),
        blocks=[Block(*block) for block in json.loads(file.attrs["blocks"])],
        ids=get("constant_data/ids"),
        times=get("constant_data/times", optional=True),
        sessions=get("constant_data/sessions", optional=True),
    )


def read_rankings(file: Any) -> Rankings:
    """The games behind a result."""
    get = array_reader(file)
    return Rankings(
        names=tuple(get("constant_data/player").tolist()),
        players=get("observed_data/member"),
        member_start=get("constant_data/first"),
        start=get("constant_data/start"),
        tied=get("observed_data/tied").astype(bool),
        n_ordered=get("observed_data/known"),
        ids=tuple(get("observed_data/game").tolist()),
        times=get("constant_data/times", optional=True),
        columns=_read_member_columns(get),
    )


def _read_member_columns(get: Any) -> dict[str, Any]:
    """What else was known of the members of entries, by name.

    Files without such columns have none.
    """
    found: dict[str, Any] = {}
    while (column := get(f"constant_data/column_{len(found)}", optional=True)) is not None:
        name = get(f"constant_data/column_{len(found)}_name")
        found[str(np.asarray(name).item())] = column
    return found


def read_trajectories(file: Any) -> Trajectories:
    """The trajectories behind a result."""
    get = array_reader(file)
    labels, counted = json.loads(file.attrs["labels"])
    states, actions = (
        tuple(range(len(labels[name])) if counted[name] else labels[name])
        for name in ("states", "actions")
    )
    visited = np.split(get("observed_data/visited"), get("constant_data/state_end")[:-1])
    taken = np.split(get("observed_data/taken"), get("constant_data/action_end")[:-1])
    paths = [Trajectory(x, a) for x, a in zip(visited, taken, strict=True)]
    groups = get("constant_data/groups", optional=True)
    found = Trajectories(paths, states, actions, groups=groups)
    counts = get("constant_data/counts")
    # of old files only the counts are left, and not which decision led where
    if not np.array_equal(found.counts, counts):
        decisions = found.state_position, found.action_position
        return Trajectories.from_counts(decisions, counts, states, actions)
    return found


def read_sampler_name(file: Any) -> str:
    """The sampler's name; version 0.1.0 called it an engine, and some samplers otherwise."""
    if "sampler" in file.attrs:
        return str(file.attrs["sampler"])
    return sampler_name(file.attrs["engine"])


def read_stats(file: Any) -> dict[str, Array]:
    """The statistics of draws, under their present names.

    Version 0.1.0 called some of them otherwise.
    """
    get = array_reader(file)
    # dimensions stand among the variables, as NetCDF has them
    dims = ("chain", "draw", "group")
    names = [name for name in file.get("sample_stats", ()) if name not in dims]
    return {stat_name(name): get(f"sample_stats/{name}") for name in names}
