"""Which model of the same choices is better: by the evidence, and by leaving one decision out.

The evidence is the probability of all choices before any was seen; it punishes a prior that spreads itself over values
that fit badly, so it depends on the prior's variance. Leaving one out asks how well each choice is predicted from all others (PSIS-LOO,
Vehtari, Gelman and Gabry 2017); it hardly depends on the prior, and says nothing of how much was learnt from the first few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from understudy._arrays import Floats
from understudy.likelihood import log_likelihood
from understudy.pareto import pareto_smoothed
from understudy.posterior import Posterior

SHAKY = 0.7  # Pareto k beyond which leaving a decision out cannot be told from draws that saw it


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models of the same choices, the best predicting first; arrays have one number a model.

    elpd: the log probability of every choice given all others, summed; elpd_se: its standard error over decisions. behind: how much less than the
    first one's, with behind_se. log_evidence and its Monte-Carlo error log_evidence_se: NaN for engines that do not tell. shaky: decisions with Pareto k
    above 0.7, for which leaving one out is not reliable.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> posts = {"narrow": us.fit(d, us.Gaussian(0.01)), "wide": us.fit(d, us.Gaussian(4.0))}
    >>> found = us.compare(posts)
    >>> found.models, found.behind[1] > 0.0
    (('wide', 'narrow'), np.True_)
    """

    models: tuple[str, ...]
    elpd: Floats
    elpd_se: Floats
    behind: Floats
    behind_se: Floats
    log_evidence: Floats
    log_evidence_se: Floats
    shaky: tuple[int, ...]
    decisions: int

    def __repr__(self) -> str:
        width = max(5, *(len(name) for name in self.models))
        lines = [f"{'model':{width}}      elpd (se)      behind (se)   log evidence (error)   shaky"]
        for i, name in enumerate(self.models):
            evidence = (
                f"{self.log_evidence[i]:.2f} ({self.log_evidence_se[i]:.2f})"
                if np.isfinite(self.log_evidence[i])
                else "-"
            )
            behind = f"{self.behind[i]:.1f} ({self.behind_se[i]:.1f})" if i else "-"
            lines.append(
                f"{name:{width}} {f'{self.elpd[i]:.1f} ({self.elpd_se[i]:.1f})':>14} {behind:>16} {evidence:>22} {self.shaky[i]:>7}"
            )
        return "\n".join([*lines, f"over {self.decisions} decisions"])


def compare(models: Mapping[str, Posterior]) -> Comparison:
    """Compare posteriors learnt from the same choices, whatever their features and priors.

    Those that ``us.fit(..., engine="ibis")`` or a ``Stream`` made tell the evidence too.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> us.compare({"narrow": us.fit(d, us.Gaussian(0.01)), "wide": us.fit(d, us.Gaussian(4.0))}).models[0]
    'wide'
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ValueError("compare needs at least two posteriors by their names, such as {'short': a, 'long': b}")
    _refuse_different(models)
    each = {name: left_out(post) for name, post in models.items()}
    order = sorted(each, key=lambda name: -each[name][0].sum())
    points = np.stack([each[name][0] for name in order])
    count = points.shape[1]
    behind = points[0] - points
    evidence = np.array([log_evidence(models[name]) for name in order])
    return Comparison(
        tuple(order),
        points.sum(axis=1),
        np.sqrt(count) * points.std(axis=1),
        behind.sum(axis=1),
        np.sqrt(count) * behind.std(axis=1),
        evidence[:, 0],
        evidence[:, 1],
        tuple(int((each[name][1] > SHAKY).sum()) for name in order),
        count,
    )


def log_evidence(post: Posterior) -> tuple[float, float]:
    """Of all choices, averaged over independent clouds, and its Monte-Carlo error; NaN where the engine does not tell."""
    if "log_evidence" not in post.stats:
        return np.nan, np.nan
    chains = np.asarray(post.stats["log_evidence"][:, 0], dtype=np.float64)
    top = chains.max()
    share = np.exp(chains - top)
    error = share.std(ddof=1) / share.mean() / np.sqrt(len(chains)) if len(chains) > 1 else np.nan
    return float(top + np.log(share.mean())), float(error)


def _refuse_different(models: Mapping[str, Posterior]) -> None:
    first, *others = models
    for name, post in models.items():
        if not isinstance(post, Posterior):
            raise ValueError(f"{name} is a {type(post).__name__}; compare needs posteriors, as us.fit returns them")
    one = models[first].decisions
    for name in others:
        d = models[name].decisions
        if len(d) != len(one):
            raise ValueError(
                f"{first} was learnt from {len(one)} decisions and {name} from {len(d)}; they must be the same"
            )
        differ = np.flatnonzero((d.sizes != one.sizes) | (d.taken - d.start[:-1] != one.taken - one.start[:-1]))
        if differ.size:
            raise ValueError(
                f"decision {one.ids[differ[0]]}: {first} and {name} saw another choice, or another number of actions; "
                "they must have learnt from the same choices"
            )


def left_out(post: Posterior) -> tuple[Floats, Floats]:
    """(T,) log probability of each choice given the others, and the Pareto k of its estimate.

    Draws given all choices stand in for draws given all but one, weighted with one over the likelihood of that one.
    """
    chosen = log_likelihood(post.decisions, post.values, post.known_noise)
    points, shapes = np.empty(len(post.decisions)), np.empty(len(post.decisions))
    for t, column in enumerate(chosen.T):
        weights, shapes[t] = pareto_smoothed(-column)
        points[t] = logsumexp(weights + column) - logsumexp(weights)
    return points, shapes
