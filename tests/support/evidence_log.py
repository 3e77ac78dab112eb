"""What proofs have measured: which of it is current, and what the certificate concludes from it.

A proof is a test that says what it proves, with what it measured; see tests/conftest.py.
"""

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
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.stats as st

import revealed as rv
from revealed.samplers.model_kind import ModelKind, kind_of
from revealed.samplers.registry import REGISTRY, SamplerEntry, choose_entry

Proof = dict[str, Any]
MODELS = {
    "choices, normal prior": "fit",
    "choices, flat prior": "fit",
    "choices, inferred prior scale": "fit",
    "choices, noise covariance": "fit",
    "unknown transitions": "fit",
    "population": "fit",
    "population, noise covariance": "fit",
    "separate fits": "fit",
    "rankings": "fit",
    "rankings, logit noise": "fit",
    "choices, another noise": "fit",
    "choices, logit noise": "fit",
    "choices, Student noise": "fit",
    "choices, Student noise with lapses": "fit",
    "population, Student noise": "fit",
    "unknown transitions, Student noise": "fit",
    "choices, normal noise with lapses": "fit",
    "choices, logit noise with lapses": "fit",
    "choices, normal noise with lapses by habit": "fit",
    "choices, logit noise with lapses by habit": "fit",
    "choices, Student noise with lapses by habit": "fit",
    "unknown transitions, Student noise with lapses": "fit",
    "population, Student noise with lapses": "fit",
    "unknown transitions, normal noise with lapses": "fit",
    "unknown transitions, logit noise with lapses": "fit",
    "population, normal noise with lapses": "fit",
    "population, logit noise with lapses": "fit",
    "population, logit noise": "fit",
    "unknown transitions, logit noise": "fit",
    "population, another noise": "fit",
    "unknown transitions, another noise": "fit",
    "values that change, normal noise": "fit",
    "values that change, logit noise": "fit",
    "values that change, Student noise": "fit",
    "values that change, another noise": "fit",
    "values that change, normal noise with lapses": "fit",
    "values that change, logit noise with lapses": "fit",
    "values that change, Student noise with lapses": "fit",
    "values of a population that change, normal noise": "fit",
    "values of a population that change, logit noise": "fit",
    "values of a population that change, Student noise": "fit",
    "values of a population that change, another noise": "fit",
    "strategies that take turns, normal noise": "fit",
    "strategies that take turns, logit noise": "fit",
    "strategies that take turns, Student noise": "fit",
    "strategies that take turns, another noise": "fit",
    "strategies that take turns, normal noise with lapses": "fit",
    "strategies that take turns, logit noise with lapses": "fit",
    "skills that change, normal noise": "fit",
    "skills that change, logit noise": "fit",
    "online learner": "OnlineLearner",
    "scikit-learn classifier": "sklearn.ChoiceClassifier",
}
"""Each model, and the public name that infers it."""
LAPSES_BY: tuple[Literal["all", "group"], ...] = ("all", "group")
SCORED = ("oracle", "Geweke", "agreement")  # ways of proof whose measure is a z
PARTS = "what samplers rest on"
# folders that no other folder imports: tests/project/test_imports.py
NOT_IN_DIGEST = ("cli", "studio", "replication")
STORED_CERTIFICATE = Path(__file__).parents[2] / "docs" / "certificate.json"
VERSIONED_PACKAGES = ("numpy", "scipy", "numba", "arviz")


# What evidence is of


