"""Which extents of arguments a program takes as short, because its loops compute with such arrays.

In: the functions of a program, its guards. Out: guards, by which extents are known numbers, or at
most `dims.SHORT`.

A loop that steps from one small vector to the next, as those of Runge and Kutta, Kalman or a hidden
Markov model, is one kernel if its vectors are short, and a launch for each operation if they are
not. Their extents are asked for in the call at hand: 1 to 4 become numbers of the program, so that
rows are in registers; up to `dims.SHORT` they stay symbols with a bound. Where one of them is
longer, that is a guard as well: a program that launches would be slow for short arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyrelay.infer.guards import Guards
from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Function, If, Let, Loop, OpCall
from pyrelay.ir.op import Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.ops.linalg import SIZED

_MOST_LETS = 400
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
                    wanted = _wanted(let.rhs, counts, depth + 1)
                    if wanted is None:
                        pending += [(b, depth + 1) for b in walk.blocks(let.rhs)]
                    else:
                        _ask(wanted, guards, ends)
    for symbol, most in ends.items():
        guards.bound(symbol, most)


def _ask(wanted: Iterable[Extent], guards: Guards, ends: dict[Symbol, int]) -> None:
    """Enter the greatest value of the symbol of each extent, if all are short; else make one that
    is longer a guard."""
    found: dict[Symbol, int] = {}
    for extent in dict.fromkeys(map(guards.resolve, wanted)):
        if isinstance(extent, int):
            continue
        end = _end(extent)
        if end is None or end[0] not in guards.hints:
            return
        symbol, most = end
        found[symbol] = min(most, found.get(symbol, most))
    for symbol, most in found.items():
        if guards.hints[symbol] > most:
            guards.compare("<=", dims.of(symbol), most)
            return
    for symbol, most in found.items():
        ends[symbol] = min(most, ends.get(symbol, most))


def _end(extent: Extent) -> tuple[Symbol, int] | None:
    """The symbol of an extent that grows with it, and the most that it is while that is short."""
    assert not isinstance(extent, int)
    slope, start, found = 0, 0, None
    for monomial, coefficient in extent.terms:
        if not monomial:
            start = coefficient
        elif found is None and len(monomial) == 1 and monomial[0][1] == 1 and coefficient > 0:
            found, slope = monomial[0][0], coefficient
        else:
            return None
    if not isinstance(found, Symbol):
        return None
    return found, (dims.SHORT - start) // slope


def _wanted(
    loop: Loop, counts: Mapping[Atom | None, Extent], depth: int
) -> dict[Extent, None] | None:
    """Extents that must be short for a loop to be a kernel; None if that would not help.

    depth: how many loops there are down to this one. counts: numbers that are extents.
    """
    wanted: dict[Extent, None] = {}
    lets = 0
    rows = loop.count in counts and not isinstance(counts[loop.count], int)
    pending = [(b, depth) for b in walk.blocks(loop)]
    while pending:
        block, depth = pending.pop()
        lets += len(block.lets)
        if lets > _MOST_LETS:
            return None
        for let in block.lets:
            if isinstance(let.rhs, (If, Loop)):
                inner = depth + isinstance(let.rhs, Loop)
                pending += [(b, inner) for b in walk.blocks(let.rhs)]
                continue
            if not isinstance(let.rhs, OpCall) or not _is_fit(let, let.rhs):
                return None
            long = [e for e in _space(let, let.rhs) if not dims.is_short(e)]
            by_rows = len(long) < depth or (len(long) == 1 and rows)
            if _is_matrix(let.rhs, let) or not by_rows:
                wanted.update(dict.fromkeys(long))
    return wanted or None


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
