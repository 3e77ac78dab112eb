"""How fast a rat's weights drift, beside PsyTrack, and whether it drifts or lapses.

Rat W053 compared two sounds in 20,000 trials of 80 sessions (Roy, Bak, Akrami, Brody and Pillow
2021); the data are read from `shared/data` beside the project. Weights of a bias and both sounds,
or three more of the trial before (answer, choice, mean of sounds), walk at random under logit
noise, with an initial sd of 16. Shown are seconds of processor time on one core:

- until the sizes of steps are found that posterior or evidence prefer, by us and by PsyTrack's
  `hyperOpt`, and Laplace's log evidence at the sizes that PsyTrack found;
- of one chain, warm-up included, with effective draws of the logs of sizes an iteration, and the
  fewest effective draws of anything: each weight in each trial, and all sizes;
- of four chains on all trials with six weights and other steps between sessions, and their R-hat;
- and the log evidence of weights that stay or drift, with lapses and without.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, cell, table
from revealed.results.comparison import log_evidence
from revealed.results.diagnostics import ess_bulk, r_hat
from revealed.samplers.builders import BuildArguments, build_state_space
from revealed.samplers.path_evidence import laplace_evidence

FILE = Path(__file__).resolve().parents[2] / "shared" / "data" / "rat_w053.parquet"
WEIGHTS = ("bias", "s1", "s2", "h", "c", "s_avg")
START = 16.0
# what is claimed: times as fast in finding sizes, and effective draws of log sizes an iteration
LEAST_RATIO, LEAST_EFFECTIVE = 50.0, {1: 0.25, 3: 0.25, 6: 0.08}
LARGEST_R_HAT, LEAST_OF_ALL = 1.01, 400.0


def rat(trials: int, weights: int) -> rv.Decisions:
    """The first trials, with so many weights."""
    found = pq.read_table(FILE).slice(0, trials).to_pydict()
    trials = len(found["choice"])
    rows, names = np.zeros((2 * trials, weights)), WEIGHTS[:weights]
    columns = [np.ones(trials) if name == "bias" else np.array(found[name]) for name in names]
    rows[1::2] = np.stack(columns, axis=1)
    return rv.Decisions(
        rows,
        np.arange(0, 2 * trials + 1, 2),
        (np.array(found["choice"]) == 2).astype(int),
        names=names,
        times=np.arange(trials),
        sessions=np.array(found["session"]),
    )


def model_of(over_time: Any, lapses: bool = False) -> rv.ChoiceModel:
    """Logit noise, and PsyTrack's sd of the first values."""
    noise = rv.LogitNoise(lapse=rv.Lapse() if lapses else None)
    return rv.ChoiceModel(prior=rv.Normal(START), noise=noise, over_time=over_time)


def built(d: rv.Decisions, over_time: Any) -> Any:
    """The sampler, which begins at the sizes that it finds."""
    return build_state_space(model_of(over_time).resolve(d), BuildArguments({}, 1))


def find_sizes(trials: int) -> Result:
    """Sizes of steps of three weights by us and by PsyTrack, and seconds of both."""
    d = rat(trials, 3)
    built(d[:60], rv.RandomWalk())  # compiles
    seconds = []
    for _ in range(3):
        began = time.process_time()
        ours = built(d, rv.RandomWalk())
        seconds.append(time.process_time() - began)
    answer: Result = {
        "trials": len(d),
        "seconds": float(np.median(seconds)),
        "sizes": np.exp(ours.start.theta).tolist(),
        "peer_seconds": None,
        "peer_sizes": None,
        "peer_evidence": None,
        "evidence": None,
    }
    if importlib.util.find_spec("psytrack") is None:
        return answer
    peer = importlib.import_module("psytrack")
    found = pq.read_table(FILE).slice(0, trials).to_pydict()
    data = {
        "y": np.array(found["choice"]),
        "inputs": {name: np.array(found[name])[:, None] for name in ("s1", "s2")},
    }
    hyper = {"sigInit": START, "sigma": [2.0**-4] * 3, "sigDay": None}
    began = time.process_time()
    best, evidence, _, _ = peer.hyperOpt(data, hyper, {"bias": 1, "s1": 1, "s2": 1}, ["sigma"])
    taken = time.process_time() - began
    sizes = [float(sd) for sd in best["sigma"]]
    there = built(d, rv.RandomWalk(sizes))
    return answer | {
        "peer_seconds": taken,
        "peer_sizes": sizes,
        "peer_evidence": float(evidence),
        "evidence": laplace_evidence(there.data, there.process, there.known),
    }


def fit(d: rv.Decisions, model: rv.ChoiceModel, **settings: Any) -> tuple[Any, float]:
    """A fit on one core, and its seconds."""
    began = time.process_time()
    post = rv.fit(d, model, executor=1, progress=False, seed=1, **settings)
    return post, time.process_time() - began


