"""How far Monte-Carlo draws have converged (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021).

Every function takes draws of shape (chain, draw) or (chain, draw, K) and returns one number for
each of the K quantities. Each chain is first cut into halves, so that a chain that drifts disagrees
with itself. With m half-chains of n draws, W the mean of their variances and B / n the variance of
their means,

    R-hat = sqrt((B / W + n - 1) / n)        ESS = m n / (1 + 2 sum of the autocorrelations)

where the sum stops by Geyer's rule: neighbouring pairs of autocorrelations must be positive and
must not grow. "Bulk" replaces the draws by normal scores of their ranks, which serves heavy tails;
"tail" looks at the 5% and 95% quantiles. Two more numbers are for chains that wait in a tail, which
bulk and quantiles of the pooled draws hardly show: the longest stretch of equal draws, and how far
the chains disagree on the share of draws beyond the 5% and 95% quantiles (R-hat of such indicators
is the "local R-hat" of Moins, Arbel, Dutfoy and Girard 2023). All others are those of ArviZ,
computed here because importing it takes seconds, except at the edges:

- a quantity that never varies (a coefficient that is fixed at zero) has R-hat 1, as many effective
  draws as there are draws and no Monte-Carlo error; chains that are stuck at different values have
  an infinite R-hat;
- one chain is enough for R-hat: its two halves are compared;
- a draw that is the 5% or 95% quantile itself always counts as below it, whatever the last digit.

With fewer than 4 draws in a chain nothing can be said, and every answer is NaN. Nothing here ever
warns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from revealed._types import Bools, Floats

# Draws in a chain below which nothing can be said: each half needs two to have a variance.
MIN_DRAWS = 4


def r_hat(draws: Floats) -> Floats:
    """Rank-normalised split R-hat, the larger of bulk and folded.

    1 is perfect; from 1.01 on the chains disagree.
    """

    def larger(x: Floats) -> Floats:
        halves = _split_chains(x)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        # a folded quantity may be constant where the quantity is not (-1 and 1): then fmax keeps
        # the number of the bulk
        both = np.fmax(_split_r_hat(_normal_scores(halves)), _split_r_hat(_normal_scores(folded)))
        return np.where(_is_constant(halves), 1.0, both)

    return _per_quantity(draws, larger)


def ess_bulk(draws: Floats) -> Floats:
    """Effective draws in the middle of the distribution.

    Those of the normal scores of the ranks, which are defined for heavy tails too.
    """
    return _per_quantity(draws, lambda x: _ess(_normal_scores(_split_chains(x))))


def ess_tail(draws: Floats) -> Floats:
    """Effective draws for the 5% and the 95% quantile, whichever has fewer.

    A quantile is as well known as the share of draws below it, which is a mean of zeros and ones.
    """

    def fewer(x: Floats) -> Floats:
        low, high = np.quantile(x, [0.05, 0.95], axis=(0, 1))
        below_low, below_high = 1.0 * (x <= low), 1.0 * (x <= high)
        return np.minimum(_ess(_split_chains(below_low)), _ess(_split_chains(below_high)))

    return _per_quantity(draws, fewer)


def tail_disagreement(draws: Floats) -> Floats:
    """How far a chain's share of draws beyond the 5% or 95% quantile is from that of all chains.

    In standard errors, the furthest of all chains and both tails; about standard normal each if
    the chains agree. The quantiles are those of all chains, and the standard error is that of
    effective draws within chains, so that disagreement does not excuse itself. Zero for one chain.
    """

    def furthest(x: Floats) -> Floats:
        chains, answer = len(x), np.zeros(x.shape[2])
        if chains == 1:  # it has no other to disagree with
            return answer
        low, high = np.quantile(x, [0.05, 0.95], axis=(0, 1))
        for beyond in (1.0 * (x < low), 1.0 * (x > high)):
            halves = _split_chains(beyond)
            ess = _ess(halves - halves.mean(axis=1, keepdims=True)) / chains
            share = beyond.mean(axis=(0, 1))
            # a chain's distance from the mean of all has that much of a chain's own variance
            variance = share * (1.0 - share) / ess * (1.0 - 1.0 / chains)
            distance = np.abs(beyond.mean(axis=1) - share).max(axis=0)
            scores = np.divide(
                distance, np.sqrt(variance), out=np.zeros_like(distance), where=variance > 0.0
            )
            answer = np.maximum(answer, scores)
        return answer

    return _per_quantity(draws, furthest)


def longest_stretch(draws: Floats) -> Floats:
    """The most successive draws of a chain that are equal; one where each differs from the last."""

    def longest(x: Floats) -> Floats:
        # draws since the last that differed, counted by the positions where a stretch begins
        position = np.arange(x.shape[1])[:, None]
        answer = np.ones(x.shape[2])
        for chain in x:
            begins = np.ones(chain.shape, dtype=bool)
            begins[1:] = chain[1:] != chain[:-1]
            since = position - np.maximum.accumulate(np.where(begins, position, 0), axis=0)
            answer = np.maximum(answer, since.max(axis=0) + 1.0)
        return answer

    return _per_quantity(draws, longest)


def longest_likely_stretch(draws: Floats, slowdown: float, false_alarm: float) -> Floats:
    """The longest stretch of equal draws that chains make with more than this probability.

    Let a be the share of draws that differ from the one before, and N the number of all draws. From
    a state that is left `slowdown` times less often than the average one, the next L - 1 draws are
    the same with probability (1 - a / slowdown)^(L - 1). So with probability 1 - false_alarm none
    of N stretches is longer than

        L = 1 + log(N / false_alarm) / -log(1 - a / slowdown).

    No limit where nothing ever moves.
    """

    def limit(x: Floats) -> Floats:
        moves = (x[:, 1:] != x[:, :-1]).mean(axis=(0, 1))
        log_stays = np.log1p(-moves / slowdown)
        log_count = np.log(x.shape[0] * x.shape[1] / false_alarm)
        never = np.full_like(moves, np.inf)
        return np.asarray(1.0 + np.divide(log_count, -log_stays, out=never, where=moves > 0.0))

    return _per_quantity(draws, limit)


def ess_mean(draws: Floats) -> Floats:
    """Effective draws for the mean: those of the draws as they are."""
    return _per_quantity(draws, lambda x: _ess(_split_chains(x)))


def ess_sd(draws: Floats) -> Floats:
    """Effective draws for the sd: the bulk ESS of the squared distance from the mean."""
    return _per_quantity(draws, lambda x: _ess(_normal_scores(_split_chains(_squared_distance(x)))))


def mcse_mean(draws: Floats) -> Floats:
    """Monte-Carlo standard error of the mean of the draws: sd / sqrt(ESS of the mean).

    Zero for a quantity that never varies.
    """

    def error(x: Floats) -> Floats:
        sd = standard_deviation(x)
        return np.where(_is_constant(x), 0.0, sd / np.sqrt(_ess(_split_chains(x))))

    return _per_quantity(draws, error)


def mcse_sd(draws: Floats) -> Floats:
    """Monte-Carlo standard error of the standard deviation of the draws.

    By the delta method from that of the variance: se(sd) = se(variance) / (2 sd).
    """

    def error(x: Floats) -> Floats:
        constant = _is_constant(x)
        squares = _squared_distance(x)
        variance = np.where(constant, 1.0, squares.mean(axis=(0, 1)))
        of_squares = np.maximum((squares**2).mean(axis=(0, 1)) - variance**2, 0.0)
        ess = _ess(_split_chains(squares))
        return np.where(constant, 0.0, np.sqrt(of_squares / ess / variance / 4.0))

    return _per_quantity(draws, error)


def standard_deviation(draws: Floats) -> Floats:
    """Standard deviation of the draws of all chains.

    Exactly zero for a constant, because the first draw is taken off; NaN for a single draw.
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.shape[0] * x.shape[1] == 1:
        return np.full(x.shape[2:], np.nan)
    return np.asarray(np.std(x - x[:1, :1], axis=(0, 1), ddof=1))


