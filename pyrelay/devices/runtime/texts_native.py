"""Texts made of their code points by native code.

In: an llvmlite module. Out: in it, a function from words that are code points to a string.
"""

from __future__ import annotations

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Function, Word
from pyrelay.devices.compiler.llvm_writer import WORD as WORD_TYPE

_SHORT = 128
"""Characters of a text that is made without memory of its own."""


def text_making(module: ir.Module, name: str) -> Function:
    """(code points, count): a new string, 0 with a Python error set."""
    f = Function(module, name, 2)
    codes, count = f.parameters
    own = f.address(f.local_words(_SHORT // 2))
    room = f.variable(own)
    with f.when(count > _SHORT, likely=False):
        room.set(f.c("PyMem_Malloc", count << 2))
        with f.when(room.now.equals(0)):
            f.ret(f.c("PyErr_NoMemory"))
    with f.counting(count) as index:
        code = f.load(codes + (index << 3))
        f.store_narrow(room.now + (index << 2), 32, code)
    native = f.symbol("PyUnicode_FromKindAndData", [INT32, WORD_TYPE, WORD_TYPE], WORD_TYPE)
    found = Word(f, f.b.call(native, [INT32(4), room.now.raw, count.raw]))
    with f.when(room.now.differs(own), likely=False):
        f.c("PyMem_Free", room.now, returns=VOID)
    f.ret(found)
    return f
