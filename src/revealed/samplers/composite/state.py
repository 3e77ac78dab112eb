"""How the composite sampler's tuning is laid out in its state, as plain arrays of numbers.

A state is a dictionary of float arrays, so that it can be written to a checkpoint. Its keys:

    x, gradient               (D,) position in whitened coordinates, and the gradient there
    mode_offset               (T,) where the modes of the utilities were found last
    cycle_state               a `CycleState`: what goes with x from one move to the next
    cycle                     a `Cycle`
    transform/...             the fields of a `WhiteningTransform`
    mixture/...               the fields of a `Mixture`
    interweaving_directions   (K, D) directions in which sweeps move the value given the noise
    warmup_step               (1,) how many steps of the warm-up are done
    warmup_window             (1,) iterations of a window of the warm-up, zero before it begins
    warmup/...                what one step of the warm-up leaves to the next; gone after the last
"""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

import numpy as np

from revealed._types import Floats
from revealed.kernels.composite import Cycle, CycleState
from revealed.kernels.independence import Mixture
from revealed.samplers.base import State
from revealed.samplers.composite.transform import WhiteningTransform

Record = TypeVar("Record", Cycle, CycleState)


def pack(record: Cycle | CycleState) -> Floats:
    """The numbers of a record as one float array, in the order of its fields."""
    return np.array(record, dtype=np.float64)


def unpack(kind: type[Record], numbers: Floats) -> Record:
    """The record of this kind that `pack` made into numbers.

    Each number has its field's type again: counts are whole, flags are True or False.
    """
    # The fields' types are their annotations: int, float or bool.
    types = kind.__annotations__.values()
    return kind(*(cast(number) for cast, number in zip(types, numbers.tolist(), strict=True)))


def pack_mixture(mixture: Mixture, prefix: str) -> State:
    """A mixture's arrays under keys that begin with `prefix`.

    "mixture" is the one in use, "warmup/mixture" the one that was fitted and may not be used.
    """
    return {f"{prefix}/{name}": array for name, array in mixture._asdict().items()}


def unpack_mixture(state: State, prefix: str) -> Mixture:
    """The mixture that `pack_mixture` stored under this prefix."""
    return Mixture(*(state[f"{prefix}/{name}"] for name in Mixture._fields))


def unpack_transform(state: State) -> WhiteningTransform:
    """The whitened coordinates that the state's x is in, as `tuning_state` stored them."""
    names = (field.name for field in fields(WhiteningTransform))
    return WhiteningTransform(*(state[f"transform/{name}"] for name in names))


def tuning_state(
    transform: WhiteningTransform,
    interweaving_directions: Floats,
    mixture: Mixture,
    cycle: Cycle,
) -> State:
    """The part of a state that warm-up tunes.

    What went with x under an earlier tuning is of no more use, so the cycle state begins anew.
    """
    # Every array under the name of what it belongs to, as the module's docstring lists them.
    arrays = {
        f"transform/{field.name}": getattr(transform, field.name)
        for field in fields(WhiteningTransform)
    }
    return (
        {
            "interweaving_directions": interweaving_directions,
            "cycle": pack(cycle),
            "cycle_state": pack(CycleState(0.0, 0.0, False, False, 0)),
        }
        | arrays
        | pack_mixture(mixture, "mixture")
    )
