"""Python values at the boundary: their structure as a hashable key, and their leaves.

In: arguments (arrays, numbers, tuples, lists, dicts, namedtuples, dataclasses and plain objects,
nested). Out: a key, equal exactly when a program compiled for one serves the other (up to guards on
extents), and the flat leaves: arrays and numbers, in order of occurrence, each mutable object once.
A list of many numbers is one array for each leaf of an item (`columns`), unless taken `apart`.

Objects of a recursive data type are two leaves, kind and row; the columns of the pools that they
lie in follow when everything is flattened (`finish`).
"""

from __future__ import annotations

import enum
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.errors import TypeMismatchError
from pyrelay.infer.arrays.device_arrays import device_array, is_device_array
from pyrelay.infer.arrays.layouts import turns
from pyrelay.infer.containers import columns
from pyrelay.infer.containers.code_points import MOST_KNOWN, codes_of, items_of_bytes
from pyrelay.infer.containers.set_layouts import layout_of_set, was_emptied
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families, alternatives, ones_of
from pyrelay.infer.nodes.instances import slots_of
from pyrelay.infer.nodes.packing import Packer
from pyrelay.infer.nodes.pools import NativeUnpacker, Packed, PackedTree, column_names
from pyrelay.infer.objects import is_constant_object, is_generator
from pyrelay.ir import types
from pyrelay.records import dataclass

_NUMBERS = (int, float, complex)


Places = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Kinds and rows of some nodes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An object that stands for itself: equal only to itself."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(slots=True)
class Flattened:
    """Leaves and mutable containers met while flattening, in order."""

    leaves: list[Any] = field(default_factory=list)
    containers: list[Any] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)  # id of a mutable object -> its number
    keep: list[Any] = field(default_factory=list)  # keeps ids valid
    names: list[str] = field(default_factory=list)  # how the user would write each leaf
    #: roots of trees, or lists of them, that are not packed yet: the object, the leaf of
    #: its kind
    roots: list[tuple[Any, int]] = field(default_factory=list)
    pools: list[Packed] = field(default_factory=list)
    open: list[type] = field(default_factory=list)  # classes of the objects that lead here
    apart: int = columns.MOST_APART  # lists up to this length are structures of their items
    families: Families = EVERYWHERE  # the data types that objects may be nodes of
    tables: bool = False  # dicts of any length enter as tables
    deep: bool = True  # lists of lists of lists enter as arrays
    open_texts: bool = False  # texts are data, however short or few
    inner: dict[int, int] = field(default_factory=dict)  # lists in lists: id -> leaf they lie in
    on_device: bool = False  # whether any leaf is an array in the memory of a GPU
    #: packs trees of a data type that it has seen before, or gives None
    pack: Callable[[Any, list[Any]], tuple[Packed, Places] | None] | None = None
    #: gives what makes the objects of results (see `Unpacker`), or None
    unpack: Callable[[Any, Any, Packed | None], NativeUnpacker | None] | None = None


Key = tuple[Any, ...]

EMPTIED = "emptied"
"""What the key of a set has last that has no items, but had some: its order is not followed."""


class _Shared(Exception):
    """A list in a list of many numbers occurs elsewhere as well: take the lists apart."""


class _ContainsItself(Exception):
    """An object was found inside one of its own class: these classes are one data type."""

    def __init__(self, classes: list[type]) -> None:
        super().__init__()
        self.classes = classes


