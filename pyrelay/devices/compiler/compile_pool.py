"""Kernels and the run time, compiled by several processes at once.

In: kernels as source text. Out: their object code, in order.

LLVM is run under a lock of its process, so threads do not help: other processes do
(`compile_worker`). The first is started when a program turns out to be on no disk (`expect`); while
this process infers and plans, it makes the run time if that is missing too, and then kernels that
are planned already (`begin`).
Kernels are taken by whoever is free, the long ones first. A process that cannot be started, fails
or ends costs nothing but time: what it owes is compiled here. `Config.compile_processes` is how
many there are, this one included.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyrelay import config
from pyrelay.devices.compiler.compile_worker import KERNEL, RUNTIME, START
from pyrelay.devices.runtime.threads import usable_threads
from pyrelay.records import dataclass

_MOST = 4
"""Processes, this one included, unless the setting says otherwise: a program has few kernels."""
_EACH = 8
"""Kernels for which one process more is started."""
_PARTS = {
    "offset_product": 0.24, "near_rows": 0.1, "packed_rows": 0.09,
    "product": 0.09, "window_sums": 0.08, "turned_weights": 0.07, "copy_lines": 0.05,
    "column_dots": 0.05, "packed_columns": 0.05, "vector_lines": 0.04, "in_place": 0.04,
    "turned_product": 0.04, "turned_sums": 0.04, "softened_rows": 0.04, "pack": 0.03,
    "copy_run": 0.03, "swept_lines": 0.03, "slopes_rows": 0.03, "turned_tiles": 0.02,
    "line_sums": 0.02, "few_rows": 0.02, "winograd_lines": 0.02, "winograd_image": 0.02,
    "panel_row": 0.01, "vector_dots": 0.01, "winograd_finite": 0.01,
    "add_run": 0.01, "scaled_rows": 0.01,
    "tap_sums": 0.02, "tap_dots": 0.02,
    "winograd_seen": 0.02, "winograd_pairs": 0.08, "winograd_dot": 0.01,
    **{f"winograd_{what}{taps}": 0.02 for what in ("outputs", "given") for taps in (2, 3, 4, 5)},
    **{f"winograd_{what}{taps}": 0.1 for what in ("products", "phases") for taps in (2, 3, 4, 5)},
}  # fmt: skip
_PART, _TEXT, _LINE, _TIDIED, _START = 0.15, 0.02, 0.002, 0.0004, 0.6
"""Seconds, about: these parts, another one, a kernel, each line of it, each line of what is only
tidied, a process's start."""


@dataclass(frozen=True, slots=True)
class Task:
    """A kernel, or a part of some, to compile; `filename` is for messages."""

    source: str
    filename: str

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        if is_part(self.source):
            return _PARTS.get(self.source.split()[-1].rpartition("_")[0], _PART)
        line = _TIDIED if "\nBY_HAND = True\n" in self.source else _LINE
        return _TEXT + line * self.source.count("\n")


def is_part(source: str) -> bool:
    """Whether a text is that of a part of kernels: the line that imports it."""
    return source.startswith("from pyrelay.devices.routines.") and source.count("\n") == 1


class Compiler:
    """A process that compiles one thing after another, started when it is first asked."""

    def __init__(self) -> None:
        self._process: Any = None
        self._one_at_a_time = threading.Lock()

    @property
    def started(self) -> bool:
        """Whether its process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def take(
        self, tasks: deque[int], of: Sequence[Task], codes: list[bytes | None],
        taken: list[threading.Event],
    ) -> None:  # fmt: skip
        """Compile the next one of `tasks` until there are none; what fails stays None. Each that is
        `taken` will be done."""
        with self._one_at_a_time:
            while True:
                with _guard:
                    if not tasks:
                        return
                    index, done = tasks.popleft(), threading.Event()
                    taken.append(done)
                try:
                    codes[index] = self._reply((KERNEL, of[index].source, of[index].filename))
                finally:
                    done.set()
                if codes[index] is None and not self.started:
                    return

    def ask(self, request: tuple[str, ...]) -> bytes | None:
        """The reply; None where there is none."""
        with self._one_at_a_time:
            return self._reply(request)

    def _reply(self, request: tuple[str, ...]) -> bytes | None:
        try:
            if not self.started:
                self.stop()
                self._process = _process()
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            reply: bytes | None = pickle.load(self._process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.stop()
            return None
        return reply

    def stop(self) -> None:
        """End the process, whatever it is at."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._close(process)

    def forget(self) -> None:
        """In a forked child, whose process this is not: close the child's ends of its pipes."""
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0
            self._close(process)

    @staticmethod
    def _close(process: Any) -> None:
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not yet written has nobody to read it
                pipe.close()


