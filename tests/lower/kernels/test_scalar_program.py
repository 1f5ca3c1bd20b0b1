"""Loops, branches and element updates as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from lowered import Failed, function_of, reference, run

import pyrelay
import pyrelay.ops  # registers the ops
from pyrelay.ir import dims
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Loop, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType, f64
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.text.emit_kernel import emit

N = Symbol("n")
n = dims.of(N)


def loop(
    b: Builder, init: Sequence[Any], body: Callable[..., Sequence[Any]],
    test: Callable[..., Sequence[Any]] | None = None, count: Any = None, exits: bool = False,
) -> Any:
    """A loop whose blocks are written on handles of their own builders."""
    atoms = tuple(b.atom(x) for x in init)
    carried = tuple(Var("c", a.type) for a in atoms)
    tested = None
    if test is not None:
        inner = b.nested()
        tested = inner.block(test(inner, *(Handle(inner, v) for v in carried)))
    inner = b.nested()
    index = Var("i", PY_INT) if count is not None else None
    values = [Handle(inner, v) for v in carried]
    following = body(inner, *([Handle(inner, index)] if index else []), *values)
    node = Loop(
        carried, atoms, inner.block(following), tested, exits=exits, index=index,
        count=None if count is None else b.atom(count),
    )
    return b.bind(node, [v.type for v in carried])


def element(b: Builder, x: Any, i: Any) -> Any:
    return b.call(OPS["index"], x, b.call(OPS["check_index"], i, size=n, axis=0), axes=(0,))


def stored(b: Builder, x: Any, i: Any, v: Any) -> Any:
    place = b.call(OPS["check_index"], i, size=n, axis=0)
    return b.call(OPS["index_update"], x, v, place, axes=(0,))


def newton(b: Builder, f0: Any, x: Any, tol: Any) -> Any:
    return loop(
        b, [x], lambda b, x: [0.5 * (x + b.handle(f0) / x)],
        test=lambda b, x: [OPS["greater"](OPS["absolute"](x * x - b.handle(f0)), b.handle(tol))],
    )


def fibonacci(b: Builder, count: Any) -> Any:
    return loop(b, [0, 1], lambda b, i, x, y: [y, x + y], count=count)


def escape(b: Builder, re: Any, im: Any, limit: Any) -> Any:
    def body(b: Builder, k: Any, x: Any, y: Any, count: Any) -> Any:
        a, c = x * x, y * y
        following = [a - c + b.handle(re), 2.0 * x * y + b.handle(im), count + 1]
        return [OPS["greater"](a + c, 4.0), *following]

    return loop(b, [0.0, 0.0, 0], body, count=limit, exits=True)


def prefix(b: Builder, x: Any) -> Any:
    def body(b: Builder, i: Any, x: Any) -> Any:
        return [stored(b, x, i + 1, element(b, x, i) + element(b, x, i + 1))]

    return loop(b, [x], body, count=b.extent(n - 1))


def test_newton_s_iteration_is_a_while_loop_in_one_kernel() -> None:
    function = function_of([PY_FLOAT] * 3, newton)
    args = [2.0, 1.0, 1e-12]
    assert run(function, args) == list(reference(function, args))
    with pytest.raises(Failed) as failure:
        run(function, [2.0, 0.0, 1e-12])
    assert isinstance(failure.value.raised(), ZeroDivisionError)


def test_carried_values_change_at_once_and_overflow_is_found() -> None:
    function = function_of([PY_INT], fibonacci)
    assert run(function, [90]) == list(reference(function, [90]))
    with pytest.raises(Failed) as failure:
        run(function, [100])
    assert isinstance(failure.value.raised(), OverflowError)


def test_a_loop_that_exits_early_keeps_the_values_of_its_last_iteration() -> None:
    function = function_of([PY_FLOAT, PY_FLOAT, PY_INT], escape)
    for args in ([-0.5, 0.6, 100], [1.0, 0.6, 100], [0.0, 0.0, 0]):
        assert run(function, args) == list(reference(function, args))


def test_dynamic_programming_updates_its_array_in_place_without_index_checks() -> None:
    function = function_of([TensorType(f64, (n,))], prefix, [N])
    lowering = kernelise(function)
    assert lowering.aliases == (0,)
    assert lowering.written == {0}
    assert not lowering.kernels[0].sites  # the range of the index is known
    assert "load_ordered_f64" in emit(lowering.kernels[0])
    args = [np.arange(20.0)]
    np.testing.assert_array_equal(run(function, args)[0], np.cumsum(args[0]))


def test_an_array_that_is_given_back_as_it_is_is_owned_like_one_that_is_written() -> None:
    def body(b: Builder, x: Any, y: Any) -> Any:
        return loop(
            b, [x, y], lambda b, i, x, y: [stored(b, x, i, element(b, y, i)), y], count=b.extent(n)
        )

    ty = TensorType(f64, (n,))
    assert kernelise(function_of([ty, ty], body, [N])).written == {0, 1}


def test_a_branch_updates_an_array_or_leaves_it() -> None:
    def body(b: Builder, x: Any, k: Any) -> Any:
        return b.cond(
            OPS["greater"](k, 2),
            lambda b: [element(b, x, k), stored(b, x, k, np.float64(5))],
            lambda b: [np.float64(7), x],
        )

    function = function_of([TensorType(f64, (n,)), PY_INT], body, [N])
    for k in (1, 3):
        args = [np.arange(6.0), k]
        got, expected = run(function, args), reference(function, args)
        assert got[0] == expected[0]
        np.testing.assert_array_equal(got[1], expected[1])
    with pytest.raises(Failed) as failure:
        run(function, [np.arange(6.0), 6])
    assert str(failure.value.raised()) == "index 6 is out of bounds for axis 0 with size 6"


def test_nested_loops_read_what_inner_iterations_have_written() -> None:
    def body(b: Builder, x: Any) -> Any:
        def outer(b: Builder, i: Any, x: Any) -> Any:
            def inner(b: Builder, j: Any, x: Any) -> Any:
                return [stored(b, x, j, element(b, x, j) + element(b, x, i))]

            return loop(b, [x], inner, count=b.extent(n))

        return loop(b, [x], outer, count=b.extent(n))

    function = function_of([TensorType(f64, (n,))], body, [N])
    args = [np.arange(1.0, 6.0)]
    np.testing.assert_array_equal(run(function, args)[0], reference(function, args)[0])


def test_a_raised_exception_carries_its_values() -> None:
    def body(b: Builder, k: Any) -> Any:
        def refuse(b: Builder) -> Any:
            b.call(OPS["raise"], k, exception="ValueError", parts=("bad ", 0))
            return [k]

        return b.cond(OPS["greater"](k, 2), refuse, lambda b: [k + 1])

    function = function_of([PY_INT], body)
    assert run(function, [1]) == [2]
    with pytest.raises(Failed) as failure:
        run(function, [3])
    assert str(failure.value.raised()) == "bad 3"


def extremes(x: Any, back: Any) -> Any:
    """argmax and argmin of rows and columns inside loops, few elements or many."""
    rows, columns = x.shape
    total = np.zeros(4, dtype=np.int64)
    for i in range(rows):
        for j in range(columns):
            back[i, j] = np.argmax(x[:, j] + x[i, 0]) + 1000 * np.argmin(x[i] * 2.0)
            total[0] += np.argmax(x[i] > x[i, j])
            total[1] += np.argmin(-x[i, j:])
    return total


@pytest.mark.parametrize("shape", [(3, 4), (2, 200), (150, 2), (1, 1)])
def test_the_first_extreme_is_found_as_numpy_does(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, shape).astype(float)
    fast = pyrelay.jit(extremes)
    for value in (0.0, np.inf, -np.inf, np.nan):
        x[-1, -1] = x[0, shape[1] // 2] = value
        ours, theirs = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        np.testing.assert_array_equal(fast(x, ours), extremes(x, theirs))
        np.testing.assert_array_equal(ours, theirs)
    x[...] = -np.inf
    ours, theirs = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.testing.assert_array_equal(fast(x, ours), extremes(x, theirs))
    np.testing.assert_array_equal(ours, theirs)


def test_sums_over_several_axes_of_windows_in_loops_divide_no_index() -> None:
    def convolved(x: Any, w: Any) -> Any:
        size = w.shape[0]
        out = np.empty((x.shape[0] - size + 1, w.shape[3]))
        for i in range(out.shape[0]):
            window = x[i:i + size, :, :, np.newaxis]
            out[i] = np.sum(window * w, axis=(0, 1, 2))
        return out

    args = np.arange(60.0).reshape(5, 4, 3), np.arange(72.0).reshape(2, 4, 3, 3)
    compiled = pyrelay.jit(convolved)
    np.testing.assert_array_equal(compiled(*args), convolved(*args))
    loops = compiled.code(*args).split("# plan ")[0]
    assert "floor_divide" not in loops
    assert "remainder" not in loops
