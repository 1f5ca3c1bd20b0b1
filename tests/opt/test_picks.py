"""Elements of rows, picked and put by column while a kernel goes through the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.ir.nodes import KernelCall, Module
from pyrelay.ir.walk import nested_lets
from pyrelay.opt.picks import picks
from pyrelay.pipeline import CLEAN, lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"
X = np.sin(np.arange(1.0, 36.0) * 1.7).reshape(5, 7)
X[1, 3], X[2, 4] = np.nan, np.inf
Y = np.array([6, 3, 4, -7, -1])


def of_logarithms(x, y):
    shifted = x - x.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(x)), y].mean()


def of_logits(x, y):
    most = x.max(axis=1)
    total = most + np.log(np.exp(x - most[:, None]).sum(axis=1))
    return (total - x[np.arange(len(y)), y]).mean()


def of_probabilities(x, y):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(x.shape[0]), y]).sum()


def along_an_axis(x, y):
    shifted = x - x.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -np.take_along_axis(logs, y[:, None], axis=1).mean()


def of_integers(k, y):
    return (k - k.min(axis=1, keepdims=True))[np.arange(len(k)), y]


ENTROPIES = [of_logarithms, of_logits, of_probabilities, along_an_axis]


@pytest.mark.parametrize("function", ENTROPIES)
@pytest.mark.parametrize("y", [Y, np.array([0, 1, 7, 2, -8])], ids=["", "outside"])
def test_what_is_picked_from_rows_that_are_reduced_is_a_reduction(function: Any, y: Any) -> None:
    before = after(core(function, X, y), *CLEAN)
    module = after(before, picks, *CLEAN)
    assert ops(before)["gather"] == 1
    assert not ops(module)["gather"]
    assert_same_runs(before, module, (X, y))


def test_integers_are_picked_too() -> None:
    before = after(core(of_integers, (X[3:] * 99).astype(np.int64), Y[3:]), *CLEAN)
    module = after(before, picks)
    assert not ops(module)["gather"]
    assert_same_runs(before, module, ((X[3:] * 99).astype(np.int64), Y[3:]))


def chosen(x, y):
    return x[np.arange(len(x)), y] * 2.0


def other_rows(x, y):
    return (x - x.max(axis=1, keepdims=True))[y - y, y]


def complex_ones(x, y):
    z = x * 1j
    return z[np.arange(len(x)), y] + z.sum(axis=1)


@pytest.mark.parametrize("function", [chosen, other_rows, complex_ones])
def test_others_are_gathered(function: Any) -> None:
    """Rows that nobody goes through, other rows than one after the other, and what has no order."""
    before = after(core(function, X, Y), *CLEAN)
    assert picks(before) is before


def put(x, y):
    chosen = np.zeros_like(x)
    chosen[np.arange(len(x)), y] = 1.0
    return chosen * x


def added(x, y):
    total = np.zeros(x.shape)
    np.add.at(total, (np.arange(len(y)), y), x[:, 0])
    return total + x


def _of_entries(x: Any, y: Any) -> Any:
    if len(x) != len(y):
        raise ValueError("not as many")
    return put(x, y) + added(x, y)


@pytest.mark.parametrize("y", [Y, Y + 7], ids=["", "outside"])
def test_what_is_put_into_zeros_is_chosen_by_column(y: Any) -> None:
    before = after(core(_of_entries, X, y), *CLEAN)
    module = after(before, picks)
    found = ops(module)
    assert ops(before)["scatter_update"] == ops(before)["scatter_add"] == 1
    assert not found["scatter_update"]
    assert not found["scatter_add"]
    assert_same_runs(before, module, (X, y))


def in_a_loop(x, y):
    total = 0.0
    for _ in range(3):
        total += of_logits(x, y)
    return total


def test_loops_are_left_alone() -> None:
    before = after(core(in_a_loop, X, Y), *CLEAN)
    assert ops(after(before, picks))["gather"]


def _kernels(module: Module) -> int:
    body = module.functions[module.entry].body
    return sum(isinstance(let.rhs, KernelCall) for let in nested_lets(body))


@pytest.mark.parametrize("function", ENTROPIES)
def test_a_cross_entropy_is_two_kernels_and_its_derivative_one(function: Any) -> None:
    args = X.astype(np.float32), Y
    assert _kernels(lowered(inferred(function, args).module, "fuse", on=ON)) == 2
    derivative = lowered(inferred(pyrelay.grad(function), args).module, "fuse", on=ON)
    assert _kernels(derivative) == 1
    both = lowered(inferred(pyrelay.value_and_grad(function), args).module, "fuse", on=ON)
    assert _kernels(both) == 3


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("function", ENTROPIES)
@pytest.mark.parametrize("rows", [5, 4200])
def test_cross_entropies_on_a_device(function: Any, rows: int) -> None:
    """Also of more rows than one block adds up, and of a label that there is not."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(rows, 40)).astype(np.float32), rng.integers(-40, 40, rows)
    both = pyrelay.value_and_grad(function, device=ON)
    for mine, theirs in zip(both(x, y), pyrelay.value_and_grad(function)(x, y), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    y[rows // 2] = 40
    with pytest.raises(IndexError, match="index 40 is out of bounds for axis 1 with size 40"):
        both(x, y)
