"""What is shipped: the sdist, the wheel, and a core that works where no extra is installed."""

from __future__ import annotations

import ast
import email
import os
import re
import resource
import shlex
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Sequence
from email.message import Message
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import revealed
from tests.support.follow_docs import blocks

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# imported, and installed with another distribution that is declared
COMES_WITH = {
    "llvmlite": "numba",
    "xarray": "arviz",
    "pydantic": "fastapi",
    "starlette": "fastapi",
}
MAX_MEGABYTES = 950  # of an installation without extras
MAX_IMPORT_SECONDS = 1.0
MAX_FIT_SECONDS = 3.0  # in a second process, which compiles nothing


class Built(NamedTuple):
    """The sdist, unpacked, and the wheel that was built from it."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    _hatch(ROOT, folder, "sdist")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    sdist = folder / f"revealed-{revealed.__version__}"
    _hatch(sdist, folder, "wheel")
    return Built(sdist, next(folder.glob("*.whl")))


def _hatch(project: Path, out: Path, target: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out],
        cwd=project,
        check=True,
    )


@pytest.fixture(scope="module")
def metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def ten_lines() -> str:
    """The README's example."""
    shown = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    return next(block.text for block in shown if "rv.fit(" in block.text)


# What is in them


def test_sdist_has_all_that_building_testing_and_the_pages_need(built: Built) -> None:
    folders = ("src", "tests", "docs", "scripts", "benchmarks", ".ci")
    kept = {f"{folder}/{name}" for folder in folders for name in files(ROOT / folder)}
    kept |= {
        path.name
        for path in ROOT.iterdir()
        if path.suffix in (".md", ".toml", ".txt", ".yml", ".cff")
    }
    assert files(built.sdist) == {*kept, "LICENSE", ".gitignore", "PKG-INFO"}
    assert os.access(built.sdist / "scripts" / "test", os.X_OK)


