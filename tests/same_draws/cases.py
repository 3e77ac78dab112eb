"""Digests of everything that is drawn: the proof that a refactoring has changed no draw, bit for bit.

    python tests/same_draws/cases.py --adapter old OUT.json [part of a case's name ...]

    --reverse     cases in the opposite order          --list      names only
    --arrays DIR  keep the arrays themselves, one .npz a case, so that compare.py can say how far off one is
    --keep        leave the cases alone that OUT.json holds already (without an error)

OUT.json: {case: {array: sha256 of shape, dtype and bytes, ..., "stats": {stat: sha256}, "seconds": s}}, or {case: "error: ..."}; "_about" tells of
the machine. It is written after every case. Cases know nothing of the package: all of it is behind adapter_old.py or adapter_new.py (`api`).
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy: sums in one order
    os.environ[_name] = "1"
os.environ["MPLBACKEND"] = "Agg"

import argparse
import hashlib
import importlib
import json
import platform
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
OLD_FILES = HERE / "old-files"  # written by the old package once, to be read by either
api: Any = None
CASES: dict[str, Callable[[], dict[str, Any]]] = {}
RUN: dict[str, Any] = {"draws": 200, "warmup": 200, "chains": 2, "threads": 2, "seed": 5}


def case(name: str) -> Callable[[Any], Any]:
    def put(function: Any) -> Any:
        assert name not in CASES, name
        CASES[name] = function
        return function

    return put


def gather(**parts: Any) -> dict[str, Any]:
    """Several dicts of numbers as one, each name with the part's before it; "stats" are gathered likewise."""
    out: dict[str, Any] = {"stats": {}}
    for part, given in parts.items():
        for name, value in given.items():
            if name == "stats":
                out["stats"] |= {f"{part}/{stat}": each for stat, each in value.items()}
            else:
                out[f"{part}/{name}"] = value
    return out


def fitted(d: Any, prior: Any = None, engine: str = "auto", **more: Any) -> dict[str, Any]:
    return api.numbers(api.fit(d, prior, engine, **{**RUN, **more}))


@cache
def home() -> Path:
    """A folder of this process."""
    return Path(tempfile.mkdtemp(prefix="pins-"))


# Problems, as tests/problems.py and tests/mortals.py have them


def choose(rng: np.random.Generator, offers: Any, v: Any) -> Any:
    rows, start, _ = api.rows_of(offers)
    w = rows @ v + rng.standard_normal(rows.shape[0])
    return np.array([int(np.argmax(w[a:b])) for a, b in zip(start[:-1], start[1:], strict=True)])


def chosen_by(offers: Any, v: Any, seed: int = 1) -> Any:
    return api.with_choices(offers, choose(np.random.default_rng(seed), offers, np.asarray(v, float)))


