"""Loops in two versions: which checks leave the first one, and that the choice is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    Assign,
    Body,
    Break,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Parameter,
    Store,
    While,
    statements,
)
from pyrelay.lower.passes.loop_versions import with_versions

LARGEST = 2**63 - 1


def number(value: int) -> Literal:
    return Literal(value, i64)


def store_at(index: Local, size: Local) -> Body:
    """Stores at an index after checking it."""
    outside = Local(bool_)
    return (
        Compute(outside, "greater_equal", (index, size)), Fail(outside, 0),
        Store(Parameter(ARRAY, 0, f64), index, Literal(1.0, f64), parallel=False),
    )  # fmt: skip


def checks(body: Body) -> int:
    return sum(isinstance(s, Fail) for s in statements(body))


def test_a_check_of_a_linear_index_leaves_one_version() -> None:
    size, index, place = Local(i64), Local(i64), Local(i64)
    body = (Compute(place, "add", (index, number(3))), *store_at(place, size))
    loop = For(index, number(0), size, body, program=True)
    *front, choice = with_versions((loop,))
    assert isinstance(choice, If)
    assert choice.then == (loop,)
    assert checks(choice.orelse) == 0
    assert all(isinstance(s, Compute) for s in front)


def test_a_check_in_a_branch_is_asked_at_the_ends_of_its_rounds() -> None:
    size, least, index, place, taken = (
        Local(i64), Local(i64), Local(i64), Local(i64), Local(bool_)
    )  # fmt: skip
    below = Local(bool_)
    inner = (
        Compute(place, "subtract", (index, least)), Compute(below, "less", (place, number(0))),
        Fail(below, 0), *store_at(place, size),
    )  # fmt: skip
    body = (Compute(taken, "less_equal", (least, index)), If(taken, inner))
    *front, choice = with_versions((For(index, number(0), size, body, program=True),))
    assert isinstance(choice, If)
    assert checks(choice.orelse) == 0
    starts = [s for s in front if isinstance(s, Compute) and s.primitive == "maximum"]
    assert starts[0].args[1] is least


def test_a_check_of_something_loaded_stays() -> None:
    size, index, place = Local(i64), Local(i64), Local(i64)
    # Bound outside of the arithmetic that is followed.
    body = (Compute(place, "floor_divide", (index, number(3))), *store_at(place, size))
    loop = For(index, number(0), size, body, program=True)
    assert with_versions((loop,)) == (loop,)


def test_a_loop_that_goes_through_an_array_has_no_more_rounds_than_it() -> None:
    for start, ends in ((0, True), (-5, False)):
        size, count, index, beyond = Local(i64), Local(i64), Local(i64), Local(bool_)
        body = (Compute(beyond, "greater_equal", (index, size)), Fail(beyond, 0))
        loop = For(index, number(start), count, body, program=True, bounded=False)
        *_, choice = with_versions((loop,), extents={size})
        assert isinstance(choice, If)
        (inside,) = choice.orelse
        assert isinstance(inside, For)
        assert inside.bounded is ends


def test_a_few_rounds_do_not_pay_for_two_versions() -> None:
    size, index = Local(i64), Local(i64)
    loop = For(index, number(0), number(3), store_at(index, size), program=True)
    assert with_versions((loop,)) == (loop,)


def test_a_while_loop_over_a_counter_is_counted() -> None:
    size, counter = Local(i64), Local(i64, variable=True)
    less, stop, following, overflows = Local(bool_), Local(bool_), Local(i64), Local(bool_)
    loop = While((
        Compute(less, "less", (counter, size)), Compute(stop, "logical_not", (less,)), Break(stop),
        *store_at(counter, size),
        Compute(following, "add", (counter, number(2))),
        Compute(overflows, "add_overflows", (counter, number(2))), Fail(overflows, 1),
        Assign(counter, following),
    ))  # fmt: skip
    *_, choice = with_versions((loop,))
    assert isinstance(choice, If)
    (counted,) = choice.orelse
    assert isinstance(counted, For)
    assert checks((counted,)) == 0


# -- whole programs ------------------------------------------------------------------------------


def shifted(x: Any, n: int, k: int) -> Any:
    for i in range(n):
        x[i + k] = x[i] + 1.0
    return x


def strided(x: Any, n: int, k: int) -> Any:
    i = 0
    while i <= n:
        x[i] += 1.0
        i += k
    return x, i


def packed(x: Any, n: int, k: int) -> Any:
    count = 0
    out = np.zeros(n)
    for v in x:
        if v > 0.0:
            out[count] = v
            count += 1
        elif v < -0.9:
            count += 2
    return out, count


def taken_in_turn(x: Any, n: int, k: int) -> Any:
    # Not a counter: what is added to one of the two is added to the other.
    a, b = 0, k
    total = 0.0
    for _ in range(n):
        total += x[a]
        a, b = b, a + 1
    return total, a, b


def descending(x: Any, n: int, k: int) -> Any:
    for i in range(n - 1, -1, -1):
        x[i - k] = 2.0 * i
    return x


def product_of_indices(x: Any, n: int, k: int) -> Any:
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += x[i * k + j]
    return total


def stopped(x: Any, n: int, k: int) -> Any:
    for i in range(n):
        if x[i] > 2.0:
            break
        x[i * k] = 3.0
    return x


def large(x: Any, n: int, k: int) -> Any:
    total = 0
    for i in range(n):
        total += i * k
    return total


def behind(x: Any, n: int, k: int) -> Any:
    """Indices that are inside where a branch is taken, and would be outside elsewhere."""
    for i in range(n):
        if k <= i:
            x[i % 12] += x[i - k]
        elif i < k - 2:
            x[k - 3 - i] += 1.0
        if not i > 2 * k and i >= 3:
            x[2 * k - i] *= 0.5
    return x


def at_most(x: Any, n: int, k: int) -> Any:
    for i in range(n):
        if i < k:
            if i >= 1:
                x[k - i] += x[i - 1]
        else:
            x[i - k] -= x[11 - i]
    return x


ARGUMENTS = [(6, 0), (6, 1), (6, 2), (6, -1), (9, 1), (0, 1), (12, 3), (3, -20), (20, 4)]


def outcome(f: Callable[..., Any], x: Any, n: int, k: int) -> Any:
    try:
        return f(x, n, k)
    except IndexError as error:
        return str(error)


def listed(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(
    "f",
    [shifted, packed, taken_in_turn, descending, product_of_indices, stopped, large, behind,
     at_most],
    ids=lambda f: f.__name__,
)
def test_both_versions_do_what_python_does(f: Callable[..., Any]) -> None:
    fast = pyrelay.jit(f)
    for n, k in ARGUMENTS:
        ours, theirs = np.sin(np.arange(12.0) * 1.7), np.sin(np.arange(12.0) * 1.7)
        got, expected = outcome(fast, ours, n, k), outcome(f, theirs, n, k)
        np.testing.assert_array_equal(ours, theirs)  # what was stored before a failure stays
        if isinstance(expected, str):
            assert got == expected
        else:
            for a, b in zip(listed(got), listed(expected), strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_while_loop_ends_where_python_ends_it() -> None:
    fast = pyrelay.jit(strided)
    for n, k in [(11, 1), (11, 3), (10, 7), (-1, 2), (12, 1), (5, LARGEST - 3), (0, 1)]:
        ours, theirs = np.zeros(12), np.zeros(12)
        got, expected = outcome(fast, ours, n, k), outcome(strided, theirs, n, k)
        np.testing.assert_array_equal(ours, theirs)
        assert str(got) == str(expected)


def test_an_overflow_in_the_last_round_is_still_an_error() -> None:
    fast = pyrelay.jit(large)
    assert fast(np.zeros(1), 3, LARGEST // 3) == large(np.zeros(1), 3, LARGEST // 3)
    with pytest.raises(OverflowError):
        fast(np.zeros(1), 4, LARGEST // 3)


def congruence(state: int, n: int) -> Any:
    total = 0
    for k in range(n):
        state = (16807 * state + 12345) % 2147483647
        low = state & 0xFFFF
        total += (65539 * low + k) % 7
    return state, total


def test_remainders_bound_what_is_made_of_them() -> None:
    fast = pyrelay.jit(congruence)
    for state in (0, 42, -3, 2**31 - 1, 2**31, 2**32, -(2**32), 2**60):
        assert fast(state, 100) == congruence(state, 100)
    short = fast.code(1, 9)
    assert "multiply_overflows" not in short[short.rindex("else:") :]


def test_an_inner_loop_over_checked_indices_loses_its_checks() -> None:
    text = pyrelay.jit(shifted).code(np.zeros(5), 3, 1)
    short = text[text.rindex("else:") :]
    assert "store_ordered_f64(" in short
    assert "return 1" not in short


def test_counters_without_a_certain_end_stay_where_they_began() -> None:
    def common(x: Any, starts: Any) -> Any:
        out = np.zeros((len(starts), 2), dtype=np.int64)
        for i in range(len(starts)):
            a, b = starts[i, 0], starts[i, 1]
            while a < len(x) and b < len(x) and x[a] == x[b]:
                a += 1
                b += 1
            out[i, 0], out[i, 1] = a, b
            k = starts[i, 0]
            while k >= 0 and x[k - 1] >= x[k]:
                k -= 2
            out[i, 1] += 100 * k
        return out

    compiled = pyrelay.jit(common)
    x = np.array([1, 1, 1, 2, 1, 1, 1, 2, 0, 1, 1], dtype=np.int64)
    starts = np.array([[0, 4], [4, 0], [-11, -7], [-3, 8], [9, -2], [10, 10], [3, 3], [7, 3]])
    np.testing.assert_array_equal(compiled(x, starts), common(x, starts))
    text = str(compiled.code(x, starts))
    assert text.count("while True:") == 4  # each loop in two versions
    for wrong in ([-12, 0], [0, -12], [12, 0], [11, 0]):
        with pytest.raises(IndexError) as raised:
            common(x, np.array([wrong]))
        with pytest.raises(IndexError, match=str(raised.value)):
            compiled(x, np.array([wrong]))


def test_counters_that_start_far_from_zero_may_wrap_around() -> None:
    """A sum of 64-bit elements does; it must not be taken for one that cannot."""
    index, place, grown = Local(i64, variable=True), Local(i64), Local(i64)
    size, below, outside = Local(i64), Local(bool_), Local(bool_)
    body: Body = (
        Compute(place, "add", (index, size)),
        Compute(below, "less", (place, number(0))), Fail(below, 0),
        Compute(outside, "equal", (place, number(7))), Break(outside),
        Compute(grown, "add", (index, number(1))), Assign(index, grown),
    )  # fmt: skip
    *front, choice = with_versions((While(body),))
    assert isinstance(choice, If)
    assert checks(choice.orelse) == 0
    asked = {s.primitive for s in front if isinstance(s, Compute)}
    assert {"add_overflows", "less", "greater"} <= asked
    far = Compute(grown, "add", (index, number(17)))
    loop = While((*body[:-2], far, body[-1]))
    assert with_versions((loop,)) == (loop,)


def matching(x: Any, i: int, j: int) -> int:
    k = 0
    while i < x.size and j < x.size and x[i] == x[j]:
        i += 1
        j += 1
        k += 1
    return k


def test_what_counts_from_no_end_is_not_asked_whether_it_is_far_below_too() -> None:
    x = np.array([3, 1, 4, 1, 5, 3, 1, 4, 2])
    compiled = pyrelay.jit(matching)
    text = compiled.code(x, 0, 5)
    front = [line for line in text.splitlines() if " if logical_or(" in line]
    assert front
    assert all(line.count(" < ") == line.count(" < 0") for line in front)
    for i, j in [(0, 5), (1, 3), (5, 0), (0, 0), (8, 9), (-9, 5), (-4, 0), (-9, -4)]:
        assert compiled(x, i, j) == matching(x, i, j)
    for i, j in [(-10, 0), (2, -20)]:
        for each in (matching, compiled):
            with pytest.raises(IndexError):
                each(x, i, j)


def rows_of_few(starts: Any, places: Any, values: Any, x: Any) -> Any:
    out = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += values[p] * x[places[p]]
        out[i] = total
    return out


def test_each_side_of_a_check_is_asked_at_one_end_and_rounds_over_an_array_need_no_blocks() -> None:
    starts, places = np.array([0, 2, 2, 5, 6]), np.array([0, 3, 1, 2, 3, 0])
    values, x = np.arange(6.0), np.array([1.0, 10.0, 100.0, 1000.0])
    compiled = pyrelay.jit(rows_of_few)
    lines = compiled.code(starts, places, values, x).splitlines()
    (front,) = (line for line in lines if " if logical_or(" in line)
    assert front.count(" < ") == 1
    assert front.count(" >= ") == 2
    assert sum(" for start" in line for line in lines) == 1  # of the version with all checks
    np.testing.assert_array_equal(
        compiled(starts, places, values, x), rows_of_few(starts, places, values, x)
    )
    backwards = np.array([4, 0, 3, -2, 0, -6, -4])  # no rounds, and places from the end
    np.testing.assert_array_equal(
        compiled(backwards, places, values, x), rows_of_few(backwards, places, values, x)
    )
    for wrong in ([0, 7], [-7, 2], [5, 2**62], [-(2**63), -(2**63) + 2]):
        for each in (rows_of_few, compiled):
            with pytest.raises(IndexError):
                each(np.array(wrong), places, values, x)
    empty = np.array([2**62, -(2**62), 3])
    with pytest.raises(IndexError):
        compiled(empty, places, values, x)


def falling(x: Any, n: Any, shift: Any) -> Any:
    total = 0.0
    for i in range(n):
        total = 0.5 * total + x[shift - 2 * i]
    return total


def apart(x: Any, n: Any, shift: Any) -> Any:
    total = 0.0
    k = shift
    for i in range(n):
        total = 0.5 * total + x[k - i] + x[shift - i + 3]
        k += 2
    return total


@pytest.mark.parametrize("program", [falling, apart])
@pytest.mark.parametrize("shift", [0, 3, 6, 9, 12, -1, -5, -30])
def test_what_falls_is_asked_at_the_other_end(program: Any, shift: int) -> None:
    x, compiled = np.arange(10.0) + 1.0, pyrelay.jit(program)
    for n in range(9):
        try:
            wanted = program(x, n, shift)
        except IndexError:
            with pytest.raises(IndexError):
                compiled(x, n, shift)
        else:
            assert compiled(x, n, shift) == wanted
