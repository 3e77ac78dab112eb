"""All benchmarks: measure those that are named, store what came out, write docs/benchmarks.md.

A run with the settings of a full one replaces the stored result, and the page is written again.
Quick runs, runs with other options, and runs without a peer that the stored result has go to a
new folder, or to that of --out. A run that fails or is interrupted leaves everything as it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import _record
from benchmarks._record import NAMES, RESULTS, Benchmark


def main(words: list[str]) -> int:
    """Run what the words of a command line ask for; returns the exit code.

    2 for what cannot be done as asked, 1 where something failed or a claim was missed, 130 when
    interrupted.
    """
    common = _make_parser()
    given, own = common.parse_known_args(words)
    if given.help and len(given.names) != 1:
        common.print_help()
        print("\nbenchmarks, and how long a full run takes:")
        for name in NAMES:
            print(f"  {name:13} {_record.load(name).title} ({_record.load(name).takes})")
        print("\nscripts/bench NAME --help shows the options of one.")
        return 0
    wrong = [name for name in given.names if name not in NAMES]
    if wrong:
        return _refuse(f"there is no benchmark {', '.join(wrong)}; choose from {', '.join(NAMES)}")
    if given.page and (given.names or own or given.quick or given.out or given.json):
        return _refuse(
            "--page stands alone: it writes the page from what is stored, and measures nothing"
        )
    try:
        if given.page:
            return _write_page()
        if len(given.names) == 1:
            _record.use_one_core()
            return _run_one(_record.load(given.names[0]), words)
        if own:
            return _refuse(
                f"{own[0]} is no option of all benchmarks; name the one that it is meant for"
            )
        out = tempfile.mkdtemp(prefix="bench-") if given.quick and given.out is None else given.out
        passed = [("--quick", given.quick), ("--json", given.json), (f"--out={out}", out)]
        return _run_several(given.names or NAMES, [word for word, wanted in passed if wanted])
    except KeyboardInterrupt:
        print("\ninterrupted; what was stored before stays as it was", file=sys.stderr)
        return 130


def _make_parser(
    benchmark: Benchmark | None = None, quick: bool = False
) -> argparse.ArgumentParser:
    """The parser of all benchmarks, or of one with its own options.

    `quick` sets the defaults that the help of one shows.
    """
    about = (__doc__ or "") if benchmark is None else f"{benchmark.title} ({benchmark.takes})."
    parser = argparse.ArgumentParser(
        "scripts/bench", description=about, add_help=benchmark is not None, allow_abbrev=False
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which benchmarks; default: all")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short version: fewer rounds, smaller problems",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go")
    parser.add_argument(
        "--json", action="store_true", help="print what is stored instead of tables"
    )
    if benchmark is None:
        parser.add_argument(
            "--page", action="store_true", help="only write the page from what is stored"
        )
        parser.add_argument(
            "--help", "-h", action="store_true", help="show this, or the options of one benchmark"
        )
        return parser
    for name, value in benchmark.settings(quick).items():
        help_text = f"{benchmark.options[name].help}; default: {value or 'none'}"
        parser.add_argument(
            f"--{name}",
            type=type(value),
            default=value,
            help=help_text,
            metavar=type(value).__name__.upper(),
        )
    return parser


def _run_one(benchmark: Benchmark, words: list[str]) -> int:
    """Measure one benchmark, in this process; returns the exit code.

    Only a full run with all peers of the stored result replaces it.
    """
    given = _make_parser(benchmark, "--quick" in words).parse_args(words)
    settings = {name: getattr(given, name) for name in benchmark.options}
    full = settings == benchmark.settings(quick=False)
    try:
        measured = _record.record(benchmark, settings)
    except (ValueError, FileNotFoundError) as reason:
        return _refuse(f"{benchmark.name}: {reason}")
    print(
        json.dumps(measured, indent=1, ensure_ascii=False)
        if given.json
        else f"{benchmark.tables(measured['result'])}\n"
    )
    folder = given.out
    if folder is None:
        # a run without a peer that the stored result has would lose that comparison
        before = (_record.stored(benchmark.name, RESULTS) or {"versions": {}})["versions"]
        absent = sorted(set(before) - set(measured["versions"]))
        if full and absent:
            print(
                f"{', '.join(absent)} took no part, as in the stored result, which is kept",
                file=sys.stderr,
            )
        folder = RESULTS if full and not absent else Path(tempfile.mkdtemp(prefix="bench-"))
    print(f"kept in {_record.store(measured, folder)}", file=sys.stderr)
    if folder.resolve() == RESULTS:
        _write_page()
    missed = benchmark.missed(measured["result"]) if full else ""
    if missed:
        print(f"{benchmark.name}: {missed}", file=sys.stderr)
    return int(bool(missed))


def _run_several(names: Sequence[str], words: list[str]) -> int:
    """Measure several, each in a process of its own; returns the exit code.

    Memory and threads of one then do not matter to the next.
    """
    failed = []
    for name in names:
        print(f"benchmark {name}", file=sys.stderr, flush=True)
        code = subprocess.run(
            [sys.executable, "-m", "benchmarks", name, *words], check=False
        ).returncode
        if code in (130, -2):
            raise KeyboardInterrupt
        if code:
            failed.append(name)
    if failed:
        print(f"failed, or missed what is claimed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _write_page() -> int:
    """Write the page from what is stored; returns the exit code."""
    from benchmarks import _page

    print(f"written: {_page.write()}", file=sys.stderr)
    return 0


def _refuse(sentence: str) -> int:
    """Print why something cannot be done; returns the exit code."""
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
