"""Numbers as objects that know what they were computed from, and optimisers that keep state."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from tests.users.corpus import use

RNG = np.random.default_rng(11)


class Value:
    """A node of a graph of computations, with all its operators."""

    def __init__(self, data: float, parents: tuple[Value, ...] = (), op: str = "") -> None:
        self.data = data
        self.parents = parents
        self.op = op
        self.grad = 0.0

    def __add__(self, other: Any) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), "+")

    def __mul__(self, other: Any) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), "*")

    def __radd__(self, other: Any) -> Value:
        return self + other

    def __rmul__(self, other: Any) -> Value:
        return self * other

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Any) -> Value:
        return self + (-other)

    def __lt__(self, other: Value) -> bool:
        return self.data < other.data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: int) -> Value:
        return self.parents[index]

    def __len__(self) -> int:
        return len(self.parents)

    def __call__(self, x: float) -> float:
        return self.data * x

    def backward(self, cotangent: float) -> None:
        """Add what each number contributes, down to the leaves."""
        self.grad += cotangent
        if self.op == "+":
            self.parents[0].backward(cotangent)
            self.parents[1].backward(cotangent)
        elif self.op == "*":
            left, right = self.parents
            left.backward(cotangent * right.data)
            right.backward(cotangent * left.data)


@use((0.5, 1.5), wrt=(0, 1), long=True)
def graph_of_values(a, b):
    x, y = Value(a), Value(b)
    z = 2.0 * x * y + (-y) - x
    return (z * z).data


@use((0.5, 1.5), (2.0, -1.0), long=True)
def graph_differentiated_by_hand(a, b):
    x, y = Value(a), Value(b)
    z = x * y + x
    z.backward(1.0)
    return x.grad, y.grad, z.data, x < y, x == y, x != y, len(z), z[0].data, z(2.0)


class Momentum:
    """State by the name of a parameter, made when the name is first met."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.velocity: Any = defaultdict(float)

    def step(self, params: dict[str, Any], grads: dict[str, Any]) -> None:
        for name, grad in grads.items():
            self.velocity[name] = 0.9 * self.velocity[name] - self.rate * grad
            params[name] = params[name] + self.velocity[name]


@use(({"w": RNG.normal(size=(2, 3)), "b": RNG.normal(size=3)}, RNG.normal(size=(4, 2))), long=True)
def state_by_name(params, x):
    optimiser = Momentum(0.1)
    for _ in range(3):
        grads = {"w": x.T @ (x @ params["w"] + params["b"]), "b": params["b"].copy()}
        optimiser.step(params, grads)
    return params, optimiser.velocity


@use(("the cat sat on the mat the end",))
def words_by_frequency(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    letters = Counter(text)
    groups = defaultdict(list)
    for place, word in enumerate(text.split()):
        groups[word[0]].append(place)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ranked, letters.most_common(2), groups, max(counts, key=counts.get)


@use(({"a": 2.0, "b": 1.5, "c": 3.0}, 1.7), ({"a": 0.0, "b": 1.5, "c": -3.0}, 2.0), long=True)
def names_by_score(scores, bonus):
    raised = {name: s * s - bonus for name, s in scores.items()}
    pairs = [(score, name) for name, score in raised.items()]
    pairs.sort(reverse=True)
    return pairs, sorted(raised, key=lambda name: raised[name])


@use((np.arange(12.0).reshape(3, 4), 2), wrt=(0,), long=True)
def rows_of_a_range(x, n):
    y = x[range(n)] * 2.0
    y[range(n - 1)] = 1.0
    return (y[:, range(0, 4, 2)] ** 2).sum()


@use((RNG.normal(size=(5, 6)), RNG.normal(size=(2, 3))), wrt=(0, 1), long=True)
def correlation_by_windows(image, kernel):
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 3))
    return (np.einsum("ijkl,kl->ij", windows, kernel) ** 2).sum()


class Kind(enum.Enum):
    """Members that are called."""

    SUM = "+"
    PRODUCT = "*"

    def __call__(self, a, b):
        return a + b if self is Kind.SUM else a * b


@use((Kind.SUM, 1.5), (Kind.PRODUCT, 1.5), wrt=(1,))
def members_that_are_called(kind, x):
    return kind(x, 2.0) + Kind("*")(x, x)


@use((np.arange(6.0).reshape(2, 3),), wrt=(0,), slow=True)
def elements_with_indices(x):
    total = 0.0
    for (i, j), value in np.ndenumerate(x):
        total += value**2 * (i + 2 * j)
    for i, j in np.ndindex(x.shape):
        total += x[i, j] * x[i, 0]
    for value in np.nditer(x):
        total -= value
    return total


@use((12, 34, 1000007), (3, -1, 7), (-5, 10**17, 2**63 - 25), (3, 2**62, 3 - 2**62))
def powers_modulo(base, exponent, modulus):
    return pow(base, exponent, modulus), pow(3, 5, 7)


