"""What is computed of transposed arrays and reduced is computed of the arrays as they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core

import pyrelay
from pyrelay.ir import walk
from pyrelay.ir.nodes import Module, OpCall
from pyrelay.opt.turned import turned
from pyrelay.pipeline import CLEAN

X = np.array([[3.0, 1.0, 3.5], [0.0, 7.0, -1.0], [-2.0, -2.0, -5.0], [2.0, 4.0, 6.0]])
Y = np.arange(24.0).reshape(2, 3, 4) % 7


def sums(x):
    return x.T.sum(axis=1), np.sum(x.T, axis=0, keepdims=True), x.T.max(), x.T.min(axis=-1)


def places(x):
    return np.argmax(x.T, axis=1), np.argmin(x.T, axis=0, keepdims=True)


def chains(x):
    y = np.exp(x.T * 0.5 - x.T.max(axis=1, keepdims=True)) + x[:, 0]
    return y.sum(axis=1), (y / y.sum(axis=0)).sum()


def of_three_axes(y):
    z = y.transpose(2, 0, 1)
    return z.sum(axis=0), z.max(axis=(0, 2)), (z * 2).sum(axis=1, keepdims=True), z.any(axis=2)


def flat(x):
    return np.argmax(x.T)


def stored(x):
    return (x.T - x.T.mean(axis=0)) / 2


def mixed(x):
    return (x.T + x[:3, [0, 1, 2, 0]]).sum(axis=1)


def _reads_transposes(module: Module) -> bool:
    """Whether a reduction reads what a transpose gives."""
    calls = {
        let.outs[0]: let.rhs for f in module.functions.values()
        for let in walk.nested_lets(f.body) if isinstance(let.rhs, OpCall)
    }
    return any(
        getattr(calls.get(call.args[0]), "op", call.op).name == "transpose"
        for call in calls.values() if call.op.name in ("sum", "max", "min", "any", "argmax")
    )


@pytest.mark.parametrize(("function", "x"), [
    (sums, X), (places, X), (chains, X), (of_three_axes, Y), (stored, X),
])
def test_reductions_go_along_the_axes_of_what_lies_in_memory(function: Any, x: Any) -> None:
    before = after(core(function, x), *CLEAN)
    module = after(before, turned, *CLEAN)
    assert _reads_transposes(before)
    assert not _reads_transposes(module)
    assert_same_runs(before, module, (x,))


def test_positions_among_all_elements_and_sums_of_differently_turned_ones_stay() -> None:
    for function in (flat, mixed):
        before = after(core(function, X), *CLEAN)
        assert turned(before) is before


def test_what_nobody_reduces_is_computed_in_the_order_in_which_it_is_stored() -> None:
    before = after(core(lambda x: np.ascontiguousarray(np.exp(x.T) * 2 + x.sum()), X), *CLEAN)
    assert turned(before) is before


def test_what_is_transposed_again_is_computed_as_it_lies() -> None:
    before = after(core(lambda x: np.exp(x.T) * 2 + x[:, 0], X), *CLEAN)
    module = after(before, turned, *CLEAN)
    assert_same_runs(before, module, (X,))
    calls = [let.rhs for let in walk.nested_lets(module.main.body)]
    assert [c.args for c in calls if isinstance(c, OpCall) and c.op.name == "exp"] == [
        module.main.params
    ]


def parts(x, i):
    y = x.T
    y[1] = y[0] * 2
    y[:2, i] += 1.0
    y[1:, ::2] = y[:2, 1::2]
    return y.T, y[:2, 1]


def test_parts_of_what_is_transposed_again_are_updated_and_read_as_it_lies() -> None:
    before = after(core(parts, X.copy(), np.array([3, 0])), *CLEAN)
    module = after(before, turned, *CLEAN)
    assert_same_runs(before, module, (X, np.array([3, 0])))
    calls = {
        let.rhs.op.name: let.rhs for let in walk.nested_lets(module.main.body)
        if isinstance(let.rhs, OpCall)
    }
    assert calls["index_update"].attrs["axes"] == (1,)
    assert calls["scatter_update"].attrs["axes"] == (0,)


def test_compiled_ones_give_the_same_numbers() -> None:
    for x in (X, np.asfortranarray(X)):
        for found, wanted in zip(pyrelay.jit(chains)(x), chains(x), strict=True):
            np.testing.assert_allclose(found, wanted)
