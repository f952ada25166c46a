"""Compiled code: how it is made, and what it may be given.

**Made** in one way: cached on disk, without the interpreter's lock, with IEEE arithmetic. No fastmath at all: where a fused
multiply-add pays, the code says so. The bits of a result then depend on the order that is written down, and `v - v` stays
the test for finite numbers that it is meant to be. numba comes with the first module that compiles.

numba looks at a kernel's own file when it decides whether a compiled copy on disk is still good. Kernels are put together
from several files, so the copies here carry the digest of all of them: a change in any one makes all stale.

`DPFDA_BOUNDSCHECK=1` in the environment compiles every kernel with a check of every index, those of `silo/kernels/simd.py`
included; an index out of bounds raises `IndexError`. These copies have files of their own: neither build finds the other's.

**Given**: compiled code follows its indices without looking. So each compiled function is private to its module, and the one
Python function that calls it makes sure before the first write that arrays belong together (`require`, `require_array`).
These checks look at shapes, types and public numbers, never at what rows say.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., object])

DOUBLES, INTEGERS, UNSIGNED, SHORTS = (np.dtype(kind) for kind in (np.float64, np.int64, np.uint64, np.uint16))
CHECKED = os.environ.get("DPFDA_BOUNDSCHECK", "0") not in ("", "0")

# _nrt: kernels allocate nothing and count no references; all their room comes from the caller
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "boundscheck": CHECKED, "_nrt": False}


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


def compiled(function: _Function) -> _Function:
    """A kernel that one Python function calls, after it has checked the arguments."""
    return _jitted(function)


def inlined(function: _Function) -> _Function:
    """A part of a kernel, always inlined by LLVM."""
    return _jitted(function, forceinline=True)


def _jitted(function: _Function, **options: Any) -> _Function:
    """Without a cache where no folder can be written, or where numba keeps it in a way that is not known here."""
    import numba

    kernel: Any
    build, digest = _build()
    try:
        kernel = numba.njit(cache=True, **_OPTIONS, **options)(function)
        cache, file = kernel._cache, kernel._cache._cache_file
        place = {"cache_path": cache._cache_path, "filename_base": cache._impl.filename_base + build}
        cache._cache_file = type(file)(**place, source_stamp=(file._source_stamp, digest))
    except (AttributeError, RuntimeError, TypeError):
        kernel = numba.njit(**_OPTIONS, **options)(function)
    uncalled: _Function = kernel
    return uncalled


@cache
def _build() -> tuple[str, str]:
    """What file names of this build end in, and the digest of all sources of kernels and of the build."""
    import numba

    switch = getattr(numba.config, "BOUNDSCHECK", None)  # 0 or 1 overrides what is asked for here
    if CHECKED and switch == 0:
        raise OSError("DPFDA_BOUNDSCHECK=1 has no effect while NUMBA_BOUNDSCHECK=0; unset one of them.")
    package = Path(__file__).parent
    sources = [*sorted((package / "silo" / "kernels").glob("*.py")), package / "privacy" / "exact.py", Path(__file__)]
    build = "-checked" if CHECKED or switch else ""
    return build, hashlib.sha256(b"".join(source.read_bytes() for source in sources) + build.encode()).hexdigest()
