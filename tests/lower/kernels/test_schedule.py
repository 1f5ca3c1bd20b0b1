"""Spaces and cleaning: runs of axes, ranges of indices, unused statements."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from lowered import function_of

import pyrelay
import pyrelay.ops
from pyrelay.ir import dims
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32, f64, i64
from pyrelay.lower.kernels.kernel import (
    SLOT,
    Assign,
    Compute,
    For,
    Literal,
    Local,
    Parameter,
    Store,
)
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.spaces import collapsed
from pyrelay.lower.passes.cleaning import without_unused
from pyrelay.lower.passes.index_ranges import IndexRanges
from pyrelay.lower.text.emit_kernel import emit

N, M = Symbol("n"), Symbol("m")
n, m = dims.of(N), dims.of(M)


@pytest.mark.parametrize(
    ("shapes", "runs"),
    [
        ([(m, n, 4)], (3,)),
        ([(m, n, 4), (n, 4)], (1, 2)),
        ([(m, n, 4), (4,)], (2, 1)),
        ([(m, n, 4), (m, 1, 4)], (1, 1, 1)),
        ([(m, n, 4), (m, n, 1)], (2, 1)),
        ([()], (3,)),
    ],
)
def test_axes_are_counted_together_where_every_array_is_contiguous(
    shapes: Any, runs: tuple[int, ...]
) -> None:
    assert collapsed((m, n, 4), shapes).runs == runs


@pytest.mark.parametrize(
    ("extents", "shapes", "runs"),
    [
        ((n, 1, 1), [(n, 1, 1), (1, 1, 1)], (3,)),
        ((1, m, 1, n), [(1, m, 1, n), (1, 1, 1, n)], (3, 1)),
        ((m, 1, n), [(m, 1, 1), (1, n)], (2, 1)),
        ((1, 1), [(1,)], (2,)),
    ],
)
def test_no_run_consists_of_axes_of_extent_1(
    extents: Any, shapes: Any, runs: tuple[int, ...]
) -> None:
    assert collapsed(extents, shapes).runs == runs


def test_totals_that_stand_in_a_loop_over_one_column() -> None:
    def centred(x):
        deviation = x - x.mean(1, keepdims=True)
        return deviation / np.sqrt((deviation**2).mean(1, keepdims=True))

    x = np.arange(24.0).reshape(2, 12, 1)
    np.testing.assert_allclose(pyrelay.jit(centred)(x), centred(x), rtol=1e-12)


def test_indices_are_divided_only_if_a_rule_takes_them_apart() -> None:
    def flat(b: Any, x: Any) -> Any:
        return b.call(OPS["reshape"], OPS["exp"](x), shape=(dims.multiply(m, n),)) * 2

    (kernel,) = kernelise(function_of([TensorType(f32, (m, n))], flat, [M, N])).kernels
    assert "floor_divide" not in emit(kernel)

    def reversed_rows(b: Any, x: Any) -> Any:
        return b.call(OPS["slice"], x, starts=(0, n - 1), sizes=(m, n), steps=(1, -1)) * 2

    (kernel,) = kernelise(function_of([TensorType(f32, (m, n))], reversed_rows, [M, N])).kernels
    assert "floor_divide" not in emit(kernel)
    assert kernel.extent == m


def test_rows_that_a_reshape_makes_are_numbered_by_one_index() -> None:
    function = pyrelay.jit(lambda x: (np.abs(x) * 2).reshape(x.shape[0], -1, 4).sum(axis=-1))
    x = np.arange(-12.0, 12.0).reshape(3, 8)
    np.testing.assert_array_equal(function(x), [[84, 52], [20, 12], [44, 76]])
    code = str(function.code(x))
    assert "floor_divide" not in code
    assert "remainder" not in code


def test_indices_that_were_divided_make_the_index_again_where_they_meet() -> None:
    function = pyrelay.jit(lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1))
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(function(x), function.py(x))
    code = str(function.code(x))
    divided = re.findall(r"(?:floor_divide|remainder)\((\w+)", code)
    first = re.findall(r"for i0 in range\((\w+)", code)
    assert set(divided) <= {"begin", "end", *first}  # in front of rows, and for none of them


IMAGE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


@pytest.mark.parametrize("function", [
    lambda x: x[::-1].copy(), lambda x: np.pad(x, ((1, 2), (2, 1), (0, 0))),
    lambda x: x[1:-1, 2:] + x[:-2, :-2],
])  # fmt: skip
def test_pixels_of_a_row_are_one_run(function: Any) -> None:
    compiled = pyrelay.jit(function)
    np.testing.assert_array_equal(compiled(IMAGE), function(IMAGE))
    code = str(compiled.code(IMAGE)).split("# plan")[0]
    assert code.count("for i") == 2
    assert not re.search("floor_divide|remainder", code)


@pytest.mark.parametrize("function", [
    lambda x: x[::-1, ::-1, ::-1].copy(), lambda x: np.pad(x, ((1, 2), (2, 1), (1, 0))),
    lambda x: x.repeat(2, axis=0).repeat(3, axis=1), lambda x: np.kron(x[..., 0], x[:2, :2, 1]),
    lambda x: x.reshape(2, 2, x.shape[1], 3).transpose(0, 2, 1, 3).copy(),
])  # fmt: skip
def test_rows_of_planes_are_a_loop_in_that_over_planes(function: Any) -> None:
    compiled = pyrelay.jit(function)
    for image in (IMAGE, IMAGE[:, :0], np.concatenate([IMAGE] * 300, axis=1)):
        np.testing.assert_array_equal(compiled(image), function(image))
    code = str(compiled.code(IMAGE)).split("# plan")[0]
    loops = re.findall(r"^( *)for i\d+ in", code, re.M)
    assert len(set(loops)) >= 3


@pytest.mark.parametrize("shape", [(40, 30, 5), (3, 600, 2), (600, 2, 3)])
def test_columns_of_several_axes_are_numbered_without_dividing(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=(*shape[:2], 1))
    for weighed in (lambda x, y: (x * y).sum(axis=0), lambda x, y: (x * y).max(0, keepdims=True)):
        function = pyrelay.jit(weighed)
        np.testing.assert_allclose(function(x, y), weighed(x, y), rtol=1e-12, atol=1e-12)
        assert not re.search(r"(floor_divide|remainder)\(x\d+, n", str(function.code(x, y)))


def test_an_index_of_groups_is_not_divided_for_each_element() -> None:
    """Eight groups of channels, each as many positions: a group is told by the channel alone."""

    def normalised(x: Any, scale: Any) -> Any:
        n, channels, height, width = x.shape
        groups = x.reshape(n, 8, channels // 8 * height * width)
        centred = groups - groups.mean(axis=2, keepdims=True)
        return centred.reshape(x.shape) * scale[None, :, None, None]

    function = pyrelay.jit(normalised)
    rng = np.random.default_rng(0)
    for shape in ((3, 16, 5, 4), (1, 8, 1, 1), (2, 24, 1, 7), (2, 16, 0, 3)):
        x, scale = rng.normal(size=shape), rng.normal(size=shape[1])
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            wanted = normalised(x, scale)
        np.testing.assert_allclose(function(x, scale), wanted, rtol=1e-12, atol=1e-12)
    text = str(function.code(rng.normal(size=(3, 16, 5, 4)), np.ones(16))).split("# plan")[0]
    innermost = max(line.index("for i") for line in text.splitlines() if "for i" in line)
    divided = [
        line for line in text.splitlines()
        if "floor_divide" in line and len(line) - len(line.lstrip()) > innermost
    ]
    assert not divided


def test_positions_of_merged_axes_are_told_without_dividing() -> None:
    """`(i * n + j) // n` and `% n` of what users write."""

    def taken_apart(x: Any) -> Any:
        n = x.shape[1]
        out = np.zeros(x.shape)
        for i in range(x.shape[0]):
            for j in range(n):
                k = i * n + j
                out[k // n, k % n] = x[i, j] + k // (2 * n) + k % (2 * n) + k // -n + k % (-2 * n)
        return out

    function = pyrelay.jit(taken_apart)
    for shape in ((3, 5), (1, 1), (4, 2), (0, 3), (3, 0)):
        x = np.arange(float(np.prod(shape))).reshape(shape)
        np.testing.assert_array_equal(function(x), taken_apart(x))


def test_an_axis_of_extent_1_takes_no_index_apart() -> None:
    def pairs(x: Any, y: Any) -> Any:
        return np.stack([x, y], axis=-1)

    x = np.arange(24.0).reshape(2, 3, 4)
    function = pyrelay.jit(pairs)
    np.testing.assert_array_equal(function(x, -x), pairs(x, -x))
    text = str(function.code(x, x))
    assert "remainder(" not in text
    assert text.count("for ") == 1


def test_the_cost_of_a_row_grows_with_its_length() -> None:
    function = function_of(
        [TensorType(f32, (m, n))], lambda b, x: OPS["sum"](x, axes=(1,), keepdims=False), [M, N]
    )
    (kernel,) = kernelise(function).kernels
    assert dims.symbols(kernel.cost) == (N,)


def test_ranges_decide_comparisons_of_indices() -> None:
    ranges = IndexRanges()
    i = ranges.index(n)
    assert ranges.decided("less", i, n) is True
    assert ranges.decided("greater_equal", i, n) is False
    assert ranges.decided("less", i, 0) is False
    assert ranges.decided("less", i - 1, -n) is False  # since i exists, n is at least 1
    assert ranges.decided("less", i - 1, 0) is None
    assert ranges.decided("less_equal", i + 1, n) is True
    assert ranges.decided("less", i, m) is None
    j = ranges.index(n - 1)
    assert ranges.decided("less", j + 1, n) is True
    assert dims.is_small(2 * i + 1)
    assert not dims.is_small(i * i)


def test_unused_scalars_and_empty_loops_are_dropped() -> None:
    x, y, z, i = Local(f64), Local(f64), Local(f64), Local(i64)
    v, total, more = Local(f64, variable=True), Local(f64, variable=True), Local(f64)
    one = Literal(1.0, f64)
    store = Store(Parameter(SLOT, 0, f64), Literal(0, i64), x, True)
    body = (
        Compute(x, "add", (one, one)),
        Compute(y, "add", (x, x)),
        Compute(z, "add", (y, y)),
        For(i, Literal(0, i64), Literal(9, i64), (
            Assign(v, z), Compute(more, "add", (total, x)), Assign(total, more),
        )),
        store,
    )
    assert without_unused(body) == (body[0], store)


def test_results_do_not_lie_where_places_do() -> None:
    """Rounds at the end go twice, in lanes: what they read then must still be places."""

    def ranked(x: Any, w: Any) -> Any:
        return np.sin(np.lexsort((w, x)) * w)

    compiled = pyrelay.jit(ranked)
    rng = np.random.default_rng(4)
    for n in (5, 7, 22):
        x, w = rng.normal(size=(2, n))
        np.testing.assert_allclose(compiled(x, w), ranked(x, w), rtol=1e-12)
    code = str(compiled.code(x, w))
    assert "near_sin" in code
    launch = next(line for line in code.splitlines() if "launch gather_inside_multiply_sin" in line)
    buffers = launch.split("(")[1].split(")")[0].split(", ")
    assert len(set(buffers)) == len(buffers) == 4