def test_wheel_is_the_package_to_the_last_byte(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        inside = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    assert {"revealed/py.typed", "revealed/studio/static/index.html"} <= set(inside)
    assert inside == {
        name: (source / name).read_bytes() for name in files(source) if ".egg-info" not in name
    }
    assert {Path(name).suffix for name in inside} == {
        ".py",
        ".typed",
        ".html",
        ".css",
        ".js",
        ".svg",
    }


def test_metadata_lists_requirements_and_extras(metadata: Message) -> None:
    assert metadata["Version"] == revealed.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert set(metadata.get_all("Provides-Extra", [])) == set(EXTRAS)
    assert "## Ten lines" in str(metadata.get_payload())  # the README is its description
    asked = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(asked) == sorted(PROJECT["dependencies"])


def test_all_imports_are_declared() -> None:
    """By the core or by an extra: what nobody declares would be installed by luck."""
    named = [
        Requirement(line).name
        for line in (*PROJECT["dependencies"], *(line for each in EXTRAS.values() for line in each))
    ]
    declared = {canonicalize_name(name) for name in named}
    of = packages_distributions()
    lost = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += (
                [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            )
            for top in (
                {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"revealed"}
            ):
                if not declared & {
                    canonicalize_name(each) for each in of.get(COMES_WITH.get(top, top), [])
                }:
                    lost.add(f"{path.name}: {top}")
    assert lost == set()


# The core, with no extra


def core() -> set[str]:
    """The distributions that an installation without extras brings."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in PROJECT["dependencies"]]
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        if name in found or (need.marker and not need.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        try:
            waiting += [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            pytest.fail(f"{name} is needed and not installed")
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder which, in PYTHONPATH, hides every package that the core does not bring."""
    kept = core()
    hidden = sorted(
        name
        for name, owners in packages_distributions().items()
        if name != "revealed" and not kept & {canonicalize_name(owner) for owner in owners}
    )
    assert {
        "fastapi",
        "uvicorn",
        "sqlalchemy",
        "distributed",
        "gymnasium",
        "arviz",
        "pandas",
        "polars",
    } <= set(hidden)
    assert not {"numpy", "numba", "pyarrow", "typer"} & set(hidden)
    folder = tmp_path_factory.mktemp("alone")
    (folder / "sitecustomize.py").write_text(
        f"""
import sys
from importlib.machinery import PathFinder

class Core(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {set(hidden)!r}:
            return None
        return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Core
"""
    )
    return folder


def run(
    alone: Path, package: Path, words: Sequence[str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Python with these words, where only the core is installed and the package is in a folder."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(alone), str(package)]),
        "MPLBACKEND": "agg",
        "COLUMNS": "200",
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_installed_wheel_runs_and_names_the_extras(
    built: Built, alone: Path, tmp_path: Path
) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(target), str(built.wheel)], check=True, capture_output=True)
    where = run(alone, target, ["-c", "import revealed; print(revealed.__file__)"], tmp_path).stdout
    assert Path(where.strip()).is_relative_to(target)
    shown = run(alone, target, ["-m", "revealed", "--version"], tmp_path)
    assert shown.stdout == f"revealed {revealed.__version__}\n", shown.stderr
    told = run(alone, target, ["-m", "revealed", "doctor"], tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    for extra in ("arviz", "studio", "cluster", "gym", "bench"):
        assert f'pip install "revealed[{extra}]" adds' in " ".join(told.stdout.split())


COMMANDS = """\
simulate --states 3 --actions 2 --decisions 40 --out decisions.csv
fit decisions.csv --sum-to-zero --out posterior.nc --draws 60 --warmup 20 --chains 2
predict posterior.nc decisions.csv --out predictions.parquet
report posterior.nc --out report.html
rank results.csv --out ranking.csv --plot ranking.png --draws 60 --warmup 20 --chains 2
play player.nc --steps 5 --out game.jsonl --no-progress
replay game.jsonl --out game.gif
"""


def test_core_works_without_extras(alone: Path, tmp_path: Path) -> None:
    """The ten lines of the README, every command that needs no extra, and the rest of the API."""
    script = f"""{ten_lines()}
import warnings
warnings.simplefilter("ignore")
rv.compare(dict(one=post, two=post))
rv.sklearn.ChoiceClassifier(rv.ChoiceModel(prior=rv.Normal(1.0)), draws=20, warmup=20, chains=1).fit(d)
rv.plots.posterior_densities(post)
world = rv.environments.Tetris()
seen = world.decisions(world.simulate(rng, (-3.0, -15.0, -1.0), 30))
rv.fit(seen, draws=20, warmup=20, chains=1).save("player.nc")
open("results.csv", "w").write("game,player,position\\n1,ann,1\\n1,bob,2\\n2,bob,1\\n2,ann,2\\n")
from revealed.cli import app
for line in {COMMANDS.splitlines()!r}:
    try:
        app(line.split())
    except SystemExit as end:
        assert not end.code, line
"""
    done = run(alone, ROOT / "src", ["-c", script], tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"predictions.parquet", "report.html", "ranking.png", "game.gif"} <= {
        path.name for path in tmp_path.iterdir()
    }


DECISIONS = "decision,action,chosen,x\n0,a,True,1.0\n0,b,False,0.0\n"
NEEDS_EXTRA = {
    "revealed studio --port 0": "revealed[studio]",
    "revealed fit decisions.csv --workers 1 --out p.nc": "revealed[cluster]",
    "revealed fit decisions.csv --cluster tcp://127.0.0.1:1 --out p.nc": "revealed[cluster]",
    "import revealed.environments.tetris.gym": "revealed[gym]",
    "import revealed as rv; rv.to_dataframe(rv.read_csv('decisions.csv'), 'pandas')": "pandas",
    "import revealed as rv; rv.to_dataframe(rv.read_csv('decisions.csv'), 'polars')": "polars",
    "import numpy as np, revealed as rv; d = rv.read_csv('decisions.csv');"
    "rv.ChoicePosterior({'value': np.zeros((1, 4, 1))}, d, rv.ChoiceModel(), 'da').to_arviz()": (
        "revealed[arviz]"
    ),
}


@pytest.mark.parametrize("command", NEEDS_EXTRA)
def test_missing_extra_is_named_in_one_sentence(command: str, alone: Path, tmp_path: Path) -> None:
    (tmp_path / "decisions.csv").write_text(DECISIONS)
    typed = command.startswith("revealed ")
    words = ["-m", *shlex.split(command)] if typed else ["-c", command]
    done = run(alone, ROOT / "src", words, tmp_path)
    said = done.stderr if typed else done.stderr.splitlines()[-1]
    extra = NEEDS_EXTRA[command]
    wanted = f'"{extra}"' if "[" in extra else extra
    assert re.fullmatch(
        rf"[^\n]+ needs \w+, which is not installed; pip install {re.escape(wanted)}\n?", said
    ), done.stderr
    assert done.returncode == (2 if typed else 1)
    assert [path.name for path in tmp_path.iterdir()] == ["decisions.csv"]


@pytest.mark.parametrize(("option", "extra"), [("--database", "studio"), ("--cluster", "cluster")])
def test_doctor_names_a_missing_extra(option: str, extra: str, alone: Path, tmp_path: Path) -> None:
    done = run(
        alone, ROOT / "src", ["-m", "revealed", "doctor", option, "tcp://127.0.0.1:1"], tmp_path
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert f'which is not installed; pip install "revealed[{extra}]"' in " ".join(
        done.stdout.split()
    )


# A fresh environment


@pytest.mark.slow
def test_fresh_environment_is_small_and_quick(built: Built, tmp_path: Path) -> None:
    """The core alone: its size, the time of an import, and of a fit in a second process.

    Times are processor time, which others at work on this machine do not lengthen much.
    """
    home, python = tmp_path / "home", tmp_path / "venv" / "bin" / "python"
    home.mkdir()
    environment = {
        **{
            k: v
            for k, v in os.environ.items()
            if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        },
        "HOME": str(home),
    }

    def seconds(*words: object) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [str(word) for word in words],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    seconds(sys.executable, "-m", "venv", tmp_path / "venv")
    seconds(python, "-m", "pip", "install", "-c", ROOT / "constraints.txt", built.wheel)
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    blocks_of_512 = sum(path.lstat().st_blocks for path in site.rglob("*"))
    assert blocks_of_512 * 512 / 1e6 < MAX_MEGABYTES
    assert min(seconds(python, "-c", "import revealed") for _ in range(3)) < MAX_IMPORT_SECONDS
    began = time.monotonic()
    first = seconds(python, "-c", ten_lines())
    print(
        f"the first fit, with compilation: {first:.0f} s of processor time, "
        f"{time.monotonic() - began:.0f} s by the clock"
    )
    assert min(seconds(python, "-c", ten_lines()) for _ in range(2)) < min(MAX_FIT_SECONDS, first)