def mdp_offers(states: int, actions: int, count: int, seed: int, action_rewards: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    mdp = api.random_mdp(rng, states, actions)
    return api.mdp_decisions(mdp, rng.integers(0, states, count), action_rewards=action_rewards)


def ragged_offers(features: int, count: int, seed: int, size: float = 1.0, blocks: Any = None, labels: Any = None) -> Any:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    start = np.concatenate([[0], np.cumsum(sizes)])
    return api.decisions(size * rng.standard_normal((sizes.sum(), features)), start, blocks=blocks, groups=labels)


def two_states() -> Any:
    rows = [[0.8, 0.2], [0.3, 0.7]] * 4
    return api.decisions(rows, [0, 2, 4, 6, 8], [0, 0, 1, 0], blocks=[api.block("value", 2, True)])


def features(count: int, seed: int = 3) -> Any:
    return chosen_by(ragged_offers(3, count, seed), [1.0, -0.5, 0.2], seed)


def states() -> Any:
    return chosen_by(mdp_offers(5, 3, 40, seed=3), np.arange(5.0))


def small_features(count: int = 60) -> Any:
    return chosen_by(ragged_offers(3, count, seed=2), [1.0, -0.5, 0.3])


def calibrated(which: str) -> Any:
    if which == "mdp":
        return chosen_by(mdp_offers(5, 3, 20, seed=1), [1.0, -1.0, 0.5, 0.0, -0.5], 4)
    return chosen_by(ragged_offers(4, 12, seed=2, size=0.5), [1.0, -1.0, 0.5, 0.0], 4)


def labelled(count: int = 30, seed: int = 1, names: str = "abcd", blocks: Any = None, sparse: bool = False) -> Any:
    """The mortals' (who always take the first of a shuffled offer)."""
    rng = np.random.default_rng(seed)
    shown = [rng.permutation(len(names))[: rng.integers(2, len(names) + 1)] for _ in range(count)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    labels = np.array(list(names))[np.concatenate(shown)]
    rows: Any = rng.standard_normal((start[-1], 3))
    rows = sp.csr_array(np.where(np.abs(rows) > 0.7, rows, 0.0)) if sparse else rows
    return api.decisions(rows, start, np.zeros(count, int), actions=labels, blocks=blocks)


def grid_world(side: int) -> list[Any]:
    """A walk on a grid with slips, as sparse matrices."""
    count, moves = side * side, ((0, 1), (1, 0), (0, -1), (-1, 0))
    found = []
    for drift in moves:
        cells = sp.lil_array((count, count))
        for x in range(count):
            for move, chance in [(drift, 0.75), *((other, 0.0625) for other in moves)]:
                i, j = np.clip(x // side + move[0], 0, side - 1), np.clip(x % side + move[1], 0, side - 1)
                cells[x, i * side + j] += chance
        found.append(sp.csr_array(cells))
    return found


@cache
def sparse_steps(side: int, count: int, action_rewards: bool = False) -> Any:
    """Decisions in a grid world with sparse rows."""
    rng = np.random.default_rng(7)
    world = api.mdp(grid_world(side))
    value = rng.standard_normal(side * side) * 3.0
    seen = api.mdp_simulate(world, rng, value, count)
    return api.mdp_decisions(world, *seen, action_rewards=action_rewards)


def three_blocks(count: int = 60, sums: tuple[bool, ...] = (True, False, True)) -> Any:
    """Three blocks: indicators of four places, two features, and three shares that sum to one."""
    rng = np.random.default_rng(11)
    sizes = rng.integers(2, 5, count)
    total = int(sizes.sum())
    rows = np.hstack([
        np.eye(4)[rng.integers(0, 4, total)], rng.standard_normal((total, 2)), rng.dirichlet(np.ones(3), total),
    ])  # fmt: skip
    blocks = [api.block(n, s, z) for n, s, z in zip(("place", "feature", "share"), (4, 2, 3), sums, strict=True)]
    offers = api.decisions(rows, np.concatenate([[0], np.cumsum(sizes)]), blocks=blocks)
    return chosen_by(offers, [1.0, -1.0, 0.5, -0.5, 0.8, -0.4, 1.0, 0.0, -1.0], 6)


def many(count: int = 20, decisions: int = 80, seed: int = 8) -> Any:
    """More coefficients than a mixture is tried for."""
    v = np.random.default_rng(seed + 1).standard_normal(count)
    return chosen_by(ragged_offers(count, decisions, seed), v, seed)


# Every engine, way to draw utilities and working prior, on the known problems

VARIANTS: dict[str, list[tuple[str, Any]]] = {
    engine: [
        (f"{utilities}{'-proper' if a else ''}", {"utilities": utilities, "a": a, "b": b})
        for utilities in ("exact", "metropolis")
        for a, b in ([(0.0, 0.0), (2.0, 3.0)] if "scale" in engine or "both" in engine else [(0.0, 0.0)])
    ]
    for engine in ("da", "px-scale", "px-translate", "px-both")
}
VARIANTS["blended"] = [("plain", None)]
PROBLEMS: dict[str, Callable[[], Any]] = {
    "two states": two_states,
    "mdp": states,
    "features": lambda: features(60),
    "calibrated mdp": lambda: calibrated("mdp"),
    "calibrated ragged": lambda: calibrated("ragged"),
}


def _variants(problem: str, engine: str, prior: Any, **more: Any) -> Any:
    def run() -> dict[str, Any]:
        d = PROBLEMS[problem]()
        return gather(**{
            label: fitted(d, prior(), engine, options=options, **{"draws": 300, **more})
            for label, options in VARIANTS[engine]
        })  # fmt: skip

    return run


for _problem in PROBLEMS:
    for _engine in VARIANTS:
        _translates = _engine in ("px-translate", "px-both")
        if _translates and _problem in ("features", "calibrated ragged"):
            continue
        CASES[f"variants/{_problem}/normal/{_engine}"] = _variants(_problem, _engine, lambda: api.normal(2.0))
        if not _problem.startswith("calibrated"):
            CASES[f"variants/{_problem}/flat/{_engine}"] = _variants(
                _problem, _engine, lambda: api.flat(), thin=2, draws=200
            )


@case("variants/more options")
def _() -> Any:
    d, f = states(), features(60)
    far = np.array([[1.0, -1.0, 0.0, 0.5, -0.5], [3.0, 0.0, 0.0, -3.0, 0.0]])
    return gather(
        newton0=fitted(d, api.normal(2.0), "da", options={"utilities": "metropolis", "newton": 0}),
        newton1=fitted(d, api.normal(50.0), "px-both", options={"utilities": "metropolis", "newton": 1, "a": 3.0, "b": 1e5}),
        auto=fitted(d, api.normal(3.0), "auto", options={"utilities": "metropolis"}),
        auto_features=fitted(f, api.normal(3.0), "auto", options={"utilities": "exact"}),
        init=fitted(d, api.normal(2.0), "px-translate", init=far, thin=3),
        init_one=fitted(d, api.normal(2.0), "blended", init=far[0], thin=2),
        mean=fitted(d, api.normal(2.0, mean=[1.0, 0.0, 0.0, 0.0, -1.0]), "px-translate"),
        mean_da=fitted(f, api.normal(1.0, mean=0.5), "da", options={"utilities": "metropolis"}),
        one_chain=fitted(d, api.normal(2.0), "px-scale", chains=1, threads=1, seed=123456789),
        no_warmup=fitted(d, api.normal(2.0), "da", warmup=0),
    )


# The problems of tests/mortals.py, undisturbed


def _mortal(d: Callable[[], Any], draws: int, engine: str = "auto", prior: Any = None, **more: Any) -> Any:
    def run() -> dict[str, Any]:
        belief = api.normal(2.0) if prior is None else prior()
        noise = api.full_noise(base="b") if more.get("noise") else None
        return api.numbers(api.fit(d(), belief, engine, **{**RUN, "draws": draws, "warmup": 300, **more, "noise": noise}))

    return run


CASES |= {
    "mortals/blended": _mortal(small_features, 500, "blended"),
    "mortals/a learnt size": _mortal(states, 400, "blended", lambda: api.learnt()),
    "mortals/da": _mortal(states, 5000, "da"),
    "mortals/px-scale": _mortal(states, 5000, "px-scale"),
    "mortals/px-translate": _mortal(states, 5000, "px-translate"),
    "mortals/px-both": _mortal(states, 5000, "px-both"),
    "mortals/ibis": _mortal(lambda: small_features(25), 100, "ibis"),
    "mortals/laplace": _mortal(lambda: small_features(600), 500, "laplace"),
    "mortals/conditioned": _mortal(labelled, 300, noise=True),
    "mortals/da with noise": _mortal(labelled, 2000, "da", noise=True),
}


def two_files(folder: Path, d: Any, first: int, group: int) -> Path:
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    for i, part in enumerate((api.pick(d, slice(None, first)), api.pick(d, slice(first, None)))):
        pq.write_table(api.to_table(part), folder / f"part-{i}.parquet", row_group_size=group)
    return folder


@case("mortals/a folder")
def _() -> Any:
    folder = two_files(home() / "folder", small_features(600), 350, 217)
    return fitted(api.parquet_folder(folder), api.normal(2.0), draws=500, warmup=300)


@case("mortals/learn_mdp")
def _() -> Any:
    world = api.random_mdp(np.random.default_rng(4), 4, 2)
    seen = api.mdp_simulate(world, np.random.default_rng(5), np.array([1.0, 0.0, -1.0, 0.5]), 60)
    return api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal(2.0), **{**RUN, "draws": 300, "warmup": 300}))


@case("mortals/fit_population")
def _() -> Any:
    who = np.repeat(["ann", "bob", "cid"], 20)
    return api.numbers(api.fit_population(small_features(), who, **{**RUN, "draws": 80, "warmup": 60}))


@case("mortals/rank")
def _() -> Any:
    rng = np.random.default_rng(3)
    games = [[("ann", "bob", "cid", "dee")[k] for k in rng.permutation(4)[:3]] for _ in range(12)]
    return api.numbers(api.rank(games, **{**RUN, "draws": 150, "warmup": 100}))


@case("mortals/stream")
def _() -> Any:
    d = small_features(16)
    s = api.stream(3, api.normal(3.0), 100, seed=3)
    for t in range(16):
        api.stream_update(s, api.pick(d, slice(t, t + 1)))
    return api.stream_numbers(s, np.eye(3), 1)


@case("mortals/the command")
def _() -> Any:
    table, out = home() / "states.csv", home() / "states.nc"
    api.to_file(states(), table)
    out.unlink(missing_ok=True)
    api.cli_fit(table, out, 2.0, sum_to_zero=True, draws=4000, warmup=300, chains=2, seed=5)
    return api.numbers(api.load(out))


# Learnt sizes of the prior

for _engine in ("blended", "da", "px-scale", "px-translate", "px-both"):

    @case(f"learnt size/{_engine}")
    def _(engine: str = _engine) -> Any:
        d, thick = states(), [1.0, 2.0, 3.0, 1.0, 2.0]
        out = {
            "plain": fitted(d, api.learnt(), engine),
            "scale": fitted(d, api.learnt(scale=1.0), engine, thin=2),
            "shape": fitted(d, api.learnt(scale=3.0, shape_sd=thick), engine),
        }
        if "translate" not in engine and "both" not in engine:
            rough = np.array([[1.0, 0.5, 0.0], [0.5, 4.0, 1.0], [0.0, 1.0, 9.0]])
            out["features"] = fitted(features(60), api.learnt(scale=2.0), engine)
            out["covariance"] = fitted(features(60), api.learnt(scale=2.0, shape_covariance=rough), engine)
        if engine != "blended":
            out["metropolis"] = fitted(d, api.learnt(scale=2.0), engine, options={"utilities": "metropolis"})
        if "scale" not in engine and "both" not in engine:
            out["mean"] = fitted(d, api.learnt(scale=2.0, mean=[1.0, 0.0, 0.0, 0.0, -1.0]), engine)
        return gather(**out)


@case("learnt size/blocks")
def _() -> Any:
    d = three_blocks()
    each = {"place": 1.0, "feature": 2.0, "share": 3.0}
    return gather(
        blended=fitted(d, api.learnt(scale=2.0, shape_sd=each), "blended"),
        scale=fitted(d, api.learnt(scale=2.0, shape_sd=each), "px-scale"),
        both=fitted(d, api.learnt(scale=2.0, shape_sd=each), "px-both"),
    )


@case("learnt size/ibis")
def _() -> Any:
    return gather(
        features=fitted(small_features(20), api.learnt(scale=2.0), "ibis", draws=100),
        states=fitted(states(), api.learnt(scale=3.0, shape_sd=[1.0, 2.0, 3.0, 1.0, 2.0]), "ibis", draws=100),
    )


@case("learnt size/laplace")
def _() -> Any:
    rows = chosen_by(mdp_offers(5, 3, 600, seed=3), np.arange(5.0))
    return gather(
        features=fitted(small_features(600), api.learnt(scale=2.0), "laplace"),
        states=fitted(rows, api.learnt(scale=3.0, shape_sd=[1.0, 2.0, 3.0, 1.0, 2.0]), "laplace"),
    )


@case("learnt size/one coefficient, and many")
def _() -> Any:
    one = chosen_by(ragged_offers(1, 40, 5), [0.7], 5)
    return gather(
        one=fitted(one, api.learnt(scale=2.0), "blended"),
        one_da=fitted(one, api.learnt(scale=2.0), "da"),
        two=fitted(two_states(), api.learnt(scale=2.0), "blended"),
        many=fitted(many(16), api.learnt(scale=2.0), "blended"),
        grid=fitted(sparse_steps(4, 120), api.learnt(scale=3.0), "blended"),
        grid_both=fitted(sparse_steps(4, 120), api.learnt(scale=3.0), "px-both"),
    )


# Priors and blocks


@case("priors/placed")
def _() -> Any:
    d, f = three_blocks(), features(20)
    rough = np.array([[1.0, 0.5, 0.0], [0.5, 4.0, 1.0], [0.0, 1.0, 9.0]])
    return gather(
        plain=api.prior_numbers(api.normal(2.0), d, 1),
        each=api.prior_numbers(api.normal([1.0, 2.0, 3.0]), f, 1),
        blocks=api.prior_numbers(api.normal({"place": 1.0, "feature": 2.0, "share": 5.0}), d, 1),
        mean=api.prior_numbers(api.normal(3.0, mean=np.arange(9.0)), d, 1),
        covariance=api.prior_numbers(api.normal(covariance=rough, mean=1.0), f, 1),
        sum_to_zero=api.prior_numbers(api.normal(5.0, sum_to_zero=True), d, 1),
        free=api.prior_numbers(api.normal(5.0, sum_to_zero=False), d, 1),
        learnt=api.prior_numbers(api.learnt(3.0, shape_sd=[1.0, 2.0, 3.0]), f, 1),
        flat=api.prior_numbers(api.flat(), d, 1),
    )


for _engine in ("blended", "da", "px-scale", "px-translate"):

    @case(f"priors/blocks/{_engine}")
    def _(engine: str = _engine) -> Any:
        d, each = three_blocks(), {"place": 1.0, "feature": 2.0, "share": 5.0}
        out = {
            "several": fitted(d, api.normal(each), engine),
            "flat": fitted(d, api.flat(), engine, thin=2),
            "sum_to_zero": fitted(features(60), api.normal(2.0, sum_to_zero=True), engine if "trans" not in engine else "da"),
            "first": fitted(three_blocks(sums=(True, False, False)), api.normal(3.0), engine),
            "alone": fitted(three_blocks(60, (False, False, True)), api.normal(3.0), engine),
        }
        if "translate" not in engine:
            out["none"] = fitted(three_blocks(60, (False, False, False)), api.normal(3.0), engine)
            out["free"] = fitted(d, api.normal(3.0, sum_to_zero=False), engine)
            out["vector"] = fitted(features(60), api.normal([1.0, 2.0, 3.0]), engine)
        return gather(**out)


@case("priors/mean and covariance")
def _() -> Any:
    rough = np.array([[1.0, 0.5, 0.0], [0.5, 4.0, 1.0], [0.0, 1.0, 9.0]])
    f, d = features(60), states()
    wide = np.eye(5) * 4.0 + 1.0
    return gather(
        blended=fitted(f, api.normal(covariance=rough), "blended"),
        da=fitted(f, api.normal(covariance=rough, mean=[0.5, 0.0, -0.5]), "da"),
        scale=fitted(f, api.normal(covariance=rough), "px-scale", options={"utilities": "metropolis"}),
        both=fitted(d, api.normal(covariance=wide), "px-both"),
        mean=fitted(f, api.normal(2.0, mean=[0.5, 0.0, -0.5]), "blended"),
        mean_states=fitted(d, api.normal(2.0, mean=[1.0, 0.0, 0.0, 0.0, -1.0]), "blended"),
        ibis=fitted(f, api.normal(covariance=rough), "ibis", draws=100),
        laplace=fitted(small_features(600), api.normal(covariance=rough, mean=0.5), "laplace"),
    )


@case("priors/defaults")
def _() -> Any:
    """The package's own priors and settings; if a default is changed on purpose, this one must differ."""
    d = api.pick(states(), slice(0, 12))
    return gather(
        fit=fitted(d), fit_all=api.numbers(api.fit(d, draws=100)), features=fitted(features(60)),
        da=fitted(d, engine="da"),
    )  # fmt: skip


@case("priors/smooth (tied coefficients)")
def _() -> Any:
    seen, _, increments = buses()
    d = api.bus_decisions(seen, increments, 12)
    prior = api.bus_prior(12, 5.0, 8.0, 2.0)
    return gather(blended=fitted(d, prior, "blended"), da=fitted(d, prior, "da"), scale=fitted(d, prior, "px-scale"))


# The default engine in its different regimes


@case("blended/few, some, many")
def _() -> Any:
    return gather(
        one=fitted(chosen_by(ragged_offers(1, 40, 5), [0.7], 5), api.normal(2.0), "blended"),
        six=fitted(many(6), api.normal(2.0), "blended"),
        twelve=fitted(many(12), api.normal(2.0), "blended"),
        thirteen=fitted(many(13), api.normal(2.0), "blended", thin=2),
        twenty=fitted(many(20, 120), api.normal(1.0), "blended"),
        states=fitted(chosen_by(mdp_offers(18, 3, 100, 3), 0.3 * np.arange(18.0)), api.normal(3.0), "blended"),
    )


@case("blended/warm-ups")
def _() -> Any:
    d = states()
    return gather(
        none=fitted(d, api.normal(2.0), "blended", warmup=0), brief=fitted(d, api.normal(2.0), "blended", warmup=60),
        long=fitted(d, api.normal(2.0), "blended", warmup=1000), wide=fitted(d, api.normal(50.0), "blended", warmup=500),
        separable=fitted(api.with_choices(d, np.zeros(40, int)), api.normal(50.0), "blended", warmup=500),
        wide_features=fitted(features(12), api.normal(50.0), "blended", warmup=500, seed=1),
    )  # fmt: skip


@case("blended/equal decisions")
def _() -> Any:
    rng = np.random.default_rng(2)
    few, d = rng.integers(0, 6, 400), small_features(6)
    equal = api.pick(d, few)
    twice = api.decisions(np.eye(4)[rng.integers(0, 4, 400)], range(0, 401, 4), rng.integers(0, 4, 100),
                          blocks=[api.block("place", 4, True)])  # fmt: skip
    large = chosen_by(ragged_offers(4, 1500, seed=9), [0.5, -0.5, 0.3, 0.0])
    return gather(
        equal=fitted(equal, api.normal(2.0), "blended"), rivals=fitted(twice, api.normal(2.0), "blended"),
        large=fitted(large, api.normal(2.0), "blended"),
    )  # fmt: skip


@case("blended/no room for sweeps")
def _() -> Any:
    steps = api.pick(sparse_steps(10, 2000), np.random.default_rng(1).integers(0, 2000, 80_000))
    return gather(
        adapted=fitted(steps, api.normal(2.0), "blended", draws=10, warmup=100, chains=1),
        brief=fitted(steps, api.normal(2.0), "blended", draws=10, warmup=20, chains=1),
    )


@case("blended/many actions")
def _() -> Any:
    rng = np.random.default_rng(5)
    wide = chosen_by(api.decisions(rng.standard_normal((1500, 3)), range(0, 1501, 50)), [1.0, 0.0, -1.0])
    far = chosen_by(api.decisions(30.0 * rng.standard_normal((400, 3)), range(0, 401, 10)), [1.0, 0.0, -1.0])
    out = {
        f"{name} {engine}": fitted(d, api.normal(2.0), engine)
        for name, d in (("wide", wide), ("far", far)) for engine in ("blended", "da", "px-scale")
    }  # fmt: skip
    return gather(**out, metropolis=fitted(wide, api.normal(2.0), "da", options={"utilities": "metropolis"}))


@case("blended/seeds and threads")
def _() -> Any:
    d = features(60)
    return gather(
        one=fitted(d, api.normal(2.0), "blended", threads=1), two=fitted(d, api.normal(2.0), "blended", threads=2),
        other=fitted(d, api.normal(2.0), "blended", seed=0, chains=3), big=fitted(d, api.normal(2.0), seed=2**63 + 5),
    )  # fmt: skip


# Sparse rows


for _engine in ("blended", "da", "px-scale", "px-translate", "px-both"):

    @case(f"sparse/{_engine}")
    def _(engine: str = _engine) -> Any:
        d = sparse_steps(4, 150)
        out = {"normal": fitted(d, api.normal(3.0), engine), "thin": fitted(d, api.normal(5.0), engine, thin=2)}
        if engine != "blended":
            out["metropolis"] = fitted(d, api.normal(3.0), engine, options={"utilities": "metropolis"})
        if engine in ("blended", "px-both"):
            out["rewards"] = fitted(sparse_steps(3, 120, True), api.normal(2.0), engine)
        return gather(**out)


@case("sparse/ibis and laplace")
def _() -> Any:
    d = sparse_steps(3, 400)
    return gather(
        ibis=fitted(api.pick(d, slice(0, 40)), api.normal(2.0), "ibis", draws=100),
        laplace=fitted(d, api.normal(1.0), "laplace", draws=300),
    )


@case("sparse/available")
def _() -> Any:
    """Sparse worlds where not every state has every action."""
    there = np.ones((9, 4), bool)
    there[0, 1:], there[4, 2] = False, False
    world = api.mdp(grid_world(3), there, actions=["right", "down", "left", "up"])
    seen = api.mdp_simulate(world, np.random.default_rng(3), np.arange(9.0) / 3.0, 100)
    d = api.mdp_decisions(world, *seen, action_rewards=True)
    return gather(
        decisions=api.decision_numbers(d), blended=fitted(d, api.normal(2.0), "blended"), both=fitted(d, api.normal(2.0), "px-both"),
        path={"states": seen[0], "actions": seen[1]},
    )  # fmt: skip


# Noise with a covariance


for _engine in ("conditioned", "da"):
    for _scale in ("trace", "first"):

        @case(f"noise/{_engine}/{_scale}")
        def _(engine: str = _engine, scale: str = _scale) -> Any:
            def run(d: Any, prior: Any, noise: Any = None, **more: Any) -> Any:
                noise = noise or {"base": "b"}
                return fitted(d, prior, engine, noise=api.full_noise(scale=scale, **noise), **{"draws": 150, **more})

            middle = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, 0.5], [0.0, 0.5, 1.5]])
            blocks = [api.block("first", 2, True), api.block("second", 1)]
            d = labelled(40)
            return gather(
                plain=run(d, api.normal(2.0)), base=run(d, api.normal(3.0), {"base": None, "df": 6.0}, thin=2),
                independent=run(d, api.normal(2.0), {"base": "d", "centre": "independent"}),
                centre=run(d, api.normal([1.0, 2.0, 3.0], mean=0.5), {"base": "a", "centre": middle}),
                two=run(labelled(40, 2, "ab"), api.normal(2.0)),
                blocks=run(labelled(40, 3, "abc", blocks), api.normal(2.0), init=[0.5, -0.5, 0.2]),
                sparse=run(labelled(40, 4, "abcde", None, True), api.normal(2.0)),
                brief=run(d, api.normal(2.0), warmup=40),
            )  # fmt: skip


