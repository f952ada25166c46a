"""Kernels compiled ahead of time: which object fits this processor, whether it is what was built, how it is called.

`native/objects/` holds a shared object for each instruction set and a manifest: digests of the objects and of every
source that they were compiled from, the flags that each needs, and the kinds of every kernel. An object is loaded only if
its own digest is right, no source has changed since, and the processor and the system have every flag that it needs.
Otherwise `_numba` compiles, which takes the place of every kernel that is not in the object as well.

A kernel is called with one block of 8-byte words, in the order of its arguments: numbers as they are, arrays as their
address and shape. For tests and benchmarks `DPFDA_KERNELS` may name an instruction set of the manifest, or `numba`; one that
the processor lacks is refused.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import struct
import sys
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "native" / "objects"
CHECKED = os.environ.get("DPFDA_BOUNDSCHECK", "0") not in ("", "0")

_FORMATS = {"f8": "d", "i8": "q", "u8": "Q", "b1": "q"}
_CPUINFO = Path("/proc/cpuinfo")
_AFTER_HEADER = object.__basicsize__  # numpy's C interface: an array's address comes first after the object's header


class KernelError(RuntimeError):
    """A compiled function was about to get arguments that do not belong together: a bug in dpfda, nobody's data."""


class Kind(NamedTuple):
    """What a kernel takes: numbers of a type, or contiguous arrays of them with so many axes."""

    code: str
    axes: int = 0

    def __str__(self) -> str:
        return f"{self.code}[{','.join(':' * self.axes)}]" if self.axes else self.code


class Bundle:
    """What a tuple of arrays is derived from as well if kernels take it many times: its words are made once."""

    @cached_property
    def kept_words(self) -> dict[str, list[Any]]:
        """By the kinds that they were made for."""
        return {}


class Library(NamedTuple):
    """An object that was loaded, or the reason why none was."""

    handle: Any
    entries: dict[str, dict[str, str]]
    level: str
    reason: str


def describe(kinds: Any) -> str:
    """Kinds as text: tuples in brackets, with their names if they have names."""
    if isinstance(kinds, Kind):
        return str(kinds)
    name = type(kinds).__name__ if hasattr(kinds, "_fields") else ""
    return f"{name}({', '.join(map(describe, kinds))})"


def load_entry(name: str, signature: str, kinds: Any, returns: Kind | None) -> Callable[..., Any] | None:
    """A kernel of the object that fits this processor; None if there is no such object, or if it lacks this kernel."""
    library = load_library()
    entry = library.entries.get(name)
    if entry is None or entry["signature"] != signature:
        return None
    return _caller(getattr(library.handle, entry["symbol"]), name, kinds, returns)


@lru_cache(maxsize=1)
def load_library() -> Library:
    """The object that fits this processor best; it is chosen once for a process."""
    return open_library(FOLDER, read_flags(), os.environ.get("DPFDA_KERNELS", ""), CHECKED)


