"""What derivatives are at ties, edges, kinks and singularities, and of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrelay.grad.expand import expand
from pyrelay.ir import types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var, Vjp
from pyrelay.ir.op import OPS
from tests.grad.checking import op_names
from tests.ops.calling import program, weighted_sum

Body = Callable[..., Handle]


def gradient(body: Body, *args: Any, order: int = 1) -> Any:
    """The derivative of a real-valued body by its first argument; `order` > 1 of its sum."""
    args = tuple(np.asarray(a)[()] for a in args)
    module = program(args, body)
    name = "f"
    for level in range(1, order + 1):
        module, name = _derived(module, name, f"d{level}", last=level == order)
    (result,) = interpret(expand(module), args)
    return result


def _derived(module: Module, name: str, new: str, *, last: bool) -> tuple[Module, str]:
    source = module.functions[name]
    builder = Builder()
    params = tuple(Var("x", p.type) for p in source.params)
    one = constant(1.0, source.result_types[0])
    request = Vjp(name, params, (one,), (0,), (0,))
    _, g = builder.bind(request, [source.result_types[0], params[0].type])
    result = g if last or not g.rank else OPS["sum"](g, axes=tuple(range(g.rank)), keepdims=False)
    entry = Function(new, params, builder.block((result,)))
    return Module({**module.functions, new: entry}, new), new


def total(build: Builder, x: Handle) -> Handle:
    """The sum of all elements."""
    result: Handle = x if not x.rank else build.call(
        OPS["sum"], x, axes=tuple(range(x.rank)), keepdims=False
    )
    return result


def of(name: str, **attrs: Any) -> Body:
    """The sum of one op's result."""
    return lambda build, *xs: total(build, build.call(OPS[name], *xs, **attrs))


def test_the_side_of_a_where_that_is_not_taken_contributes_exactly_zero() -> None:
    where, log, sqrt, divide = OPS["where"], OPS["log"], OPS["sqrt"], OPS["divide"]
    x = np.array([0.0, -1.0, 2.0])
    expected = [0.0, 0.0, 0.5]
    assert gradient(lambda b, x: total(b, where(x > 0, log(x), 0)), x).tolist() == expected
    assert gradient(lambda b, x: total(b, where(x > 0, x * log(x), 0)), x).tolist() == [
        0.0, 0.0, 1 + math.log(2)
    ]
    assert gradient(lambda b, x: total(b, where(x > 0, sqrt(x), 0)), x).tolist()[:2] == [0, 0]
    assert gradient(lambda b, x: total(b, where(x > 0, divide(1.0, x), 0)), x).tolist() == [
        0.0, 0.0, -0.25
    ]
    large = np.array([1000.0, 1.0])
    safe = gradient(lambda b, x: total(b, where(x < 100, OPS["exp"](x), x)), large)
    assert safe.tolist() == [1.0, math.exp(1.0)]


def test_second_derivatives_keep_the_strong_zero() -> None:
    where, log = OPS["where"], OPS["log"]
    x = np.array([0.0, 2.0])
    found = gradient(lambda b, x: total(b, where(x > 0, log(x), 0)), x, order=2)
    assert found.tolist() == [0.0, -0.25]


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("absolute", 0.0, 0.0), ("absolute", -3.0, -1.0), ("sqrt", 0.0, math.inf),
        ("square", 0.0, 0.0), ("tanh", 0.0, 1.0), ("reciprocal", 2.0, -0.25),
    ],
)
def test_kinks_and_singularities_of_one_operand(name: str, x: float, expected: float) -> None:
    assert gradient(of(name), x) == expected


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "sign"])
def test_steps_have_derivative_zero(name: str) -> None:
    x = np.array([-1.0, 0.0, 0.4])
    assert gradient(lambda b, x: total(b, b.call(OPS[name], x) + x), x).tolist() == [1.0] * 3


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_equal_operands_of_an_extreme_share_the_cotangent(name: str) -> None:
    assert gradient(of(name), 2.0, 2.0) == 0.5
    low, high = gradient(of(name), 1.0, 2.0), gradient(of(name), 2.0, 1.0)
    assert (low, high) == ((0.0, 1.0) if name in {"maximum", "fmax"} else (1.0, 0.0))


def test_the_operand_beside_a_nan_has_the_cotangent_of_fmax() -> None:
    assert gradient(of("fmax"), 1.0, math.nan) == 1.0
    assert gradient(of("fmin"), math.nan, 1.0) == 0.0


def test_clip_is_closed_and_its_bounds_have_the_rest() -> None:
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0])
    assert gradient(of("clip"), x, -1.0, 1.0).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    clip = OPS["clip"]
    assert gradient(lambda b, lo, x, hi: total(b, clip(x, lo, hi)), -1.0, x, 1.0) == 1.0
    assert gradient(lambda b, hi, x, lo: total(b, clip(x, lo, hi)), 1.0, x, -1.0) == 1.0


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_of_a_reduction_are_split_evenly(name: str) -> None:
    x = np.array([[2.0, 2.0, 2.0], [1.0, 1.0, 5.0]])
    found = gradient(of(name, axes=(1,), keepdims=False), x)
    third = 1 / 3
    second = [0.0, 0.0, 1.0] if name == "max" else [0.5, 0.5, 0.0]
    np.testing.assert_allclose(found, [[third] * 3, second])


