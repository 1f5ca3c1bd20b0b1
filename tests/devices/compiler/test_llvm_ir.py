"""Programs for LLVM as text: types, constants, metadata, functions."""

from __future__ import annotations

import math
import struct

import llvmlite.binding as llvm
import pytest

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_builder import IRBuilder

I32, F16, F32, F64 = ir.IntType(32), ir.HalfType(), ir.FloatType(), ir.DoubleType()


def _bits(text: str) -> str:
    return struct.pack(">d", float(text)).hex()


def test_equal_types_are_one_object() -> None:
    assert ir.VectorType(F32, 8) is ir.VectorType(ir.FloatType(), 8)
    assert ir.FunctionType(F64, [I32]) is ir.FunctionType(F64, (ir.IntType(32),))
    assert ir.VectorType(F32, 8) is not ir.ArrayType(F32, 8)
    assert I32.as_pointer().pointee is I32


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (I32(-7), "i32 -7"),
        (ir.BIT(True), "i1 1"),
        (ir.Constant(I32, None), "i32 0"),
        (F64(-0.0), f"double 0x{_bits('-0.0')}"),
        (F64(0.1), f"double 0x{_bits('0.1')}"),
        (F32(0.1), f"float 0x{_bits('0.10000000149011612')}"),
        (F16(0.1), f"half 0x{_bits('0.0999755859375')}"),
        (F32(1e300), f"float 0x{_bits('inf')}"),
        (F32(-1e300), f"float 0x{_bits('-inf')}"),
        (ir.Constant(F64, None), f"double 0x{_bits('0.0')}"),
        (ir.VectorType(I32, 2)([1, -1]), "<2 x i32> <i32 1, i32 -1>"),
        (ir.VectorType(I32, 2)(3), "<2 x i32> <i32 3, i32 3>"),
        (ir.ArrayType(I32, 2)([I32(1), 2]), "[2 x i32] [i32 1, i32 2]"),
        (ir.ArrayType(ir.BYTE, 3)(bytearray(b'a"\0')), '[3 x i8] c"\\61\\22\\00"'),
        (ir.Constant(ir.VectorType(F32, 4), None), "<4 x float> zeroinitializer"),
        (ir.Constant(I32.as_pointer(), None), "ptr null"),
        (ir.Constant(ir.LiteralStructType([F32, F32]), ir.Undefined), "{float, float} undef"),
    ],
)
def test_constants_are_written_as_llvm_reads_them(constant: ir.Constant, text: str) -> None:
    assert constant.typed == text
    llvm.parse_assembly(f"@x = global {constant.typed}").verify()


def test_nan_stays_nan() -> None:
    for kind in (F16, F32, F64):
        bits = int(kind(math.nan).ref, 16)
        assert math.isnan(struct.unpack("<d", struct.pack("<Q", bits))[0])


@pytest.mark.parametrize("make", [lambda: ir.VOID(1), lambda: I32.as_pointer()(8)])
def test_what_is_no_constant_raises(make: object) -> None:
    with pytest.raises(TypeError, match="LLVM has no constant"):
        make()  # type: ignore[operator]


def test_a_vector_of_other_length_raises() -> None:
    with pytest.raises(ValueError, match="zip"):
        ir.VectorType(I32, 4)([1, 2, 3])


def test_equal_metadata_is_one_node_and_distinct_metadata_never_is() -> None:
    module = ir.Module("", "")
    first = module.add_metadata(["llvm.loop.unroll.disable"])
    assert module.add_metadata(["llvm.loop.unroll.disable"]) is first
    assert module.add_metadata(["llvm.loop.interleave.count", I32(4)]) is not first
    loop, other = module.distinct_metadata(), module.distinct_metadata()
    loop.operands = (loop, first)
    text = str(module)
    assert '!0 = !{ !"llvm.loop.unroll.disable" }' in text
    assert '!1 = !{ !"llvm.loop.interleave.count", i32 4 }' in text
    assert "!2 = distinct !{ !2, !0 }" in text
    assert f"{other.ref} = distinct !{{  }}" in text
    llvm.parse_assembly(text).verify()


def test_a_module_is_what_llvm_parses() -> None:
    module = ir.Module("", "")
    table = ir.GlobalVariable(module, ir.ArrayType(I32, 2), "table")
    table.initializer, table.linkage = ir.Constant(table.kind, [1, 2]), "internal"
    table.global_constant, table.align = True, 64
    outside = ir.Function(module, ir.FunctionType(ir.VOID, [I32, F64]), "outside")
    outside.attributes.add("cold")
    inside = ir.Function(module, ir.FunctionType(I32, [I32]), "inside")
    inside.linkage, inside.calling_convention = "internal", "coldcc"
    inside.attributes.add("noinline")
    b = IRBuilder(inside.append_basic_block("entry"))
    again = inside.append_basic_block("entry")
    b.branch(again)
    b.position_at_end(again)
    b.ret(inside.args[0])
    text = str(module)
    assert '@"table" = internal constant [2 x i32] [i32 1, i32 2], align 64' in text
    assert 'declare void @"outside"(i32, double) cold' in text
    assert 'define internal coldcc i32 @"inside"(i32 %p0) noinline {' in text
    assert "entry.1:" in text
    assert outside.is_declaration
    assert not inside.is_declaration
    assert module.functions == [outside, inside]
    llvm.parse_assembly(text).verify()
