"""The cyclic collector is paused while a kernel is compiled, and left as it was found."""

import gc
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from revealed.kernels._collector import PauseCollector


def compilation(module: str) -> SimpleNamespace:
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    return SimpleNamespace(data={"dispatcher": dispatcher})


OURS, OTHER = compilation("revealed.kernels.hmc"), compilation("elsewhere.loops")


@pytest.fixture(params=[True, False])
def enabled(request: pytest.FixtureRequest) -> Iterator[bool]:
    was_enabled = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield bool(request.param)
    (gc.enable if was_enabled else gc.disable)()


def test_collector_is_off_within_a_kernel_and_as_before_afterwards(enabled: bool) -> None:
    pause = PauseCollector()
    pause.on_start(OURS)
    # A function that the kernel calls, of whatever package, is compiled within it.
    pause.on_start(OTHER)
    assert not gc.isenabled()
    pause.on_end(OTHER)
    assert not gc.isenabled()
    pause.on_end(OURS)
    assert gc.isenabled() == enabled


def test_collector_is_not_touched_by_functions_of_other_packages(enabled: bool) -> None:
    pause = PauseCollector()
    pause.on_start(OTHER)
    assert gc.isenabled() == enabled
    pause.on_end(OTHER)
    assert gc.isenabled() == enabled
