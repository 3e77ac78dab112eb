"""What a second process compiles while the first fit of a machine compiles the rest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.engines import ahead
from understudy.kernels import _jit

FIRST_FIT = """
import understudy as us
from understudy.engines.blended import compile_late_loops, late_loops

compile_late_loops()
loops = [loop for loop, _ in late_loops()]
known = [len(loop.overloads) for loop in loops]
d = us.Decisions([[1.0, 0.0], [0.0, 1.0]] * 20, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6)
us.fit(d, us.Gaussian(1.0), chains=1, progress=False)
print(known, [len(loop.overloads) for loop in loops])
"""


def test_a_first_fit_needs_just_what_the_other_process_compiles(tmp_path: Path) -> None:
    """Loops are compiled for types of arguments: had the fit others, it would compile them again."""
    run = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True
    )  # fmt: skip
    assert run.stdout.split("] ")[0] + "]\n" == run.stdout.split("] ")[1] == "[1, 1, 1, 1, 1, 1]\n", run.stderr


class Started(Exception):
    """A process would have been started."""


@pytest.mark.parametrize("why", ["kept already", "one core", "not a Python"])
def test_no_process_is_started_where_it_would_not_help(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise Started

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(_jit, "compiled_before", lambda loop: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(Started):
        ahead.compile_elsewhere("understudy", "fit", "blend.sweep")
    if why == "kept already":
        monkeypatch.setattr(_jit, "compiled_before", lambda loop: True)
    elif why == "one core":
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
    else:
        monkeypatch.setattr(sys, "executable", "/usr/bin/a-program-with-python-inside")
    ahead.compile_elsewhere("understudy", "fit", "blend.sweep")
