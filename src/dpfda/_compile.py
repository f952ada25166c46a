"""The one way in which kernels are compiled: cached on disk, without the interpreter's lock, with IEEE arithmetic.

No fastmath at all: where a fused multiply-add pays, the code says so. The bits of a result then depend on the order
that is written down, and `v - v` stays the test for finite numbers that it is meant to be.

numba looks at a kernel's own file when it decides whether a compiled copy on disk is still good. Kernels are put together
from several files, so the copies here carry the digest of all of them: a change in any one makes all stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])

# _nrt: kernels allocate nothing and count no references; all their room comes from the caller
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False}


def _digest() -> str:
    """Of every source that goes into kernels."""
    package = Path(__file__).parent
    sources = [*sorted((package / "silo" / "kernels").glob("*.py")), package / "privacy" / "exact.py", Path(__file__)]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


DIGEST = _digest()


def compiled(function: _Function) -> _Function:
    """A kernel that Python calls."""
    return _jitted(function)


def inlined(function: _Function) -> _Function:
    """A part of a kernel, always inlined by LLVM."""
    return _jitted(function, forceinline=True)


def _jitted(function: _Function, **options: Any) -> _Function:
    """Without a cache where no folder can be written, or where numba keeps it in a way that is not known here."""
    kernel: Any
    try:
        kernel = numba.njit(cache=True, **_OPTIONS, **options)(function)
        file = kernel._cache._cache_file
        file._source_stamp = (file._source_stamp, DIGEST)
    except (AttributeError, RuntimeError):
        kernel = numba.njit(**_OPTIONS, **options)(function)
    uncalled: _Function = kernel
    return uncalled
