"""Sets: their items are known while compiling; sets of run-time values can be looked through only.

In: references to sets (the heap holds their items in the order in which Python goes through them)
and known frozensets. Out: sets, numbers and truths; changed contents on the heap.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_keys import is_open, key_of
from pyrelay.infer.interpreter import Interpreter

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "&": operator.and_, "|": operator.or_, "-": operator.sub, "^": operator.xor,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}
_METHODS = frozenset({
    "difference", "intersection", "isdisjoint", "issubset", "issuperset", "symmetric_difference",
    "union", "copy",
})  # fmt: skip
_CHANGES = frozenset({
    "add", "clear", "difference_update", "discard", "intersection_update", "pop", "remove",
    "symmetric_difference_update", "update",
})  # fmt: skip


def new(it: Interpreter, items: Iterable[V.Value]) -> V.Ref:
    """A set of these items, each once if they are known."""
    found = tuple(items)
    if all(isinstance(i, V.Known) for i in found):
        return it.new_ref("set", _ordered({i.value for i in found}))  # type: ignore[union-attr]
    if it.let is not None and any(map(is_open, found)):
        it.program.open_keys.add(it.let)
    return it.new_ref("set", found)


def _ordered(python: Any) -> tuple[V.Value, ...]:
    return tuple(map(V.Known, python))


def is_set(value: V.Value) -> bool:
    """True for a set, known or not."""
    if isinstance(value, V.Known):
        return isinstance(value.value, (set, frozenset))
    return isinstance(value, V.Ref) and value.root.kind == "set"


def items(it: Interpreter, ref: V.Ref) -> tuple[V.Value, ...]:
    """The items of a set. Raises UnsupportedOperationError if some may be equal."""
    found: tuple[V.Value, ...] = it.content(ref.root)
    if len(found) > 1 and not all(isinstance(i, V.Known) for i in found):
        raise it.failure(
            errors.UnsupportedOperationError,
            "how many items this set has is known only at run time, since some may be equal",
            hints=("keep them in a tuple or an array, or use np.unique",),
        )
    return found


def python_set(it: Interpreter, value: V.Value) -> Any:
    """The Python set of a set whose items are known."""
    if isinstance(value, V.Known):
        return value.value
    assert isinstance(value, V.Ref)
    return {it.static(i, "an item of a set") for i in items(it, value)}


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` of two sets; None for anything else."""
    if not (is_set(x) and is_set(y)) or op not in _OPERATORS:
        return None
    return _result(it, _OPERATORS[op](python_set(it, x), python_set(it, y)))


def _result(it: Interpreter, found: Any) -> V.Value:
    return it.new_ref("set", _ordered(found)) if isinstance(found, set) else V.Known(found)


def inplace(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op= y`, which changes a set; None for anything else."""
    if not (isinstance(x, V.Ref) and is_set(x) and is_set(y)) or op not in "&|-^":
        return None
    _write(it, x, _OPERATORS[op](python_set(it, x), python_set(it, y)))
    return x


def _write(it: Interpreter, ref: V.Ref, python: Any) -> None:
    it.heap.write(ref.root, _ordered(python), it.let.span if it.let else None)


def _as_argument(it: Interpreter, value: V.Value) -> Any:
    from pyrelay.infer.flow.iteration import sequence_of

    if is_set(value):
        return python_set(it, value)
    return [it.static(i, "an item of a set") for i in sequence_of(it, value)]


def _asking(name: str) -> Callable[..., V.Value]:
    def method(it: Interpreter, x: V.Ref, *others: V.Value) -> V.Value:
        given = [_as_argument(it, other) for other in others]
        return _result(it, getattr(python_set(it, x), name)(*given))

    return method


def _changing(name: str) -> Callable[..., V.Value]:
    def method(it: Interpreter, x: V.Ref, *args: V.Value) -> V.Value:
        from pyrelay.infer.operators import raised

        single = name in ("add", "discard", "remove")
        given = [
            key_of(it, x, a, "an item of a set") if single else _as_argument(it, a) for a in args
        ]
        changed = python_set(it, x)
        try:
            result = getattr(changed, name)(*given)
        except KeyError as error:
            raise raised(it, error) from None
        except TypeError as error:
            raise it.failure(errors.TypeMismatchError, str(error)) from None
        _write(it, x, changed)
        return V.Known(result)

    return method


METHODS: dict[str, Callable[..., V.Value]] = {
    **{name: _asking(name) for name in _METHODS}, **{name: _changing(name) for name in _CHANGES},
}
