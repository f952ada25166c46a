"""The objects of all instruction sets, and the manifest that says what they are and what they were made from."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfda._compile import entries
from dpfda._objects import FOLDER, digest_of, manifest_file, read_flags
from dpfda.native.sources import PACKAGE, kernel_modules, source_files
from dpfda.native.symbols import PREFIX, symbol_of

_V3 = ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_AT_ONCE = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Level:
    """An instruction set: how LLVM names it, what it was optimised as, and the flags that a processor must have."""

    machine: str
    triple: str
    cpu: str
    needs: tuple[str, ...] = ()
    features: str = ""
    optimised_as: str = ""  # the processor that numba takes it for, if not `cpu`


LEVELS = {
    "x86-64": Level("x86_64", "x86_64-unknown-linux-gnu", "x86-64"),
    "x86-64-v3": Level("x86_64", "x86_64-unknown-linux-gnu", "x86-64-v3", _V3),
    "x86-64-v4": Level("x86_64", "x86_64-unknown-linux-gnu", "x86-64-v4", _V4, "-prefer-256-bit"),
    "aarch64": Level("aarch64", "aarch64-unknown-linux-gnu", "generic", (), "+neon", "x86-64"),
}
"""In the order of preference, the best last."""


def is_current(checked: bool = False, everywhere: bool = False, folder: Path = FOLDER) -> bool:
    """Whether the objects (of all kinds of machines) are there and were made from the present sources."""
    try:
        manifest = json.loads(manifest_file(checked, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    whole = all(digest_of(folder / each["file"]) == each["sha256"] for each in manifest["objects"].values())
    return (
        whole and manifest["sources"] == _digests() and (not everywhere or manifest["objects"].keys() == LEVELS.keys())
    )


def build(checked: bool = False, everywhere: bool = False, folder: Path = FOLDER) -> dict[str, Any]:
    """Compile objects for this kind of machine (or for all) in processes of their own, write them and their manifest.

    Of the checked build there is the best one that runs here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    levels = [name for name, level in LEVELS.items() if everywhere or level.machine == platform.machine()]
    if checked:
        levels = [name for name in levels if runs_here(name)][-1:]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        codes = dict(zip(levels, pool.map(lambda name: _lower_elsewhere(name, checked), levels), strict=True))
    for module in kernel_modules():
        importlib.import_module(module)
    manifest: dict[str, Any] = {"tools": describe_tools(), "sources": _digests(), "entries": {}, "objects": {}}
    for name, entry in sorted(entries().items()):
        manifest["entries"][name] = {"symbol": symbol_of(name), "signature": entry.signature}
    for name, code in codes.items():
        file = folder / f"{'checked-' if checked else ''}{name}.so"
        _replace(file, code)
        level = LEVELS[name]
        manifest["objects"][name] = {
            "file": file.name, "sha256": hashlib.sha256(code).hexdigest(), "machine": level.machine, "needs": level.needs,
        }  # fmt: skip
    _replace(manifest_file(checked, folder), json.dumps(manifest, indent=1).encode() + b"\n")
    return manifest


def lower_level(name: str) -> bytes:
    """The shared object of an instruction set; the environment must be that of `_lower_elsewhere`."""
    from dpfda.native.linking import link
    from dpfda.native.lowering import lower

    level = LEVELS[name]
    for module in kernel_modules():
        importlib.import_module(module)
    return link(lower(entries(), level.triple, level.cpu, level.features), f"dpfda-{name}.so", PREFIX)


def describe_tools() -> str:
    """The versions that the bytes of an object depend on."""
    import llvmlite  # type: ignore[import-untyped, unused-ignore]
    import numba

    python = ".".join(map(str, sys.version_info[:2]))
    return f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, Python {python}, {platform.machine()}"


def _lower_elsewhere(name: str, checked: bool) -> bytes:
    """numba takes its processor from the environment, once for a process; no cache of anybody's is read."""
    level = LEVELS[name]
    with tempfile.TemporaryDirectory() as scratch:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "DPFDA_"))}
        environment = {
            **kept, "NUMBA_CPU_NAME": level.optimised_as or level.cpu, "NUMBA_CPU_FEATURES": "", "PYTHONHASHSEED": "0",
            "NUMBA_CACHE_DIR": scratch, "DPFDA_BOUNDSCHECK": str(int(checked)), "DPFDA_KERNELS": "numba",
            "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }  # fmt: skip
        if not level.optimised_as:
            environment["NUMBA_CPU_FEATURES"] = level.features
        file = Path(scratch) / "object.so"
        command = [sys.executable, "-m", "dpfda.native", "--one", name, str(file)]
        done = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"The kernels for {name} could not be compiled:\n{done.stderr}")
        return file.read_bytes()


def runs_here(name: str) -> bool:
    """Whether this machine has all that an instruction set needs."""
    return LEVELS[name].machine == platform.machine() and read_flags().issuperset(LEVELS[name].needs)


def _digests() -> dict[str, str]:
    return {file.relative_to(PACKAGE).as_posix(): digest_of(file) for file in source_files()}


def _replace(file: Path, content: bytes) -> None:
    """In one step: another process may have the old one open."""
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
        new.write(content)
    os.chmod(new.name, 0o644)
    os.replace(new.name, file)
