"""Rows of a table whose elements wait for their neighbours are filled several at a time.

In: a kernel of a program's loops, for the CPU. Out: its body, in which

    for i in rows:                                      for each block of four rows:
        for j in columns:                                   their first 3, 2, 1 and 0 columns
            u[i, j] = f(u[i - 1, j], u[i, j - 1])   as      for j in columns:
                                                                u[i, j + 3], u[i + 1, j + 2],
                                                                u[i + 2, j + 1], u[i + 3, j]
                                                            their last 0, 1, 2 and 3 columns

An element of a row is known some cycles after the one before it: a sum and a product in a sweep of
Gauss and Seidel, a least of three in an edit distance. Processors could do several times as much in
that time, and rows that lag behind each other are independent (`row_lags`). Numbers are computed as
in the loop, in the same order each. What a row hands on, to itself and to the next one, stays in
registers: compilers do not know that different rows are different places.

It pays where an element takes longer to arrive than to compute; nothing in the rounds may fail, and
rows may hand on nothing in variables. What a row has in variables at the end of its first columns
lies in small arrays until the block begins, and again until its last columns do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Pointed,
    Read,
    Statement,
    Store,
    bound_by,
    operands,
    pointed,
    statements,
)
from pyrelay.lower.passes.asked_extents import hold
from pyrelay.lower.passes.cleaning import without_unused
from pyrelay.lower.passes.copies import Copy, makers, without
from pyrelay.lower.passes.distinct_places import Integers, with_loops
from pyrelay.lower.passes.flat_branches import with_flat_branches
from pyrelay.lower.passes.guessed_branches import latency
from pyrelay.lower.passes.jammed_loops import Uses, counted, sets_first
from pyrelay.lower.passes.joined_stores import with_joined_stores
from pyrelay.lower.passes.lane_blocks import assigned, read_by
from pyrelay.lower.passes.row_exchanges import with_exchange
from pyrelay.lower.passes.row_extremes import with_row_extremes
from pyrelay.lower.passes.row_lags import Nest, Touched, lags
from pyrelay.lower.passes.written import Text, number
from pyrelay.records import dataclass

_LEAST_COLUMNS = 24  # of rows that are worth it, beside those that are filled first and last
_MOST_STATEMENTS = 80  # of a round
_MOST_ROWS = 8
_LEAST_CYCLES = 2  # that an element waits for the one before it
_AT_ONCE = 20  # statements of as many rows as a processor can have under way, in a cycle
_MOST_AGO = 4  # columns
_PLACES = frozenset(["add", "subtract", "multiply"])
_MOVED = Compute, Load, Store, Assign, If, Read


def skewed(kernel: Kernel) -> Body:
    """The body of a kernel with rows of tables side by side."""
    if not kernel.apart:
        return kernel.body
    addresses = {s.parameter for s in statements(kernel.body) if isinstance(s, Read)}
    uses = counted(kernel.body)

    def changed(loop: For, around: Integers) -> list[Statement] | None:
        nest = None if loop.few else _nest(loop, addresses)
        if nest is None:
            return None
        found = _Rows.of(nest, around, uses - counted((loop,)))
        return [loop] if found is None else found.statements(around)

    return with_loops(kernel.body, Integers(), changed)


def _nest(loop: For, addresses: set[Parameter]) -> Nest | None:
    """A loop as one around another one, if nothing in it is of a kind that cannot be moved. Arrays
    that change places have no name beside their address."""
    loops = [n for n, s in enumerate(loop.body) if isinstance(s, For)]
    if len(loops) != 1 or loop.rescaled is not None or loop.lanes:
        return None
    (at,) = loops
    inner = loop.body[at]
    assert isinstance(inner, For)
    if inner.rescaled is not None or inner.lanes:
        return None
    every = list(statements(loop.body))
    if not any(isinstance(s, Store) for s in statements(inner.body)):
        return None
    if not all(s is inner or isinstance(s, _MOVED) for s in every):
        return None
    bound = {o for s in every for o in bound_by(s)} | {loop.index}
    if inner.start in bound or inner.stop in bound:
        return None
    nest = with_exchange(Nest(loop, loop.body[:at], inner, loop.body[at + 1 :]))
    arrays = {s.array for s in every if isinstance(s, (Load, Store))}
    held = {a.address for a in arrays if isinstance(a, Pointed)}
    if held and (not held <= set(nest.exchanged or ()) or addresses & arrays):
        return None
    return nest


@dataclass(frozen=True, slots=True, eq=False)
class _Handed:
    """What a load finds: what the row so many rows above stored so many columns ago. `there`: it is
    there in any round of a block, whatever row stands above that."""

    store: Store
    above: int
    ago: int
    there: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows that are filled together.

    height  how many.
    lag     columns by which each is behind the one before it.
    first   columns that each of them is filled alone.
    asked   sums of extents that must not be negative.
    anew    what is computed of the number of a row wherever it is needed.
    state   what a row has at the end of its first columns, and where it waits.
    own     variables of a row.
    extremes  those that hold the greatest number a row has found, and where that is.
    shared  the loads that find in each row what the row above found `lag` columns ago.
    fixed   the loads that find the same in all columns of a row.
    handed  the loads that find what has been stored a few columns ago, by a row of the block or,
            whatever branch they are in, by the row before it.
    """

    nest: Nest
    height: int
    lag: int
    first: int
    asked: list[Extent]
    anew: Body
    state: dict[Local, LocalArray]
    own: set[Local]
    extremes: set[Local]
    shared: list[Load]
    fixed: list[Load]
    handed: dict[Load, _Handed]

    @staticmethod
    def of(nest: Nest, around: Integers, outside: Uses) -> _Rows | None:
        """What may be done, if that pays."""
        if sum(1 for _ in statements(nest.inner.body)) > _MOST_STATEMENTS:
            return None
        body = with_joined_stores(nest.inner.body, nest.entered(around)[-1])
        nest = replace(nest, inner=replace(nest.inner, body=body))
        nest, extremes = with_row_extremes(nest)
        own = _own_variables(nest, outside, extremes)
        if own is None:
            return None
        found = lags(nest, around)
        if found is None:
            return None
        anew = _anew(nest)
        state = _state(nest, own, anew)
        carried = {v for v in own - extremes if not sets_first(body, {v}, set())}
        cycles = _waiting(body, carried, found.written)
        work = sum(1 for s in statements(body) if not _is_address(s)) / _AT_ONCE
        height = _MOST_ROWS if cycles >= _LEAST_CYCLES else 1
        while height > 1 and cycles < work * height:
            height //= 2
        if height < 2:
            return None
        arrays = {v: LocalArray(v.dtype, height) for v in state}
        handed = _handed(body, found.written, found.lag)
        first = max((each.ago for each in handed.values()), default=0)
        return _Rows(
            nest, height, found.lag, first, found.asked, anew, arrays, own, extremes,
            found.by_column, found.by_row, handed,
        )  # fmt: skip

    def statements(self, integers: Integers) -> list[Statement]:
        """The rows that make no block, one at least, and the blocks."""
        nest, out = self.nest, Text()
        columns = out.new("subtract", nest.inner.stop, nest.inner.start)
        rows = out.new("subtract", nest.loop.stop, nest.loop.start)
        rows = out.new("maximum", out.new("subtract", rows, number(1)), number(0))
        blocks = out.new("right_shift", rows, number(self.height.bit_length() - 1))
        ahead = self.first + (self.height - 1) * self.lag
        narrow = Local(bool_)
        out.add(Compute(narrow, "less", (columns, number(ahead + _LEAST_COLUMNS))))
        blocks = out.new("where", narrow, number(0), blocks)
        made, holds = hold(self.asked, integers)
        out.body += made
        blocks = out.new("where", holds, blocks, number(0))
        done = out.new("multiply", blocks, number(self.height))
        begin = out.new("subtract", nest.loop.stop, done)
        out.add(replace(nest.loop, stop=begin))
        # LLVM would write out loops of so many rows if it knew how many these are.
        height = out.new("minimum", rows, number(self.height))
        block, inside = Local(i64), Text()
        done = inside.new("multiply", block, number(self.height))
        top = inside.new("add", begin, done)
        self._begin(inside, top, height)
        self._together(inside, top, inside.new("subtract", columns, number(ahead)))
        self._finish(inside, top, height)
        body = tuple(inside.body)
        out.add(replace(nest.loop, index=block, start=number(0), stop=blocks, body=body))
        return out.body

    def _row(self, out: Text, top: Operand, row: Operand) -> Copy:
        """The number of a row, with names of its own for what belongs to it."""
        names: dict[Operand, Operand] = {v: Local(v.dtype, variable=True) for v in self.own}
        names[self.nest.loop.index] = out.new("add", top, row)
        if self.nest.exchanged is not None:  # once for each row above, and by a block not at all
            odd = Local(bool_)
            out.add(Compute(odd, "equal", (out.new("bitwise_and", row, number(1)), number(1))))
            for one, other in (self.nest.exchanged, self.nest.exchanged[::-1]):
                address = Local(one.dtype)
                out.add(Compute(address, "where", (odd, other, one)))
                names[one] = address
        return Copy(names, set())

    def _begin(self, out: Text, top: Operand, height: Operand) -> None:
        """What stands before the columns of each row, and those columns that it is ahead."""
        row, inside = Local(i64), Text()
        copy = self._row(inside, top, row)
        inside.body += copy.body(self.nest.before)
        below = inside.new("subtract", number(self.height - 1), row)
        first = self.nest.inner.start
        ahead = inside.new("multiply", below, number(self.lag))
        stop = inside.new("add", first, inside.new("add", ahead, number(self.first)))
        self._columns(inside, copy, first, stop)
        for local, array in self.state.items():
            inside.add(Store(array, row, copy.operand(local), False))
        out.add(For(row, number(0), height, tuple(inside.body)))

    def _finish(self, out: Text, top: Operand, height: Operand) -> None:
        """The columns that each row is behind, and what stands behind them."""
        row, inside = Local(i64), Text()
        copy = self._row(inside, top, row)
        self._resume(inside, copy, row)
        left = inside.new("multiply", row, number(self.lag))
        last = self.nest.inner.stop
        self._columns(inside, copy, inside.new("subtract", last, left), last)
        inside.body += copy.body(self.nest.after)
        out.add(For(row, number(0), height, tuple(inside.body)))

    def _columns(self, out: Text, copy: Copy, start: Operand, stop: Operand) -> None:
        index = Local(i64)
        inner = Copy(copy.names, set())
        inner.names[self.nest.inner.index] = index
        body = inner.body(self.nest.inner.body)
        out.add(replace(self.nest.inner, index=index, start=start, stop=stop, body=body))

    def _resume(self, out: Text, copy: Copy, row: Operand) -> None:
        """What a row has where it goes on."""
        out.body += copy.body(self.anew)
        for local, array in self.state.items():
            found = Local(local.dtype)
            out.add(Load(found, array, row, False))
            if local.variable:
                variable = copy.operand(local)
                assert isinstance(variable, Local)
                out.add(Assign(variable, found))
            else:
                copy.names[local] = found

    def _together(self, out: Text, top: Operand, steps: Operand) -> None:
        """Columns of all rows of a block, each some columns behind the row before it."""
        columns = self.nest.inner.body
        every, rows = list(statements(columns)), range(self.height)
        copies = [self._row(out, top, number(r)) for r in rows]
        first = self.nest.inner.start
        ahead = [self.first + (self.height - 1 - r) * self.lag for r in rows]
        starts = [out.new("add", first, number(a)) for a in ahead]
        for row, copy in enumerate(copies):
            self._resume(out, copy, number(row))
        for copy in copies:
            for load in self.fixed:
                out.body += copy.body((*makers(columns, load.index), load))
        kept = self._kept(out, copies, starts)
        passed = {load: self._passed(out, load, copies[0], starts[0]) for load in self.shared}
        step, inside = Local(i64), Text()
        latest: dict[tuple[int, Store], Operand] = {}
        found: dict[Load, Operand] = {}
        for row in rows:
            copy = Copy(copies[row].names, set())
            copy.names[self.nest.inner.index] = inside.new("add", starts[row], step)
            known: set[Statement] = set(self.fixed)
            for load in self.shared if row else ():
                ago = row * self.lag
                copy.names[load.out] = passed[load][ago - 1] if ago else found[load]
                known.add(load)
            for load, handed in self.handed.items():
                above = row - handed.above
                if above >= 0:
                    copy.names[load.out] = kept[above, handed.store][handed.ago - 1]
                    known.add(load)
                elif handed.there and load not in columns:
                    # No branch has to keep what is there from being read.
                    inside.body += copy.body((*makers(every, load.index), load))
                    known.add(load)
            found_by = [load.out for load in self.shared]
            rest = without_unused(without(columns, known), (*self.state, *found_by))
            chosen = with_flat_branches(rest, set(self.state), self.extremes)
            inside.body += copy.body(chosen)
            found |= {load: copy.operand(load.out) for load in self.shared if not row}
            for handed in self.handed.values():
                latest[row, handed.store] = copy.operand(handed.store.value)
        handing = [(latest[place], variables) for place, variables in kept.items()]
        handing += [(found[load], variables) for load, variables in passed.items()]
        inside.body += _moved(handing)
        body = tuple(inside.body)
        out.add(replace(self.nest.inner, index=step, start=number(0), stop=steps, body=body))
        for local, array in self.state.items():
            if local.variable:
                for row in rows:
                    out.add(Store(array, number(row), copies[row].operand(local), False))

    def _passed(self, out: Text, load: Load, top: Copy, start: Operand) -> list[Local]:
        """Variables for what the first row found a column ago, two columns ago, and so on."""
        variables = []
        for ago in range(1, (self.height - 1) * self.lag + 1):
            copy = Copy(top.names, set())
            copy.names[self.nest.inner.index] = out.new("subtract", start, number(ago))
            out.body += copy.body((*makers(self.nest.inner.body, load.index), load))
            variable = Local(load.out.dtype, variable=True)
            out.add(Assign(variable, copy.operand(load.out)))
            variables.append(variable)
        return variables

    def _kept(
        self, out: Text, copies: Sequence[Copy], starts: Sequence[Operand]
    ) -> dict[tuple[int, Store], list[Local]]:
        """Variables for what a row stored a column ago, two columns ago, and so on, as far as any
        row reads it, with what lies there at first."""
        longest: dict[tuple[int, Store], int] = {}
        for handed in self.handed.values():
            for row in range(self.height - handed.above):
                place = row, handed.store
                longest[place] = max(longest.get(place, 0), handed.ago)
        kept: dict[tuple[int, Store], list[Local]] = {}
        for (row, store), most in longest.items():
            for ago in range(1, most + 1):
                copy = Copy(copies[row].names, set())
                copy.names[self.nest.inner.index] = out.new("subtract", starts[row], number(ago))
                out.body += copy.body(makers(self.nest.inner.body, store.index))
                found, variable = Local(store.array.dtype), Local(store.array.dtype, variable=True)
                array = pointed(store.array, copy.operand)
                out.add(Load(found, array, copy.operand(store.index), False))
                out.add(Assign(variable, found))
                kept.setdefault((row, store), []).append(variable)
        return kept


