"""`load`: read any saved result, whatever its kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from revealed.io.netcdf import read_file
from revealed.results.mdp import read_posterior_or_mdp
from revealed.results.population import read_population
from revealed.results.ranking import RANKING_FORMAT, read_ranking
from revealed.results.storage import FORMAT


def load(path: str | os.PathLike[str]) -> Any:
    """Read a result that its `save` wrote: of ``rv.fit`` or any of the other functions.

    Parameters
    ----------
    path
        Of the NetCDF file.

    Returns
    -------
    Posterior, MDPPosterior, Population or RankingPosterior
        What was saved, whole. Of an ``OnlineLearner``, the posterior so far.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> rv.fit(d, rv.Normal(1.0)).save("tea.nc")
    >>> rv.load("tea.nc")
    <Posterior: 4 chains of 1000 draws, 2 coefficients, sampler composite>
    """
    # posteriors were first, and have no kind written in their files
    others: dict[str, Any] = {
        "a population": (FORMAT, read_population),
        "a ranking": (RANKING_FORMAT, read_ranking),
    }
    # all else is a posterior, or is refused as not being one
    read: Callable[[Any], Any] = read_posterior_or_mdp
    return read_file(path, "a posterior", FORMAT, read, others)
