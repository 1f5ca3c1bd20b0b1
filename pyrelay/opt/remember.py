"""Products of rows that data choose are remembered while a loop runs.

In: a module. Out: the module in which `table[k] @ w` inside a loop that changes neither, where k is
computed from elements of arrays (a letter that a recurrent network has just chosen, a token of a
text), is row k of an array that the loop carries: the first time that a row is asked for, it is
computed and stored there. How many iterations there will be and which rows they ask for is unknown
before: so nothing is computed that is not asked for. Memoization: Michie, "Memo" functions and
machine learning (Nature 218, 1968).

Whether it pays hangs on extents, and is decided by the running program where those are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import is_

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Attrs, Block, Const, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ir.walk import nested_lets, replace_blocks, use_counts
from pyrelay.opt.shapes import shape_of
from pyrelay.records import dataclass

_MOST_ELEMENTS = 1 << 24
"""Elements of the array of products at most; what is not asked for is not touched."""

_STEPS = frozenset({"add", "subtract", "multiply"})
_PASSED = frozenset({"cast", "check_index", "where", "maximum", "minimum", "remainder"}) | _STEPS


def remember(module: Module) -> Module:
    """Remember products of rows in the loops of a module, innermost loops first."""
    return module.with_bodies(_block)


def _block(block: Block) -> Block:
    lets: list[Let] = []
    for let in block.lets:
        rhs = replace_blocks(let.rhs, _block)
        if rhs is not let.rhs:
            let = replace(let, rhs=rhs)
        lets.extend(_Rememberer(let, rhs).run() if isinstance(rhs, Loop) else (let,))
    if len(lets) == len(block.lets) and all(map(is_, lets, block.lets)):
        return block
    return replace(block, lets=tuple(lets))


@dataclass(frozen=True, slots=True)
class _Product:
    """A product with row or column `at` of `matrix`: its Let, and where in it the row is."""

    let: Let
    operand: int
    matrix: Atom
    index: OpCall
    at: Atom

    @property
    def count(self) -> Extent:
        """How many rows there are."""
        return shape_of(self.matrix)[self.index.attrs["axes"][0]]

    @property
    def width(self) -> Extent:
        """How many elements a product has."""
        return dims.product(shape_of(self.let.outs[0]))

    @property
    def work(self) -> Extent:
        """How many multiplications a product takes."""
        assert isinstance(self.let.rhs, OpCall)
        return dims.product(shape_of(self.let.rhs.args[1 - self.operand]))


class _Rememberer:
    """Rewrites one loop."""

    def __init__(self, let: Let, loop: Loop) -> None:
        self.let, self.loop = let, loop
        self.definitions = {
            out: (inner, k) for inner in loop.body.lets for k, out in enumerate(inner.outs)
        }
        self.inside: set[Atom] = {*loop.carried, *loop.handed}
        for block in (loop.test, loop.body):
            for inner in () if block is None else nested_lets(block):
                self.inside.update(inner.outs)
        if loop.index is not None:
            self.inside.add(loop.index)

    def run(self) -> list[Let]:
        """The Lets in place of the loop's."""
        found = {id(p.let): p for p in self._products() if _may_pay(p)}
        if not found:
            return [self.let]
        before, loop, outs = Builder(self.let.span), self.loop, list(self.let.outs)
        carried, init = list(loop.carried), list(loop.init)
        body, results = Builder(self.let.span), list(loop.body.results)
        dropped = self._only_for(found.values())
        for let in loop.body.lets:
            product = found.get(id(let))
            if product is None:
                if dropped.isdisjoint(let.outs):
                    body.lets.append(let)
                continue
            kept = _Kept(product, before)
            both = Var("products", kept.products.type), Var("known", kept.known.type)
            carried += both
            init += [kept.products.atom, kept.known.atom]
            with body.at(let.span):
                results += [h.atom for h in kept.look_up(body, *map(body.handle, both))]
            outs += [Var("products", v.type) for v in both]
        made = replace(
            loop, carried=tuple(carried), init=tuple(init),
            body=replace(loop.body, lets=tuple(body.lets), results=tuple(results)),
        )
        return [*before.lets, replace(self.let, outs=tuple(outs), rhs=made)]

    def _only_for(self, products: Iterable[_Product]) -> set[Atom]:
        """The rows that nothing but these products reads: they are read where they are needed."""
        uses, found = use_counts(self.loop.body), set[Atom]()
        for product in products:
            rhs = product.let.rhs
            assert isinstance(rhs, OpCall)
            wide = rhs.args[product.operand]
            definition = self._definition(wide)
            assert definition is not None
            if uses[wide] == 1:  # type: ignore[index]
                found.add(wide)
                if uses[definition.args[0]] == 1:  # type: ignore[index]
                    found.add(definition.args[0])
        return found

    def _products(self) -> Iterator[_Product]:
        for let in self.loop.body.lets:
            rhs = let.rhs
            if not isinstance(rhs, OpCall) or rhs.op.name != "matmul":
                continue
            for operand, axis in ((0, 0), (1, 1)):
                index = self._row(rhs.args[operand], axis)
                other = rhs.args[1 - operand]
                turned = rhs.attrs["transpose_b" if operand else "transpose_a"]
                if index is None or turned or other in self.inside or len(shape_of(other)) != 2:
                    continue
                matrix, at = index.args
                if matrix not in self.inside and self._is_chosen(at, set()):
                    yield _Product(let, operand, matrix, index, at)

    def _row(self, atom: Atom, axis: int) -> OpCall | None:
        """The reading of a row or column that is here a matrix with one element along an axis."""
        shape, definition = shape_of(atom), self._definition(atom)
        widened = definition is not None and (
            definition.op.name == "reshape"
            or (definition.op.name == "expand_dims" and definition.attrs["axes"] == (axis,))
        )
        if not widened or len(shape) != 2 or shape[axis] != 1:
            return None
        assert definition is not None
        index = self._definition(definition.args[0])
        if index is None or index.op.name != "index" or len(index.args) != 2:
            return None
        return index if len(shape_of(index.args[0])) == 2 else None

    def _definition(self, atom: Atom) -> OpCall | None:
        let, _ = self.definitions.get(atom, (None, 0))  # type: ignore[arg-type]
        return let.rhs if let is not None and isinstance(let.rhs, OpCall) else None

    def _is_chosen(self, atom: Atom, seen: set[Atom]) -> bool:
        """Whether a number of this iteration, or of an earlier one, comes out of an array: what
        counts through the rows asks for none of them twice."""
        if atom in seen or isinstance(atom, Const):
            return False
        seen.add(atom)
        if atom in self.loop.carried:
            following = self.loop.body.results[self.loop.exits:]
            k = self.loop.carried.index(atom)
            return self._is_chosen(following[k], seen)
        let, k = self.definitions.get(atom, (None, 0))
        if let is None:
            return False
        return self._comes_from_arrays(let, k, seen)

    def _comes_from_arrays(self, let: Let, k: int, seen: set[Atom]) -> bool:
        rhs = let.rhs
        if isinstance(rhs, OpCall):
            if rhs.op.name in _PASSED:
                return any(self._is_chosen(a, seen) for a in rhs.args)
            return any(shape_of(a) for a in rhs.args)
        if isinstance(rhs, If):
            ends = rhs.then.results[k], rhs.orelse.results[k]
            inner = {out for block in (rhs.then, rhs.orelse) for x in block.lets for out in x.outs}
            return any(end in inner or self._is_chosen(end, seen) for end in ends)
        return True


