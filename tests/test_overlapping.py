"""Arguments that share memory and are written: the result, and all arrays, are Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import overlapping


def written_by_elements(a, b):
    for i in range(a.shape[0]):
        a[i] = b[i] * 2 + 1
    b[-1] += a[0]
    return a, b.sum()


def written_whole(a, b):
    a += b
    return a * 2.0


Views = Callable[[Any], tuple[Any, Any]]
ROWS: list[Views] = [
    lambda m: (m[:-1], m[1:]),
    lambda m: (m[1:, ::-1], m[:-1]),
    lambda m: (m[:, 0], m[1]),
    lambda m: (m[::2, 1:], m[1:, :-1][::2]),
    lambda m: (m[:3, :3], m.T[:3, :3]),
]
LINES: list[Views] = [
    lambda x: (x[:-1], x[1:]), lambda x: (x, x[::-1]), lambda x: (x[1::2], x[::-2]),
]


@pytest.mark.parametrize("function", [written_by_elements, written_whole])
def test_slices_of_one_array_are_written_as_in_python(function: Any) -> None:
    compiled = pyrelay.jit(function)
    matrix = np.sin(np.arange(16.0)).reshape(4, 4)
    for start, views in [(matrix, v) for v in ROWS] + [(matrix.copy()[0], v) for v in LINES]:
        if start.ndim == 1:
            start = np.cos(np.arange(6.0))
        ours, plain = start.copy(), start.copy()
        arguments = views(ours)
        found, expected = compiled(*arguments), function(*views(plain))
        np.testing.assert_array_equal(ours, plain)
        if function is written_by_elements:
            assert found[0] is arguments[0]
            found, expected = found[1], expected[1]
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_places_of_views_are_no_part_of_the_program() -> None:
    compiled = pyrelay.jit(written_whole)
    x = np.arange(12.0)
    for k in range(1, 5):
        compiled(x[: 12 - k], x[k:])
    (inner,) = compiled._overlapping.values()
    assert inner.cache_info().compilations == 1


def test_what_is_no_slice_of_one_array_is_refused() -> None:
    def first(a, held):
        a[0] = 5.0
        return held["b"].sum()

    x = np.zeros(6)
    with pytest.raises(pyrelay.AliasError, match=r"a, which shares memory with held.*\n.*copy\(\)"):
        pyrelay.jit(first)(x[:4], {"b": x[2:]})
    with pytest.raises(pyrelay.AliasError, match=r"shares memory with b\.\n.*b\.copy\(\)"):
        pyrelay.jit(written_whole)(x[:4], x.view(np.int64)[2:])
    assert not x.any()
    assert overlapping.found((x[:2], x[2:])) is None


class Layer:
    def __init__(self, weights: Any) -> None:
        self.weights, self.columns = weights, None

    def forward(self, x: Any) -> Any:
        self.columns = self.weights.reshape(2, -1).T
        return x @ self.columns


class Net:
    def __init__(self) -> None:
        self.params = {"w": np.arange(4.0).reshape(2, 2)}
        self.layer = Layer(self.params["w"])


def descend(net: Any, x: Any) -> Any:
    y = net.layer.forward(x)
    for name in net.params:
        net.params[name] -= 0.1 * y.sum()
    return y


def test_an_objects_view_of_what_a_step_updates_may_be_there_from_the_step_before() -> None:
    compiled, ours, plain, x = pyrelay.jit(descend), Net(), Net(), np.ones((3, 2))
    for _ in range(3):
        np.testing.assert_allclose(compiled(ours, x), descend(plain, x), rtol=1e-14)
        np.testing.assert_allclose(ours.params["w"], plain.params["w"], rtol=1e-14)
        np.testing.assert_array_equal(ours.layer.columns, ours.params["w"].T)
        assert np.shares_memory(ours.layer.columns, ours.params["w"])
    assert compiled.cache_info().compilations == 2


def test_an_array_that_is_not_read_comes_back_as_the_callers() -> None:
    def fill(a, b):
        a[:] = 7.0
        return b, b[1:]

    x = np.zeros(4)
    views = x[:3], x[1:]
    same, part = pyrelay.jit(fill)(*views)
    assert same is views[1]
    np.testing.assert_array_equal(same, [7.0, 7.0, 0.0])
    np.testing.assert_array_equal(part, [7.0, 0.0])
    assert np.shares_memory(part, x)


def test_an_objects_view_that_is_read_is_refused_and_the_error_says_what_to_store() -> None:
    def read(net):
        net.params["w"][0] = 1.0
        return net.layer.columns.sum()

    net = Net()
    net.layer.columns = net.params["w"].T
    with pytest.raises(
        pyrelay.AliasError, match=r"shares memory with net\.layer\.columns\.\n"
        r".*pass a copy: net\.layer\.columns = net\.layer\.columns\.copy\(\)\n.*let it store",
    ):
        pyrelay.jit(read)(net)
    assert net.params["w"][0, 0] == 0.0


@pytest.mark.parametrize("other", [lambda a: a[::-1], lambda a: a.T, lambda a: a[1:]])
def test_what_is_reshaped_is_a_view_where_all_of_an_array_is_an_argument(other) -> None:
    def write(a, b):
        b[0, 0] = 3.0
        flat = a.ravel()
        flat[1] = 2.0
        return b, flat

    x, y = np.arange(16.0).reshape(4, 4), np.arange(16.0).reshape(4, 4)
    seen, flat = pyrelay.jit(write)(x, other(x))
    np.testing.assert_array_equal(seen, write(y, other(y))[0])
    np.testing.assert_array_equal(x, y)
    assert np.shares_memory(flat, x)
