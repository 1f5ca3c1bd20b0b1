"""Loops whose rows threads share out once, and not at every launch.

In: a loop that is about to be planned. Out: `Rows`, where no row of what the loop carries hangs on
another one: the steps of a recurrent network over a batch. Its launches compute the rows between
two slots only, and the pool's threads do the whole loop for some rows each (`Parts`), so that they
meet once. Where that does not pay, which the running program decides, the slots stand for all
rows, and launches are shared as everywhere.

A row is an entry of axis 0. Arrays that the loop carries are either *split*, and then row i of
every array computed from them is computed from row i of those that are split and from arrays that
the loop does not change; or *stacks*, of which each round replaces one entry by a split array.

Threads may be rounds apart. So a buffer must not hold arrays with rows of different sizes, nor be
given back: what the loop's body allocates is allocated before it, buffers as large as each other
take turns, and which one is where is the same for all threads.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.effects import effect_of, is_pure
from pyrelay.ir.nodes import Atom, KernelCall, Let, Loop, OpCall, Var
from pyrelay.ir.op import Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning import plan_panels
from pyrelay.lower.planning.frame import ZERO
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Alloc,
    Binary,
    Checked,
    CodeOf,
    Free,
    Instruction,
    JumpUnless,
    Launch,
    LoopNext,
    PartEnd,
    Parts,
    Select,
    Slot,
    Unary,
    Value,
    immediate,
)
from pyrelay.opt.finishing import product_of
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner
    from pyrelay.lower.planning.program import Group

_LARGEST = 1 << 21
"""Bytes of the matrices up to which each thread reads all of them: they come from a cache of its
own, or at most from the one that all share. Larger ones are read by columns."""

_LONGEST = 1_000_000_000
"""Picoseconds of a round up to which meeting in it costs more than parts that take unequally long:
a launch is cut into more parts than there are threads."""


@dataclass(slots=True)
class Rows:
    """The rows of the loop that is being planned.

    first, end: slots of the rows that are computed, of `count`. inside: the slot that is 1 in a
    thread's part. of: the Lets whose launches these are. matrices: bytes of what the rows are
    multiplied by. before: the code before the loop. work: picoseconds of a round.
    """

    count: Extent
    first: int
    end: int
    inside: int
    of: frozenset[Let]
    matrices: Extent
    before: list[Any]
    work: Extent = 0
    taken: dict[int, Value] = field(default_factory=dict)  # spare buffers, and their bytes

    def range(self, p: FunctionPlanner, extent: Extent, cost: Extent) -> tuple[Value, Value]:
        """The range of a launch that goes through an array row by row."""
        self.work = dims.add(self.work, dims.multiply(extent, cost))
        each = p.sizes.value(dims.quotient(extent, self.count))
        found = []
        for slot in (self.first, self.end):
            found.append(p.frame.slot())
            p.frame.emit(Binary("mul.i64", found[-1], Slot(slot), each))
        return Slot(found[0]), Slot(found[1])

    def product(self, extent: Extent, cost: Extent) -> tuple[Value, Value]:
        """The rows of a product, whose launch is over `extent`."""
        self.work = dims.add(self.work, dims.multiply(extent, cost))
        return Slot(self.first), Slot(self.end)


# -- before the loop -------------------------------------------------------------------------------


def begin(p: FunctionPlanner, loop: Loop) -> Rows | None:
    """Where rows are independent of each other: the slots for them, before the loop."""
    found = _Split(p, loop).find() if p.program.target.parts and p.part is None else None
    if found is None:
        return None
    count, of, matrices = found
    frame = p.frame
    first, end, inside = frame.words(3)
    frame.move((first, end, inside), (ZERO, p.sizes.value(count), ZERO))
    return Rows(count, first, end, inside, of, matrices, frame.placeholder())


# -- behind it -------------------------------------------------------------------------------------


def close(p: FunctionPlanner, rows: Rows, loop: Loop, head: int, start: list[Any]) -> None:
    """After the last round: `head` is where the first one begins in the code, `start` a place
    before it."""
    code = p.frame.since(head)
    changed = _with_spares(p, rows, loop, code)
    p.frame.extend(code if changed is None else changed)
    if changed is None:
        return
    frame, after = p.frame, p.frame.label("together")
    assert loop.count is not None
    small, some, short, wanted, whole = frame.words(5)
    bytes_read, work = p.sizes.value(rows.matrices), p.sizes.value(rows.work)
    start += [
        Binary("le.i64", small, bytes_read, immediate(_LARGEST)),
        Select(some, Slot(small), work, ZERO),
        Binary("le.i64", short, work, immediate(_LONGEST)),
        Select(wanted, Slot(short), Slot(some), ZERO),
        Binary("mul.i64", whole, Slot(wanted), p.scalar(loop.count)),
        Parts(rows.first, rows.end, rows.inside, p.sizes.value(rows.count), Slot(whole), after),
    ]
    frame.emit(JumpUnless(Slot(rows.inside), after))
    frame.emit(PartEnd())
    frame.place(after)


def free(p: FunctionPlanner, rows: Rows) -> None:
    """Give back what the loop's rounds took turns with."""
    for slot in rows.taken:
        p.frame.emit(Free(Slot(slot)))