def autocorrelation(draws: Floats) -> Floats:
    """(chain, lag) correlation of each chain of (chain, draw) with itself, some draws later.

    It is one at lag zero, and everywhere for a chain that never moves.
    """
    # each chain as a quantity of its own, so that nothing is averaged over chains
    covariance = _autocovariance(draws.T[None]).T
    constant = covariance[:, :1] <= 0.0
    return np.where(constant, 1.0, covariance / np.where(constant, 1.0, covariance[:, :1]))


def _per_quantity(draws: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
    """One number for each quantity, by a statistic of (chain, draw, K); checks the draws."""
    given = np.asarray(draws, dtype=np.float64)
    if given.ndim not in (2, 3) or 0 in given.shape[:2]:
        raise ValueError(
            f"draws must have shape (chain, draw) or (chain, draw, K); it is {given.shape}"
        )
    if not np.isfinite(given).all():
        raise ValueError("draws hold NaN or infinite numbers; diagnostics need finite ones")
    cube = given if given.ndim == 3 else given[:, :, None]
    enough = cube.shape[1] >= MIN_DRAWS
    answer = statistic(cube) if enough else np.full(cube.shape[2], np.nan)
    return answer.reshape(given.shape[2:])


def _split_chains(x: Floats) -> Floats:
    """(2 chains, draws // 2, K); a chain of odd length gives up its middle draw."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _squared_distance(x: Floats) -> Floats:
    """The squared distance of each draw from the mean of all."""
    return np.asarray((x - x.mean(axis=(0, 1))) ** 2)


def _is_constant(x: Floats) -> Bools:
    """(K,) which quantities never vary, beyond the rounding of their last digit.

    Their variance is rounding, and dividing by it would make noise of nothing.
    """
    low, high = x.min(axis=(0, 1)), x.max(axis=(0, 1))
    return np.asarray(high - low <= 1e-15 * np.maximum(np.abs(low), np.abs(high)))


def _normal_scores(x: Floats) -> Floats:
    """The normal score of each draw's rank among all draws of its quantity.

    Ties share their mean rank. The score is the normal quantile of (rank - 3/8) / (count + 1/4).
    """
    flat = x.reshape(-1, x.shape[2])
    count, scores = flat.shape[0], np.empty_like(flat)
    # mean ranks are multiples of a half
    ranks = 1.0 + np.arange(2 * count - 1) / 2.0
    of_rank = ndtri((ranks - 0.375) / (count + 0.25))
    # of many quantities with few draws many at once, but no more than the cache holds
    at_once = max(1, 16_384 // count)
    for k in range(0, flat.shape[1], at_once):
        some = np.ascontiguousarray(flat[:, k : k + at_once].T)
        order = np.argsort(some, axis=1)
        in_order = np.take_along_axis(some, order, axis=1)
        # where the run of equal ones begins and ends in which each draw stands
        new = np.ones((len(some), count + 1), np.bool_)
        np.not_equal(in_order[:, 1:], in_order[:, :-1], out=new[:, 1:-1])
        place = np.arange(count)
        first = np.maximum.accumulate(np.where(new[:, :-1], place, 0), axis=1)
        ends = np.where(new[:, 1:], place, count)
        last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        found = np.empty_like(some)
        np.put_along_axis(found, order, of_rank[first + last], axis=1)
        scores[:, k : k + at_once] = found.T
    return scores.reshape(x.shape)


def _split_r_hat(x: Floats) -> Floats:
    """(K,) R-hat of half-chains (m, n, K): sqrt((B / W + n - 1) / n).

    W is the mean of the variances within half-chains, B / n the variance between their means.
    """
    count = x.shape[1]
    # from the first draw on, so that a chain which never moves has a variance of exactly zero
    from_first = x - x[:, :1]
    within = np.var(from_first, axis=1, ddof=1).mean(axis=0)
    between = count * np.var(x.mean(axis=1), axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((between / within + count - 1.0) / count))


def _ess(x: Floats) -> Floats:
    """(K,) effective draws of half-chains (m, n, K), by Geyer's initial monotone sequence."""
    chains, count, _ = x.shape
    covariance = _autocovariance(x)
    within = covariance[0] * count / (count - 1.0)
    total = covariance[0] + np.var(x.mean(axis=1), axis=0, ddof=1)
    constant = _is_constant(x)
    correlation = 1.0 - (within - covariance) / np.where(constant, 1.0, total)
    correlation[0] = 1.0

    # pairs of neighbouring lags, up to the first that is not positive
    last = max(0, (count - 3) // 2)
    even, odd = correlation[0 : 2 * last + 1 : 2], correlation[1 : 2 * last + 2 : 2]
    pairs = even + odd
    ends = pairs <= 0.0
    ends[last] = True
    end = ends.argmax(axis=0)[None]

    # their sum, made to decrease; half of the pair that ends it still counts, unless it would only
    # push the sum down
    before = np.concatenate(
        [np.zeros_like(pairs[:1]), np.cumsum(np.minimum.accumulate(pairs), axis=0)]
    )
    at_end, pair_at_end = np.take_along_axis(even, end, 0)[0], np.take_along_axis(pairs, end, 0)[0]
    rest = np.where((pair_at_end >= 0.0) | (at_end > 0.0), at_end, 0.0)
    time = -1.0 + 2.0 * np.take_along_axis(before, end, 0)[0] + rest

    # antithetic chains may beat independent draws, but by no more than log10 of their number
    size = float(chains * count)
    return np.where(constant, size, size / np.maximum(time, 1.0 / np.log10(size)))


def _autocovariance(x: Floats) -> Floats:
    """(n, K) autocovariance at each lag, averaged over the chains, by fast Fourier transform."""
    chains, count, _ = x.shape
    # zeros behind the draws, so that the end of a chain is not correlated with its beginning
    padded = 1 << (2 * count - 1).bit_length()
    power = np.zeros((padded // 2 + 1, x.shape[2]))
    for chain in x:
        power += np.abs(np.fft.rfft(chain - chain.mean(axis=0), n=padded, axis=0)) ** 2
    return np.asarray(np.fft.irfft(power, n=padded, axis=0)[:count] / (count * chains))
