"""Names that kernels use, and what they are compiled to."""

from __future__ import annotations

from numba.core.extending import _Intrinsic

from dpfda._compile import Operation
from dpfda._numba import OPTIONS
from dpfda.native.lowering import type_of
from dpfda.silo.kernels import intrinsics, simd
from dpfda.silo.kernels.room import ROOM, Room
from dpfda.silo.kernels.store import STORE, Store


def test_each_operation_has_an_intrinsic_and_each_intrinsic_a_name() -> None:
    operations = {name: value for name, value in vars(simd).items() if isinstance(value, Operation)}
    made = {name: value for name, value in vars(intrinsics).items() if isinstance(value, _Intrinsic)}
    assert operations.keys() == made.keys()
    assert all(value.name == name and value.intrinsic is made[name] for name, value in operations.items())


def test_kernels_are_compiled_without_fast_arithmetic() -> None:
    assert "fastmath" not in OPTIONS
    assert OPTIONS["error_model"] == "numpy"


def test_tuples_with_names_are_tuples_with_names_for_numba() -> None:
    assert type_of(STORE).instance_class is Store
    assert type_of(ROOM).instance_class is Room
    assert len(type_of(ROOM)) == len(Room._fields)
