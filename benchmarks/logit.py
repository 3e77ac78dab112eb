"""Logit noise: seconds of processor time to 1,000 effective draws, beside NUTS.

Choices are simulated: T decisions among five actions by K normal features with Gumbel noise, and
walks in grid worlds whose every square has a value. `rv.fit` with its default makes four chains of
1,000 draws on one core. Beside it are NUTS of nutpie on the same compiled likelihood, and NUTS of
NumPyro on the softmax that its users would write; both make four chains one after the other, with
1,000 iterations of warm-up. Compilation is left out, everything else counts. What takes less than
two seconds is repeated for that long in every round, and the mean counts. Where there are fewer
than 1,000 effective draws of the slowest coefficient, seconds grow in proportion. Matrix products
have one thread too: others that wait for work would be counted.

Then what a row costs, log probability and slope, beside normal noise; and a million decisions of
twelve actions and three features: `rv.fit`, which has the whole posterior, beside the maximum
likelihood of xlogit, seconds of the clock on all cores.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import revealed as rv
from benchmarks._peers import nutpie_draws
from benchmarks._problems import grid_world
from benchmarks._record import Benchmark, Option, Result, cell, table
from benchmarks.first_answer import Softmax
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.noise import NORMAL
from revealed.models.priors import resolve_prior
from revealed.results.diagnostics import ess_bulk, r_hat
from revealed.samplers.chunk_likelihood import prepare, values_and_gradients

TARGET, DRAWS, CHAINS, ACTIONS, PRIOR_SD = 1000.0, 1000, 4, 5, 50.0
SIZES = [(T, K) for T in (500, 2000, 20000) for K in (3, 10, 20)]
ROW_SIZES = ((20_000, 3, 3), (20_000, 12, 3), (5_000, 10, 10))
LONG_SECONDS = 20.0
"""What takes longer is measured once."""
SHORT_SECONDS = 2.0
"""What takes less is run again within its round, and the mean counts."""


class Problem(NamedTuple):
    """Choices under a name."""

    name: str
    decisions: Decisions


@dataclass(frozen=True)
class Way:
    """One way on one problem: medians of the rounds."""

    problem: str
    way: str
    seconds: float
    effective: float
    to_target: float
    r_hat: float
    off: float | None


def simulate(count: int, actions: int, width: int, seed: int) -> Decisions:
    """Choices by standard normal coefficients among normal features, with Gumbel noise."""
    rng = np.random.default_rng(seed)
    rows, value = rng.standard_normal((count * actions, width)), rng.standard_normal(width)
    utilities = (rows @ value + rng.gumbel(size=count * actions)).reshape(count, actions)
    return Decisions(rows, np.arange(0, count * actions + 1, actions), utilities.argmax(axis=1))


def grid(size: int, count: int) -> Decisions:
    """Walks in a grid whose value is one hill; moves go astray one time in five."""
    rng, mdp = np.random.default_rng(2), grid_world(size, 0.2)
    row, column = np.divmod(np.arange(size * size), size)
    value = -0.75 * (np.abs(row - size // 2) + np.abs(column - size // 2))
    path = mdp.simulate(rng, value, count, noise=rv.LogitNoise())
    return mdp.decisions(path.states, path.actions)


def make_problems(which: str) -> Iterator[Problem]:
    """The problems, one after the other; of a quick run one."""
    if which == "quick":
        yield Problem("T = 100, K = 3", simulate(100, ACTIONS, 3, 1))
        return
    for count, width in SIZES:
        yield Problem(f"T = {count:,}, K = {width}", simulate(count, ACTIONS, width, 1))
    yield Problem("grid 5 x 5, T = 300", grid(5, 300))
    yield Problem("grid 11 x 11, T = 1,000", grid(11, 1000))


def by_default(d: Decisions) -> Callable[[int], tuple[Floats, float]]:
    """`rv.fit` as it is."""
    model = rv.ChoiceModel(prior=rv.Normal(PRIOR_SD), noise=rv.LogitNoise())

    def run(seed: int) -> tuple[Floats, float]:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            post = rv.fit(d, model, seed=seed, executor=1, progress=False)
        return post.draws["value"], time.process_time() - began

    return run


def by_nutpie(d: Decisions) -> Callable[[int], tuple[Floats, float]]:
    """nutpie on the same compiled likelihood, chain after chain."""
    prior, law = resolve_prior(rv.Normal(PRIOR_SD), d), rv.LogitNoise().law()

    def run(seed: int) -> tuple[Floats, float]:
        chains, seconds = [], 0.0
        for chain in range(CHAINS):
            began = time.process_time()
            found = nutpie_draws(d, prior, DRAWS, DRAWS, CHAINS * seed + chain, noise=law)
            seconds += time.process_time() - began - found.compiling
            chains.append(found.draws)
        return np.stack(chains), seconds

    return run


def by_numpyro(d: Decisions) -> Callable[[int], tuple[Floats, float]]:
    """NumPyro's NUTS on a softmax; a constant added to every square's value is left in there."""
    sampler = Softmax(d)
    sums_to_zero = d.blocks[0].sum_to_zero

    def run(seed: int) -> tuple[Floats, float]:
        _, draws, _, seconds = sampler.run(seed)
        return (draws - draws.mean(axis=2, keepdims=True) if sums_to_zero else draws), seconds

    return run


WAYS = {"default": by_default, "nutpie": by_nutpie, "NumPyro": by_numpyro}


def measure(rounds: int, problems: str, million: int) -> Result:
    """All ways in turn, round by round; then rows, and the million."""
    with threadpool_limits(1, user_api="blas"):
        found = measure_ways(rounds, problems)
    rows = measure_rows()
    return {"ways": found, "rows": rows, "million": measure_million(million) if million else None}


def measure_ways(rounds: int, problems: str) -> list[dict[str, Any]]:
    """Seconds and effective draws of every way on every problem."""
    found: list[dict[str, Any]] = []
    for problem in make_problems(problems):
        runs = {name: make(problem.decisions) for name, make in WAYS.items()}
        for name in ("default", "nutpie"):
            runs[name](0)  # compiles
        seen: dict[str, list[tuple[Floats, float]]] = {name: [] for name in runs}
        for seed in range(1, rounds + 1):
            for name, run in runs.items():
                if seed == 1 or seen[name][0][1] < LONG_SECONDS:
                    seen[name].append(run_for_a_while(run, seed))
        reference = seen["default"][-1][0]
        lines = [asdict(_summarise(problem.name, w, s, reference)) for w, s in seen.items()]
        found += lines
        print(table(HEAD, [_line(Way(**line)) for line in lines]), flush=True)
    return found


def run_for_a_while(run: Callable[[int], tuple[Floats, float]], seed: int) -> tuple[Floats, float]:
    """Draws, and the mean seconds of as many runs as fit in `SHORT_SECONDS`, at least one.

    What takes a tenth of a second would otherwise be measured right after something else has filled
    all caches for a minute.
    """
    draws, spent = run(seed)
    times = [spent]
    while sum(times) + spent < SHORT_SECONDS:
        times.append(run(seed)[1])
    return draws, float(np.mean(times))


def _summarise(problem: str, way: str, runs: list[tuple[Floats, float]], reference: Floats) -> Way:
    """Medians of one way, and how far its means are from the default's, in standard errors."""
    seconds = [run[1] for run in runs]
    # what is fixed, such as a coefficient that can only be zero, has no effective draws
    moves = [draws.std(axis=(0, 1)) > 0.0 for draws, _ in runs]
    effective = [float(ess_bulk(x[..., m]).min()) for (x, _), m in zip(runs, moves, strict=True)]
    target = [s * max(1.0, TARGET / e) for s, e in zip(seconds, effective, strict=True)]
    last = runs[-1][0]
    off = None
    if way != "default":
        spread = [x.var(axis=(0, 1)) / np.maximum(ess_bulk(x), 1.0) for x in (last, reference)]
        difference = last.mean(axis=(0, 1)) - reference.mean(axis=(0, 1))
        off = float(np.max(np.abs(difference) / np.sqrt(np.maximum(sum(spread), 1e-300))))
    return Way(
        problem,
        way,
        median(seconds),
        median(effective),
        median(target),
        float(r_hat(last[..., moves[-1]]).max()),
        off,
    )


