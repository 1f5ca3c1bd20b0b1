"""Reverse mode through loops.

In: a `Loop` of the forward block and the cotangents of its outputs. Out: the forward loop, which
also keeps what the backward pass needs of each iteration, and in the sink a backward loop that runs
through the iterations in reverse order. A backward loop is always counted.

* A value whose type does not vary, of a loop whose trip count is known at entry, is kept in an
  array with one row per iteration: the forward loop writes row i, the backward loop reads it.
* Everything else goes to the tape: pushed at the end of each iteration, popped in reverse. The
  forward loop counts its iterations.
* What is the same in every iteration is computed again, once, before the backward loop.
* Cotangents of values from outside the loop are carried by the backward loop and updated in place,
  but those of matrices in matrix products, and of what is added to these, are formed after it
  (`products`).
"""

from __future__ import annotations

from dataclasses import field, replace

from pyrelay.grad.branches import needed_symbols
from pyrelay.grad.cotangents import Sink, cotangent_type, is_static, zero
from pyrelay.grad.products import Bias, Product, Products, Rows, rows_of, taken_over, total
from pyrelay.grad.residuals import invariant_lets, live_lets, repeat, select, typical
from pyrelay.grad.reverse import Flow, Walker
from pyrelay.grad.tape import pop, push, rebind
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Let, Loop, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TAPE, TapeType, TensorType
from pyrelay.records import dataclass

_I64 = TensorType(types.i64)


def reverse_loop(walker: Walker, let: Let, sink: Sink, flow: Flow) -> list[Let]:
    """Reverse a `Loop`; returns the forward Lets that replace it."""
    loop = let.rhs
    assert isinstance(loop, Loop)
    cotangents = [sink.take(out) for out in let.outs]
    if all(g is None for g in cotangents):
        return [let]
    if loop.index is None:
        loop = replace(loop, index=Var("i", types.PY_INT, span=let.span))
    around = set(walker.volatile)
    walker.enter(walk.block_binders(loop), walk.blocks(loop))
    iteration = _reverse_iteration(walker, loop, sink, nested=bool(around))
    walker.volatile = around
    saving = _Saving(walker, loop, iteration)
    forward = _forward(walker, let, loop, iteration, saving, flow)
    _backward(walker, let, loop, iteration, saving, forward, cotangents, sink)
    return forward.lets


@dataclass(slots=True)
class _Iteration:
    """One iteration: its forward Lets, and its backward code before residuals."""

    test: list[Let]
    body: list[Let]
    flow: Flow
    tape: Var  # the tape as the backward code finds it
    live: list[int]  # carried values with a cotangent, carried by the backward loop as `cotangents`
    cotangents: list[Var]
    outer: list[Var]  # variables from outside whose cotangent is carried as `accumulators`
    accumulators: list[Var]
    backward: list[Let]
    results: list[Atom]  # next cotangents and accumulators, then the tape if the loop uses it
    last_tape: Atom
    symbols: dict[Symbol, Symbol]  # a carried extent -> its symbol in the backward loop
    products: list[Product]  # cotangents of matrices, formed after the loop
    rows: list[Rows]  # of arrays that are read row by row, written down by the loop
    biases: list[Bias]  # of vectors that are added to products, summed after the loop

    @property
    def written_down(self) -> list[Atom]:
        """What the backward loop writes down of each iteration."""
        return taken_over(self.products, self.rows, self.biases)


