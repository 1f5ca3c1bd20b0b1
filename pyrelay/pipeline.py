"""READ FIRST: the stages a program goes through, in order.

In: a typed Core module (what `infer` leaves). Out: the module after each named stage, and the
callable that runs it. Every stage has a name, a printout (PYRELAY_DUMP) and an invariant
(`ir.verify`, checked after every pass with PYRELAY_VERIFY=1).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay import config
from pyrelay.devices.cpu import TARGET
from pyrelay.devices.entry import Executable
from pyrelay.grad.expand import expand
from pyrelay.infer.specialise import Specialised
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Module
from pyrelay.ir.show import show
from pyrelay.ir.verify import verify
from pyrelay.lower.encode import encode
from pyrelay.lower.instructions import Plan
from pyrelay.lower.plan import Condition, Entry, plan
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.fuse import fuse
from pyrelay.opt.hoist import hoist
from pyrelay.opt.inline import inline
from pyrelay.opt.ranges import ranges
from pyrelay.opt.simplify import simplify

Pass = Callable[[Module], Module]

#: What runs between one order of differentiation and the next.
CLEAN: tuple[Pass, ...] = (fold, simplify, cse, dce)

#: The stages after `infer`, each a tuple of passes.
STAGES: dict[str, tuple[Pass, ...]] = {
    "grad": (
        inline, ranges, *CLEAN, hoist,
        lambda module: expand(module, lambda m: run_passes(m, CLEAN, "grad")),
    ),
    "optimise": (inline, ranges, *CLEAN, hoist, *CLEAN),
    "fuse": (fuse,),
}


def run_passes(module: Module, passes: Sequence[Pass], stage: str) -> Module:
    """Run passes in order; dump, time and verify as the settings ask."""
    settings = config.current()
    for each in passes:
        started = time.perf_counter()
        name = getattr(each, "__name__", "pass").strip("<>")
        try:
            module = each(module)
            if settings.verify:
                verify(module, stage)
        except Exception as error:
            error.add_note(f"in pass {name!r} of stage {stage!r}, of {module.entry!r}")
            raise
        if settings.time:
            spent = (time.perf_counter() - started) * 1e3
            sys.stderr.write(f"pyrelay: {stage}/{name} {spent:.2f} ms\n")
    dump(stage, lambda: show(module))
    return module


def dump(stage: str, text: Callable[[], str]) -> None:
    """Print a stage's text if the settings ask for it."""
    settings = config.current()
    if stage not in settings.dump:
        return
    if not settings.dump_dir:
        sys.stderr.write(f"-- {stage}\n{text()}\n")
        return
    os.makedirs(settings.dump_dir, exist_ok=True)
    number = len(os.listdir(settings.dump_dir))
    path = os.path.join(settings.dump_dir, f"{number:03d}-{stage}.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text())


def lowered(module: Module, stage: str) -> Module:
    """The module of `infer` brought to the end of a later stage."""
    if stage == "infer":
        return module
    for name, passes in STAGES.items():
        module = run_passes(module, passes, name)
        if name == stage:
            return module
    raise ValueError(f"{stage!r} is no stage of a module; use infer, {', '.join(STAGES)}")


def compiled(program: Specialised) -> Callable[..., Any]:
    """A callable for the flat parameters of a specialised program.

    It gives the program's results as a tuple, those left out that hold the content of a written
    argument: such arguments are written in place. With PYRELAY_INTERPRET=1 the reference interpreter
    runs the typed program instead.
    """
    position = {leaf: k for k, leaf in enumerate(program.parameters)}
    mutated = {position[leaf]: result for leaf, result in program.mutated.items()}
    if config.current().interpret:
        return _interpreted(lowered(program.module, "grad"), mutated)
    module = lowered(program.module, "fuse")
    return Executable(encode(planned(program, module))).call


def planned(program: Specialised, module: Module) -> Plan:
    """The plan of a program whose module is at the end of stage `fuse`."""
    position = {leaf: k for k, leaf in enumerate(program.parameters)}
    entry = Entry(
        mutated={position[leaf]: result for leaf, result in program.mutated.items()},
        conditions=tuple(
            Condition(g.op, g.left, g.right, g.truth) for g in program.conditions
        ),
    )
    made = plan(module, TARGET, entry)
    dump("plan", lambda: show_plan(made))
    return made


def show_plan(made: Plan) -> str:
    """The instructions of a plan, function by function."""
    lines = []
    for function in made.functions:
        lines.append(f"plan {function.name}: {function.parameters} parameters")
        lines += [f"  {k:4d} {instruction}" for k, instruction in enumerate(function.code)]
    return "\n".join(lines)


def _interpreted(module: Module, mutated: dict[int, int]) -> Callable[..., Any]:
    hidden = set(mutated.values())

    def run(*args: Any) -> tuple[Any, ...]:
        results = interpret(module, args)
        for k, result in mutated.items():
            np.copyto(args[k], results[result])
        return tuple(r for k, r in enumerate(results) if k not in hidden)

    return run
