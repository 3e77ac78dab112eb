"""The certificate: one page made of what the proofs have measured, and of nothing else.

    python -m tests.support.certificate EVIDENCE FOLDER

reads the lines that `pytest --evidence=EVIDENCE` wrote and puts certificate.json, certificate.md
and two figures into FOLDER; the page is made of the JSON alone. It ends with 1 where a proof
failed, or where something that the package offers has no proof.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.certificate_figures import figures
from tests.support.evidence_log import (
    PARTS,
    SCORED,
    STORED_CERTIFICATE,
    Proof,
    conclusion,
    failed_proofs,
    longest_calibrations,
    measures,
    model_sampler_problem,
    only_long,
    p_values,
    proves,
    summary,
    unproven,
    worst_of,
)

Found = list[tuple[Proof, dict[str, Any]]]

TOP = """\
This page is generated: every number on it was measured by a test of this repository, and the tests
are named. [Proof](proof.md) says what is compared with what, and why."""

SAMPLERS = """\
## Every sampler and model

Where a cell says 2.9 of 104 (5.6), the furthest of 104 errors is 2.9 standard errors, and 5.6 would
have been a failure. *Oracle*: means, sds and evidence against an exact posterior. *Calibration*:
the smallest p-value of the truth's ranks; one below the limit in brackets would have been a
failure. *Geweke*: moments of the joint chain against the prior. *Agreement*: against another
sampler, or with the same draws bit for bit. *Mutants*: wrong versions that were caught. *Tests*:
in which files of `tests`."""

CALIBRATION = """\
## Calibration

Truths are drawn from the prior and choices from the model; then the truth's rank among the draws is
uniform. A line is the share of ranks in each bin, for one coefficient or other quantity; the band
holds 99 % of the bins of a right sampler. Of the problems, `mdp` has 5 states and 3 actions, and
`ragged` 4 features and 1 to 7 actions.

![Histograms of ranks for every sampler and problem](certificate.png)"""

SCORES = """\
## Oracles, Geweke's test and agreement

Every dot is an error in standard errors, brought to the scale of a standard normal. Where the
answer is known exactly, half of the proofs find errors of means, in sds of the posterior, and of
sds, as a share of them, of up to {:.1%}. The largest is {:.1%}, in `{}`.

![Errors in standard errors, by model and sampler](certificate-scores.png)"""

MUTANTS = """\
## Mutants

A test that cannot fail proves nothing. These {} are wrong on purpose, and a test that let one of
them pass would itself fail. In brackets the limit that they had to break."""

ALARMS = """\
## False alarms

{:,} checks are left to chance. Were everything right, {:.1g} of them would be expected to fail. The
smallest p-value is {:.1g}, where chance gives about {:.1g}; {:.1%} are below 0.01, where chance
gives 1 %. They are not independent of one another: means and sds come from the same draws, and
neighbouring coefficients go together."""

LIMITS = """\
Also not:

- Large problems. An exact answer, or thousands of repetitions, must be affordable: most problems
  here have a few coefficients, and fewer than a thousand decisions. What a sampler does on larger
  ones is shown by the diagnostics that come with every answer.
- Mistakes nobody thought of. A mutant is one mistake; the checks see others as well, but only those
  that move a mean, an sd, a rank or a moment.
- Other versions and machines than those above. `scripts/test` repeats the quick proofs wherever it
  runs.
- The model itself. Whether a controller decides as the model says is a question for its choices,
  which `rv.predict` and `rv.compare` help to ask.
- Speed, memory, the command line, the studio, figures and the paper's experiments; they have tests,
  but none of a law."""

REPEAT = """\
## Repeating it

```bash
scripts/certify         # the quick proofs; writes a page like this one into .venv/certificate
scripts/certify --full  # all of them, for an hour or more; goes on where it was; writes this page
scripts/test            # all other tests too; fails where a sampler or a model has no proof
```

