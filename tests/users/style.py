"""Ways of writing: functional, object-oriented, with all of Python's statements."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from tests.users.corpus import use

GRAVITY = 9.81
OFFSETS = np.array([0.5, -0.5, 1.5])
CONFIG = {"scale": 2.0, "mode": "fast", "limits": (-1.0, 1.0)}
X = np.array([0.3, -1.2, 2.0])


def compose(*functions):
    def composed(x):
        for f in reversed(functions):
            x = f(x)
        return x

    return composed


@use((X,), (0.5,), wrt=(0,))
def composition(x):
    return compose(np.sin, lambda t: t * 2, abs)(x)


def make_adder(n):
    return lambda x: x + n


@use((X, 2.0), wrt=(0, 1), slow=True)
def closures_from_a_factory(x, n):
    adders = [make_adder(k * n) for k in range(3)]
    return [add(x) for add in adders]


@use((X, 3), wrt=(0,), slow=True)
def counter_with_nonlocal(x, n):
    total, calls = 0.0, 0

    def visit(v):
        nonlocal total, calls
        total += v * v
        calls += 1

    for _ in range(n):
        for v in x:
            visit(v)
    return total, calls


@use((X,), wrt=(0,), slow=True)
def map_filter_reduce(x):
    squares = map(lambda v: v * v, x)
    total = reduce(lambda a, b: a + b, squares, 0.0)
    product = reduce(operator.mul, [v + 2 for v in x])
    return total, product


@use((X,), wrt=(0,), slow=True)
def partial_and_keywords(x):
    power = partial(scaled, exponent=2)
    return power(x), power(x, scale=3.0), scaled(x, *(1.0, 3)), scaled(x, **{"scale": 0.5})


def scaled(x, scale=1.0, exponent=1):
    return scale * x**exponent


def total_of(*args, weight=1.0, **extra):
    result = 0.0
    for a in args:
        result = result + weight * a
    for name in sorted(extra):
        result = result - extra[name]
    return result


@use((1.0, 2.0, 3.0), wrt=(0, 1, 2))
def variadic(a, b, c):
    return total_of(a, b, c), total_of(a, weight=2.0), total_of(a, b, c=c, d=1.0), total_of()


class Shape(Enum):
    """What is drawn."""

    CIRCLE = 1
    SQUARE = 2


@use((2.0, Shape.CIRCLE), (2.0, Shape.SQUARE))
def match_on_enum(size, shape):
    match shape:
        case Shape.CIRCLE:
            return math.pi * size**2
        case Shape.SQUARE:
            return size * size


@dataclass(frozen=True)
class Point:
    """A point of the plane."""

    x: float
    y: float = 0.0

    def __add__(self, other):
        """Their sum."""
        return Point(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        """Scaled."""
        return Point(self.x * k, self.y * k)

    @property
    def norm(self):
        """Distance from the origin."""
        return math.hypot(self.x, self.y)

    @classmethod
    def polar(cls, r, phi):
        """From polar coordinates."""
        return cls(r * math.cos(phi), r * math.sin(phi))

    @staticmethod
    def origin():
        """The origin."""
        return Point(0.0)


@use((Point(3.0, 4.0), 0.5), wrt=(0, 1), slow=True)
def frozen_dataclass_with_operators(p, angle):
    q = p + Point.polar(1.0, angle) * 2.0 + Point.origin()
    moved = replace(q, y=q.y + 1.0)
    return moved.norm, moved


@use((Point(1.0, 2.0),), (Point(-1.0, 0.0),), (Point(0.0, 0.0),))
def match_on_class(p):
    match p:
        case Point(x=0.0, y=0.0):
            return "origin"
        case Point(x=x) if x > 0:
            return "right"
        case _:
            return "left"


class Accumulator:
    """Keeps a running sum."""

    rate = 0.5

    def __init__(self, start=0.0):
        self.value = start
        self.history = []

    def __call__(self, x):
        """Take one in."""
        self.value += self.rate * x
        self.history.append(self.value)
        return self

    def __len__(self):
        """How many were taken in."""
        return len(self.history)

    def __getitem__(self, k):
        """One of the sums."""
        return self.history[k]


@use((1.0, 2.0), wrt=(0, 1))
def object_with_state(a, b):
    acc = Accumulator(a)
    acc(b)(a * b)(3.0)
    return acc.value, len(acc), acc[1], acc.history


class Base:
    """A model with a hook."""

    def __init__(self, k):
        self.k = k

    def activation(self, x):
        """The hook."""
        return x

    def __call__(self, x):
        """Apply."""
        return self.activation(self.k * x)


class Tanh(Base):
    """The hook filled in."""

    def activation(self, x):
        """The hook."""
        return np.tanh(x)


@use((2.0, X), wrt=(0, 1), slow=True)
def inheritance(k, x):
    return Base(k)(x), Tanh(k)(x)


class Machine(NamedTuple):
    """The state of a little machine."""

    mode: int
    level: float
    ticks: int = 0


@use((np.array([0.2, 0.9, 1.5, -3.0, 0.1]),), slow=True)
def state_machine(inputs):
    state = Machine(0, 0.0)
    for u in inputs:
        if state.mode == 0 and u > 0.5:
            state = state._replace(mode=1)
        elif state.mode == 1 and u < 0:
            state = Machine(2, state.level, ticks=state.ticks)
        state = state._replace(level=state.level + u * state.mode, ticks=state.ticks + 1)
    return state


@use((5, 3.0), (-5, 3.0), (0, -1.0))
def early_returns(n, x):
    if n < 0:
        return "negative", x
    if n == 0:
        return "zero", 0.0
    return "positive", x * n


@use((np.array([1.0, 4.0, -1.0, 2.0]), 3.0), (np.array([1.0, 4.0]), 9.0))
def for_else_with_break(x, limit):
    for i, v in enumerate(x):
        if v < 0:
            continue
        if v > limit:
            found = i
            break
    else:
        found = -1
    return found


@use((0.5,), (1.5,), (-2.0,), wrt=(0,), joins=True)
def chained_comparison_and_ternary(x):
    inside = -1.0 < x <= 1.0
    sign = 1 if x > 0 else -1 if x < 0 else 0
    return (x * 2 if inside else x**2) + sign, inside and x > 0, inside or sign


@use((np.array([4.0, 2.0, 8.0]),), wrt=(0,))
def walrus(x):
    if (n := len(x)) > 2 and (m := x.mean()) > 1:
        return m * n
    return float(n)


@use((-1.0,), (4.0,))
def assert_with_message(x):
    assert x >= 0, f"x must not be negative, got {x}"
    return math.sqrt(x)


@use((7,), (3,))
def raise_with_fstring(n):
    if n > 5:
        raise ValueError(f"n={n} is more than {5}: {n - 5} too many")
    return n


@use((0.12345, 7), (-2.0, 3))
def formatted_numbers_in_messages(x, n):
    if x < 0:
        raise RuntimeError(f"{n:>4d} steps and the error is {x:.3e}, not {x!r}")
    assert n < 5, f"{n:03d} of {5}, {x:8.2f}"
    return x


@use((2.5, 3, "Rate"))
def text_results(x, n, label):
    name = label.lower().strip() + "_" + str(n)
    return f"{name} = {x:.2f} of {x * n!r}", name, str(x) + "!", label.startswith("R")


@use((X, None), (X, OFFSETS), wrt=(0,))
def optional_bias(x, bias=None):
    y = x * 2
    if bias is not None:
        y += bias
    return y


@use((X, "mean"), (X, "sum"), (X, "max"), wrt=(0,))
def reduction_by_name(x, how):
    reductions = {"mean": np.mean, "sum": np.sum}
    if how in reductions:
        return reductions[how](x)
    return getattr(np, how)(x)


@use((X,), wrt=(0,))
def global_constants(x):
    low, high = CONFIG["limits"]
    y = x * CONFIG["scale"] + OFFSETS
    return y.clip(low, high) * GRAVITY if CONFIG["mode"] == "fast" else y


@use((2.0, 5), wrt=(0,))
def tail_recursion(x, n, acc=1.0):
    if n == 0:
        return acc
    return tail_recursion(x, n - 1, acc * x)


@use((X,), wrt=(0,))
def dispatch_table(x):
    ops = {"double": lambda v: v * 2, "square": lambda v: v**2, "neg": operator.neg}
    out = {}
    for name, fn in ops.items():
        out[name] = fn(x)
    return out


@use((1.0, 2.0, 3.0))
def tuples_and_unpacking(a, b, c):
    first, *rest = (a, b, c)
    (p, q), r = (a, b), [c]
    swapped = q, p
    merged = [*rest, *swapped]
    nested = {"t": swapped, **{"u": r}}
    return first, merged, nested, merged[::-1], merged[1:3], len(nested), a in merged


@use((3, 4))
def itertools_product(n, m):
    grid = np.zeros((3, 4))
    for i, j in itertools.product(range(3), range(4)):
        grid[i, j] = i * m + j * n
    return grid


@use((X, X * 2, 1.5), wrt=(0, 1, 2), long=True)
def zip_and_enumerate(a, b, w):
    s = 0.0
    for i, (p, q) in enumerate(zip(a, b)):
        s += (i + 1) * p * q**2 * w
    return s, sum(p * q for p, q in zip(a, b)), max(a), min(b)


@use((4,), (7,))
def list_comprehension_with_condition(n):
    even = [k * k for k in range(8) if k % 2 == 0]
    table = [[i * j + n for j in range(3)] for i in range(2)]
    flat = [v for row in table for v in row]
    return even, flat, {k: v for k, v in zip("abc", even)}, sum(flat), any(v > 3 for v in flat)


@dataclass
class Settings:
    """Options of a solver."""

    step: float = 0.1
    order: int = 2
    names: list = field(default_factory=lambda: ["a", "b"])


@use((2.0, Settings()), (2.0, Settings(order=1)), wrt=(0,))
def options_object(x, settings):
    if settings.order == 1:
        return x + settings.step
    elif settings.order == 2:
        return x + settings.step * x + len(settings.names)
    raise NotImplementedError(f"order {settings.order}")


def memo_free(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1.0

    return wrapper


@memo_free
def decorated(x, k=2.0):
    return x * k


@use((3.0,), wrt=(0,))
def calls_a_decorated_function(x):
    return decorated(x), decorated(x, k=5.0)


@use((5.0, 2.0), (5.0, 0.0))
def python_division(a, b):
    if b == 0:
        raise ZeroDivisionError(f"{a} by nothing")
    return a / b, a // b, a % b, -a // b, -a % b, divmod(a, b)


@use((7, 3), (-7, 3))
def integer_arithmetic(a, b):
    return a / b, a // b, a % b, a**b, abs(a), -a, a << b, a >> 1, a & b, a | b, a ^ b, int(a / b)


@use((0.1,), (2.5,), (-2.5,), (1e300,), long=True)
def float_tricks(x):
    return (
        round(x), round(x, 1), int(x), math.floor(x), math.ceil(x), x == x, x + 1e-17 == x,
        math.isclose(x, x + 1e-12), math.copysign(1.0, x), math.fmod(x, 1.0), float(int(x) % 7),
    )  # fmt: skip


@use((2.0,), (-1.0,))
def math_domain(x):
    return math.log(x) + math.sqrt(x)


@use((1, 0))
def zero_division(a, b):
    return a / b


@use((np.arange(3.0), 5))
def index_out_of_range(x, i):
    return x[i]


@use((3 + 4j,), (1j,))
def complex_arithmetic(z):
    w = z.conjugate() * z
    return abs(z), z.real, z.imag, w, z**2, z / (1 + 2j), complex(w.real, 1.0)


@use((X,), wrt=(0,), slow=True)
def generator_arguments(x):
    return sum(v * v for v in x), max(abs(v) for v in x), all(v > -5 for v in x), tuple(
        2 * v for v in x
    )


@use((2, X), (0, X), (1, X), wrt=(1,))
def function_chosen_at_run_time(k, x):
    f = np.sin if k == 0 else np.cos if k == 1 else np.tanh
    return f(x)


@use((X, 2), wrt=(0,))
def nested_functions_and_recursion(x, depth):
    def walk(values, level):
        if level == 0:
            return np.sum(values)
        half = len(values) // 2
        return walk(values[: half + 1], level - 1) + 2 * walk(values[half:], level - 1)

    return walk(x, depth)


@use((10,))
def while_true_with_several_exits(n):
    i = total = 0
    while True:
        i += 1
        if i % 3 == 0:
            continue
        if total > 3 * n:
            return -1
        total += i
        if i > n:
            break
    return total


@use((True, 1.0), (False, 2.0))
def booleans(flag, x):
    y = x if flag else -x
    return flag and y > 0, not flag, flag + 1, bool(y), flag & True, flag ^ True


@use((5.0,), (50.0,))
def del_and_global_and_pass(x):
    global_like = x
    if x > 10:
        pass
    temporary = x * 2
    y = temporary + 1
    del temporary
    return y + global_like


@use((X,), wrt=(0,), slow=True)
def dict_methods(x):
    d = dict(a=x, b=x * 2)
    d.update(c=d["a"] + d["b"])
    d.setdefault("d", x)
    total = sum(v.sum() for v in d.values())
    removed = d.pop("b")
    return total, list(d), removed, d.get("zzz", 0.0), "a" in d


@use((X,), wrt=(0,), slow=True)
def list_methods(x):
    stack = [x]
    stack.append(x + 1)
    stack.extend([x * 2, x * 3])
    stack.insert(0, -x)
    last = stack.pop()
    stack.reverse()
    stack[0], stack[-1] = stack[-1], stack[0]
    return stack, last, len(stack)