def _with_spares(
    p: FunctionPlanner, rows: Rows, loop: Loop, code: list[Any]
) -> list[Instruction] | None:
    """The rounds' code with buffers that take turns in place of those allocated and freed; None if
    it does anything else that threads could not do apart."""
    kinds: dict[int, Value] = {}  # bytes of the buffers whose addresses are in slots
    for var in loop.carried:
        if is_array(var):
            kinds[p.buffers[var].slot] = p.bytes_of(var.type)
    spare: dict[Value, list[int]] = {}
    made: list[Instruction] = []
    taken: dict[int, Value] = {}
    for each in code:
        match each:
            case Alloc(target, nbytes):
                if not spare.get(nbytes):
                    spare.setdefault(nbytes, []).append(p.frame.slot())
                    taken[spare[nbytes][0]] = nbytes
                made.append(Unary("move", target, Slot(spare[nbytes].pop())))
                kinds[target] = nbytes
            case Free(Slot(index)) if index in kinds:
                aside = p.frame.slot()
                made.append(Unary("move", aside, Slot(index)))
                spare.setdefault(kinds[index], []).append(aside)
            case Unary("move", target, Slot(source)):
                made.append(each)
                kinds.pop(target, None)
                if source in kinds:
                    kinds[target] = kinds[source]
            case Launch(operands=operands):
                if any(isinstance(a, AddressOf) and a.index in kinds for a in operands):
                    return None  # the kernel says where buffers are
                if any(isinstance(a, CodeOf) for a in operands):
                    return None  # the plan may have to go on, which calls and allocates
                made.append(each)
            case Unary() | Binary() | Checked() | Select():
                made.append(each)
            case LoopNext():
                # The next round finds its spare buffers where this one found them.
                for nbytes in {*taken.values(), *spare}:
                    places = [slot for slot, size in taken.items() if size == nbytes]
                    left = spare.get(nbytes, [])
                    if len(places) != len(left):
                        return None
                    pairs = zip(places, left, strict=True)
                    made += [Unary("move", to, Slot(slot)) for to, slot in pairs]
                made.append(each)
            case _:
                return None
    rows.taken = taken
    rows.before += [Alloc(slot, nbytes) for slot, nbytes in taken.items()]
    return made


# -- which loops -----------------------------------------------------------------------------------


