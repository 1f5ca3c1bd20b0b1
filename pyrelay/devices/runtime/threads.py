"""The pool of threads that share a kernel's range: its making, and its life in the process.

In: the wish for n threads (`Pool.use`). Out: a team in the process record, which launches split
their work over (`teamwork.py` is the native side).

Workers are Python threads inside a native function that waits without the GIL; they run no
Python, so nothing waits for them when the process ends. A forked child begins without a team and
makes its own.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from collections.abc import Callable

from pyrelay.devices.runtime.layout import Process, Team


class Pool:
    """The process's team: started on first use, rebuilt after a fork."""

    def __init__(self, process: int, worker: Callable[[int], int]) -> None:
        """`process` is the address of the process record, `worker` the native function."""
        self._record = process
        self._process = ctypes.c_int64.from_address(process + Process.TEAM)
        self._worker = worker
        self._lock = threading.Lock()
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """No team yet: at first, and in a forked child, where the parent's threads are missing."""
        self._lock = threading.Lock()
        self._process.value = 0
        self._address = 0
        self._started = 1

    def use(self, threads: int) -> None:
        """Let launches share their work among this many threads, the caller's included."""
        with self._lock:
            if threads <= 1:
                self._process.value = 0
                return
            if not self._address:
                library = ctypes.CDLL(None)
                # Never freed: workers look for jobs in it when the interpreter is gone.
                library.calloc.restype = ctypes.c_void_p
                self._address = library.calloc(ctypes.c_size_t(1), ctypes.c_size_t(Team.BYTES))
                if not self._address:
                    raise MemoryError
                for name, field in (("mutex", Team.MUTEX), ("cond", Team.CONDITION)):
                    initialise = getattr(library, f"pthread_{name}_init")
                    initialise(ctypes.c_void_p(self._address + field), None)
            while self._started < threads:
                _thread.start_new_thread(self._worker, (self._address,))
                self._started += 1
            ctypes.c_int64.from_address(self._address + Team.THREADS).value = threads
            ctypes.c_int64.from_address(self._address + Team.PROCESS).value = self._record
            self._process.value = self._address


def usable_threads(wanted: int) -> int:
    """The number of threads for a setting: 0 means the CPUs this process may use."""
    if wanted > 0:
        return wanted
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
