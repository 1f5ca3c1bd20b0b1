"""Hash numbers of the keys of tables (in_python/tables.py), hash() and id().

In: a key: a number, a text, a constant, an object, one of several of these, a tuple of keys. Out:
an int; keys that Python takes for equal (1 and 1.0, an `IntEnum`'s member and its number) have the
same.
"""

from __future__ import annotations

import dataclasses
import enum
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import own_arrays, protocols
from pyrelay.infer import values as V
from pyrelay.infer.attributes import get_attribute
from pyrelay.infer.calls import call
from pyrelay.infer.containers.characters import code_of, codes, is_data
from pyrelay.infer.containers.open_keys import (
    can_be_key,
    is_by_identity,
    is_int,
    is_number,
    must_be_hashable,
)
from pyrelay.infer.containers.open_sequences import open_text
from pyrelay.infer.flow import constants
from pyrelay.infer.in_python import set_order, tables, text_hashes
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.nodes.plans import NeedsNodesOf
from pyrelay.infer.operators import binary, compare, number
from pyrelay.ir import types, walk
from pyrelay.ir.nodes import PyCall, Rhs, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType

#: Floats from here on are no longer ints of 64 bits.
_LARGEST = 2.0**62


@keeps_unions
@handles(tables.hash_of)
def hash_of(it: Interpreter, key: V.Value) -> V.Value:
    """A number for a key; its low bits differ for keys of any stride."""
    mixed = V.Scalar(
        types.PY_INT, it.builder.cast(it.atom(_number(it, key)), types.i64, weak=True)
    )
    folded = binary(it, "^", mixed, binary(it, ">>", mixed, V.Known(17)))
    return binary(it, "^", folded, binary(it, ">>", folded, V.Known(8)))


@handles(hash)
def hash_(it: Interpreter, obj: V.Value) -> V.Value:
    """hash(obj). Raises UnsupportedOperationError for what is hashed by its address."""
    own = protocols.special(it, obj, "__hash__")
    if own is not None:
        return call(it, V.Known(set_order.hash_of_own), (own,), {})
    cls: Any = obj.cls if protocols.is_object(obj) else None
    if cls is not None and protocols.is_generated(cls.__hash__):
        return python_hash(it, _compared(it, obj))
    must_be_hashable(it, obj)
    if not can_be_key(obj) or cls is not None or without_order(it, obj) is not None:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"the hash of {V.describe(obj)} is made of its address, which a compiled function has "
            "not",
            hints=("number the objects: keep them in a list, and their positions with them",),
        )
    return python_hash(it, obj)


class _Address(NamedTuple):
    """id(object) while the program runs."""

    object: Any


class Address(_Address):
    """id(object) as a key: where Python gets it, it is the int."""

    __slots__ = ()

    def __new__(cls, object: Any) -> Any:
        """The address of an object that Python holds."""
        return id(object)


#: Methods of dicts and sets whose first argument is a key.
_OF_KEYS = frozenset(["add", "discard", "get", "pop", "remove", "setdefault"])


@handles(id)
def id_(it: Interpreter, obj: V.Value) -> V.Value:
    """id(obj) where it is a key or is compared: the object, which is the same key as itself only.
    Raises UnsupportedOperationError elsewhere, and for what is no such object."""
    if protocols.is_object(obj) and is_by_identity(obj.cls) and _is_key(it):
        return V.Tuple((obj,), Address)
    raise it.failure(
        errors.UnsupportedOperationError,
        f"the id of {V.describe(obj)} is its address, which a compiled function has not",
        notes=("ids of objects whose class has no __eq__ may be keys of sets and dicts",),
        hints=("compare with 'is', or keep the objects in a list, and their positions with them",),
    )


def _is_key(it: Interpreter) -> bool:
    """Whether what this Let makes is looked up, entered as a key, or compared, and nothing else."""
    assert it.let is not None
    (made,) = it.let.outs
    body = it.frame.function.body
    lets = list(walk.nested_lets(body))
    callees = {let.outs[0]: let.rhs for let in lets if let.outs}
    blocks = [body, *(b for let in lets for b in walk.blocks(let.rhs))]
    return all(made not in block.results for block in blocks) and all(
        _takes_key(let.rhs, place, callees)
        for let in lets for place, atom in enumerate(walk.operands(let.rhs)) if atom is made
    )


