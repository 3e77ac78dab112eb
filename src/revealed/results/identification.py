"""What the decisions identify, and what only the prior says.

Decisions may leave a value open: a state that is never compared with another, a feature that never
differs, choices so consistent that any larger value explains them better still. The posterior then
shows the prior, and looks as sure of itself as anywhere else. This report tells the two apart.

In coordinates where the prior is N(0, I) the posterior variance of any direction is at most 1,
because the likelihood is log-concave; the *contraction* is what is missing to 1. The directions are
those of the exact curvature of the likelihood at the posterior mode, together with those that no
decision tests; along each, the variance is that of the draws. (The directions of the draws' own
covariance would look contracted where they are not: with 400 effective draws of 100 coefficients,
the smallest of 100 variances that are all 1 comes out as 0.25.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.models.propriety import (
    UnboundedDirection,
    chosen_minus_rivals,
    describe_direction,
    find_unbounded_direction,
    unidentified_directions,
)
from revealed.results.drawn_noise import counted_decisions, refuse_noise_covariance
from revealed.results.prior_sensitivity import Sensitivity, approximate_sd, find_sensitivity
from revealed.results.text import align_columns, percentage, plural


@dataclass(frozen=True)
class IdentificationCriteria:
    """When a direction counts as identified, and how much of a report is printed.

    Attributes
    ----------
    informed_contraction
        From which on the decisions have more to say than the prior.
    prior_only_contraction
        Below which hardly anything was learnt.
    min_draws
        With fewer, variances come from the normal approximation at the mode.
    max_rows
        Coefficients in a printed table.
    max_directions
        Directions named of each kind.
    """

    informed_contraction: float = 0.5
    prior_only_contraction: float = 0.1
    min_draws: int = 30
    max_rows: int = 20
    max_directions: int = 5


CRITERIA = IdentificationCriteria()


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """What the decisions identify, by coefficient and by direction; print it for a report.

    Attributes
    ----------
    posterior_sd, prior_sd
        (K,) sds of each coefficient; a flat prior has none (None).
    directions
        (K, D) columns along which the coefficients can move, largest entry 1, the most contracted
        first.
    contraction
        (D,) the share of the prior variance along each that the decisions removed, from 0 to 1.
        Under a flat prior everything known comes from the decisions, and all are 1.
    unidentified
        (K, n) orthonormal directions along which no decision ever compares its actions.
    unbounded
        A direction that no choice contradicts and some speak for, if there is one: the choices are
        separable.
    explained, decisions
        How many choices that direction makes certain when taken far enough, and of how many.
    sensitivity
        What the prior variance does; None under a flat prior.
    """

    names: tuple[str, ...]
    posterior_sd: Floats
    prior_sd: Floats | None
    directions: Floats
    contraction: Floats
    unidentified: Floats
    unbounded: UnboundedDirection | None
    explained: int
    decisions: int
    sensitivity: Sensitivity | None

    @property
    def sd_ratio(self) -> Floats:
        """(K,) posterior sd / prior sd: 1 where nothing was learnt; 0 for what can only be zero."""
        if self.prior_sd is None:
            raise ValueError("a flat prior has no spread to compare the posterior with")
        # a coefficient alone in a sum-to-zero block has no spread before or after
        fixed = self.prior_sd < 1e-12 * self.prior_sd.max()
        return np.where(fixed, 0.0, self.posterior_sd / np.where(fixed, 1.0, self.prior_sd))

    @property
    def informed(self) -> int:
        """How many directions the decisions inform: over half of the prior variance is gone.

        Along these the posterior says more about the decisions than about the prior.
        """
        return int((self.contraction > CRITERIA.informed_contraction).sum())

    @property
    def prior_only(self) -> int:
        """How many directions only the prior informs: under a tenth of its variance is gone.

        Along these the posterior repeats what was put in.
        """
        return int((self.contraction < CRITERIA.prior_only_contraction).sum())

    @property
    def separable(self) -> bool:
        """Whether some value explains choices better and better as it grows.

        Then only the prior limits it.
        """
        return self.unbounded is not None

    def __repr__(self) -> str:
        return (
            f"<Identification: {self.informed} of {len(self.contraction)} directions informed, "
            f"{self.prior_only} by the prior only{', separable' if self.separable else ''}>"
        )

    def __str__(self) -> str:
        parts = [
            self._table(),
            self._describe_informed(),
            self._describe_prior_only(),
            self._describe_separable(),
            self._describe_sensitivity(),
        ]
        return "\n\n".join(part for part in parts if part)

    def _table(self) -> str:
        """A line a coefficient; the best and the worst known, where there are many."""
        # the ratio says at a glance what was learnt
        columns = {"posterior sd": self.posterior_sd}
        shown = np.arange(len(self.names))
        if self.prior_sd is not None:
            columns |= {"prior sd": self.prior_sd, "ratio": self.sd_ratio}
        most, more = CRITERIA.max_rows, ""
        if len(self.names) > most:
            order = np.argsort(
                self.posterior_sd if self.prior_sd is None else self.sd_ratio, kind="stable"
            )
            shown = np.concatenate([order[: most // 2], order[-most // 2 :]])
            more = (
                f"\n... and {len(self.names) - most} in between; these are the {most // 2} best "
                "and worst known"
            )
        cells = [["", *(self.names[k] for k in shown)]]
        cells += [[head, *(f"{values[k]:.3g}" for k in shown)] for head, values in columns.items()]
        return align_columns(cells) + more

    def _describe_informed(self) -> str:
        """How many directions are informed by the decisions, and the most contracted of them."""
        # without a prior to compare with, everything is from the decisions
        count = len(self.contraction)
        if self.prior_sd is None:
            return (
                "The prior is flat, so there is none to compare with: all that is known of the "
                f"{count} {plural('direction', count)} comes from the decisions."
            )
        head = f"The decisions inform {self.informed} of {count} {plural('direction', count)}"
        if self.informed == 0:
            return head + "."
        best = [
            f"  {self._describe(i)} ({percentage(self.contraction[i])} learnt)"
            for i in range(min(CRITERIA.max_directions, self.informed))
        ]
        head += " (more than half of the prior's variance is gone). The most learnt:"
        return "\n".join([head, *best])

    def _describe_prior_only(self) -> str:
        """The directions that only the prior informs: first those that no decision compares."""
        if self.prior_sd is None or self.prior_only == 0:
            return ""
        head = (
            f"In {self.prior_only} {plural('direction', self.prior_only)} only the prior speaks: "
            f"what the posterior says there was put in, not learnt."
        )
        never, most = self.unidentified.shape[1], CRITERIA.max_directions
        # named one coefficient at a time: the direction in which it moves most while nothing
        # changes; pivoted QR picks coefficients whose directions differ most
        pivots = (
            sla.qr(self.unidentified.T, mode="r", pivoting=True)[1][: min(never, most)]
            if never
            else []
        )
        lines = []
        for k in pivots:
            direction = _scale_to_unit_maximum(self.unidentified @ self.unidentified[k])
            lines.append(f"  {describe_direction(direction, self.names)} (no decision compares it)")
        # after those, the directions that were tested but hardly contracted, the least first
        faint = [
            i
            for i in range(len(self.contraction) - never)
            if self.contraction[i] < CRITERIA.prior_only_contraction
        ]
        lines += [
            f"  {self._describe(i)} ({percentage(self.contraction[i])} learnt)"
            for i in faint[::-1][: most - len(lines)]
        ]
        # a report names a few and counts the rest
        left = self.prior_only - len(lines)
        return "\n".join([head, *lines, *([f"  and {left} more"] if left else [])])

    def _describe_separable(self) -> str:
        """Whether the choices alone limit the values, and along which direction they do not."""
        if self.unbounded is None:
            return (
                "The choices are not separable: no value explains them all, so they limit it in "
                "every direction they test."
                if len(self.contraction) > self.unidentified.shape[1]
                else "No decision compares actions that differ, so nothing was learnt at all."
            )
        # separation may be complete, or only quasi-complete
        if self.explained == self.decisions:
            return (
                f"There is a value that explains every choice with certainty ({self.unbounded}), "
                "so the choices alone do not limit how large the values are; their size comes from "
                "the prior."
            )
        return (
            f"There is a direction that no choice contradicts ({self.unbounded}). Taken far enough "
            f"it explains {self.explained} of {self.decisions} choices with certainty, so the "
            "choices alone do not limit how far the values go along it; that comes from the prior."
        )

    def _describe_sensitivity(self) -> str:
        """Whether another prior variance would give another answer."""
        if self.sensitivity is None:
            return ""
        # in units of the posterior sd, so that 0.1 does not show in any figure
        k = self.names.index(self.sensitivity.largest)
        halved, doubled = self.sensitivity.moves[:, k]
        size = max(abs(halved), abs(doubled))
        matters = "hardly matters" if size < 0.1 else "matters little" if size < 0.5 else "matters"
        return (
            f"The size of the prior variance {matters}: {self.names[k]} moves most, by "
            f"{halved:+.2g} sd when it is halved and {doubled:+.2g} sd when it is doubled "
            "(posterior modes compared)."
        )

    def _describe(self, i: int) -> str:
        """The i-th direction in words."""
        return describe_direction(self.directions[:, i], self.names)


def identify(posterior: Any) -> Identification:
    """Tell what the decisions behind a posterior identify from what only the prior says.

    With fewer than 30 draws, sds are those of the normal approximation at the posterior mode.

    Parameters
    ----------
    posterior
        A `ChoicePosterior` with independent noise; a rate of lapses is taken at its mean.

    Returns
    -------
    Identification
        A report; print it.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)))
    >>> post.identification()  # only the difference of the two is asked for
    <Identification: 1 of 2 directions informed, 1 by the prior only>
    """
    refuse_noise_covariance(posterior)
    # first what the choices leave open, which is exact and needs no draws
    # of equal decisions once
    prior, (d, weight, noise) = posterior.resolved_prior, counted_decisions(posterior)
    unidentified, unbounded, explained = _unlimited_directions(d, weight, prior)
    if prior.flat and (unidentified.shape[1] or unbounded):
        raise ValueError(
            "under a flat prior these decisions have no posterior, so there is nothing to report "
            "on: the choices do not bound "
            f"({unbounded or describe_direction(unidentified[:, 0], d.names)})"
        )
    # then the curvature of the posterior at its mode
    mode, information = posterior_mode(d, prior, weight, noise)
    enough = len(posterior.values) >= CRITERIA.min_draws
    sd = posterior.sd("value") if enough else approximate_sd(prior.basis, information)
    prior_sd, sensitivity = None, None
    # the best known direction has the largest information
    if prior.flat:
        _, vectors = np.linalg.eigh(information)
        directions, contraction = prior.basis @ vectors[:, ::-1], np.ones(len(vectors))
    else:
        draws = posterior.values if enough else None
        directions, contraction = _directions(prior, information, unidentified, draws)
        prior_sd = approximate_sd(prior.basis, prior.precision)
        sensitivity = find_sensitivity(d, weight, noise, prior, mode, information)
    return Identification(
        names=d.names,
        posterior_sd=sd,
        prior_sd=prior_sd,
        directions=_scale_to_unit_maximum(directions),
        contraction=contraction,
        unidentified=unidentified,
        unbounded=unbounded,
        explained=explained,
        decisions=len(posterior.decisions),
        sensitivity=sensitivity,
    )


def _unlimited_directions(
    d: Decisions, weight: Floats, prior: ResolvedPrior
) -> tuple[Floats, UnboundedDirection | None, int]:
    """(K, n) unidentified directions; an unbounded one among the others; what that one explains.

    The last is the number of choices that become certain when the value is taken far along it.
    weight: (T,) how often each decision was made.
    """
    unidentified = unidentified_directions(d, prior.basis)
    # an orthonormal basis of the coordinates: unidentified directions first, then those tested
    rotation = np.linalg.qr(prior.basis.T @ unidentified, mode="complete")[0]
    tested = prior.basis @ rotation[:, unidentified.shape[1] :]
    unbounded = None
    if tested.shape[1]:
        constant = np.hstack([prior.constant_directions, unidentified])
        unbounded = find_unbounded_direction(d, tested, constant)
    if unbounded is None:
        return unidentified, None, 0
    # a choice is explained where it beats all its rivals strictly along the direction
    margins = chosen_minus_rivals(d)
    tie = margins @ unbounded.direction < 1e-9 * (abs(margins) @ np.abs(unbounded.direction)).max()
    rivals = np.setdiff1d(np.arange(d.rows.shape[0]), d.chosen_row, assume_unique=True)
    unsure = np.unique(d.decision_of_row[rivals[tie]])
    return unidentified, unbounded, round(weight.sum() - weight[unsure].sum())


def _directions(
    prior: ResolvedPrior, information: Floats, unidentified: Floats, draws: Floats | None
) -> tuple[Floats, Floats]:
    """(K, D) directions from most to least contracted, and the contraction along each.

    Unidentified directions come last. draws: None for the variances of the normal approximation.
    """
    # x = root' q has the prior N(0, I)
    root = sla.cholesky(prior.precision, lower=True)
    rotation = np.linalg.qr(root.T @ prior.basis.T @ unidentified, mode="complete")[0]
    never = unidentified.shape[1]
    unidentified_x, tested_x = rotation[:, :never], rotation[:, never:]
    # the curvature of the likelihood in x, and its principal directions among those tested
    curvature = sla.solve_triangular(root, information - prior.precision, lower=True)
    curvature = sla.solve_triangular(root, curvature.T, lower=True)
    values, vectors = np.linalg.eigh(tested_x.T @ curvature @ tested_x)
    tested_x = tested_x @ vectors
    if draws is None:
        variance = 1.0 / (1.0 + np.maximum(values, 0.0))
    else:
        variance = np.var(draws @ (prior.basis @ root @ tested_x), axis=0, ddof=1)
    contraction = np.clip(1.0 - variance, 0.0, 1.0)
    order = np.argsort(-contraction, kind="stable")
    ordered_x = np.hstack([tested_x[:, order], unidentified_x])
    directions = prior.basis @ sla.solve_triangular(root, ordered_x, lower=True, trans="T")
    return directions, np.concatenate([contraction[order], np.zeros(never)])


def _scale_to_unit_maximum(directions: Floats) -> Floats:
    """Each column (or the one vector) with its largest entry scaled to 1.

    Lengths of directions mean nothing, and so they read more easily.
    """
    # a direction reads best as "one of this, half of that"
    largest = np.take_along_axis(
        directions, np.abs(directions).argmax(axis=0, keepdims=True), axis=0
    )
    return np.asarray(directions / largest)
