"""Small functions at the edges of Python's meaning, with arguments; plain Python is the oracle."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.programs import Program

EDGES: list[Program] = []


def edge(*inputs: tuple[Any, ...], joins: bool = False) -> Callable[[Any], Any]:
    """Enter a function with tuples of arguments."""

    def enter(function: Any) -> Any:
        EDGES.append(Program(function.__name__, function, inputs, joins=joins))
        return function

    return enter


# -- loops -----------------------------------------------------------------------------------------


@edge((np.ones(3),), (np.ones(5),))
def raise_in_every_first_iteration(x):
    shape = ()
    for k in range(1):
        if x.shape[0] < 5:
            raise ValueError("too short")
        shape += (k + 5,)
    return x.reshape(shape)


@edge((5,), (0,))
def test_with_an_effect(n):
    a = np.zeros(3)

    def step():
        a[0] += 1
        return a[0] < n

    while step():
        a[1] += 2
    return a


@edge((5,))
def list_grows_while_the_test_is_known(n):
    xs = [0]
    while len(xs) < 4:
        xs.append(n)
    return xs


@edge((5,), (0,))
def list_of_as_many_items_as_an_argument_says(n):
    xs = []
    for i in range(n):
        xs.append(i * 2)
    return xs, sum(i * i for i in range(n))


@edge((np.arange(3.0),))
def list_of_array_items(x):
    xs = []
    for v in x:
        xs.append(v * 2)
    return np.array(xs)


@edge((10,), (1,))
def while_true(n):
    i = 0
    while True:
        i += 1
        if i % 2:
            continue
        if i > n:
            break
    return i


@edge((np.zeros(3), 3, 2.0))
def array_type_changes_in_the_first_iteration(y, n, x):
    total = np.zeros(2, np.int32)
    for _ in range(n):
        total = total + x
    return total


@edge((3,), (0,), joins=True)
def value_before_the_loop_is_none(n):
    last = None
    for i in range(n):
        last = i if last is None else last + i
    return last


# -- recursion -------------------------------------------------------------------------------------


@edge((np.arange(5.0), 3))
def recursive_closure_that_writes(x, n):
    total = [0]

    def go(k):
        if k == 0:
            return
        x[k] = 0.0
        total[0] += k
        go(k - 1)

    go(n)
    return total, x


@edge((10,), (0,))
def mutual_recursion_through_results(n):
    def female(k):
        return 1 if k == 0 else k - male(female(k - 1))

    def male(k):
        return 0 if k == 0 else k - female(male(k - 1))

    return female(n), male(n)


@edge((4,))
def hanoi(n, a="a", b="b", c="c"):
    if n == 0:
        return 0
    return hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)


@edge((np.arange(6.0) - 2.0, 2))
def recursion_with_two_results(x, depth):
    if depth == 0:
        return x.min(), x.max()
    a, b = recursion_with_two_results(x[: len(x) // 2], depth - 1)
    c, d = recursion_with_two_results(x[len(x) // 2 :], depth - 1)
    return min(a, c), max(b, d)


@edge((3,), (0,))
def recursion_that_may_give_none(n):
    if n == 0:
        return None
    rest = recursion_that_may_give_none(n - 1)
    return n if rest is None else rest + n


Node = collections.namedtuple("Node", "value left right")
LEAVES = Node(1.0, Node(2.0, None, None), Node(3.0, None, Node(4.0, None, None)))


@edge((LEAVES,))
def recursion_over_a_tree_of_tuples(tree):
    if tree is None:
        return 0.0
    left = recursion_over_a_tree_of_tuples(tree.left)
    return tree.value + left + recursion_over_a_tree_of_tuples(tree.right)


@edge(({"a": 1.0, "b": [2.0, {"c": 3.0}]},))
def recursion_over_dicts_and_lists(s):
    if isinstance(s, dict):
        return sum(recursion_over_dicts_and_lists(v) for v in s.values())
    if isinstance(s, list):
        total = 0.0
        for v in s:
            total += recursion_over_dicts_and_lists(v)
        return total
    return s


# -- numbers ---------------------------------------------------------------------------------------


@edge((np.float32(2), 3), (np.float64(2), 2), (2.0, 3))
def powers_of_scalars(x, n):
    return x**n, x * n, x + 1.5, n**2, x**0.5


@edge((7, 2), (-7, 3))
def bits(a, b):
    return a & b, a | b, a ^ b, a << b, a >> b, ~a


@edge((np.arange(10),), (np.arange(10) - 5,), (np.arange(5, dtype=np.int16),))
def integer_arrays(x):
    return x // 3, x % 3, x**2, x / 2, -x, x & 1, x.sum(), x.mean(), x.max(), x // -3


@edge((np.array([1, 2, 3], np.uint8),))
def small_unsigned(x):
    return x + 1, x * 2, x.sum(), x / 2, np.sqrt(x.astype(np.float32))


@edge((1e308,), (-1e308,))
def floats_overflow_to_infinity(x):
    return x * 10, -x * 10, x + x


@edge((2**62,), (-(2**62) - 1,))
def ints_do_not_wrap(x):
    return x + x


@edge((np.int32(2**31 - 1),))
def numpy_ints_wrap(x):
    return x + np.int32(1)


@edge((5, 3.7), (-5, -2.5))
def conversions(n, x):
    whole = int(x), round(x), math.floor(-x), math.ceil(x), math.trunc(x)
    return whole, float(n), bool(n), int(-x), round(x, 1), n / 2, n // 2, abs(-n)


@edge((np.nan, 1.0), (1.0, np.nan))
def comparisons_with_nan(a, b):
    return max(a, b), min(a, b), a == a, a != a, np.maximum(a, b), np.fmax(a, b), math.isnan(a)


@edge((True, False), (True, True))
def python_bools(a, b):
    return a + b, a & b, a and b, not a, a * 3, -a, a == 1, a < b


@edge((1 + 2j,), (-1j,))
def python_complex(z):
    return z * z, abs(z), z.real, z.imag, z == z, -z, z / 2, z**2, z.conjugate()


@edge((np.arange(3.0), 2.0), (np.arange(3), 2))
def selections(x, c):
    chosen = np.select([x < 1, x < 2], [x * 10, x * 20], 0.0)
    return np.where(x > c, x, -x), chosen, np.clip(x, 0.5, 1.5), np.clip(x, None, 1)


# -- containers ------------------------------------------------------------------------------------


@edge((np.arange(4.0), 1), (np.arange(4.0), -1), (np.arange(4.0), 5))
def tuple_indexed_at_run_time(x, i):
    t = (x, x * 2, x * 3)
    return t[i]


@edge((2,), (-1,))
def list_of_strings_indexed_by_an_argument(i):
    names = ["a", "b", "c"]
    return names[i]


@edge((3,))
def dict_changes_in_a_loop(n):
    d = {"a": 1, "b": 2}
    for k in d:
        d[k] = d[k] * n
    for _, v in d.items():
        n += v
    return d, n, "a" in d, len(d), list(d.values())


@edge((np.arange(3.0),))
def items_removed_and_replaced(x):
    d = {"a": x, "b": 2}
    v = d.pop("b")
    del d["a"]
    xs = [1, 2, 3]
    xs.pop()
    xs.insert(0, 5)
    xs[1:2] = [8, 9]
    return d, v, xs


@edge((np.arange(6.0),))
def starred_unpacking(x):
    a, *b, c = x[:4]
    return a, b, c


@edge((3,))
def closures_bind_late_and_defaults_early(n):
    late, early = [], []
    for k in range(3):
        late.append(lambda x: x + k)
        early.append(lambda x, k=k: x + k)
    return [f(n) for f in late], [f(n) for f in early]


@edge((3,))
def nonlocal_in_a_comprehension(n):
    count = 0

    def following():
        nonlocal count
        count += n
        return count

    return [following() for _ in range(3)], count


# -- arrays ----------------------------------------------------------------------------------------


@edge((np.arange(12.0).reshape(3, 4),))
def writes_through_rows_and_slices(x):
    for row in x:
        row *= 2
    x[:, 1] += 100
    x[1:, ::2] = 0
    x[[0, 1], [1, 0]] = 7.0
    x[0, 0] += 1
    return x


SHARED = np.zeros(3)


@edge((np.arange(3.0),))
def reads_of_a_global_array(x):
    return SHARED + x


@edge((np.arange(24.0).reshape(2, 3, 4),))
def axes(x):
    reduced = x.sum((0, 2)), x.max(1), x.mean(-1, keepdims=True), x.argmax(1)
    moved = x.transpose(2, 0, 1), np.moveaxis(x, 0, -1), x.swapaxes(0, 1)
    return reduced, moved, np.cumsum(x, axis=1), np.flip(x, 1), np.roll(x, 1, axis=2)


@edge((np.arange(4.0).reshape(2, 2),))
def linear_algebra(a):
    products = a @ a.T, np.inner(a, a), np.vdot(a, a), np.tensordot(a, a, 1), np.kron(a[0], a[1])
    return products, np.linalg.norm(a), np.trace(a), np.diag(a), np.tril(a), np.triu(a, 1)


@edge((np.arange(3.0), np.arange(3.0)), (np.arange(3.0), np.arange(3.0) + 1))
def whole_array_comparisons(a, b):
    return np.allclose(a, b), np.array_equal(a, b), (a == b).all(), np.any(a > b), (a < b).sum()


@edge((np.arange(5.0),))
def iteration_over_an_array(x):
    return sum(v * v for v in x), sum(x), max(x), len(x), [float(v) for v in x]


@edge((np.array([3.0, 1.0, 2.0]), 2),)
def differences(x, n):
    return np.diff(x), x.ptp() if hasattr(x, "ptp") else np.ptp(x), np.cumprod(x), x.dot(x)


@edge((4,), (1,))
def shapes_of_new_arrays(n):
    made = np.zeros((n, 2)), np.ones((2, n), np.float32), np.arange(n, dtype=np.float32)
    return made, made[0].shape, made[1].dtype == np.float32, np.full(n, 2), np.arange(1, n, 2)


@edge((5,), (-5,))
def assertion(n):
    assert n > 0, f"must be positive, not {n}"
    return n


@edge((2.5,), (1.5,))
def formatted_message(x):
    if x > 2:
        raise ValueError(f"bad {x} and {x * 2}")
    return x
