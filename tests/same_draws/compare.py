"""Are two files of digests the same?

    python compare.py old.json new.json [--arrays old-arrays new-arrays] [part of a case's name ...]

Arrays must be there under the same names with the same digests. Stats may have other names: every old one's digest must be somewhere among the new
stats or arrays of its case. What is only in the new file is counted, and no fault. Exit code 1 if anything differs or is missing. With --arrays
it says by how much arrays differ.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np


def arrays_of(case):
    return {name: each for name, each in case.items() if name not in ("seconds", "stats")}


def off(folders, case, name):
    """How far apart two arrays are, in words."""
    if not folders:
        return ""
    key = name.replace("/", "|")
    found = []
    for folder in folders:
        file = folder / f"{case.replace('/', '--').replace(' ', '_')}.npz"
        if not file.exists():
            return "(array not kept)"
        with np.load(file, allow_pickle=False) as stored:
            if key not in stored.files:
                return "(array not kept)"
            found.append(stored[key])
    a, b = found
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"({a.dtype} {a.shape} against {b.dtype} {b.shape})"
    if a.dtype.kind not in "fiub":
        return f"({int((a != b).sum())} of {a.size} differ)"
    a, b = a.astype(float), b.astype(float)
    where = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    far = np.abs(a - b)[where]
    first = "" if a.ndim < 2 or not where.any() else f", first at {np.argwhere(where)[0].tolist()}"
    return f"({int(where.sum())} of {a.size} differ, by up to {far.max() if far.size else 0.0:.3g}{first})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("some", nargs="*")
    parser.add_argument("--arrays", type=Path, nargs=2)
    given = parser.parse_args()
    old, new = json.loads(given.old.read_text()), json.loads(given.new.read_text())
    if old.get("_about") != new.get("_about"):
        print("made by ", old.get("_about"), "\nand by  ", new.get("_about"))
    same = wrong = missing = cases = more = 0
    for case, mine in old.items():
        if case.startswith("_") or (given.some and not any(s in case for s in given.some)):
            continue
        cases += 1
        theirs = new.get(case)
        if not isinstance(theirs, dict) or not isinstance(mine, dict):
            missing += 1
            print(f"MISSING  {case}: {'not run' if theirs is None else theirs if isinstance(theirs, str) else mine}")
            continue
        stats = theirs.get("stats", {})
        known = {*stats.values(), *arrays_of(theirs).values()}
        faults = []
        for name, sha in arrays_of(mine).items():
            if arrays_of(theirs).get(name) == sha:
                same += 1
            else:
                there = off(given.arrays, case, name) if name in theirs else "is not there"
                faults.append(f"{name} {there}")
        for name, sha in mine.get("stats", {}).items():
            if stats.get(name) == sha or sha in known:
                same += 1
            else:
                there = off(given.arrays, case, f"stats: {name}") if name in stats else "is nowhere"
                faults.append(f"stat {name} {there}")
        more += len(theirs) + len(stats) - len(mine) - len(mine.get("stats", {}))
        wrong += len(faults)
        for fault in faults[:12]:
            print(f"DIFFERS  {case}: {fault}")
        if len(faults) > 12:
            print(f"         {case}: and {len(faults) - 12} more")
    print(f"{cases} cases: {same} digests equal, {wrong} differ, {missing} cases missing or failed, {more} only in the new file")
    sys.exit(bool(wrong or missing))


if __name__ == "__main__":
    main()
