"""Products whose elements another kernel finishes as they are stored.

In: a fused group with a product of matrices in it, and ops that `opt.finishing.finishes` allows:
a bias, an activation, a residual, a mask. Out: a `Lowering` with the product and one kernel for the
rest. The product's kernel calls it, by its address, for each part of the result whose sums are
complete: a range of rows, `begin` to `end`, and the columns that lie between two `BOUND`s. So the
product is read while it is in the cache, and a product has one kernel whatever follows it.

The block of such a kernel begins with four words that the product fills in: PRODUCT 0, the address
where row 0 and column 0 of the product would be; BOUND 0 and 1, the first column and the end of the
columns; BOUND 2, the elements from one row of the product to the next. Rows count the axes before
the columns' (batch axes included) together. `target.MatmulKernel` says how a product is told.

The product may lie in the buffer of a result: an element is read before it is overwritten; or in a
register, where the device finishes element by element. Where it
is several matrices side by side, as the gates of a recurrent cell are, BOUND 0 and 1 are columns of
one of them, and the kernel reads that column of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from pyrelay.errors import InvariantError, Span
from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Function, Let, OpCall, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.kernels.elements import Elements, Index
from pyrelay.lower.kernels.kernel import (
    BOUND,
    EXTENT,
    PRODUCT,
    Array,
    Kernel,
    Lowering,
    Parameter,
    Product,
)
from pyrelay.lower.kernels.rule_emitter import RuleEmitter
from pyrelay.lower.kernels.schedule import Result, Schedule
from pyrelay.lower.kernels.spaces import Space, collapsed, one_by_one
from pyrelay.lower.kernels.values import Value
from pyrelay.lower.passes.cleaning import finish, shared_buffers
from pyrelay.opt.finishing import finishes, first_column_axis, gates, operands_of
from pyrelay.opt.places import is_view
from pyrelay.opt.shapes import shape_of

Shape = tuple[Extent, ...]

FILLED_IN = 4
"""How many words of a finishing kernel's block the product fills in."""


def without_product(function: Function, product: Let) -> Function:
    """The group without its product, which it takes as its last parameter, and without what only
    that reads."""
    operands = set(walk.call_of(product).args)
    rest = [let for let in function.body.lets if let is not product]
    read = {a for let in rest for a in walk.operands(let.rhs)} | {*function.body.results}
    rest = [let for let in rest if let.outs[0] not in operands or let.outs[0] in read]
    body = Block(tuple(rest), function.body.results, function.body.dims)
    return replace(function, params=(*function.params, *product.outs), body=body)


def finished(function: Function, product: Let) -> Lowering:
    """The kernels of a group with a product, see `Lowering`."""
    (made,) = product.outs
    results = [r for r in function.body.results if r is not made]
    space = _space(results)
    count = gates(product, function.body.lets, space)
    if not count:
        raise InvariantError("a kernel reads a product before it is complete", span=product.span)
    rest = without_product(function, product)
    spans = tuple(let.span for let in function.body.lets if let.span is not None)
    kernel = _kernel(rest, product, space, spans)
    shares = shared_buffers(rest, [kernel])
    places = {param: k for k, param in enumerate(function.params)}
    read = operands_of(function.body, product)
    operands = tuple(places[a] for a in read if isinstance(a, Var))
    itself = next((k for k, r in enumerate(function.body.results) if r is made), None)
    told = Product(product, read, operands, itself, count)
    return Lowering((kernel,), shares=shares, product=told)


def in_place(function: Function, product: Let) -> Kernel:
    """The kernel of a group with one result, which it writes where the product lies."""
    (result,) = function.body.results
    if not finishes(product, function.body.lets, shape_of(result)):
        raise InvariantError("a kernel reads a product before it is complete", span=product.span)
    rest = without_product(function, product)
    spans = tuple(let.span for let in function.body.lets if let.span is not None)
    return _kernel(rest, product, shape_of(result), spans, in_place=True)


def _space(results: Sequence[Atom]) -> Shape:
    shapes = {shape_of(r) for r in results}
    if len(shapes) != 1:
        raise InvariantError("what finishes a product has results of several shapes")
    return shapes.pop()


