"""The native run time of the process: executor, memory, threads and entry, loaded once.

In: nothing. Out: `runtime()`, the addresses of the native functions and the process record;
`trees()` and `lists()`, those that programs with objects and with lists need besides.

The functions are written as LLVM IR by the modules beside this one (`runtime_parts`), compiled once
per machine and version, and kept in the disk cache as object code; a later process only links them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from types import CellType
from typing import Any

import numpy as np

from pyrelay import config
from pyrelay.devices import cache
from pyrelay.devices.compiler import compile_pool, native
from pyrelay.devices.fingerprints import generators
from pyrelay.devices.runtime import boundary_fields
from pyrelay.devices.runtime.layout import Process, allocate
from pyrelay.devices.runtime.runtime_parts import LISTS, MAIN, SYMBOLS, TREES, build
from pyrelay.devices.runtime.threads import Pool, usable_threads
from pyrelay.errors import DeviceError
from pyrelay.records import dataclass

KIND = "runtime"
"""The cache's name for the run time."""
KEEP_BYTES = 1 << 30
"""Idle bytes that the process keeps for later calls."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """Addresses, the owner of the process record, and the pool."""

    symbols: dict[str, int]
    process: int
    owner: Any
    pool: Pool

    def use_threads(self) -> None:
        """Let launches use as many threads as the settings of the moment say."""
        self.pool.use(usable_threads(config.current().num_threads))


_wanted: list[str] = [MAIN]
"""Parts that a program about to be compiled needs."""


def want_trees() -> None:
    """Programs with nodes will be compiled: `expect_program` is to have their part prepared too."""
    if TREES not in _wanted:
        _wanted.append(TREES)


def want_lists() -> None:
    """The same for programs with lists of many items."""
    if LISTS not in _wanted:
        _wanted.append(LISTS)


def expect_program() -> None:
    """A program will be compiled soon: let what it needs be prepared beside it."""
    store = cache.current()
    missing = []
    for part in _wanted:
        path = store.path(KIND, _key(part))
        if part not in _loaded and (path is None or not path.exists()):
            missing.append(part)
    compile_pool.expect(missing)


def expect_first_program() -> None:
    """The same before the program is looked for on disk, if nothing was ever compiled there: not
    even what says what would be found has to be read then."""
    if not _loaded and cache.current().is_empty(KIND):
        compile_pool.expect(_wanted)


def _key(part: str) -> str:
    # Versions of Python share a cache, and what they call their functions differs.
    return f"{generators()}-{sys.implementation.cache_tag}-{part}"


_starting = threading.Lock()


def runtime() -> Runtime:
    """The process's run time, loaded on first use.

    Raises DeviceError where this interpreter's objects are not laid out as expected.
    """
    with _starting:
        return _start()


def trees() -> dict[str, int]:
    """The addresses of the functions that pack and unpack objects, loaded on first use."""
    with _starting:
        return _symbols(TREES)


def lists() -> dict[str, int]:
    """The addresses of the functions that read lists, loaded on first use."""
    with _starting:
        return _symbols(LISTS)


_loaded: dict[str, dict[str, int]] = {}


def _symbols(part: str) -> dict[str, int]:
    """The addresses of a part's functions, by their names."""
    if part in _loaded:
        return _loaded[part]
    store, key = cache.current(), _key(part)
    code = store.get(KIND, key)
    if code is not None:
        try:
            _loaded[part] = native.load_all(code, SYMBOLS[part])
        except DeviceError:  # a stored file that is no object code: made anew below
            store.counts.rejected += 1
    if part not in _loaded:
        code = compile_pool.runtime(part) or build(part)
        store.put(KIND, key, code)
        _loaded[part] = native.load_all(code, SYMBOLS[part])
    return _loaded[part]


@functools.cache
def _start() -> Runtime:
    _check_object_layout()
    symbols = _symbols(MAIN)
    process, owner = allocate(Process.BYTES)
    record = owner.view(np.int64)
    record[Process.KEPT_LIMIT // 8] = KEEP_BYTES
    record[Process.MAIN_THREAD // 8] = threading.main_thread().ident or 0
    worker = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(symbols["pyrelay_worker"])
    os.register_at_fork(after_in_child=functools.partial(_after_fork, record))
    return Runtime(symbols, process, owner, Pool(process, worker))


def _after_fork(record: np.ndarray[Any, Any]) -> None:
    """In a child: a thread that is gone may have held the memory lists; begin with empty ones."""
    global _starting
    _starting = threading.Lock()
    record[Process.LOCK // 8] = 0
    record[Process.KEPT_BYTES // 8] = 0
    record[Process.FREE // 8 : Process.MAIN_THREAD // 8] = 0
    record[Process.MAIN_THREAD // 8] = threading.get_ident()


def _check_object_layout() -> None:
    """Compare the fields that the entry reads with what Python itself says about some objects."""
    array = np.arange(6.0).reshape(2, 3)
    read = ctypes.c_int64.from_address
    cell, three = CellType(array), [7, 7, 7]
    expected = (
        (read(id(cell) + boundary_fields.CELL_CONTENT).value, id(array)),
        (read(id(three) + boundary_fields.LIST_LENGTH).value, 3),
        (read(id(array) + boundary_fields.OBJECT_CLASS).value, id(np.ndarray)),
        (read(id(array) + boundary_fields.ARRAY_DATA).value, array.ctypes.data),
        (ctypes.c_int32.from_address(id(array) + boundary_fields.ARRAY_NDIM).value, 2),
        (read(read(id(array) + boundary_fields.ARRAY_EXTENTS).value + 8).value, 3),
        (read(id(array) + boundary_fields.ARRAY_DESCR).value, id(array.dtype)),
        (ctypes.c_int32.from_address(id(array) + boundary_fields.ARRAY_FLAGS).value,
         array.flags.num),
        *((ctypes.c_double.from_address(id(number) + boundary_fields.SCALAR_VALUE).value, 2.5)
          for number in (2.5, 2.5 + 1j, np.float64(2.5), np.complex128(2.5))),
        (ctypes.c_int16.from_address(id(small := np.int16(-7)) + boundary_fields.SCALAR_VALUE)
         .value, int(small)),
    )  # fmt: skip
    if any(found != wanted for found, wanted in expected):
        raise DeviceError("This build of Python or NumPy lays out its objects differently.")
