"""What pooling does to the estimates of groups: each alone, and as one of a population."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Each group alone, and as one of many; arrays are (N, K).

    unpooled: the most likely value of each group by itself, under the prior of the population mean.
    pooled: the posterior mean as one of the population. centre: (K,) the population's mean.
    """

    names: tuple[str, ...]
    groups: tuple[Hashable, ...]
    decisions: Ints
    unpooled: Floats
    pooled: Floats
    centre: Floats

    @property
    def shrinkage_factor(self) -> Floats:
        """(K,) sd between pooled estimates, as a share of that between unpooled ones."""
        return np.asarray(self.pooled.std(axis=0) / np.maximum(self.unpooled.std(axis=0), 1e-300))

    def __str__(self) -> str:
        # a line a coefficient
        lines = [
            f"{len(self.groups)} groups with {np.median(self.decisions):g} decisions each (median)"
        ]
        wide = max(map(len, self.names))
        for k, name in enumerate(self.names):
            lines.append(
                f"{name.ljust(wide)}  spread of separate estimates "
                f"{self.unpooled[:, k].std():.3g}, of shrunken ones {self.pooled[:, k].std():.3g} "
                f"({self.shrinkage_factor[k]:.0%}), "
                f"about {self.centre[k]:.3g}"
            )
        return "\n".join(lines)
