"""The parts of the native run time, as object code.

In: the name of a part. Out: `written`, it as LLVM IR; `build`, its object code for this machine;
`SYMBOLS`, what it exports.

Most programs need `MAIN` only; `LISTS` reads and makes lists of many items, `TREES` packs and
unpacks objects that refer to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyrelay.devices.compiler.llvm_ir import Module

MAIN, LISTS, TREES = "main", "lists", "trees"
SYMBOLS = {
    MAIN: ("pyrelay_entry", "pyrelay_whole", "pyrelay_run", "pyrelay_worker", "pyrelay_dispose",
           "pyrelay_ask"),
    LISTS: ("pyrelay_columns", "pyrelay_single", "pyrelay_items"),
    TREES: ("pyrelay_pack", "pyrelay_unpack", "pyrelay_unpack_all"),
}


def build(part: str) -> bytes:
    """The object code of a part for this machine."""
    import llvmlite.binding as llvm  # what is on disk is loaded without what makes it

    from pyrelay.devices.compiler.codegen import option, runtime_machine, tidy

    machine = runtime_machine()
    reference = llvm.parse_assembly(str(written(part)))
    reference.verify()
    tidy(reference, machine)
    with option("--disable-lsr"):  # it has no loops that last
        code: bytes = machine.emit_object(reference)
    return code


def written(part: str) -> Module:
    """A part as LLVM IR: what it exports is external, and what it calls of others is declared."""
    from pyrelay.devices.compiler.codegen import runtime_machine
    from pyrelay.devices.compiler.llvm_ir import Module

    machine = runtime_machine()
    module = Module(machine.triple, str(machine.target_data))
    {MAIN: _write_main, LISTS: _write_lists, TREES: _write_trees}[part](module)
    for function in module.functions:
        if not function.is_declaration and function.name not in SYMBOLS[part]:
            function.linkage = "internal"
    return module


def _write_main(module: Module) -> None:
    from pyrelay.devices.runtime.asking import write_ask
    from pyrelay.devices.runtime.boundary_native import Boundary
    from pyrelay.devices.runtime.executor import Executor
    from pyrelay.devices.runtime.memory import Memory
    from pyrelay.devices.runtime.teamwork import Teamwork
    from pyrelay.devices.runtime.whole_native import write_whole

    memory = Memory(module)
    executor = Executor(module, memory, Teamwork(module))
    write_ask(module)
    write_whole(module, Boundary(module, memory, executor.run).entry)


def _write_lists(module: Module) -> None:
    from pyrelay.devices.runtime.columns_native import ColumnReading
    from pyrelay.devices.runtime.items_native import ItemWriting

    ColumnReading(module)
    ItemWriting(module)


def _write_trees(module: Module) -> None:
    from pyrelay.devices.runtime.packing_native import Packing
    from pyrelay.devices.runtime.unpacking_native import Unpacking

    Unpacking(module, Packing(module))
