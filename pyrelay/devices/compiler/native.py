"""Object code: made from kernels once, loaded ever after.

In: kernels as source text. Out: addresses of native functions
`int64 (int64 block, int64 begin, int64 end)`. The parts that a text imports
(`routines.calls.Part`) are compiled and loaded as kernels are, whose texts are the imports alone;
some of them not before they are called (`late_parts`), unless that is foreseen (`begin`).

A kernel is known by a digest of its text and of everything else that decides its machine code:
versions, CPU, and this package's own code generators. Equal texts share one compiled and one
loaded kernel, in all programs of the process. Loading imports nothing of what compiles.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.devices import cache
from pyrelay.devices.compiler import compile_pool, late_parts, object_code
from pyrelay.devices.fingerprints import generators
from pyrelay.devices.routines.made_of import called_by, is_often_unused
from pyrelay.errors import DeviceError
from pyrelay.records import dataclass

KIND = "kernels"
"""The cache's name for kernels; sources lie beside the object code, as `<digest>.py`."""


@dataclass(slots=True)
class Counts:
    """What this process did so far; `compiled` counts kernels."""

    compiled: int = 0
    loaded: int = 0
    compile_seconds: float = 0.0
    load_seconds: float = 0.0


counts = Counts()

_addresses: dict[str, int] = {}
_foreseen: set[str] = set()  # parts that programs will call
_loaded: list[Any] = []  # trackers: object code stays while they do, and kernels stay for good
_lock = threading.RLock()
_names = itertools.count()


def _before_fork() -> None:
    """Wait for a thread that compiles: a child would inherit LLVM as it is just then, and its lock
    with it."""
    _lock.acquire()


def _after_fork_in_parent() -> None:
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)  # fmt: skip


def kernel_digest(source: str) -> str:
    """The identity of a kernel's machine code, as hexadecimal digits."""
    return hashlib.sha256(f"{generators()}\n{source}".encode()).hexdigest()


def kernel_address(source: str) -> int:
    """The address of a kernel, compiled or fetched from disk where it is not yet loaded."""
    return kernel_addresses((source,))[0]


def kernel_addresses(sources: Sequence[str]) -> list[int]:
    """The addresses of kernels; those that are neither loaded nor on disk are compiled together."""
    digests = [kernel_digest(source) for source in sources]
    if any(digest not in _addresses for digest in digests):
        with _lock:
            store = cache.current()
            parts = [text for source in sources for text in parts_of(source).values()]
            _fetch([*(text for text in parts if not _waits(text, store)), *sources], store)
        if _late.waiting:
            from pyrelay.devices.runtime.library import runtime  # which is loaded by what is here

            _late.parts.asked_by(runtime().symbols["pyrelay_ask"])
    return [_addresses[digest] for digest in digests]


def _fetch(texts: Sequence[str], store: cache.Cache) -> None:
    """Load kernels and parts, what they need before them; compile those that are not on disk."""
    wanted = {kernel_digest(text): text for text in texts}
    missing = {
        digest: text for digest, text in wanted.items()
        if digest not in _addresses and not _stored(digest, text, store)
    }
    if missing:
        _compile(missing, store)


def _waits(part: str, store: cache.Cache) -> bool:
    """Whether a part is not made before it is called. What is on disk is: to load it takes less
    than to be called for it."""
    if not is_often_unused(part) or not late_parts.supported():
        return False
    digest = kernel_digest(part)
    path = store.path(KIND, digest)
    return digest not in _foreseen and (path is None or not path.exists())


class _Late:
    """The parts that are made when they are called, by the numbers of their addresses.

    waiting: those that are not made yet, and where: number, and the cache they are kept in.
    """

    def __init__(self) -> None:
        self.parts = late_parts.LateParts(self._make)
        self.texts: list[tuple[str, cache.Cache]] = []
        self.waiting: dict[str, tuple[int, int]] = {}

    def address(self, digest: str, text: str, store: cache.Cache) -> int | None:
        """Where a part can be called that is not made; None where that cannot be."""
        if digest not in self.waiting:
            address = self.parts.address()
            if address is None:
                return None
            self.waiting[digest] = len(self.texts), address
            self.texts.append((text, store))
        return self.waiting[digest][1]

    def made(self, digest: str, address: int) -> None:
        """A part is there."""
        if digest in self.waiting:
            self.parts.made(self.waiting.pop(digest)[0], address)

    def _make(self, number: int) -> int:
        text, store = self.texts[number]
        with _lock:
            _fetch([*parts_of(text).values(), text], store)
            return _addresses[kernel_digest(text)]


_late = _Late()


_PARTS = re.compile(r"^from (pyrelay\.devices\.routines\.\w+) import (\([^)]*\)|.*)$", re.MULTILINE)


