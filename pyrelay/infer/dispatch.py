"""What each kind of `PyCall` means: the table that the interpreter steps through.

A handler takes the interpreter, the argument values and the attributes; it gives one value, a list
of values (several outputs), or None (no output).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import attributes, calls, effects, operators, subscripts, text
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.narrowing import narrowed
from pyrelay.infer.truth import truth
from pyrelay.ir.nodes import UNSET

Args = tuple[V.Value, ...]


def _name(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return attributes.read_name(it, attrs["scope"], attrs["name"])


def _attribute(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return attributes.get_attribute(it, args[0], attrs["name"])


def _set_attribute(it: Interpreter, args: Args, attrs: Any) -> None:
    attributes.set_attribute(it, args[0], attrs["name"], args[1])


def _item(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return subscripts.get_item(it, args[0], args[1])


def _set_item(it: Interpreter, args: Args, attrs: Any) -> None:
    subscripts.set_item(it, *args)


def _del_item(it: Interpreter, args: Args, attrs: Any) -> None:
    subscripts.del_item(it, *args)


def sequence_of(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    """The items of an iterable whose number is known."""
    from pyrelay.infer.iteration import iterate

    items = iterate(it, value)
    count = it.static(items.count, "the number of items")
    return tuple(items.item(V.Known(k)) for k in range(count))


def _call(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    callee, *given = args
    positional: list[V.Value] = []
    named: dict[str, V.Value] = {}
    for value, keyword in zip(given, attrs["keywords"], strict=True):
        if keyword is None:
            positional.append(value)
        elif keyword == "*":
            positional.extend(sequence_of(it, value))
        elif keyword == "**":
            for key in sequence_of(it, value):
                name = it.static(key, "the name of a keyword argument")
                named[name] = subscripts.get_item(it, value, key)
        else:
            named[keyword] = value
    return calls.call(it, callee, positional, named)


def _unary(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.unary(it, attrs["op"], args[0])


def _binary(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.binary(it, attrs["op"], args[0], args[1])


def _inplace(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.inplace(it, attrs["op"], args[0], args[1])


def _compare(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.compare(it, attrs["op"], args[0], args[1])


def _truth(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return truth(it, args[0])


def _items_of(it: Interpreter, args: Args, attrs: Any) -> tuple[V.Value, ...]:
    items: list[V.Value] = []
    for value, starred in zip(args, attrs["starred"], strict=True):
        items.extend(sequence_of(it, value) if starred else (value,))
    return tuple(items)


def _tuple(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return V.Tuple(_items_of(it, args, attrs))


def _list(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return it.new_ref("list", _items_of(it, args, attrs))


def _set(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    items = _items_of(it, args, attrs)
    if all(isinstance(i, V.Known) for i in items):
        return V.Known(frozenset(i.value for i in items))  # type: ignore[union-attr]
    return it.new_ref("set", items)


def _dict(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    content: dict[Any, V.Value] = {}
    merged = attrs.get("merged", (False,) * (len(args) // 2))
    for k, is_merged in enumerate(merged):
        key, value = args[2 * k], args[2 * k + 1]
        if not is_merged:
            content[it.static(key, "the key of a dict")] = value
            continue
        for each in sequence_of(it, value):
            content[it.static(each, "the key of a dict")] = subscripts.get_item(it, value, each)
    return it.new_ref("dict", content)


def _slice(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return V.Slice(*args)


def _unpack(it: Interpreter, args: Args, attrs: Any) -> list[V.Value]:
    before, starred, after = attrs["before"], attrs["starred"], attrs["after"]
    value = args[0]
    if isinstance(value, V.ArrayRef) and value.type.shape:
        extent = value.type.shape[0]
        if not starred:
            it.program.guards.equal(extent, before + after)
    items = sequence_of(it, value)
    wanted = before + after
    if len(items) < wanted or (len(items) > wanted and not starred):
        problem = "too many" if len(items) > wanted else "not enough"
        raise it.failure(
            errors.InvalidValueError,
            f"{problem} values to unpack: expected {wanted}{' at least' if starred else ''}, got "
            f"{len(items)}",
        )
    if not starred:
        return list(items)
    middle = items[before : len(items) - after]
    return [*items[:before], it.new_ref("list", middle), *items[len(items) - after :]]


def _function(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    frame = it.frame
    function = frame.home.module.functions[attrs["function"]]
    names = attrs["defaults"]
    defaults = tuple(zip(names, args[: len(names)], strict=True))
    return V.Closure(function, frame.home, frame.owner, defaults, args[len(names) :])


def _new_cell(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return it.new_ref("cell", args[0])


def _get_cell(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    cell = args[0]
    assert isinstance(cell, V.Ref)
    return _checked(it, it.content(cell.root), attrs["name"])


def _set_cell(it: Interpreter, args: Args, attrs: Any) -> None:
    cell = args[0]
    assert isinstance(cell, V.Ref)
    it.heap.write(cell.root, args[1], it.let.span if it.let else None)


def _bound(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return _checked(it, args[0], attrs["name"])


def _checked(it: Interpreter, value: V.Value, name: str) -> V.Value:
    """The value of a variable; where a path has not set it, Python's error at run time."""
    if isinstance(value, V.Known) and value.value is UNSET:
        raise it.failure(
            errors.UnboundVariableError, f"{name!r} is used before it is set",
            hints=(f"give {name!r} a value before this line",),
        )
    if isinstance(value, V.Union) and any(
        isinstance(c, V.Known) and c.value is UNSET for c in value.cases
    ):
        return _resolve_unset(it, value, name)
    return value