def flatten(
    args: Iterable[tuple[Any, str]], into: Flattened, *, captured: bool = False
) -> Key:
    """The keys of values with their names, and of the pools that their trees lie in.

    captured: the values are no arguments, but read by the program.

    Raises TypeMismatchError for an array whose dtype is not supported.
    """
    pairs = list(args)
    before = mark(into)
    asked, open_texts = into.apart, into.open_texts
    while True:
        into.tables = asked in (columns.MOST_APART_OPEN, columns.NONE_APART_OPEN)
        into.apart = max(asked, columns.NONE_APART)
        into.deep = asked != columns.MOST_APART_SHALLOW
        try:
            if captured:
                into.apart = max(into.apart, columns.MOST_APART_CAPTURED)
                into.open_texts = False
            keys = tuple(_flatten(value, into, name) for value, name in pairs)
            into.apart, into.open_texts = asked, open_texts
            found = (keys, _finish(into))
            if into.families.rows:
                _refuse_rows_elsewhere(into)
            return found
        except _ContainsItself as found:
            EVERYWHERE.declare(found.classes)
        except _Shared:
            into.apart = asked = columns.ALL_APART
        forget(into, before)


def _refuse_rows_elsewhere(into: Flattened) -> None:
    """Raises TypeMismatchError if a dict or list is a node in one place and none in another."""
    others = {id(c) for c in into.containers if type(c) in (dict, list)}
    for packed in into.pools:
        for cls, nodes in zip(packed.schema.classes, packed.objects, strict=False):
            alike = is_entries(cls) or is_fixed(cls)
            if alike and not others.isdisjoint(map(id, nodes)):
                raise TypeMismatchError(
                    f"a {cls.__name__} in a list of rows is found outside of such lists, too.",
                    hints=("pass its position in the list",),
                )


def without_texts(key: Key) -> Key:
    """A key that is the same for other texts and bytes in their places."""
    match key:
        case ("constant", cls, str()) if cls is str:
            return ("text",)
        case ("constant", cls, bytes()) if cls is bytes:
            return ("bytes",)
    return tuple(without_texts(x) if isinstance(x, tuple) else x for x in key)


def without_lengths(key: Key) -> Key:
    """A key that is the same for other numbers of items in a list or a set, where all are alike,
    and for other keys of a dict."""
    found = tuple(without_lengths(x) if isinstance(x, tuple) else x for x in key)
    match found:
        case ("list" | "set", item, *items) if all(i == item for i in items):
            return found[:2]
        case ("dict", keys, item, *items) if all(i == item for i in items):
            return ("dict", frozenset(map(type, keys)), item)
    return found


def lengths_of(key: Key) -> list[int]:
    """How many items the lists and sets of a key have."""
    own = [len(key)] if key[:1] in (("list",), ("set",)) else []
    return own + [n for part in key if isinstance(part, tuple) for n in lengths_of(part)]


def keys_of(key: Key) -> list[Any]:
    """The keys that the dicts of a key have."""
    own = [key[1]] if key[:1] == ("dict",) else []
    return own + [k for part in key if isinstance(part, tuple) for k in keys_of(part)]


def texts_of(key: Key) -> set[str | bytes]:
    """The texts and bytes that a key has in places where others may be."""
    match key:
        case ("constant", cls, str() | bytes() as text) if cls in (str, bytes):
            return {text}
    return {text for part in key if isinstance(part, tuple) for text in texts_of(part)}


def has_columns(key: Any) -> bool:
    """Whether a list, set or dict of this key enters as arrays."""
    if not isinstance(key, tuple):
        return False
    return key[:1] in (("grown",), ("table",), ("nested",)) or any(map(has_columns, key))


def mark(into: Flattened) -> tuple[int, ...]:
    """How much is flattened so far."""
    return len(into.leaves), len(into.containers), len(into.seen), len(into.pools)


def forget(into: Flattened, before: tuple[int, ...]) -> None:
    """Forget what was flattened since the mark."""
    leaves, containers, numbers, pools = before
    del into.leaves[leaves:], into.names[leaves:], into.containers[containers:], into.pools[pools:]
    into.seen = {i: n for i, n in into.seen.items() if n < numbers}
    into.inner = {i: leaf for i, leaf in into.inner.items() if leaf < leaves}
    into.roots, into.open = [], []


