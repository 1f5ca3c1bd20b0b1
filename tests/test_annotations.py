"""`Tensor[...]` is a value that says of an array what stands between the brackets."""

# ruff: noqa: F821, UP037, UP045

from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Optional

import numpy as np
import pytest

import pyrelay
from pyrelay import Tensor
from pyrelay.annotations import Declaration, of_jaxtyping


@pytest.mark.parametrize(("made", "axes", "dtype"), [
    (Tensor["n", "d"], ("n", "d"), None),
    (Tensor["n d"], ("n", "d"), None),
    (Tensor["n", 4, np.float32], ("n", 4), np.dtype(np.float32)),
    (Tensor["n 4", float], ("n", 4), np.dtype(float)),
    (Tensor[..., 3], ("...", 3), None),
    (Tensor["... 3"], ("...", 3), None),
    (Tensor["*b", "_"], ("*b", "_"), None),
    (Tensor["n-1", "2*n//3"], ("n-1", "2*n//3"), None),
    (Tensor[()], (), None),
    (Tensor[(), np.floating], (), np.floating),
    (Tensor[("n", 3), np.dtype(bool)], ("n", 3), np.dtype(bool)),
    (Tensor[np.ndarray, "n d", np.integer], ("n", "d"), np.integer),
    (Tensor[np.int64(3)], (3,), None),
])
def test_what_stands_between_the_brackets_is_said(made: Any, axes: Any, dtype: Any) -> None:
    assert made == Declaration(axes, dtype)
    assert copy.deepcopy(made) == made == pickle.loads(pickle.dumps(made))
    assert hash(made) == hash(Declaration(axes, dtype))
    assert eval(repr(made), {"Tensor": Tensor, "np": np}) == made


@pytest.mark.parametrize(("write", "said"), [
    (lambda: Tensor[3.5], "cannot take 3.5 for an axis"),
    (lambda: Tensor["n", True], "cannot take True for an axis"),
    (lambda: Tensor[-1], "cannot take -1 for an axis"),
    (lambda: Tensor["d+"], r"cannot take 'd\+' for an axis"),
    (lambda: Tensor["len(x)"], r"cannot take 'len\(x\)' for an axis"),
    (lambda: Tensor["n*0.5"], r"cannot take 'n\*0.5' for an axis"),
    (lambda: Tensor[np.float32, "n"], "cannot take <class 'numpy.float32'> for an axis"),
    (lambda: Tensor[np.float32], "says nothing of the axes"),
    (lambda: Tensor[np.ndarray], "says nothing of the axes"),
    (lambda: Tensor[..., "*b"], "has two places for any number of axes"),
])
def test_what_says_nothing_of_an_array_is_refused(write: Callable[[], Any], said: str) -> None:
    with pytest.raises(pyrelay.TypeMismatchError, match=said):
        write()


def test_python_takes_the_annotations_as_it_takes_others() -> None:
    @dataclass
    class Point:
        at: Tensor["n"]

    def f(x: Tensor["n"] | None, y: Optional[Tensor["n"]], z: Annotated[Any, Tensor["n"]]) -> (
        dict[str, Tensor["n"]]
    ):
        return {"x": x}

    hints = typing.get_type_hints(f, include_extras=True)
    assert hints["x"] == hints["y"] == Tensor["n"] | None == None | Tensor["n"]
    assert hints["z"] == Annotated[Any, Tensor["n"]]
    assert hints["return"] == dict[str, Tensor["n"]]
    assert typing.get_type_hints(Point) == {"at": Tensor["n"]}
    assert f("no array", 1, 2) == {"x": "no array"}
    assert Point("no array").at == "no array"


def of_jaxtypings(name: str, words: str) -> Any:
    """An annotation as jaxtyping makes it, as far as it is looked at."""
    meta = type("_MetaAbstractArray", (type,), {"__module__": "jaxtyping._array_types"})
    kind = type(name, (), {})
    return meta(f"{name}[ndarray, {words!r}]", (), {"dim_str": words, "dtype": kind})


@pytest.mark.parametrize(("name", "words", "axes", "dtype"), [
    ("Float", "n d", ("n", "d"), np.floating),
    ("Float32", "*b 3 n-1", ("*b", 3, "n-1"), np.dtype(np.float32)),
    ("Shaped", "... #n _x", ("...", "_", "_"), None),
    ("Int", "", (), np.signedinteger),
    ("Bool", "*#b n=3 ?k {size}", ("...", 3, "_", "_"), np.dtype(bool)),
    ("Complex128", "n", ("n",), np.dtype(complex)),
])
def test_annotations_of_jaxtyping_say_the_same(
    name: str, words: str, axes: Any, dtype: Any
) -> None:
    found = of_jaxtyping(of_jaxtypings(name, words))
    assert found is not None
    assert (found.axes, found.dtype) == (axes, dtype)
    assert repr(found) == f"{name}[..., {words!r}]"


def test_arguments_are_compared_with_annotations_of_jaxtyping() -> None:
    def f(x: Any, y: Any) -> Any:
        return x

    f.__annotations__ = {"x": of_jaxtypings("Float", "n"), "y": of_jaxtypings("Int", "n")}
    compiled = pyrelay.jit(f)
    assert compiled(np.ones(3), np.ones(3, int)).shape == (3,)
    with pytest.raises(pyrelay.ShapeError, match=r"y of f .* Int\[\.\.\., 'n'\], and n"):
        compiled(np.ones(3), np.ones(2, int))
    with pytest.raises(pyrelay.TypeMismatchError, match="its dtype is float64"):
        compiled(np.ones(3), np.ones(3))
