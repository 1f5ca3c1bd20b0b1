"""Attention over 16-bit floats: which programs become one group, and what it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import nn
from pyrelay.ir import walk
from pyrelay.ir.nodes import KernelCall, Module, OpCall
from pyrelay.opt.half_attention import HalfAttention, half_attention, half_attention_of
from pyrelay.pipeline import lowered
from tests.infer.running import inferred

f32 = np.float32


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rounded(q: Any, k: Any, v: Any) -> Any:
    """All of it in the type of the operands, which may be transposed."""
    return (softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v).astype(q.dtype)


def wide(q: Any, k: Any, v: Any) -> Any:
    return softmax(q.astype(f32) @ k.astype(f32).swapaxes(-1, -2) * f32(0.5)) @ v.astype(f32)


def rounded_once(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q.astype(f32) @ k.astype(f32).swapaxes(-1, -2))
    return p.astype(q.dtype).astype(f32) @ v.astype(f32)


def causal(q: Any, k: Any, v: Any) -> Any:
    return nn.scaled_dot_product_attention(q, k, v, causal=True)


def all_turned(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.swapaxes(-1, -2) for x in (q, k, v))
    return softmax(q @ k.swapaxes(-1, -2)) @ v


def in_a_loop(q: Any, k: Any, v: Any) -> Any:
    for _ in range(3):
        q = (softmax(q @ k.swapaxes(-1, -2)) @ v).astype(k.dtype)
    return q


def groups(module: Module) -> list[HalfAttention]:
    found = (
        half_attention_of(let.rhs.function.body)
        for function in module.functions.values() for let in walk.nested_lets(function.body)
        if isinstance(let.rhs, KernelCall)
    )
    return [each for each in found if each is not None]


def optimised(function: Any, dtype: Any) -> Module:
    args = tuple(np.ones((2, 6, 6), dtype) for _ in range(3))
    return lowered(inferred(function, args).module, "optimise", on="cuda_emulator")


@pytest.mark.parametrize(("function", "of_float16", "of_bfloat16"), [
    (rounded, (True, True), (False, True)), (wide, (False, False), (False, False)),
    (rounded_once, (True, False), (True, False)), (causal, (True, True), (False, False)),
    (all_turned, (True, True), (False, False)), (in_a_loop, (True, True), (False, True)),
])  # fmt: skip
def test_attention_is_one_group_of_matrices_as_they_lie(
    function: Any, of_float16: tuple[bool, bool], of_bfloat16: tuple[bool, bool]
) -> None:
    """Whether probabilities are rounded, and whether the result is a cast."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype, name, wanted in (
        (np.float16, "f16", of_float16), (ml_dtypes.bfloat16, "bf16", of_bfloat16)
    ):
        module = half_attention(optimised(function, dtype))
        (found,) = groups(module)
        assert (found.of.name, found.rounded, found.back is not None) == (name, *wanted)
        assert half_attention(module) is module
        left = [
            let.rhs.op.name for f in module.functions.values() for let in walk.nested_lets(f.body)
            if hasattr(let.rhs, "op")
        ]
        assert not {"transpose", "exp", "matmul"} & set(left)


def heads(q: Any, k: Any, v: Any) -> Any:
    """Heads beside each other in a row, whose axes are moved."""
    rows = q.shape
    q, k, v = (x.reshape(*x.shape[:2], 2, -1).swapaxes(1, 2) for x in (q, k, v))
    return (softmax(q @ k.swapaxes(-1, -2)) @ v).swapaxes(1, 2).reshape(rows)


def test_copies_of_heads_keep_their_lines() -> None:
    """So that a kernel reads 16 bytes of each at once, and the copy does."""
    module = half_attention(optimised(heads, np.float16))
    (found,) = groups(module)
    assert dict(found.attention.scores.rhs.attrs.items()) == {  # type: ignore[union-attr]
        "transpose_a": False, "transpose_b": True
    }
    moved = [
        let.rhs.attrs["axes"] for f in module.functions.values() for let in f.body.lets
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "transpose"
    ]
    assert moved == [(0, 2, 1, 3)] * 4


def reads_probabilities(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q @ k.swapaxes(-1, -2))
    return p @ v, p.sum()


def mixed(q: Any, k: Any, v: Any) -> Any:
    return softmax(q.astype(f32) @ k.astype(f32).swapaxes(-1, -2)) @ np.cos(v.astype(f32))


def other_axis(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    return (e / e.sum(axis=-2, keepdims=True)) @ v


@pytest.mark.parametrize("function", [reads_probabilities, mixed, other_axis])
def test_other_products_stay(function: Any) -> None:
    module = optimised(function, np.float16)
    assert half_attention(module) is module


@pytest.mark.slow
def test_devices_without_a_kernel_for_it_round_as_numpy_does() -> None:
    q, k, v = (np.random.default_rng(n).normal(size=(2, 5, 4)).astype(np.float16) for n in range(3))
    got = pyrelay.jit(rounded, device="cpu")(q, k, v)
    np.testing.assert_allclose(got, rounded(q, k, v), rtol=2e-3, atol=1e-3)
