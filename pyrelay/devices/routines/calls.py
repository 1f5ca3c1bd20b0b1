"""Routines: functions that a kernel's text defines beside the kernel, and how they are called.

In: ``call0 = routine("routine0", "i64", ...)`` in the text, which names a function
``routine0(block, state, ...)`` of the same text and the types of its other parameters. Out: an
intrinsic that calls it. ``call_kernel(address, block, begin, end)`` calls a kernel that was
compiled by itself. ``stack_address()`` is an address in the frame of the function that asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import (
    LLVM_TYPES,
    SHORT_NAMES,
    WORD,
    Intrinsic,
    fixed,
)
from pyrelay.devices.compiler.llvm_builder import IRBuilder


class Routine(Intrinsic):
    """The call of a function ``symbol`` whose parameters have the types ``kinds``."""

    def __init__(self, symbol: str, kinds: Sequence[types.Type]) -> None:
        self.symbol, self.kinds = symbol, tuple(kinds)
        super().__init__(symbol, fixed(types.int64, *self.kinds), self._call)

    def _call(self, b: IRBuilder, _: types.Type, *args: Any) -> Any:
        known = b.module.globals.get(self.symbol)
        if known is None:
            kind = llvm.FunctionType(WORD, [LLVM_TYPES[k] for k in self.kinds])
            known = llvm.Function(b.module, kind, self.symbol)
        return b.call(known, args)


def routine(symbol: str, *kinds: str) -> Routine:
    """How a kernel's text calls a function that it defines; its result is an ``i64``."""
    return Routine(symbol, (types.int64, types.int64, *(SHORT_NAMES[k] for k in kinds)))


def _emit_stack_address(b: IRBuilder, _: types.Type) -> Any:
    with b.goto_entry_block():
        place = b.alloca(WORD)
    return b.ptrtoint(place, WORD)


def _emit_call_kernel(b: IRBuilder, _: types.Type, address: Any, *args: Any) -> Any:
    kind = llvm.FunctionType(WORD, [WORD] * len(args))
    return b.call(b.inttoptr(address, kind.as_pointer()), args)


call_kernel = Intrinsic(
    "call_kernel", fixed(types.int64, *(types.int64,) * 4), _emit_call_kernel
)
stack_address = Intrinsic("stack_address", fixed(types.int64), _emit_stack_address)
