"""General-purpose samplers on the same posterior: what a user would reach for instead.

nutpie's NUTS runs on our own collapsed log posterior, compiled: value, gradient, design and prior
are one call from its compiled loop into ours, so that it pays for nothing but the mathematics.
NumPyro's NUTS runs on the likelihood as its users would write it: choice sets padded and masked,
and a Gauss-Hermite rule for

    P(chosen) = E[ product over rivals j of Phi(z - gap_j) ],   z ~ N(0, 1),
    gap_j = mu_j - mu_chosen

Both use their default settings and one chain, start at the posterior mode, and move q of
v = mean + basis @ q.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate
from revealed.kernels.choice_fast import ChoiceWorkspace
from revealed.kernels.log_posterior import (
    LogPosterior,
    PosteriorWorkspace,
    log_posterior,
    make_posterior_workspace,
)
from revealed.kernels.noise import NORMAL, NoiseArguments, NoiseType
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.samplers.composite.transform import WhiteningTransform, log_posterior_in_coordinates

NODES = 21
"""Of NumPyro's Gauss-Hermite rule. On the toy, Tetris-like rows and a 5 x 5 grid its log posterior
errs with sd 5e-4 at most; fewer nodes err more, and more take longer."""
CHUNK = 50
"""Draws that NumPyro makes before the clock is read again."""
POLL_SECONDS = 0.01
"""Seconds between two looks at nutpie's progress."""
COUNT, WARMUP, FIRST, LAST = range(4)
"""Positions in the stop-watch: draws so far, warm-up, the time when that ended, the latest time."""


class Sampled(NamedTuple):
    """(n, K) draws, the seconds spent on them after warm-up, and the seconds of the whole call.

    compiling: the seconds of processor time of the whole call that went into machine code.
    """

    draws: Floats
    sampling: float
    total: float
    compiling: float = 0.0


def log_posterior_of(
    decisions: Decisions, resolved_prior: ResolvedPrior, noise: NoiseArguments = NORMAL
) -> LogPosterior:
    """The posterior to sample, counted as the default sampler counts it, in the coordinates q."""
    return log_posterior_in_coordinates(
        deduplicate(decisions),
        resolved_prior,
        resolved_prior,
        WhiteningTransform.linear(
            resolved_prior.mean, resolved_prior.basis, resolved_prior.basis.T
        ),
        noise,
    )


