"""The posterior of coefficients and noise covariance together, without utilities (MNP: Imai and van Dyk 2005).

Only differences of utilities are seen, and only up to scale. So the noise of the D actions other than the base is N N'
with N lower triangular and the product of its diagonal one, and the base's is zero; the coefficients u are on that
scale too. theta = (q, rows of N below the diagonal, log diagonal without its first) with u = basis q. What is reported
is on the user's scale: s u and s^2 N N', with s^2 N N' of trace D or with first entry one.

    prior of N      IW(df, C C'), its size integrated out: tr(C' (N N')^-1 C)^(-df D / 2), and what the coordinates add
    prior of s u    Gaussian or flat
    likelihood      the mean over z of the product of `orthant.weigh`'s weights; z is a variable of the chain

A chain that moves (theta, z) under prior(theta) N(z; 0, I) prod weight(theta, z) has the exact posterior as its law of
theta, because each weight's mean over z is the probability of the choice.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import jit
from understudy.kernels.design import Design, dot, multiply, transpose_multiply
from understudy.kernels.hamiltonian import HOPELESS, JITTER, retune
from understudy.kernels.orthant import (
    Fields,
    Pass,
    below,
    make_pass,
    roots_of_kinds,
    slopes_of_kinds,
    weigh,
    weigh_back,
)


class Problem(NamedTuple):
    """Decisions as rivals less what was chosen, design (R, K); the prior of q on the reported scale, and of N.

    base: the position of the base among the labels. spread: C, a root of the centre of the inverse Wishart.
    """

    design: Design
    fields: Fields
    basis: Floats
    precision: Floats
    middle: Floats
    base: int
    df: float
    spread: Floats
    trace: bool


class Room(NamedTuple):
    """Working space: u and the slopes in it (K,), N (D, D), noise of all labels (M, M), the rest as orthant has it.

    each: the log weights (T,) where they were last asked for; now: where the chain is.
    """

    value: Floats
    pushed: Floats
    root: Floats
    noise: Floats
    m: Floats
    up: Floats
    roots: Floats
    slopes: Floats
    work: Pass
    each: Floats
    now: Floats


@jit
def make_room(problem: Problem) -> Room:
    """Working space for one chain."""
    size, width, rivals = problem.spread.shape[0], problem.basis.shape[0], problem.fields.first[-1]
    kinds = problem.fields.rivals.size
    return Room(
        np.empty(width), np.empty(width), np.zeros((size, size)), np.zeros((size + 1, size + 1)),
        np.empty(rivals), np.empty(rivals), np.zeros((kinds, size, size)), np.zeros((kinds, size, size)),
        make_pass(problem.fields), np.empty(problem.fields.kind.size), np.empty(problem.fields.kind.size),
    )  # fmt: skip


@jit
def unpack(theta: Floats, free: int, root: Floats) -> None:
    """N from theta, whose first `free` numbers are q; the diagonal's logarithms sum to zero."""
    at, rest = free, 0.0
    for i in range(1, root.shape[0]):
        for j in range(i):
            root[i, j] = theta[at]
            at += 1
    for i in range(1, root.shape[0]):
        root[i, i] = math.exp(theta[at])
        rest += theta[at]
        at += 1
    root[0, 0] = math.exp(-rest)


@jit
def scale_of(root: Floats, trace: bool) -> float:
    """S, by which coefficients and N are multiplied to be reported."""
    total = 0.0
    for i in range(root.shape[0]):
        for j in range(i + 1):
            total += root[i, j] ** 2
    return math.sqrt(root.shape[0] / total) if trace else 1.0 / root[0, 0]


@jit
def add_wishart(problem: Problem, root: Floats, slope: Floats) -> float:
    """The log prior of N, -df D / 2 log tr(A A') with A = N^-1 C; its slopes in N are added to slope (D, D).

    They are (df D / tr) N'^-1 A A', of which the lower triangle counts.
    """
    size = root.shape[0]
    apart, trace = np.empty((size, size)), 0.0
    for c in range(size):
        for i in range(size):
            left = problem.spread[i, c]
            for k in range(i):
                left -= root[i, k] * apart[k, c]
            apart[i, c] = left / root[i, i]
            trace += apart[i, c] ** 2
    back = np.empty(size)
    for j in range(size):
        for i in range(size - 1, -1, -1):
            left = dot(apart[i], apart[j])
            for k in range(i + 1, size):
                left -= root[k, i] * back[k]
            back[i] = left / root[i, i]
            if i >= j:
                slope[i, j] += problem.df * size / trace * back[i]
    value: float = -0.5 * problem.df * size * math.log(trace)
    return value


