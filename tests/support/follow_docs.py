"""Documents, read as a reader would: their blocks, and following a page line by line."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PORT = "8765"  # where pages open a studio; a free one stands in for it


class Block(NamedTuple):
    """One fenced block of a document."""

    language: str
    text: str
    line: int


def blocks(document: str) -> list[Block]:
    """The fenced blocks of a document in order."""
    return [
        Block(
            fence[2],
            re.sub(f"^{fence[1]}", "", fence[3], flags=re.MULTILINE),
            document.count("\n", 0, fence.start(3)),
        )
        for fence in FENCE.finditer(document)
    ]


def follow(path: Path, folder: Path) -> None:
    """Do what a page says, in the current folder and in order.

    Its Python runs in one session, its `sh` in a shell.
    A studio serves until Ctrl-C: it is started, waited for, and stopped at the end.
    """
    document = path.read_text(encoding="utf-8").replace(PORT, str(_free_port()))
    namespace: dict[str, object] = {"__name__": "__main__"}
    serving: list[subprocess.Popen[bytes]] = []
    try:
        for block in blocks(document):
            if block.language == "python":
                # padded, so that a traceback names the line of the document
                exec(compile("\n" * block.line + block.text, str(path), "exec"), namespace)
            elif block.language == "sh" and "revealed studio" in block.text:
                serving.append(_run_in_shell(f"exec {block.text}", folder))
                _wait_for(block.text, serving[-1])
            elif block.language == "sh":
                shell = _run_in_shell(f"set -e\n{block.text}", folder)
                told = shell.communicate()[0].decode()
                assert shell.returncode == 0, (
                    f"{path.name}, line {block.line}:\n{block.text}\n{told}"
                )
    finally:
        for process in serving:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=600)


def _run_in_shell(text: str, folder: Path) -> subprocess.Popen[bytes]:
    where = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("pip install"))
    return subprocess.Popen(
        ["bash", "-c", lines],
        cwd=folder,
        env={**os.environ, "PATH": where},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _wait_for(command: str, process: subprocess.Popen[bytes]) -> None:
    found = re.search(r"--port (\d+)", command)
    assert found is not None, "a studio that is followed names its port"
    for _ in range(6000):
        assert process.poll() is None, "the studio did not start"
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", int(found[1]))) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the studio did not open within ten minutes")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
