"""Watch a controller decide, learn what it values, predict it, and stand in for it."""

from typing import Any

from revealed.api.choice import fit
from revealed.api.hierarchical import fit_population
from revealed.api.ranking import rank
from revealed.api.run_settings import NotConvergedWarning
from revealed.api.separate import SeparatePosteriors, fit_separately
from revealed.api.unknown_transitions import fit_mdp
from revealed.data.decisions import Block, Decisions
from revealed.data.rankings import Rankings
from revealed.io.dataframes import from_dataframe, to_dataframe
from revealed.io.files import read_csv, read_file, read_parquet, write_file
from revealed.io.parquet_folder import scan_parquet
from revealed.mdp.process import MDP
from revealed.mdp.random_process import random_mdp
from revealed.models.likelihood import choice_probabilities, log_likelihood
from revealed.models.noise import CorrelatedNoise, NoiseCovariance
from revealed.models.priors import Flat, HalfStudentT, Normal
from revealed.models.propriety import UnboundedSkillWarning
from revealed.online import OnlineLearner
from revealed.results.comparison import Comparison, compare
from revealed.results.identification import identify
from revealed.results.load import load
from revealed.results.mdp import MDPPosterior
from revealed.results.policy import policy
from revealed.results.population import Population
from revealed.results.posterior import Posterior
from revealed.results.prediction import predict
from revealed.results.ranking import RankingPosterior
from revealed.samplers.memory import estimate_memory

__version__ = "0.2.0"
__all__ = [
    "MDP",
    "Block",
    "Comparison",
    "CorrelatedNoise",
    "Decisions",
    "Flat",
    "HalfStudentT",
    "MDPPosterior",
    "NoiseCovariance",
    "Normal",
    "NotConvergedWarning",
    "OnlineLearner",
    "Population",
    "Posterior",
    "RankingPosterior",
    "Rankings",
    "SeparatePosteriors",
    "UnboundedSkillWarning",
    "choice_probabilities",
    "compare",
    "environments",
    "estimate_memory",
    "fit",
    "fit_mdp",
    "fit_population",
    "fit_separately",
    "from_dataframe",
    "identify",
    "load",
    "log_likelihood",
    "plots",
    "policy",
    "predict",
    "random_mdp",
    "rank",
    "read_csv",
    "read_file",
    "read_parquet",
    "scan_parquet",
    "sklearn",
    "to_dataframe",
    "write_file",
]


def __getattr__(name: str) -> Any:
    """The modules that are imported when they are first used.

    `plots` needs matplotlib and `sklearn` scikit-learn, which are optional; `environments` brings
    compiled rules that few programs need.
    """
    import importlib

    if name in ("environments", "plots", "sklearn"):
        return importlib.import_module(f"revealed.{name}")
    raise AttributeError(f"module 'revealed' has no attribute {name!r}")