Seeds are fixed: the same versions on the same kind of machine give the same numbers.
[certificate.json](certificate.json) holds all that was measured, and this page is made of it; a
test sees to it that the two agree."""

WORST = {
    "error": "error {:.1g} ({:.0e})",
    "law": "p {:.2g} ({:.0e})",
    "calibration": "p {:.1g} ({:.0e})",
    "same": "not the same",
    "breakdown": "it broke down",
}
"""How a number and its limit are written, where it is no z."""


def page(stored: dict[str, Any]) -> str:
    """The whole page."""
    parts = [
        f"# Certificate\n\n**{conclusion(stored)}.**",
        facts(stored),
        samplers(stored),
        calibration(stored),
        scores(stored),
    ]
    parts += [exactness(stored), mutants(stored), false_alarms(stored), not_covered(stored), REPEAT]
    return "\n\n".join(filter(None, parts)) + "\n"


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A table whose head is written as it looks, between bars."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def test_files(found: Found) -> str:
    """The files of tests that these proofs are in, as words."""
    names = {
        Path(proof["test"].partition("::")[0]).stem.removeprefix("test_").replace("_", " ")
        for proof, _ in found
    }
    return ", ".join(sorted(names))


def measure_text(how: str, worst: float | None, limit: float | None) -> str:
    """The worst that was measured, and its limit."""
    return WORST.get(how, "{:.1f} standard errors ({:.1f})").format(worst or 0.0, limit or 0.0)


def largest_z(found: Found) -> str:
    """The z that comes closest to its limit, how many there are, and that limit."""
    if not found:
        return ""
    each = max(
        (each for _, each in found), key=lambda each: (worst_of(each) or 0.0) / each["limit"]
    )
    return f"{worst_of(each):.1f} of {sum(len(e['z']) for _, e in found):,} ({each['limit']:.1f})"


def smallest_p(found: Found) -> str:
    """The same for p-values."""
    if not found:
        return ""
    each = min((each for _, each in found), key=lambda each: min(each["p"]) / each["limit"])
    return f"{min(each['p']):.2g} of {sum(len(e['p']) for _, e in found):,} ({each['limit']:.0e})"


def facts(stored: dict[str, Any]) -> str:
    """Versions, machine, date, time."""
    hours = sum(proof.get("seconds", 0.0) for proof in stored["proofs"]) / 3600
    rows = [
        ("revealed", f"{stored['revealed']}, sources `{stored['sources']}`"),
        ("with", ", ".join(f"{name} {version}" for name, version in stored["versions"].items())),
        ("on", stored["machine"]),
        ("finished", f"{stored['made']}, after {hours:.1f} hours of work"),
    ]
    return TOP + "\n\n" + table("certified | ", rows)


def samplers(stored: dict[str, Any]) -> str:
    """Every model with every sampler that is offered for it, and how each is proven."""
    rows, bare, waiting = [], unproven(stored), only_long(stored)
    for model, sampler in stored["offered"]:
        ways = (*SCORED, "calibration", "same", "mutant")
        mine = {
            way: [
                pair for pair in measures(stored["proofs"], way) if proves(pair[0], model, sampler)
            ]
            for way in ways
        }
        every = [pair for found in mine.values() for pair in found]
        name = sampler or ", ".join(
            sorted({proof["sampler"] for proof, _ in every if "sampler" in proof})
        )
        bits = f"{len(mine['same'])} bit for bit" if mine["same"] else ""
        agreement = "; ".join(filter(None, [largest_z(mine["agreement"]), bits]))
        caught = len({each["mutant"] for _, each in mine["mutant"]})
        rows.append(
            (
                model,
                f"`{name}`"
                + (
                    " (long proofs, not run)"
                    if [model, sampler] in waiting
                    else " **no proof**" * ([model, sampler] in bare)
                ),
                largest_z(mine["oracle"]),
                smallest_p(mine["calibration"]),
                largest_z(mine["Geweke"]),
                agreement,
                caught or "",
                test_files(every),
            )
        )
    return (
        SAMPLERS
        + "\n\n"
        + table(
            "model | sampler | oracle | calibration | Geweke | agreement | mutants | tests", rows
        )
    )


def calibration(stored: dict[str, Any]) -> str:
    """The longest run of every sampler on every problem."""
    found = longest_calibrations(stored)
    if not found:
        return ""
    rows = []
    for proof, each in found:
        p = each["p"]
        rows.append(
            (
                *model_sampler_problem(proof),
                f"{sum(each['counts'][0]):,}",
                len(p),
                f"{min(p):.2g}",
                f"{1 / (len(p) + 1):.2g}",
            )
        )
    every = [p for _, each in found for p in each["p"]]
    end = (
        f"Of {len(every):,} p-values the smallest is {min(every):.2g}, where chance gives about "
        f"{1 / (len(every) + 1):.2g}."
    )
    head = "model | sampler | problem | data sets | quantities | smallest p | chance gives about"
    return "\n\n".join([CALIBRATION, table(head, rows), end])


def scores(stored: dict[str, Any]) -> str:
    """All scores in a figure, and Geweke's test case by case."""
    found = list(measures(stored["proofs"], *SCORED))
    if not found:
        return ""
    rows = [
        (*model_sampler_problem(proof), largest_z([(proof, each)]))
        for proof, each in found
        if each["how"] == "Geweke"
    ]
    geweke = (
        table("model | sampler | problem | Geweke: furthest of all moments (allowed)", rows)
        if rows
        else ""
    )
    known = [
        (each["error"], proof["test"]) for proof, each in found if each.get("error") is not None
    ]
    middle, (most, test) = np.median([error for error, _ in known]), max(known)
    return "\n\n".join(
        filter(None, [SCORES.format(middle, most, test.removeprefix("tests/")), geweke])
    )


