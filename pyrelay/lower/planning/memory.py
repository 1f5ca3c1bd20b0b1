"""Who owns which buffer, and when it dies: structured liveness over Core.

In: the functions of a module. Out: for each block where every variable is read last, for each
function which parameters it consumes, and `Buffer`s and `Scope`s, by which the planner decides at
each node whether a buffer is dead, so that it may be freed, handed over or written in place.

The convention. Every array value lives in one buffer; reshaped views of a value share it. A
function borrows the arrays it is given and owns the arrays it makes. Results are handed over to the
caller: always owned, never shared. A parameter is *consumed* where the function would otherwise
have to copy it (it is updated in place, carried by a loop, returned, or passed on to be consumed):
the caller hands it over, copying first if it still needs it. What a loop carries and what an `if`
returns is owned by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from pyrelay.ir import walk
from pyrelay.ir.nodes import (
    Atom,
    Block,
    FnCall,
    Function,
    If,
    KernelCall,
    Let,
    Loop,
    Module,
    OpCall,
    Var,
)
from pyrelay.ir.types import TapeType
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass

#: Ops whose result is their first operand's buffer, read with other extents.
ALIASES = frozenset({"reshape", "expand_dims", "squeeze", "refine", "barrier"})
#: Ops that take over their tape operand and give it back.
TAPE_OPS = frozenset({"tape_push", "tape_pop"})


def is_resource(atom: Atom) -> bool:
    """True if the value must be freed: an array or a tape."""
    return is_array(atom) or isinstance(atom.type, TapeType)


class LastReads:
    """For each block, the number of the Let that reads a variable last (`len(lets)`: a result)."""

    def __init__(self) -> None:
        self._of: dict[Block, dict[Var, int]] = {}

    def __call__(self, block: Block) -> dict[Var, int]:
        """Last reads of the block, those inside nested blocks included; resources only."""
        found = self._of.get(block)
        if found is None:
            found = self._of[block] = self._scan(block)
        return found

    def _scan(self, block: Block) -> dict[Var, int]:
        last: dict[Var, int] = {}
        for k, let in enumerate(block.lets):
            for atom in walk.operands(let.rhs):
                if isinstance(atom, Var) and is_resource(atom):
                    last[atom] = k
            for inner in walk.blocks(let.rhs):
                last.update(dict.fromkeys(self(inner), k))
        for atom in block.results:
            if isinstance(atom, Var) and is_resource(atom):
                last[atom] = len(block.lets)
        return last


@dataclass(eq=False, slots=True)
class Scope:
    """A block being planned. `at` is the number of the Let that is being planned."""

    last: Mapping[Var, int]
    level: int  # how many loops are around it
    parent: Scope | None = None
    at: int = -1


@dataclass(eq=False, slots=True)
class Buffer:
    """A buffer or tape: the slot of its address, the variables that read it, where it was made."""

    slot: int
    owned: bool
    scope: Scope
    readers: list[Var] = field(default_factory=list)


def is_dead(buffer: Buffer, scope: Scope) -> bool:
    """True if nothing reads the buffer after the current Let of `scope`, on any path.

    What was made outside a loop is alive inside it: the next iteration may read it.
    """
    here: Scope | None = scope
    while here is not None:
        if buffer.scope.level < here.level:
            return False
        if any(here.last.get(v, -1) > here.at for v in buffer.readers):
            return False
        if here is buffer.scope:
            return True
        here = here.parent
    raise AssertionError("the buffer is not visible here")


# -- which parameters a function consumes ----------------------------------------------------------


def consumed_parameters(
    module: Module, written: Callable[[Let], Iterable[int]], forced: Mapping[str, frozenset[int]]
) -> dict[str, frozenset[int]]:
    """For each function the positions of the parameters it takes over: the least fixpoint.

    `written(let)` gives the positions of the arguments that a KernelCall or OpCall overwrites;
    `forced` is the answer for functions that only Python calls.
    """
    consumed = {name: forced.get(name, frozenset()) for name in module.functions}
    pending = [name for name in module.functions if name not in forced]
    callers: dict[str, set[str]] = {name: set() for name in module.functions}
    for name in pending:
        for callee in walk.called(module.functions[name]):
            callers[callee].add(name)
    while pending:
        name = pending.pop()
        found = _wanted(module.functions[name], written, consumed)
        if found != consumed[name]:
            consumed[name] = found
            pending.extend(c for c in callers[name] if c not in pending)
    return consumed


def _wanted(
    function: Function, written: Callable[[Let], Iterable[int]],
    consumed: Mapping[str, frozenset[int]],
) -> frozenset[int]:
    """Parameters that reach, as themselves or as a view, a place that needs to own them."""
    source: dict[Atom, Atom] = {}  # of a view
    wanted: set[Atom] = set(function.body.results)
    for let in walk.nested_lets(function.body):
        match let.rhs:
            case OpCall(op=op, args=args) if op.name in ALIASES | TAPE_OPS:
                source[let.outs[0]] = args[0]
                if op.name in TAPE_OPS:
                    wanted.update(args[1:])  # what is pushed on a tape is handed over
            case OpCall(op=op, args=args) if op.name == "commit":
                wanted.add(args[0])
            case OpCall(args=args) | KernelCall(args=args):
                wanted.update(args[k] for k in written(let))
            case FnCall(function=callee, args=args):
                wanted.update(args[k] for k in consumed[callee])
            case If(then=then, orelse=orelse):
                wanted.update(then.results, orelse.results)
            case Loop():
                wanted.update(let.rhs.init, let.rhs.body.results)
                if let.rhs.test is not None:
                    wanted.update(let.rhs.test.results)
    roots: set[Atom] = set()
    for atom in wanted:
        while atom in source:
            atom = source[atom]
        roots.add(atom)
    return frozenset(
        k for k, p in enumerate(function.params)
        if is_resource(p) and (p in roots or isinstance(p.type, TapeType))
    )