@case("noise/flat prior")
def _() -> Any:
    rng = np.random.default_rng(9)
    rows, start = rng.standard_normal((240, 2)), range(0, 241, 3)
    w = (rows @ [1.0, -0.5] + rng.standard_normal(240)).reshape(-1, 3)
    d = api.decisions(rows, start, w.argmax(axis=1), actions=["x", "y", "z"] * 80)
    return gather(
        auto=fitted(d, api.flat(), "auto", noise=api.full_noise(), draws=150),
        da=fitted(d, api.flat(), "da", noise=api.full_noise(scale="first"), draws=150),
    )


@case("noise/predictions")
def _() -> Any:
    d = labelled(40)
    post = api.fit(d, api.normal(2.0), noise=api.full_noise(base="b"), **{**RUN, "draws": 60})
    path = home() / "noise.nc"
    api.save(post, path)
    again = api.load(path)
    return gather(
        fit=api.numbers(post), again=api.numbers(again), summary=api.summary(post), average=api.predict(post, d),
        vote=api.predict(post, d, "vote", 3), point=api.predict(post, d, "point"), policy=api.policy(post, d),
        compare=api.compare({"one": post, "other": api.fit(d, api.normal(2.0), **RUN)}), log={"likelihood": api.log_likelihood_of(post)},
    )  # fmt: skip


