"""Reverse mode over a block: the forward block replayed, the backward block written.

In: the Lets of a forward block, and a `Sink` with the cotangents of what the block's owner reads.
Out: the forward Lets, changed where control flow must leave something for the backward pass, and in
the sink's builder the backward code, in which forward variables are read directly. The owner of the
block then decides how those reach the backward block (`residuals`).

Straight-line code is Griewank and Walther's adjoint of a sequence of assignments; `branches`,
`loops` and `calls` split control flow into a forward and a backward node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from pyrelay.grad.activity import carries_derivative
from pyrelay.grad.cotangents import Sink, cotangent_type, strong, zero
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Attrs, Block, Const, FnCall, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS, NotDifferentiable
from pyrelay.records import dataclass


class Flow:
    """The tape through a forward block, followed from the block's end to its start.

    `end` is the tape that the block leaves, `current` the tape before the Lets seen so far.
    """

    __slots__ = ("current", "end")

    def __init__(self) -> None:
        self.end = self.current = Var("tape", types.TAPE)

    @property
    def used(self) -> bool:
        """True if a Let of the block has used the tape."""
        return self.current is not self.end

    def step(self) -> tuple[Var, Var]:
        """The tapes before and after a Let that uses it."""
        after, self.current = self.current, Var("tape", types.TAPE)
        return self.current, after


@dataclass
class _Copying(walk.Renaming):
    """A renaming to apply before the copies of binders get their own names."""

    first: walk.Renaming = field(default_factory=walk.Renaming)

    def atom(self, atom: Atom) -> Atom:
        return super().atom(self.first.atom(atom))

    def extent(self, extent: Extent) -> Extent:
        return super().extent(self.first.extent(extent))

    def attrs(self, attrs: Attrs) -> Attrs:
        return super().attrs(self.first.attrs(attrs))

    def var(self, var: Var) -> Var:
        ty = None if var.type is None else types.substitute(var.type, self.first.dims)
        copy = super().var(Var(var.name, ty, span=var.span))
        self.atoms[var] = copy
        return copy


class Walker:
    """Reverses the blocks of one function.

    active: its active variables. definitions: the Lets that bind its variables. control: for each
    kind of node with blocks or a callee, what reverses it. `volatile` are variables with many
    values in one run, so that the backward pass has them only if they are saved: those bound in
    loops and recursive functions.

    names: what forward variables and symbols are called in backward code. Backward code is written
    with the forward names and renamed once, when the function is complete (`renaming`): renaming
    every block as it is finished would copy inner ones again at each level. source: what the blocks
    of the function read; backward: what those of the backward code read, under their new names.
    """

    def __init__(
        self, active: Collection[Var], definitions: Mapping[Var, Let],
        control: Mapping[type, ReverseControl],
    ) -> None:
        self.active, self.definitions, self._control = active, definitions, control
        self.volatile: set[Var] = set()
        self.names = walk.Renaming()
        self.source, self.backward = Contents(), Contents(self.names)
        self._tapes: dict[Var, Var] = {}
        self._extents: dict[Var, Extent] = {}
        self._late: dict[Var, list[Let]] = {}

    def lets(self, lets: Sequence[Let], sink: Sink, flow: Flow) -> list[Let]:
        """Reverse the Lets of a block; returns the forward block's."""
        pieces: list[list[Let]] = []
        for let in reversed(lets):
            with sink.builder.at(let.span):
                if isinstance(let.rhs, OpCall):
                    reverse_op(let, let.rhs, sink)
                    forward = [let]
                else:
                    forward = self._control[type(let.rhs)](self, let, sink, flow)
            pieces.append(forward + self.late(let.outs))
        return [let for piece in reversed(pieces) for let in piece]

    def enter(self, binders: Iterable[Var], blocks: Iterable[Block]) -> None:
        """Note that these variables, and what is bound in the blocks, are volatile."""
        self.volatile.update(binders)
        for block in blocks:
            for let in walk.nested_lets(block):
                self.volatile.update(let.outs, walk.block_binders(let.rhs))

    def renaming(self) -> walk.Renaming:
        """The final names of forward variables and symbols in backward code.

        Names for an inner block are entered before those of the blocks around it.
        """
        final = walk.Renaming()
        for var, atom in reversed(self.names.atoms.items()):
            final.atoms[var] = final.atom(atom)
        for symbol, extent in reversed(self.names.dims.items()):
            final.dims[symbol] = final.extent(extent)
        return _Copying(first=final)

    def same_tape(self, inner: Var, outer: Var) -> None:
        """The tape that a branch starts with is the one before the branch."""
        self._tapes[inner] = outer

    def connected(self, lets: Sequence[Let]) -> list[Let]:
        """Forward Lets in which branches read the tapes from outside (see `same_tape`)."""
        final: dict[Var, Var] = {}
        for inner, outer in reversed(self._tapes.items()):
            final[inner] = final.get(outer, outer)
        return [_reading(let, final) for let in lets] if final else list(lets)

    def late(self, binders: Iterable[Var]) -> list[Let]:
        """Lets to insert where these variables are bound (see `extent_of`)."""
        return [let for var in binders for let in self._late.pop(var, ())]

    def known_extent(self, count: Atom) -> Extent | None:
        """The trip count of a loop, if it is a constant or an extent."""
        if isinstance(count, Const):
            return max(0, int(count.value))
        definition = self.definitions.get(count)
        if definition is None or not isinstance(definition.rhs, OpCall):
            return None
        if definition.rhs.op.name != "extent":
            return None
        size: Extent = definition.rhs.attrs["size"]
        return dims.maximum(size, 0)

    def extent_of(self, count: Atom) -> Extent:
        """The trip count of a loop as an extent.

        Unless the count is an extent or a constant, a symbol is bound to it where it is defined, so
        that arrays of that length have the same type in all enclosing loops.
        """
        known = self.known_extent(count)
        if known is not None:
            return known
        assert isinstance(count, Var)
        if count not in self._extents:
            definition = self.definitions.get(count)
            builder = Builder(None if definition is None else definition.span)
            length = builder.call(OPS["maximum"], count, 0)
            _, (extent,) = builder.call(OPS["as_extent"], length, name="n")
            self._extents[count] = extent
            self._late[count] = builder.lets
        return self._extents[count]


