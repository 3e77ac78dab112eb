"""Draws do not depend on what else a process has run.

Numba keeps a copy of a function in every loop that calls it, and in a process the copy that was
loaded first serves all loops: copies must compute the same, to the last bit. Two processes fit the
same models in opposite order; then every copy that is loaded first in one comes last in the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# Every sampler once, and a run that was stopped half-way; short ones of the paper's four.
MODELS = [
    "composite",
    "inferred prior scale",
    "px-both",
    "ibis",
    "laplace",
    "ghk-hmc",
    "da with noise",
    "unknown transitions",
    "population",
    "rankings",
]
PROGRAM = """
import hashlib, json, sys
from pathlib import Path
import numpy as np
import pytest
from tests.support.interrupts import interrupt
from tests.support.kill_and_resume import PROBLEMS

def digest(result):
    arrays = [np.ascontiguousarray(result[name]) for name in sorted(result)]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()

stop, folder, *names = sys.argv[1:]
if stop == "stop":
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, 1e-5, share=0.5)
        PROBLEMS["composite"](Path(folder))
found = {name: digest(PROBLEMS[name](None)) for name in names}
if stop == "resume":
    found["resumed"] = digest(PROBLEMS["composite"](Path(folder)))
print(json.dumps(found))
"""


def digests(what: str, folder: Path, names: list[str]) -> dict[str, str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "ignore",
        "REVEALED_KILL_AND_RESUME": str(folder),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, str(folder), *names],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_models_fitted_in_opposite_order_have_the_same_draws_and_a_resumed_run_too(
    tmp_path: Path,
) -> None:
    forwards = digests("stop", tmp_path, MODELS)
    backwards = digests("resume", tmp_path, MODELS[::-1])
    resumed = backwards.pop("resumed")
    assert backwards == forwards
    assert resumed == forwards["composite"]
