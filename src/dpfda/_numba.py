"""The fallback: numba compiles kernels when they are called, and keeps them in its cache on disk.

numba looks at a kernel's own file when it decides whether a compiled copy on disk is still good. Kernels are put together
from several files, so the copies here have the digest of all of them in their names: a change in any one makes all stale,
and what another tree left behind, which this one may not even be able to read, is never opened.

The first time that a kernel is compiled a line on stderr says so; on a terminal it goes on to count.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl

from dpfda._objects import CHECKED, load_library

# _nrt: kernels allocate nothing and count no references; all their room comes from the caller
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "boundscheck": CHECKED, "_nrt": False}


def jitted(function: Callable[..., Any], **options: Any) -> Any:
    """Without a cache where no folder can be written, or where numba keeps it in a way that is not known here."""
    _announce()
    build, digest = _build()
    try:
        kernel: Any = numba.njit(cache=True, **OPTIONS, **options)(function)
        cache, file = kernel._cache, kernel._cache._cache_file
        base = f"{cache._impl.filename_base}{build}-{digest[:16]}"
        place = {"cache_path": cache._cache_path, "filename_base": base}
        cache._cache_file = type(file)(**place, source_stamp=(file._source_stamp, digest))
    except (AttributeError, RuntimeError, TypeError):
        kernel = numba.njit(**OPTIONS, **options)(function)
    return kernel


@cache
def teach(kind: type, attribute: str) -> None:
    """Let compiled code call values of a class of ours by an attribute of theirs that numba knows."""

    def typeof(value: Any, context: Any) -> Any:
        known = getattr(value, attribute)
        cpu_target.typing_context.refresh()  # it may have been made just now
        cpu_target.target_context.refresh()
        return cpu_target.typing_context.resolve_value_type(known)

    typeof_impl.register(kind)(typeof)


@cache
def _build() -> tuple[str, str]:
    """What file names of this build end in, and the digest of all sources of kernels and of the build."""
    switch = getattr(numba.config, "BOUNDSCHECK", None)  # 0 or 1 overrides what is asked for here
    if CHECKED and switch == 0:
        raise OSError("DPFDA_BOUNDSCHECK=1 has no effect while NUMBA_BOUNDSCHECK=0; unset one of them.")
    package = Path(__file__).parent
    sources = [*sorted((package / "silo" / "kernels").glob("*.py")), package / "privacy" / "exact.py"]
    sources += [package / name for name in ("_compile.py", "_numba.py")]
    build = "-checked" if CHECKED or switch else ""
    return build, hashlib.sha256(b"".join(source.read_bytes() for source in sources) + build.encode()).hexdigest()


class _Announcer(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says that a kernel of ours is being compiled, not that one was read from the cache."""

    def __init__(self) -> None:
        self._functions = 0

    def on_start(self, started: Any) -> None:
        """A function is about to be compiled."""
        function = started.data["dispatcher"].py_func
        if not function.__module__.startswith("dpfda."):
            return
        self._functions += 1
        if self._functions == 1:
            reason = load_library().reason or "a kernel is not in them"
            print(f"dpfda: numba compiles the kernels, which takes about 10 s, once ({reason}).", file=sys.stderr)
        if sys.stderr.isatty():
            print(f"\rdpfda: {self._functions} functions, {function.__name__} ...\033[K", end="", file=sys.stderr)

    def on_end(self, ended: Any) -> None:
        """A function was compiled."""
        if sys.stderr.isatty() and ended.data["dispatcher"].py_func.__module__.startswith("dpfda."):
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@cache
def _announce() -> None:
    register: Any = event.register
    register("numba:compile", _Announcer())
