"""The one way in which kernels are compiled: cached on disk, without the interpreter's lock, with IEEE arithmetic.

No fastmath at all: where a fused multiply-add pays, the code says so. The bits of a result then depend on the order
that is written down, and `v - v` stays the test for finite numbers that it is meant to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])

# _nrt: kernels allocate nothing and count no references; all their room comes from the caller
_OPTIONS: Any = {"cache": True, "nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False}


def compiled(function: _Function) -> _Function:
    """A kernel that Python calls."""
    kernel: _Function = numba.njit(**_OPTIONS)(function)
    return kernel


def inlined(function: _Function) -> _Function:
    """A part of a kernel, always inlined by LLVM."""
    part: _Function = numba.njit(**_OPTIONS, forceinline=True)(function)
    return part
