"""How results are laid out in NetCDF files: what is text, what is an array, and how both are read.

Files have the groups that ArviZ reads (posterior, sample_stats, observed_data, constant_data). What
is not an array is JSON in the attributes. A variable named like its dimension labels it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.data.decisions import Block, Decisions
from revealed.io.netcdf import Array, Variables, content
from revealed.io.old_files import prior_fields, sampler_name, stat_name
from revealed.models.priors import Flat, HalfStudentT, Normal, Prior

# Of files with decisions and a prior; raise it when an older version could no longer read what is
# written, so that it says so instead of misreading.
FORMAT = 3


def to_json_value(value: Any) -> Any:
    """What JSON does not know of, as what it does: arrays as lists, mappings as objects."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def origin_attributes(
    decisions: Decisions, prior: Prior, sampler: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The attributes of any result that decisions and a prior led to, as text.

    Who made the file, in which format, by which sampler, with which settings, prior and blocks.
    """
    # fields as they are, so that reading makes the same object again
    if isinstance(prior, Flat):
        stored = {"kind": "flat", **vars(prior)}
    else:
        stored = {"kind": "normal", **vars(prior)}
        if isinstance(prior.sd, HalfStudentT):
            stored["sd"] = vars(prior.sd)
    # blocks are needed to place a prior, whose coordinates depend on them
    blocks = [[block.name, block.size, block.sum_to_zero] for block in decisions.blocks]
    return {
        "created_by": "revealed",
        "format_version": FORMAT,
        "sampler": sampler,
        "settings": json.dumps(dict(settings)),
        "prior": json.dumps(stored, default=to_json_value),
        "blocks": json.dumps(blocks, default=to_json_value),
    }


def draw_dimensions(chains: int, draws: int) -> Variables:
    """The labels of the dimensions that all draws have: chains and draws, counted from zero."""
    return {
        "chain": (("chain",), np.arange(chains)),
        "draw": (("draw",), np.arange(draws)),
    }


def stat_variables(chains: int, draws: int, stats: Mapping[str, Any]) -> Variables:
    """The group of statistics of the draws, each (chain, draw)."""
    by_draw = ("chain", "draw")
    return {
        **draw_dimensions(chains, draws),
        **{name: (by_draw, np.asarray(values)) for name, values in stats.items()},
    }


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
    ):
        if values is not None:
            constant[label] = ((dimension,), values)
    return {"observed_data": observed, "constant_data": constant}


def array_reader(file: Any) -> Callable[..., Any]:
    """A function that reads an array of the file by its name, in the type it had."""

    def get(name: str, optional: bool = False) -> Any:
        return None if optional and name not in file else content(file[name])

    return get


def read_origin(file: Any) -> tuple[Decisions, Prior, dict[str, Any]]:
    """The decisions, the prior and the settings behind a result, checked afresh.

    A file that was changed by hand is refused by the constructors.
    """
    get = array_reader(file)
    # sparse where it was stored so
    names, start = get("posterior/coefficient"), get("constant_data/start")
    rows = get("constant_data/rows", optional=True)
    if rows is None:
        parts = tuple(get(f"constant_data/rows_{part}") for part in ("data", "indices", "indptr"))
        rows = sp.csr_array(parts, shape=(int(start[-1]), len(names)))
    notes = {key: json.loads(file.attrs[key]) for key in ("blocks", "prior", "settings")}
    decisions = Decisions(
        rows,
        start,
        get("observed_data/chosen"),
        names=names,
        actions=get("constant_data/actions", optional=True),
        groups=get("constant_data/groups", optional=True),
        blocks=[Block(*block) for block in notes["blocks"]],
        ids=get("constant_data/ids"),
    )
    return decisions, _make_prior(prior_fields(notes["prior"])), notes["settings"]


def _make_prior(stored: dict[str, Any]) -> Prior:
    """The prior that `origin_attributes` has written, with arrays where JSON has lists."""
    # arrays come back from JSON as lists
    kind: Any = {"normal": Normal, "flat": Flat}[stored.pop("kind")]
    fields: dict[str, Any] = {
        key: np.array(value, float) if isinstance(value, list) else value
        for key, value in stored.items()
    }
    if isinstance(fields.get("sd"), dict) and set(fields["sd"]) == {"df", "scale"}:
        fields["sd"] = HalfStudentT(**fields["sd"])
    prior: Prior = kind(**fields)
    return prior


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
    names = [name for name in file.get("sample_stats", ()) if name not in ("chain", "draw")]
    return {stat_name(name): get(f"sample_stats/{name}") for name in names}