def _finish(into: Flattened) -> Key:
    """Pack the trees: the schemas of their pools, and for each root its pool and possible kinds."""
    everything, into.roots = into.roots, []
    if not everything:
        return ()
    several = [root if type(root) is list else [root] for root, _ in everything]
    homes: dict[int, tuple[Packer | Packed, Places]] = {}
    while True:  # a data type may turn out to contain another
        groups: dict[Any, list[int]] = {}
        for k, roots in enumerate(several):
            if type(roots[0]) is not PackedTree:
                own = into.families.of(into.families.class_of(roots[0]))
                groups.setdefault(own, []).append(k)
        for family, members in groups.items():
            homes.update(_collected(family, {k: several[k] for k in members}, into))
        met = {
            (family, cls) for family, members in groups.items() for k in members
            for cls in set(map(into.families.class_of, several[k]))
        }
        if all(into.families.of(cls) is family for family, cls in met):
            break
    first = len(into.pools)
    numbers: dict[Packer | Packed, int] = {}
    for pool, _ in homes.values():
        if pool not in numbers:
            numbers[pool] = _enter(pool if isinstance(pool, Packed) else pool.pack(), into)
    described = []
    for k, (root, leaf) in enumerate(everything):
        if k in homes:
            home, (kinds, rows) = homes[k]
        else:
            packed = several[k]
            home = packed[0].packed
            if home not in numbers:
                numbers[home] = _enter(home, into)
            kinds, rows = np.array([r.place for r in packed], np.int64).T.copy()
        number = numbers[home]
        schema = into.pools[number].schema
        single = type(root) is not list
        into.leaves[leaf : leaf + 2] = (int(kinds[0]), int(rows[0])) if single else (kinds, rows)
        possible = {k for kind in set(kinds.tolist()) for k in alternatives(schema, kind)}
        described.append((number, tuple(sorted(possible))))
    return (tuple(p.schema for p in into.pools[first:]), tuple(described))


def _collected(
    family: Any, entries: dict[int, list[Any]], into: Flattened
) -> dict[int, tuple[Packer | Packed, Places]]:
    """Trees of one data type, packed or collected to be so, and the places of their roots."""
    trees = [root for roots in entries.values() for root in roots]
    ready = into.pack(family, trees) if into.pack is not None else None
    pool: Packer | Packed
    if ready is not None:
        pool, (kinds, rows) = ready
    else:
        pool = Packer(family)
        kinds, rows = np.array(pool.add(trees), np.int64).T.copy()
    found: dict[int, tuple[Packer | Packed, Places]] = {}
    start = 0
    for k, roots in entries.items():
        stop = start + len(roots)
        found[k] = pool, (kinds[start:stop], rows[start:stop])
        start = stop
    return found


def _enter(packed: Packed, into: Flattened) -> int:
    """Append the columns of a pool to the leaves; its number."""
    into.pools.append(packed)
    _remember(packed, into)
    into.leaves.extend(packed.columns.values())
    into.names.extend(column_names(packed.schema))
    return len(into.pools) - 1


def pack(value: Any) -> Any:
    """The same trees, packed once: calls with what this gives do not go through them again.

    value: a tree, or a list, tuple or dict of trees (nested), which comes back with each tree
    packed. Later changes of the trees do not show; a function that changes their nodes is refused.
    Raises TypeMismatchError if there is no tree in it. A tree is an object of a class that contains
    itself:

        class Node:
            left: Node | None
            right: Node | None

        packed = pyrelay.pack(root)
        depth(packed)  # of a jitted function; `root` may be passed as well
    """
    flat = Flattened()
    flatten([(value, "the value")], flat)
    places = {
        id(node): (packed, (kind, row))
        for packed in flat.pools for kind, nodes in enumerate(packed.objects)
        for row, node in enumerate(nodes)
    }
    if not places:
        raise TypeMismatchError(
            f"pack() needs trees, not {type(value).__name__}.",
            hints=("a tree is an object of a class that contains itself",),
        )
    for packed in flat.pools:
        packed.reused = True

    def packed_in(part: Any) -> Any:
        if id(part) in places:
            return PackedTree(part, *places[id(part)])
        if isinstance(part, dict):
            return {key: packed_in(item) for key, item in part.items()}
        if type(part) in (list, tuple):
            return type(part)(map(packed_in, part))
        return part

    return packed_in(value)


