"""What the decisions taught, and what only the prior says.

Decisions may leave a value open: a state that is never compared with another, a feature that never differs, choices so
consistent that any larger value explains them better still. The posterior then shows the prior, and looks as sure of
itself as anywhere else. This report tells the two apart.

In coordinates where the prior is N(0, I) the posterior variance of any direction is at most 1, because the likelihood
is log-concave; `learnt` is what is missing to 1. The directions are those of the exact curvature of the likelihood at
the posterior mode, together with those that no decision tests; along each, the variance is that of the draws. (The
directions of the draws' own covariance would look learnt where they are not: with 400 effective draws of 100
coefficients, the smallest of 100 variances that are all 1 comes out as 0.25.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla

from understudy._arrays import Floats
from understudy.likelihood import posterior_mode
from understudy.posterior import Posterior
from understudy.priors import Placed
from understudy.separation import Opening, find_opening, in_words, margins, untested

INFORMED = 0.5  # of the prior variance gone: the decisions have more to say than the prior
PRIOR_ONLY = 0.1  # less than that gone: hardly anything was learnt
FEW = 30  # draws; with fewer, variances come from the normal approximation at the mode
SHOWN = 20  # coefficients in a printed table
LISTED = 5  # directions named of each kind


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The posterior mode with the prior variance halved, as it is, and doubled: rows 0, 1 and 2.

    Modes and not means are compared: the posterior is log-concave, so its mode is unique and found exactly, while means
    would need new draws. `sds` are those of the normal approximation at each mode.
    """

    names: tuple[str, ...]
    modes: Floats
    sds: Floats

    @property
    def moves(self) -> Floats:
        """(2, K) how far each mode moves when the prior variance is halved and doubled, in sds as they are."""
        moved = self.modes[[0, 2]] - self.modes[1]
        return np.asarray(np.divide(moved, self.sds[1], out=np.zeros_like(moved), where=self.sds[1] > 0))

    @property
    def largest(self) -> str:
        """The coefficient that moves farthest."""
        return self.names[int(np.abs(self.moves).max(axis=0).argmax())]


