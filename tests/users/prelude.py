"""Lists, naturals, options and rose trees as algebraic data types, with the functions that a
functional language's prelude has for them, and functions of functions of functions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.users.corpus import refuse, use

NUMBERS = [5, 3, 8, 1, 9, 2]
MATRIX = np.random.default_rng(5).normal(size=(3, 3))


@dataclass
class Nil:
    pass


@dataclass
class Cons:
    head: Any
    tail: Any


@dataclass
class Zero:
    pass


@dataclass
class Successor:
    of: Any


@dataclass
class Nothing:
    pass


@dataclass
class Some:
    value: Any


@dataclass
class Rose:
    value: Any
    children: Any


def _linked(items):
    made = Nil()
    for item in reversed(items):
        made = Cons(item, made)
    return made


def _items(linked):
    found = []
    while isinstance(linked, Cons):
        found.append(linked.head)
        linked = linked.tail
    return found


def _mapped(f, linked):
    match linked:
        case Nil():
            return Nil()
        case Cons(head, tail):
            return Cons(f(head), _mapped(f, tail))


def _fold_left(f, start, linked):
    match linked:
        case Nil():
            return start
        case Cons(head, tail):
            return _fold_left(f, f(start, head), tail)


def _fold_right(f, end, linked):
    match linked:
        case Nil():
            return end
        case Cons(head, tail):
            return f(head, _fold_right(f, end, tail))


def _reversed(linked):
    return _fold_left(lambda made, item: Cons(item, made), Nil(), linked)


def _joined(first, second):
    return _fold_right(lambda item, made: Cons(item, made), second, first)


def _chosen(test, linked):
    match linked:
        case Nil():
            return Nil()
        case Cons(head, tail):
            return Cons(head, _chosen(test, tail)) if test(head) else _chosen(test, tail)


def _zipped(first, second):
    match first, second:
        case Cons(a, left), Cons(b, right):
            return Cons((a, b), _zipped(left, right))
        case _:
            return Nil()


def _unfolded(step, state):
    match step(state):
        case Nothing():
            return Nil()
        case Some((value, following)):
            return Cons(value, _unfolded(step, following))


def _accumulated(f, state, linked):
    match linked:
        case Nil():
            return state, Nil()
        case Cons(head, tail):
            between, item = f(state, head)
            last, rest = _accumulated(f, between, tail)
            return last, Cons(item, rest)


def _natural(n):
    return Zero() if n == 0 else Successor(_natural(n - 1))


def _count(natural):
    match natural:
        case Zero():
            return 0
        case Successor(of):
            return 1 + _count(of)


def _sum(a, b):
    match a:
        case Zero():
            return b
        case Successor(of):
            return Successor(_sum(of, b))


def _product(a, b):
    match a:
        case Zero():
            return Zero()
        case Successor(of):
            return _sum(b, _product(of, b))


def _size(tree):
    return 1 + _fold_left(lambda count, child: count + _size(child), 0, tree.children)


def _mapped_tree(f, tree):
    return Rose(f(tree.value), _mapped(lambda child: _mapped_tree(f, child), tree.children))


@use((NUMBERS,))
def folds_of_a_linked_list(numbers):
    linked = _linked(numbers)
    left = _fold_left(lambda total, n: total - n, 0, linked)
    right = _fold_right(lambda n, total: n - total, 0, linked)
    return left, right, _items(_chosen(lambda n: n % 2 == 0, linked))


@use((NUMBERS,))
def a_linked_list_zipped_with_itself_reversed(numbers):
    linked = _linked(numbers)
    return _items(_zipped(linked, _reversed(linked)))


@use((NUMBERS,))
def pairs_joined_to_their_own_list(numbers):
    linked = _linked(numbers)
    pairs = _zipped(linked, _joined(linked, linked))
    return [a * 10 + b for a, b in _items(pairs)]


@use((4,), (0,))
def squares_unfolded(n):
    counted = _unfolded(lambda k: Some((k * k, k - 1)) if k > 0 else Nothing(), n)
    return _accumulated(lambda total, k: (total + k, total * k), 1, counted)


@use((3, 4), (0, 2))
def product_of_naturals(a, b):
    return _count(_product(_natural(a), _natural(b)))


@use((MATRIX,), wrt=(0,), slow=True)
def rose_tree_of_matrices(x):
    leaf = Rose(x @ x, Nil())
    tree = Rose(x, _linked([Rose(x * 2.0, _linked([leaf])), leaf]))
    mapped = _mapped_tree(np.tanh, tree)
    return _size(mapped) * _fold_left(lambda s, c: s + c.value.sum(), 0.0, mapped.children)


def _iterated(f, n):
    if n == 0:
        return lambda x: x
    following = _iterated(f, n - 1)
    return lambda x: f(following(x))


@use((MATRIX, 3), (MATRIX, 0), wrt=(0,))
def function_iterated(x, n):
    return _iterated(lambda y: np.tanh(y) + 0.1, n)(x).sum()


def _factorial(n, then):
    return then(1) if n == 0 else _factorial(n - 1, lambda rest: then(n * rest))


@use((5,), (0,))
def factorial_by_continuations(n):
    return _factorial(n, lambda result: result)


@refuse(
    (np.array([4]),), "_factorial' calls itself with ever new types of arguments",
    "'then' grows without end",
)
def factorial_by_continuations_of_an_element(numbers):
    return _factorial(int(numbers[0]), lambda result: result)


@use((MATRIX,), wrt=(0,))
def functions_composed(x):
    composed = functools.reduce(
        lambda f, g: lambda y: f(g(y)), (np.sin, lambda y: y * 2.0, np.cos), lambda y: y
    )
    return composed(x).sum()


def _integers(start):
    return lambda: (start, _integers(start + 1))


@use((4,))
def first_of_an_endless_stream(n):
    stream, taken = _integers(3), []
    for _ in range(n):
        value, stream = stream()
        taken.append(value)
    return taken


@dataclass
class Number:
    value: float


@dataclass
class Name:
    text: str


@dataclass
class Sum:
    left: Any
    right: Any


@dataclass
class Product:
    left: Any
    right: Any


def _derivative(of, name):
    match of:
        case Number():
            return Number(0.0)
        case Name(text):
            return Number(1.0 if text == name else 0.0)
        case Sum(a, b):
            return Sum(_derivative(a, name), _derivative(b, name))
        case Product(a, b):
            return Sum(Product(_derivative(a, name), b), Product(a, _derivative(b, name)))


def _simplified(of):
    match of:
        case Sum(a, b):
            match _simplified(a), _simplified(b):
                case Number(x), Number(y):
                    return Number(x + y)
                case (Number(0.0), other) | (other, Number(0.0)):
                    return other
                case left, right:
                    return Sum(left, right)
        case Product(a, b):
            match _simplified(a), _simplified(b):
                case (Number(0.0), _) | (_, Number(0.0)):
                    return Number(0.0)
                case (Number(1.0), other) | (other, Number(1.0)):
                    return other
                case left, right:
                    return Product(left, right)
        case _:
            return of


SQUARE = Sum(Product(Name("x"), Name("x")), Product(Number(3.0), Name("x")))


@use((SQUARE, "x"))
def derivative_of_an_expression(expression, name):
    return _derivative(expression, name)


@use((SQUARE, "x"), long=True)
def simplified_derivative(expression, name):
    return _simplified(_derivative(expression, name))