@case("noise/known")
def _() -> Any:
    d = labelled(40, 4, "abcde")
    rng = np.random.default_rng(1)
    roots = rng.standard_normal((6, 4, 4))
    many_noises = roots @ roots.transpose(0, 2, 1) + np.eye(4)
    v = rng.standard_normal((6, 3))
    one, each = (api.known_noise("c", "abde", s) for s in (many_noises[0], many_noises))
    rough = api.known_noise("a", "bcde", many_noises[1], points=32)
    pair = labelled(20, 2, "ab")
    return {
        "one": api.choice_probabilities(d, v[0], one), "each": api.choice_probabilities(d, v, each),
        "rough": api.choice_probabilities(d, v[:2], rough), "log": api.log_likelihood(d, v, each),
        "log one": api.log_likelihood(d, v[0], one), "pair": api.choice_probabilities(pair, v, api.known_noise("a", "b", [[2.0]])),
    }  # fmt: skip


# The likelihood


@case("likelihood/numbers")
def _() -> Any:
    rng = np.random.default_rng(5)
    out = {}
    for name, d in {
        "states": states(), "features": features(60), "grid": sparse_steps(4, 150), "blocks": three_blocks(),
        "wide": chosen_by(api.decisions(rng.standard_normal((600, 3)), range(0, 601, 40)), [1.0, 0.0, -1.0]),
    }.items():  # fmt: skip
        width = api.rows_of(d)[0].shape[1]
        for size in (1.0, 30.0):
            v = size * rng.standard_normal((4, width))
            value, gradient, hessian = api.derivatives(d, v[0])
            out |= {
                f"{name} {size:g}/log": api.log_likelihood(d, v), f"{name} {size:g}/chances": api.choice_probabilities(d, v),
                f"{name} {size:g}/value": value, f"{name} {size:g}/gradient": gradient, f"{name} {size:g}/hessian": hessian,
                f"{name} {size:g}/one": api.log_likelihood(d, v[1]), f"{name} {size:g}/one chance": api.choice_probabilities(d, v[1]),
            }  # fmt: skip
        for label, prior in (("normal", api.normal(2.0)), ("wide", api.normal(50.0))):
            mode, information = api.posterior_mode(d, prior)
            out |= {f"{name}/mode {label}": mode, f"{name}/information {label}": information}
    mode, information = api.posterior_mode(features(60), api.flat())
    return out | {"flat mode": mode, "flat information": information}


# One decision at a time


@case("ibis/priors and problems")
def _() -> Any:
    sudden = api.decisions([[50.0], [0.0]] * 3, [0, 2, 4, 6], [1, 0, 1])
    return gather(
        states=fitted(states(), api.normal(2.0), "ibis", draws=150),
        wide=fitted(small_features(25), api.normal(50.0), "ibis", draws=100),
        blocks=fitted(three_blocks(25), api.normal({"place": 1.0, "feature": 2.0, "share": 3.0}), "ibis", draws=100),
        mean=fitted(small_features(15), api.normal(1.0, mean=1.0), "ibis", draws=100),
        sudden=fitted(sudden, api.normal(50.0), "ibis", draws=100),
        many=fitted(many(14, 25), api.normal(1.0), "ibis", draws=100),
    )


@case("stream/numbers")
def _() -> Any:
    d = states()
    rows, start, chosen = api.rows_of(d)
    s = api.stream([f"V({k})" for k in range(5)], api.normal(2.0), 120, seed=2, blocks=[api.block("value", 5, True)])
    for t in range(8):
        api.stream_update(s, rows[start[t] : start[t + 1]], int(chosen[t]))
    api.stream_update(s, api.pick(d, slice(8, 20)))
    early = api.stream_numbers(s, rows[:3], 4)
    path = home() / "stream.nc"
    api.stream_save(s, path)
    again = api.stream_load(path)
    for each in (s, again):
        api.stream_update(each, api.pick(d, slice(20, 30)))
    return gather(
        early=early, late=api.stream_numbers(s, rows[:3], 4), again=api.stream_numbers(again, rows[:3], 4),
        posterior=api.numbers(api.stream_posterior(s)), loaded=api.numbers(api.load(path)),
    )  # fmt: skip


@case("stream/learnt size and default")
def _() -> Any:
    f = small_features(15)
    one, other = api.stream(3, api.learnt(scale=2.0), 100, seed=1), api.stream(["a", "b", "c"])
    api.stream_update(one, f)
    rows, start, chosen = api.rows_of(f)
    for t in range(6):
        api.stream_update(other, rows[start[t] : start[t + 1]], int(chosen[t]))
    return gather(
        learnt=api.stream_numbers(one, np.eye(3), 1), posterior=api.numbers(api.stream_posterior(one)),
        default=api.stream_numbers(other, np.eye(3), 1),
    )  # fmt: skip


# Very many decisions


@cache
def large_rows(count: int) -> Any:
    rng = np.random.default_rng(12)
    rows = rng.standard_normal((2 * count, 2))
    w = (rows @ [0.4, -0.2] + rng.standard_normal(2 * count)).reshape(-1, 2)
    return api.decisions(rows, range(0, 2 * count + 1, 2), w.argmax(axis=1))


@case("laplace/in memory")
def _() -> Any:
    d = chosen_by(mdp_offers(5, 3, 800, seed=3), np.arange(5.0))
    return gather(
        normal=fitted(d, api.normal(2.0), "laplace"), flat=fitted(d, api.flat(), "laplace", draws=300),
        pieces=fitted(large_rows(20_000), api.normal(2.0), "laplace", draws=100, threads=1),
        skew=fitted(small_features(150), api.normal(1.0), "laplace", draws=1500),
        vector=fitted(small_features(600), api.normal([1.0, 2.0, 3.0]), "laplace", chains=3),
    )  # fmt: skip


@case("laplace/a folder")
def _() -> Any:
    folder = two_files(home() / "folder 2", small_features(900), 500, 333)
    return gather(
        normal=fitted(api.parquet_folder(folder), api.normal(3.0), "laplace"),
        flat=fitted(api.parquet_folder(folder), api.flat(), threads=1), learnt=fitted(api.parquet_folder(folder), api.learnt(2.0)),
    )  # fmt: skip


@case("laplace/by itself from fifty thousand on")
def _() -> Any:
    rng = np.random.default_rng(3)
    merged = api.pick(two_states(), rng.integers(0, 4, 50_000))
    rows, chosen = np.zeros((100_000, 2)), (np.arange(50_000) % 3 == 0).astype(int)
    rows[::2, 0], rows[:6:2] = 1.0, [0.0, 1.0]  # the second feature matters three times, and always wins: far from normal
    chosen[:3] = 0
    rare = api.decisions(rows, range(0, 100_001, 2), chosen)
    return gather(
        merged=fitted(merged, api.normal(2.0)), large=fitted(large_rows(50_000), api.normal(2.0), draws=50),
        refused=fitted(rare, api.normal(50.0), draws=15, warmup=15),
    )  # fmt: skip


# Unknown transitions


@cache
def walk_of(n: int, m: int, length: int, seed: int = 4) -> Any:
    world = api.random_mdp(np.random.default_rng(seed), n, m)
    value = np.random.default_rng(seed + 1).standard_normal(n) * 2.0
    return api.mdp_simulate(world, np.random.default_rng(seed + 2), value, length)


@case("learn_mdp/priors")
def _() -> Any:
    seen, run = walk_of(4, 2, 60), {**RUN, "draws": 100, "warmup": 120}
    wide = np.eye(4) * 4.0 + 0.5
    return gather(
        default=api.numbers(api.learn_mdp(seen, 4, 2, **run)),
        normal=api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal(3.0), **{**run, "thin": 2})),
        vector=api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal([1.0, 2.0, 3.0, 2.0]), **run)),
        covariance=api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal(covariance=wide), **run)),
        mean=api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal(1.0, mean=[1.0, 0.0, 0.0, -1.0]), **run)),
        free=api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal(2.0, sum_to_zero=False), **run)),
        brief=api.numbers(api.learn_mdp(seen, 4, 2, prior=api.normal(2.0), **{**run, "warmup": 50})),
    )


@case("learn_mdp/rewards, concentrations, episodes")
def _() -> Any:
    (x, a), run = walk_of(4, 3, 60), {**RUN, "draws": 100, "warmup": 120}
    there = np.ones((4, 3), bool)
    absent = next(k for k in range(3) if not ((x == 2) & (a == k)).any()) if len(set(a[x == 2])) < 3 else None
    if absent is not None:
        there[2, absent] = False
    counts = np.zeros((3, 4, 4))
    np.add.at(counts, (a[:-1], x[:-1], x[1:]), 1.0)
    shapes = np.where(counts + (np.arange(48).reshape(3, 4, 4) % 5 > 0) > 0, 0.7, 0.0)
    names = (["a", "b", "c", "d"], ["left", "right", "stay"])
    words = [np.array(n)[k].tolist() for n, k in zip(names, (x, a), strict=True)]
    prior = api.normal({"value": 2.0, "action reward": 1.0})
    return gather(
        rewards=api.numbers(api.learn_mdp((x, a), 4, 3, prior=prior, action_rewards=True, **run)),
        there=api.numbers(api.learn_mdp((x, a), 4, 3, prior=api.normal(2.0), available=there, **run)),
        shapes=api.numbers(api.learn_mdp((x, a), 4, 3, prior=api.normal(2.0), concentration=shapes, **run)),
        each=api.numbers(api.learn_mdp((x, a), 4, 3, prior=api.normal(2.0), concentration=[0.5, 1.0, 2.0, 1.0], **run)),
        episodes=api.numbers(api.learn_mdp((x, a), 4, 3, prior=api.normal(2.0), episodes=np.repeat(range(6), 10), **run)),
        several=api.numbers(
            api.learn_mdp([(words[0][:30], words[1][:29]), (words[0][30:], words[1][30:])], *names, prior=api.normal(2.0), **run)
        ),
    )


