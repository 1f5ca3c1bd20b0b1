"""Builtins that make text: `str`, `repr`, `ascii`, `format`, `hex`, `oct`, `bin`.

In: any value. Out: a string, known or made while the program runs (text.py).
"""

from __future__ import annotations

from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handles, keeps_unions
from pyrelay.infer.text import text


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
