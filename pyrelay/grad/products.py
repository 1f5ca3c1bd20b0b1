"""Cotangents that a backward loop writes down, row by row: of matrices, of what is added to their
products, of arrays read row by row.

In: matrix products in the body of a counted loop, one operand of which is a matrix W from outside.
Out: what the backward loop must write down, rows P_t and Q_t per iteration, and after it W's
cotangent, the sum of P_t^T Q_t, as one product of all rows. For T steps of batch 1 this replaces T
passes over an array of W's size by one matrix product. A bias that is added to such a product has
the same rows Q_t, whose sum is taken after the loop too. A W of one row or column, in a loop inside
another, is added to at once: that costs what writing the rows down would.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field

from pyrelay.grad.cotangents import Sink, is_static
from pyrelay.grad.reverse import Walker
from pyrelay.ir import dims
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """One use of `matrix`: its cotangent is the sum of P_t^T Q_t.

    One of P_t, Q_t is the cotangent of the product, one the other operand; their first axis is the
    one summed over. `other_first` says that P_t is the other operand, `turned` that it has to be
    transposed. `sequence` has all of them as its rows, if the program has such an array.
    """

    matrix: Var
    other: Var
    cotangent: Atom
    other_first: bool
    turned: bool
    sequence: Var | None

    @property
    def other_shape(self) -> tuple[Extent, Extent]:
        """Rows and columns of the other operand, transposed if it has to be."""
        assert isinstance(self.other.type, TensorType)
        rows, columns = self.other.type.shape
        return (columns, rows) if self.turned else (rows, columns)

    @property
    def needs_turning(self) -> bool:
        """True if transposing moves elements: a row and a column hold the same ones in order."""
        return self.turned and 1 not in self.other_shape


@dataclass(frozen=True, slots=True)
class Rows:
    """An array from outside that iteration t reads row t of, and the cotangent of that row."""

    array: Var
    cotangent: Atom


@dataclass(frozen=True, slots=True)
class Bias:
    """A vector from outside, or a matrix of one row, that is added to every row of a product, and
    the cotangent of the sum."""

    vector: Var
    cotangent: Atom


@dataclass(slots=True)
class Products:
    """Collects the products of a loop, and the rows it reads, while its body is reversed.

    matrices: active variables from outside the loop. nested: whether the loop is inside another.
    """

    walker: Walker
    loop: Loop
    matrices: Collection[Var]
    nested: bool
    found: list[Product] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    biases: list[Bias] = field(default_factory=list)
    inside: set[Atom] = field(init=False)  # what the loop's rounds compute or are given
    varying: set[Symbol] = field(init=False)  # extents that they bind

    def __post_init__(self) -> None:
        lets = self.loop.body.lets
        self.inside = {*self.loop.carried, *(out for let in lets for out in let.outs)}
        self.varying = {symbol for let in lets for symbol in let.dims}

    def postpone(self, let: Let, call: OpCall, g: Handle, sink: Sink) -> set[int]:
        """Take over the cotangents of some operands of an op; returns their positions."""
        if call.op.name == "index":
            return self._postpone_row(let, g)
        if call.op.name == "add":
            return self._postpone_bias(let, call, g)
        if call.op.name != "matmul" or any(_rank(a) != 2 for a in call.args):
            return set()
        left, right = call.args
        turned = call.attrs["transpose_a"], call.attrs["transpose_b"]
        if self._is_postponed(right, left, g):
            assert isinstance(right, Var)
            assert isinstance(left, Var)
            self.found.append(self._product(right, left, g, not turned[1], turned[0]))
            return {1}
        if self._is_postponed(left, right, g):
            assert isinstance(right, Var)
            assert isinstance(left, Var)
            rows = sink.builder.call(OPS["transpose"], g, axes=(1, 0))
            self.found.append(self._product(left, right, rows, turned[0], not turned[1]))
            return {0}
        return set()

    def _postpone_row(self, let: Let, g: Handle) -> set[int]:
        row, array = let.outs[0], self._sequence_of(let.outs[0])
        if self.nested or array not in self.matrices or not _rank(row):
            return set()
        if not is_static(g.type, self.varying) or any(r.array is array for r in self.rows):
            return set()
        assert array is not None
        self.rows.append(Rows(array, g.atom))
        return {0}

    def _postpone_bias(self, let: Let, call: OpCall, g: Handle) -> set[int]:
        for k, (vector, product) in enumerate((call.args, call.args[::-1])):
            if vector not in self.matrices or not isinstance(vector, Var):
                continue
            ty, made = vector.type, let.outs[0].type
            assert isinstance(ty, TensorType)
            assert isinstance(made, TensorType)
            if made.rank != 2 or ty.shape not in (made.shape[1:], (1, *made.shape[1:])):
                continue
            same = ty.dtype == g.dtype and g.shape == made.shape and ty.shape != made.shape
            if same and self._is_of_product(product) and is_static(g.type, self.varying):
                self.biases.append(Bias(vector, g.atom))
                return {k}
        return set()

    def _is_of_product(self, atom: Atom) -> bool:
        """Whether a value is a product whose matrix has a postponed cotangent, or such a one with
        something added: so the rows of its cotangent are written down anyway."""
        pending, seen = [atom], {atom}
        while pending:
            value = pending.pop()
            let = self.walker.definitions.get(value) if isinstance(value, Var) else None
            if let is None or not isinstance(let.rhs, OpCall):
                continue
            if let.rhs.op.name == "add":
                fresh = [a for a in dict.fromkeys(let.rhs.args) if a not in seen]
                seen.update(fresh)
                pending += fresh
            elif let.rhs.op.name == "matmul" and all(_rank(a) == 2 for a in let.rhs.args):
                left, right = let.rhs.args
                if right in self.matrices and left in self.inside:
                    return True
        return False

    def _is_postponed(self, matrix: Atom, other: Atom, g: Handle) -> bool:
        if matrix not in self.matrices or not isinstance(other, Var) or other in self.matrices:
            return False
        assert isinstance(matrix.type, TensorType)
        if self.nested and 1 in matrix.type.shape:
            return False
        static = is_static(other.type, self.varying) and is_static(g.type, self.varying)
        return other in self.inside and static

    def _product(
        self, matrix: Var, other: Var, g: Handle, other_first: bool, turned: bool
    ) -> Product:
        return Product(matrix, other, g.atom, other_first, turned, self._sequence_of(other))

    def _sequence_of(self, row: Var) -> Var | None:
        """The outer array whose k-th row is the value of `row` in iteration k, for all k."""
        let = self.walker.definitions.get(row)
        if let is None or not isinstance(let.rhs, OpCall) or let.rhs.op.name != "index":
            return None
        source, *positions = let.rhs.args
        whole = (
            let.rhs.attrs["axes"] == (0,) and positions == [self.loop.index]
            and isinstance(source, Var) and source not in self.inside
        )
        if not whole or not isinstance(source, Var) or not isinstance(source.type, TensorType):
            return None
        assert self.loop.count is not None
        length = self.walker.extent_of(self.loop.count)
        return source if source.type.shape[0] == length else None


def taken_over(
    products: Iterable[Product], rows: Iterable[Rows], biases: Iterable[Bias]
) -> list[Atom]:
    """What a backward loop writes down of each iteration."""
    found = [each.cotangent for each in products]
    return found + [each.cotangent for each in rows] + [each.cotangent for each in biases]


def _rank(atom: Atom) -> int:
    return atom.type.rank if isinstance(atom.type, TensorType) else -1


def rows_of(product: Product, builder: Builder, other: Atom) -> Handle:
    """The other operand with the axis summed over in front."""
    value = builder.handle(other)
    if product.needs_turning:
        turned: Handle = builder.call(OPS["transpose"], value, axes=(1, 0))
        return turned
    return value


def total(
    product: Product, builder: Builder, others: Atom, cotangents: Atom, length: Extent
) -> Handle:
    """The cotangent of the matrix, from all rows of both sides."""
    rows, columns = product.other_shape
    shape = (dims.multiply(length, rows), columns)
    p: Handle = builder.call(OPS["reshape"], others, shape=shape)
    g_shape = builder.handle(cotangents).shape
    shape = (dims.multiply(g_shape[0], g_shape[1]), g_shape[2])
    q: Handle = builder.call(OPS["reshape"], cotangents, shape=shape)
    if not product.other_first:
        p, q = q, p
    result: Handle = builder.call(OPS["matmul"], p, q, transpose_a=True, transpose_b=False)
    return result