@case("learn_mdp/what follows")
def _() -> Any:
    (x, a), run = walk_of(4, 2, 60), {**RUN, "draws": 60, "warmup": 120}
    plain = api.learn_mdp((x, a), 4, 2, prior=api.normal(2.0), **run)
    paid = api.learn_mdp((x, a), 4, 2, prior=api.normal(2.0), action_rewards=True, **run)
    path = home() / "mdp.nc"
    api.save(plain, path)
    return gather(
        plain=api.mdp_more(plain, x[:20], a[:20], 0.9), paid=api.mdp_more(paid, x[:20], a[:20], 0.8),
        summary=api.summary(plain), again=api.numbers(api.load(path, "mdp")), log={"likelihood": api.log_likelihood_of(plain)},
    )  # fmt: skip


# Many players


@cache
def crowd(count: int = 6, times: int = 8, width: int = 3, sparse: bool = False, blocks: Any = None) -> Any:
    rng = np.random.default_rng(21)
    total = count * times
    who = np.tile([f"p{i}" for i in range(count)], times)
    rows = rng.standard_normal((3 * total, width))
    rows = np.where(np.abs(rows) > 0.5, rows, 0.0) if sparse else rows
    likes = dict(zip(who[:count], rng.standard_normal((count, width)), strict=True))
    w = np.array([rows[3 * t + i] @ likes[who[t]] for t in range(total) for i in range(3)]) + rng.standard_normal(3 * total)
    kept = sp.csr_array(rows) if sparse else rows
    blocks = None if blocks is None else [api.block(*b) for b in blocks]
    return api.decisions(kept, range(0, 3 * total + 1, 3), w.reshape(-1, 3).argmax(axis=1), groups=who, blocks=blocks)


POP: dict[str, Any] = {**RUN, "draws": 60, "warmup": 80}


@case("fit_population/options")
def _() -> Any:
    def run(d: Any, **more: Any) -> Any:
        return api.numbers(api.fit_population(d, **{**POP, **more}))

    d = crowd()
    return gather(
        default=run(d), prior=run(d, prior=api.normal(2.0), sd_scale=1.0), thin=run(d, thin=2, chains=1),
        vector=run(d, prior=api.normal([1.0, 2.0, 3.0], mean=[0.5, 0.0, -0.5])),
        by=run(d, by=np.repeat([3, 1, 2], 16)), one_thread=run(d, threads=1, chains=3), brief=run(d, warmup=10),
        many=run(crowd(60, 3, 2), draws=30, warmup=60),
    )  # fmt: skip


@case("fit_population/several shares")
def _() -> Any:
    d = api.pick(small_features(30), np.random.default_rng(1).integers(0, 30, 200_000))
    who = np.repeat(["a", "b", "c", "d"], 50_000)
    return api.numbers(api.fit_population(d, who, prior=api.normal(2.0), **{**POP, "draws": 8, "warmup": 10}))


@case("fit_population/blocks and sparse")
def _() -> Any:
    def run(d: Any, **more: Any) -> Any:
        return api.numbers(api.fit_population(d, **{**POP, **more}))

    blocks = (("first", 3, True), ("second", 2, False))
    shares = (("first", 2, True), ("second", 3, True))
    return gather(
        blocks=run(crowd(5, 8, 5, False, blocks), prior=api.normal({"first": 1.0, "second": 2.0})),
        both=run(crowd(5, 8, 5, False, shares)), sparse=run(crowd(5, 8, 4, True), prior=api.normal(5.0)),
        sum_to_zero=run(crowd(), prior=api.normal(3.0, sum_to_zero=True)),
        sparse_blocks=run(crowd(5, 8, 5, True, blocks), sd_scale=2.0), one=run(crowd(5, 8, 1)),
    )  # fmt: skip


@case("fit_population/what follows")
def _() -> Any:
    d = crowd()
    found = api.fit_population(d, prior=api.normal(3.0), **POP)
    path = home() / "population.nc"
    api.save(found, path)
    later = api.pick(d, slice(0, 12))
    by = ["p0", "p1", "new", "p2", "p0", "new", "p3", "p4", "p5", "p1", "new", "p0"]
    return gather(
        more=api.population_more(found, "p2", ["new"], later, by), summary=api.summary(found),
        players=api.summary_of_players(found), again=api.numbers(api.load(path, "population")),
        table=api.numbers(api.fit_population(api.to_table(d), "group", **POP)),
    )  # fmt: skip


@case("fit_each/engines")
def _() -> Any:
    d, run = crowd(3, 20), {**RUN, "draws": 100, "warmup": 100}

    def each(**more: Any) -> Any:
        return api.numbers(api.fit_each(d, **{**run, **more}))

    return gather(
        default=each(), normal=each(prior=api.normal(2.0), thin=2), da=each(prior=api.normal(2.0), engine="da"),
        scale=each(prior=api.normal(2.0), engine="px-scale", options={"utilities": "metropolis", "a": 2.0, "b": 3.0}),
        learnt=each(prior=api.learnt(2.0)), ibis=each(prior=api.normal(2.0), engine="ibis"), flat=each(prior=api.flat(), threads=1),
        by=each(by=np.repeat(["x", "y"], 30), prior=api.normal(3.0), engine="px-scale"),
    )  # fmt: skip


@case("fit_each/a folder that is resumed")
def _() -> Any:
    folder, d = home() / "each", crowd(3, 20)
    shutil.rmtree(folder, ignore_errors=True)
    run = {**RUN, "draws": 100, "warmup": 100, "prior": api.normal(2.0), "checkpoint": folder}
    whole = api.numbers(api.fit_each(d, **run))
    files = sorted(folder.glob("*.nc"))
    files[1].unlink()
    return gather(whole=whole, again=api.numbers(api.fit_each(d, **run, resume=True)))


@case("cluster/the same by dask")
def _() -> Any:
    import distributed

    folder = two_files(home() / "folder 3", small_features(600), 350, 217)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        run = {name: value for name, value in POP.items() if name != "threads"} | {"draws": 10, "warmup": 20}
        return gather(
            population=api.numbers(api.fit_population(crowd(), **run, cluster=client)),
            each=api.numbers(api.fit_each(crowd(3, 20), prior=api.normal(2.0), **run, cluster=client)),
            laplace=api.numbers(api.fit(small_features(600), api.normal(2.0), "laplace", **{**run, "draws": 100}, cluster=client)),
            folder=api.numbers(api.fit(api.parquet_folder(folder), api.normal(2.0), **{**run, "draws": 100}, cluster=client)),
        )


# Rankings


def games(count: int = 20, seed: int = 3, names: Any = "abcdef", size: int = 4) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    skill = np.linspace(1.0, -1.0, len(names))
    out = []
    for _ in range(count):
        who = rng.permutation(len(names))[:size]
        out.append([names[k] for k in who[np.argsort(-(skill[who] + rng.standard_normal(size)))]])
    return out


