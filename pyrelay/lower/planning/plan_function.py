"""One Core function as plan code: its blocks in order, its values in slots, its buffers owned.

In: a function whose computations are KernelCalls, library ops and plan ops
(`lower/planning/normalise.py`). Out: a `PlanFunction`. `memory.py` states who owns what; this file
applies it: `hand_over` moves a buffer or copies it, `release` frees what has died.
`plan_control.py`, `plan_kernels.py` and `plan_ops.py` plan the single nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyrelay.errors import InvariantError, Span
from pyrelay.ir import dims, walk
from pyrelay.ir.nodes import (
    TEMPORARY,
    Atom,
    Block,
    Const,
    FnCall,
    Function,
    If,
    KernelCall,
    Let,
    Loop,
    OpCall,
    Var,
)
from pyrelay.ir.types import TapeType, TensorType, Type
from pyrelay.lower.kernels.recursion import Passing, Recursion
from pyrelay.lower.planning import (
    plan_chains,
    plan_commits,
    plan_control,
    plan_counts,
    plan_kernels,
    plan_ops,
    plan_panels,
    plan_parts,
    plan_passing,
    plan_rows,
    plan_sorted_adds,
)
from pyrelay.lower.planning.frame import Frame, Words, constant_words, word_count
from pyrelay.lower.planning.instructions import (
    Alloc,
    Copy,
    Free,
    PlanFunction,
    Poll,
    Return,
    Slot,
    TapeFree,
    Value,
)
from pyrelay.lower.planning.memory import (
    Buffer,
    LastReads,
    Scope,
    is_dead,
    is_resource,
)
from pyrelay.lower.planning.program import Program
from pyrelay.lower.planning.sizes import Sizes

_LONGEST = 40  # characters that tell what an array is


class FunctionPlanner:
    """Plans one function.

    `numbers` are the plan's functions by name; `consumed` the parameters that each takes over;
    `recursion` tells which of them native code calls; `planned` are those that have a plan.
    """

    def __init__(
        self, program: Program, numbers: Mapping[str, int],
        consumed: Mapping[str, frozenset[int]], recursion: Recursion,
        planned: Mapping[str, PlanFunction], function: Function,
    ) -> None:
        self.program, self.numbers, self.consumed = program, numbers, consumed
        self.recursion, self.planned, self.name = recursion, planned, function.name
        self.params = frozenset(function.params)
        self.frame = Frame(function.name)
        self.sizes = Sizes(self.frame)
        self.last = LastReads()
        self.words: dict[Var, Words] = {}  # of scalars
        self.buffers: dict[Var, Buffer] = {}  # of arrays and tapes
        self.panels: dict[plan_panels.Key, plan_panels.Panels] = {}  # laid for loops around here
        self.part: plan_parts.Rows | None = None  # of the loop around here, if threads share them
        self.rows: dict[Var, plan_rows.Row] = {}  # where results lie in rows of arrays
        self.kept: set[Let] = set()  # copies into such rows
        self.passing: set[Var] = set()  # results that are soon given back
        self.chains: dict[Let, plan_chains.Chain] = {}  # convolutions that one launch may compute
        self.counts: dict[Let, plan_counts.Counted] = {}  # scatters that compute what they add
        self.zeroed: set[Let] = set()  # scatters that add to zeros which they make themselves
        self.made: dict[Let, plan_sorted_adds.Made] = {}  # those that compute what they add
        self.uncalled: set[Let] = set()  # what makes what is counted, or these zeros
        self.commits: dict[Var, plan_commits.Commit] = {}  # of values that are to lie in an array
        self.gone: set[Buffer] = set()  # freed or handed over on the way to here
        self._journal: list[Buffer] = []  # what entered `gone`, in order
        self.scope = Scope(self.last(function.body), 0)
        self._function = function

    def plan(self, recursive: bool, mutated: Mapping[int, int]) -> PlanFunction:
        """The code. A recursive function polls for Ctrl-C when it is entered. `mutated` are the
        parameters that are arrays of Python's and hold a result at the end, with its position."""
        function, frame = self._function, self.frame
        for k, param in enumerate(function.params):
            slots = frame.words(word_count(param.type))
            self.define(param, slots, owned=k in self.consumed[function.name])
        extents = frame.words(len(function.dims))
        parameters = frame.slots
        self.sizes.bind({s: Slot(k) for s, k in zip(function.dims, extents, strict=True)})
        if recursive:
            frame.emit(Poll())
        kept = plan_commits.find_at_end(self, function, mutated)
        arrays = [self.buffers[p] for p in function.params if p in self.buffers]
        self.free_unread([b for b in arrays if b not in kept])
        self.run(function.body)
        results = self.hand_over(function.body.results)
        self.free_unread([b for b in arrays if b in kept and b not in self.gone])
        frame.emit(Return(results + self.sizes.values(function.body.dims)))
        return frame.finish(parameters)

    def native_passing(self, callee: str) -> Passing | None:
        """How a call passes arrays that a kernel makes; None if the plan makes it. Where the kernel
        does, the plan of what it runs, which may have to go on with it, leaves each array in its
        buffer that is not passed as an address."""
        passing = self.recursion.passing(self.name, callee)
        if passing is None:
            return None
        for name in self.recursion.reached(callee):
            given_back = set(self.recursion.native[name].given_back) - {None}
            if given_back != self.consumed[name]:
                return None
            moves = any(isinstance(s, (Alloc, Copy, Free)) for s in self.planned[name].code)
            if moves and not given_back.issubset(passing.passed[name]):
                return None
        return passing

    # -- values --------------------------------------------------------------------------------

    def define(self, var: Var, slots: Sequence[int], *, owned: bool = True) -> None:
        """From here on the variable is in these slots; a buffer belongs to the current scope."""
        if is_resource(var):
            self.buffers[var] = Buffer(slots[0], owned, self.scope, [var])
        else:
            self.words[var] = tuple(map(Slot, slots))

    def fresh(self, var: Var) -> tuple[int, ...]:
        """New slots for a variable, defined at once."""
        slots = self.frame.words(word_count(var.type))
        self.define(var, slots)
        return slots

    def value(self, atom: Atom) -> Words:
        """The operands that hold an atom: a scalar's words, or an address."""
        if isinstance(atom, Const):
            return constant_words(atom)
        if atom in self.buffers:
            return (Slot(self.buffers[atom].slot),)
        return self.words[atom]

    def scalar(self, atom: Atom) -> Value:
        """The operand of a scalar of one word."""
        (word,) = self.value(atom)
        return word

    def bytes_of(self, ty: Type | None) -> Value:
        """How many bytes an array takes."""
        assert isinstance(ty, TensorType)
        return self.sizes.value(dims.multiply(ty.size, ty.dtype.size))

    def allocate(self, ty: Type | None, passing: bool = False) -> int:
        """The slot of a fresh buffer for an array."""
        slot = self.frame.slot()
        self.frame.allocate(slot, self.bytes_of(ty), passing)
        return slot

    def make(self, out: Var) -> int:
        """The slot of the buffer for a result, which is defined to be there: a fresh one, or a row
        that it is kept in."""
        in_row = out in self.rows
        self.frame.array = _told(out, out.span) or self.frame.array
        slot = (
            plan_rows.address(self, out) if in_row
            else self.allocate(out.type, out in self.passing)
        )  # fmt: skip
        self.define(out, (slot,), owned=not in_row)
        return slot

    # -- blocks --------------------------------------------------------------------------------

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Plan within a scope of a nested block."""
        outer, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def in_parts(self, rows: plan_parts.Rows | None) -> Iterator[None]:
        """Plan the body of a loop whose rows threads share."""
        outer, self.part = self.part, rows
        try:
            yield
        finally:
            self.part = outer

    def run(self, block: Block) -> None:
        """Plan the Lets of the current scope's block; then its results are what is read next."""
        scope = self.scope
        plan_rows.find(self, block)
        plan_commits.find(self, block)
        plan_passing.find(self, block)
        plan_chains.find(self, block)
        plan_counts.find(self, block)
        plan_sorted_adds.find(self, block)
        for k, let in enumerate(block.lets):
            scope.at = k
            if let in self.uncalled:
                continue
            self.let(let)
            self.release(let)
        scope.at = len(block.lets)

    def let(self, let: Let) -> None:
        """Plan one node."""
        self.frame.array = next((t for o in let.outs if (t := _told(o, o.span or let.span))), "")
        match let.rhs:
            case KernelCall() if let in self.kept:
                plan_rows.keep(self, let)
            case KernelCall() | OpCall() if let in self.chains:
                plan_chains.layer(self, let)
            case OpCall() if let in self.counts:
                plan_counts.counted(self, let)
            case KernelCall() as node:
                plan_kernels.kernel_call(self, let, node)
            case OpCall() as node:
                plan_ops.op_call(self, let, node)
            case FnCall() as node:
                plan_control.call(self, let, node)
            case If() as node:
                plan_control.branches(self, let, node)
            case Loop() as node:
                plan_control.loop(self, let, node)
            case node:
                raise InvariantError(f"{type(node).__name__} cannot be planned", span=let.span)

    # -- ownership -----------------------------------------------------------------------------

    def buffer(self, atom: Atom) -> Buffer:
        """The buffer or tape of an atom."""
        assert isinstance(atom, Var)
        return self.buffers[atom]

    def is_free_to_take(self, buffer: Buffer) -> bool:
        """True if the function owns the buffer and nothing reads it after the current Let."""
        return buffer.owned and buffer not in self.gone and is_dead(buffer, self.scope)

    def take(self, buffer: Buffer) -> None:
        """The buffer has another owner now."""
        self.gone.add(buffer)
        self._journal.append(buffer)

    @contextmanager
    def alternative(self) -> Iterator[None]:
        """Plan one branch: what it frees or hands over is not gone for the other one."""
        mark = len(self._journal)
        yield
        self.gone.difference_update(self._journal[mark:])
        del self._journal[mark:]

    def hand_over(
        self, atoms: Iterable[Atom], also_read: Iterable[Buffer] = ()
    ) -> Words:
        """The words of values, where each array is an owned buffer that nobody else has.

        A buffer that dies here is moved; one that lives on, is borrowed, stands twice among the
        atoms or is among `also_read` is copied. A tape cannot be copied (InvariantError).
        """
        words: list[Value] = []
        kept = set(also_read)
        for atom in atoms:
            if not is_resource(atom):
                words += self.value(atom)
                continue
            buffer = self.buffer(atom)
            if buffer not in kept and self.is_free_to_take(buffer):
                self.take(buffer)
                words.append(Slot(buffer.slot))
            elif isinstance(atom.type, TapeType):
                raise InvariantError("a tape is used twice", span=_span(atom))
            else:
                words.append(self.copied(buffer, atom.type))
        return tuple(words)

    def copied(self, buffer: Buffer, ty: Type | None) -> Slot:
        """The slot of a copy of a buffer."""
        slot = self.allocate(ty)
        self.frame.emit(Copy(Slot(slot), Slot(buffer.slot), self.bytes_of(ty)))
        return Slot(slot)

    def free(self, buffer: Buffer) -> None:
        """Free a buffer or tape that the function owns."""
        self.take(buffer)
        (reader, *_) = buffer.readers
        instruction = TapeFree if isinstance(reader.type, TapeType) else Free
        self.frame.emit(instruction(Slot(buffer.slot)))

    def release(self, let: Let) -> None:
        """Free what the current Let read or made and nothing reads after it."""
        touched: dict[Var, None] = {}
        for atom in walk.operands(let.rhs):
            if isinstance(atom, Var):
                touched[atom] = None
        if isinstance(let.rhs, Loop):
            for block in walk.blocks(let.rhs):
                touched.update(dict.fromkeys(self.last(block)))
        touched.update(dict.fromkeys(let.outs))
        for buffer in dict.fromkeys(self.buffers[v] for v in touched if v in self.buffers):
            if buffer.scope.level <= self.scope.level and self.is_free_to_take(buffer):
                self.free(buffer)

    def free_unread(self, buffers: Iterable[Buffer]) -> None:
        """Free what the block that begins here never reads, among buffers that die in it."""
        for buffer in buffers:
            if buffer.owned and not any(v in self.scope.last for v in buffer.readers):
                self.free(buffer)


def _told(out: Var, span: Span | None) -> str:
    """What an array is to the user: its name, or what computes it, and the line."""
    if span is None:
        return ""
    text = out.name if out.name != TEMPORARY else " ".join(span.text().split())
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 3]}..."
    return f"{text}, line {span.line}"


def _span(atom: Atom) -> Span | None:
    return atom.span if isinstance(atom, Var) else None