@use((2, -1, 4), (2, 3, 0), long=True)
def powers_modulo_what_has_none(base, exponent, modulus):
    return pow(base, exponent, modulus)


@dataclasses.dataclass
class Part:
    """What a record holds."""

    x: Any
    names: dict[str, float]


@dataclasses.dataclass
class Record:
    """Fields of several kinds."""

    x: Any
    tags: list[int]
    inner: Part


@use((RNG.normal(size=3), 2))
def records_as_dicts(x, n):
    record = Record(x, [1, n], Part(x * 2, {"a": 1.0}))
    fields, parts = dataclasses.asdict(record), dataclasses.astuple(record)
    x[0] = 9.0
    record.tags.append(3)
    return fields, parts, fields["inner"]["x"] is record.inner.x


@use((7,))
def reached_by_short_steps(n):
    seen, order, stack = set(), [], [0]
    while stack:
        u = stack.pop()
        if u in seen:
            continue
        seen.add(u)
        order.append(u)
        for v in range(u + 1, min(u + 3, n)):
            stack.append(v)
    return order, seen


@use(({0: [1, 2], 1: [3], 2: [3], 3: []},), long=True)
def order_of_tasks(needs):
    seen, order = set(), []

    def visit(task):
        if task in seen:
            return
        seen.add(task)
        for other in needs[task]:
            visit(other)
        order.append(task)

    for task in needs:
        visit(task)
    return order[::-1]


class Scalar:
    """A node that knows its slopes by what it was computed from."""

    __slots__ = ("children", "data", "grad", "slopes")

    def __init__(self, data, children=(), slopes=()):
        self.data = data
        self.grad = 0
        self.children = children
        self.slopes = slopes

    def __add__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.data * other.data, (self, other), (other.data, self.data))

    def exp(self):
        y = np.exp(self.data)
        return Scalar(y, (self,), (y,))

    def backward(self):
        order, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v.children:
                    build(child)
                order.append(v)

        build(self)
        self.grad = 1
        for v in reversed(order):
            for child, slope in zip(v.children, v.slopes, strict=True):
                child.grad += slope * v.grad


@use((0.5, -0.25), joins=True, long=True)
def slopes_by_child(w, x):
    w, x = Scalar(w), Scalar(x)
    y = (w * x + 0.5).exp() * w
    y.backward()
    return y.data, w.grad, x.grad


@use((np.array([0.5, -1.0, 2.0, 3.0, 1.0]),), (np.array([0.5, -1.0]),), wrt=(0,))
def known_items_beside_others(x):
    found = []
    for v in x:
        if v > 0:
            found.append(v)
    total = 0.0
    for weight, v in zip((1.0, 0.5, 0.25), found, strict=False):
        total += weight * v
    return total


@use((3, 0.5), wrt=(1,))
def called_with_all_items(n, x):
    last = Scalar(x)
    for k in range(n):
        last = Scalar(x, (last,), (x, k * x) if k % 2 else (x,))
    total = 0.0
    while last.children:
        total += max(*last.slopes, 0.25)
        last = last.children[0]
    return total


class Place:
    def __init__(self, x, y, cost, before):
        self.x, self.y, self.cost, self.before = x, y, cost, before


@use((5, 1.25), wrt=(1,))
def way_beside_walls(n, weight):
    """Rows of the map are changed before objects are found to be nodes, which are dict values."""
    walls = [[False for _ in range(n)] for _ in range(n)]
    for k in range(n - 1):
        walls[k][n // 2] = True
    todo, done = {0: Place(0, 0, 0.0, -1)}, {}
    while todo:
        key = min(todo, key=lambda k: todo[k].cost)
        here = todo.pop(key)
        done[key] = here
        if here.x == 0 and here.y == n - 1:
            break
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            there = Place(here.x + dx, here.y + dy, here.cost + weight, key)
            if not (0 <= there.x < n and 0 <= there.y < n) or walls[there.x][there.y]:
                continue
            beside = there.x * n + there.y
            if beside in done:
                continue
            if beside not in todo or todo[beside].cost > there.cost:
                todo[beside] = there
    steps, before = 0, done[n - 1].before
    while before != -1:
        steps, before = steps + 1, done[before].before
    return done[n - 1].cost, steps


@use(([(0, 1), (1, 2), (2, 0), (3, 4)],))
def parts_of_a_graph(edges):
    beside = {}
    for u, v in edges:
        beside.setdefault(u, []).append(v)
        beside.setdefault(v, []).append(u)

    def reached(u, found):
        found.append(u)
        for v in beside[u]:
            if v not in found:
                reached(v, found)

    parts, seen = [], set()
    for u in sorted(beside):
        if u not in seen:
            part = []
            reached(u, part)
            seen.update(part)
            parts.append(sorted(part))
    return parts, sorted(seen.difference(parts[0]))
