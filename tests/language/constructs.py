"""Python's constructs, each with a small program."""

# ruff: noqa: F821, UP037 -- names of axes

from __future__ import annotations

import contextlib
import enum
import functools
import math
from array import array
from collections import defaultdict, deque, namedtuple
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import pyrelay
from pyrelay import Tensor
from tests.language.rows import compiled, refused, section

X = np.array([3.0, 1.0, 2.0])
M = np.arange(6.0).reshape(2, 3)

# ------------------------------------------------------------------------------------------------
section(
    "Control flow",
    "Conditions, counts and exits may depend on values. Loops are compiled as loops; a loop is "
    "unrolled only where its body needs the index while compiling, as for items of a tuple.",
)


@compiled("if, elif, else", 2.0)
def branches(x):
    if x > 1:
        y = x * 2
    elif x > 0:
        y = x
    else:
        y = 0.0
    return y


@compiled("A conditional expression, `and`, `or`, `not`, chained comparison", 2.0)
def conditions(x):
    inside = (0 < x <= 3 and not x > 2) or x == 9
    return x if inside else -x


@compiled("for over a range, an array, zip, enumerate, reversed; break, continue, else", X)
def for_loops(x):
    total = 0.0
    for i in range(len(x)):
        total += i * x[i]
    for k, (u, v) in enumerate(zip(x, reversed(x), strict=True)):
        if u == v:
            continue
        total += k * v
    for v in x:
        if v < 0:
            break
    else:
        total += 1
    return total


@compiled("while, with any condition; return from anywhere", 2.0, 1.0)
def while_loops(square, guess):
    while True:
        better = 0.5 * (guess + square / guess)
        if abs(better - guess) < 1e-12:
            return better
        guess = better


@compiled("match: values, sequences, mappings, classes, guards, `|`, `as`, `*rest`", X, 3)
def matching(x, n):
    match n % 4:
        case 0 | 1:
            kind = (0, 1.0)
        case m if m > 2:
            kind = (m, 2.0)
        case _:
            kind = (-1, 0.0)
    match (x, kind):
        case (a, (0, _)):
            return a
        case (a, [_, *rest]):
            return a * rest[0]


@compiled("match on a class, a mapping, a literal", 2.0)
def matching_classes(x):
    match {"kind": "scaled", "by": Scale(x)}:
        case {"kind": "scaled", "by": Scale(factor=f) as s, **others}:
            return f * len(others) + s.factor
        case {"kind": None | True}:
            return 0.0


