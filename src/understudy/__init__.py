"""Watch a controller decide, learn what it values, predict it, and stand in for it."""

from typing import Any

from understudy.compare import Comparison, compare
from understudy.decisions import Block, Decisions
from understudy.each import Each, fit_each
from understudy.engines.fit import NotConvergedWarning, fit
from understudy.engines.memory import memory_needed
from understudy.frames import from_frame, to_frame
from understudy.identify import identify
from understudy.learn import learn_mdp
from understudy.learnt import LearntMDP
from understudy.likelihood import choice_probabilities, log_likelihood
from understudy.limits import OpenEndedWarning
from understudy.mdp import MDP, random_mdp
from understudy.noise import FullNoise, KnownNoise
from understudy.orders import Orders
from understudy.players import fit_population
from understudy.population import Population
from understudy.posterior import Posterior, load
from understudy.predict import policy, predict
from understudy.priors import Flat, Gaussian
from understudy.ranking import Ranking
from understudy.shards import from_folder
from understudy.skills import rank
from understudy.stream import Stream
from understudy.table_files import from_csv, from_file, from_parquet, to_file

__version__ = "0.1.0"
__all__ = [
    "MDP",
    "Block",
    "Comparison",
    "Decisions",
    "Each",
    "Flat",
    "FullNoise",
    "Gaussian",
    "KnownNoise",
    "LearntMDP",
    "NotConvergedWarning",
    "OpenEndedWarning",
    "Orders",
    "Population",
    "Posterior",
    "Ranking",
    "Stream",
    "Understudy",
    "choice_probabilities",
    "compare",
    "fit",
    "fit_each",
    "fit_population",
    "from_csv",
    "from_file",
    "from_folder",
    "from_frame",
    "from_parquet",
    "identify",
    "learn_mdp",
    "load",
    "log_likelihood",
    "memory_needed",
    "plots",
    "policy",
    "predict",
    "random_mdp",
    "rank",
    "to_file",
    "to_frame",
    "worlds",
]


def __getattr__(name: str) -> Any:
    """What needs scikit-learn or matplotlib, and worlds with their compiled rules, is imported when it is first used."""
    import importlib

    if name == "Understudy":
        return importlib.import_module("understudy.estimator").Understudy
    if name in ("plots", "worlds"):
        return importlib.import_module(f"understudy.{name}")
    raise AttributeError(f"module 'understudy' has no attribute {name!r}")
