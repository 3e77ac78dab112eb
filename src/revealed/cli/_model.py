"""The model that the options of `revealed fit` describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed._validation import check_positive

if TYPE_CHECKING:
    from revealed.models.priors import Prior


def choose_prior(
    flat: bool, prior_sd: float | None, infer_prior_sd: bool, sum_to_zero: bool, groups: str
) -> Prior | None:
    """The prior that the options ask for.

    At most one of the first three may be given; without any it is the default normal prior.
    """
    from revealed.models.choice import POPULATION_MEAN_SD
    from revealed.models.priors import Flat, HalfStudentT, Normal

    # Three ways to say which prior; saying two of them is a mistake.
    given = {"--flat": flat, "--prior-sd": prior_sd is not None, "--infer-prior-sd": infer_prior_sd}
    if sum(given.values()) > 1:
        named = " and ".join(name for name, is_given in given.items() if is_given)
        raise ValueError(f"{named} contradict each other; give one of them")
    if prior_sd is not None:
        check_positive("--prior-sd", prior_sd)
    # None leaves it to the blocks of the decisions, which know it where they come from an MDP.
    zero = True if sum_to_zero else None
    # the default of a population's mean is another than that of one value
    if not flat and prior_sd is None and not infer_prior_sd and groups == "hierarchical":
        return None if zero is None else Normal(POPULATION_MEAN_SD, sum_to_zero=zero)
    if flat:
        return Flat(zero)
    return Normal(HalfStudentT() if infer_prior_sd else prior_sd, sum_to_zero=zero)


def choose_noise(
    noise: str, base: str | None, lapse: str | None = None, df: float | None = None
) -> Any:
    """The noise that the options ask for."""
    from revealed.models.correlated_noise import CorrelatedNoise
    from revealed.models.lapse import Lapse
    from revealed.models.noise import LogitNoise, NormalNoise
    from revealed.models.student import Gamma, StudentNoise

    if noise not in ("normal", "logit", "student", "correlated"):
        raise ValueError(f"--noise must be normal, logit, student or correlated; it is {noise!r}")
    if df is not None and noise != "student":
        raise ValueError("--df goes with --noise student; give both, or neither")
    if noise == "correlated":
        if lapse is not None:
            raise ValueError("--lapse goes with --noise normal, logit or student")
        return CorrelatedNoise(base=base)
    if base is not None:
        raise ValueError("--base goes with --noise correlated; give both, or neither")
    blind = None if lapse is None else Lapse(to=lapse)
    if noise == "student":
        return StudentNoise(Gamma() if df is None else df, lapse=blind)
    law = LogitNoise if noise == "logit" else NormalNoise
    return law(lapse=blind)


OverTime = Annotated[
    str,
    typer.Option(
        help="Whether values change: constant; random-walk, drifting with the times of --time; "
        "mean-reverting; or switching, by --states strategies that take turns within a session."
    ),
]
States = Annotated[
    int | None,
    typer.Option(
        help="How many strategies take turns, with --over-time switching; default 2.",
        show_default=False,
    ),
]


def choose_over_time(
    over_time: str, time: str | None, session: str | None, states: int | None = None
) -> Any:
    """How values change, as the options ask for it; a step between sessions where there are any."""
    from revealed.models.over_time import Constant, MeanReverting, RandomWalk
    from revealed.models.priors import HalfStudentT
    from revealed.models.switching import Switching

    if over_time not in ("constant", "random-walk", "mean-reverting", "switching"):
        raise ValueError(
            "--over-time must be constant, random-walk, mean-reverting or switching; it is "
            f"{over_time!r}"
        )
    if states is not None and over_time != "switching":
        raise ValueError("--states goes with --over-time switching; give both, or neither")
    # without times decisions follow one another as they stand
    if over_time == "switching":
        return Switching(2 if states is None else states)
    if over_time == "constant":
        return Constant()
    if time is None:
        raise ValueError(f"--over-time {over_time} needs --time, the column of times")
    if over_time == "mean-reverting":
        return MeanReverting()
    return RandomWalk(between_sessions=None if session is None else HalfStudentT(scale=1.0))


def choose_groups(groups: str) -> Any:
    """The structure of groups that the options ask for."""
    from revealed.models.groups import Hierarchical, Pooled, Separate

    kinds: dict[str, Any] = {"pooled": Pooled, "separate": Separate, "hierarchical": Hierarchical}
    if groups not in kinds:
        raise ValueError(f"--groups must be pooled, separate or hierarchical; it is {groups!r}")
    return kinds[groups]()


def choose_transitions(transitions: str, concentration: float | None) -> Any:
    """The transitions that the options ask for."""
    from revealed.models.transitions import Dirichlet, Known

    if transitions not in ("known", "unknown"):
        raise ValueError(f"--transitions must be known or unknown; it is {transitions!r}")
    if transitions == "unknown":
        return Dirichlet(1.0 if concentration is None else concentration)
    if concentration is not None:
        raise ValueError("--concentration goes with --transitions unknown; give both, or neither")
    return Known()


def with_base_of(model: Any, decisions: Any) -> Any:
    """The model with its base as the decisions label it: numbers are typed as text.

    What is no label of theirs is left as it is, and refused where the model meets the data.
    """
    from revealed.models.correlated_noise import CorrelatedNoise

    noise, actions = model.noise, getattr(decisions, "actions", None)
    if not isinstance(noise, CorrelatedNoise) or noise.base is None or actions is None:
        return model
    found = [label for label in set(actions.tolist()) if str(label) == noise.base]
    return model.replace(noise=CorrelatedNoise(base=found[0])) if found else model


def check_groups_known(decisions: Any, groups: str, column: str) -> None:
    """Refuse groups where nobody says who decided; the sentence names the option that does."""
    from revealed.data.decisions import Decisions
    from revealed.data.trajectories import Trajectories

    if groups == "pooled":
        return
    # a folder is read chunk by chunk, and a group may be in all of them
    if not isinstance(decisions, Decisions | Trajectories):
        raise ValueError(f"a folder is not read group by group, as --groups {groups} would need")
    if decisions.groups is None:
        raise ValueError(
            f"--groups {groups} needs to know who decided, and the table has no column {column!r}; "
            "name the right one with --group"
        )
