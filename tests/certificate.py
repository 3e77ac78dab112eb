"""The certificate: one page made of what the proofs have measured, and of nothing else.

    python tests/certificate.py EVIDENCE FOLDER

reads the lines that `pytest --evidence EVIDENCE` wrote and puts certificate.json, certificate.md and two figures into FOLDER. The page is
made of the JSON alone. It ends with 1 where a proof failed, or where something that the package offers has no proof.
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
import sys
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
OUTER = ("cli", "studio", "paper")  # rooms that nothing else imports: tests/contract/test_imports.py
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
    """What evidence is good for: these sources, these versions, this very file of tests."""
    return hashlib.sha256(f"{sources()} {versions()}".encode() + test.read_bytes()).hexdigest()[:16]


def read(file: Path) -> list[Proof]:
    """The last word on every proof, of those that are still good; one that was only announced has been not run."""
    found: dict[str, Proof] = {}
    root = Path(__file__).parents[1]
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        line = json.loads(text)
        path = root / line["test"].partition("::")[0]
        if path.exists() and line["stamp"] == stamp(path) and not (line["outcome"] == "not run" and line["test"] in found):
            found[line["test"]] = line
    return [found[test] for test in sorted(found)]


def passed(file: Path) -> set[tuple[str, str]]:
    """Tests that have passed, with their stamps."""
    return {(proof["test"], proof["stamp"]) for proof in read(file) if proof["outcome"] == "passed"}


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
        (model, engine, plain, {"prior": prior}) for model, prior in PRIORS.items() for engine in ENGINES if engine != "auto"
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
        "proofs": [compact(proof) for proof in read(file)],
    }


def compact(proof: Proof) -> Proof:
    """A proof without its stamp, with what it measured gathered by kind and limit."""
    groups: dict[Any, dict[str, Any]] = {}
    for each in proof.get("measured", []):
        if each["how"] == "mutant":
            by = each.pop("by")
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
    if "z" in measured:
        return max(abs(z) for z in measured["z"])
    return min(measured["p"]) if "p" in measured else measured.get("error")


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
    found = []
    for _, each in measures(stored["proofs"], *SCORED, "calibration", "law"):
        found += each["p"] if "p" in each else list(two_sided(each))
    return found


def two_sided(each: dict[str, Any]) -> Any:
    """The chance of a z as large as each."""
    return 2 * st.t.sf(np.abs(each["z"]), each["degrees"] or math.inf)


def verdict(stored: dict[str, Any]) -> str:
    """One line."""
    wrong, bare = failed(stored), unproven(stored)
    ran = [p for p in stored["proofs"] if p["outcome"] == "passed"]
    if wrong or bare or not ran:
        return f"NOT CERTIFIED: {len(wrong)} proofs failed, {len(bare)} of {len(stored['offered'])} things that are offered have no proof"
    late = sum(p["long"] and p["outcome"] != "passed" for p in stored["proofs"])
    long = sum(p["long"] for p in ran)
    which = "the quick ones" if not long else f"{long} long ones among them, {late} long ones still to come" if late else "all long ones among them"
    return f"CERTIFIED: {len(ran)} proofs passed, {which}; everything that is offered has one"


# The page


def page(stored: dict[str, Any]) -> str:
    """The certificate in Markdown."""
    parts = [f"# Certificate\n\n**{verdict(stored)}.**", facts(stored), engines(stored), calibration(stored), scores(stored)]
    parts += [exactness(stored), mutants(stored), false_alarms(stored), not_covered(stored), REPEAT]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A table whose head is written as it looks, between bars."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def facts(stored: dict[str, Any]) -> str:
    """Versions, machine, date, time."""
    hours = sum(p.get("seconds", 0.0) for p in stored["proofs"]) / 3600
    used = ", ".join(f"{name} {version}" for name, version in stored["versions"].items())
    return (
        "This page is generated: every number on it was measured by a test of this repository, whose name it gives. [Proof](proof.md) says what is "
        "compared with what, and why.\n\n"
        + table(
            "of | ",
            [
                ("understudy", f"{stored['understudy']}, sources `{stored['sources']}`"),
                ("with", used),
                ("on", stored["machine"]),
                ("finished", f"{stored['made']}, after {hours:.1f} hours of work"),
            ],
        )
    )


def furthest(found: list[tuple[Proof, dict[str, Any]]]) -> str:
    """How many z there are, the one that comes closest to its limit, and that limit."""
    if not found:
        return ""
    closest = max((worst_of(each) or 0.0) / each["limit"] for _, each in found)
    each = next(e for _, e in found if (worst_of(e) or 0.0) / e["limit"] == closest)
    return f"{worst_of(each):.1f} of {sum(len(e['z']) for _, e in found):,} ({each['limit']:.1f})"


def smallest(found: list[tuple[Proof, dict[str, Any]]]) -> str:
    """The smallest p-value, how many there are, and the limit."""
    if not found:
        return ""
    each = min((e for _, e in found), key=lambda e: min(e["p"]) / e["limit"])
    return f"{min(each['p']):.2g} of {sum(len(e['p']) for _, e in found):,} ({each['limit']:.0e})"


def engines(stored: dict[str, Any]) -> str:
    """Every model with every engine that is offered for it, and how each is proven."""
    rows = []
    for model, engine in stored["offered"]:
        mine = {
            way: [pair for pair in measures(stored["proofs"], way) if proves(pair[0], model, engine)]
            for way in (*SCORED, "calibration", "same", "mutant")
        }
        named = sorted({p.get("engine", "") for found in mine.values() for p, _ in found})
        cells = [furthest(mine["oracle"]), smallest(mine["calibration"]), furthest(mine["Geweke"]), furthest(mine["agreement"])]
        count = [len(mine["same"]) or "", len({each["mutant"] for _, each in mine["mutant"]}) or ""]
        bare = [model, engine] in unproven(stored)
        rows.append((model, "**no proof**" if bare else f"`{engine or ', '.join(named)}`", *cells, *count))
    return (
        "## Every engine and model\n\n"
        "Where a cell says 2.9 of 104 (5.6), the furthest of 104 errors is 2.9 standard errors, and 5.6 would have been a failure. *Oracle*: means, sds and "
        "evidence against an exact posterior. *Calibration*: the smallest p-value of the truth's ranks; one below the limit in brackets would have been a "
        "failure. *Geweke*: moments of the joint chain against the prior. *Agreement*: against another sampler. *Same*: comparisons to the last bit. "
        "*Mutants*: wrong versions that were caught.\n\n"
        + table("model | engine | oracle | calibration | Geweke | agreement | same | mutants", rows)
    )


def longest(stored: dict[str, Any]) -> list[tuple[Proof, dict[str, Any]]]:
    """Of every model, sampler and problem the calibration with most data sets."""
    best: dict[tuple[str, str, str], tuple[Proof, dict[str, Any]]] = {}
    for proof, each in measures(stored["proofs"], "calibration"):
        key = named(proof)
        if key not in best or sum(best[key][1]["counts"][0]) < sum(each["counts"][0]):
            best[key] = proof, each
    order = {model: at for at, model in enumerate(MODELS)}
    return [best[key] for key in sorted(best, key=lambda key: (order.get(key[0], len(order)), key[2], key[1]))]


def named(proof: Proof) -> tuple[str, str, str]:
    """Model, sampler and problem."""
    return proof.get("model", ""), proof.get("sampler") or proof.get("engine", ""), proof.get("problem", "")


def calibration(stored: dict[str, Any]) -> str:
    """The longest run of every sampler on every problem."""
    found = longest(stored)
    if not found:
        return ""
    rows = [
        (*named(proof), f"{sum(each['counts'][0]):,}", len(each["p"]), f"{min(each['p']):.3f}", f"{1 / (len(each['p']) + 1):.2f}")
        for proof, each in found
    ]
    every = [p for _, each in found for p in each["p"]]
    return (
        "## Calibration\n\n"
        "Truths are drawn from the prior and choices from the model; then the truth's rank among the draws is uniform. A line is the share of ranks in each "
        "bin, for one coefficient or other quantity; the band holds 99 % of the bins of a right sampler.\n\n"
        "![Histograms of ranks for every sampler and problem](certificate.png)\n\n"
        + table("model | sampler | problem | data sets | quantities | smallest p | chance gives about", rows)
        + f"\n\nOf {len(every):,} p-values the smallest is {min(every):.2g}, where chance gives about {1 / (len(every) + 1):.2g}."
    )


def scores(stored: dict[str, Any]) -> str:
    """All z at a glance, and Geweke's test case by case."""
    found = list(measures(stored["proofs"], *SCORED))
    rows = [(*named(proof), furthest([(proof, each)])) for proof, each in found if each["how"] == "Geweke"]
    errors = [each["error"] for _, each in found if each["how"] == "oracle" and each.get("error") is not None]
    if not found:
        return ""
    off = f" The largest error of a mean, in sds of the posterior, or of an sd, as a share of it, is {max(errors):.1%}." if errors else ""
    return (
        "## Oracles, Geweke's test and agreement\n\n"
        f"Every dot is an error in standard errors, brought to the scale of a standard normal.{off}\n\n"
        "![Errors in standard errors, by model and engine](certificate-scores.png)\n\n"
        + table("model | sampler | problem | Geweke: furthest of all moments (allowed)", rows)
    )


