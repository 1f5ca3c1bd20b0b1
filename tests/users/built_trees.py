"""Trees that the program builds: mapped, inserted into, differentiated symbolically, searched."""

from __future__ import annotations

import dataclasses
import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.users.corpus import use


@dataclass
class Branch:
    value: float
    left: Branch | None = None
    right: Branch | None = None


BRANCHES = Branch(1.0, Branch(2.0), Branch(3.5, None, Branch(4.0)))


@dataclass(frozen=True)
class Leaf:
    x: np.ndarray


@dataclass(frozen=True)
class Pair:
    left: Leaf | Pair
    right: Leaf | Pair


PAIRS = Pair(Leaf(np.array([1.0, 2.0, 3.0])), Pair(Leaf(np.ones(3)), Leaf(np.array([0.1, 0.2, 3]))))


@use((1.0, 2.0), wrt=(0, 1), slow=True)
def made_and_read(a, b):
    t = Branch(a, Branch(b))
    return t.value * t.left.value


@use((5,), (0,))
def made_by_recursion(n):
    if n == 0:
        return None
    return Branch(float(n), made_by_recursion(n - 1), made_by_recursion(n - 2) if n > 1 else None)


def scaled(t, k):
    if t is None:
        return None
    return Branch(t.value * k, scaled(t.left, k), scaled(t.right, k))


def sum_of_squares(t):
    return 0.0 if t is None else t.value ** 2 + sum_of_squares(t.left) + sum_of_squares(t.right)


@use((BRANCHES, 2.0))
def mapped(t, k):
    return scaled(t, k), mirrored(t)


def mirrored(t):
    return None if t is None else Branch(t.value, mirrored(t.right), mirrored(t.left))


@use((BRANCHES, 2.0), wrt=(0, 1), slow=True)
def mapped_and_folded(t, k):
    return sum_of_squares(scaled(t, k))


@use((PAIRS, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])), long=True)
def leaves_of_another_size(t, w):
    match t:
        case Leaf(x):
            return Leaf(w @ x)
        case Pair(left, right):
            return Pair(leaves_of_another_size(left, w), leaves_of_another_size(right, w))


def inserted(t, v):
    if t is None:
        return Branch(v)
    if v < t.value:
        return Branch(t.value, inserted(t.left, v), t.right)
    return Branch(t.value, t.left, inserted(t.right, v))


@use((BRANCHES, 2.5), (None, 1.0))
def inserted_into_an_argument(t, v):
    return inserted(t, v)


@use((np.array([3.0, 1.0, 2.0, 5.0]),), wrt=(0,), long=True)
def inserted_one_by_one(values):
    t = None
    for v in values:
        t = inserted(t, v)
    return sum_of_squares(t.left) * 2 + sum_of_squares(t.right)


@use((BRANCHES,))
def some_parts_kept(t):
    if t is None or t.value > 3.7:
        return None
    return Branch(t.value, some_parts_kept(t.left), some_parts_kept(t.right))


@use((BRANCHES, BRANCHES.right), (Branch(0.25), BRANCHES))
def an_argument_or_a_new_node(a, b):
    return a if a.value > 0.5 else Branch(0.0, a, b)


@use((BRANCHES,))
def a_field_replaced(t):
    return dataclasses.replace(t, value=9.0)


class Link:
    def __init__(self, head, tail=None):
        self.head = head
        self.tail = tail


@use((Link(1.0, Link(2.0, Link(3.0))),))
def reversed_list(link):
    out = None
    while link is not None:
        out = Link(link.head, out)
        link = link.tail
    return out


@use((4,))
def list_of_a_loop(n):
    link = None
    for i in range(n):
        link = Link(i, link)
    total = 0
    while link is not None:
        total += link.head
        link = link.tail
    return total


class Cell(NamedTuple):
    value: float
    kids: tuple


@use((1.0, 2.0), wrt=(0, 1), long=True)
def children_in_a_tuple(a, b):
    cell = Cell(a, (Cell(b, ()), Cell(a + b, ())))
    return cell.value * sum(k.value for k in cell.kids), cell


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


Expr = Num | Name | Add | Mul
EXPRESSION = Add(Mul(Num(2.0), Name("x")), Mul(Name("y"), Add(Name("x"), Num(1.5))))


def evaluate(e, x, y):
    match e:
        case Num(v):
            return v
        case Name("x"):
            return x
        case Name(_):
            return y
        case Add(a, b):
            return evaluate(a, x, y) + evaluate(b, x, y)
        case Mul(a, b):
            return evaluate(a, x, y) * evaluate(b, x, y)


def derivative(e):
    match e:
        case Num(_):
            return Num(0.0)
        case Name(name):
            return Num(1.0) if name == "x" else Num(0.0)
        case Add(a, b):
            return Add(derivative(a), derivative(b))
        case Mul(a, b):
            return Add(Mul(derivative(a), b), Mul(a, derivative(b)))


@use((EXPRESSION,), long=True)
def symbolic_derivative(e):
    return derivative(e)


@use((EXPRESSION, 3.0, 2.0), wrt=(0, 1, 2), long=True)
def symbolic_derivative_evaluated(e, x, y):
    return evaluate(derivative(e), x, y)


@use((Mul(Add(Num(1.0), Num(-1.0)), Name("x")),), (EXPRESSION,), long=True)
def simplified(e):
    match e:
        case Add(a, b):
            a, b = simplified(a), simplified(b)
            if isinstance(a, Num) and isinstance(b, Num):
                return Num(a.value + b.value)
            return Add(a, b)
        case Mul(a, b):
            a, b = simplified(a), simplified(b)
            if isinstance(a, Num) and a.value == 0:
                return Num(0.0)
            return Mul(a, b)
        case _:
            return e


@use((BRANCHES,), wrt=(0,), slow=True)
def by_a_stack(t):
    stack, total = [t], 0.0
    while stack:
        node = stack.pop()
        if node is not None:
            total += node.value ** 2
            stack.append(node.left)
            stack.append(node.right)
    return total


@use((BRANCHES,))
def by_a_queue(t):
    queue, seen = [t], []
    while queue:
        node = queue.pop(0)
        seen.append(node.value)
        if node.left is not None:
            queue.append(node.left)
        if node.right is not None:
            queue.append(node.right)
    return seen


@use((["the rain in spain", "a"] * 3,), long=True)
def lengths_of_codes(lines):
    """Entries of the heap are triples, as are the trees in them."""
    many = {}
    for letter in "".join(lines):
        many[letter] = many.get(letter, 0) + 1
    heap = [(n, i, (c, None, None)) for i, (c, n) in enumerate(sorted(many.items()))]
    heapq.heapify(heap)
    made = len(heap)
    while len(heap) > 1:
        first, second = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (first[0] + second[0], made, (None, first[2], second[2])))
        made += 1
    codes = {}

    def walk(tree, code):
        letter, left, right = tree
        if letter is not None:
            codes[letter] = code
        else:
            walk(left, code + "0")
            walk(right, code + "1")

    walk(heap[0][2], "")
    return sorted(codes.items())


@use(([5, 3, 8, 3, 5, 1],), ([2, 2],))
def triples_in_a_heap_of_triples(numbers):
    heap = [(n, i, (i, None, None)) for i, n in enumerate(numbers)]
    heapq.heapify(heap)
    made = len(heap)
    while len(heap) > 1:
        first, second = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (first[0] + second[0], made, (None, first[2], second[2])))
        made += 1
    return heap[0][:2]
