"""Loop-invariant code leaves loops, and products of the rows of a known sequence leave recurrences.

In: a module. Out: the module in which pure ops that read nothing of a loop stand before it, and
`x[t] @ w` inside a counted loop over t is row t of one product made before the loop (most of what a
hand-written LSTM wins). Nothing that may raise is moved, nor anything out of a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from operator import is_

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Attrs, Block, Const, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import TapeType, TensorType
from pyrelay.ir.walk import attr_symbols, nested_lets, operands, replace_blocks
from pyrelay.records import dataclass

# Arrays that cost nothing where a kernel reads them: only worth a buffer that lives as long as the
# loop if something else that leaves the loop reads them.
_FREE = frozenset({"undef", "iota", "broadcast_to"})


def hoist(module: Module) -> Module:
    """Move invariant code out of loops, innermost loops first."""
    return module.with_bodies(_block)


def _block(block: Block) -> Block:
    lets: list[Let] = []
    for let in block.lets:
        rhs = replace_blocks(let.rhs, _block)
        if isinstance(rhs, Loop):
            before, rhs = _Hoister(rhs).run(let)
            lets.extend(before)
        lets.append(let if rhs is let.rhs else Let(let.outs, rhs, let.dims, span=let.span))
    if len(lets) == len(block.lets) and all(map(is_, lets, block.lets)):
        return block
    return Block(tuple(lets), block.results, block.dims)


def _is_free(let: Let) -> bool:
    ty = let.outs[0].type
    array = isinstance(ty, TensorType) and bool(ty.shape)
    return array and isinstance(let.rhs, OpCall) and let.rhs.op.name in _FREE


@dataclass
class _Hoister:
    """Splits the body of one loop into what goes before it and what stays."""

    loop: Loop
    inside: set[Var] = field(default_factory=set)
    inside_symbols: set[dims.Symbol] = field(default_factory=set)
    definitions: dict[Var, OpCall] = field(default_factory=dict)

    def run(self, let: Let) -> tuple[list[Let], Loop]:
        """Lets for before the loop, and the loop."""
        loop = self.loop
        self.inside.update(loop.carried, loop.handed)
        if loop.index is not None:
            self.inside.add(loop.index)
        self.inside_symbols.update(loop.dims)
        before = Builder(let.span)
        test = loop.test
        if test is not None:
            leaving = self._leaving(test.lets)
            before.lets += [inner for inner in test.lets if id(inner) in leaving]
            stay = tuple(inner for inner in test.lets if id(inner) not in leaving)
            test = Block(stay, test.results, test.dims)
        leaving = self._leaving(loop.body.lets)
        body: list[Let] = []
        for inner in loop.body.lets:
            if id(inner) in leaving:
                before.lets.append(inner)
            else:
                body += self._row_of_product(inner, before) or (inner,)
        if not before.lets:
            return [], loop
        block = Block(tuple(body), loop.body.results, loop.body.dims)
        return before.lets, replace(loop, test=test, body=block)

    def _leaving(self, lets: Sequence[Let]) -> set[int]:
        """The ids of the Lets of a block that leave the loop; notes what the others bind."""
        invariant: list[Let] = []
        for let in lets:
            if self._is_invariant(let):
                invariant.append(let)
                continue
            self.inside_symbols.update(let.dims)
            for deeper in nested_lets(Block((let,), ())):
                self.inside.update(deeper.outs)
            if isinstance(let.rhs, OpCall) and len(let.outs) == 1:
                self.definitions[let.outs[0]] = let.rhs
        leaving: set[int] = set()
        read: set[Atom] = set()
        for let in reversed(invariant):
            if _is_free(let) and read.isdisjoint(let.outs):
                self.inside.update(let.outs)
            else:
                leaving.add(id(let))
                read.update(operands(let.rhs))
        return leaving

    def _outside(self, atom: Atom) -> bool:
        return not isinstance(atom, Var) or atom not in self.inside

    def _is_invariant(self, let: Let) -> bool:
        rhs = let.rhs
        if not isinstance(rhs, OpCall) or let.dims or not let.outs:
            return False
        if any(isinstance(v.type, TapeType) for v in (*let.outs, *rhs.args)):
            return False
        if effect_of(rhs) is not Effect.PURE or not all(map(self._outside, operands(rhs))):
            return False
        symbols = {s for v in rhs.attrs.values() for s in attr_symbols(v)}
        return symbols.isdisjoint(self.inside_symbols)

    # -- x[t] @ w --------------------------------------------------------------------------------

    def _row_of_product(self, let: Let, before: Builder) -> tuple[Let, ...] | None:
        """`matmul(expand_dims(x[t]), w)` as a row of a product made before the loop."""
        rhs, loop = let.rhs, self.loop
        if not isinstance(rhs, OpCall) or rhs.op.name != "matmul" or loop.count is None:
            return None
        left, right = rhs.args
        if rhs.attrs["transpose_a"] or not self._outside(right):
            return None
        assert isinstance(right.type, TensorType)
        found = self._sequence(left)
        if found is None or right.type.rank != 2:
            return None
        sequence, vector = found
        assert isinstance(sequence.type, TensorType)
        if not self._worth(sequence.type, loop):
            return None
        shape = sequence.type.shape
        flat = before.call(
            OPS["reshape"], sequence, shape=(dims.product(shape[:-1]), shape[-1])
        )
        product = before.call(
            OPS["matmul"], flat, right, transpose_a=False,
            transpose_b=rhs.attrs["transpose_b"],
        )
        if not vector:
            rows_shape = (shape[0], shape[1], product.shape[-1])
            product = before.call(OPS["reshape"], product, shape=rows_shape)
        return self._row(product.atom, vector, let)

    def _row(self, product: Atom, vector: bool, let: Let) -> tuple[Let, ...]:
        """Row t of the product in place of `let`; a vector's row gets its first axis back."""
        assert self.loop.index is not None
        at = Attrs(axes=(0,))
        row = OpCall(OPS["index"], (product, self.loop.index), at)
        if not vector:
            return (Let(let.outs, row, span=let.span),)
        assert isinstance(product.type, TensorType)
        var = Var("row", TensorType(product.type.dtype, product.type.shape[1:]), span=let.span)
        widened = OpCall(OPS["expand_dims"], (var,), at)
        return Let((var,), row, span=let.span), Let(let.outs, widened, span=let.span)

    def _sequence(self, left: Atom) -> tuple[Atom, bool] | None:
        """The invariant sequence of which `left` is the row of this iteration."""
        call = self.definitions.get(left) if isinstance(left, Var) else None
        vector = False
        if call is not None and call.op.name == "expand_dims" and call.attrs["axes"] == (0,):
            inner = call.args[0]
            call = self.definitions.get(inner) if isinstance(inner, Var) else None
            vector = True
        if call is None or call.op.name != "index" or call.attrs["axes"] != (0,):
            return None
        sequence, at = call.args
        if at is not self.loop.index or not self._outside(sequence):
            return None
        assert isinstance(sequence.type, TensorType)
        wanted = 2 if vector else 3
        return (sequence, vector) if sequence.type.rank == wanted else None

    def _worth(self, sequence: TensorType, loop: Loop) -> bool:
        """The loop goes through all rows: no exits, and as many iterations as rows."""
        if loop.exits or loop.test is not None:
            return False
        count = loop.count
        if isinstance(count, Const):
            return dims.equal(count.value, sequence.shape[0])
        return count is not None


