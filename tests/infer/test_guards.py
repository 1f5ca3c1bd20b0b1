"""One specialisation serves every size for which the same decisions hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir import dims
from tests.infer.running import assert_same, inferred, run


def holds(specialised: Any, *args: Any) -> bool:
    """True if the guards accept these arrays."""
    sizes = {s: args[leaf].shape[axis] for s, (leaf, axis) in specialised.binding.axes.items()}
    return all(guard.holds(sizes) for guard in specialised.binding.extents)


def test_a_batch_size_stays_open_in_elementwise_and_matrix_code() -> None:
    def layer(x, w):
        return np.tanh(x @ w) / len(x)

    x, w = np.ones((5, 3)), np.ones((3, 2))
    specialised = inferred(layer, (x, w))
    other = np.arange(21.0).reshape(7, 3)
    assert holds(specialised, other, w)
    assert_same(run(specialised, specialised.module, (other, w), {}), layer(other, w))


def test_equal_sizes_that_the_program_does_not_need_equal_are_no_guard() -> None:
    def sums(x, y):
        return x.sum() + y.sum()

    specialised = inferred(sums, (np.ones(3), np.ones(3)))
    assert holds(specialised, np.ones(3), np.ones(8))


def test_equal_sizes_that_the_program_needs_equal_are_a_guard() -> None:
    specialised = inferred(lambda x, y: x + y, (np.ones(3), np.ones(3)))
    assert holds(specialised, np.ones(9), np.ones(9))
    assert not holds(specialised, np.ones(3), np.ones(8))


def test_a_reshape_that_divides_an_axis_fixes_that_axis_only() -> None:
    def pool(x):
        return x.reshape(x.shape[0], -1, 2).max(axis=2)

    specialised = inferred(pool, (np.ones((5, 8)),))
    other = np.arange(24.0).reshape(3, 8)
    assert holds(specialised, other)
    assert not holds(specialised, np.ones((5, 6)))
    assert_same(run(specialised, specialised.module, (other,), {}), pool(other))


def test_a_branch_on_a_shape_is_decided_by_a_guard() -> None:
    def either(x):
        return x.sum() if len(x) > 4 else x.max()

    specialised = inferred(either, (np.ones(5),))
    assert holds(specialised, np.ones(100))
    assert not holds(specialised, np.ones(4))


def test_ends_of_texts_are_compared_behind_the_same_position() -> None:
    def one_edit(a, b):
        for k in range(len(a)):
            if a[k] != b[k]:
                return a[k + 1 :] == b[k + 1 :] or a[k:] == b[k + 1 :]
        return True

    compiled = pyrelay.jit(one_edit)
    for a, b in (("abc", "abd"), ("abc", "axbc"), ("abcde", "xbcde"), ("abc", "xyz")):
        assert compiled(a, b) is one_edit(a, b)


def test_a_method_of_a_ufunc_is_the_same_each_time_it_is_looked_up() -> None:
    def counts(k):
        n = np.zeros(4)
        np.add.at(n, k, 1.0)
        return np.minimum.outer(n, n)

    specialised = inferred(counts, (np.array([0, 2, 2]),))
    assert {guard.name for guard in specialised.binding.names} >= {"at", "outer"}
    assert all(guard.holds() for guard in specialised.binding.names)


def test_a_known_position_modulo_an_extent_is_a_place_of_the_axis_by_a_guard() -> None:
    def ends(x):
        n = len(x)
        return 2.0 * x[-3 % n :], 2.0 * x[2 % n :], x[-1 % n]

    specialised = inferred(ends, (np.ones(5),))
    assert holds(specialised, np.ones(9))
    assert not holds(specialised, np.ones(2))
    (n,) = specialised.module.main.params[0].type.shape
    shapes = {result.type.shape for result in specialised.module.main.body.results}
    assert shapes == {(), (3,), (dims.add(n, -2),)}
    for size in (1, 2, 3, 5, 9):
        x = np.arange(float(size))
        for a, b in zip(pyrelay.jit(ends)(x), ends(x), strict=True):
            np.testing.assert_array_equal(a, b)


KEPT: object = frozenset((8, 0))


def test_constants_that_are_equal_may_be_others_to_a_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def digits() -> float:
        found = 0
        for item in KEPT:  # type: ignore[attr-defined]
            found = found * 10 + item
        return found

    compiled = pyrelay.jit(digits)
    for kept in (frozenset((8, 0)), frozenset((0, 8)), (1, 2), (1.0, 2.0)):
        monkeypatch.setitem(globals(), "KEPT", kept)
        got, expected = compiled(), digits()
        assert (got, type(got)) == (expected, type(expected))
