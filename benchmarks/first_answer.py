"""Seconds of processor time from choices to an answer that can be trusted, at default settings.

Choices are simulated: normal features and coefficients, normal noise. `rv.fit` with its default is
shown beside its two roads, the samplers `laplace` and `composite`, and beside NUTS of NumPyro on
the same rows with the likelihood its users would write, a softmax, which is the cheaper one. All
make four chains of 1,000 draws on one core; NUTS has 1,000 iterations of warm-up. Compilation is
left out on both sides. An answer is trusted when its chains agree and every coefficient has 400
effective draws, or when it is certified. Seconds to 1,000 effective draws are those of the whole
call where it has as many, and grow in proportion where it has fewer.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, cell, table
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.diagnostics import ess_bulk, r_hat

TARGET_ESS = 1000.0
DRAWS, CHAINS = 1000, 4
ROADS = ("default", "laplace", "composite")
SIZES = {
    "full": [(T, M, K) for T in (100, 500, 2000, 5000, 35000) for M in (3, 10) for K in (3, 10, 20)]
    + [(2000, 5, 10)],
    "quick": [(100, 3, 3)],
}
"""Decisions, actions and coefficients of the problems."""
WITH_NUTS = ((500, 3, 3), (2000, 5, 10), (5000, 10, 10), (100, 3, 3))


@dataclass(frozen=True)
class Answer:
    """One way on one problem: the medians of all rounds."""

    decisions: int
    actions: int
    coefficients: int
    way: str
    sampler: str
    seconds: float
    effective: float
    trusted: bool
    to_target: float


def simulate(count: int, actions: int, width: int, seed: int) -> Decisions:
    """Choices by standard normal coefficients among normal features."""
    rng = np.random.default_rng(seed)
    rows, value = rng.standard_normal((count * actions, width)), rng.standard_normal(width)
    utilities = (rows @ value + rng.standard_normal(count * actions)).reshape(count, actions)
    return Decisions(rows, np.arange(0, count * actions + 1, actions), utilities.argmax(axis=1))


def by_fit(decisions: Decisions, way: str, seed: int) -> tuple[str, Floats | None, bool, float]:
    """Sampler, draws, whether they are trusted, and seconds; None where there is no answer."""
    sampler = "auto" if way == "default" else way
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        try:
            post = rv.fit(
                decisions, sampler=sampler, draws=DRAWS, chains=CHAINS, seed=seed, executor=1
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
        rows = jnp.asarray(np.asarray(decisions.rows).reshape(count, -1, len(decisions.names)))
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


def measure(rounds: int, problems: str, nuts: int) -> Result:
    """All ways in turn, round by round, on every problem."""
    answers: list[dict[str, Any]] = []
    for size in SIZES[problems]:
        runs: dict[str, Callable[[Decisions, int], Any]] = {
            way: lambda d, seed, way=way: by_fit(d, way, seed)  # type: ignore[misc]
            for way in ROADS
        }
        if nuts and size in WITH_NUTS:
            peer = Softmax(simulate(*size, seed=1))
            runs["NUTS"] = lambda d, seed, peer=peer: peer.run(seed)  # type: ignore[misc]
        decisions = simulate(*size, seed=1)
        # compile: not timed
        for run in runs.values():
            run(decisions[:50] if run is not runs.get("NUTS") else decisions, 0)
        found: dict[str, list[Any]] = {way: [] for way in runs}
        for seed in range(1, rounds + 1):
            for way, run in runs.items():
                found[way].append(run(decisions, seed))
        answers += [asdict(_summarise(size, way, each)) for way, each in found.items()]
        print(table(HEAD, [_line(Answer(**line)) for line in answers[-len(runs) :]]), flush=True)
    return {"answers": answers}


def _summarise(size: tuple[int, int, int], way: str, runs: list[Any]) -> Answer:
    """The medians of one way's rounds; trusted where every round was."""
    seconds = [run[3] for run in runs]
    effective = [0.0 if run[1] is None else float(ess_bulk(run[1]).min()) for run in runs]
    to_target = [
        s * max(1.0, TARGET_ESS / e) if e > 0 else float("nan")
        for s, e in zip(seconds, effective, strict=True)
    ]
    trusted = all(run[2] for run in runs)
    return Answer(
        *size,
        way,
        runs[-1][0],
        median(seconds),
        median(effective),
        trusted,
        median(to_target),
    )


HEAD = (
    "decisions",
    "actions",
    "coefficients",
    "way",
    "sampler",
    "seconds",
    "effective draws",
    "trusted",
    "seconds to 1,000",
)


def _line(answer: Answer) -> tuple[str, ...]:
    return (
        f"{answer.decisions:,}",
        f"{answer.actions}",
        f"{answer.coefficients}",
        answer.way,
        answer.sampler,
        f"{answer.seconds:.2f}",
        f"{answer.effective:,.0f}",
        "yes" if answer.trusted else "no",
        cell(None if np.isnan(answer.to_target) else answer.to_target, ".2f"),
    )


def tables(result: Result) -> str:
    """A line for each way and problem."""
    return table(HEAD, [_line(Answer(**line)) for line in result["answers"]])


def _by_problem(result: Result) -> list[dict[str, Answer]]:
    """The answers of each problem by their way."""
    problems: dict[tuple[int, int, int], dict[str, Answer]] = {}
    for line in result["answers"]:
        answer = Answer(**line)
        size = answer.decisions, answer.actions, answer.coefficients
        problems.setdefault(size, {})[answer.way] = answer
    return list(problems.values())


def ratios(result: Result) -> tuple[list[float], list[float], int]:
    """The default's seconds beside the quicker trusted road's, NUTS's beside the default's.

    Both for each problem; and how many problems only the default has no trusted answer to.
    """
    to_quickest, to_nuts, without = [], [], 0
    for ways in _by_problem(result):
        trusted = [ways[way].seconds for way in ROADS[1:] if ways[way].trusted]
        if trusted and not ways["default"].trusted:
            without += 1
        elif trusted:
            to_quickest.append(ways["default"].seconds / min(trusted))
        if "NUTS" in ways:
            to_nuts.append(ways["NUTS"].to_target / ways["default"].to_target)
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
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("numpyro", "jax"),
    missed=missed,
)
