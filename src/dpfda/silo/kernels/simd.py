"""Vectors of eight doubles: one lane is one curve.

LLVM maps a vector to one AVX-512 register, two of AVX2 or four of NEON or SSE. Every operation acts on each lane by
itself with IEEE rounding, so that the bits in a lane depend on that lane alone.

Indices count doubles from the start of a contiguous array. They are checked in the build of `DPFDA_BOUNDSCHECK=1` only
(`_compile`), in which eight doubles that are not all in the array raise `IndexError`.

These are names for kernels to use; what they are compiled to is in `intrinsics`, which comes with numba when something is
compiled.
"""

from __future__ import annotations

from typing import Any

from dpfda._compile import Operation

LANES = 8
ALL = 2**LANES - 1  # the bits of all lanes


def _intrinsic(name: str) -> Any:
    from dpfda.silo.kernels import intrinsics

    return getattr(intrinsics, name)


def _operation(name: str) -> Any:
    return Operation(name, _intrinsic)


add = _operation("add")
sub = _operation("sub")
mul = _operation("mul")
div = _operation("div")
fma = _operation("fma")
"""a b + c: fused where the processor can."""
fnma = _operation("fnma")
"""c - a b: fused where the processor can."""
fms = _operation("fms")
"""a b - c: fused where the processor can."""
root = _operation("root")
nearest = _operation("nearest")
magnitude = _operation("magnitude")
least = _operation("least")
"""The smaller one; b if one of them is NaN."""
most = _operation("most")
"""The larger one; b if one of them is NaN."""
where_le = _operation("where_le")
"""`then` in the lanes with a <= b, `other` elsewhere, also where a or b is NaN."""
bits_le = _operation("bits_le")
"""Bit l of the integer says whether a <= b in lane l; not where one of them is NaN."""
splat = _operation("splat")
"""The same number in every lane."""
load = _operation("load")
"""The eight doubles from `index` on."""
store = _operation("store")
"""Write the eight doubles from `index` on."""
add_bits = _operation("add_bits")
"""Add the bit patterns of eight doubles, as integers modulo 2^64, to an array of integers."""
add_bits4 = _operation("add_bits4")
"""`add_bits` of four vectors to the same eight integers."""
