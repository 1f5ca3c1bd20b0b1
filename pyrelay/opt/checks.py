"""Checks of positions in integer arrays that cannot fail, or that what follows makes again.

In: a module. Out: one in which `gather` is `gather_inside`, which raises nothing and so joins what
is around it, where all positions are known to lie in their axes: places that a sort, a search or an
extreme gives, `arange`, remainders, what `clip`, `minimum` and `maximum` keep inside; and without a
gather that nobody reads if a scatter behind it looks at the same positions. Writing to positions
begins with such a gather, since Python looks at all of them before it writes one, which matters
where the caller sees the array when the program raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Block, Const, Function, Let, Module, OpCall
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import TensorType
from pyrelay.opt.ranges import bounds, never_negative
from pyrelay.opt.rewrite import Replacement, Scope, rewrite
from pyrelay.opt.shapes import shape_of
from pyrelay.opt.stores import Stores

_DEEPEST = 12
_SAME_ELEMENTS = frozenset(
    ["reshape", "expand_dims", "squeeze", "refine", "transpose", "broadcast_to", "slice", "index"]
)


def checks(module: Module) -> Module:
    """Remove checks of positions that hold, and those that are made twice."""
    stores = Stores(module)
    functions = {name: _checked(f, stores) for name, f in module.functions.items()}
    return module.holding(functions)


def _checked(function: Function, stores: Stores) -> Function:
    if not any(walk.is_call(let, "gather") for let in walk.nested_lets(function.body)):
        return function
    made_again = _made_again(function, stores)
    if made_again:
        function = replace(function, body=_without(function.body, made_again))
    return rewrite(function, _rule)


# -- checks that are made twice --------------------------------------------------------------------


def _made_again(function: Function, stores: Stores) -> set[Let]:
    """Gathers that nobody reads before scatters at the same positions, of arrays that the caller
    does not see."""
    uses, shown = walk.use_counts(function.body), stores.lets(function)
    return {
        let for block in walk.nested_blocks(function.body) for k, let in enumerate(block.lets)
        if walk.is_call(let, "gather") and not uses.get(let.outs[0])
        and _is_checked_in(let, block.lets[k + 1 :], shown)
    }


def _is_checked_in(gather: Let, behind: Sequence[Let], shown: Set[Let]) -> bool:
    call = walk.call_of(gather)
    for let in behind:
        if walk.is_call(let, "scatter_add") or walk.is_call(let, "scatter_update"):
            other = walk.call_of(let)
            return (
                let not in shown and let.span == gather.span and call.attrs == other.attrs
                and call.args[1:] == other.args[2:]
                and shape_of(call.args[0]) == shape_of(other.args[0])
            )
        if effect_of(let.rhs) is not Effect.PURE:
            return False
    return False


def _without(block: Block, gone: Set[Let]) -> Block:
    kept = tuple(let for let in block.lets if let not in gone)
    if len(kept) != len(block.lets):
        block = replace(block, lets=kept)
    return walk.with_blocks(block, lambda inner: _without(inner, gone))


# -- checks that hold ------------------------------------------------------------------------------


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    if not walk.is_call(let, "gather"):
        return None
    call = walk.call_of(let)
    array, *positions = call.args
    shape = shape_of(array)
    for axis, position in zip(call.attrs["axes"], positions, strict=True):
        low, high = _elements(position, scope, 0)
        if low is None or high is None or not never_negative(low):
            return None
        if not never_negative(_difference(dims.add(shape[axis], -1), high)):
            return None
    return (builder.call(OPS["gather_inside"], array, *positions, axes=call.attrs["axes"]).atom,)


_Ends = tuple[Extent | None, Extent | None]
"""The least and the greatest of some numbers, as far as they are known."""
_UNKNOWN: _Ends = None, None


def _elements(atom: Atom, scope: Scope, depth: int) -> _Ends:
    """Between which numbers all elements of an array of integers lie, if it has any."""
    ty = atom.type
    if not isinstance(ty, TensorType) or depth > _DEEPEST:
        return _UNKNOWN
    if ty.dtype is types.bool_:
        return 0, 1
    if isinstance(atom, Const):
        return (int(atom.value),) * 2 if ty.dtype.kind in "iu" and not ty.shape else _UNKNOWN
    if ty.weak and not ty.shape:
        return bounds(atom, scope) or _UNKNOWN
    call = scope.definition(atom)
    if isinstance(call, OpCall) and ty.dtype.kind in "iu":
        found = _of_op(call, ty, scope, depth + 1)
        if found != _UNKNOWN:
            return found
    return (0, (1 << 8 * ty.dtype.size) - 1) if ty.dtype.kind == "u" else _UNKNOWN


def _of_op(call: OpCall, ty: TensorType, scope: Scope, depth: int) -> _Ends:
    name, shapes = call.op.name, [shape_of(a) for a in call.args]
    match name:
        case "iota":
            return 0, dims.add(call.attrs["size"], -1)
        case "true_places":
            return 0, dims.add(shapes[0][0], -1)
        case "argsort":
            return 0, dims.add(shapes[0][-1], -1)
        case "search":
            return 0, shapes[0][-1]
        case "cast":
            inner = _elements(call.args[0], scope, depth)
            return inner if ty.dtype is types.i64 and inner != _UNSIGNED else _UNKNOWN
        case "remainder":
            least, most = _elements(call.args[1], scope, depth)
            if least is None or most is None or not never_negative(dims.add(least, -1)):
                return _UNKNOWN  # a remainder by 0 is 0
            return 0, dims.add(most, -1)
        case _ if name in _SAME_ELEMENTS:
            return _elements(call.args[0], scope, depth)
        case _ if name in _JOINED:
            # In fewer bits, sums may begin again.
            whole = ty.dtype is types.i64 or name not in ("add", "subtract")
            given = [_elements(a, scope, depth) for a in call.args]
            return _JOINED[name](*given) if whole else _UNKNOWN
    return _UNKNOWN


_UNSIGNED: _Ends = 0, (1 << 64) - 1


def _difference(a: Extent, b: Extent) -> Extent:
    return dims.add(a, dims.multiply(-1, b))


def _known(
    combine: Callable[[Extent, Extent], Extent], a: Extent | None, b: Extent | None
) -> Extent | None:
    """What both give; None if one is not known."""
    return None if a is None or b is None else combine(a, b)


def _either(
    combine: Callable[[Extent, Extent], Extent], a: Extent | None, b: Extent | None
) -> Extent | None:
    """What both give, or the only one that is known."""
    return (b if a is None else a) if a is None or b is None else combine(a, b)


def _lower(a: _Ends, b: _Ends) -> _Ends:
    return _known(dims.minimum, a[0], b[0]), _either(dims.minimum, a[1], b[1])


def _higher(a: _Ends, b: _Ends) -> _Ends:
    return _either(dims.maximum, a[0], b[0]), _known(dims.maximum, a[1], b[1])


_JOINED: Mapping[str, Callable[..., _Ends]] = {
    "minimum": _lower,
    "maximum": _higher,
    "clip": lambda x, low, high: _lower(_higher(x, low), high),  # the upper bound wins
    "where": lambda _, a, b: (_known(dims.minimum, a[0], b[0]), _known(dims.maximum, a[1], b[1])),
    "add": lambda a, b: (_known(dims.add, a[0], b[0]), _known(dims.add, a[1], b[1])),
    "subtract": lambda a, b: (_known(_difference, a[0], b[1]), _known(_difference, a[1], b[0])),
}
