"""Typed decorators for compiled loops, and where their machine code is kept.

Numba's own cache does not notice that a function *called from another file* has changed. The folder
therefore carries a digest of all sources that have compiled functions: change one, and everything
is compiled afresh.

Numba compiles what a loop calls into the loop's own machine code, optimised for that loop, but
under a name that all such copies share; in a process, the copy that was loaded first then serves
all loops. Were the compiler free to reorder sums or to round twice instead of once, copies would
differ in the last digit, and what else a process had run would decide the last digits of a draw.
So arithmetic is strict, copies are equal, and what needs vector instructions or fused steps says so
itself (`vectors.py`).
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def cache_folder() -> str:
    """The folder of compiled kernels, named after a digest of their sources.

    It lies in NUMBA_CACHE_DIR if that is set, else in the user's cache folder.
    """
    # All sources with compiled functions, in a fixed order: any change makes another folder.
    digest, kernels = hashlib.sha256(), Path(__file__).parent
    decorators = b"@compiled", b"@inlined", b"njit"
    for source in sorted(kernels.parent.rglob("*.py")):
        text = source.read_bytes()
        if source.parent == kernels or any(word in text for word in decorators):
            digest.update(text)
    root = (
        os.environ.get("NUMBA_CACHE_DIR")
        or os.environ.get("XDG_CACHE_HOME")
        or Path.home() / ".cache"
    )
    return str(Path(root) / "revealed" / digest.hexdigest()[:16])


CACHE_FOLDER = cache_folder()


def is_compiled(loop: str = "") -> bool:
    """Whether machine code of these very sources is kept: any, or that of one loop.

    A loop is named by module and function, such as "composite.run_cycles".
    """
    return any(Path(CACHE_FOLDER).rglob(f"{loop}-*.nbi" if loop else "*.nbi"))


def compile_for(loop: Any, arguments: tuple[Any, ...]) -> None:
    """Compile a loop for arguments of these types, without running it."""
    loop.compile(tuple(numba.typeof(argument) for argument in arguments))


# No NaN comes in, and the sign of zero does not matter; infinity does, as a log probability may be
# one. Flags that free the order or the rounding of sums have no place here: see the docstring.
NO_NAN_FLAGS = {"nnan", "nsz"}


def _compile(function: F, fastmath: set[str], callable_from_python: bool = True) -> F:
    """A compiled function whose machine code is kept in the cache folder.

    The wrapper for Python takes as long to compile as a small loop; C wrappers nobody needs.
    """
    # Numba reads the folder from its configuration when a function is decorated, not when it runs.
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE_FOLDER
    try:
        made = numba.njit(
            cache=True,
            nogil=True,
            error_model="numpy",
            fastmath=fastmath,
            no_cfunc_wrapper=True,
            no_cpython_wrapper=not callable_from_python,
        )(function)
    finally:
        numba.config.CACHE_DIR = previous
    return cast(F, made)


def compiled(function: F) -> F:
    """Compile a loop: no GIL, IEEE division, machine code kept between runs."""
    return _compile(function, set())


def compiled_internal(function: F) -> F:
    """Compile what only other loops call.

    As `compiled`, without the wrapper for Python: that takes as long to compile as a small loop.
    """
    return _compile(function, set(), callable_from_python=False)


def compiled_no_nan(function: F) -> F:
    """Compile a loop on numbers that are never NaN: as `compiled`, with `NO_NAN_FLAGS`."""
    return _compile(function, NO_NAN_FLAGS)


def inlined(function: F) -> F:
    """Name a part of one loop: it is written into its caller before that is compiled.

    Its arithmetic follows the caller's flags.
    """
    return cast(F, numba.njit(inline="always", error_model="numpy")(function))


# For functions that only other loops call: wrappers take as long to compile as a small loop.
NO_WRAPPERS = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}


def inlined_formula(function: F) -> F:
    """Compile a formula that stands in many loops, once; its machine code is written into them.

    By the optimiser, after each is compiled: that takes half as long as with `inlined`, which has
    every copy understood afresh. Numbers are never NaN.
    """
    decorate = numba.njit(
        forceinline=True, error_model="numpy", fastmath=NO_NAN_FLAGS, **NO_WRAPPERS
    )
    return cast(F, decorate(function))


@cache
def compile_formula(function: F) -> F:
    """Compile somebody else's formula, to be written into the loops that call it.

    As `inlined_formula`, but nothing is assumed of its numbers.
    """
    return cast(F, numba.njit(forceinline=True, error_model="numpy", **NO_WRAPPERS)(function))


def compiled_within(function: F) -> F:
    """Compile a short loop that is not kept by itself, but within the loops that call it.

    Numbers are never NaN.
    """
    decorate = numba.njit(nogil=True, error_model="numpy", fastmath=NO_NAN_FLAGS, **NO_WRAPPERS)
    return cast(F, decorate(function))
