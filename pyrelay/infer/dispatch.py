"""What each kind of `PyCall` means: the table that the interpreter steps through.

A handler takes the interpreter, the argument values and the attributes; it gives one value, a list
of values (several outputs), or None (no output).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.annotations import signature_of
from pyrelay.infer import attributes, calls, in_place, needs, operators, protocols
from pyrelay.infer import values as V
from pyrelay.infer.arrays import subscripts
from pyrelay.infer.containers import list_slices, lists, open_sequences, sets, starred, text, turned
from pyrelay.infer.containers.admission import lent
from pyrelay.infer.containers.open_keys import (
    is_known,
    must_be_hashable,
    note,
    note_objects,
    wants_table,
)
from pyrelay.infer.flow import effects, generators, handling, managing, narrowing
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.flow.unions import distribute, distribute_all, sample
from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes import anonymous, dicts, fixed_lists, trees
from pyrelay.infer.unfolding import is_of_few
from pyrelay.ir.nodes import UNSET

Args = tuple[V.Value, ...]


def _with(it: Interpreter, args: Args, k: int, case: V.Value) -> Args:
    """The arguments where argument `k` is this case."""
    return tuple(case if i == k else narrowing.narrowed(it, a) for i, a in enumerate(args))


def _by_case(
    handler: Callable[[Interpreter, Args, Any], Any], *positions: int,
    python: Callable[..., Any] | None = None,
) -> Callable[[Interpreter, Args, Any], Any]:
    """The handler, done case by case where one of these arguments is one of several cases.

    python: what raises in Python where the handler does not take a case.
    """

    def over_cases(it: Interpreter, args: Args, attrs: Any) -> Any:
        for k in positions:
            value = args[k]
            if isinstance(value, V.Union):
                return distribute(
                    it, value,
                    lambda c, k=k: over_cases(it, _with(it, args, k, c), attrs),  # type: ignore[misc]
                    None if python is None else lambda c, k=k: python(  # type: ignore[misc]
                        attrs, *(c if i == k else sample(it, a) for i, a in enumerate(args))
                    ),
                )
        return handler(it, args, attrs)

    return over_cases


def _acting_by_case(
    handler: Callable[[Interpreter, Args, Any], Any], python: Callable[..., Any], *positions: int
) -> Callable[[Interpreter, Args, Any], Any]:
    """As `_by_case`, for a handler with several results or none, which `python` does in Python."""

    def over_cases(it: Interpreter, args: Args, attrs: Any) -> list[V.Value] | None:
        for k in positions:
            value = args[k]
            if isinstance(value, V.Union) and not (k == 1 and _takes_cases(it, args[0], value)):
                return distribute_all(
                    it, value,
                    lambda c, k=k: over_cases(it, _with(it, args, k, c), attrs) or [],  # type: ignore[misc]
                    lambda c, k=k: python(  # type: ignore[misc]
                        attrs, *(c if i == k else sample(it, a) for i, a in enumerate(args))
                    ),
                )
        result: list[V.Value] | None = handler(it, args, attrs)
        return result

    return over_cases


def _takes_cases(it: Interpreter, obj: V.Value, key: V.Value) -> bool:
    """Whether an object takes a key that is one of several cases as it is: by a method of its own.
    """
    note(obj, key, it)
    return isinstance(obj, V.Ref) and obj.cls is not None


def _starred_by_case(
    handler: Callable[[Interpreter, Args, Any], Any], words: str,
    python: Callable[..., Any] | None = None,
) -> Callable[[Interpreter, Args, Any], Any]:
    """The handler, done case by case where an iterable that it spreads is one of several."""

    def over_cases(it: Interpreter, args: Args, attrs: Any) -> Any:
        marks = attrs.get(words, ())
        found = [(k, mark) for k, mark in enumerate(marks) if mark in (True, "*", "**")]
        spread = [k for k, _ in found]
        if words == "keywords":
            spread = [k + 1 for k in spread]
        elif words == "merged":
            spread = [2 * k + 1 for k in spread]
        if not spread:
            return handler(it, args, attrs)
        for k, (_, mark) in zip(spread, found, strict=True):
            value = args[k]
            if words == "starred":
                value = _spread(it, value)
            else:
                if mark == "*":
                    value = protocols.gone_through(it, value)
                value = generators.taken(it, value)
            args = _with(it, args, k, value)
        return _by_case(handler, *spread, python=python)(it, args, attrs)

    return over_cases


def _spread(it: Interpreter, value: V.Value) -> V.Value:
    """All that there is to go through of an iterable; anything else unchanged."""
    value = generators.taken(it, protocols.gone_through(it, value))
    return generators.collected(it, value) if generators.is_generator(value) else value


def _taking(
    handler: Callable[[Interpreter, Args, Any], Any]
) -> Callable[[Interpreter, Args, Any], Any]:
    """The handler, given what there is to go through of an iterator that is its argument."""
    return lambda it, args, attrs: handler(it, (generators.taken(it, args[0]),), attrs)


def _name(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return attributes.read_name(it, attrs["scope"], attrs["name"])


def _attribute(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return attributes.get_attribute(it, args[0], attrs["name"])


def _set_attribute(it: Interpreter, args: Args, attrs: Any) -> None:
    attributes.set_attribute(it, args[0], attrs["name"], args[1])


def _item(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    obj, key = args
    if "unnamed" in attrs and isinstance(obj, V.Ref) and isinstance(key, V.Slice):
        return list_slices.cut_out(it, obj, key)
    return subscripts.get_item(it, obj, key)


def _set_item(it: Interpreter, args: Args, attrs: Any) -> None:
    obj, key, value = args
    if isinstance(key, V.Slice) and isinstance(obj, V.Ref) and obj.root.kind == "list":
        value = _spread(it, value)
    subscripts.set_item(it, obj, key, value)


def _exchange(it: Interpreter, args: Args, attrs: Any) -> None:
    subscripts.exchange(it, *args)


def _exchange_in_python(attrs: Any, obj: Any, i: Any, j: Any, at_i: Any, at_j: Any) -> None:
    obj[i], obj[j] = at_j, at_i


def _del_item(it: Interpreter, args: Args, attrs: Any) -> None:
    subscripts.del_item(it, *args)


def _call(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    callee, *given = args
    if isinstance(callee, V.Known) and callee.value is zip and attrs["keywords"] == ("*",):
        made = turned.columns(it, given[0])
        if made is not None:
            return made
    if isinstance(callee, V.Union) and any(
        word == "*" and starred.is_open(it, v)
        for v, word in zip(given, attrs["keywords"], strict=True)
    ):  # how many items there have to be, each of them says
        return distribute(it, callee, lambda case: _call(it, (case, *given), attrs))
    if "*" in attrs["keywords"]:
        result = starred.called(it, callee, given, attrs["keywords"])
        if result is not None:
            return result
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


def _binding(attrs: Any, callee: Any, *given: Any) -> None:
    """Raises what a call of a callee with these arguments does if it does not take as many."""
    try:
        signature = signature_of(callee)
    except (TypeError, ValueError):  # nothing at hand that could be called, or nobody knows
        return
    if any(value is NotImplemented for value in given):
        return
    words = list(zip(given, attrs["keywords"], strict=True))
    spread = [v for v, word in words if word in (None, "*") for v in (v if word else (v,))]
    named = {word: v for v, word in words if word not in (None, "*", "**")}
    signature.bind(*spread, **named)


def _unary(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.unary(it, attrs["op"], args[0])


def _binary(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.waiting(it, attrs["op"], args[0], args[1])


def _inplace(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return in_place.inplace(it, attrs["op"], args[0], args[1])


def _compare(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return operators.compare(it, attrs["op"], args[0], args[1])


def _truth(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return truth(it, args[0])


def _items_of(it: Interpreter, args: Args, attrs: Any) -> tuple[V.Value, ...]:
    items: list[V.Value] = []
    for value, spread in zip(args, attrs["starred"], strict=True):
        items.extend(sequence_of(it, value) if spread else (value,))
    return tuple(items)


def _tuple(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    made = starred.joined(it, args, attrs["starred"])
    if made is not None:
        from pyrelay.infer.names.builtins import tuple_

        return tuple_(it, made)
    return anonymous.tuple_of(it, _items_of(it, args, attrs))


def _list(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    made = starred.joined(it, args, attrs["starred"])
    if made is not None:
        return made
    return fixed_lists.new_list(it, _items_of(it, args, attrs))


def _set(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    made = starred.united(it, args, attrs["starred"])
    if made is not None:
        return made
    items = _items_of(it, args, attrs)
    if it.let in it.program.tables or is_of_few(it, items):
        from pyrelay.infer.names.containers import members

        table = members(it, V.Tuple(tuple(items)))
        return members(it, table) if attrs["copied"] and it.program.ordered else table
    for value, spread in zip(args, attrs["starred"], strict=True):
        if spread and sets.is_dict(value) and all(map(is_known, items)):
            return sets.displayed(it, args, attrs["starred"])
    known = sets.new(it, items)
    return sets.copy_of(it, known) if attrs["copied"] else known


def _dict(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    content: dict[Any, V.Value] = {}
    merged = attrs.get("merged", (False,) * (len(args) // 2))
    pairs = list(zip(merged, args[::2], args[1::2], strict=True))
    if it.let in it.program.tables or is_of_few(it, args[::2]):
        from pyrelay.infer.names.containers import table

        return table(it, pairs)
    for is_merged, key, value in pairs:
        if not is_merged:
            note_objects(it, key)
            if wants_table(it, key) and it.let is not None:
                it.program.open_keys.add(it.let)
            must_be_hashable(it, key, "a dict key")
            content[it.static(key, "the key of a dict")] = value
            continue
        if isinstance(value, V.Ref) and value.cls is not None and it.let is not None:
            it.program.open_keys.add(it.let)  # of a table, the keys are not known
        for each in sequence_of(it, value):
            content[it.static(each, "the key of a dict")] = subscripts.get_item(it, value, each)
    return dicts.new_dict(it, content)


def _slice(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return V.Slice(*(operators.number(it, a) for a in args))


def _unpack(it: Interpreter, args: Args, attrs: Any) -> list[V.Value]:
    before, rest, after = attrs["before"], attrs["starred"], attrs["after"]
    value, wanted = args[0], before + after
    if isinstance(value, V.ArrayRef) and value.type.shape:
        extent = value.type.shape[0]
        if not rest:
            it.program.guards.equal(extent, wanted)
        if it.program.guards.fix(extent) is None:  # only the running program knows it
            if not rest:
                count = V.Scalar.of_extent(extent)
                return lists.unpacked(it, value, count, before, after, rest)
            value = _as_list(it, value)
    if isinstance(value, V.Items) and not rest:
        return list(trees.unpacked(it, value, wanted))
    if isinstance(value, V.OpenTuple):
        value = value.items
    if isinstance(value, V.Data) and is_fixed(value.cls):
        names = value.cls.names
        value = V.Tuple(tuple(attributes.get_attribute(it, value, name) for name in names))
    if isinstance(value, (V.Ref, V.Data)) and value.cls in standing_for:
        value = _as_list(it, value)
    content = lists.growing_content(it, value)
    if content is not None and not isinstance(content.count, V.Known):
        return lists.unpacked(it, value, content.count, before, after, rest)
    try:
        items = sequence_of(it, value)
    except errors.StaticValueError:
        if not isinstance(value, (V.Lazy, V.Range)):
            raise
        return _unpack(it, (_as_list(it, value),), attrs)
    if len(items) < wanted or (len(items) > wanted and not rest):
        if any(spec.result is None and not spec.strict for spec in it.program.making):
            raise needs.Diverges  # a loop that recurs has run no round yet
        said = lists.wrong_number(wanted, rest, len(items), _is_counted(args[0]))
        problem = "too many" if len(items) > wanted else "not enough"
        least = " at least" if rest else ""
        text = f"{problem} values to unpack: expected {wanted}{least}, got {len(items)}"
        raise certain(
            it, it.failure(errors.InvalidValueError, text), ValueError,
            said,
        )
    if not rest:
        return list(items)
    middle = items[before : len(items) - after]
    return [*items[:before], it.new_ref("list", middle), *items[len(items) - after :]]


def _as_list(it: Interpreter, value: V.Value) -> V.Value:
    return calls.call(it, V.Known(list), (value,), {})


def _function(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    frame = it.frame
    function = frame.home.module.functions[attrs["function"]]
    names = attrs["defaults"]
    defaults = tuple(zip(names, args[: len(names)], strict=True))
    return V.Closure(function, frame.home, frame.owner, defaults, args[len(names) :])


def _is_counted(value: V.Value) -> bool:
    """Whether Python knows how many items there are before it goes through them."""
    if isinstance(value, V.Ref):
        return value.root.kind in ("list", "dict")
    return isinstance(value, (V.Tuple, V.OpenTuple, V.Data)) and not isinstance(value, V.View)


def _unpack_in_python(attrs: Any, value: Any) -> None:
    """The unpacking of an iterable by as many targets."""
    names = [f"_{k}" for k in range(attrs["before"] + attrs["after"])]
    if attrs["starred"]:
        names.insert(attrs["before"], "*_")
    exec(f"[{', '.join(names)}] = value", {"value": value})


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
    message = f"cannot access local variable '{name}' where it is not associated with a value"
    if isinstance(value, V.Known) and value.value is UNSET:
        error = it.failure(
            errors.UnboundVariableError, f"{name!r} is used before it is set",
            hints=(f"give {name!r} a value before this line",),
        )
        raise certain(it, error, UnboundLocalError, message)
    if isinstance(value, V.Union) and V.Known(UNSET) in value.possible:
        return _resolve_unset(it, value, message)
    return value


def _resolve_unset(it: Interpreter, value: V.Union, message: str) -> V.Value:
    absent = next(i for i in value.alive if value.cases[i] == V.Known(UNSET))
    test = it.emit("equal", value.tag, absent)
    effects.raise_where(it, test.atom, UnboundLocalError, V.Known(message))
    narrowing.keep(it, ((value.tag, frozenset(value.alive) - {absent}),))
    return narrowing.narrowed(it, value)


def _format(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    known = [
        k for k, a in enumerate(args)
        if isinstance(a, V.Union) and all(isinstance(c, V.Known) for c in a.possible)
    ]  # their texts are known too
    return _by_case(_format_once, *known)(it, args, attrs) if known else text.from_parts(
        it, args, attrs
    )


def _format_once(it: Interpreter, args: Args, attrs: Any) -> V.Value:
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
        case V.Items(cls=cls):
            return V.Known(cls is not set)
        case V.Tuple() | V.OpenTuple() | V.Range():
            return V.Known(True)
        case V.Data():
            return V.Known(trees.is_namedtuple(args[0]) or _stands_for(args[0].cls, Sequence))
        case V.Ref(root, cls):
            return V.Known(root.kind == "list" or _stands_for(cls, Sequence))
        case V.Known(v):
            return V.Known(isinstance(v, (tuple, list, range)))
    return V.Known(False)


def _unmatched(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    """Behind a `match` whose cases all return: nodes of a class without a case are refused."""
    classes = [c.value for c in args[1:] if isinstance(c, V.Known) and isinstance(c.value, type)]
    trees.refuse_unmatched(it, args[0], classes)
    return V.NONE


def _is_mapping(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    match args[0]:
        case V.Data(cls=cls):
            return V.Known(_stands_for(cls, Mapping))
        case V.Ref(root, cls):
            return V.Known(root.kind == "dict" or _stands_for(cls, Mapping))
        case V.Known(v):
            return V.Known(isinstance(v, dict))
    return V.Known(False)


def _stands_for(cls: Any, kind: type) -> bool:
    """Whether a class in Python stands for a container of this kind."""
    return cls in standing_for and issubclass(standing_for[cls][0], kind)


#: Classes whose one positional sub-pattern looks at the subject itself (PEP 634).
_MATCHED_WHOLE = (
    bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple,
)


def _positional(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    cls = it.static(args[1], "the class of a pattern")
    index = attrs["index"]
    if index == 0 and cls in _MATCHED_WHOLE:
        return args[0]
    names = getattr(cls, "__match_args__", ())
    if index >= len(names):
        raise it.failure(
            errors.TypeMismatchError,
            f"{cls.__name__}() accepts {len(names)} positional sub-patterns ({index + 1} given)",
        )
    return attributes.get_attribute(it, args[0], names[index])


def _yield(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return generators.hand_over(it, args[0])


def _returned(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return generators.returned(it, args[0])


def _append(it: Interpreter, args: Args, attrs: Any) -> None:
    target = args[0]
    if isinstance(target, V.Data):  # a list that is an item of others
        calls.call(it, attributes.get_attribute(it, target, "append"), args[1:], {})
        return
    assert isinstance(target, V.Ref)
    content = it.content(target.root)
    if isinstance(content, dict):
        key = it.static(args[1], "the key of a dict")
        it.heap.write(target.root, {**content, key: args[2]}, it.let.span if it.let else None)
        return
    if isinstance(content, V.Growing):
        lists.append(it, target, args[1])
        return
    item = lent(it, open_sequences.as_item(it, args[1]))
    it.heap.write(target.root, (*content, item), it.let.span if it.let else None)


def _raise(it: Interpreter, args: Args, attrs: Any) -> None:
    effects.raise_value(it, *args)


def _try(it: Interpreter, args: Args, attrs: Any) -> None:
    handling.begin(it, args, attrs["looks"])


def _caught(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return handling.caught(it)


def _matches(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    classes = handling.classes_of(it, args[1])
    return calls.call(it, V.Known(isinstance), (args[0], V.Known(classes)), {})


def _enter(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return managing.enter(it, args[0])


def _managed(it: Interpreter, args: Args, attrs: Any) -> None:
    managing.begin(it, args[0], args[1], attrs["flags"])


def _entered(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return managing.entered(it, args[0])


def _exit(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return managing.leave(it, *args)


def _annotate(it: Interpreter, args: Args, attrs: Any) -> V.Value:
    return args[0]


TABLE: dict[str, Callable[[Interpreter, Args, Any], V.Value | Sequence[V.Value] | None]] = {
    "name": _name, "attribute": _attribute, "item": _item,
    "set_attribute": _acting_by_case(
        _set_attribute, lambda attrs, obj, value: setattr(obj, attrs["name"], value), 0
    ),
    "set_item": _acting_by_case(_set_item, lambda _, *args: operator.setitem(*args), 0, 1),
    "exchange": _acting_by_case(_exchange, _exchange_in_python, 0, 1, 2),
    "del_item": _acting_by_case(_del_item, lambda _, *args: operator.delitem(*args), 0, 1),
    "call": _starred_by_case(_call, "keywords", _binding), "unary": _unary,
    "binary": _binary, "inplace": _inplace, "compare": _compare, "truth": _truth,
    "tuple": _starred_by_case(_tuple, "starred"), "list": _starred_by_case(_list, "starred"),
    "set": _starred_by_case(_set, "starred"), "dict": _starred_by_case(_dict, "merged"),
    "slice": _slice, "unpack": _taking(_acting_by_case(_unpack, _unpack_in_python, 0)),
    "function": _function, "new_cell": _new_cell, "get_cell": _get_cell,
    "set_cell": _set_cell, "bound": _bound, "format": _format, "append": _append,
    "expect": _expect, "is_sequence": _by_case(_is_sequence, 0),
    "unmatched": _unmatched,
    "is_mapping": _by_case(_is_mapping, 0), "positional": _by_case(_positional, 0),
    "raise": _raise, "try": _try, "caught": _caught, "matches": _matches, "yield": _yield,
    "returned": _returned, "enter": _enter, "managed": _managed, "entered": _entered, "exit": _exit,
    "annotate": _annotate,
}
