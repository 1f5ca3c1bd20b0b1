"""Views of dicts whose keys are known: what `keys()`, `values()` and `items()` give.

In: a view (`values.View`), which is a tuple of what it showed when it was made wherever only a
tuple is looked at. Out: the tuple of what it shows now; views compared and combined as sets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.containers import sets
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.spellings import PYTHON
from pyrelay.records import dataclass

_OPERATORS = frozenset("&|-^")


def view(it: Interpreter, of: V.Ref, kind: str) -> V.View:
    """`d.keys()`, `d.values()` or `d.items()`."""
    content = it.content(of.root)
    if kind == "keys":
        items: tuple[V.Value, ...] = tuple(map(V.Known, content))
    elif kind == "values":
        items = tuple(content.values())
    else:
        items = tuple(V.Tuple((V.Known(k), v)) for k, v in content.items())
    return V.View(items, of=of, kind=kind)


def now(it: Interpreter, value: V.View) -> V.View:
    """The view with what it shows now."""
    assert value.of is not None
    return view(it, value.of, value.kind)


def is_disjoint(it: Interpreter, x: V.View, other: V.Value) -> V.Value:
    """`d.keys().isdisjoint(other)`."""
    from pyrelay.infer.attributes import call_method

    return call_method(it, V.Method(_as_set(it, now(it, x)), "isdisjoint"), (other,), {})


METHODS: dict[str, Callable[..., Any]] = {"isdisjoint": is_disjoint}


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y`, a set, where one is a view; None for other operators, and where none is."""
    if op not in _OPERATORS or not (isinstance(x, V.View) or isinstance(y, V.View)):
        return None
    return _computed(it, op, x, y) or _of_sets(it, op, x, y)


def compare(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` where one is a view; None where none is."""
    from pyrelay.infer import operators

    if not (isinstance(x, V.View) or isinstance(y, V.View)):
        return None
    kinds = {v.kind for v in (x, y) if isinstance(v, V.View)}
    if op in ("==", "!="):
        differ = V.Known(op == "!=")
        if "values" in kinds:
            return V.Known((x is y) is (op == "=="))
        if isinstance(x, V.View) and isinstance(y, V.View):
            if kinds == {"items"}:
                assert x.of is not None
                assert y.of is not None
                return operators.compare(it, op, x.of, y.of)
        elif not _is_set(x) or not _is_set(y):
            return differ
    return _computed(it, op, x, y) or _of_sets(it, op, x, y)


def _is_set(value: V.Value) -> bool:
    from pyrelay.infer.names.builtins import class_of

    views = tuple(type(getattr({}, kind)()) for kind in ("keys", "items"))
    return issubclass(class_of(value) or object, (set, frozenset, *views))


@dataclass(frozen=True)
class _Found:
    """A Python object of which a value is one, in a field as it may be false."""

    value: Any


def _computed(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """What Python computes of known items; None where they are not known."""
    a, b = _python(it, x), _python(it, y)
    if a is None or b is None:
        return None
    try:
        return sets.result(it, partial(PYTHON[op], a.value, b.value))
    except TypeError as error:
        raise it.failure(errors.TypeMismatchError, str(error)) from None


def _python(it: Interpreter, value: V.Value) -> _Found | None:
    """The Python object of a view, or of what one is combined with, if its items are known."""
    if isinstance(value, V.View):
        assert value.of is not None
        content = it.content(value.of.root)
        known = {k: v.value if isinstance(v, V.Known) else None for k, v in content.items()}
        if value.kind != "keys" and not all(isinstance(v, V.Known) for v in content.values()):
            return None
        return _Found(getattr(known, value.kind)())
    if isinstance(value, V.Known):
        return _Found(value.value)
    if isinstance(value, V.Ref) and sets.is_set(value):
        content = it.content(value.root)
        return _Found(content.python) if isinstance(content, sets.KnownItems) else None
    items = value.items if isinstance(value, V.Tuple) else None
    if V.is_list(value) and isinstance(it.content(value.root), tuple):
        items = it.content(value.root)
    if items is None or not all(isinstance(item, V.Known) for item in items):
        return None
    given = [item.value for item in items]  # type: ignore[union-attr]
    return _Found(given if V.is_list(value) else tuple(given))


def _of_sets(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """The same of sets of the items."""
    from pyrelay.infer import operators

    a, b = (_as_set(it, v) if isinstance(v, V.View) else v for v in (x, y))
    if op in _OPERATORS:
        return operators.binary(it, op, a, b)
    return operators.compare(it, op, a, b)


def _as_set(it: Interpreter, value: V.View) -> V.Value:
    return sets.new(it, now(it, value).items)
