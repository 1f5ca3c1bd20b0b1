"""Range analysis: index checks that cannot fail are removed.

In: a module. Out: the module without `check_index` where the index is known to lie in the axis: loop
indices, extents, constants, and sums and differences of those. Bounds are extents, compared as
polynomials of symbols that are all >= 0.
"""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, Let, Module, OpCall, Var
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

Bounds = tuple[Extent, Extent]  # both inclusive
_DEEPEST = 8


def ranges(module: Module) -> Module:
    """Remove index checks that hold."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name != "check_index":
        return None
    known = bounds(rhs.args[0], scope)
    if known is None:
        return None
    low, high = known
    room = dims.add(rhs.attrs["size"], dims.add(-1, dims.multiply(-1, high)))
    if dims.non_negative(low) and dims.non_negative(room):
        return (rhs.args[0],)
    return None


def bounds(atom: Atom, scope: Scope, depth: int = 0) -> Bounds | None:
    """The least and greatest value of an int atom, None if nothing is known."""
    if isinstance(atom, Const):
        return (atom.value, atom.value) if isinstance(atom.value, int) else None
    if depth > _DEEPEST:
        return None
    for loop in scope.loops:
        if loop.index is atom and loop.count is not None:
            last = bounds(loop.count, scope, depth + 1)
            return None if last is None else (0, dims.add(last[1], -1))
    rhs = scope.definition(atom)
    if not isinstance(rhs, OpCall):
        return None
    return _of_op(rhs, scope, depth + 1)


def _of_op(call: OpCall, scope: Scope, depth: int) -> Bounds | None:
    name = call.op.name
    if name == "extent":
        return (call.attrs["size"], call.attrs["size"])
    if name == "check_index":
        return (0, dims.add(call.attrs["size"], -1))
    if name not in ("add", "subtract", "minimum", "maximum", "positive", "multiply", "remainder"):
        return None
    args = [bounds(a, scope, depth) for a in call.args]
    if name == "remainder":
        divisor = args[1]
        if divisor is not None and isinstance(divisor[0], int) and divisor[0] > 0:
            return (0, dims.add(divisor[1], -1))
        return None
    if any(a is None for a in args):
        return None
    (low, high), *rest = args  # type: ignore[misc]
    if name == "positive":
        return (low, high)
    other_low, other_high = rest[0]
    if name == "add":
        return (dims.add(low, other_low), dims.add(high, other_high))
    if name == "subtract":
        minus = dims.multiply(-1, other_high), dims.multiply(-1, other_low)
        return (dims.add(low, minus[0]), dims.add(high, minus[1]))
    if name == "multiply":
        if dims.non_negative(low) and dims.non_negative(other_low):
            return (dims.multiply(low, other_low), dims.multiply(high, other_high))
        return None
    combine = dims.minimum if name == "minimum" else dims.maximum
    return (combine(low, other_low), combine(high, other_high))


def is_index_of(atom: Atom, scope: Scope) -> bool:
    """True if the atom is the index of an enclosing loop."""
    return isinstance(atom, Var) and any(loop.index is atom for loop in scope.loops)
