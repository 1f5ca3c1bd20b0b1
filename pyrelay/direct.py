"""The short way into a compiled program: one generated function per program, no flattening.

In: a compiled program, and the key of the arguments that it was compiled for (`infer.structure`).
Out: a function that puts arguments given by name in order, takes all apart as the key says, hands
their leaves to the program's native entry, which checks types and extents itself, and that what is
written shares no memory, and puts the result together. The entry also looks at the settings the
program was compiled under and at most names that it read, which must mean the very same objects.
What is left to check are the shapes of the structures, and the other names. Where nothing of this
is left, and the result is what the entry gives, the function is a native one, which turns to the
other for what does not fit. Whatever does not fit that goes the long way. On a GPU the entry is one
of Python's (`build.Build.direct`), and the function looks at settings and names itself.
"""

from __future__ import annotations

import operator
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinMethodType, CellType, FunctionType, ModuleType
from typing import Any

from numpy import array_equal, ascontiguousarray, copyto, may_share_memory, ndarray

from pyrelay import config
from pyrelay.boundary import Program, note_lost
from pyrelay.direct_columns import (
    COLUMN,
    are_all_apart,
    are_apart,
    columns_of,
    reader_of,
    text_of_nested,
    text_of_table,
)
from pyrelay.direct_results import result_text
from pyrelay.direct_text import NeedsMore, Text
from pyrelay.direct_trees import FIELD, PLACE, pack_trees
from pyrelay.infer.arrays.device_arrays import device_array, is_device_array
from pyrelay.infer.arrays.layouts import layout_of, turns
from pyrelay.infer.containers import columns
from pyrelay.infer.containers.code_points import codes_of, items_of_bytes
from pyrelay.infer.containers.set_layouts import layout_of_set, was_emptied
from pyrelay.infer.guards import ABSENT, NameGuard
from pyrelay.infer.nodes.datatypes import ones_of
from pyrelay.infer.nodes.instances import slots_of
from pyrelay.infer.objects import generator_classes
from pyrelay.infer.result_trees import ArgumentResult, ConstantResult, LeafResult, NodeResult
from pyrelay.infer.specialised import Binding
from pyrelay.infer.structure import Identity, Key, constants, fields_of
from pyrelay.ir import types
from pyrelay.tracebacks import PACKAGE_DIRECTORY

_LEAVES = ("number", "array", "scalar")
_CONTAINERS = (
    "dict", "list", "record", "grown", "table", "nested", "subclass", "set", "sequence",
)
_CODES: Key = ("codes",)
"""The key of an array that the characters of a text, or the items of bytes, are."""
_EMPTY: Key = ("table", None, None)
"""The key of a set, or of a dict, that is a table of nothing."""


_FILE = PACKAGE_DIRECTORY + "<call>"
"""Where the generated functions say they stand: not in the user's program."""


def direct_call(
    program: Program, key: Key, order: Sequence[object], otherwise: Callable[..., Any],
    failed: Callable[..., Exception], hits: ndarray[Any, Any],
) -> Callable[..., Any] | None:
    """The function, None if the arguments or the result need more.

    key: of the arguments. order: names by which positional arguments may be given too, in order; no
    string where there is none. Whatever does not fit goes `otherwise`. What is raised is what
    `failed` makes of an exception and the arguments. Counts the calls it served in `hits`.
    """
    try:
        return _written(program, key, order, otherwise, failed, hits)
    except NeedsMore:
        return None