class _Split:
    """Looks whether rows of a loop are independent of each other."""

    def __init__(self, p: FunctionPlanner, loop: Loop) -> None:
        self.p, self.loop = p, loop
        self.count: Extent = 0
        self.split: set[Atom] = set()
        self.stacks: set[Atom] = set()
        self.of: set[Let] = set()
        self.matrices: dict[Atom, Extent] = {}

    def find(self) -> tuple[Extent, frozenset[Let], Extent] | None:
        """The number of rows, the Lets that compute them, bytes of the matrices they are multiplied
        by; None where rows hang on each other."""
        loop, body = self.loop, self.loop.body
        if (
            loop.count is None or loop.test is not None or loop.exits or loop.handed
            or loop.dims or body.dims
        ):  # fmt: skip
            return None
        self.stacks = {
            let.rhs.args[k] for let in body.lets if isinstance(let.rhs, KernelCall)
            for k in _updated(let.rhs)
        } & {*loop.carried}  # fmt: skip
        self.split = {v for v in loop.carried if is_array(v) and v not in self.stacks}
        if any(map(self._is_given, loop.init)):
            return None  # it may be the caller's array, which must not take turns with others
        counts = {shape_of(v)[0] for v in self.split}
        if len(counts) != 1:
            return None
        (self.count,) = counts
        if isinstance(self.count, int) and self.count < 2:
            return None
        if not all(map(self._fits, body.lets)) or not self.of:
            return None
        for var, result in zip(loop.carried, body.results, strict=True):
            kind = self.stacks if var in self.stacks else self.split
            if is_array(var) and result not in kind:
                return None
        total: Extent = 0
        for size in self.matrices.values():
            total = dims.add(total, size)
        return self.count, frozenset(self.of), total

    def _is_given(self, atom: Atom) -> bool:
        """Whether an array is, or lies in, one that the function was given and may write."""
        if not isinstance(atom, Var) or not is_array(atom):
            return False
        buffer = self.p.buffer(atom)
        return buffer.owned and any(v in self.p.params for v in buffer.readers)

    def _fits(self, let: Let) -> bool:
        rhs = let.rhs
        if let.dims or not isinstance(rhs, (KernelCall, OpCall)):
            return False
        changing = any(a in self.split or a in self.stacks for a in rhs.args)
        if not changing and not any(map(is_array, let.outs)):
            # What it raises it raises in every part, in the same round.
            return effect_of(rhs) <= Effect.RAISES
        if not is_pure(let):
            return False
        self.of.add(let)
        if isinstance(rhs, OpCall):
            self.split.update(let.outs)
            return self._multiplies(let, rhs)
        if product_of(rhs.function.body) is not None:
            return self._finishes(rhs) and self._keeps_rows(let, rhs)
        return self._goes_row_by_row(rhs) and self._keeps_rows(let, rhs)

    def _multiplies(self, let: Let, call: OpCall) -> bool:
        """Whether a Let is a product of rows and a matrix in panels."""
        if call.op.schedule != "matmul" or call.args[1] in self.split | self.stacks:
            return False
        panels = plan_panels.of_operation(self.p, call, let.outs[0])
        self._read(call.args[1])
        return (
            panels is not None and panels.gates != plan_panels.SINGLE
            and call.args[0] in self.split and not call.attrs["transpose_a"]
            and shape_of(let.outs[0])[0] == self.count
        )  # fmt: skip

    def _finishes(self, call: KernelCall) -> bool:
        """Whether a group is such a product and what is done to its elements."""
        group = self.p.program.lowering(call.function)
        product = group.lowering.product
        if product is None:
            return False
        assert isinstance(product.let.rhs, OpCall)
        key = plan_panels.key_of(product, call)
        self._read(call.args[product.operands[1]])
        return (
            key is not None and key in self.p.panels and key[2] != plan_panels.SINGLE
            and call.args[product.operands[0]] in self.split
            and not product.let.rhs.attrs["transpose_a"]
        )  # fmt: skip

    def _read(self, matrix: Atom) -> None:
        ty = matrix.type
        assert isinstance(ty, TensorType)
        self.matrices[matrix] = dims.product((*ty.shape, ty.dtype.size))

    def _goes_row_by_row(self, call: KernelCall) -> bool:
        """Whether the kernels of a group go through its results in order, without others between.
        """
        group = self.p.program.lowering(call.function)
        lowering = group.lowering
        special = (
            lowering.product, lowering.half_product, lowering.attention,
            lowering.attention_gradient, lowering.long,
        )  # fmt: skip
        if any(each is not None for each in special) or lowering.scratch or not lowering.kernels:
            return False
        reduces = False
        for inner in call.function.body.lets:
            rhs = inner.rhs
            if not isinstance(rhs, OpCall) or rhs.op.fusion is Fusion.OPAQUE:
                return False
            if rhs.op.fusion is Fusion.REDUCTION:
                # Lines of matrices: of other arrays a kernel may take the axes in another order.
                reduces = True
                if len(shape_of(rhs.args[0])) != 2 or rhs.attrs.get("axes") != (1,):
                    return False
        extents = _extents(group, call)
        if reduces:
            return all(extent == self.count for extent in extents)
        return all(
            dims.multiply(dims.quotient(extent, self.count), self.count) == extent
            for extent in extents
        )

    def _keeps_rows(self, let: Let, call: KernelCall) -> bool:
        """Whether row i of a group's results is computed from row i of what is split; notes which
        of the results are split, and which are stacks."""
        function = call.function
        extents = dict(zip(function.dims, call.dims, strict=True))
        pairs = [*zip(function.params, call.args, strict=True)]
        inside: set[Atom] = {p for p, a in pairs if a in self.split}
        stacks: set[Atom] = {p for p, a in pairs if a in self.stacks}
        updated: set[Atom] = set()
        for inner in function.body.lets:
            rhs, (out, *_) = inner.rhs, inner.outs
            if not isinstance(rhs, OpCall):
                return False
            if any(a in stacks for a in rhs.args):
                base, value, *_ = rhs.args
                if not _replaces_entry(rhs) or base not in stacks or value not in inside:
                    return False
                stacks.remove(base)  # it is not read again
                updated.add(out)
            elif any(a in inside for a in rhs.args):
                if not self._row_by_row(rhs, out, inside, extents):
                    return False
                inside.update(inner.outs)
        for made, out in zip(function.body.results, let.outs, strict=True):
            if made in updated:
                self.stacks.add(out)
            elif is_array(out) and shape_of(out)[0] == self.count and made not in stacks:
                self.split.add(out)  # what does not depend on split arrays is computed by rows too
            else:
                return False
        return True

    def _row_by_row(
        self, call: OpCall, out: Var, inside: set[Atom], extents: dict[Symbol, Extent]
    ) -> bool:
        """Whether an op keeps rows: of those of its operands that are split, and its result."""

        def count(extent: Extent) -> bool:
            return dims.substitute(extent, extents) == self.count

        made = shape_of(out)
        given = [shape_of(a) for a in call.args if a in inside]
        if not made or not count(made[0]) or not all(s and count(s[0]) for s in given):
            return False
        attrs = call.attrs
        if call.op.fusion is Fusion.REDUCTION:
            return True  # along lines, as `_goes_row_by_row` asks
        match call.op.name:
            case "matmul":
                return call.args[1] not in inside and not attrs["transpose_a"] and len(made) == 2
            case "slice":
                return bool(attrs["starts"][0] == 0 and attrs["steps"][0] == 1)
            case "concatenate":
                return bool(attrs["axis"] % len(made) != 0)
            case "expand_dims" | "squeeze":
                return 0 not in attrs["axes"] and min(attrs["axes"]) > 0
            case "transpose":
                return bool(attrs["axes"][0] == 0)
            case "broadcast_to":
                return len(given[0]) == len(made)
        if call.op.fusion is not Fusion.ELEMENTWISE:
            return False
        return all(len(shape) == len(made) for shape in given)


def _updated(call: KernelCall) -> list[int]:
    """The positions of arguments of which a group replaces an entry."""
    function = call.function
    return [
        function.params.index(let.rhs.args[0]) for let in function.body.lets
        if isinstance(let.rhs, OpCall) and _replaces_entry(let.rhs)
        and let.rhs.args[0] in function.params
    ]  # fmt: skip


def _replaces_entry(call: OpCall) -> bool:
    """Whether an op replaces an entry of an array, chosen by a scalar, by an array."""
    return (
        call.op.name == "index_update" and call.attrs["axes"] == (0,)
        and len(call.args) == 3 and not shape_of(call.args[2]) and len(shape_of(call.args[0])) >= 2
    )  # fmt: skip


def _extents(group: Group, call: KernelCall) -> list[Extent]:
    """Over how many iterations the kernels of a group go, in extents of the program."""
    extents = dict(zip(group.dims, call.dims, strict=True))
    return [dims.substitute(kernel.extent, extents) for kernel in group.lowering.kernels]
