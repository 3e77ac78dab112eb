"""A curve that turns a lopsided number into one that is about normal: y = w + bend (sqrt(1 + w^2) - 1), |bend| < 1.

A hyperbola, with slope 1 - bend far to the left and 1 + bend far to the right. What choices bound on one side only is
nearly half a normal; with w normal, y is very like it.
"""

from typing import Any

import numpy as np

from understudy.kernels._jit import formula


def bent(w: Any, bend: Any) -> Any:
    """Y of w."""
    return w + bend * (np.sqrt(1.0 + w * w) - 1.0)


def unbent(y: Any, bend: Any) -> Any:
    """W of y."""
    rest = 1.0 - bend * bend
    z = y + bend
    return (z - bend * np.sqrt(z * z + rest)) / rest


def stretch(w: Any, bend: Any) -> Any:
    """dy/dw."""
    return 1.0 + bend * w / np.sqrt(1.0 + w * w)


def swing(w: Any, bend: Any) -> Any:
    """d2y/dw2."""
    root = np.sqrt(1.0 + w * w)
    return bend / (root * root * root)


bent_one, unbent_one, stretch_one, swing_one = formula(bent), formula(unbent), formula(stretch), formula(swing)
"""The same for one number inside compiled loops."""