def _written(
    program: Program, key: Key, order: Sequence[object], otherwise: Callable[..., Any],
    failed: Callable[..., Exception], hits: ndarray[Any, Any],
) -> Callable[..., Any]:
    binding = program.binding
    positional, named, pools = key[:3]
    names, keys = named[: len(named) // 2], named[len(named) // 2 :]
    near, far = program.build.native, program.build.direct
    if not (near or far) or (pools and not near) or _is_involved(binding):
        raise NeedsMore
    if binding.trees and not pools:
        raise NeedsMore  # what are nodes for this program were none when it was called
    from pyrelay.devices.runtime.entry import MISMATCH, Whole, guarded

    looked_at = [g for g in binding.names if not _never_changes(g)]
    seen = [_native_guard(g) if near else None for g in looked_at]
    guards = [("setting", config.overrides, config.overridden, config.overriding())]
    guards += [n for n in seen if n is not None]
    native = guarded(program.build.run, guards, hits) if near else far
    if native is None:
        raise NeedsMore
    leading = [*order[: len(positional)]]
    leading += [None] * (len(positional) - len(leading))
    text = Text({
        "_native": native, "_MISMATCH": MISMATCH, "_otherwise": otherwise,
        "_failed": failed, "_taken": _taken, "_kept": _kept(binding), "_missing": _MISSING,
        "_written": tuple(binding.placed), "_copied_back": _copied_back,
        "_as_given": _as_given, "_by_name": _by_name, "_names": (*leading, *names),
        "_fits": _as_now(), "_lost": note_lost, "_overrides": config.overrides, "_hits": hits,
    })  # fmt: skip
    by_position, by_name = text.fresh(len(positional)), text.fresh(len(names))
    given = [*by_position, *by_name]
    if given:
        filled = _unpacking(given, f"_by_name(_names, {_tuple(by_position)}, _others)")
        filled += f"; _named = len(_others) - {len(names)}"
        text.line(filled if names else f"if _others: {filled}")
    tests = ["not _more", *["not _others"] * (not given)]
    tests += ["(not _overrides or _fits())"] * (not near)
    tests += [
        _identity_test(text, g) for g, n in zip(looked_at, seen, strict=True) if n is None
    ]
    text.test(" and ".join(tests))
    everything = (*positional, *keys)
    plain = all(k[0] in _LEAVES for k in everything) and not (binding.hidden or binding.static)
    plain = plain and binding.parameters == tuple(range(len(everything))) and not binding.identity
    if plain:
        text.leaves = given
    else:
        _arguments(text, program, given, everything, pools)
    if not near and binding.layouts:  # GPUs gather the elements of what is not contiguous
        text.test(" and ".join(
            f"{text.name(_is_contiguous)}({text.leaves[k]})" for k in binding.layouts
        ))
    handed = [text.leaves[k] for k in binding.parameters]
    text.line("_same = True")
    source = _source(text, binding, handed, by_position, near=bool(near))
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(source), _FILE, "exec"), namespace)
    call: Callable[..., Any]
    call, raised = namespace["make"](**text.known)
    answer = _answer(binding)
    if not near or not plain or names or None in seen or answer is None:
        return call
    return guarded(program.build.run, guards, hits, Whole(call, raised, answer, otherwise)) or call


def _source(
    text: Text, binding: Binding, handed: Sequence[str], by_position: Sequence[str], *, near: bool
) -> list[str]:
    """The lines of a function that makes the call of a program, and what raises its errors."""
    changes, shape = result_text(text, binding)
    again = f"_as_given({_tuple(by_position)}, _named, _more, _others)"
    return [
        f"def make({', '.join(text.known)}):",
        f"  def call({_signature(by_position)}):",
        "    _same, _named = False, 0",
        "    try:",
        "        try:",
        "            while True:",
        *(f"                {line}" for line in (*text.lines, "break")),
        "        except (AttributeError, KeyError, ValueError):",
        "            pass",
        "        if _same:",
        *(f"            {line}" for line in _called(binding, handed, near=near)),
        "            if _result is not _MISMATCH:",
        *["                _hits[0] += 1"] * (not near),
        *(f"                {line}" for line in changes),
        f"                return {shape}",
        f"        _args, _keywords = {again}",
        "        return _otherwise(*_args, **_keywords)",
        "    except Exception as _error:",
        f"        raise _failed(_error, *{again})",
        "  def failed(_error, *_args):",
        "    try:",
        "        raise _failed(_error, _args, {})",
        "    finally:",  # or the error would be kept by its own traceback
        "        del _error, _args",
        "  return call, failed",
    ]