def _tree(value: Any, into: Flattened, name: str) -> Key:
    again = _remember(value, into)
    if again is not None:
        return ("again", again)
    into.roots.append((value, len(into.leaves)))
    into.leaves += (None, None)
    into.names += (name, name)
    return ("tree", len(into.roots) - 1)


def _are_trees(items: list[Any], families: Families) -> bool:
    """True for nodes of one data type, all packed together or none."""
    first = items[0]
    if type(first) is not PackedTree and families.of(families.class_of(first)) is None:
        return False  # lists of numbers, as long as they may be
    if families.mixed and type(first) is list and columns.columns_of(items) is not None:
        return False  # arrays are quicker
    if PackedTree not in map(type, items):
        found = set(map(families.of, set(map(families.class_of, items))))
        return len(found) == 1 and None not in found
    together = {id(item.packed) for item in items if type(item) is PackedTree}
    return len(together) == 1 and all(type(item) is PackedTree for item in items)


def _trees(value: list[Any], into: Flattened, name: str) -> Key:
    """The key of a list of trees, whose places are two arrays."""
    into.roots.append((value, len(into.leaves)))
    into.leaves += (None, None)
    into.names += (f"kinds of {name}", f"rows of {name}")
    return ("trees", len(into.roots) - 1)


def _flatten(value: Any, into: Flattened, name: str) -> Key:
    """The key of a value; its leaves are appended to `into`."""
    if type(value) in _NUMBERS:
        into.leaves.append(value)
        into.names.append(name)
        return ("number", type(value).__name__)
    if isinstance(value, np.ndarray):
        return _array(value, into, name)
    if isinstance(value, np.generic) and types.from_numpy(value.dtype) is not None:
        into.leaves.append(value)
        into.names.append(name)
        return ("scalar", _dtype(value.dtype, name).name)
    if type(value) is str and (into.open_texts or len(value) > MOST_KNOWN):
        into.leaves.append(codes_of(value))
        into.names.append(name)
        return ("text",)
    if type(value) is bytes and (into.open_texts or len(value) > MOST_KNOWN):
        into.leaves.append(items_of_bytes(value))
        into.names.append(name)
        return ("bytes",)
    if type(value) is range and max(map(abs, (value.start, value.stop))) < 1 << 63:
        return _range(value, into, name)
    if value is None or isinstance(value, (bool, str, bytes, np.dtype, slice, range)):
        by_identity = isinstance(value, (slice, range))
        return ("constant", type(value), Identity(value) if by_identity else value)
    if is_device_array(value):  # before what may be a data type: JAX's class has fields
        return _device_array(value, into, name)
    if isinstance(value, PackedTree) or into.families.of(type(value)) is not None:
        return _tree(value, into, name)
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            with _inside(type(value), into):
                return ("tuple", type(value), *(
                    _flatten(v, into, f"{name}.{f}")
                    for v, f in zip(value, value._fields, strict=True)
                ))
        return ("tuple", None, *(_flatten(v, into, f"{name}[{k}]") for k, v in enumerate(value)))
    if type(value) is frozenset and _is_constant(value):
        return ("constant", _exactly(value), value)
    if is_constant_object(value):
        return ("object", Identity(value))
    return _container(value, into, name)


def _range(value: range, into: Flattened, name: str) -> Key:
    """Where it begins, but for 0, and where it ends are leaves: all ranges are one program."""
    begins = [_flatten(value.start, into, f"{name}.start")] if value.start else []
    return ("range", value.step, *begins, _flatten(value.stop, into, f"{name}.stop"))