def _takes_key(rhs: Rhs, place: int, callees: Mapping[Var, Rhs]) -> bool:
    """Whether the operand at this place is a key, or compared as a key is."""
    if not isinstance(rhs, PyCall):
        return False
    match rhs.kind:
        case "compare":
            op = rhs.attrs["op"]
            return op in ("==", "!=") or (op in ("in", "not in") and not place)
        case "item" | "set_item" | "del_item":
            return place == 1
        case "dict":
            return not place % 2 and not rhs.attrs["merged"][place // 2]
        case "set":
            return True
        case "call":
            callee = callees.get(rhs.args[0]) if isinstance(rhs.args[0], Var) else None
            method = isinstance(callee, PyCall) and callee.kind == "attribute"
            return place == 1 and method and callee.attrs["name"] in _OF_KEYS  # type: ignore[union-attr]
    return False


def _compared(it: Interpreter, obj: V.Value) -> V.Tuple:
    """The fields of an object of a dataclass that its hash is made of."""
    fields = dataclasses.fields(obj.cls)  # type: ignore[union-attr, arg-type]
    hashed = (f.name for f in fields if (f.compare if f.hash is None else f.hash))
    return V.Tuple(tuple(get_attribute(it, obj, name) for name in hashed))


@keeps_unions
@handles(tables.number_of)
def number_of(it: Interpreter, key: V.Value) -> V.Value:
    """The number that the hash of a key, or of what it is part of, is made of."""
    return _number(it, key)


@keeps_unions
@handles(set_order.python_hash)
def python_hash(it: Interpreter, key: V.Value) -> V.Value:
    """hash(key); of what is a key by identity the number that tables take: Python's is made of the
    address of the object, so any order of these is one that Python may have."""
    if isinstance(key, V.Union):
        from pyrelay.infer.flow.unions import distribute

        return distribute(it, key, lambda case: python_hash(it, case))
    if isinstance(key, V.Known) and isinstance(key.value, tuple):
        key = V.Tuple(tuple(map(V.Known, key.value)))
    if isinstance(key, V.Known) and isinstance(key.value, frozenset):
        return _mixed(it, set_order.hash_of_members, map(V.Known, key.value))
    if isinstance(key, V.Tuple):
        return _mixed(it, set_order.hash_of_lanes, key.items)
    if isinstance(key, V.OpenTuple):
        return _as_int(it, call(it, V.Known(set_order.hash_of_items), (key,), {}))
    text = _text_hashed(key)
    if text is not None:
        return _hash_of_text(it, text)
    if isinstance(key, V.Known):
        return V.Known(hash(key.value)) if _hash_is_of_value(key.value) else hash_of(it, key)
    if isinstance(key, V.Data):
        return hash_(it, key) if _is_by_value(key) else hash_of(it, key)
    key = number(it, key)
    if is_int(key):
        return call(it, V.Known(set_order.hash_of_int), (_as_int(it, key),), {})
    return call(it, V.Known(set_order.hash_of_float), (key,), {})


def _mixed(it: Interpreter, mixing: Callable[..., Any], items: Iterable[V.Value]) -> V.Value:
    """The hash that is mixed of those of some items."""
    lanes = tuple(as_word(it, python_hash(it, item)) for item in items)
    return _as_int(it, call(it, V.Known(mixing), (V.Tuple(lanes),), {}))


def _text_hashed(key: V.Value) -> V.Value | None:
    """The text that the hash of a key is the hash of: its own, or a name; None of other keys."""
    if isinstance(key, V.Text):
        return key
    if not isinstance(key, V.Known):
        return None
    own: Any = type(key.value).__hash__
    if own is str.__hash__:
        return V.Known(str.__str__(key.value))
    if own is bytes.__hash__:
        return V.Known(key.value.decode("latin-1"))
    return V.Known(key.value._name_) if own is enum.Enum.__hash__ else None


def _hash_of_text(it: Interpreter, text: V.Value) -> V.Value:
    """hash(text) in the process that the program runs in (in_python/text_hashes.py)."""
    from pyrelay.infer.attributes import captured

    array = codes(it, text)
    if array is None:
        code = code_of(text)
        array = codes(it, open_text(it, text)) if code is None else it.new_array(
            it.builder.call(OPS["reshape"], it.atom(code), shape=(1,)).atom
        )
    assert array is not None
    key = captured(it, own_arrays.key_of_hashes())
    return _as_int(it, call(it, V.Known(text_hashes.hash_of_codes), (array, key), {}))


@handles(set_order.as_word)
def as_word(it: Interpreter, number: V.Value) -> V.Value:
    """The 64 bits of an int."""
    if isinstance(number, V.Known):
        return V.Known(np.uint64(number.value % (1 << 64)))
    b = it.builder
    word = b.call(OPS["bitcast"], b.handle(it.atom(number)), dtype=types.u64)
    return V.Scalar(TensorType(types.u64), word.atom)


def _as_int(it: Interpreter, number: V.Value) -> V.Value:
    b, ty = it.builder, it.tensor(number)
    found = it.atom(number)
    if ty.dtype is types.u64:
        found = b.call(OPS["bitcast"], b.handle(found), dtype=types.i64).atom
    return V.Scalar(types.PY_INT, b.cast(found, types.i64, weak=True))


def without_order(it: Interpreter, key: V.Value) -> str | None:
    """What a key has whose hash is computed by code of its class, so that its place in a set is
    not known; None if it has nothing."""
    match key:
        case V.Known(value):
            return _constant_without_order(value)
        case V.Tuple(items):
            return _first(without_order(it, item) for item in items)
        case V.OpenTuple(items):
            content = it.content(items.root)
            if isinstance(content, tuple):
                return without_order(it, V.Tuple(content))
            return None if isinstance(content.template, L.LScalar) else "such tuples"
        case V.Union():
            return _first(without_order(it, case) for case in key.possible)
        case V.Text():
            return None if own_arrays.HASHES_TEXTS else "texts"
        case V.Data():
            if not protocols.is_object(key):
                return "such objects"
            generated = protocols.is_generated(key.cls.__hash__)
            return without_order(it, _compared(it, key)) if generated else None
    return None


def _first(found: Iterable[str | None]) -> str | None:
    return next(filter(None, found), None)


def _constant_without_order(value: Any) -> str | None:
    if isinstance(value, (tuple, frozenset)):
        return _first(map(_constant_without_order, value))
    if _text_hashed(V.Known(value)) is not None:
        return None if own_arrays.HASHES_TEXTS else "texts"
    own: Any = type(value).__hash__
    by_identity = own in (object.__hash__, type.__hash__, type(None).__hash__)
    return None if by_identity or _hash_is_of_value(value) else "such objects"


def _hash_is_of_value(value: Any) -> bool:
    """Whether the hash of a constant is that of a number, the same in every process."""
    own: Any = type(value).__hash__
    of_number = own in (int.__hash__, float.__hash__) and value == value
    return isinstance(value, np.generic) or of_number


@handles(tables.differ)
def differ(it: Interpreter, now: V.Value, before: V.Value) -> V.Value:
    """now != before of two ints; false where they are one variable, without asking at run time."""
    if isinstance(now, V.Scalar) and isinstance(before, V.Scalar) and now.atom is not None and (
        now.atom is before.atom
    ):
        return V.Known(False)
    return compare(it, "!=", now, before)


@handles(tables.crowded)
def crowded(it: Interpreter, entries: V.Value, slots: V.Value) -> V.Value:
    """Whether a table is too full, as an op that `opt/rooms` finds."""
    if isinstance(entries, V.Known) and isinstance(slots, V.Known):
        return V.Known(tables.crowded(entries.value, slots.value))
    return it.result(it.builder.call(OPS["crowded"], it.atom(entries), it.atom(slots)))


def _number(it: Interpreter, key: V.Value) -> V.Value:
    if isinstance(key, V.Union):
        return _of_cases(it, key)
    if isinstance(key, V.Data) and (is_by_identity(key.cls) or _is_by_value(key)):
        return _of_node(it, key)
    key = number(it, key)
    if isinstance(key, V.Known) and isinstance(key.value, tuple):
        key = V.Tuple(tuple(map(V.Known, key.value)))
    if isinstance(key, V.Tuple):
        mixed: V.Value = V.Known(len(key.items))
        for part in key.items:
            low = binary(it, "&", mixed, V.Known(tables.LOW_BITS))
            spread = binary(it, "*", low, V.Known(tables.SPREAD))
            mixed = binary(it, "^", spread, _number(it, part))
        return mixed
    code = code_of(key)
    if code is not None:
        return code
    if isinstance(key, V.Text):
        if not is_data(key):
            key = open_text(it, key)
        return call(it, V.Known(tables.number_of_codes), (codes(it, key),), {})  # type: ignore[arg-type]
    if isinstance(key, V.OpenTuple):
        return call(it, V.Known(tables.number_of_items), (key,), {})
    if is_int(key):
        return key
    if is_number(key):
        return _of_float(it, key)
    if isinstance(key, V.Known) and not isinstance(key.value, (complex, bytearray)):
        return V.Known(_of_constant(key.value))
    it.heap.note_items((key,))  # an object may be a node
    if isinstance(key, V.Ref) and is_record_class(key.cls) and not it.program.unfolds and (
        key.cls.__hash__ is not None
    ):
        raise NeedsNodesOf(key.cls, it.heap.items.classes)
    raise it.failure(
        errors.UnsupportedOperationError,
        f"{V.describe(key)} cannot be a key of a container whose keys are known only at run time",
        notes=("such keys are numbers, characters, constants, objects, or tuples of them",),
    )


def _is_by_value(key: V.Data) -> bool:
    """Whether it is an object that its class compares, and no tuple that is kept as a node."""
    return protocols.is_object(key) and not is_by_identity(key.cls)


def _of_node(it: Interpreter, key: V.Data) -> V.Value:
    """The number of an object: that of its place where it is equal to itself only, of what its
    class compares, or what its class says."""
    if is_by_identity(key.cls):
        return key.row
    if protocols.is_generated(key.cls.__hash__):
        return _number(it, _compared(it, key))
    return hash_(it, key)


def _of_cases(it: Interpreter, key: V.Union) -> V.Value:
    from pyrelay.infer.flow.unions import distribute

    def plain(value: Any) -> bool:
        return not isinstance(value, (tuple, float)) and code_of(V.Known(value)) is None

    if constants.is_choice(key) and all(plain(c.value) for c in key.possible):  # type: ignore[union-attr]
        return constants.number_of(it, key, _of_constant)
    return distribute(it, key, lambda case: _number(it, case))


def _of_constant(value: Any) -> int:
    """The same for constants that are equal, in every process."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return int(tables.number_of_codes(list(map(ord, str.__str__(value)))))
    shown = f"{type(value).__qualname__}"
    if isinstance(value, enum.Enum):
        shown += f".{value.name}"
    return zlib.crc32(shown.encode())


def _of_float(it: Interpreter, key: V.Value) -> V.Value:
    """The int that a float is; of others, an int made of the part before and behind the point."""
    b = it.builder

    def as_int(value: Any) -> Any:
        return b.handle(b.cast(value.atom, types.i64, weak=True))

    x = b.handle(b.cast(it.atom(key), types.f64))
    size = b.call(OPS["absolute"], x)
    whole = b.call(OPS["trunc"], x)
    integral = b.call(OPS["logical_and"], b.call(OPS["equal"], x, whole), size < _LARGEST)
    scaled = b.call(OPS["where"], size < 1.0, x * 2.0**60, x)
    scaled = b.call(OPS["where"], size < _LARGEST, scaled, x * 2.0**-963)
    scaled = b.call(OPS["where"], size <= 1.7e308, scaled, 0.0)  # not of infinities and NaN
    before = b.call(OPS["trunc"], scaled)
    behind = as_int((scaled - before) * 2.0**53)
    mixed = b.call(OPS["bitwise_xor"], as_int(before), behind * 1023)
    plain = as_int(b.call(OPS["where"], integral, x, 0.0))
    return it.result(b.call(OPS["where"], integral, plain, mixed))