def exactness(stored: dict[str, Any]) -> str:
    """What engines stand on."""
    rows: dict[str, list[str]] = {}
    for proof, each in measures([p for p in stored["proofs"] if "part" in p], "error", "law", "same", *SCORED):
        count = len(each.get("p") or each.get("z") or []) or each["count"]
        what = {"error": "error up to {:.1g} ({:.0e})", "law": "p from {:.2g} ({:.0e})", "same": "the same after {count} deaths"}
        text = what.get(each["how"], "z up to {:.1f} ({:.1f})").format(worst_of(each) or 0.0, each.get("limit", 0.0), count=count)
        rows.setdefault(proof["part"], []).append(f"{count:,} × {text}" if each["how"] != "same" else text)
    return (
        "## What engines stand on\n\nChecks against something exact, as *how many × the worst (the limit)*.\n\n"
        + table("part | measured", ((part, "; ".join(sorted(set(cells)))) for part, cells in sorted(rows.items())))
        if rows
        else ""
    )


def mutants(stored: dict[str, Any]) -> str:
    """What was wrong on purpose, and who noticed."""
    rows = []
    for proof, each in measures(stored["proofs"], "mutant"):
        by = each["by"]
        told = {"calibration": "p = {:.0e} ({:.0e})", "error": "error {:.0e} ({:.0e})", "same": "not the same", "breakdown": "it broke down"}
        how = told.get(by["how"], "{:.0f} standard errors ({:.1f})").format(by["worst"] or 0.0, by["limit"] or 0.0)
        of = ", ".join(filter(None, (proof.get("part") or proof.get("model"), proof.get("engine"))))
        rows.append((each["mutant"], of, how, f"`{proof['test'].removeprefix('tests/').partition('[')[0]}`"))
    return (
        f"## Mutants\n\nA test that cannot fail proves nothing. These {len(rows)} are wrong on purpose, and a test that passed one of them would itself "
        "fail. In brackets the limit that they had to break.\n\n" + table("mutant | of | noticed by | test", sorted(rows))
        if rows
        else ""
    )