def measure_rows() -> list[dict[str, Any]]:
    """Nanoseconds of log probability and slope for one row, by both noises in turn."""
    found = []
    for count, actions, width in ROW_SIZES:
        d = simulate(count, actions, width, 3)
        chunk, values = prepare(d, np.ones(count)), np.zeros((10, width))
        values += 0.1 * np.random.default_rng(4).standard_normal(values.shape)
        spent: dict[str, list[float]] = {"normal": [], "logit": []}
        for _ in range(6):
            for name, law in (("normal", NORMAL), ("logit", rv.LogitNoise().law())):
                began = time.process_time()
                values_and_gradients(chunk, values, law)
                spent[name].append(1e9 * (time.process_time() - began) / (10 * count * actions))
        size = {"decisions": count, "actions": actions, "coefficients": width}
        # the first of each compiles
        found.append(size | {name: median(each[1:]) for name, each in spent.items()})
    return found


def measure_million(count: int) -> Result:
    """Seconds of the clock, by `rv.fit` and by xlogit in turn."""
    d = simulate(count, 12, 3, 1)
    model = rv.ChoiceModel(prior=rv.Normal(PRIOR_SD), noise=rv.LogitNoise())
    rv.fit(d[:100], model, progress=False)  # compiles
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        post = rv.fit(d, model, progress=False)
        ours.append(time.perf_counter() - began)
        estimate, seconds = _by_xlogit(d)
        theirs.append(seconds)
    return {
        "decisions": count,
        "ours": ours,
        "xlogit": theirs,
        "certified": bool(post.converged),
        "off": float(np.max(np.abs(post.mean() - estimate) / post.sd())),
    }