def _may_pay(product: _Product) -> bool:
    """Whether some extents, or those that are known, make it pay."""
    count, work, width = product.count, product.work, product.width
    if not isinstance(count, int):
        return True
    fits = not isinstance(width, int) or count * width <= _MOST_ELEMENTS
    return fits and (not isinstance(work, int) or count <= work)


class _Kept:
    """The products of a loop with rows of one matrix, and which of them are known.

    `pays` is whether they are kept at all. If not, there is one row, which is never known.
    """

    def __init__(self, product: _Product, before: Builder) -> None:
        self.product = product
        i64 = types.i64
        count, bound = (
            before.handle(before.cast(before.extent(e), i64))
            for e in (product.count, product.work)
        )
        size = dims.product((product.count, product.width))
        room = before.handle(before.cast(before.extent(size), i64))
        number = TensorType(i64)
        fits = before.call(OPS["less_equal"], room, constant(_MOST_ELEMENTS, number))
        self.pays: Handle = before.call(
            OPS["logical_and"], before.call(OPS["less_equal"], count, bound), fits
        )
        rows = before.call(OPS["where"], self.pays, count, constant(1, number))
        _, (extent,) = before.call(OPS["as_extent"], rows, name="n")
        (out,) = product.let.outs
        assert isinstance(out.type, TensorType)
        self.products = before.undef(TensorType(out.type.dtype, (extent, product.width)))
        self.known = before.zeros(TensorType(types.bool_, (extent,)))

    def look_up(self, body: Builder, products: Handle, known: Handle) -> tuple[Handle, Handle]:
        """Bind the product to its row, computed first where it is not known; what is known then."""
        product, let = self.product, self.product.let
        zero = constant(0, product.at.type)  # type: ignore[arg-type]
        at = body.call(OPS["where"], self.pays, product.at, zero)
        found = body.call(OPS["index"], known, at, axes=(0,))

        def compute(b: Builder) -> tuple[Handle, Handle]:
            index = product.index
            row = b.call(index.op, product.matrix, product.at, **index.attrs)
            rhs = let.rhs
            assert isinstance(rhs, OpCall)
            operands = list(rhs.args)
            wide = b.call(OPS["expand_dims"], row, axes=(product.operand,))
            operands[product.operand] = wide.atom
            made = b.call(rhs.op, *operands, **rhs.attrs)
            line = b.call(OPS["squeeze"], made, axes=(product.operand,))
            return (
                b.call(OPS["index_update"], products, line, at, axes=(0,)),
                b.call(OPS["index_update"], known, self.pays, at, axes=(0,)),
            )

        products, known = body.cond(found, lambda _: (products, known), compute)
        line = body.call(OPS["index"], products, at, axes=(0,))
        widened = OpCall(OPS["expand_dims"], (line.atom,), Attrs(axes=(product.operand,)))
        body.lets.append(Let(let.outs, widened, span=let.span))
        return products, known
