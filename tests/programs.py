"""The corpus: plain Python functions with arguments, on which every stage is tried.

Each entry is a `Program`: a function, several tuples of arguments, and the positions of arguments
with respect to which it is differentiated (none where a derivative says nothing). Plain Python is
the oracle: values, dtypes, the kind of every scalar, exceptions and what happens to the arguments.
"""

from __future__ import annotations

import collections
import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """A function of the corpus. `arguments()` gives fresh copies of its arguments.

    joins: on different paths it gives numbers of different kinds (int and float, Python's and
    NumPy's); compiled, it gives the common kind on all of them.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[tuple[Any, ...], ...]
    wrt: tuple[int, ...] = ()
    joins: bool = False

    def arguments(self) -> list[tuple[Any, ...]]:
        """Argument tuples that the caller may write to; aliases within a tuple stay aliases."""
        return [copy.deepcopy(args) for args in self.inputs]


PROGRAMS: list[Program] = []


def program(
    *inputs: tuple[Any, ...], wrt: tuple[int, ...] = (), joins: bool = False
) -> Callable[[Any], Any]:
    """Enter a function into the corpus with tuples of arguments."""

    def enter(function: Any) -> Any:
        PROGRAMS.append(Program(function.__name__, function, inputs, wrt, joins))
        return function

    return enter


def f64(*shape: int) -> Any:
    """Deterministic float64 numbers in (-2, 2)."""
    count = math.prod(shape)
    return (np.sin(np.arange(1, count + 1) * 1.7) * 1.9).reshape(shape)


def f32(*shape: int) -> Any:
    """The same as float32."""
    return f64(*shape).astype(np.float32)


def ints(*shape: int) -> Any:
    """Deterministic int64 numbers in [-9, 9]."""
    return (np.arange(math.prod(shape)).reshape(shape) * 7919) % 19 - 9


# -- loops -----------------------------------------------------------------------------------------


@program((2.0, 1.0, 1e-9), (np.float64(9.0), 1.0, 1e-6), (np.float32(2.0), 1.0, 1e-3), wrt=(0,))
def newton(f0, x, tol):
    while abs(x * x - f0) > tol:
        x = 0.5 * (x + f0 / x)
    return x


@program((f64(6), 3), (f32(4), 0), (f64(1), 5), wrt=(0,))
def power_by_loop(x, n):
    y = np.ones_like(x)
    for _ in range(n):
        y = y * x
    return y


@program((np.arange(10.0) * 1.1,), (f64(3),), (np.zeros(0),), wrt=(0,))
def running_sum_with_resets(x):
    out = np.zeros(len(x))
    s = 0
    for i in range(len(x)):
        s += x[i]
        if s > 10:
            s = 0
            continue
        if i > 7:
            break
        out[i] = s
    return out


@program((f64(5), 0.5), (f64(7), 5.0), (np.zeros(0), 1.0), joins=True)
def first_above(x, limit):
    for i, v in enumerate(x):
        if v > limit:
            return i, v
    return -1, limit


@program((5, 7), (0, 3), (12, 12))
def grid_search(n, wanted):
    found = -1
    for i in range(n):
        for j in range(i, n):
            if i * j == wanted:
                found = i * 100 + j
                break
        else:
            continue
        break
    return found


@program((27,), (1,), (97,))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program((48, 36), (17, 5), (0, 4))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@program((10,), (0,), (1,))
def fibonacci_by_loop(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program((f64(4, 5), 3), (f32(6, 6), 4), (f64(3, 3), 0), wrt=(0,))
def heat(u, steps):
    for _ in range(steps):
        un = u.copy()
        un[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        )
        u = un
    return u


@program((f64(8), 3), (f64(8), 4), (f64(5), 0), wrt=(0,))
def swap_of_local_arrays(x, steps):
    u = x * 1.0
    un = np.zeros_like(u)
    for _ in range(steps):
        un[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u, un = un, u
    return u


@program((f64(6), f64(6) * 0.5, 2), (f64(6), f64(6), 0), wrt=(0, 1))
def swap_without_writes(a, b, steps):
    for _ in range(steps):
        a, b = b, a
    return a - 2 * b


@program((-0.5, 0.3, 50), (1.0, 1.0, 50), (0.0, 0.0, 8))
def mandelbrot_point(re, im, most):
    c = complex(re, im)
    z = 0j
    for k in range(most):
        if abs(z) > 2.0:
            return k
        z = z * z + c
    return most


@program((6, 5, 20),)
def mandelbrot(height, width, most):
    out = np.zeros((height, width), dtype=np.int64)
    for row in range(height):
        for column in range(width):
            x0 = column / width * 3.0 - 2.0
            y0 = row / height * 2.0 - 1.0
            x = y = 0.0
            k = 0
            while x * x + y * y <= 4.0 and k < most:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                k += 1
            out[row, column] = k
    return out


@program((ints(9),), (np.array([3, 1, 2]),), (np.array([5]),), (f64(6),))
def bubble_sort(x):
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    return x


@program((np.arange(7) * 37 % 256,), (np.zeros(0, int),))
def crc(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = c ^ int(byte)
        for _ in range(8):
            c = (c >> 1) ^ 0xEDB88320 if c & 1 else c >> 1
    return c ^ 0xFFFFFFFF


@program((f64(3, 3) + 4 * np.eye(3), 10), wrt=(0,))
def power_iteration(a, steps):
    v = np.ones(a.shape[0])
    for _ in range(steps):
        w = a @ v
        v = w / np.sqrt(np.sum(w * w))
    return v @ (a @ v)


@program((f64(5),), (f32(3),), wrt=(0,))
def scan_of_maxima(x):
    out = np.empty_like(x)
    best = x[0]
    for i in range(len(x)):
        best = max(best, x[i])
        out[i] = best
    return out


@program((f64(4, 3),), (f32(2, 2),), wrt=(0,))
def sum_of_rows(a):
    total = np.zeros(a.shape[1], a.dtype)
    for row in a:
        total = total + row * row
    return total


@program((f64(6),), (f64(1),), wrt=(0,))
def backwards(x):
    s = 0.0
    for i in range(len(x) - 1, -1, -1):
        s = s * 0.5 + x[i]
    for v in reversed(x):
        s = s - v
    return s


@program((f64(6), 2), (f64(5), 3))
def strided(x, k):
    total = 0.0
    for i in range(0, len(x), k):
        total += x[i]
    return total


@program((3,), (0,))
def loop_variable_survives(n):
    i = -1
    for i in range(n):
        pass
    return i


@program((f64(5), 1.0), (f64(5), -3.0), wrt=(0,))
def walrus(x, tol):
    k = 0
    while (r := np.sum(x * x)) > tol and k < 20:
        x = x * 0.7
        k += 1
    return x, r, k


@program((4,), (0,), (9,))
def loop_with_return_in_the_middle(n):
    total = 0
    for i in range(n):
        for j in range(n):
            total += i ^ j
            if total > 25:
                return total, i, j
    return total, n, n


@program((1.0, 10), (0.1, 3))
def counter_becomes_float(x, n):
    s = 0
    for _ in range(n):
        s = s + x
    return s


@program((f64(3),), (f64(7),), wrt=(0,))
def nothing_then_array(x):
    best = None
    for i in range(len(x)):
        candidate = x * float(i)
        if best is None or np.sum(candidate) > np.sum(best):
            best = candidate
    return best


# -- branches --------------------------------------------------------------------------------------


@program((2.0,), (-3.0,), (0.0,), (np.float64(1.5),), (3,), wrt=(0,), joins=True)
def early_returns(x):
    if x > 1:
        return x * x
    if x < -1:
        return -x
    y = x + 1
    return y * 2.0


@program((f64(4), True), (f64(4), False))
def array_or_none(x, flag):
    y = None
    if flag:
        y = x + 1.0
    if y is None:
        return x
    return y


@program((f64(4), 2), (f64(4), -2), wrt=(0,))
def array_or_none_at_run_time(x, n):
    y = x * 2.0 if n > 0 else None
    if y is not None:
        return y + 1.0
    return x


@program((3,), (-3,))
def set_on_one_path(n):
    if n > 0:
        y = n * 2
    if n > 0:
        return y
    return 0


@program((-1,), (2,))
def set_on_one_path_and_read(n):
    if n > 0:
        y = n * 2
    return y


@program((1, 2, 3), (3, 2, 1), (1, 1, 1), (1.5, 2, 2.5))
def chained_comparison(a, b, c):
    if a < b < c:
        return 1
    return 2 if a <= b <= c else 3


@program((0, 5), (3, 0), (2, 2), (0, 0))
def short_circuit(a, b):
    return (a and 10 // a) or (b and b + 1), not a, a or b


@program((f64(5), "sum"), (f64(5), "mean"), (f64(5), "max"), wrt=(0,))
def mode_by_string(x, mode):
    if mode == "sum":
        return np.sum(x)
    if mode in ("mean", "average"):
        return np.mean(x)
    return np.max(x)


@program((f64(4),), (ints(4),), (3.5,), (2,), (True,), wrt=(0,))
def polymorphic(x):
    return double(x) + 1, double(2)


def double(x):
    return x + x


@program((f64(3), 1), (f64(3), 5))
def branch_writes_array(x, n):
    y = x.copy()
    if n > 2:
        y[0] = 100.0
    else:
        y[1] = -1.0
        y[2] += 1.0
    return y


@program((np.float64(2.0), 3), (2.0, 0), (np.float64(2.0), 0), (1, 0), (np.int64(1), 1))
def division(a, b):
    return a / b


@program((7, 3), (-7, 3), (7, -3), (np.int32(-7), 3), (7.5, -2), (-7, 0))
def integer_division(a, b):
    return a // b, a % b, divmod(a, b)


@program((2, 10), (3, 40), (7, 30))
def integer_power(a, n):
    r = 1
    for _ in range(n):
        r = r * a
    return r


@program((2.0, 3), (2.0, -1), (-8.0, 2))
def powers(x, n):
    return x**n, x**2, x**-1, 2**n if n >= 0 else 0


@program((4.0,), (-1.0,), (0.0,), (1000.0,))
def math_functions(x):
    return math.sqrt(x) + math.log(x + 1.0) + math.exp(x)


@program((-2,), (3,))
def raises_its_own(n):
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    return n * 2


@program((f64(4), 2), (f64(4), -1), (f64(4), 4), (f64(4), -5))
def element(x, i):
    return x[i]


@program((5, True), (7, False))
def match_statement(n, flag):
    match (n, flag):
        case (5, True):
            return 1
        case (k, False) if k > 3:
            return k
        case _:
            return 0


# -- functions -------------------------------------------------------------------------------------


@program((10,), (1,), (0,))
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@program((2, 3), (1, 1), (0, 4))
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@program((10,), (7,))
def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


@program((f64(8),), (f64(1),), (f64(5),), wrt=(0,))
def tree_sum(x):
    if len(x) == 1:
        return x[0]
    half = len(x) // 2
    return tree_sum(x[:half]) + tree_sum(x[half:])


@program((1.1, 5), (0.5, 0), wrt=(0,))
def recursive_power(x, n):
    if n == 0:
        return 1.0
    return x * recursive_power(x, n - 1)


@program((f64(4), 3), wrt=(0,))
def recursion_over_arrays(x, n):
    if n == 0:
        return x
    return recursion_over_arrays(np.tanh(x) * 1.5, n - 1)


@program((np.zeros(5), 4),)
def recursion_that_writes(x, n):
    if n < 0:
        return 0
    x[n] = n
    return 1 + recursion_that_writes(x, n - 1)


def make_scale(k):
    def scale(x):
        return x * k

    return scale


twice, thrice = make_scale(2.0), make_scale(3.0)


@program((f64(3),), wrt=(0,))
def closures_of_one_factory(x):
    return twice(x) + thrice(x), make_scale(5.0)(x)


@program((f64(3), 2), (f64(3), -2), wrt=(0,))
def function_chosen_at_run_time(x, n):
    f = np.tanh if n > 0 else lambda y: y * 0.5
    return f(x)


@program((3,), (0,))
def counter_in_closure(n):
    count = 0

    def step(k):
        nonlocal count
        count += k

    for i in range(n):
        step(i)
    return count


def apply_n(f, x, n):
    for _ in range(n):
        x = f(x)
    return x


@program((0.5, 4), (f64(2), 2), wrt=(0,))
def function_as_argument(x, n):
    return apply_n(lambda y: y * y - 0.3, x, n)


@program((f64(3),), wrt=(0,))
def defaults_and_keywords(x):
    def affine(x, /, a=2.0, *more, b=1.0, **named):
        total = a * x + b
        for m in more:
            total = total + m
        for name, value in named.items():
            total = total + value * len(name)
        return total

    return affine(x), affine(x, 3.0, 4.0, b=5.0), affine(x, c=1.0, dd=2.0)


@program((f64(3),), wrt=(0,))
def star_arguments(x):
    parts = (x, 2.0)
    options = {"b": 3.0}
    return scaled(*parts, **options)


def scaled(x, a, b=1.0):
    return x * a + b


@program((f64(3),))
def partial_application(x):
    add = functools.partial(scaled, a=2.0)
    return add(x), add(x, b=-1.0)


FACTOR = 2.5
TABLE = np.array([1.0, 10.0, 100.0])
SETTINGS = {"rate": 0.1, "name": "fast"}


@program((f64(3),), wrt=(0,))
def globals_of_all_kinds(x):
    return x * FACTOR + TABLE * SETTINGS["rate"]


@program((4,), (1,))
def recursive_closure(n):
    base = n

    def down(k):
        if k == 0:
            return base
        return down(k - 1) + base

    return down(n)


# -- mutation and aliasing -------------------------------------------------------------------------


@program((f64(4),), (f32(2),))
def alias_by_assignment(x):
    y = x
    y[0] = 1.0
    return x[0] + y[1]


@program((f64(4, 3),))
def write_through_view(x):
    row = x[1]
    row[0] = 10.0
    block = x[2:, 1:]
    block += 5.0
    x.T[0, 3] = -1.0
    return x.sum()


@program((f64(5), 2.0))
def helper_that_mutates(x, v):
    set_first(x, v)
    set_first(x[2:], -v)
    return x[0] + x[2]


def set_first(a, v):
    a[0] = v


@program((f64(4),))
def in_place_operators(x):
    y = x
    y += 1.0
    z = x * 2.0
    z -= y
    return y, z


@program((f64(3), f64(3)))
def list_aliases(a, b):
    xs = [a, b]
    ys = xs
    ys.append(a + b)
    xs[0] = xs[0] * 2.0
    ys[1][0] = 7.0
    return xs


@program(({"w": f64(3), "b": 1.0}, 0.5))
def dict_update(p, rate):
    p["w"] -= rate * p["w"]
    p["b"] = p["b"] - rate
    p["steps"] = 1
    return p


@program((f64(4),), (f64(2),))
def returns_its_argument(x):
    x[0] = 3.0
    return x


@program((f64(6),))
def returns_a_view(x):
    v = x[1:4]
    v[0] = 9.0
    return v


@program(((lambda a: (a, a))(f64(4))))
def same_array_twice(a, b):
    a[0] = 5.0
    return b[0] + a[1]


@program((f64(5), np.array([0, 2, 2, -1])), wrt=(0,))
def gather_and_scatter(x, idx):
    y = np.zeros(5)
    y[idx] = x[idx] * 2.0
    return y, x[idx]


@program((f64(6), 4), (f64(6), 0))
def write_in_loop(x, n):
    for i in range(n):
        x[i + 1] = x[i] + x[i + 1]
    return x[-1]


@program((f64(5),), wrt=(0,))
def mask_by_where(x):
    y = np.where(x > 0, x, 0.0)
    z = x.copy()
    z[z < 0] = -1.0
    return y, z


# -- structures ------------------------------------------------------------------------------------

State = collections.namedtuple("State", "h c")


@dataclass
class Model:
    """A dataclass with methods."""

    w: Any
    b: Any
    kind: str = "tanh"

    def __call__(self, x):
        """Apply the model."""
        y = x @ self.w + self.b
        return np.tanh(y) if self.kind == "tanh" else y

    @property
    def size(self):
        """Number of weights."""
        return self.w.size


@program(
    ([(f32(3, 4), f32(4)), (f32(4, 2), f32(2))], f32(5, 3)),
    ([(f64(2, 2), f64(2))], f64(1, 2)),
    wrt=(0, 1),
)
def mlp(layers, x):
    for w, b in layers[:-1]:
        x = np.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


@program((f32(6, 3), {"w": f32(3, 8), "u": f32(2, 8), "b": f32(8)}), wrt=(0, 1))
def lstm(xs, p):
    state = State(np.zeros(2, xs.dtype), np.zeros(2, xs.dtype))
    for t in range(xs.shape[0]):
        state = lstm_cell(xs[t], state, p)
    return state.h


def lstm_cell(x, state, p):
    z = x @ p["w"] + state.h @ p["u"] + p["b"]
    i, f, g, o = np.split(z, 4)
    c = state.c / (1.0 + np.exp(-f)) + np.tanh(g) / (1.0 + np.exp(-i))
    return State(np.tanh(c) / (1.0 + np.exp(-o)), c)


@program((Model(f64(3, 2), f64(2)), f64(4, 3)), (Model(f64(2, 2), 0.5, "none"), f64(2)), wrt=(0, 1))
def dataclass_model(model, x):
    return model(x), model.size, replace_bias(model, 2.0).b


def replace_bias(model, b):
    return Model(model.w, b, model.kind)


@program((Model(f64(2, 2), f64(2)), 0.1))
def dataclass_is_changed(model, rate):
    model.b = model.b - rate
    model.w[0, 0] = 0.0
    return model


@program((f64(3), f64(3)), wrt=(0, 1))
def comprehensions(a, b):
    pairs = [x * y for x, y in zip((a, b), (2.0, 3.0), strict=True) if y > 1]
    named = {k: v + 1.0 for k, v in zip("pq", pairs, strict=True)}
    return sum(pairs), named, [i * i for i in range(4)], tuple(v for v in pairs)


@program((f64(3), f64(4)))
def enumerate_and_zip(a, b):
    total = 0.0
    for k, (x, y) in enumerate(zip(a, b), start=1):
        total += k * x * y
    return total


@program((f64(2, 3),), (f32(4, 1),), wrt=(0,))
def tuple_returns(x):
    lo, hi = bounds(x)
    return {"range": hi - lo, "bounds": (lo, hi), "shape": x.shape, "ndim": x.ndim}


def bounds(x):
    return x.min(), x.max()


@program(((1, (2.5, f64(2))), [3, 4]))
def nested_structures(t, xs):
    (a, (b, c)), [d, *rest] = t, xs
    return [a, {"b": b, "c": c * d}, rest]


@program((f64(4), None), (f64(4), 2.0), wrt=(0,))
def optional_argument(x, scale):
    return x if scale is None else x * scale


# -- numbers and arrays ----------------------------------------------------------------------------


@program((f64(4, 3), f64(3)), (f32(2, 3), f64(3)), (ints(2, 3), f32(1)), wrt=(0, 1))
def broadcasting(a, b):
    return a * b + b[None] - 2


@program((f32(3), 2), (ints(3), 2), (ints(3).astype(np.int8), 2), (f64(3) > 0, True))
def promotion(x, n):
    return x + n, x * 2.0, x / 2, x + np.float32(1), n + 0.5


@program((f64(4, 6),), (f32(2, 3),), wrt=(0,))
def softmax_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@program((f64(5, 4),), (f32(3, 1),), wrt=(0,))
def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5)


@program((f64(4, 6),), wrt=(0,))
def shapes(x):
    y = x.reshape(2, -1).T
    z = np.concatenate([y, y[::-1]], axis=1)
    return z[1:-1:2, ..., None].squeeze(-1), np.stack((y[:, 0], y[:, 1])), x.ravel()[:5]


@program((f64(6),), (f32(3),), wrt=(0,))
def statistics(x):
    return x.std(), np.var(x, ddof=1), x.argmax(), np.cumsum(x), np.prod(x), (x > 0).sum()


@program((1.5 + 2j, f64(3)), (np.complex64(1j), f32(2)))
def complex_numbers(z, x):
    w = x * z + np.conj(z)
    return w.real, w.imag, abs(z), np.abs(w), z.conjugate() * z


@program((3, 2.5), (np.int32(3), np.float32(2.5)), (True, 2))
def scalar_kinds(a, b):
    return a + b, a * 2, float(a), int(b), round(b), abs(-a), a == b, bool(a), np.sin(b)


@program((3, 2.5), (np.int32(3), np.float64(7.5)), (1, True), joins=True)
def larger_of_two(a, b):
    return max(a, b), min(a, b), max(a, b, 5)


@program((f64(3, 3), f64(3, 3)), (f32(2, 2), f32(2, 2)), wrt=(0, 1))
def matrix_products(a, b):
    return a @ b, a.T @ b[0], np.dot(a[0], b[1]), np.outer(a[0], b[0]), a[None] @ b


@program((5,), (1,))
def created_arrays(n):
    grid = np.arange(n) * 0.5
    return np.linspace(0.0, 1.0, n), np.eye(n)[0], grid, np.full((2, n), 7), np.zeros((n, 0)).shape


@program((f64(7), 2, 5), (f64(7), -3, 100), (f64(7), 5, 2))
def slices_at_run_time(x, a, b):
    return x[a:b], x[:a], x[b:], x[a:b].sum()
