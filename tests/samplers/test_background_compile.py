"""What a second process compiles, where the environment asks for it, while a first fit compiles."""

import os
import subprocess
import sys
import threading

import pytest

import revealed as rv
from revealed.kernels import _compile
from revealed.samplers.background_compile import start_background_compile
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments

FIRST_FIT = """
import revealed as rv
from revealed.samplers.background_compile import compile_deferred_kernels, deferred_kernels

compile_deferred_kernels()
kernels = [kernel for kernel, _ in deferred_kernels()]
known = [len(kernel.overloads) for kernel in kernels]
d = rv.Decisions([[1.0, 0.0], [0.0, 1.0]] * 20, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6)
rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)), chains=1, progress=False)
print(known, [len(kernel.overloads) for kernel in kernels])
"""
SWITCH = "REVEALED_BACKGROUND_COMPILE"


def test_a_first_fit_needs_just_what_the_other_process_compiles() -> None:
    """Kernels are compiled for types of arguments: had the fit others, it would do so again.

    Or load them, where machine code is kept: a kernel then is there for two kinds of arguments too.
    """
    run = subprocess.run([sys.executable, "-c", FIRST_FIT], capture_output=True, text=True)
    assert (
        run.stdout.split("] ")[0] + "]\n" == run.stdout.split("] ")[1] == "[1, 1, 1, 1, 1, 1, 1]\n"
    ), run.stderr


class Started(Exception):
    """A process would have been started."""


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two cores on which nothing is compiled, and where starting a process fails."""

    def start(*_: object, **__: object) -> None:
        raise Started

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(_compile, "is_compiled", lambda loop="": False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv(SWITCH, "1")


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize(
    "why", ["not asked for", "switched off", "kept already", "one core", "not a Python"]
)
def test_no_process_is_started_where_it_would_not_help(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Started):
        start_background_compile()
    if why == "not asked for":
        monkeypatch.delenv(SWITCH)
    elif why == "switched off":
        monkeypatch.setenv(SWITCH, "0")
    elif why == "kept already":
        monkeypatch.setattr(_compile, "is_compiled", lambda loop="": True)
    elif why == "one core":
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
    else:
        monkeypatch.setattr(sys, "executable", "/usr/bin/a-program-with-python-inside")
    start_background_compile()


@pytest.mark.usefixtures("cold")
def test_no_process_is_started_outside_the_main_thread() -> None:
    """Workers of a cluster, and the fits of many controllers, run in other threads."""
    failed: list[BaseException] = []

    def start() -> None:
        try:
            start_background_compile()
        except Started as reason:
            failed.append(reason)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert failed == []


@pytest.mark.usefixtures("cold")
@pytest.mark.filterwarnings("ignore::revealed.UninformedWarning")
def test_fit_starts_it_and_building_a_sampler_does_not() -> None:
    d = rv.Decisions([[1.0, 0.0], [0.0, 1.0]] * 2, start=[0, 2, 4], chosen=[0, 1])
    model = rv.ChoiceModel(prior=rv.Normal(1.0))
    entry = REGISTRY.find("composite", kind_of(model))
    assert entry.build is not None
    entry.build(model.resolve(d), BuildArguments({}, draws=10))
    with pytest.raises(Started):
        rv.fit(d, model, sampler="composite", progress=False)
