"""Checks of a float and of the integer that is made of it are one check of the float."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import Compute, Fail, Literal, Local, Statement
from pyrelay.lower.passes.float_limits import with_float_limits


def truncated(x: Any) -> Any:
    out = np.zeros(len(x), np.uint8)
    for i in range(len(x)):
        out[i] = int(x[i] * 2.0)
    return out


def rounded(x: Any) -> Any:
    out = np.zeros(len(x), np.int16)
    for i in range(len(x)):
        out[i] = round(x[i] * 300.0)
    return out


def clipped(x: Any) -> Any:
    out = np.zeros(len(x), np.uint8)
    for i in range(len(x)):
        out[i] = min(max(int(x[i] * 3.0), 0), 255)
    return out


def root(x: Any) -> Any:
    out = np.zeros(len(x), np.int8)
    for i in range(len(x)):
        out[i] = int(math.sqrt(x[i]))
    return out


VALUES = [
    7.0, -0.49, -0.5, -1.0, 127.9, 127.99999999999999, 128.0, 109.2233, -109.23, 109.225, 16383.99,
    16384.0, 2.0**54, -(2.0**54), math.inf, -math.inf, math.nan, -0.0,
]


@pytest.mark.parametrize("function", [truncated, rounded, clipped, root])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_just_fits_is_stored_and_what_does_not_raises(function: Any, dtype: Any) -> None:
    compiled = pyrelay.jit(function)
    for value in VALUES:
        for place in (3, 40, 69):
            x = np.linspace(0.0, 100.0, 70).astype(dtype)
            x[place] = value
            with np.errstate(all="ignore"):
                got, expected = (_outcome(f, x.copy()) for f in (compiled, function))
            assert got == expected, (value, place)


def _outcome(function: Any, x: Any) -> tuple[Any, ...]:
    try:
        result = function(x)
    except (ValueError, OverflowError) as error:
        return type(error), str(error)
    return result.dtype, result.tolist()


def _round(end: int) -> tuple[list[Statement], Local]:
    """int(x) checked, and put where numbers from 0 to `end` may be."""
    x, n = Local(f64), Local(i64)
    no, many, least, most, within, outside, few, much, either = (Local(bool_) for _ in range(9))
    return [
        Compute(no, "isnan", (x,)), Fail(no, 0),
        Compute(many, "isinf", (x,)), Fail(many, 1),
        Compute(least, "greater_equal", (x, Literal(-(2.0**63), f64))),
        Compute(most, "less", (x, Literal(2.0**63, f64))),
        Compute(within, "logical_and", (least, most)),
        Compute(outside, "logical_not", (within,)), Fail(outside, 2),
        Compute(n, "cast", (x,)),
        Compute(few, "less", (n, Literal(0, i64))),
        Compute(much, "greater", (n, Literal(end, i64))),
        Compute(either, "logical_or", (few, much)), Fail(either, 3),
    ], x  # fmt: skip


def test_one_check_is_left() -> None:
    body, x = _round(255)
    made = with_float_limits(body)
    assert sum(isinstance(s, Fail) for s in made) == 1
    ends = [
        s.args[1].value for s in made  # type: ignore[union-attr]
        if isinstance(s, Compute) and s.args[0] is x and s.primitive in ("greater", "less")
        and abs(s.args[1].value) < 1000  # type: ignore[union-attr]
    ]
    assert ends == [-1.0, 256.0]
    assert [s.primitive for s in made if isinstance(s, Compute) and s.out.dtype == i64] == ["whole"]


def test_an_end_that_floats_do_not_hold_is_looked_at_as_an_integer() -> None:
    body, _ = _round(2**60 + 1)
    made = with_float_limits(body)
    assert sum(isinstance(s, Fail) for s in made) == 2
