"""Known bytes of which the running program asks.

In: bytes that are known while compiling. Out: their items at places that only the running program
knows, and the same bytes as an object of in_python/byte_arrays.py, which has their methods.
"""

from __future__ import annotations

from pyrelay.infer import own_arrays
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types
from pyrelay.ir.build import constant
from pyrelay.ir.op import OPS


def is_known(value: V.Value) -> bool:
    """Whether a value is known bytes."""
    return isinstance(value, V.Known) and isinstance(value.value, bytes)


def opened(it: Interpreter, value: V.Value) -> V.Value:
    """Known bytes as what the program makes; other values unchanged."""
    if not is_known(value):
        return value
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python.byte_arrays import ByteString

    return call(it, V.Known(ByteString), (value,), {})


def item(it: Interpreter, value: bytes, index: V.Value, *, checked: bool = False) -> V.Value:
    """value[index], an int; checked: the index is known to lie inside."""
    from pyrelay.infer.attributes import captured

    if isinstance(index, V.Known):
        return V.Known(value[index.value])
    array = captured(it, own_arrays.codes(value.decode("latin-1")))
    place = it.builder.cast(it.atom(index), types.i64, weak=True)
    if not checked:
        size, text = constant(len(value), types.PY_INT), "index out of range"
        place = it.builder.call(OPS["check_item"], place, size, text=text).atom
    found = it.emit("index", it.atom(array), place, axes=(0,))
    return it.result(it.builder.handle(it.builder.cast(found.atom, types.i64, weak=True)))
