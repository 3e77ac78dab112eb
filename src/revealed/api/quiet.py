"""`rv.fit` for callers that report convergence themselves."""

from __future__ import annotations

import warnings
from typing import Any

from revealed.api.choice import NotConvergedWarning, fit
from revealed.data.decisions import Decisions
from revealed.models.priors import Prior
from revealed.results.posterior import Posterior


def fit_quietly(
    decisions: Decisions, prior: Prior, sampler: str = "auto", **more: Any
) -> Posterior:
    """The posterior that `fit` finds, without its progress bar and its convergence warning.

    The warning is switched off for the whole process while the fit runs, as Python's warnings are.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return fit(decisions, prior, sampler, progress=False, **more)
