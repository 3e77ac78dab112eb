"""What the conformance suite has seen, in docs/conformance.json.

    python -m tests.conformance.record EVIDENCE

makes it of the lines that `pytest --evidence=EVIDENCE` wrote; `scripts/certify --conformance` runs
the quick part of the suite and then this, `scripts/certify --full` all of it. The tables of
docs/combinations.md are made from that file by `scripts/combinations.py`, which shows a record of
other sources as stale.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.conformance.cases import Pair, pairs
from tests.conformance.test_geweke import NOT_POSSIBLE
from tests.conformance.test_same_draws import DASK
from tests.support.evidence_log import is_current, read, sources

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "conformance.json"
CHECKS = ("oracle", "calibration", "Geweke", "resume", "threads", "Dask", "mutants")


def fingerprint() -> str:
    """A digest of the sources and of the suite; another one makes a record stale."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join([sources().encode(), *texts])).hexdigest()[:16]


def key(pair: Pair) -> str:
    """A pair in the file."""
    return f"{'|'.join(pair.kind)}|{pair.entry.name}"


def applies(pair: Pair, check: str) -> bool:
    """Whether a check can be made of a pair: the suite says why not where it cannot."""
    if check == "calibration":
        return pair.kind.prior != "flat"
    if check == "Geweke":
        return pair.kind.prior != "flat" and pair.entry.name not in NOT_POSSIBLE
    return check != "Dask" or pair.entry.name in DASK


def size(proof: dict[str, Any]) -> int:
    """How much a proof has measured: data sets, moments, numbers, or one mutant."""
    total = 0
    for each in proof["measured"]:
        if each["how"] == "calibration":
            total += sum(each["counts"][0])
        else:
            total += each.get("count", len(each.get("z", [0])))
    return total


def summarise(proofs: list[dict[str, Any]]) -> dict[str, Any]:
    """For each pair and check whether all that ran has passed, and how much was measured."""
    found: dict[str, dict[str, Any]] = {}
    for proof in proofs:
        if "check" not in proof or proof["outcome"] not in ("passed", "failed"):
            continue
        of_pair = found.setdefault(f"{proof['kind']}|{proof['sampler']}", {})
        for check in proof["check"].split(", "):
            seen = of_pair.setdefault(check, {"outcome": "passed", "tests": 0, "size": 0})
            seen["tests"] += 1
            seen["size"] += size(proof)
            if proof["outcome"] == "failed":
                seen["outcome"] = "failed"
    return dict(sorted(found.items()))


def main(evidence: str) -> int:
    """Write the file; 0 if every pair has passed something statistical and was resumed."""
    proofs = [proof for proof in read(Path(evidence)) if is_current(proof)]
    made = datetime.date.fromtimestamp(Path(evidence).stat().st_mtime)
    stored = {"made": str(made), "fingerprint": fingerprint(), "seen": summarise(proofs)}
    FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    lacks = [pair for pair in pairs() if not is_seen(stored, pair)]
    for pair in lacks:
        print(f"revealed: the conformance suite has not seen {pair} pass")
    return 1 if lacks else 0


def is_seen(stored: dict[str, Any], pair: Pair) -> bool:
    """Whether a pair has an exact posterior and a resumed run on record, and nothing that failed."""
    seen = stored["seen"].get(key(pair), {})
    failed = [check for check in seen.values() if check["outcome"] != "passed"]
    return {"oracle", "resume"} <= seen.keys() and not failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