def false_alarms(stored: dict[str, Any]) -> str:
    """What chance alone would have done."""
    every = np.array(chances(stored))
    if not every.size:
        return ""
    expected = sum(each["alarm"] for _, each in measures(stored["proofs"], *SCORED, "calibration", "law"))
    return (
        f"## False alarms\n\n{every.size:,} checks are left to chance. Were everything right, {expected:.1g} of them would be expected to fail. "
        f"The smallest p-value is {every.min():.1g}, where chance gives about {1 / (every.size + 1):.1g}; {np.mean(every < 0.01):.1%} are below 0.01, where "
        "chance gives 1 %. They are not independent of one another: means and sds come from the same draws."
    )


def not_covered(stored: dict[str, Any]) -> str:
    """What a reader must not take for proven."""
    parts = ["## Not covered"]
    groups: dict[tuple[str, str], int] = {}
    for proof in stored["proofs"]:
        if proof["outcome"] != "passed":
            where = proof["test"].removeprefix("tests/").partition("[")[0]
            key = (where, proof.get("why", proof["outcome"]).removeprefix("Skipped: "))
            groups[key] = groups.get(key, 0) + 1
    if groups:
        parts.append("Proofs that are not in this certificate:\n\n" + table("test | cases | because", ((f"`{w}`", n, why) for (w, why), n in groups.items())))
    if not any(proof["long"] for proof in stored["proofs"]):
        parts.append("The long proofs are not part of a quick run.")
    if stored["refused"]:
        parts.append("Refused, and so in need of no proof:\n\n" + table("model | engine | in these words", stored["refused"]))
    parts.append(LIMITS)
    return "\n\n".join(parts)


LIMITS = """\
Also not:

- Large problems. An exact answer, or thousands of repetitions, must be affordable: the problems here have a few coefficients and at most some hundred
  decisions. What an engine does on larger ones is judged by the diagnostics that come with every answer.
- Mistakes nobody thought of. A mutant is one mistake; the checks see others as well, but only those that move a mean, an sd, a rank or a moment.
- Other versions and machines than those above. `scripts/test` repeats the quick proofs wherever it runs.
- The model itself. Whether a controller decides as the model says is a question for its choices, which `us.predict` and `us.compare` help to ask.
- Speed, memory, the command line, the studio, figures and the paper's experiments; they have tests, but none of a law."""

REPEAT = """\
## Repeating it

```bash
scripts/certify         # the quick proofs, a few minutes; writes a page like this one into .venv/certificate
scripts/certify --full  # all of them, hours; can be interrupted and goes on where it was; writes this very page
scripts/test            # everything else too; fails where an engine or a model has no proof
```

Seeds are fixed: the same versions on the same kind of machine give the same numbers. [certificate.json](certificate.json) holds all that was measured,
and this page is made of it; a test sees to it that the two agree."""


