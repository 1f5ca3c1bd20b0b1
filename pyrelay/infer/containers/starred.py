"""Lists, tuples, sets and calls with starred items: `[1.0, *items]`, `f(*items)`.

In: the items of a display, or of a call. Out: a list or a set of them, or the call's result, where
the length of a starred one is known only to the running program.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType, MethodDescriptorType
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.containers import lists, sets
from pyrelay.infer.in_python import hashed_sets, tables
from pyrelay.infer.interpreter import Interpreter


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

    They are what the function's own `*rest` holds, a tuple of run-time length. None where they are
    not all of it, or the callee is no Python function. words: as of a call of `dispatch`.
    """
    from pyrelay.infer.calls import bind_arguments, call, call_bound, function_value
    from pyrelay.infer.names import handlers

    of_sets = _of_sets(callee)
    if of_sets is not None:
        if tuple(words) != ("*",) or not is_open(it, given[0]):
            return None
        return call(it, V.Known(of_sets[0]), (*of_sets[1:], *given), {})
    if isinstance(callee, V.Known) and isinstance(callee.value, FunctionType) and (
        handlers.lookup(callee.value) is None and not hasattr(callee.value, "__pyrelay__")
    ):
        callee = function_value(it, callee.value)
    if not isinstance(callee, V.Closure) or "**" in words or words.count("*") != 1:
        return None
    place = words.index("*")
    before, spread, behind = given[:place], given[place], words[place + 1 :]
    kinds = [p.kind for p in callee.function.signature]
    if (
        None in behind or "var_positional" not in kinds or not is_open(it, spread)
        or sum(kind.startswith("positional") for kind in kinds) != place
    ):
        return None
    named = {word: v for word, v in zip(behind, given[place + 1 :], strict=True) if word}
    bound = bind_arguments(it, callee, before, named)
    bound[kinds.index("var_positional")] = call(it, V.Known(tuple), (spread,), {})
    return call_bound(it, callee, bound)


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
    if isinstance(value, V.Ref) and isinstance(value.cls, type):
        return issubclass(value.cls, (tables.Table, hashed_sets.Members, tables.Values))
    content = lists.growing_content(it, value)
    if content is not None:
        return not isinstance(content.count, V.Known)
    if not isinstance(value, V.ArrayRef) or not value.type.shape:
        return False
    extent = value.type.shape[0]
    return not isinstance(extent, int) and it.program.guards.fix(extent) is None
