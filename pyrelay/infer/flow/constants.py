"""Values that are one of several constants: names, members of enums, None, chosen at run time.

In: unions all of whose cases are known. Out: what each case has a number for, looked up by the tag:
by a chain of selections, or in an array where there are many. So two such values are compared, or
one is looked for in a table, at a cost that does not grow with the number of cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.infer import own_arrays
from pyrelay.infer import values as V
from pyrelay.infer.flow.joining import same_value
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS

#: Up to this many cases are told apart by selections.
_MOST_SELECTED = 8


def is_choice(value: V.Value) -> bool:
    """Whether a value is one of several constants that can be keys of a dict."""
    return isinstance(value, V.Union) and all(map(_is_constant, value.possible))


def _is_constant(value: V.Value) -> bool:
    if not isinstance(value, V.Known):
        return False
    try:
        hash(value.value)
    except TypeError:
        return False
    return True


def chosen(it: Interpreter, constants: Sequence[Any], index: V.Value) -> V.Value:
    """`constants[index]` for an index in range, which is an int of the program."""
    cases: list[Any] = []
    numbers = []
    for constant in constants:
        for k, case in enumerate(cases):
            if case is constant or (type(case) is type(constant) and same_value(case, constant)):
                numbers.append(k)
                break
        else:
            numbers.append(len(cases))
            cases.append(constant)
    if len(cases) == 1:
        return V.Known(cases[0])
    tag = it.atom(index)
    if numbers != list(range(len(numbers))):
        tag = it.atom(_selected(it, tag, dict(enumerate(numbers))))
    return V.Union(tag, tuple(map(V.Known, cases)))


def number_of(it: Interpreter, value: V.Union, number: Callable[[Any], int]) -> V.Value:
    """What a function says of the constant at hand."""
    return _selected(it, value.tag, {k: number(value.cases[k].value) for k in value.alive})  # type: ignore[union-attr]


def same(it: Interpreter, x: V.Value, y: V.Value) -> V.Value | None:
    """`x == y` of two that are one of several constants each; None for anything else."""
    if not (isinstance(x, V.Union) and isinstance(y, V.Union) and is_choice(x) and is_choice(y)):
        return None
    known: list[Any] = [case.value for v in (x, y) for case in v.possible]  # type: ignore[union-attr]
    if any(v != v for v in known):
        return None
    numbers: dict[Any, int] = {}
    for v in known:
        numbers.setdefault(v, len(numbers))
    return it.call("equal", *(number_of(it, v, numbers.__getitem__) for v in (x, y)))


def _selected(it: Interpreter, tag: Atom, numbers: dict[int, int]) -> V.Value:
    """The number at a tag."""
    if len(set(numbers.values())) == 1:
        return V.Known(next(iter(numbers.values())))
    if all(k == n for k, n in numbers.items()):
        return V.Scalar(types.PY_INT, tag)
    if len(numbers) > _MOST_SELECTED:
        from pyrelay.infer.attributes import captured

        row = [numbers.get(k, 0) for k in range(max(numbers) + 1)]
        array = it.atom(captured(it, own_arrays.numbers(tuple(row))))
        found = it.builder.call(OPS["index"], array, tag, axes=(0,))
        return V.Scalar(types.PY_INT, it.builder.cast(found.atom, types.i64, weak=True))
    (_, first), *others = numbers.items()
    result: V.Value = V.Known(first)
    for k, number in others:
        result = it.call("where", it.call("equal", tag, k), V.Known(number), result)
    return result
