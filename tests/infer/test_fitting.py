"""Arguments and results are compared with what annotations say of arrays, before compiling."""

# ruff: noqa: F722, F821, UP045

import dataclasses
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, Optional, TypedDict

import numpy as np
import pytest

import pyrelay
from pyrelay import ShapeError, Tensor, TypeMismatchError

ONE = np.float32(1.0)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


def layer(x: Tensor["n", "d"], w: Tensor["d", 4, np.float32]) -> Tensor["n", 4]:
    return x @ w


def total(x: Tensor["n"], y: Tensor["n"]) -> Tensor[(), np.floating]:
    return (x * y).sum()


def longer(x: Tensor["n"]) -> Tensor["n+1"]:
    return np.concatenate([x, x[:1]])


def pairs(x: Tensor["2*n"], y: Tensor["n"]) -> Tensor["n"]:
    return x[::2] + y


def leading(x: Tensor["*b", "n"], y: Tensor["n", ...]) -> Tensor["*b"]:
    return x.sum(axis=-1) * y.sum()


def same(x: Tensor["*b", 2], y: Tensor["*b", 3]) -> float:
    return x.sum() + y.sum()


def middle(x: Tensor["n", ..., 3, int]) -> Tensor[..., int]:
    return x


@dataclasses.dataclass
class Weights:
    w: Tensor["d", "k"]
    b: Tensor["k"]


class Pair(NamedTuple):
    a: Tensor["n"]
    scale: float


class State(TypedDict):
    rate: float
    momentum: Tensor["n"]


def dense(p: Weights, x: Tensor["n", "d"]) -> Tensor["n", "k"]:
    return x @ p.w + p.b


def pair(p: Pair, s: State) -> Tensor["n"]:
    return p.a * p.scale + s["momentum"]


def structures(
    p: dict[str, Tensor["k", "k"]], q: list[Tensor["k"]], r: tuple[Tensor["k"], float],
    s: Optional[Tensor["k"]] = None, *rest: Tensor[2], **named: Tensor["k"],
) -> tuple[Tensor["k"], ...]:
    return p["a"] @ q[0], r[0] * r[1]


def either(x: Tensor["n"] | Tensor["n", 3] | float, y: Annotated[np.ndarray, Tensor["n"]]) -> None:
    y[0] = 1.0


def anything(x: Tensor["n"] | np.ndarray, y: int, z: "not a type") -> "nor here":
    return x * y


class Layer:
    w: Tensor["d", "k"]

    def __init__(self, w: Tensor["d", "k"]) -> None:
        self.w = w

    def __call__(self, x: Tensor["n", "d"]) -> Tensor["n", "k"]:
        return x @ self.w


def applied(layer: Layer, x: np.ndarray) -> np.ndarray:
    return layer(x)


