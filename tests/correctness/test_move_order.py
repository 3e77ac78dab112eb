"""Asymptotic variances fall from DA to proper PX-DA to Haar PX-DA: section 3 of the paper."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.support.cases import build_sampler, choose, mdp_offers

BATCHES, LENGTH = 400, 4000


def log_variance(name: str, options: AugmentationOptions, seed: int) -> tuple[Floats, float]:
    """Log asymptotic variance of each value's mean by batch means, and its standard error."""
    offers = mdp_offers(3, 2, 6, seed=3)
    truth = np.array([2.0, -3.0, 1.0])
    decisions = offers.with_choices(choose(np.random.default_rng(19), offers, truth)[0])
    sampler = build_sampler((name, options), decisions, rv.Normal(10.0))
    chain = np.random.default_rng(seed)
    state = sampler.init(chain, truth)
    state, _, _ = sampler.sample(chain, state, 1, 5_000)
    _, draws, _ = sampler.sample(chain, state, BATCHES * LENGTH, 1)
    means = draws["value"].reshape(BATCHES, LENGTH, -1).mean(axis=1)
    return np.log(means.var(axis=0, ddof=1)), float(np.sqrt(2.0 / (BATCHES - 1)))


@pytest.mark.parametrize(("proper", "haar"), [("px-scale", "px-scale"), ("px-both", "px-both")])
def test_variances_fall_from_da_to_proper_to_haar(proper: str, haar: str) -> None:
    """No reversal beyond Monte-Carlo error (false alarm 1e-6), and DA is clearly the slowest."""
    da, error = log_variance("da", AugmentationOptions(), seed=1)
    middle, _ = log_variance(proper, AugmentationOptions(a=3.0, b=3.0), seed=2)
    best, _ = log_variance(haar, AugmentationOptions(), seed=3)
    allowed = st.norm.isf(1e-6 / 6) * error * np.sqrt(2)
    assert (middle - da < allowed).all()
    assert (best - middle < allowed).all()
    assert (da - best > allowed).any()
