"""Seconds of processor time from choices to an answer that can be trusted, at default settings.

Choices are simulated (T decisions among M actions by K normal features and coefficients, normal
noise), and those of the suite of problems that speed is measured on, the paper's among them.
`rv.fit` with its default is shown beside its two roads, the samplers `laplace` and `composite` (up
to 5,000 decisions: beyond, it takes many minutes), and beside NUTS of NumPyro on the same rows with
the likelihood its users would write, a softmax, which is the cheaper one. All make four chains of
1,000 draws on one core; NUTS has 1,000 iterations of warm-up. Compilation is left out on both
sides. An answer is trusted when its chains agree and every coefficient has 400 effective draws, or
when it is certified. Seconds to 1,000 effective draws are those of the whole call where it has as
many, and grow in proportion where it has fewer.

Answers are compared: the default's means with those of `composite`, in Monte-Carlo standard errors;
NUTS's choice probabilities at its mean with the default's, whose noise is another one.

Then a million decisions of twelve actions and three features on all cores, seconds of the clock,
with few draws and with many; and the default beside `composite` on the first 20,000 of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import revealed as rv
from benchmarks._problems import SUITE
from benchmarks._record import Benchmark, Option, Result, cell, table
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.diagnostics import ess_bulk, r_hat

TARGET_ESS = 1000.0
DRAWS, CHAINS = 1000, 4
ROADS = ("default", "laplace", "composite")
PAPER_SD = 50.0
MOST_FOR_COMPOSITE = 5000
LONG_SECONDS = 10.0
"""What takes longer is measured in the first round only."""
SIZES = [(T, M, K) for T in (100, 500, 2000, 5000, 35000) for M in (3, 10) for K in (3, 10, 20)] + [
    (2000, 5, 10)
]
"""Decisions, actions and coefficients of the simulated problems."""
WITH_NUTS = ((500, 3, 3), (2000, 5, 10), (5000, 10, 10))
COMPARED_COUNT = 20_000
"""Of the million decisions, how many `composite` has too."""
FEW, MANY = 100, 1000
"""Draws of each of the four chains of the million."""


class Problem(NamedTuple):
    """Decisions with a name and a prior sd, and whether NUTS takes part."""

    name: str
    decisions: Decisions
    prior_sd: float
    nuts: bool


@dataclass(frozen=True)
class Answer:
    """One way on one problem: the medians of all rounds.

    off: its means from those of another way, see `compare`; None where there is nothing to compare.
    """

    problem: str
    way: str
    sampler: str
    seconds: float
    effective: float
    trusted: bool
    to_target: float | None
    off: float | None


def simulate(count: int, actions: int, width: int, seed: int) -> Decisions:
    """Choices by standard normal coefficients among normal features."""
    rng = np.random.default_rng(seed)
    rows, value = rng.standard_normal((count * actions, width)), rng.standard_normal(width)
    utilities = (rows @ value + rng.standard_normal(count * actions)).reshape(count, actions)
    return Decisions(rows, np.arange(0, count * actions + 1, actions), utilities.argmax(axis=1))


def make_problems(which: str) -> Iterator[Problem]:
    """The problems, one after the other; of a quick run one."""
    if which == "quick":
        yield Problem("T = 100, M = 3, K = 3", simulate(100, 3, 3, seed=1), PAPER_SD, nuts=True)
        return
    for problem in SUITE.values():
        yield Problem(problem.name, problem.make(1), problem.prior_sd, nuts=False)
    for size in SIZES:
        name = "T = {:,}, M = {}, K = {}".format(*size)
        yield Problem(name, simulate(*size, seed=1), PAPER_SD, nuts=size in WITH_NUTS)


def by_fit(problem: Problem, way: str, seed: int) -> tuple[str, Floats | None, bool, float]:
    """Sampler, draws, whether they are trusted, and seconds; None where there is no answer."""
    sampler = "auto" if way == "default" else way
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        warnings.simplefilter("ignore", rv.UninformedWarning)
        try:
            post = rv.fit(
                problem.decisions,
                rv.ChoiceModel(prior=rv.Normal(problem.prior_sd)),
                sampler=sampler,
                draws=DRAWS,
                chains=CHAINS,
                seed=seed,
                executor=1,
                progress=False,
            )
        except ValueError:  # laplace certifies nothing
            return way, None, False, time.process_time() - began
    seconds = time.process_time() - began
    return post.sampler, post.draws["value"], bool(post.converged), seconds


class Softmax:
    """NUTS on one problem with a softmax likelihood, compiled once."""

    def __init__(self, decisions: Decisions) -> None:
        import jax
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist
        from numpyro.infer import MCMC, NUTS

        jax.config.update("jax_enable_x64", True)
        count = len(decisions)
        # grid worlds have sparse rows
        dense = decisions.rows.toarray() if sp.issparse(decisions.rows) else decisions.rows
        rows = jnp.asarray(dense.reshape(count, -1, len(decisions.names)))
        chosen = jnp.asarray(decisions.chosen)

        def model() -> None:
            v = numpyro.sample("v", dist.Normal(0.0, 50.0).expand([rows.shape[2]]).to_event(1))
            numpyro.sample("choice", dist.Categorical(logits=rows @ v), obs=chosen)

        self.random_key = jax.random.PRNGKey
        self.mcmc = MCMC(
            NUTS(model),
            num_warmup=1000,
            num_samples=DRAWS,
            num_chains=CHAINS,
            chain_method="sequential",
            progress_bar=False,
        )
        self.run(0)

    def run(self, seed: int) -> tuple[str, Floats, bool, float]:
        """As `by_fit` does."""
        began = time.process_time()
        self.mcmc.run(self.random_key(seed))
        draws = np.asarray(self.mcmc.get_samples(group_by_chain=True)["v"])
        seconds = time.process_time() - began
        trusted = bool(r_hat(draws).max() < 1.01 and ess_bulk(draws).min() >= 400)
        return "NUTS", draws, trusted, seconds


def compare(way: str, draws: dict[str, Floats | None], decisions: Decisions) -> float | None:
    """How far this way's answer is from another's.

    The default from `composite`: the largest difference of means, in standard errors. NUTS from the
    default: the mean difference of choice probabilities at the means.
    """
    default, composite, peer = (draws.get(name) for name in ("default", "composite", "NUTS"))
    if default is None:
        return None
    mean = default.mean(axis=(0, 1))
    if way == "default" and composite is not None:
        variance = sum(each.var(axis=(0, 1)) / ess_bulk(each) for each in (default, composite))
        return float(np.max(np.abs(mean - composite.mean(axis=(0, 1))) / np.sqrt(variance)))
    if way == "NUTS" and peer is not None:
        utilities = np.asarray(decisions.rows) @ peer.mean(axis=(0, 1))
        softmax = np.exp(utilities.reshape(len(decisions), -1))
        softmax /= softmax.sum(axis=1, keepdims=True)
        normal = rv.choice_probabilities(decisions, mean)
        return float(np.mean(np.abs(softmax.ravel() - np.ravel(normal))))
    return None


def measure(rounds: int, problems: str, nuts: int, million: int) -> Result:
    """All ways in turn, round by round, on every problem; then the million."""
    answers: list[dict[str, Any]] = []
    for problem in make_problems(problems):
        roads = ROADS if len(problem.decisions) <= MOST_FOR_COMPOSITE else ROADS[:2]
        runs: dict[str, Callable[[int], Any]] = {
            way: partial(by_fit, problem, way) for way in roads
        }
        # compile: not timed
        first = problem._replace(decisions=problem.decisions[:50])
        for way in ROADS:
            by_fit(first, way, 0)
        if nuts and problem.nuts:
            runs["NUTS"] = Softmax(problem.decisions).run
        found: dict[str, list[Any]] = {way: [] for way in runs}
        for seed in range(1, rounds + 1):
            for way, run in runs.items():
                # a minute is not measured better by repeating it
                if seed == 1 or found[way][0][3] < LONG_SECONDS:
                    found[way].append(run(seed))
        last = {way: each[-1][1] for way, each in found.items()}
        for way, each in found.items():
            off = compare(way, last, problem.decisions)
            answers.append(asdict(_summarise(problem.name, way, each, off)))
        print(table(HEAD, [_line(Answer(**line)) for line in answers[-len(runs) :]]), flush=True)
    return {"answers": answers, "million": measure_million(million) if million else None}


def measure_million(count: int) -> Result:
    """Seconds of the clock for few draws and for many, and the same answer as `composite`."""
    decisions = simulate(count, 12, 3, seed=1)
    first = decisions[:COMPARED_COUNT]
    by_default, composite = rv.fit(first), rv.fit(first, sampler="composite", draws=2 * DRAWS)
    found: Result = {"decisions": count, "seconds": {}}
    for draws in (FEW, MANY, FEW, MANY):
        began = time.perf_counter()
        post = rv.fit(decisions, draws=draws)
        found["seconds"].setdefault(str(CHAINS * draws), []).append(time.perf_counter() - began)
    sd = composite.sd()
    return found | {
        "sampler": post.sampler,
        "certified": bool(post.converged),
        "means_off": float(np.max(np.abs(by_default.mean() - composite.mean()) / sd)),
        "sds_off": float(np.max(np.abs(by_default.sd() / sd - 1.0))),
        # what chance alone makes of the means' difference
        "error": float(np.max(1.0 / np.sqrt(composite.summary().ess_bulk))),
    }


def _summarise(problem: str, way: str, runs: list[Any], off: float | None) -> Answer:
    """The medians of one way's rounds; trusted where every round was."""
    seconds = [run[3] for run in runs]
    effective = [0.0 if run[1] is None else float(ess_bulk(run[1]).min()) for run in runs]
    # none where some round had no answer
    answered = all(run[1] is not None for run in runs)
    to_target = [
        s * max(1.0, TARGET_ESS / max(e, 1.0)) for s, e in zip(seconds, effective, strict=True)
    ]
    trusted = all(run[2] for run in runs)
    return Answer(
        problem,
        way,
        runs[-1][0],
        median(seconds),
        median(effective),
        trusted,
        median(to_target) if answered else None,
        off,
    )


