"""Element rules run in plain Python: an emitter whose scalars are NumPy scalars.

`evaluate(op, args, attrs)` computes every element of the result by the op's element rule. It says
what the rules mean, as the interpreter does for whole arrays, and needs no kernel.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrelay.ir import types
from pyrelay.ir.op import OPS, Op
from pyrelay.ir.types import DType, TensorType
from pyrelay.ops.scalar import SCALARS
from tests.ops.calling import type_of

_RAW = {  # primitives on 64-bit integers, which wrap
    "add_overflows": lambda a, b: not _fits(int(a) + int(b)),
    "subtract_overflows": lambda a, b: not _fits(int(a) - int(b)),
    "multiply_overflows": lambda a, b: not _fits(int(a) * int(b)),
    "power": lambda a, b: _c_power(a, b),
    "true_quotient": lambda a, b: int(a) / int(b),
}


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _c_power(a: Any, b: Any) -> Any:
    """C's pow, where NumPy takes short cuts; integers to negative powers give 0."""
    if a.dtype.kind in "iu":
        return np.power(a, max(b, b.dtype.type(0)))
    if a.dtype.kind == "f" and math.isinf(a):
        return a.dtype.type(math.pow(a, b))
    return np.power(a, b)


class Emitter:
    """`s` for element rules, computing at once."""

    def __init__(self, result: tuple[TensorType, ...], weak: bool) -> None:
        self.result, self.weak = result, weak

    def const(self, value: Any, dtype: DType) -> Any:
        return dtype.numpy.type(value)

    def extent(self, extent: int) -> Any:
        return np.int64(extent)

    def cast(self, x: Any, dtype: DType) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype.numpy)[()]

    def same_bits(self, x: Any, dtype: DType) -> Any:
        return np.asarray(x).view(dtype.numpy)[()]

    def where(self, cond: Any, a: Any, b: Any) -> Any:
        return a if cond else b

    def choose(self, cond: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        return then() if cond else orelse()

    def fail(self, exception: str, parts: Sequence[str | int], cond: Any, *values: Any) -> None:
        if cond:
            text = "".join(p if isinstance(p, str) else str(values[p]) for p in parts)
            raise getattr(builtins, exception)(text)

    def of_elements(self, value: Any, index: Sequence[Any], shape: Sequence[int]) -> Any:
        return value

    def ravel(self, index: Sequence[Any], shape: Sequence[int]) -> Any:
        flat = 0
        for k, extent in zip(index, shape, strict=True):
            flat = flat * extent + k
        return flat

    def regrouped(
        self, index: Sequence[Any], shape: Sequence[int], other: Sequence[int]
    ) -> tuple[Any, ...]:
        flat, found = self.ravel(index, shape), []
        for extent in reversed(other):
            found.append(flat % extent)
            flat = flat // extent
        return tuple(reversed(found))

    def reduce(
        self, name: str, extents: Sequence[int], rule: Callable[..., Any], dtype: DType
    ) -> Any:
        items = [dtype.numpy.type(rule(r)) for r in _indices(extents)]
        first = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True}
        if name in first:
            items.insert(0, dtype.numpy.type(first[name]))
        return functools.reduce(getattr(self, name), items)

    def argreduce(self, kind: str, extents: Sequence[int], rule: Callable[..., Any]) -> Any:
        items = np.array([rule(r) for r in _indices(extents)])
        return np.int64(items.argmax() if kind == "max" else items.argmin())

    def bisect(self, extent: int, asked: Callable[[Any], Any], number: Any = None) -> Any:
        return np.int64(sum(1 for k in range(extent) if asked(np.int64(k))))

    def scaled(self, g: Any, slope: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.where(g == 0, np.zeros_like(g), g * slope)[()]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def primitive(*args: Any) -> Any:
            scalar = SCALARS[name]
            kind = np.asarray(args[-1]).dtype.kind
            assert kind in scalar.kinds, f"{name} of {kind} is not in the scalar table"
            assert len(args) == scalar.arity, name
            compute = _RAW.get(name) or OPS[name].numpy
            with np.errstate(all="ignore"):
                return np.asarray(compute(*args))[()]

        return primitive


class Reader:
    """An operand, read by index."""

    def __init__(self, value: Any) -> None:
        self.type = type_of(value)
        assert isinstance(self.type, TensorType)
        self.dtype, self.shape, self.rank = self.type.dtype, self.type.shape, self.type.rank
        self.array = np.asarray(value, self.dtype.numpy)

    def __call__(self, index: Sequence[Any]) -> Any:
        own = index[len(index) - self.rank :] if self.rank else ()
        place = tuple(0 if d == 1 else int(k) for k, d in zip(own, self.shape, strict=True))
        assert all(0 <= k < d for k, d in zip(place, self.shape, strict=True))
        return self.array[place]


def _indices(extents: Sequence[int]) -> Any:
    ranges = [[np.int64(k) for k in range(d)] for d in extents]
    return itertools.product(*ranges)


def evaluate(op: Op, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """The result of an op with one output, element by element. Raises what the rule raises."""
    assert op.element is not None
    readers = [Reader(a) for a in args]
    (ty,) = op.relation(tuple(r.type for r in readers), attrs)
    weak = bool(readers) and all(r.type.weak for r in readers)
    s = Emitter((ty,), weak)
    result = np.empty(ty.shape, ty.dtype.numpy)
    for index in _indices(ty.shape):
        value = op.element(s, index, *readers, **attrs)
        assert types.from_numpy(np.asarray(value).dtype) == ty.dtype, op.name
        result[tuple(map(int, index))] = value
    return result[()]
