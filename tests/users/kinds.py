"""Numbers that are ints or floats, Python's or NumPy's, as the path taken says."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, 3.0, 2.0])


@use((1, 2.5), (0, 2.5), (0, np.float64(2.5)), (1, np.float64(2.5)), long=True)
def of_a_branch(c, y):
    x = 1 if c > 0 else y
    return x, -x, abs(x), x + 1, x * 2.0, x // 2, x**2, [x], {"x": x}


@use((X,), (-X,), (X[:0],), (np.array([1, 3]),), ([1.5, 2],), ([],))
def largest_above_nothing(x):
    best = 0
    for v in x:
        if v > best:
            best = v
    return best


@use((0,), (3,))
def halved(n):
    x = 8
    for _ in range(n):
        x = x / 2
    return x, f"{x}", str(x)


@use((2.5,), (-2.5,), (np.float32(2.5),), (np.float32(-2.5),), long=True)
def by_early_return(x):
    if x > 0:
        return x
    return 0


@use((2,), (5,), long=True)
def place_or_false(n):
    found = False
    for i in range(n):
        if i == 3:
            found = i
    return found, isinstance(found, bool), type(found).__name__


@use((1,), (0,), long=True)
def said_while_it_runs(c):
    x = 3 if c > 0 else 0.5
    print(x, x + 1)
    if x < 1:
        raise ValueError(f"{x} is too small", x)
    return repr(x), isinstance(x, float), isinstance(x, (int, float))


@use((1, 0.0), (1, 2.0), (0, 2.0), long=True)
def zero_of_either(c, y):
    x = 0 if c > 0 else np.float64(y)
    return 1 // x if y > 1.0 else 1 / x


@use((20.0, 0), (20.0, 1), (20.0, 5), wrt=(), long=True)
def bisected(x, n):
    low, high = 0, 10
    for _ in range(n):
        middle = (low + high) / 2
        if middle * middle < x:
            low = middle
        else:
            high = middle
    return low, high


@use((X, 1.5), (X, 9.0), (X, 1.0), wrt=(0,), long=True, corners=(2,))
def sum_of_some(x, least):
    total = 0
    for v in x:
        if v > least:
            total += v * v
    return total


BYTES, SHORT, LONG = np.array([250, 3], "u1"), np.array([-7, 7], "i2"), np.array([2**63, 0], "u8")


@use((BYTES, SHORT, LONG, 300), (BYTES, SHORT, LONG, -1))
def whole_numbers_beside_larger_ones_of_python(few, short, long, n):
    compared = few < n, n >= short, short != n, few == n, long > -1, long == -5, -(2**40) < short
    return compared, [k for k in (-1, 3, 70000) if short[0] < k], few[0] > 4294967295


@use((np.array([2.0, 1.0]),), long=True)
def complex_numbers_of_python(x):
    z = 1j * x[0]
    z += x[1]
    made = np.ndarray((2,), dtype=int)
    made[:] = 3
    return z, z ** x[1], x[0] * 1j, -1j / x[0], type(z) is complex, made


@use((X, 0), (X, 2), wrt=(0,))
def sums_of_none(x, n):
    items = []
    for i in range(n):
        items.append(float(x[i]))
    return sum(x[:n] * x[:n]), sum(items), sum(items, 0.0), sum(items, 5), f"{sum(items)}"


@use((1e200, 0.0), (1.5, 0.0), (float("inf"), 3.0), (float("nan"), -2.0))
def what_overflows_or_is_divided_by_nothing(x, y):
    said = []
    for k in range(8):
        try:
            match k:
                case 0:
                    said.append(x**2)
                case 1:
                    said.append(x**2.0 + y)
                case 2:
                    said.append(math.pow(x, 2))
                case 3:
                    said.append(math.pow(x, y - 4))
                case 4:
                    said.append(sum(divmod(x, y)))
                case 5:
                    said.append(float(math.isqrt(k - 3)))
                case 6:
                    said.append(math.fsum([x, -x, 1.0]))
                case _:
                    said.append(float(np.float64(x) ** 2))
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            print(k, error)
            said.append(-1.0)
    return said


@use((X, 2.0), (X, 9.0))
def a_variable_named_like_what_compilers_need(x, least):
    left_by_break = 0
    for v in x:
        left_by_break += 1
        if v > least:
            break
    else:
        return -1, left_by_break
    return v, left_by_break


SINGLES, FEW = np.array([0.25, 1.7, 0.1, -3.3], "f4"), np.array([100, 7, -3, 50], "i1")


@use((SINGLES, 0), (SINGLES, 1))
def of_fewer_digits_or_of_python(x, c):
    y = x[0] if c else 0.1
    found = y * x[1], y * 0.3, y < 0.1, y == 0.1, y + x, -y, abs(y), y // 0.03, y**2, np.sin(y)
    return y, found, str(y), [y, 2], y.real, isinstance(y, float), max(y, 0.2), float(y)


@use((FEW, 0, 77), (FEW, 1, 77))
def of_fewer_bits_or_of_python(x, c, n):
    y = x[0] if c else n
    return y, y + y, y * y, -y, ~y, y << 1, y & 3, y / 2, y % 3, y + x, y < 50, y == n, x[y % 2]


@use((SINGLES,), (SINGLES[:0],), (FEW,), (FEW[:0],), long=True)
def sums_of_these(x):
    total, mean, sums, largest = 0.0, 0, [], -np.inf
    for v in x:
        total += v
        mean = mean * 0.9 + v * 0.1
        sums.append(mean)
        if v > largest:
            largest = v
    return total, mean, sums, largest


@use((SINGLES, FEW, 0), (SINGLES, FEW, 1))
def of_two_types_of_numpy(x, n, c):
    y = x[1] if c else n[0]
    table = {k: v if k % 2 else 0.1 for k, v in enumerate(x)}
    return y, y + y, y * 2, y / 2, table, sum(table.values())


@use((3, np.int64(4), 0), (3, np.int64(4), 1))
def bits_and_truths_of_either(a, b, c):
    y = a if c else b
    return y << 1, y & 1, y | 4, y ^ 1, y < 4, y == a, y >= 4.0


@use((3, 2.5, 0), (3, 2.5, 1), (np.int64(3), 2.5, 1))
def functions_of_numpy_of_either(a, b, c):
    y = a if c else b
    return np.add(y, 1), np.square(y), np.sign(y), np.maximum(y, 2), np.sqrt(y), np.multiply(y, 2.0)


@use((-SINGLES - 7,), (SINGLES,), (FEW,), (FEW[:0],), long=True)
def greatest_and_least_from_numbers(x):
    first = second = -1
    least, held, far = 1e9, 0.1, 999999
    for v in x:
        if v > first:
            first, second = v, first
        elif v > second:
            second = v
        if v < least:
            least = v
        if v < held:
            held = v
        if v < far:
            far = v
    return first, second, least, held, far


@use((np.array([3.0, 4.0], np.float32),), (np.zeros(0, np.float32),), (np.ones(1),))
def arrays_by_their_length(x):
    squares = 0.0
    for i in range(len(x)):
        squares += x[i] * x[i]
    length = np.sqrt(squares)
    return length, x / (1e-6 + length)


@use((np.array([[1, 2], [3, 4]], np.int32),), (np.ones((2, 0), np.int32),))
def shares_of_a_total(x):
    total = 0
    for row in x:
        for v in row:
            total += v
    return total, x * total, total * 1.5


@use((np.array([0.1, 0.9, 0.2], np.float32),), (np.array([0.9], np.float32),))
def totals_that_end_before_they_begin(x):
    total = 0
    for v in x:
        if v > 0.5:
            break
        total += v
    return total
