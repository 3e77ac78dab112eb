"""One typed decorator for compiled loops, and where their machine code is kept.

Numba's own cache does not notice that a function *called from another file* has changed. The folder
therefore carries a digest of all kernel sources: change one, and everything is compiled afresh.

Numba compiles what a loop calls into the loop's own machine code, optimised for that place, but under a name that all such copies share;
in a process, the copy that was loaded first then serves all loops. Copies of arithmetic in a loose order differ in the last digit. So what else a
process had run would decide the last digits of a draw, and a run resumed in a new process would go on to other draws. Here
every loop keeps to its own copies.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.codegen import CPUCodeLibrary

F = TypeVar("F", bound=Callable[..., object])


def cache_folder() -> str:
    """Where compiled kernels live: NUMBA_CACHE_DIR if the user set it, else the user's cache folder."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(root) / "understudy" / digest.hexdigest()[:16])


FOLDER = cache_folder()


def _keep_copies_private(library: Any) -> None:
    """Hide the copies of our functions that a compiled loop holds from other loops; what is linked into these stays as it was."""
    held = [function for function in library._final_module.functions if not function.is_declaration]
    copies = [f for f in held if f.linkage.name == "linkonce_odr" and "understudy" in f.name]
    if copies:
        shared = library._final_module.clone()
        for function in held:
            if function.linkage.name == "external":
                shared.get_function(function.name).linkage = "linkonce_odr"
        library._shared_module = shared
    for function in copies:
        function.linkage = "internal"


_finalize = CPUCodeLibrary._finalize_final_module


def _finalize_privately(library: Any) -> None:
    if library._shared_module is None:  # one that is loaded has its own already
        _keep_copies_private(library)
    _finalize(library)


CPUCodeLibrary._finalize_final_module = _finalize_privately


def compiled_before(loop: str = "") -> bool:
    """Whether machine code of these very sources is already kept: any, or that of one loop, such as "blend.sweep"."""
    return any(Path(FOLDER).rglob(f"{loop}-*.nbi" if loop else "*.nbi"))


def compile_for(loop: Any, arguments: tuple[Any, ...]) -> None:
    """Compile a loop for arguments of these types, without running it."""
    loop.compile(tuple(numba.typeof(each) for each in arguments))


LOOSE = {"reassoc", "contract", "nnan", "nsz"}  # sums in whatever order suits the vector instructions; no NaN comes in


def _compile(function: F, loose: set[str], callable_from_python: bool = True) -> F:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = FOLDER
    try:
        compiled = numba.njit(
            cache=True, nogil=True, error_model="numpy", fastmath=loose,
            no_cfunc_wrapper=True, no_cpython_wrapper=not callable_from_python,
        )(function)  # fmt: skip
    finally:
        numba.config.CACHE_DIR = previous
    return cast(F, compiled)


def jit(function: F) -> F:
    """Compile a loop: no GIL, IEEE division, machine code kept between runs."""
    return _compile(function, set())


def part(function: F) -> F:
    """The same for what only other loops call: without a door for Python, which takes as long to compile as a small loop."""
    return _compile(function, set(), callable_from_python=False)


def fast(function: F) -> F:
    """The same for arithmetic on numbers that are never NaN, in whatever order is quickest."""
    return _compile(function, LOOSE)


def inline(function: F) -> F:
    """A part of one loop with a name of its own: written into its caller before that is compiled."""
    return cast(F, numba.njit(inline="always", error_model="numpy")(function))


def formula(function: F) -> F:
    """Compile a formula that stands in many loops, once; the optimiser writes its machine code into them.

    Compiling loops takes half as long as with `inline`, which has every copy understood afresh. Numbers are never NaN.
    """
    return cast(F, numba.njit(forceinline=True, error_model="numpy", fastmath=LOOSE)(function))


def reduction(function: F) -> F:
    """Compile a sum or maximum of numbers, never NaN, in whatever order suits the vector instructions."""
    return cast(F, numba.njit(nogil=True, error_model="numpy", fastmath=LOOSE)(function))
