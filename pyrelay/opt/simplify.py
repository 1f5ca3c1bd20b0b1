"""Algebraic simplification: one identity a case, all exact (no rounding changes, NaN and -0 kept).

In: a module. Out: an equal one with less work: neutral elements, inverse pairs, trivial shape ops,
transposes absorbed by products, reads of what was just written, carried values that never change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Const, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType
from pyrelay.ir.walk import Renaming, copy_block, is_number
from pyrelay.opt.places import MOST_PARTS, same_atom
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite_module
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.opt.views import read_of_part, update_of_part


def simplify(module: Module) -> Module:
    """Apply the identities, operands first."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    match let.rhs:
        case OpCall() as call:
            rule = _RULES.get(call.op.name)
            if rule is None or len(let.outs) != 1:
                return None
            atom = rule(let, call, builder, scope)
            return None if atom is None else (atom,)
        case If() as node:
            both = _both_or_either(let, node, builder)
            if both is not None:
                return (both,)
            opened = _left_open(let, node, builder)
            return _same_branches(let, node, builder) if opened is None else opened
        case Loop() as loop:
            return _invariant_carried(let, loop, builder)
    return None


Identity = Callable[[Let, OpCall, Builder, Scope], Atom | None]
_RULES: dict[str, Identity] = {}


def _identity(*names: str) -> Callable[[Identity], Identity]:
    def enter(rule: Identity) -> Identity:
        for name in names:
            _RULES[name] = rule
        return rule

    return enter


def _is_type(atom: Atom, let: Let) -> bool:
    return atom.type == let.outs[0].type


def _is_complex(let: Let) -> bool:
    ty = let.outs[0].type
    return isinstance(ty, TensorType) and ty.dtype.kind == "c"


