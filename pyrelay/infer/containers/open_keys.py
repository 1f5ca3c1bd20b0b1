"""Keys of dicts, and items of sets, that only the running program knows.

In: a container of the program and a key. Out: the key, if it is known. Otherwise the container is
noted: where an attempt fails at such a key, the next one makes it a table (names/containers.py).
"""

from __future__ import annotations

import sys
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.unfolding import is_unfolded
from pyrelay.ir import types, walk
from pyrelay.ir.nodes import Block, Let, PyCall, Var


def is_open(key: V.Value) -> bool:
    """Whether a key is known only to the running program, and one that a table can hold.

    That is a number, a character, one of several constants, a node, or a tuple of such keys.
    """
    return not is_known(key) and can_be_key(key)


def wants_table(it: Interpreter, key: V.Value) -> bool:
    """Whether a container with this key has to be a table, or one of few objects."""
    return is_open(key) or is_unfolded(it, (key,))


def is_known(key: V.Value) -> bool:
    """Whether a key is a constant, or a tuple of such keys."""
    if isinstance(key, V.Tuple):
        return all(map(is_known, key.items))
    return isinstance(key, V.Known)


def can_be_key(key: V.Value) -> bool:
    """Whether a table can hold a key: a hashable constant, or what `is_open` tells of."""
    match key:
        case V.Known(value):
            return is_hashable(value)
        case V.Tuple(items):
            return all(map(can_be_key, items))
        case V.Union():
            return all(map(can_be_key, key.possible))
        case V.OpenTuple() | V.Text():
            return True
        case V.Data():
            cls: Any = key.cls
            return cls.__hash__ is not None
    return is_number(key)


