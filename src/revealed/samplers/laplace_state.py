"""The state of Laplace importance sampling: everything it needs to go on after any chunk."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, fields

import numpy as np

from revealed._types import Floats
from revealed.io.checkpoints import RunSnapshot


class Phase(enum.IntEnum):
    """What the present pass is for."""

    NEWTON = 0
    DESIGN = 1
    VALIDATION = 2
    WEIGHTS = 3
    DONE = 4


# arrays that a phase does not have yet
def _empty() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class LaplaceState:
    """Where the work is.

    phase: of the work. chunks_done: chunks of the present pass whose results are in `total`.
    passes, rounds: passes over all decisions, and rounds of proposals, that are complete.

    Newton's method evaluates the posterior at `v`, coming from `previous` with log posterior
    `best`, under a prior of this `precision`; `slope` is the exact slope of the log-likelihood at
    the last v. Around the mode `centre` the posterior has about covariance root root'. The cubic
    surrogate is fitted to `design_results`, the log-likelihood and its slope at the coordinates
    `design`; `residuals` are its errors at points it was not fitted to, and `residual_weights`,
    which add up to one, what each counts for. Proposals `new` with their `log_density` come from
    a law with the `third` derivatives of the log-likelihood, or from a Student distribution;
    `proposals` and `log_weights` are those that are weighed already.
    """

    phase: Phase
    v: Floats
    previous: Floats
    precision: Floats
    total: Floats
    best: float = -np.inf
    chunks_done: int = 0
    passes: int = 0
    rounds: int = 0
    slope: Floats = field(default_factory=_empty)
    design: Floats = field(default_factory=_empty)
    design_results: Floats = field(default_factory=_empty)
    residuals: Floats = field(default_factory=_empty)
    residual_weights: Floats = field(default_factory=_empty)
    third: Floats = field(default_factory=_empty)
    centre: Floats = field(default_factory=_empty)
    root: Floats = field(default_factory=_empty)
    new: Floats = field(default_factory=_empty)
    log_density: Floats = field(default_factory=_empty)
    proposals: Floats = field(default_factory=_empty)
    log_weights: Floats = field(default_factory=_empty)

    def snapshot(self) -> RunSnapshot:
        """Numbers and arrays by the names of the fields."""
        # everything that is no array is a number, which JSON holds exactly
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        arrays = {name: x for name, x in values.items() if isinstance(x, np.ndarray)}
        return RunSnapshot({name: x for name, x in values.items() if name not in arrays}, arrays)

    @staticmethod
    def restore(snapshot: RunSnapshot) -> LaplaceState:
        """What `snapshot` wrote down."""
        names = {item.name for item in fields(LaplaceState)}
        # a head also holds version and fingerprint, which are not the state's
        values = {name: x for name, x in snapshot.head.items() if name in names}
        return LaplaceState(
            **{**values, **snapshot.arrays, "phase": Phase(values["phase"])},
        )
