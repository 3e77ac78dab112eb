"""The mode of a posterior of very many decisions, by Newton's method, one pass a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as sla

from revealed.data.chunks import ChunkedDecisions
from revealed.kernels.noise import AnyNoise
from revealed.models.likelihood import at_likely_scale, posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.models.propriety import refuse_flat_prior
from revealed.samplers.chunk_likelihood import prepare
from revealed.samplers.laplace_settings import LAPLACE
from revealed.samplers.laplace_state import LaplaceState, Phase


class NotCertified(ValueError):
    """The approximation does not fit this posterior.

    The message says why.
    """


def initial_state(
    chunks: ChunkedDecisions, resolved_prior: ResolvedPrior, noise: AnyNoise
) -> LaplaceState:
    """The state at the mode of the first decisions.

    Where the sd of the prior is to be inferred, it is taken at a likely value meanwhile.
    """
    refuse_flat_prior(resolved_prior, noise)
    # the first chunk stands for all: only the beginning depends on it
    decisions, weights = chunks.load(0)
    v, prior = None, resolved_prior
    for count in LAPLACE.initial_decisions:
        block = prepare(decisions[:count], weights[:count])[0]
        args = block.rivals.weight, noise
        if v is None:
            prior = at_likely_scale(block.unique, resolved_prior, *args)
            # a few decisions may leave directions open, in which a flat prior has no mode
            precision = prior.precision
            if prior.flat:
                precision = LAPLACE.initial_precision * np.eye(len(prior.precision))
            proper = replace(prior, flat=False, precision=precision)
        v, _ = posterior_mode(block.unique, proper, *args, v, LAPLACE.newton_tolerance)
        if count >= len(decisions):
            break
    assert v is not None
    return LaplaceState(
        phase=Phase.NEWTON,
        v=v,
        previous=v,
        precision=prior.precision,
        total=np.zeros((len(v) + 1, len(v) + 1)),
    )


def newton_step(resolved_prior: ResolvedPrior, state: LaplaceState) -> tuple[LaplaceState, bool]:
    """The next step of Newton's method, or half of the last one where it went too far.

    In the free coordinates q of v = mean + basis q, with log posterior

        h(q) = log p(choices | v) - q' P q / 2

    the step solves (information + P) s = gradient. Also returns whether it was the last; then the
    state has the mode, a root of the covariance there, and the exact slope at the last v.
    """
    basis = resolved_prior.basis
    # log posterior, gradient and information in the free coordinates
    q = (state.v - resolved_prior.mean) @ basis
    prior_grad = state.precision @ q
    height = float(state.total[0, 0] - 0.5 * q @ prior_grad)
    gradient = basis.T @ state.total[0, 1:] - prior_grad
    information = basis.T @ state.total[1:, 1:] @ basis + state.precision
    new = replace(state, total=np.zeros_like(state.total), chunks_done=0, passes=state.passes + 1)
    if new.passes > LAPLACE.max_newton_steps:
        raise NotCertified(f"the mode was not found in {LAPLACE.max_newton_steps} passes")
    # lower than before, beyond rounding: the step was too long
    if height < state.best - 1e-6 * abs(height):
        return replace(new, v=0.5 * (state.v + state.previous)), False
    # features of scales far apart cost a Cholesky factor no digits, so that they are brought to one
    # first, by powers of two; beyond, half of the digits of the inverse are rounding
    diagonal = np.diag(information)
    scale = np.exp2(np.round(-0.5 * np.log2(np.where(diagonal > 0.0, diagonal, 1.0))))
    scaled = information * np.outer(scale, scale)
    if not np.linalg.cond(scaled) < 1e14:
        raise NotCertified("the curvature of the posterior is lost to rounding at its mode")
    # Newton's step, from the Cholesky factor of the information
    try:
        step = sla.cho_solve(sla.cho_factor(information), gradient)
    except sla.LinAlgError:
        raise NotCertified(
            "some direction of the coefficients is informed by no decision and not by the prior"
        ) from None
    # the gain that a step promises is half of this: close enough, the weights correct the rest
    if gradient @ step < LAPLACE.newton_tolerance:
        root = scale[:, None] * np.linalg.cholesky(sla.inv(scaled))
        slope = state.total[0, 1:]
        return replace(new, slope=slope, centre=q + step, root=root), True
    return replace(new, best=height, previous=state.v, v=state.v + basis @ step), False
