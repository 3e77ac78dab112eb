"""Nothing starts a process unless it is asked to.

A library that starts processes surprises its users: on shared machines, in notebooks, in workers
that may not. Compiling in the background is asked for by REVEALED_BACKGROUND_COMPILE=1.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

REFUSE_PROCESSES = """
import multiprocessing, os, subprocess

def refuse(*arguments, **options):
    raise RuntimeError("a process is started")

subprocess.Popen = refuse
for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"):
    setattr(os, name, refuse)
multiprocessing.Process.start = refuse
for start in ("fork", "spawn", "forkserver"):
    multiprocessing.get_context(start).Process.start = refuse
"""
FIT = """
import numpy as np
import revealed as rv
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments

rng = np.random.default_rng(1)
decisions = rv.Decisions(rng.standard_normal((60, 2)), np.arange(0, 61, 3), [0, 1] * 10)
model = rv.ChoiceModel(prior=rv.Normal(1.0))
REGISTRY.find("auto", kind_of(model)).build(model.resolve(decisions), BuildArguments({}, 20))
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore", rv.NotConvergedWarning)
    rv.fit(decisions, model, draws=20, warmup=20, chains=2, progress=False)
print("done")
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "REVEALED_BACKGROUND_COMPILE"}
    return subprocess.run(
        [sys.executable, "-c", REFUSE_PROCESSES + program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_importing_building_a_sampler_and_fitting_start_no_process() -> None:
    done = run(FIT)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run(['true'])",
        "os.system('true')",
        "os.fork()",
        "multiprocessing.Process().start()",
        "multiprocessing.get_context('spawn').Process().start()",
    ],
)
def test_started_process_is_caught(start: str) -> None:
    assert "a process is started" in run(start).stderr