@functools.cache
def parts_of(source: str) -> dict[str, str]:
    """The texts of the parts that a kernel, or a part, calls, by their names; before each are those
    that it calls itself."""
    if compile_pool.is_part(source):
        return called_by(source)
    found: dict[str, str] = {}
    for module, names in _PARTS.findall(source):
        for name in re.findall(r"\w+", names):
            part = f"from {module} import {name}\n"
            found.update({**called_by(part), name: part})
    return found


def _symbol(source: str) -> str:
    """What the object of a kernel, or of a part, exports."""
    return source.split()[-1] if compile_pool.is_part(source) else "pyrelay_kernel"


def _link(digest: str, source: str, code: bytes, store: cache.Cache) -> None:
    """Load a kernel or a part; those of its parts that do not wait are loaded."""
    parts = {name: _part(text, store) for name, text in parts_of(source).items()}
    symbol = _symbol(source)
    _addresses[digest] = load_all(code, (symbol,), parts)[symbol]
    _late.made(digest, _addresses[digest])


def _part(text: str, store: cache.Cache) -> int:
    """Where a part is called."""
    digest = kernel_digest(text)
    if digest not in _addresses:
        address = _late.address(digest, text, store)
        if address is not None:
            return address
        _fetch([text], store)
    return _addresses[digest]


def _stored(digest: str, source: str, store: cache.Cache) -> bool:
    """Load a kernel or a part from disk; whether it was there, and its parts are loaded."""
    parts = parts_of(source).values()
    if any(kernel_digest(text) not in _addresses and not _waits(text, store) for text in parts):
        return False
    code = store.get(KIND, digest)
    if code is None:
        return False
    try:
        _link(digest, source, code, store)
    except DeviceError:  # not object code after all: to be made anew
        store.counts.rejected += 1
        return False
    return True


def begin(source: str) -> None:
    """A kernel, or a part, will be asked for: the process that helps to compile begins with it
    where it is neither loaded nor on disk."""
    store = cache.current()
    if compile_pool.is_part(source):
        _foreseen.add(kernel_digest(source))
    parts = [part for part in parts_of(source).values() if not _waits(part, store)]
    for text in (*parts, source):
        digest = kernel_digest(text)
        if digest not in _addresses:
            path = store.path(KIND, digest)
            if path is None or not path.exists():
                compile_pool.begin(_task(digest, text, store))


def _task(digest: str, source: str, store: cache.Cache) -> compile_pool.Task:
    path = store.path(KIND, digest, ".py")
    return compile_pool.Task(source, str(path or f"<kernel {digest[:12]}>"))


def _compile(missing: dict[str, str], store: cache.Cache) -> None:
    """Compile, keep and load kernels, by their digests."""
    started = time.perf_counter()
    tasks = []
    for digest, source in missing.items():
        store.put_text(KIND, digest, ".py", source)
        tasks.append(_task(digest, source, store))
    codes = compile_pool.objects(tasks)
    counts.compile_seconds += time.perf_counter() - started
    for (digest, source), code in zip(missing.items(), codes, strict=True):  # parts before kernels
        store.put(KIND, digest, code)
        _link(digest, source, code, store)
        counts.compiled += not compile_pool.is_part(source)


@functools.cache
def _linker(process: int) -> Any:
    """LLVM's linker; a forked child goes on with a copy of its own."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        reloc="pic", codemodel="default"
    )
    # JITLink keeps the sections of an object together. RuntimeDyld places each kind near others of
    # its kind, and once they are 2 GiB apart, as in a process that maps much, it ends the process.
    return llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)


def load_all(
    code: bytes, symbols: tuple[str, ...], known: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Link object code into the process; the addresses of its symbols. `known` has those that it
    refers to.

    Raises DeviceError where it is no object code for this machine or needs an unknown symbol.
    """
    started = time.perf_counter()
    with _lock:
        found = object_code.load(code, symbols, known or {})
        if found is None:
            found = _linked_by_llvm(code, symbols, known or {})
        counts.loaded += 1
        counts.load_seconds += time.perf_counter() - started
        return found


def _linked_by_llvm(
    code: bytes, symbols: tuple[str, ...], known: Mapping[str, int]
) -> dict[str, int]:
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    for symbol, address in known.items():
        builder.import_symbol(symbol, address)
    try:
        tracker = builder.link(_linker(os.getpid()), f"pyrelay{next(_names)}")
    except RuntimeError as error:
        raise DeviceError(f"Object code cannot be loaded: {error}") from error
    _loaded.append(tracker)
    return {symbol: int(tracker[symbol]) for symbol in symbols}


def load(code: bytes, symbol: str) -> int:
    """Link object code into the process; the address of one symbol."""
    return load_all(code, (symbol,))[symbol]