def _resolve_unset(it: Interpreter, value: V.Union, name: str) -> V.Value:
    from pyrelay.infer.control import branch

    absent = next(
        i for i, c in enumerate(value.cases) if isinstance(c, V.Known) and c.value is UNSET
    )
    message = f"cannot access local variable '{name}' where it is not associated with a value"

    def complain() -> list[V.Value]:
        effects.emit_raise(it, UnboundLocalError, (V.Known(message),))
        raise V.Diverges

    test = it.emit("equal", value.tag, absent)
    branch(it, test.atom, complain, list)
    return narrowed(it, value, frozenset(range(len(value.cases))) - {absent})


def _format(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return text.from_parts(it, args, attrs)


def _expect(it: Interpreter, args: Args, attrs: Any) -> None:
    expected = it.static(args[1], "what a name must mean here")
    if not (isinstance(args[0], V.Known) and args[0].value is expected):
        name = getattr(expected, "__name__", repr(expected))
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{name!r} does not mean Python's own {name!r} here, and this line needs it to",
        )


def _is_sequence(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    match args[0]:
        case V.Tuple() | V.Range():
            return V.Known(True)
        case V.Ref(root):
            return V.Known(root.kind == "list")
        case V.Known(v):
            return V.Known(isinstance(v, (tuple, list, range)))
    return V.Known(False)


def _is_mapping(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    value = args[0]
    return V.Known(
        (isinstance(value, V.Ref) and value.root.kind == "dict")
        or (isinstance(value, V.Known) and isinstance(value.value, dict))
    )


def _positional(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    cls = it.static(args[1], "the class of a pattern")
    index = attrs["index"]
    names = getattr(cls, "__match_args__", ())
    if index >= len(names):
        raise it.failure(
            errors.TypeMismatchError,
            f"{cls.__name__}() accepts {len(names)} positional sub-patterns ({index + 1} given)",
        )
    return attributes.get_attribute(it, args[0], names[index])


def _append(it: Interpreter, args: Args, attrs: Any) -> None:
    target = args[0]
    assert isinstance(target, V.Ref)
    content = it.content(target.root)
    if isinstance(content, dict):
        key = it.static(args[1], "the key of a dict")
        it.heap.write(target.root, {**content, key: args[2]}, it.let.span if it.let else None)
        return
    it.heap.write(target.root, (*content, args[1]), it.let.span if it.let else None)


def _raise(it: Interpreter, args: Args, attrs: Any) -> None:
    effects.raise_value(it, *args)


_CONTEXTS_WITHOUT_EFFECT = ("errstate", "scope")


def _enter(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    manager = args[0]
    if isinstance(manager, V.Known) and type(manager.value).__name__ in _CONTEXTS_WITHOUT_EFFECT:
        return manager
    raise it.failure(
        errors.UnsupportedOperationError,
        f"'with' cannot enter {V.describe(manager)} in a compiled function",
        hints=("np.errstate(...) is supported; other context managers belong around the call",),
    )


def _exit(it: Interpreter, args: Args, attrs: Any) -> None:
    return None


def _annotate(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return args[0]


TABLE: dict[str, Callable[[Interpreter, Args, Any], V.Value | Sequence[V.Value] | None]] = {
    "name": _name, "attribute": _attribute, "set_attribute": _set_attribute, "item": _item,
    "set_item": _set_item, "del_item": _del_item, "call": _call, "unary": _unary,
    "binary": _binary, "inplace": _inplace, "compare": _compare, "truth": _truth,
    "tuple": _tuple, "list": _list, "set": _set, "dict": _dict, "slice": _slice,
    "unpack": _unpack, "function": _function, "new_cell": _new_cell, "get_cell": _get_cell,
    "set_cell": _set_cell, "bound": _bound, "format": _format, "append": _append,
    "expect": _expect, "is_sequence": _is_sequence, "is_mapping": _is_mapping,
    "positional": _positional, "raise": _raise, "enter": _enter, "exit": _exit,
    "annotate": _annotate,
}