# The figures


def figures(stored: dict[str, Any], folder: Path) -> None:
    """Ranks for every sampler and problem; errors in standard errors for every model and engine."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 7, "axes.spines.top": False, "axes.spines.right": False}):
        if found := longest(stored):
            figure = ranks_figure(plt, found)
            figure.savefig(folder / "certificate.png", dpi=130)
            plt.close(figure)
        if pairs := list(measures(stored["proofs"], *SCORED)):
            figure = scores_figure(plt, pairs)
            figure.savefig(folder / "certificate-scores.png", dpi=130)
            plt.close(figure)


def ranks_figure(plt: Any, found: list[tuple[Proof, dict[str, Any]]]) -> Any:
    """Small multiples of rank histograms."""
    wide = 6
    high = math.ceil(len(found) / wide)
    figure, axes = plt.subplots(high, wide, figsize=(12, 1.45 * high + 0.3), sharex=True, layout="constrained", squeeze=False)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis, (proof, each) in zip(axes.flat, found, strict=False):
        counts = np.array(each["counts"])
        number, bins = int(counts[0].sum()), counts.shape[1]
        low, high_ = st.binom(number, 1 / bins).ppf([0.005, 0.995]) * bins / number
        middle = (np.arange(bins) + 0.5) / bins
        axis.axhspan(low, high_, color="0.88", lw=0)
        axis.plot(middle, counts.T * bins / number, color="C0", lw=0.7, alpha=0.7, drawstyle="steps-mid")
        model, sampler, problem = named(proof)
        axis.set_title(f"{model}\n{sampler}, {problem}\n{number:,} data sets, p ≥ {min(each['p']):.2g}", fontsize=6)
        spread = 2.2 * max(high_ - 1, 1 - low)
        axis.set(ylim=(max(0, 1 - spread), 1 + spread), xticks=[0, 1], yticks=[1])
        axis.tick_params(length=2)
    return figure


def scores_figure(plt: Any, found: list[tuple[Proof, dict[str, Any]]]) -> Any:
    """A row of dots for every model and engine, beside a standard normal."""
    colours = dict(zip(SCORED, ("C0", "C1", "C2"), strict=True))
    keys = sorted({(p.get("model") or "parts", p.get("engine", "")) for p, _ in found}, reverse=True)
    figure, axis = plt.subplots(figsize=(9, 0.26 * len(keys) + 1.0), layout="constrained")
    rng = np.random.default_rng(1)
    for proof, each in found:
        row = keys.index((proof.get("model") or "parts", proof.get("engine", "")))
        z = np.sign(each["z"]) * st.norm.isf(two_sided(each) / 2)
        axis.scatter(z, row + rng.uniform(-0.3, 0.3, len(z)), s=3, alpha=0.6, color=colours[each["how"]], lw=0)
    for z, style in ((1.96, ":"), (3.29, "--"), (st.norm.isf(0.5e-6), "-")):
        for side in (-1, 1):
            axis.axvline(side * z, color="0.6", lw=0.7, ls=style, zorder=0)
    for way, colour in colours.items():
        axis.scatter([], [], s=12, color=colour, label=way)
    axis.set(yticks=range(len(keys)), yticklabels=[", ".join(filter(None, key)) for key in keys], xlim=(-6, 6))
    axis.set_xlabel("errors in standard errors; lines at false-alarm rates of 5 % (dotted), 0.1 % (dashed), one in a million")
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    return figure


def main(evidence: str, to: str) -> int:
    """Make the page; 0 if all is proven."""
    folder = Path(to)
    folder.mkdir(parents=True, exist_ok=True)
    stored = json.loads(json.dumps(summary(Path(evidence))))
    lines = ",\n".join(json.dumps(proof, ensure_ascii=False) for proof in stored["proofs"])
    head = json.dumps(stored | {"proofs": []}, ensure_ascii=False, indent=1).removesuffix('"proofs": []\n}')
    (folder / "certificate.json").write_text(f'{head}"proofs": [\n{lines}\n]}}\n', encoding="utf-8")
    (folder / "certificate.md").write_text(page(stored), encoding="utf-8")
    figures(stored, folder)
    for proof in failed(stored):
        print(f"understudy: failed: {proof['test']}")
    for model, engine in unproven(stored):
        print(f"understudy: no proof of {', '.join(filter(None, (model, engine)))}")
    print(f"understudy: {verdict(stored)}: {folder / 'certificate.md'}")
    return 1 if verdict(stored).startswith("NOT") else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
