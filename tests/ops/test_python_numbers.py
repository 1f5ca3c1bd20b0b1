"""Ops on Python's own numbers compute and raise as Python does."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
import pyrelay.ops  # registers the ops
from pyrelay.ir import types
from pyrelay.ir.op import OPS
from tests.ops.calling import call

_SAME: list[tuple[str, Callable[..., Any]]] = [
    ("add", operator.add), ("subtract", operator.sub), ("multiply", operator.mul),
    ("divide", operator.truediv), ("floor_divide", operator.floordiv),
    ("remainder", operator.mod), ("less", operator.lt), ("equal", operator.eq),
]
_NUMBERS = [0, 7, -7, 3, 0.0, -0.0, 2.5, -2.5, 1e308, math.inf, True, False]


def outcome(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(("name", "python"), _SAME)
def test_operators_give_pythons_number_of_pythons_type_or_its_error(
    name: str, python: Callable[..., Any]
) -> None:
    for x in _NUMBERS:
        for y in _NUMBERS:
            if type(x) is not type(y) and name in {"floor_divide", "remainder", "divide"}:
                continue  # Python's words depend on the operand that is a float
            expected = outcome(lambda x=x, y=y: python(x, y))
            found = outcome(lambda x=x, y=y: call(name, x, y))
            assert type(found) is type(expected), (x, y)
            assert found == expected or found != found, (x, y)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (2**63 - 1, 1)), ("subtract", (-(2**63), 1)), ("multiply", (2**40, 2**40)),
        ("negative", (-(2**63),)), ("absolute", (-(2**63),)), ("left_shift", (1, 63)),
        ("left_shift", (1, 10**12)), ("power", (3, 41)), ("power", (10, 10**9)),
        ("floor_divide", (-(2**63), -1)), ("square", (2**32,)),
    ],
)
def test_an_int_that_leaves_64_bits_raises(name: str, args: tuple[int, ...]) -> None:
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        OPS[name].numpy(*args)


def test_powers_of_python_numbers() -> None:
    assert call("power", 2, 62) == 2**62
    assert call("power", 0.0, 0.0) == 1.0
    assert call("power", -2.0, 3.0) == -8.0
    with pytest.raises(ValueError, match="is complex"):
        call("power", -2.0, 0.5)
    with pytest.raises(ValueError, match="negative power is a float"):
        call("power", 2, -1)
    with pytest.raises(ZeroDivisionError):
        call("power", 0.0, -1.0)
    with pytest.raises(OverflowError):
        call("power", 10.0, 400.0)


def test_functions_of_math_raise_only_when_they_are_strict() -> None:
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        call("sqrt", -1.0, strict=True)
    with pytest.raises(OverflowError, match="math range error"):
        call("exp", 1000.0, strict=True)
    assert math.isnan(call("sqrt", -1.0))
    assert call("exp", 1000.0) == math.inf
    assert type(call("tanh", 0.5)) is float


def test_numpy_scalars_keep_numpys_semantics_without_warnings() -> None:
    assert call("divide", np.float64(1.0), 0.0) == math.inf
    assert call("floor_divide", np.int64(1), 0) == 0
    assert call("add", np.int64(2**63 - 1), 1) == -(2**63)
    assert type(call("multiply", np.float32(2.0), 1.5)) is np.float32
    with pytest.raises(ValueError, match="negative integer powers"):
        call("power", np.int64(2), -1)


def test_casts_to_python_numbers_and_back() -> None:
    assert call("cast", -2.75, dtype=types.i64, weak=True) == -2
    assert call("cast", np.float32(0.5), dtype=types.f64, weak=True) == 0.5
    assert call("cast", 3, dtype=types.bool_, weak=True) is True
    with pytest.raises(ValueError, match="cannot convert float NaN"):
        call("cast", math.nan, dtype=types.i64, weak=True)
    with pytest.raises(OverflowError, match="cannot convert float infinity"):
        call("cast", math.inf, dtype=types.i64, weak=True)
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        call("cast", 1e30, dtype=types.i64, weak=True)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        call("cast", 300, dtype=types.u8, weak=False)
    assert call("cast", np.array([300]), dtype=types.u8, weak=False).tolist() == [44]


def test_the_ternary_choice_keeps_python_numbers() -> None:
    assert type(call("where", True, 1, 2)) is int
    assert type(call("where", np.True_, 1.5, 2)) is float
    chosen = call("where", np.array([True, False]), 1, 2)
    assert chosen.tolist() == [1, 2]
    assert chosen.dtype == np.int64


def test_complex_parts_of_python_numbers() -> None:
    assert call("make_complex", 1.0, math.inf) == complex(1.0, math.inf)
    assert call("absolute", 3 + 4j) == 5.0
    assert type(call("real", 3 + 4j)) is float
    assert type(call("imag", 3)) is int


@pytest.mark.parametrize("of", [float, int])
@pytest.mark.parametrize(
    ("name", "refused"),
    [("sqrt", -3), ("log", -3), ("log", 0), ("log2", 0), ("log10", -7), ("log1p", -1),
     ("acos", -4), ("asin", 7), ("acosh", 0), ("atanh", 1), ("gamma", -5), ("lgamma", 0),
     ("sin", math.inf), ("cos", -math.inf), ("tan", math.inf)],
)  # fmt: skip
def test_domain_errors_of_math_say_what_python_says(name, refused, of):
    function = getattr(math, name)
    if of is int and math.isinf(refused):
        pytest.skip("no int is infinite")
    with pytest.raises(ValueError) as expected:  # noqa: PT011
        function(of(refused))
    with pytest.raises(ValueError) as found:  # noqa: PT011
        pyrelay.jit(lambda x: function(x))(of(refused))
    assert str(found.value).split("\n")[0] == str(expected.value)
