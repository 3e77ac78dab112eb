"""Independent logistic noise, by quadrature: a noise that the package does not have.

    P = integral of f(z) prod over rivals of F(z - gap_j) dz,   F(z) = 1 / (1 + exp(-z / scale)),

f being the derivative of F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from revealed import Noise
from revealed._types import Floats

# The trapezoid rule, in units of the scale: the integrand is analytic, so that its error falls as
# exp(-2 pi^2 / STEP); beyond REACH from where it is largest there is a part of exp(-REACH).
STEP, REACH = 0.4, 34.0


@dataclass(frozen=True)
class LogisticNoise(Noise):
    """Noise with the logistic distribution of this scale."""

    scale: float = 0.6
    name = "logistic"
    log_concave = True

    @property
    def parameters(self) -> Floats:
        """The scale."""
        return np.array([self.scale])

    @staticmethod
    def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
        """Log P, and its slopes unless that array is empty."""
        scale, total = parameters[0], 0.0
        slopes[:] = 0.0
        # beyond, P is less than the least number there is, and the sum would be ever longer
        if gaps.max() > 700.0 * scale:
            return -math.inf
        for q in range(int((2.0 * REACH + max(0.0, gaps.max() / scale)) / STEP)):
            z = q * STEP - REACH
            density = 1.0 / (2.0 + math.exp(z) + math.exp(-z))
            for j in range(gaps.size):
                density /= 1.0 + math.exp(gaps[j] / scale - z)
            total += density
            # d log F(z - gap) / d gap = -(1 - F) / scale
            for j in range(slopes.size):
                slopes[j] -= density / (scale * (1.0 + math.exp(z - gaps[j] / scale)))
        slopes /= total
        return math.log(total * STEP)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Independent logistic draws."""
        return np.asarray(rng.logistic(scale=self.scale, size=size))
