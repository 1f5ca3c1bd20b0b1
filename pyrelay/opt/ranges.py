"""Range analysis: index checks that cannot fail are removed.

In: a module. Out: the module without `check_index` where the index is known to lie in the axis:
loop indices, extents, constants, and sums, differences, multiples, quotients and remainders of
those. Bounds are extents, compared as polynomials of symbols that are all >= 0.

Arithmetic of extents becomes one extent, so that the count of a loop is one.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Quotient
from pyrelay.ir.nodes import Atom, Const, Let, Module, OpCall
from pyrelay.ir.types import PY_INT, TensorType
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

Bounds = tuple[Extent, Extent]  # both inclusive
_DEEPEST = 8


def ranges(module: Module) -> Module:
    """Remove index checks that hold, and compute with extents."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall):
        return None
    if rhs.op.name in _ARITHMETIC:
        extent = _computed_extent(let, rhs, scope)
        return None if extent is None else (builder.atom(builder.extent(extent)),)
    if rhs.op.name == "check_equal" and rhs.attrs["left"] == rhs.attrs["right"]:
        return ()
    if rhs.op.name != "check_index":
        return None
    known = bounds(rhs.args[0], scope)
    if known is None:
        return None
    low, high = known
    room = dims.add(rhs.attrs["size"], dims.add(-1, dims.multiply(-1, high)))
    if never_negative(low) and never_negative(room):
        return (rhs.args[0],)
    return None


def _floor_divided(left: Extent, right: Extent) -> Extent | None:
    if not isinstance(right, int) or right == 0:
        return None
    return dims.quotient(left, right) if right > 0 else dims.quotient(
        dims.multiply(-1, left), -right
    )


_ARITHMETIC: dict[str, Callable[[Extent, Extent], Extent | None]] = {
    "add": dims.add, "subtract": lambda a, b: dims.add(a, dims.multiply(-1, b)),
    "multiply": dims.multiply, "floor_divide": _floor_divided,
}


def _computed_extent(let: Let, call: OpCall, scope: Scope) -> Extent | None:
    """What a Python int is, computed from extents alone and without leaving 64 bits."""
    if let.outs[0].type != PY_INT:
        return None
    operands: list[Extent] = []
    for atom in call.args:
        definition = scope.op(atom, "extent")
        if definition is not None:
            operands.append(definition.attrs["size"])
        elif isinstance(atom, Const) and atom.type == PY_INT:
            operands.append(atom.value)
        else:
            return None
    found = _ARITHMETIC[call.op.name](*operands)
    return found if found is not None and dims.is_small(found) else None


def never_negative(extent: Extent) -> bool:
    """True if an extent is certainly >= 0, even with quotients that lower it at their largest."""
    if isinstance(extent, int):
        return extent >= 0
    least: Extent = extent
    for monomial, factor in extent.terms:
        match monomial:
            case ((Quotient(a, int(b)), 1),) if b > 0 and factor < 0 and factor % b == 0:
                # a // b <= a / b, and factor is a multiple of b.
                exact = dims.multiply(factor // b, a)
                own = dims.multiply(factor, dims.quotient(a, b))
                least = dims.add(least, dims.add(exact, dims.multiply(-1, own)))
    return dims.non_negative(least)


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
    if name not in _COMBINED or not all(_is_python_int(a) for a in call.args):
        return None
    args = [bounds(a, scope, depth) for a in call.args]
    if name == "remainder":
        # A divisor of 0 raises, so that one that is not negative is positive from here on.
        divisor = args[1]
        known = divisor is not None and dims.non_negative(divisor[0])
        return (0, dims.add(divisor[1], -1)) if divisor is not None and known else None
    if any(a is None for a in args):
        return None
    return _COMBINED[name](*args)


def _is_python_int(atom: Atom) -> bool:
    """Python's ints raise where NumPy's would wrap round or give 0 for a quotient by 0."""
    ty = atom.type
    return isinstance(ty, TensorType) and ty.weak and ty.dtype.kind == "i"


def _minus(a: Bounds) -> Bounds:
    return (dims.multiply(-1, a[1]), dims.multiply(-1, a[0]))


def _sum(a: Bounds, b: Bounds) -> Bounds:
    return (dims.add(a[0], b[0]), dims.add(a[1], b[1]))


def _product(a: Bounds, b: Bounds) -> Bounds | None:
    if a[0] == a[1] and isinstance(a[0], int):
        a, b = b, a
    if b[0] == b[1] and isinstance(b[0], int):  # a multiple
        ends = (dims.multiply(a[0], b[0]), dims.multiply(a[1], b[0]))
        return ends if b[0] >= 0 else (ends[1], ends[0])
    if dims.non_negative(a[0]) and dims.non_negative(b[0]):
        return (dims.multiply(a[0], b[0]), dims.multiply(a[1], b[1]))
    return None


def _quotient(a: Bounds, b: Bounds) -> Bounds | None:
    if b == (-1, -1):
        return _minus(a)
    if dims.non_negative(a[0]) and dims.non_negative(b[0]):
        return (0, a[1])  # a divisor of 0 raises
    if b[0] == b[1] and isinstance(b[0], int) and b[0] > 0:
        return (dims.quotient(a[0], b[0]), dims.quotient(a[1], b[0]))
    return None


def _least(a: Bounds, b: Bounds) -> Bounds:
    return (dims.minimum(a[0], b[0]), dims.minimum(a[1], b[1]))


def _greatest(a: Bounds, b: Bounds) -> Bounds:
    return (dims.maximum(a[0], b[0]), dims.maximum(a[1], b[1]))


_COMBINED: dict[str, Callable[..., Bounds | None]] = {
    "add": _sum,
    "subtract": lambda a, b: _sum(a, _minus(b)),
    "multiply": _product,
    "floor_divide": _quotient,
    "remainder": lambda a, b: None,
    "minimum": _least,
    "maximum": _greatest,
    "negative": _minus,
    "positive": lambda a: a,
}
