"""Asymptotic variances are ordered as the theory says (paper, section 3): DA >= proper PX-DA >= Haar PX-DA."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import understudy as us
from problems import build, choose, mdp_offers
from understudy._arrays import Floats
from understudy.engines.augmented import Options

BATCHES, LENGTH = 400, 4000


def log_variance(name: str, options: Options, seed: int) -> tuple[Floats, float]:
    """Log asymptotic variance of each value's mean by batch means, and the standard error of that log."""
    offers = mdp_offers(3, 2, 6, seed=3)
    truth = np.array([2.0, -3.0, 1.0])
    decisions = offers.with_choices(choose(np.random.default_rng(19), offers, truth)[0])
    engine = build((name, options), decisions, us.Gaussian(100.0))
    chain = np.random.default_rng(seed)
    state = engine.start(chain, truth)
    state, _, _ = engine.advance(chain, state, 1, 5_000)
    _, draws, _ = engine.advance(chain, state, BATCHES * LENGTH, 1)
    means = draws.reshape(BATCHES, LENGTH, -1).mean(axis=1)
    return np.log(means.var(axis=0, ddof=1)), float(np.sqrt(2.0 / (BATCHES - 1)))


@pytest.mark.parametrize(("proper", "haar"), [("px-scale", "px-scale"), ("px-both", "px-both")])
def test_da_then_proper_then_haar(proper: str, haar: str) -> None:
    """No reversal beyond Monte-Carlo error (false alarm 1e-6), and DA is clearly the slowest."""
    da, error = log_variance("da", Options(), seed=1)
    middle, _ = log_variance(proper, Options(a=3.0, b=3.0), seed=2)
    best, _ = log_variance(haar, Options(), seed=3)
    allowed = st.norm.isf(1e-6 / 6) * error * np.sqrt(2)
    assert (middle - da < allowed).all()
    assert (best - middle < allowed).all()
    assert (da - best > allowed).any()