def one_chain(trials: int, weights: int, draws: int, warmup: int) -> Result:
    """How many draws of one chain are effective."""
    post, seconds = fit(
        rat(trials, weights), model_of(rv.RandomWalk()), draws=draws, warmup=warmup, chains=1
    )
    logs = ess_bulk(np.log(post.draws["drift_sd"]))
    # every weight in every trial, some at a time
    fewest = min(
        float(ess_bulk(part.reshape(1, draws, -1)).min())
        for part in np.array_split(post.draws["value"], 40, axis=2)
        if part.size
    )
    return {
        "weights": weights,
        "draws": draws,
        "warmup": warmup,
        "seconds": seconds,
        "of_logs": float(logs.min()),
        "fewest": min(fewest, float(logs.min())),
    }


def whole(trials: int, draws: int, warmup: int, thin: int) -> Result:
    """All trials and six weights, with steps of another size between sessions."""
    d = rat(trials, 6)
    over_time = rv.RandomWalk(between_sessions=rv.HalfStudentT(scale=0.5))
    settings = {"draws": draws, "warmup": warmup, "thin": thin, "chains": 4}
    post, seconds = fit(d, model_of(over_time), **settings)
    sizes = [np.log(post.draws[n]) for n in ("drift_sd", "drift_sd_between_sessions")]
    parts = [*np.array_split(post.draws["value"], 40, axis=2), *sizes]
    flat = [part.reshape(4, draws, -1) for part in parts if part.size]
    return {
        "trials": len(d),
        "draws": 4 * draws,
        "seconds": seconds,
        "r_hat": max(float(r_hat(part).max()) for part in flat),
        "fewest": min(float(ess_bulk(part).min()) for part in flat),
        "sizes": [float(np.exp(part.mean())) for part in np.moveaxis(sizes[0], 2, 0)],
        "between": [float(np.exp(part.mean())) for part in np.moveaxis(sizes[1], 2, 0)],
    }


def evidences(trials: int, draws: int, warmup: int) -> list[Result]:
    """The log evidence of weights that stay or drift, with lapses and without."""
    d, found = rat(trials, 3), []
    for drifts in (False, True):
        for lapses in (False, True):
            model = model_of(rv.RandomWalk() if drifts else rv.Constant(), lapses)
            how = {"warmup": warmup} if drifts else {"sampler": "ibis"}
            post, seconds = fit(d, model, draws=draws, chains=2, **how)
            value, error = log_evidence(post)
            rate = float(post.draws["lapse"].mean()) if lapses else None
            known = bool(np.isfinite(value))
            found.append(
                {
                    "drifts": drifts,
                    "lapses": lapses,
                    "seconds": seconds,
                    "evidence": value if known else None,
                    "error": error if known else None,
                    "rate": rate,
                }
            )
    return found


def measure(
    trials: int,
    draws: int,
    six_draws: int,
    warmup: int,
    all_trials: int,
    all_draws: int,
    thin: int,
    long_draws: int,
) -> Result:
    """All parts, on the trials that there are."""
    if not FILE.exists():
        raise ValueError(f"{FILE.name} is not in shared/data beside the project")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat and effective draws are reported
        return {
            "sizes": find_sizes(trials),
            "chains": [
                one_chain(trials, weights, six_draws if weights == 6 else draws, warmup)
                for weights in LEAST_EFFECTIVE
            ],
            "all": whole(all_trials, all_draws, warmup, thin),
            "evidence": evidences(trials, long_draws, warmup),
        }


def seconds_for(chain: Result, effective: float = 1000.0) -> float:
    """Seconds of one chain until so many draws of everything are effective.

    The warm-up once, and as many draws as that takes; from the seconds of all iterations.
    """
    iteration = chain["seconds"] / (chain["draws"] + chain["warmup"])
    return float(iteration * (chain["warmup"] + effective * chain["draws"] / chain["fewest"]))


