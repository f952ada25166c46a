"""Machine code to shared objects without a linker: what LLVM writes is put together, loaded and run."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from llvmlite import binding as llvm

from dpfda.native.linking import LinkError, link
from dpfda.native.support import SUPPORT, SUPPORTED
from dpfda.native.symbols import PREFIX, symbol_of

TRIPLES = {"x86-64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
CODE = """
@table = internal constant [3 x double] [double 1.5, double 2.5, double 3.5]
@places = internal constant [2 x double*] [double* getelementptr ([3 x double], [3 x double]* @table, i64 0, i64 1),
                                           double* getelementptr ([3 x double], [3 x double]* @table, i64 0, i64 2)]
@count = internal global i64 0

define double @dpfda_pick(i64 %i) {
  %at = getelementptr [2 x double*], [2 x double*]* @places, i64 0, i64 %i
  %place = load double*, double** %at
  %value = load double, double* %place
  %twice = call double @double(double %value)
  ret double %twice
}

define i64 @dpfda_count() {
  %old = load i64, i64* @count
  %new = add i64 %old, 1
  store i64 %new, i64* @count
  ret i64 %new
}

define internal double @double(double %x) noinline {
  %sum = fmul double %x, 2.0
  ret double %sum
}
"""


def code_of(text: str, triple: str, cpu: str = "") -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="small")
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = triple, str(machine.target_data)
    return bytes(machine.emit_object(module))


def native() -> str:
    return llvm.get_default_triple()


def loaded(text: str, tmp_path, cpu: str = "") -> ctypes.CDLL:
    file = tmp_path / "some.so"
    file.write_bytes(link(code_of(text, native(), cpu), "some.so", "dpfda_"))
    return ctypes.CDLL(str(file))


def test_addresses_distances_and_variables_are_right_when_loaded(tmp_path) -> None:
    library = loaded(CODE, tmp_path)
    library.dpfda_pick.argtypes, library.dpfda_pick.restype = (ctypes.c_int64,), ctypes.c_double
    assert [library.dpfda_pick(0), library.dpfda_pick(1)] == [5.0, 7.0]
    assert [library.dpfda_count(), library.dpfda_count()] == [1, 2]


def test_only_names_with_the_prefix_can_be_seen(tmp_path) -> None:
    library = loaded(CODE.replace("internal double @double", "double @double"), tmp_path)
    assert library.dpfda_count
    assert not hasattr(library, "double")


@pytest.mark.parametrize("triple", TRIPLES.values())
def test_no_part_can_be_written_and_executed_nor_the_stack(triple) -> None:
    image = link(code_of(CODE, triple), "some.so", "dpfda_")
    count = struct.unpack_from("<H", image, 56)[0]
    headers = [struct.unpack_from("<IIQQQQQQ", image, 64 + 56 * i) for i in range(count)]
    assert [flags for kind, flags, *_ in headers if kind == 1] == [4, 5, 6]
    assert [flags for kind, flags, *_ in headers if kind == 0x6474E551] == [6]
    assert all(offset + size <= len(image) for _, _, offset, _, _, size, _, _ in headers)


@pytest.mark.parametrize("triple", TRIPLES.values())
def test_the_same_code_gives_the_same_bytes(triple) -> None:
    assert link(code_of(CODE, triple), "a.so", "dpfda_") == link(code_of(CODE, triple), "a.so", "dpfda_")


def test_a_call_to_the_outside_is_refused() -> None:
    body = "{\n %y = call double @cos(double %x)\n ret double %y\n}"
    text = f"declare double @cos(double)\ndefine double @dpfda_f(double %x) {body}"
    with pytest.raises(LinkError, match="calls cos"):
        link(code_of(text, native()), "some.so", "dpfda_")


@pytest.mark.parametrize("content", [b"\x7fELF\x01".ljust(64, b"\0"), b"MZ".ljust(64, b"\0")])
def test_what_is_no_object_is_refused(content) -> None:
    with pytest.raises(LinkError):
        link(content, "some.so", "dpfda_")


def test_symbols_have_the_prefix() -> None:
    assert symbol_of("silo.kernels.store._f") == PREFIX + "silo_kernels_store__f"


# functions of the C library


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    """The support functions, for a processor without instructions that round."""
    renamed = SUPPORT
    for name in SUPPORTED:
        renamed = renamed.replace(f"@{name}(", f"@dpfda_{name}(")
    cpu = "x86-64" if native().startswith("x86_64") else ""
    return loaded(renamed, tmp_path_factory.mktemp("support"), cpu)


@pytest.mark.parametrize("name", ["rint", "floor"])
def test_rounding_is_that_of_numpy_bit_for_bit(library, name) -> None:
    function = getattr(library, f"dpfda_{name}")
    function.argtypes, function.restype = (ctypes.c_double,), ctypes.c_double
    rng = np.random.default_rng(1)
    some = [
        0.0,
        0.5,
        1.5,
        2.5,
        0.49999999999999994,
        2**52 - 0.5,
        2.0**52,
        2.0**53,
        1e300,
        np.inf,
        5e-324,
        2**51 + 0.5,
    ]
    values = np.array([*some, *(-np.array(some)), *rng.normal(size=500) * 10.0 ** rng.integers(-3, 17, 500)])
    found = np.array([function(value) for value in values])
    assert found.tobytes() == getattr(np, name)(values).tobytes()
    assert np.isnan(function(np.nan))


@pytest.mark.parametrize("size", [0, 1, 7, 63, 64, 65, 128, 200])
def test_memory_is_set_copied_and_moved(library, size) -> None:
    for name in ("memset", "memcpy", "memmove"):
        getattr(library, f"dpfda_{name}").restype = ctypes.c_void_p
    library.dpfda_memset.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64)
    library.dpfda_memcpy.argtypes = library.dpfda_memmove.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    rng = np.random.default_rng(size)
    room, other = rng.integers(0, 256, (2, 512), dtype=np.uint8)
    expected = room.copy()
    expected[100 : 100 + size] = 7
    library.dpfda_memset(room.ctypes.data + 100, 7, size)
    assert (room == expected).all()
    expected[50 : 50 + size] = other[:size]
    library.dpfda_memcpy(room.ctypes.data + 50, other.ctypes.data, size)
    assert (room == expected).all()
    for to, start in ((90, 100), (110, 100), (100, 100), (164, 100)):
        expected[to : to + size] = expected[start : start + size].copy()
        library.dpfda_memmove(room.ctypes.data + to, room.ctypes.data + start, size)
        assert (room == expected).all()