def _by_xlogit(d: Decisions) -> tuple[Floats, float]:
    """The maximum of the likelihood, and the seconds that finding it took."""
    from xlogit import MultinomialLogit

    actions = int(d.sizes[0])
    choices = np.zeros(len(d) * actions)
    choices[d.chosen_row] = 1.0
    names = list(d.names)
    began = time.perf_counter()
    model = MultinomialLogit()
    model.fit(
        X=np.asarray(d.rows),
        y=choices,
        varnames=names,
        ids=np.repeat(np.arange(len(d)), actions),
        alts=np.tile(np.arange(actions), len(d)),
        verbose=0,
    )
    return np.asarray(model.coeff_), time.perf_counter() - began


HEAD = ("problem", "way", "seconds", "effective draws", "seconds to 1,000", "R-hat", "off")


def _line(way: Way) -> tuple[str, ...]:
    return (
        way.problem,
        way.way,
        f"{way.seconds:.2f}",
        f"{way.effective:,.0f}",
        f"{way.to_target:.2f}",
        f"{way.r_hat:.3f}",
        cell(way.off, ".1f"),
    )


def tables(result: Result) -> str:
    """Ways and problems, rows, and the million."""
    ways = table(HEAD, [_line(Way(**line)) for line in result["ways"]])
    head = ("decisions", "actions", "coefficients", "normal", "logit", "ratio")
    rows = table(
        head,
        [
            (
                f"{line['decisions']:,}",
                f"{line['actions']}",
                f"{line['coefficients']}",
                f"{line['normal']:.1f}",
                f"{line['logit']:.1f}",
                f"{line['logit'] / line['normal']:.2f}",
            )
            for line in result["rows"]
        ],
    )
    said = f"{ways}\n\nNanoseconds for a row, log probability and slope:\n\n{rows}"
    if (found := result["million"]) is None:
        return said
    ours, theirs = (" and ".join(f"{s:.1f}" for s in found[name]) for name in ("ours", "xlogit"))
    return (
        f"{said}\n\n{found['decisions']:,} decisions: {ours} s, certified: "
        f"{'yes' if found['certified'] else 'no'}; xlogit {theirs} s. Its maximum is within "
        f"{found['off']:.3f} sds of our mean."
    )


def ratios(result: Result) -> dict[str, list[float]]:
    """Of each peer, its seconds to 1,000 effective draws beside the default's, by problem."""
    by_problem: dict[str, dict[str, Way]] = {}
    for line in result["ways"]:
        by_problem.setdefault(line["problem"], {})[line["way"]] = Way(**line)
    return {
        peer: [ways[peer].to_target / ways["default"].to_target for ways in by_problem.values()]
        for peer in ("nutpie", "NumPyro")
    }


def finding(result: Result) -> str:
    """How many times as quick the default is, and what a row and a million cost."""
    said = [
        f"{min(each):.0f} to {max(each):.0f} times as quick as {peer}"
        for peer, each in ratios(result).items()
    ]
    rows = [line["logit"] / line["normal"] for line in result["rows"]]
    said.append(f"a row costs {min(rows):.2f} to {max(rows):.2f} of one under normal noise")
    if (found := result["million"]) is not None:
        times = median(found["ours"]) / median(found["xlogit"])
        said.append(f"a million decisions take {times:.1f} times xlogit's maximum likelihood")
    return "; ".join(said)


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Logit noise",
    takes="15 minutes",
    options={
        "rounds": Option(3, "of each way", quick=1),
        "problems": Option("full", "full or quick", quick="quick"),
        "million": Option(1_000_000, "decisions of the large problem, 0 for none", quick=0),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("nutpie", "numpyro", "jax", "xlogit"),
)
