"""Schedules: in which order a kernel runs through the elements of its results.

In: a fused group whose results share one space. Out: the statements of one or two kernels.

* *Map*: the results' own axes, outermost in parallel. Neighbouring axes along which every array is
  contiguous are counted by one index, so an elementwise group is one flat loop. A reduction of
  trailing axes is a loop inside.
* *Chunks*: everything is reduced to scalars. A first kernel reduces chunks of a fixed size in
  parallel, a second one combines the chunks in order: the result depends on no thread count.
* *Slices*: several reductions and what depends on them, see `row_schedule.py` and
  `column_schedule.py`.
* *Columns*: leading axes are reduced and the last one stays. Rows are added into a small array, one
  column block at a time; for many rows, chunks of rows first, in parallel.

What a group does with its reductions afterwards runs where the reductions are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.types import DType, TensorType, bool_, i64
from pyrelay.lower.kernels.elements import Elements, Index
from pyrelay.lower.kernels.kernel import ARRAY, OUTPUT, SCRATCH, SLOT, Local, Parameter
from pyrelay.lower.kernels.reductions import (
    BLOCK,
    Accumulator,
    Reduction,
    combine,
    identity,
    over_range,
    over_rows,
    partial_dtype,
)
from pyrelay.lower.kernels.rule_emitter import RuleEmitter
from pyrelay.lower.kernels.spaces import Space
from pyrelay.lower.kernels.values import Run, Value
from pyrelay.records import dataclass

#: Elements in a chunk of a full reduction; rows in a chunk of rows.
CHUNK = 16 * BLOCK
FEW = 4 * BLOCK  # elements of a full reduction that are not worth two launches
ROWS = 512
_FEWEST_ROWS = 64
_FEWEST_TURNED = 16  # rows of a plane that are worth a loop of their own
_MOST_NEAR = 1024  # elements of a row that are read from as many lines of memory


@dataclass(frozen=True, slots=True)
class Tile:
    """How rows are added to a small array: of how many columns, how many rows at once. `blocks`:
    about how many of them a device is to have, 0 where chunks have `ROWS` rows."""

    columns: int = 128
    rows: int = 1
    blocks: int = 0

    def chunk(self, rows: Extent, columns: Extent) -> Extent:
        """How many rows of so many a chunk has: 64 or more, so that each lane of a block has
        some, and no more than are added in one type."""
        if self.blocks == 0:
            return ROWS
        beside = dims.quotient_up(columns, self.columns)
        wanted = dims.quotient_up(dims.multiply(rows, beside), self.blocks)
        return dims.minimum(dims.maximum(wanted, _FEWEST_ROWS), 4 * ROWS)

    def share(self, elements: Extent, *, again: bool = False) -> Extent:
        """How many elements of so many a chunk of a full reduction has; `again`: where each chunk
        of what follows adds all shares up, which is why there are fewer then."""
        if self.blocks == 0:
            return CHUNK
        wanted = dims.quotient_up(elements, self.blocks // (8 if again else 2))
        return dims.minimum(dims.maximum(wanted, BLOCK), CHUNK)


@dataclass(frozen=True, slots=True)
class Result:
    """A result of the group: what is computed, over which axes, and where it is stored.

    For an `update` in place, `source` is the new content of a part of the array and `shape` that
    part's; where a result joins parts, `source` is one of them and `part` says where it lies;
    otherwise `source` is the result itself.
    """

    position: int
    source: Atom
    shape: tuple[Extent, ...]
    update: Let | None = None
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Where a part of a result of some shape begins along each axis."""

    whole: tuple[Extent, ...]
    starts: tuple[Extent, ...]

    def index(self, s: RuleEmitter, index: Index) -> Index:
        """The index in the result of an element of the part."""
        return tuple(
            i if start == 0 else i + s.extent(start)
            for i, start in zip(index, self.starts, strict=True)
        )


def store_result(elements: Elements, result: Result, index: Index, value: Value) -> None:
    """Writes an element of a result."""
    s, ty = elements.s, result.source.type
    assert isinstance(ty, TensorType)
    if result.update is not None:
        store_update(elements, result.update, index, value)
    elif result.part is not None:
        place = s.ravel(result.part.index(s, index), result.part.whole)
        s.store(Parameter(OUTPUT, result.position, ty.dtype), place, value)
    elif ty.rank:
        s.store(Parameter(OUTPUT, result.position, ty.dtype), s.ravel(index, ty.shape), value)
    else:
        s.store(Parameter(SLOT, result.position, ty.dtype), s.const(0, i64), value)


