"""Loop-invariant code leaves loops, and products of the rows of a known sequence leave recurrences.

In: a module. Out: the module in which pure ops that read nothing of a loop stand before it, and
`x[t] @ w` inside a counted loop over t is row t of one product made before the loop (most of what a
hand-written LSTM wins). Nothing that may raise is moved, nor anything out of a branch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Attrs, Block, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import TapeType, TensorType
from pyrelay.ir.walk import attr_symbols, nested_lets, operands

# What costs nothing in a kernel is not worth a buffer that lives as long as the loop.
_FREE = frozenset({"extent", "undef", "iota", "reshape", "expand_dims", "squeeze", "refine",
                   "broadcast_to", "cast"})


def hoist(module: Module) -> Module:
    """Move invariant code out of loops, innermost loops first."""
    functions = {
        n: replace(f, body=_block(f.body)) for n, f in module.functions.items()
    }
    return Module(functions, module.entry)


def _block(block: Block) -> Block:
    lets: list[Let] = []
    for let in block.lets:
        rhs = let.rhs
        if isinstance(rhs, If):
            rhs = If(rhs.cond, _block(rhs.then), _block(rhs.orelse))
        elif isinstance(rhs, Loop):
            test = None if rhs.test is None else _block(rhs.test)
            inner = replace(rhs, test=test, body=_block(rhs.body))
            before, rhs = _Hoister(inner).run(let)
            lets.extend(before)
        lets.append(let if rhs is let.rhs else Let(let.outs, rhs, let.dims, span=let.span))
    return Block(tuple(lets), block.results, block.dims)


@dataclass
class _Hoister:
    """Splits the body of one loop into what goes before it and what stays."""

    loop: Loop
    inside: set[Var] = field(default_factory=set)
    inside_symbols: set[dims.Symbol] = field(default_factory=set)
    definitions: dict[Var, OpCall] = field(default_factory=dict)
    extra: Let | None = None  # a Let to emit before the row it belongs to

    def run(self, let: Let) -> tuple[list[Let], Loop]:
        """Lets for before the loop, and the loop."""
        loop = self.loop
        self.inside.update(loop.carried, loop.handed)
        if loop.index is not None:
            self.inside.add(loop.index)
        self.inside_symbols.update(loop.dims)
        if loop.test is not None:
            for inner in nested_lets(loop.test):
                self.inside.update(inner.outs)
        before = Builder(let.span)
        stay: list[Let] = []
        for inner in loop.body.lets:
            if self._is_invariant(inner):
                before.lets.append(inner)
                continue
            row = self._row_of_product(inner, before)
            if row is not None:
                inner = row
                if self.extra is not None:
                    stay.append(self.extra)
                    self.inside.update(self.extra.outs)
                    self.extra = None
            self.inside.update(inner.outs)
            self.inside_symbols.update(inner.dims)
            for deeper in nested_lets(Block((inner,), ())):
                self.inside.update(deeper.outs)
            if isinstance(inner.rhs, OpCall) and len(inner.outs) == 1:
                self.definitions[inner.outs[0]] = inner.rhs
            stay.append(inner)
        if not before.lets:
            return [], loop
        body = Block(tuple(stay), loop.body.results, loop.body.dims)
        return before.lets, replace(loop, body=body)

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
        if not symbols.isdisjoint(self.inside_symbols):
            return False
        scalar = isinstance(let.outs[0].type, TensorType) and not let.outs[0].type.shape
        return scalar or rhs.op.name not in _FREE or bool(rhs.args)

    # -- x[t] @ w --------------------------------------------------------------------------------

    def _row_of_product(self, let: Let, before: Builder) -> Let | None:
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
        assert isinstance(sequence.type, TensorType) and isinstance(let.outs[0].type, TensorType)
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
        return Let(let.outs, self._row(product.atom, vector, let), span=let.span)

    def _row(self, product: Atom, vector: bool, let: Let) -> OpCall:
        """Row t of the product; a vector's row gets its first axis back by a Let that stays."""
        assert self.loop.index is not None
        at = Attrs(axes=(0,))
        if not vector:
            return OpCall(OPS["index"], (product, self.loop.index), at)
        assert isinstance(product.type, TensorType)
        row = Var("row", TensorType(product.type.dtype, product.type.shape[1:]), span=let.span)
        self.extra = Let((row,), OpCall(OPS["index"], (product, self.loop.index), at), span=let.span)
        return OpCall(OPS["expand_dims"], (row,), at)

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
        return isinstance(count, Var) or (
            count is not None and dims.equal(count.value, sequence.shape[0])  # type: ignore[union-attr]
        )


