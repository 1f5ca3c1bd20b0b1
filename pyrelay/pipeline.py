"""READ FIRST: the stages a program goes through, in order.

In: a typed Core module (what `infer` leaves). Out: the module after each named stage, and the
callable that runs it. Every stage has a name, a printout (PYRELAY_DUMP) and an invariant
(`ir.verify`, checked after every stage with PYRELAY_VERIFY=1).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrelay import config
from pyrelay.build import Build, Step
from pyrelay.devices import cpu
from pyrelay.devices.base import Device, device
from pyrelay.devices.chosen import as_chosen, chosen
from pyrelay.devices.compiler import native
from pyrelay.grad.expand import expand
from pyrelay.infer.specialised import Binding, Specialised
from pyrelay.ir import walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, KernelCall, Module, Var
from pyrelay.ir.show import show
from pyrelay.ir.types import bf16
from pyrelay.ir.verify import VerifyError, verify
from pyrelay.lower.planning.coalescing import coalesced
from pyrelay.lower.planning.foreseen import foreseen
from pyrelay.lower.planning.instructions import Launch, Plan
from pyrelay.lower.planning.plan import Condition, Entry, plan
from pyrelay.lower.planning.sinking import sunk
from pyrelay.lower.planning.target import Target
from pyrelay.lower.text.show import show_kernel_ir, show_plan
from pyrelay.opt.alternating import alternating
from pyrelay.opt.attention import attention
from pyrelay.opt.attention_gradient import attention_gradient, attention_gradient_again
from pyrelay.opt.barriers import barriers
from pyrelay.opt.batch_rounds import batch_differentiated, batch_rounds
from pyrelay.opt.checks import checks
from pyrelay.opt.commits import commits, in_place
from pyrelay.opt.compaction import compaction
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.decompositions import decompositions
from pyrelay.opt.dots import dots
from pyrelay.opt.fills import fills
from pyrelay.opt.fold import fold
from pyrelay.opt.fuse import fuse
from pyrelay.opt.half_attention import half_attention, half_attention_gradient
from pyrelay.opt.half_products import half_products
from pyrelay.opt.halves import halves
from pyrelay.opt.hoist import hoist
from pyrelay.opt.inline import inline
from pyrelay.opt.lengths import lengths
from pyrelay.opt.levels import levels
from pyrelay.opt.masks import masks
from pyrelay.opt.near_loops import near_loops
from pyrelay.opt.picks import picks
from pyrelay.opt.plain_products import plain_products
from pyrelay.opt.ranges import ranges
from pyrelay.opt.recognise import plain, recognise
from pyrelay.opt.remember import remember
from pyrelay.opt.rolling import rolling
from pyrelay.opt.rooms import rooms
from pyrelay.opt.rows import rows
from pyrelay.opt.scalars import with_few_threads
from pyrelay.opt.scans import scans
from pyrelay.opt.simplify import simplify
from pyrelay.opt.sorting import sorting
from pyrelay.opt.spectra import spectra
from pyrelay.opt.stacks import stacks
from pyrelay.opt.systems import systems
from pyrelay.opt.turned import turned
from pyrelay.records import dataclass

Pass = Callable[[Module], Module]

#: What runs between one order of differentiation and the next.
CLEAN: tuple[Pass, ...] = (fold, simplify, cse, dce)

@dataclass(frozen=True, slots=True)
class Stage:
    """A named stage: its passes, and whose invariants hold between them and after the last."""

    name: str
    passes: tuple[Pass, ...]
    between: str
    after: str


def derivatives(module: Module) -> Module:
    """Expand the requested derivatives, innermost first, and clean up after each order."""
    between = Stage("grad", CLEAN, "infer", "infer")
    return expand(module, lambda order: run_passes(order, between))


#: What follows `infer`.
STAGES = (
    Stage(
        "grad",
        (
            cse, inline, lengths, ranges, commits, *CLEAN, masks, recognise,
            batch_differentiated, hoist, levels, derivatives, plain,
        ),
        "infer", "grad",
    ),
    Stage(
        "optimise",
        (
            picks, sorting, compaction, halves, inline, barriers, lengths, ranges, commits, checks,
            turned, *CLEAN, spectra, decompositions, batch_rounds, hoist, rows, remember, rolling,
            near_loops, ranges, *CLEAN,
        ),
        "grad", "optimise",
    ),
    Stage(
        "fuse",
        (
            alternating, fills, dce, in_place, attention_gradient, attention_gradient_again,
            half_attention_gradient, half_attention, attention, systems, plain_products, dots,
            scans, stacks, rooms, half_products, fuse,
        ),
        "fuse", "fuse",
    ),
)


@dataclass(slots=True)
class Progress:
    """Passes that left the module at hand as it is, and would again."""

    settled: set[Pass] = field(default_factory=set)


def run_passes(
    module: Module, stage: Stage, steps: list[Step] | None = None, progress: Progress | None = None
) -> Module:
    """Run the passes of a stage in order; verify and report as the settings ask.

    A pass that has nothing to do gives the very module that it is given, and is not run again until
    another pass has changed the module. Appends what ran to `steps`. An error of a pass gets a note
    that names the pass; so does a VerifyError, for the first pass whose result is at fault.
    """
    progress = progress or Progress()
    given = module
    for each in stage.passes:
        started = time.perf_counter()
        before = module
        try:
            if each not in progress.settled:
                module = each(module)
        except Exception as error:
            error.add_note(f"in pass {each.__name__!r} of stage {stage.name!r}")
            _verified(given, before, stage.between, stage)  # what it met may be another's fault
            raise
        spent = time.perf_counter() - started
        if module is before:
            progress.settled.add(each)
        else:
            progress.settled = set()
        _timed(Step(stage.name, each.__name__, spent), steps)
    _verified(given, module, stage.after, stage)
    return module


def _verified(given: Module, made: Module, reached: str, stage: Stage) -> None:
    """Verify what passes made of `given`, if the settings ask for it.

    A module at fault is made again, and verified after every pass: passes are functions of values.
    """
    if not config.current().verify:
        return
    try:
        verify(made, reached)
    except VerifyError:
        for number, each in enumerate(stage.passes, 1):
            given = each(given)
            try:
                verify(given, stage.after if number == len(stage.passes) else stage.between)
            except VerifyError as error:
                error.add_note(f"in pass {each.__name__!r} of stage {stage.name!r}")
                raise
        raise


def _timed(step: Step, steps: list[Step] | None) -> None:
    if steps is not None:
        steps.append(step)
    step.report()


def dump(stage: str, text: Callable[[Any], str], program: Any) -> None:
    """Print `text(program)` for a stage if the settings ask for it."""
    settings = config.current()
    if stage not in settings.dump:
        return
    if not settings.dump_dir:
        sys.stderr.write(f"-- {stage}\n{text(program)}\n")
        return
    os.makedirs(settings.dump_dir, exist_ok=True)
    number = len(os.listdir(settings.dump_dir))
    path = os.path.join(settings.dump_dir, f"{number:03d}-{stage}.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text(program))


#: Passes that write what only some devices have a kernel for, or write out what others have one
#: for, and the targets that they are for.
_FOR_SOME: dict[Pass, Callable[[Target], bool]] = {
    attention_gradient: lambda t: t.attention_gradient is not None and t.keeps_scores,
    attention_gradient_again: lambda t: t.attention_gradient is not None and not t.keeps_scores,
    half_attention_gradient: lambda t: t.half_attention_gradient(bf16) is not None,
    half_attention: lambda t: t.half_attention is not None,
    half_products: lambda t: t.half_matmul is not None,
    plain_products: lambda t: t.half_matmul is None,  # no library has products of all types
    compaction: lambda t: t.scan is not None,
    sorting: lambda t: t.sort is None,
    picks: lambda t: t.splits,
}

#: Passes that make the course of a program hang on elements of arrays: another device would have to
#: be asked for them, or go through them one by one. Filling an array is a launch more there.
_WHERE_ARRAYS_ARE_NEAR: frozenset[Pass] = frozenset(
    {remember, systems, scans, near_loops, alternating, fills}
)


def lowered(
    module: Module, stage: str, steps: list[Step] | None = None, on: str | None = None
) -> Module:
    """The module of `infer` brought to the end of a later stage, for a device or that of the
    settings.

    Raises ValueError for a name that is no stage of a module.
    """
    names = ["infer", *(each.name for each in STAGES)]
    if stage not in names:
        raise ValueError(f"{stage!r} is no stage of a module; use {', '.join(names)}")
    dump("infer", show, module)
    progress = Progress()
    for each in STAGES[: names.index(stage)]:
        passes = tuple(x for x in each.passes if _is_for(x, on))
        with with_few_threads(device(on or config.current().device).native):
            module = run_passes(module, replace(each, passes=passes), steps, progress)
        dump(each.name, show, module)
    return module


def _is_for(wanted: Pass, on: str | None) -> bool:
    if wanted not in _FOR_SOME and wanted not in _WHERE_ARRAYS_ARE_NEAR:
        return True
    place = device(on or config.current().device)
    return place.native if wanted in _WHERE_ARRAYS_ARE_NEAR else _FOR_SOME[wanted](place.target)


def compiled(
    program: Specialised, on: str | None = None, changed: Callable[[Plan], Plan] = lambda p: p,
    sizes: Mapping[Symbol, int] = MappingProxyType({}),
) -> Build:
    """A callable for a specialised program, on a device or on that of the settings.

    changed: what is done with the plan before it is loaded. sizes: what extents are in the call
    that waits for it: parts of kernels that it will reach are compiled now, others when they are
    reached.
    With PYRELAY_INTERPRET=1 the reference interpreter runs the typed program instead.
    """
    steps: list[Step] = []
    if config.current().interpret:
        run = _interpreted(lowered(program.module, "grad", steps), program.binding)
        return Build(run, False, tuple(steps), 0, 0, 0, "interpreter")
    if device_for(program.module, on).native:
        for text in foreseen(program.module, cpu.target(chosen(program.module)), sizes):
            native.begin(text)
    module = lowered(program.module, "fuse", steps, on)
    started = time.perf_counter()
    made = changed(planned(program, module, on, native.begin, sizes))
    _timed(Step("plan", "plan", time.perf_counter() - started), steps)
    started, before = time.perf_counter(), replace(native.counts)
    place = device_for(module, on)
    loaded = place.load(made)
    spent, compiling = time.perf_counter() - started, native.counts.compile_seconds
    compiling -= before.compile_seconds
    if compiling:
        _timed(Step("compile", "compile", compiling), steps)
    _timed(Step("load", "load", spent - compiling), steps)
    new = native.counts.compiled - before.compiled
    return Build(
        loaded.run, place.native, tuple(steps), len(made.kernels), launches(made), new, place.name,
        loaded.encoded, loaded.told, loaded.direct,
    )


def launches(made: Plan) -> int:
    """How many instructions of a plan launch a kernel."""
    return sum(
        isinstance(instruction, Launch) for f in made.functions for instruction in f.code
    )


def device_for(module: Module, name: str | None) -> Device:
    """The device of this name or of the settings; the CPU for a program without any array.

    Such a program is a chain of single numbers, which a GPU would wait for one by one.
    """
    chosen = device(name or config.current().device)
    return chosen if chosen.native or _has_arrays(module) else device("cpu")


def _has_arrays(module: Module) -> bool:
    found = (
        atom for function in module.functions.values()
        for atom in (*function.params, *function.body.results, *_bound(function))
    )
    return any(getattr(atom.type, "shape", ()) for atom in found)


def _bound(function: Function) -> Iterator[Var]:
    for let in walk.nested_lets(function.body):
        yield from let.outs
        if isinstance(let.rhs, KernelCall):
            yield from _bound(let.rhs.function)


def planned(
    program: Specialised, module: Module, on: str | None = None,
    begin: Callable[[str], object] = str, sizes: Mapping[Symbol, int] = MappingProxyType({}),
) -> Plan:
    """The plan, for a device, of a program whose module is at the end of stage `fuse`.

    begin: what is done with the text of each kernel for the CPU meanwhile, and of what those will
    call where extents have these `sizes`.
    """
    entry = Entry(
        mutated=program.binding.placed,
        conditions=tuple(
            Condition(g.op, g.left, g.right, g.truth) for g in program.conditions
        ),
        orders=program.binding.orders,
    )
    place, choices = device_for(module, on), chosen(program.module)
    target = cpu.target(choices) if place.native else place.target
    made = as_chosen(plan(module, target, entry, begin if place.native else str, sizes), choices)
    made = coalesced(sunk(made)) if place.native else made
    dump("kernelise", show_kernel_ir, module)
    dump("plan", show_plan, made)
    dump("emit", place.shown, made)
    return made


def _interpreted(module: Module, binding: Binding) -> Callable[..., Any]:
    mutated, orders = binding.placed, binding.orders
    hidden = set(mutated.values())

    def run(*given: Any) -> tuple[Any, ...]:
        args = [a.transpose(orders[k]) if k in orders else a for k, a in enumerate(given)]
        results = interpret(module, args)
        for k, result in mutated.items():
            np.copyto(args[k], results[result])
        return tuple(r for k, r in enumerate(results) if k not in hidden)

    return run
