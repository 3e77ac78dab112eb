"""The samplers that speed is compared with have the same posterior as ours: a comparison is fair only then."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import resolve_prior
from revealed.results.diagnostics import mcse_mean, mcse_sd, standard_deviation
from tests.support.cases import choose, mdp_offers, ragged_offers

ROOT = Path(__file__).parents[2]
PRIOR = rv.Normal(0.5**0.5)  # narrow, so that a wrong prior shows
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def peers() -> Any:
    """benchmarks/_peers.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module("benchmarks._peers")


def decided(offers: Decisions, seed: int) -> Decisions:
    """The offers with the choices of a controller whose value is drawn from a narrow prior."""
    rng = np.random.default_rng(seed)
    chosen, _ = choose(rng, offers, rng.standard_normal(len(offers.names)))
    return Decisions(offers.rows, offers.start, chosen, blocks=offers.blocks)


def needs(peer: str) -> None:
    if importlib.util.find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed; scripts/bench installs it")


def assert_same_moments(some: Floats, others: Floats) -> None:
    """Means and sds of two sets of (chain, draw, K) draws agree within the Monte-Carlo errors of both."""
    pairs = [
        ((some.mean(axis=(0, 1)), mcse_mean(some)), (others.mean(axis=(0, 1)), mcse_mean(others))),
        ((standard_deviation(some), mcse_sd(some)), (standard_deviation(others), mcse_sd(others))),
    ]
    for (a, error_a), (b, error_b) in pairs:
        z = (a - b) / np.hypot(error_a, error_b)
        assert np.abs(z).max() < st.norm.isf(FALSE_ALARM / 2), (
            f"{a} and {b} differ by {z} standard errors"
        )


def test_numpyro_has_our_log_posterior(peers: Any) -> None:
    needs("numpyro")
    import jax
    from numpyro.infer.util import log_density

    jax.config.update("jax_enable_x64", True)
    decisions = decided(ragged_offers(3, 40, 4), 5)
    resolved_prior = resolve_prior(PRIOR, decisions)
    model, target = (
        peers._numpyro_model(decisions, resolved_prior),
        peers.log_posterior_of(decisions, resolved_prior),
    )
    mode, information = posterior_mode(
        decisions, resolved_prior
    )  # 21 nodes are meant for where the posterior is
    points = resolved_prior.basis.T @ (mode - resolved_prior.mean) + np.random.default_rng(
        6
    ).multivariate_normal(np.zeros(3), np.linalg.inv(information), size=4)
    theirs = [float(log_density(model, (), {}, {"q": q})[0]) for q in points]
    work = peers.make_posterior_workspace(target)
    ours = [peers.log_posterior(target, work, q, -np.inf, np.empty(0)) for q in points]
    np.testing.assert_allclose(np.diff(theirs), np.diff(ours), atol=1e-3)


@pytest.mark.parametrize("peer", ["nutpie", "numpyro"])
def test_same_posterior(peers: Any, peer: str) -> None:
    needs(peer)
    decisions = decided(mdp_offers(4, 3, 30, 7), 8)
    made = getattr(peers, f"{peer}_draws")(decisions, resolve_prior(PRIOR, decisions), 2000, 400, 9)
    assert made.draws.shape == (2000, 4)
    assert 0.0 < made.sampling < made.total
    assert_same_moments(
        made.draws[None],
        rv.fit(decisions, rv.ChoiceModel(prior=PRIOR), draws=2000, progress=False).draws["value"],
    )


@pytest.mark.parametrize("peer", ["nutpie", "numpyro"])
def test_stops_in_time(peers: Any, peer: str) -> None:
    needs(peer)
    decisions = decided(mdp_offers(4, 3, 30, 7), 8)
    made = getattr(peers, f"{peer}_draws")(
        decisions, resolve_prior(PRIOR, decisions), 10_000_000, 100, 9, seconds=0.2
    )
    assert 0 < len(made.draws) < 1_000_000
    assert made.sampling >= 0.2


def test_priors_numpyro_is_not_written_for(peers: Any) -> None:
    needs("numpyro")
    decisions = decided(ragged_offers(3, 40, 4), 5)
    with pytest.raises(ValueError, match="independent coordinates"):
        peers.numpyro_draws(
            decisions, resolve_prior(rv.Normal(covariance=np.eye(3) + 0.5), decisions), 100, 100, 1
        )
