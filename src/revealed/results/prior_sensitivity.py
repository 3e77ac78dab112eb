"""How far the posterior would move under another prior variance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.noise import AnyNoise
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import ResolvedPrior


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The posterior mode with the prior variance halved, as it is, and doubled: rows 0, 1 and 2.

    Modes and not means are compared: the posterior is log-concave, so its mode is unique and found
    exactly, while means would need new draws. `sds` are those of the normal approximation at each
    mode.
    """

    names: tuple[str, ...]
    modes: Floats
    sds: Floats

    @property
    def moves(self) -> Floats:
        """(2, K) how far each mode moves with the prior variance halved and doubled, in sds."""
        # zero for a coefficient that cannot move
        moved = self.modes[[0, 2]] - self.modes[1]
        return np.asarray(
            np.divide(moved, self.sds[1], out=np.zeros_like(moved), where=self.sds[1] > 0)
        )

    @property
    def largest(self) -> str:
        """The coefficient that moves farthest."""
        return self.names[int(np.abs(self.moves).max(axis=0).argmax())]


def find_sensitivity(
    d: Decisions,
    weight: Floats,
    noise: AnyNoise,
    prior: ResolvedPrior,
    mode: Floats,
    information: Floats,
) -> Sensitivity:
    """The modes under half and twice the prior variance, beside the one as it is.

    weight: (T,) how often each decision counts.
    """

    def with_precision(times: float) -> tuple[Floats, Floats]:
        scaled = replace(prior, precision=times * prior.precision)
        return posterior_mode(d, scaled, weight, noise, start=mode)

    # half the variance is twice the precision
    found = [with_precision(2.0), (mode, information), with_precision(0.5)]
    sds = [approximate_sd(prior.basis, precision) for _, precision in found]
    return Sensitivity(d.names, np.array([mode for mode, _ in found]), np.array(sds))


def approximate_sd(basis: Floats, precision: Floats) -> Floats:
    """(K,) standard deviations of v = basis q with this precision of q."""
    # the covariance of v is basis P^-1 basis', and its diagonal a sum of squares
    root = sla.cholesky(precision, lower=True)
    return np.asarray(np.linalg.norm(sla.solve_triangular(root, basis.T, lower=True), axis=0))