@_identity("multiply")
def _multiply(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    x, y = call.args
    if _is_complex(let):  # (a + inf j) * 1 has a part inf * 0
        return None
    if is_number(y, 1) and _is_type(x, let):
        return x
    return y if is_number(x, 1) and _is_type(y, let) else None


@_identity("divide")
def _divide(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    x, y = call.args
    return x if is_number(y, 1) and _is_type(x, let) and not _is_complex(let) else None


@_identity("subtract")
def _subtract(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    # x - 0.0 is x for every x, -0.0 included; x - (-0.0) is not.
    x, y = call.args
    zero = isinstance(y, Const) and y.value == 0 and not _negative_zero(y.value)
    return x if zero and _is_type(x, let) else None


def _negative_zero(value: complex) -> bool:
    return "-" in str(value)


@_identity("add")
def _add(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    # x + 0 is x for ints; for floats -0.0 + 0.0 would be 0.0, so only -0.0 is neutral.
    for x, y in (call.args, call.args[::-1]):
        if not (isinstance(y, Const) and y.value == 0 and _is_type(x, let)):
            continue
        assert isinstance(y.type, TensorType)
        if y.type.dtype.kind in "biu" or (y.type.dtype.kind == "f" and _negative_zero(y.value)):
            return x
    return None


@_identity("negative", "logical_not", "invert", "conj")
def _involution(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    inner = scope.op(call.args[0], call.op.name)
    if call.op.name == "conj" and not _is_complex(let) and _is_type(call.args[0], let):
        return call.args[0]  # of a number without an imaginary part
    return inner.args[0] if inner is not None and _is_type(inner.args[0], let) else None


@_identity("cast")
def _cast(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    # Between a Python and a NumPy number of one element type nothing changes; nor does it on the
    # way through a float of more digits.
    x = call.args[0]
    inner = scope.op(x, "cast")
    if inner is not None and (
        (_dtype(inner.args[0]) == _dtype(x) and not _narrows(let, x))
        or (_widened(_dtype(inner.args[0]), _dtype(x)) and _dtype(let.outs[0]).kind == "f")
    ):
        x = inner.args[0]
    if _is_type(x, let):
        return x
    if x is call.args[0]:
        return None
    atom: Atom = b.call(call.op, x, **call.attrs).atom
    return atom


def _widened(given: DType, held: DType) -> bool:
    """Whether floats of the one are all floats of the other."""
    return given.kind == held.kind == "f" and given.size < held.size


def _narrows(let: Let, x: Atom) -> bool:
    """Whether a cast of an int is to another one: Python's raise where it does not fit."""
    target = let.outs[0].type
    assert isinstance(target, TensorType)
    return target.dtype.is_integer and target.dtype != _dtype(x) and _dtype(x).kind == "i"


def _dtype(atom: Atom) -> DType:
    assert isinstance(atom.type, TensorType)
    return atom.type.dtype


@_identity("positive", "refine", "broadcast_to", "reshape")
def _same_type(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    x = call.args[0]
    if _is_type(x, let):
        return x
    inner = scope.op(x, call.op.name)
    if inner is not None and call.op.name in ("reshape", "broadcast_to"):
        if _is_type(inner.args[0], let):
            return inner.args[0]
        atom: Atom = b.call(call.op, inner.args[0], **call.attrs).atom
        return atom
    return None


@_identity("transpose")
def _transpose(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    axes = call.attrs["axes"]
    if axes == tuple(range(len(axes))):
        return call.args[0]
    inner = scope.op(call.args[0], "transpose")
    if inner is None:
        return None
    combined = tuple(inner.attrs["axes"][k] for k in axes)
    if combined == tuple(range(len(axes))):
        return inner.args[0]
    atom: Atom = b.call(call.op, inner.args[0], axes=combined).atom
    return atom


@_identity("expand_dims", "squeeze")
def _inverse_axes(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    other = "squeeze" if call.op.name == "expand_dims" else "expand_dims"
    inner = scope.op(call.args[0], other)
    if inner is not None and _is_type(inner.args[0], let):
        return inner.args[0]
    return None


@_identity("slice")
def _slice(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    whole = all(s == 0 for s in call.attrs["starts"]) and all(s == 1 for s in call.attrs["steps"])
    if whole and _is_type(call.args[0], let):
        return call.args[0]
    update = scope.op(call.args[0], "slice_update")
    if update is not None and update.attrs == call.attrs:
        written = update.args[1]
        if _is_type(written, let):
            return written
        shape = let.outs[0].type.shape  # type: ignore[union-attr]
        atom: Atom = b.call(OPS["broadcast_to"], written, shape=shape).atom
        return atom
    return read_of_part(call, b, scope)


@_identity("index_update", "slice_update")
def _update(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    if scope.op(call.args[1], "undef") is not None and _is_type(call.args[0], let):
        return call.args[0]  # what stands there is as good
    return _accumulation(call, b, scope) or update_of_part(call, b, scope)


@_identity("slice_add")
def _slice_add(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    """Parts of one shape that fill an array of zeros side by side are joined."""
    parts: dict[Extent, Atom] = {}
    axes: set[int] = set()
    base: Atom = let.outs[0]
    following: OpCall | None = call
    while following is not None:
        part, attrs = following.args[1], following.attrs
        shape = shape_of(following.args[0])
        if tuple(attrs["steps"]) != (1,) * len(shape) or shape_of(part) != tuple(attrs["sizes"]):
            return None
        partial = [a for a, d in enumerate(shape) if attrs["sizes"][a] != d]
        if len(partial) != 1 or len(parts) == MOST_PARTS:
            return None
        axes.update(partial)
        start = attrs["starts"][partial[0]]
        if len(axes) != 1 or start in parts or any(
            s != 0 for a, s in enumerate(attrs["starts"]) if a not in axes
        ):
            return None
        parts[start] = part
        base = following.args[0]
        following = scope.op(base, "slice_add")
    (axis,) = axes
    filled, size = scope.op(base, "broadcast_to"), shape_of(call.args[1])[axis]
    starts = [dims.multiply(k, size) for k in range(len(parts))]
    whole = dims.multiply(len(parts), size) == shape_of(base)[axis] and set(parts) == set(starts)
    if filled is None or not is_number(filled.args[0], 0) or not whole or len(parts) < 2:
        return None
    if any(p.type != call.args[1].type for p in parts.values()):
        return None
    # -0.0 added to 0.0 is 0.0.
    added = [b.call(OPS["add"], parts[start], filled.args[0]).atom for start in starts]
    if any(x.type != call.args[1].type for x in added):
        return None
    atom: Atom = b.call(OPS["concatenate"], *added, axis=axis).atom
    return atom if _is_type(atom, let) else None


def _accumulation(call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    """`x[i] = x[i] + v` adds to the place: its derivative need not know what stood there."""
    if call.op.name != "index_update":
        return None
    base, new, *at = call.args
    total = scope.op(new, "add")
    change = total or scope.op(new, "subtract")
    if change is None or _dtype(base).kind not in "fc":
        return None
    for old, v in (change.args, change.args[::-1]) if total else (change.args,):
        read = scope.op(old, "index")
        same = read is not None and read.args[0] is base and read.attrs == call.attrs
        if not same or old.type != new.type or _dtype(v) is not _dtype(base):
            continue
        assert read is not None
        if all(map(same_atom, at, read.args[1:])):
            added = v if total else b.call(OPS["negative"], v)
            atom: Atom = b.call(OPS["index_add"], base, added, *at, **call.attrs).atom
            return atom
    return None


@_identity("where")
def _where(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    cond, x, y = call.args
    if isinstance(cond, Const):
        chosen = x if cond.value else y
        return chosen if _is_type(chosen, let) else None
    if x is y and _is_type(x, let):
        return x
    # An infinity in place of NaN is the greater or the lesser of both: what is reduced so goes
    # through vectors, where LLVM makes none of the choice.
    asked = scope.op(cond, "isnan")
    if asked is None or asked.args[0] is not y or not _is_type(y, let) or not isinstance(x, Const):
        return None
    if x.value not in (math.inf, -math.inf) or _is_complex(let):
        return None
    found: Atom = b.call(OPS["fmax" if x.value < 0 else "fmin"], y, x).atom
    return found


@_identity("matmul")
def _matmul(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    """A transposed operand becomes a flag of the product."""
    args = list(call.args)
    flags = [call.attrs["transpose_a"], call.attrs["transpose_b"]]
    changed = False
    for k, atom in enumerate(args):
        inner = scope.op(atom, "transpose")
        if inner is None:
            continue
        axes = inner.attrs["axes"]
        rank = len(axes)
        if axes == (*range(rank - 2), rank - 1, rank - 2):
            args[k], flags[k], changed = inner.args[0], not flags[k], True
    if not changed:
        return None
    atom_: Atom = b.call(call.op, *args, transpose_a=flags[0], transpose_b=flags[1]).atom
    return atom_


@_identity("index")
def _index(let: Let, call: OpCall, b: Builder, scope: Scope) -> Atom | None:
    """Reading the element that was just written, an element of a filled array, or the only one."""
    x, *at = call.args
    update = scope.op(x, "index_update")
    if update is not None and update.attrs == call.attrs and (
        all(map(same_atom, at, update.args[2:]))
    ):
        return update.args[1] if _is_type(update.args[1], let) else None
    filled = scope.op(x, "broadcast_to")
    if filled is not None:
        source = filled.args[0]
        assert isinstance(source.type, TensorType)
        if not source.type.shape:
            if _is_type(source, let):
                return source
            assert isinstance(let.outs[0].type, TensorType)
            atom: Atom = b.call(
                OPS["broadcast_to"], source, shape=let.outs[0].type.shape
            ).atom
            return atom
    part = read_of_part(call, b, scope)
    axes = call.attrs["axes"]
    if part is None and shape_of(let.outs[0]) and all(shape_of(x)[axis] == 1 for axis in axes):
        widened = scope.op(x, "expand_dims")
        if widened is not None and _is_type(widened.args[0], let):
            return widened.args[0]
        only: Atom = b.call(OPS["squeeze"], x, axes=axes).atom
        return only
    return part


_COMPARISONS = frozenset(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])


def _both_or_either(let: Let, node: If, builder: Builder) -> Atom | None:
    """`a < b and b < c` of numbers has no branch: comparing costs less than asking whether to."""
    for name, arm, rest in (
        ("logical_and", node.then, node.orelse), ("logical_or", node.orelse, node.then)
    ):
        if len(let.outs) != 1 or let.dims or len(arm.lets) != 1 or rest.lets:
            continue
        (compared,), (short,) = arm.lets, rest.results
        alone = short is node.cond or is_number(short, name == "logical_or")
        if alone and _compares(compared) and arm.results[0] is compared.outs[0]:
            builder.lets.append(compared)
            found, ty = builder.call(OPS[name], node.cond, compared.outs[0]), let.outs[0].type
            assert isinstance(ty, TensorType)
            return builder.atom(builder.cast(found, ty.dtype, weak=ty.weak))
    return None


def _compares(let: Let) -> bool:
    """Whether a Let compares two numbers of Python or NumPy."""
    call = let.rhs
    return isinstance(call, OpCall) and call.op.name in _COMPARISONS and all(
        isinstance(a.type, TensorType) and not a.type.shape for a in call.args
    )


def _left_open(let: Let, node: If, builder: Builder) -> Replacement:
    """An array that one branch leaves open, as it raises, is there what the other one changes."""
    then, orelse = list(node.then.results), list(node.orelse.results)
    for k, (a, b) in enumerate(zip(then, orelse, strict=True)):
        for results, block, mine, other, rest in (
            (then, node.then, a, b, node.orelse), (orelse, node.orelse, b, a, node.then)
        ):
            if is_array(mine) and walk.is_call(_maker(block, mine), "undef"):
                before = _before(rest, other)
                if before is not None and before.type == mine.type:
                    results[k] = before
    if all(map(same_atom, (*then, *orelse), (*node.then.results, *node.orelse.results))):
        return None
    blocks = (
        replace(block, results=tuple(results))
        for block, results in ((node.then, then), (node.orelse, orelse))
    )
    outs = tuple(Var(out.name, out.type, span=out.span) for out in let.outs)
    builder.lets.append(Let(outs, If(node.cond, *blocks), let.dims, span=let.span))
    return Replaced(outs, tuple(map(dims.of, let.dims)))


def _maker(block: Block, atom: Atom) -> Let | None:
    """The Let of a block that makes an atom."""
    return next((let for let in block.lets if atom in let.outs), None)


def _before(block: Block, atom: Atom) -> Atom | None:
    """What was there before a block of the array that this is a later form of."""
    maker = _maker(block, atom)
    while maker is not None:
        call = maker.rhs
        if not isinstance(call, OpCall) or call.op.name not in ("index_update", "slice_update"):
            return None
        atom = call.args[0]
        maker = _maker(block, atom)
    return atom


def _same_branches(let: Let, node: If, builder: Builder) -> Replacement:
    """An output that is the same atom on both branches is that atom."""
    inside = {v for block in (node.then, node.orelse) for inner in block.lets for v in inner.outs}
    pairs = list(zip(node.then.results, node.orelse.results, strict=True))
    same = {k for k, (a, b) in enumerate(pairs) if same_atom(a, b) and a not in inside}
    if not same or let.dims:
        return None
    kept = [k for k in range(len(pairs)) if k not in same]
    then, orelse = (
        Block(block.lets, tuple(block.results[k] for k in kept), block.dims)
        for block in (node.then, node.orelse)
    )
    outs = {k: Var(let.outs[k].name, let.outs[k].type, span=let.outs[k].span) for k in kept}
    builder.lets.append(Let(tuple(outs.values()), If(node.cond, then, orelse), span=let.span))
    return [outs.get(k, a) for k, (a, _) in enumerate(pairs)]


def _invariant_carried(let: Let, loop: Loop, builder: Builder) -> Replacement:
    """A carried value whose next value is itself is the initial value throughout, and so is a
    carried extent."""
    following = loop.body.results[loop.exits :]
    extents = {
        d: first for d, first, n in zip(loop.dims, loop.init_dims, loop.body.dims, strict=True)
        if n == dims.of(d)
    }
    fixed = [
        k for k, (v, n) in enumerate(zip(loop.carried, following, strict=True))
        if n is v and types.substitute(v.type, extents) == loop.init[k].type  # type: ignore[arg-type]
    ]
    if not fixed and not extents:
        return None
    kept = [k for k in range(len(loop.carried)) if k not in fixed]
    open_dims = [p for p, d in enumerate(loop.dims) if d not in extents]
    renaming = Renaming({loop.carried[k]: loop.init[k] for k in fixed}, dict(extents))
    carried = tuple(renaming.var(loop.carried[k]) for k in kept)
    test = None if loop.test is None else copy_block(loop.test, renaming)
    handed = tuple(map(renaming.var, loop.handed))
    body = copy_block(loop.body, renaming)
    lead = body.results[: int(loop.exits)]
    results = (*lead, *(body.results[k + loop.exits] for k in kept))
    new = replace(
        loop, carried=carried, init=tuple(loop.init[k] for k in kept), test=test, handed=handed,
        body=Block(body.lets, results, tuple(body.dims[p] for p in open_dims)),
        dims=tuple(loop.dims[p] for p in open_dims),
        init_dims=tuple(loop.init_dims[p] for p in open_dims),
    )
    ended = [
        extents.get(d, dims.of(own)) for d, own in zip(loop.dims, let.dims, strict=True)
    ]
    outside = Renaming(dims=dict(zip(let.dims, ended, strict=True)))
    outs = tuple(outside.var(let.outs[k]) for k in kept)
    builder.lets.append(Let(outs, new, tuple(let.dims[p] for p in open_dims), span=let.span))
    atoms: list[Atom] = [loop.init[k] if k in fixed else None for k in range(len(loop.carried))]  # type: ignore[misc]
    for k, out in zip(kept, outs, strict=True):
        atoms[k] = out
    return Replaced(atoms, ended)