def store_update(elements: Elements, let: Let, index: Index, value: Value) -> None:
    """Writes an element of the part that an update replaces or adds to."""
    s, rhs = elements.s, let.rhs
    assert isinstance(rhs, OpCall)
    base = rhs.args[0]
    assert isinstance(base, Var)
    assert isinstance(base.type, TensorType)
    array = Parameter(ARRAY, elements.params[base], base.type.dtype)
    flat = s.ravel(_place(elements, rhs, index), base.type.shape)
    if rhs.op.name.endswith("add"):
        value = s.primitive("add", s.load(array, flat), value)
    s.store(array, flat, value)


def _place(elements: Elements, rhs: OpCall, index: Index) -> Index:
    """The index in the array of an element of the part."""
    s, attrs = elements.s, rhs.attrs
    if "axes" in attrs:
        fixed = {
            axis: s.cast(elements.value(atom, ()), i64)
            for axis, atom in zip(attrs["axes"], rhs.args[2:], strict=True)
        }
        rest = iter(index)
        rank = len(index) + len(fixed)
        return tuple(fixed[axis] if axis in fixed else next(rest) for axis in range(rank))
    base = rhs.args[0].type
    assert isinstance(base, TensorType)
    place = []
    for k, extent, start, size, step in zip(
        index, base.shape, attrs["starts"], attrs["sizes"], attrs["steps"], strict=True
    ):
        whole = start == 0 and step == 1 and size == extent
        place.append(k if whole else s.extent(start) + k * s.extent(step))
    return tuple(place)