def _process() -> Any:
    """A new process. Raises OSError where there can be none."""
    import subprocess  # starting from disk needs none

    program = os.path.basename(sys.executable or "").lower()
    if not program.startswith("python"):  # an application that Python is embedded in
        raise OSError("no Python to start")
    flags = ["-S", "-B"] if sys.dont_write_bytecode else ["-S"]
    return subprocess.Popen(
        [sys.executable, *flags, "-c", process_start()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def process_start() -> str:
    """The text that a process which compiles runs, without `site`: what that does is in the path.

    Its `pyrelay` is a package without the `__init__`, which would import NumPy.
    """
    folder = str(Path(__file__).parents[2])
    return (
        f"import sys, types; sys.path[:] = {sys.path!r}; "
        f"p = sys.modules['pyrelay'] = types.ModuleType('pyrelay'); p.__path__ = [{folder!r}]; "
        "from pyrelay.devices.compiler.compile_worker import main; main()"
    )


_compilers: list[Compiler] = []
_making: dict[str, threading.Thread] = {}
"""Parts of the run time that are being made, and who waits for each."""
_made: dict[str, bytes | None] = {}
_guard = threading.Lock()


class _Ahead:
    """Kernels that another process compiles before they are asked for."""

    def __init__(self) -> None:
        self.waiting: list[Task] = []
        self.begun: str | None = None
        self.codes: dict[str, bytes | None] = {}
        self.thread: threading.Thread | None = None

    def knows(self, source: str) -> bool:
        """Whether it waits already, or is being compiled, or is done."""
        waits = any(task.source == source for task in self.waiting)
        return waits or source == self.begun or source in self.codes

    def compile(self, compiler: Compiler) -> None:
        """Have one kernel after another compiled, the longest first, until none waits."""
        while True:
            with _guard:
                self.begun = None
                if not self.waiting:
                    self.thread = None
                    return
                task = max(self.waiting, key=lambda each: each.seconds)
                self.waiting.remove(task)
                self.begun = task.source
            code = compiler.ask((KERNEL, task.source, task.filename))
            with _guard:
                self.codes[task.source] = code


_ahead = _Ahead()


def _stop() -> None:
    for compiler in _compilers:
        compiler.stop()


def _after_fork() -> None:
    """In a child: the processes are the parent's, and the threads that used them are gone."""
    global _compilers, _guard, _ahead
    for compiler in _compilers:
        compiler.forget()
    _compilers, _guard, _ahead = [], threading.Lock(), _Ahead()
    _making.clear()
    _made.clear()


atexit.register(_stop)
os.register_at_fork(after_in_child=_after_fork)


def _others(count: int) -> list[Compiler]:
    """Compilers beside this process, at most `count` and what the settings allow."""
    allowed = config.current().compile_processes or min(_MOST, usable_threads(0))
    with _guard:
        count = min(count, allowed - 1)
        _compilers.extend(Compiler() for _ in range(count - len(_compilers)))
        return _compilers[: max(count, 0)]


def expect(parts: Sequence[str]) -> None:
    """A program will be compiled soon: have a process ready, and let it make these parts of the run
    time first."""
    for compiler in _others(1):
        with _guard:
            new = [part for part in parts if part not in _making]
            if compiler.started and not new:
                return
            thread = threading.Thread(target=_prepare, args=(compiler, new), daemon=True)
            _making.update(dict.fromkeys(new, thread))
        thread.start()


def _prepare(compiler: Compiler, parts: Sequence[str]) -> None:
    if not parts:
        compiler.ask((START,))
    for part in parts:
        _made[part] = compiler.ask((RUNTIME, part))


def begin(task: Task) -> None:
    """A kernel may be asked for: a process that is there compiles it beside what goes on here."""
    for compiler in _others(1):
        with _guard:
            if not compiler.started or _ahead.knows(task.source):
                return
            _ahead.waiting.append(task)
            if _ahead.thread is None:
                thread = threading.Thread(target=_ahead.compile, args=(compiler,), daemon=True)
                _ahead.thread = thread
                thread.start()


def _taken_over(tasks: Sequence[Task]) -> tuple[dict[str, bytes | None], list[Task]]:
    """What of them was compiled ahead, and what remains, but for what is being compiled; nothing
    more is begun."""
    with _guard:
        _ahead.waiting.clear()
        done = {t.source: _ahead.codes.pop(t.source) for t in tasks if t.source in _ahead.codes}
        return done, [t for t in tasks if t.source not in done and t.source != _ahead.begun]


def runtime(part: str) -> bytes | None:
    """The object code of a part of the run time, where it was expected and could be made."""
    with _guard:
        thread = _making.pop(part, None)
    if thread is None:
        return None
    thread.join()
    return _made.pop(part, None)


def objects(tasks: Sequence[Task]) -> list[bytes]:
    """The object code of kernels, in order.

    Raises `kernel_language.KernelError` where a text is not in the kernel language.
    """
    known, rest = _taken_over(tasks)
    codes: list[bytes | None] = [None] * len(rest)
    order = deque(sorted(range(len(rest)), key=lambda index: -rest[index].seconds))
    taken: list[threading.Event] = []
    for compiler in _helping(rest):
        args = order, rest, codes, taken
        threading.Thread(target=compiler.take, args=args, daemon=True).start()
    try:
        while order:
            try:
                index = order.popleft()
            except IndexError:  # another one was faster
                break
            codes[index] = _here(rest[index])
    finally:
        with _guard:
            order.clear()
            under_way = any(task.source == _ahead.begun for task in tasks) and _ahead.thread
        for done in taken:
            done.wait()
        if under_way:  # what others do not ask for is not waited for
            under_way.join()
    known.update(zip((task.source for task in rest), codes, strict=True))
    known.update(_taken_over(tasks)[0])
    return [known.get(task.source) or _here(task) for task in tasks]


def _helping(tasks: Sequence[Task]) -> list[Compiler]:
    """The compilers worth asking: those at work already, and new ones for many kernels."""
    others = _others(1 + len(tasks) // _EACH) if len(tasks) > 1 else []
    share = sum(task.seconds for task in tasks) / (1 + len(others))
    return [compiler for compiler in others if compiler.started or share > _START]


def _here(task: Task) -> bytes:
    from pyrelay.devices.compiler import kernel_compiler  # loading from disk needs none of it

    return kernel_compiler.kernel_object(task.source, task.filename)
