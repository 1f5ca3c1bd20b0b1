"""Rounds of loops around chains of floats run side by side, with the numbers of one by one."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def product(a: Any, b: Any) -> Any:
    c = np.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = a.dtype.type(0)
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


def product_of_rows(a: Any, b: Any) -> Any:
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b.T[j, k]
            c[i, j] = s
    return c


def least_sums(a: Any, b: Any) -> Any:
    c = np.zeros((a.shape[0], b.shape[1]))
    at = np.zeros((a.shape[0], b.shape[1]), dtype=np.int64)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            least, where, strange = np.inf, -1, False
            for k in range(a.shape[1]):
                s = a[i, k] + b[k, j]
                if s < least:
                    least = s
                    where = k
                strange = strange or s != s
            c[i, j] = -1.0 if strange else least
            at[i, j] = where
    return c, at


def filtered(a: Any, b: Any) -> Any:
    rows, columns = a.shape[0] - 2, a.shape[1] - 8
    out = np.zeros((max(rows, 0), max(columns, 0)))
    last = 0.0
    for i in range(rows):
        for j in range(columns):
            s = 0.0
            for u in range(3):
                for v in range(9):
                    s += a[i + u, j + v] * 0.25 * (u + 2 * v)
            last = s + j
            out[i, j] = s
    return out, last


def densities(a: Any, b: Any) -> Any:
    x, q = a.ravel(), b.ravel()
    out = np.zeros(len(q))
    for i in range(len(q)):
        s = 0.0
        for j in range(len(x)):
            s += np.exp(-(q[i] - x[j]) ** 2)
        out[i] = s
    return out


def nearest(a: Any, b: Any) -> Any:
    out = np.zeros(a.shape[0], dtype=np.int64)
    for i in range(a.shape[0]):
        best, at = np.inf, 0
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += (a[i, k] - b[k, j]) ** 2
            if s < best:
                best, at = s, j
        out[i] = at
    return out


def likeliest(a: Any, b: Any) -> Any:
    """Each row of `best` from the one before."""
    n = a.shape[1]
    best = np.zeros((a.shape[0], n))
    total = 0.0
    for t in range(1, a.shape[0]):
        for j in range(n):
            most = -np.inf
            for i in range(n):
                if best[t - 1, i] + b[i, j] > most:
                    most = best[t - 1, i] + b[i, j]
            best[t, j] = most + a[t, j]
            total += most
    return best, total


FUNCTIONS = [product, product_of_rows, least_sums, filtered, densities, nearest, likeliest]


def same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        for f, w in zip(found, wanted, strict=True):
            same(f, w)
    else:
        np.testing.assert_array_equal(found, wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize("f", FUNCTIONS)
def test_every_number_of_rounds_gives_what_python_gives(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(0)
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 15, 16, 17, 19, 20, 31, 33]:
        a, b = rng.standard_normal((3, n)), rng.standard_normal((n, n))
        if f is likeliest and n == 0:
            continue
        if n > 4:
            a[1, 2] = np.nan
        wanted, found = f(a, b), compiled(a, b)
        if f is densities:  # exp differs from NumPy's in the last digit
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
        else:
            same(found, wanted)
    text = str(compiled.code(a, b)).rpartition("\ndef ")[2]  # the loops, behind what is turned
    assert "local_f64(" in text  # what is kept for each lane
    assert (" in lanes(" in text) == (f is not nearest)


def eroded(a: Any) -> Any:
    out = np.zeros_like(a)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            least = a[i, j]
            for u in range(-1, 2):
                for v in range(-1, 2):
                    if a[i + u, j + v] < least:
                        least = a[i + u, j + v]
            out[i, j] = least
    return out


def bells(a: Any) -> Any:
    out = np.zeros_like(a)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            s = 0.0
            for u in range(-1, 2):
                for v in range(-1, 2):
                    s += np.exp(-(a[i + u, j + v] * a[i, j]))
            out[i, j] = s
    return out


@pytest.mark.parametrize("f", [eroded, bells])
def test_few_rounds_with_little_to_do_are_no_chains(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    a = np.random.default_rng(4).standard_normal((6, 41))
    np.testing.assert_allclose(compiled(a), f(a), rtol=1e-14, atol=0)
    assert (" in lanes(" in str(compiled.code(a))) == (f is bells)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_are_as_many_as_vectors_hold(dtype: Any) -> None:
    compiled = pyrelay.jit(product)
    rng = np.random.default_rng(1)
    for inner, columns in [(1, 70), (2, 40), (3, 37), (40, 3), (9, 64), (0, 50), (5, 100)]:
        a = rng.standard_normal((4, inner)).astype(dtype)
        b = rng.standard_normal((inner, columns)).astype(dtype)
        same(compiled(a, b), product(a, b))
    width = 128 // np.dtype(dtype).itemsize
    assert f"lanes({width}, {np.dtype(dtype).itemsize})" in str(compiled.code(a, b))


def shifted(x: Any, rows: int, row: int, column: int, steps: int, slope: int) -> Any:
    """Stores to its own argument, somewhere before, at, or behind what it reads."""
    for i in range(3, rows - 3):
        for j in range(6, x.shape[1] - 12):
            s = 0.0
            for k in range(steps):
                s += x[i, j + slope * k]
            x[i + row, j + column] = s * 0.25
    return x


@pytest.mark.parametrize("row", [-1, 0, 1])
@pytest.mark.parametrize(
    "column", [-1, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (-5, 0, 2, 6))]
)
def test_what_a_round_stores_a_later_one_reads(row: int, column: int) -> None:
    def fixed(x: Any, slope: int) -> Any:
        for i in range(1, x.shape[0] - 1):
            for j in range(6, x.shape[1] - 12):
                s = 0.0
                for k in range(5):
                    for _ in range(2):
                        s += x[i, j + k] + x[i, j - k] * 0.5
                x[i + row, j + column] = s * 0.25 - slope
        return x

    compiled = pyrelay.jit(fixed)
    x = np.random.default_rng(2).standard_normal((6, 60))
    same(compiled(x.copy(), 1), fixed(x.copy(), 1))
    both = pyrelay.jit(shifted)
    for slope in (-1, 0, 1, 2):
        same(both(x.copy(), 6, row, column, 4, slope), shifted(x.copy(), 6, row, column, 4, slope))


def running(x: Any, n: int) -> Any:
    """Each element is made of those before."""
    for j in range(1, n):
        s = 0.0
        for k in range(len(x)):
            s += x[k] * 0.125
        x[j] = s
    return x


def carried(x: Any, n: int) -> Any:
    """What a round reads the one before has set."""
    start = 1.0
    for j in range(n):
        s = start
        for k in range(len(x)):
            s += x[k] * j
        start = s * 0.5
        x[j] += 1e-3 * s
    return x, start


def ended(x: Any, n: int) -> Any:
    out = np.zeros(len(x))
    for j in range(n):
        s = 0.0
        for k in range(len(x)):
            s += x[k] * (j + 1)
        if s > 40.0:
            break
        out[j] = s
    return out


@pytest.mark.parametrize("f", [running, carried, ended])
def test_rounds_that_hang_on_each_other_go_one_by_one(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    x = np.random.default_rng(3).random(40)
    same(compiled(x.copy(), 40), f(x.copy(), 40))
    assert " in lanes(" not in str(compiled.code(x, 40))


def columns_of_lines(x: Any, y: Any, line: Any) -> Any:
    for i in range(len(y)):
        for j in range(len(y)):
            s = 0.0
            for k in range(i):
                s += x[k * len(line) + j] * y[k]
            x[i * len(line) + j] -= s
    return x


@pytest.mark.parametrize("length", [7, 19, 20, 33])
def test_calls_are_asked_where_lines_may_overlap(length: int) -> None:
    compiled = pyrelay.jit(columns_of_lines)
    rng = np.random.default_rng(3)
    x, y, line = rng.random(20 * length + 20), rng.random(20), np.zeros(length)
    same(compiled(x.copy(), y, line), columns_of_lines(x.copy(), y, line))
    assert " in lanes(" in str(compiled.code(x, y, line))


def factors(a: Any) -> Any:
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[:j, j]) / a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


@pytest.mark.parametrize(("rows", "columns"), [(30, 30), (30, 41)])
def test_products_with_columns_run_side_by_side(rows: int, columns: int) -> None:
    compiled = pyrelay.jit(factors)
    a = np.random.default_rng(3).random((rows, columns)) + rows * np.eye(rows, columns)
    np.testing.assert_allclose(compiled(a.copy()), factors(a.copy()), rtol=1e-12)
    assert " in lanes(" in str(compiled.code(a))


def placed(x: Any, places: Any) -> Any:
    for j in range(len(places)):
        s = 0.0
        for k in range(len(x)):
            s += x[k] * j
        x[places[j]] = s
    return x


def placed_elsewhere(x: Any, places: Any) -> Any:
    out = np.zeros(len(x))
    for j in range(len(places)):
        s = 0.0
        for k in range(len(x)):
            s += x[k] * j
        out[places[j]] = s
    return out


@pytest.mark.parametrize("f", [placed, placed_elsewhere])
def test_a_round_that_fails_leaves_what_those_before_it_stored(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    x = np.random.default_rng(4).random(30)
    for wrong in (0, 3, 17, 29):
        places = np.random.default_rng(5).permutation(30)
        one, other = x.copy(), x.copy()
        same(compiled(one, places), f(other, places))
        same(one, other)
        places[wrong] = 30
        messages = []
        for function, array in ((f, other), (compiled, one)):
            with pytest.raises(IndexError) as caught:
                function(array, places)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        same(one, other)


def test_an_argument_that_is_given_twice_is_one_array() -> None:
    def into(a: Any, b: Any, c: Any) -> Any:
        for j in range(c.shape[0]):
            s = 0.0
            for k in range(a.shape[0]):
                s += a[k] * b[k, j]
            c[j] = s
        return c

    compiled = pyrelay.jit(into)
    b = np.random.default_rng(6).random((24, 24))
    for make in (lambda: (np.ones(24),) * 2, lambda: (np.ones(24), np.ones(24))):
        a, c = make()
        found = compiled(a, b, c)
        a, c = make()
        same(found, into(a, b, c))


def test_variables_hold_what_the_last_round_left() -> None:
    def left(x: Any, m: int) -> Any:
        s, count, most = -1.0, 0, 0.0
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[0]):
                s += x[k, j]
            while count < j // 2:
                count += 1
            most = max(most, s * count)
        return s, count, most

    compiled = pyrelay.jit(left)
    for n in (0, 1, 3, 4, 6, 16, 21, 32):
        x = np.random.default_rng(7).random((9, n))
        same(compiled(x, 3), left(x, 3))


def test_integers_along_rows_are_added_as_before() -> None:
    """LLVM adds integers in any order by itself."""

    def counts(x: Any) -> Any:
        out = np.zeros(x.shape[0], dtype=np.int64)
        for j in range(x.shape[0]):
            s = 0
            for k in range(x.shape[1]):
                s += x[j, k] * 3
            out[j] = s
        return out

    compiled = pyrelay.jit(counts)
    x = np.arange(600).reshape(20, 30)
    same(compiled(x), counts(x))
    assert " in lanes(" not in str(compiled.code(x))


def windowed(x: Any, w: Any, o: Any, first: int, rows: int, columns: int) -> Any:
    """Windows whose places the arguments tell: they may count from the end, or lie outside."""
    r = w.shape[0] // 2
    for i in range(first, rows):
        for j in range(first, columns):
            s = 0.0
            for u in range(-r, r + 1):
                for v in range(-r, r + 1):
                    s += x[i + u, j + v] * w[u + r, v + r]
            o[i, j] = s
    return o


@pytest.mark.parametrize("r", [0, 1, 2])
def test_checks_that_hold_at_all_ends_are_not_asked_in_lanes(r: int) -> None:
    compiled = pyrelay.jit(windowed)
    rng = np.random.default_rng(8)
    x, w = rng.random((12, 30)), rng.random((2 * r + 1, 2 * r + 1))
    for first in (0, r):  # places before the first row count from the end
        for rows, columns in [(12 - r, 30 - r), (12, 30), (13, 28), (9, 31), (5, r), (12, 40)]:
            outcomes = []
            for f in (windowed, compiled):
                o = np.zeros((12, 30))
                try:
                    f(x, w, o, first, rows, columns)
                    outcomes.append(("", o))
                except IndexError as error:
                    outcomes.append((str(error), o))
            assert outcomes[0][0] == outcomes[1][0]
            same(outcomes[1][1], outcomes[0][1])
    text = str(compiled.code(x, w, o, r, 12 - r, 30 - r))
    assert r == 0 or " in lanes(" in text  # a window of one element is no loop


def test_the_text_is_the_same_each_time() -> None:
    """Kernels are found again by their text."""
    a, b = np.ones((3, 20)), np.ones((20, 20))
    texts = {str(pyrelay.jit(f).code(a, b)) for f in [least_sums, nearest] for _ in range(4)}
    assert len(texts) == 2


def densities_at(x: Any, y: Any, out: Any) -> Any:
    """Checks in an inner loop."""
    n = len(x)
    for i in range(len(out)):
        s = 0.0
        for j in range(n):
            s += math.exp(x[j] * y[i])
        out[i] = s
    return out


def prices(x: Any, y: Any, out: Any) -> Any:
    """Several checks in a row, stores to an argument."""
    total = 0.0
    for i in range(len(out)):
        d = math.log(x[i]) + math.sqrt(y[i])
        out[i] = math.exp(d) * 0.5
        total += out[i]
    return total


def in_order(x: Any, y: Any, out: Any) -> Any:
    """A chain that begins behind what is computed side by side; the last round's numbers stay."""
    s, last = 1.0, 0.0
    for i in range(len(out)):
        last = math.exp(-x[i]) * math.log(y[i] + 1.5)
        s = s * 0.5 + last
        out[i] += s
    return s, last


