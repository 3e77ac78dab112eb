"""Skills that change, by their mode: a normal law about it, and sizes at most evidence.

Given sizes theta (drifts and spreads) Newton's method finds the mode of all nodes, and the normal
law there has precision A = Q + H (`kernels/skill_newton.py`). Sizes maximise

    log P(orders | mode) - mode'Q mode / 2 + log|Q| / 2 - log|A| / 2 + log p(theta),

Laplace's evidence. Players of one game are coupled, so that log|A| has no cheap factor: with the
factor L of Q and the diagonal of H it is log|L L'| + tr log(L^-1 A L^-T), and the trace is found by
Lanczos quadrature with random signs (Ubaru, Chen and Saad 2017); with few nodes, exactly. Draws
about the mode are A^-1 y, y a draw with covariance A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from revealed._types import Bools, Floats, Ints
from revealed.data.rankings import Rankings
from revealed.kernels.bidiagonal import (
    factorise_bidiagonal,
    multiply_precision,
    solve_factor,
    solve_factor_transposed,
    write_variances,
)
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.prior_scale import HYPERPRIOR_DF
from revealed.kernels.skill_newton import (
    OrderedGames,
    WalkPrecision,
    add_curvature_noise,
    add_curvature_product,
    game_slopes,
    make_curvature,
    solve_newton,
)
from revealed.models.skill_nodes import SkillNodes


@dataclass(frozen=True)
class ModeSettings:
    """How modes and sizes are found.

    newton, halvings: steps at most. gain, gain_a_node: of the log density, below which a mode is
    found, whichever is larger; much larger, and forecasts are of skills that have not settled.
    unmet_share: of that, where players are taken not to meet: what all of them have in common
    gains more than it seems then; larger, and a step is left out that was worth taking.
    conjugate, residual: steps of a system at most, and how far its residual falls; less is made up
    for by the next Newton step. draw_residual: the same for draws, which nothing makes up for.
    probed: random signs of a log determinant, times nodes: with more nodes one sign is as good as
    several, fewer leave sizes noisy. probes: at most. lanczos: steps from each. exact_nodes: so few
    have an exact one. size_step: of the first simplex of log sizes; size_tolerance, size_gain:
    where they are found. size_evaluations: at most. grown: games grow by this factor until sizes
    are found anew.
    """

    newton: int = 40
    halvings: int = 20
    gain: float = 1e-3
    gain_a_node: float = 1e-7
    unmet_share: float = 0.1
    conjugate: int = 60
    residual: float = 0.1
    draw_residual: float = 1e-3
    probed: int = 20_000
    probes: int = 8
    lanczos: int = 20
    exact_nodes: int = 300
    size_step: float = 0.5
    size_tolerance: float = 0.03
    size_gain: float = 1.0
    size_evaluations: int = 60
    grown: float = 1.25


MODE = ModeSettings()


def why_no_mode(games: Rankings, logit: bool, from_last: bool) -> str:
    """Why the mode's kernels have no law of these games; empty where they have one."""
    sizes = np.diff(games.start)
    if games.has_ties:
        return 'games with ties have no road by their mode; leave sampler="laplace" out'
    if not logit and (sizes > 2).any():
        return (
            "under normal noise the road by the mode takes games of two entries; give "
            'noise=rv.LogitNoise(), or leave sampler="laplace" out'
        )
    if from_last and (games.n_ordered < sizes).any():
        return (
            "with orders from the last place up every place must be known; leave out entries "
            "without a position"
        )
    return ""


def order_games(
    games: Rankings, nodes: SkillNodes, logit: bool, of_player: bool, from_last: bool
) -> OrderedGames:
    """Games in the order of their dates, as Newton's method takes them.

    of_player: whether each player of a team has a noise of his own. from_last: whether places are
    chosen from the last one up. Refuses what the mode's kernels have no law of.
    """
    refusal = why_no_mode(games, logit, from_last)
    if refusal:
        raise ValueError(refusal)
    sizes = np.diff(games.start)
    # entries of a game in the order in which they are chosen
    order = np.argsort(_dates(games), kind="stable")
    counts = sizes[order]
    start = np.concatenate([[0], np.cumsum(counts)])
    offset = np.arange(start[-1]) - np.repeat(start[:-1], counts)
    if from_last:
        offset = np.repeat(counts, counts) - 1 - offset
    entry = np.repeat(games.start[:-1][order], counts) + offset
    # and the nodes of each entry behind one another
    members = np.diff(nodes.entry_start)[entry]
    entry_start = np.concatenate([[0], np.cumsum(members)])
    within = np.arange(entry_start[-1]) - np.repeat(entry_start[:-1], members)
    node = nodes.node[np.repeat(nodes.entry_start[entry], members) + within]
    # the last of all has no choice
    n_chosen = np.minimum(games.n_ordered[order], counts - 1)
    scale = np.zeros(len(games))
    if not logit:
        variance = games.sizes if of_player else np.ones(len(games.tied))
        scale = np.sqrt(np.add.reduceat(variance, games.start[:-1])[order])
    return OrderedGames(start, n_chosen, node, entry_start, scale, -1.0 if from_last else 1.0)


