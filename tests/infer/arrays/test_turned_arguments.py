"""Arguments whose axes lie in memory otherwise than they stand enter as they lie."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import pyrelay
from pyrelay import config

X = np.linspace(-1.0, 2.0, 24).reshape(4, 6)
Y = np.ones((2, 2))
Z = np.linspace(-1.0, 2.0, 24).reshape(2, 3, 4)


def in_order(array, axes):
    """A copy whose axes lie in this order."""
    return array.transpose(axes).copy().transpose(np.argsort(axes))


def read(x, z):
    return (
        x * 2.0 + x, x.sum(axis=0), x.argmax(axis=0), x @ x.T, x[1], x.reshape(-1), z + 1.0,
        z.sum(axis=1), z[..., 1],
    )


@pytest.mark.parametrize(
    ("axes", "device"),
    [((2, 1, 0), "cpu"), ((0, 2, 1), "cpu"), ((1, 0, 2), "cpu"), ((2, 1, 0), "cuda_emulator")],
)
def test_they_are_read_right_and_results_lie_as_in_numpy(axes, device):
    given = np.asfortranarray(X), in_order(Z, axes)
    f = pyrelay.jit(read, device=device)
    for _ in range(2):
        for mine, wanted in zip(f(*given), read(*given), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-12)
            assert mine.dtype == wanted.dtype
    if device == "cpu":
        assert f(*given)[0].strides == given[0].strides
        assert f(*given)[6].strides == given[1].strides


def part_by_part(x, i, z):
    x[0] = 1.0
    x[:, 1] += x[:, 0]
    x[1:3, ::2] = x[2:4, ::2] * 2.0
    x[[0, 2], [3, 1]] = -7.0
    x[:, i] = x[:, i[::-1]] * 3.0
    x -= 0.5
    z[0, i[:2]] = z[1, i[1:]]
    z[:, i, 0] = 4.0
    z[i // 2, :, i] = z[0, 1:2, 0]


def in_a_loop(x, i, z):
    for k in range(1, len(x)):
        x[k] += x[k - 1]
        z[k % 2, 0, 0] = x[k, 0]


def on_a_path(x, i, z):
    if x[0, 0] < z[0, 0, 0] + 1.0:
        x[i] = 0.0
    z[...] = z[::-1].copy()


@pytest.mark.parametrize("f", [part_by_part, in_a_loop, on_a_path])
@pytest.mark.parametrize("device", ["cpu", "cuda_emulator"])
def test_they_are_written_where_they_lie(f, device):
    mine = np.asfortranarray(X), np.array([2, 0, 1]), in_order(Z, (0, 2, 1))
    wanted, compiled = copy.deepcopy(mine), pyrelay.jit(f, device=device)
    for _ in range(2):
        compiled(*mine)
        f(*wanted)
        for one, other in zip(mine, wanted, strict=True):
            np.testing.assert_allclose(one, other)
    assert mine[0].flags.f_contiguous


@pytest.mark.parametrize("looping", [False, True])
def test_what_was_written_before_the_program_raised_is_there(looping):
    def raising(x, k):
        if looping:
            for row in range(len(x)):
                x[row] *= 2.0
        else:
            x[1] = 9.0
            x[:, 2] += 1.0
        return x[k, 0]

    mine, wanted, f = np.asfortranarray(X), X.copy(), pyrelay.jit(raising)
    for array, function in ((mine, f), (wanted, raising)):
        with pytest.raises(IndexError):
            function(array, 4)
    np.testing.assert_array_equal(mine, wanted)


def test_they_are_the_callers_objects():
    x = np.asfortranarray(X)
    itself, twice, turned, row = pyrelay.jit(lambda x: (x, [x, x], x.T, x[1]))(x)
    assert itself is x
    assert twice[0] is twice[1] is x
    assert np.shares_memory(turned, x)
    assert turned.strides == x.T.strides
    assert np.shares_memory(row, x)
    assert pyrelay.jit(lambda x: (x.flags.f_contiguous, x.strides))(x) == (True, x.strides)


def test_programs_are_for_one_order():
    f = pyrelay.jit(lambda x, y: x + y.sum())
    column = X[:, :1].copy()
    for x in (X, X[:, 0].copy(), column, np.asfortranarray(column), X[:, ::2]):
        f(x, Y)
    before = f.cache_info().compilations
    assert before == 2  # by numbers of axes
    for _ in range(2):
        for x in (np.asfortranarray(X), X, X[::2], np.asfortranarray(X)[1:], X.T):
            np.testing.assert_allclose(f(x, Y), x + Y.sum())
    assert f.cache_info().compilations == before + 1
    assert "only for x whose axes lie in memory in the order (1, 0)" in f.explain(X.T, Y)


def test_arrays_that_overlap_what_is_written():
    def shifted(x, y):
        x[0] = y[1] * 2.0
        return y[0] + x[1]

    for f in (shifted, pyrelay.jit(shifted)):
        x = np.asfortranarray(X)
        found = f(x, x[:])
        np.testing.assert_array_equal(found, X[1] * 2.0 + X[1])
        np.testing.assert_array_equal(x[0], X[1] * 2.0)
    read_only = np.asfortranarray(X)
    read_only.flags.writeable = False
    with pytest.raises(pyrelay.InvalidValueError, match="read-only"):
        pyrelay.jit(shifted)(read_only, X)


def test_derivatives():
    def loss(p, x):
        return np.sum(np.tanh(x @ p["w"] + p["b"]) ** 2)

    p = {"w": np.asfortranarray(X[:3]), "b": np.ones(6)}
    x = np.asfortranarray(X[:, :3])
    plain = {k: np.ascontiguousarray(v) for k, v in p.items()}
    x_plain = np.ascontiguousarray(x)
    wanted = pyrelay.grad(loss, argnums=(0, 1))(plain, x_plain)
    value, pull = pyrelay.vjp(loss, p, x)
    np.testing.assert_allclose(value, loss(p, x))
    for found in (pyrelay.grad(loss, argnums=(0, 1))(p, x), pull(1.0)):
        for one, other in zip(_flat(found), _flat(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    rows = pyrelay.vmap(lambda row, w: np.tanh(row @ w), (0, None))(x, p["w"])
    np.testing.assert_allclose(rows, np.tanh(x @ p["w"]))


def _flat(value):
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (dict, tuple)):
            yield from _flat(part)
        else:
            yield part


_WEIGHTS = np.asfortranarray(X)


@pyrelay.jit
def weighted(x):
    return x @ _WEIGHTS, _WEIGHTS.sum(axis=1)


def test_captured_arrays_and_programs_on_disk(tmp_path):
    with config.override(verify=False, cache_dir=str(tmp_path)):
        for f in (weighted, weighted.again()):
            for _ in range(2):
                found = f(np.asfortranarray(X[:, :4]))
                np.testing.assert_allclose(found[0], X[:, :4] @ X)
                np.testing.assert_allclose(found[1], X.sum(axis=1))
        assert f.cache_info().loaded == 1
        f(X[:, :4].copy())
        assert f.cache_info().compilations == 2


def test_interpreted():
    with config.override(interpret=True):
        f, x = pyrelay.jit(part_by_part), np.asfortranarray(X)
        f(x, np.array([2, 0, 1]), Z.copy())
    wanted = X.copy()
    part_by_part(wanted, np.array([2, 0, 1]), Z.copy())
    np.testing.assert_allclose(x, wanted)
