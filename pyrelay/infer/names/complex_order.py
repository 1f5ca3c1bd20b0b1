"""np.max, np.argmax, np.maximum, np.clip and those of the least, of complex numbers.

In: values of which one is complex. Out: what the functions in in_python/complex_order.py give,
which look at lines; other values keep the ops that they have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.in_python import complex_order
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import elementwise, handles, of_ufunc
from pyrelay.ir import dims

_OF_LINES = {
    "max": complex_order.largest, "min": complex_order.least, "argmax": complex_order.argmax,
    "argmin": complex_order.argmin,
}


def is_complex(it: Interpreter, *values: V.Value) -> bool:
    """Whether one of these numbers or arrays is complex."""
    found = (V.tensor_type(v) for v in values)
    return any(ty is not None and ty.dtype.kind == "c" for ty in found)


def reduced(it: Interpreter, op: str, x: V.Value, axes: tuple[int, ...], keep: bool) -> V.Value:
    """A complex array without some of its axes, or with extents of 1 in place of them."""
    ty = it.tensor(x)
    rest = tuple(k for k in range(ty.rank) if k not in axes)
    moved = it.emit("transpose", x, axes=rest + axes)
    shape = (*(ty.shape[k] for k in rest), dims.product(ty.shape[k] for k in axes))
    lines = it.call("reshape", moved, shape=shape)
    found = call(it, V.Known(_OF_LINES[op]), (lines,), {})
    return it.call("expand_dims", found, axes=axes) if keep and axes else found


def clipped(it: Interpreter, x: V.Value, low: V.Value, high: V.Value) -> V.Value:
    """np.clip with two bounds."""
    return call(it, V.Known(complex_order.clip), (x, low, high), {})


def extreme(op: str) -> Callable[..., V.Value]:
    """The handler of np.maximum or np.minimum."""
    plain = elementwise(op)

    def handler(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
        from pyrelay.infer.names.adapters import operand

        values = operand(it, x), operand(it, y)
        if is_complex(it, *values):
            return call(it, V.Known(getattr(complex_order, op)), values, {})
        return plain(it, x, y)

    return handler


handles(np.maximum)(of_ufunc(np.maximum, extreme("maximum")))
handles(np.minimum)(of_ufunc(np.minimum, extreme("minimum")))