def results_table(ties: bool, teams: bool, retired: bool) -> dict[str, list[Any]]:
    rng = np.random.default_rng(8)
    table: dict[str, list[Any]] = {"race": [], "driver": [], "finish": [], "car": []}
    for g in range(18):
        who = rng.permutation(8)[:6]
        worth = np.where(who < 4, 0.5, -0.3) + rng.standard_normal(6)
        if teams:
            worth = np.repeat([worth[2 * i : 2 * i + 2].sum() for i in range(3)], 2)
        place = np.argsort(np.argsort(-worth, kind="stable"), kind="stable")
        place = place // 2 if teams else place
        if ties and g % 3 == 0:
            place = np.where(place == 2, 1, place)
        for i, (k, at) in enumerate(zip(who.tolist(), place.tolist(), strict=True)):
            word: Any = str(at + 1)
            if retired and at >= (2 if teams else 4) and g % 2:
                word = "DNF"
            elif retired and at == 5 and g % 4 == 0 and not teams:
                word = "DNS"
            for name, value in (("race", g), ("driver", "hijklmno"[k]), ("finish", word), ("car", i // 2)):
                table[name].append(value)
    return table


@case("rank/priors")
def _() -> Any:
    run = {**RUN, "draws": 100, "warmup": 100}
    made = games()
    return gather(
        learnt=api.numbers(api.rank(made, **run)), normal=api.numbers(api.rank(made, api.normal(2.0), **run)),
        flat=api.numbers(api.rank(made, api.flat(), **run)), narrow=api.numbers(api.rank(made, api.normal(1.0), **{**run, "seed": 1})),
        winner=api.numbers(api.rank(made, winner_only=True, **run)), pairs=api.numbers(api.rank(games(40, 2, "abcd", 2), **run)),
    )  # fmt: skip


@case("rank/ties, teams, retirements")
def _() -> Any:
    import pyarrow as pa

    run = {**RUN, "draws": 60, "warmup": 60}
    names = {"game": "race", "player": "driver", "position": "finish"}
    out = {}
    for ties in (False, True):
        for retired in (False, True):
            table = pa.table(results_table(ties, False, retired))
            out[f"{ties} {retired}"] = api.numbers(api.rank(table, columns=names, **run))
    team = names | {"team": "car"}
    for noise in ("entry", "player"):
        table = pa.table(results_table(True, True, True))
        out[f"teams {noise}"] = api.numbers(api.rank(table, columns=team, noise=noise, **run))
    out["teams normal"] = api.numbers(api.rank(table, api.normal(2.0), columns=team, noise="player", **run))
    mixed = [[("a", "b"), "c"], ["c", ("b", "d")], [("a", "d"), ("b", "c")], ["d", "a"], [("c", "a"), "b", "d"]] * 3
    for noise in ("entry", "player"):
        out[f"mixed {noise}"] = api.numbers(api.rank(mixed, noise=noise, **run))
    out["mixed flat"] = api.numbers(api.rank(mixed, api.flat(), **run))
    out["winner"] = api.numbers(api.rank(pa.table(results_table(False, False, True)), columns=names, winner_only=True, **run))
    return gather(**out)


@case("rank/many at once")
def _() -> Any:
    """Large games and many players, all in order."""
    run, names = {**RUN, "draws": 40, "warmup": 40}, [f"n{k:02d}" for k in range(25)]
    made = games(12, 6, names, 20)
    return gather(
        large=api.numbers(api.rank(made, **run)), winner=api.numbers(api.rank(made, api.normal(2.0), winner_only=True, **run)),
    )  # fmt: skip


@case("rank/what follows")
def _() -> Any:
    import pyarrow as pa

    run = {**RUN, "draws": 100, "warmup": 100}
    found = api.rank(games(), **run)
    tied = api.rank(pa.table(results_table(True, False, True)),
                    columns={"game": "race", "player": "driver", "position": "finish"}, **run)  # fmt: skip
    path = home() / "ranking.nc"
    api.save(tied, path)
    return gather(
        plain=api.ranking_more(found, ["a", "b", "c"], "zoe"), tied=api.ranking_more(tied, ["h", "i", "j", "k"]),
        teams=api.ranking_more(found, [("a", "f"), ("b", "c")]), summary=api.summary(found), tied_summary=api.summary(tied),
        again=api.numbers(api.load(path, "ranking")), log={"likelihood": api.log_likelihood_of(found)},
    )  # fmt: skip


# scikit-learn


@case("sklearn/three forms")
def _() -> Any:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 3))
    y = (X @ [1.0, -0.5, 0.0] + rng.standard_normal(80) > 0).astype(int)
    ids = np.repeat(np.arange(20), 4)
    taken = np.zeros(80, int)
    taken[np.arange(20) * 4 + (X @ [1.0, -0.5, 0.0] + rng.standard_normal(80)).reshape(-1, 4).argmax(axis=1)] = 1
    shuffled = rng.permutation(80)
    d, run = states(), {"draws": 100, "warmup": 100, "chains": 2}

    def learn(X: Any, y: Any, ids: Any = None, **settings: Any) -> Any:
        more = {} if ids is None else {"decision": ids}
        return api.classifier_numbers(api.classifier(**{**run, **settings}).fit(X, y, **more), X, y, ids)

    return gather(
        rows=learn(X, y), sd=learn(X, y, prior_sd=2.0, intercept=False, random_state=7),
        random=learn(X, y, prior=api.normal(2.0), random_state=np.random.RandomState(3)), sparse=learn(sp.csr_array(X), y, prior_sd=3.0),
        grouped=learn(X[shuffled], taken[shuffled], ids[shuffled], prior_sd=1.0),
        da=learn(X, taken, ids, prior=api.flat(), engine="da", options={"utilities": "metropolis"}),
        decisions=api.classifier_numbers(api.classifier(prior_sd=2.0, **run).fit(d), d, None),
    )  # fmt: skip


@case("sklearn/partial_fit")
def _() -> Any:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((24, 2))
    y = np.where(X @ [1.0, -0.5] + rng.standard_normal(24) > 0, "yes", "no")
    model = api.classifier(prior_sd=2.0, draws=100, warmup=100, chains=2)
    model.fit(X[:12], y[:12])
    model.partial_fit(X[12:], y[12:])
    fresh = api.classifier(prior_sd=1.0, draws=120, random_state=3).partial_fit(X[:10], y[:10], classes=["no", "yes"])
    d = states()
    steps = api.classifier(prior_sd=2.0, draws=100).partial_fit(api.pick(d, slice(0, 10))).partial_fit(api.pick(d, slice(10, 20)))
    return gather(
        on=api.classifier_numbers(model, X, y), fresh=api.classifier_numbers(fresh, X, y), steps=api.classifier_numbers(steps, d, None),
    )  # fmt: skip


# What follows from a posterior


@case("results/predict, policy, identify")
def _() -> Any:
    out = {}
    for name, d, prior in (
        ("states", states(), api.normal(2.0)), ("flat", states(), api.flat()), ("features", features(60), api.normal(3.0)),
        ("blocks", three_blocks(), api.normal({"place": 1.0, "feature": 2.0, "share": 5.0})), ("grid", sparse_steps(4, 150), api.normal(3.0)),
        ("learnt", states(), api.learnt(3.0)), ("one sided", api.with_choices(states(), np.zeros(40, int)), api.normal(2.0)),
    ):  # fmt: skip
        post = api.fit(d, prior, "da" if name == "blocks" else "blended", **RUN)
        out |= {
            f"{name} fit": api.numbers(post), f"{name} summary": api.summary(post), f"{name} average": api.predict(post, d),
            f"{name} vote": api.predict(post, d, "vote", 4), f"{name} point": api.predict(post, d, "point"),
            f"{name} policy": api.policy(post, d), f"{name} identify": api.identify(post),
        }  # fmt: skip
    few = api.fit(features(60), api.normal(3.0), **{**RUN, "draws": 10})
    out["few identify"] = api.identify(few)
    draws = api.draws_of(post).reshape(-1, 5)
    out["draws"] = api.predict(draws, states(), "vote", 9)
    out["point"] = api.predict(draws[0], mdp_offers(5, 3, 10, 3))
    return gather(**out)


@case("results/compare, save, log-likelihood")
def _() -> Any:
    d = features(40)
    posts = {
        "narrow": api.fit(d, api.normal(1.0), **RUN), "wide": api.fit(d, api.normal(5.0), **RUN),
        "ibis": api.fit(d, api.normal(2.0), "ibis", **{**RUN, "draws": 100}), "learnt": api.fit(d, api.learnt(2.0), **RUN),
    }  # fmt: skip
    out = {"compare": api.compare(posts), "log": {name: api.log_likelihood_of(post) for name, post in posts.items()}}
    posts["sparse"] = api.fit(sparse_steps(3, 60), api.normal(2.0), **RUN)
    for name, post in posts.items():
        path = home() / f"saved {name}.nc"
        api.save(post, path)
        again = api.load(path)
        out[f"again {name}"] = api.numbers(again)
        out[f"summary {name}"] = api.summary(again)
    return gather(**out)


@case("results/diagnostics")
def _() -> Any:
    rng = np.random.default_rng(2)
    slow = np.cumsum(rng.standard_normal((3, 501, 2)), axis=1) * 0.1 + rng.standard_normal((3, 501, 2))
    return gather(slow=api.diagnostics(slow), odd=api.diagnostics(np.round(slow[:1], 1)))


@case("results/reward")
def _() -> Any:
    rng = np.random.default_rng(6)
    world, seen = api.random_mdp(rng, 5, 3), rng.integers(0, 5, 60)
    d = chosen_by(api.mdp_decisions(world, seen, action_rewards=True), np.arange(8.0) / 4.0)
    post = api.fit(d, api.normal(2.0), **RUN)
    draws = api.draws_of(post)
    return gather(
        fit=api.numbers(post),
        reward={
            "plain": api.mdp_reward(world, draws[..., :5], 0.9), "paid": api.mdp_reward(world, draws, 0.9),
            "noisy": api.mdp_reward(world, draws, 0.8, noise=True), "given": api.mdp_reward(world, draws[0, :, :5], 0.5, action_reward=[1.0, 0.0, -1.0]),
            "policy": api.mdp_policy(world, draws), "policy plain": api.mdp_policy(world, draws[..., :5]),
        },
    )  # fmt: skip


@case("tables/rows")
def _() -> Any:
    out, d = {}, labelled(20)
    for suffix in ("csv", "parquet"):
        path = home() / f"labelled.{suffix}"
        api.to_file(d, path)
        out[suffix] = api.decision_numbers(api.read_file(path))
    table = api.to_table(crowd(3, 4))
    out["frame"] = api.decision_numbers(api.from_table(table, group="group"))
    out["pandas"] = api.decision_numbers(api.from_table(table.to_pandas(), group="group", features=["v2", "v0"]))
    out["sparse"] = api.decision_numbers(sparse_steps(3, 20))
    out["joined"] = api.decision_numbers(api.join(features(5), features(4)))
    out["picked"] = api.decision_numbers(api.pick(features(30), [3, 1, 25]))
    return gather(**out)


# Worlds


