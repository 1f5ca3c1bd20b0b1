"""Trees as data: classes that contain themselves, walked by recursion and by loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tests.users.corpus import use


@dataclass
class Branch:
    value: float
    left: Branch | None = None
    right: Branch | None = None


BRANCHES = Branch(1.0, Branch(2.0), Branch(3.5, None, Branch(4.0)))


@use((BRANCHES,), (Branch(2.5),), (None,), wrt=(0,), corners=(2,))
def total(t):
    if t is None:
        return 0.0
    return t.value + total(t.left) + total(t.right)


@use((BRANCHES,))
def depth(t):
    return 0 if t is None else 1 + max(depth(t.left), depth(t.right))


@use((BRANCHES,), wrt=(0,), long=True)
def sum_of_leaves(t):
    if t.left is None and t.right is None:
        return t.value ** 2
    s = 0.0
    if t.left is not None:
        s += sum_of_leaves(t.left)
    if t.right is not None:
        s += sum_of_leaves(t.right)
    return s


@use((BRANCHES,), (Branch(1.5, Branch(2.0, Branch(0.25))),))
def count_by_truth(t):
    n = 1
    if t.left:
        n += count_by_truth(t.left)
    if t.right:
        n += count_by_truth(t.right)
    return n


def even(t):
    return 0.0 if t is None else t.value + odd(t.left) + odd(t.right)


def odd(t):
    return 0.0 if t is None else -t.value + even(t.left) + even(t.right)


@use((BRANCHES,), wrt=(0,), slow=True)
def levels_alternate(t):
    return even(t) ** 2


@use((BRANCHES, 0.5), wrt=(0, 1), long=True)
def passes_down(t, x):
    if t is None:
        return np.sin(x)
    return passes_down(t.left, x * t.value) + passes_down(t.right, x + t.value)


@use((BRANCHES, BRANCHES.right), (BRANCHES, BRANCHES), wrt=(0, 1), slow=True)
def products_of_two(a, b):
    if a is None or b is None:
        return 0.0
    return a.value * b.value + products_of_two(a.left, b.left) + products_of_two(a.right, b.right)


@use((BRANCHES,))
def parts_of_the_argument(t):
    return t.left, t.right.right, (t, t.left.left)


@use((BRANCHES, BRANCHES.left), (BRANCHES, Branch(2.0)))
def identity(t, u):
    return t.left is u, t.right is not u, t is t, t.left is None


@use((BRANCHES, True), (BRANCHES, False))
def chosen_branch(t, left):
    s = t.left if left else t.right
    return s.value


@use((BRANCHES,))
def missing_child(t):
    return t.left.left.value


@use((BRANCHES,), long=True)
def in_order(t):
    out = np.zeros(4)

    def walk(t, i):
        if t is None:
            return i
        i = walk(t.left, i)
        out[i] = t.value
        return walk(t.right, i + 1)

    walk(t, 0)
    return out


@use((BRANCHES,))
def two_results(t):
    if t is None:
        return 0.0, 0
    (a, n), (b, m) = two_results(t.left), two_results(t.right)
    return a + b + t.value, n + m + 1


@use(({"tree": BRANCHES, "k": (2.0, BRANCHES.right)},), wrt=(0,), slow=True)
def inside_other_structures(d):
    factor, part = d["k"]
    return total(d["tree"]) * factor + total(part)


# -- linked lists ----------------------------------------------------------------------------------


class Link:
    def __init__(self, head, tail=None):
        self.head = head
        self.tail = tail


LINKS = Link(3.0, Link(1.0, Link(4.0, Link(1.5))))


@use((LINKS,), (Link(2.0, Link(0.5)),))
def squares_by_loop(link):
    s = 0.0
    while link is not None:
        s += link.head ** 2
        link = link.tail
    return s


@use((LINKS, 2))
def nth(link, n):
    for _ in range(n):
        link = link.tail
    return link.head


@use((LINKS,))
def last(link):
    while link.tail is not None:
        link = link.tail
    return link.head


@use((Link(1, Link(2, Link(5))),), (Link(np.float32(1.5), Link(np.float32(2))),))
def kind_of_numbers(link):
    return link.head + kind_of_numbers(link.tail) if link.tail else link.head


# -- expressions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Num:
    value: float


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Add:
    a: Expr
    b: Expr


@dataclass(frozen=True)
class Mul:
    a: Expr
    b: Expr


@dataclass(frozen=True)
class Neg:
    a: Expr


Expr = Num | Name | Add | Mul | Neg
EXPRESSION = Add(Mul(Num(2.0), Name("x")), Neg(Mul(Name("y"), Add(Name("x"), Num(1.5)))))


@use((EXPRESSION, 3.0, 4.0), (Mul(EXPRESSION, EXPRESSION), 1.0, 2.0), wrt=(0, 1, 2), long=True)
def evaluate(e, x, y):
    match e:
        case Num(v):
            return v
        case Name("x"):
            return x
        case Name(name="y"):
            return y
        case Add(a, b):
            return evaluate(a, x, y) + evaluate(b, x, y)
        case Mul(a=a, b=b):
            return evaluate(a, x, y) * evaluate(b, x, y)
        case Neg(a):
            return -evaluate(a, x, y)
        case _:
            raise ValueError("unknown name")


@use((EXPRESSION, {"x": 3.0, "y": 2.0}), wrt=(0, 1), long=True)
def evaluate_by_isinstance(e, env):
    if isinstance(e, Num):
        return e.value
    if isinstance(e, Name):
        return env["x"] if e.name == "x" else env["y"]
    if isinstance(e, (Add, Mul)):
        a, b = evaluate_by_isinstance(e.a, env), evaluate_by_isinstance(e.b, env)
        return a + b if isinstance(e, Add) else a * b
    return -evaluate_by_isinstance(e.a, env)


@use((EXPRESSION,))
def size_of_expression(e):
    match e:
        case Num() | Name():
            return 1
        case Neg(a):
            return 1 + size_of_expression(a)
        case Add(a, b) | Mul(a, b):
            return 1 + size_of_expression(a) + size_of_expression(b)


@use((EXPRESSION,), long=True)
def guarded_cases(e):
    match e:
        case Num(v) if v > 1.75:
            return 10.0
        case Num(v):
            return v
        case Add(Mul(a, _), b) if isinstance(a, Num):
            return guarded_cases(a) + guarded_cases(b)
        case Add(a, b) | Mul(a, b):
            return guarded_cases(a) - guarded_cases(b)
        case Neg(a):
            return guarded_cases(a)
    return 0.5


# -- classes with methods --------------------------------------------------------------------------


class Shape:
    def area(self):
        return 0.0


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


class Stack(Shape):
    def __init__(self, a: Shape, b: Shape):
        self.a, self.b = a, b

    def area(self):
        return self.a.area() + 2 * self.b.area()


@use((Stack(Square(2.0), Stack(Square(3.0), Square(1.0))),))
def method_of_each_class(shape):
    return shape.area()


@dataclass(frozen=True)
class Member:
    value: float
    left: Member | None = None
    right: Member | None = None

    @property
    def is_leaf(self):
        return self.left is None and self.right is None

    def total(self):
        if self.is_leaf:
            return self.value
        return self.value + self.left.total() + self.right.total()


@use((Member(1.0, Member(2.0), Member(3.0, Member(4.0), Member(5.0))),), wrt=(0,))
def properties_and_methods(m):
    return m.total() ** 2


# -- any number of children ------------------------------------------------------------------------


class Cell(NamedTuple):
    value: np.ndarray
    kids: tuple


CELLS = Cell(np.ones(3), (
    Cell(np.arange(3.0), ()), Cell(np.full(3, 2.0), (Cell(np.full(3, 0.5), ()),)),
))


@use((CELLS,), wrt=(0,), slow=True)
def over_a_tuple_of_children(cell):
    value, kids = cell
    return np.sum(value) * 2 + sum(over_a_tuple_of_children(k) for k in kids)


@dataclass
class Layer:
    w: np.ndarray
    children: list[Layer] = field(default_factory=list)


LAYERS = Layer(np.eye(2), [
    Layer(np.ones((2, 2))), Layer(np.full((2, 2), 0.3), [Layer(np.eye(2) * 2)]),
])


@use((LAYERS, np.array([1.0, 2.0])), wrt=(0, 1), slow=True)
def child_sum(t, x):
    h = np.tanh(t.w @ x)
    for c in t.children:
        h = h + child_sum(c, x * 0.5)
    return h


@use((LAYERS,))
def deepest(t):
    best = 0
    for c in t.children:
        d = deepest(c)
        if d > best:
            best = d
    return best + 1


@use((LAYERS,))
def along_the_last_child(t):
    if len(t.children) == 0:
        return t.w.sum()
    return along_the_last_child(t.children[-1]) + len(t.children)


@use((LAYERS,), (Layer(np.eye(2)),))
def first_child(t):
    return t.children[0].w[0, 0] + len(t.children[1:])


@use((LAYERS,))
def writes_into_every_node(t):
    t.w[0] += 1.0
    for c in t.children:
        writes_into_every_node(c)


@dataclass(frozen=True)
class Token:
    kind: str
    value: float = 0.0
    args: tuple[Token, ...] = ()


PRODUCT = Token("*", args=(Token("num", 3.0), Token("num", 4.0)))
TOKENS = Token("+", args=(Token("num", 2.0), PRODUCT))


@use((TOKENS,), (Token("?"),), (Token("+", args=(Token("num", 2.0),)),), wrt=(0,), slow=True)
def kinds_as_texts(t):
    if t.kind == "num":
        return t.value
    if t.kind not in ("+", "*"):
        raise ValueError("unknown kind")
    a, b = t.args
    if t.kind == "+":
        return kinds_as_texts(a) + kinds_as_texts(b)
    return kinds_as_texts(a) * kinds_as_texts(b)


# -- search trees ----------------------------------------------------------------------------------


@dataclass
class Entry:
    key: int
    value: float
    low: Entry | None = None
    high: Entry | None = None


ENTRIES = Entry(5, 1.0, Entry(2, 2.0, None, Entry(3, 7.0)), Entry(9, 3.0))


@use((ENTRIES, 3), (ENTRIES, 4), wrt=(0,), slow=True)
def find(t, k):
    while t is not None:
        if k == t.key:
            return t.value
        t = t.low if k < t.key else t.high
    return -1.0


@use((ENTRIES,))
def is_ordered(t):
    def within(t, low, high):
        if t is None:
            return True
        if not low < t.key < high:
            return False
        return within(t.low, low, t.key) and within(t.high, t.key, high)

    return within(t, -1000, 1000)