def _moved(handing: Sequence[tuple[Operand, Sequence[Local]]]) -> Iterator[Statement]:
    """Hands numbers on from variable to variable. What is new may be in one of them: it is put
    aside before that gets another number."""
    aside: dict[Operand, Local] = {
        v: Local(v.dtype, variable=True) for v, _ in handing if isinstance(v, Local) and v.variable
    }
    yield from (Assign(each, value) for value, each in aside.items())
    for newest, variables in handing:
        moved = list(zip(variables, [aside.get(newest, newest), *variables], strict=False))
        yield from (Assign(variable, value) for variable, value in reversed(moved))


# -- what belongs to a row -----------------------------------------------------------------------


def _own_variables(nest: Nest, outside: Uses, extremes: set[Local]) -> set[Local] | None:
    """The variables that each row sets before it reads them; None if others are in the way. Those
    that only stand in front of the columns, or only behind them, go from row to row as before, and
    so do those that rows compare with what they have found, `extremes`."""
    parts = nest.before, nest.inner.body, nest.after
    touched = [read_by(part).union(assigned(part)) for part in parts]
    compared = {s.value for s in nest.before if isinstance(s, Assign) and s.variable in extremes}
    own: set[Local] = set()
    for variable in assigned(nest.body):
        inside = [variable in each for each in touched]
        if inside[1] or (sum(inside) > 1 and variable not in compared):
            own.add(variable)
    every = (*nest.before, nest.inner, *nest.after)
    alone = sets_first(every, own, set()) and not any(outside[v] for v in own)
    return own if alone else None