@dataclass(frozen=True, eq=False, repr=False)
class Identifiability:
    """What the decisions taught, coefficient by coefficient and direction by direction; print it for a report.

    `posterior_sd`, `prior_sd` (K,): spreads of each coefficient; a flat prior has none (None).
    `directions` (K, D): columns along which the coefficients can move, largest entry 1, the most learnt first.
    `learnt` (D,): the share of the prior variance along each that the decisions removed, from 0 to 1. Under a flat
        prior everything known comes from the decisions, and all are 1.
    `untested` (K, n): orthonormal directions along which no decision ever compares its actions.
    `opening`: a direction that no choice contradicts and some speak for, if there is one: the choices are separable.
    `explained`, `decisions`: how many choices the opening makes certain when taken far enough, and of how many.
    `sensitivity`: what the size of the prior variance does; None under a flat prior.
    """

    names: tuple[str, ...]
    posterior_sd: Floats
    prior_sd: Floats | None
    directions: Floats
    learnt: Floats
    untested: Floats
    opening: Opening | None
    explained: int
    decisions: int
    sensitivity: Sensitivity | None

    @property
    def ratio(self) -> Floats:
        """(K,) posterior sd / prior sd: 1 where nothing was learnt; 0 for a coefficient that can only be zero."""
        if self.prior_sd is None:
            raise ValueError("a flat prior has no spread to compare the posterior with")
        fixed = self.prior_sd < 1e-12 * self.prior_sd.max()
        return np.where(fixed, 0.0, self.posterior_sd / np.where(fixed, 1.0, self.prior_sd))

    @property
    def informed(self) -> int:
        """How many directions the decisions inform: more than half of the prior variance is gone."""
        return int((self.learnt > INFORMED).sum())

    @property
    def prior_only(self) -> int:
        """How many directions only the prior speaks of: less than a tenth of its variance is gone."""
        return int((self.learnt < PRIOR_ONLY).sum())

    @property
    def separable(self) -> bool:
        """Whether some value explains choices better and better as it grows, so that only the prior limits it."""
        return self.opening is not None

    def __repr__(self) -> str:
        return (
            f"<Identifiability: {self.informed} of {len(self.learnt)} directions informed, "
            f"{self.prior_only} by the prior only{', separable' if self.separable else ''}>"
        )

    def __str__(self) -> str:
        parts = [self._table(), self._informed(), self._prior_only(), self._separable(), self._sensitivity()]
        return "\n\n".join(part for part in parts if part)

    def _table(self) -> str:
        columns = {"posterior sd": self.posterior_sd}
        shown = np.arange(len(self.names))
        if self.prior_sd is not None:
            columns |= {"prior sd": self.prior_sd, "ratio": self.ratio}
        more = ""
        if len(self.names) > SHOWN:
            order = np.argsort(self.posterior_sd if self.prior_sd is None else self.ratio, kind="stable")
            shown = np.concatenate([order[: SHOWN // 2], order[-SHOWN // 2 :]])
            more = f"\n... and {len(self.names) - SHOWN} in between; these are the {SHOWN // 2} best and worst known"
        cells = [["", *(self.names[k] for k in shown)]]
        cells += [[head, *(f"{values[k]:.3g}" for k in shown)] for head, values in columns.items()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in zip(*cells, strict=True)
        ]
        return "\n".join(lines) + more

    def _informed(self) -> str:
        count = len(self.learnt)
        if self.prior_sd is None:
            return (
                f"The prior is flat, so there is none to compare with: all that is known of the {count} "
                f"{_plural('direction', count)} comes from the decisions."
            )
        head = f"The decisions inform {self.informed} of {count} {_plural('direction', count)}"
        if self.informed == 0:
            return head + "."
        best = [f"  {_words(self, i)} ({_share(self.learnt[i])} learnt)" for i in range(min(LISTED, self.informed))]
        return "\n".join([head + " (more than half of the prior's variance is gone). The most learnt:", *best])

    def _prior_only(self) -> str:
        if self.prior_sd is None or self.prior_only == 0:
            return ""
        head = (
            f"In {self.prior_only} {_plural('direction', self.prior_only)} only the prior speaks: "
            f"what the posterior says there was put in, not learnt."
        )
        never = self.untested.shape[1]
        # Named one coefficient at a time: the direction in which it moves most while nothing changes.
        pivots = sla.qr(self.untested.T, mode="r", pivoting=True)[1][: min(never, LISTED)] if never else []
        lines = [
            f"  {in_words(_largest_one(self.untested @ self.untested[k]), self.names)} (no decision compares it)"
            for k in pivots
        ]
        faint = [i for i in range(len(self.learnt) - never) if self.learnt[i] < PRIOR_ONLY]
        lines += [f"  {_words(self, i)} ({_share(self.learnt[i])} learnt)" for i in faint[::-1][: LISTED - len(lines)]]
        left = self.prior_only - len(lines)
        return "\n".join([head, *lines, *([f"  and {left} more"] if left else [])])

    def _separable(self) -> str:
        if self.opening is None:
            return (
                "The choices are not separable: no value explains them all, so they limit it in every direction they test."
                if len(self.learnt) > self.untested.shape[1]
                else "No decision compares actions that differ, so nothing was learnt at all."
            )
        if self.explained == self.decisions:
            return (
                f"There is a value that explains every choice with certainty ({self.opening}), so the choices alone do "
                "not limit how large the values are; their size comes from the prior."
            )
        return (
            f"There is a direction that no choice contradicts ({self.opening}). Taken far enough it explains "
            f"{self.explained} of {self.decisions} choices with certainty, so the choices alone do not limit how far "
            "the values go along it; that comes from the prior."
        )

    def _sensitivity(self) -> str:
        if self.sensitivity is None:
            return ""
        k = self.names.index(self.sensitivity.largest)
        halved, doubled = self.sensitivity.moves[:, k]
        size = max(abs(halved), abs(doubled))
        verdict = "hardly matters" if size < 0.1 else "matters little" if size < 0.5 else "matters"
        return (
            f"The size of the prior variance {verdict}: {self.names[k]} moves most, by {halved:+.2g} sd when it is "
            f"halved and {doubled:+.2g} sd when it is doubled (posterior modes compared)."
        )


def identify(posterior: Posterior) -> Identifiability:
    """Tell what the decisions behind a posterior taught from what only the prior says.

    With fewer than 30 draws, spreads are those of the normal approximation at the posterior mode.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> us.identify(us.fit(d, us.Gaussian(1.0)))  # only the difference of the two is asked for
    <Identifiability: 1 of 2 directions informed, 1 by the prior only>
    """
    if not isinstance(posterior, Posterior):
        raise ValueError(f"identify needs a Posterior, such as us.fit returns, not {type(posterior).__name__}")
    if posterior.noise is not None:
        raise ValueError("identify tells of independent noise, and this posterior has learnt a noise covariance")
    d = posterior.decisions
    placed = posterior.placed
    never, opening, explained = _open_directions(posterior, placed)
    if placed.flat and (never.shape[1] or opening):
        raise ValueError(
            "under a flat prior these decisions have no posterior, so there is nothing to report on: the choices do "
            f"not bound ({opening or in_words(never[:, 0], d.names)})"
        )
    mode, information = posterior_mode(d, placed)
    enough = len(posterior.values) >= FEW
    sd = posterior.sd if enough else _sd(placed.basis, information)
    if placed.flat:
        _, vectors = np.linalg.eigh(information)
        directions, learnt, prior_sd, sensitivity = placed.basis @ vectors[:, ::-1], np.ones(len(vectors)), None, None
    else:
        directions, learnt = _directions(placed, information, never, posterior.values if enough else None)
        prior_sd = _sd(placed.basis, placed.precision)
        sensitivity = _sensitivity(posterior, placed, mode, information)
    return Identifiability(
        names=d.names,
        posterior_sd=sd,
        prior_sd=prior_sd,
        directions=_largest_one(directions),
        learnt=learnt,
        untested=never,
        opening=opening,
        explained=explained,
        decisions=len(d),
        sensitivity=sensitivity,
    )


def _open_directions(posterior: Posterior, placed: Placed) -> tuple[Floats, Opening | None, int]:
    """The untested directions, an opening among the tested ones, and how many choices that explains outright."""
    d = posterior.decisions
    never = untested(d, placed.basis)
    turn = np.linalg.qr(placed.basis.T @ never, mode="complete")[0]
    tested = placed.basis @ turn[:, never.shape[1] :]
    opening = find_opening(d, tested, np.hstack([placed.constants, never])) if tested.shape[1] else None
    if opening is None:
        return never, None, 0
    won = margins(d)
    tie = won @ opening.direction < 1e-9 * (abs(won) @ np.abs(opening.direction)).max()
    rivals = np.setdiff1d(np.arange(d.rows.shape[0]), d.taken, assume_unique=True)
    unsure = np.unique(d.decision_of_row[rivals[tie]])
    return never, opening, len(d) - len(unsure)


def _directions(placed: Placed, information: Floats, never: Floats, draws: Floats | None) -> tuple[Floats, Floats]:
    """(K, D) directions from most to least learnt, untested ones last, and the share learnt along each."""
    root = sla.cholesky(placed.precision, lower=True)  # x = root' q has the prior N(0, I)
    turn = np.linalg.qr(root.T @ placed.basis.T @ never, mode="complete")[0]
    open_x, tested_x = turn[:, : never.shape[1]], turn[:, never.shape[1] :]
    curvature = sla.solve_triangular(root, information - placed.precision, lower=True)
    curvature = sla.solve_triangular(root, curvature.T, lower=True)
    values, vectors = np.linalg.eigh(tested_x.T @ curvature @ tested_x)
    tested_x = tested_x @ vectors
    if draws is None:
        variance = 1.0 / (1.0 + np.maximum(values, 0.0))
    else:
        variance = np.var(draws @ (placed.basis @ root @ tested_x), axis=0, ddof=1)
    learnt = np.clip(1.0 - variance, 0.0, 1.0)
    order = np.argsort(-learnt, kind="stable")
    across = np.hstack([tested_x[:, order], open_x])
    directions = placed.basis @ sla.solve_triangular(root, across, lower=True, trans="T")
    return directions, np.concatenate([learnt[order], np.zeros(never.shape[1])])


def _sensitivity(posterior: Posterior, placed: Placed, mode: Floats, information: Floats) -> Sensitivity:
    def with_precision(times: float) -> tuple[Floats, Floats]:
        return posterior_mode(posterior.decisions, replace(placed, precision=times * placed.precision))

    found = [with_precision(2.0), (mode, information), with_precision(0.5)]
    sds = [_sd(placed.basis, each) for _, each in found]
    return Sensitivity(posterior.names, np.array([mode for mode, _ in found]), np.array(sds))


def _sd(basis: Floats, precision: Floats) -> Floats:
    """(K,) standard deviations of v = basis q with this precision of q."""
    root = sla.cholesky(precision, lower=True)
    return np.asarray(np.linalg.norm(sla.solve_triangular(root, basis.T, lower=True), axis=0))


def _largest_one(directions: Floats) -> Floats:
    """Each column (or the one vector) with its largest entry scaled to 1."""
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0, keepdims=True), axis=0)
    return np.asarray(directions / largest)


def _words(report: Identifiability, i: int) -> str:
    return in_words(report.directions[:, i], report.names)


def _share(learnt: float) -> str:
    return "over 99%" if learnt > 0.99 else "under 1%" if learnt < 0.01 else f"{learnt:.0%}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"
