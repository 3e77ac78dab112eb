"""Names inside files that version 0.1.0 wrote, when the package was called understudy.

Everything that reads a file asks this module for the names of today, so that no other module knows
of the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class OldNames:
    """What files of 0.1.0 call things, and what they are called now."""

    # Values of the attribute created_by that this package reads.
    creators: tuple[str, ...] = ("revealed", "understudy")
    # Before the SHA-256 at the end of a NetCDF file.
    checksum_mark: bytes = b"understudy sha256 "
    samplers: Mapping[str, str] = field(
        default_factory=lambda: {
            "blended": "composite",
            "conditioned": "ghk-hmc",
            "joint": "transitions-hmc",
            "orders": "ranking-hmc",
            "population": "hierarchical",
            "each": "separate",
        }
    )
    stats: Mapping[str, str] = field(
        default_factory=lambda: {
            "acceptance": "acceptance_rate",
            "renewed": "ghk_acceptance_rate",
            "refreshed": "row_acceptance_rate",
            "acceptance_common": "population_acceptance_rate",
        }
    )
    # Groups of a NetCDF file, from the name of today to the old one.
    groups: Mapping[str, str] = field(default_factory=lambda: {"particles": "cloud"})
    # The table that holds the version of the studio's database.
    studio_version_table: str = "understudy_studio"
    # How the names of drafts begin that killed writers left behind.
    draft_prefix: str = ".understudy-"


OLD = OldNames()


def sampler_name(stored: str) -> str:
    """The name of a sampler now.

    `stored`: its name in a file, old or new; a name that never changed stays.
    """
    return OLD.samplers.get(stored, stored)


def stat_name(stored: str) -> str:
    """The name of a statistic of draws now."""
    return OLD.stats.get(stored, stored)


def group_name(file: Any, name: str) -> str:
    """The name that a group has in an open NetCDF file: that of today, or its old one."""
    return name if name in file else OLD.groups.get(name, name)


def prior_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a prior now.

    0.1.0 stored variances, and "learn" where the sd is inferred. A variance that is not exactly
    the square of a number becomes a covariance beside an sd of one, so that the prior of an old
    file has the same precision to the last bit.
    """
    fields = dict(stored)
    if "centred" in fields:
        fields["sum_to_zero"] = fields.pop("centred")
    if fields["kind"] != "gaussian":
        return fields
    # Today's words for the law, its parameters and its constraint.
    fields["kind"] = "normal"
    variance, shape, scale = (fields.pop(name, None) for name in ("variance", "shape", "scale"))
    if isinstance(variance, str):  # "learn"
        return fields | {"sd": {"df": 4, "scale": scale}, "covariance": shape}
    if not isinstance(variance, Mapping) and np.ndim(variance) < 2:
        sd = np.sqrt(variance)
        if np.all(sd * sd == variance):
            return fields | {"sd": sd.tolist()}
    return fields | {"covariance": variance}
