"""The calls of a recursion laid out in arrays, by a loop over a queue instead of a stack.

In: a `Recursion` and the states of its first calls. Out: code that numbers all calls, those of a
level (as far from the first calls) after each other, and then puts them in the order in which they
can be computed: cases without calls first, then the deepest level, up to the first calls. Dynamic
batching by depth: Looks et al., Deep Learning with Dynamic Computation Graphs (ICLR 2017).

The queue's room is a guess from the sizes of the arrays that hold the tree; where it is too small
the loop starts over with more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, Attrs, If, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.call_trees import Case, Check, Choice, Fails, Recursion, Tree
from pyrelay.opt.elements import integer
from pyrelay.records import dataclass

I64 = TensorType(types.i64)
_BOOL = TensorType(types.bool_)
_MOST_CALLS = 1 << 27


def number(value: int) -> Atom:
    """An integer whose arithmetic does not check for overflow."""
    return constant(value, I64)


@dataclass(eq=False)
class Linear:
    """All calls, in arrays of `count` rows.

    fine: whether no path fails; if one does, there are no groups and nothing to compute, and each
    first call has some row. order: the calls in the order in which they can be computed. place:
    where in it each call is. first: the first call that each call makes; the others follow it.
    numbers: per number of a case, the array that holds it. groups: bounds of the groups in the
    order: one per case without calls, then per level, deepest first, one per case with calls.
    levels: how many of them there are.
    """

    fine: Handle
    count: Extent
    order: Handle
    place: Handle
    first: Handle
    numbers: Sequence[Handle]
    groups: Handle
    levels: Handle


class Lineariser:
    """Writes the code."""

    def __init__(self, recursion: Recursion, builder: Builder) -> None:
        self.recursion, self.builder = recursion, builder
        self.state = [recursion.function.params[k] for k in recursion.state]
        self.slots = max(len(c.numbers) for c in recursion.cases)

    def run(self, roots: Sequence[Handle]) -> Linear:
        """The calls that follow from first calls with these states, one array per number."""
        b = self.builder
        (length,) = {r.shape[0] for r in roots}
        fine, count, found = self._queue(roots, length)
        some = b.cast(b.extent(length), types.i64)
        size = as_extent(b, b.call(OPS["where"], fine, count, some))
        run = b.call(OPS["where"], fine, count, number(0))
        depth, first, case, *numbers = (
            b.call(OPS["slice"], a, starts=(0,), sizes=(size,), steps=(1,))
            for a in found[len(self.state):]
        )
        last = b.call(OPS["maximum"], b.call(OPS["subtract"], run, number(1)), number(0))
        deepest = b.call(OPS["index"], found[len(self.state)], last, axes=(0,))
        levels = b.call(OPS["where"], fine, deepest, number(0))
        groups, order, place = self._sorted(size, run, depth, case, levels)
        return Linear(fine, size, order, place, first, numbers, groups, levels)

    # -- the queue ---------------------------------------------------------------------------------

    def _queue(
        self, roots: Sequence[Handle], length: Extent
    ) -> tuple[Handle, Handle, tuple[Handle, ...]]:
        """Whether no call fails, how many calls there are, and the arrays of the queue."""
        b, spare = self.builder, self.recursion.most_calls
        sizes = [
            p.type.shape[0] for p in self.recursion.function.params
            if isinstance(p.type, TensorType) and p.type.rank == 1 and p.type.dtype.kind == "i"
        ]
        guess: Extent = 0
        for size in sizes:
            guess = dims.maximum(guess, size)
        room = b.extent(dims.add(guess, dims.add(length, spare)))
        held = Symbol("d", Origin.RUNTIME)
        arrays = len(self.state) + 3 + self.slots
        carried = (
            Var("room", I64), Var("fine", _BOOL), Var("made", I64), Var("done", I64),
            *(Var("q", TensorType(types.i64, (dims.of(held),))) for _ in range(arrays)),
        )
        init = (
            b.cast(room, types.i64), constant(True, _BOOL), number(1), number(0),
            *(b.undef(TensorType(types.i64, (0,))).atom for _ in range(arrays)),
        )
        test = b.nested()
        left = test.call(OPS["less"], carried[3], carried[2])
        small = test.call(OPS["less"], carried[0], number(_MOST_CALLS))
        both = test.call(OPS["logical_and"], left, small)
        going = test.call(OPS["logical_and"], carried[1], both)
        body = b.nested()
        size = as_extent(body, body.handle(carried[0]))
        fine, made, done, *queue = self._fill(body, roots, length, size)
        twice = body.call(OPS["multiply"], carried[0], number(4))
        loop = Loop(
            carried, init, replace(body.block([twice, fine, made, done, *queue]), dims=(size,)),
            test=test.block([going]), dims=(held,), init_dims=(0,),
        )
        last = Symbol("d", Origin.RUNTIME)
        mapping: dict[Symbol, Extent] = {held: dims.of(last)}
        outs = b.bind(
            loop, [types.substitute(v.type, mapping) for v in carried if v.type], dims=(last,)
        )
        complete = b.call(OPS["less_equal"], outs[2], outs[3])
        return b.call(OPS["logical_and"], outs[1], complete), outs[2], outs[4:]

    def _fill(
        self, builder: Builder, roots: Sequence[Handle], length: Extent, size: Extent
    ) -> list[Handle]:
        """One attempt at the queue, in arrays of this size: what the loop around carries."""
        spare = self.recursion.most_calls
        empty = builder.zeros(TensorType(types.i64, (size,)))
        states = [
            builder.call(OPS["slice_update"], empty, r, starts=(0,), sizes=(length,), steps=(1,))
            for r in roots
        ]
        init = [
            constant(True, _BOOL), builder.cast(builder.extent(length), types.i64), number(0),
            *(a.atom for a in states), *[empty.atom] * (3 + self.slots),
        ]
        carried = tuple(Var("c", a.type) for a in init)
        fine, made, done, *queue = carried
        test = builder.nested()
        left = test.call(OPS["less"], done, made)
        ends = test.call(OPS["add"], made, number(spare))
        fits = test.call(OPS["less_equal"], ends, test.cast(test.extent(size), types.i64))
        going = test.call(OPS["logical_and"], left, test.call(OPS["logical_and"], fine, fits))
        body = builder.nested()
        following = self._step(body, made, done, queue)
        loop = Loop(carried, tuple(init), body.block(following), test=test.block([going]))
        return list(builder.bind(loop, [v.type for v in carried]))  # type: ignore[misc]

    def _step(
        self, body: Builder, made: Atom, done: Atom, queue: Sequence[Atom]
    ) -> list[Handle]:
        """Take a call from the queue and put those that it makes behind the others."""
        count = len(self.state)
        states, (depth, first, case), numbers = (
            queue[:count], queue[count : count + 3], queue[count + 3 :]
        )
        for var, column in zip(self.state, states, strict=True):
            value = body.call(OPS["index"], column, done, axes=(0,))
            assert isinstance(var.type, TensorType)
            attrs = {"dtype": var.type.dtype, "weak": var.type.weak}
            body.lets.append(_cast_to(var, value, attrs))
        fine, kind, calls, *rest = self._tree(body, self.recursion.tree)
        children = rest[: self.recursion.most_calls * count]
        found = rest[self.recursion.most_calls * count :]
        level = body.call(OPS["add"], body.call(OPS["index"], depth, done, axes=(0,)), number(1))
        new_states, new_depth = list(states), depth
        for k in range(self.recursion.most_calls):
            at = body.call(OPS["add"], made, number(k))
            for j in range(count):
                new_states[j] = _stored(body, new_states[j], children[k * count + j], at)
            new_depth = _stored(body, new_depth, level, at)
        return [
            fine, body.call(OPS["add"], made, calls), body.call(OPS["add"], done, number(1)),
            *map(body.handle, new_states), body.handle(new_depth),
            body.handle(_stored(body, first, body.handle(made), done)),
            body.handle(_stored(body, case, kind, done)),
            *(body.handle(_stored(body, a, v, done)) for a, v in zip(numbers, found, strict=True)),
        ]

    def _tree(self, builder: Builder, tree: Tree) -> list[Handle]:
        """Whether a call goes well, its case, how many calls it makes, their states, numbers."""
        builder.lets += tree.lets
        end = tree.end
        if isinstance(end, Case):
            return [builder.handle(a) for a in self._of_case(builder, end)]
        if isinstance(end, Fails):
            return [builder.handle(a) for a in self._failed()]
        if isinstance(end, Choice):
            return _either(
                builder, end.cond, lambda b: self._tree(b, end.then),
                lambda b: self._tree(b, end.orelse),
            )
        assert isinstance(end, Check)
        call = end.let.rhs
        assert isinstance(call, OpCall)
        position = builder.handle(builder.cast(call.args[0], types.i64))
        size = builder.handle(builder.cast(builder.extent(call.attrs["size"]), types.i64))
        low = builder.call(OPS["add"], position, size) < number(0)
        beyond = builder.call(OPS["logical_or"], low, position >= size)

        def inside(b: Builder) -> list[Handle]:
            (out,) = end.let.outs
            from_end = b.call(OPS["add"], position, size)
            where = b.call(OPS["where"], b.handle(position) < number(0), from_end, position)
            b.lets.append(_cast_to(out, where, {"dtype": types.i64, "weak": True}))
            return self._tree(b, end.rest)

        return _either(
            builder, beyond.atom, lambda b: [b.handle(a) for a in self._failed()], inside
        )

    def _failed(self) -> list[Atom]:
        rest = self.recursion.most_calls * len(self.state) + self.slots
        return [constant(False, _BOOL), *[number(0)] * (2 + rest)]

    def _of_case(self, builder: Builder, case: Case) -> list[Atom]:
        cast = [builder.cast(a, types.i64) for _, state in case.calls for a in state]
        missing = self.recursion.most_calls * len(self.state) - len(cast)
        found = [builder.cast(a, types.i64) for a in case.numbers]
        return [
            constant(True, _BOOL), number(self.recursion.cases.index(case)),
            number(len(case.calls)), *cast, *[number(0)] * missing, *found,
            *[number(0)] * (self.slots - len(found)),
        ]

    # -- the order ---------------------------------------------------------------------------------

    def _sorted(
        self, size: Extent, run: Handle, depth: Handle, case: Handle, levels: Handle
    ) -> tuple[Handle, Handle, Handle]:
        """Bounds of the groups, the calls by group, and the place of each (counting sort).

        Of the first `run` calls, in arrays of `size`.
        """
        b, leaves = self.builder, self.recursion.leaves
        several = len(self.recursion.cases) - leaves

        def group(inner: Builder, i: Handle) -> Handle:
            kind = inner.call(OPS["index"], case, i, axes=(0,))
            height = inner.call(
                OPS["subtract"], levels, inner.call(OPS["index"], depth, i, axes=(0,))
            )
            before = inner.call(OPS["multiply"], height, number(several))
            later = inner.call(OPS["add"], before, kind)
            is_leaf = inner.call(OPS["less"], kind, number(leaves))
            found: Handle = inner.call(OPS["where"], is_leaf, kind, later)
            return found

        many = b.call(OPS["multiply"], b.call(OPS["add"], levels, number(1)), number(several))
        groups = as_extent(b, b.call(OPS["add"], many, number(leaves)))
        bounds = b.zeros(TensorType(types.i64, (dims.add(groups, 1),)))
        whole = b.cast(run, types.i64, weak=True)

        def count(inner: Builder, i: Handle, carried: Sequence[Handle]) -> list[Handle]:
            at = inner.call(OPS["add"], group(inner, i), number(1))
            return [inner.call(OPS["index_add"], carried[0], number(1), at, axes=(0,))]

        (bounds,) = b.counted(whole, [bounds], count)

        def total(inner: Builder, i: Handle, carried: Sequence[Handle]) -> list[Handle]:
            before = inner.call(OPS["index"], carried[0], i, axes=(0,))
            after = inner.call(OPS["add"], integer(inner, i), number(1))
            return [inner.call(OPS["index_add"], carried[0], before, after, axes=(0,))]

        (bounds,) = b.counted(b.extent(groups), [bounds], total)
        blank = b.zeros(TensorType(types.i64, (size,)))

        def put(inner: Builder, i: Handle, carried: Sequence[Handle]) -> list[Handle]:
            free, order, place = carried
            own = group(inner, i)
            at = inner.call(OPS["index"], free, own, axes=(0,))
            here = integer(inner, i)
            return [
                inner.call(OPS["index_add"], free, number(1), own, axes=(0,)),
                inner.call(OPS["index_update"], order, here, at, axes=(0,)),
                inner.call(OPS["index_update"], place, at, i, axes=(0,)),
            ]

        _, order, place = b.counted(whole, [bounds, blank, blank], put)
        return bounds, order, place


def as_extent(builder: Builder, value: Handle) -> Extent:
    """An extent of this value, which is not negative."""
    _, (extent,) = builder.call(OPS["as_extent"], value, name="n")
    found: Extent = extent
    return found


def _stored(builder: Builder, array: Atom, value: Handle, at: Handle | Atom) -> Atom:
    atom: Atom = builder.call(OPS["index_update"], array, value, at, axes=(0,)).atom
    return atom


def _cast_to(var: Var, value: Handle, attrs: dict[str, object]) -> Let:
    """`var` bound to a number, cast to its type."""
    return Let((var,), OpCall(OPS["cast"], (value.atom,), Attrs(**attrs)))


def _either(
    builder: Builder, cond: Atom, then: Callable[[Builder], list[Handle]],
    orelse: Callable[[Builder], list[Handle]],
) -> list[Handle]:
    blocks = []
    for write in (then, orelse):
        inner = builder.nested()
        blocks.append(inner.block(write(inner)))
    kinds = [a.type for a in blocks[0].results]
    return list(builder.bind(If(cond, blocks[0], blocks[1]), kinds))  # type: ignore[arg-type]
