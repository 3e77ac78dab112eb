"""The tables of docs/combinations.md, made from the registry of samplers.

`python scripts/combinations.py` writes them into the page; `tests/docs/test_combinations.py` fails
where the page and the registry differ.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from revealed.samplers.kinds import ANY_PRIOR
from revealed.samplers.model_kind import ModelKind, PriorKind
from revealed.samplers.registry import REGISTRY

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for the suite, which says what it tries
from tests.conformance import record  # noqa: E402
from tests.conformance.cases import Pair, pairs  # noqa: E402

PAGE = ROOT / "docs" / "combinations.md"
BEGIN, END = "<!-- from the registry: {} -->", "<!-- end -->"
PRIORS: dict[PriorKind, str] = {
    "normal": "`Normal(sd)`",
    "inferred sd": "`Normal(HalfStudentT())`",
    "flat": "`Flat()`",
}
DATA = {
    "decisions": "`Decisions`, transitions `Known()`",
    "trajectories": "`Trajectories`, transitions `Dirichlet()`",
    "rankings": "`Rankings`",
}
NOISES = {
    "normal": "`NormalNoise()`",
    "logit": "`LogitNoise()`",
    "student": "`StudentNoise(df)`",
    "student df": "`StudentNoise(Gamma())`",
    "other": "another `Noise`",
    "correlated": "`CorrelatedNoise()`",
}
LAPSES = {
    "lapses": "Lapse()",
    "lapses by group": 'Lapse(by="group")',
    "habit": 'Lapse(to="habit")',
}
OVER_TIME = {
    "constant": "`Constant()`",
    "random walk": "`RandomWalk()`",
    "reverting": "`MeanReverting()`",
    "switching": "`Switching()`",
}
GROUPS = {"pooled": "`Pooled()`, `Separate()`", "hierarchical": "`Hierarchical()`"}


def rows() -> list[list[ModelKind]]:
    """Every kind of model: a row for its data, noise and groups, in it one for each prior.

    A ranking model has no groups to choose.
    """
    parts = [
        {"data": data, "noise": noise, "groups": groups}
        for data in ("decisions", "trajectories")
        for noise in NOISES
        for groups in GROUPS
    ]
    parts += [
        {"data": data, "noise": noise, "groups": groups, "lapses": lapses}
        for data in ("decisions", "trajectories")
        for noise in ("normal", "logit", "student", "student df")
        for groups in GROUPS
        for lapses in LAPSES
        # rates by group come from a population
        if groups == "hierarchical" or lapses != "lapses by group"
    ]
    parts += [
        {"data": "decisions", "noise": noise, "groups": groups, "over_time": over_time} | lapses
        for over_time in ("random walk", "reverting", "switching")
        for groups in GROUPS
        for noise in NOISES
        for lapses in ({}, {"lapses": "lapses"})
        # what is not there for populations is told once, and noise that has no lapses is left out
        if not (groups == "hierarchical" and lapses)
        and (groups == "pooled" or noise == "normal" or over_time == "random walk")
        and not (lapses and noise in ("other", "correlated"))
    ]
    parts += [
        {"data": "rankings", "noise": noise, "groups": "pooled", "over_time": over_time}
        for over_time in ("constant", "random walk", "reverting")
        for noise in ("normal", "logit")
    ]
    return [[ModelKind(prior=prior, **part) for prior in PRIORS] for part in parts]  # type: ignore[arg-type]


def as_table(head: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    marks = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, marks, *lines])


def stored_record() -> dict[str, Any]:
    """What the conformance suite has seen; nothing where it was never run."""
    if not record.FILE.exists():
        return {"made": "never", "fingerprint": "", "seen": {}}
    return dict(json.loads(record.FILE.read_text(encoding="utf-8")))


def mark(pair: Pair) -> str:
    """A sampler's name, marked where the conformance suite has seen it pass with these sources."""
    stored = stored_record()
    name = f"`{pair.entry.name}`"
    if not record.is_seen(stored, pair):
        return f"{name} (not seen)"
    return f"{name} ✓" if stored["fingerprint"] == record.fingerprint() else f"{name} (stale)"


def conformance() -> str:
    """What the conformance suite has seen of each pair."""
    stored, lines = stored_record(), []
    stale = stored["fingerprint"] != record.fingerprint()
    words = {
        "oracle": "{} moments",
        "calibration": "{} data sets",
        "Geweke": "{} moments",
        "mutants": "{} caught",
    }
    for pair in pairs():
        seen, cells = stored["seen"].get(record.key(pair), {}), []
        for check in record.CHECKS:
            if not record.applies(pair, check):
                cells.append("")
            elif check not in seen:
                cells.append("not run")
            elif seen[check]["outcome"] != "passed":
                cells.append("**failed**")
            else:
                said = words.get(check, "same bits").format(f"{seen[check]['size']:,}")
                cells.append(f"stale: {said}" if stale else said)
        lines.append([str(pair.kind), f"`{pair.entry.name}`", *cells])
    table = as_table(["model", "sampler", *record.CHECKS], lines)
    return f"Seen on {stored['made']}{', with other sources: stale' if stale else ''}.\n\n{table}"


def combinations() -> str:
    """Which samplers take which model, the default first."""
    lines = []
    for row in rows():
        first, ranking = row[0], row[0].data == "rankings"
        cells = [
            ", ".join(mark(Pair(kind, entry)) for entry in REGISTRY.entries_for(kind)) or "no"
            for kind in row
        ]
        noise = NOISES[first.noise]
        if first.lapses != "no":
            # after the other arguments, where there are any
            begin = noise[: -len(")`")]
            comma = "" if begin.endswith("(") else ", "
            noise = f"{begin}{comma}lapse={LAPSES[first.lapses]})`"
        groups = "" if ranking else GROUPS[first.groups]
        # strategies that take turns are those of one controller
        if first.over_time == "switching" and first.groups == "pooled":
            groups = "`Pooled()`"
        lines.append([DATA[first.data], noise, groups, OVER_TIME[first.over_time], *cells])
    return as_table(["data", "noise", "groups", "over time", *PRIORS.values()], lines)


def samplers() -> str:
    """What each sampler does, and which arguments of `rv.fit` are its own."""
    lines = [
        [f"`{entry.name}`", entry.summary, ", ".join(f"`{name}`" for name in entry.takes)]
        for entry in REGISTRY.entries
    ]
    return as_table(["sampler", "what it does", "also takes"], lines)


def missing() -> str:
    """What no sampler takes, each with the nearest that one does, as an error says it."""
    lines = []
    for row in rows():
        absent = [kind for kind in row if not REGISTRY.entries_for(kind)]
        # a row without any sampler is one line, whatever the prior
        if len(absent) == len(ANY_PRIOR):
            absent = absent[:1]
        lines += [[str(kind), str(REGISTRY.nearest(kind))] for kind in absent]
    return as_table(["not there yet", "nearest"], lines)


TABLES = {
    "combinations": combinations,
    "conformance": conformance,
    "samplers": samplers,
    "missing": missing,
}


def with_tables(page: str) -> str:
    """The page with its tables made anew."""
    for name, make in TABLES.items():
        begin = BEGIN.format(name)
        block = re.compile(f"{re.escape(begin)}\n.*?{re.escape(END)}", re.DOTALL)
        if not block.search(page):
            raise ValueError(f"the page has no place for the table {name!r}: {begin} ... {END}")
        page = block.sub(lambda _: f"{begin}\n\n{make()}\n\n{END}", page)  # noqa: B023
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