def test_powers_at_zero() -> None:
    power = OPS["power"]
    assert gradient(lambda b, x: power(x, 2.0), 0.0) == 0.0
    assert gradient(lambda b, x: power(x, 2.0), 0.0, order=2) == 2.0
    assert gradient(lambda b, x: power(x, 1.0), 0.0) == 1.0
    assert gradient(lambda b, x: power(x, 0.0), 0.0) == 0.0
    assert gradient(of("power"), 0.0, 0.0) == 0.0
    assert gradient(of("power"), 0.0, 2.0) == 0.0
    assert gradient(lambda b, y, x: power(x, y), 2.0, 0.0) == 0.0
    assert gradient(lambda b, y, x: power(x, y), 0.0, 0.0) == 0.0
    assert gradient(lambda b, x: power(x, 3.0), -2.0) == 12.0


def test_hypot_at_the_origin_and_logaddexp_of_infinities() -> None:
    assert gradient(of("hypot"), 0.0, 0.0) == 0.0
    assert gradient(of("logaddexp"), -math.inf, -math.inf) == 0.5
    assert gradient(of("logaddexp"), 800.0, 0.0) == 1.0


@pytest.mark.parametrize(
    "x", [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]]
)
def test_the_derivatives_of_a_product_are_right_at_zeros(x: list[float]) -> None:
    product = of("prod", axes=(0,), keepdims=False)
    a, b, c = x
    assert gradient(product, np.array(x)).tolist() == [b * c, a * c, a * b]
    assert gradient(product, np.array(x), order=2).tolist() == [b + c, a + c, a + b]
    assert gradient(product, np.array(x), order=3).tolist() == [2.0, 2.0, 2.0]


def test_a_product_over_several_axes_and_running_products_with_zeros() -> None:
    x = np.array([[1.0, 0.0], [3.0, 4.0]])
    found = gradient(of("prod", axes=(0, 1), keepdims=False), x)
    assert found.tolist() == [[0.0, 12.0], [0.0, 0.0]]
    running = gradient(of("cumprod", axis=0, reverse=False), np.array([2.0, 0.0, 5.0]))
    # d(x + x y + x y z) = 1 + y + y z, x + x z, x y
    assert running.tolist() == [1.0, 12.0, 0.0]


def test_repeated_writers_of_a_scatter_share_as_numpy_assigns() -> None:
    """Two values are written to element 1: only the later one shows."""
    scatter = OPS["scatter_update"]

    def body(build: Builder, v: Handle, x: Handle, at: Handle) -> Handle:
        return weighted_sum(build, scatter(x, v, at, axes=(0,)))

    found = gradient(body, np.array([5.0, 6.0, 7.0]), np.zeros(3), np.array([1, 1, 0]))
    np.testing.assert_allclose(found, [0.0, 0.7 + 0.31, 0.7])


def test_the_gradient_of_a_real_function_of_complex_numbers_follows_jax() -> None:
    z = 1 + 2j
    absolute, square = OPS["absolute"], OPS["square"]
    assert gradient(lambda b, z: square(absolute(z)), z) == pytest.approx(2 - 4j)
    assert gradient(lambda b, z: OPS["real"](z * OPS["conj"](z)), z) == 2 - 4j
    assert gradient(lambda b, z: OPS["imag"](z), z) == -1j
    assert gradient(lambda b, z: OPS["real"](z), z) == 1
    assert gradient(lambda b, z: absolute(z), 0j) == 0
    cubed = gradient(lambda b, z: OPS["real"](z * z * z), z)
    assert cubed == pytest.approx(3 * z * z)


def test_a_real_operand_of_a_complex_result_has_a_real_cotangent() -> None:
    def body(build: Builder, x: Handle) -> Handle:
        z = OPS["make_complex"](x, 2.0)
        return OPS["real"](z * z)

    found = gradient(body, 3.0)
    assert found == 6.0
    assert isinstance(found, np.float64)


def test_cotangents_keep_single_precision() -> None:
    x = np.array([0.5, 1.0], "f4")
    module = program((x,), lambda b, x: total(b, OPS["tanh"](x) * 2.0 + OPS["log"](x)))
    found, _ = _derived(module, "f", "d", last=True)
    names = {
        v.type.dtype for f in expand(found).functions.values()
        for let in f.body.lets for v in let.outs
    }
    assert names <= {types.f32, types.bool_}


def test_a_constant_factor_needs_no_strong_zero() -> None:
    module, _ = _derived(program((1.5,), lambda b, x: 3.0 * x - x), "f", "d", last=True)
    assert "scale" not in op_names(expand(module))