def _remember(value: Any, into: Flattened) -> int | None:
    number = into.seen.get(id(value))
    if number is None:
        if id(value) in into.inner:
            raise _Shared
        into.seen[id(value)] = len(into.seen)
        into.keep.append(value)
    return number


def _array(value: np.ndarray[Any, Any], into: Flattened, name: str) -> Key:
    dtype = _dtype(value.dtype, name)
    if type(value) not in (np.ndarray, np.memmap):
        raise TypeMismatchError(
            f"{name} is a {type(value).__name__}, whose operations are not those of an array.",
            hints=(f"pass np.asarray({name})",),
        )
    again = _remember(value, into)
    if again is not None:
        return ("again", again)
    into.leaves.append(value)
    into.names.append(name)
    return ("array", dtype.name, ones_of(value.shape), turns(value))


def _device_array(value: Any, into: Flattened, name: str) -> Key:
    again = _remember(value, into)
    into.on_device = True
    if again is not None:
        return ("again", again)
    leaf = device_array(value)
    into.leaves.append(leaf)
    into.names.append(name)
    return ("array", _dtype(leaf.dtype, name).name, ones_of(leaf.shape), ())


def _dtype(dtype: Any, name: str) -> types.DType:
    found = types.from_numpy(dtype)
    if found is None:
        supported = ", ".join(d.numpy_name for d in types.DTYPES.values())
        raise TypeMismatchError(
            f"{name} is an array of {dtype}, which is not supported.",
            notes=(f"supported are {supported}",),
        )
    return found


def _container(value: Any, into: Flattened, name: str) -> Key:
    again = _remember(value, into)
    if again is not None:
        return ("again", again)
    into.containers.append(value)
    if type(value) in (deque, bytearray, array):  # a list of its items enters, which is nobody's
        own = value.typecode if type(value) is array else getattr(value, "maxlen", None)
        return ("sequence", type(value), own, _flatten(list(value), into, name))
    if isinstance(value, set):
        return _set(value, into, name)
    least = 0 if into.families.rows else into.apart
    if type(value) is list and len(value) > least and _are_trees(value, into.families):
        return _trees(value, into, name)
    if type(value) is list and len(value) > columns.most_apart(value, into.apart):
        texts = into.open_texts or len(value) > columns.MOST_TEXTS
        found = columns.columns_of(
            value, texts=texts, listed=True, deep=into.deep, several=True
        )
        if found is not None:
            return _grown(value, found, into, name)
        nested = columns.columns_of_nested(value)
        if nested is not None and nested[0] is set:
            return _nested(value, nested, into, name)
    if isinstance(value, list):
        return ("list", *(_flatten(v, into, f"{name}[{k}]") for k, v in enumerate(value)))
    if type(value) in (Counter, OrderedDict, defaultdict):
        factory = getattr(value, "default_factory", None)
        return ("subclass", type(value), Identity(factory), _dict(value, into, name))
    if isinstance(value, dict):
        return _dict(value, into, name)
    with _inside(type(value), into):
        fields = fields_of(value)
        return ("record", type(value), tuple(fields), *(
            _flatten(v, into, f"{name}.{k}") for k, v in fields.items()
        ))


def _grown(value: list[Any], found: columns.Found, into: Flattened, name: str) -> Key:
    """The key of a list that enters as arrays, which become leaves."""
    key, arrays = found
    if columns.holds_lists(key):
        _enter_inner(value, into)
    into.leaves += arrays
    into.names += [name] * len(arrays)
    return ("grown", key)


def _set(value: set[Any], into: Flattened, name: str) -> Key:
    """The key of a set: of a table of its items, or of these where they are texts and the like."""
    many = into.tables or into.open_texts or len(value) > max(into.apart, columns.MOST_TEXTS)
    entries = columns.columns_of_dict(dict.fromkeys(value, True), texts=many)
    if entries is not None:
        key = ("subclass", set, Identity(None), _table({}, entries, into, name))
        if was_emptied(value):
            return (*key, EMPTIED)
        into.leaves.append(layout_of_set(value))
        into.names.append(name)
        return key
    if not all(map(_is_constant, value)):
        raise TypeMismatchError(
            f"{name} is a set of objects, which a compiled function cannot take.",
            notes=("the items of a set are numbers, texts, or tuples of these",),
            hints=(f"pass list({name})",),
        )
    return ("set", *constants(value))


