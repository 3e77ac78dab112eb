"""`load`: read any saved posterior, whatever its model and whichever version wrote it."""

from __future__ import annotations

import json
import os
from typing import Any

from revealed.io.netcdf import UnreadableModel, read_file
from revealed.models.description import from_description
from revealed.results.base import Posterior
from revealed.results.classes import result_class
from revealed.results.old_formats import read_old
from revealed.results.storage import (
    FORMAT,
    array_reader,
    read_data,
    read_sampler_name,
    read_stats,
)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a posterior that its `save` wrote, of any model, whole.

    Parameters
    ----------
    path
        Of the NetCDF file.

    Returns
    -------
    Posterior
        What was saved. Of an ``OnlineLearner``, the posterior so far.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
    >>> rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0))).save("tea.nc")
    >>> rv.load("tea.nc")
    <ChoicePosterior: 4 chains of 1000 draws, 2 coefficients, sampler laplace>
    """
    # older files of these two said what they were
    others: Any = dict.fromkeys(("a population", "a ranking"), (FORMAT, read_posterior))
    return read_file(path, "a posterior", FORMAT, read_posterior, others)


def read_posterior(file: Any) -> Posterior:
    """The posterior of an open file."""
    # older files had a format for each kind of result, and did not say what their model is
    if "model" not in file.attrs:
        return read_old(file)
    if "posterior" not in file:
        raise UnreadableModel(
            "it is an online learner without a posterior yet, which rv.OnlineLearner.load reads"
        )
    get = array_reader(file)
    model, data = from_description(json.loads(file.attrs["model"])), read_data(file)
    # put together by the constructor, which checks everything afresh
    parameters = model.resolve(data).parameters
    return result_class(model)(
        {parameter.name: get(f"posterior/{parameter.name}") for parameter in parameters},
        data,
        model,
        read_sampler_name(file),
        read_stats(file),
        json.loads(file.attrs["settings"]),
    )