HEAD = (
    "problem",
    "way",
    "sampler",
    "seconds",
    "effective draws",
    "trusted",
    "seconds to 1,000",
    "off",
)


def _line(answer: Answer) -> tuple[str, ...]:
    return (
        answer.problem,
        answer.way,
        answer.sampler,
        f"{answer.seconds:.2f}",
        f"{answer.effective:,.0f}",
        "yes" if answer.trusted else "no",
        cell(answer.to_target, ".2f"),
        cell(answer.off, ".3f" if answer.way == "NUTS" else ".1f"),
    )


def tables(result: Result) -> str:
    """A line for each way and problem, and the million."""
    answers = table(HEAD, [_line(Answer(**line)) for line in result["answers"]])
    return f"{answers}\n\n{_describe_million(result['million'])}" if result["million"] else answers


def _describe_million(found: Result) -> str:
    """What was seen of very many decisions, in two sentences."""
    seconds = ", ".join(
        f"{draws} draws in {' and '.join(f'{s:.0f}' for s in each)} s"
        for draws, each in found["seconds"].items()
    )
    return (
        f"{found['decisions']:,} decisions by {found['sampler']}: {seconds}; certified: "
        f"{'yes' if found['certified'] else 'no'}. With {COMPARED_COUNT:,} of them the means are "
        f"at most {found['means_off']:.3f} sds from those of `composite`, whose own error is "
        f"{found['error']:.3f}, and sds differ by at most {found['sds_off']:.1%}."
    )


