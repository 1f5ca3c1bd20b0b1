"""Values whose structure depends on the run: None, tuples, dicts, texts, objects, functions."""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.users.corpus import use

X = np.array([3.0, 1.0, 2.5])


@dataclass
class Point:
    x: float
    y: float


class Pair(NamedTuple):
    a: float
    b: float


@use((2.0,), (-2.0,), wrt=(0,), slow=True)
def tuples_of_two_lengths(x):
    t = (x, 2 * x) if x > 0 else (x, 3 * x, 4 * x)
    s = 0.0
    for v in t:
        s += v
    first, *others = t
    return t, s * len(t) + t[1] + t[-1] + sum(t), first, others


@use((1.0, 2.0), (2.5, 0.0), wrt=(0,))
def number_or_pair(a, b):
    if b == 0:
        return math.pi
    return a / b, a % b


@use((2.0,), (-2.0,))
def index_that_one_case_lacks(x):
    t = (x, 2 * x) if x > 0 else (x, 3 * x, 4 * x)
    return t[2]


@use((2.0,), (-2.0,))
def operation_that_one_case_lacks(x):
    y = None if x > 0 else x
    return y * 2


@use((2.0,), (-2.0,))
def attribute_that_one_case_lacks(x):
    y = np.array([x, x]) if x > 0 else (x, x)
    return y.sum()


@use((2.0,), (-2.0,))
def unpacks_what_has_another_length(x):
    a, b = (x, 1.0) if x > 0 else (x, 1.0, 2.0)
    return a + b


@use((2.0,), (-2.0,), wrt=(0,))
def dicts_with_other_keys(x):
    if x > 0:
        d = {"a": x, "b": 2 * x}
    else:
        d = {"a": x * 3}
    return d, d["a"] + d.get("b", 0.0) + (1.0 if "b" in d else 2.0) + len(d)


@use((2.0,), (-2.0,), wrt=(0,), slow=True)
def dict_grown_on_one_branch(x):
    d = {"a": x}
    if x > 0:
        d["b"] = x * 2
    total = 0.0
    for key in d:
        total += d[key]
    return d, len(d), d.get("b"), "b" in d, total


@use((2.0,), (-2.0,))
def key_missing_on_one_branch(x):
    d = {"a": x}
    if x > 0:
        d["b"] = x * 2
    return d["b"]


@use((X, 2.0), (X, -2.0), wrt=(0,))
def tuple_or_array(x, c):
    r = (x, x + 1) if c > 0 else x * 2
    if isinstance(r, tuple):
        return r[0] + r[1]
    return r


@use((2.0,), (-2.0,), wrt=(0,), slow=True)
def arrays_of_two_ranks(x):
    w = np.ones((2, 2)) * x if x > 0 else np.ones(3) * x
    scaled = w * np.ones(w.shape) + w
    return np.sum(w * 2), w.ndim, w.shape[0], w, scaled


@use((2.0,), (-2.0,), (0.25,), wrt=(0,), slow=True)
def text_chosen_at_run_time(x):
    if x > 1:
        mode = "pos"
    elif x < 0:
        mode = "negative"
    else:
        mode = "zero"
    table = {"pos": 1.0, "negative": -1.0, "zero": 0.5}
    ops = {"pos": math.sin, "negative": lambda v: v * v, "zero": abs}
    if mode == "pos":
        x = x * 3
    return (
        table[mode] * x, ops[mode](x), mode, len(mode), mode.upper(), mode.startswith("p"),
        mode in ("pos", "negative"), f"<{mode}>", mode[0],
    )


@use((2.0, 3), (4.5, 6), wrt=(0,), slow=True)
def state_machine(x, n):
    state = "start"
    for _ in range(n):
        if state == "start":
            x = x + 1
            state = "run"
        elif state == "run":
            x = x * 2
            state = "stop" if x > 7 else "run"
        else:
            x = x - 0.5
    return x, state == "stop"


@use((2.0,), (-2.0,), (20.0,), wrt=(0,))
def match_on_what_it_is(x):
    p = Point(x, 2.0) if x < 0 else (x, 1.0, 2.0) if x < 10 else None
    match p:
        case Point(a, b):
            return a * b
        case (a, b, c):
            return a + b + c
        case None:
            return x * x


@use((3.0,), (-3.0,), (0.0,))
def match_none_or_bool(x):
    flag = None if x == 0 else x > 0
    match flag:
        case None:
            return 0.0
        case True:
            return x
        case False:
            return -x * 2