@compiled("Recursion, of any depth", 10)
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@compiled("Variables set on some paths only, None that becomes a value", X)
def perhaps(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best


@compiled("assert, raise with run-time text, pass", X)
def checks(x):
    assert x.ndim == 1, "a vector"
    for i, v in enumerate(x):
        if v == 0:
            pass
        elif v < 0:
            raise ValueError(f"negative value {v} at {i}") from None
    return np.sqrt(x)


# ------------------------------------------------------------------------------------------------
section("Assignment and names")


@compiled("Several targets, tuples, stars, swaps, `+=` and the like, `:=`, annotations, del", X)
def assignments(x):
    a = b = x[0]
    c, (d, *rest) = x[1], [x[2], a, b]
    a, c = c, a
    a += 1
    a **= 2
    scale: float = 2.0
    if (top := max(rest)) > 1:
        del c
        return a * scale + d + top
    return a


@compiled("Operators of numbers: / // % ** and, on ints, << >> & | ^ ~", 13, 4)
def operators(n, k):
    signs = n <= k, n != k, n >= k, n is not None, n not in (k, 2)
    return signs, n / k, n // k, n % k, n**2, n << 1, n >> 1, n & k, n | k, n ^ k, ~n, +n, -n


@compiled("Functions inside functions: closures, nonlocal, defaults, lambda", X)
def closures(x, start=1.0):
    count = 0

    def step(v, by=start):
        nonlocal count
        count += 1
        return v * by

    twice = lambda v: 2 * v  # noqa: E731
    return step(twice(x)) + step(x, by=3.0), count


@compiled("Parameters of every kind, `*` and `**` in calls", X)
def parameters(x):
    def scaled(v, /, by, *rest, shift=0.0, **named):
        return v * by + shift + sum(rest) + named["extra"]

    options = {"shift": 1.0, "extra": 2.0}
    return scaled(x, *(2.0, 3.0), **options)


@compiled("Functions as values, partial, functions chosen by data, map, functools.reduce", X)
def functions_as_values(x):
    steps = [np.sin, functools.partial(np.maximum, 0.5)]
    for f in steps:
        x = f(x)
    chosen = np.tanh if x[0] > 0 else np.exp
    return functools.reduce(lambda a, b: a + b, map(chosen, x))


@compiled("import inside a function, names of modules", 0.5)
def imports(x):
    import math as m
    from math import pi

    return m.sin(x) * pi + math.tau


@compiled("Reading globals and attributes; a change is seen by the next call", 2.0)
def globals_read(x):
    global LIMIT
    return x * LIMIT + Mode.FAST.value


@compiled("Assigning globals, which other functions see at their next look", 1.0)
def assigns_a_global(x):
    global SEEN
    SEEN = 2 * x
    SEEN += LIMIT
    return SEEN


# ------------------------------------------------------------------------------------------------
section("Data")


@compiled("Tuples, lists, dicts, sets of known keys; slices, `in`, comprehensions", X)
def containers(x):
    pair = (x[0], "name")
    items = [v * 2 for v in (x[0], x[1]) if v is not None]
    items.append(pair[0])
    table = {f"k{i}": v for i, v in enumerate(items[1:])}
    table["k0"] += 1
    known = {1, 2} | {k + 1 for k in (1, 2)}
    return [*items, len(known)], {**table, "n": 3 in known}, pair


@compiled("Lists that grow: append, pop, extend, in loops and branches", X)
def growing(x):
    kept = []
    for v in x:
        if v > 1.5:
            kept.append(v)
    if kept:
        kept.pop()
    return kept, len(kept), [v * 2 for v in x if v < 2.5]


@compiled(
    "Lists as arguments, of any length: slices assigned and deleted, order", [3, 1, 4, 1, 5, 9], 2
)
def list_arguments(xs, k):
    xs[k:k + 1] = [7, 8]
    del xs[0]
    xs[:] = sorted(xs, reverse=True)
    return xs[:2], xs < [9, 9], xs.index(8)


@compiled("Lists of dicts, as many as the program makes", X)
def lists_of_dicts(x):
    rows = []
    for i, v in enumerate(x):
        if v > 1.5:
            rows.append({"id": i, "w": float(v)})
    for row in rows:
        row["w"] *= 2
    return sorted(rows, key=lambda row: -row["w"]), [row["id"] for row in rows]


@compiled("Lists of records: a row is the same one wherever it is, and keeps its length", X)
def lists_of_records(x):
    rows = []
    for i, v in enumerate(x):
        rows.append([float(v), i, "small" if v < 2 else "large"])
    rows.sort()
    best = rows[-1]
    best[2] = "best"
    return rows, best[1]


@compiled("Lists in lists, as deep as the running program makes them", "(()(()))")
def nested_lists(s):
    def read(i):
        found = []
        while i < len(s) and s[i] == "(":
            inner, i = read(i + 1)
            found.append(inner)
        return found, i + 1

    def depth(items):
        return 1 + max([depth(item) for item in items], default=0)

    return depth(read(0)[0]) - 1


@compiled("Objects of your classes: attributes, methods, properties, operators", 2.0)
def objects(x):
    s = Scale(x)
    s.factor += 1
    return s.applied(3.0) + s.double, (s + s).factor


@compiled("Attributes of classes, which have what the program assigned afterwards", 2.0)
def class_attributes(x):
    Counted.count = 0
    made = [Counted(x), Counted(2 * x)]
    return made[1].number, Counted.count


@compiled("Attributes that are assigned behind `__init__`, of objects in lists, too", X)
def attributes_assigned_later(x):
    found = []
    for v in x:
        if v > 9.5:
            break
        found.append(Scale(v))
        if v > 1.5:
            found[-1].label = 2 * v
    return [s.label if hasattr(s, "label") else s.factor for s in found]


@compiled("Classes made of collections.abc; those with only a `__getitem__` are gone through", 2.0)
def abstract(x):
    names = Names({"a": x, "b": 2 * x})
    return names.get("c", 1.0) + sum(names.values()), list(Powers(x, 3))


@compiled("Dataclasses, named tuples, enums", 2.0)
def records(x):
    p = Point(x, y=1.0)
    q = p._replace(x=3.0)
    mode = Mode.FAST if x == 2.0 else Mode.SLOW
    return q.x + p.y, mode is Mode.FAST


@compiled("Text known while compiling, f-strings", X, "mean")
def text(x, how):
    if how.upper().startswith("M"):
        name = f"{how}-{3:03d}"
        return x.mean() if name == "mean-003" else x.sum()
    return x


@compiled("Strings read character by character; lists of characters joined", "to be or not to be")
def characters(s):
    vowels = sum(1 for c in s if c in "aeiou")
    shifted = [chr((ord(c) - 96) % 26 + 97) if c.isalpha() else c for c in s]
    return vowels, "".join(shifted), s == s[::-1], s[vowels]


@compiled("Methods of strings; numbers read from them", "width: 4, height: 3, Depth: 2")
def text_methods(s):
    sizes = {}
    for part in s.lower().split(","):
        name, _, size = part.partition(":")
        sizes[name.strip()] = int(size)
    return sizes, s.replace(": ", "=").upper(), "depth" in s


@compiled("Generator expressions that are used up at once, any, all, sum, min, max", X)
def generator_expressions(x):
    return sum(v * v for v in x), any(v > 2 for v in x), max(abs(v) for v in x)


@compiled("Generators that are used up in the same program", 5)
def generators(n):
    def odd(start):
        k = start
        while True:
            if k % 2:
                yield k
            k += 1

    def two(values):
        yield from values
        yield from values

    total = 0
    for k in odd(n):
        if k > 4 * n:
            break
        total += k
    return total, sum(two((n, n + 1)))


@compiled("Generators that are asked for one item after the other, with an end or without", 7, 6)
def generators_by_next(seed, n):
    def congruent(state):
        while True:
            state = state * 16807 % 2147483647
            yield state

    numbers = congruent(seed)
    largest = next(numbers)
    for _ in range(n):
        largest = max(largest, next(numbers))
    return largest


@compiled("What generators return, by `x = yield from g()` and StopIteration", (3, 4, 5))
def values_returned(values):
    def summing(x):
        total = 0
        for v in x:
            total += v
            yield v
        return total

    def doubled(x):
        total = yield from summing(x)
        return 2 * total

    numbers, items = doubled(values), []
    while True:
        try:
            items.append(next(numbers))
        except StopIteration as end:
            return items, end.value


@compiled("Values that are sent to a generator", np.array([1.0, 2.0, 6.0]))
def values_sent(x):
    def average():
        total, count, mean = 0.0, 0, None
        while True:
            v = yield mean
            total += v
            count += 1
            mean = total / count

    means = average()
    next(means)
    return [means.send(v) for v in x]


@compiled(
    "Dicts and sets whose keys (numbers, words, objects, tuples of them) only the program knows",
    np.array([1, 2, 1]),
)
def counts(x):
    found = {}
    for v in x:
        found[v] = found.get(v, 0) + 1
    return found


@compiled("Sets of such items, combined and compared", 3)
def computed_set(n):
    s = {k % 2 for k in (n, n + 1)}
    return len(s), s | {n}, s <= {0, 1, 2}, sorted(s - {1})


@compiled("Sets as arguments, of numbers, tuples of numbers or texts", {1, 2}, 5)
def set_arguments(seen, n):
    fresh = [k for k in range(n) if k not in seen]
    seen.update(fresh)
    seen.discard(0)
    return fresh, len(seen)


@compiled("Deques and bytearrays as arguments", deque([3, 1, 2]), bytearray(b"abc"))
def queue_arguments(waiting, data):
    waiting.append(waiting.popleft())
    data[0] ^= 32
    return len(waiting), bytes(data)


@compiled("Dicts of dicts, or of sets, as arguments", {k: {k + 1: 2 * k} for k in range(20)}, 3)
def nested_arguments(graph, k):
    graph[k][0] = 1
    return sum(w for ways in graph.values() for w in ways.values()), graph[k + 1].get(5)


@compiled("deque, defaultdict, Counter; heapq and bisect", np.array([1, 2, 1]))
def default_dict(x):
    found = defaultdict(int)
    for v in x:
        found[v] += 1
    return found


@compiled("bytearray and bytes", b"abc", 7)
def byte_arrays(data, key):
    found = bytearray(c ^ key for c in data)
    found[0] = 255
    return found, bytes(found[1:])


@compiled("Arrays of the module array", array("d", [1.5, 2.5]), 3)
def typed_arrays(x, n):
    found = array("i", [0]) * n
    found[-1] = n
    x.append(found[-1])
    return x, found


@compiled("Going through a set of numbers, in Python's order", np.array([1.5, 2.5]))
def loop_over_a_set(x):
    total = 0.0
    for v in set(x):
        total = v - total
    return total


@compiled("Going through a set of texts, in this process's order", np.array([1, 2]))
def loop_over_words(x):
    found = set()
    for v in x:
        found.add(str(v))
    return list(found)


@refused("Arrays of text or of objects", np.array(["a", "b"]))
def array_of_text(x):
    return x.shape


# ------------------------------------------------------------------------------------------------
section(
    "Arrays",
    "NumPy's meaning, promotion (NEP 50) and aliasing: writing into a view or through another "
    "name is seen wherever Python would show it, arguments of the caller included, and those that "
    "are slices of one array, as in `f(x[:-1], x[1:])`; "
    "`x.view(dtype)` of as many bytes shows the same bits; what is reshaped is a view or a copy "
    "as in NumPy, however the argument lies in memory, and `a.shape = s` is for arrays that the "
    "program makes. float16, and bfloat16 of ml_dtypes "
    "(`pip install pyrelay[bfloat16]`), are stored in 16 bits and computed "
    "in float32, each result rounded, as they are there; sums are rounded once, at their end.",
)


@compiled("Indexing, slices, None, Ellipsis, masks, lists of indices", M)
def indexing(m):
    return m[1, -1], m[:, ::2], m[..., 0], m[None], m[m > 2], m[:, [2, 0]]


@compiled("Writing: elements, slices, masks, `+=`, views, other names", X)
def writing(x):
    view = x[1:]
    view[0] = 5.0
    x[x > 4] += 1.0
    x[:2] = x[1:]
    y = x
    y *= 2.0
    return view


@compiled("Broadcasting, `@`, reductions, shapes of run-time sizes", M)
def array_operations(m):
    n = m.shape[0]
    centred = m - m.mean(axis=1, keepdims=True)
    return (centred @ centred.T).reshape(n * n), np.zeros((n, n // 2)), m.T.sum(0)


@compiled("Derivatives inside a function", X)
def derivative_inside(x):
    return x - 0.1 * pyrelay.grad(lambda v: np.sum(v**3))(x)


@compiled("A function for each row, with its own branches and rounds", M)
def mapped_over_rows(m):
    def root(row):
        while row[0] * row[0] > 2.0:
            row = 0.5 * row
        return row.sum(), row

    return pyrelay.vmap(root)(m)


@compiled("Directions, pullbacks, Jacobians and Hessians inside a function", X)
def newton_step(x):
    def loss(v):
        return np.sum(v**4 + v * v)

    return x - np.linalg.solve(pyrelay.hessian(loss)(x), pyrelay.grad(loss)(x))


@refused("Shapes that do not fit, with both of them and the line", M)
def wrong_shapes(m):
    return m @ m


@compiled("Annotations of arrays, which are compared with what comes", M, np.ones((3, 4)))
def annotated(x: Tensor["n", "d"], w: Tensor["d", 4, np.floating]) -> Tensor["n", 4]:
    def rows(y: Tensor[..., "k"]) -> Tensor[..., 1]:
        return y.sum(axis=-1, keepdims=True)

    return x @ w / rows(x)


@refused("Arrays that are not as declared", M, np.ones((2, 4)))
def annotated_otherwise(x: Tensor["n", "d"], w: Tensor["d", 4]):
    return x @ w


# ------------------------------------------------------------------------------------------------
section("Other statements")


@compiled("try, except, else, finally", [4.0, 2.0], 0.0)
def tries(values, y):
    try:
        ratio = values[0] / y
    except ZeroDivisionError:
        ratio = -1.0
    except (ValueError, KeyError) as error:
        raise RuntimeError("no ratio") from error
    else:
        ratio += 1.0
    finally:
        values[1] = 0.0
    return ratio


@compiled("with pyrelay.scope: the name stands at the kernels that `f.code` shows", X)
def scopes(x):
    with pyrelay.scope("weights"):
        e = np.exp(x - x.max())
        w = e / e.sum()
    return w @ x


@compiled("with np.errstate", X)
def with_statement(x):
    with np.errstate(divide="ignore"):
        return 1.0 / x


@refused("except*", X, 2.0)
def tries_groups(x, y):
    try:
        return x[0] / y
    except* ZeroDivisionError:
        x[0] = 0.0
    return x


@compiled("Context managers written in Python: classes, contextlib", X)
def managers(x):
    @contextlib.contextmanager
    def shifted(values, by):
        values += by
        try:
            yield values
        finally:
            values -= by

    root = 0.0
    with shifted(x, 1.0) as y, contextlib.suppress(ValueError):
        root = math.sqrt(y[0] - 9.0)
    return x, root


@refused("Files and other resources", X)
def opens_a_file(x):
    with open("data.txt") as handle:
        return x, handle.read()


@compiled("Classes defined inside", 3)
def local_class(n):
    class Pair:
        first = 1

        def __init__(self, second):
            self.second = second

        def total(self):
            return self.first + self.second

    return Pair(n).total()


@refused("A class inside that reads variables of the function", 3)
def local_class_of_a_variable(n):
    class Pair:
        def first(self):
            return n

    return Pair().first()


@refused("async code", X)
async def waits(x):
    async with x:
        await x
    async for _ in x:
        pass
    return x


@refused("Deleting an attribute", 2.0)
def deletes_an_attribute(x):
    s = Scale(x)
    del s.factor
    return x


LIMIT = 4.0
SEEN = 0.0


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


Point = namedtuple("Point", "x y")


class Names(Mapping):
    def __init__(self, content):
        self.content = content

    def __getitem__(self, name):
        return self.content[name]

    def __iter__(self):
        return iter(self.content)

    def __len__(self):
        return len(self.content)


class Powers:
    def __init__(self, x, count):
        self.x, self.count = x, count

    def __getitem__(self, k):
        if k >= self.count:
            raise IndexError(k)
        return self.x**k


class Counted:
    count = 0

    def __init__(self, x):
        self.x, self.number = x, Counted.count
        Counted.count += 1


@dataclass
class Scale:
    factor: float

    def applied(self, x):
        return self.factor * x

    @property
    def double(self):
        return self.factor * 2

    def __add__(self, other):
        return Scale(self.factor + other.factor)
