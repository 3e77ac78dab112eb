"""General-purpose samplers on the same posterior: what a user would reach for instead.

nutpie's NUTS runs on our own collapsed log posterior, compiled: value, gradient, design and prior are one call from its
compiled loop into ours, so that it pays for nothing but the mathematics. NumPyro's NUTS runs on the likelihood as its
users would write it: choice sets padded and masked, and a Gauss-Hermite rule for

    P(chosen) = E[ product over rivals j of Phi(z - gap_j) ],   z ~ N(0, 1),  gap_j = mu_j - mu_chosen

Both use their default settings and one chain, start at the posterior mode, and move q of v = mean + basis @ q.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.chart import Chart, chart_target
from understudy.engines.tally import tally
from understudy.kernels.collapsed import Room
from understudy.kernels.target import Target, Work, log_posterior, make_work
from understudy.likelihood import posterior_mode
from understudy.priors import Placed

NODES = 21  # of NumPyro's rule; on toy, Tetris-like rows and a 5 x 5 grid its log posterior errs with sd 5e-4 at most
PIECE = 50  # draws NumPyro makes between two looks at the clock
LOOK = 0.01  # seconds between two looks at nutpie's progress
COUNT, WARMUP, FIRST, LAST = range(4)  # the stop-watch: draws so far, warm-up, the time when it ended, the latest time


class Sampled(NamedTuple):
    """(n, K) draws, the seconds spent on them after warm-up, and the seconds of the whole call."""

    draws: Floats
    sampling: float
    total: float


def target_of(decisions: Decisions, placed: Placed) -> Target:
    """The posterior to sample, counted as the default engine counts it, in the coordinates q."""
    return chart_target(tally(decisions), placed, placed, Chart.straight(placed.mean, placed.basis, placed.basis.T))


def nutpie_draws(
    decisions: Decisions, placed: Placed, draws: int, warmup: int, seed: int, seconds: float = math.inf
) -> Sampled:
    """nutpie's NUTS; at most `draws`, and none begun after `seconds` of sampling.

    A stop-watch in the function that nutpie calls once for every draw reads the time at the last draw of the warm-up
    and at each one after it, so sampling is timed by itself, without nutpie's start and the conversion of its draws.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces 1.0 once a day
        import nutpie

    began = time.perf_counter()
    target = target_of(decisions, placed)
    watch = np.zeros(4 + _room_for(target)[-1])
    watch[WARMUP] = warmup
    model = _nutpie_model(target, _start(decisions, placed), watch)
    sampler = nutpie.sample(
        model, draws=draws, tune=warmup, chains=1, cores=1, seed=seed, progress_bar=False, blocking=False
    )
    trace = None
    while trace is None:
        try:
            trace = sampler.wait(timeout=LOOK)
        except TimeoutError:
            if watch[COUNT] > warmup and watch[LAST] - watch[FIRST] > seconds:
                trace = sampler.abort()
    q = np.asarray(trace.posterior["q"])[0]
    took = (watch[LAST] - watch[FIRST]) * len(q) / (watch[COUNT] - warmup)
    return Sampled(placed.mean + q @ placed.basis.T, float(took), time.perf_counter() - began)


def _nutpie_model(target: Target, start: Floats, watch: Floats) -> Any:
    """The posterior as nutpie holds those that PyMC compiles with numba; fields that only PyMC needs stay empty."""
    from nutpie.compile_pymc import CompiledPyMCModel

    free = len(start)
    known = {
        "dims": {}, "compiled_logp_func": _density(target), "compiled_expand_func": _stop_watch(),
        "initial_point_func": lambda seed: start, "user_data": watch, "n_expanded": free,
        "shape_info": (["q"], [slice(0, free)], [(free,)]), "_n_dim": free, "_shapes": {"q": (free,)}, "_coords": {},
    }  # fmt: skip
    return CompiledPyMCModel(**{field.name: known.get(field.name) for field in fields(CompiledPyMCModel)})