def _reverse_iteration(walker: Walker, loop: Loop, sink: Sink, *, nested: bool) -> _Iteration:
    child, flow, tape = sink.child(), Flow(), Var("tape", TAPE)
    child.tape = tape
    symbols = {s: Symbol(s.name, s.origin, most=s.most) for s in loop.dims}
    renamed: dict[Symbol, Extent] = {s: dims.of(e) for s, e in symbols.items()}
    live = [
        k for k, v in enumerate(loop.carried)
        if v in walker.active and not isinstance(v.type, TapeType)
    ]
    cotangents = [
        Var("g", types.substitute(cotangent_type(loop.carried[k].type), renamed)) for k in live
    ]
    outer = [v for v in _outer_reads(walker, loop) if v in walker.active]
    accumulators = [Var("g", cotangent_type(v.type)) for v in outer]
    for var, accumulator in zip(outer, accumulators, strict=True):
        child.values[var] = child.builder.handle(accumulator)
    results = loop.body.results[loop.exits:]
    for k, g in zip(live, cotangents, strict=True):
        child.add(results[k], child.builder.handle(g))
    tapes = [k for k, v in enumerate(loop.carried)
             if v in walker.active and isinstance(v.type, TapeType)]
    tape_cotangents = [Var("g", TAPE) for _ in tapes]
    for k, g in zip(tapes, tape_cotangents, strict=True):
        child.add(results[k], child.builder.handle(g))
    products = Products(walker, loop, outer, nested)
    if is_counted(loop):
        child.postpone = products.postpone
    body = walker.lets(loop.body.lets, child, flow)
    child.postpone = None
    body = walker.late(walk.block_binders(loop)) + body
    test: list[Let] = []
    if loop.test is not None:
        for var, handed in zip(loop.handed, loop.test.results[1:], strict=True):
            child.add(handed, child.take(var))
        test_flow = Flow()
        test = walker.lets(loop.test.lets, child, test_flow)
        assert not test_flow.used, "a test with control flow was not rotated"
    following = [child.get(loop.carried[k]).atom for k in live + tapes]
    changed = [
        k for k, v in enumerate(outer) if child.values[v].atom is not accumulators[k]
    ]
    following += [child.values[outer[k]].atom for k in changed]
    needed = following + taken_over(products.found, products.rows, products.biases)
    return _Iteration(
        test, body, flow, tape, live + tapes, cotangents + tape_cotangents,
        [outer[k] for k in changed], [accumulators[k] for k in changed],
        live_lets(child.builder.lets, needed, walker.backward), following, child.tape, symbols,
        products.found, products.rows, products.biases,
    )


def is_counted(loop: Loop) -> bool:
    """True if the trip count is known at entry and no carried extent changes."""
    return loop.count is not None and loop.test is None and not loop.exits and not loop.dims


def _trips(walker: Walker, loop: Loop) -> int:
    """A guess at the trip count, 1 if nothing is known about it."""
    extent = None if loop.count is None else walker.known_extent(loop.count)
    return 1 if extent is None or loop.exits else max(1, typical(extent))


def _outer_reads(walker: Walker, loop: Loop) -> list[Var]:
    """Variables from outside the loop that its blocks read."""
    found: dict[Var, None] = {}
    for block in walk.blocks(loop):
        found.update(dict.fromkeys(walker.source.free(block)))
    binders = set(walk.block_binders(loop))
    return [v for v in found if v not in binders]


class _Saving:
    """Which values of an iteration are saved, and where.

    arrays: in an array with one row per iteration. pushed: on the tape. array_symbols and
    pushed_symbols: extents bound in the iteration, saved as integers in the same places.
    """

    def __init__(self, walker: Walker, loop: Loop, iteration: _Iteration) -> None:
        lets = iteration.test + iteration.body
        binders = set(walk.block_binders(loop))
        bound_symbols = {s for let in lets for s in let.dims} | set(loop.dims)
        ends = iteration.results + iteration.written_down
        code = Block(tuple(iteration.backward), tuple(ends))
        invariant = invariant_lets(lets, binders, loop.dims)
        leaves = loop.carried + loop.handed
        needed = list(walker.backward.free(code))
        needed += [p.other for p in iteration.products if p.sequence is None]
        unsaved: set[Var] = set()
        while True:
            chosen = select(
                lets, needed, leaves, invariant, walker.volatile, _trips(walker, loop), unsaved
            )
            self.once = [let for let in chosen.repeated if let in invariant]
            # What is computed again before the backward loop reads nothing of its iterations.
            read = {a for let in self.once for a in walk.operands(let.rhs)}
            if read.isdisjoint(chosen.saved):
                break
            unsaved.update(v for v in chosen.saved if v in read)
        self.repeated = [let for let in chosen.repeated if let not in invariant]
        symbols = needed_symbols(code, chosen, bound_symbols, walker.backward)
        symbols += [s for s in loop.dims if s not in symbols]
        self.counted = is_counted(loop)
        self.arrays: list[Var] = []
        self.pushed: list[Var] = []
        for var in chosen.saved:
            static = self.counted and is_static(var.type, bound_symbols)
            (self.arrays if static else self.pushed).append(var)
        self.length: Extent | None = None
        self.array_symbols = symbols if self.counted else []
        self.pushed_symbols = [] if self.counted else symbols
        if self.arrays or self.array_symbols or iteration.written_down:
            assert loop.count is not None
            self.length = walker.extent_of(loop.count)
        self.on_tape = bool(self.pushed or self.pushed_symbols)


@dataclass(slots=True)
class _Forward:
    """The forward loop and the names of what it leaves."""

    lets: list[Let] = field(default_factory=list)
    arrays: list[Var] = field(default_factory=list)  # of saved values, then of symbols
    count: Atom | None = None
    tape: bool = False


