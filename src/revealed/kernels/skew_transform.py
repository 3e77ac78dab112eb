"""A curve that turns a normal number w into a skewed one, and back.

    y = w + a (sqrt(1 + w^2) - 1),   |a| < 1

A hyperbola, with slope 1 - a far to the left and 1 + a far to the right. A coefficient that choices
bound on one side only has nearly half a normal as its posterior; with w normal, y is very like it.
"""

from typing import Any

import numpy as np

from revealed.kernels._compile import inlined_formula


def skew(w: Any, amount: Any) -> Any:
    """The skewed number y of a normal number w.

    amount: a of the module's formula; zero leaves w as it is. Arrays are taken entry by entry.
    """
    return w + amount * (np.sqrt(1.0 + w * w) - 1.0)


def unskew(y: Any, amount: Any) -> Any:
    """The normal number w of a skewed number y: the inverse of `skew`.

    With z = y + a, the root of (1 - a^2) w^2 - 2 z w + z^2 - a^2 = 0 that lies on the curve.
    """
    rest = 1.0 - amount * amount
    z = y + amount
    return (z - amount * np.sqrt(z * z + rest)) / rest


def skew_derivative(w: Any, amount: Any) -> Any:
    """dy/dw = 1 + a w / sqrt(1 + w^2), between 1 - |a| and 1 + |a|."""
    return 1.0 + amount * w / np.sqrt(1.0 + w * w)


def skew_second_derivative(w: Any, amount: Any) -> Any:
    """d2y/dw2 = a / (1 + w^2)^(3/2)."""
    root = np.sqrt(1.0 + w * w)
    return amount / (root * root * root)


# The same for one number inside compiled loops.
skew_scalar = inlined_formula(skew)
unskew_scalar = inlined_formula(unskew)
skew_derivative_scalar = inlined_formula(skew_derivative)
skew_second_derivative_scalar = inlined_formula(skew_second_derivative)
