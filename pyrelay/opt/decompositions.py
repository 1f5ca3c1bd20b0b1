"""Decompositions of several steps as those steps, of which the loops of NumPy's ufuncs do the most.

In: a module whose derivatives are expanded. Out: one where `eig` and `eigvals` are a check that the
matrix is finite, the loop, and a look at whether all eigenvalues are real; `qr` is reflections, the
triangle that they leave and their product; `pinv` is made of singular vectors; `cofactors` of
matrices that are not small are made of the inverse, where that is exact; all are computed with
doubles: what NumPy's functions do in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType
from pyrelay.ops.linalg import WELL_CONDITIONED
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

_DOUBLE = {types.f32: types.f64, types.c64: types.c128}
_SINGLE = {double: single for single, double in _DOUBLE.items()}
_IN_DOUBLE = frozenset([
    "solve", "inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "svd", "svdvals",
    "least_squares",
])  # fmt: skip


def decompositions(module: Module) -> Module:
    """The module with what it decomposes in steps."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    call = let.rhs
    if not isinstance(call, OpCall):
        return None
    given = [builder.handle(a) for a in call.args]
    if call.op.name in _STEPS and not call.attrs.get("small", False):
        return [h.atom for h in _STEPS[call.op.name](builder, *given, **call.attrs)]
    if call.op.name in _IN_DOUBLE and given[0].dtype in _DOUBLE:
        return [h.atom for h in _wide(builder, call.op.name, *given, **call.attrs)]
    return None


def _wide(b: Builder, name: str, *given: Handle, **attrs: Any) -> list[Handle]:
    """What an op gives, computed with numbers of twice the bits, which is how NumPy has it."""
    found = b.call(OPS[name], *(_as(b, x, _DOUBLE.get(x.dtype, x.dtype)) for x in given), **attrs)
    results = found if isinstance(found, tuple) else (found,)
    single = given[0].dtype in _DOUBLE
    return [_as(b, y, _SINGLE.get(y.dtype, y.dtype)) if single else y for y in results]


def _eig(b: Builder, a: Handle) -> list[Handle]:
    _finite(b, a)
    w, v = b.call(OPS["eig_vectors"], _as(b, a, _DOUBLE.get(a.dtype, a.dtype)))
    dtype = types.c64 if a.dtype in _DOUBLE else types.c128
    return [_all_real(b, a, w), _as(b, w, dtype), _as(b, v, dtype)]


def _eigvals(b: Builder, a: Handle) -> list[Handle]:
    _finite(b, a)
    w = b.call(OPS["eig_values"], _as(b, a, _DOUBLE.get(a.dtype, a.dtype)))
    return [_all_real(b, a, w), _as(b, w, types.c64 if a.dtype in _DOUBLE else types.c128)]


def _finite(b: Builder, a: Handle) -> None:
    """LAPACK need not return from others."""

    def fail(inner: Builder) -> list[Any]:
        text = "Array must not contain infs or NaNs"
        inner.call(OPS["raise"], exception=np.linalg.LinAlgError, parts=(text,))
        return []

    b.cond(_all(b, b.call(OPS["isfinite"], a)), lambda inner: [], fail)


def _all(b: Builder, flags: Handle) -> Handle:
    found = b.call(OPS["all"], flags, axes=tuple(range(flags.rank)), keepdims=False)
    return b.handle(b.cast(found, types.bool_, weak=True))


def _all_real(b: Builder, a: Handle, w: Handle) -> Handle:
    if a.dtype.kind == "c":
        return b.handle(False)
    return _all(b, b.call(OPS["equal"], b.call(OPS["imag"], w), 0))


def _qr(b: Builder, a: Handle, *, full: bool) -> list[Handle]:
    dtype = a.dtype
    wide = _as(b, a, _DOUBLE.get(dtype, dtype))
    reflections, factors = b.call(OPS["qr_reflections"], wide)
    size = a.shape[-2] if full else dims.minimum(a.shape[-2], a.shape[-1])
    upper = b.call(
        OPS["slice"], reflections, starts=(0,) * a.rank, steps=(1,) * a.rank,
        sizes=(*a.shape[:-2], size, a.shape[-1]),
    )
    row, column = (
        b.call(OPS["expand_dims"], b.call(OPS["iota"], size=n, dtype=types.i64), axes=(axis,))
        for n, axis in ((size, 1), (a.shape[-1], 0))
    )
    inside = b.call(OPS["less_equal"], row, column)
    triangle = b.call(OPS["where"], inside, upper, b.cast(0.0, wide.dtype))
    q = b.call(OPS["qr_product"], reflections, factors, full=full)
    return [_as(b, q, dtype), _as(b, triangle, dtype)]


def _pinv(b: Builder, a: Handle, rcond: Handle, *, cut: bool) -> list[Handle]:
    conjugate = b.call(OPS["conj"], a) if a.dtype.kind == "c" else a
    u, s, vt = _wide(b, "svd", conjugate, full=False)
    greatest = b.call(OPS["max"], s, axes=(s.rank - 1,), keepdims=True)
    kept = b.call(OPS["less"], greatest * _as(b, rcond, s.dtype), s)
    one = b.cast(1.0, s.dtype)
    inverse = b.call(OPS["where"], kept, one / b.call(OPS["where"], kept, s, one), 0.0)
    order = (*range(u.rank - 2), u.rank - 1, u.rank - 2)
    scaled = b.call(OPS["transpose"], u, axes=order) * _as(
        b, b.call(OPS["expand_dims"], inverse, axes=(s.rank,)), a.dtype
    )
    return [b.call(OPS["matmul"], vt, scaled, transpose_a=True, transpose_b=False)]


def _cofactors(b: Builder, a: Handle, *, small: bool) -> list[Handle]:
    wide, axes = _as(b, a, _DOUBLE.get(a.dtype, a.dtype)), (a.rank - 2, a.rank - 1)
    inverse = b.call(OPS["inverse"], wide)

    def squares(x: Handle) -> Handle:
        size = b.call(OPS["absolute"], x) if x.dtype.kind == "c" else x
        found: Handle = b.call(OPS["sum"], size * size, axes=axes, keepdims=False)
        return found

    def scaled(inner: Builder) -> list[Handle]:
        whole = inner.call(OPS["det"], wide, small=False)
        order = (*range(a.rank - 2), a.rank - 1, a.rank - 2)
        turned = inner.call(OPS["transpose"], inverse, axes=order)
        return [_as(inner, turned * inner.call(OPS["expand_dims"], whole, axes=axes), a.dtype)]

    def other(inner: Builder) -> list[Handle]:
        return [_as(inner, inner.call(OPS["all_cofactors"], wide), a.dtype)]

    well = b.call(OPS["less"], squares(wide) * squares(inverse), WELL_CONDITIONED**2)
    return list(b.cond(_all(b, well), scaled, other))


def _as(b: Builder, x: Handle, dtype: DType) -> Handle:
    assert isinstance(x.type, TensorType)
    return b.handle(b.cast(x, dtype))


_STEPS: dict[str, Any] = {
    "eig": _eig, "eigvals": _eigvals, "qr": _qr, "pinv": _pinv, "cofactors": _cofactors,
}
