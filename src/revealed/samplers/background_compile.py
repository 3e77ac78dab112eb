"""Compiling in a second process what a first fit on a machine needs last.

A first fit compiles for a while, on one core. Where the environment variable
REVEALED_BACKGROUND_COMPILE is 1, `rv.fit` starts a second process that compiles its share of the
kernels meanwhile. The default is off: a library should not start processes behind its user's back.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from revealed.kernels import _compile
from revealed.kernels.augmentation_sweep import augmentation_sweep
from revealed.samplers.composite.sampler import compile_deferred_kernels


def start_background_compile() -> None:
    """Have another process compile the kernels that the sampler "composite" needs last.

    Nothing is started unless the environment asks for it, nor outside the main thread, where the
    fits of workers and of many controllers run; nor where the kernels are compiled already, where
    there is only one core, or where this is not a plain Python. Nobody waits for the process: what
    it has ready by the time it is needed is loaded, and the rest is compiled here.
    """
    if os.environ.get("REVEALED_BACKGROUND_COMPILE") != "1":
        return
    if threading.current_thread() is not threading.main_thread():
        return
    # the first kernel stands for them all: numba names its files module.function
    name = augmentation_sweep.__name__
    first = f"{augmentation_sweep.__module__.rpartition('.')[2]}.{name}"
    is_python = Path(sys.executable).name.startswith("python")
    if _compile.is_compiled(first) or (os.cpu_count() or 1) < 2 or not is_python:
        return
    function = compile_deferred_kernels
    # the other process must find the same package, and keep its code in the same place
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "NUMBA_CACHE_DIR": str(Path(_compile.CACHE_FOLDER).parents[1]),
    }
    program = f"from {function.__module__} import {function.__name__}; {function.__name__}()"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # somebody has to take note of its end, or it stays in the table of processes
    threading.Thread(target=process.wait, daemon=True).start()
