"""Models are made of parts: which fit together, which samplers take them, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.models.description import describe, from_description
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY
from tests.support.cases import two_states

LEARN = rv.Normal(rv.HalfStudentT())
PATHS = rv.Trajectories(([0, 1, 0], [0, 1]), 2, 2)
GROUPED = rv.Decisions(np.tile(np.eye(2), (4, 1)), range(0, 9, 2), [0, 1] * 2, groups=list("aabb"))


def test_every_part_has_a_default_and_can_be_replaced() -> None:
    model = rv.ChoiceModel()
    assert (model.prior, model.value_prior) == (None, rv.Normal(50.0))
    assert model.replace(groups=rv.Hierarchical()).value_prior == rv.Normal(10.0)
    assert model.noise == rv.NormalNoise()
    assert model.groups == rv.Pooled()
    assert model.transitions == rv.Known()
    other = model.replace(prior=rv.Flat(), noise=rv.CorrelatedNoise(base="b"))
    assert (other.prior, other.noise) == (rv.Flat(), rv.CorrelatedNoise(base="b"))
    assert other.groups is model.groups
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.prior = rv.Flat()  # type: ignore[misc]
    ranking = rv.RankingModel().replace(team_noise="player")
    assert (ranking.prior, ranking.team_noise) == (None, "player")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rv.ChoiceModel(prior=2.0), r"prior must be rv.Normal\(sd\) or rv.Flat\(\); it is"),  # type: ignore[arg-type]
        (lambda: rv.ChoiceModel(prior=rv.Flat), r"prior must be .*; it is <class"),  # type: ignore[arg-type]
        (lambda: rv.ChoiceModel(noise=None), r"noise must be rv.NormalNoise\(\) or rv.Corr"),  # type: ignore[arg-type]
        (lambda: rv.ChoiceModel(groups=rv.Separate), r"groups must be rv.Pooled\(\), rv.Separate"),  # type: ignore[arg-type]
        (lambda: rv.ChoiceModel(groups="person"), r"groups must be .*; it is 'person'"),  # type: ignore[arg-type]
        (lambda: rv.ChoiceModel(transitions=1.0), r"transitions must be rv.Known\(\) or rv.Diri"),  # type: ignore[arg-type]
        (lambda: rv.ChoiceModel().replace(prior="flat"), "prior must be"),
        (lambda: rv.Hierarchical(sd_scale=0.0), "scale of the groups' sds must be a positive"),
        (lambda: rv.Hierarchical(sd_scale="wide"), "scale of the groups' sds must be a positive"),  # type: ignore[arg-type]
        (lambda: rv.RankingModel(team_noise="team"), "team_noise must be one of entry, player"),
        (lambda: rv.RankingModel(prior=LEARN), r"must be rv.Normal\(sd\) with one number"),
    ],
)
def test_wrong_parts_are_refused_when_the_model_is_made(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (
            rv.ChoiceModel(),
            ("composite", "da", "px-scale", "px-translate", "px-both", "ibis", "laplace"),
        ),
        (
            rv.ChoiceModel(prior=rv.Flat()),
            ("composite", "da", "px-scale", "px-translate", "px-both", "laplace"),
        ),
        (
            rv.ChoiceModel(prior=LEARN, groups=rv.Separate()),
            ("composite", "da", "px-scale", "px-translate", "px-both", "ibis", "laplace"),
        ),
        (rv.ChoiceModel(noise=rv.CorrelatedNoise()), ("ghk-hmc", "da")),
        (
            rv.ChoiceModel(prior=rv.Flat(), noise=rv.CorrelatedNoise(), groups=rv.Separate()),
            ("ghk-hmc", "da"),
        ),
        (rv.ChoiceModel(groups=rv.Hierarchical()), ("hierarchical-hmc", "hierarchical")),
        (rv.ChoiceModel(transitions=rv.Dirichlet()), ("transitions-hmc",)),
        (
            rv.ChoiceModel(transitions=rv.Dirichlet(), groups=rv.Separate()),
            ("transitions-hmc",),
        ),
        (rv.RankingModel(), ("ranking-hmc",)),
        (rv.RankingModel(prior=rv.Flat()), ("ranking-hmc",)),
        (rv.ChoiceModel(prior=LEARN, noise=rv.CorrelatedNoise()), ("ghk-hmc",)),
        (
            rv.ChoiceModel(noise=rv.CorrelatedNoise(), groups=rv.Hierarchical()),
            ("hierarchical-gibbs",),
        ),
        (
            rv.ChoiceModel(prior=LEARN, noise=rv.CorrelatedNoise(), groups=rv.Hierarchical()),
            ("hierarchical-gibbs",),
        ),
        # combinations that no sampler takes
        (rv.ChoiceModel(prior=rv.Flat(), groups=rv.Hierarchical()), ()),
        (rv.ChoiceModel(groups=rv.Hierarchical(), transitions=rv.Dirichlet()), ()),
    ],
)
def test_samplers_for_a_model(model: Any, names: tuple[str, ...]) -> None:
    assert rv.samplers_for(model) == names
    for name in names:
        assert REGISTRY.find(name, kind_of(model)).name == name


def test_cluster_gets_a_sampler_that_can_use_it() -> None:
    """The default of hierarchical groups runs on one machine; the other one on many."""
    kind = kind_of(rv.ChoiceModel(groups=rv.Hierarchical()))
    assert REGISTRY.find("auto", kind).name == "hierarchical-hmc"
    assert REGISTRY.find("auto", kind, on_cluster=True).name == "hierarchical"
    alone = kind_of(rv.RankingModel())  # none can: the default, which refuses a client
    assert REGISTRY.find("auto", alone, on_cluster=True).name == "ranking-hmc"


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"prior": rv.Flat(), "groups": rv.Hierarchical()},
            "no sampler takes a flat prior and hierarchical groups together; "
            "give prior=rv.Normal(sd) or groups=rv.Separate()",
        ),
        (
            {"groups": rv.Hierarchical(), "transitions": rv.Dirichlet()},
            "no sampler takes unknown transitions and hierarchical groups together; "
            "give groups=rv.Separate() or transitions=rv.Known()",
        ),
        (
            {"prior": rv.Flat(), "groups": rv.Hierarchical(), "noise": rv.CorrelatedNoise()},
            "no sampler takes a flat prior, correlated noise and hierarchical groups together; "
            "give prior=rv.Normal(sd) or groups=rv.Separate()",
        ),
    ],
)
def test_combinations_without_a_sampler_say_which_part_to_change(
    parts: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        rv.fit(GROUPED, rv.ChoiceModel(**parts))
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("data", "model", "sentence"),
    [
        (two_states(), rv.Normal(1.0), r"model must be rv.ChoiceModel\(...\) or rv.RankingModel"),
        (two_states(), rv.ChoiceModel, r"model must be rv.ChoiceModel\(...\)"),
        (two_states(), rv.RankingModel(), "a RankingModel is fitted to Rankings; .* are Decisions"),
        (PATHS, rv.RankingModel(), "a RankingModel is fitted to Rankings; .* are Trajectories"),
        (PATHS, rv.ChoiceModel(), "a ChoiceModel is fitted to Decisions; .* are Trajectories"),
        (
            two_states(),
            rv.ChoiceModel(transitions=rv.Dirichlet()),
            "Dirichlet transitions are inferred from rv.Trajectories, and these data are Decisions",
        ),
        (
            rv.Rankings.from_lists([["a", "b"]]),
            rv.ChoiceModel(),
            "a ChoiceModel is fitted to Decisions; .* these data are Rankings",
        ),
        (3, None, "a ChoiceModel is fitted to Decisions; .* these data are int"),
        (3, rv.RankingModel(), "a RankingModel is fitted to Rankings; .* these data are int"),
        (two_states(), rv.ChoiceModel(groups=rv.Separate()), "do not say who decided"),
        (
            PATHS,
            rv.ChoiceModel(groups=rv.Separate(), transitions=rv.Dirichlet()),
            "the trajectories do not say whose they are: give groups=",
        ),
    ],
)
def test_data_of_another_model_are_refused(data: Any, model: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        rv.fit(data, model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"executor": 0}, "executor must be a whole number, at least 1; it is 0"),
        (
            {"executor": 1.5},
            "executor must be a number of threads or a dask.distributed.Client, not",
        ),
        ({"executor": True}, "executor must be a number of threads .*, not bool"),
        ({"executor": "all"}, "executor must be a number of threads .*, not str"),
        ({"sampler": "laplace", "thin": 2}, 'the sampler "laplace" has no use for thin'),
        ({"sampler": "laplace", "init": [0.0, 0.0]}, 'the sampler "laplace" has no use for init'),
        ({"sampler": "ghk-hmc"}, 'the sampler "ghk-hmc" is for correlated noise'),
        ({"sampler": "hierarchical"}, 'the sampler "hierarchical" is for hierarchical groups'),
        ({"sampler": "ranking-hmc"}, 'the sampler "ranking-hmc" is for rankings'),
    ],
)
def test_arguments_that_nobody_would_use_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        rv.fit(two_states(), **given)
    assert "\n" not in str(caught.value)


def test_everything_after_the_model_has_a_name() -> None:
    with pytest.raises(TypeError):
        rv.fit(two_states(), rv.ChoiceModel(), "da")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "model",
    [
        rv.ChoiceModel(),
        rv.ChoiceModel(prior=rv.Flat(sum_to_zero=True), groups=rv.Separate()),
        rv.ChoiceModel(prior=rv.Normal({"a": 1.0, "b": 2.0}), groups=rv.Hierarchical(2.0)),
        rv.ChoiceModel(prior=LEARN),
        rv.ChoiceModel(noise=rv.CorrelatedNoise(base="b", scale="first", df=5.0)),
        rv.ChoiceModel(transitions=rv.Dirichlet(2.0, action_rewards=True)),
        rv.RankingModel(prior=rv.Normal(2.0), team_noise="player"),
    ],
)
def test_a_model_is_its_description(model: Any) -> None:
    again = from_description(describe(model))
    assert type(again) is type(model)
    for field in dataclasses.fields(model):
        one, other = getattr(again, field.name), getattr(model, field.name)
        assert describe(one) == describe(other)


def test_resolving_names_every_parameter() -> None:
    def names(model: rv.ChoiceModel, data: Any = GROUPED) -> dict[str, tuple[str, ...]]:
        return {p.name: p.dims for p in model.resolve(data).parameters}

    assert names(rv.ChoiceModel()) == {"value": ("coefficient",)}
    assert names(rv.ChoiceModel(prior=LEARN)) == {"value": ("coefficient",), "prior_sd": ()}
    assert names(rv.ChoiceModel(prior=LEARN, groups=rv.Separate())) == {
        "value": ("group", "coefficient"),
        "prior_sd": ("group",),
    }
    assert list(names(rv.ChoiceModel(groups=rv.Hierarchical()))) == [
        "population_mean",
        "population_covariance",
        "value",
    ]
    unknown = rv.ChoiceModel(transitions=rv.Dirichlet()).resolve(PATHS).parameters[1]
    assert (unknown.name, unknown.shape) == ("transition", (8,))
    assert unknown.coords["cell"][:3] == ("p(0 | 0, 0)", "p(1 | 0, 0)", "p(0 | 0, 1)")
