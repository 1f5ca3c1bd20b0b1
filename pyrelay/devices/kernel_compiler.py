"""Kernel source text in, object code out.

A kernel is a Python text that defines ``kernel(block, begin, end)`` in the language of
``kernel_language``; ``kernel_lowering`` lowers it.  LLVM optimises and emits it here, for the
machine this process runs on, with 512-bit vectors where the CPU has them (LLVM's tuning prefers
256 bits on most Intel models, which halves the speed of compute-bound kernels).  A text that sets
``BY_HAND = True`` has arranged vectors and registers itself, and is only tidied.  One that sets
``SHORT_ROWS = True`` has loops over rows of a few elements, which are no loops any more when LLVM
looks for vectors: it looks at straight lines too then, which is a loss where there are no rows.

The object exports one symbol, ``SYMBOL``: ``int64_t (int64_t block, int64_t begin, int64_t end)``.
It refers to nothing but libm, ``memset``, ``memcpy`` and ``memmove``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba.core.compiler_lock import global_compiler_lock

from pyrelay.devices import native
from pyrelay.devices.kernel_lowering import lower_kernel
from pyrelay.devices.routines import Routine

SYMBOL = "pyrelay_kernel"


@functools.cache
def target_machine() -> llvm.TargetMachine:
    """LLVM's code generator for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    # A feature set that LLVM cannot read (unknown CPU) is empty; its baseline is right then.
    spelled = features.flatten() if features else ""
    wide = "-prefer-256-bit"
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=f"{spelled},{wide}" if "+avx512f" in spelled else spelled,
        opt=3,
        reloc="pic",
        codemodel="small",
    )


def kernel_function(source: str, filename: str) -> Callable[[int, int, int], int]:
    """The function ``kernel`` that ``source`` defines; ``filename`` is for messages."""
    namespace: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[[int, int, int], int] = namespace["kernel"]
    return function


def optimised_module(source: str, filename: str) -> llvm.ModuleRef:
    """The optimised LLVM module of a kernel."""
    machine = target_machine()
    function = kernel_function(source, filename)
    with global_compiler_lock:
        module = lower_kernel(function, SYMBOL, machine.triple, str(machine.target_data))
        reference = llvm.parse_assembly(str(module))
        routines = [r for r in function.__globals__.values() if isinstance(r, Routine)]
        for routine in routines:
            _link(reference, function, routine, machine)
        for routine in routines:
            reference.get_function(routine.symbol).linkage = "internal"
        reference.verify()
        if function.__globals__.get("BY_HAND"):
            native.tidy(reference, machine)
        else:
            _optimise(reference, machine, bool(function.__globals__.get("SHORT_ROWS")))
    return reference


def _link(
    module: llvm.ModuleRef, kernel: Callable[..., int], routine: Routine,
    machine: llvm.TargetMachine,
) -> None:
    """Add a routine of the kernel's text to its module, for nobody else to call."""
    code: Callable[..., int] = kernel.__globals__[routine.symbol]
    layout = str(machine.target_data)
    lowered = lower_kernel(code, routine.symbol, machine.triple, layout, routine.kinds)
    module.link_in(llvm.parse_assembly(str(lowered)))


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, short_rows: bool) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = short_rows
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def kernel_object(source: str, filename: str) -> bytes:
    """The object code of the kernel ``source``.

    Raises ``numba.core.errors.TypingError`` where the text is not in the kernel language.
    """
    reference = optimised_module(source, filename)
    with global_compiler_lock:
        code: bytes = target_machine().emit_object(reference)
    return code