def _kernel(
    rest: Function, product: Let, space: Shape, spans: Sequence[Span], in_place: bool = False
) -> Kernel:
    split = first_column_axis(product, space)
    beside = split is None  # matrices side by side, of two axes
    split = 1 if split is None else split
    (made,) = product.outs
    wanted = [Result(k, r, space) for k, r in enumerate(rest.body.results) if r is not made]
    # Views are read where they are used: a bias that is reshaped cuts no run as the bias would.
    read = (a for let in rest.body.lets if not _is_view(let) for a in walk.operands(let.rhs))
    both = collapsed(space, [*map(shape_of, dict.fromkeys(read)), space[split:]])
    rows, columns = _cut(both, split)
    apart = one_by_one(space[:split]), one_by_one(space[split:])
    attempts = [apart] if beside else [(rows, columns), (apart[0], columns), apart]
    for told, attempt in itertools.product((True, False), attempts):
        elements = _Finished(RuleEmitter(rest.dims), rest, made, in_place, beside)
        elements.s.told_sizes = told
        schedule = Schedule(elements)
        extent = _write(schedule, elements, wanted, *attempt)
        if schedule.taken_apart and attempt is not attempts[-1]:
            continue
        kernel = finish(schedule, extent, spans)
        if sum(p.role == EXTENT for p in kernel.parameters) <= len(rest.dims):
            break  # else it might have more parameters than the product takes
    given = [p for p in kernel.parameters if p.role not in (PRODUCT, BOUND)]
    return replace(kernel, parameters=(*_filled_in(made), *given))


def _is_view(let: Let) -> bool:
    return isinstance(let.rhs, OpCall) and is_view(let.rhs)


def _filled_in(made: Var) -> tuple[Parameter, ...]:
    assert isinstance(made.type, TensorType)
    bounds = (Parameter(BOUND, k, i64) for k in range(FILLED_IN - 1))
    return (Parameter(PRODUCT, 0, made.type.dtype), *bounds)


def _cut(space: Space, split: int) -> tuple[Space, Space]:
    """The runs of the rows' axes and those of the columns'."""
    runs, missing = list(space.runs), split
    left: list[int] = []
    while missing:
        left.append(min(runs[0], missing))
        missing -= left[-1]
        runs[0] -= left[-1]
        if not runs[0]:
            del runs[0]  # else the columns' first axes have extent 1
    return Space(space.extents[:split], tuple(left)), Space(space.extents[split:], tuple(runs))


def _write(
    schedule: Schedule, elements: _Finished, results: Sequence[Result], rows: Space, columns: Space
) -> Extent:
    s = schedule.s
    row_count, column_count = dims.product(rows.extents), dims.product(columns.extents)

    def index(flat: Value, space: Space) -> Index:
        runs = space.run_extents()
        sizes = [dims.product(each) for each in runs]
        found: Index = ()
        for each, extents in zip(s.unravel(flat, sizes), runs, strict=True):
            number = Value(s, each.operand, i64, each.scope)
            found += schedule.run(s.bounded(number, dims.product(extents)), extents)
        return found

    def row(p: Value) -> None:
        outer = index(p, rows)
        first, stop, line = (s.read(Parameter(BOUND, k, i64)) for k in range(FILLED_IN - 1))
        start = elements.row = p * line
        if column_count == 1:
            elements.place = start
            zeros = (s.const(0, i64),) * len(columns.extents)
            elements.store(schedule, results, outer + zeros)
            return
        with s.loop(first, stop, trips=1) as j:
            elements.place = start + j
            inner = index(s.bounded(j, column_count), columns)
            elements.store(schedule, results, outer + inner)

    schedule.over_parallel(row_count, row)
    return row_count


class _Finished(Elements):
    """Elements of a group that reads a product, at the place where its results are stored, or,
    where it is matrices side by side, at places of its row."""

    def __init__(
        self, s: RuleEmitter, function: Function, product: Var, in_place: bool, beside: bool
    ) -> None:
        super().__init__(s, function)
        assert isinstance(product.type, TensorType)
        self.product, self.in_place, self.beside = product, in_place, beside
        self.array = Parameter(PRODUCT, 0, product.type.dtype)
        self.place: Value
        self.row: Value

    def store(self, schedule: Schedule, results: Sequence[Result], index: Index) -> None:
        """The elements of the results at one index."""
        if not self.in_place:
            schedule.store_all(results, index)
            return
        (result,) = results
        self.s.store(self.array, self.place, self.value(result.source, index))

    def _load(self, var: Var, index: Index, array: Array, written: bool) -> Value:
        if var is not self.product:
            return super()._load(var, index, array, written)
        place = self.row + index[-1] if self.beside else self.place
        return self.s.load(self.array, place)
