"""What products of patches fetch; their values are tested by convolutions."""

from __future__ import annotations

from llvmlite import ir

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.routines import offset_product


def test_one_of_the_tiles_fetches_the_rows_of_the_next_and_all_the_next_lines() -> None:
    """Other tiles find their rows in a cache. Lines are fetched before tiles, those that copy a
    panel and others."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)]), "caller")
    builder = ir.IRBuilder(function.append_basic_block())
    product = offset_product.offset_product_f32x8
    product.emit(builder, types.void, function.args[0])
    assert str(module).count("call void @\"llvm.prefetch") == 3