def made(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return Layer(w)(x)


def inner(x: np.ndarray) -> np.ndarray:
    def rows(h: Tensor["n", 3]) -> Tensor["n"]:
        return h.sum(axis=1)

    return rows(x)


def items(x: Tensor["n"]) -> Iterator[float]:
    yield from x


def added(x: np.ndarray) -> float:
    return sum(items(x))


def powers(x: Tensor["n"], k: int) -> Tensor["n"]:
    return x if k == 0 else powers(x * 2.0, k - 1) + 1.0


def raising(x: Tensor["n"], bad: bool) -> Tensor["n"]:
    if bad:
        raise ValueError("bad")
    return x


def tried(x: np.ndarray, bad: bool) -> np.ndarray:
    try:
        return raising(x, bad)
    except ValueError:
        return x * 2.0


def positive(x: np.ndarray, y: np.ndarray) -> float:
    return total(x[x > 0.0], y)


SQUARE, TWO = {"a": ones(3, 3)}, (ones(3), 2.0)
WEIGHTS = Weights(ones(3, 4), ones(4))


@pytest.mark.parametrize(("function", "args"), [
    (layer, (ones(2, 3), np.ones((3, 4), np.float32))),
    (total, (ones(3), ones(3))), (longer, (ones(3),)), (pairs, (ones(6), ones(3))),
    (leading, (ones(2, 5, 3), ones(3, 7))), (leading, (ones(3), ones(3))),
    (same, (ones(4, 2), ones(4, 3))), (middle, (np.ones((2, 3), int),)),
    (middle, (np.ones((2, 5, 5, 3), int),)), (dense, (WEIGHTS, ones(2, 3))),
    (pair, (Pair(ones(3), 2.0), {"rate": 0.1, "momentum": ones(3)})),
    (structures, (SQUARE, [ones(3)], TWO)),
    (structures, (SQUARE, [ones(3)] * 40, TWO, None, ones(2))),
    (either, (ones(3), ones(3))), (either, (ones(2, 3), ones(2))), (either, (2.0, ones(2))),
    (anything, (ones(2, 2), 3, 4)), (applied, (Layer(ones(3, 4)), ones(2, 3))),
    (made, (ones(3, 4), ones(2, 3))), (inner, (ones(2, 3),)), (added, (ones(3),)),
    (powers, (ones(3), 4)), (tried, (ones(3), True)), (tried, (ones(3), False)),
    (positive, (np.array([1.0, -1.0, 2.0]), ones(2))),
])
def test_what_fits_is_computed_as_ever(function: Callable[..., Any], args: Any) -> None:
    got, wanted = pyrelay.jit(function)(*args), function(*args)
    np.testing.assert_equal(got, wanted)
    assert type(got) is type(wanted)


@pytest.mark.parametrize(("function", "args", "said"), [
    (layer, (ones(2, 3), np.ones((5, 4), np.float32)), "d is 3 by x and 5 by w"),
    (layer, (ones(2, 3), np.ones((3, 5), np.float32)), "its axis 1 is 5"),
    (layer, (ones(2, 3), ones(3, 4)), "its dtype is float64"),
    (layer, (ones(3), np.ones((3, 4), np.float32)), "it has 1 axis"),
    (layer, ([1.0], np.ones((3, 4), np.float32)), "it is a list"),
    (layer, (2.0, np.ones((3, 4), np.float32)), "it has 0 axes"),
    (total, (ones(3), ones(1)), "n is 3 by x and 1 by y"),
    (total, (ones(3), None), "it is None"),
    (total, (np.ones(3, int), np.ones(3, int)), r"the result of total .* its dtype is int64"),
    (pairs, (ones(7), ones(3)), r"2\*n is 6, but its axis 0 is 7"),
    (leading, (ones(2, 3), ones(4)), "n is 3 by x and 4 by y"),
    (same, (ones(4, 2), ones(4, 4, 3)), r"\*b is \(4\) by x and \(4, 4\) by y"),
    (same, (ones(2), ones(4, 3)), r"\*b is \(\) by x and \(4\) by y"),
    (middle, (np.ones(3, int),), "it has 1 axis"),
    (dense, (WEIGHTS, ones(2, 4)), r"d is 3 by p\.w and 4 by x"),
    (dense, (Weights(ones(3, 4), ones(1)), ones(2, 3)), r"p\.b of dense .* k is 4 by p\.w and 1"),
    (pair, (Pair(ones(3), 2.0), {"rate": 0.1, "momentum": ones(1)}), r"by s\['momentum'\]"),
    (structures, ({"a": ones(3, 2)}, [ones(3)], TWO), r"p\['a'\] .* k is both 3 and 2"),
    (structures, (SQUARE, [ones(3), ones(4)], TWO), r"4 by q\[1\]"),
    (structures, (SQUARE, [ones(3)] * 39 + [ones(4)], TWO), r"4 by q\[39\]"),
    (structures, (SQUARE, (ones(3),), TWO), "q of structures is declared as a list of arrays"),
    (structures, (SQUARE, [ones(3)], 2.0), "r of structures is declared as a tuple"),
    (structures, (SQUARE, [ones(3)], (ones(3),)), "a tuple of 2 items, and it has 1 item"),
    (structures, (SQUARE, {"q": ones(3)}, TWO), "q of structures is declared as a list of arrays"),
    (structures, (SQUARE, [ones(3)], TWO, ones(4)), "4 by s"),
    (structures, (SQUARE, [ones(3)], TWO, None, ones(2), ones(3)), r"rest\[1\] .* axis 0 is 3"),
    (either, (ones(2, 4), ones(2)), r"Tensor\['n', 3\], and its axis 1 is 4"),
    (either, (ones(2, 3), ones(3)), "n is 2 by x and 3 by y"),
    (applied, (Layer(ones(3, 4)), ones(2, 4)), r"x of __call__ .* d is 3 by self\.w and 4 by x"),
    (made, (ones(3), ones(2, 3)), "w of __init__ is declared"),
    (inner, (ones(2, 4),), "h of rows .* its axis 1 is 4"),
    (added, (ones(2, 4),), "x of items .* it has 2 axes"),
])
def test_what_does_not_fit_is_refused_by_name(
    function: Callable[..., Any], args: Any, said: str
) -> None:
    with pytest.raises((ShapeError, TypeMismatchError), match=said) as caught:
        pyrelay.jit(function)(*args)
    assert caught.value.span is not None
    assert "def " in caught.value.span.source.at(caught.value.span.line) or function is structures
    assert caught.value.hints


def test_arguments_by_name_are_compared_with_the_others() -> None:
    with pytest.raises(ShapeError, match=r"named\['z'\] .* k is 3 by p\['a'\] and 2 by named"):
        pyrelay.jit(structures)(SQUARE, [ones(3)], TWO, z=ones(2))


@pytest.mark.parametrize("derive", [
    pyrelay.grad, pyrelay.value_and_grad, pyrelay.jacobian, pyrelay.hessian, pyrelay.jit,
])
def test_derivatives_compare_as_the_function_does(derive: Callable[..., Any]) -> None:
    derived = derive(total)
    derived(ones(3), ones(3))
    with pytest.raises(ShapeError, match="n is 3 by x and 1 by y"):
        derived(ones(3), ones(1))


def test_vmap_compares_one_example() -> None:
    mapped = pyrelay.vmap(total)
    assert mapped(ones(5, 3), ones(5, 3)).tolist() == [3.0] * 5
    with pytest.raises(ShapeError, match="n is 3 by x and 2 by y"):
        mapped(ones(5, 3), ones(5, 2))


def test_extents_that_only_the_program_knows_are_compared_when_it_runs() -> None:
    compiled = pyrelay.jit(positive)
    assert compiled(ones(2), ones(2)) == 2.0
    with pytest.raises(ValueError, match=r"y of total is declared .* n is 1 by x and 2 by y"):
        compiled(np.array([1.0, -1.0]), ones(2))


def test_other_extents_run_the_same_program() -> None:
    compiled = pyrelay.jit(total)
    for n in (5, 6, 7):
        assert compiled(ones(n), ones(n)) == n
    assert compiled.cache_info().compilations == 1
    with pytest.raises(ShapeError, match="n is 5 by x and 6 by y"):
        compiled(ones(5), ones(6))
    assert compiled(ones(8), ones(8)) == 8.0
    assert compiled.cache_info().compilations == 1


def test_a_name_is_another_extent_in_another_call() -> None:
    @pyrelay.jit
    def both(x: np.ndarray, y: np.ndarray) -> float:
        return total(x, x) + total(y, y)

    assert both(ones(3), ones(4)) == 7.0


def test_a_name_that_no_axis_has_is_asked_for() -> None:
    def f(x: Tensor["n-1"]) -> float:
        return x.sum()

    with pytest.raises(TypeMismatchError, match="no axis is named n, of which n-1 is computed"):
        pyrelay.jit(f)(ones(3))


def test_what_is_chosen_when_the_program_runs_fits_in_each_case() -> None:
    def f(x: Tensor["n"], y: Tensor["m", "m"], flag: bool) -> Tensor["n"] | Tensor["k", "k"]:
        return x if flag else y

    compiled = pyrelay.jit(f)
    assert compiled(ones(2), ones(3, 3), True).shape == (2,)
    assert compiled(ones(2), ones(3, 3), False).shape == (3, 3)
