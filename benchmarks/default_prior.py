"""Which prior is the default: held-out log score, calibration and convergence of six priors.

Every prior learns from the same 20, 100 or more decisions, at default settings, and predicts the
same held-out decisions. Simulated are the paper's toy, with values of sd 50 as in the paper and of
sd 3, a grid, and the paper's Tetris; real are a person's Tetris, Rust's buses, travel modes,
contracts for electricity, detergents, and mice in a labyrinth. Detergents are there because the
coefficient of their price, near -80, is the largest of all real ones. Real data are looked for in
`shared/data` beside the repository. "Inferred" is `Normal(HalfStudentT(scale=...))`; "by spread",
with scale 2.5, divides the sd of a coefficient by the spread of its column within decisions, that
of a sum-to-zero block by the spread of the block. Seconds are those of the processor.

The rule was written down before the run, but after a trial: `Normal(50.0)` and the inferred scale
on one other split of every problem but detergents, so it was known that the latter predicts better
and warns more often; and all six on one split of the toy with sd 3. The winner has the smallest
mean loss, that is nats a decision behind the best prior for the same problem and the same number of
decisions, where every problem weighs the same. Not eligible is a prior

- that warns in more fits than the paper's, `Normal(50.0)`;
- whose probabilities are further from calibration than those of the paper's;
- that is made from the rows, because who learns decision by decision has not seen them yet.

Calibration is the expected calibration error of the predicted action, minus what chance alone
gives. Differences are paired by decision, over all splits.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import revealed as rv
from benchmarks._prior_problems import DATA, PriorProblem, Split, problems
from benchmarks._record import Benchmark, Option, Result, table
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.prediction import Prediction

PAPER = "Normal(50)"


def spread_of_columns(d: Decisions) -> Floats:
    """(K,) the root mean square of a column's distance from its mean within the decision.

    That of a sum-to-zero block is taken over all of its columns, so that utilities have the same sd
    under every standardised prior. One where a column never varies.
    """
    rows = d.rows.toarray() if sp.issparse(d.rows) else np.asarray(d.rows)
    means = np.add.reduceat(rows, d.start[:-1], axis=0) / d.sizes[:, None]
    square = ((rows - means[d.decision_of_row]) ** 2).mean(axis=0)
    at = 0
    for block in d.blocks:
        if block.sum_to_zero:
            square[at : at + block.size] = square[at : at + block.size].sum()
        at += block.size
    return np.asarray(np.where(square > 0.0, np.sqrt(square), 1.0))


def _inferred(scale: float) -> rv.HalfStudentT:
    return rv.HalfStudentT(scale=scale)


CANDIDATES: dict[str, Callable[[Decisions], rv.Normal]] = {
    PAPER: lambda d: rv.Normal(50.0),
    "Normal(5)": lambda d: rv.Normal(5.0),
    "Normal(1)": lambda d: rv.Normal(1.0),
    "inferred, scale 10": lambda d: rv.Normal(_inferred(10.0)),
    "inferred, scale 2.5": lambda d: rv.Normal(_inferred(2.5)),
    "inferred, by spread": lambda d: rv.Normal(
        _inferred(2.5), covariance=spread_of_columns(d) ** -2
    ),
}
FROM_ROWS = ("inferred, by spread",)
"""Priors that need the rows; see the rule."""


@dataclass(frozen=True)
class Fit:
    """What one fit gave.

    log_score: nats a held-out decision. calibration: expected calibration error minus its mean
    under the predicted probabilities. overconfidence: z of the predicted minus the observed count
    of right predictions. covered: share of true values in their 90% interval. goal: the probability
    that the coefficient wanted most is the largest.
    """

    problem: str
    decisions: int
    split: int
    prior: str
    log_score: float
    calibration: float
    overconfidence: float
    converged: bool
    r_hat: float
    ess: float
    warning: str
    seconds: float
    covered: float | None
    goal: float | None


@dataclass(frozen=True)
class Difference:
    """Log score of a prior minus that of the paper's, paired by decision over all splits."""

    problem: str
    decisions: int
    prior: str
    mean: float
    standard_error: float


def measure(splits: int, only: str) -> Result:
    """Every prior on every split of every problem whose file is here."""
    return compare_priors(problems(), splits, only, rv.NormalNoise())


