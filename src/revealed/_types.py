"""The array types that every module uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Cells = NDArray[np.uint8]  # of a board: 0 where empty
Labels = np.ndarray[Any, Any]  # of decisions, actions or groups: numbers or text
