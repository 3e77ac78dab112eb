"""The default engine's loop: a fixed round of moves, each of which leaves the posterior as it is.

A round is so many Hamiltonian moves, then so many sweeps of data augmentation with interweaving, then so many
independence steps. The utilities live only within a sweep, which begins by drawing them exactly given the value:
the moves that do not see them can stand anywhere in the round.
"""

from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels import utilities
from understudy.kernels._jit import jit, part
from understudy.kernels.bend import bent_one, unbent_one
from understudy.kernels.design import Design, dot, multiply
from understudy.kernels.expansion import Move, Scratch, expand
from understudy.kernels.hamiltonian import travel
from understudy.kernels.interweave import Weave, interweave
from understudy.kernels.mixture import Mixture, draw, log_density
from understudy.kernels.ray import stretch
from understudy.kernels.size import Size, at_size, distance, draw_sd, stretch_given_noise
from understudy.kernels.target import Target, Work, log_posterior


class Round(NamedTuple):
    """How many moves of each kind a round has, how Hamiltonian paths run, and how many moves make a kept draw.

    step: of a path, with `fewest` to `most` steps.
    """

    paths: int
    sweeps: int
    leaps: int
    step: float
    fewest: int
    most: int
    moves: int


class Map(NamedTuple):
    """v = centre + slope bent(turn x), and back: centre, slope and bend (K,), turn (K, D), back (D, K).

    constants: (K, L) unit columns of centred blocks; what v has along them is not the posterior's, and laid aside.
    """

    centre: Floats
    slope: Floats
    bend: Floats
    turn: Floats
    back: Floats
    constants: Floats


class Latent(NamedTuple):
    """What a sweep needs: all rows with nothing counted twice or left out, and room for utilities."""

    design: Design
    start: Ints
    taken: Ints
    move: Move
    weave: Weave
    scratch: Scratch
    mu: Floats
    w: Floats
    near: Floats
    weights: Floats
    direction: Floats
    pull: Floats
    margin: Floats


@part
def sweep(rng: np.random.Generator, latent: Latent, size: Size | None, lead: Floats, v: Floats, aside: Floats) -> None:
    """Utilities given the value, value given the utilities, value given the noise.

    A prior's size that is learnt is drawn first given v and its constants, and once more given the noise.
    """
    sd, move = 1.0, latent.move
    if size is not None:
        sd = draw_sd(rng, size, quad_of(size, v, aside, latent.pull))
        move = at_size(size, latent.move, sd)
    multiply(latent.design, v, latent.mu)
    utilities.draw_utilities(rng, latent.mu, latent.start, latent.taken, latent.near, lead, latent.w)
    expand(rng, move, latent.design, latent.scratch, v, latent.w)
    if size is not None:
        sd = draw_sd(rng, size, quad_of(size, v, aside, latent.pull))
        new = stretch_given_noise(
            rng, size, latent.design, latent.start, latent.taken, sd, v, latent.w, latent.pull, latent.mu
        )
        for block in range(aside.size):
            aside[block] *= new / sd
        sd = new
    interweave(
        rng, latent.weave, latent.start, latent.taken, latent.weights, latent.direction, latent.pull, latent.margin,
        1.0 / (sd * sd), v, latent.w,
    )  # fmt: skip


@part
def quad_of(size: Size, v: Floats, aside: Floats, off: Floats) -> float:
    """Q of a value and the constants laid aside."""
    return distance(size, v, off) + size.slack * dot(aside, aside)


@part
def to_value(map: Map, x: Floats, v: Floats, aside: Floats) -> None:
    """V from x, without its constants, which go into aside (L,)."""
    for k in range(v.size):
        v[k] = map.centre[k] + map.slope[k] * bent_one(dot(map.turn[k], x), map.bend[k])
    for block in range(aside.size):
        aside[block] = 0.0
        for k in range(v.size):
            aside[block] += map.constants[k, block] * v[k]
        for k in range(v.size):
            v[k] -= map.constants[k, block] * aside[block]