def tables(result: Result) -> str:
    """Sizes; chains; all trials; evidence."""
    sizes, whole_run = result["sizes"], result["all"]

    def numbers(values: list[float] | None) -> str:
        return "" if values is None else ", ".join(f"{value:.5f}" for value in values)

    found = table(
        ("sizes of steps found by", "seconds", "sizes", "log evidence there"),
        [
            ("revealed", f"{sizes['seconds']:.2f}", numbers(sizes["sizes"]), ""),
            (
                "PsyTrack",
                cell(sizes["peer_seconds"], ".1f"),
                numbers(sizes["peer_sizes"]),
                ""
                if sizes["evidence"] is None
                else f"{sizes['evidence']:.5f} by us, {sizes['peer_evidence']:.5f} by PsyTrack",
            ),
        ],
    )
    chains = table(
        (
            "weights",
            "draws",
            "seconds",
            "effective draws of log sizes an iteration",
            "fewest effective draws of anything",
            "seconds for 1,000 of everything",
        ),
        [
            (
                f"{chain['weights']}",
                f"{chain['draws']:,}",
                f"{chain['seconds']:.1f}",
                f"{chain['of_logs'] / chain['draws']:.2f}",
                f"{chain['fewest']:,.0f}",
                f"{seconds_for(chain):,.0f}",
            )
            for chain in result["chains"]
        ],
    )
    models = table(
        ("weights", "lapses", "log evidence", "error", "rate of lapses", "seconds"),
        [
            (
                "drift" if each["drifts"] else "stay",
                "yes" if each["lapses"] else "no",
                cell(each["evidence"], ",.2f"),
                cell(each["error"], ".2f"),
                cell(each["rate"], ".3f"),
                f"{each['seconds']:.1f}",
            )
            for each in result["evidence"]
        ],
    )
    return (
        f"{found}\n\nOne chain on {sizes['trials']:,} trials:\n\n{chains}\n\nAll "
        f"{whole_run['trials']:,} trials with six weights and other steps between sessions: "
        f"{whole_run['draws']:,} draws of four chains in {whole_run['seconds']:,.0f} seconds, "
        f"R-hat of all weights and sizes at most {whole_run['r_hat']:.3f}, at least "
        f"{whole_run['fewest']:,.0f} effective draws of each. Sizes of steps "
        f"{numbers(whole_run['sizes'])}, and between sessions {numbers(whole_run['between'])}."
        f"\n\nWhich model of {sizes['trials']:,} trials with three weights:\n\n{models}"
    )


def ratio(result: Result) -> float | None:
    """How many times as fast as PsyTrack sizes are found."""
    sizes = result["sizes"]
    return None if sizes["peer_seconds"] is None else sizes["peer_seconds"] / sizes["seconds"]


def finding(result: Result) -> str:
    """How fast sizes are found, and which model has the highest evidence."""
    times = ratio(result)
    known = [each for each in result["evidence"] if each["evidence"] is not None]
    best = max(known, key=lambda each: each["evidence"])
    words = f"weights {'drift' if best['drifts'] else 'stay'}"
    words += " and choices lapse" if best["lapses"] else " without lapses"
    if len(known) < len(result["evidence"]):
        words += f" (the best of {len(known)} models; the evidence of others is not known)"
    return words if times is None else f"sizes {times:,.0f} times as fast as PsyTrack; {words}"


def missed(result: Result) -> str:
    """Where a figure is short of what is claimed."""
    found, times = [], ratio(result)
    if times is not None and times < LEAST_RATIO:
        found.append(f"sizes {times:.0f} times as fast, where {LEAST_RATIO:g} are claimed")
    for chain in result["chains"]:
        rate, least = chain["of_logs"] / chain["draws"], LEAST_EFFECTIVE[chain["weights"]]
        if rate < least:
            found.append(
                f"{rate:.2f} effective draws of log sizes an iteration with {chain['weights']} "
                f"weights, where {least:g} are claimed"
            )
        slower = result["sizes"]["peer_seconds"]
        if chain["weights"] == 3 and slower is not None and seconds_for(chain) > slower:
            found.append("1,000 effective draws of everything take longer than hyperOpt")
    unknown = sum(each["evidence"] is None for each in result["evidence"])
    if unknown:
        found.append(f"the evidence of {unknown} of four models is not known")
    if result["all"]["r_hat"] > LARGEST_R_HAT:
        found.append(f"R-hat {result['all']['r_hat']:.3f}, where {LARGEST_R_HAT:g} is claimed")
    if result["all"]["fewest"] < LEAST_OF_ALL:
        found.append(
            f"{result['all']['fewest']:.0f} effective draws, where {LEAST_OF_ALL:g} are claimed"
        )
    return "; ".join(found)


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="A rat that learns",
    takes="20 minutes",
    options={
        "trials": Option(10_000, "first trials", quick=200),
        "draws": Option(2_000, "of one chain with one and three weights", quick=100),
        "six_draws": Option(600, "of one chain with six weights", quick=100),
        "warmup": Option(300, "iterations before the first draw", quick=100),
        "all_trials": Option(20_000, "of the fit with six weights and sessions", quick=400),
        # of so many numbers some have an R-hat of 1.01 with 300 draws that are independent
        "all_draws": Option(450, "from each of its four chains", quick=100),
        "thin": Option(3, "iterations a draw of it, as draws of all paths are large", quick=1),
        "long_draws": Option(300, "from each of two chains that evidence is found from", quick=100),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("psytrack",),
    missed=missed,
)
