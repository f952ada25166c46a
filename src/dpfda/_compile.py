"""The one way in which kernels are compiled: cached on disk, without the interpreter's lock, with IEEE arithmetic.

No fastmath at all: where a fused multiply-add pays, the code says so. The bits of a result then depend on the order
that is written down, and `v - v` stays the test for finite numbers that it is meant to be.

numba looks at a kernel's own file when it decides whether a compiled copy on disk is still good. Kernels are put together
from several files, so the copies here carry the digest of all of them: a change in any one makes all stale.

`DPFDA_BOUNDSCHECK=1` in the environment compiles every kernel with a check of every index, those of `silo/kernels/simd.py`
included; an index out of bounds raises `IndexError`. These copies have files of their own: neither build finds the other's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])

CHECKED = os.environ.get("DPFDA_BOUNDSCHECK", "0") not in ("", "0")

# _nrt: kernels allocate nothing and count no references; all their room comes from the caller
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "boundscheck": CHECKED, "_nrt": False}
_BUILD = (
    f"checked={CHECKED}, numba's own switch={numba.config.BOUNDSCHECK}"  # the latter overrides what is asked for here
)
if CHECKED and numba.config.BOUNDSCHECK is not None and not numba.config.BOUNDSCHECK:
    raise RuntimeError("DPFDA_BOUNDSCHECK=1 has no effect while NUMBA_BOUNDSCHECK=0; unset one of them.")


def _digest() -> str:
    """Of every source that goes into kernels, and of how they are built."""
    package = Path(__file__).parent
    sources = [*sorted((package / "silo" / "kernels").glob("*.py")), package / "privacy" / "exact.py", Path(__file__)]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources) + _BUILD.encode()).hexdigest()


DIGEST = _digest()


def compiled(function: _Function) -> _Function:
    """A kernel that one Python function calls, after it has checked the arguments (see `_arguments`)."""
    return _jitted(function)


def inlined(function: _Function) -> _Function:
    """A part of a kernel, always inlined by LLVM."""
    return _jitted(function, forceinline=True)


def _jitted(function: _Function, **options: Any) -> _Function:
    """Without a cache where no folder can be written, or where numba keeps it in a way that is not known here."""
    kernel: Any
    try:
        kernel = numba.njit(cache=True, **_OPTIONS, **options)(function)
        cache = kernel._cache
        base, stamp = cache._impl.filename_base, (cache._cache_file._source_stamp, DIGEST)
        if CHECKED or numba.config.BOUNDSCHECK:
            base += "-checked"
        cache._cache_file = type(cache._cache_file)(
            cache_path=cache._cache_path, filename_base=base, source_stamp=stamp
        )
    except (AttributeError, RuntimeError, TypeError):
        kernel = numba.njit(**_OPTIONS, **options)(function)
    uncalled: _Function = kernel
    return uncalled