#: (walker, Let, sink, flow) -> forward Lets that replace the Let
ReverseControl = Callable[[Walker, Let, Sink, Flow], list[Let]]


def _reading(let: Let, tapes: Mapping[Var, Var]) -> Let:
    """The Let with other tapes in place of some."""

    def atoms(old: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple(tapes.get(a, a) if isinstance(a, Var) else a for a in old)

    def block(old: Block) -> Block:
        lets = tuple(_reading(inner, tapes) for inner in old.lets)
        return Block(lets, atoms(old.results), old.dims)

    rhs = walk.replace_blocks(let.rhs, block)
    if isinstance(rhs, (OpCall, FnCall)) and any(a in tapes for a in rhs.args):
        rhs = replace(rhs, args=atoms(rhs.args))
    elif isinstance(rhs, Loop):
        rhs = replace(rhs, init=atoms(rhs.init))
    return let if rhs is let.rhs else replace(let, rhs=rhs)


def reverse_op(let: Let, call: OpCall, sink: Sink) -> None:
    """Add the cotangents of an op's operands, by the op's rule."""
    rule = call.op.vjp
    cotangents = [sink.take(out) for out in let.outs]
    if isinstance(rule, NotDifferentiable) or all(g is None for g in cotangents):
        return
    builder = sink.builder
    results = [strong(builder, out) for out in let.outs]
    operands = [strong(builder, a) for a in call.args]
    postponed: set[int] = set()
    if len(results) == 1:
        assert cotangents[0] is not None
        if sink.postpone is not None:
            postponed = sink.postpone(let, call, cotangents[0], sink)
        found = rule(results[0], cotangents[0], *operands, **call.attrs)
    else:
        filled = tuple(
            zero(builder, cotangent_type(out.type))
            if g is None and carries_derivative(out.type) else g
            for g, out in zip(cotangents, let.outs, strict=True)
        )
        found = rule(tuple(results), filled, *operands, **call.attrs)
    for k, (atom, cotangent) in enumerate(zip(call.args, found, strict=True)):
        if k not in postponed:
            sink.add(atom, cotangent)
