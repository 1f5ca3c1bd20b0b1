"""Comparisons, truth, bits, and the choice between two values.

In: operands of one element type. Out: bools, integers, or one of the operands.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir.build import Handle
from pyrelay.ir.op import Op, Promotion, RelationError, Sample
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops import python_numbers as py
from pyrelay.ops.elementwise import DISCRETE, elementwise
from pyrelay.ops.relations import broadcast, common_dtype, require_kind, tensors, truth
from pyrelay.ops.relations import elementwise as same_dtype
from pyrelay.ops.samples import binary, floats, integers, special, spread, unary

_BITS = "write logical_and, logical_or or logical_not for conditions; bits exist in integers only."
_ORDER = "Python's complex numbers have no order; compare their real parts or absolute values."
_TRUTHS = (
    Sample((np.array([True, True, False, False]), np.array([True, False, True, False]))),
    Sample((True, False)),
)
_COMPARED = (
    *binary(),
    Sample((np.array([1.0, 2.0, 3.0]), np.array([[1.0], [3.0]])), differentiable=False),
    integers((5,), (5,), low=-1, high=1),
    Sample((2, 3)),
)
_INTEGER_PAIRS = (
    integers((4,), (3, 1)), integers((6,), (6,), low=0, high=200, dtype="u1"),
    Sample((np.array([True, True, False]), np.array([True, False, False]))), Sample((-6, 3)),
)
_SHIFTS = (
    Sample((np.array([-7, 0, 5, 1]), np.array([1, 2, 0, 62]))),
    Sample((np.array([200, 3], "u1"), np.array([1, 9], "u1"))),
    Sample((np.array([True, False]), np.array([True, True]))),
    Sample((-6, 3)), Sample((0, 100)),
)


_COMPLEX = (
    Sample((np.array([1 + 2j, 3 - 1j, 1 + 1j, 2.0]), np.array([1 + 1j, 3.0, 1 + 1j, 1 + 9j]))),
    Sample((np.array([1j, np.nan + 1j, complex(2, np.nan), 3], "c8"), np.complex64(0)), {}, False),
)


def _comparison(name: str, python: Any, doc: str, *, ordered: bool = True) -> Any:
    compare = same_dtype("biufc", truth)

    def relation(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
        operands = tensors(args)
        if ordered and all(t.weak for t in operands):
            require_kind(operands, "biuf", _ORDER)
        return tuple(compare(args, attrs))

    return elementwise(
        name, getattr(np, name), DISCRETE, python=python, relation=relation,
        promotion=Promotion.COMPARED, samples=(*_COMPARED, *_COMPLEX), doc=doc,
    )


greater = _comparison("greater", operator.gt, "x > y")
greater_equal = _comparison("greater_equal", operator.ge, "x >= y")
less = _comparison("less", operator.lt, "x < y")
less_equal = _comparison("less_equal", operator.le, "x <= y")
equal = _comparison("equal", operator.eq, "x == y", ordered=False)
not_equal = _comparison("not_equal", operator.ne, "x != y", ordered=False)


def _logical(name: str, python: Any, samples: Any, doc: str) -> Any:
    return elementwise(
        name, getattr(np, name), DISCRETE, python=python, kinds="b",
        promotion=Promotion.BOOLEAN, samples=samples, doc=doc,
    )


logical_and = _logical("logical_and", lambda x, y: x and y, _TRUTHS, "both are true")
logical_or = _logical("logical_or", lambda x, y: x or y, _TRUTHS, "one is true, or both")
logical_xor = _logical("logical_xor", operator.ne, _TRUTHS, "exactly one is true")
logical_not = _logical(
    "logical_not", operator.not_,
    (Sample((np.array([True, False]),)), Sample((False,)), floats((3,)), special(1)),
    "not true",
)


def _bitwise(
    name: str, python: Any, samples: Any, doc: str, promotion: Promotion = Promotion.COMMON,
    guard: py.Guard | None = None,
) -> Any:
    return elementwise(
        name, getattr(np, name), DISCRETE, python=python, relation=same_dtype("biu", hint=_BITS),
        promotion=promotion, guard=guard, samples=samples, doc=doc,
    )


def _crowded(entries: Any, slots: Any) -> Any:
    return 2 * entries > slots


crowded = elementwise(
    "crowded", _crowded, DISCRETE, relation=same_dtype("i", truth),
    element=lambda s, i, n, m: s.greater(s.add(n(i), n(i)), m(i)), promotion=Promotion.COMPARED,
    samples=(integers((5,), (5,), low=-4, high=9), Sample((4, 8)), Sample((5, 8))),
    doc="2 * x > y: a table of y slots is too full for x entries; a branch on it makes the same "
    "table with more slots, which may be done before it is so",
)


bitwise_and = _bitwise("bitwise_and", operator.and_, _INTEGER_PAIRS, "x & y")
bitwise_or = _bitwise("bitwise_or", operator.or_, _INTEGER_PAIRS, "x | y")
bitwise_xor = _bitwise("bitwise_xor", operator.xor, _INTEGER_PAIRS, "x ^ y")
invert = _bitwise(
    "invert", operator.invert,
    (integers((4,)), Sample((np.array([True, False]),)), Sample((-6,))), "~x",
    Promotion.ARITHMETIC,
)
left_shift = _bitwise(
    "left_shift", py.left_shift, _SHIFTS, "x << y; 0 for a count beyond the width",
    Promotion.NUMBER, py.valid_left_shift,
)
right_shift = _bitwise(
    "right_shift", operator.rshift, _SHIFTS, "x >> y, keeping the sign",
    Promotion.NUMBER, py.valid_shift,
)


def _predicate(name: str, of_integer: bool, doc: str) -> Any:
    """A question about a number, whose answer is constant for integers and bools."""

    def element(s: Any, i: Any, x: Any) -> Any:
        if not x.dtype.is_float:
            return s.const(of_integer, s.result[0].dtype)
        return getattr(s, name)(x(i))

    return elementwise(
        name, getattr(np, name), DISCRETE, relation=same_dtype("biufc", truth), element=element,
        samples=(*unary(), integers((3,)), Sample((3,))), doc=doc,
    )


isnan = _predicate("isnan", False, "is it NaN")
isinf = _predicate("isinf", False, "is it infinite, of either sign")
isfinite = _predicate("isfinite", True, "is it neither infinite nor NaN")


def _choice(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    condition, *values = tensors(args)
    require_kind((condition,), "b")
    weak = all(t.weak for t in values)
    if weak and condition.rank:
        raise RelationError("chooses by array between Python numbers", kind="type")
    shape = broadcast((condition, *values))
    return (TensorType(common_dtype(values), shape, weak),)


def _where(condition: Any, x: Any, y: Any) -> Any:
    if type(x) in py.PYTHON_NUMBERS and type(y) in py.PYTHON_NUMBERS:
        return x if condition else y
    return np.where(condition, x, y)[()]


_FLAGS = np.array([True, False, True, False])
where: Op = elementwise(
    "where", _where, relation=_choice, promotion=Promotion.CHOICE,
    # Not g times 0 or 1: the side that is not taken gets exactly 0, whatever g is.
    vjp=lambda y, g, c, a, b: (None, where(c, g, 0), where(c, 0, g)),
    element=lambda s, i, c, a, b: s.where(c(i), a(i), b(i)),
    samples=(
        Sample((_FLAGS, spread((4,)), spread((4,), seed=3))),
        Sample((_FLAGS, spread((3, 1)), spread((), seed=3))),
        Sample((np.True_, 1.5, 2.5)),
        Sample((False, 1.5, 2.5)),
    ),
    doc="x where the condition holds, else y; both are computed",
)


def masked(mask: Handle, value: Handle) -> Handle:
    """The value where the mask is true, exactly 0 elsewhere."""
    chosen: Handle = where(mask, value, 0)
    return chosen