@case("worlds/mdp")
def _() -> Any:
    out = {}
    dense = api.random_mdp(np.random.default_rng(1), 6, 3, 0.5)
    there = np.ones((6, 3), bool)
    there[1, 1:], there[4, 0] = False, False
    some = api.mdp(np.asarray(api.mdp_transitions(dense)), there, states=list("uvwxyz"))
    grid = api.mdp(grid_world(4))
    for name, world, n, m in (("dense", dense, 6, 3), ("some", some, 6, 3), ("grid", grid, 16, 4)):
        rng = np.random.default_rng(2)
        reward, extra = rng.standard_normal(n), rng.standard_normal(m)
        value = api.mdp_solve(world, reward, 0.9)
        out |= {
            f"{name}/value": value, f"{name}/noisy value": api.mdp_solve(world, reward, 0.9, extra, True),
            f"{name}/policy": api.mdp_policy(world, value), f"{name}/reward": api.mdp_reward(world, value, 0.9),
            f"{name}/noisy reward": api.mdp_reward(world, value, 0.9, noise=True, action_reward=extra),
        }  # fmt: skip
        for label, given in (("", {}), (" paid", {"action_reward": extra}), (" start", {"start": 2})):
            x, a = api.mdp_simulate(world, rng, value, 300, **given)
            out |= {f"{name}/states{label}": x, f"{name}/actions{label}": a}
    out["transitions"] = np.asarray(api.mdp_transitions(dense))
    out["grid transitions"] = np.stack([each.toarray() for each in api.mdp_transitions(grid)])
    ends = np.zeros((2, 4, 4))
    ends[0], ends[1] = np.eye(4, k=1), 0.5 * np.eye(4, k=1) + 0.5 * np.eye(4, k=2)
    ends[1, 2, 3], ends[:, 3, 3] = 1.0, 1.0
    ending = api.mdp(ends, [[True, True]] * 3 + [[True, False]])
    for noise in (False, True):
        value = api.mdp_solve(ending, [-1.0, -2.0, -0.5, 0.0], 1.0, noise=noise)
        out |= {f"ending/value {noise}": value, f"ending/reward {noise}": api.mdp_reward(ending, value, 1.0, noise=noise)}
    return out


TETRIS = {"paper": [-3.0, -15.0, -1.0], "bertsekas": None, "dellacherie": [-1.0, 1.0, -1.0, -1.0, -4.0, -1.0], "rich": None}


@case("worlds/tetris")
def _() -> Any:
    out = {}
    for kind, value in TETRIS.items():
        for actions in ("distinct", "literal"):
            world = api.tetris(features=kind, actions=actions, rows=20 if kind == "rich" else 30)
            width = {"paper": 3, "bertsekas": 21, "dellacherie": 6, "rich": 12}[kind]
            v = -np.linspace(0.2, 1.0, width) if value is None else value
            path, told = api.tetris_simulate(world, np.random.default_rng([1, width]), v, 150)
            out[f"{kind} {actions}"] = told
            out[f"{kind} {actions} decisions"] = api.decision_numbers(api.tetris_decisions(world, path))
    own = api.tetris(12, 8, features=lambda before, after, gone: [after.sum(), gone, after[:6].sum() - before[:6].sum()])
    path, told = api.tetris_simulate(own, np.random.default_rng(5), [-0.5, 2.0, -1.0], 40)
    out["own"] = told
    out["own decisions"] = api.decision_numbers(api.tetris_decisions(own, path))
    out["gym"] = api.tetris_gym(3, 60)
    return gather(**out)


@case("worlds/tetris learnt and played")
def _() -> Any:
    world = api.tetris()
    path, _ = api.tetris_simulate(world, np.random.default_rng(1), TETRIS["paper"], 80)
    d = api.tetris_decisions(world, path)
    post = api.fit(api.pick(d, slice(0, 50)), api.normal(50.0), **RUN)
    draws = api.draws_of(post).reshape(-1, 3)
    vote, voted = api.tetris_play(world, np.random.default_rng(2), draws, "vote", 40)
    one, played = api.tetris_play(world, np.random.default_rng(3), draws, "one", 40)
    file = home() / "games.jsonl"
    api.tetris_write(file, [vote, one])
    read = api.tetris_games_decisions(api.tetris_read(file), "dellacherie")
    metropolis = {"utilities": "metropolis", "a": 3.0, "b": 1e5}
    return gather(
        fit=api.numbers(post), vote=voted, one=played, read=api.decision_numbers(read), predict=api.predict(post, api.pick(d, slice(50, 80)), "vote", 1),
        px=fitted(api.pick(d, slice(0, 50)), api.normal(50.0), "px-scale", options=metropolis),
        learnt=fitted(read, api.normal(5.0)), largest=fitted(api.tetris_games_decisions(api.tetris_read(file), "bertsekas"), api.normal(1.0)),
    )  # fmt: skip


@cache
def buses() -> Any:
    increments = np.array([0.35, 0.6, 0.05])
    chances = api.bus_chances(increments, 12, 0.95)
    seen, told = api.bus_simulate(np.random.default_rng(3), np.maximum(chances, 0.02), increments, 8, 40)
    return seen, told | {"chances": chances}, increments


@case("worlds/buses")
def _() -> Any:
    seen, told, increments = buses()
    d = api.bus_decisions(seen, increments, 12)
    return gather(seen=told, decisions=api.decision_numbers(d), prior=api.prior_numbers(api.bus_prior(12, 5.0, 8.0, 2.0), d, 1))


# The paper


def flatten(given: Any, path: str = "") -> dict[str, Any]:
    """Nested mappings and ragged lists as one dict of arrays."""
    if isinstance(given, dict):
        parts = [flatten(value, f"{path}/{key}" if path else str(key)) for key, value in given.items()]
        return {name: value for part in parts for name, value in part.items()}
    if isinstance(given, list | tuple) and any(isinstance(v, dict | list | tuple | np.ndarray) for v in given):
        return flatten({str(i): v for i, v in enumerate(given)}, path)
    return {path: given}


@case("paper/toy moves")
def _() -> Any:
    return flatten(api.paper_toy("moves", 1, 1, 600))


@case("paper/toy proper")
def _() -> Any:
    return flatten(api.paper_toy("proper", 1, 1, 600))


@case("paper/toy flat")
def _() -> Any:
    return flatten(api.paper_toy("flat", 1, 1, 400))


@case("paper/pressure")
def _() -> Any:
    return flatten(api.paper_pressure("hasty", 1))


@case("paper/tetris")
def _() -> Any:
    return flatten(api.paper_tetris(1, 600))


@cache
def recorded() -> Any:
    """Games of somebody simulated, with seconds, 500 straight drops and more."""
    world, games, rng, made = api.tetris(), [], np.random.default_rng(9), 0
    while made < 520:
        steps, _ = api.tetris_play(world, rng, np.array([TETRIS["paper"]]) / 4.0, "one", 260)
        games.append(steps)
        made += len(steps)
    file = home() / "recorded.jsonl"
    api.tetris_write(file, games, rng.lognormal(1.2, 0.9, made))
    return api.tetris_read(file)


@case("paper/human")
def _() -> Any:
    return flatten(api.paper_human(recorded(), 1))


@case("paper/person under pressure")
def _() -> Any:
    return flatten(api.paper_person(recorded(), 1))


# The command line


@case("cli/simulate, fit, predict")
def _() -> Any:
    table, truth = home() / "decisions.csv", home() / "truth.json"
    api.cli_simulate(table, truth, 6, 3, 40, 2.0, 3)
    out = {"table": {"bytes": np.frombuffer(table.read_bytes(), np.uint8)}}
    out["truth"] = {name: json.loads(truth.read_text())[name] for name in ("value", "transitions", "states", "actions")}
    run = {"draws": 100, "warmup": 100, "chains": 2, "seed": 4}
    for name, sd, more in (
        ("normal", 2.0, {}), ("default", None, {}), ("flat", "flat", {"engine": "px-both", "thin": 2}), ("learn", "learn", {}),
        ("scale", 3.0, {"engine": "px-scale", "utilities": "metropolis", "a": 2.0, "b": 3.0}), ("ibis", 2.0, {"engine": "ibis"}),
    ):  # fmt: skip
        post = home() / f"cli {name}.nc"
        api.cli_fit(table, post, sd, sum_to_zero=True, **run, **more)
        out[name] = api.numbers(api.load(post))
    for method in ("average", "vote", "point"):
        out[f"predict {method}"] = api.cli_predict(home() / "cli normal.nc", table, home() / "predictions.csv", method, 2)
    return gather(**out)


@case("cli/rank")
def _() -> Any:
    file, lines = home() / "results.csv", ["game,player,position"]
    for g, game in enumerate(games()):
        lines += [f"{g},{name},{at + 1}" for at, name in enumerate(game)]
    file.write_text("\n".join(lines) + "\n")
    out = {}
    for name, sd in (("learnt", None), ("normal", 2.0), ("flat", "flat")):
        saved = home() / f"rank {name}.nc"
        out[f"{name} table"] = api.cli_rank(file, home() / "ranking.csv", saved, sd, draws=100, warmup=100, chains=2, seed=4)
        out[name] = api.numbers(api.load(saved, "ranking"))
    return gather(**out)


@case("cli/games of tetris")
def _() -> Any:
    table, out = home() / "short.jsonl", home() / "player.nc"
    steps, _ = api.tetris_play(api.tetris(), np.random.default_rng(4), np.array([TETRIS["paper"]]) / 4.0, "one", 100)
    api.tetris_write(table, [steps])
    api.cli_fit(table, out, 5.0, features="rich", draws=100, warmup=150, chains=2, seed=4)
    return api.numbers(api.load(out))


@case("cli/demo and play")
def _() -> Any:
    folder = home() / "demo"
    api.cli_demo(folder, 1)
    api.cli_play(folder / "posterior.nc", folder / "played.jsonl", 40, 3)
    return gather(
        fit=api.numbers(api.load(folder / "posterior.nc")), table={"bytes": np.frombuffer((folder / "decisions.csv").read_bytes(), np.uint8)},
        game=api.decision_numbers(api.tetris_games_decisions(api.tetris_read(folder / "game.jsonl"), "paper")),
        played=api.decision_numbers(api.tetris_games_decisions(api.tetris_read(folder / "played.jsonl"), "paper")),
    )  # fmt: skip


# Interrupted and resumed