@jit
def turned(turn: Floats, x: Floats, out: Floats) -> None:
    """Write turn x into out."""
    for i in range(out.size):
        out[i] = dot(turn[i], x)


@jit
def turned_back(turn: Floats, y: Floats, out: Floats) -> None:
    """Write turn' y into out."""
    out[:] = 0.0
    for i in range(y.size):
        for j in range(out.size):
            out[j] += turn[i, j] * y[i]


@jit
def theta_of(centre: Floats, turn: Floats, x: Floats) -> Floats:
    """Theta = centre + turn x."""
    theta = np.empty(centre.size)
    turned(turn, x, theta)
    for i in range(theta.size):
        theta[i] += centre[i]
    return theta


@jit
def prepare(problem: Problem, room: Room, theta: Floats) -> bool:
    """Write N, the noise, the roots of all kinds and the means m at theta; False where rounding spoils a root."""
    free, size, base = problem.middle.size, room.root.shape[0], problem.base
    unpack(theta, free, room.root)
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total += room.root[i, k] * room.root[j, k]
            a, b = i + (i >= base), j + (j >= base)
            room.noise[a, b] = total
            room.noise[b, a] = total
    turned(problem.basis, theta[:free], room.value)
    multiply(problem.design, room.value, room.m)
    return roots_of_kinds(room.noise, problem.fields, room.roots)


@jit
def log_posterior(problem: Problem, room: Room, theta: Floats, logs: Floats, gradient: Floats) -> float:
    """The log of prior and weights at theta, with its gradient; logs (R - T, 2) are those of z, see `orthant.below`."""
    if not prepare(problem, room, theta):
        return -np.inf
    total: float = weigh(problem.fields, room.m, room.roots, logs, room.work, room.each)
    weigh_back(problem.fields, room.roots, room.work, room.up, room.slopes)
    free, size, root = problem.middle.size, room.root.shape[0], room.root
    transpose_multiply(problem.design, room.up, room.pushed)
    turned_back(problem.basis, room.pushed, gradient[:free])
    push = np.zeros((size + 1, size + 1))
    slopes_of_kinds(problem.fields, room.roots, room.slopes, push)
    in_root = np.zeros((size, size))
    for i in range(size):
        for k in range(size):
            a, b = i + (i >= problem.base), k + (k >= problem.base)
            for j in range(i + 1):
                in_root[i, j] += (push[a, b] + push[b, a]) * root[k, j]

    scale = scale_of(root, problem.trace)
    stretch = float(free)  # of s q against q: s to this power
    total += stretch * math.log(scale)
    in_scale = stretch / scale
    for i in range(free):
        off, heavy = scale * theta[i] - problem.middle[i], 0.0
        for j in range(free):
            heavy += problem.precision[i, j] * (scale * theta[j] - problem.middle[j])
        total -= 0.5 * off * heavy
        gradient[i] -= scale * heavy
        in_scale -= heavy * theta[i]
    if problem.trace:
        size_of = in_scale * scale**3 / size
        for i in range(size):
            for j in range(i + 1):
                in_root[i, j] -= size_of * root[i, j]
    else:
        in_root[0, 0] -= in_scale * scale / root[0, 0]
    total += add_wishart(problem, root, in_root)

    at = free
    for i in range(1, size):
        for j in range(i):
            gradient[at] = in_root[i, j]
            at += 1
    for i in range(1, size):
        # the coordinates' stretch is exp(-sum over i of (i + 1) log N_ii), and the first log N_ii is minus the others
        stretch = float(i)
        total -= stretch * theta[at]
        gradient[at] = in_root[i, i] * root[i, i] - in_root[0, 0] * root[0, 0] - stretch
        at += 1
    return total