def _dates(games: Rankings) -> Floats:
    """(G,) when games were played.

    Nodes are made of games with times only.
    """
    assert games.times is not None
    return games.times


class SkillMode:
    """Mode and normal law of all nodes, given some of the games and sizes.

    Parameters
    ----------
    games
        In the order of their dates.
    nodes
        Of all paths.
    scales
        (2C,) of the half-t priors of drifts and spreads of the components.
    known
        (2C,) their logarithms where they are given, and NaN elsewhere.
    """

    def __init__(
        self, games: OrderedGames, nodes: SkillNodes, scales: Floats, known: Floats
    ) -> None:
        self.games, self.nodes, self.scales, self.known = games, nodes, scales, known
        # everybody alike, before any game
        self.value = np.zeros(len(nodes))
        # half the scale of a prior is as good a guess as any
        guess = np.log(0.5 * np.where(scales > 0.0, scales, 1.0))
        self.theta = np.where(np.isnan(known), guess, known)
        self.curvature = make_curvature(len(games.entry_start) - 1, len(nodes))
        self._inverse, self._lower = np.empty(len(nodes)), np.empty(len(nodes))
        self.set_sizes(self.theta)

    def set_sizes(self, theta: Floats) -> None:
        """Take other sizes (2C,), on the log scale."""
        nodes, count = self.nodes, len(self.nodes.components)
        first: Bools = nodes.first
        drift, spread = (
            np.exp(theta[:count])[nodes.component],
            np.exp(theta[count:])[nodes.component],
        )
        # precisions of steps, and of where paths begin
        step = np.where(first, 0.0, 1.0 / (drift**2 * np.where(first, 1.0, nodes.gap)))
        diagonal = np.where(first, spread**-2.0, step)
        diagonal[:-1] += step[1:]
        self.theta, self.precision = theta, WalkPrecision(diagonal, -step)
        logs = np.log(np.where(first, spread**-2.0, step))
        self.half_log_det = 0.5 * float(logs.sum())

    def _log_density(self, high: int, value: Floats) -> tuple[float, Floats]:
        """The log posterior density of nodes and its slope; leaves the curvature behind."""
        slope, pull = np.empty_like(value), np.empty_like(value)
        found = game_slopes(self.games, high, value, slope, self.curvature)
        raise_if_stopping()
        multiply_precision(self.precision.diagonal, self.precision.coupling, value, pull)
        return found - 0.5 * float(value @ pull), slope - pull

    def _factorise(self) -> float:
        """The factor of Q and the diagonal of H; returns its log determinant."""
        diagonal = self.precision.diagonal + self.curvature.diagonal
        return factorise_bidiagonal(diagonal, self.precision.coupling, self._inverse, self._lower)

    def _solve(self, high: int, b: Floats, most: int, residual: float) -> Floats:
        """A^-1 b, nearly."""
        x = np.empty_like(b)
        solve_newton(
            self.games,
            high,
            self.precision,
            self.curvature,
            self._inverse,
            self._lower,
            b,
            x,
            most,
            residual,
        )
        raise_if_stopping()
        return x

    def find(self, high: int, steps: int = MODE.newton) -> float:
        """Move to the mode given the first `high` games; returns its log density.

        steps: of Newton's method at most. The curvature there, and its factor, are left behind.
        """
        before, slope = self._log_density(high, self.value)
        enough = max(MODE.gain, MODE.gain_a_node * len(self.nodes))
        for _ in range(steps):
            self._factorise()
            # what a step would gain, had players not met: as good as the step itself to tell
            if self._unmet_gain(slope) < MODE.unmet_share * enough:
                break
            move = self._solve(high, slope, MODE.conjugate, MODE.residual)
            share = 1.0
            for _ in range(MODE.halvings):
                after, after_slope = self._log_density(high, self.value + share * move)
                if after >= before:
                    break
                # too far: the curvature is that of where it began
                share *= 0.5
            if not after >= before:
                # the curvature is that of the mode again
                self._log_density(high, self.value)
                break
            self.value = self.value + share * move
            before, slope = after, after_slope
        self._factorise()
        return before

    def _unmet_gain(self, slope: Floats) -> float:
        """slope' (L L')^-1 slope, from the factor that was found last."""
        part = np.empty_like(slope)
        solve_factor(self._inverse, self._lower, slope, part)
        return float(part @ part)

    def log_evidence(self, high: int) -> float:
        """Laplace's evidence of the first `high` games at the mode, which must have been found."""
        density, _ = self._log_density(high, self.value)
        return density + self.half_log_det - 0.5 * self._log_det(high)

    def _log_det(self, high: int) -> float:
        """The log determinant of A."""
        count = len(self.nodes)
        block = self._factorise()
        if count <= MODE.exact_nodes:
            whole = np.array([self._whitened(high, column) for column in np.eye(count)])
            return block + float(np.linalg.slogdet(whole)[1])
        # the same signs for all sizes: their evidence is then smooth
        rng, total = np.random.default_rng(0), 0.0
        probes = int(np.clip(MODE.probed // count, 1, MODE.probes))
        for _ in range(probes):
            signs = np.where(rng.random(count) < 0.5, -1.0, 1.0)
            total += count * _lanczos_log(lambda x: self._whitened(high, x), signs / count**0.5)
        return block + total / probes

    def _whitened(self, high: int, x: Floats) -> Floats:
        """L^-1 A L^-T x."""
        # the identity, but for what players of a game have in common
        y, part = np.empty_like(x), np.empty((2, len(self.curvature.strength)))
        moved = np.empty_like(x)
        solve_factor_transposed(self._inverse, self._lower, x, moved)
        multiply_precision(self.precision.diagonal, self.precision.coupling, moved, y)
        add_curvature_product(self.games, high, self.curvature, moved, part, y)
        solve_factor(self._inverse, self._lower, y, y)
        raise_if_stopping()
        return y

    def log_prior(self, theta: Floats) -> float:
        """The log prior density of sizes that are inferred, on the log scale."""
        # half-t, with the factor that the log scale brings
        inferred = np.isnan(self.known)
        free, scale = theta[inferred], self.scales[inferred]
        ratio = np.exp(2.0 * free) / (HYPERPRIOR_DF * scale**2)
        return float((free - 0.5 * (HYPERPRIOR_DF + 1.0) * np.log1p(ratio)).sum())

    def fit_sizes(self, high: int) -> None:
        """Take the sizes of most evidence given the first `high` games, and find the mode there."""
        unknown = np.flatnonzero(np.isnan(self.known))
        if unknown.size:
            # downhill without slopes: two numbers, and a mode for each pair of them
            begin = self.theta[unknown]

            def loss(x: Floats) -> float:
                theta = self.theta.copy()
                theta[unknown] = x
                self.set_sizes(theta)
                self.find(high)
                return -self.log_evidence(high) - self.log_prior(theta)

            corners = np.vstack([begin, begin + MODE.size_step * np.eye(len(begin))])
            found = minimize(
                loss,
                begin,
                method="Nelder-Mead",
                options={
                    "initial_simplex": corners,
                    "xatol": MODE.size_tolerance,
                    "fatol": MODE.size_gain,
                    "maxfev": MODE.size_evaluations,
                },
            )
            theta = self.theta.copy()
            theta[unknown] = found.x
            self.set_sizes(theta)
        self.find(high)

    def variances(self) -> Floats:
        """(N,) of each node, given all nodes of other players; of the factor that `find` left."""
        found = np.empty(len(self.nodes))
        write_variances(self._inverse, self._lower, found)
        return found

    def draws(self, rng: np.random.Generator, high: int, count: int, kept: Ints) -> Floats:
        """(count, len(kept)) draws of some nodes from the normal law about the mode."""
        found = np.empty((count, len(kept)))
        step = np.sqrt(-self.precision.coupling)
        first = self.nodes.first
        begin = np.sqrt(np.where(first, self.precision.diagonal, 0.0))
        # where a path begins, its diagonal has the step to the next node too
        begin[:-1] = np.sqrt(
            np.maximum(begin[:-1] ** 2 - np.where(first[:-1], step[1:] ** 2, 0.0), 0.0)
        )
        for s in range(count):
            # covariance Q from steps and beginnings, covariance H from games
            drawn = step * rng.standard_normal(len(step))
            y = begin * rng.standard_normal(len(step)) + drawn
            y[:-1] -= drawn[1:]
            add_curvature_noise(rng, self.games, high, self.curvature, y)
            x = self._solve(high, y, 10 * MODE.conjugate, MODE.draw_residual)
            found[s] = (self.value + x)[kept]
        return found


def _lanczos_log(multiply: object, begin: Floats) -> float:
    """b'log(M) b for a unit vector b, from products with a symmetric M: Gauss quadrature."""
    assert callable(multiply)
    diagonal, couplings = [], []
    before, now, length = np.zeros_like(begin), begin, 0.0
    for _ in range(min(MODE.lanczos, len(begin))):
        new = multiply(now) - length * before
        diagonal.append(float(new @ now))
        new -= diagonal[-1] * now
        length = float(np.linalg.norm(new))
        couplings.append(length)
        # the space is used up
        if length < 1e-9:
            break
        before, now = now, new / length
    # values and weights of the quadrature are those of a small tridiagonal matrix
    off = couplings[: len(diagonal) - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    return float((vectors[0] ** 2 * np.log(np.maximum(values, 1e-12))).sum())
