"""Hierarchical groups with correlated noise, from end to end."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.blocks import Block
from tests.support.interrupts import interrupt

MODES = ("bike", "bus", "car", "tram")
PEOPLE = tuple("abcdefghij")
EACH = 15
CORRELATED = rv.ChoiceModel(
    prior=rv.Normal(2.0), noise=rv.CorrelatedNoise(base="car"), groups=rv.Hierarchical(2.0)
)


def simulated(without: str | None = None) -> rv.Decisions:
    """Ten people who decide fifteen times each; the first is never offered `without`."""
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(np.array([[1.0, 0.7, 0.2], [0.7, 1.2, 0.3], [0.2, 0.3, 0.8]]))
    rows, start, chosen, actions = [], [0], [], []
    for i, value in enumerate(np.array([-1.0, 0.6]) + 0.5 * rng.standard_normal((10, 2))):
        for _ in range(EACH):
            features, noise = rng.standard_normal((4, 2)), np.zeros(4)
            noise[[0, 1, 3]] = root @ rng.standard_normal(3)
            shown = [k for k, mode in enumerate(MODES) if i > 0 or mode != without]
            rows.append(features[shown])
            start.append(start[-1] + len(shown))
            chosen.append(int(np.argmax((features @ value + noise)[shown])))
            actions += [MODES[k] for k in shown]
    return rv.Decisions(
        np.concatenate(rows),
        start,
        chosen,
        names=["price", "speed"],
        actions=actions,
        groups=np.repeat(PEOPLE, EACH),
        group_name="person",
    )


def quick(data: Any, model: rv.ChoiceModel = CORRELATED, **settings: Any) -> Any:
    """A short fit whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(data, model, **{"draws": 30, "warmup": 20, "chains": 2, **settings})


@pytest.fixture(scope="module")
def population() -> rv.HierarchicalPosterior:
    found: rv.HierarchicalPosterior = quick(simulated(), draws=400, warmup=100, seed=1)
    return found


def test_the_summary_has_the_population_and_its_noise(
    population: rv.HierarchicalPosterior,
) -> None:
    assert population.sampler == "hierarchical-gibbs"
    names = population.summary().names
    assert names[:4] == ("mean price", "mean speed", "sd price", "sd speed")
    assert names[4:] == (
        "var(bike)", "cov(bus, bike)", "var(bus)", "cov(tram, bike)", "cov(tram, bus)", "var(tram)",
    )  # fmt: skip
    covariance = population.draws["noise_covariance"]
    np.testing.assert_allclose(np.einsum("cdkk->cd", covariance), 3.0)
    np.testing.assert_array_equal(covariance, covariance.swapaxes(-1, -2))
    low, high = np.quantile(population.draws["population_mean"], [0.001, 0.999], axis=(0, 1))
    assert ((low < [-1.0, 0.6]) & (high > [-1.0, 0.6])).all()


def test_one_group_is_like_any_posterior(population: rv.HierarchicalPosterior) -> None:
    one = population.select(person="c")
    assert one.resolved_noise.non_base == ("bike", "bus", "tram")
    found, again = one.predict(one.decisions), population.predict(one.decisions)
    np.testing.assert_array_equal(found.probabilities, again.probabilities)
    mine = population.decisions.groups == "c"
    np.testing.assert_array_equal(
        one.log_likelihood(), population.log_likelihood()[:, :, np.flatnonzero(mine)]
    )
    for what in (one, population):
        with pytest.raises(ValueError, match="worked out for independent noise"):
            what.identification()


@pytest.mark.parametrize("method", ["average", "vote", "point"])
def test_a_new_group_is_predicted(population: rv.HierarchicalPosterior, method: str) -> None:
    d = population.decisions[:2]
    two = rv.Decisions(d.rows, d.start, names=d.names, actions=d.actions, groups=["a", "new"])
    found = population.predict(two, method, new_groups=["new"])
    np.testing.assert_allclose(np.add.reduceat(found.probabilities, d.start[:-1]), 1.0, atol=1e-3)


def test_groups_alone_are_on_the_reported_scale(population: rv.HierarchicalPosterior) -> None:
    """Many decisions by each: alone or not, with the noise they had, makes little difference."""
    found = population.shrinkage()
    distance = np.abs(found.unpooled.mean(axis=0) - found.centre)
    assert (distance < 2.5 * population.sd("population_mean")).all()


def test_a_group_that_never_saw_an_action_is_predicted_but_not_selected() -> None:
    for missing in ("bus", "car"):
        found = quick(simulated(missing), CORRELATED.replace(noise=rv.CorrelatedNoise()))
        assert found.resolved.noise.labels == MODES
        assert found.draws["noise_covariance"].shape == (2, 30, 3, 3)
        assert np.isfinite(found.loo().elpd)
        assert len(found.predict(found.decisions[:EACH]).probabilities) == 3 * EACH
        with pytest.raises(ValueError, match=f"group 'a' was never offered '{missing}'"):
            found.select(group="a")
        # others are measured against the same base, which is the first of all labels
        assert found.select(group="b").resolved_noise.non_base == MODES[1:]


def test_a_run_that_was_stopped_ends_with_the_same_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inferred = CORRELATED.replace(prior=rv.Normal(rv.HalfStudentT()))
    whole = quick(simulated(), inferred, seed=3, thin=2)
    file = tmp_path / "run.checkpoint"
    with monkeypatch.context() as patch:
        interrupt(patch, 0.02, share=0.6)
        stopped = quick(simulated(), inferred, seed=3, thin=2, checkpoint=file)
    assert not stopped.settings["complete"]
    again = quick(simulated(), inferred, seed=3, thin=2, checkpoint=file, resume=True)
    assert list(again.draws) == list(whole.draws)
    assert "prior_sd" in again.draws
    for name, draws in whole.draws.items():
        np.testing.assert_array_equal(again.draws[name], draws)


def test_blocks_that_sum_to_zero_do_so() -> None:
    rng = np.random.default_rng(2)
    d = rv.Decisions(
        rng.dirichlet(np.ones(4), 60),
        range(0, 61, 3),
        rng.integers(0, 3, 20),
        blocks=[Block("value", 4, True)],
        actions=["x", "y", "z"] * 20,
        groups=np.repeat(["ann", "ben"], 10),
    )
    found = quick(d, CORRELATED.replace(noise=rv.CorrelatedNoise(scale="first")))
    np.testing.assert_allclose(found.draws["value"].sum(axis=3), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.draws["population_covariance"].sum(axis=3), 0.0, atol=1e-7)
    np.testing.assert_allclose(found.draws["noise_covariance"][:, :, 0, 0], 1.0)


class Cluster:
    """As much of a Dask client as is looked at before a fit."""

    def submit(self) -> None:
        """Never called."""

    def nthreads(self) -> dict[str, int]:
        return {"worker": 1}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"executor": Cluster()}, '"hierarchical-gibbs" runs on this machine alone'),
        ({"init": np.zeros(2)}, '"hierarchical-gibbs" has no use for init'),
        ({"sampler": "da"}, 'the sampler "da" is for correlated noise, .*hierarchical-gibbs'),
        ({"sampler": "hierarchical"}, 'the sampler "hierarchical" is for hierarchical groups'),
    ],
)
def test_what_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        quick(simulated(), **settings)


def test_labels_of_actions_are_needed() -> None:
    d = simulated()
    with pytest.raises(ValueError, match="needs to know which action is which"):
        quick(rv.Decisions(d.rows, d.start, d.chosen, groups=d.groups))