def open_library(folder: Path, flags: frozenset[str], wanted: str = "", checked: bool = False) -> Library:
    """The best object of a folder for a processor with these flags, or the reason why there is none."""
    if wanted == "numba":
        return Library(None, {}, "", "DPFDA_KERNELS=numba asks for it")
    try:
        manifest = json.loads(manifest_file(checked, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Library(None, {}, "", "this installation has no compiled kernels")
    changed = [file for file, digest in manifest["sources"].items() if digest_of(folder.parents[1] / file) != digest]
    if changed:
        return Library(None, {}, "", f"{changed[0]} is not what they were compiled from")
    level = choose_level(manifest["objects"], platform.machine(), flags, wanted)
    if level is None or not sys.platform.startswith("linux"):
        return Library(None, {}, "", "none were compiled for this kind of machine")
    return _open(folder / manifest["objects"][level]["file"], manifest, level)


def manifest_file(checked: bool, folder: Path) -> Path:
    """What says which objects there are, of the ordinary build or of the checked one."""
    return folder / ("checked.json" if checked else "manifest.json")


def choose_level(objects: dict[str, Any], machine: str, flags: frozenset[str], wanted: str = "") -> str | None:
    """The last object, in the order of the manifest, whose machine is this one and whose flags are all there."""
    fitting = [
        level for level, each in objects.items() if each["machine"] == machine and flags.issuperset(each["needs"])
    ]
    if wanted and wanted not in fitting:
        raise OSError(f"DPFDA_KERNELS={wanted} is not among what this machine can run: {', '.join(fitting)}, numba.")
    return wanted or (fitting[-1] if fitting else None)


def read_flags(file: Path = _CPUINFO) -> frozenset[str]:
    """What every processor of this machine can do and the system has switched on; nothing where that cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    sets = [set(line.partition(":")[2].split()) for line in lines if line.startswith(("flags", "Features"))]
    return frozenset(set.intersection(*sets)) if sets else frozenset()


def digest_of(file: Path) -> str:
    """SHA-256 of a file; of none if it is not there."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _open(file: Path, manifest: dict[str, Any], level: str) -> Library:
    if digest_of(file) != manifest["objects"][level]["sha256"]:
        return Library(None, {}, "", f"{file.name} is not the file that was built")
    try:
        return Library(ctypes.CDLL(str(file)), manifest["entries"], level, "")
    except OSError:  # a folder from which nothing may be executed
        return Library(None, {}, "", f"{file.name} could not be loaded")


def _caller(symbol: Any, name: str, kinds: Any, returns: Kind | None) -> Callable[..., Any]:
    """A function of the kernel's own arguments. Numbers go through `struct`, which refuses what is not one."""
    symbol.argtypes, symbol.restype = (ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)), ctypes.c_int32
    flatten, block = _flattener(kinds), struct.Struct("=" + _format(kinds))

    def run(*arguments: Any) -> Any:
        words: list[Any] = []
        flatten(arguments, words)
        result = ctypes.c_int64()
        try:
            packed = block.pack(*words)
        except struct.error as error:
            raise KernelError(
                f"Compiled code was called wrongly: {name} got another kind of number ({error})."
            ) from None
        if symbol(packed, ctypes.byref(result)):
            raise IndexError(f"{name} was about to follow an index out of bounds.")
        return None if returns is None else bool(result.value) if returns.code == "b1" else result.value

    return run


def _format(kinds: Any) -> str:
    if isinstance(kinds, Kind):
        return _FORMATS[kinds.code] if not kinds.axes else "Q" + "q" * kinds.axes
    return "".join(map(_format, kinds))


def _flattener(kinds: Any) -> Callable[[Any, list[Any]], None]:
    """A function that adds a tuple of arguments of these kinds to the words; whatever else comes is refused."""
    count = len(kinds)
    plan = [(k, k.axes if isinstance(k, Kind) else -1, _reader(k)) for k in kinds]

    def flatten(arguments: Any, words: list[Any]) -> None:
        if not isinstance(arguments, tuple) or len(arguments) != count:
            raise KernelError(f"Compiled code was called wrongly: {describe(kinds)} does not fit the arguments.")
        for (kind, axes, reader), argument in zip(plan, arguments, strict=True):
            if axes == 0:
                words.append(argument)
            elif axes < 0:
                words += reader(argument)
            elif type(argument) is np.ndarray and argument.dtype == reader and argument.ndim == axes:
                if not argument.flags.c_contiguous:
                    raise KernelError("Compiled code was called wrongly: an array must be contiguous.")
                words.append(_address(argument))
                words += argument.shape
            else:
                raise KernelError(f"Compiled code was called wrongly: an array must be {kind}.")

    return flatten


def _reader(kind: Any) -> Any:
    """The type of an array; of a tuple, a function that gives its words, which a `Bundle` keeps."""
    if isinstance(kind, Kind):
        return np.dtype(kind.code)
    flatten, signature = _flattener(kind), describe(kind)

    def words_of(argument: Any) -> list[Any]:
        kept = argument.kept_words if isinstance(argument, Bundle) else {}
        words: list[Any] | None = kept.get(signature)
        if words is None:
            words = []
            flatten(argument, words)
            kept[signature] = (
                words  # only when it is whole: other threads may look, and a refusal leaves nothing behind
            )
        return words

    return words_of


def _public_address(array: Any) -> int:
    return int(array.ctypes.data)


def _quick_address(array: Any) -> int:
    return ctypes.c_ssize_t.from_address(id(array) + _AFTER_HEADER).value


def _choose_address() -> Callable[[Any], int]:
    """Five times as fast as `array.ctypes.data`, where it is seen to be the same."""
    some = [np.zeros(3), np.ones((2, 2))[1:], np.zeros(0)]
    if sys.implementation.name != "cpython" or any(_quick_address(each) != _public_address(each) for each in some):
        return _public_address
    return _quick_address


_address = _choose_address()
