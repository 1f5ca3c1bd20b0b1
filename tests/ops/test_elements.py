"""The element rule of every op against its NumPy meaning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Const, Var
from pyrelay.ir.op import OPS, Op, RelationError, Sample
from pyrelay.ir.types import TensorType
from tests.ops.calling import samples, type_of
from tests.ops.elements import evaluate

_WITH_RULES = [p for p in samples() if p.values[0].element is not None]


def promoted(op: Op, args: Any) -> list[Any]:
    """The arguments as the builder's casts make them."""
    builder = Builder()
    operands = [Var("x", type_of(a)) for a in args]
    atoms = builder._promoted(op, operands)
    wanted = [a.type for a in atoms]
    assert not any(isinstance(a, Const) for a in atoms)
    cast = OPS["cast"].numpy
    return [
        a if type_of(a) == ty else cast(a, dtype=ty.dtype, weak=ty.weak)
        for a, ty in zip(args, wanted, strict=True)
    ]


@pytest.mark.parametrize(("op", "sample"), _WITH_RULES)
def test_elements_are_those_of_the_numpy_meaning(op: Op, sample: Sample) -> None:
    args = promoted(op, sample.args)
    expected = op.numpy(*args, **sample.attrs)
    found = evaluate(op, args, dict(sample.attrs))
    single = any(np.asarray(a).dtype in (np.float32, np.complex64) for a in args)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if single else 1e-13, atol=1e-15)
    assert np.shape(found) == np.shape(expected)


_EDGES: dict[type, list[Any]] = {
    int: [0, 1, -1, 2, -3, 63, 64, 2**62, 2**63 - 1, -(2**63)],
    float: [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e308, math.inf, -math.inf, math.nan],
}
_PYTHONIC = (
    "add subtract multiply divide floor_divide remainder power negative absolute square "
    "left_shift right_shift bitwise_and invert positive"
)


def _outcome(compute: Any) -> Any:
    try:
        return compute()
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple) or isinstance(found, tuple):
        return bool(found == expected)
    return bool(np.isclose(found, expected, rtol=1e-13, atol=0, equal_nan=True))


@pytest.mark.parametrize("name", _PYTHONIC.split())
@pytest.mark.parametrize("kind", [int, float])
def test_on_python_numbers_rules_fail_exactly_where_python_does(name: str, kind: type) -> None:
    op = OPS[name]
    arity = max(len(s.args) for s in op.samples)
    dtype = types.i64 if kind is int else types.f64
    try:
        op.relation((TensorType(dtype, (), True),) * arity, {})
    except RelationError:
        return  # bits exist in ints only
    for args in np.ndindex(*(len(_EDGES[kind]),) * arity):
        numbers = [_EDGES[kind][k] for k in args]
        expected = _outcome(lambda numbers=numbers: op.numpy(*numbers))
        found = _outcome(lambda numbers=numbers: evaluate(op, numbers, {}))
        assert _same(found, expected), (name, numbers, found, expected)


_STRICT = "sqrt exp expm1 log log2 log10 log1p arcsin arccos arccosh arctanh sinh cosh tanh sin"


@pytest.mark.parametrize("name", [*_STRICT.split(), "power", "hypot", "arctan2"])
def test_functions_of_math_fail_where_math_does(name: str) -> None:
    op = OPS[name]
    arity = max(len(s.args) for s in op.samples)
    for args in np.ndindex(*(len(_EDGES[float]),) * arity):
        numbers = [_EDGES[float][k] for k in args]
        expected = _outcome(lambda numbers=numbers: op.numpy(*numbers, strict=True))
        found = _outcome(lambda numbers=numbers: evaluate(op, numbers, {"strict": True}))
        assert _same(found, expected), (name, numbers, found, expected)


def test_int_of_a_float_and_a_narrow_integer_of_an_int_fail_as_in_python_and_numpy() -> None:
    cast = OPS["cast"]
    for number in _EDGES[float]:
        attrs = {"dtype": types.i64, "weak": True}
        expected = _outcome(lambda number=number, attrs=attrs: cast.numpy(number, **attrs))
        assert _same(
            _outcome(lambda number=number, attrs=attrs: evaluate(cast, [number], attrs)), expected
        )
    for number in _EDGES[int]:
        for dtype in (types.u8, types.i16, types.u64, types.i64):
            attrs = {"dtype": dtype, "weak": False}
            expected = _outcome(lambda number=number, attrs=attrs: cast.numpy(number, **attrs))
            found = _outcome(lambda number=number, attrs=attrs: evaluate(cast, [number], attrs))
            assert _same(found, expected), (number, dtype)


def test_positions_out_of_bounds_raise_numpys_index_error() -> None:
    attrs = {"size": 3, "axis": 1}
    for position in (3, -4):
        with pytest.raises(IndexError) as error:
            evaluate(OPS["check_index"], [position], attrs)
        assert str(error.value) == f"index {position} is out of bounds for axis 1 with size 3"
        with pytest.raises(IndexError) as again:
            OPS["check_index"].numpy(position, **attrs)
        assert str(again.value) == str(error.value)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 4"):
        evaluate(OPS["gather"], [np.arange(4.0), np.array([0, 5])], {"axes": (0,)})
    assert evaluate(OPS["check_index"], [-3], attrs) == 0


def test_the_untaken_side_of_a_choice_is_never_read() -> None:
    """The plain-Python reader asserts that every index lies inside the operand."""
    padded = evaluate(
        OPS["pad"], [np.array([1.0, 2.0]), np.float64(9.0)], {"before": (3,), "after": (2,)}
    )
    np.testing.assert_array_equal(padded, [9, 9, 9, 1, 2, 9, 9])
    parts = [np.full(k, float(k)) for k in (1, 0, 3, 2)]
    joined = evaluate(OPS["concatenate"], parts, {"axis": 0})
    np.testing.assert_array_equal(joined, np.concatenate(parts))


def test_a_thousand_parts_are_joined_without_deep_recursion() -> None:
    parts = [np.full(1, float(k)) for k in range(3000)]
    joined = evaluate(OPS["concatenate"], parts, {"axis": 0})
    np.testing.assert_array_equal(joined, np.arange(3000.0))
