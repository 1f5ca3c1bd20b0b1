"""Arithmetic of 16-bit floats, written as NumPy does it: in float32, each result rounded.

In: a module whose derivatives are expanded. Out: one where numbers of 16 bits are only moved,
chosen and cast. Kernels thus need no arithmetic in that type: they read and write 16 bits an
element, and what stays inside of a kernel is rounded in a register.

NumPy computes float16 this way, element by element, and ml_dtypes bfloat16; sums and products of
matrices add up in float32 and round once, as NumPy's loops over the last axes do for float16
(`HALF_add` and `HALF_matmul_inner_noblas` of its sources). Sums along other axes, running sums and
all sums of bfloat16, where NumPy rounds after every step, are rounded once here too, which is
closer to the exact sum.
"""

from __future__ import annotations

from typing import Any

from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Atom, Let, Module, OpCall
from pyrelay.ir.op import OPS, Fusion, Op
from pyrelay.ir.types import DType, TensorType, Type, f32
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite_module

_MOVING = frozenset(["cast", "where", "stop_gradient", "positive", "check_item", "scatter_update"])
_ADDING = {"index_add": ("index", "index_update"), "slice_add": ("slice", "slice_update")}


def halves(module: Module) -> Module:
    """The module without arithmetic in 16 bits."""
    return rewrite_module(module, _rule)


def is_half(dtype: DType) -> bool:
    """Whether an element type is a float of 16 bits."""
    return dtype.kind == "f" and dtype.size == 2


def _half(ty: Type | None) -> DType | None:
    return ty.dtype if isinstance(ty, TensorType) and is_half(ty.dtype) else None


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall):
        return None
    atoms: tuple[Atom, ...] = (*rhs.args, *let.outs)
    if all(_half(a.type) is None for a in atoms):
        return None
    if _moves(rhs.op, rhs.args, let.outs[0].type if let.outs else None):
        return None
    if rhs.op.name in _ADDING:
        return (_added(rhs, builder).atom,)
    widened = [_wide(builder, a) for a in rhs.args]
    attrs = {name: _wide_attribute(value) for name, value in rhs.attrs.items()}
    made = builder.call(rhs.op, *widened, **attrs)
    results, extents = made if rhs.op.binds else (made, ())
    results = results if isinstance(results, tuple) else (results,)
    atoms = tuple(
        builder.cast(result, out.type.dtype, weak=out.type.weak)
        if isinstance(out.type, TensorType) else result.atom
        for result, out in zip(results, let.outs, strict=True)
    )
    return Replaced(atoms, extents)


def _moves(op: Op, args: tuple[Atom, ...], to: Type | None) -> bool:
    """Whether an op gives elements as they are."""
    if op.name in _ADDING:
        return False
    if op.name == "cast" and isinstance(to, TensorType) and to.dtype.kind in "iu":
        return False  # what is no number is looked for
    if op.name in _MOVING or op.schedule in ("plan", "host"):
        return True
    return op.fusion is Fusion.INJECTIVE and bool(args)


def _wide(builder: Builder, atom: Atom) -> Atom:
    return atom if _half(atom.type) is None else builder.cast(atom, f32)


def _wide_attribute(value: Any) -> Any:
    return f32 if isinstance(value, DType) and is_half(value) else value


def _added(call: OpCall, builder: Builder) -> Handle:
    """Elements read, added to and stored: the array around them is not touched."""
    read, write = (OPS[name] for name in _ADDING[call.op.name])
    array, value, *positions = call.args
    there = builder.call(read, array, *positions, **call.attrs)
    total = builder.call(OPS["add"], _wide(builder, there.atom), _wide(builder, value))
    rounded = builder.cast(total, there.dtype)
    made: Handle = builder.call(write, array, rounded, *positions, **call.attrs)
    return made
