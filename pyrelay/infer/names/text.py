"""Builtins that make text: `str`, `repr`, `ascii`, `format`, `hex`, `oct`, `bin`; `ord`, `chr`.

In: any value. Out: a string, known or made while the program runs (text.py).
"""

from __future__ import annotations

from pyrelay.infer import values as V
from pyrelay.infer.containers import characters
from pyrelay.infer.containers.text import ask, text
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.operators import compare, either
from pyrelay.ir import types


@keeps_unions
@handles(str)
def str_(it: Interpreter, object: V.Value = V.Known("")) -> V.Value:
    """str(x)."""
    return object if isinstance(object, V.Text) else text(it, str, object)


@keeps_unions
@handles(repr)
def repr_(it: Interpreter, obj: V.Value) -> V.Value:
    """repr(x)."""
    return text(it, repr, obj)


@handles(ascii)
def ascii_(it: Interpreter, obj: V.Value) -> V.Value:
    """ascii(x)."""
    return text(it, ascii, obj)


@handles(format)
def format_(
    it: Interpreter, value: V.Value, format_spec: V.Value = V.Known("")
) -> V.Value:
    """format(x, spec)."""
    return text(it, format, value, format_spec)


@handles(hex)
def hex_(it: Interpreter, number: V.Value) -> V.Value:
    """hex(number)."""
    return text(it, hex, number)


@handles(oct)
def oct_(it: Interpreter, number: V.Value) -> V.Value:
    """oct(number)."""
    return text(it, oct, number)


@handles(bin)
def bin_(it: Interpreter, number: V.Value) -> V.Value:
    """bin(number)."""
    return text(it, bin, number)


@handles(ord)
def ord_(it: Interpreter, c: V.Value) -> V.Value:
    """ord(c)."""
    code = characters.code_of(c)
    return ask(it, types.PY_INT, ord, c) if code is None else code


@handles(chr)
def chr_(it: Interpreter, i: V.Value) -> V.Value:
    """chr(i)."""
    from pyrelay.infer.flow.effects import raise_where
    from pyrelay.infer.names.builtins import int_

    if isinstance(i, V.Known):
        return text(it, chr, i)
    i = int_(it, i)

    outside = either(it, compare(it, "<", i, V.Known(0)), compare(it, ">=", i, V.Known(0x110000)))
    if outside != V.Known(False):
        message = V.Known("chr() arg not in range(0x110000)")
        raise_where(it, it.atom(outside), ValueError, message)
    return characters.of_code(it, i)
