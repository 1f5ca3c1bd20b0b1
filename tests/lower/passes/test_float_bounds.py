"""Bounds of floats: what is certain to be a number takes no checks, and all others keep them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f32, f64, i64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local
from pyrelay.lower.passes.float_bounds import FloatBounds

BYTES = np.array([[0, 255, 7], [255, 255, 0], [9, 0, 255]], np.uint8)


def edges(image: Any) -> Any:
    out = np.zeros_like(image)
    for y in range(image.shape[0] - 1):
        for x in range(image.shape[1] - 1):
            across = int(image[y, x + 1]) - int(image[y, x])
            down = int(image[y + 1, x]) - int(image[y, x])
            m = np.sqrt(across * across + down * down)
            out[y, x] = 255 if m > 255 else int(m)
    return out


def cut(image: Any) -> Any:
    out = np.zeros_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            level = image[y, x] * 1.5 - 20.0
            if level < 0.0:
                level = 0.0
            if level > 255.0:
                level = 255.0
            out[y, x] = int(level)
    return out


def brighter(image: Any) -> Any:
    out = np.zeros_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            out[y, x] = int(255 * (image[y, x] / 255) ** 0.5)
    return out


def stretched(image: Any, factor: float) -> Any:
    """That a pixel times a factor is a number is asked, and nothing else of it."""
    out = np.zeros_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            level = factor * image[y, x]
            out[y, x] = 0 if level < 0 else 255 if level > 255 else int(level)
    return out


def boxes(x: Any) -> Any:
    counts = np.zeros(8, np.int64)
    for v in x:
        if 0.0 <= v < 1.0:
            counts[int(v * 7.5)] += 1
    return counts


def last_box(x: Any) -> Any:
    """What is known of a variable before a loop that changes it does not hold in it."""
    counts, place = np.zeros(4, np.int64), 0.0
    for v in x:
        counts[int(place)] += 1
        if v > 0.5:
            place = v
    return counts


@pytest.mark.parametrize(("function", "given"), [
    (edges, BYTES), (cut, BYTES), (brighter, BYTES),
    (boxes, np.array([0.0, 0.99, 1.0, np.nan, -1e300, np.inf])),
])  # fmt: skip
def test_what_is_certain_is_not_asked(function: Any, given: Any) -> None:
    compiled = pyrelay.jit(function)
    np.testing.assert_array_equal(compiled(given), function(given))
    code = str(compiled.code(given))
    assert "whole(" in code
    assert not any(name in code for name in ("isnan", "isinf", "truncated"))


@pytest.mark.parametrize("worst", [np.nan, np.inf, 1e19, 3.0])
def test_what_a_loop_changes_is_asked(worst: float) -> None:
    x = np.array([0.6, 2.5, worst, 0.0])

    def outcome(function: Any) -> Any:
        try:
            return function(x).tolist()
        except (ValueError, OverflowError, IndexError) as error:
            return next(t for t in type(error).__mro__ if not t.__module__.startswith("pyrelay"))

    assert outcome(pyrelay.jit(last_box)) == outcome(last_box)


@pytest.mark.parametrize("width", [3, 40])
def test_what_may_be_no_number_is_asked_for_that_alone(width: int) -> None:
    image = np.resize(BYTES, (3, width))
    compiled = pyrelay.jit(stretched)
    for factor in (1.5, -0.5, np.inf):
        with np.errstate(all="ignore"):
            given = np.maximum(image, 1)
            np.testing.assert_array_equal(compiled(given, factor), stretched(given, factor))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        compiled(image, np.nan)
    code = str(compiled.code(image, 1.5))
    assert "isnan" in code
    assert not any(name in code for name in ("isinf", "truncated"))


def made(primitive: str, *args: Any, dtype: Any = f64) -> Any:
    """The ends of a result, its operands having some: None for one that may be anything."""
    bounds, operands = FloatBounds(), []
    for ends in args:
        operands.append(Local(f64))
        bounds.put(operands[-1], ends)
    s = Compute(Local(dtype), primitive, tuple(operands))
    bounds.make(s, lambda _: None)
    return bounds.of(s.out)


@pytest.mark.parametrize(("primitive", "args", "ends"), [
    ("add", [(0, 1), (2, 3)], (2, 4)),
    ("subtract", [(0, 1), (2, 3)], (-3, -1)),
    ("multiply", [(-2, 1), (-3, 3)], (-6, 6)),
    ("divide", [(1, 2), (-4, -2)], (-1, -0.25)),
    ("divide", [(1, 2), (0, 2)], None),
    ("sqrt", [(4, 9)], (2, 3)),
    ("sqrt", [(-1, 9)], None),
    ("absolute", [(-3, 2)], (0, 3)),
    ("negative", [(-3, 2)], (-2, 3)),
    ("floor", [(-2.5, 1.5)], (-3, 2)),
    ("minimum", [(0, math.inf), (1, 2)], (0, 2)),
    ("maximum", [(-math.inf, 0), (1, 2)], (1, 2)),
    ("add", [(0, math.inf), (0, 1)], None),
    ("multiply", [(0, 1e200), (0, 1e200)], None),
    ("exp", [(0, 1)], None),
    ("add", [None, (0, 1)], None),
])  # fmt: skip
def test_ends(primitive: str, args: Any, ends: Any) -> None:
    found = made(primitive, *args)
    assert found is None if ends is None else found == pytest.approx(ends, rel=1e-12)


def test_float32_is_rounded() -> None:
    low, high = made("cast", (0.1, 0.1), dtype=f32)
    assert low <= float(np.float32(0.1)) <= high
    assert made("add", (0, 3e38), (0, 1e38), dtype=f32) is None


def test_comparisons_say_of_what_is_no_number_nothing() -> None:
    bounds, x, one = FloatBounds(), Local(f64), Literal(1.0, f64)
    assert bounds.truth("less", (x, one)) is None
    mark = bounds.mark()
    bounds.assume("less", (x, one), False)
    bounds.assume("greater", (x, Literal(5.0, f64)), False)
    assert bounds.of(x) is None
    inner = bounds.mark()
    bounds.assume_number(x)
    assert bounds.of(x) == (1, 5)
    bounds.undo(inner)
    assert bounds.of(x) is None
    bounds.assume("greater_equal", (x, one), True)
    assert bounds.of(x) == (1, 5)
    assert bounds.truth("less", (x, one)) is False
    assert bounds.truth("isnan", (x,)) is False
    assert bounds.truth("isinf", (x,)) is False
    assert bounds.truth("equal", (x, one)) is None
    assert bounds.truth("equal", (x, Literal(0.5, f64))) is False
    assert bounds.truth("not_equal", (x, Literal(-math.inf, f64))) is True
    bounds.assume("greater", (x, one), False)
    assert bounds.of(x) == (1, 1)
    bounds.undo(mark)
    assert bounds.of(x) is None


def test_a_variable_is_as_one_of_the_ways_leaves_it() -> None:
    bounds, v = FloatBounds(), Local(f64, variable=True)
    bounds.join([v], [[(0, 1)], [(3, 4)]])
    assert bounds.of(v) == (0, 4)
    bounds.join([v], [[(0, 1)], [None]])
    assert bounds.of(v) is None
    integer = Local(i64)
    truth = Compute(Local(f64), "cast", (integer,))
    bounds.make(truth, lambda _: (0.0, 9.0))
    assert bounds.of(truth.out) == pytest.approx((0, 9))
    assert bounds.truth("less", (integer, Local(bool_))) is None
