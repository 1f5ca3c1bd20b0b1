"""Where native calls nest too deeply for the native stack: the plan goes on with the call.

In: an llvmlite module with the executor's `pyrelay_run`. Out: in it, `pyrelay_resume(block, calls,
code, words, given, taken)`, which a routine of a kernel calls (`lower/text/call_spelling`). It runs
the function of the plan that `code` says, on `given` words, and leaves `taken` words of what that
returns in their place; it returns a `Status`. What the routine has stored by then stays: nothing is
done again.

Frames of the plan lie in memory, so that only memory ends them. The run has frames of its own, and
uses the state of the call it is part of: its allocations are the call's. `calls` is the state that
the routines share; its first word, how low the native stack may reach, holds for kernels that the
run launches as well.
"""

from __future__ import annotations

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import VOID, Function
from pyrelay.devices.runtime.layout import LOWEST, Control, State, Status
from pyrelay.devices.runtime.row_parts import LINK
from pyrelay.lower.planning.opcodes import CODE_BITS

FIRST_BYTES = 1 << 14
"""Room for frames beside the first one."""


def write_resume(module: ir.Module, run: Function) -> Function:
    """The function `pyrelay_resume` of a module."""
    f = Function(module, "pyrelay_resume", 6)
    block, calls, code, words, given, taken = f.parameters
    record = f.load(block)
    state = record - State.RECORD
    control = f.load(state, State.CONTROL)
    scratch_bytes = f.load(control, Control.SCRATCH_WORDS) << 3
    size = (code.unsigned_div(1 << CODE_BITS) << 3) + (LINK + FIRST_BYTES)
    kept, stack = f.c("malloc", scratch_bytes), f.c("malloc", size)
    with f.when(~(kept.differs(0) & stack.differs(0)), likely=False):
        f.c("free", kept, returns=VOID)
        f.c("free", stack, returns=VOID)
        f.ret(Status.MEMORY)
    scratch = state + State.SCRATCH  # where the block lies
    f.c("memcpy", kept, scratch, scratch_bytes)
    outer = [f.load(state, word) for word in (State.STACK, State.STACK_END)]
    lowest = f.load(record, LOWEST)
    f.store(state, State.STACK, stack)
    f.store(state, State.STACK_END, stack + size)
    f.store(record, LOWEST, f.load(calls))
    f.c("memcpy", stack + LINK, words, given << 3)
    place = code & ((1 << CODE_BITS) - 1)
    status = f.call(run, state, f.load(control, Control.CODE) + (place << 3))
    f.c("free", f.load(state, State.STACK), returns=VOID)
    for word, value in zip((State.STACK, State.STACK_END), outer, strict=True):
        f.store(state, word, value)
    f.store(record, LOWEST, lowest)
    f.c("memcpy", words, scratch, taken << 3)  # which nobody reads where it failed
    f.c("memcpy", scratch, kept, scratch_bytes)
    f.c("free", kept, returns=VOID)
    f.ret(status.equals(Status.RAISED).choose(Status.RAISED_IN_PLAN, status))
    return f
