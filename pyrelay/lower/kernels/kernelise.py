"""From a fused group to kernels.

In: the closed function of a `KernelCall`: ops with element rules, or scalar control flow with
element accesses. Out: a `Lowering`: kernels in kernel IR, and what the planner must know.

Results that depend on reductions of rows or of columns share one kernel (`row_schedule.py`,
`column_schedule.py`), those that depend on reductions of everything one per phase
(`whole_schedule.py`). What finishes a product of matrices is one kernel that the product calls
(`finishing.py`). The others are sorted by the space that computes them (`schedule.py`): those
of one space share a kernel. Scalar programs, loops included, become one serial kernel
(`scalar_program.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Function, Let, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.kernels.attention import attended
from pyrelay.lower.kernels.attention_gradient import attended_gradient
from pyrelay.lower.kernels.column_schedule import ColumnSchedule, own_size
from pyrelay.lower.kernels.elements import Elements
from pyrelay.lower.kernels.kernel import Kernel, Long, Lowering
from pyrelay.lower.kernels.reductions import partial_dtype
from pyrelay.lower.kernels.row_schedule import RowSchedule
from pyrelay.lower.kernels.rule_emitter import RuleEmitter
from pyrelay.lower.kernels.scalar_program import is_scalar_program, scalar_program
from pyrelay.lower.kernels.schedule import (
    CHUNK,
    FEW,
    Columns,
    Part,
    Result,
    Schedule,
    Tile,
    full_reductions,
)
from pyrelay.lower.kernels.slice_phases import Phase, SlicePlan, slice_plan
from pyrelay.lower.kernels.spaces import (
    Space,
    collapsed,
    long_rows,
    longest_rows_first,
    one_by_one,
    turned_space,
)
from pyrelay.lower.kernels.split_axes import split_axes
from pyrelay.lower.kernels.whole_schedule import Shares, WholeSchedule, is_long, is_small
from pyrelay.lower.passes.cleaning import finish, shared_buffers
from pyrelay.lower.passes.long_chunks import long_chunks
from pyrelay.lower.passes.online import online
from pyrelay.lower.passes.single_elements import single_elements
from pyrelay.lower.planning.finishing import finished
from pyrelay.opt.attention import attention_of
from pyrelay.opt.attention_gradient import gradient_of
from pyrelay.opt.extremes import columns_of_extremes, extremes, extremes_of_columns
from pyrelay.opt.finishing import product_of
from pyrelay.opt.half_attention import half_attention_of
from pyrelay.opt.half_products import half_product_of
from pyrelay.opt.places import MOST_PARTS, parts_of, updated_part
from pyrelay.opt.shapes import shape_of

Shape = tuple[Extent, ...]
Write = Callable[[Schedule], Extent]


_FEW_COLUMNS = 10  # that are gone through one after the other for where their extremes are
_FEW_LETS = 4  # that compute an element which is added to a small array beside its neighbours


def kernelise(function: Function, *, splits: bool = False) -> Lowering:
    """The kernels of a fused group, see `Lowering`. `splits`: for a device that is the faster the
    more blocks a row is cut into, where there are few (`Lowering.long`), and that begins a kernel
    slower than it adds up a few numbers, and computes elements faster than it reads them."""
    if is_scalar_program(function):
        return scalar_program(function)
    gradient = gradient_of(function.body)
    if gradient is not None:
        return attended_gradient(function, gradient)
    over_halves = half_attention_of(function.body)
    if over_halves is not None:
        return attended(function, over_halves.attention, over_halves)
    attention = attention_of(function.body)
    if attention is not None:
        return attended(function, attention)
    halves = half_product_of(function.body)
    if halves is not None:
        return _of_halves(function, halves)
    product = product_of(function.body)
    if product is not None:
        return finished(function, product)
    if not splits:
        function = split_axes(function)
    given = function
    if not splits:
        function = extremes_of_columns(function)  # lanes are columns
    group = _Group(function, joins_few=splits)
    kernels = [
        long_chunks(online(single_elements(k))) if splits else k for k in group.kernels()
    ]
    made = {r.position: group.buffer(r) for r in group.results}
    aliases = tuple(made[k] for k in range(len(function.body.results)))
    written = frozenset(a for a in aliases if a is not None)
    shares = shared_buffers(function, kernels)
    long = _long(function) if splits else _few_columns(given, function)
    if long is not None:
        also = shared_buffers(function, long.kernels)
        shares = tuple(a & b for a, b in zip(shares, also, strict=True))
    return Lowering(tuple(kernels), tuple(group.scratch), aliases, written, shares, long=long)


def _long(function: Function) -> Long | None:
    """The kernels for rows that are few and long; None if the group has no rows."""
    changed = extremes(function)
    group = _Group(changed, split=True, joins_few=True)
    kernels = [long_chunks(single_elements(k)) for k in group.kernels()]
    if changed is function and group.whole:
        return None  # its kernels are in phases anyhow
    return Long(group.when, tuple(kernels), tuple(group.scratch)) if group.when != 0 else None


def _few_columns(function: Function, of_lanes: Function) -> Long | None:
    """The kernels where places of extremes are sought in columns that are too few to be lanes: one
    column after the other. None if there are no such places: then it has no form for lanes."""
    if of_lanes is function:
        return None
    group = _Group(function, apart=True)
    found = [n for let in function.body.lets if (n := columns_of_extremes(let)) is not None]
    when: Extent = 1
    for columns in found:
        few = dims.quotient(_FEW_COLUMNS + 1, dims.add(columns, 1))
        when = dims.minimum(when, few)
    return Long(when, tuple(group.kernels()), tuple(group.scratch))


def _of_halves(function: Function, product: Let) -> Lowering:
    """A product of matrices of 16-bit floats: the device's kernel reads them as they are."""
    source = {let.outs[0]: let.rhs.args[0] for let in function.body.lets if let is not product}  # type: ignore[union-attr]
    assert isinstance(product.rhs, OpCall)
    a, b = (function.params.index(source[x]) for x in product.rhs.args)  # type: ignore[index]
    return Lowering((), half_product=(product, (a, b)))