def _is_involved(binding: Binding) -> bool:
    """Whether arguments or what is written are more than arrays and numbers, or lie elsewhere."""
    if any(binding.layouts.values()):  # the native entry takes what is contiguous
        return True
    return not set(binding.mutated) <= set(binding.placed_leaves)  # numbers are not written there


def _as_now() -> Callable[[], bool]:
    """What tells whether all that programs hang on is set as it is now, where Python looks at it:
    precisions are looked at by each call, and are free to be others."""
    then = config.current()
    known = [then]

    def fits() -> bool:
        now = config.current()
        if now is not known[0]:
            same = now.device == then.device and now.interpret == then.interpret
            if not same or now.unroll_limit != then.unroll_limit:
                return False
            known[0] = now
        return True

    return fits


def _answer(binding: Binding) -> tuple[str, Any] | None:
    """What a native call gives (`Whole`); None if Python has to put it together."""
    if binding.changes:
        return None
    match binding.result:
        case LeafResult(index) if binding.kept[index] == 0:
            return "results", None
        case NodeResult("tuple", None, _, children) if children and all(
            isinstance(child, LeafResult) and binding.kept[child.index] == place
            for place, child in enumerate(children)
        ):
            return "results", len(children)
        case ConstantResult(value):
            return "object", value
        case ArgumentResult(leaf):
            return "argument", leaf
    return None


_MISSING = object()
"""Stands for an argument that was not given."""


def _signature(names: Sequence[str]) -> str:
    """The parameters of the function, whose names are its own."""
    declared = [f"{name}=_missing" for name in names]
    return ", ".join([*declared, *["/"] * bool(declared), "*_more", "**_others"])


def _tuple(names: Sequence[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})"


def _by_name(
    names: Sequence[object], values: Sequence[Any], others: Mapping[Any, Any]
) -> tuple[Any, ...]:
    """All arguments in order, of which those that have no value are given by name; KeyError if
    these are not just those that are."""
    count = _count(values)
    if len(others) != len(names) - count:
        raise KeyError
    return (*values[:count], *[others[name] for name in names[count:]])