@use(
    (Point(1.0, 2.0),), (Point(0.0, 2.0),), (Pair(1.0, 3.0),), (3.0,), (4,), (True,), (None,),
    ("hi",), ([1.0, 2.0],), ({"k": 2.0, "z": 1.0},),
)  # fmt: skip
def match_classes(p):
    match p:
        case Point(x=0, y=b):
            return b
        case Point(x, y):
            return x * y
        case Pair(a=a, b=b):
            return a - b
        case None:
            return -1.0
        case bool(b):
            return -2.0 if b else -3.0
        case int(n):
            return n * 2
        case float(f):
            return f * 3
        case str(s):
            return len(s)
        case [first, *_]:
            return first
        case {"k": k, **rest}:
            return k, rest


@use(([3.0, 1.0, 4.0],), ([2.0],), ([],))
def the_rest_of_a_deque(values):
    waiting, total = deque(values), 0.0
    while waiting:
        match waiting:
            case [first, second, *rest]:
                total += first * second + len(rest)
            case [last]:
                total += last
        waiting.popleft()
    match deque([total, 1.0, 2.0]):
        case [_, *rest]:
            return total, rest


@use((2.0,), (-2.0,), wrt=(0,))
def default_by_or(x):
    y = None if x < 0 else x
    z = y or 5.0
    return z * 2


@use((2.0, 3.0), (2.0, -3.0), (-1.0, 2.0), wrt=(0, 1), long=True)
def two_options(a, b):
    p = None if a < 0 else a
    q = None if b < 0 else b
    if p is None and q is None:
        return 0.0
    if p is None:
        return q
    if q is None:
        return p
    return p * q


@use((X, 2.0), (X, 7.0), wrt=(0,), joins=True, slow=True)
def found_or_not(x, limit):
    found = False
    where = None
    for i in range(len(x)):
        if x[i] > limit:
            found, where = True, (i, x[i])
            break
    if found:
        return where[0] + where[1]
    return -1.0


@use((2.0, 5), (2.0, 0), wrt=(0,), slow=True)
def number_that_becomes_a_tuple(x, n):
    state = 0.0
    for k in range(n):
        if isinstance(state, tuple):
            state = (state[0] + k, state[1] * x)
        else:
            state = (x, x * x)
    return state


@use((2.0,), (-2.0,), long=True)
def list_or_tuple(x):
    r = (x, x + 1) if x > 0 else [x + 2, x]
    a, b = r
    return r, a - 2 * b, type(r) is list


@use((X, 1.0), (X, -1.0), wrt=(0,))
def correlated(x, c):
    if c > 0:
        kind, data = "pair", (x, x * 2)
    else:
        kind, data = "sum", x.sum()
    if kind == "pair":
        return data[0] + data[1]
    return data * 3.0


@use((X, 1.0), (X, -1.0))
def list_in_two_places(x, c):
    a = [x[0]]
    r = (a, 1) if c > 0 else a
    return r, a


class State:
    def __init__(self, v):
        self.v = v
        self.best = None

    def push(self, w):
        if self.best is None or w < self.best:
            self.best = w
        self.v = self.v * 0.5 + w


@use((2.0, 5), (2.0, 0), wrt=(0,), slow=True)
def attribute_that_becomes_a_number(x, n):
    s = State(x)
    for i in range(n):
        s.push(x * i - 3.0)
    return s.v * 2 if s.best is None else s.v + s.best * x


@use(({"a": 1.0}, 1.0), ({"a": 1.0}, -1.0))
def dict_of_the_caller_grows(d, c):
    if c > 0:
        d["b"] = 2.0
    return len(d)


@use((1.5, 0, np.array([1.0, 2.0, 3.0])), (1.5, 1, np.array([1.0, 2.0, 3.0])), wrt=(0, 2),
    slow=True)
def chosen_array_changes_length_before_an_early_return(x, n, a):
    for k in range(3):
        if n and k == 1:
            return np.sum(a * a) * x
        a = np.array([x, 0.5 * x])
    return np.sum(a * a) + x


@use(*((k, x, np.arange(1.0, 5.0)) for k in range(3) for x in (1.5, -1.5)), wrt=(1, 2), slow=True)
def chosen_of_three_lengths_meets_a_fourth(k, x, a):
    match k:
        case 0:
            c = a[1:]
        case 1:
            c = a * 2.0
        case _:
            c = a[:1]
    if x > 0.0:
        d = c
    else:
        d = np.array([x, x * x])
    return np.sum(d * d) * len(d)


@use(("ab", 1), ("ab", 0))
def text_of_two_beside_itself(text, n):
    if n:
        text = text * 3
    text = "".join(sorted(text))
    return [a + b for a, b in zip(text, text[1:], strict=False)]


@use(([1, 2, 3, 4, 5, 6], 4))
def pairs_of_what_is_kept(xs, n):
    kept = [x for x in xs if x > n]
    return [(a, b) for a, b in itertools.product(kept, ["p", "q"])]