def _by_problem(result: Result) -> list[dict[str, Answer]]:
    """The answers of each problem by their way."""
    problems: dict[str, dict[str, Answer]] = {}
    for line in result["answers"]:
        answer = Answer(**line)
        problems.setdefault(answer.problem, {})[answer.way] = answer
    return list(problems.values())


def ratios(result: Result) -> tuple[list[float], list[float], int]:
    """The default's seconds beside the quicker trusted road's, NUTS's beside the default's.

    Both for each problem; and how many problems only the default has no trusted answer to.
    """
    to_quickest, to_nuts, without = [], [], 0
    for ways in _by_problem(result):
        trusted = [ways[way].seconds for way in ROADS[1:] if way in ways and ways[way].trusted]
        if trusted and not ways["default"].trusted:
            without += 1
        elif trusted:
            to_quickest.append(ways["default"].seconds / min(trusted))
        by_nuts = ways["NUTS"].to_target if "NUTS" in ways else None
        if by_nuts is not None and ways["default"].to_target is not None:
            to_nuts.append(by_nuts / ways["default"].to_target)
    return to_quickest, to_nuts, without


def finding(result: Result) -> str:
    """How the default compares with its roads and with NUTS."""
    to_quickest, to_nuts, without = ratios(result)
    beside = (
        f"; {min(to_nuts):.0f} to {max(to_nuts):.0f} times as quick as NUTS to 1,000 effective "
        "draws"
        if to_nuts
        else ""
    )
    return (
        f"the default takes {median(to_quickest):.2f} times what the quicker trusted road takes "
        f"(at most {max(to_quickest):.2f}), and lacks a trusted answer where one has it on "
        f"{without} of {len(_by_problem(result))} problems{beside}"
    )


def missed(result: Result) -> str:
    """A sentence where the default is slow, or without an answer."""
    to_quickest, to_nuts, without = ratios(result)
    if without:
        return f"the default has no trusted answer on {without} problems where a road has one"
    if max(to_quickest) > 1.5:
        return f"the default takes {max(to_quickest):.2f} times what the quicker road takes"
    if to_nuts and min(to_nuts) < 5.0:
        return f"the default is only {min(to_nuts):.1f} times as quick as NUTS"
    return ""


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Time to a trusted answer",
    takes="an hour",
    options={
        "rounds": Option(3, "rounds, each with another seed", quick=1),
        "problems": Option("full", "full or quick", quick="quick"),
        "nuts": Option(1, "0 leaves NUTS out", quick=0),
        "million": Option(1_000_000, "decisions of the last part; 0 for none", quick=0),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("numpyro", "jax"),
    missed=missed,
)