def constants(items: Iterable[Any]) -> list[Key]:
    """The keys of texts and the like in a set."""
    return [("constant", _exactly(item), item) for item in items]


def _is_constant(item: Any) -> bool:
    """Whether this is a text or a number, or a tuple or frozenset of these, which are compared by
    value."""
    if type(item) in (tuple, frozenset):
        return all(map(_is_constant, item))
    return item is None or isinstance(item, (bool, int, float, str, bytes, enum.Enum))


def _exactly(item: Any) -> Any:
    """What tells a constant from others that are equal: classes, signs, the order of a set."""
    if type(item) in (tuple, frozenset):
        return type(item), *map(_exactly, item)
    return (float, repr(item)) if isinstance(item, float) else (type(item), item)


def _dict(value: dict[Any, Any], into: Flattened, name: str) -> Key:
    """The key of a dict: of its keys, or, if these are many of one kind, of a table."""
    if into.tables or len(value) > max(into.apart, columns.MOST_KEYS):
        entries = columns.columns_of_dict(value, deep=into.deep)
        if entries is not None:
            return _table(value, entries, into, name)
        nested = columns.columns_of_nested(value)
        if nested is not None:
            return _nested(value, nested, into, name)
    keys = tuple(value)
    return ("dict", keys, *(_flatten(v, into, f"{name}[{k!r}]") for k, v in value.items()))


def _table(
    value: dict[Any, Any], found: columns.Found, into: Flattened, name: str
) -> Key:
    """The key of a dict that enters as arrays of its keys and values, which become leaves."""
    (names, held), arrays = found
    if held is not None and columns.holds_lists(held):
        _enter_inner(value.values(), into)
    into.leaves += arrays
    into.names += [name] * len(arrays)
    return ("table", names, held)


def _nested(
    value: dict[Any, Any] | list[Any], found: tuple[type, Key | None, Key, list[Any]],
    into: Flattened, name: str,
) -> Key:
    """The key of a dict of dicts, or of sets, or of a list of sets, that enters as arrays of what
    they have."""
    cls, names, held, arrays = found
    _enter_inner(columns.values_of(value), into)
    into.leaves += arrays
    into.names += [name] * len(arrays)
    return ("nested", cls, names, held)


def _enter_inner(lists: Iterable[Any], into: Flattened) -> None:
    """Note the lists in a container that enters as arrays. Raises _Shared if one is met again."""
    ids = dict.fromkeys(map(id, columns.lists_in(lists)), len(into.leaves))
    if not (ids.keys().isdisjoint(into.seen) and ids.keys().isdisjoint(into.inner)):
        raise _Shared
    into.inner.update(ids)


@contextmanager
def _inside(cls: type, into: Flattened) -> Iterator[None]:
    """Inside an object of a class; raises _ContainsItself if that is inside one already, and such
    objects are nodes."""
    if cls in into.open and is_record_class(cls) and not into.families.apart:
        raise _ContainsItself(list(dict.fromkeys(into.open[into.open.index(cls):])))
    into.open.append(cls)
    yield
    into.open.pop()


def fields_of(value: Any) -> dict[str, Any]:
    """The attributes of a dataclass instance or plain object, in order; a generator's state."""
    if is_generator(value):
        from pyrelay.infer import random_state  # imports both libraries of random numbers

        state = random_state.state_of(value)
        return dict(zip(random_state.FIELDS, state, strict=False))
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    return {s: getattr(value, s) for s in slots_of(type(value)) if hasattr(value, s)}