def _begin(var: Var) -> tuple[Extent, ...]:
    """Where the first element of an array lies."""
    return (0,) * len(shape_of(var))


def _moved(starts: tuple[Extent, ...], axis: int, by: Extent) -> tuple[Extent, ...]:
    """A place further along an axis."""
    return (*starts[:axis], dims.add(starts[axis], by), *starts[axis + 1 :])


class _Group:
    """Results of a group, and the kernels that compute them.

    split  cut rows into parts; `when` is then 1 where that is worth it, and else 0; `whole` says
           that there is one row.
    apart  reduce columns one after the other.
    joins_few  reduce few elements in one kernel, and add rows one by one to narrow arrays, as many
               threads share both out.
    """

    def __init__(
        self, function: Function, *, split: bool = False, joins_few: bool = False,
        apart: bool = False,
    ) -> None:
        self.function, self.split, self.joins_few = function, split, joins_few
        self.apart = apart
        self.when: Extent = 0
        self.whole = False
        self.lets = {out: let for let in function.body.lets for out in let.outs}
        self.uses = walk.use_counts(function.body)
        self.scratch: list[Extent] = []
        self.results: list[Result] = []
        for position, atom in enumerate(function.body.results):
            assert isinstance(atom, Var)
            assert atom in self.lets, "a group computes its results"
            self.results += self._results(position, atom)
        self.pending = list(self.results)
        few = len(function.body.lets) <= _FEW_LETS
        wide = Tile(columns=512, rows=4 if few else 1)
        self.tile = Tile(columns=64, blocks=2048) if joins_few else wide
        self.spans = tuple(let.span for let in function.body.lets if let.span is not None)

    def _results(self, position: int, var: Var) -> list[Result]:
        """What is computed for a result: the whole, a part of an array, or parts one by one."""
        let = self.lets[var]
        assert isinstance(var.type, TensorType)
        parts = parts_of(let.rhs)
        if parts is not None:
            axis, shape = parts
            return [
                Result(position, source, shape, part=Part(
                    var.type.shape, _moved(_begin(var), axis, dims.multiply(number, shape[axis]))
                ))
                for number, source in enumerate(walk.operands(let.rhs))
            ]  # fmt: skip
        if not self.joins_few and self._joins_others(let):
            return [
                Result(position, source, shape_of(source), part=Part(var.type.shape, starts))
                for source, starts in self._one_by_one(let, _begin(var))
            ]
        updated = updated_part(let, self.function)
        if updated is None:
            return [Result(position, var, var.type.shape)]
        assert isinstance(let.rhs, OpCall)
        return [Result(position, let.rhs.args[1], updated, let)]

    def _joins_others(self, let: Let) -> bool:
        """Whether a few arrays of any shapes are joined, and nothing in the group is reduced: a
        kernel for each does without asking for each element which of them it is of."""
        assert isinstance(let.rhs, OpCall)
        joins = let.rhs.op.name == "concatenate" and len(let.rhs.args) <= MOST_PARTS
        return joins and not any(
            isinstance(each.rhs, OpCall) and each.rhs.op.fusion is Fusion.REDUCTION
            for each in self.function.body.lets
        )

    def _one_by_one(
        self, let: Let, starts: tuple[Extent, ...]
    ) -> list[tuple[Atom, tuple[Extent, ...]]]:
        """The parts that a Let joins, and where they begin in what begins at `starts`. What joins
        parts for this alone, as np.pad does along one axis after the other, is of these too."""
        call = let.rhs
        assert isinstance(call, OpCall)
        axis, found = call.attrs["axis"] % len(starts), []
        for source in call.args:
            inner = self.lets.get(source)  # type: ignore[arg-type]
            if inner is not None and self.uses[source] == 1 and self._joins_others(inner):  # type: ignore[index]
                found += self._one_by_one(inner, starts)
            else:
                found.append((source, starts))
            starts = _moved(starts, axis, shape_of(source)[axis])
        return found

    def buffer(self, result: Result) -> int | None:
        """The array argument that a result is written into, None for a buffer of its own."""
        if result.update is None:
            return None
        base = walk.operands(result.update.rhs)[0]
        assert isinstance(base, Var)
        return self.function.params.index(base)

    def kernels(self) -> list[Kernel]:
        """The kernels, in the order in which they are launched."""
        found = self.by_slices()
        for results in self.by_space():
            found += self.lower(results)
        return found

    # -- slice by slice ------------------------------------------------------------------------

    def by_slices(self) -> list[Kernel]:
        """The kernel of the results that depend on reductions of rows or columns, if any do."""
        plan = slice_plan(self.function, self.results, self._pure, again=self.joins_few)
        if plan is None:
            return []
        self.pending = [r for r in self.results if r not in plan.results]
        base = len(self.scratch)
        axes = plan.kept.axes
        for dtype, inner in plan.own:
            whole = own_size(inner, axes, dtype.size) if plan.kept.columns else (
                dims.product((*axes, *inner, dtype.size))
            )
            self.scratch.append(whole)
        if self.split and not plan.kept.columns:
            self.when, self.whole = is_long(plan), not axes
        if self.when != 0 or (not axes and not is_small(plan)):
            return self._phase_kernels(plan, base)
        for var in plan.stored_first:
            assert isinstance(var.type, TensorType)
            self.scratch.append(dims.product((*var.type.shape, var.type.dtype.size)))
        kind = ColumnSchedule if plan.kept.columns else RowSchedule
        arrays = _array_shapes(self.function)
        return [
            self._undivided(lambda k, d: kind(k, plan, arrays, base, divided=d).write())
        ]

    def _phase_kernels(self, plan: SlicePlan, base: int) -> list[Kernel]:
        """A kernel per phase, and one for the results of one element."""
        shares: dict[Let, Shares] = {}
        kernels: list[Kernel] = []
        arrays = _array_shapes(self.function)
        for phase in plan.phases:
            first = len(self.scratch)
            counts: list[Extent] = []

            def write(
                k: Schedule, d: bool, phase: Phase = phase, first: int = first,
                counts: list[Extent] = counts,
            ) -> Extent:
                schedule = WholeSchedule(k, plan, arrays, base, shares, divided=d)
                extent, count = schedule.write_phase(phase, first)
                counts.append(count)
                return extent

            kernels.append(self._undivided(write))
            found = full_reductions(self._elements(), phase.reductions)
            for number, (let, r) in enumerate(zip(phase.reductions, found, strict=True)):
                size = partial_dtype(r.op, r.dtype).size
                self.scratch.append(dims.multiply(kernels[-1].extent, size))
                shares[let] = Shares(first + number, counts[-1])
        if plan.slice_results:
            kernels.append(
                self._undivided(
                    lambda k, d: WholeSchedule(
                        k, plan, arrays, base, shares, divided=d
                    ).write_results()
                )
            )
        return kernels

    def _undivided(self, write: Callable[[Schedule, bool], Extent]) -> Kernel:
        """A kernel; if an index over several axes had to be divided, with an index for each."""
        for divided in (False, True):
            schedule = Schedule(self._elements(), self.tile)
            extent = write(schedule, divided)
            if not schedule.taken_apart:
                break
        return finish(schedule, extent, self.spans)

    # -- which results share a kernel ----------------------------------------------------------

    def by_space(self) -> list[list[Result]]:
        """Results grouped by the space their kernel runs through, in order of first occurrence."""
        groups: dict[object, list[Result]] = {}
        for result in self.pending:
            groups.setdefault(self._space_key(result), []).append(result)
        return list(groups.values())

    def _space_key(self, result: Result) -> object:
        lets = self._reductions(result.source)
        if _is_single(result.shape):
            return "scalars"
        form = self._columns(result, lets)
        if form is not None:
            return (lets[0].outs[0], form.outer, form.reduced, form.inner)
        return result.shape

    def _reductions(self, atom: Atom) -> list[Let]:
        """The reductions that a value is computed from with none in between."""
        found: dict[Let, None] = {}
        pending = [atom] if isinstance(atom, Var) else []
        seen = set(pending)
        while pending:
            let = self.lets.get(pending.pop())
            if let is None:
                continue
            assert isinstance(let.rhs, OpCall)
            if let.rhs.op.fusion is Fusion.REDUCTION:
                found[let] = None
                continue
            fresh = [a for a in let.rhs.args if isinstance(a, Var) and a not in seen]
            seen.update(fresh)
            pending += fresh
        return sorted(found, key=self.function.body.lets.index)

    def _columns(self, result: Result, lets: Sequence[Let]) -> Columns | None:
        """The axes of the reduction behind a result, if it is one of whole rows."""
        if len(lets) != 1 or lets[0].outs[0].type.shape != result.shape:  # type: ignore[union-attr]
            return None
        operand, axes, keepdims = _axes(lets[0])
        if operand is None or not axes or len(operand) - 1 in axes or not self._pure(lets[0]):
            return None
        if axes != tuple(range(axes[0], axes[0] + len(axes))):
            return None
        outer, reduced = operand[: axes[0]], operand[axes[0] : axes[-1] + 1]
        return Columns(outer, reduced, operand[axes[-1] + 1 :], keepdims)

    def _pure(self, let: Let) -> bool:
        """Whether the Let's rule is one reduction, so that a schedule may take it over."""
        elements = self._elements()
        ty = let.outs[0].type
        assert isinstance(ty, TensorType)
        zeros = (elements.s.const(0, i64),) * ty.rank
        return elements.reductions(let, zeros) is not None

    # -- kernels -------------------------------------------------------------------------------

    def lower(self, results: Sequence[Result]) -> list[Kernel]:
        """The kernels of results that share a space."""
        lets = list(dict.fromkeys(let for r in results for let in self._reductions(r.source)))
        shape = results[0].shape
        if _is_single(shape):
            large = [let for let in lets if self._is_large(let)]
            if large:
                return self._chunked(large, results)
            return [self._write(lambda k: k.chunk_totals((), results))]
        form = self._columns(results[0], lets)
        if form is not None:
            return self._column_kernels(lets[0], results, form)
        wholes = [r.part.whole for r in results if r.part is not None]
        return [self._collapsing(shape, lambda k, space: k.map(results, space), wholes)]

    def _is_large(self, let: Let) -> bool:
        operand, axes, _ = _axes(let)
        if operand is None or len(axes) != len(operand) or not self._pure(let):
            return False
        size = dims.product(operand)
        return not (isinstance(size, int) and size <= CHUNK)

    def _chunked(self, lets: Sequence[Let], results: Sequence[Result]) -> list[Kernel]:
        spaces: dict[Shape, list[Let]] = {}
        for let in lets:
            operand = _axes(let)[0]
            assert operand is not None
            spaces.setdefault(operand, []).append(let)
        kernels, parts = [], []
        for shape, members in spaces.items():
            base = len(self.scratch)
            space = collapsed(shape, _array_shapes(self.function))
            size = dims.product(shape)
            joins = self.joins_few and len(space.runs) == 1
            many = dims.minimum(dims.quotient(size, FEW + 1), 1) if joins else 1
            few = dims.multiply(size, dims.add(1, dims.multiply(-1, many)))

            def partials(
                k: Schedule, space: Space, members: list[Let] = members, base: int = base,
                many: Extent = many,
            ) -> Extent:
                return k.chunk_partials(members, space, base, many)

            kernels.append(self._collapsing(shape, partials))
            count = kernels[-1].extent
            found = full_reductions(self._elements(), members)
            for r in found:
                size = partial_dtype(r.op, r.dtype).size
                self.scratch.append(dims.multiply(count, size))
            parts.append((members, base, count, few, space))
        kernels.append(self._write(lambda k: k.chunk_totals(parts, results)))
        return kernels

    def _column_kernels(
        self, let: Let, results: Sequence[Result], form: Columns
    ) -> list[Kernel]:
        form = self._undivided_columns(let, results, form)
        rows = dims.product(form.reduced)
        share = self.tile.chunk(rows, dims.product(form.inner))
        if isinstance(rows, int) and isinstance(share, int) and rows <= share:
            return [self._write(lambda k: k.columns(let, results, form, "all"))]
        chunks = dims.quotient_up(rows, share)
        ty = let.outs[0].type
        assert isinstance(ty, TensorType)
        kept = dims.product((*form.outer, *form.behind, *form.inner))
        base = len(self.scratch)
        self.scratch.append(dims.product((chunks, kept, ty.dtype.size)))
        return [
            self._write(lambda k: k.columns(let, results, form, "partials", base)),
            self._write(lambda k: k.columns(let, results, form, "totals", base)),
        ]

    def _undivided_columns(
        self, let: Let, results: Sequence[Result], form: Columns
    ) -> Columns:
        """The form whose columns are numbered without dividing an index for each element. Where
        threads are columns they would be too few along one axis."""
        if len(form.inner) < 2 or self.joins_few:
            return form
        schedule = Schedule(self._elements(), self.tile)
        schedule.columns(let, results, form, "all")
        return form.of_last_axis() if schedule.taken_apart else form

    def _elements(self) -> Elements:
        emitter = RuleEmitter(self.function.dims)
        emitter.alone = not self.joins_few
        emitter.apart = self.apart
        return Elements(emitter, self.function)

    def _collapsing(
        self, shape: Shape, write: Callable[[Schedule, Space], Extent],
        wholes: Sequence[Shape] = (),
    ) -> Kernel:
        """A kernel over a space with as few indices as do without division. `wholes` are shapes of
        what it writes parts of."""
        arrays = _array_shapes(self.function)
        spaces = [
            collapsed(shape, arrays, sliced=True), collapsed(shape, arrays),
            collapsed(shape, [*arrays, *wholes]), *self._turned(shape), one_by_one(shape),
        ]
        if not self.joins_few:  # threads have their own way
            spaces = longest_rows_first([*spaces, *long_rows(shape)])
        for space in dict.fromkeys(spaces):
            schedule = Schedule(self._elements(), self.tile)
            extent = write(schedule, space)
            if not schedule.taken_apart:
                break
        return finish(schedule, extent, self.spans)

    def _turned(self, shape: Shape) -> list[Space]:
        """The space for the transposes of a shape, if there are any, for the CPU."""
        orders = [
            let.rhs.attrs["axes"] for let in self.function.body.lets
            if isinstance(let.rhs, OpCall) and let.rhs.op.name == "transpose"
            and shape_of(let.outs[0]) == shape
        ]
        space = None if self.joins_few or not orders else turned_space(shape, orders)
        return [] if space is None else [space]

    def _write(self, write: Write) -> Kernel:
        schedule = Schedule(self._elements(), self.tile)
        return finish(schedule, write(schedule), self.spans)


