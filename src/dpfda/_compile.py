"""Compiled code: how it is declared, and what it may be given.

**Declared** once, in Python: `@compiled(...)` with the kinds of its arguments is a kernel, `@inlined` a part of kernels. The
same source is compiled in two ways. *Ahead of time* (`native/`): one shared object for each instruction set, which
`_objects` chooses by the processor's flags and loads without a compiler; that is what users run. *By numba when it is
called* (`_numba`): the fallback where no object fits, and for functions without kinds, which tests and benchmarks compile.
Both ways have IEEE arithmetic without fastmath: where a fused multiply-add pays, the code says so. The bits of a result
then depend on the order that is written down, and `v - v` stays the test for finite numbers that it is meant to be.

`DPFDA_BOUNDSCHECK=1` in the environment takes kernels with a check of every index, those of `silo/kernels/simd.py`
included; an index out of bounds raises `IndexError`. These have files of their own: neither build finds the other's.

**Given**: compiled code follows its indices without looking. So each compiled function is private to its module, and the one
Python function that calls it makes sure before the first write that arrays belong together (`require`, `require_array`).
These checks look at shapes, types and public numbers, never at what rows say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from dpfda._objects import CHECKED, Bundle, KernelError, Kind, describe, load_entry, load_library

__all__ = [
    "BYTES",
    "CHECKED",
    "DOUBLES",
    "FLAG",
    "FLAGS",
    "INTEGERS",
    "REAL",
    "REALS",
    "REALS_2D",
    "REALS_3D",
    "REALS_4D",
    "SHORTS",
    "SMALLS",
    "UNSIGNED",
    "WHOLE",
    "WHOLES",
    "WORD",
    "WORDS",
    "WORDS_2D",
    "Bundle",
    "Entry",
    "KernelError",
    "Kind",
    "Operation",
    "Part",
    "compiled",
    "entries",
    "inlined",
    "require",
    "require_array",
    "with_numba",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., object])

DOUBLES, INTEGERS, UNSIGNED, SHORTS = (np.dtype(kind) for kind in (np.float64, np.int64, np.uint64, np.uint16))

REAL, WHOLE, WORD, FLAG = Kind("f8"), Kind("i8"), Kind("u8"), Kind("b1")
REALS, WHOLES, WORDS, SMALLS, BYTES, FLAGS = (Kind(code, 1) for code in ("f8", "i8", "u8", "u2", "u1", "b1"))
REALS_2D, REALS_3D, REALS_4D = (Kind("f8", axes) for axes in (2, 3, 4))
WORDS_2D = Kind("u8", 2)

_entries: dict[str, Entry] = {}


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


class Part:
    """A function that kernels are made of; numba compiles it when it compiles a kernel."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.function, self._options = function, options

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba makes of it."""
        return with_numba().jitted(self.function, **self._options)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)


class Entry(Part):
    """A kernel, with the kinds of its arguments and of what it returns (None: nothing)."""

    def __init__(self, function: Callable[..., Any], kinds: tuple[Any, ...], returns: Kind | None) -> None:
        super().__init__(function)
        self.name = f"{function.__module__}.{function.__qualname__}".removeprefix("dpfda.")
        self.kinds, self.returns = kinds, returns
        self._run: Callable[..., Any] | None = None

    @property
    def signature(self) -> str:
        """The kinds as text, which an object must name as well."""
        return f"{describe(self.kinds)} -> {self.returns or ''}".strip()

    def __call__(self, *arguments: Any) -> Any:
        run = self._run
        if run is None:
            run = self._run = load_entry(self.name, self.signature, self.kinds, self.returns) or self.dispatcher
        return run(*arguments)


class Operation:
    """An operation that no Python function describes; `load` gives what numba knows it by."""

    def __init__(self, name: str, load: Callable[[str], Any]) -> None:
        self.name, self._load = name, load

    @functools.cached_property
    def intrinsic(self) -> Any:
        """What numba compiles it to."""
        return self._load(self.name)


@overload
def compiled(function: _Function, /) -> _Function: ...
@overload
def compiled(*kinds: Any, returns: Kind | None = None) -> Callable[[_Function], _Function]: ...
def compiled(*kinds: Any, returns: Kind | None = None) -> Any:
    """A kernel that one Python function calls, after it has checked the arguments.

    Kinds are those of the arguments, in order: `REAL`, `WHOLES`, ...; a tuple of kinds for a tuple. Without them (tests and
    benchmarks) numba compiles the function for whatever it is called with.
    """
    if len(kinds) == 1 and callable(kinds[0]):
        return Part(kinds[0])

    def declare(function: Callable[..., Any]) -> Entry:
        entry = Entry(function, kinds, returns)
        _entries[entry.name] = entry
        return entry

    return declare


def inlined(function: _Function) -> _Function:
    """A part of a kernel, always inlined by LLVM."""
    part: Any = Part(function, forceinline=True)
    return part  # type: ignore[no-any-return]


def with_numba() -> Any:
    """`_numba`, which knows parts and operations from then on; this imports the compiler."""
    try:
        from dpfda import _numba
    except ModuleNotFoundError as error:
        raise KernelError(
            f"Kernels have to be compiled here ({load_library().reason}), for which {error.name} is missing: "
            "run pip install 'dpfda[compiler]'."
        ) from None
    _numba.teach(Part, "dispatcher")
    _numba.teach(Operation, "intrinsic")
    return _numba


def entries() -> dict[str, Entry]:
    """Every kernel of the modules that were imported so far, by name."""
    return dict(_entries)