def _resumed(learn: Callable[..., Any], name: str, draws: int, read: Callable[[Any], Any]) -> dict[str, Any]:
    """The whole run, and the same interrupted now and then (as by Ctrl-C) and resumed to its end; they must be equal.

    When it is interrupted depends on the clock, and what comes of it must not.
    """
    began = time.monotonic()
    whole = read(learn())
    patience = 0.4 * (time.monotonic() - began)
    for _ in range(8):  # the first run may have compiled for a while: shorter and shorter
        found, stops = _interrupted(learn, home() / f"{name}.checkpoint", draws, read, max(patience, 0.02))
        patience *= 0.4
        if stops:
            break
    print(f"        {name}: interrupted {stops} times", flush=True)
    assert stops, "it was never interrupted"
    differ = [k for k in whole if k != "stats" and not np.array_equal(whole[k], found[k])]
    differ += [k for k in whole["stats"] if not np.array_equal(whole["stats"][k], found["stats"][k])]
    assert not differ, f"resumed after {stops} interruptions, {differ} differ from the whole run's"
    return gather(whole=whole, resumed=found)


def _interrupted(learn: Any, file: Path, draws: int, read: Any, patience: float) -> tuple[Any, int]:
    """What comes of a run that is interrupted every so many seconds and resumed, and how often that was."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    file.unlink(missing_ok=True)
    before, found, stops = signal.signal(signal.SIGALRM, stop), None, 0
    try:
        while found is None or next(iter(found.values())).shape[1] < draws:
            stops += found is not None or file.exists()
            resume = {"resume": True} if file.exists() else {}
            signal.setitimer(signal.ITIMER_REAL, patience * (1.0 + 0.5 * stops) if stops < 10 else 0.0)
            try:
                found = read(learn(checkpoint=file, checkpoint_seconds=0, **resume))
            except KeyboardInterrupt:
                found = None
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    return found, stops


for _name, _draws, _thin in (("blended", 3000, 60), ("da", 4000, 60), ("px-both", 4000, 40)):

    @case(f"resumed/{_name}")
    def _(name: str = _name, draws: int = _draws, thin: int = _thin) -> Any:
        def learn(**more: Any) -> Any:
            return api.fit(states(), api.normal(2.0), name, **{**RUN, "draws": draws, "thin": thin, "warmup": 400}, **more)

        return _resumed(learn, name, draws, api.numbers)


@case("resumed/fit_population")
def _() -> Any:
    def learn(**more: Any) -> Any:
        return api.fit_population(crowd(), prior=api.normal(2.0), **{**POP, "draws": 600, "warmup": 300}, **more)

    return _resumed(learn, "population", 600, api.numbers)


@case("resumed/conditioned")
def _() -> Any:
    def learn(**more: Any) -> Any:
        noise = api.full_noise(base="b")
        return api.fit(labelled(), api.normal(2.0), noise=noise, **{**RUN, "draws": 400, "warmup": 1500, "thin": 40}, **more)

    return _resumed(learn, "conditioned", 400, api.numbers)


@case("resumed/learn_mdp")
def _() -> Any:
    def learn(**more: Any) -> Any:
        given = {**RUN, "draws": 1000, "warmup": 3000, "thin": 5}
        return api.learn_mdp(walk_of(4, 2, 60), 4, 2, prior=api.normal(2.0), **given, **more)

    return _resumed(learn, "learn_mdp", 1000, api.numbers)


@case("resumed/rank")
def _() -> Any:
    def learn(**more: Any) -> Any:
        return api.rank(games(), **{**RUN, "draws": 3000, "warmup": 2000}, **more)

    return _resumed(learn, "rank", 3000, api.numbers)


@case("resumed/ibis")
def _() -> Any:
    def learn(**more: Any) -> Any:
        return api.fit(three_blocks(50), api.normal(2.0), "ibis", **{**RUN, "draws": 1200}, **more)

    return _resumed(learn, "ibis", 1200, api.numbers)


@case("resumed/laplace")
def _() -> Any:
    def learn(**more: Any) -> Any:
        return api.fit(large_rows(50_000), api.normal(2.0), "laplace", **{**RUN, "draws": 400}, **more)

    return _resumed(learn, "laplace", 400, api.numbers)


# Files that the old package wrote


def old_files() -> dict[str, Any]:
    run = {**RUN, "draws": 20, "warmup": 100}
    s = api.stream(3, api.normal(3.0), 100, seed=3)
    api.stream_update(s, small_features(6))
    made = {
        "normal": ("posterior", lambda: api.fit(states(), api.normal(2.0), **run)),
        "vector": ("posterior", lambda: api.fit(features(20), api.normal([1.0, 2.0, 3.0], mean=0.5), "da", **run)),
        "flat": ("posterior", lambda: api.fit(states(), api.flat(), "px-both", options={"a": 2.0, "b": 3.0}, **run)),
        "blocks": ("posterior", lambda: api.fit(three_blocks(), api.normal({"place": 1.0, "feature": 2.0, "share": 5.0}), **run)),
        "learnt": ("posterior", lambda: api.fit(states(), api.learnt(3.0, shape_sd=[1.0, 2.0, 3.0, 2.0, 1.0]), **run)),
        "sparse": ("posterior", lambda: api.fit(sparse_steps(3, 60), api.normal(2.0), **run)),
        "noise": ("posterior", lambda: api.fit(labelled(), api.normal(2.0), noise=api.full_noise(base="b"), **run)),
        "ibis": ("posterior", lambda: api.fit(small_features(10), api.normal(2.0), "ibis", **{**run, "draws": 100})),
        "population": ("population", lambda: api.fit_population(crowd(), **run)),
        "mdp": ("mdp", lambda: api.learn_mdp(walk_of(4, 2, 60), 4, 2, prior=api.normal(2.0), **run)),
        "ranking": ("ranking", lambda: api.rank(games(), **run)),
        "stream": ("posterior", lambda: s),
    }  # fmt: skip
    return made


@case("old files/read")
def _() -> Any:
    """Posteriors that the old package wrote; a later one must read the same numbers from them."""
    made = old_files()
    if hasattr(api, "write_old_files") and not OLD_FILES.exists():
        api.write_old_files(OLD_FILES, {name: (kind, make()) for name, (kind, make) in made.items()})
    out = {}
    for name, (kind, _) in made.items():
        found = api.load(OLD_FILES / f"{name}.nc", kind)
        out[name] = api.numbers(found)
        out[f"{name} summary"] = api.summary(found)
    s = api.stream_load(OLD_FILES / "stream.nc")
    api.stream_update(s, api.pick(small_features(12), slice(6, 12)))
    out["stream goes on"] = api.stream_numbers(s, np.eye(3), 1)
    return gather(**out)


# The digests


def digest(value: Any) -> str:
    array = np.ascontiguousarray(value)
    if array.dtype == object or array.dtype.kind == "T":
        array = np.array([str(each) for each in array.ravel().tolist()]).reshape(array.shape)
    known = hashlib.sha256(f"{np.shape(value)} {array.dtype.str}".encode())
    known.update(array.tobytes())
    return known.hexdigest()


def run_case(name: str, arrays: Path | None) -> Any:
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = CASES[name]()
        stats = found.pop("stats", {})
        plain = {k: v for k, v in found.items() if v is not None}
        out: dict[str, Any] = {"seconds": round(time.monotonic() - began, 3)}
        out |= {k: digest(v) for k, v in plain.items()}
        if stats:
            out["stats"] = {k: digest(v) for k, v in stats.items()}
        if arrays is not None:
            arrays.mkdir(parents=True, exist_ok=True)
            whole = {**plain, **{f"stats: {k}": v for k, v in stats.items()}}
            np.savez(arrays / f"{file_name(name)}.npz", **{k.replace("/", "|"): np.asarray(v) for k, v in whole.items()})
    except Exception as reason:
        traceback.print_exc(file=sys.stdout)
        return f"error: {type(reason).__name__}: {reason}"
    return out


def file_name(case_name: str) -> str:
    return case_name.replace("/", "--").replace(" ", "_")


def about() -> dict[str, Any]:
    import numba
    import scipy

    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return {
        "package": str(Path(api.PACKAGE.__file__).parent), "python": platform.python_version(), "numpy": np.__version__,
        "scipy": scipy.__version__, "numba": numba.__version__, "cpu": cpu,
    }  # fmt: skip


def main() -> None:
    global api
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("some", nargs="*")
    parser.add_argument("--adapter", default="old")
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--arrays", type=Path)
    given = parser.parse_args()
    names = [n for n in CASES if not given.some or any(s in n for s in given.some)]
    if given.list or given.out is None:
        print("\n".join(names))
        return
    sys.path.insert(0, str(HERE))
    api = importlib.import_module(f"adapter_{given.adapter}")
    done: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    done["_about"] = about()
    print(json.dumps(done["_about"]), flush=True)
    began, bad = time.monotonic(), 0
    try:
        for name in reversed(names) if given.reverse else names:
            if given.keep and isinstance(done.get(name), dict):
                continue
            done[name] = run_case(name, given.arrays)
            failed = isinstance(done[name], str)
            bad += failed
            told = done[name] if failed else f"{done[name]['seconds']:7.2f} s  {len(done[name]) - 1 - ('stats' in done[name]) + len(done[name].get('stats', ())):4d} digests"
            print(f"{name:45s} {told}", flush=True)
            draft = given.out.with_suffix(".draft")
            draft.write_text(json.dumps(done, indent=1) + "\n")
            draft.replace(given.out)
    finally:
        if home.cache_info().currsize:
            shutil.rmtree(home(), ignore_errors=True)
    print(f"{len(names)} cases, {bad} errors, {time.monotonic() - began:.1f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