def _anew(nest: Nest) -> Body:
    """What stands before the columns and may be computed again: it reads nothing that is written
    and assigns nothing."""
    written = {s.array for s in statements(nest.body) if isinstance(s, Store)}
    kept: list[Statement] = []
    lost: set[Operand] = set()
    for s in nest.before:
        inside = list(statements((s,)))
        moves = any(
            isinstance(e, (Store, Assign))
            or (isinstance(e, Load) and (e.array in written or isinstance(e.array, Pointed)))
            for e in inside
        )
        if moves or lost & read_by((s,)):
            lost |= {o for e in inside for o in bound_by(e)}
        else:
            kept.append(s)
    return tuple(kept)


def _state(nest: Nest, own: set[Local], anew: Body) -> list[Local]:
    """What a row has at the end of its first columns that the others, or what stands behind them,
    read: variables, and what was read in front of the columns."""
    later = read_by((*nest.inner.body, *nest.after))
    before = {o for s in statements(nest.before) for o in bound_by(s)}
    again = {o for s in statements(anew) for o in bound_by(s)}
    found = [
        v for v in own
        if (v in before and v in later) or v in read_by(nest.after)
        or not sets_first(nest.inner.body, {v}, set())
    ]  # fmt: skip
    return [*found, *(o for o in before - again if not o.variable and o in later)]