def nutpie_draws(
    decisions: Decisions,
    resolved_prior: ResolvedPrior,
    draws: int,
    warmup: int,
    seed: int,
    seconds: float = math.inf,
    noise: NoiseArguments = NORMAL,
) -> Sampled:
    """nutpie's NUTS; at most `draws`, and none begun after `seconds` of sampling.

    A stop-watch in the function that nutpie calls once for every draw reads the time at the last
    draw of the warm-up and at each one after it, so sampling is timed by itself, without nutpie's
    start and the conversion of its draws.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces 1.0 once a day
        import nutpie

    began = time.perf_counter()
    target = log_posterior_of(decisions, resolved_prior, noise)
    watch = np.zeros(4 + _workspace_ends(target)[-1])
    watch[WARMUP] = warmup
    start, compile_began = _start(decisions, resolved_prior), time.process_time()
    model = _nutpie_model(target, start, watch)
    compiling = time.process_time() - compile_began
    sampler = nutpie.sample(
        model,
        draws=draws,
        tune=warmup,
        chains=1,
        cores=1,
        seed=seed,
        progress_bar=False,
        blocking=False,
    )
    trace = None
    while trace is None:
        try:
            trace = sampler.wait(timeout=POLL_SECONDS)
        except TimeoutError:
            if watch[COUNT] > warmup and watch[LAST] - watch[FIRST] > seconds:
                trace = sampler.abort()
    q = np.asarray(trace.posterior["q"])[0]
    took = (watch[LAST] - watch[FIRST]) * len(q) / (watch[COUNT] - warmup)
    return Sampled(
        resolved_prior.mean + q @ resolved_prior.basis.T,
        float(took),
        time.perf_counter() - began,
        compiling,
    )


def _nutpie_model(target: LogPosterior, start: Floats, watch: Floats) -> Any:
    """The posterior in nutpie's class for models that PyMC compiles with numba.

    Fields that only PyMC needs stay empty.
    """
    from nutpie.compile_pymc import CompiledPyMCModel

    free = len(start)
    known = {
        "dims": {},
        "compiled_logp_func": _density(target),
        "compiled_expand_func": _stop_watch(),
        "initial_point_func": lambda seed: start,
        "user_data": watch,
        "n_expanded": free,
        "shape_info": (["q"], [slice(0, free)], [(free,)]),
        "_n_dim": free,
        "_shapes": {"q": (free,)},
        "_coords": {},
    }
    return CompiledPyMCModel(
        **{field.name: known.get(field.name) for field in fields(CompiledPyMCModel)}
    )


def _workspace_ends(target: LogPosterior) -> list[int]:
    """Where each part of the workspace ends, in doubles; it follows the stop-watch in the array."""
    work = make_posterior_workspace(target)
    parts: list[Any] = [*work[:-1], *work.choice]
    return [0, *np.cumsum([-(-part.nbytes // 8) for part in parts]).tolist()]


def _density(target: LogPosterior) -> Any:
    """The log posterior as a C function in the form nutpie calls; the target is compiled in."""
    import numba
    from numba import types
    from numba.core.imputils import lower_constant

    # a tag of a noise has no contents, as a constant too
    lower_constant(NoiseType)(lambda context, *rest: context.get_dummy_value())

    numbers = types.CPointer(types.double)
    ends = tuple(4 + end for end in _workspace_ends(target))
    size = ends[-1]

    arguments = (types.uint64, numbers, numbers, numbers, types.voidptr)

    @numba.cfunc(types.int64(*arguments))  # type: ignore[untyped-decorator]
    def density(free: int, q_: Any, gradient_: Any, value_: Any, data_: Any) -> int:
        gradient = numba.carray(gradient_, (free,))
        data = numba.carray(data_, (size,), np.float64)
        work = PosteriorWorkspace(
            data[ends[0] : ends[1]],
            data[ends[1] : ends[2]],
            data[ends[2] : ends[3]],
            data[ends[3] : ends[4]],
            data[ends[4] : ends[5]],
            data[ends[5] : ends[6]],
            ChoiceWorkspace(
                data[ends[6] : ends[7]].view(np.int64),
                data[ends[7] : ends[8]],
                data[ends[8] : ends[9]],
                data[ends[9] : ends[10]].view(np.float32),
                data[ends[10] : ends[11]],
                data[ends[11] : ends[12]],
                data[ends[12] : ends[13]],
                data[ends[13] : ends[14]],
                data[:0],
            ),
        )
        value = log_posterior(target, work, numba.carray(q_, (free,)), -np.inf, gradient)
        numba.carray(value_, (1,))[0] = value
        return 0 if np.isfinite(value) and np.all(np.isfinite(gradient)) else 3

    return density


@functools.cache
def _stop_watch() -> Any:
    """The function that nutpie calls once for every draw.

    It hands q on, counts, and from the end of warm-up on reads the clock.
    """
    import numba
    from numba import types

    numbers = types.CPointer(types.double)

    @numba.njit  # type: ignore[untyped-decorator]
    def clock() -> float:
        with numba.objmode(now="float64"):
            now = time.perf_counter()
        return now  # noqa: RET504

    clock()

    arguments = (types.uint64, types.uint64, numbers, numbers, types.voidptr)

    @numba.cfunc(types.int64(*arguments))  # type: ignore[untyped-decorator]
    def keep(free: int, _: int, q_: Any, out_: Any, watch_: Any) -> int:
        numba.carray(out_, (free,))[:] = numba.carray(q_, (free,))
        watch = numba.carray(watch_, (4,), np.float64)  # the workspace follows it
        watch[COUNT] += 1.0
        if watch[COUNT] >= watch[WARMUP]:
            watch[LAST] = clock()
            if watch[COUNT] == watch[WARMUP]:
                watch[FIRST] = watch[LAST]
        return 0

    return keep


@dataclass(eq=False)
class Numpyro:
    """NumPyro's NUTS on one problem, compiled once: `warm_up`, then `sample` as often as wanted."""

    decisions: Decisions
    resolved_prior: ResolvedPrior
    warmup: int

    def __post_init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        from numpyro.infer import NUTS, init_to_value

        start = init_to_value(values={"q": _start(self.decisions, self.resolved_prior)})
        self.kernel = NUTS(_numpyro_model(self.decisions, self.resolved_prior), init_strategy=start)
        self.warm: Any = None

        def step(state: Any, _: None) -> tuple[Any, Any]:
            state = self.kernel.sample(state, (), {})
            return state, state.z["q"]

        self.advance = jax.jit(lambda state: jax.lax.scan(step, state, None, length=CHUNK))

    def warm_up(self, seed: int, patience: float = math.inf) -> None:
        """Adapt for `warmup` iterations, rounded up to whole chunks; then all is compiled.

        Gives up with a TimeoutError when that takes longer than `patience` seconds.
        """
        import jax

        began = time.perf_counter()
        chunks = -(-self.warmup // CHUNK)
        state = self.kernel.init(jax.random.PRNGKey(seed), chunks * CHUNK, None, (), {})
        for chunk in range(chunks):
            if time.perf_counter() - began > patience:
                raise TimeoutError(
                    f"{chunk * CHUNK} iterations of warm-up took more than {patience:g} seconds"
                )
            state = jax.block_until_ready(self.advance(state)[0])
        self.warm = state

    def sample(self, draws: int, seed: int, seconds: float = math.inf) -> Sampled:
        """Go on from the warm-up: at least one chunk, and none begun after `draws` or `seconds`."""
        import jax

        began = time.perf_counter()
        state = self.warm._replace(rng_key=jax.random.PRNGKey(seed))
        chunks: list[Floats] = []
        while not chunks or (len(chunks) * CHUNK < draws and time.perf_counter() - began < seconds):
            state, q = self.advance(state)
            chunks.append(np.asarray(q))  # waits for them
        took = time.perf_counter() - began
        return Sampled(
            self.resolved_prior.mean + np.concatenate(chunks) @ self.resolved_prior.basis.T,
            took,
            took,
        )


def numpyro_draws(
    decisions: Decisions,
    resolved_prior: ResolvedPrior,
    draws: int,
    warmup: int,
    seed: int,
    seconds: float = math.inf,
) -> Sampled:
    """NumPyro's NUTS; its draws are timed without its warm-up.

    Draws come in chunks, by the same compiled loop as the warm-up.
    """
    began = time.perf_counter()
    peer = Numpyro(decisions, resolved_prior, warmup)
    peer.warm_up(seed)
    sampled = peer.sample(draws, seed, seconds)
    return sampled._replace(total=time.perf_counter() - began)


def _numpyro_model(decisions: Decisions, resolved_prior: ResolvedPrior) -> Any:
    """The model as a user would write it.

    Rows that occur often, as an MDP's do, are multiplied once.
    """
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.special import log_ndtr, logsumexp

    inverse = np.diag(resolved_prior.precision)
    if (
        resolved_prior.flat
        or np.abs(resolved_prior.precision - np.diag(inverse)).max() > 1e-9 * inverse.min()
    ):
        raise ValueError(
            "NumPyro is compared under Gaussian priors with independent coordinates; use "
            "rv.Normal(number)"
        )
    dense = np.asarray(
        decisions.rows.toarray() if hasattr(decisions.rows, "toarray") else decisions.rows
    )
    unique, which = np.unique(dense, axis=0, return_inverse=True)
    offered = np.arange(decisions.sizes.max()) < decisions.sizes[:, None]  # (T, M)
    row = np.where(
        offered,
        decisions.start[:-1, None] + np.arange(offered.shape[1]),
        decisions.chosen_row[:, None],
    )
    rival = jnp.asarray(offered & (row != decisions.chosen_row[:, None]))
    row, taken = jnp.asarray(which.ravel()[row]), jnp.asarray(which.ravel()[decisions.chosen_row])
    design, shift = (
        jnp.asarray(unique @ resolved_prior.basis),
        jnp.asarray(unique @ resolved_prior.mean),
    )
    nodes, weights = (jnp.asarray(part) for part in np.polynomial.hermite_e.hermegauss(NODES))
    log_weights = jnp.log(weights) - 0.5 * math.log(2.0 * math.pi)
    sd = jnp.asarray(1.0 / np.sqrt(inverse))

    def model() -> None:
        q = numpyro.sample("q", dist.Normal(0.0, sd).to_event(1))
        mu = shift + design @ q
        gap = mu[row] - mu[taken][:, None]
        below = jnp.where(rival[..., None], log_ndtr(nodes - gap[..., None]), 0.0)
        numpyro.factor("choices", logsumexp(log_weights + below.sum(axis=1), axis=1).sum())

    return model


def _start(decisions: Decisions, resolved_prior: ResolvedPrior) -> Floats:
    """The posterior mode in the coordinates q."""
    mode, _ = posterior_mode(decisions, resolved_prior)
    return np.ascontiguousarray(resolved_prior.basis.T @ (mode - resolved_prior.mean))
