"""Arrays of which each round of a loop touches a few neighbouring elements become these elements.

In: a module. Out: the module in which a loop that reads and replaces `g[i]` and `g[i + 1]` of an
array, one place further in each round, hands on the elements that the next round touches as well
and reads the others from the array as it was before the loop. That is what reverse mode makes of
`x[i] = f(x[i - 1])`: the cotangent of x is an array of which nothing is needed after the loop but
its last elements, so that neither is it written nor, where it starts as one number everywhere, made
(scalar replacement: Callahan, Carr and Kennedy, "Improving register allocation for subscripted
variables", PLDI 1990).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Const, Function, Let, Loop, Module, OpCall, Rhs, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType
from pyrelay.opt.rewrite import Replacement, Scope, rewrite
from pyrelay.records import dataclass

_WIDEST = 8  # neighbouring elements
_DEEPEST = 16  # sums that make a position
_SPREAD = frozenset(["broadcast_to", "expand_dims", "reshape"])


@dataclass(slots=True, eq=False)
class _Window:
    """Elements of carried array `k` of a loop that its rounds hand on.

    touched: accesses in the body -> the element, counted from the one that comes up last.
    after: reads of the array after the loop -> the element that they read then.
    parts: what the body carries instead, element by element from the first; `now` is what stands
    for each element at the place that is being rewritten.
    """

    k: int
    ahead: int  # the element that no round before has touched
    touched: dict[Var, int]
    after: dict[Var, int]
    first: list[Extent]  # positions of the others in the first round
    dtype: DType
    fill: Const | None  # what all elements are before the loop, if they are one number
    parts: list[Var]
    now: dict[int, Atom] = field(default_factory=dict)
    ends: list[Atom] = field(default_factory=list)
    before: Atom | None = None  # the array before the loop, and the number of rounds
    count: Atom | None = None

    @property
    def array(self) -> Atom:
        """The array before the loop."""
        assert self.before is not None
        return self.before

    def rounds(self, builder: Builder) -> Handle:
        """Whether there is any round."""
        assert self.count is not None
        some: Handle = builder.call(OPS["greater"], self.count, 0)
        return some


def rolling(module: Module) -> Module:
    """Hand on elements instead of arrays."""
    return module.holding({n: _function(f) for n, f in module.functions.items()})


def _function(function: Function) -> Function:
    found = _Finder(function).found
    return rewrite(function, _Rule(found)) if found else function


# -- finding -----------------------------------------------------------------------------------


class _Finder:
    """The windows of a function's loops, by the first output of their loop."""

    def __init__(self, function: Function) -> None:
        self.found: dict[Var, list[_Window]] = {}
        self.makers: dict[Atom, Rhs] = {}
        loops: list[tuple[Block, int]] = []
        for block in (function.body, *walk.nested_blocks(function.body)):
            for number, let in enumerate(block.lets):
                self.makers.update((out, let.rhs) for out in let.outs)
                if _is_counted(let):
                    loops.append((block, number))
        for block, number in loops:
            self._loop(block, number)

    def _loop(self, block: Block, number: int) -> None:
        let = block.lets[number]
        loop = let.rhs
        assert isinstance(loop, Loop)
        arrays = [k for k, v in enumerate(loop.carried) if _is_line(v)]
        if not arrays:
            return
        inside = walk.use_counts(loop.body)
        around = walk.use_counts(replace(block, lets=block.lets[number:]))
        windows = []
        for k in arrays:
            window = self._window(loop, k, let.outs[k], inside, around, block)
            if window is not None:
                windows.append(window)
        if windows:
            self.found[let.outs[0]] = windows

    def _window(
        self, loop: Loop, k: int, out: Var, inside: Mapping[Var, int], around: Mapping[Var, int],
        block: Block,
    ) -> _Window | None:
        touched = self._accesses(loop, k, inside)
        if touched is None:
            return None
        start = loop.init[k]
        fill = self._fill(start)
        if fill is None and not (isinstance(start, Var) and around.get(start) == 1):
            return None
        count = self._position(loop.count, None)  # type: ignore[arg-type]
        positions = {v: self._position(at, loop.index) for v, at in touched.items()}
        if count is None or any(p is None for p in positions.values()):
            return None
        steps = {p[1] for p in positions.values() if p is not None}
        if steps not in ({1}, {-1}):
            return None
        (step,) = steps
        base = next(iter(positions.values()))[0]  # type: ignore[index]
        places: dict[Var, int] = {}
        for var, position in positions.items():
            assert position is not None
            distance = dims.add(position[0], dims.multiply(-1, base))
            if not isinstance(distance, int):
                return None
            places[var] = step * distance
        least, ahead = min(places.values()), max(places.values())
        if ahead - least >= _WIDEST or set(places.values()) != set(range(least, ahead + 1)):
            return None
        end = dims.add(base, dims.multiply(step, count[0]))
        after = self._after(out, around, block, end, step)
        if after is None or not set(after.values()) <= set(range(least, ahead)):
            return None
        first = [dims.add(base, step * f) for f in range(least, ahead)]
        ty = loop.carried[k].type
        assert isinstance(ty, TensorType)
        part = TensorType(ty.dtype, ())
        parts = [Var("w", part) for _ in first]
        fill = None if fill is None else constant(fill.value, part)
        return _Window(
            k, ahead - least, {v: f - least for v, f in places.items()},
            {v: f - least for v, f in after.items()}, first, ty.dtype, fill, parts,
            dict(enumerate(parts)),
        )

    def _accesses(self, loop: Loop, k: int, inside: Mapping[Var, int]) -> dict[Var, Atom] | None:
        """The Lets of a body that read or replace an element of an array, and its position; None
        if anything else uses the array, or if it stays as it is."""
        atom = loop.carried[k]
        found: dict[Var, Atom] = {}
        seen, updates = 0, 0
        for let in loop.body.lets:
            rhs = let.rhs
            if not isinstance(rhs, OpCall) or not rhs.args or rhs.args[0] is not atom:
                continue
            if rhs.attrs.get("axes") != (0,) or atom in rhs.args[1:]:
                return None
            seen += 1
            if rhs.op.name == "index":
                found[let.outs[0]] = rhs.args[1]
            elif rhs.op.name in ("index_update", "index_add"):
                found[let.outs[0]] = rhs.args[2]
                if inside.get(atom) != seen:
                    return None
                atom, seen, updates = let.outs[0], 0, updates + 1
            else:
                return None
        ends = [n for n, r in enumerate(loop.body.results) if r is atom]
        return found if ends == [k] and inside.get(atom) == seen + 1 and updates else None

    def _after(
        self, out: Var, around: Mapping[Var, int], block: Block, end: Extent, step: int
    ) -> dict[Var, int] | None:
        """Reads of the array after the loop; None if it is used otherwise."""
        found: dict[Var, int] = {}
        for let in block.lets:
            rhs = let.rhs
            if not isinstance(rhs, OpCall) or out not in rhs.args:
                continue
            if rhs.op.name != "index" or rhs.attrs.get("axes") != (0,):
                return None
            position = self._position(rhs.args[1], None)
            if position is None:
                return None
            distance = dims.add(position[0], dims.multiply(-1, end))
            if not isinstance(distance, int):
                return None
            found[let.outs[0]] = step * distance
        return found if around.get(out, 0) == len(found) else None

    def _fill(self, atom: Atom) -> Const | None:
        """The number that all elements of an array are."""
        while not isinstance(atom, Const):
            rhs = self.makers.get(atom)
            if not isinstance(rhs, OpCall) or rhs.op.name not in _SPREAD:
                return None
            atom = rhs.args[0]
        return atom

    def _position(
        self, atom: Atom, index: Var | None, depth: int = 0
    ) -> tuple[Extent, int] | None:
        """A number as an extent and a multiple of a loop's index."""
        if atom is index:
            return 0, 1
        if isinstance(atom, Const):
            return (int(atom.value), 0) if _is_int(atom) else None
        rhs = self.makers.get(atom)
        if not isinstance(rhs, OpCall) or depth > _DEEPEST:
            return None
        if rhs.op.name == "extent":
            return rhs.attrs["size"], 0
        if rhs.op.name == "cast":
            wide = _is_int(atom) and _is_int(rhs.args[0])
            return self._position(rhs.args[0], index, depth + 1) if wide else None
        if rhs.op.name not in ("add", "subtract", "multiply") or not _is_int(atom):
            return None
        left, right = (self._position(a, index, depth + 1) for a in rhs.args)
        if left is None or right is None:
            return None
        if rhs.op.name == "multiply":
            by, other = (left, right) if left[1] == 0 else (right, left)
            if by[1] != 0 or not isinstance(by[0], int):
                return None
            return dims.multiply(by[0], other[0]), by[0] * other[1]
        sign = 1 if rhs.op.name == "add" else -1
        return dims.add(left[0], dims.multiply(sign, right[0])), left[1] + sign * right[1]


