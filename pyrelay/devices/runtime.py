"""The native run time of the process: executor, memory, threads and entry, loaded once.

In: nothing. Out: `runtime()`, the addresses of the native functions and the process record.

The functions are written as LLVM IR by the modules beside this one, compiled once per machine and
version, and kept in the disk cache as object code; a later process only links them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from typing import Any

import numpy as np

from pyrelay import config
from pyrelay.devices import boundary_fields, cache, compile_pool, native
from pyrelay.devices.layout import Process, allocate
from pyrelay.devices.threads import Pool, usable_threads
from pyrelay.errors import DeviceError
from pyrelay.records import dataclass

SYMBOLS = (
    "pyrelay_entry", "pyrelay_run", "pyrelay_worker", "pyrelay_dispose", "pyrelay_pack",
    "pyrelay_unpack",
)  # fmt: skip
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


def build() -> bytes:
    """The object code of the run time for this machine."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from pyrelay.devices.boundary_native import Boundary
    from pyrelay.devices.executor import Executor
    from pyrelay.devices.memory import Memory
    from pyrelay.devices.packing_native import Packing
    from pyrelay.devices.teamwork import Teamwork
    from pyrelay.devices.unpacking_native import Unpacking

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(),
        opt=2, reloc="pic", codemodel="default",
    )  # fmt: skip
    module = ir.Module("pyrelay", context=ir.Context())
    module.triple, module.data_layout = triple, str(machine.target_data)
    memory = Memory(module)
    teamwork = Teamwork(module)
    executor = Executor(module, memory, teamwork)
    Boundary(module, memory, executor.run)
    Unpacking(module, Packing(module))
    for function in module.functions:
        if not function.is_declaration and function.name not in SYMBOLS:
            function.linkage = "internal"
    reference = llvm.parse_assembly(str(module))
    reference.verify()
    native.expand(reference, machine)
    native.tidy(reference, machine)
    code: bytes = machine.emit_object(reference)
    return code


def expect_program() -> None:
    """A program will be compiled soon: let what it needs be prepared beside it."""
    if _start.cache_info().currsize == 0:
        path = cache.current().path(KIND, native.fingerprint())
        compile_pool.expect(runtime=path is None or not path.exists())
    else:
        compile_pool.expect(runtime=False)


_starting = threading.Lock()


def runtime() -> Runtime:
    """The process's run time, loaded on first use.

    Raises DeviceError where this interpreter's objects are not laid out as expected.
    """
    with _starting:
        return _start()


@functools.cache
def _start() -> Runtime:
    _check_object_layout()
    store, key = cache.current(), native.fingerprint()
    symbols = None
    code = store.get(KIND, key)
    if code is not None:
        try:
            symbols = native.load_all(code, SYMBOLS)
        except DeviceError:  # a stored file that is no object code: made anew below
            store.counts.rejected += 1
    if symbols is None:
        code = compile_pool.runtime() or build()
        store.put(KIND, key, code)
        symbols = native.load_all(code, SYMBOLS)
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
    expected = (
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