def _as_given(
    values: Sequence[Any], named: int, more: tuple[Any, ...], others: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Arguments by position and by name, if the last `named` values are among the latter."""
    return (*values[: max(_count(values) - named, 0)], *more), others


def _count(values: Sequence[Any]) -> int:
    """How many values there are before one that is missing."""
    for count, value in enumerate(values):
        if value is _MISSING:
            return count
    return len(values)


def _kept(binding: Binding) -> tuple[bool, ...]:
    """Of each parameter, whether it stays as it is if it has gaps: all where their order in memory
    matters to the program, and those that lie in another order."""
    return tuple(
        bool(binding.layouts) or leaf in binding.turned for leaf in binding.parameters
    )


def _called(binding: Binding, handed: Sequence[str], *, near: bool) -> list[str]:
    """Lines that call the native entry."""
    lines = [f"_result = _native({', '.join(handed)})"]
    if near:
        lines += _with_others(_tuple(handed), bool(binding.placed))
    if not binding.loses:
        return lines
    return [
        "try:", *(f"    {line}" for line in lines),
        "except Exception as _error:", "    _lost(_error)", "    raise",
    ]  # fmt: skip


def _with_others(handed: str, written: bool) -> list[str]:
    """Lines that try once more with arrays that the program can read in place of those given."""
    return [
        "if _result is _MISMATCH:",
        f"    _readable = _taken({handed}, _kept)",
        "    if _readable is not None:",
        f"        _result = _copied_back(_native, {handed}, _readable, _written)"
        if written else "        _result = _native(*_readable)",
    ]


def _taken(given: tuple[Any, ...], kept: tuple[bool, ...]) -> tuple[Any, ...] | None:
    """Arguments whose arrays have no gaps, of the one dtype object of their dtype (unpickled
    arrays have others), and numbers where they have no axes; None if all were so before.

    What is `kept`, or lies in an order that other programs are for, is not copied.
    """
    found = tuple(
        _readable(v, stays) if type(v) is ndarray else v
        for v, stays in zip(given, kept, strict=True)
    )
    return None if all(map(operator.is_, found, given)) else found


def _copied_back(
    native: Callable[..., Any], given: tuple[Any, ...], readable: tuple[Any, ...],
    written: tuple[int, ...],
) -> Any:
    """The result of a program that writes some of its arrays, with copies of those with gaps, which
    are copied back; MISMATCH where one that is written cannot be, or may share memory."""
    from pyrelay.devices.runtime.entry import MISMATCH

    for k in written:
        array = given[k]
        if type(array) is not ndarray or not array.flags.writeable or any(
            n != k and type(other) is ndarray and may_share_memory(array, other)
            for n, other in enumerate(given)
        ):
            return MISMATCH
    try:
        return native(*readable)
    finally:
        for k in written:
            if readable[k] is not given[k] and not given[k].flags.c_contiguous:
                copyto(given[k], readable[k])


def _readable(array: Any, kept: bool) -> Any:
    if not array.ndim:
        return array if kept else array[()]
    if not (array.flags.c_contiguous or kept or turns(array)):
        array = ascontiguousarray(array)
    dtype = types.from_numpy(array.dtype)
    if dtype is None or array.dtype is dtype.numpy or not array.dtype.isnative:
        return array
    return array.view(dtype.numpy)


def _is_contiguous(array: Any) -> bool:
    if not isinstance(array, ndarray) and is_device_array(array):
        array = device_array(array)
    return layout_of(array) is None


# -- arguments -------------------------------------------------------------------------------------


def _arguments(
    text: Text, program: Program, names: list[str], keys: Key, pools: Key
) -> None:
    """Lines that take the arguments and captured objects apart into the program's leaves."""
    binding = program.binding
    text.handed = frozenset(binding.parameters)
    tables = binding.apart in (columns.MOST_APART_OPEN, columns.NONE_APART_OPEN)
    most = max(binding.apart, columns.NONE_APART)
    rows = binding.families is not None and binding.families.rows
    _taken_apart(text, names, keys, most, tables, least=0 if rows else most)
    if pools:
        pack_trees(text, pools)
    for hidden in binding.hidden:
        (key,), trees = hidden.key
        if trees:
            raise NeedsMore
        (name,) = text.fresh(1)
        source = hidden.source
        value = text.name(hidden.value) if source is None else _reading(text, source)
        text.line(f"{name} = {value}")
        apart = max(binding.apart, columns.MOST_APART_CAPTURED)
        _taken_apart(text, [name], (key,), apart, tables)
    others = [c for c in text.containers if c not in text.nested]
    if text.nested and len(text.containers) > 1:
        test = are_all_apart if text.deep else are_apart
        text.test(f"{text.name(test)}({_tuple(text.nested)}, {_tuple(others)})")
    handed = text.handed
    for leaf, key in enumerate(text.keys):
        if leaf not in handed or leaf in binding.static:
            if key == _CODES:
                if leaf in binding.static:  # else any text does
                    wanted = text.name(binding.static[leaf])
                    text.test(f"{text.name(array_equal)}({text.leaves[leaf]}, {wanted})")
                continue
            if key in (COLUMN, PLACE, FIELD):  # looked at where they are made
                if leaf in binding.static:
                    raise NeedsMore
                continue
            known = _known_array if key[0] == "array" else _known_number
            known(text, text.leaves[leaf], key, binding.static.get(leaf, _ANY))
    read = {leaf for leaf, _ in binding.axes.values()}
    if binding.extents and not read <= handed:
        raise NeedsMore  # the native entry checks the extents of what it is handed
    apart_from_each_other = text.containers if binding.changes else []
    if binding.identity:  # a node is one by its place
        apart_from_each_other = [
            o for o in text.objects if o in text.containers or o not in text.roots
        ]
    if len(apart_from_each_other) > 1:
        text.test(f"len({{{', '.join(f'id({c})' for c in apart_from_each_other)}}}) "
                  f"== {len(apart_from_each_other)}")


_ANY = object()


def _known_array(text: Text, name: str, key: Key, value: Any) -> None:
    """A test of an array that does not enter the program, which may have been made for it."""
    condition = f"type({name}) is {text.name(ndarray)} and {text.name(_is_like)}({name}, {key[1:]})"
    if value is not _ANY:
        condition += f" and {text.name(array_equal)}({name}, {text.name(value)})"
    text.test(condition)


def _is_like(array: Any, key: Key) -> bool:
    """Whether an array is of a dtype, by name, and has the extents of 1 that a key says."""
    name, ones, _ = key
    dtype = types.from_numpy(array.dtype)
    return dtype is not None and dtype.name == name and ones_of(array.shape) == ones


def _known_number(text: Text, name: str, key: Key, value: Any) -> None:
    """A test of a number that does not enter the program, which may have been made for its value.
    """
    if key[0] != "number":
        raise NeedsMore
    condition = f"type({name}) is {key[1]}"
    if value is not _ANY:
        if type(value) is not int and not (type(value) is float and 0 < abs(value) < float("inf")):
            raise NeedsMore  # zeros have signs, and NaN is no NaN
        condition += f" and {name} == {value!r}"
    text.test(condition)


def _taken_apart(
    text: Text, names: list[str], keys: Key, apart: int, tables: bool, *, least: int = 0
) -> None:
    """Lines that take values apart, and test their structures. apart, tables: as `Flattened` has
    them. least: longer lists of nodes are lists of places."""
    waiting = list(zip(names, keys, strict=True))[::-1]
    while waiting:
        name, key = waiting.pop()
        if key[0] in _LEAVES or key in (COLUMN, _CODES):
            text.leaves.append(name)
            text.keys.append(key)
            text.objects += [name] * (key[0] == "array")
            continue
        if key[0] in ("tree", "trees"):
            if key[0] == "trees":
                text.test(f"type({name}) is list and len({name}) > {least}")
                text.containers.append(name)
            text.objects.append(name)
            text.roots.append(name)
            text.leaves += text.fresh(2)
            text.keys += [PLACE, PLACE]
            continue
        fewest = 0 if tables else max(apart, columns.MOST_KEYS)
        test, parts, items = _structure(text, name, key, apart, fewest)
        if columns.is_nested(key):
            text.nested.append(name)
            text.deep |= columns.is_deep(columns.held_in(key))
        if key[0] in _CONTAINERS:
            text.objects.append(name)
            text.containers.append(name)
        text.test(test)
        inner = text.fresh(len(parts))
        if inner:
            text.line(_unpacking(inner, items))
        waiting += list(zip(inner, parts, strict=True))[::-1]


def _unpacking(names: list[str], value: str) -> str:
    return f"{', '.join(names)}, = {value}"


def _structure(
    text: Text, name: str, key: Key, apart: int, least: int
) -> tuple[str, Key, str]:
    """A test for a structure of this key, the keys of its items, and where they are found.

    least: dicts with more entries enter as tables.
    """
    match key:
        case ("grown", item):
            if item in (("list", columns.TEXT), ("list", columns.LETTER)):
                apart = columns.NONE_APART
            test = f"type({name}) is list and len({name}) > {apart}"
            made = f"{text.name(columns_of)}({name}, {text.name(item)})"
            read = reader_of(item)
            if read is not None:
                made = f"{text.name(read)}({name}) or {made}"
            return test, (COLUMN,) * columns.count_of(item), made
        case ("dict", keys, *parts):
            test = f"type({name}) is dict and tuple({name}) == {text.name(keys)}"
            return test, tuple(parts), f"{name}.values()"
        case key if key == _EMPTY:
            return f"type({name}) is dict and not {name}", (), name
        case ("table", *of):
            test = f"type({name}) is dict and len({name}) > {least}"
            return test, *text_of_table(text, name, of)
        case ("nested", *of):
            test = f"type({name}) is dict and len({name}) > {least}"
            if of[1] is None:
                test = f"type({name}) is list and len({name}) > {apart}"
            return test, *text_of_nested(text, name, of)
        case ("subclass", cls, Identity(factory), inner):
            return _of_subclass(text, name, (cls, factory, inner), least)
        case ("sequence", cls, most, inner):
            room = f" and {name}.maxlen == {most}" if cls is deque else ""
            if cls is array:
                room = f" and {name}.typecode == {most!r}"
            return f"type({name}) is {text.name(cls)}{room}", (inner,), f"[list({name})]"
        case ("set", *items):
            test = f"type({name}) is set and {text.name(constants)}({name}) == {text.name(items)}"
            return test, (), name
        case ("list", *parts):
            return f"type({name}) is list and len({name}) == {len(parts)}", tuple(parts), name
        case ("tuple", cls, *parts):
            own = "tuple" if cls is None else text.name(cls)
            return f"type({name}) is {own} and len({name}) == {len(parts)}", tuple(parts), name
        case ("range", step, *parts):
            starts = "" if len(parts) == 2 else f" and not {name}.start"
            ends = f"{name}.start, {name}.stop" if len(parts) == 2 else f"{name}.stop,"
            return f"type({name}) is range and {name}.step == {step}{starts}", tuple(parts), ends
        case ("record", cls, names, *parts):
            if issubclass(cls, generator_classes()):  # its state is no attribute
                text.generators.add(name)
                test = f"type({name}) is {text.name(cls)}"
                return test, tuple(parts), f"{text.name(fields_of)}({name}).values()"
            if not cls.__dictoffset__:
                if list(names) != slots_of(cls):  # which of them have values is not told
                    raise NeedsMore
                values = _tuple([f"{name}.{field}" for field in names])
                return f"type({name}) is {text.name(cls)}", tuple(parts), values
            fields = f"tuple({name}.__dict__) == {text.name(names)}"
            test = f"type({name}) is {text.name(cls)} and {fields}"
            return test, tuple(parts), f"{name}.__dict__.values()"
        case ("again", number):
            return f"{name} is {text.objects[number]}", (), name
        case ("object", Identity(value)):
            return f"{name} is {text.name(value)}", (), name
        case ("constant", _, bool() | None as value):
            return f"{name} is {value}", (), name
        case ("constant", cls, str() | bytes() as value):
            return f"type({name}) is {text.name(cls)} and {name} == {text.name(value)}", (), name
        case ("constant", _, Identity(value)):
            return f"{name} is {text.name(value)}", (), name
        case ("text",):
            return f"type({name}) is str", (_CODES,), f"{text.name(codes_of)}({name}),"
        case ("bytes",):
            return f"type({name}) is bytes", (_CODES,), f"{text.name(items_of_bytes)}({name}),"
    raise NeedsMore


def _of_subclass(
    text: Text, name: str, of: tuple[type, Any, Key], least: int
) -> tuple[str, Key, str]:
    """As `_structure`, of a set that enters as a table, and of dicts of the library's classes."""
    cls, factory, inner = of
    test = f"type({name}) is {text.name(cls)}"
    if factory is not None:
        test += f" and {name}.default_factory is {text.name(factory)}"
    if cls is set:
        found: tuple[Key, str] = (), "()"
        if inner == _EMPTY:
            test += f" and not {name} and not {text.name(was_emptied)}({name})"
        else:
            found = text_of_table(text, f"dict.fromkeys({name}, True)", inner[1:])
        columns_of_items, made = found
        read = len(text.leaves) + len(columns_of_items) in text.handed
        slots = f"{text.name(layout_of_set)}({name})" if read else "None"
        return test, (*columns_of_items, COLUMN), f"*({made}), {slots}"
    if inner == _EMPTY:
        return f"{test} and not {name}", (), name
    if inner[0] == "table":
        test += f" and len({name}) > {least}"
        return test, *text_of_table(text, name, inner[1:])
    _, keys, *parts = inner
    return f"{test} and tuple({name}) == {text.name(keys)}", tuple(parts), f"{name}.values()"


# -- names -----------------------------------------------------------------------------------------


def _reading(text: Text, guard: NameGuard) -> str:
    """Python text that reads a name again."""
    place = text.name(guard.container)
    match guard.kind:
        case "item":
            return f"{place}[{guard.name!r}]"
        case "cell":
            return f"{place}.cell_contents"
        case "attribute" if guard.value is not ABSENT:
            return f"{place}.{guard.name}"
    raise NeedsMore


def _never_changes(guard: NameGuard) -> bool:
    """Whether a name cannot come to mean anything else: Python's own classes let none be set."""
    place = guard.container
    return guard.kind == "attribute" and type(place) is type and not place.__flags__ & _IS_MADE


_IS_MADE = 1 << 9
"""CPython's Py_TPFLAGS_HEAPTYPE: classes that programs made have it."""


def _native_guard(guard: NameGuard) -> tuple[str, Any, Any, Any] | None:
    """A guard as the native entry looks at it, by identity; None if that cannot."""
    from pyrelay.devices.runtime.entry import NOTHING

    place, value = guard.container, guard.value
    match guard.kind:
        case "item" if type(place) is dict:
            return "item", place, guard.name, value
        case "absent" if type(place) is dict:
            return "item", place, guard.name, NOTHING
        case "cell" if type(place) is CellType:
            return "cell", place, None, value
        case "attribute" if type(place) is FunctionType and guard.name == "__code__":
            return "code", place, None, value
        case "attribute" if type(place) is FunctionType and guard.name == "__defaults__":
            return "defaults", place, None, NOTHING if value is None else value
        case "attribute" if type(place) is ModuleType and vars(place).get(guard.name) is value:
            return "item", vars(place), guard.name, value
    return None


def _identity_test(text: Text, guard: NameGuard) -> str:
    """Python text that is true if a name still means the very same object."""
    place, value = text.name(guard.container), text.name(guard.value)
    match guard.kind:
        case "item":
            return f"{place}[{guard.name!r}] is {value}"
        case "cell":
            return f"{place}.cell_contents is {value}"
        case "absent":
            return f"{guard.name!r} not in {place}"
        case "function":
            return f"{place}.{guard.name}.__func__ is {value}"
        case "attribute" if guard.value is ABSENT:
            return f"getattr({place}, {guard.name!r}, {value}) is {value}"
        case "attribute" if isinstance(guard.value, BuiltinMethodType):
            return f"{place}.{guard.name} == {value}"  # each look makes a new one
        case "attribute":
            return f"{place}.{guard.name} is {value}"
        case "defaults" if not guard.value:
            return f"not {place}.__kwdefaults__"
        case "defaults":
            pairs = list(zip(guard.value[::2], guard.value[1::2], strict=True))
            tests = [f"len({place}.__kwdefaults__) == {len(pairs)}"]
            tests += [f"{place}.__kwdefaults__[{k!r}] is {text.name(v)}" for k, v in pairs]
            return " and ".join(tests)
        case "registry":
            pairs = list(zip(guard.value[::2], guard.value[1::2], strict=True))
            tests = [f"len({place}.registry) == {len(pairs)}"]
            tests += [f"{place}.registry.get({text.name(k)}) is {text.name(v)}" for k, v in pairs]
            return " and ".join(tests)
    raise AssertionError(guard.kind)
