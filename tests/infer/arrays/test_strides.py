"""Which results share memory with an array: reshapes of views, diagonals, windows, broadcasts.

Each program makes one, writes the array it came from, and where it may, the other way round.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

as_strided = np.lib.stride_tricks.as_strided

VIEWS = (
    "x.T", "x[::2]", "x[:, 1:]", "x[1:]", "x[:, ::2]", "x[::-1]", "x[1]", "x[:, 1]", "x[None]",
    "x[1:3, 1:3]", "x.reshape(2, 8)", "x[1:].T", "x.ravel()[2:10]",
    "x.reshape(2, 2, 4).transpose(1, 0, 2)",
)
RESHAPED = (
    "b.reshape(-1)", "b.ravel()", "np.ascontiguousarray(b)", "b.reshape(-1, 2)",
    "b.reshape(b.shape + (1,))", "b.T.reshape(-1)", "b[..., None].reshape(-1)",
)
READ_ONLY = (
    "np.diagonal(x)", "np.diag(x, -1)", "x.diagonal(1)", "np.broadcast_to(x, (2, 4, 4))",
    "np.lib.stride_tricks.sliding_window_view(x, (2, 3))", "np.linalg.diagonal(x)",
)
SHARED_OR_NOT = (
    "np.rot90(x)", "np.rot90(x, 2)", "np.rot90(x, -1)", "x.conj()", "np.conj(x)",
    "np.asfortranarray(x)", "np.array_split(x, 3)[1]", "np.moveaxis(x, 0, 1)", "x.flatten()",
)


def program(*lines: str) -> Callable[[Any], Any]:
    """The function of these lines, whose source can be found."""
    source = "def program(x):\n" + "".join(f"    {line}\n" for line in lines)
    name = f"<{'; '.join(lines)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), namespace)
    made: Callable[[Any], Any] = namespace["program"]
    return made


def assert_shares_alike(function: Callable[[Any], Any]) -> None:
    """The function gives the same compiled as run by Python, and writes its argument alike."""
    expected = function(np.arange(16.0).reshape(4, 4))
    found = pyrelay.jit(function)(np.arange(16.0).reshape(4, 4))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("view", VIEWS)
def test_a_reshape_is_a_view_where_strides_allow_it(view):
    lines, made = [f"b = {view}"], []
    for k, expression in enumerate(RESHAPED):
        try:
            eval(expression, {"b": eval(view, {"x": np.zeros((4, 4))}), "np": np})
        except ValueError:
            continue  # this shape cannot be had
        lines += [f"y{k} = {expression}", f"y{k}[0] += {k + 1}.0"]
        made.append(f"y{k}")
    lines += ["x[0, 0] = 50.0", "x[1, 2] = 60.0", "x += 1", f"return x, {', '.join(made)}"]
    assert_shares_alike(program(*lines))


@pytest.mark.parametrize("expression", [*READ_ONLY, *SHARED_OR_NOT])
def test_what_is_a_view_shows_what_is_written_to_its_array(expression):
    assert_shares_alike(program(
        f"y = {expression}", "x[0, 0] = 50.0", "x[2] = 60.0", "x += 1", "return y * 1, x"
    ))


@pytest.mark.parametrize("expression", READ_ONLY)
def test_views_that_numpy_lets_nobody_write_are_not_written(expression):
    function = program(f"y = {expression}", "y[0] = 1.0", "return y")
    for run in (function, pyrelay.jit(function)):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            run(np.arange(16.0).reshape(4, 4))


def test_a_diagonal_goes_through_a_loop_and_has_a_gradient():
    def trace_of_powers(x, n):
        y = x.copy()
        d = np.diagonal(y)
        total = 0.0
        for _ in range(n):
            y[:] = y @ x
            total += d.sum()
        return total

    x = np.random.default_rng(0).normal(size=(3, 3))
    expected = trace_of_powers(x, 3)
    assert np.isclose(pyrelay.jit(trace_of_powers)(x, 3), expected)
    pyrelay.check_grads(trace_of_powers, (x, 3), order=1, modes="rev")


def test_a_matrix_of_another_size_reshapes_alike():
    @pyrelay.jit
    def f(x):
        tail = x[1:].reshape(-1)
        columns = x[:, 1:].reshape(-1)
        tail[0], columns[0] = 7.0, 8.0
        return x

    for shape in ((4, 4), (3, 5)):
        x = np.zeros(shape)
        f(x)
        assert x[1, 0] == 7.0
        assert x[0, 1] == 0.0


def test_what_is_left_of_no_elements_is_not_known():
    compiled = pyrelay.jit(lambda x: x.reshape(x.shape[0], -1))
    assert compiled(np.ones((2, 3, 1))).shape == (2, 3)
    assert compiled(np.ones((2, 0, 3))).shape == (2, 0)
    with pytest.raises(ValueError, match=r"cannot reshape f64\[0, 3, 1\] into \(0, -1\)"):
        compiled(np.ones((0, 3, 1)))


def of_computed_extents(x, n, m):
    flat = np.zeros(n * m)
    grid, part = flat.reshape(n, m), np.zeros((n, m, 2))[-1].reshape(2 * m)
    grid[-1, 0] = 7
    part[1] = 5
    x.reshape(n, -1)[0] += 1
    x[::2].reshape(m // 2 * n)[0] = 9
    return flat, part, grid.ravel(), part.reshape(n - 1, -1)


def test_what_lies_in_one_run_is_a_view_in_shapes_known_at_run_time() -> None:
    x, y = np.arange(8.0), np.arange(8.0)
    want, got = of_computed_extents(x, 2, 4), pyrelay.jit(of_computed_extents)(y, 2, 4)
    for a, b in zip((x, *want), (y, *got), strict=True):
        np.testing.assert_array_equal(a, b)
    x, y = np.zeros(0), np.zeros(0)
    for function in (of_computed_extents, pyrelay.jit(of_computed_extents)):
        with pytest.raises(IndexError):
            function(x, 0, 4)


def in_as_many_rows_as_are_left(x):
    kept = x[x > 1]
    lines = np.zeros((2, len(kept)))
    lines.sort()
    return kept.reshape(len(kept), -1) if len(x) < 3 else lines


def test_no_rows_of_any_length_are_refused_when_run() -> None:
    jitted = pyrelay.jit(in_as_many_rows_as_are_left)
    assert jitted(np.array([1.0, 2.0])).shape == (1, 1)
    assert jitted(np.zeros(3)).shape == (2, 0)
    for function in (in_as_many_rows_as_are_left, jitted):
        with pytest.raises(ValueError, match=r"array of size 0 into shape \(0,newaxis\)"):
            function(np.array([1.0, 0.0]))


def mean_of_windows(x: Any, k: int) -> Any:
    (step,) = x.strides
    return as_strided(x, shape=(len(x) - k + 1, k), strides=(step, step)).mean(axis=1)


def patches(x: Any, k: int) -> Any:
    n, c, h, w = x.shape
    s = x.strides
    found = as_strided(x, (n, c, h - k + 1, w - k + 1, k, k), s + s[2:])
    return found.transpose(0, 2, 3, 1, 4, 5).reshape(n * (h - k + 1) * (w - k + 1), -1)


def pooled(x: Any, k: int) -> Any:
    y = np.pad(x, 1)
    s = y.strides
    shape = (y.shape[0] // k, y.shape[1] // k, k, k)
    return as_strided(y, shape, (s[0] * k, s[1] * k, *s)).max(axis=(2, 3))


def toeplitz(x: Any, k: int) -> Any:
    y = np.concatenate([x, x[::-1]])
    n = y.strides[0]
    diagonals = as_strided(y[k - 1:], (k, k), (-n, n)), as_strided(y.ravel()[k:], (k,), (-n,))
    return as_strided(y, (k, k), 2 * y.strides), as_strided(x), *diagonals


@pytest.mark.parametrize(
    ("program", "x", "k"),
    [(mean_of_windows, np.arange(10.0), 3), (mean_of_windows, np.arange(9, dtype=np.int16), 4),
     (patches, np.arange(252.0).reshape(2, 3, 6, 7), 3), (pooled, np.arange(42.0).reshape(6, 7), 2),
     (toeplitz, np.arange(5.0), 4)],
)  # fmt: skip
def test_strides_lead_to_the_elements_that_they_lead_to_in_numpy(
    program: Any, x: Any, k: int
) -> None:
    got, expected = pyrelay.jit(program)(x, k), program(x, k)
    if not isinstance(expected, tuple):
        got, expected = (got,), (expected,)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_windows_by_strides_have_a_gradient_and_share_memory() -> None:
    def loss(x: Any) -> Any:
        seen = as_strided(x, (8, 3), 2 * x.strides)
        x[4] = 7.0
        return (seen**2).sum()

    x = np.arange(10.0)
    assert pyrelay.jit(loss)(x.copy()) == loss(x.copy())
    slope = pyrelay.grad(lambda x: (mean_of_windows(x, 3) ** 2).sum())(x)
    np.testing.assert_allclose(slope[:3], [2 / 3, 2.0, 4.0])


def test_the_strides_of_an_argument_are_those_of_the_call() -> None:
    compiled = pyrelay.jit(lambda x: (x.strides, x[1:].strides, x[::2].strides, x.T.strides))
    x = np.arange(24.0).reshape(4, 6)
    for given in (x, x.T, np.asfortranarray(x), x.astype(np.float32)):
        assert compiled(given) == compiled.py(given)
    with pytest.raises(pyrelay.PyrelayError, match=r"(?s)'strides' of .*x\.copy\(\)\.strides"):
        compiled(x[:, ::2])


def test_strides_beyond_the_array_are_an_error() -> None:
    @pyrelay.jit
    def taken(x: Any, n: int, step: int) -> Any:
        return as_strided(x, (n, 2), (step, 8))

    x = np.arange(6.0)
    np.testing.assert_array_equal(taken(x, 3, 16), x.reshape(3, 2))
    with pytest.raises(ValueError, match="strides and shape lead to element 7 of an array of 6"):
        taken(x, 4, 16)
    with pytest.raises(ValueError, match="strides and shape lead to 1 elements before those of an"):
        taken(x, 2, -8)
    with pytest.raises(ValueError, match="a stride of 4 bytes leads between the elements of an"):
        taken(x, 2, 4)
