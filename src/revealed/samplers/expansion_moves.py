"""The matrices of data augmentation's moves: the value given the utilities, working parameters too.

    v | w ~ N(F F' (X'w + precision mean), F F'),    F F' = (X'X + precision)^-1

in the directions that a move draws the value in. They are worked out once: utilities change from
iteration to iteration, and these matrices do not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.parameter_expansion import ExpansionMove
from revealed.kernels.prior_scale import PriorScale
from revealed.models.priors import ResolvedPrior


@dataclass(frozen=True, eq=False)
class MoveDirections:
    """The directions (K, D) a move draws the value in, and what is known of them.

    precision: (D, D) their prior precision. gram: (D, D) X'X in them. constants: (K, L) those of
    the directions that are constants of sum-to-zero blocks. constant_utilities: (P, L) X constants.
    translation_sd: the constants' prior sd, zero when flat.
    """

    directions: Floats
    precision: Floats
    gram: Floats
    constants: Floats
    constant_utilities: Floats
    translation_sd: float

    @staticmethod
    def build(
        decisions: Decisions, resolved_prior: ResolvedPrior, translates: bool
    ) -> MoveDirections:
        """The prior's free directions, and the blocks' constants if the move translates.

        A move that translates draws the value and the constants together, and drops the latter.
        """
        constants = (
            resolved_prior.constant_directions
            if translates
            else np.zeros((len(decisions.names), 0))
        )
        translation_sd = 0.0
        if translates and resolved_prior.flat:
            # Only the independent combinations of the blocks' constants shift the utilities.
            _, sizes, combinations = sla.svd(decisions.rows @ constants, full_matrices=False)
            constants = constants @ combinations[sizes > 1e-10 * sizes[0]].T
        elif translates:
            # As wide as the prior is on average in its own directions.
            prior_precision = resolved_prior.precision
            translation_sd = float(np.sqrt(prior_precision.shape[0] / np.trace(prior_precision)))
        # Prior precision and X'X in the free directions and the constants together.
        directions = np.hstack([resolved_prior.basis, constants])
        free = resolved_prior.basis.shape[1]
        precision = np.zeros((directions.shape[1],) * 2)
        precision[:free, :free] = resolved_prior.precision
        if translation_sd > 0:
            precision[free:, free:] = np.eye(constants.shape[1]) / translation_sd**2
        # X'X is K by K even where the rows are sparse.
        gram = decisions.rows.T @ decisions.rows
        gram = gram.toarray() if sp.issparse(gram) else gram
        return MoveDirections(
            directions,
            precision,
            directions.T @ gram @ directions,
            constants,
            decisions.rows @ constants,
            translation_sd,
        )


def build_move(
    resolved_prior: ResolvedPrior,
    directions: MoveDirections,
    rescales: bool,
    scale_prior: tuple[float, float],
) -> ExpansionMove:
    """The matrices of a move, with the factor F of the value's covariance given the utilities.

    F F' = (X'X + prior precision)^-1 in the move's directions. scale_prior: a and b of the inverse
    gamma prior of the working scale.
    """
    try:
        root = sla.cholesky(directions.gram + directions.precision, lower=True)
    except sla.LinAlgError:
        raise ValueError(
            "two or more features are the same to the last digit at this scale, and the prior is "
            "too wide to tell them apart; rescale the features, leave one out, or give a smaller "
            "prior variance"
        ) from None
    factor = sla.solve_triangular(root, directions.directions.T, lower=True).T
    prior_diag, prior_full = resolved_prior.diagonal_or_full
    return ExpansionMove(
        factor=np.ascontiguousarray(factor),
        precision_times_mean=_precision_times_mean(resolved_prior),
        constants=np.ascontiguousarray(directions.constants.T),
        constant_utilities=np.ascontiguousarray(directions.constant_utilities.T),
        translation_sd=directions.translation_sd,
        rescales=rescales,
        scale_shape=float(scale_prior[0]),
        scale_rate=float(scale_prior[1]),
        lost_df=float(directions.constants.shape[1]) if resolved_prior.flat else 0.0,
        prior_diag=prior_diag,
        prior_full=prior_full,
        prior_factor=1.0,
    )


def build_prior_scale(
    resolved_prior: ResolvedPrior, directions: MoveDirections
) -> PriorScale | None:
    """What inferring the prior scale needs; None where it is given.

    The generalised eigenvectors of X'X against the prior precision make the move's factor at any
    sd a matter of dividing columns.
    """
    if resolved_prior.scale is None:
        return None
    prior_diag, prior_full = resolved_prior.diagonal_or_full
    # vectors' precision vectors = I, and vectors' gram vectors is diagonal.
    eigenvalues, vectors = sla.eigh(directions.gram, directions.precision)
    return PriorScale(
        scale=resolved_prior.scale,
        dimension=resolved_prior.basis.shape[1],
        mean=resolved_prior.mean,
        prior_diag=prior_diag,
        prior_full=prior_full,
        constant_precision=resolved_prior.constant_precision,
        eigenvectors=np.ascontiguousarray(directions.directions @ vectors),
        gram_eigenvalues=np.maximum(eigenvalues, 0.0),
        precision_times_mean=_precision_times_mean(resolved_prior),
        translation_sd=directions.translation_sd,
    )


def _precision_times_mean(resolved_prior: ResolvedPrior) -> Floats:
    """(K,) the prior precision of v times the prior mean: the prior's part of X'w."""
    basis = resolved_prior.basis
    return np.asarray(basis @ (resolved_prior.precision @ (basis.T @ resolved_prior.mean)))
