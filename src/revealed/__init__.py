"""Watch a controller decide, learn what it values, predict it, and stand in for it."""

from typing import Any

from revealed.api import NotConvergedWarning, fit
from revealed.data.blocks import Block
from revealed.data.data_warning import DataWarning
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.trajectories import Trajectories
from revealed.forecasting import walk_forward
from revealed.io.dataframes import from_dataframe, to_dataframe
from revealed.io.files import read_csv, read_file, read_parquet, write_file
from revealed.io.parquet_folder import scan_parquet
from revealed.io.read_data import read_rankings
from revealed.io.read_trajectories import read_trajectories
from revealed.mdp.process import MDP
from revealed.mdp.random_process import random_mdp
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise, NoiseCovariance
from revealed.models.groups import Hierarchical, Pooled, Separate
from revealed.models.informed import UninformedWarning
from revealed.models.lapse import Beta, KnownLapse, Lapse
from revealed.models.likelihood import choice_probabilities, log_likelihood
from revealed.models.noise import LogitNoise, Noise, NormalNoise
from revealed.models.over_time import Constant, MeanReverting, RandomWalk
from revealed.models.priors import Flat, HalfStudentT, Normal
from revealed.models.propriety import UnboundedSkillWarning
from revealed.models.ranking import RankingModel
from revealed.models.student import Gamma, StudentNoise
from revealed.models.switching import Switching
from revealed.models.transitions import Dirichlet, Known
from revealed.online import OnlineLearner
from revealed.results.base import Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.comparison import Comparison, compare
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.hierarchical_paths import HierarchicalPathPosterior
from revealed.results.load import load
from revealed.results.mdp import MDPPosterior
from revealed.results.paths import PathPosterior
from revealed.results.policy import policy
from revealed.results.predictive import predict
from revealed.results.ranking import RankingPosterior
from revealed.results.separate import SeparatePosterior
from revealed.results.skill_paths import RankingPathPosterior
from revealed.results.switching import SwitchingPosterior
from revealed.results.walk_forward import WalkForward
from revealed.samplers.memory import estimate_memory
from revealed.samplers.registry import samplers_for
from revealed.samplers.skill_filter import SkillFilter

__version__ = "0.2.0"
__all__ = [
    "MDP",
    "Beta",
    "Block",
    "ChoiceModel",
    "ChoicePosterior",
    "Comparison",
    "Constant",
    "CorrelatedNoise",
    "DataWarning",
    "Decisions",
    "Dirichlet",
    "Flat",
    "Gamma",
    "HalfStudentT",
    "Hierarchical",
    "HierarchicalPathPosterior",
    "HierarchicalPosterior",
    "Known",
    "KnownLapse",
    "Lapse",
    "LogitNoise",
    "MDPPosterior",
    "MeanReverting",
    "Noise",
    "NoiseCovariance",
    "Normal",
    "NormalNoise",
    "NotConvergedWarning",
    "OnlineLearner",
    "PathPosterior",
    "Pooled",
    "Posterior",
    "RandomWalk",
    "RankingModel",
    "RankingPathPosterior",
    "RankingPosterior",
    "Rankings",
    "Separate",
    "SeparatePosterior",
    "SkillFilter",
    "StudentNoise",
    "Switching",
    "SwitchingPosterior",
    "Trajectories",
    "UnboundedSkillWarning",
    "UninformedWarning",
    "WalkForward",
    "choice_probabilities",
    "compare",
    "environments",
    "estimate_memory",
    "fit",
    "from_dataframe",
    "load",
    "log_likelihood",
    "plots",
    "policy",
    "predict",
    "random_mdp",
    "read_csv",
    "read_file",
    "read_parquet",
    "read_rankings",
    "read_trajectories",
    "samplers_for",
    "scan_parquet",
    "sklearn",
    "to_dataframe",
    "walk_forward",
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
