"""Native side of parts that are made when they are first called (`compiler/late_parts`).

In: an llvmlite module. Out: in it, `pyrelay_ask`, which has a function of Python make a part.
"""

from __future__ import annotations

import sys

from pyrelay.devices.compiler import llvm_ir as ir
from pyrelay.devices.compiler.llvm_writer import INT32, VOID, Function

_STATE = "PyThreadState_GetUnchecked" if sys.version_info >= (3, 13) else (
    "_PyThreadState_UncheckedGet"
)  # fmt: skip


def write_ask(module: ir.Module) -> Function:
    """(number, make): what `make(number)` gives, which is a native function that takes the GIL.

    It runs on a thread of its own, with a stack and a depth of recursion of its own, where Python
    handles no signals. This one gives the GIL away meanwhile, if it has it. Where Python ends the
    new thread, as there is no interpreter any more, this one waits until the process is gone.
    """
    f = Function(module, "pyrelay_ask", 2)
    number, make = f.parameters
    thread, found = (f.address(f.local_words(1)) for _ in range(2))
    f.store(found, 0, 0)
    state = f.c(_STATE)
    own = state.differs(0) & f.c("PyGILState_GetThisThreadState").equals(state)
    kept = f.variable(0)
    with f.when(own):
        kept.set(f.c("PyEval_SaveThread"))
    failed = f.c("pthread_create", thread, 0, make, number, returns=INT32)
    with f.either(failed.equals(0)) as (begun, none):
        with begun:
            f.do("pthread_join", f.load(thread), found)
        with none:
            f.store(found, 0, f.call_address(make, number))
    with f.when(own):
        f.c("PyEval_RestoreThread", kept.now, returns=VOID)
    with f.while_(lambda: f.load(found).equals(0)):
        f.do("pause")
    f.ret(f.load(found))
    return f
