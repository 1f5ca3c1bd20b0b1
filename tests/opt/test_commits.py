"""New contents of whole arrays of the caller's are there when the program raises."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from passes import after, core, ops
from test_stores import ended

import pyrelay
from pyrelay.ir.verify import verify
from pyrelay.opt.commits import commits, in_place
from pyrelay.opt.inline import inline

X = np.arange(1.0, 7.0)


def filled(x: Any, k: int) -> Any:
    x[:] = 0
    x += 1 // k


def scaled_in_rounds(x: Any, k: int) -> Any:
    for i in range(5):
        x *= 2
        x += 10 // (k - i)


def normalised(x: Any, k: int) -> Any:
    s = x.sum()
    x /= s
    q = 5 // k
    x *= s
    return q


def a_copy_read_later(x: Any, k: int) -> Any:
    y = x.copy()
    x[0] = 100
    return y + x + 5 // k


def a_value_read_later(x: Any, k: int) -> Any:
    y = x * 2
    x[:] = y
    q = 5 // k
    x += 1
    return y, q


def a_stencil(x: Any, k: int) -> Any:
    for i in range(4):
        x[1:-1] = x[1:-1] + 0.1 * (x[:-2] - 2 * x[1:-1] + x[2:])
        x[0] += 5 // (k - i)


def by_its_transpose(x: Any, k: int) -> Any:
    a = x.reshape(2, 3).T
    for i in range(3):
        a[i, 0] = 5 // (k - i)
        a *= 2


def sorted_then_turned(x: Any, k: int) -> Any:
    x[::-1].sort()
    q = 1 // k
    x[:] = x[::-1]
    return q


def on_one_path(x: Any, k: int) -> Any:
    if k > 1:
        x *= 2
    else:
        x[:] = np.where(x > 2, 0, x)
        x += 1 // k
    return 2 // (k - 1)


def _halved(x: Any) -> None:
    x /= 2


def by_a_helper(x: Any, k: int) -> Any:
    _halved(x)
    q = 1 // k
    _halved(x)
    return q // (k - 1)


def of_two(x: Any, k: int) -> Any:
    x[:3], x[3:] = x[3:].copy(), x[:3].copy()
    q = 1 // k
    x.fill(2.0)
    return np.ones(3)[k - 3 + q]


def replaced_at_the_end(x: Any, k: int) -> Any:
    x[0] = 7.0
    x *= 2
    q = 7 % (k - 1)
    x[:] = 0.0
    return q


def turned_then_partly(x: Any, k: int) -> Any:
    x[::-1] += 0
    x[2:5] += 1.0
    x[k % 3] = 7 % (k - 1)


def a_view_made_after_the_store(x: Any, k: int) -> Any:
    a = x.copy()
    a[1:-1] = 0.0
    return a, np.argsort(x.reshape(2, 3), axis=None)[-3:], x.reshape(3, 2) @ np.ones(2), 5 // k


def _stored(x: Any, k: int, i: int) -> None:
    if k > 0:
        x[i % 6] = 9 // (k - i)
        _stored(x, k - 1, i + 2)


def by_a_recursion_in_rounds(x: Any, k: int) -> Any:
    for i in range(3):
        _stored(x, k, i)
        x[i] = 7
    return x


PROGRAMS = (
    by_a_recursion_in_rounds,
    a_view_made_after_the_store, replaced_at_the_end, turned_then_partly, filled, scaled_in_rounds,
    normalised, a_copy_read_later, a_value_read_later, a_stencil,
    by_its_transpose, sorted_then_turned, on_one_path, by_a_helper, of_two,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_an_array_is_as_python_leaves_it(program: Any) -> None:
    jitted = pyrelay.jit(program)
    for k in (0, 1, 2, 9):
        plain = X.copy()
        given = copy.deepcopy(plain)
        mine, theirs = ended(jitted, (given, k)), ended(program, (plain, k))
        assert mine[0] == theirs[0]
        np.testing.assert_allclose(given, plain, rtol=1e-12)
        if mine[0] == "given":
            assert repr(mine) == repr(theirs)


def chain(x: Any) -> None:
    x *= 2
    x += 1
    x[:] = x / 3


def in_between(x: Any, k: int) -> None:
    x *= 2
    x += 1
    x /= 3 // k


def committed(program: Any, *args: Any) -> int:
    """How many contents of arrays a program's Core commits after the pass."""
    module = after(core(program, *args), inline, commits)
    verify(in_place(module), "optimise")
    return ops(module)["commit"]


def test_what_nobody_can_see_is_not_committed() -> None:
    assert committed(chain, X) == 0
    assert committed(in_between, X, 2) == 2  # the last one keeps the one before it


def test_what_a_recursion_gives_back_is_not_committed() -> None:
    code = str(pyrelay.jit(by_a_recursion_in_rounds).code(X.copy(), 1))
    assert "copy" not in code.split("# plan main(")[1].split("# plan ")[0]
    assert "stop_gradient" not in code


def test_an_argument_that_does_not_change_is_read_where_it_lies() -> None:
    def taken(x: Any, places: Any) -> Any:
        out = x.copy()
        for i in range(len(places)):
            out[places[i]] = x[i] + 1.0
        return out

    def moved(x: Any, places: Any) -> Any:
        old = x.copy()
        for i in range(len(places)):
            x[places[i]] = old[i] + 1.0
        return x.sum()

    for program, copies in ((taken, 0), (moved, 1)):
        places = np.array([3, 1, 0, 4])
        text = str(pyrelay.jit(program).code(X.copy(), places))
        assert text.count("launch stop_gradient_kernel") == copies
        for last in (4, 40):  # the second one raises
            places[-1] = last
            mine, theirs = X.copy(), X.copy()
            found, wanted = (
                ended(f, (x, places)) for f, x in ((pyrelay.jit(program), mine), (program, theirs))
            )
            assert found[0] == wanted[0]
            np.testing.assert_array_equal(found[1], wanted[1])
            np.testing.assert_array_equal(mine, theirs)