def compare_priors(tried: list[PriorProblem], splits: int, only: str, noise: Any) -> Result:
    """Every prior on every split of the problems whose files are here, under a noise."""
    fits: list[Fit] = []
    differences: list[Difference] = []
    for problem in tried:
        if problem.file and not (DATA / problem.file).exists():
            print(
                f"{problem.name} is left out: shared/data/{problem.file} is looked for beside the "
                "repository",
                file=sys.stderr,
            )
            continue
        if only not in problem.name:
            continue
        made, gained = _compare(problem, min(splits, problem.splits), noise)
        fits += made
        differences += gained
        print(f"{problem.name}: {sum(fit.seconds for fit in made):.0f} seconds", file=sys.stderr)
    if not fits:
        raise ValueError("no problem has that in its name")
    return {
        "fits": [asdict(fit) for fit in fits],
        "differences": [asdict(difference) for difference in differences],
    }


def _compare(problem: PriorProblem, splits: int, noise: Any) -> tuple[list[Fit], list[Difference]]:
    """Fits of all priors, and what each gains on the paper's for each number of decisions."""
    fits, differences = [], []
    # one fit of each kind compiles what there is to compile, before a clock runs
    first = problem.make(0)
    for name in (PAPER, "inferred, scale 10"):
        _fit(name, noise, first.train[:40], draws=10)
    for size in problem.sizes:
        log_probability: dict[str, list[Floats]] = {name: [] for name in CANDIDATES}
        for i in range(splits):
            split = problem.make(i)
            for name in CANDIDATES:
                fit, predicted = _measure_fit(problem, name, noise, split, size, i)
                fits.append(fit)
                assert predicted.log_probability_chosen is not None
                log_probability[name].append(predicted.log_probability_chosen)
        of_paper = np.concatenate(log_probability[PAPER])
        for name, by_split in log_probability.items():
            gain = np.concatenate(by_split) - of_paper
            error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
            differences.append(Difference(problem.name, size, name, float(gain.mean()), error))
    return fits, differences


