"""Kernels to the machine code of one instruction set, by numba and LLVM.

numba types and optimises every kernel for the processor that the environment names (`NUMBA_CPU_NAME`), as it would to run
it. A function around each kernel takes its arguments from a block of words (`dpfda._objects`). All go into one module, of
which nothing else can be seen from outside, and LLVM turns that into position-independent code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from llvmlite import binding as llvm  # type: ignore[import-untyped, unused-ignore]
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.np import arrayobj, numpy_support

from dpfda._compile import Entry, Kind, with_numba
from dpfda.native.support import SUPPORT, SUPPORTED
from dpfda.native.symbols import symbol_of

_INT, _WORD = ir.IntType(32), ir.IntType(64)
_locked: Any = global_compiler_lock
_make_array: Any = arrayobj.make_array
_populate_array: Any = arrayobj.populate_array
_pack: Any = cgutils.pack_array
_tuple_of: Any = types.BaseTuple.from_types


def lower(entries: Mapping[str, Entry], triple: str, cpu: str, features: str) -> bytes:
    """A relocatable object with all kernels."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small")
    layout = str(machine.target_data)
    whole = _parse(SUPPORT, triple, layout)
    for name, entry in sorted(entries.items()):
        whole.link_in(_parse(_module_of(name, entry), triple, layout))
    kept = {symbol_of(name) for name in entries} | set(SUPPORTED)  # code calls the latter only once it is machine code
    for value in (*whole.functions, *whole.global_variables):
        if not value.is_declaration and value.name not in kept:
            value.linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(whole, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3)))
    whole.verify()
    return bytes(machine.emit_object(whole))


def _parse(text: str, triple: str, layout: str) -> Any:
    """A module for another machine than numba took it for: all have the same sizes of integers and addresses."""
    lines = [line for line in text.splitlines() if not line.startswith(("target triple", "target datalayout"))]
    module = llvm.parse_assembly("\n".join(lines))
    module.triple, module.data_layout = triple, layout
    return module


@_locked  # type: ignore[misc, untyped-decorator, unused-ignore]
def _module_of(name: str, entry: Entry) -> str:
    """A kernel and the function around it, optimised, as LLVM's text."""
    arguments = tuple(type_of(kind) for kind in entry.kinds)
    options = {**with_numba().OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    kernel: Any = njit(**options)(entry.function)
    kernel.compile(arguments)
    made = kernel.overloads[arguments]
    returned = type_of(entry.returns) if entry.returns else types.none
    if made.signature.return_type != returned:
        raise TypeError(f"{name} returns {made.signature.return_type}, not {returned}.")
    library = made.target_context.codegen().create_library(symbol_of(name))
    module = library.create_ir_module(symbol_of(name))
    _surround(module, symbol_of(name), made, arguments, entry)
    library.add_ir_module(module)
    library.add_linking_library(made.library)
    library.finalize()
    return str(library.get_llvm_str())


def _surround(module: Any, symbol: str, made: Any, arguments: tuple[Any, ...], entry: Entry) -> None:
    """`int symbol(const int64 *words, int64 *result)`: 0, or another number if an index was out of bounds."""
    context, described = made.target_context, made.fndesc
    convention = context.call_conv
    inner_type = convention.get_function_type(described.restype, described.argtypes)
    inner = ir.Function(module, inner_type, described.llvm_func_name)
    outer = ir.Function(module, ir.FunctionType(_INT, [_WORD.as_pointer(), _WORD.as_pointer()]), symbol)
    builder = ir.IRBuilder(outer.append_basic_block())
    words = _words(builder, outer.args[0])
    values = [_take(context, builder, words, kind) for kind in entry.kinds]
    status, value = convention.call_function(builder, inner, described.restype, described.argtypes, values)
    if entry.returns is not None:
        builder.store(value if value.type == _WORD else builder.zext(value, _WORD), outer.args[1])
    builder.ret(builder.zext(status.is_error, _INT))


def _words(builder: Any, start: Any) -> Iterator[Any]:
    """One word after the other."""
    place = 0
    while True:
        yield builder.load(builder.gep(start, [ir.Constant(_WORD, place)]))
        place += 1


def _take(context: Any, builder: Any, words: Iterator[Any], kind: Any) -> Any:
    """An argument of this kind, as numba passes it, from the words it takes."""
    if not isinstance(kind, Kind):
        return context.make_tuple(builder, type_of(kind), [_take(context, builder, words, each) for each in kind])
    if kind.axes:
        return _take_array(context, builder, words, kind)
    word = next(words)
    if kind.code == "f8":
        return builder.bitcast(word, ir.DoubleType())
    return builder.trunc(word, ir.IntType(1)) if kind.code == "b1" else word


def _take_array(context: Any, builder: Any, words: Iterator[Any], kind: Kind) -> Any:
    """A contiguous array from its address and shape."""
    array_type = type_of(kind)
    data, shape = next(words), [next(words) for _ in range(kind.axes)]
    size = np.dtype(kind.code).itemsize
    strides = [ir.Constant(_WORD, size)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    array = _make_array(array_type)(context, builder)
    _populate_array(
        array,
        data=builder.inttoptr(data, array.data.type),
        shape=_pack(builder, shape),
        strides=_pack(builder, strides),
        itemsize=ir.Constant(_WORD, size),
        meminfo=None,
    )
    return array._getvalue()


def type_of(kind: Any) -> Any:
    """A kind as numba names it."""
    if isinstance(kind, Kind):
        item = numpy_support.from_dtype(np.dtype(kind.code))
        return types.Array(item, kind.axes, "C") if kind.axes else item
    named = type(kind) if hasattr(kind, "_fields") else None
    return _tuple_of(tuple(type_of(each) for each in kind), named)