@part
def put_back(map: Map, v: Floats, aside: Floats) -> None:
    """V with its constants."""
    for block in range(aside.size):
        for k in range(v.size):
            v[k] += map.constants[k, block] * aside[block]


@part
def from_value(map: Map, v: Floats, aside: Floats, x: Floats) -> None:
    """X from v and its constants."""
    x[:] = 0.0
    for k in range(v.size):
        whole = v[k]
        for block in range(aside.size):
            whole += map.constants[k, block] * aside[block]
        w = unbent_one((whole - map.centre[k]) / map.slope[k], map.bend[k])
        for d in range(x.size):
            x[d] += map.back[d, k] * w


@jit
def blend(
    rng: np.random.Generator,
    target: Target,
    work: Work,
    map: Map,
    round: Round,
    mixture: Mixture,
    latent: Latent,
    size: Size | None,
    thin: int,
    x: Floats,
    gradient: Floats,
    carried: Floats,
    lead: Floats,
    out: Floats,
    accepted: Floats,
    sizes: Floats,
) -> None:
    """Go on from x (D,) for as many draws of v as out (n, K) has; accepted (n,) says whether, or how willingly, each was.
    size: what learning the prior's size needs, which then goes into sizes (n,). Where it is given there is None, and those moves are not even compiled.

    carried (5,) holds what goes with x: its log posterior, its importance weight, whether gradient and weight are up to
    date, and the place within the round. With x and gradient it is all that has to be kept to go on as if uncut.
    """
    width = x.size
    y, noise, logs, v = np.empty(width), np.empty(width), np.empty(mixture.share.size), np.empty(out.shape[1])
    aside = np.empty(map.constants.shape[1])
    momentum, other, slope, height = np.empty(width), np.empty(width), np.empty(width), np.empty(1)
    none = np.empty(0)
    height[0], weight = carried[0], carried[1]
    sloped, weighed, place = carried[2] > 0.0, carried[3] > 0.0, int(carried[4])
    moves = round.paths + round.sweeps + round.leaps
    for n in range(out.shape[0]):
        for _ in range(thin * round.moves):
            if place < round.paths:
                if not sloped:
                    height[0] = log_posterior(target, work, x, -np.inf, gradient)
                accepted[n] = travel(
                    rng, target, work, round.step, round.fewest, round.most,
                    x, height, gradient, momentum, other, slope,
                )  # fmt: skip
                sloped, weighed = True, False
                if size is not None:
                    to_value(map, x, v, aside)
                    put_back(map, v, aside)
                    stretch(rng, target, work, v)
                    aside[:] = 0.0
                    from_value(map, v, aside, x)
                    sloped = False
            elif place < round.paths + round.sweeps:
                to_value(map, x, v, aside)
                sweep(rng, latent, size, lead, v, aside)
                from_value(map, v, aside, x)
                accepted[n] = 1.0
                sloped, weighed = False, False
            else:
                if not weighed:
                    if not sloped:
                        height[0] = log_posterior(target, work, x, -np.inf, none)
                    weight = height[0] - log_density(mixture, x, logs)
                    weighed = True
                draw(rng, mixture, noise, y)
                proposed = log_density(mixture, y, logs)
                floor = proposed + weight - rng.standard_exponential()
                value = log_posterior(target, work, y, floor, none)
                accepted[n] = 0.0
                if value >= floor:
                    accepted[n] = 1.0
                    for d in range(width):
                        x[d] = y[d]
                    height[0] = value
                    weight = value - proposed
                    sloped = False
            place = (place + 1) % moves
        to_value(map, x, out[n], aside)
        if size is not None:
            sizes[n] = draw_sd(rng, size, quad_of(size, out[n], aside, v))
    carried[0], carried[1] = height[0], weight
    carried[2], carried[3], carried[4] = 1.0 if sloped else 0.0, 1.0 if weighed else 0.0, place
