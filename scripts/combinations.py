"""The tables of docs/combinations.md, made from the registry of samplers.

`python scripts/combinations.py` writes them into the page; `tests/docs/test_combinations.py` fails
where the page and the registry differ.
"""

from __future__ import annotations

import re
from pathlib import Path

from revealed.samplers.model_kind import ModelKind, PriorKind
from revealed.samplers.registry import ANY_PRIOR, REGISTRY

PAGE = Path(__file__).parents[1] / "docs" / "combinations.md"
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
    "other": "another `Noise`",
    "correlated": "`CorrelatedNoise()`",
}
GROUPS = {"pooled": "`Pooled()`, `Separate()`", "hierarchical": "`Hierarchical()`"}


def rows() -> list[list[ModelKind]]:
    """Every kind of model: a row for its data, noise and groups, in it one for each prior.

    A ranking model has neither noise nor groups to choose.
    """
    parts = [
        {"data": data, "noise": noise, "groups": groups}
        for data in ("decisions", "trajectories")
        for noise in NOISES
        for groups in GROUPS
    ]
    parts.append({"data": "rankings", "noise": "normal", "groups": "pooled"})
    return [[ModelKind(prior=prior, **part) for prior in PRIORS] for part in parts]  # type: ignore[arg-type]


def as_table(head: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    marks = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, marks, *lines])


def combinations() -> str:
    """Which samplers take which model, the default first."""
    lines = []
    for row in rows():
        first, ranking = row[0], row[0].data == "rankings"
        cells = [
            ", ".join(f"`{entry.name}`" for entry in REGISTRY.entries_for(kind)) or "no"
            for kind in row
        ]
        noise = "" if ranking else NOISES[first.noise]
        groups = "" if ranking else GROUPS[first.groups]
        lines.append([DATA[first.data], noise, groups, *cells])
    return as_table(["data", "noise", "groups", *PRIORS.values()], lines)


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


TABLES = {"combinations": combinations, "samplers": samplers, "missing": missing}


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