def _is_counted(let: Let) -> bool:
    loop = let.rhs
    return isinstance(loop, Loop) and not (
        loop.test is not None or loop.exits or loop.dims or let.dims or loop.count is None
        or loop.index is None
    )


def _is_line(atom: Atom) -> bool:
    """Whether an atom is an array of one axis, of floating or complex numbers."""
    ty = atom.type
    return isinstance(ty, TensorType) and len(ty.shape) == 1 and ty.dtype.kind in "fc"


def _is_int(atom: Atom) -> bool:
    """Whether an atom is an integer of 64 bits: of those, sums stay sums as positions."""
    ty = atom.type
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype == types.i64


# -- rewriting ---------------------------------------------------------------------------------


class _Rule:
    """Replaces the accesses of windows, then their loops, then the reads after these."""

    def __init__(self, found: dict[Var, list[_Window]]) -> None:
        self.loops = found
        windows = [w for each in found.values() for w in each]
        self.touched = {v: w for w in windows for v in w.touched}
        self.after = {v: w for w in windows for v in w.after}

    def __call__(self, let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not let.outs:
            return None
        out, rhs = let.outs[0], let.rhs
        if out in self.touched:
            assert isinstance(rhs, OpCall)
            return (self._access(self.touched[out], out, rhs, builder, scope),)
        if out in self.loops:
            assert isinstance(rhs, Loop)
            return self._loop(let, rhs, self.loops[out], builder)
        if out in self.after:
            assert isinstance(rhs, OpCall)
            return (self._read(self.after[out], out, rhs, builder),)
        return None

    def _access(
        self, w: _Window, out: Var, call: OpCall, builder: Builder, scope: Scope
    ) -> Atom:
        place = w.touched[out]
        if place == w.ahead and place not in w.now:
            array, at = scope.loops[-1].init[w.k], call.args[-1]
            w.now[place] = w.fill or builder.call(OPS["index"], array, at, axes=(0,)).atom
        if call.op.name == "index":
            return w.now[place]
        value = call.args[1]
        if call.op.name == "index_add":
            value = builder.call(OPS["add"], w.now[place], value).atom
        w.now[place] = builder.cast(value, w.dtype)
        return call.args[0]

    def _loop(self, let: Let, loop: Loop, windows: list[_Window], builder: Builder) -> Replacement:
        by = {w.k: w for w in windows}
        carried: list[Var] = []
        init: list[Atom] = []
        results: list[Atom] = []
        outs: list[Var] = []
        atoms: list[Atom] = []
        for k, var in enumerate(loop.carried):
            w = by.get(k)
            if w is None:
                carried.append(var)
                init.append(loop.init[k])
                results.append(loop.body.results[k])
                outs.append(let.outs[k])
                atoms.append(let.outs[k])
                continue
            carried += w.parts
            w.before, w.count = loop.init[k], loop.count
            init += [self._first(w, at, builder) for at in w.first]
            results += [w.now[place + 1] for place in range(w.ahead)]
            ends = [Var(p.name, p.type, span=let.span) for p in w.parts]
            outs += ends
            w.ends = list(ends)
            atoms.append(loop.init[k])
        body = replace(loop.body, results=tuple(results))
        new = replace(loop, carried=tuple(carried), init=tuple(init), body=body)
        builder.lets.append(Let(tuple(outs), new, let.dims, span=let.span))
        return atoms

    def _first(self, w: _Window, at: Extent, builder: Builder) -> Atom:
        """An element before the first round, if there is one."""
        if w.fill is not None:
            return w.fill
        array = w.array
        (element,) = builder.cond(
            w.rounds(builder),
            lambda b: [b.call(OPS["index"], array, b.extent(at), axes=(0,))],
            lambda b: [b.full(0, (), w.dtype)],
        )
        return element.atom

    def _read(self, w: _Window, out: Var, call: OpCall, builder: Builder) -> Atom:
        """An element after the last round; where there was none, of the array before."""
        end = w.ends[w.after[out]]
        if w.fill is not None:
            return end
        element = builder.call(OPS["index"], w.array, call.args[1], axes=(0,))
        found: Atom = builder.call(OPS["where"], w.rounds(builder), end, element).atom
        return found
