"""Builtins that make text: `str`, `repr`, `ascii`, `format`, `hex`, `oct`, `bin`; `ord`, `chr`.

In: any value. Out: a string, known or made while the program runs (text.py).
"""

from __future__ import annotations

import os

import numpy as np

from pyrelay import errors
from pyrelay.infer import calls
from pyrelay.infer import values as V
from pyrelay.infer.attributes import get_attribute
from pyrelay.infer.containers import characters, column_content, columns, mappings
from pyrelay.infer.containers.text import ask, called, is_text, of_exception, text
from pyrelay.infer.flow.unions import distribute
from pyrelay.infer.in_python import numbers_in_texts, strings
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.nodes.dicts import new_dict
from pyrelay.infer.operators import compare, either, raised
from pyrelay.infer.own_texts import said
from pyrelay.ir import types


@keeps_unions
@handles(str)
def str_(it: Interpreter, object: V.Value = V.Known("")) -> V.Value:
    """str(x)."""
    if isinstance(object, V.Union) and V.node_of(object) is None:
        return distribute(it, object, lambda case: str_(it, case))
    own = of_exception(it, object) or said(it, object, "__str__")
    if own is not None:
        return own
    return object if isinstance(object, V.Text) else text(it, str, object)


@handles(np.array_str)
@handles(np.array2string)
def array_str(it: Interpreter, a: V.Value, **options: V.Value) -> V.Value:
    """np.array_str(x) and np.array2string(x): what str(x) says of an array with axes."""
    if options or not isinstance(a, V.ArrayRef) or not a.type.shape:
        raise it.failure(
            errors.UnsupportedOperationError,
            "a text is made of an array with axes, and without options",
            hints=("write str(x), or a format of each element: f'{x[0]:.2f}'",),
        )
    return str_(it, a)


@handles(os.fspath)
def fspath(it: Interpreter, path: V.Value) -> V.Value:
    """os.fspath(path) of a string; of another object, what its class says."""
    if is_text(path):
        return path
    return calls.call(it, get_attribute(it, path, "__fspath__"), (), {})


@handles(str.maketrans)
def maketrans(
    it: Interpreter, x: V.Value, y: V.Value | None = None, z: V.Value | None = None
) -> V.Value:
    """str.maketrans(mapping), or of two strings of one length and of what is left out."""
    if y is None:
        content = {
            ord(k) if isinstance(k, str) and len(k) == 1 else k: v
            for k, v in mappings.taken(
                it, {}, x, lambda key: it.static(key, "a key of str.maketrans")
            ).items()
        }
        return new_dict(it, content)
    given = [v for v in (x, y, z) if v is not None]
    if not all(isinstance(v, V.Known) for v in given) and all(map(is_text, given)):
        rest = V.Known("") if z is None else z
        return calls.call(it, V.Known(strings.pairs_of_texts), (x, y, rest), {})
    texts = [it.static(v, "a text for str.maketrans") for v in given]
    try:
        made = str.maketrans(*texts)
    except (TypeError, ValueError) as error:
        raise raised(it, error) from None
    return new_dict(it, {k: V.Known(v) for k, v in made.items()})


@handles(strings.between)
def between(it: Interpreter, string: V.Value, bounds: V.Value) -> V.Value:
    """The parts of a string between places: a list of texts, whose code points are one array."""
    codes = characters.codes(it, string)
    assert codes is not None
    given = calls.call(it, V.Known(strings.rows_between), (codes, bounds), {})
    assert isinstance(given, V.Tuple)
    arrays = [it.new_array(it.builder.cast(it.atom(array), types.i64)) for array in given.items]
    content = column_content.content(
        columns.TEXT, range(len(arrays)),
        lambda leaf, axis: arrays[leaf].type.shape[axis], lambda _, leaf: it.atom(arrays[leaf]),
    )
    return it.new_ref("list", content)


@handles(strings.codes_of_python)
def codes_of_python(it: Interpreter, string: V.Value, name: V.Value) -> V.Value:
    """The code points of what a method gives that only Python can tell, in a list of their own."""
    from pyrelay.infer.containers.open_sequences import codes_of_item

    none = V.Tuple(())
    return codes_of_item(it, text(it, called, name, string, none, none))


@handles(numbers_in_texts.whole_of_python)
def whole_of_python(it: Interpreter, string: V.Value, base: V.Value) -> V.Value:
    """int(string, base) of a text that only Python can read."""
    return ask(it, types.PY_INT, int, string, base)


@handles(numbers_in_texts.said_of_none)
def said_of_none(it: Interpreter, kind: V.Value, string: V.Value) -> V.Value:
    """What Python says of a text that is no number."""
    return text(it, numbers_in_texts.said_of_none, kind, string)


@handles(numbers_in_texts.real_of_python)
def real_of_python(it: Interpreter, string: V.Value) -> V.Value:
    """float(string) of a text that only Python can read."""
    return ask(it, types.PY_FLOAT, float, string)


@keeps_unions
@handles(repr)
def repr_(it: Interpreter, obj: V.Value) -> V.Value:
    """repr(x)."""
    return said(it, obj, "__repr__") or text(it, repr, obj)


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
