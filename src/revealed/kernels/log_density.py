"""The log density that a Hamiltonian path moves on, chosen by the type of the target.

A loop calls `log_density(target, workspace, x, floor, gradient)`. When it is compiled, the class of
the target (a NamedTuple) decides which kernel stands there: machine code is kept by the types of a
loop's arguments, whereas a function among the arguments would be compiled again in every process.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import overload

from revealed._types import Floats
from revealed.kernels._compile import NO_WRAPPERS

F = TypeVar("F", bound=Callable[..., float])


def log_density(target: Any, workspace: Any, x: Floats, floor: float, gradient: Floats) -> float:
    """The log density at x (D,) up to a constant; its gradient goes into gradient (D,).

    A target may say minus infinity where the density is below `floor`, and leaves the gradient out
    where that array is empty. In a compiled loop this is the kernel that `log_density_of` names; in
    Python, the target's own method `log_density`.
    """
    value: float = target.log_density(x, gradient)
    return value


def log_density_of(target_class: type) -> Callable[[F], F]:
    """Decorate the kernel (target, workspace, x, floor, gradient) for targets of this class."""

    def register(kernel: F) -> F:
        # numba compares the annotations of these two, which must be the same
        def call(target: Any, workspace: Any, x: Any, floor: Any, gradient: Any) -> Any:
            return kernel(target, workspace, x, floor, gradient)

        # numba asks every registered choice in turn; the class of a named tuple is in its type
        def choose(target: Any, workspace: Any, x: Any, floor: Any, gradient: Any) -> Any:
            return call if getattr(target, "instance_class", None) is target_class else None

        overload(log_density, jit_options={"forceinline": True, **NO_WRAPPERS})(choose)
        return kernel

    return register