# -- what is handed on, and whether it pays ------------------------------------------------------


def _waiting(body: Body, carried: set[Local], written: Sequence[Touched]) -> int:
    """Cycles from what rounds before stored or carry to what is stored or carried."""
    ages: dict[Operand, int] = dict.fromkeys(carried, 0)
    for touched in written:
        stores = [a for a in touched.accesses if isinstance(a.statement, Store)]
        for a in touched.accesses:
            own = (s for s in stores if s.row == a.row and s.column > a.column)
            if isinstance(a.statement, Load) and any(own):
                ages[a.statement.out] = 0
    stored = _aged(body, ages)
    # A sum or an extreme that nothing stored hangs on is one of vectors.
    return max([*stored, *(ages[v] for v in carried)]) if stored else 0


def _aged(body: Body, ages: dict[Operand, int]) -> list[int]:
    """The ages of what a body stores; all others are noted."""
    found: list[int] = []
    for s in body:
        known = [ages[o] for o in operands(s) if o in ages]
        match s:
            case Compute(out=out) if known:
                ages[out] = max(known) + latency(s)
            case Assign(variable=variable) if known:
                ages[variable] = max(known)
            case Store(value=value) if value in ages:
                found.append(ages[value])
            case If(then=then, orelse=orelse):
                found += _aged(then, ages) + _aged(orelse, ages)
                for variable in assigned((s,)) if known else ():
                    ages[variable] = max(known[0] + 1, ages.get(variable, 0))
    return found


