"""Functions that kernels call: routines of their own texts, parts, other kernels.

In: ``call0 = routine("routine0", "i64", ...)`` in the text, which names a function
``routine0(block, state, ...)`` of the same text and the types of its other parameters. Out: an
intrinsic that calls it. A ``Part`` is written by hand, imported by texts, and compiled once for all
of them. ``call_kernel(address, block, begin, end)`` calls a kernel that was
compiled by itself. ``stack_address()`` is an address in the frame of the function that asks,
``lowest_address(block)`` the one that the native stack may reach, or 0 where nobody has said so.
``resume(block, state, code, words, given, taken)`` has a function of the plan run
(``devices/runtime/resumed_calls``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from pyrelay.devices.runtime.layout import LOWEST, RESUME


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


class Part(Intrinsic):
    """The call of a function of so many words that is written by hand: an object of its own, which
    kernels are linked with (`kernel_compiler`).

    ``write(module, name)`` writes it and what it needs. It gives a word; ``after(builder, word)``
    is what a kernel does with that. ``steps``: as a kernel's text says it.
    """

    def __init__(
        self, name: str, result: types.Type, parameters: int,
        write: Callable[[llvm.Module, str], object],
        after: Callable[[IRBuilder, Any], Any] | None = None,
        steps: bool = False,
    ) -> None:
        self.write, self.after, self.steps = write, after, steps
        self.kind = llvm.FunctionType(WORD, [WORD] * parameters)
        super().__init__(name, fixed(result, *(types.int64,) * parameters), self._call)

    def _call(self, b: IRBuilder, _: types.Type, *args: Any) -> Any:
        found = self.call(b, args)
        return found if self.after is None else self.after(b, found)

    def call(self, b: IRBuilder, args: Sequence[Any]) -> Any:
        """Emit a call; the word that it gives."""
        known = b.module.globals.get(self.spelling)
        if known is None:
            known = llvm.Function(b.module, self.kind, self.spelling)
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


def _of_record(b: IRBuilder, block: Any, offset: int) -> Any:
    """A word of the record, which parameter 0 points to."""
    pointer = WORD.as_pointer()
    record = b.load(b.inttoptr(block, pointer), typ=WORD)
    place = b.add(record, llvm.Constant(WORD, offset))
    return b.load(b.inttoptr(place, pointer), typ=WORD)


def _emit_resume(b: IRBuilder, _: types.Type, block: Any, *args: Any) -> Any:
    return _emit_call_kernel(b, types.int64, _of_record(b, block, RESUME), block, *args)


resume = Intrinsic("resume", fixed(types.int64, *(types.int64,) * 6), _emit_resume)
lowest_address = Intrinsic(
    "lowest_address", fixed(types.int64, types.int64),
    lambda b, _, block: _of_record(b, block, LOWEST),
)
call_kernel = Intrinsic(
    "call_kernel", fixed(types.int64, *(types.int64,) * 4), _emit_call_kernel
)
stack_address = Intrinsic("stack_address", fixed(types.int64), _emit_stack_address)
