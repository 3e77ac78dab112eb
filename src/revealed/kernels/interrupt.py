"""A flag that compiled loops look at, so that Ctrl-C need not wait for them.

Python delivers a signal between two of its own instructions, and a compiled loop may last for
minutes. So whoever waits for loops in threads raises the flag, and each loop returns at its next
look: once a move, a step of a path, or a group. What it has written by then is worth nothing, and
whoever called it must ask `stopped_since` before using any of it.

The flag is one byte of the process. Its address differs from process to process and machine code is
kept on disk, so that loops know it by a name, which is looked up when they are loaded.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

_symbol = "revealed_stop_flag"
_flag = ctypes.c_uint8(0)
llvmlite.binding.add_symbol(_symbol, ctypes.addressof(_flag))
# how often the flag was raised, how many hold it up now, and who may change either
_raised, _holders, _lock = 0, 0, threading.Lock()


def stop_requested() -> bool:
    """Whether loops are to return at once.

    In Python and in compiled loops.
    """
    return bool(_flag.value)


@intrinsic  # type: ignore[untyped-decorator]
def _read_flag(typing_context: Any) -> Any:
    """The flag, read anew at each call: a loop must not keep it in a register."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        known = builder.module.globals.get(_symbol)
        if known is None:
            known = ir.GlobalVariable(builder.module, ir.IntType(8), _symbol)
        value = builder.load_atomic(known, "monotonic", 1)
        return builder.icmp_unsigned("!=", value, ir.Constant(ir.IntType(8), 0))

    return types.boolean(), generate


@overload(stop_requested, inline="always")  # type: ignore[untyped-decorator]
def _stop_requested_in_loops() -> Callable[[], bool]:
    return lambda: _read_flag()


class LoopsStopped(KeyboardInterrupt):
    """Ctrl-C, as those see it whose loops were told to return: what these wrote is not to be used.

    All runs of the process see it, also those of threads that Python sends no signal to.
    """


def count_stops() -> int:
    """A number to hand to `stopped_since` later.

    Raises LoopsStopped while the flag is up.
    """
    with _lock:
        if _holders:
            raise LoopsStopped
        return _raised


def stopped_since(count: int) -> bool:
    """Whether the flag was raised since `count_stops` gave this number."""
    return count != _raised


def raise_if_stopping() -> None:
    """Raise LoopsStopped while the flag is up: for loops of Python around short compiled ones."""
    if stop_requested():
        raise LoopsStopped


@contextmanager
def stopped_loops() -> Iterator[None]:
    """Have all compiled loops of this process return, for as long as the block lasts."""
    global _raised, _holders
    with _lock:
        _raised, _holders = _raised + 1, _holders + 1
        _flag.value = 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders:
                _flag.value = 0
