"""Names of array types, written once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.int64]
"""Two rows of `width` numbers, (high, low): an entry is high 2^32 + low in units of its bound's grid."""
Interval = tuple[float, float]
