"""Annotations mean what Python takes them for, also where they are texts."""

# ruff: noqa: F722, F821, UP037, UP045

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pytest

import pyrelay
from pyrelay import ShapeError, Tensor

if TYPE_CHECKING:
    from nowhere import Missing

WIDTH = 3
Row = Tensor["n", WIDTH]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


def aliased(x: Row) -> Any:
    return x


def computed(x: Tensor["n", WIDTH - 1 + 1]) -> Any:
    return x


def quoted(x: list["Tensor['n', 3]"]) -> Any:
    return x[0]


def missing(x: Missing["n", 3], y: Row) -> Any:
    return y


@dataclass
class Tree:
    value: Row
    left: Tree | None = None
    kept: Final[Row] = None  # type: ignore[assignment]
    shared: ClassVar[int] = 3


def fields(x: Tree) -> Any:
    return x.value


@dataclass
class Branch:
    weight: Row
    inner: Branch | None = None

    def applied(self, x: Tensor["n", "d"]) -> Any:
        found = self.weight * x
        return found if self.inner is None else found + self.inner.applied(x)


def total(x: Tree, y: Tensor["n", "d"]) -> Tensor["n", "d"]:
    found = x.value * y
    return found if x.left is None else found + total(x.left, y)


def factory(width: int) -> Callable[..., Any]:
    def f(x: Tensor["n", width]) -> Any:
        return x * width

    return f


@pytest.mark.parametrize(("function", "wrap"), [
    (aliased, lambda x: x), (computed, lambda x: x), (quoted, lambda x: [x]),
    (fields, lambda x: Tree(x)), (factory(3), lambda x: x),
])
def test_texts_mean_what_they_mean_in_their_module(
    function: Callable[..., Any], wrap: Callable[[Any], Any]
) -> None:
    compiled = pyrelay.jit(function)
    np.testing.assert_array_equal(compiled(wrap(ones(2, 3))), function(wrap(ones(2, 3))))
    with pytest.raises(ShapeError, match="its axis 1 is 4"):
        compiled(wrap(ones(2, 4)))


def test_arrays_of_nodes_are_compared() -> None:
    tree = Tree(ones(2, 3), Tree(ones(2, 3)))
    compiled = pyrelay.jit(total)
    assert compiled(tree, ones(2, 3)).tolist() == [[2.0] * 3] * 2
    with pytest.raises(ShapeError, match=r"n is 2 by x\.value and 1 by y"):
        compiled(tree, ones(1, 3))


def test_arrays_of_nodes_are_compared_in_their_methods() -> None:
    compiled = pyrelay.jit(lambda node, x: node.applied(x))
    node = Branch(ones(2, 3), Branch(ones(2, 3)))
    assert compiled(node, ones(2, 3)).tolist() == [[2.0] * 3] * 2
    with pytest.raises(ShapeError, match=r"n is 2 by self\.weight and 1 by x"):
        compiled(node, ones(1, 3))


def unfinished(x: Tensor["n", "d+"]) -> Any:
    return x


def test_texts_that_are_no_annotation_are_refused_at_the_parameter() -> None:
    with pytest.raises(pyrelay.TypeMismatchError, match=r"cannot take 'd\+' for an axis") as caught:
        pyrelay.jit(unfinished)(ones(2, 3))
    assert caught.value.span is not None
    assert caught.value.span.text() == "x: Tensor[\"n\", \"d+\"]"


def test_texts_that_name_nothing_say_nothing_and_others_still_do() -> None:
    compiled = pyrelay.jit(missing)
    compiled(ones(1), ones(2, 3))
    with pytest.raises(ShapeError, match="y of missing"):
        compiled(ones(1), ones(2, 4))


def test_another_meaning_of_a_name_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    alias, width = pyrelay.jit(aliased), pyrelay.jit(computed)
    alias(ones(2, 3))
    width(ones(2, 3))
    monkeypatch.setitem(globals(), "Row", Tensor["n", 4])
    monkeypatch.setitem(globals(), "WIDTH", 4)
    for compiled in (alias, width):
        assert compiled(ones(2, 4)).shape == (2, 4)
        with pytest.raises(ShapeError, match="its axis 1 is 3"):
            compiled(ones(2, 3))


def test_annotations_that_are_objects_are_read_as_they_are() -> None:
    def f(x: Any, y: Any) -> Any:
        return x

    f.__annotations__ = {"x": Tensor["n"], "y": typing.Optional[Tensor["n"]]}
    compiled = pyrelay.jit(f)
    assert compiled(ones(3), None).shape == (3,)
    with pytest.raises(ShapeError, match="n is 3 by x and 2 by y"):
        compiled(ones(3), ones(2))


def test_a_bare_tensor_is_any_array() -> None:
    def f(x: Tensor) -> Any:
        return x

    assert pyrelay.jit(f)(ones(2, 3)).shape == (2, 3)
    with pytest.raises(pyrelay.TypeMismatchError, match="it is a list"):
        pyrelay.jit(f)([1.0])
