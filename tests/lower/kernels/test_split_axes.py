"""What is the same along some of the axes that a reshape joins is read in front of the others."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from lowered import function_of

import pyrelay
from pyrelay.ir import dims
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32, f64
from pyrelay.lower.kernels.split_axes import split_axes

N, C = Symbol("n"), Symbol("c")
n, c = dims.of(N), dims.of(C)


def by_groups(x: Any, scale: Any) -> Any:
    rows = (x * scale[:, None, None]).reshape(len(x), 4, -1)
    rows = rows - rows.mean(axis=2, keepdims=True)
    return rows / np.sqrt((rows * rows).sum(axis=2, keepdims=True) + 1)


def softmax_of_images(x: Any, scale: Any) -> Any:
    rows = (x * scale[:, None, None]).reshape(len(x), -1)
    rows = np.exp(rows - rows.max(axis=1, keepdims=True))
    return rows / rows.sum(axis=1, keepdims=True)


def largest(x: Any, scale: Any) -> Any:
    rows = (x + scale[:, None, None]).reshape(len(x), -1)
    return rows.argmax(axis=1), rows.min(axis=1), (rows > 0).all(axis=1)


def of_everything(x: Any, scale: Any) -> Any:
    return ((x - scale[:, None, None]).reshape(len(x), -1) ** 2).sum()


def masked(x: Any, scale: Any) -> Any:
    flat = np.maximum(x * scale[:, None, None], 0).reshape(len(x), -1)
    return flat * np.arange(flat.shape[1]), flat


def of_features(x: Any, scale: Any) -> Any:
    turned = x.transpose(0, 2, 3, 1) + scale
    return turned.reshape(len(x), -1).sum(axis=1), turned.reshape(-1, len(scale)).max(axis=1)


def of_columns(x: Any, scale: Any) -> Any:
    rows = (x * scale[:, None, None]).reshape(len(x) * x.shape[1], -1)
    return rows.sum(axis=0), rows - rows.sum(axis=1, keepdims=True)


ALL = [by_groups, softmax_of_images, largest, of_everything, masked, of_features, of_columns]


@pytest.mark.parametrize("function", ALL)
def test_the_results_are_numpy_s(function: Any) -> None:
    rng = np.random.default_rng(5)
    compiled = pyrelay.jit(function)
    for shape in ((3, 8, 5, 7), (1, 16, 11, 3), (5, 4, 1, 1), (2, 4, 40, 60), (2, 12, 1, 9)):
        x, scale = rng.standard_normal(shape), rng.standard_normal(shape[1])
        found, wanted = compiled(x, scale), function(x, scale)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for mine, numpys in pairs:
            assert (mine.shape, mine.dtype) == (numpys.shape, numpys.dtype)
            np.testing.assert_allclose(mine, numpys, rtol=1e-12, atol=1e-12)


def test_infinities_and_no_numbers_stay_where_they_are() -> None:
    x, scale = np.ones((3, 8, 5, 7), "f"), np.ones(8, "f")
    x[0, 3, 2, 1], x[1, 7, 4, 6], scale[2] = np.inf, np.nan, -np.inf
    for function in (by_groups, softmax_of_images, masked, of_everything):
        with np.errstate(all="ignore"):
            found, wanted = pyrelay.jit(function)(x, scale), function(x, scale)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for mine, numpys in pairs:
            np.testing.assert_allclose(mine, numpys, rtol=1e-4)


def test_a_gradient_through_groups_of_channels() -> None:
    rng = np.random.default_rng(7)
    x, scale = rng.standard_normal((2, 8, 3, 5)), rng.standard_normal(8)
    weights = rng.standard_normal((2, 4, 30))

    def loss(x: Any, scale: Any) -> Any:
        return (by_groups(x, scale) * weights).sum()

    found = pyrelay.grad(loss, argnums=(0, 1))(x, scale)
    for array, gradient in zip((x, scale), found, strict=True):
        for place in (0, array.size // 2, array.size - 1):
            moved = array.reshape(-1)
            before = moved[place]
            moved[place] = before + 1e-6
            above = loss(x, scale)
            moved[place] = before - 1e-6
            below = loss(x, scale)
            moved[place] = before
            assert abs((above - below) / 2e-6 - gradient.reshape(-1)[place]) < 1e-6


@pytest.mark.parametrize("function", [by_groups, softmax_of_images, of_everything, masked])
def test_no_index_is_divided_for_an_element(function: Any) -> None:
    text = str(pyrelay.jit(function).code(np.ones((3, 8, 5, 7)), np.ones(8))).split("# plan")[0]
    *_, tree = text.partition("def ")
    inner = 0
    for loop in ast.walk(ast.parse("def " + tree)):
        if isinstance(loop, ast.For):
            within = [x for statement in loop.body for x in ast.walk(statement)]
            names = {x.id for x in within if isinstance(x, ast.Name)}
            outer = any(isinstance(x, ast.For) for x in within)
            assert outer or not {"remainder", "floor_divide"} & names
            inner += not outer
    assert inner


def joined(extents: tuple[Any, ...], of: tuple[Any, ...]) -> Any:
    def body(b: Any, x: Any, y: Any) -> Any:
        rows = OPS["reshape"](x * y, shape=(extents[0], dims.product(extents[1:])))
        return OPS["sum"](rows, axes=(1,), keepdims=False)

    types = [TensorType(f32, extents), TensorType(f32, of)]
    return function_of(types, body, [N, C])


def test_only_what_saves_divisions_is_split() -> None:
    for extents, of in [
        ((n, c, 9, 9), (n, c, 9, 9)),  # nothing is the same along an axis
        ((n, c, 9, 9), (n, 1, 1, 1)),  # or along all that are joined
        ((n, 9, c, 3), (3,)),  # three elements in a row are few
        ((n, 0, 9, 9), (0, 1, 1)),
    ]:
        function = joined(extents, of)
        assert split_axes(function) is function
    made = split_axes(joined((n, c, 9, 9), (c, 1, 1)))
    (total,) = [let.rhs for let in made.body.lets if let.rhs.op.name == "sum"]
    assert total.args[0].type.shape == (n, c, 9, 9)
    assert total.attrs["axes"] == (1, 2, 3)


def test_what_is_read_at_other_places_is_left_alone() -> None:
    def turned(b: Any, x: Any, y: Any) -> Any:
        rows = OPS["reshape"](x * y, shape=(n, 81 * c))
        return OPS["transpose"](rows, axes=(1, 0)), OPS["sum"](rows, axes=(1,), keepdims=False)

    function = function_of([TensorType(f64, (n, c, 9, 9)), TensorType(f64, (c, 1, 1))], turned)
    assert split_axes(function) is function
