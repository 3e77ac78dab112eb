"""The memory that a fit needs is estimated before it starts.

Never less than it takes, nor several times as much; a fit that cannot have it is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed.samplers import memory

PROGRAM = """
import json, sys, warnings
from pathlib import Path
import numpy as np
import revealed as rv

warnings.simplefilter("ignore")
sampler, count, width, draws = sys.argv[1], *map(int, sys.argv[2:5])


def simulated(count):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count * 20, width))
    best = (rows.sum(axis=1) + rng.standard_normal(count * 20)).reshape(count, 20).argmax(axis=1)
    return rv.Decisions(rows, np.arange(count + 1) * 20, best)


def held(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))


model = rv.ChoiceModel(prior=rv.Normal(2.0))
how = {"sampler": sampler, "warmup": 20, "chains": 2, "progress": False}
rv.fit(simulated(1000), model, draws=200, **how)  # loads all code
decisions = simulated(count)
Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
before = held("VmRSS")
rv.fit(decisions, model, draws=draws, **how)
needed = rv.estimate_memory(decisions, model, sampler, draws, chains=2)
print(json.dumps({"took": held("VmHWM") - before, "needed": needed}))
"""


only_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux tells it"
)


def measure(*words: object) -> dict[str, float]:
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return dict(
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    )


@only_linux
@pytest.mark.parametrize(
    ("sampler", "count", "width", "draws"),
    [
        ("laplace", 20_000, 5, 100),
        pytest.param("laplace", 40_000, 5, 300, marks=pytest.mark.slow),
        pytest.param("composite", 20_000, 10, 50, marks=pytest.mark.slow),
        pytest.param("da", 40_000, 10, 50, marks=pytest.mark.slow),
        pytest.param("composite", 50, 10, 100_000, marks=pytest.mark.slow),
        pytest.param("da", 50, 10, 100_000, marks=pytest.mark.slow),
        pytest.param("laplace", 1000, 10, 50_000, marks=pytest.mark.slow),
        pytest.param("ibis", 60, 10, 5_000, marks=pytest.mark.slow),
    ],
)
def test_fit_takes_no_more_memory_than_estimated(
    sampler: str, count: int, width: int, draws: int
) -> None:
    found = measure(sampler, count, width, draws)
    assert found["took"] < found["needed"], found
    assert found["needed"] - memory.MEMORY.always < 6.0 * found["took"], found


def test_fit_that_needs_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((60, 2))
    decisions = rv.Decisions(rows, np.arange(21) * 3, np.zeros(20, int))
    with pytest.raises(
        ValueError,
        match=r"this would need about .* GB of memory, and .* GB are free; keep fewer draws",
    ):
        rv.fit(decisions, draws=10**11)
    monkeypatch.setattr(memory, "free_memory", lambda: 50e6)
    with pytest.raises(ValueError, match=r"about 0.1 GB of memory, and 0.1 GB are free"):
        rv.fit(decisions)
    monkeypatch.setattr(memory, "free_memory", lambda: None)  # nobody tells: it is tried
    rv.fit(decisions, rv.ChoiceModel(prior=rv.Normal(1.0)))


def test_free_memory_is_the_smallest_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the machine, of the control group and of the process itself."""
    files = {
        "/proc/meminfo": ["MemTotal: 9000000 kB", "MemAvailable: 4000000 kB"],
        "/sys/fs/cgroup/memory.max": ["3000000000"],
        "/sys/fs/cgroup/memory.current": ["1000000000"],
    }
    monkeypatch.setattr(memory, "_lines", lambda path: files.get(path, []))
    assert memory.free_memory() == 2e9
    files["/sys/fs/cgroup/memory.max"] = ["max"]
    assert memory.free_memory() == 4096e6
    files["/proc/self/limits"] = [
        "Max address space         1500000000           1500000000           bytes"
    ]
    files["/proc/self/statm"] = ["100000 0 0"]
    assert memory.free_memory() == pytest.approx(1.5e9 - 1e5 * 4096)
    files.clear()
    assert memory.free_memory() is None


def test_memory_of_a_folder_is_that_of_its_largest_chunk(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 2))
    rv.write_file(
        rv.Decisions(rows, np.arange(101) * 3, np.zeros(100, int)), tmp_path / "a.parquet"
    )
    assert rv.estimate_memory(rv.scan_parquet(tmp_path), draws=10) < 2.5e9
