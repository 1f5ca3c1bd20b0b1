"""Keys of dicts, and items of sets, that only the running program knows.

In: a container of the program and a key. Out: the key, if it is known. Otherwise the container is
noted: where an attempt fails at such a key, the next one makes it a table (names_containers.py).
"""

from __future__ import annotations

from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.characters import code_of
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types


def is_open(it: Interpreter, key: V.Value) -> bool:
    """Whether a key is known only to the running program: an int, a character, a tuple of them."""
    if isinstance(key, V.Tuple):
        plain = all(is_int(k) or code_of(k) is not None for k in key.items)
        return plain and any(is_open(it, k) for k in key.items)
    return not isinstance(key, V.Known) and (is_int(key) or code_of(key) is not None)


def is_int(key: V.Value) -> bool:
    """Whether a value is an int or a bool, Python's or NumPy's."""
    ty = V.number_type(key)
    return ty is not None and (ty.dtype.is_integer or ty.dtype is types.bool_)


def key_of(it: Interpreter, ref: V.Ref, key: V.Value, what: str) -> Any:
    """A key of a dict or set, which is known. Notes a container that could be made with open keys.

    Raises what `Interpreter.static` raises; StaticValueError at once for an argument of a recursive
    function, which would be one function for each key (`Program.keys_known`).
    """
    if ref.root.made is not None and is_open(it, key):
        it.program.open_keys.add(ref.root.made)
        if not it.program.keys_known and _of_recursion(key):
            it.program.keys_wanted = True
            raise it.failure(
                errors.StaticValueError, f"{what} must be known when the function is compiled"
            )
    return it.static(key, what)


def stored_key(it: Interpreter, ref: V.Ref, key: V.Value) -> Any:
    """The key of `d[key] = value`; raises what `key_of` raises.

    Of a dict that the program did not make it cannot be an argument of a recursive function: what
    is compiled knows the keys of such a dict.
    """
    if ref.root.made is None and not it.program.keys_known and is_open(it, key) and (
        _of_recursion(key)
    ):
        it.program.keys_wanted = True
        raise it.failure(
            errors.StaticValueError,
            "a dict that comes from outside the program gets a key here that only the running "
            "program knows",
            hints=("make the dict in the compiled function and hand it on: memo = {}",
                   "or put @functools.cache on the recursive function, which keeps a table"),
        )
    return key_of(it, ref, key, "the key of a dict")


def _of_recursion(key: V.Value) -> bool:
    """Whether a key is an argument of a function of its own, or has one."""
    if isinstance(key, V.Tuple):
        return any(map(_of_recursion, key.items))
    origin = getattr(key, "origin", None)
    return isinstance(origin, tuple) and not isinstance(origin[0], str)
