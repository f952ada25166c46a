"""What compiled functions may be given: checked once by the one Python function that calls each, before the first write.

Compiled code follows its indices without looking. So each compiled function is private to its module, and its one caller
makes sure that arrays belong together. The checks look at shapes, types and public numbers, never at what rows say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DOUBLES, INTEGERS, UNSIGNED, SHORTS = (np.dtype(kind) for kind in (np.float64, np.int64, np.uint64, np.uint16))


class KernelError(RuntimeError):
    """A compiled function was about to get arguments that do not belong together: a bug in dpfda, nobody's data."""


def require(holds: bool, rule: str) -> None:
    """Go on only if a rule about the arguments of compiled code holds."""
    if not holds:
        raise KernelError(f"Compiled code was called wrongly: {rule}. Nothing was computed.")


def require_array(name: str, array: Any, dtype: np.dtype[Any], *shape: int) -> None:
    """Go on only with an aligned C array of this type and shape."""
    if not (isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == shape):
        found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise KernelError(f"Compiled code was called wrongly: {name} must be {dtype} {shape}, got {found}.")
    flags = array.flags
    require(flags.c_contiguous and flags.aligned, f"{name} must be contiguous and aligned")
