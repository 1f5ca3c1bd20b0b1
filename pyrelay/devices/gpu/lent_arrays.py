"""Arguments that live until the device has done with them.

In: arrays of a call, behind its last launch. Out: nothing; they are kept, and later calls
let them go.

A call returns before the device has read its arguments. Memory that CuPy or PyTorch get back is
given to work of the same stream only, which comes later. JAX takes memory for its own next work
when Python lets go of an array, as of `sin(x)` in `f(sin(x))`, and knows of no stream but its own.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.gpu.array_libraries import library_of


class LentArrays:
    """The arrays of JAX's that the device may still read, each call's beside an event of CuPy's
    behind its work. not_ready: forgets that CUDA was asked for an event that was not done."""

    def __init__(self, not_ready: Callable[[], None]) -> None:
        self.waiting: collections.deque[tuple[Any, list[Any]]] = collections.deque()
        self.lock = threading.Lock()
        self.not_ready = not_ready

    def keep(self, arrays: Sequence[Any], record: Callable[[], Any]) -> None:
        """Keep those that have to be; `record` gives an event behind all work so far."""
        kept = [array for array in arrays if _is_of_jax(array)]
        if not kept:
            return
        event = record()
        with self.lock:
            self.waiting.append((event, kept))
            while self.waiting:
                event, _ = self.waiting[0]
                if not event.done:
                    self.not_ready()
                    return
                self.waiting.popleft()


def _is_of_jax(array: Any) -> bool:
    kind: type = type(array)
    return library_of(kind) == "jax"
