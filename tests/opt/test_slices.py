"""Which Lets stand at the slice, which at its elements, and what becomes one kernel of slices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir import dims
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Let, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32
from pyrelay.opt.slices import Kept, Slices, kept_axes, slices_of

N, M, K = Symbol("n"), Symbol("m"), Symbol("k")
n, m, k = dims.of(N), dims.of(M), dims.of(K)


def lets_of(body: Any, *shapes: Any) -> list[Let]:
    b = Builder()
    result = body(*(Handle(b, Var("x", TensorType(f32, s))) for s in shapes))
    return list(b.block([result]).lets)


def reduced(x: Any, *axes: int, keepdims: bool = False, name: str = "sum") -> Any:
    return OPS[name](x, axes=axes, keepdims=keepdims)


def test_slices_are_kept_by_reductions_of_all_last_or_all_leading_axes() -> None:
    def kept(*axes: int, name: str = "sum") -> Any:
        (let,) = lets_of(lambda x: reduced(x, *axes, name=name), (m, n, k))
        return kept_axes(let)

    assert kept(2) == Kept((m, n), columns=False)
    assert kept(1, 2) == Kept((m,), columns=False)
    assert kept(0, 1, 2) == Kept((), columns=False)
    assert kept(0) == Kept((n, k), columns=True)
    assert kept(0, 1) == Kept((k,), columns=True)
    assert kept(1) is None
    assert kept(0, 2) is None
    assert kept(2, name="argmax") is None  # it reads its operand twice


def test_a_group_over_elements_or_over_rows_gets_the_same_slices() -> None:
    (let,) = lets_of(lambda x: reduced(x, 1), (m, n))
    for space in ((m, n), (m,), (m, 1)):
        slices = slices_of(let, space)
        assert slices is not None
        assert (slices.kept.axes, slices.full) == ((m,), (m, n))
    assert slices_of(let, (n, m)) is None
    (alone,) = lets_of(lambda x: reduced(x, 1), (1, n))
    assert slices_of(alone, (1, n)) is None  # one row: nothing to do in parallel


def test_columns_have_slices_only_where_elements_depend_on_them() -> None:
    (let,) = lets_of(lambda x: reduced(x, 0), (m, n))
    slices = slices_of(let, (m, n))
    assert slices is not None
    assert slices.kept == Kept((n,), columns=True)
    assert slices_of(let, (n,)) is None


def test_lets_are_placed_by_who_reads_them() -> None:
    def softmax(x: Any) -> Any:
        e = OPS["exp"](x)
        return e / OPS["expand_dims"](reduced(e, 1), axes=(1,))

    rows = Kept((m,), columns=False)
    lets = lets_of(softmax, (m, n))  # exp, sum, expand_dims, divide
    slices = Slices(rows, (m, n))
    for place, readers in ((3, []), (2, [3]), (1, [2]), (0, [1, 3])):
        slices.add(lets, place, readers)
    assert slices.per_element == {0, 3}
    assert slices.per_slice == {1, 2}

    reverse = {"starts": (0, n - 1), "sizes": (m, n), "steps": (1, -1)}
    lets = lets_of(lambda x: OPS["slice"](OPS["exp"](x), **reverse) * 2, (m, n))
    slices = Slices(rows, (m, n), per_element={2})
    assert slices.joins_elements(lets, 1, [2])
    slices.add(lets, 1, [2])
    assert not slices.joins(lets, 0, [1])  # it is wanted at another element


# -- whole programs ------------------------------------------------------------------------------


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x: Any) -> Any:
    z = x - np.max(x, axis=1)[:, None]
    return z - np.log(np.exp(z).sum(axis=1))[:, None]


def log_sum_exp(x: Any) -> Any:
    top = x.max(axis=1)
    return top + np.log(np.sum(np.exp(x - top[:, None]), axis=1))


def log_sum_exp_of_kept_axes(x: Any) -> Any:
    top = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0]


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def rms_norm(x: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def unit_rows(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=1)[:, None]


def deviation(x: Any) -> Any:
    return np.std(x, axis=1)


def entropy(x: Any) -> Any:
    p = softmax(x)
    return -np.sum(p * np.log(p + 1e-9), axis=-1)


def soft_gelu(x: Any) -> Any:
    h = 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    return h + softmax(h)


def batch_norm(x: Any) -> Any:
    return np.maximum((x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5), 0)


def softmax_of_columns(x: Any) -> Any:
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


def spread_of_columns(x: Any) -> Any:
    low, high = x.min(axis=0), x.max(axis=0)
    return (x - low) / (high - low)


def moments(x: Any) -> Any:
    return x.mean(axis=1), x.var(axis=1), x.max(axis=1)


FAMILY = [
    softmax, log_softmax, log_sum_exp, layer_norm, rms_norm, unit_rows, deviation, entropy,
    soft_gelu, batch_norm, softmax_of_columns, spread_of_columns, log_sum_exp_of_kept_axes,
]  # fmt: skip


def launches(f: Any, *args: Any) -> int:
    return len(re.findall(r"^#\s+\d+\s+launch ", f.code(*args), re.MULTILINE))


@pytest.mark.parametrize("f", [*FAMILY, moments], ids=lambda f: f.__name__)
def test_a_family_of_normalisations_takes_one_launch(f: Any) -> None:
    x = np.sin(np.arange(35) * 1.3).reshape(5, 7)
    fast = pyrelay.jit(f)
    assert launches(fast, x) == 1
    for got, expected in zip(np.atleast_2d(fast(x)), np.atleast_2d(f(x)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [
    pytest.param(f, id=f.__name__, marks=[pytest.mark.slow] if k % 2 else [])
    for k, f in enumerate(FAMILY)
])  # fmt: skip
def test_their_gradients_take_one_launch_as_well(f: Any) -> None:
    def loss(x: Any, w: Any) -> Any:
        return (f(x) * w).sum()

    x = np.sin(np.arange(35) * 1.3).reshape(5, 7)
    w = np.cos(np.arange(np.size(f(x)))).reshape(np.shape(f(x)))
    assert launches(pyrelay.grad(loss), x, w) == 1
    pyrelay.check_grads(loss, (x, w), order=1, modes="rev")


def softmax_of_everything(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def standardised(x: Any) -> Any:
    return (x - x.mean()) / x.std()


def unit_length(x: Any) -> Any:
    return x / np.linalg.norm(x)


@pytest.mark.parametrize(
    ("f", "most"), [(softmax_of_everything, 3), (standardised, 3), (unit_length, 2)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_depends_on_whole_arrays_takes_a_launch_per_reduction(f: Any, most: int) -> None:
    def loss(x: Any, w: Any) -> Any:
        return (f(x) * w).sum()

    fast = pyrelay.jit(f)
    for shape in ((35,), (5, 7), (1,), (40_000,)):
        x = np.sin(np.arange(np.prod(shape)) * 1.3).reshape(shape) + 0.1
        if f is not standardised or x.size > 1:
            np.testing.assert_allclose(fast(x), f(x), rtol=1e-11, atol=1e-14)
    x = np.sin(np.arange(35) * 1.3)
    assert launches(fast, x) == most
    pyrelay.check_grads(loss, (x, np.cos(x * 3)), order=1, modes="rev")


def test_rows_and_columns_do_not_share_a_kernel() -> None:
    def both(x: Any) -> Any:
        return x.sum(axis=1, keepdims=True) * x + x.sum(axis=0)

    x = np.linspace(-1, 1, 35).reshape(5, 7)
    fast = pyrelay.jit(both)
    assert launches(fast, x) > 1
    np.testing.assert_allclose(fast(x), both(x), rtol=1e-12, atol=1e-14)
