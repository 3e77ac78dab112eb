"""Which model of the same choices is better: by the evidence, and by leave-one-out prediction.

The evidence is the probability of all choices before any was seen; it punishes a prior that spreads
itself over values that fit badly, so it depends on the prior's variance. Leaving one out asks how
well each choice is predicted from all others (PSIS-LOO, Vehtari, Gelman and Gabry 2017); it hardly
depends on the prior, and says nothing of how much was learnt from the first few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.stats as st

from revealed._types import Bools, Floats
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.results.base import Posterior
from revealed.results.draw_batches import batch_error
from revealed.results.loo import LIMITS
from revealed.results.paths import PathPosterior


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models of the same choices, the best predicting first; arrays have one number a model.

    Parameters
    ----------
    models
        Their names.
    elpd, elpd_se
        The log probability of every choice given all others, summed, and its standard error over
        decisions.
    elpd_diff, elpd_diff_se
        How much less than the first model's, and the standard error of that over decisions.
    elpd_mcse, elpd_diff_mcse
        The Monte-Carlo standard errors of `elpd` and `elpd_diff`: what other runs of the samplers
        would change. A difference within three of them is none that can be seen.
    log_evidence, log_evidence_se
        The log evidence and its Monte-Carlo error; NaN for samplers that do not give it.
    n_high_pareto_k
        Decisions with Pareto k above 0.7, for which leaving one out is not reliable.
    decisions
        How many decisions there are, or of what else is left out.
    unit
        What is left out: decisions, or sequences where strategies take turns.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 18 + [1] * 2, names=["tea", "price"])
    >>> narrow, wide = (rv.ChoiceModel(prior=rv.Normal(sd)) for sd in (0.1, 2.0))
    >>> posts = {"narrow": rv.fit(d, narrow), "wide": rv.fit(d, wide)}
    >>> found = rv.compare(posts)
    >>> found.models, found.elpd_diff[1] > 0.0
    (('wide', 'narrow'), np.True_)
    """

    models: tuple[str, ...]
    elpd: Floats
    elpd_se: Floats
    elpd_diff: Floats
    elpd_diff_se: Floats
    elpd_mcse: Floats
    elpd_diff_mcse: Floats
    log_evidence: Floats
    log_evidence_se: Floats
    n_high_pareto_k: tuple[int, ...]
    decisions: int
    unit: str = "decisions"

    @property
    def distinguishable(self) -> Bools:
        """Which models predict worse than the first by more than the Monte-Carlo error.

        By more than three standard errors, which equal models pass once in a thousand times.
        """
        return np.asarray(self.elpd_diff > LIMITS.mcse * np.nan_to_num(self.elpd_diff_mcse))

    def __repr__(self) -> str:
        heads = ["model", "elpd (se, MC)", "elpd diff (se, MC)", "log evidence (MC)", "high k"]
        table = [heads]
        for i, name in enumerate(self.models):
            # samplers without particles do not give the evidence
            evidence = (
                f"{self.log_evidence[i]:.2f} ({_format_error(self.log_evidence_se[i])})"
                if np.isfinite(self.log_evidence[i])
                else "-"
            )
            difference = _with_errors(
                self.elpd_diff[i], self.elpd_diff_se[i], self.elpd_diff_mcse[i]
            )
            table.append(
                [
                    name,
                    _with_errors(self.elpd[i], self.elpd_se[i], self.elpd_mcse[i]),
                    difference if i else "-",
                    evidence,
                    str(self.n_high_pareto_k[i]),
                ]
            )
        widths = [max(len(line[k]) for line in table) for k in range(len(heads))]
        lines = [
            "  ".join(
                [line[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
            )
            for line in table
        ]
        equal = [
            f"{name}: no difference from {self.models[0]} beyond Monte-Carlo error"
            for name, seen in zip(self.models[1:], self.distinguishable[1:], strict=True)
            if not seen
        ]
        foot = (
            f"over {self.decisions} {self.unit}; se: standard error over {self.unit}, MC: "
            "Monte-Carlo error"
        )
        return "\n".join([*lines, *equal, foot])


def _with_errors(number: float, se: float, mcse: float) -> str:
    """A number with its standard error and its Monte-Carlo error, which may be a small one."""
    return f"{number:.1f} ({se:.1f}, {mcse:.2f})"


def compare(models: Mapping[str, Posterior]) -> Comparison:
    """Compare posteriors of the same choices, whatever their features and priors.

    Those that ``rv.fit(..., sampler="ibis")`` or an ``OnlineLearner`` made give the evidence too,
    and those of values that change by ``post.evidence()``, where it is known.

    Parameters
    ----------
    models
        Posteriors by their names, at least two.

    Returns
    -------
    Comparison
        The models, the best predicting first.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 18 + [1] * 2, names=["tea", "price"])
    >>> narrow, wide = (rv.ChoiceModel(prior=rv.Normal(sd)) for sd in (0.1, 2.0))
    >>> posts = {"narrow": rv.fit(d, narrow), "wide": rv.fit(d, wide)}
    >>> rv.compare(posts).models[0]
    'wide'
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ValueError(
            "compare needs at least two posteriors by their names, such as {'short': a, 'long': b}"
        )
    # numbers of different data cannot be compared, however similar they look
    _check_same_choices(models)
    loo = {name: post.loo() for name, post in models.items()}
    # the best predicting first, as in ArviZ
    order = sorted(loo, key=lambda name: -loo[name].elpd)
    # standard errors come from the differences between decisions, which count as independent
    pointwise = np.stack([loo[name].pointwise for name in order])
    count = pointwise.shape[1]
    difference = pointwise[0] - pointwise
    batches = [loo[name].deviations for name in order]
    evidence = np.array([log_evidence(models[name]) for name in order])
    return Comparison(
        models=tuple(order),
        elpd=pointwise.sum(axis=1),
        elpd_se=np.sqrt(count) * pointwise.std(axis=1),
        elpd_diff=difference.sum(axis=1),
        elpd_diff_se=np.sqrt(count) * difference.std(axis=1),
        elpd_mcse=np.array([loo[name].mcse for name in order]),
        elpd_diff_mcse=np.array([_difference_error(batches[0], other) for other in batches]),
        log_evidence=evidence[:, 0],
        log_evidence_se=evidence[:, 1],
        n_high_pareto_k=tuple(loo[name].n_high_pareto_k for name in order),
        decisions=count,
        unit=next(iter(models.values())).unit,
    )


def _difference_error(one: Floats, other: Floats) -> float:
    """The Monte-Carlo standard error of a difference, from what the batches of both contribute.

    Batch by batch: the same draws then differ in nothing, and products of the deviations of
    independent draws are zero on average.
    """
    if len(one) == len(other):
        return float(batch_error(one - other))
    return float(np.hypot(batch_error(one), batch_error(other)))


def _format_error(error: float) -> str:
    """An error with two decimals, or with its first digit where these would show none."""
    return f"{error:.2f}" if not 0.0 < error < 0.01 else f"{error:.1g}"


def log_evidence(post: Posterior) -> tuple[float, float]:
    """The log evidence of all choices, and its Monte-Carlo error; NaN where it is not known.

    Chains of particles are independent estimates Z_c of the evidence, whose logarithms are about
    normal with mean log Z - s^2 / 2 and variance s^2 (Berard, Del Moral and Doucet 2014): with few
    particles the typical estimate is low, and the mean of the logarithms plus s^2 / 2 is not. The
    error is so wide that twice it holds the truth nineteen times in twenty although s comes from a
    few chains: Student's quantile in place of the normal's.
    """
    if isinstance(post, PathPosterior):
        try:
            bridge = post.evidence()
        except ValueError:
            # too few draws overlap with what they are compared with
            return np.nan, np.nan
        return bridge.log_evidence, bridge.error
    if "log_evidence" not in post.sample_stats:
        return np.nan, np.nan
    chains = np.asarray(post.sample_stats["log_evidence"][:, 0], dtype=np.float64)
    # separate groups are independent: their evidence is a product
    chains = chains.reshape(len(chains), -1).sum(axis=1)
    # one estimate that all chains share, with an error of its own; of separate groups one each
    shared = post.settings.get(
        "log_evidence_error", post.settings.get("of_group", {}).get("log_evidence_error")
    )
    if shared is not None:
        return float(chains[0]), float(np.linalg.norm(shared))
    count = len(chains)
    if count == 1:
        return float(chains[0]), np.nan
    variance = float(chains.var(ddof=1))
    # of the mean, and of half the variance, which are independent
    error = np.sqrt(variance / count + variance**2 / (2.0 * (count - 1)))
    widened = error * st.t.isf(0.025, count - 1) / st.norm.isf(0.025)
    return float(chains.mean() + 0.5 * variance), float(widened)


def _check_same_choices(models: Mapping[str, Posterior]) -> None:
    """Refuse what is not a posterior, and posteriors of different choices."""
    first, *others = models
    for name, post in models.items():
        if not isinstance(post, Posterior):
            raise ValueError(
                f"{name} is a {type(post).__name__}; compare needs posteriors, as rv.fit returns "
                "them"
            )
    # features may differ between models, what was observed may not
    for name in others:
        _check_same_observations(first, models[first], name, models[name])
        if models[first].unit != models[name].unit:
            raise ValueError(
                f"{first} leaves out {models[first].unit} and {name} {models[name].unit}: "
                "strategies that take turns are compared with rv.Switching(states=1), which is one "
                "strategy for all times"
            )


def _check_same_observations(first: str, one: Posterior, name: str, other: Posterior) -> None:
    """Refuse two posteriors that did not learn from the same observations."""
    a, b = one.data, other.data
    if len(a) != len(b):
        raise ValueError(
            f"{first} was learnt from {len(a)} observations and {name} from {len(b)}; they must be "
            "the same"
        )
    if not (isinstance(a, Decisions) and isinstance(b, Decisions)):
        if type(a) is not type(b):
            raise ValueError(
                f"{first} was learnt from {type(a).__name__} and {name} from {type(b).__name__}; "
                "they must be the same"
            )
        # of trajectories where they went, of games who was in front of whom
        fields: tuple[str, ...] = ("state_position", "action_position")
        if isinstance(a, Rankings):
            fields = ("names", "players", "member_start", "start", "tied", "n_ordered")
        if not all(np.array_equal(getattr(a, field), getattr(b, field)) for field in fields):
            raise ValueError(
                f"{first} and {name} were learnt from different {type(a).__name__.lower()}; they "
                "must be the same"
            )
        if isinstance(a, Rankings) and a.has_ties and "margin" in {*one.draws} ^ {*other.draws}:
            raise ValueError(
                f"{first} and {name} take a tie for different things: under normal noise it is an "
                "outcome, under logit noise an order that was not seen; their probabilities "
                "cannot be compared"
            )
        return
    differ = np.flatnonzero(
        (b.sizes != a.sizes) | (b.chosen_row - b.start[:-1] != a.chosen_row - a.start[:-1])
    )
    if differ.size:
        raise ValueError(
            f"decision {a.ids[differ[0]]}: {first} and {name} saw another choice, or another "
            "number of actions; they must have learnt from the same choices"
        )