def _fit(name: str, noise: Any, train: Decisions, **more: Any) -> Any:
    """One fit at default settings, on one core, without its warnings."""
    model = rv.ChoiceModel(prior=CANDIDATES[name](train), noise=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(train, model, executor=1, **more)


def _measure_fit(
    problem: PriorProblem, name: str, noise: Any, split: Split, size: int, i: int
) -> tuple[Fit, Prediction]:
    """One fit and its prediction of what was held out."""
    began = time.process_time()
    post = _fit(name, noise, split.train[:size])
    seconds = time.process_time() - began
    # every tenth draw: 400 are enough for a mean probability, and predictions stay cheap
    predicted = rv.predict(post.values[::10], split.test, noise=noise)
    summary = post.summary()
    covered = goal = None
    if split.truth is not None:
        low, high = np.quantile(post.values, [0.05, 0.95], axis=0)
        covered = float(((low <= split.truth) & (split.truth <= high)).mean())
    if problem.goal is not None:
        goal = float((post.values.argmax(axis=1) == problem.goal).mean())
    calibration, overconfidence = _calibration(predicted)
    fit = Fit(
        problem=problem.name,
        decisions=size,
        split=i,
        prior=name,
        log_score=predicted.log_score,
        calibration=calibration,
        overconfidence=overconfidence,
        converged=summary.converged,
        r_hat=float(summary.r_hat.max()),
        ess=float(np.minimum(summary.ess_bulk, summary.ess_tail).min()),
        warning="" if summary.converged else summary.warnings[0],
        seconds=seconds,
        covered=covered,
        goal=goal,
    )
    return fit, predicted


def _calibration(predicted: Prediction) -> tuple[float, float]:
    """The calibration error above chance, and the z of right predictions that were missing.

    Chance: were the probabilities right, how far would observed shares still be from them? That is
    the mean over 200 simulated sets of outcomes.
    """
    rng = np.random.default_rng(1)
    confidence = np.clip(predicted.confidence, 0.0, 1.0)
    right = predicted.predicted == predicted.decisions.chosen
    bins = np.minimum((confidence * 10).astype(np.int64), 9)

    def error(outcome: Any) -> float:
        return float(np.abs(np.bincount(bins, weights=confidence - outcome)).sum() / len(bins))

    chance = np.mean([error(rng.random(len(bins)) < confidence) for _ in range(200)])
    sd = np.sqrt((confidence * (1.0 - confidence)).sum())
    return error(right) - float(chance), float((confidence - right).sum() / max(sd, 1e-9))


@dataclass(frozen=True)
class Standing:
    """One prior over all problems; see the rule.

    gain: on the paper's prior in log score, with its standard error for these problems, and for
    other problems like them. calibration_error: of the difference from the paper's, over problems.
    """

    prior: str
    loss: float
    gain: float
    gain_error: float
    gain_error_problems: float
    rank: float
    worst: float
    calibration: float
    calibration_error: float
    covered: float
    warned: int
    fits: int
    seconds: float
    eligible: bool


def standings(result: Result) -> list[Standing]:
    """Every prior by its mean loss, the smallest first."""
    fits = [Fit(**fit) for fit in result["fits"]]
    cells = list(dict.fromkeys((fit.problem, fit.decisions) for fit in fits))
    # (cell, prior) mean log scores, and each cell's share of its problem
    scores = np.array(
        [
            [
                np.mean([f.log_score for f in fits if (f.problem, f.decisions, f.prior) == (*c, p)])
                for p in CANDIDATES
            ]
            for c in cells
        ]
    )
    names = [problem for problem, _ in cells]
    weight = np.array([1.0 / names.count(name) for name in names])
    weight /= weight.sum()
    loss = scores.max(axis=1, keepdims=True) - scores
    rank = (-scores).argsort(axis=1).argsort(axis=1) + 1.0
    found = []
    differences = [Difference(**line) for line in result["differences"]]
    calibration = {
        prior: _by_name(
            names,
            [
                np.mean(
                    [
                        f.calibration
                        for f in fits
                        if (f.problem, f.decisions, f.prior) == (*c, prior)
                    ]
                )
                for c in cells
            ],
        )
        for prior in CANDIDATES
    }
    for k, prior in enumerate(CANDIDATES):
        own = [fit for fit in fits if fit.prior == prior]
        lines = [d for d in differences if d.prior == prior]
        gain = _by_name([d.problem for d in lines], [d.mean for d in lines])
        # sizes of one problem share their held-out decisions, so their errors do not average out
        error = _by_name([d.problem for d in lines], [d.standard_error for d in lines])
        known = [fit.covered for fit in own if fit.covered is not None]
        found.append(
            Standing(
                prior,
                loss=float(weight @ loss[:, k]),
                gain=float(gain.mean()),
                gain_error=float(np.sqrt((error**2).sum()) / len(error)),
                gain_error_problems=_standard_error(gain),
                rank=float(weight @ rank[:, k]),
                worst=float(loss[:, k].max()),
                calibration=float(calibration[prior].mean()),
                calibration_error=_standard_error(calibration[prior] - calibration[PAPER]),
                covered=float(np.mean(known)) if known else float("nan"),
                warned=sum(not fit.converged for fit in own),
                fits=len(own),
                seconds=float(np.median([fit.seconds for fit in own])),
                eligible=True,
            )
        )
    paper = next(s for s in found if s.prior == PAPER)
    judged = [
        Standing(
            **{
                **asdict(s),
                "eligible": s.prior not in FROM_ROWS
                and s.warned <= paper.warned
                and s.calibration <= paper.calibration,
            }
        )
        for s in found
    ]
    return sorted(judged, key=lambda s: s.loss)


def _calibration_by_problem(fits: list[Fit], prior: str) -> Floats:
    """(problems,) the mean calibration of a prior, in which numbers of decisions weigh the same."""
    by_cell: dict[tuple[str, int], list[float]] = {}
    for fit in fits:
        if fit.prior == prior:
            by_cell.setdefault((fit.problem, fit.decisions), []).append(fit.calibration)
    return _by_name([name for name, _ in by_cell], [np.mean(own) for own in by_cell.values()])


def _by_name(names: list[str], values: list[Any]) -> Floats:
    """The mean of the values of each name, so that problems weigh the same."""
    return np.array(
        [
            np.mean([v for own, v in zip(names, values, strict=True) if own == name])
            for name in dict.fromkeys(names)
        ]
    )


def _standard_error(values: Floats) -> float:
    """Of the mean of these; zero where one value says nothing about it."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def tables(result: Result) -> str:
    """The priors over all problems, then the log scores by problem, then the goal."""
    overall = table(
        (
            "prior",
            "mean loss",
            "gain on Normal(50) (standard error: these problems, others like them)",
            "mean rank",
            "worst loss",
            "calibration error above chance (standard error of the difference)",
            "true values in 90% intervals",
            "fits that warn",
            "median seconds",
            "eligible",
        ),
        [
            (
                s.prior,
                f"{s.loss:.3f}",
                ""
                if s.prior == PAPER
                else f"{s.gain:+.3f} ({s.gain_error:.3f}, {s.gain_error_problems:.3f})",
                f"{s.rank:.1f}",
                f"{s.worst:.2f}",
                f"{s.calibration:.3f}"
                + ("" if s.prior == PAPER else f" ({s.calibration_error:.3f})"),
                f"{s.covered:.0%}" if np.isfinite(s.covered) else "",
                f"{s.warned} of {s.fits}",
                f"{s.seconds:.1f}",
                "yes" if s.eligible else "no",
            )
            for s in standings(result)
        ],
    )
    return "\n\n".join(
        [
            overall,
            "Held-out log score, nats a decision, and for the others the difference from "
            f"{PAPER} with its standard error, paired by decision:",
            _by_problem(result),
            _goals(result),
        ]
    ).strip()


def _by_problem(result: Result) -> str:
    """A line for each problem and number of decisions."""
    differences = [Difference(**line) for line in result["differences"]]
    lines = []
    for problem, size in dict.fromkeys((d.problem, d.decisions) for d in differences):
        own = {d.prior: d for d in differences if (d.problem, d.decisions) == (problem, size)}
        score = np.mean(
            [
                fit["log_score"]
                for fit in result["fits"]
                if (fit["problem"], fit["decisions"], fit["prior"]) == (problem, size, PAPER)
            ]
        )
        others = [
            f"{own[name].mean:+.3f} ({own[name].standard_error:.3f})"
            for name in CANDIDATES
            if name != PAPER
        ]
        lines.append((problem, f"{size:,}", f"{score:.3f}", *others))
    return table(("problem", "decisions", *CANDIDATES), lines)


def _goals(result: Result) -> str:
    """How sure the goal of the labyrinth is, where that was measured."""
    fits = [Fit(**fit) for fit in result["fits"] if fit["goal"] is not None]
    if not fits:
        return ""
    lines = [
        (
            f"{size:,}",
            *(
                f"{np.mean([f.goal for f in fits if (f.decisions, f.prior) == (size, name)]):.2f}"
                for name in CANDIDATES
            ),
        )
        for size in dict.fromkeys(fit.decisions for fit in fits)
    ]
    head = (
        "The probability that the end of the labyrinth with the water has the largest value of "
        "all 127 places:"
    )
    return f"{head}\n\n{table(('decisions', *CANDIDATES), lines)}"


def draw(result: Result, path: Path) -> None:
    """Loss of each prior by problem, with as few and as many decisions as there are."""
    from matplotlib.figure import Figure

    fits = [Fit(**fit) for fit in result["fits"]]
    names = list(dict.fromkeys(fit.problem for fit in fits))
    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    panels: Any = figure.subplots(1, 2, sharey=True)
    for panel, pick, title in zip(
        panels, (min, max), ("fewest decisions", "most decisions"), strict=True
    ):
        for k, prior in enumerate(CANDIDATES):
            losses = []
            for name in names:
                size = pick(fit.decisions for fit in fits if fit.problem == name)
                own = [fit for fit in fits if (fit.problem, fit.decisions) == (name, size)]
                score = {
                    p: np.mean([fit.log_score for fit in own if fit.prior == p]) for p in CANDIDATES
                }
                losses.append(max(score.values()) - score[prior])
            place = np.arange(len(names)) + 0.08 * (k - 3)
            panel.plot(losses, place, "osD^vP"[k], color=f"C{k}", markersize=5, label=prior)
        panel.set_xscale("symlog", linthresh=0.01)
        panel.set_xlim(-0.001, None)
        panel.set_xticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("nats a decision behind the best prior")
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def finding(result: Result) -> str:
    """The winner by the rule, and which prior predicts best where that is another."""
    ranked = standings(result)
    chosen = next(s for s in ranked if s.eligible)
    best = next(s for s in ranked if s.prior not in FROM_ROWS)
    words = f"by the rule {chosen.prior}, {chosen.loss:.3f} nats a decision behind the best"
    if best == chosen:
        return words
    return (
        f"{words}; {best.prior} is {best.loss:.3f} behind, and warns in {best.warned} of "
        f"{best.fits} fits, not {chosen.warned}"
    )


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="The default prior",
    takes="15 minutes",
    options={
        "splits": Option(3, "at most so many splits of each problem", quick=1),
        "only": Option("", "problems with this in their name", quick="toy"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    figure=("default-prior.png", "How far each prior is behind the best, by problem", draw),
)