def is_hashable(value: Any) -> bool:
    """Whether Python takes an object as a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_by_identity(cls: Any) -> bool:
    """Whether an object of a class is the same key as itself only."""
    return cls.__eq__ is object.__eq__ and cls.__hash__ is object.__hash__


def is_number(key: V.Value) -> bool:
    """Whether a value is a real number, Python's or NumPy's."""
    ty = V.number_type(key)
    return ty is not None and ty.dtype.kind in "biuf"


def note(ref: V.Value, key: V.Value, it: Interpreter) -> None:
    """Note a dict or set that a key is asked of which only the program knows."""
    if not isinstance(ref, V.Ref) or ref.root.kind not in ("dict", "set"):
        return
    note_objects(it, key)
    if wants_table(it, key):
        ask(it, ref.root)


def note_objects(it: Interpreter, key: V.Value) -> None:
    """Note that objects are keys, or in them: tables hold nodes."""
    if isinstance(key, (V.Ref, V.Union, V.Tuple)):
        it.heap.note_items(key.possible if isinstance(key, V.Union) else (key,))


def note_beside(it: Interpreter, block: Block) -> None:
    """Where a dict or set that a block gives keys is noted, note the others that it gives such.

    One attempt more makes tables of all of them then, where it was one for each.
    """
    found, env = set[Let](), it.frame.env

    def may_be_open(key: Any) -> bool:
        return key is None or (isinstance(key, V.Value.__args__) and is_open(key))

    for let in walk.nested_lets(block):
        if not isinstance(let.rhs, PyCall) or let.rhs.kind not in ("set_item", "set"):
            continue
        args = [env.get(atom) if isinstance(atom, Var) else atom for atom in let.rhs.args]
        if let.rhs.kind == "set":
            if any(map(may_be_open, args)):
                found.add(let)
            continue
        ref, key, _ = args
        if isinstance(ref, V.Ref) and ref.root.kind == "dict" and ref.root.made is not None and (
            may_be_open(key)
        ):
            found.add(ref.root.made)
    if found & it.program.open_keys:
        it.program.open_keys |= found


def ask(it: Interpreter, root: V.Root) -> None:
    """Note an object that could have any keys, if it were made, or entered, as a table."""
    if root.kind == "list":  # which none becomes: an attempt more would end where this one does
        return
    if root.made is not None:
        it.program.open_keys.add(root.made)
    elif root.kind in ("dict", "set"):
        it.program.opens = True


def is_int(key: V.Value) -> bool:
    """Whether a value is an int or a bool, Python's or NumPy's."""
    ty = V.number_type(key)
    return ty is not None and (ty.dtype.is_integer or ty.dtype is types.bool_)


def must_be_hashable(it: Interpreter, key: V.Value, place: str = "") -> None:
    """Raise what Python raises for a list, a dict, a set or an array as a key. place: what it would
    be, which Python says since 3.14."""
    from pyrelay.infer.flow.handling import certain

    cls = _unhashable_class(key)
    if cls is not None:
        whole = "tuple" if isinstance(key, V.Tuple) else ""
        said = unhashable(_full_name(cls), place, whole)
        raise certain(it, it.failure(errors.TypeMismatchError, said), TypeError, said)


def must_be_findable(it: Interpreter, container: V.Value, item: V.Value) -> None:
    """Raise what Python raises for `item in container` of a set or a dict, but for a set, which may
    be looked for in a set, as a frozenset of its items."""
    from pyrelay.infer.names.builtins import class_of

    cls: Any = class_of(container)
    keyed = isinstance(cls, type) and issubclass(cls, (set, frozenset, dict))
    if keyed and class_of(item) is not set:
        must_be_hashable(it, item, "a dict key" if issubclass(cls, dict) else "a set element")


def _unhashable_class(key: V.Value) -> Any:
    """The class of a key, or of the first in a tuple, that has no hash; None if all have."""
    from pyrelay.infer.names.builtins import class_of

    if isinstance(key, V.Tuple):
        return next((c for c in map(_unhashable_class, key.items) if c is not None), None)
    if not isinstance(key, (V.Ref, V.ArrayRef, V.Data)):
        return None
    cls: Any = class_of(key)
    return cls if cls is not None and cls.__hash__ is None else None


def unhashable(name: str, place: str, whole: str = "") -> str:
    """Python's words for what is of a class of this name, or in a `whole` of another."""
    said = f"unhashable type: '{name}'"
    where = place and sys.version_info >= (3, 14)
    return f"cannot use '{whole or name}' as {place} ({said})" if where else said


def _full_name(cls: type) -> str:
    written_in_c = cls.__module__ in ("numpy", "collections")
    return f"{cls.__module__}.{cls.__name__}" if written_in_c else cls.__name__


def key_of(it: Interpreter, ref: V.Ref, key: V.Value, what: str) -> Any:
    """A key of a dict or set, which is known. Notes a container that could be made with open keys.

    Raises what `Interpreter.static` raises; StaticValueError at once for an argument of a recursive
    function, which would be one function for each key (`Program.keys_known`).
    """
    must_be_hashable(it, key, "a set element" if what.endswith("set") else "a dict key")
    note(ref, key, it)
    if V.node_of(key) is not None and can_be_key(key) and ref.root.made is not None:
        it.program.of_nodes.add(ref.root.made)
    wanted = ref.root.made is not None and is_open(key) and _of_recursion(key)
    if wanted and not it.program.keys_known:
        it.program.keys_wanted = True
        raise it.failure(
            errors.StaticValueError, f"{what} must be known when the function is compiled"
        )
    return it.static(key, what)


def stored_key(it: Interpreter, ref: V.Ref, key: V.Value) -> Any:
    """The key of `d[key] = value`; raises what `key_of` raises.

    Of a dict that the program did not make, and whose keys are known, it cannot be an argument of a
    recursive function. (The keys of one that enters as a table are not: `Program.opens`.)
    """
    must_be_hashable(it, key, "a dict key")
    note(ref, key, it)
    if ref.root.made is None and not it.program.keys_known and is_open(key) and (
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
