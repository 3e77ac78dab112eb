"""The first fit on a machine compiles for a while. A second process takes its share of that."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from understudy.kernels import _jit


def compile_elsewhere(module: str, function: str, loop: str) -> None:
    """Have another process call a function that compiles loops, unless `loop`, the first of them, is kept already.

    Nobody waits for it. What it has ready by the time it is needed is loaded, and what it has not is compiled here.
    """
    if _jit.compiled_before(loop) or (os.cpu_count() or 1) < 2 or not Path(sys.executable).name.startswith("python"):
        return
    found = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "NUMBA_CACHE_DIR": str(Path(_jit.FOLDER).parents[1]),
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import {function}; {function}()"],
        env=os.environ | found, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    threading.Thread(target=process.wait, daemon=True).start()
