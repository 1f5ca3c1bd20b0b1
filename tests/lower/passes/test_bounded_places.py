"""Places by remainders and by bits are checked in front of the loop that goes to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def flipped(x: Any, n: int) -> Any:
    """Sums over supersets: places by one more bit."""
    y = x.copy()
    for i in range(n):
        bit = 1 << i
        for m in range(1 << n):
            if not m & bit:
                y[m] += y[m | bit]
    return y


def downwards(x: Any, first: int) -> Any:
    """Bits of a counter that falls."""
    y, k = x.copy(), first
    for i in range(len(x)):
        y[i] += y[k ^ 5]
        k -= 1
    return y


def lowest(x: Any) -> Any:
    y = x.copy()
    for m in range(1, len(x)):
        y[m] += y[m ^ (m & -m)]
    return y


def around(x: Any, n: int) -> Any:
    """A ring of as many elements as the caller says."""
    total = 0.0
    for k in range(n):
        total += x[(k + 1) % n] * x[(k - 1) % n]
    return total


def by_three(x: Any, n: int, by: int) -> Any:
    total = 0.0
    for k in range(n):
        total += x[(3 * k - 7) % by]
    return total


def bits(x: Any, n: int) -> int:
    """Shifts by up to as many bits as the caller says."""
    total = 0
    for m in x:
        for i in range(n):
            total += (int(m) >> i) & 1
    return total


def looked_up(x: Any, image: Any) -> Any:
    out = np.zeros(image.shape)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = x[image[i, j]]
    return out


_X = np.arange(16.0)
_IMAGE = np.array([[0, 255, 7], [3, 99, 254]], np.uint8)
CASES: list[tuple[Callable[..., Any], list[Any]]] = [
    (flipped, [(_X, 4), (_X, 3), (_X[:15], 4), (_X, 0), (_X, 5)]),
    (downwards, [(_X, 15), (_X, 19), (_X, 8), (_X[:13], 12), (_X, -1)]),
    (lowest, [(_X,), (_X[:11],), (_X[:1],)]),
    (around, [(_X, 16), (_X, 9), (_X, 17), (_X, 1), (_X, 0)]),
    (by_three, [(_X, 9, 16), (_X, 9, 17), (_X, 9, -16), (_X, 9, -17), (_X, 0, 0), (_X, 9, 0)]),
    (looked_up, [(np.arange(256.0), _IMAGE), (np.arange(255.0), _IMAGE), (_X[:0], _IMAGE[:0])]),
    (bits, [(np.array([5, -9, 2**62]), n) for n in (0, 5, 63, 64, 70)]),
]


def _outcome(f: Callable[..., Any], args: Any) -> Any:
    try:
        return f(*args)
    except (IndexError, ValueError, ZeroDivisionError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize(("function", "cases"), CASES, ids=lambda f: getattr(f, "__name__", ""))
def test_programs_do_what_python_does(function: Callable[..., Any], cases: Any) -> None:
    compiled = pyrelay.jit(function)
    for args in cases:
        wanted, found = _outcome(function, args), _outcome(compiled, args)
        if isinstance(wanted, tuple):
            assert isinstance(found, tuple)
            assert found[0] == wanted[0]
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("function", "args"),
    [(flipped, (_X, 4)), (lowest, (_X,)), (around, (_X, 9)), (looked_up, (_X, _IMAGE))],
)
def test_one_version_of_the_loop_has_no_checks(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    code = str(pyrelay.jit(function).code(*args))
    loops = code.split("for i")[1:]
    assert any("[" not in loop and "unlikely" not in loop.split("else")[0] for loop in loops)
