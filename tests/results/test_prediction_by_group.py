"""Posteriors of groups predict each decision by whoever makes it, with every method."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.decisions import Decisions


def decisions() -> Decisions:
    """Two people whose decisions alternate: "a" likes x, "v" does not."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(120, 2))
    people = np.tile(["a", "v"], 30)
    likes = np.repeat(np.where(people == "a", 2.0, -2.0), 2)
    utility = (likes * rows[:, 0] + rng.normal(size=120)).reshape(-1, 2)
    chosen = utility.argmax(axis=1)
    return rv.Decisions(rows, range(0, 121, 2), chosen, groups=people, names=["x", "y"])


@pytest.fixture(scope="module", params=[rv.Separate, rv.Hierarchical])
def posterior(request: pytest.FixtureRequest) -> Any:
    model = rv.ChoiceModel(prior=rv.Normal(3.0), groups=request.param())
    with pytest.warns(rv.NotConvergedWarning):
        return rv.fit(decisions(), model, draws=50, warmup=50)


@pytest.mark.parametrize("method", ["average", "vote", "point"])
def test_each_decision_is_predicted_by_its_group(posterior: Any, method: str) -> None:
    d = decisions()
    found = posterior.predict(d, method, seed=3)
    assert found.method == method
    own = np.flatnonzero(d.groups == "v")
    alone = rv.predict(posterior.select(group="v").values, d[own], method, seed=3)
    rows = np.concatenate([np.arange(*d.start[t : t + 2]) for t in own])
    np.testing.assert_array_equal(found.probabilities[rows], alone.probabilities)
    np.testing.assert_array_equal(found.log_probability_chosen[own], alone.log_probability_chosen)


def test_errors_are_those_of_each_group_and_their_scores_add_up(posterior: Any) -> None:
    """Chains stay apart, as batches of draws need it."""
    d = decisions()
    found = posterior.predict(d)
    parts = {}
    for label in ("a", "v"):
        parts[label] = posterior.select(group=label).predict(d[np.flatnonzero(d.groups == label)])
        rows = np.repeat(d.groups == label, d.sizes)
        np.testing.assert_allclose(
            found.standard_error[rows], parts[label].standard_error, rtol=1e-9, atol=1e-15
        )
    both = parts["a"].score_deviations + parts["v"].score_deviations
    np.testing.assert_allclose(found.score_deviations, both, rtol=1e-9, atol=1e-12)
    assert found.draws.max() == found.draws_available == 200


def test_unknown_method_is_refused(posterior: Any) -> None:
    with pytest.raises(ValueError, match="there is no method 'guess'"):
        posterior.predict(decisions(), "guess")


def test_other_coefficients_are_refused(posterior: Any) -> None:
    d = decisions()
    other = rv.Decisions(d.rows, d.start, d.chosen, groups=d.groups, names=["y", "x"])
    with pytest.raises(ValueError, match="coefficient 0 is 'x' in the posterior and 'y'"):
        posterior.predict(other)
