"""Handlers of Python's folds of what is iterated over: min, max, sum, any, all.

In: abstract values. Out: the value of the fold; short-circuits as Python's do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay import errors, python_sums
from pyrelay.infer import kinds
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.containers import list_arrays, lists
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import cast
from pyrelay.infer.names.builtins import ZERO, bool_, list_, lookup_of
from pyrelay.infer.names.containers import without_order
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.operators import (
    binary,
    both,
    compare,
    either,
)
from pyrelay.infer.protocols import gone_through
from pyrelay.ir import types
from pyrelay.ir.op import OPS


def _of_one_kind(content: V.Growing) -> bool:
    """Whether the items are numbers, all of them Python's or NumPy's, ints or floats."""
    return isinstance(content.template, L.LScalar) and not content.template.kinds


_NOTHING_LOST = V.Known(0.0)

_EMPTY = {"min": in_python.NO_LEAST, "max": in_python.NO_GREATEST}


def _extreme_of_growing(
    it: Interpreter, word: str, only: V.Value, content: V.Growing, key: V.Value,
    default: V.Value,
) -> V.Value:
    simple = _of_one_kind(content) and key == V.NONE and default == V.NONE
    if not simple:
        function = in_python.least_item if word == "min" else in_python.greatest_item
        return call(it, V.Known(function), (only, key, default), {})
    array = list_arrays.to_array(it, content)
    list_arrays.refuse_empty(it, content, _EMPTY[word])
    return list_arrays.as_item_kind(it, content, _extreme_of_array(it, word, array, V.NONE))


def _extreme_of_array(
    it: Interpreter, word: str, array: V.Value, default: V.Value
) -> V.Value:
    """The extreme of at least one element, of floats by Python's comparisons of NaNs."""
    function = in_python.least_element if word == "min" else in_python.greatest_element
    return call(it, V.Known(function), (array, default), {})


def _extreme(
    it: Interpreter, word: str, args: tuple[V.Value, ...], key: V.Value, default: V.Value
) -> V.Value:
    if not args:
        text = f"{word} expected at least 1 argument, got 0"
        raise certain(it, it.failure(errors.SignatureError, text), TypeError, text)
    items = args if len(args) > 1 else None
    if items is None:
        only = without_order(it, gone_through(it, args[0]), ranked=key != V.NONE)
        key = lookup_of(args[0], key)
        content = lists.growing_content(it, only)
        if content is not None:
            return _extreme_of_growing(it, word, only, content, key, default)
        if isinstance(only, V.ArrayRef) and key == V.NONE:
            if only.type.rank != 1:
                raise it.failure(
                    errors.ShapeError,
                    f"{word}() of {only.type} would compare whole rows: use np.{word}",
                )
            return _extreme_of_array(it, word, only, default)
        if not lists.has_known_length(it, only):
            return _extreme(it, word, (list_(it, only),), key, default)
        items = sequence_of(it, only)
    if not items:
        if default is not V.NONE:
            return default
        text = _EMPTY[word]
        raise certain(it, it.failure(errors.InvalidValueError, text), ValueError, text)
    from pyrelay.infer.flow.control import branch

    op = "<" if word == "min" else ">"

    def ranked(v: V.Value) -> list[V.Value]:
        """An item, and, behind it, what its key gives: once for each, in their order."""
        return [v] if key == V.NONE else [v, call(it, key, (v,), {})]

    best = ranked(items[0])
    for item in items[1:]:
        found = ranked(item)
        better = truth(it, compare(it, op, found[-1], best[-1]))
        if isinstance(better, V.Known):
            best = found if better.value else best
        else:
            best = branch(
                it, it.atom(better), lambda f=found: f, lambda b=best: b  # type: ignore[misc]
            )
    return best[0]


@handles(min)
def min_(
    it: Interpreter, *args: V.Value, key: V.Value = V.NONE, default: V.Value = V.NONE
) -> V.Value:
    """min of arguments or of an iterable."""
    return _extreme(it, "min", args, key, default)


@handles(max)
def max_(
    it: Interpreter, *args: V.Value, key: V.Value = V.NONE, default: V.Value = V.NONE
) -> V.Value:
    """max of arguments or of an iterable."""
    return _extreme(it, "max", args, key, default)


def _is_zero(start: V.Value) -> bool:
    """Whether adding a value to a number leaves it as it is: 0.0 makes a float of an int."""
    return isinstance(start, V.Known) and type(start.value) is int and start.value == 0


def _of_none(it: Interpreter, total: V.Value, count: V.Value) -> V.Value:
    """A sum, which is Python's 0 where there are no items."""
    ty = V.number_type(total)
    if ty is None or ty == types.PY_INT:
        return total
    if isinstance(count, V.Scalar) and count.extent is not None:
        some = it.program.guards.compare(">", count.extent, 0)
        if some is not None:
            return total if some else ZERO
    elif isinstance(count, V.Known):
        return total if count.value else ZERO
    told = kinds.joined((types.PY_INT, *kinds.of(total)), ty)
    if not told:
        return total
    b = it.builder
    none = b.call(OPS["equal"], it.atom(count), 0)
    kind = b.call(OPS["where"], none, kinds.code(types.PY_INT), kinds.kind_of(total))
    return V.Scalar(
        ty, it.atom(total), kinds=told, kind=b.cast(kind.atom, types.i64, weak=True)
    )


