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
from typing import Any

import numpy as np

from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels import _compile
from revealed.kernels.coordinates import coordinates_from_value, value_from_coordinates
from revealed.kernels.independence import draw_from_mixture, mixture_log_density
from revealed.kernels.interweaving import interweave
from revealed.kernels.parameter_expansion import draw_expanded_value
from revealed.kernels.utilities import draw_utilities
from revealed.models.priors import Normal, resolve_prior
from revealed.samplers.composite.proposal import null_mixture
from revealed.samplers.composite.sampler import augmentation_workspace, transform_arrays
from revealed.samplers.composite.transform import WhiteningTransform
from revealed.samplers.data_augmentation import AugmentationOptions, DataAugmentationSampler


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
    name = draw_utilities.__name__
    first = f"{draw_utilities.__module__.rpartition('.')[2]}.{name}"
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


def compile_deferred_kernels() -> None:
    """Compile what a first fit needs last, sweeps and mixtures.

    A second process calls it by name.
    """
    for kernel, arguments in deferred_kernels():
        _compile.compile_for(kernel, arguments)


def deferred_kernels() -> list[tuple[Any, tuple[Any, ...]]]:
    """These kernels, each with arguments of the types that a fit gives it."""
    # Types matter, sizes do not: one decision, two actions, a sum-to-zero block.
    decisions = Decisions(np.eye(2), [0, 2], [0], blocks=[Block("value", 2, True)])
    prior = resolve_prior(Normal(1.0), decisions)
    sampler = DataAugmentationSampler.build("px-both", decisions, prior, AugmentationOptions())
    rng, one, square = np.random.default_rng(0), np.ones(1), np.ones((1, 1))
    augmentation, mixture = augmentation_workspace(sampler, prior.basis, True), null_mixture(1)
    transform = transform_arrays(
        WhiteningTransform.from_precision(prior, prior.mean, square), prior
    )
    return [
        (
            draw_utilities,
            (
                rng,
                augmentation.mu,
                augmentation.start,
                augmentation.chosen_row,
                augmentation.rivals,
                one,
                augmentation.w,
            ),
        ),
        (
            draw_expanded_value,
            (
                rng,
                augmentation.move,
                augmentation.design,
                augmentation.expansion_workspace,
                one,
                augmentation.w,
            ),
        ),
        (
            interweave,
            (
                rng,
                augmentation.interweaving,
                augmentation.start,
                augmentation.chosen_row,
                augmentation.interweaving_workspace,
                1.0,
                one,
                augmentation.w,
            ),
        ),
        (value_from_coordinates, (transform, one, one, one)),
        (coordinates_from_value, (transform, one, one, one)),
        (draw_from_mixture, (rng, mixture, one, one)),
        (mixture_log_density, (mixture, one, one)),
    ]
