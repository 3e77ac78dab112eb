"""How far Monte-Carlo draws can be trusted (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021).

Every function takes draws of shape (chain, draw) or (chain, draw, K) and answers with one number for each of the K
quantities. Each chain is first cut into halves, so that a chain that drifts disagrees with itself. With m half-chains
of n draws, W the mean of their variances and B / n the variance of their means,

    R-hat = sqrt((B / W + n - 1) / n)                     ESS = m n / (1 + 2 sum of the autocorrelations)

where the sum stops by Geyer's rule: neighbouring pairs of autocorrelations must be positive and must not grow.
"Bulk" replaces the draws by normal scores of their ranks, which serves heavy tails; "tail" looks at the 5% and 95%
quantiles. The numbers are those of ArviZ, computed here because importing it takes seconds, except at the edges:

- a quantity that never varies (a coefficient that is fixed at zero) has R-hat 1, as many effective draws as there are
  draws and no Monte-Carlo error; chains that are stuck at different values have an infinite R-hat;
- one chain is enough for R-hat: its two halves are compared;
- a draw that is the 5% or 95% quantile itself always counts as below it, whatever the last digit says.

With fewer than 4 draws in a chain nothing can be said, and every answer is NaN. Nothing here ever warns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from understudy._arrays import Bools, Floats

FEWEST = 4  # draws in a chain; each half needs two to have a variance
R_HAT = 1.01  # below this the chains agree
PER_CHAIN = 100  # effective draws a chain, for R-hat and the quantiles to mean something
ERROR = 0.1  # of the sd: a smaller Monte-Carlo error hardly shows
SHOWN = 20  # rows of a printed table
TOGETHER = 1 << 22  # numbers that are summarised at a time


def r_hat(draws: Floats) -> Floats:
    """Rank-normalised split R-hat, the larger of bulk and folded; 1 is perfect, above 1.01 the chains disagree."""

    def larger(x: Floats) -> Floats:
        halves = _halves(x)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        # a folded quantity may be constant where the quantity is not (-1 and 1): fmax then keeps the bulk
        both = np.fmax(_r_hat(_scores(halves)), _r_hat(_scores(folded)))
        return np.where(_constant(halves), 1.0, both)

    return _each(draws, larger)


def ess_bulk(draws: Floats) -> Floats:
    """Effective draws in the middle of the distribution: those of the normal scores of the ranks."""
    return _each(draws, lambda x: _ess(_scores(_halves(x))))


def ess_tail(draws: Floats) -> Floats:
    """Effective draws for the 5% and the 95% quantile, whichever has fewer."""

    def fewer(x: Floats) -> Floats:
        low, high = np.quantile(x, [0.05, 0.95], axis=(0, 1))
        return np.minimum(_ess(_halves(1.0 * (x <= low))), _ess(_halves(1.0 * (x <= high))))

    return _each(draws, fewer)


def ess_mean(draws: Floats) -> Floats:
    """Effective draws for the mean: those of the draws as they are."""
    return _each(draws, lambda x: _ess(_halves(x)))


def ess_squares(draws: Floats) -> Floats:
    """Effective draws for the spread: the bulk ESS of the squared distance from the mean."""
    return _each(draws, lambda x: _ess(_scores(_halves(_squares(x)))))


def mcse_mean(draws: Floats) -> Floats:
    """Monte-Carlo standard error of the mean of the draws."""

    def error(x: Floats) -> Floats:
        return np.where(_constant(x), 0.0, spread(x) / np.sqrt(_ess(_halves(x))))

    return _each(draws, error)


def mcse_sd(draws: Floats) -> Floats:
    """Monte-Carlo standard error of the standard deviation of the draws."""

    def error(x: Floats) -> Floats:
        still = _constant(x)
        squares = _squares(x)
        variance = np.where(still, 1.0, squares.mean(axis=(0, 1)))
        of_squares = np.maximum((squares**2).mean(axis=(0, 1)) - variance**2, 0.0)
        return np.where(still, 0.0, np.sqrt(of_squares / _ess(_halves(squares)) / variance / 4.0))

    return _each(draws, error)


def spread(draws: Floats) -> Floats:
    """Standard deviation of the draws of all chains; exactly zero for a constant, NaN for a single draw."""
    x = np.asarray(draws, dtype=np.float64)
    if x.shape[0] * x.shape[1] == 1:
        return np.full(x.shape[2:], np.nan)
    return np.asarray(np.std(x - x[:1, :1], axis=(0, 1), ddof=1))


@dataclass(frozen=True, eq=False)
class Summary:
    """What the draws say of each coefficient, and how far to trust it; arrays are (K,).

    `low` and `high` are the 5% and 95% quantiles, `fixed` marks coefficients that can only be zero. `warnings` say in
    words what is wrong; a single chain is worth a warning but does not make a run untrusted.
    """

    names: tuple[str, ...]
    chains: int
    draws: int
    mean: Floats
    sd: Floats
    mcse: Floats
    low: Floats
    high: Floats
    ess_bulk: Floats
    ess_tail: Floats
    r_hat: Floats
    fixed: Bools
    interrupted: bool = False
    requested: int | None = None

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against these draws."""
        return not self._faults()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything to know before relying on the numbers, a sentence each."""
        one = "one chain only, so R-hat compares its two halves; run several chains to see whether they agree"
        return (*self._faults(), *([one] if self.chains == 1 else []))

    @property
    def verdict(self) -> str:
        """In words: converged, or what is wrong."""
        if not self.trusted:
            return "Do not trust this yet: " + "; also ".join(self.warnings) + "."
        least, most = self._ess().min(), self._relative_error().max()
        alone = ", as far as one chain can tell" if self.chains == 1 else ""
        facts = f"R-hat at most {self.r_hat.max():.3f}, at least {least:.0f} effective draws, "
        tail = f" Note: {self.warnings[0]}." if self.warnings else ""
        return f"Converged{alone}: {facts}Monte-Carlo error at most {most:.1%} of the sd.{tail}"

    def __str__(self) -> str:
        shown = np.arange(len(self.names))
        more = ""
        if len(self.names) > SHOWN:
            badness = np.maximum((self.r_hat - 1.0) / (R_HAT - 1.0), PER_CHAIN * self.chains / self._ess())
            shown = np.argsort(-np.where(self._stuck(), np.inf, badness), kind="stable")[:SHOWN]
            more = f"... and {len(self.names) - SHOWN} more coefficients; shown are those that need most care\n"
        columns = [
            ["", *(self.names[k] for k in shown)],
            *(
                [head, *("?" if np.isnan(values[k]) else format(values[k], form) for k in shown)]
                for head, values, form in (
                    ("mean", self.mean, ".4g"),
                    ("sd", self.sd, ".4g"),
                    ("mcse", self.mcse, ".2g"),
                    ("5%", self.low, ".4g"),
                    ("95%", self.high, ".4g"),
                    ("ess bulk", self.ess_bulk, ".0f"),
                    ("ess tail", self.ess_tail, ".0f"),
                    ("R-hat", self.r_hat, ".3f"),
                )
            ),
        ]
        widths = [max(map(len, column)) for column in columns]
        lines = (
            "  ".join([cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))])
            for cells in zip(*columns, strict=True)
        )
        size = f"{_count(self.chains, 'chain')} of {_count(self.draws, 'draw')}"
        return "\n".join(lines) + f"\n{more}{size}\n{self.verdict}"

    def _ess(self) -> Floats:
        return np.minimum(self.ess_bulk, self.ess_tail)

    def _stuck(self) -> Bools:
        return np.asarray((self.sd == 0) & ~self.fixed)

    def _relative_error(self) -> Floats:
        return np.divide(self.mcse, self.sd, out=np.zeros_like(self.sd), where=self.sd > 0)

    def _faults(self) -> tuple[str, ...]:
        faults = []
        if self.interrupted:
            of = "" if self.requested is None else f" of {self.requested}"
            faults.append(f"the run was interrupted after {self.draws}{of} draws a chain; run it to the end")
        if self.draws < FEWEST:
            few = f"only {_count(self.draws, 'draw')} a chain, and with fewer than {FEWEST} nothing can be said; run longer"
            return (*faults, few)

        if self._stuck().any():
            who = self._who(self._stuck(), np.abs(self.mean))
            faults.append(f"{who}: no draw ever moved, so the engine is stuck; start elsewhere or use another engine")
        high = self.r_hat >= R_HAT
        if high.any():
            faults.append(
                f"{self._who(high, self.r_hat)}: R-hat {self.r_hat.max():.3f} (should be below {R_HAT}): "
                "the chains disagree; run longer, with more warm-up"
            )
        ess, need = self._ess(), PER_CHAIN * self.chains
        if (ess < need).any():
            times = int(np.ceil(need / ess.min()))
            faults.append(
                f"{self._who(ess < need, -ess)}: {ess.min():.0f} effective draws (should be at least {need}, "
                f"{PER_CHAIN} a chain); run about {times} times longer"
            )
        error = self._relative_error()
        if (error > ERROR).any():
            faults.append(
                f"{self._who(error > ERROR, error)}: the Monte-Carlo error of the mean is {error.max():.0%} of the sd "
                f"(should be below {ERROR:.0%}); run longer"
            )
        return tuple(faults)

    def _who(self, which: Bools, badness: Floats) -> str:
        worst = self.names[int(np.argmax(np.where(which, badness, -np.inf)))]
        others = int(which.sum()) - 1
        return f"{worst} (and {others} more)" if others else worst


def summarise(
    draws: Floats, names: tuple[str, ...], *, fixed: Bools, interrupted: bool = False, requested: int | None = None
) -> Summary:
    """The summary of (chain, draw, K) draws; of very many coefficients, so many at a time as fit into memory a few times over."""
    width = max(1, TOGETHER // (draws.shape[0] * draws.shape[1]))
    if draws.shape[2] > width:
        cuts = [slice(k, k + width) for k in range(0, draws.shape[2], width)]
        parts = [
            summarise(draws[:, :, at], names[at], fixed=fixed[at], interrupted=interrupted, requested=requested)
            for at in cuts
        ]
        columns = ("mean", "sd", "mcse", "low", "high", "ess_bulk", "ess_tail", "r_hat", "fixed")
        whole: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        return replace(parts[0], names=names, **whole)
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return Summary(
        names=names,
        chains=draws.shape[0],
        draws=draws.shape[1],
        mean=draws.mean(axis=(0, 1)),
        sd=spread(draws),
        mcse=mcse_mean(draws),
        low=low,
        high=high,
        ess_bulk=ess_bulk(draws),
        ess_tail=ess_tail(draws),
        r_hat=r_hat(draws),
        fixed=fixed,
        interrupted=interrupted,
        requested=requested,
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _each(draws: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
    """Check the draws, and answer with one number for each quantity."""
    given = np.asarray(draws, dtype=np.float64)
    if given.ndim not in (2, 3) or 0 in given.shape[:2]:
        raise ValueError(f"draws must have shape (chain, draw) or (chain, draw, K); it is {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError("draws hold NaN or infinite numbers; diagnostics need finite ones")
    cube = given if given.ndim == 3 else given[:, :, None]
    answer = statistic(cube) if cube.shape[1] >= FEWEST else np.full(cube.shape[2], np.nan)
    return answer.reshape(given.shape[2:])


def _halves(x: Floats) -> Floats:
    """(2 chains, draws // 2, K); a chain of odd length gives up its middle draw."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _squares(x: Floats) -> Floats:
    return np.asarray((x - x.mean(axis=(0, 1))) ** 2)


def _constant(x: Floats) -> Bools:
    """(K,) which quantities never vary, beyond the rounding of their last digit."""
    low, high = x.min(axis=(0, 1)), x.max(axis=(0, 1))
    return np.asarray(high - low <= 1e-15 * np.maximum(np.abs(low), np.abs(high)))


def _scores(x: Floats) -> Floats:
    """The normal score of each draw's rank among all draws of its quantity; ties share their mean rank."""
    flat = x.reshape(-1, x.shape[2])
    scores = np.empty_like(flat)
    for k in range(flat.shape[1]):
        _, place, ties = np.unique(flat[:, k], return_inverse=True, return_counts=True)
        rank = np.cumsum(ties) - (ties - 1) / 2.0
        scores[:, k] = ndtri((rank - 0.375) / (flat.shape[0] + 0.25))[place]
    return scores.reshape(x.shape)


def _r_hat(x: Floats) -> Floats:
    count = x.shape[1]
    from_first = x - x[:, :1]  # so that a chain which stands still has a variance of exactly zero
    within = np.var(from_first, axis=1, ddof=1).mean(axis=0)
    between = count * np.var(x.mean(axis=1), axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((between / within + count - 1.0) / count))


def _ess(x: Floats) -> Floats:
    """Effective draws of half-chains (m, n, K)."""
    chains, count, _ = x.shape
    covariance = _autocovariance(x)
    within = covariance[0] * count / (count - 1.0)
    total = covariance[0] + np.var(x.mean(axis=1), axis=0, ddof=1)
    still = _constant(x)
    correlation = 1.0 - (within - covariance) / np.where(still, 1.0, total)
    correlation[0] = 1.0

    last = max(0, (count - 3) // 2)  # the last pair that Geyer's rule may look at
    even, odd = correlation[0 : 2 * last + 1 : 2], correlation[1 : 2 * last + 2 : 2]
    pairs = even + odd
    ends = pairs <= 0.0
    ends[last] = True
    end = ends.argmax(axis=0)[None]
    before = np.concatenate([np.zeros_like(pairs[:1]), np.cumsum(np.minimum.accumulate(pairs), axis=0)])
    at_end, pair_at_end = np.take_along_axis(even, end, 0)[0], np.take_along_axis(pairs, end, 0)[0]
    # half of the pair that ends the sum still counts, unless it would only push the sum down
    rest = np.where((pair_at_end >= 0.0) | (at_end > 0.0), at_end, 0.0)
    time = -1.0 + 2.0 * np.take_along_axis(before, end, 0)[0] + rest

    # antithetic chains may beat independent draws, but by no more than a factor log10 of their number
    size = float(chains * count)
    return np.where(still, size, size / np.maximum(time, 1.0 / np.log10(size)))


def _autocovariance(x: Floats) -> Floats:
    """(n, K) autocovariance at each lag, averaged over the chains, by the fast Fourier transform."""
    chains, count, _ = x.shape
    padded = 1 << (2 * count - 1).bit_length()
    power = np.zeros((padded // 2 + 1, x.shape[2]))
    for chain in x:
        power += np.abs(np.fft.rfft(chain - chain.mean(axis=0), n=padded, axis=0)) ** 2
    return np.asarray(np.fft.irfft(power, n=padded, axis=0)[:count] / (count * chains))


def autocorrelation(draws: Floats) -> Floats:
    """(chain, lag) correlation of each chain of (chain, draw) with itself, some draws later; one at lag zero."""
    covariance = _autocovariance(draws.T[None]).T  # each chain as a quantity of its own
    still = covariance[:, :1] <= 0.0
    return np.where(still, 1.0, covariance / np.where(still, 1.0, covariance[:, :1]))
