"""Products of 16-bit floats: what tensor cores take, and what they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import nn
from pyrelay.ir import walk
from pyrelay.ir.nodes import KernelCall, Module, OpCall
from pyrelay.opt.half_products import half_product_of, half_products
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

rng = np.random.default_rng(0)
A, B = rng.normal(size=(33, 40)).astype(np.float16), rng.normal(size=(40, 17)).astype(np.float16)
STACK = rng.normal(size=(3, 33, 40)).astype(np.float16)


def of_all_kinds(a: Any, b: Any, stack: Any) -> Any:
    return (
        a @ b, a @ a.T, b.T @ a.T, stack @ b, stack.swapaxes(1, 2) @ stack, a[0] @ b, a @ a[1],
        np.maximum(a @ b + b[0], 0) @ b.T, np.tanh(a @ b) * (a @ b),
        a.astype(np.float32) @ b.astype(np.float32),
    )  # fmt: skip


def groups(module: Module) -> list[KernelCall]:
    return [
        let.rhs for function in module.functions.values() for let in function.body.lets
        if isinstance(let.rhs, KernelCall) and half_product_of(let.rhs.function.body) is not None
    ]  # fmt: skip


def optimised(function: Any, *args: Any) -> Module:
    return lowered(inferred(function, args).module, "optimise")


def test_a_product_of_casts_is_one_group_of_what_was_cast() -> None:
    module = half_products(optimised(lambda a, b: a.T @ b, A, A.copy()))
    (group,) = groups(module)
    body = group.function.body
    assert [a.type.dtype.name for a in group.args] == ["f16", "f16"]  # type: ignore[union-attr]
    product = half_product_of(body)
    assert product is not None
    assert isinstance(product.rhs, OpCall)
    assert dict(product.rhs.attrs.items()) == {"transpose_a": True, "transpose_b": False}
    assert body.lets[-1] is not product  # the cast of the result
    assert len(module.functions[module.entry].body.lets) == 1  # other casts, transposes are gone
    assert half_products(module) is module


def test_a_result_that_somebody_else_reads_stays_float32() -> None:
    def twice(a: Any, b: Any) -> Any:
        product = a.astype(np.float32) @ b.astype(np.float32)
        return product.astype(np.float16), product.sum()

    module = half_products(optimised(twice, A, B))
    (group,) = groups(module)
    assert half_product_of(group.function.body) is group.function.body.lets[-1]


def in_a_loop(a: Any, b: Any) -> Any:
    for _ in range(len(b)):
        a = np.tanh(a @ b)
    return a


@pytest.mark.parametrize(("function", "args"), [
    (lambda a, b: a @ b, (A.astype(np.float32), B.astype(np.float32))),
    (lambda a, b: a.astype(np.float32) @ b, (A, B.astype(np.float32))),
    (lambda a, b: a.astype(np.float32) @ b.astype(np.float32), (A, B.astype(np.int16))),
    (in_a_loop, (A[:, :33], A[:, :33])),
])  # fmt: skip
def test_other_products_stay(function: Any, args: tuple[Any, ...]) -> None:
    module = optimised(function, *args)
    assert half_products(module) is module


def test_convolutions_and_their_derivatives_are_such_products_in_loops_too() -> None:
    def trained(x: Any, w: Any) -> Any:
        for _ in range(3):
            y = nn.conv2d(x, w, padding=1, channels_last=True)
            x = x - nn.conv2d(y, w.swapaxes(2, 3), padding=1, channels_last=True)
        return x

    x, w = np.ones((2, 9, 8, 4), np.float16), np.ones((3, 3, 4, 6), np.float16)
    module = half_products(optimised(trained, x, w))
    found = [
        let.rhs for function in module.functions.values() for let in walk.nested_lets(function.body)
        if isinstance(let.rhs, KernelCall) and half_product_of(let.rhs.function.body) is not None
    ]
    assert [g.function.body.lets[-1].outs[0].type.dtype.name for g in found] == ["f16"] * 2  # type: ignore[union-attr]
    assert half_products(module) is module


@needs_compiler
def test_results_are_those_of_numpy() -> None:
    compiled = pyrelay.jit(of_all_kinds, device="cuda_emulator")
    args = A, B, STACK
    for got, wanted in zip(compiled(*args), of_all_kinds(*args), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=4e-3, atol=4e-3 * abs(wanted).max())
    assert "Buffer<const f16> a," in compiled.code(*args)


def test_where_no_library_has_products_of_them_they_are_cast() -> None:
    found = pyrelay.jit(lambda a, b: a @ b, device="cpu")(A, B)
    np.testing.assert_allclose(found, A @ B, rtol=2e-3, atol=0.02)
