"""What a compiled function raises is what the Python function raises: class, arguments, text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config


class PlainError(Exception):
    """A class of the user's with Exception's own constructor."""


class CodedError(PlainError):
    """A class of the user's whose constructor makes its text."""

    def __init__(self, code: float, where: str, cause: object = None) -> None:
        super().__init__(f"code {code} at {where}")
        self.code, self.cause = code, cause


def text_with_a_number(x: Any) -> Any:
    if x > 3:
        raise PlainError(f"x is {x}, twice that {x + x}")
    return x


def arguments_of_a_constructor(x: Any) -> Any:
    if x > 3:
        raise CodedError(x, "here", None)
    return x


def a_number(x: Any) -> Any:
    if x > 3:
        raise PlainError(x)
    return x


def several_arguments(x: Any) -> Any:
    if x > 3:
        raise ValueError("got", x, "of", 3, True, f"({x})")
    return x


def a_key(x: Any) -> Any:
    if x > 3:
        raise KeyError(7)
    return x


def no_argument(x: Any) -> Any:
    if x > 3:
        raise PlainError
    return x


def an_empty_text(x: Any) -> Any:
    if x > 3:
        raise ValueError("")
    return x


def in_a_loop(x: Any) -> Any:
    total = x
    for i in range(10):
        total = total + x
        if total > 20:
            raise PlainError("round", i, f"sum {total}")
    return total


FUNCTIONS = (
    text_with_a_number, arguments_of_a_constructor, a_number, several_arguments, a_key, no_argument,
    an_empty_text, in_a_loop,
)  # fmt: skip
NUMBERS = (5, 5.5, True + 4.0, 5j.imag + 2, np.float32(5.1), np.float64(5.1), np.int8(7))


def _raised(function: Callable[..., Any], *args: Any) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function(*args)
    return caught.value


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("interpret", [False, True])
def test_exceptions_have_the_class_the_arguments_and_the_text_of_pythons(
    function: Callable[..., Any], interpret: bool
) -> None:
    with config.override(interpret=interpret):
        compiled = pyrelay.jit(function)
        for number in NUMBERS:
            got, wanted = _raised(compiled, number), _raised(function, number)
            assert type(got) is type(wanted)
            assert got.args == wanted.args
            assert list(map(type, got.args)) == list(map(type, wanted.args))
            assert str(got) == str(wanted)
            assert vars(wanted).items() <= vars(got).items()
        assert compiled(1) == function(1)


def test_a_class_defined_inside_a_function_can_be_raised_from_a_kernel() -> None:
    class LocalError(ValueError):
        pass

    @pyrelay.jit
    def first_negative(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            if x[i] < 0:
                raise LocalError(f"x[{i}] is negative")
            total += x[i]
        return total

    assert first_negative(np.array([1.0, 2.0])) == 3.0
    with pytest.raises(LocalError, match=r"x\[1\] is negative"):
        first_negative(np.array([1.0, -2.0]))


class MeasuredError(Exception):
    """A class of the user's with a keyword."""

    def __init__(self, code: int, *, data: Any = None) -> None:
        super().__init__(f"code {code}")
        self.data = data


def carries_anything(x: Any, k: int) -> Any:
    y = x * 2
    if k == 0:
        raise MeasuredError(k, data=y)
    if k == 1:
        raise ValueError(y)
    if k == 2:
        raise ValueError(f"bad {y} of {x.shape}", k, [y[0], k], {"k": k}) from KeyError(k)
    if k == 3:
        raise ValueError(*[k] * 20)
    if k == 4:
        raise MeasuredError(k) from None
    return x


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("interpret", [False, True])
def test_an_exception_carries_what_python_lets_it_carry(k: int, interpret: bool) -> None:
    x = np.array([1.0, 2.0])
    with config.override(interpret=interpret):
        compiled = pyrelay.jit(carries_anything)
        if k == 5:
            np.testing.assert_array_equal(compiled(x, k), x)
            return
        got, wanted = _raised(compiled, x, k), _raised(carries_anything, x, k)
    assert type(got) is type(wanted)
    assert repr(got.args) == repr(wanted.args)
    assert repr(getattr(got, "data", None)) == repr(getattr(wanted, "data", None))
    assert repr(got.__cause__) == repr(wanted.__cause__)


def test_the_message_of_an_assert_is_any_object() -> None:
    @pyrelay.jit
    def asserts(x: Any, k: int) -> Any:
        assert k != 6, f"{k} {x[0]:.1f} {x}"
        assert k != 7, (k, x.sum())
        assert k != 8
        return x

    x = np.array([1.0, 2.0])
    assert _raised(asserts, x, 6).args == ("6 1.0 [1. 2.]",)
    assert _raised(asserts, x, 7).args == ((7, 3.0),)
    assert _raised(asserts, x, 8).args == ()


def test_text_in_an_exception_shows_the_kind_of_its_numbers() -> None:
    def shows(x: Any) -> Any:
        if x > 3:
            raise ValueError(f"{x} {x!r} {x:.2f} {(x, x)}", str(x))
        return x

    compiled = pyrelay.jit(shows)
    for number in NUMBERS:
        assert _raised(compiled, number).args == _raised(shows, number).args


def bottomless(d: Any, n: int) -> Any:
    if n == 0:
        d["bottom"] = 1
        raise ValueError("bottom")
    d["n"] = n
    return bottomless(d, n - 1) + 1


def test_an_exception_says_when_writes_before_it_are_lost() -> None:
    given = {"n": 0}
    with pytest.raises(ValueError, match="bottom") as caught:
        pyrelay.jit(bottomless)(given, 3)
    lost = given != {"n": 1, "bottom": 1}
    assert lost == any("is lost" in note for note in getattr(caught.value, "__notes__", ()))
