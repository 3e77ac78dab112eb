"""What figures are given: posteriors of the right class, and truths of the right length."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.results.base import Posterior
from revealed.results.separate import SeparatePosterior


def check_posterior(given: Any, function: str) -> None:
    """Refuse what is not a posterior; function: the name of what was called."""
    if not isinstance(given, Posterior):
        raise ValueError(
            f"{function} needs a posterior, such as rv.fit returns, not a {type(given).__name__}"
        )


def check_class(given: Any, kind: type[Posterior], function: str, how: str) -> None:
    """Refuse what is not a posterior of one class, and say how such a one is made.

    function: the name of what was called. how: the argument of `rv.fit` that gives this class.
    """
    if isinstance(given, kind):
        return
    hint = ""
    if isinstance(given, SeparatePosterior):
        label = given.groups[0]
        if isinstance(given.select(group=label), kind):
            hint = f"; give one of its groups, select(group={label!r})"
    article = "an" if kind.__name__.startswith("M") else "a"
    raise ValueError(
        f"{function} needs {article} {kind.__name__}, as rv.fit returns with {how}, not a "
        f"{type(given).__name__}{hint}"
    )


def check_truth(truth: Any, *counts: int) -> Floats | None:
    """Known values to mark in a figure, as many as one of these; None where there are none."""
    if truth is None:
        return None
    given = np.asarray(truth, dtype=np.float64)
    if given.shape not in [(count,) for count in counts]:
        right = " or ".join(str(count) for count in dict.fromkeys(counts))
        raise ValueError(f"truth has shape {given.shape}; give {right} numbers, one for each")
    return given