def exactness(stored: dict[str, Any]) -> str:
    """What samplers rest on, by part and limit."""
    groups: dict[tuple[str, str, float], Found] = {}
    for proof, each in measures(
        [p for p in stored["proofs"] if "part" in p], "error", "law", "same", *SCORED
    ):
        groups.setdefault((proof["part"], each["how"], each.get("limit", 0.0)), []).append(
            (proof, each)
        )
    rows = []
    for (part, how, limit), found in sorted(groups.items()):
        count = sum(
            each["count"] if "count" in each else len(each.get("p") or each["z"])
            for _, each in found
        )
        worst = (min if how == "law" else max)(worst_of(each) or 0.0 for _, each in found)
        same = how == "same"
        rows.append(
            (
                part,
                f"{count:,}" + " deaths" * same,
                "the same to the last bit" if same else measure_text(how, worst, limit),
                test_files(found),
            )
        )
    title = f"## {PARTS.capitalize()}\n\nSingle parts, against something exact.\n\n"
    return title + table("part | checks | worst (allowed) | tests", rows) if rows else ""


def mutants(stored: dict[str, Any]) -> str:
    """What was wrong on purpose, and the test that caught it."""
    rows: dict[tuple[str, str, str], str] = {}
    for proof, each in measures(stored["proofs"], "mutant"):
        of = ", ".join(
            filter(None, (proof.get("part") or proof.get("model"), proof.get("sampler")))
        )
        test = proof["test"].removeprefix("tests/").partition("[")[0]
        rows.setdefault((each["mutant"], of, f"`{test}`"), measure_text(**each["by"]))
    listed = [(mutant, of, seen, test) for (mutant, of, test), seen in sorted(rows.items())]
    return (
        MUTANTS.format(len(rows)) + "\n\n" + table("mutant | of | noticed by | test", listed)
        if rows
        else ""
    )


def false_alarms(stored: dict[str, Any]) -> str:
    """What chance alone would have done."""
    every = np.array(p_values(stored))
    if not every.size:
        return ""
    expected = sum(
        each["alarm"] for _, each in measures(stored["proofs"], *SCORED, "calibration", "law")
    )
    return ALARMS.format(
        every.size, expected, every.min(), 1 / (every.size + 1), np.mean(every < 0.01)
    )


def not_covered(stored: dict[str, Any]) -> str:
    """What a reader must not take for proven."""
    parts, groups = ["## Not covered"], dict[tuple[str, str], int]()
    for proof in stored["proofs"]:
        if proof["outcome"] != "passed":
            test = proof["test"].removeprefix("tests/").partition("[")[0]
            key = f"`{test}`", proof.get("why", proof["outcome"]).removeprefix("Skipped: ")
            groups[key] = groups.get(key, 0) + 1
    if groups:
        rows = [(test, cases, why) for (test, why), cases in groups.items()]
        parts += ["Proofs that are not in this certificate:", table("test | cases | because", rows)]
    if not any(proof["long"] for proof in stored["proofs"]):
        parts.append("The long proofs are not part of a quick run.")
    if stored["refused"]:
        parts += [
            "Refused, and so in need of no proof:",
            table("model | sampler | in these words", stored["refused"]),
        ]
    return "\n\n".join([*parts, LIMITS])


def main(evidence: str, to: str) -> int:
    """Make the page; 0 if all is proven."""
    if not Path(evidence).exists():
        print(f"revealed: there is no {evidence}; scripts/certify --full makes it", file=sys.stderr)
        return 2
    folder = Path(to)
    folder.mkdir(parents=True, exist_ok=True)
    stored = json.loads(json.dumps(summary(Path(evidence))))  # as it will be read
    lines = ",\n".join(json.dumps(proof, ensure_ascii=False) for proof in stored["proofs"])
    head = json.dumps(stored | {"proofs": []}, ensure_ascii=False, indent=1).removesuffix(
        '"proofs": []\n}'
    )
    (folder / "certificate.json").write_text(f'{head}"proofs": [\n{lines}\n]}}\n', encoding="utf-8")
    (folder / "certificate.md").write_text(page(stored), encoding="utf-8")
    figures(stored, folder)
    for proof in failed_proofs(stored):
        print(f"revealed: failed: {proof['test']}")
    waiting = only_long(stored)
    for model, sampler in unproven(stored):
        if [model, sampler] in waiting:
            continue
        print(f"revealed: no proof of {', '.join(filter(None, (model, sampler)))}")
    print(f"revealed: {conclusion(stored)}: {folder / 'certificate.md'}")
    if STORED_CERTIFICATE.exists():
        kept = json.loads(STORED_CERTIFICATE.read_text(encoding="utf-8"))["sources"]
        if kept != stored["sources"]:
            print(
                f"revealed: docs/certificate.md is of other sources, {kept}; these are "
                f"{stored['sources']}"
            )
    return 1 if conclusion(stored).startswith("NOT") else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
