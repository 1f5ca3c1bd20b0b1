"""The interpreter: values, scalar kinds, extents, exceptions, depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core_programs import PROGRAMS, Handle, do, function, single, vector

from pyrelay.errors import InvariantError
from pyrelay.ir import dims, interp, types
from pyrelay.ir.build import Builder
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Block, FnCall, Function, If, KernelCall, Let, Module, OpCall, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType, f32, f64


def run(name: str, *args: Any) -> tuple[Any, ...]:
    return interpret(PROGRAMS[name]().module, args)


def test_weak_scalars_are_python_numbers_and_others_numpy_s() -> None:
    half, product, root, single_, less, square = run("scalars", 7, 0.25, 3 + 4j)
    assert [type(v) for v in (half, product, less)] == [int, float, bool]
    assert [type(v) for v in (root, single_, square)] == [
        np.complex128, np.float32, np.complex128
    ]
    assert (half, product, root, less, square) == (4, 1.0, 2 + 1j, True, -7 + 24j)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("power_by_while", (np.array([1.0, 2.0], "f4"), 3), [[1.0, 16.0]]),
        ("swapped_buffers", (np.array([1.0]), np.array([5.0]), 3), [[7.0], [2.0]]),
        ("elements_written_in_a_loop", (np.ones(3), 3), [[1.0, 2.0, 4.0]]),
        ("loop_with_exit", (np.ones(2), 5.0), [[16.0, 16.0], True, 4]),
        ("nested_loops", (np.ones((2, 2)),), [[[1.0, 1.0], [1.0, 1.0]]]),
        ("carried_extent", (np.ones(3), 2), [12.0, 12]),
        ("fibonacci", (10,), [55]),
        ("mutual_recursion", (7,), [False]),
        ("results_with_their_own_extents", (4,), [6.0, 4]),
        ("run_time_extent_at_the_boundary", (3,), [[1.0, 2.0, 3.0]]),
        ("tape_through_recursion", (3,), [11]),
        ("argument_written_in_place", (np.ones(4), 2), [3.0, [0.0, 1.0, 1.0, 1.0]]),
    ],
)
def test_programs_compute_what_their_python_says(
    name: str, args: tuple[Any, ...], expected: list[Any]
) -> None:
    for found, wanted in zip(run(name, *args), expected, strict=True):
        np.testing.assert_allclose(found, wanted)


def test_nothing_that_goes_in_is_written() -> None:
    x = np.ones(4)
    run("argument_written_in_place", x, 3)
    np.testing.assert_array_equal(x, np.ones(4))


def test_calls_nest_as_deep_as_the_program_says() -> None:
    assert run("mutual_recursion", 100_000) == (True,)


def test_branches_nest_as_deep_as_the_program_says() -> None:
    k = Var("k", PY_INT)
    block = Block((), (k,))
    for _ in range(5000):
        flag, out = Var("flag", types.PY_BOOL), Var("out", PY_INT)
        test = Let((flag,), OpCall(OPS["greater"], (k, k)))
        block = Block((test, Let((out,), If(flag, Block((), (k,)), block))), (out,))
    assert interpret(Module({"f": Function("f", (k,), block)}, "f"), (3,)) == (3,)


def test_recursion_without_end_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interp, "DEPTH_LIMIT", 10_000)
    n, out = Var("n", PY_INT), Var("out", PY_INT)
    body = Block((Let((out,), FnCall("f", (n,))),), (out,))
    module = Module({"f": Function("f", (n,), body)}, "f")
    with pytest.raises(RecursionError):
        interpret(module, (1,))


def test_exceptions_of_the_program_come_through() -> None:
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        run("elements_written_in_a_loop", np.zeros(4), 9)
    with pytest.raises(ValueError, match="negative dimensions"):
        run("run_time_extent_at_the_boundary", -1)
    module = single("f", {"x": PY_FLOAT}, lambda b, x: [x / 0.0])
    with pytest.raises(ZeroDivisionError):
        interpret(module, (1.0,))


def test_extents_are_solved_from_arguments() -> None:
    n = dims.fresh("n")

    def body(b: Builder, x: Handle) -> list[Handle]:
        return [b.extent(n)]

    module = single("f", {"x": TensorType(f64, (2 * n + 1,))}, body)
    assert interpret(module, (np.zeros(7),)) == (3,)
    with pytest.raises(ValueError, match="do not determine n"):
        interpret(module, (np.zeros(8),))


def test_arguments_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="the extent n is 3"):
        run("swapped_buffers", np.zeros(2), np.zeros(3), 1)
    with pytest.raises(ValueError, match="takes 3 values, not 1"):
        run("swapped_buffers", np.zeros(2))
    with pytest.raises(ValueError, match="does not fit the shape"):
        run("swapped_buffers", np.zeros((2, 2)), np.zeros(3), 1)


def test_extents_can_be_given() -> None:
    symbol = dims.Symbol("n")
    b = Builder()
    module = Module({"f": Function("f", (), b.block([b.extent(dims.of(symbol))]), (symbol,))}, "f")
    assert interpret(module, (), {"n": 4}) == (4,)
    assert interpret(module, (), {symbol: 5}) == (5,)


def test_kernels_run_as_their_function() -> None:
    ty, own = vector(), vector()
    kernel = function("k", {"x": own}, lambda b, x: [do(b, "tanh", x)])
    x, y = Var("x", ty), Var("y", ty)
    body = Block((Let((y,), KernelCall(kernel, (x,), ty.shape)),), (y,))
    main = Function("f", (x,), body, types.type_symbols(ty))
    (found,) = interpret(Module({"f": main}, "f"), (np.ones(3),))
    np.testing.assert_array_equal(found, np.tanh(np.ones(3)))


def test_values_are_checked_against_their_types() -> None:
    x, y = Var("x", TensorType(f64)), Var("y", TensorType(f32))
    body = Block((Let((y,), OpCall(OPS["tanh"], (x,))),), (y,))
    with pytest.raises(InvariantError, match=r"y is float64\[\], its type says f32\[\]"):
        interpret(Module({"f": Function("f", (x,), body)}, "f"), (1.0,))


def test_derivative_requests_cannot_be_run() -> None:
    x = Var("x", TensorType(f64))
    body = Block((Let((), Vjp("f", (x,), (), (), ())),), (x,))
    with pytest.raises(InvariantError, match="Vjp cannot be interpreted"):
        interpret(Module({"f": Function("f", (x,), body)}, "f"), (1.0,))
