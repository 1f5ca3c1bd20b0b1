"""The process of a `compile_pool.Compiler`: requests come in, object code goes out.

In: pickled requests on standard input, one at a time: `(RUNTIME, part)`,
`(KERNEL, source, filename)`, or `(START,)` to have what kernels need imported. Out: a pickled reply
each, bytes, or None where it could not be made: whoever asked makes it then, and meets the reason.
It ends with its standard input, or after a while without requests; what would be printed goes
nowhere, and Ctrl-C is the caller's.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
from typing import BinaryIO

RUNTIME, KERNEL, START = "runtime", "kernel", "start"
IDLE_SECONDS = 10.0


def main() -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(50_000)  # of LLVM's modules as objects, which refer to each other, all is used
    replies = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    while (request := _next(sys.stdin.buffer)) is not None:
        pickle.dump(_answer(request), replies)
        replies.flush()
        from pyrelay.devices.compiler import kernel_compiler  # while nobody waits

        del kernel_compiler


def _next(requests: BinaryIO) -> tuple[str, ...] | None:
    """The next request; None where none came."""
    if os.name == "posix" and not select.select([requests], [], [], IDLE_SECONDS)[0]:
        return None
    try:
        request: tuple[str, ...] = pickle.load(requests)
    except EOFError:
        return None
    return request


def _answer(request: tuple[str, ...]) -> bytes | None:
    try:
        if request[0] == RUNTIME:
            from pyrelay.devices.runtime import runtime_parts

            return runtime_parts.build(*request[1:])
        if request[0] == KERNEL:
            from pyrelay.devices.compiler import kernel_compiler

            return kernel_compiler.kernel_object(*request[1:])
    except Exception:  # met again, and raised, where it was asked
        return None
    return b""
