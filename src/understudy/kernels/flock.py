"""Many particles, each moved by the default engine's round."""

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import jit
from understudy.kernels.blend import Latent, Map, Round, blend
from understudy.kernels.mixture import Mixture
from understudy.kernels.size import Size
from understudy.kernels.target import Target, Work


@jit
def move_flock(
    rng: np.random.Generator,
    target: Target,
    work: Work,
    map: Map,
    round: Round,
    mixture: Mixture,
    latent: Latent,
    size: Size | None,
    lead: Floats,
    x: Floats,
    values: Floats,
    accepted: Floats,
) -> None:
    """One round for each of the particles x (N, D), in place; their values (N, K) and acceptance (N,) are written.

    lead (T,): where the last utilities were found, for the next to begin with.
    """
    gradient, carried, drawn = np.empty(x.shape[1]), np.empty(5), np.empty(1)
    for n in range(len(x)):
        carried[:] = 0.0
        blend(
            rng, target, work, map, round, mixture, latent, size, 1,
            x[n], gradient, carried, lead, values[n : n + 1], accepted[n : n + 1], drawn,
        )  # fmt: skip
