"""Lists, tuples, sets and calls with starred items: `[1.0, *items]`, `f(*items)`.

In: the items of a display, or of a call. Out: a list or a set of them, or the call's result, where
the length of a starred one is known only to the running program.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import FunctionType, MethodDescriptorType, MethodType
from typing import Any

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import lists, sets
from pyrelay.infer.generated_inits import has_generated
from pyrelay.infer.in_python import hashed_sets, several, tables
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.wrong_calls import said

_NEW_OBJECT: Any = object.__new__


def joined(
    it: Interpreter, args: Sequence[V.Value], starred: Sequence[bool]
) -> V.Ref | None:
    """A list of the items, where only the running program knows how many these are; else None.

    What can be known to the next attempt, as the extent of an argument, counts as known.
    """
    from pyrelay.infer import methods
    from pyrelay.infer.names.builtins import list_

    pairs = list(zip(args, starred, strict=True))
    if not any(is_open(it, value) for value, spread in pairs if spread):
        return None
    made = it.new_ref("list", ())
    for value, spread in pairs:
        if spread:
            methods.call(it, made, "extend", (list_(it, value),), {})
        else:
            methods.call(it, made, "append", (value,), {})
    return made


def united(
    it: Interpreter, args: Sequence[V.Value], starred: Sequence[bool]
) -> V.Value | None:
    """A set of the items, where only the running program knows how many these are; else None.

    They go into it in turn, as Python has them do. Where the set is none that such items may come
    to, notes that the next attempt had better make one.
    """
    from pyrelay.infer.attributes import get_attribute
    from pyrelay.infer.calls import call, unsupported
    from pyrelay.infer.names.containers import members

    pairs = list(zip(args, starred, strict=True))
    as_table = any(starred) and it.let in it.program.tables
    if not as_table and not any(is_open(it, value) for value, spread in pairs if spread):
        return None
    if not as_table:
        if it.let is not None:
            it.program.open_keys.add(it.let)
        raise unsupported(it, set)
    made = members(it)
    for value, spread in pairs:
        call(it, get_attribute(it, made, "update" if spread else "add"), (value,), {})
    return made


def called(
    it: Interpreter, callee: V.Value, given: Sequence[V.Value], words: Sequence[str | None]
) -> V.Value | None:
    """`callee(..., *items, ...)` where only the running program knows how many items are spread.

    They are what the function's own `*rest` holds, a tuple of run-time length, or, where it has
    none, its other parameters, if there are as many. None where they are not all of it, or the
    callee is no Python function, method or class of the user's. words: as of a call of `dispatch`.
    """
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow import handling

    of_sets = _of_sets(callee)
    if of_sets is not None:
        if tuple(words) != ("*",) or not is_open(it, given[0]):
            return None
        return call(it, V.Known(of_sets[0]), (*of_sets[1:], *given), {})
    if "**" in words or words.count("*") != 1:
        return None
    place = words.index("*")
    if not is_open(it, given[place]):
        return None
    library = _of_the_library(it, callee, given[place])
    if library is not None:  # which takes nothing but them
        flags = [word == "*" for word in words if word in (None, "*")]
        whole = joined(it, given[: len(flags)], flags)
        assert whole is not None
        callee, given, words = library, [whole, *given[len(flags) :]], ("*", *words[len(flags) :])
        place = 0
    before, spread, behind = given[:place], given[place], words[place + 1 :]
    closure, bound = _function(it, callee)
    if closure is None or None in behind:
        return None
    named = {word: v for word, v in zip(behind, given[place + 1 :], strict=True) if word}
    kinds = [p.kind for p in closure.function.signature][bound:]
    if "var_positional" not in kinds:
        count = _taken(closure, bound + place, named)
        if count is None:
            return None
        checked = _fitting(it, closure, bound + place, count, spread, named)

        def given_them() -> list[V.Value]:
            items = handling.unfailing(
                it, lambda: [get_item(it, checked, V.Known(k)) for k in range(count)]
            )
            return [call(it, callee, (*before, *items), named)]

        (result,) = handling.behind(it, given_them) if it.guarded else given_them()
        return result
    if sum(kind.startswith("positional") for kind in kinds) != place:
        return None
    rest = V.Tuple((call(it, V.Known(tuple), (spread,), {}),), V.Spread)
    return call(it, callee, (*before, rest), named)


def _taken(closure: V.Closure, before: int, named: Mapping[str, V.Value]) -> int | None:
    """How many positional arguments a function takes behind the first ones; None where a parameter
    may be left out, or has a name that is given."""
    names = [p.name for p in closure.function.signature if p.kind.startswith("positional")]
    if len(names) < before or not {*dict(closure.defaults), *named}.isdisjoint(names[before:]):
        return None
    return len(names) - before


def _fitting(
    it: Interpreter, closure: V.Closure, before: int, count: int, spread: V.Value,
    named: Mapping[str, V.Value],
) -> V.Value:
    """The items that are spread, which are as many as a function takes; else the running program
    raises what Python says."""
    from pyrelay.infer.calls import call

    fewer = tuple(V.Known(said(closure, before + k, named)) for k in range(count))
    number = before + count + 1
    more = said(closure, number, named)
    return call(it, V.Known(several.fitting), (
        spread, V.Tuple(fewer), V.Known(more), V.Known(more.partition(f"{number} w")[0]),
        V.Known(before),
    ), {})


def _of_the_library(it: Interpreter, callee: V.Value, spread: V.Value) -> V.Value | None:
    """What stands for a function of the library that takes any number of arguments; None if none
    does."""
    if not isinstance(callee, V.Known) or not isinstance(callee.value, Hashable):
        return None
    found = several.OF_ANY_NUMBER.get(callee.value)
    if found is None and callee.value in several.OF_NUMBERS:
        content = lists.growing_content(it, spread)
        if isinstance(spread, V.Range) or (
            isinstance(spread, V.ArrayRef) and spread.type.rank == 1
        ) or (content is not None and isinstance(content.template, L.LScalar)):
            found = several.OF_NUMBERS[callee.value]
    return None if found is None else V.Known(found)


def _function(it: Interpreter, callee: V.Value) -> tuple[V.Closure | None, int]:
    """The Python function that a callee is, and how many of its parameters a call does not bind;
    None for what is none."""
    from pyrelay.infer.attributes import of_class
    from pyrelay.infer.calls import function_value
    from pyrelay.infer.names import handlers

    function, bound = callee, 0
    known: Any = callee.value if isinstance(callee, V.Known) else None
    if isinstance(callee, V.Method):
        function, bound = V.Known(callee.function), 1
    elif isinstance(known, MethodType):
        function, bound = V.Known(known.__func__), 1
    elif type(known) is type and known.__new__ is _NEW_OBJECT and (
        handlers.lookup(known) is None and not has_generated(known)
    ):
        function, bound = V.Known(of_class(it, known, "__init__")), 1
    if isinstance(function, V.Known) and isinstance(function.value, FunctionType) and (
        handlers.lookup(function.value) is None and not hasattr(function.value, "__pyrelay__")
    ):
        function = function_value(it, function.value)
    return (function, bound) if isinstance(function, V.Closure) else (None, 0)


def _of_sets(callee: V.Value) -> tuple[Any, ...] | None:
    """What does for any number of sets in a list what a method of sets does for those that it is
    given, and the set whose method it is; None for other functions."""
    if isinstance(callee, V.Known) and isinstance(callee.value, MethodDescriptorType):
        found = hashed_sets.OF_SEVERAL.get(callee.value)
        return None if found is None else (found,)
    if isinstance(callee, V.Method) and (
        sets.is_set(callee.receiver)
        or issubclass(getattr(callee.receiver, "cls", None) or object, hashed_sets.Members)
    ):
        found = hashed_sets.WITH_SEVERAL.get(callee.name)
        return None if found is None else (found, callee.receiver)
    return None


def is_open(it: Interpreter, value: V.Value) -> bool:
    """Whether only the running program knows how many items there are."""
    if isinstance(value, (V.OpenTuple, V.Items)):
        return True
    if isinstance(value, V.Range):
        return any(_is_computed(it, bound) for bound in (value.start, value.stop, value.step))
    if isinstance(value, V.Ref) and isinstance(value.cls, type):
        return issubclass(value.cls, (tables.Table, hashed_sets.Members, tables.Values))
    content = lists.growing_content(it, value)
    if content is not None:
        return not isinstance(content.count, V.Known)
    if not isinstance(value, V.ArrayRef) or not value.type.shape:
        return False
    extent = value.type.shape[0]
    return not isinstance(extent, int) and it.program.guards.fix(extent) is None


def _is_computed(it: Interpreter, bound: V.Value) -> bool:
    """Whether a number is known to no attempt before the program runs."""
    if not isinstance(bound, V.Scalar) or bound.origin is not None:
        return False
    return bound.extent is None or it.program.guards.fix(bound.extent) is None
