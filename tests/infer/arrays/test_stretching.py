"""Extents that only the running program knows are stretched where they are 1, as in NumPy."""

import numpy as np
import pytest

import pyrelay


def _beside(a, b):
    return a[a > 2] * 2 + b


def _both(a, b):
    return a[a > 2] + b[b > 0]


def _rows(a, b):
    kept = a[a > 2]
    return np.where(kept > 3, kept, b[b > 0]) * np.ones((2, 1)) + kept.sum()


def _squared(a, b):
    kept, other = a[a > 2], b[b > 0]
    return np.outer(kept, kept) - other


_A = ([1.0, 3, 4, 5], [1.0, 3, 1, 1], [1.0, 3, 3, 1], [1.0, 1, 1], [1.0, 3, 4, 5])
_B = ([1.0, 2, 3], [0.0, 0, 1], [1.0, 2, 0])


def _outcome(function, *args):
    try:
        return function(*map(np.array, args)).tolist()
    except ValueError:
        return ValueError


@pytest.mark.parametrize("function", [_beside, _both, _rows, _squared])
def test_calls_that_have_one_element_begin_again(function):
    compiled = pyrelay.jit(function)
    for a in _A:
        for b in _B:
            assert _outcome(compiled, a, b) == _outcome(function, a, b), (a, b)
    assert compiled.cache_info().compilations == 2


def test_programs_that_never_see_one_element_are_compiled_once():
    compiled = pyrelay.jit(_both)
    for a in ([1.0, 3, 4], [3.0, 4, 1], [5.0, 6]):
        assert compiled(np.array(a), np.array([1.0, 2])).tolist() == (
            _both(np.array(a), np.array([1.0, 2])).tolist()
        )
    assert compiled.cache_info().compilations == 1


def test_what_differs_otherwise_is_said_in_any_program():
    compiled = pyrelay.jit(_both)
    one, two, three = np.array([3.0]), np.array([3.0, 4]), np.array([1.0, 2, 3])
    text = "the extents 2 and 3 of the operands must be equal"
    with pytest.raises(ValueError, match=text):
        compiled(two, three)
    assert compiled(np.array([3.0, 0]), three).tolist() == _both(one, three).tolist()
    with pytest.raises(ValueError, match=text):
        compiled(two, three)


def test_the_derivative_sums_over_what_was_stretched():
    a, b = np.array([1.0, 3, 1]), np.array([1.0, 2, 3])
    gradient = pyrelay.grad(lambda a, b: (a[a > 2] * b[b > 0]).sum())
    assert gradient(a, b).tolist() == [0, 6, 0]


def test_a_call_that_writes_into_its_arguments_raises():
    def written(a, b):
        a[0] = 7.0
        return a[a > 8] + b[b > 0]

    with pytest.raises(ValueError, match="the extents 1 and 2 of the operands must be equal"):
        pyrelay.jit(written)(np.array([1.0, 9]), np.array([1.0, 2]))
