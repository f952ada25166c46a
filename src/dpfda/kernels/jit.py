"""The one way in which kernels are compiled: cached on disk, without the interpreter's lock, with IEEE arithmetic.

No fastmath at all: where a fused multiply-add pays, the code says so. The bits of a result then depend on the order
that is written down, and `v - v` stays the test for finite numbers that it is meant to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function) -> _Function:
    """A kernel that Python calls."""
    kernel: _Function = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)(function)
    return kernel


def inlined(function: _Function) -> _Function:
    """A part of a kernel, always inlined by LLVM."""
    part: _Function = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False, forceinline=True)(
        function
    )
    return part
