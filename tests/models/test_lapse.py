"""Lapses: the map from coordinate to rate, probabilities and their derivatives, refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.models.lapse import log_odds_and_slopes, rates_of
from revealed.models.likelihood import derivatives, weighted_derivatives
from revealed.samplers.chunk_likelihood import prepare, values_and_gradients
from revealed.samplers.composite.state import unpack_transform
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments
from tests.support.logistic_noise import LogisticNoise

LAPSE = rv.Lapse(rv.Beta(2.0, 8.0))


@dataclass(frozen=True, repr=False)
class LapsingLogistic(LogisticNoise):
    """A noise that the package does not have, with lapses."""

    lapse: rv.Lapse | None = None


NOISES = {
    "normal": rv.NormalNoise(lapse=LAPSE),
    "logit": rv.LogitNoise(lapse=LAPSE),
    "another": LapsingLogistic(lapse=LAPSE),
}


def decisions(sparse: bool = False) -> rv.Decisions:
    """Ragged decisions with equal rows, equal decisions, and one with a single action."""
    rng = np.random.default_rng(3)
    sizes = np.append(rng.integers(2, 6, 30), 1)
    rows = np.round(rng.standard_normal((sizes.sum(), 2)), 1)
    start = np.append(0, np.cumsum(sizes))
    rows[1] = rows[0]
    d = rv.Decisions(rows, start, rng.integers(0, sizes))
    both = d + d[:7]
    if not sparse:
        return both
    return rv.Decisions(sp.csr_array(both.rows), both.start, both.chosen)


# The rate and its coordinate


@pytest.mark.parametrize("prior", [(1.0, 9.0), (2.0, 8.0), (1.0, 1.0), (0.5, 0.5), (40.0, 3.0)])
def test_a_standard_normal_coordinate_gives_the_rate_its_beta_prior(
    prior: tuple[float, float],
) -> None:
    table = rv.Lapse(rv.Beta(*prior)).table
    z = np.linspace(-5.0, 5.0, 997)
    rate = rates_of(table, z)
    law = st.beta(*prior)
    # the quantile of the normal, from the side on which it is small
    found = np.where(z < 0.0, st.norm.ppf(law.cdf(rate)), st.norm.isf(law.sf(rate)))
    # beyond, one minus the rate has too few digits for scipy to look at
    seen = (rate > 1e-13) & (rate < 1.0 - 1e-9)
    np.testing.assert_allclose(found[seen], z[seen], rtol=0, atol=2e-5)
    # another prior is seen to be one
    assert np.abs(st.norm.ppf(st.beta(3.0, 8.0).cdf(rate)) - z)[seen].max() > 0.1


def test_log_odds_have_the_slopes_that_are_said() -> None:
    table = LAPSE.table
    # also between nodes, at the ends, and beyond
    for z in (-12.0, -8.97, -3.21, 0.0, 0.03, 1.0, 8.99, 11.0):
        value, first, second = log_odds_and_slopes(table, z)
        step = 1e-5
        high, low = (log_odds_and_slopes(table, z + h) for h in (step, -step))
        assert (high[0] - low[0]) / (2 * step) == pytest.approx(first, rel=1e-7)
        if abs(z) < 8.5 and abs(16 * z - round(16 * z)) > 1e-3:
            assert (high[1] - low[1]) / (2 * step) == pytest.approx(second, rel=1e-4, abs=1e-6)
        assert rates_of(table, np.array([z]))[0] == pytest.approx(1 / (1 + np.exp(-value)))


# Probabilities


@pytest.mark.parametrize("name", NOISES)
def test_probabilities_of_all_actions_add_to_one(name: str) -> None:
    d, v = decisions(), np.array([[2.0, -1.0], [30.0, 20.0]])
    noise: Any = NOISES[name]
    known = rv.KnownLapse(noise, np.array([0.3, 0.05]))
    found = rv.choice_probabilities(d, v, known)
    np.testing.assert_allclose(np.add.reduceat(found, d.start[:-1], axis=1), 1.0, rtol=1e-12)
    without = rv.choice_probabilities(d, v, replace(noise, lapse=None))
    sizes = np.repeat(d.sizes, d.sizes)
    exact = (1 - known.rate[:, None]) * without + known.rate[:, None] / sizes
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    logs = rv.log_likelihood(d, v, known)
    np.testing.assert_allclose(np.exp(logs), exact[:, d.chosen_row], rtol=1e-6)
    # where a lapse is added that is not one of the actions, they do not
    wrong = (1 - known.rate[:, None]) * without + known.rate[:, None]
    sums = np.add.reduceat(wrong, d.start[:-1], axis=1)
    assert not np.allclose(sums, 1.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", NOISES)
def test_kernels_have_the_sum_of_the_definition_and_its_slopes(name: str, sparse: bool) -> None:
    noise: Any = NOISES[name]
    resolved = rv.ChoiceModel(prior=rv.Normal(2.0), noise=noise).resolve(decisions(sparse))
    d, kernel = resolved.sampled_decisions, resolved.kernel
    weight = np.random.default_rng(4).integers(1, 4, len(d)).astype(float)
    x = np.array([0.7, -0.4, 0.3])

    def exact(at: Floats) -> float:
        known = rv.KnownLapse(noise, rates_of(LAPSE.table, at[2:])[0])
        return float(weight @ rv.log_likelihood(decisions(), at[:2], known))

    found = values_and_gradients(prepare(d, weight), x[None], kernel)[0]
    # normal noise is integrated on a lattice in kernels
    close = 1e-4 if name == "normal" else 1e-10
    assert found[0] == pytest.approx(exact(x), abs=close)
    gradient, information = weighted_derivatives(d, x, weight, kernel)
    np.testing.assert_allclose(found[1:], gradient, rtol=1e-5, atol=close)
    steps = 1e-4 * np.eye(3)
    numeric = [(exact(x + s) - exact(x - s)) / 2e-4 for s in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)
    curved = [
        -(
            weighted_derivatives(d, x + s, weight, kernel)[0]
            - weighted_derivatives(d, x - s, weight, kernel)[0]
        )
        / 2e-4
        for s in steps
    ]
    np.testing.assert_allclose(information, curved, rtol=1e-3, atol=1e-3)


def test_derivatives_at_a_known_rate() -> None:
    d, v = decisions(), np.array([0.7, -0.4])
    noise = rv.KnownLapse(rv.LogitNoise(), 0.2)
    value, gradient, hessian = derivatives(d, v, noise)
    assert value == pytest.approx(rv.log_likelihood(d, v, noise).sum())
    steps = 1e-5 * np.eye(2)
    numeric = [
        (rv.log_likelihood(d, v + s, noise).sum() - rv.log_likelihood(d, v - s, noise).sum()) / 2e-5
        for s in steps
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)
    curved = [
        (derivatives(d, v + s, noise)[1] - derivatives(d, v - s, noise)[1]) / 2e-5 for s in steps
    ]
    np.testing.assert_allclose(hessian, curved, rtol=1e-6)


# Posteriors


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Choices of the better of three, five of sixty at random."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((180, 2))
    chosen = (rows @ [3.0, -2.0] + rng.gumbel(size=180)).reshape(60, 3).argmax(axis=1)
    worst = (rows @ [3.0, -2.0]).reshape(60, 3).argmin(axis=1)
    chosen[10:13] = worst[10:13]
    d = rv.Decisions(rows, 3 * np.arange(61), chosen, names=["a", "b"])
    model = rv.ChoiceModel(prior=rv.Normal(5.0), noise=rv.LogitNoise(lapse=LAPSE))
    return rv.fit(d, model, seed=1, progress=False)


def test_each_choice_has_its_probability_of_a_lapse(fitted: Any) -> None:
    d, rate = fitted.decisions, fitted.stacked("lapse")
    p = rv.choice_probabilities(d, fitted.values, rv.LogitNoise())[:, d.chosen_row]
    blind = rate[:, None] / 3.0
    exact = (blind / ((1 - rate[:, None]) * p + blind)).mean(axis=0)
    found = fitted.lapses()
    np.testing.assert_allclose(found.probability, exact, rtol=1e-10)
    assert set(found.likeliest(3)) == {10, 11, 12}
    assert found.rate == pytest.approx(rate.mean())
    assert found.to_dataframe()["lapse"].to_list() == found.probability.tolist()
    assert repr(found).startswith("<Lapses: ")


def test_everything_a_posterior_has(fitted: Any, tmp_path: Path) -> None:
    d = fitted.decisions
    assert fitted.columns().names == ("a", "b", "(lapse)")
    # the mean over draws of what each says
    known = rv.KnownLapse(rv.LogitNoise(), fitted.stacked("lapse"))
    exact = rv.choice_probabilities(d, fitted.values, known).mean(axis=0)
    np.testing.assert_allclose(fitted.predict(d, draws="all").probabilities, exact, rtol=1e-9)
    voted = fitted.predict(d, "vote")
    assert (np.abs(voted.probabilities - exact) < 6 * voted.standard_error + 1e-3).all()
    point = fitted.predict(d, "point").probabilities
    at_mean = rv.KnownLapse(rv.LogitNoise(), fitted.draws["lapse"].mean())
    np.testing.assert_allclose(point, rv.choice_probabilities(d, fitted.mean(), at_mean), rtol=1e-6)
    assert np.isfinite(fitted.loo().elpd)
    assert "informs" in str(fitted.identification()) or "inform" in str(fitted.identification())
    fitted.save(tmp_path / "lapse.nc")
    again = rv.load(tmp_path / "lapse.nc")
    np.testing.assert_array_equal(again.draws["lapse"], fitted.draws["lapse"])
    assert again.model.noise.lapse == LAPSE
    fitted.report(tmp_path / "lapse.html")
    page = (tmp_path / "lapse.html").read_text(encoding="utf-8")
    assert "most probably lapses" in page
    assert "Beta(2, 8)" in page
    assert "Gumbel noise (the logit model)" in page
    assert "unless the choice is a lapse" in page
    assert "inferred from choices, and with it how often it chooses blindly." in page
    assert rv.plots.lapse_probabilities(fitted).axes


def test_separate_groups_have_lapses_of_their_own(fitted: Any, tmp_path: Path) -> None:
    d = fitted.decisions
    who = np.where(np.arange(len(d)) % 2, "ann", "ben")
    both = rv.Decisions(d.rows, d.start, d.chosen, names=d.names, groups=who)
    model = fitted.model.replace(groups=rv.Separate())
    post = rv.fit(both, model, draws=1000, seed=1, progress=False)
    found = post.lapses()
    for label in ("ann", "ben"):
        own = post.select(group=label).lapses()
        np.testing.assert_array_equal(found.probability[who == label], own.probability)
    assert rv.plots.lapse_probabilities(post).axes
    post.report(tmp_path / "groups.html")
    assert "most probably lapses" in (tmp_path / "groups.html").read_text(encoding="utf-8")
    plain = model.replace(noise=rv.LogitNoise())
    with pytest.raises(ValueError, match="this model has no lapses"):
        rv.fit(both, plain, draws=500, progress=False).lapses()


def test_chains_start_at_rates_of_the_prior(fitted: Any) -> None:
    entry = REGISTRY.find("composite", kind_of(fitted.model))
    assert entry.build is not None
    sampler: Any = entry.build(fitted.model.resolve(fitted.decisions), BuildArguments({}, 10))
    begun = [sampler.init(np.random.default_rng(seed), None) for seed in range(40)]
    z = np.array([unpack_transform(state).value(state["x"])[-1] for state in begun])
    # the spread of the prior, not that of the posterior
    assert 0.6 < z.std() < 1.5
    posterior = st.norm.ppf(st.beta(2, 8).cdf(fitted.stacked("lapse"))).std()
    assert posterior < 0.8 * z.std()


# Refusals


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    d = decisions()
    noise = rv.LogitNoise(lapse=rv.Lapse())
    with pytest.raises(ValueError, match="a flat prior is always improper: any choice may have"):
        rv.ChoiceModel(prior=rv.Flat(), noise=noise)
    habit = rv.StudentNoise(lapse=rv.Lapse(to="habit"))
    with pytest.raises(ValueError, match=r"give prior=rv\.Normal\(sd\) or .*to=\"uniform\""):
        rv.fit(
            rv.Decisions(d.rows, d.start, d.chosen, actions=np.arange(len(d.rows)) % 2),
            rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT()), noise=habit),
        )
    with pytest.raises(ValueError, match="rate of lapses is not known here"):
        rv.log_likelihood(d, [1.0, 0.0], noise)
    with pytest.raises(ValueError, match=r"lapse must be rv\.Lapse\(\) or None"):
        rv.NormalNoise(lapse=rv.Lapse)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the prior of a lapse rate must be rv\.Beta"):
        rv.Lapse(0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"from 0\.1 to 10,000"):
        rv.Beta(0.0, 1.0)
    with pytest.raises(ValueError, match="is a probability"):
        rv.KnownLapse(rv.NormalNoise(), 1.2)
    plain = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)), draws=100, progress=False)
    with pytest.raises(ValueError, match="this model has no lapses"):
        plain.lapses()