def _is_single(shape: Shape) -> bool:
    return all(extent == 1 for extent in shape)


def _axes(let: Let) -> tuple[Shape | None, tuple[int, ...], bool]:
    """Operand shape, reduced axes and keepdims of a reduction; no shape if it is another kind."""
    rhs = let.rhs
    assert isinstance(rhs, OpCall)
    if len(rhs.args) != 1 or "axes" not in rhs.attrs:
        return None, (), False
    ty = rhs.args[0].type
    assert isinstance(ty, TensorType)
    axes = tuple(sorted(axis % ty.rank for axis in rhs.attrs["axes"])) if ty.rank else ()
    return ty.shape, axes, bool(rhs.attrs.get("keepdims", False))


def _array_shapes(function: Function) -> list[Shape]:
    """The shapes that arrays have where their elements are read: those that they come in, or those
    that a reshape gives them before anything else but arithmetic of single elements."""
    readers: dict[Atom, list[Let]] = {}
    for let in function.body.lets:
        for atom in dict.fromkeys(walk.operands(let.rhs)):
            readers.setdefault(atom, []).append(let)
    found: dict[Shape, None] = {}
    pending = list(function.params)
    seen = set(pending)
    while pending:
        var = pending.pop()
        if not isinstance(var.type, TensorType) or not var.type.rank:
            continue
        ahead = [_in_place(let, var.type.shape) for let in readers.get(var, ())]
        if not ahead or None in ahead:
            found[var.type.shape] = None
        fresh = [out for out in ahead if out is not None and out not in seen]
        seen.update(fresh)
        pending += fresh
    return list(found)


def _in_place(let: Let, shape: Shape) -> Var | None:
    """The result of a Let each element of which is made of the one at the same place in memory of
    an operand of this shape; None if it is not made so."""
    out, call = let.outs[0], let.rhs
    if not isinstance(call, OpCall) or not isinstance(out.type, TensorType):
        return None
    same = call.op.fusion is Fusion.ELEMENTWISE and out.type.shape == shape
    return out if same or call.op.name == "reshape" else None