class Schedule:
    """One kernel being written: where its range is, and which runs somebody took apart."""

    def __init__(self, elements: Elements, tile: Tile = Tile()) -> None:  # noqa: B008 (a value)
        self.elements, self.s, self.tile = elements, elements.s, tile
        self.begin, self.end = Local(i64), Local(i64)
        self.runs: list[Run] = []

    @property
    def taken_apart(self) -> bool:
        """Whether an index over several axes had to be divided."""
        return any(run.taken_apart for run in self.runs)

    def run(self, index: Value, extents: Sequence[Extent]) -> tuple[Value, ...]:
        """The indices of a run's axes; beside axes of extent 1 the one index is the run's."""
        if sum(extent != 1 for extent in extents) == 1:
            return self.s.unravel(index, extents)
        run = Run(index, extents)
        self.runs.append(run)
        return run.parts()

    def over_parallel(self, extent: Extent, body: Callable[[Value], None]) -> None:
        """The loop over the part of the parallel axis that this call of the kernel does."""
        s = self.s
        begin = Value(s, self.begin, i64, s.scope)
        end = Value(s, self.end, i64, s.scope)
        with s.loop(begin, end) as p:
            body(s.bounded(p, extent))

    def map(self, results: Sequence[Result], space: Space) -> Extent:
        """Every element of the results, once. Returns the extent of the parallel axis.

        What has several runs before its rows goes plane by plane: a plane's rows are a loop of
        their own, which counts without looking whether a plane ends, and which `turned_reads.py`
        takes block by block in the space of a transpose."""
        s = self.s
        runs = space.run_extents()
        if not runs:
            self.store_all(results, ())
            return 1
        # Two loops: the outer runs together, in parallel, and the last one.
        outer = runs[:-1]
        outer_sizes = [dims.product(e) for e in outer]
        parallel = dims.product(outer_sizes) if outer else dims.product(runs[-1])

        def row(p: Value) -> None:
            if not outer:
                self.store_all(results, self.run(p, runs[-1]))
                return
            index: Index = ()
            for each, extents in zip(s.unravel(p, outer_sizes), outer, strict=True):
                # The division, if one is needed, belongs to the row.
                number = Value(s, each.operand, i64, each.scope)
                index += self.run(s.bounded(number, dims.product(extents)), extents)
            with s.loop(0, s.extent(dims.product(runs[-1]))) as j:
                self.store_all(results, index + self.run(j, runs[-1]))

        def turned(p: Value, r: Value) -> None:
            index: Index = ()
            for each, extents in zip(s.unravel(p, outer_sizes[:-1]), outer, strict=False):
                number = Value(s, each.operand, i64, each.scope)
                index += self.run(s.bounded(number, dims.product(extents)), extents)
            index += self.run(s.bounded(r, outer_sizes[-1]), outer[-1])
            with s.loop(0, s.extent(dims.product(runs[-1]))) as j:
                self.store_all(results, index + self.run(j, runs[-1]))

        if len(outer) < 2 or not s.alone:
            self.over_parallel(parallel, row)
            return parallel
        if not space.turned:
            self._over_planes(Value(s, self.end, i64, s.scope), outer_sizes[-1], turned)
            return parallel
        # By planes, or by none where they have few rows, or rows whose lines of memory stay near.
        size, length = s.extent(outer_sizes[-1]), s.extent(dims.product(runs[-1]))
        near = (length >= _FEWEST_TURNED) & (length < _MOST_NEAR)
        plain = (size < _FEWEST_TURNED) | near
        begin, end = (Value(s, local, i64, s.scope) for local in (self.begin, self.end))
        self._over_planes(s.where(plain, begin, end), outer_sizes[-1], turned)
        with s.loop(begin, s.where(plain, end, begin)) as p:
            row(s.bounded(p, parallel))
        return parallel

    def _over_planes(self, end: Value, size: Extent, row: Callable[[Value, Value], None]) -> None:
        """The loop over this call's rows up to `end`, so many of which a plane has: over planes,
        and over the rows of each."""
        s = self.s
        begin = Value(s, self.begin, i64, s.scope)
        many = s.extent(dims.maximum(size, 1))
        first = s.primitive("floor_divide", begin, many)
        last = s.primitive("floor_divide", end + (many - 1), many)
        with s.loop(first, last) as plane:
            before = plane * many
            start = s.primitive("maximum", begin - before, s.const(0, i64))
            stop = s.primitive("minimum", end - before, many)
            with s.loop(start, stop) as number:
                row(plane, number)

    def store_all(self, results: Sequence[Result], index: Index) -> None:
        """The elements of results at one index."""
        values = [self.elements.value(r.source, index) for r in results]
        for result, value in zip(results, values, strict=True):
            store_result(self.elements, result, index, value)

    # -- chunks --------------------------------------------------------------------------------

    def chunk_partials(
        self, lets: Sequence[Let], space: Space, base: int, many: Extent = 1
    ) -> Extent:
        """Kernel one of a full reduction: scratch[base + k][c] = reduction k over chunk c.

        Where `many` is 0, kernel two goes through the elements itself.
        """
        s = self.s
        found = full_reductions(self.elements, lets)
        *outer, inner = space.run_extents()
        inner_size, outer_size = dims.product(inner), dims.product(map(dims.product, outer))
        most = self.tile.share(dims.multiply(outer_size, inner_size))
        if not outer:
            chunk: Extent = most
            size = inner_size
        else:
            chunk = dims.quotient(most, dims.maximum(inner_size, 1))
            chunk = dims.maximum(chunk, 1)
            size = outer_size
        count = dims.quotient_up(dims.multiply(size, many), chunk)
        # One element may decide about truth values: a thread reads no chunk after that. (On GPUs
        # each chunk has a block of its own.)
        alone = s.alone and [r.dtype for r in found] == [bool_]
        decided = s.variable(s.const(False, bool_)) if alone else None

        def one(p: Value) -> None:
            start = p * s.extent(chunk)
            stop = s.primitive("minimum", start + s.extent(chunk), s.extent(size))
            if decided is not None:
                stop = s.where(s.now(decided), start, stop)
            if not outer:
                totals = self._reduce_run(found, start, stop, None, inner, ())
            else:
                totals = self._reduce_rows(found, start, stop, outer, inner)
            for k, (r, total) in enumerate(zip(found, totals, strict=True)):
                s.store(_scratch(base + k, r), p, total)
                if decided is not None:
                    end = total if identity(r.op, bool_) == 0 else ~total
                    s.assign(decided, s.now(decided) | end)

        self.over_parallel(count, one)
        return count

    def _reduce_run(
        self, found: Sequence[Reduction], start: Value, stop: Value, length: Extent | None,
        extents: tuple[Extent, ...], outer: Index,
    ) -> list[Value]:
        size = dims.product(extents)

        def element(k: Value) -> list[Value]:
            index = outer + self.run(self.s.bounded(k, size), extents)
            return [r.element(index) for r in found]

        return over_range(self.s, found, start, stop, length, element)

    def _reduce_rows(
        self, found: Sequence[Reduction], start: Value, stop: Value,
        outer: Sequence[tuple[Extent, ...]], inner: tuple[Extent, ...],
    ) -> list[Value]:
        s = self.s
        totals = [Accumulator(s, r.op, r.dtype) for r in found]
        sizes = [dims.product(e) for e in outer]
        length = dims.product(inner)
        with s.loop(start, stop) as row:
            index: Index = ()
            for each, extents in zip(s.unravel(row, sizes), outer, strict=True):
                number = Value(s, each.operand, i64, each.scope)
                index += self.run(s.bounded(number, dims.product(extents)), extents)
            zero = s.const(0, i64)
            parts = self._reduce_run(found, zero, s.extent(length), length, inner, index)
            for total, part in zip(totals, parts, strict=True):
                total.add(part)
        return [total.result() for total in totals]

    def chunk_totals(
        self, parts: Sequence[tuple[Sequence[Let], int, Extent, Extent, Space]],
        results: Sequence[Result],
    ) -> Extent:
        """Kernel two: combine the chunks, then compute what depends on the reductions.

        `parts` are the reductions of each space, their first scratch buffer, the chunks' number,
        and the elements that are in none, with their space.
        """
        s = self.s
        zero = s.const(0, i64)
        for lets, base, count, few, space in parts:
            found = full_reductions(self.elements, lets)
            wide = [
                Reduction(r.op, r.extents, r.element, partial_dtype(r.op, r.dtype)) for r in found
            ]
            sources = [_scratch(base + n, r) for n, r in enumerate(found)]

            def element(k: Value, sources: Sequence[Parameter] = sources) -> list[Value]:
                return [s.load(each, k) for each in sources]

            totals = over_range(s, wide, zero, s.extent(count), count, element)
            if few != 0:
                (inner,) = space.run_extents()
                others = self._reduce_run(found, zero, s.extent(few), None, inner, ())
                totals = [
                    combine(s, r.op, a, b)
                    for r, a, b in zip(wide, totals, others, strict=True)
                ]
            outs = [out for let in lets for out in let.outs]
            for out, r, total in zip(outs, found, totals, strict=True):
                assert isinstance(out.type, TensorType)
                self.elements.preset(out, (zero,) * out.type.rank, s.cast(total, r.dtype))
        for result in results:
            index = (zero,) * len(result.shape)
            store_result(self.elements, result, index, self.elements.value(result.source, index))
        return 1

    # -- columns -------------------------------------------------------------------------------

    def columns(
        self, let: Let, results: Sequence[Result], form: Columns, stage: str, scratch: int = 0
    ) -> Extent:
        """Reduction of the rows of one Let, block of columns by block of columns.

        `stage`: "all" reduces the rows themselves, "partials" chunks of them into the buffer number
        `scratch`, and "totals" what "partials" has left.
        """
        s = self.s
        column_size = dims.product(form.inner)
        row_size = dims.product(form.reduced)
        share = self.tile.chunk(row_size, column_size)
        chunks = dims.quotient_up(row_size, share)
        tile = self.tile.columns
        column_blocks = dims.quotient_up(column_size, tile)
        apart = form.outer, form.behind
        sizes = (
            dims.product((*form.outer, *form.behind)), chunks if stage == "partials" else 1,
            column_blocks,
        )

        def block(p: Value) -> None:
            outer_number, chunk, number = (
                Value(s, v.operand, i64, v.scope) for v in s.unravel(p, sizes)
            )
            first = number * tile
            width = s.primitive("minimum", s.const(tile, i64), s.extent(column_size) - first)
            numbers = s.unravel(outer_number, [dims.product(extents) for extents in apart])
            outer, behind = (
                self.run(s.bounded(Value(s, n.operand, i64, n.scope), dims.product(e)), e)
                for n, e in zip(numbers, apart, strict=True)
            )
            position = _ColumnBlock(
                self, let, form, scratch, outer, behind, outer_number, first, width, chunks, share
            )
            if stage == "partials":
                position.write_partials(chunk)
            else:
                position.write_results(results, from_scratch=stage == "totals")

        self.over_parallel(dims.product(sizes), block)
        return dims.product(sizes)