@functools.cache
def sources() -> str:
    """A digest of the package's sources, but for the folders that no draw depends on."""
    root, digest = Path(rv.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in NOT_IN_DIGEST:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that draws depend on."""
    return {"Python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in VERSIONED_PACKAGES
    }


@functools.cache
def stamp(test: Path) -> str:
    """A digest of what evidence is valid for.

    Sources and versions, the file of the test and the modules beside it that are no tests, and what
    all tests share.
    """
    beside = [path for path in sorted(test.parent.glob("*.py")) if path.name[:5] != "test_"]
    shared = [
        path.read_bytes()
        for path in (
            *(Path(__file__).with_name(name) for name in ("statistical_asserts.py", "cases.py")),
            *beside,
        )
    ]
    return hashlib.sha256(
        b"".join([f"{sources()} {versions()}".encode(), test.read_bytes(), *shared])
    ).hexdigest()[:16]


def read(file: Path) -> list[Proof]:
    """The last line on every proof and stamp; one that was only announced counts as not run."""
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


def is_current(proof: Proof) -> bool:
    """Whether a proof is of the sources, versions and tests that are here now."""
    path = Path(__file__).parents[2] / proof["test"].partition("::")[0]
    return path.exists() and bool(proof["stamp"] == stamp(path))


# What the package offers


def fitting_functions() -> list[str]:
    """Public names that run a sampler: those with an argument `warmup` or `particles`.

    Functions and classes of the package, and the classes of its module `sklearn`.
    """
    things = {name: getattr(rv, name) for name in rv.__all__}
    things |= {
        f"sklearn.{name}": thing
        for name, thing in vars(rv.sklearn).items()
        if isinstance(thing, type) and thing.__module__ == rv.sklearn.__name__
    }
    parameters = {
        name: inspect.signature(thing).parameters
        for name, thing in things.items()
        if callable(thing) and not (isinstance(thing, type) and issubclass(thing, Warning))
    }
    return [name for name, taken in parameters.items() if {"warmup", "particles"} & set(taken)]


def model_name(kind: ModelKind) -> str:
    """What the certificate calls a kind of model; that of separate groups is of each of them."""
    if kind.over_time == "switching":
        called = {"student": "Student", "student df": "Student", "other": "another"}
        lapses = "" if kind.lapses == "no" else " with lapses"
        return f"strategies that take turns, {called.get(kind.noise, kind.noise)} noise{lapses}"
    if kind.data == "rankings" and kind.over_time != "constant":
        return f"skills that change, {kind.noise} noise"
    if kind.over_time != "constant":
        called = {"student": "Student", "student df": "Student", "other": "another"}
        lapses = "" if kind.lapses == "no" else " with lapses"
        if kind.groups == "hierarchical":
            law = called.get(kind.noise, kind.noise)
            return f"values of a population that change, {law} noise{lapses}"
        return f"values that change, {called.get(kind.noise, kind.noise)} noise{lapses}"
    if kind.lapses != "no":
        whose = "population" if kind.groups == "hierarchical" else "choices"
        whose = "unknown transitions" if kind.data == "trajectories" else whose
        by = " by habit" if kind.lapses == "habit" else ""
        of = "Student" if kind.noise.startswith("student") else kind.noise
        return f"{whose}, {of} noise with lapses{by}"
    if kind.data == "rankings":
        return "rankings" if kind.noise == "normal" else "rankings, logit noise"
    laws = {"logit": "logit noise", "other": "another noise"}
    laws |= dict.fromkeys(("student", "student df"), "Student noise")
    if kind.noise in laws:
        whose = "population" if kind.groups == "hierarchical" else "choices"
        law = laws[kind.noise]
        return f"{whose if kind.data == 'decisions' else 'unknown transitions'}, {law}"
    if kind.data == "trajectories":
        return "unknown transitions"
    if kind.groups == "hierarchical":
        return "population, noise covariance" if kind.noise == "correlated" else "population"
    if kind.noise == "correlated":
        return "choices, noise covariance"
    return (
        "choices, inferred prior scale"
        if kind.prior == "inferred sd"
        else (f"choices, {kind.prior} prior")
    )


def own_kinds(entry: SamplerEntry) -> list[ModelKind]:
    """The kinds of model that the package itself has all parts of.

    A law of noise from elsewhere is proven there; `tests/conformance` tries one.
    """
    return [kind for kind in entry.kinds if kind.noise != "other"]


def examples() -> list[tuple[Any, rv.ChoiceModel | rv.RankingModel]]:
    """Data and a model of every kind that the registry has a sampler for."""
    rng = np.random.default_rng(1)
    mdp = rv.random_mdp(rng, 3, 3)
    path = mdp.simulate(rng, [1.0, 0.0, -1.0], 400)
    plain = mdp.decisions(path.states, path.actions)
    labelled = rv.Decisions(
        plain.rows,
        plain.start,
        plain.chosen,
        blocks=plain.blocks,
        actions=np.tile(list("abc"), len(plain)),
        groups=np.repeat(["ann", "bob"], 200),
    )
    seen = rv.Trajectories(path, 3, 3)
    games = rv.Rankings.from_lists([["ann", "bob"], ["bob", "ann"]] * 5)
    dated_games = rv.Rankings.from_lists([["ann", "bob"], ["bob", "ann"]] * 5, times=range(10))
    normal, flat, inferred = rv.Normal(2.0), rv.Flat(), rv.Normal(rv.HalfStudentT())
    noise = rv.CorrelatedNoise()
    students = rv.StudentNoise(), rv.StudentNoise(rv.Gamma())
    dated = rv.Decisions(
        plain.rows, plain.start, plain.chosen, blocks=plain.blocks, times=range(len(plain))
    )
    dated_groups = rv.Decisions(
        plain.rows,
        plain.start,
        plain.chosen,
        blocks=plain.blocks,
        groups=labelled.groups,
        times=range(len(plain)),
    )
    every: list[Any] = [rv.NormalNoise(), rv.LogitNoise(), *students]
    lapsing = [replace(law, lapse=rv.Lapse()) for law in every]
    return [
        *(
            (plain, rv.ChoiceModel(prior=prior, noise=law))
            for law in (rv.NormalNoise(), rv.LogitNoise())
            for prior in (normal, flat, inferred)
        ),
        *(
            (plain, rv.ChoiceModel(prior=prior, noise=law))
            for prior in (normal, inferred)
            for law in (rv.NormalNoise(lapse=rv.Lapse()), rv.LogitNoise(lapse=rv.Lapse()))
        ),
        *(
            (plain, rv.ChoiceModel(prior=prior, noise=law))
            for prior in (normal, inferred)
            for law in students
        ),
        *(
            (plain, rv.ChoiceModel(prior=prior, noise=replace(law, lapse=rv.Lapse())))
            for prior in (normal, inferred)
            for law in students
        ),
        *(
            (labelled, rv.ChoiceModel(prior=normal, noise=replace(law, lapse=rv.Lapse(to="habit"))))
            for law in every
        ),
        *(
            (labelled, rv.ChoiceModel(prior=inferred, noise=law(lapse=rv.Lapse(to="habit"))))
            for law in (rv.NormalNoise, rv.LogitNoise)
        ),
        *(
            (dated, rv.ChoiceModel(prior=prior, noise=law, over_time=over_time))
            for prior, over_time in (
                (normal, rv.RandomWalk()),
                (inferred, rv.RandomWalk()),
                (normal, rv.MeanReverting()),
            )
            for law in (*every, *lapsing)
        ),
        *(
            (
                dated_groups,
                rv.ChoiceModel(
                    prior=normal, noise=law, over_time=rv.RandomWalk(), groups=rv.Hierarchical()
                ),
            )
            for law in every[:3]
        ),
        *(
            (dated, rv.ChoiceModel(prior=prior, noise=law, over_time=rv.Switching()))
            for prior in (normal, inferred)
            for law in (*every, *lapsing[:2])
        ),
        *(
            (labelled, rv.ChoiceModel(prior=prior, noise=noise))
            for prior in (normal, flat, inferred)
        ),
        *(
            (seen, rv.ChoiceModel(prior=prior, noise=law, transitions=rv.Dirichlet()))
            for law in (*every, *lapsing)
            for prior in (normal, inferred)
        ),
        *(
            (labelled, rv.ChoiceModel(prior=prior, noise=law, groups=rv.Hierarchical()))
            for prior in (normal, inferred)
            for law in (rv.NormalNoise(), rv.LogitNoise(), noise, *students)
        ),
        *(
            (
                labelled,
                rv.ChoiceModel(
                    prior=prior,
                    noise=replace(law, lapse=rv.Lapse(by=by)),
                    groups=rv.Hierarchical(),
                ),
            )
            for prior in (normal, inferred)
            for law in every
            for by in LAPSES_BY
        ),
        *(
            (games, rv.RankingModel(prior=prior, noise=law))
            for law in (rv.NormalNoise(), rv.LogitNoise())
            for prior in (normal, flat, None)
        ),
        *(
            (dated_games, rv.RankingModel(prior=prior, noise=law, over_time=over_time()))
            for law in (rv.NormalNoise(), rv.LogitNoise())
            for prior in (normal, None)
            for over_time in (rv.RandomWalk, rv.MeanReverting)
        ),
    ]


def offered() -> tuple[list[list[str]], list[list[str]]]:
    """Pairs of model and sampler that `fit` takes, and those it refuses, with its sentence.

    Every sampler of the registry is tried with every prior. Separate groups, and what infers
    without `fit`, have no sampler of their own; it is left empty here.
    """
    known = {kind_of(model): (data, model) for data, model in examples()}
    takes, refuses = [], []
    # a kind of model that nobody has put into `examples` needs a proof too
    for entry in REGISTRY.entries:
        takes += [[str(kind), entry.name] for kind in own_kinds(entry) if kind not in known]
    for kind, (data, model) in known.items():
        for entry in REGISTRY.entries:
            # priors are what samplers of one kind of data, noise and groups may refuse
            if not any(kind._replace(prior=other.prior) == other for other in entry.kinds):
                continue
            pair = [model_name(kind), entry.name]
            try:
                # what `fit` does before it runs a sampler; tests/conformance runs all of them
                choose_entry(entry.name, model, {})
                model.resolve(data).refuse_improper()
                takes += [] if pair in takes else [pair]
            except ValueError as sentence:
                refuses.append([*pair, str(sentence)])
    takes.append(["separate fits", ""])
    takes += [[model, ""] for model, function in MODELS.items() if function != "fit"]
    new = [name for name in fitting_functions() if name not in MODELS.values()]
    takes += [[f"the function {name}", ""] for name in new]
    return takes, refuses


# What is stored


def summary(file: Path) -> dict[str, Any]:
    """All that the page is made of."""
    takes, refuses = offered()
    return {
        "made": str(datetime.date.fromtimestamp(file.stat().st_mtime)),
        "revealed": rv.__version__,
        "sources": sources(),
        "versions": versions(),
        "machine": f"{platform.system()}, {platform.machine()}, {os.cpu_count()} cores",
        "offered": takes,
        "refused": refuses,
        "proofs": [compact(proof) for proof in read(file) if is_current(proof)],
    }


def compact(proof: Proof) -> Proof:
    """A proof without its stamp, with what it measured gathered by kind and limit."""
    groups: dict[Any, dict[str, Any]] = {}
    for each in proof.get("measured", []):
        if each["how"] == "mutant":
            by = min(each["by"], key=margin)
            each = each | {
                "by": {"how": by["how"], "limit": by.get("limit"), "worst": worst_of(by)}
            }
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
    """How far the worst is from the limit, as a factor.

    Below one where it is beyond, and zero where nothing was left to chance.
    """
    worst = worst_of(measured)
    if worst is None:
        return 0.0
    return (
        worst / measured["limit"]
        if "p" in measured
        else measured["limit"] / worst
        if worst
        else math.inf
    )


# What follows from it


def measures(proofs: Iterable[Proof], *ways: str) -> Iterator[tuple[Proof, dict[str, Any]]]:
    """What was measured in these ways, each with its proof.

    Where a measurement names model or sampler itself, that is what its proof says here.
    """
    for proof in proofs:
        for each in proof["measured"]:
            if each["how"] in ways:
                yield proof | {key: each[key] for key in ("model", "sampler") if key in each}, each


def proves(proof: Proof, model: str, sampler: str) -> bool:
    """Whether a proof is of this model and sampler; of any sampler where none is named."""
    return proof.get("model") == model and (
        not sampler or sampler in proof.get("sampler", "").split(" and ")
    )


def unproven(stored: dict[str, Any]) -> list[list[str]]:
    """What is offered and has no proof that passed."""
    right = [p for p in stored["proofs"] if p["outcome"] == "passed"]
    seen = [proof for proof, _ in measures(right, *SCORED, "calibration", "same")]
    return [pair for pair in stored["offered"] if not any(proves(proof, *pair) for proof in seen)]


def only_long(stored: dict[str, Any]) -> list[list[str]]:
    """What is offered, and has no proof yet but long ones that have not run."""
    late = [p for p in stored["proofs"] if p["long"] and p["outcome"] == "not run"]
    return [pair for pair in unproven(stored) if any(proves(proof, *pair) for proof in late)]


def failed_proofs(stored: dict[str, Any]) -> list[Proof]:
    """Proofs that did not come out as they should."""
    return [proof for proof in stored["proofs"] if proof["outcome"] == "failed"]


def p_values(stored: dict[str, Any]) -> list[float]:
    """The p-value of every check that is left to chance."""
    found: list[float] = []
    for _, each in measures(stored["proofs"], *SCORED, "calibration", "law"):
        found += each["p"] if "p" in each else list(two_sided(each))
    return found


def two_sided(each: dict[str, Any]) -> Any:
    """The chance of a z as large as each."""
    return 2 * st.t.sf(np.abs(each["z"]), each["degrees"] or math.inf)


def longest_calibrations(stored: dict[str, Any]) -> list[tuple[Proof, dict[str, Any]]]:
    """Of every model, sampler and problem the calibration with most data sets."""
    best: dict[tuple[str, str, str], tuple[Proof, dict[str, Any]]] = {}
    for proof, each in measures(stored["proofs"], "calibration"):
        key = model_sampler_problem(proof)
        if key not in best or sum(best[key][1]["counts"][0]) < sum(each["counts"][0]):
            best[key] = proof, each
    return [
        best[key]
        for key in sorted(best, key=lambda key: (list(MODELS).index(key[0]), key[2], key[1]))
    ]


def model_sampler_problem(proof: Proof) -> tuple[str, str, str]:
    """Model, sampler and problem."""
    return (
        proof.get("model", PARTS),
        proof.get("variant") or proof.get("sampler", ""),
        proof.get("problem", ""),
    )


def conclusion(stored: dict[str, Any]) -> str:
    """The certificate in one line."""
    wrong, waiting = failed_proofs(stored), only_long(stored)
    bare = [pair for pair in unproven(stored) if pair not in waiting]
    ran = [p for p in stored["proofs"] if p["outcome"] == "passed"]
    if wrong or bare or not ran:
        return (
            f"NOT CERTIFIED: {len(wrong)} proofs failed, {len(bare)} of {len(stored['offered'])} "
            "things that are offered have no proof"
        )
    long = sum(proof["long"] for proof in ran)
    late = sum(proof["long"] and proof["outcome"] != "passed" for proof in stored["proofs"])
    which = f"{long} long ones among them" if long else "the quick ones"
    rest = f"; {late} long ones are still to come" if late else ""
    every = "everything that is offered has one"
    if waiting:
        every = f"of {len(waiting)} things that are offered all proofs are long"
    return f"CERTIFIED: {len(ran)} proofs passed, {which}{rest}; {every}"