def _is_address(statement: Statement) -> bool:
    """Whether a statement is a part of an address."""
    if not isinstance(statement, Compute):
        return False
    return statement.primitive in _PLACES and statement.out.dtype == i64


def _handed(body: Body, written: Sequence[Touched], lag: int) -> dict[Load, _Handed]:
    """The loads that find in any round what rows have stored some columns ago: by the only store to
    the array, which is in each round."""
    handed: dict[Load, _Handed] = {}
    order = list(statements(body))
    for touched in written:
        stores = [a for a in touched.accesses if isinstance(a.statement, Store)]
        store = stores[0].statement
        if len(stores) != 1 or store not in body:
            continue
        assert isinstance(store, Store)
        behind = order[order.index(store) :]
        if any(isinstance(s, Assign) and s.variable is store.value for s in behind):
            continue  # what it holds when the round ends is something else
        for access in touched.accesses:
            load = access.statement
            if not isinstance(load, Load):
                continue
            above, back = stores[0].row - access.row, stores[0].column - access.column
            if isinstance(load.array, Pointed) and isinstance(store.array, Pointed):
                above = 1 if load.array.address is not store.array.address else 0
            elif touched.flat and back <= 0 and order.index(load) < order.index(store):
                above = 1
            ago = back + above * lag
            if above >= 0 and 0 < ago <= _MOST_AGO:
                handed[load] = _Handed(store, above, ago, above == 1 and back >= 0)
    return handed
