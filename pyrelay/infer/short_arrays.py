"""Which extents of arguments a program takes as short, because its loops compute with such arrays.

In: the functions of a program, its guards. Out: guards, by which extents are known numbers, or at
most `dims.SHORT`, or arrays have at most `dims.NEAR` elements.

A loop that steps from one small vector to the next, as those of Runge and Kutta, Kalman or a hidden
Markov model, is one kernel if its vectors are short, and a launch for each operation if they are
not. Their extents are asked for in the call at hand: 1 to 4 become numbers of the program, so that
rows are in registers; up to `dims.SHORT` they stay symbols with a bound. A loop without products of
matrices, as that of a wave equation, is one kernel for arrays of some thousand elements too: more
would be worth several threads. What is longer is a guard as well: a program that launches would be
slow for short arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from pyrelay.infer.guards import Guards
from pyrelay.ir import dims, limits, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Function, If, Jvp, Let, Loop, OpCall, Vjp
from pyrelay.ir.op import Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.ops.linalg import SIZED
from pyrelay.ops.work import element_work, most_elements
from pyrelay.records import dataclass

Shape = tuple[Extent, ...]

_MOST_LETS = 400
_DERIVATIVE = 3  # times what the function itself costs
#: Ops without an element rule that loops of kernels run as well.
_IN_KERNELS = frozenset(["extent", "undef", "raise", "as_extent", "check_equal", "matmul"])
#: Ops that only say which elements of an array are meant.
_MOVES = frozenset(["reshape", "expand_dims", "squeeze", "refine", "transpose", "broadcast_to"])


def take_as_short(functions: Mapping[str, Function], guards: Guards) -> None:
    """Ask for the extents by which loops are kernels of their own."""
    ends: dict[Symbol, int] = {}
    for function in functions.values():
        counts: dict[Atom | None, Extent] = {
            let.outs[0]: let.rhs.attrs["size"]
            for let in walk.nested_lets(function.body)
            if isinstance(let.rhs, OpCall) and let.rhs.op.name == "extent"
        }
        pending = [(function.body, 0)]
        while pending:
            block, depth = pending.pop()
            for let in block.lets:
                if isinstance(let.rhs, If):
                    pending += [(b, depth) for b in walk.blocks(let.rhs)]
                elif isinstance(let.rhs, Loop):
                    wanted = _wanted(let.rhs, counts, depth + 1, functions)
                    if wanted is None:
                        pending += [(b, depth + 1) for b in walk.blocks(let.rhs)]
                    else:
                        _ask(wanted, guards, ends)
    for symbol, most in ends.items():
        guards.bound(symbol, most)


@dataclass(slots=True)
class _Wish:
    """What must be short or near for a loop to be a kernel.

    shapes: of arrays. work: what computing an element of each costs, in additions. products:
    whether matrices are multiplied, which pays where they are short only.
    """

    shapes: dict[Shape, None] = field(default_factory=dict)
    work: int = 0
    products: bool = False


def _ask(wish: _Wish, guards: Guards, ends: dict[Symbol, int]) -> None:
    """Enter the greatest value of the symbols of each shape, if all are short, or near; else make
    one that is greater a guard."""
    shapes = [tuple(map(guards.resolve, shape)) for shape in wish.shapes]
    short = _bounds(shapes, guards, None)
    if short is None:
        return
    beyond = _beyond(short, guards)
    if beyond is not None and not wish.products:
        near = _bounds(shapes, guards, most_elements(wish.work))
        assert near is not None
        farther = _beyond(near, guards)
        if farther is None:
            guards.compare("<=", dims.of(beyond), short[beyond])
        short, beyond = near, farther
    if beyond is not None:
        guards.compare("<=", dims.of(beyond), short[beyond])
        return
    for symbol, most in short.items():
        ends[symbol] = min(most, ends.get(symbol, most))


def _beyond(bounds: Mapping[Symbol, int], guards: Guards) -> Symbol | None:
    """The first symbol that exceeds its bound in the call at hand."""
    return next((s for s, most in bounds.items() if guards.hints[s] > most), None)


def _bounds(shapes: Iterable[Shape], guards: Guards, most: int | None) -> dict[Symbol, int] | None:
    """The greatest values of symbols by which all axes of arrays are short, or with `most`, by
    which arrays have no more elements; None if there are symbols that no call tells.

    Of several axes that are not short, each has as much of that room.
    """
    found: dict[Symbol, int] = {}
    for shape in shapes:
        open_axes = [e for e in shape if not isinstance(e, int)]
        if any(s not in guards.hints for e in open_axes for s in dims.symbols(e)):
            return None
        long = [dims.evaluate(e, guards.hints) > dims.SHORT for e in open_axes]
        room = 0
        if most is not None and any(long):
            room = most // dims.SHORT ** long.count(False)
            for extent in shape:
                room //= max(extent, 1) if isinstance(extent, int) else 1
            room = int((room + 0.5) ** (1 / sum(long)))
        for extent, is_long in zip(open_axes, long, strict=True):
            end = _end(extent, max(dims.SHORT, room if is_long else 0))
            if end is None:
                return None
            symbol, value = end
            found[symbol] = min(value, found.get(symbol, value))
    return found


def _end(extent: Extent, most: int) -> tuple[Symbol, int] | None:
    """The symbol of an extent that grows with it, and the greatest value of that by which the
    extent is at most `most`."""
    assert not isinstance(extent, int)
    if len(extent.terms) > 2 or (len(extent.terms) == 2 and all(m for m, _ in extent.terms)):
        return None
    (start,) = [c for monomial, c in extent.terms if not monomial] or (0,)
    ((monomial, slope),) = [(m, c) for m, c in extent.terms if m]
    ((atom, power), *others) = monomial
    if others or power != 1 or slope < 1:
        return None
    end = (most - start) // slope
    match atom:
        case Symbol():
            return atom, end
        case dims.Quotient(inner, by) if not isinstance(inner, int) and isinstance(by, int):
            return _end(inner, end * by + by - 1) if by > 0 else None
        case dims.Extreme("max", left, right):
            inner = left if isinstance(right, int) else right
            return None if isinstance(inner, int) else _end(inner, end)
    return None


def _wanted(
    loop: Loop, counts: Mapping[Atom | None, Extent], depth: int, functions: Mapping[str, Function]
) -> _Wish | None:
    """What must be short for a loop to be a kernel; None if that would not help.

    depth: how many loops there are down to this one. counts: numbers that are extents.
    """
    wish = _Wish()
    lets = 0
    rows = loop.count in counts and not isinstance(counts[loop.count], int)
    pending = [(b, depth, dict[Symbol, Extent](), 1) for b in walk.blocks(loop)]
    while pending:
        block, depth, named, times = pending.pop()
        lets += len(block.lets)
        if lets > _MOST_LETS:
            return None
        for let in block.lets:
            if isinstance(let.rhs, (If, Loop)):
                inner = depth + isinstance(let.rhs, Loop)
                pending += [(b, inner, named, times) for b in walk.blocks(let.rhs)]
                continue
            if isinstance(let.rhs, (Jvp, Vjp)):  # its arrays are of the function's shapes, too
                callee = functions[let.rhs.function]
                given = (dims.substitute(e, named) for e in let.rhs.dims)
                own = dict(zip(callee.dims, given, strict=True))
                pending.append((callee.body, depth, own, times * _DERIVATIVE))
                continue
            if not isinstance(let.rhs, OpCall) or not _is_fit(let, let.rhs):
                return None
            space = tuple(dims.substitute(e, named) for e in _space(let, let.rhs))
            long = sum(not limits.is_short(e) for e in space)
            by_rows = long < depth or (long == 1 and rows)
            product = _is_matrix(let.rhs, let)
            if long and (product or not by_rows):
                wish.shapes[space] = None
                wish.work += times * element_work(let.rhs)
                wish.products |= product
    return wish if wish.shapes else None


def _is_fit(let: Let, call: OpCall) -> bool:
    """Whether loops of kernels have what an op computes."""
    if any(not isinstance(a.type, TensorType) for a in (*call.args, *let.outs)):
        return False
    if call.op.name in _IN_KERNELS:
        return True
    if call.op.name in SIZED:
        return bool(call.attrs["small"])
    return call.op.element is not None and call.op.effect is not Effect.HOST


def _space(let: Let, call: OpCall) -> Sequence[Extent]:
    """The extents of the axes over which an op computes."""
    if call.op.name in _MOVES or call.op.name in ("index", "slice", "iota"):
        return ()
    if call.op.name == "matmul":
        return tuple(e for a in call.args for e in _shape(a))
    if "sizes" in call.attrs:
        return tuple(call.attrs["sizes"])
    if call.op.name in ("index_update", "index_add"):
        shape = _shape(call.args[0])
        return tuple(e for k, e in enumerate(shape) if k not in call.attrs["axes"])
    operands = call.args if call.op.fusion is Fusion.REDUCTION else let.outs
    return max(map(_shape, operands), key=len, default=())


def _shape(atom: Atom) -> tuple[Extent, ...]:
    return atom.type.shape if isinstance(atom.type, TensorType) else ()


def _is_matrix(call: OpCall, let: Let) -> bool:
    """Whether an op is a product of matrices of more than one element."""
    return call.op.name == "matmul" and _shape(let.outs[0]) != (1, 1)


__all__ = ["take_as_short"]
