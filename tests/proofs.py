"""What proofs have measured: which of it is still good, what the package offers, and what follows for the certificate."""

from __future__ import annotations

import datetime
import functools
import hashlib
import importlib.metadata
import inspect
import json
import math
import os
import platform
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats as st

import understudy as us
from understudy.engines.fit import CORRELATED, ENGINES

Proof = dict[str, Any]
MODELS = {
    "choices, Gaussian prior": "fit",
    "choices, flat prior": "fit",
    "choices, learnt size": "fit",
    "choices, noise covariance": "fit",
    "unknown transitions": "learn_mdp",
    "population": "fit_population",
    "each controller": "fit_each",
    "finishing orders": "rank",
    "a stream": "Stream",
    "an estimator": "Understudy",
}
"""What is learnt, and the public name that learns it."""
PRIORS = {
    "choices, Gaussian prior": us.Gaussian(4.0),
    "choices, flat prior": us.Flat(),
    "choices, learnt size": us.Gaussian("learn"),
}
SCORED = ("oracle", "Geweke", "agreement")  # ways of proof whose measure is a z
PARTS = "what engines stand on"
OUTER = ("cli", "studio", "paper")  # rooms that nothing else imports: tests/contract/test_imports.py
KEPT = Path(__file__).parents[1] / "docs" / "certificate.json"
USED = ("numpy", "scipy", "numba", "arviz")


# What evidence is of


