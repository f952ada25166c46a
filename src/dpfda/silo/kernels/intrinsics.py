"""What the operations of `simd` are compiled to: vectors of eight doubles as a numba type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from dpfda._compile import CHECKED
from dpfda.silo.kernels.simd import LANES

_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"Lanes{LANES}")


lanes = _LanesType()


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _DOUBLES)  # type: ignore[no-untyped-call, unused-ignore]


register_model(_LanesType)(_LanesModel)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any) -> Any:
    made = context.make_array(array_type)(context, builder, array)
    if CHECKED:
        last = builder.sub(made.nitems, ir.Constant(made.nitems.type, LANES))  # may be negative: then none is inside
        outside = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)), builder.icmp_signed(">", index, last)
        )
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("eight lanes are not all in the array",))
    return builder.bitcast(builder.gep(made.data, [index]), vector.as_pointer())


def _splatted(builder: Any, value: Any) -> Any:
    single = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(single, ir.Constant(_DOUBLES, ir.Undefined), zeros)


def _declared(builder: Any, name: str, arguments: int) -> Any:
    signature = ir.FunctionType(_DOUBLES, [_DOUBLES] * arguments)
    declare: Any = cgutils.get_or_insert_function
    return declare(builder.module, signature, f"llvm.{name}.v{LANES}f64")


def _elementwise(build: Callable[..., Any], arguments: int) -> Any:
    """An intrinsic of vectors; numba needs the number of parameters in the signature."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return build(builder, *args)

    def typed(*operands: Any) -> Any:
        return lanes(*([lanes] * arguments)), generate

    forms: list[Callable[..., Any]] = [
        lambda typing, a: typed(a),
        lambda typing, a, b: typed(a, b),
        lambda typing, a, b, c: typed(a, b, c),
        lambda typing, a, b, c, d: typed(a, b, c, d),
    ]
    return intrinsic(forms[arguments - 1])


add = _elementwise(lambda builder, a, b: builder.fadd(a, b), 2)
sub = _elementwise(lambda builder, a, b: builder.fsub(a, b), 2)
mul = _elementwise(lambda builder, a, b: builder.fmul(a, b), 2)
div = _elementwise(lambda builder, a, b: builder.fdiv(a, b), 2)
fma = _elementwise(lambda builder, a, b, c: builder.call(_declared(builder, "fmuladd", 3), [a, b, c]), 3)
fnma = _elementwise(lambda builder, a, b, c: builder.call(_declared(builder, "fmuladd", 3), [builder.fneg(a), b, c]), 3)
fms = _elementwise(lambda builder, a, b, c: builder.call(_declared(builder, "fmuladd", 3), [a, b, builder.fneg(c)]), 3)
root = _elementwise(lambda builder, a: builder.call(_declared(builder, "sqrt", 1), [a]), 1)
nearest = _elementwise(lambda builder, a: builder.call(_declared(builder, "rint", 1), [a]), 1)
magnitude = _elementwise(lambda builder, a: builder.call(_declared(builder, "fabs", 1), [a]), 1)
least = _elementwise(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b), 2)
most = _elementwise(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b), 2)
where_le = _elementwise(
    lambda builder, a, b, then, other: builder.select(builder.fcmp_ordered("<=", a, b), then, other), 4
)


def _bits_le(typing: Any, a: Any, b: Any) -> Any:
    """Bit l of the integer says whether a <= b in lane l; not where one of them is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lane_by_lane = builder.bitcast(builder.fcmp_ordered("<=", *args), ir.IntType(LANES))
        return builder.zext(lane_by_lane, ir.IntType(64))

    return types.int64(lanes, lanes), generate


def _splat(typing: Any, value: Any) -> Any:
    """The same number in every lane."""
    return lanes(types.float64), lambda context, builder, signature, args: _splatted(builder, args[0])


def _load(typing: Any, array: Any, index: Any) -> Any:
    """The eight doubles from `index` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[0], args[0], args[1], _DOUBLES)
        return builder.load(place, align=8)

    return lanes(array, types.intp), generate


def _store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write the eight doubles from `index` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[0], args[0], args[1], _DOUBLES)
        builder.store(args[2], place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


def _bits_added(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    place = _address(context, builder, signature.args[0], args[0], args[1], _INTEGERS)
    total = builder.load(place, align=8)
    for value in args[2:]:
        total = builder.add(total, builder.bitcast(value, _INTEGERS))
    builder.store(total, place, align=8)
    return context.get_dummy_value()


def _add_bits(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Add the bit patterns of eight doubles, as integers modulo 2^64, to an array of integers."""
    return types.void(array, types.intp, lanes), _bits_added


def _add_bits4(typing: Any, array: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """`add_bits` of four vectors to the same eight integers."""
    return types.void(array, types.intp, lanes, lanes, lanes, lanes), _bits_added


bits_le: Any = intrinsic(_bits_le)
splat: Any = intrinsic(_splat)
load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
add_bits: Any = intrinsic(_add_bits)
add_bits4: Any = intrinsic(_add_bits4)