class _Extended:
    """A loop under extension with more carried values."""

    def __init__(self) -> None:
        self.carried: list[Var] = []
        self.init: list[Atom] = []
        self.results: list[Atom] = []
        self.outs: list[Var] = []

    def add(self, carried: Var, init: Atom, result: Atom, out: Var) -> None:
        self.carried.append(carried)
        self.init.append(init)
        self.results.append(result)
        self.outs.append(out)


def _forward(
    walker: Walker, let: Let, loop: Loop, iteration: _Iteration, saving: _Saving, flow: Flow
) -> _Forward:
    """The forward loop with everything it saves."""
    forward = _Forward()
    before = Builder(let.span)
    body = Builder(let.span)
    body.lets += iteration.body
    more = _Extended()
    handed, names = _hand_over(loop, iteration, saving)
    _save_rows(before, body, more, saving, forward, loop.index)
    forward.tape = saving.on_tape or iteration.flow.used
    if forward.tape:
        values = [names.get(v, v) for v in saving.pushed]
        tape = push(body, iteration.flow.end, values, saving.pushed_symbols)
        start, out = flow.step()
        more.add(iteration.flow.current, start, tape, out)
    if loop.count is not None and saving.counted:
        forward.count = loop.count
    else:
        counter, total = Var("count", _I64), Var("count", _I64, span=let.span)
        following = body.call(OPS["add"], counter, constant(1, _I64)).atom
        more.add(counter, constant(0, _I64), following, total)
        forward.count = total
    test = loop.test
    if test is not None:
        test = Block(tuple(iteration.test), test.results + tuple(handed.values()), test.dims)
    node = Loop(
        loop.carried + tuple(more.carried), loop.init + tuple(more.init),
        Block(tuple(body.lets), loop.body.results + tuple(more.results), loop.body.dims),
        test, loop.handed + tuple(handed), loop.count, loop.index, loop.exits, loop.dims,
        loop.init_dims,
    )
    forward.lets = [*before.lets, Let(let.outs + tuple(more.outs), node, let.dims, span=let.span)]
    return forward


def _hand_over(
    loop: Loop, iteration: _Iteration, saving: _Saving
) -> tuple[dict[Var, Atom], dict[Var, Atom]]:
    """Values of the test that are saved in the body: new `handed` variables, and their names."""
    bound = {o for let in iteration.test for o in let.outs}
    handed: dict[Var, Atom] = {}
    names: dict[Var, Atom] = {}
    for var in saving.pushed:
        if var in bound:
            copy = Var(var.name, var.type, span=var.span)
            handed[copy] = var
            names[var] = copy
    return handed, names


def _save_rows(
    before: Builder, body: Builder, more: _Extended, saving: _Saving, forward: _Forward,
    index: Var | None,
) -> None:
    """Save values of an iteration in arrays."""
    values = [body.handle(v) for v in saving.arrays]
    values += [body.extent(dims.of(s)) for s in saving.array_symbols]
    for value in values:
        assert index is not None
        assert saving.length is not None
        out = _carry_rows(before, body, more, value, saving.length, index)
        forward.arrays.append(out)


def _carry_rows(
    before: Builder, body: Builder, more: _Extended, value: Handle, length: Extent, index: Atom
) -> Var:
    """Let a loop carry an array and write `value` to its row `index`; the array after the loop."""
    ty = TensorType(value.dtype, (length, *value.shape))
    carried, out = Var("rows", ty, span=before.span), Var("rows", ty, span=before.span)
    row = body.cast(value, value.dtype)
    written = body.call(OPS["index_update"], carried, row, index, axes=(0,), name="rows")
    more.add(carried, before.undef(ty).atom, written.atom, out)
    return out