@jit
def refresh(rng: np.random.Generator, problem: Problem, room: Room, theta: Floats, z: Floats, logs: Floats) -> float:
    """Draw z anew given theta: proposed from N(0, I), each decision's accepted by the ratio of its weights."""
    first, decisions = problem.fields.first, problem.fields.kind.size
    other, new_logs = np.empty(z.size), np.empty((z.size, 2))
    for i in range(z.size):
        other[i] = rng.standard_normal()
    below(other, new_logs)
    prepare(problem, room, theta)
    weigh(problem.fields, room.m, room.roots, new_logs, room.work, room.each)
    accepted = 0
    for i in range(decisions):
        if room.each[i] - room.now[i] > -rng.standard_exponential():
            accepted += 1
            for k in range(first[i] - i, first[i + 1] - i - 1):
                z[k] = other[k]
                logs[k] = new_logs[k]
    return accepted / decisions


@jit
def travel(
    rng: np.random.Generator,
    problem: Problem,
    room: Room,
    logs: Floats,
    centre: Floats,
    turn: Floats,
    step: float,
    count: int,
    x: Floats,
) -> float:
    """One Hamiltonian move of x given z, theta = centre + turn x; returns the acceptance probability."""
    slope, push, other, momentum = np.empty(x.size), np.empty(x.size), x.copy(), np.empty(x.size)
    for d in range(x.size):
        momentum[d] = rng.standard_normal()
    value = log_posterior(problem, room, theta_of(centre, turn, x), logs, slope)
    room.now[:] = room.each
    energy = 0.5 * dot(momentum, momentum) - value
    epsilon = step * (1.0 + JITTER * (2.0 * rng.random() - 1.0))
    now = energy
    for _ in range(count):
        turned_back(turn, slope, push)
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * push[d]
            other[d] += epsilon * momentum[d]
        value = log_posterior(problem, room, theta_of(centre, turn, other), logs, slope)
        turned_back(turn, slope, push)
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * push[d]
        now = 0.5 * dot(momentum, momentum) - value
        if not now < energy + HOPELESS:
            return 0.0
    probability = math.exp(min(energy - now, 0.0))
    if rng.random() < probability:
        x[:] = other
        room.now[:] = room.each
    return probability


@jit
def walk(
    rng: np.random.Generator,
    problem: Problem,
    room: Room,
    centre: Floats,
    turn: Floats,
    tempo: Floats,
    length: float,
    goal: float,
    thin: int,
    x: Floats,
    z: Floats,
    out: Floats,
    accepted: Floats,
    renewed: Floats,
) -> float:
    """As many draws of theta as out (n, .) has, z and theta in turn, paths of about `length`.

    tempo: the step and what it has learnt from so far (`hamiltonian.begin_tempo`). Where goal > 0, it goes on learning, in place, to be
    accepted with that probability. Returns the averaged step.
    """
    logs = np.empty((z.size, 2))
    below(z, logs)
    prepare(problem, room, theta_of(centre, turn, x))
    weigh(problem.fields, room.m, room.roots, logs, room.work, room.now)
    for n in range(out.shape[0]):
        accepted[n], renewed[n] = 0.0, 0.0
        for _ in range(thin):
            renewed[n] += refresh(rng, problem, room, theta_of(centre, turn, x), z, logs) / thin
            count = max(1, int((0.7 + 0.6 * rng.random()) * length / tempo[0] + 0.5))
            probability = travel(rng, problem, room, logs, centre, turn, tempo[0], min(count, 500), x)
            accepted[n] += probability / thin
        if goal > 0.0:
            retune(tempo, goal, probability, 1e-2 * tempo[1])
        out[n] = theta_of(centre, turn, x)
    return math.exp(tempo[4])


@jit
def curvature(problem: Problem, room: Room, theta: Floats, logs: Floats, width: Floats, out: Floats) -> None:
    """Minus the Hessian of the log posterior given z, by differences of its gradient over `width`; added to out."""
    high, low, here = np.empty(theta.size), np.empty(theta.size), theta.copy()
    for i in range(theta.size):
        here[i] = theta[i] + width[i]
        log_posterior(problem, room, here, logs, high)
        here[i] = theta[i] - width[i]
        log_posterior(problem, room, here, logs, low)
        here[i] = theta[i]
        for j in range(theta.size):
            half = 0.25 * (low[j] - high[j]) / width[i]
            out[i, j] += half
            out[j, i] += half