def onto_itself(x: Any, y: Any, out: Any) -> Any:
    """Rounds that read what those before them stored."""
    for i in range(1, len(out)):
        out[i] = math.exp(out[i - 1] * 0.1) + math.sqrt(x[i])
    return out


def of_columns(x: Any, y: Any, out: Any) -> Any:
    """Elements that are no neighbours."""
    z = np.stack((x, y, x), axis=1)
    s = 0.0
    for i in range(len(out)):
        s += math.exp(-z[i, 0] * z[i, 1]) + math.sqrt(z[i, 2])
    return s


DOUBTED = (densities_at, prices, in_order, onto_itself, of_columns)


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except (ValueError, OverflowError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("f", DOUBTED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("bad", [math.nan, -2.0, -1e4, 1e6, 0.0])
def test_checks_of_floats_that_fail_end_the_round_that_they_ended(
    f: Callable[..., Any], bad: float
) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(5)
    for n in (3, 4, 16, 37):
        for place in {0, 2, n // 2, n - 1}:
            for which in range(3):
                arrays = [rng.random(n) + 0.1 for _ in range(3)]
                if which < 2:
                    arrays[which][place] = bad
                mine, theirs = ([a.copy() for a in arrays] for _ in range(2))
                found, wanted = outcome(compiled, *mine), outcome(f, *theirs)
                if isinstance(wanted, tuple) and isinstance(wanted[0], str):
                    assert found == wanted
                else:
                    np.testing.assert_allclose(found, wanted, rtol=1e-13)
                for a, b in zip(mine, theirs, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-13)


def test_checks_of_floats_do_not_keep_functions_from_being_vectors() -> None:
    x = np.linspace(0.1, 1.0, 40)
    for f in DOUBTED:
        text = str(pyrelay.jit(f).code(x, x, x.copy()))
        assert (" in lanes(16, 8)" in text) == (f is not onto_itself), f
        if f is not onto_itself:
            lanes = text.split(" in lanes(16, 8)")[-1].split("\n                for i")[0]
            assert "return" not in lanes.split("unlikely")[0]
    # What lies apart is fetched first: LLVM makes no vectors of a loop with distances in it.
    text = str(pyrelay.jit(of_columns).code(x, x, x))
    fetched = r"for i\d+ in range\(16\):\n(.*\n){1,3} +store_inner_f64\(c0, i\d+, load_f64"
    assert re.search(fetched, text)


def turned(x: Any, y: Any, out: Any) -> Any:
    """Angles that only a loop knows, sums of them in order, and of an angle for all."""
    s = 0.0
    for i in range(len(out)):
        s += math.sin(x[i]) * math.cos(y[i] - x[i]) + math.sin(y[0])
        out[i] = s
    return s


def polar(x: Any, y: Any, out: Any) -> Any:
    """What stands between checks of two functions is left to the rest of a round."""
    s = 0.0
    for i in range(len(out)):
        out[i] = math.hypot(x[i], y[i])
        s += math.atan2(y[i], x[i])
    return s + math.cos(s)


def waves(x: Any, y: Any, out: Any) -> Any:
    """Sums in an inner loop."""
    for i in range(len(out)):
        s = 0.0
        for j in range(len(x)):
            s += np.cos(x[j] * y[i])
        out[i] = s
    return out


ANGLES = (turned, waves, lambda x, y, out: np.sin(x) * y + np.cos(x), lambda x, y, out: np.sum(
    np.sin(np.outer(x, y)), axis=0), lambda x, y, out: np.tan(x) + y)  # fmt: skip


@pytest.mark.parametrize("f", [polar, *ANGLES])
@pytest.mark.parametrize("large", [1e5, -(2.0**19), 2.0**19 + 1, 1e22, math.nan, math.inf])
def test_large_angles_are_left_to_the_library(f: Callable[..., Any], large: float) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(7)
    for n in (1, 3, 4, 17, 37):
        for place in {0, n // 2, n - 1}:
            x, y = rng.uniform(-9, 9, n), rng.uniform(-9, 9, n)
            x[place] = large
            mine, theirs = np.zeros(n), np.zeros(n)
            with np.errstate(invalid="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                found, wanted = outcome(compiled, x, y, mine), outcome(f, x, y, theirs)
            if isinstance(wanted, tuple):
                assert found == wanted
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def test_sines_of_doubles_are_vectors() -> None:
    x = np.linspace(0.1, 1.0, 40)
    for f in ANGLES:
        text = str(pyrelay.jit(f).code(x, x, x.copy()))
        assert " in lanes(16, 8)" in text, text
        assert "near_" in text
    assert " in lanes(16, 8)" in str(pyrelay.jit(polar).code(x, x, x.copy()))
    single = x.astype(np.float32)  # those LLVM makes vectors of
    assert "near_" not in str(pyrelay.jit(ANGLES[2]).code(single, single, single))


def test_integers_that_hang_on_a_check_are_not_made_without_it() -> None:
    def picked(x: Any, table: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            s += math.exp(x[i]) * table[int(math.sqrt(x[i])) & 3]
        return s

    table = np.arange(4.0)
    for last in (2.0, -1.0, 1e300):
        x = np.linspace(0.0, 3.0, 40)
        x[-1] = last
        assert outcome(pyrelay.jit(picked), x, table) == outcome(picked, x, table)
    text = str(pyrelay.jit(picked).code(x, table))
    lanes = re.split(r"\n +for i\d+ in lanes\(16, 8\):", text)[1].split(" = False\n", 2)[1]
    assert "exp(" in lanes
    assert "i64(x" not in lanes
    assert "i64(x" in text


@pytest.mark.parametrize("size", [6, 16])
def test_short_products_by_columns_run_side_by_side(size: int) -> None:
    def by_columns(a: Any, x: Any) -> Any:
        for _ in range(5):
            x = x @ a
            x = x / np.sum(x)
        return x

    def by_rows(a: Any, x: Any) -> Any:
        for _ in range(5):
            x = a @ x
            x = x / np.sum(x)
        return x

    a, x = np.random.default_rng(6).random((size, size)), np.ones(size)
    for f in (by_columns, by_rows):
        np.testing.assert_allclose(pyrelay.jit(f)(a, x), f(a, x), rtol=1e-13)
        text = str(pyrelay.jit(f).code(a, x))
        assert (" in lanes(" in text) == (f is by_columns)


def test_sums_behind_an_angle_start_anew_in_each_row() -> None:
    def softmax(x: Any, a: Any) -> Any:
        e = np.exp(a * np.cos(x)[:, None])
        return e / e.sum(axis=1, keepdims=True)

    def sums(x: Any, a: Any) -> Any:
        total = (a * np.sin(x)[:, None]).sum(axis=1)
        return np.sum(total - a.T, axis=0)

    rng = np.random.default_rng(8)
    for n in (1, 3, 4, 17, 37):
        x, a = rng.random(n), rng.random((n, 5))
        np.testing.assert_allclose(pyrelay.jit(softmax)(x, a), softmax(x, a), rtol=1e-12)
        np.testing.assert_allclose(pyrelay.jit(sums)(x, a), sums(x, a), rtol=1e-12)
    assert "near_cos" in str(pyrelay.jit(softmax).code(x, a))


def test_sums_of_integers_and_truths_down_columns_run_side_by_side() -> None:
    def columns(a: Any) -> Any:
        out = np.zeros(a.shape[1], dtype=np.int64)
        for j in range(a.shape[1]):
            s = 0
            for i in range(a.shape[0]):
                s += a[i, j]
            out[j] = s
        return out

    def reached(near: Any) -> Any:
        out = np.zeros(near.shape[1], dtype=np.bool_)
        for j in range(near.shape[1]):
            found = False
            for i in range(near.shape[0]):
                found |= near[i, j]
            out[j] = found
        return out

    rng = np.random.default_rng(9)
    for n in (1, 3, 8, 21, 40):
        a, near = rng.integers(-99, 99, (5, n)), rng.random((n, n)) < 1.5 / n
        np.testing.assert_array_equal(pyrelay.jit(columns)(a), columns(a))
        np.testing.assert_array_equal(pyrelay.jit(reached)(near), reached(near))
    assert " in lanes(" in str(pyrelay.jit(columns).code(a))
    assert " in lanes(" in str(pyrelay.jit(reached).code(near))


def test_what_is_left_of_lanes_that_read_far_apart_goes_one_by_one() -> None:
    def nearest(x: Any, centres: Any) -> Any:
        out = np.zeros(len(x), np.int64)
        for i in range(len(x)):
            best = np.inf
            for c in range(len(centres)):
                s = 0.0
                for j in range(x.shape[1]):
                    s += (x[i, j] - centres[c, j]) ** 2
                if s < best:
                    best, out[i] = s, c
        return out

    compiled, rng = pyrelay.jit(nearest), np.random.default_rng(2)
    for count in (1, 3, 7, 8, 9, 15, 16, 21):
        for size in (1, 2, 3, 10):
            x, centres = rng.random((6, size)), rng.random((count, size))
            same(compiled(x, centres), nearest(x, centres))
    text = str(compiled.code(x, centres))
    assert "range(8)" in text
    assert "range(4)" not in text
    assert "SHORT_ROWS" not in text
