"""Arrays that are filled with one number, for loops that write them.

In: a module in which no op is merged with another any more. Out: the module in which each loop that
starts from such an array has one of its own, as a filled array costs less than a copy of it; and in
which one that the loop writes to the last element, before it reads any, is a placeholder (`undef`),
which nothing fills:

    out = np.empty(n)
    for i in range(n): out[i] = ...

What `np.empty` makes may hold anything, as in NumPy: if it is not small, nothing fills it either
for a loop that writes some of it, such as a heap or a stack. Where derivatives are taken it is
zeros (`grad/expand`), as products by a cotangent of 0 would be no zeros for what may be NaN.

A loop writes all if it has as many rounds as the array is long, each of which writes the element,
or the row, at its index: in its body, in both arms of a branch, or in a loop over the rest of the
row. Between that and the end of the round only what this round has written may be read.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from operator import is_

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Block, Const, Function, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite
from pyrelay.opt.shapes import is_array, shape_of

_STARTS = places.UPDATES - {"commit"}
_MOST_WRITTEN_OUT = 16  # elements that a round writes one by one

LARGEST_IN_FRAMES = 256
"""Elements of an array; larger ones lie in memory (`lower/kernels/program_arrays`)."""


def fills(module: Module) -> Module:
    """Give each loop a filled array of its own, or one that is not filled."""
    return module.holding({name: _in_function(f) for name, f in module.functions.items()})


def _in_function(function: Function) -> Function:
    if not any(walk.is_call(let, "broadcast_to") for let in walk.nested_lets(function.body)):
        return function
    lengths: dict[Var, object] = {}
    for let in walk.nested_lets(function.body):
        if walk.is_call(let, "extent"):
            lengths[let.outs[0]] = walk.call_of(let).attrs["size"]
    uses = walk.use_counts(function.body)

    def own(array: Atom, builder: Builder, scope: Scope) -> Atom:
        """What a loop or an update starts from that nothing else reads."""
        filled = scope.op(array, "broadcast_to")
        shared = isinstance(array, Var) and is_array(array) and uses.get(array, 0) > 1
        if filled is None or not shared or not isinstance(filled.args[0], Const):
            return array
        return builder.call(filled.op, filled.args[0], **filled.attrs).atom

    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        match let.rhs:
            case Loop() as loop:
                init = [start(each, loop, k, builder, scope) for k, each in enumerate(loop.init)]
                if all(map(is_, init, loop.init)):
                    return None
                builder.lets.append(replace(let, rhs=replace(loop, init=tuple(init))))
            case OpCall(args=args) as call if call.op.name in _STARTS:
                array = own(args[0], builder, scope)
                if array is args[0]:
                    return None
                builder.lets.append(replace(let, rhs=replace(call, args=(array, *args[1:]))))
            case _:
                return None
        return Replaced(let.outs, tuple(map(dims.of, let.dims)))

    def start(first: Atom, loop: Loop, k: int, builder: Builder, scope: Scope) -> Atom:
        """What carried value `k` of a loop starts from."""
        filled = scope.op(first, "broadcast_to")
        if filled is None or not is_array(first) or not isinstance(filled.args[0], Const):
            return first
        if not _may_hold_anything(filled, first) and not writes.loop(loop, k, ()):
            return own(first, builder, scope)
        assert first.type is not None
        return builder.undef(first.type).atom

    writes = _Writes(lengths)
    return rewrite(function, rule)


def _may_hold_anything(filled: OpCall, array: Atom) -> bool:
    """Whether an array is one of `np.empty` that will not lie in a kernel's frame: there LLVM would
    know that nobody has written an element, which may then be another number each time it is read,
    also between a check of it and what the check is for."""
    ty = array.type
    assert isinstance(ty, TensorType)
    if not filled.attrs.get("arbitrary") or ty.dtype is types.bool_:
        return False  # bytes that are neither 0 nor 1 are no truth values
    sizes = [size for size in ty.shape if isinstance(size, int)]
    return len(sizes) < len(ty.shape) or math.prod(sizes) > LARGEST_IN_FRAMES


class _Writes:
    """Whether parts of a program write all of an array before they read of it."""

    def __init__(self, lengths: dict[Var, object]) -> None:
        self.lengths = lengths

    def loop(self, loop: Loop, k: int, at: tuple[Atom, ...]) -> bool:
        """Whether a loop writes all of carried value `k` at the indices `at` of its first axes."""
        shape = shape_of(loop.carried[k])
        endless = loop.test is not None or loop.exits or loop.dims or loop.index is None
        if endless or len(at) == len(shape) or not self._is(loop.count, shape[len(at)]):
            return False
        assert loop.index is not None
        return self.block(loop.body, loop.carried[k], loop.body.results[k], (*at, loop.index))

    def _is(self, count: Atom | None, size: object) -> bool:
        if isinstance(count, Const):
            return bool(count.value == size)
        return isinstance(count, Var) and self.lengths.get(count) == size

    def block(self, block: Block, array: Var, result: Atom, at: tuple[Atom, ...]) -> bool:
        """Whether a block writes all at `at` on its way from `array` to `result`."""
        rest = shape_of(array)[len(at) :]
        waiting: set[tuple[int, ...]] | None = None  # what is left to write one by one
        written = False
        present: Atom = array
        for let in block.lets:
            if not _reads(let, present):
                continue
            match let.rhs:
                case OpCall() as call if call.op.name == "index_update" and call.args[0] is present:
                    if present in call.args[1:]:
                        return False
                    place = _place(call)
                    if place is not None and place == at:
                        written = True
                    elif not written and place is not None and place[: len(at)] == at:
                        if waiting is None:
                            waiting = _elements(rest)
                        waiting.discard(_numbers(place[len(at) :]))
                        written = not waiting and place[len(at) :] != ()
                    elif not written:
                        return False
                    present = let.outs[0]
                case OpCall() as call if call.op.name == "index" and call.args[0] is present:
                    if not written or _place(call, 1) != at:
                        return False
                case Loop() as loop if loop.init.count(present) == 1 and not written:
                    k = loop.init.index(present)
                    if _inside(let, present) or not self.loop(loop, k, at):
                        return False
                    written, present = True, let.outs[k]
                case If() as branch if not written and _is_only_inside(let, present):
                    out = self._arms(let, branch, present, at)
                    if out is None:
                        return False
                    written, present = True, out
                case _:
                    return False
        return written and present is result

    def _arms(self, let: Let, branch: If, array: Atom, at: tuple[Atom, ...]) -> Var | None:
        """The output of a branch both arms of which write all."""
        assert isinstance(array, Var)
        found = [
            out for k, out in enumerate(let.outs)
            if out.type == array.type
            and all(self.block(b, array, b.results[k], at) for b in (branch.then, branch.orelse))
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None


def _reads(let: Let, atom: Atom) -> bool:
    return any(a is atom for a in walk.operands(let.rhs)) or _inside(let, atom)


def _inside(let: Let, atom: Atom) -> bool:
    """Whether blocks inside a Let read an atom."""
    return any(v is atom for block in walk.blocks(let.rhs) for v in walk.free_vars(block))


def _is_only_inside(let: Let, atom: Atom) -> bool:
    return not any(a is atom for a in walk.operands(let.rhs))


def _place(call: OpCall, first: int = 2) -> tuple[Atom, ...] | None:
    """The indices of the first axes at which an op reads or writes; None for others."""
    places = call.args[first:]
    return tuple(places) if call.attrs["axes"] == tuple(range(len(places))) else None


def _elements(shape: tuple[object, ...]) -> set[tuple[int, ...]]:
    """The indices of the elements of a small array; one that is never written for others."""
    number = 1
    for size in shape:
        number = number * size if isinstance(size, int) else _MOST_WRITTEN_OUT + 1
    if not 0 < number <= _MOST_WRITTEN_OUT:
        return {()}
    return set(product(*(range(size) for size in shape if isinstance(size, int))))


def _numbers(place: tuple[Atom, ...]) -> tuple[int, ...]:
    return tuple(int(p.value) if isinstance(p, Const) else -1 for p in place)
