"""What a thread does of a loop whose rows are shared out: the part of a plan's `Parts`.

In: an llvmlite module with the executor's `pyrelay_run`. Out: in it, `pyrelay_part(block, begin,
end)`, a kernel over groups of `ROWS_TOGETHER` rows. Words of the block: the record for an error,
the state of the call, the frame to begin with, the frame to end with, the instruction, how many
rows there are. The instruction's words 1, 2 and 3 are the slots for the first row, the last one's
end and 1, its word 6 says how many slots the frame has; the part begins behind it.

A part runs on a state of its own with a copy of the frame. It allocates nothing, so that all it
leaves are elements of arrays, and its frame, of which one is as good as another: the first one is
copied back.
"""

from __future__ import annotations

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import VOID, Function
from pyrelay.devices.runtime.layout import POLL, RECORD_WORDS, WORD, Control, State, Status
from pyrelay.lower.planning.opcodes import LINK_WORDS

LINK = WORD * LINK_WORDS
"""Bytes before a frame."""

ROWS_TOGETHER = 4
"""Rows that one thread does together: tiles of products are as tall at least."""

INSTRUCTION_WORDS = 8
"""Words of the instruction, its operation and the label included."""


def write_part(module: ir.Module, run: Function) -> Function:
    """The function `pyrelay_part` of a module."""
    f = Function(module, "pyrelay_part", 3)
    block, begin, end = f.parameters
    record, caller, given, frame, instruction, rows = (f.load(block, WORD * k) for k in range(6))
    control = f.load(caller, State.CONTROL)
    scratch = (f.load(control, Control.SCRATCH_WORDS) << 3) + State.SCRATCH + WORD
    size = f.load(instruction, 6 * WORD) << 3
    state = f.c("calloc", f.number(1), scratch + (size + LINK))
    with f.when(state.equals(0), likely=False):
        f.ret(Status.MEMORY)
    stack = state + scratch
    own = stack + LINK
    f.store(state, State.CONTROL, control)
    f.store(state, State.STACK, stack)
    f.store(state, State.STACK_END, own + size)
    for word in (POLL, POLL + WORD):  # of the team's job: what stops one part stops all
        f.store(state, State.RECORD + word, f.load(record, word))
    f.c("memcpy", own, given, size)
    last = f.smaller(end * ROWS_TOGETHER, rows)
    for place, value in ((1, begin * ROWS_TOGETHER), (2, last), (3, f.number(1))):
        f.store(own + (f.load(instruction, place * WORD) << 3), 0, value)
    status = f.call(run, state, instruction + INSTRUCTION_WORDS * WORD)
    with f.when(status.differs(0), likely=False):
        f.c("memcpy", record, state + State.RECORD, f.number(RECORD_WORDS * WORD))
    with f.when(begin.equals(0) & status.equals(0)):
        f.c("memcpy", frame, own, size)
    f.c("free", state, returns=VOID)
    f.ret(status)
    return f