@functools.cache
def sources() -> str:
    """A digest of the package's sources, but for the command line, the studio and the paper's experiments, which no draw depends on."""
    root, digest = Path(us.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in OUTER:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Of Python and of what draws depend on."""
    return {"Python": platform.python_version()} | {name: importlib.metadata.version(name) for name in USED}


@functools.cache
def stamp(test: Path) -> str:
    """What evidence is good for: these sources and versions, this very file of tests, and what all tests share."""
    shared = [Path(__file__).with_name(name).read_bytes() for name in ("evidence.py", "problems.py")]
    return hashlib.sha256(b"".join([f"{sources()} {versions()}".encode(), test.read_bytes(), *shared])).hexdigest()[:16]


def read(file: Path) -> list[Proof]:
    """The last word on every proof and stamp; one that was only announced has been not run."""
    found: dict[tuple[str, str], Proof] = {}
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:  # a run was killed while it wrote
            continue
        key = line["test"], line["stamp"]
        if line["outcome"] != "not run" or key not in found:
            found[key] = line
    return [found[key] for key in sorted(found)]


def passed(file: Path) -> set[tuple[str, str]]:
    """Tests that have passed, with their stamps."""
    return {(proof["test"], proof["stamp"]) for proof in read(file) if proof["outcome"] == "passed"}


def good(proof: Proof) -> bool:
    """Whether a proof is of the sources, versions and tests that are here now."""
    path = Path(__file__).parents[1] / proof["test"].partition("::")[0]
    return path.exists() and bool(proof["stamp"] == stamp(path))


# What the package offers


def doors() -> list[str]:
    """Public names that learn: those that can be told how long to warm up, or how many particles to keep."""
    things = {name: getattr(us, name) for name in us.__all__}
    asked = {
        name: inspect.signature(thing).parameters
        for name, thing in things.items()
        if callable(thing) and not (isinstance(thing, type) and issubclass(thing, Warning))
    }
    return [name for name, given in asked.items() if {"warmup", "particles"} & set(given)]


def offered() -> tuple[list[list[str]], list[list[str]]]:
    """Pairs of model and engine, by asking the package: those that `fit` takes, and those it refuses, with its sentence.

    The other doors choose their engine themselves, which is left empty here.
    """
    rng = np.random.default_rng(1)
    world = us.random_mdp(rng, 3, 3)
    path = world.simulate(rng, [1.0, 0.0, -1.0], 400)
    plain = world.decisions(path.states, path.actions)
    labelled = us.Decisions(plain.rows, plain.start, plain.chosen, actions=np.tile(list("abc"), len(plain)))
    asked: list[tuple[str, str, us.Decisions, dict[str, Any]]] = [
        (model, engine, plain, {"prior": prior})
        for model, prior in PRIORS.items()
        for engine in ENGINES
        if engine != "auto"
    ]
    noisy = {"prior": us.Gaussian(4.0), "noise": us.FullNoise()}
    asked += [("choices, noise covariance", engine, labelled, noisy) for engine in CORRELATED if engine != "auto"]
    takes, refuses = [], []
    for model, engine, decisions, how in asked:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", us.NotConvergedWarning)
                us.fit(decisions, engine=engine, draws=100, warmup=100, chains=1, progress=False, **how)
            takes.append([model, engine])
        except ValueError as sentence:
            refuses.append([model, engine, str(sentence)])
    takes += [[model, ""] for model, door in MODELS.items() if door != "fit"]
    takes += [[f"the door {door}", ""] for door in doors() if door not in MODELS.values()]
    return takes, refuses


# What is stored


def summary(file: Path) -> dict[str, Any]:
    """All that the page is made of."""
    takes, refuses = offered()
    return {
        "made": str(datetime.date.fromtimestamp(file.stat().st_mtime)),
        "understudy": us.__version__,
        "sources": sources(),
        "versions": versions(),
        "machine": f"{platform.system()}, {platform.machine()}, {os.cpu_count()} cores",
        "offered": takes,
        "refused": refuses,
        "proofs": [compact(proof) for proof in read(file) if good(proof)],
    }


def compact(proof: Proof) -> Proof:
    """A proof without its stamp, with what it measured gathered by kind and limit."""
    groups: dict[Any, dict[str, Any]] = {}
    for each in proof.get("measured", []):
        if each["how"] == "mutant":
            by = min(each["by"], key=margin)
            each = each | {"by": {"how": by["how"], "limit": by.get("limit"), "worst": worst_of(by)}}
        key = (each["how"], each.get("limit"), each.get("degrees"), each.get("mutant"))
        if key not in groups:
            groups[key] = dict(each)
            continue
        group = groups[key]
        for name in ("z", "p", "counts", "alarm", "count"):
            if name in group:
                group[name] = group[name] + each[name]
        if each.get("error") is not None:
            group["error"] = max(group.get("error") or 0.0, each["error"])
    kept = {key: value for key, value in proof.items() if key not in ("stamp", "measured")}
    return kept | {"measured": list(groups.values())}


def worst_of(measured: dict[str, Any]) -> float | None:
    """The number that is furthest from right."""
    worst = (
        max(map(abs, measured["z"]))
        if "z" in measured
        else min(measured["p"])
        if "p" in measured
        else measured.get("error")
    )
    return None if worst is None else float(worst)


def margin(measured: dict[str, Any]) -> float:
    """How much room there was to the limit, as a factor; below one where there was none, and zero where nothing was left to chance."""
    worst = worst_of(measured)
    if worst is None:
        return 0.0
    return worst / measured["limit"] if "p" in measured else measured["limit"] / worst if worst else math.inf


# What follows from it


def measures(proofs: Iterable[Proof], *ways: str) -> Iterator[tuple[Proof, dict[str, Any]]]:
    """What was measured in these ways, each with the proof it belongs to, and with what it says itself of model and engine."""
    for proof in proofs:
        for each in proof["measured"]:
            if each["how"] in ways:
                yield proof | {key: each[key] for key in ("model", "engine") if key in each}, each


def proves(proof: Proof, model: str, engine: str) -> bool:
    """Whether a proof is of this model and engine; of any engine where none is named."""
    return proof.get("model") == model and (not engine or engine in proof.get("engine", "").split(" and "))


def unproven(stored: dict[str, Any]) -> list[list[str]]:
    """What is offered, and no proof that passed has measured."""
    right = [p for p in stored["proofs"] if p["outcome"] == "passed"]
    seen = [proof for proof, _ in measures(right, *SCORED, "calibration", "same")]
    return [pair for pair in stored["offered"] if not any(proves(proof, *pair) for proof in seen)]


def failed(stored: dict[str, Any]) -> list[Proof]:
    """Proofs that did not come out as they should."""
    return [proof for proof in stored["proofs"] if proof["outcome"] == "failed"]


def chances(stored: dict[str, Any]) -> list[float]:
    """The p-value of every check that is left to chance."""
    found: list[float] = []
    for _, each in measures(stored["proofs"], *SCORED, "calibration", "law"):
        found += each["p"] if "p" in each else list(two_sided(each))
    return found


def two_sided(each: dict[str, Any]) -> Any:
    """The chance of a z as large as each."""
    return 2 * st.t.sf(np.abs(each["z"]), each["degrees"] or math.inf)


def longest(stored: dict[str, Any]) -> list[tuple[Proof, dict[str, Any]]]:
    """Of every model, sampler and problem the calibration with most data sets."""
    best: dict[tuple[str, str, str], tuple[Proof, dict[str, Any]]] = {}
    for proof, each in measures(stored["proofs"], "calibration"):
        key = named(proof)
        if key not in best or sum(best[key][1]["counts"][0]) < sum(each["counts"][0]):
            best[key] = proof, each
    return [best[key] for key in sorted(best, key=lambda key: (list(MODELS).index(key[0]), key[2], key[1]))]


def named(proof: Proof) -> tuple[str, str, str]:
    """Model, sampler and problem."""
    return proof.get("model", PARTS), proof.get("sampler") or proof.get("engine", ""), proof.get("problem", "")


def verdict(stored: dict[str, Any]) -> str:
    """One line."""
    wrong, bare = failed(stored), unproven(stored)
    ran = [p for p in stored["proofs"] if p["outcome"] == "passed"]
    if wrong or bare or not ran:
        return f"NOT CERTIFIED: {len(wrong)} proofs failed, {len(bare)} of {len(stored['offered'])} things that are offered have no proof"
    long = sum(proof["long"] for proof in ran)
    late = sum(proof["long"] and proof["outcome"] != "passed" for proof in stored["proofs"])
    which = f"{long} long ones among them" if long else "the quick ones"
    rest = f"; {late} long ones are still to come" if late else ""
    return f"CERTIFIED: {len(ran)} proofs passed, {which}{rest}; everything that is offered has one"
