"""The host gate: an op whose schedule is "host" gets and gives the objects of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.cpu import TARGET
from pyrelay.devices.runtime.entry import Executable
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var
from pyrelay.ir.op import OPS, Effect, Fusion, Op, Promotion, not_differentiable
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.plan import plan
from tests.lower.plan_machine import Machine

N = Symbol("n")


def host_op(
    meaning: Callable[..., Any], relation: Callable[..., Any], binds: int = 0
) -> Op:
    """An op of its own that is computed by Python."""
    return Op(
        "meant", relation, meaning, Fusion.OPAQUE, not_differentiable("a test"), None, "host",
        Promotion.NONE, Effect.PURE, binds, (), "",
    )


def compiled(op: Op, args: Any, **attrs: Any) -> tuple[Any, Any]:
    """The results of an op on arguments, and what the interpreter gives; arrays have n rows."""
    builder = Builder()
    params, symbols = [], ()
    for k, arg in enumerate(args):
        ty = types.of_scalar(arg)
        if ty is None:
            dtype = types.from_numpy(arg.dtype)
            assert dtype is not None
            symbols = (N,)
            ty = TensorType(dtype, (dims.of(N), *arg.shape[1:]))
        params.append(Var(f"x{k}", ty))
    found = builder.call(op, *map(builder.handle, params), **attrs)
    if op.binds:
        found = found[0]
    results = found if isinstance(found, tuple) else (found,)
    block = builder.block(results)
    module = Module({"f": Function("f", tuple(params), block, symbols)}, "f")
    made = plan(module, TARGET)
    run = Executable(encode(made)).call(*args)
    if not any(isinstance(arg, np.complex64) for arg in args):  # which the machine does not take
        for mine, theirs in zip(run, Machine(made).run(args), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    wanted = interpret(module, args)
    return run, wanted[: len(run)]


SCALARS = (
    3, -2.5, True, 2 - 1j, np.float32(0.1), np.float64(0.1), np.int8(-3), np.uint64(2**64 - 1),
    np.bool_(True), np.complex64(1 + 2j), np.complex128(3 - 4j), np.uint16(9),
)


@pytest.mark.parametrize("value", SCALARS, ids=lambda v: type(v).__name__)
def test_a_scalar_arrives_and_returns_as_the_object_it_is(value: Any) -> None:
    seen: list[Any] = []

    def meaning(x: Any) -> Any:
        seen.append(x)
        return x

    (found,), (wanted,) = compiled(host_op(meaning, lambda args, attrs: args), (value,))
    assert type(found) is type(wanted) is type(value)
    assert found == value
    assert {type(x) for x in seen} == {type(value)}


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?", "c8", "c16"])
@pytest.mark.parametrize("rows", [4, 0])
def test_arrays_arrive_read_only_and_results_are_copied_into_the_plan(
    dtype: str, rows: int
) -> None:
    def meaning(x: Any, k: int) -> Any:
        assert rows == 0 or isinstance(k, int)
        return x.T, x[:, 0], k + 1

    def relation(args: Any, attrs: Any) -> Any:
        (x, k) = args
        return TensorType(x.dtype, x.shape[::-1]), TensorType(x.dtype, x.shape[:1]), k

    x = (np.arange(3 * rows).reshape(rows, 3) % 5).astype(dtype)
    found, wanted = compiled(host_op(meaning, relation), (x, 7))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[0].dtype == x.dtype
    assert found[2] == 8


def test_what_the_function_sees_of_an_array_cannot_be_written() -> None:
    def meaning(x: Any) -> Any:
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1
        return x

    op = host_op(meaning, lambda args, attrs: args)
    x = Var("x", TensorType(types.f64, (2,)))
    builder = Builder()
    block = builder.block((builder.call(op, builder.handle(x)),))
    module = Module({"f": Function("f", (x,), block)}, "f")
    Executable(encode(plan(module, TARGET))).call(np.ones(2))


def test_extents_in_attributes_are_numbers_when_the_function_runs() -> None:
    def meaning(x: Any, *, shape: tuple[int, ...], type: TensorType) -> Any:
        assert type.shape == shape
        return np.full(shape, x.sum())

    def relation(args: Any, attrs: Any) -> Any:
        return (TensorType(types.f64, attrs["shape"]),)

    n = dims.of(N)
    shape = (dims.add(n, 1), 2)
    found, wanted = compiled(
        host_op(meaning, relation), (np.arange(3.0),), shape=shape,
        type=TensorType(types.f64, shape),
    )
    np.testing.assert_array_equal(found[0], np.full((4, 2), 3.0))
    np.testing.assert_array_equal(found[0], wanted[0])


def test_results_may_have_extents_that_only_the_run_tells() -> None:
    def meaning(x: Any) -> Any:
        positive = x[x > 0]
        return (positive, positive.sum()), (len(positive),)

    def relation(args: Any, attrs: Any) -> Any:
        return TensorType(types.f64, (attrs["dims"][0],)), TensorType(types.f64)

    op = host_op(meaning, relation, binds=1)
    found, _ = compiled(op, (np.array([1.0, -2.0, 3.0]),))
    np.testing.assert_array_equal(found[0], [1.0, 3.0])
    assert found[1] == 4.0


def test_an_exception_surfaces_as_it_is_with_the_users_line() -> None:
    error = KeyError("as it is")

    def meaning() -> Any:
        raise error

    builder = Builder()
    builder.call(OPS["host_call"], function=meaning, types=())
    module = Module({"f": Function("f", (), builder.block(()))}, "f")
    with pytest.raises(KeyError) as found:
        Executable(encode(plan(module, TARGET))).call()
    assert found.value is error


def number_of(text):
    return int(text)


def test_a_text_of_more_than_63_bits_raises() -> None:
    f = pyrelay.jit(number_of)
    assert f("-9223372036854775808") == -(2**63)
    for text in ("9223372036854775808", "-9223372036854775809"):
        with pytest.raises(OverflowError, match=f"{text} does not fit 64 bits"):
            f(text)
