"""Kernel source text in, object code out.

A kernel is a Python text that defines ``kernel(block, begin, end)`` in the language of
``kernel_language``; ``kernel_lowering`` lowers it.  LLVM optimises and emits it here, for the
machine this process runs on, with 512-bit vectors where the CPU has them (LLVM's tuning prefers
256 bits on most Intel models, which halves the speed of compute-bound kernels).  A text that sets
``BY_HAND = True`` has arranged vectors and registers itself, and is only tidied.  One that sets
``SHORT_ROWS = True`` has loops over rows of a few elements, which are no loops any more when LLVM
looks for vectors: it looks at straight lines too then, which is a loss where there are no rows.
What LLVM makes of straight lines is verified: it has put vectors before what they are made of.
For one that sets ``STEPS = True`` LLVM looks for what is best counted from round to round (its loop
strength reduction), which takes half of the time of object code. Other loops over neighbours, and
what is arranged by hand, are as fast without, but for parts that ask for it.
One that sets ``ROW_WINDOWS = True`` reads neighbours in rows of matrices: its loops are made
vectors before LLVM hands on loads from round to round (``lower.passes.row_windows``).

The object exports one symbol, ``SYMBOL``: ``int64_t (int64_t block, int64_t begin, int64_t end)``.
It refers to nothing but libm, ``memset``, ``memcpy``, ``memmove``, ``posix_memalign``, ``free`` and
the parts that the text imports: functions that are written by hand (``routines.calls.Part``). A
part's text is the line that imports it; its object exports its name, and is only tidied, too
(decisions 0125 and 0127).
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from pyrelay.devices.compiler.codegen import kernel_machine, option, tidy
from pyrelay.devices.compiler.kernel_lowering import lower_kernel
from pyrelay.devices.compiler.llvm_ir import Module
from pyrelay.devices.routines.calls import Part, Routine
from pyrelay.devices.routines.vector_calls import PREFIX, definitions

SYMBOL = "pyrelay_kernel"
_BRANCHES = "--x86-cmov-converter"
"""LLVM's option by which it makes branches of choices, of those too that nothing foresees: it takes
them for the lesser of two numbers, and forgets what it was told."""


def kernel_object(source: str, filename: str) -> bytes:
    """The object code of the kernel, or the part, ``source``.

    Raises ``KernelError`` where the text is not in the kernel language.
    """
    functions, names = _read(source, filename)
    module = _optimised_module(functions, names)
    machine = kernel_machine()
    with contextlib.ExitStack() as options:
        if not (names.get("STEPS") if functions else _part(names).steps):
            options.enter_context(option("--disable-lsr"))
        if "where_unpredictable" in names and "x86" in machine.triple:
            options.enter_context(option(_BRANCHES, on=False))
        code: bytes = machine.emit_object(module)
    return code


def optimised_module(source: str, filename: str) -> llvm.ModuleRef:
    """The optimised LLVM module of a kernel, or of a part.

    Raises ``KernelError`` where the text is not in the kernel language.
    """
    return _optimised_module(*_read(source, filename))


def _read(source: str, filename: str) -> tuple[dict[str, ast.FunctionDef], dict[str, Any]]:
    """The functions of a text, none of that of a part, and what its names mean."""
    tree = ast.parse(source, filename)
    names: dict[str, Any] = {}
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    tree.body = [each for each in tree.body if not isinstance(each, ast.FunctionDef)]
    exec(compile(tree, filename, "exec"), names)
    return functions, names


def _part(names: Mapping[str, Any]) -> Part:
    """The part that the text of a part imports."""
    (part,) = (each for each in names.values() if isinstance(each, Part))
    return part


def _optimised_module(
    functions: Mapping[str, ast.FunctionDef], names: Mapping[str, Any]
) -> llvm.ModuleRef:
    machine = kernel_machine()
    if not functions:
        return _part_module(_part(names), machine)
    layout = str(machine.target_data)
    module = lower_kernel(functions["kernel"], names, SYMBOL, machine.triple, layout)
    routines = [each for each in names.values() if isinstance(each, Routine)]
    modules = [module] + [
        lower_kernel(functions[each.symbol], names, each.symbol, machine.triple, layout, each.kinds)
        for each in routines
    ]
    symbols = [each.symbol for each in routines]
    texts = [str(each) for each in modules]
    reference = _optimised(texts, symbols, names, machine)
    if any(PREFIX in each for each in texts):
        _complete(reference, machine)
    return reference


_IN_ORDER = "--force-ordered-reductions"
"""LLVM's option by which it makes vectors of loops that add floats up, and adds them in order."""


def _optimised(
    texts: Sequence[str], symbols: Sequence[str], names: Mapping[str, Any],
    machine: llvm.TargetMachine,
) -> llvm.ModuleRef:
    """A kernel and its routines as one module, optimised as the kernel's text asks."""
    reference = _linked(texts, symbols)
    if names.get("BY_HAND"):
        tidy(reference, machine)
        return reference
    if names.get("ROW_WINDOWS"):
        _optimise(reference, machine, False, 1)
    if not names.get("SHORT_ROWS"):
        _optimise(reference, machine, False)
    elif not _packed(reference, machine):
        reference = _linked(texts, symbols)
        _optimise(reference, machine, False)
    return reference


def _complete(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Puts the functions of vectors that a module's loops call now in line."""
    called, names = definitions(str(module), machine.triple, str(machine.target_data))
    module.link_in(llvm.parse_assembly(called))
    for name in names:
        module.get_function(name).linkage = "internal"
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    tidy(module, machine)


def _part_module(part: Part, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module of what is written by hand: a function, and what it needs."""
    module = Module(machine.triple, str(machine.target_data))
    part.write(module, part.spelling)
    for function in module.functions:
        if not function.is_declaration and function.name != part.spelling:
            function.linkage = "internal"
    reference = llvm.parse_assembly(str(module))
    reference.verify()
    tidy(reference, machine)
    return reference


def _linked(texts: Iterable[str], symbols: Iterable[str]) -> llvm.ModuleRef:
    """A kernel and its routines as one module."""
    first, *others = texts
    module = llvm.parse_assembly(first)
    for text in others:
        module.link_in(llvm.parse_assembly(text))
    for symbol in symbols:
        module.get_function(symbol).linkage = "internal"
    module.verify()
    return module


def _packed(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bool:
    """Optimises a module with straight lines as vectors; whether LLVM got it right."""
    _optimise(module, machine, True)
    try:
        module.verify()
    except RuntimeError:  # "Instruction does not dominate all uses!", LLVM 22
        return False
    return True


def _optimise(
    module: llvm.ModuleRef, machine: llvm.TargetMachine, short_rows: bool, level: int = 3
) -> None:
    """Optimises a module; at level 1 no load is left out for one of another round."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = True
    options.slp_vectorization = short_rows
    builder = llvm.create_pass_builder(machine, options)
    asked = "x86" in machine.triple  # on Arm it does so by itself
    with option(_IN_ORDER) if asked else contextlib.nullcontext():
        builder.getModulePassManager().run(module, builder)
