"""Room for programs that nest deeply: work done on a thread with a large stack.

In: a function and its arguments. Out: its result, or its exception with the traceback it had.

Passes use Python's own stack for the nesting of blocks. A chain of a thousand `elif` nests a
thousand blocks, more than the main thread's stack and Python's recursion limit allow. Compilation
therefore runs on a thread of its own, which has `STACK_SIZE` bytes of stack (address space: pages
that are never touched cost nothing), and with `RECURSION_LIMIT` for the time it takes. That limit
is the whole process's, so other threads have it meanwhile, too. Context variables (settings,
NumPy's error state) are those of the caller. An exception that arrives while the caller waits, such
as KeyboardInterrupt, stops the work and is raised once the work has stopped.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

__all__ = ["RECURSION_LIMIT", "STACK_SIZE", "deep", "on_deep_stack", "on_deep_stack_telling"]

STACK_SIZE = 512 << 20
#: A level of recursion that goes through C code takes up to about 2 KiB of stack.
RECURSION_LIMIT = 200_000

P = ParamSpec("P")
R = TypeVar("R")

_state = threading.Lock()  # guards what follows and the process's limits
_running = 0
_usual_limit = 0
_here = threading.local()


def on_deep_stack(work: Callable[P, R], /, *args: P.args, **keywords: P.kwargs) -> R:
    """`work(*args, **keywords)`, with room to recurse.

    Called from such work, it is a plain call. So it is where the system refuses a thread.
    """
    return _done(functools.partial(work, *args, **keywords))


def on_deep_stack_telling(
    seconds: float, late: Callable[[], None], work: Callable[P, R], /,
    *args: P.args, **keywords: P.kwargs,
) -> R:
    """`on_deep_stack`, and `late()`, once, where the caller has waited for so many seconds.

    Not where the work is a plain call: whoever waits for that has other work that is late.
    """
    return _done(functools.partial(work, *args, **keywords), seconds, late)


def _done(
    work: Callable[[], R], seconds: float | None = None, late: Callable[[], None] | None = None
) -> R:
    if getattr(_here, "deep", False):
        return work()
    task = _Task(work)
    try:
        thread = _started(task.run)
    except RuntimeError:
        return work()
    task.wait(thread, seconds, late)
    return task.outcome()


def deep(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the function always runs with room to recurse."""

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        return on_deep_stack(function, *args, **keywords)

    return call


class _Stop(SystemExit):
    """Ends the work from outside; a thread that ends with a SystemExit says nothing."""


class _Task(Generic[R]):
    """Work on another thread, and how it ended."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self._results: list[R] = []
        self._error: BaseException | None = None
        self._interruption: BaseException | None = None
        self._lock = threading.Lock()
        self._stoppable = False

    def run(self) -> None:
        """Do the work; on the thread."""
        _here.deep = True
        _raise_limit()
        try:
            self._run()
        except _Stop:
            pass  # it came when the work had just ended
        finally:
            _restore_limit()

    def _run(self) -> None:
        with self._lock:
            if self._interruption is not None:
                return
            self._stoppable = True
        try:
            self._results.append(self._context.run(self._work))
        except BaseException as error:  # raised again where the caller waits
            self._error = error
        finally:
            with self._lock:
                self._stoppable = False

    def wait(
        self, thread: threading.Thread, seconds: float | None, late: Callable[[], None] | None
    ) -> None:
        """Wait for the end; what interrupts the waiting stops the work.

        Calls `late`, once, where the work has not ended after so many seconds.
        """
        while thread.is_alive():
            try:
                thread.join(seconds)
                if late is not None and thread.is_alive():
                    seconds, tell, late = None, late, None
                    tell()
            except BaseException as error:
                self._stop(thread, error)

    def _stop(self, thread: threading.Thread, why: BaseException) -> None:
        with self._lock:
            self._interruption = why
            if self._stoppable:
                number = ctypes.c_ulong(thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_Stop))

    def outcome(self) -> R:
        """The result; raises what the work, or what interrupted it, raised."""
        # Neither exception may refer to this frame, which would keep all of the work's values.
        error, self._error = self._interruption or self._error, None
        self._interruption = None
        try:
            if error is not None:
                raise error
            return self._results[0]
        finally:
            del error


def _started(run: Callable[[], None]) -> threading.Thread:
    """A thread with a large stack. Raises RuntimeError if the system has none to give."""
    thread = threading.Thread(target=run, name="pyrelay-compile", daemon=True)
    with _state:
        usual = threading.stack_size(STACK_SIZE)
        try:
            thread.start()
        finally:
            threading.stack_size(usual)
    return thread


def _raise_limit() -> None:
    global _running, _usual_limit
    with _state:
        if not _running:
            _usual_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual_limit, RECURSION_LIMIT))
        _running += 1


def _restore_limit() -> None:
    global _running
    with _state:
        _running -= 1
        if not _running:
            sys.setrecursionlimit(_usual_limit)


def _after_fork() -> None:
    """In a child, other threads are gone."""
    global _state, _running
    _state = threading.Lock()
    deep_here = getattr(_here, "deep", False)
    if _running and not deep_here:
        sys.setrecursionlimit(_usual_limit)
    _running = int(deep_here)


os.register_at_fork(after_in_child=_after_fork)