def _room_for(target: Target) -> list[int]:
    """Where each part of the working space ends, counted in doubles: nutpie's loop carries it behind the stop-watch."""
    work = make_work(target)
    parts: list[Any] = [*work[:-1], *work.room]
    return [0, *np.cumsum([-(-part.nbytes // 8) for part in parts]).tolist()]


def _density(target: Target) -> Any:
    """The log posterior as a C function in the form nutpie calls; the target is compiled in."""
    import numba
    from numba import types

    numbers = types.CPointer(types.double)
    ends = tuple(4 + end for end in _room_for(target))
    size = ends[-1]

    @numba.cfunc(types.int64(types.uint64, numbers, numbers, numbers, types.voidptr))  # type: ignore[untyped-decorator]
    def density(free: int, q_: Any, gradient_: Any, value_: Any, data_: Any) -> int:
        gradient = numba.carray(gradient_, (free,))
        data = numba.carray(data_, (size,), np.float64)
        work = Work(
            data[ends[0] : ends[1]], data[ends[1] : ends[2]], data[ends[2] : ends[3]], data[ends[3] : ends[4]],
            data[ends[4] : ends[5]], data[ends[5] : ends[6]],
            Room(
                data[ends[6] : ends[7]].view(np.int64), data[ends[7] : ends[8]], data[ends[8] : ends[9]],
                data[ends[9] : ends[10]].view(np.float32), data[ends[10] : ends[11]], data[ends[11] : ends[12]],
                data[ends[12] : ends[13]],
            ),
        )  # fmt: skip
        value = log_posterior(target, work, numba.carray(q_, (free,)), -np.inf, gradient)
        numba.carray(value_, (1,))[0] = value
        return 0 if np.isfinite(value) and np.all(np.isfinite(gradient)) else 3

    return density


@functools.cache
def _stop_watch() -> Any:
    """What nutpie calls once for every draw: it hands q on, counts, and from the end of warm-up on reads the clock."""
    import numba
    from numba import types

    numbers = types.CPointer(types.double)

    @numba.njit  # type: ignore[untyped-decorator]
    def clock() -> float:
        with numba.objmode(now="float64"):
            now = time.perf_counter()
        return now  # noqa: RET504

    clock()

    @numba.cfunc(types.int64(types.uint64, types.uint64, numbers, numbers, types.voidptr))  # type: ignore[untyped-decorator]
    def keep(free: int, _: int, q_: Any, out_: Any, watch_: Any) -> int:
        numba.carray(out_, (free,))[:] = numba.carray(q_, (free,))
        watch = numba.carray(watch_, (4,), np.float64)  # the working space lies behind it
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
    placed: Placed
    warmup: int

    def __post_init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        from numpyro.infer import NUTS, init_to_value

        start = init_to_value(values={"q": _start(self.decisions, self.placed)})
        self.kernel = NUTS(_numpyro_model(self.decisions, self.placed), init_strategy=start)
        self.warm: Any = None

        def step(state: Any, _: None) -> tuple[Any, Any]:
            state = self.kernel.sample(state, (), {})
            return state, state.z["q"]

        self.advance = jax.jit(lambda state: jax.lax.scan(step, state, None, length=PIECE))

    def warm_up(self, seed: int, patience: float = math.inf) -> None:
        """Adapt for `warmup` iterations, rounded up to whole pieces; everything is compiled when this returns.

        Gives up with a TimeoutError when that takes longer than `patience` seconds.
        """
        import jax

        began = time.perf_counter()
        pieces = -(-self.warmup // PIECE)
        state = self.kernel.init(jax.random.PRNGKey(seed), pieces * PIECE, None, (), {})
        for piece in range(pieces):
            if time.perf_counter() - began > patience:
                raise TimeoutError(f"{piece * PIECE} iterations of warm-up took more than {patience:g} seconds")
            state = jax.block_until_ready(self.advance(state)[0])
        self.warm = state

    def sample(self, draws: int, seed: int, seconds: float = math.inf) -> Sampled:
        """Go on from the warm-up: at least one piece of PIECE draws, and none begun after `draws` or `seconds`."""
        import jax

        began = time.perf_counter()
        state = self.warm._replace(rng_key=jax.random.PRNGKey(seed))
        pieces: list[Floats] = []
        while not pieces or (len(pieces) * PIECE < draws and time.perf_counter() - began < seconds):
            state, q = self.advance(state)
            pieces.append(np.asarray(q))  # waits for them
        took = time.perf_counter() - began
        return Sampled(self.placed.mean + np.concatenate(pieces) @ self.placed.basis.T, took, took)


def numpyro_draws(
    decisions: Decisions, placed: Placed, draws: int, warmup: int, seed: int, seconds: float = math.inf
) -> Sampled:
    """NumPyro's NUTS; its draws come in pieces, the same compiled loop as its warm-up, and are timed by themselves."""
    began = time.perf_counter()
    peer = Numpyro(decisions, placed, warmup)
    peer.warm_up(seed)
    sampled = peer.sample(draws, seed, seconds)
    return sampled._replace(total=time.perf_counter() - began)


def _numpyro_model(decisions: Decisions, placed: Placed) -> Any:
    """The model as a user would write it; rows that occur often, as an MDP's do, are multiplied once."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.special import log_ndtr, logsumexp

    inverse = np.diag(placed.precision)
    if placed.flat or np.abs(placed.precision - np.diag(inverse)).max() > 1e-9 * inverse.min():
        raise ValueError(
            "NumPyro is compared under Gaussian priors with independent coordinates; use us.Gaussian(number)"
        )
    dense = np.asarray(decisions.rows.toarray() if hasattr(decisions.rows, "toarray") else decisions.rows)
    unique, which = np.unique(dense, axis=0, return_inverse=True)
    offered = np.arange(decisions.sizes.max()) < decisions.sizes[:, None]  # (T, M)
    row = np.where(offered, decisions.start[:-1, None] + np.arange(offered.shape[1]), decisions.taken[:, None])
    rival = jnp.asarray(offered & (row != decisions.taken[:, None]))
    row, taken = jnp.asarray(which.ravel()[row]), jnp.asarray(which.ravel()[decisions.taken])
    design, shift = jnp.asarray(unique @ placed.basis), jnp.asarray(unique @ placed.mean)
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


def _start(decisions: Decisions, placed: Placed) -> Floats:
    """The posterior mode in the coordinates q."""
    mode, _ = posterior_mode(decisions, placed)
    return np.ascontiguousarray(placed.basis.T @ (mode - placed.mean))