@dataclass(frozen=True, slots=True)
class Columns:
    """Axes of an operand: (outer, reduced, behind, inner), of which the result keeps all but the
    reduced ones. The inner axes number the columns; those behind are gone through as outer ones."""

    outer: tuple[Extent, ...]
    reduced: tuple[Extent, ...]
    inner: tuple[Extent, ...]
    keepdims: bool
    behind: tuple[Extent, ...] = ()

    def result_index(self, s_zero: Value, outer: Index, inner: Index) -> Index:
        """The index of a result's element; `inner`: those of the axes behind, too."""
        middle = (s_zero,) * len(self.reduced) if self.keepdims else ()
        return outer + middle + inner

    def of_last_axis(self) -> Columns:
        """The same with columns along the last axis only."""
        return replace(self, inner=self.inner[-1:], behind=(*self.behind, *self.inner[:-1]))


@dataclass(frozen=True, slots=True)
class _ColumnBlock:
    """`width` columns from `first` on, of the rows that `outer` selects; a chunk has `share`."""

    schedule: Schedule
    let: Let
    form: Columns
    scratch: int
    outer: Index
    behind: Index
    outer_number: Value
    first: Value
    width: Value
    chunks: Extent
    share: Extent

    def _columns_hint(self) -> Extent:
        return dims.minimum(self.schedule.tile.columns, dims.product(self.form.inner))

    def _index(self, j: Value) -> tuple[Value, Index]:
        s = self.schedule.s
        column = s.bounded(self.first + j, dims.product(self.form.inner))
        inner = self.schedule.run(column, self.form.inner)
        return column, self.form.result_index(s.const(0, i64), self.outer, self.behind + inner)

    def _reduction(self, index: Index) -> Reduction:
        found = self.schedule.elements.reductions(self.let, index)
        assert found is not None
        return found[0]

    def _scratch_index(self, chunk: Value, column: Value) -> Value:
        s = self.schedule.s
        row = self.outer_number * s.extent(self.chunks) + chunk
        return row * s.extent(dims.product(self.form.inner)) + column

    def _sum_rows(
        self, start: Value, stop: Value, dtype: DType, op: str,
        element: Callable[[Value, Value], Value],
    ) -> Callable[[Value], Value]:
        """Accumulates element(row, j) over rows into a local array; returns how to read it."""
        s = self.schedule.s
        array = s.local_array(dtype, self.schedule.tile.columns)
        with s.loop(0, self.width, trips=self._columns_hint()) as j:
            s.store(array, j, s.const(identity(op, dtype), dtype))

        def add(rows: Sequence[Value]) -> None:
            with s.loop(0, self.width) as j:
                total = s.reload(array, j)
                for row in rows:
                    total = combine(s, op, s.cast(element(row, j), dtype), total)
                s.store(array, j, total)

        over_rows(s, start, stop, self.schedule.tile.rows, add)
        return lambda j: s.reload(array, j)

    def _sum_source(
        self, start: Value, stop: Value, dtype: DType, op: str
    ) -> Callable[[Value], Value]:
        reduced = self.form.reduced

        def element(row: Value, j: Value) -> Value:
            schedule = self.schedule
            rows = schedule.run(schedule.s.bounded(row, dims.product(reduced)), reduced)
            return self._reduction(self._index(j)[1]).element(rows)

        return self._sum_rows(start, stop, dtype, op, element)

    def _kind(self) -> tuple[str, DType]:
        index = self._index(self.schedule.s.const(0, i64))[1]
        reduction = self._reduction(index)
        return reduction.op, reduction.dtype

    def write_partials(self, chunk: Value) -> None:
        s = self.schedule.s
        op, dtype = self._kind()
        share = s.extent(self.share)
        start = chunk * share
        row_size = s.extent(dims.product(self.form.reduced))
        stop = s.primitive("minimum", start + share, row_size)
        read = self._sum_source(start, stop, dtype, op)
        with s.loop(0, self.width, trips=self._columns_hint()) as j:
            column, _ = self._index(j)
            place = self._scratch_index(chunk, column)
            s.store(Parameter(SCRATCH, self.scratch, dtype), place, read(j))

    def write_results(self, results: Sequence[Result], *, from_scratch: bool) -> None:
        schedule, s = self.schedule, self.schedule.s
        op, dtype = self._kind()
        zero = s.const(0, i64)
        if from_scratch:

            def element(chunk: Value, j: Value) -> Value:
                place = self._scratch_index(chunk, self._index(j)[0])
                return s.load(Parameter(SCRATCH, self.scratch, dtype), place)

            wide = partial_dtype(op, dtype)
            read = self._sum_rows(zero, s.extent(self.chunks), wide, op, element)
        else:
            rows = s.extent(dims.product(self.form.reduced))
            read = self._sum_source(zero, rows, dtype, op)
        out = self.let.outs[0]
        with s.loop(0, self.width, trips=self._columns_hint()) as j:
            _, index = self._index(j)
            schedule.elements.preset(out, index, s.cast(read(j), dtype))
            values = [schedule.elements.value(r.source, index) for r in results]
            for result, value in zip(results, values, strict=True):
                store_result(schedule.elements, result, index, value)


def _scratch(k: int, reduction: Reduction) -> Parameter:
    return Parameter(SCRATCH, k, partial_dtype(reduction.op, reduction.dtype))


def full_reductions(elements: Elements, lets: Sequence[Let]) -> list[Reduction]:
    """The reductions of Lets that leave one element each."""
    found: list[Reduction] = []
    for let in lets:
        out = let.outs[0]
        assert isinstance(out.type, TensorType)
        captured = elements.reductions(let, (elements.s.const(0, i64),) * out.type.rank)
        assert captured is not None
        found += captured
    return found
