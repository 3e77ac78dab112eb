"""What a fit needs of memory is told before it starts: never less than it takes, nor several times as much; and one that cannot have it is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import understudy as us
from understudy.engines import memory

PROGRAM = """
import json, sys, warnings
from pathlib import Path
import numpy as np
import understudy as us

warnings.simplefilter("ignore")
engine, count, width, draws = sys.argv[1], *map(int, sys.argv[2:5])


def simulated(count):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count * 20, width))
    best = (rows.sum(axis=1) + rng.standard_normal(count * 20)).reshape(count, 20).argmax(axis=1)
    return us.Decisions(rows, np.arange(count + 1) * 20, best)


def held(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))


how = {"engine": engine, "warmup": 20, "chains": 2, "progress": False, "prior": us.Gaussian(4.0)}
us.fit(simulated(1000), draws=200, **how)  # loads all code
decisions = simulated(count)
Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
before = held("VmRSS")
us.fit(decisions, draws=draws, **how)
needed = us.memory_needed(decisions, engine, draws, chains=2)
print(json.dumps({"took": held("VmHWM") - before, "needed": needed, "rows": decisions.rows.nbytes, "draws": 2 * draws * width * 8}))
"""


only_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux tells it"
)


def measure(*words: object) -> dict[str, float]:
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


@only_linux
@pytest.mark.parametrize(
    ("engine", "count", "width", "draws"),
    [
        ("laplace", 40_000, 5, 300),
        pytest.param("blended", 20_000, 10, 50, marks=pytest.mark.slow),
        pytest.param("da", 40_000, 10, 50, marks=pytest.mark.slow),
        pytest.param("blended", 50, 10, 100_000, marks=pytest.mark.slow),
        pytest.param("da", 50, 10, 100_000, marks=pytest.mark.slow),
        pytest.param("laplace", 1000, 10, 50_000, marks=pytest.mark.slow),
        pytest.param("ibis", 60, 10, 5_000, marks=pytest.mark.slow),
    ],
)
def test_a_fit_takes_what_was_foretold(engine: str, count: int, width: int, draws: int) -> None:
    found = measure(engine, count, width, draws)
    assert found["took"] < found["needed"], found
    assert found["needed"] - memory.ALWAYS < 6.0 * found["took"], found


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((60, 2))
    decisions = us.Decisions(rows, np.arange(21) * 3, np.zeros(20, int))
    with pytest.raises(
        ValueError, match=r"this would need about .* GB of memory, and .* GB are free; keep fewer draws"
    ):
        us.fit(decisions, draws=10**11)
    monkeypatch.setattr(memory, "free_memory", lambda: 50e6)
    with pytest.raises(ValueError, match=r"about 0.1 GB of memory, and 0.1 GB are free"):
        us.fit(decisions)
    monkeypatch.setattr(memory, "free_memory", lambda: None)  # nobody tells: it is tried
    us.fit(decisions, us.Gaussian(1.0))


def test_limits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tightest of the machine's, the group's and the process's own."""
    files = {
        "/proc/meminfo": ["MemTotal: 9000000 kB", "MemAvailable: 4000000 kB"],
        "/sys/fs/cgroup/memory.max": ["3000000000"],
        "/sys/fs/cgroup/memory.current": ["1000000000"],
    }
    monkeypatch.setattr(memory, "_lines", lambda path: files.get(path, []))
    assert memory.free_memory() == 2e9
    files["/sys/fs/cgroup/memory.max"] = ["max"]
    assert memory.free_memory() == 4096e6
    files["/proc/self/limits"] = ["Max address space         1500000000           1500000000           bytes"]
    files["/proc/self/statm"] = ["100000 0 0"]
    assert memory.free_memory() == pytest.approx(1.5e9 - 1e5 * 4096)
    files.clear()
    assert memory.free_memory() is None


def test_a_folder_needs_its_largest_piece(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 2))
    us.to_file(us.Decisions(rows, np.arange(101) * 3, np.zeros(100, int)), tmp_path / "a.parquet")
    assert us.memory_needed(us.from_folder(tmp_path), draws=10) < 2.5e9