@handles(sum)
def sum_(it: Interpreter, iterable: V.Value, start: V.Value = ZERO) -> V.Value:
    """sum(iterable, start)."""
    if isinstance(iterable, V.ArrayRef) and iterable.type.rank:
        ty = iterable.type
        if ty.rank > 1 and it.program.guards.compare(">", ty.shape[0], 0) is False:
            return start
        total = it.call("sum", iterable, axes=(0,), keepdims=False)
        first = V.number_type(start)
        if ty.dtype.is_integer and first is not None:
            dtype, _ = types.promote([first, ty])
            if dtype.is_integer:  # rows of small ints add up to small ints
                total = cast(it, total, dtype)
        total = _of_none(it, total, V.Scalar.of_extent(ty.shape[0]))
        return total if _is_zero(start) else binary(it, "+", start, total)
    items = without_order(it, iterable)
    content = lists.growing_content(it, items)
    numbers = content is not None and _of_one_kind(content)
    if content is not None and numbers and not (
        _are_in_order(content) or (_is_float(content) and items is not iterable)
    ):
        total = it.call("sum", list_arrays.to_array(it, content), axes=(0,), keepdims=False)
        total = list_arrays.as_item_kind(it, content, total)
        total = _of_none(it, total, content.count)
        return total if _is_zero(start) else binary(it, "+", start, total)
    if content is not None or not lists.has_known_length(it, iterable):
        carried = python_sums.CARRIES
        function = in_python.carried_total_of if carried else in_python.total_of
        return call(it, V.Known(function), (iterable, start), {})
    so_far = V.Tuple((start, _NOTHING_LOST))
    for item in sequence_of(it, iterable):
        so_far = with_item(it, so_far, item)
    return total_of(it, so_far)


def _is_float(content: V.Growing) -> bool:
    return bool(content.template.type.dtype.is_float)


def _are_in_order(content: V.Growing) -> bool:
    """Whether a sum of these numbers rounds as Python's does: they are Python's floats."""
    return bool(content.template.type == types.PY_FLOAT)


@handles(python_sums.with_item)
def with_item(it: Interpreter, so_far: V.Tuple, item: V.Value) -> V.Tuple:
    """One step of a sum."""
    total, lost = so_far.items
    new = binary(it, "+", total, item)
    floats = V.number_type(total) == V.number_type(item) == types.PY_FLOAT
    if python_sums.CARRIES and floats:
        lost = binary(it, "+", lost, _rounding_error(it, total, item))
    return V.Tuple((new, lost))


def _rounding_error(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """What a + b loses by rounding. It has no derivative."""
    if isinstance(a, V.Known) and isinstance(b, V.Known):
        return V.Known(python_sums.rounding_error(a.value, b.value))
    given = tuple(it.call("stop_gradient", x) for x in (a, b))
    return call(it, V.Known(python_sums.rounding_error), given, {})


@handles(python_sums.total_of)
def total_of(it: Interpreter, so_far: V.Tuple) -> V.Value:
    """A sum when all items are in."""
    total, lost = so_far.items
    if isinstance(lost, V.Known) and isinstance(total, V.Known):
        return V.Known(python_sums.total_of((total.value, lost.value)))
    if isinstance(lost, V.Known) or V.number_type(total) != types.PY_FLOAT:
        return total
    b = it.builder
    counts = b.call(
        OPS["logical_and"], b.call(OPS["isfinite"], it.atom(lost)),
        b.call(OPS["not_equal"], it.atom(lost), 0.0),
    )  # fmt: skip
    more = b.call(OPS["add"], it.atom(total), it.atom(lost))
    found = b.call(OPS["where"], counts, more, it.atom(total)).atom
    if isinstance(total, V.Scalar):
        return V.Scalar(types.PY_FLOAT, found, kinds=total.kinds, kind=total.kind)
    return V.Scalar(types.PY_FLOAT, found)


@handles(any)
def any_(it: Interpreter, iterable: V.Value) -> V.Value:
    """any(iterable)."""
    return _truth_of(it, "any", in_python.any_of, iterable, False, either)


@handles(all)
def all_(it: Interpreter, iterable: V.Value) -> V.Value:
    """all(iterable)."""
    return _truth_of(it, "all", in_python.all_of, iterable, True, both)


def _truth_of(
    it: Interpreter, op: str, in_loop: Callable[..., Any], iterable: V.Value, of_none: bool,
    joined: Callable[[Interpreter, V.Value, V.Value], V.Value],
) -> V.Value:
    """The truth of the items joined: by an op, by a loop, or one by one."""
    iterable = without_order(it, iterable)
    if isinstance(iterable, V.ArrayRef) and iterable.type.rank == 1:
        return bool_(it, it.call(op, iterable, axes=(0,), keepdims=False))
    if not lists.has_known_length(it, iterable):
        return call(it, V.Known(in_loop), (iterable,), {})
    result: V.Value = V.Known(of_none)
    for item in sequence_of(it, iterable):
        result = joined(it, result, truth(it, item))
    return result if isinstance(result, V.Known) else bool_(it, result)