def _backward(
    walker: Walker, let: Let, loop: Loop, iteration: _Iteration, saving: _Saving,
    forward: _Forward, cotangents: list[Handle | None], sink: Sink,
) -> None:
    """Write the backward loop and add the cotangents of what entered the forward loop."""
    builder, names = sink.builder, walker.names
    for once in saving.once:
        repeat(builder, once, names)
    inner = builder.nested()
    step = Var("k", types.PY_INT, span=let.span)
    count, position = _position(builder, inner, forward, step)
    if loop.index is not None:
        names.atoms[loop.index] = position.atom
    more = _Extended()
    tape = _restore(inner, names, saving, forward, iteration, position)
    for repeated in saving.repeated:
        repeat(inner, repeated, names)
    inner.lets += iteration.backward
    written: dict[Atom, Atom] = {}
    for cotangent in dict.fromkeys(iteration.written_down):
        assert saving.length is not None
        row = inner.handle(names.atom(cotangent))
        written[cotangent] = _carry_rows(builder, inner, more, row, saving.length, position.atom)
    others = [
        _others(product, builder, inner, more, saving, forward, names, position)
        for product in iteration.products
    ]
    if forward.tape:
        after = Var("tape", TAPE, span=let.span)
        more.add(tape, sink.tape, names.atom(iteration.last_tape), after)
        sink.tape = after
    init = [
        g.atom if (g := cotangents[k]) is not None
        else zero(builder, cotangent_type(let.outs[k].type)).atom
        for k in iteration.live
    ]
    sink.updated.update(v for v in iteration.outer if v not in sink.values)
    init += [sink.get(v).atom for v in iteration.outer]
    results = [names.atom(a) for a in iteration.results] + more.results
    own = iteration.cotangents + iteration.accumulators
    node = Loop(
        (*own, *more.carried), (*init, *more.init),
        inner.block(results, [names.extent(dims.of(s)) for s in loop.dims]),
        count=count, index=step, dims=tuple(iteration.symbols.values()),
        init_dims=tuple(dims.of(s) for s in let.dims),
    )
    last = walk.Renaming()
    symbols = tuple(last.symbol(s) for s in iteration.symbols.values())
    outs = tuple(last.var(v) for v in own)
    builder.lets.append(Let((*outs, *more.outs), node, symbols, span=let.span))
    middle = len(iteration.live)
    for var, out in zip(iteration.outer, outs[middle:], strict=True):
        sink.values[var] = builder.handle(out)
    for product, other in zip(iteration.products, others, strict=True):
        assert saving.length is not None
        all_rows = written[product.cotangent]
        sink.add(product.matrix, total(product, builder, other, all_rows, saving.length))
    for rows in iteration.rows:
        sink.add(rows.array, builder.handle(written[rows.cotangent]))
    for bias in iteration.biases:
        summed = builder.call(OPS["sum"], written[bias.cotangent], axes=(0, 1), keepdims=False)
        assert isinstance(bias.vector.type, TensorType)
        if bias.vector.type.rank == 2:
            summed = builder.call(OPS["expand_dims"], summed, axes=(0,))
        sink.add(bias.vector, summed)
    for k, out in zip(iteration.live, outs[:middle], strict=True):
        sink.add(loop.init[k], builder.handle(out))


def _others(
    product: Product, builder: Builder, inner: Builder, more: _Extended, saving: _Saving,
    forward: _Forward, names: walk.Renaming, position: Handle,
) -> Atom:
    """All rows of the other operand of a postponed product, as an array that exists after the
    loop."""
    length = saving.length
    assert length is not None
    if product.sequence is not None and not product.needs_turning:
        return product.sequence
    if product.other in saving.arrays and not product.needs_turning:
        return forward.arrays[saving.arrays.index(product.other)]
    if product.sequence is not None:
        value = inner.call(OPS["index"], product.sequence, position, axes=(0,))
    else:
        value = inner.handle(names.atom(product.other))
    turned = rows_of(product, inner, value.atom)
    return _carry_rows(builder, inner, more, turned, length, position.atom)


def _position(
    builder: Builder, inner: Builder, forward: _Forward, step: Var
) -> tuple[Atom, Handle]:
    """The trip count of the backward loop, and the forward index as a Python int.

    Written with NumPy's integers, which do not check for overflow.
    """
    assert forward.count is not None
    count = builder.handle(builder.cast(forward.count, types.i64))
    last = builder.call(OPS["subtract"], count, constant(1, _I64))
    back = inner.call(OPS["subtract"], last, inner.cast(step, types.i64), name="i")
    position = inner.handle(inner.cast(back, types.i64, weak=True))
    return builder.cast(forward.count, types.i64, weak=True), position


def _restore(
    inner: Builder, names: walk.Renaming, saving: _Saving, forward: _Forward,
    iteration: _Iteration, position: Handle,
) -> Var:
    """Read the saved values of an iteration back; the tape variable that the loop may carry."""
    split = len(saving.arrays)
    for var, rows in zip(saving.arrays, forward.arrays[:split], strict=True):
        names.atoms[var] = _row(inner, rows, position, var)
    for symbol, rows in zip(saving.array_symbols, forward.arrays[split:], strict=True):
        size = inner.call(OPS["index"], rows, position, axes=(0,))
        rebind(inner, symbol, size, names)
    if not saving.on_tape:
        return iteration.tape
    start = Var("tape", TAPE)
    names.atoms[iteration.tape] = pop(
        inner, start, saving.pushed, saving.pushed_symbols, names
    )
    return start


def _row(inner: Builder, rows: Var, position: Handle, var: Var) -> Atom:
    assert isinstance(var.type, TensorType)
    value = inner.call(OPS["index"], rows, position, axes=(0,), name=var.name)
    return inner.cast(value, var.type.dtype, weak=var.type.weak)

