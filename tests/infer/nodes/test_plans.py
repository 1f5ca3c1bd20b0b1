"""What pools of nodes lack is found by few attempts, however many fields lack something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import pyrelay
from pyrelay.frontend.parse import parse
from pyrelay.infer.attempt import Attempt
from pyrelay.infer.specialise import specialise
from tests.infer.running import assert_same_outcome, interpreted, plainly


class Node:
    """One of a chain, with a word, what computes of it, and the one before."""

    def __init__(self, word: str, before: Any = None) -> None:
        self.word = word
        self.before = before
        self.apply: Any = lambda x: x
        self.times = 0


def made(word: str, before: Any, factor: float) -> Node:
    node = Node(word, before)
    node.apply = lambda x: x * factor if word == "b" else x + factor
    return node


def of_words(m: float) -> tuple[float, str]:
    """Each node has a word of its own; the functions and the numbers come in later."""
    node = made("a", None, m)
    node = made("b", node, m)
    node = Node("c", node)
    node.apply = lambda x: x * x
    node = made("d", node, m)
    node.times = m
    node = Node("e", Node("f", node))
    total, words = m, ""
    while node is not None:
        total = node.apply(total) + node.times
        words = node.word
        node = node.before
    return total, words


def attempts(function: Any, *args: Any) -> int:
    count, run = 0, Attempt.run

    def counted(*given: Any) -> Any:
        nonlocal count
        count += 1
        return run(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Attempt, "run", counted)
        specialise(function, args, {}, parse)
    return count


def test_one_attempt_finds_all_words_functions_and_kinds_that_fields_have() -> None:
    assert attempts(of_words, 1.5) <= 4  # there were 13
    assert pyrelay.jit(of_words)(1.5) == of_words(1.5)


class Term:
    """A number of a graph, what it is made of, and what hands its slope on."""

    def __init__(self, value: Any, parts: Any = ()) -> None:
        self.value = value
        self.slope: Any = 0.0
        self.parts = set(parts)
        self.back: Any = lambda: None

    def __add__(self, other: Any) -> Any:
        out = Term(self.value + other.value, (self, other))

        def back() -> None:
            self.slope += out.slope
            other.slope += out.slope

        out.back = back
        return out

    def squared(self) -> Any:
        out = Term(self.value * self.value, (self,))

        def back() -> None:
            self.slope += 2.0 * self.value * out.slope

        out.back = back
        return out


def slopes(x: float, y: float) -> tuple[float, float]:
    a, b = Term(x), Term(y)
    total = (a + b).squared() + a
    order: Any = []
    seen = set()

    def visit(term: Any) -> None:
        if term not in seen:
            seen.add(term)
            for part in term.parts:
                visit(part)
            order.append(term)

    visit(total)
    total.slope = 1
    for term in reversed(order):
        term.back()
    return a.slope, b.slope


def test_sets_that_are_given_nodes_are_tables_beside_what_fields_lack() -> None:
    assert attempts(slopes, 1.5, 2.0) <= 6  # there were 19
    assert_same_outcome(interpreted(slopes, (1.5, 2.0)), plainly(slopes, (1.5, 2.0)))


class Part:
    def __init__(self, number: Any, before: Any = None) -> None:
        self.number, self.before = number, before


def numbered(n: int) -> str:
    part = Part(n)
    part = Part(n + 1, part)
    said = ""
    for _ in range(n):
        said += "ab"
    return said[part.before.number]


def test_plans_without_texts_stay_where_texts_have_no_known_length() -> None:
    assert attempts(numbered, 3) <= 5  # there were 8
    assert_same_outcome(interpreted(numbered, (3,)), plainly(numbered, (3,)))


@dataclass
class Number:
    value: float


@dataclass
class Negated:
    of: Any


@dataclass
class Total:
    left: Any
    right: Any


def parsed(codes: list[int]) -> Any:
    at = 0

    def term() -> Any:
        nonlocal at
        code = codes[at]
        at += 1
        if code == 0:
            return Negated(term())
        if code == 1:
            return Total(term(), term())
        return Number(code * 0.5)

    return term()


def value(tree: Any) -> Any:
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Negated):
        return -value(tree.of)
    return value(tree.left) + value(tree.right)


def value_of_codes(codes: list[int]) -> Any:
    return value(parsed(codes))


def test_nodes_of_other_paths_are_found_where_one_cannot_be_made() -> None:
    codes = [1, 0, 4, 1, 5, 0, 0, 6]
    assert attempts(value_of_codes, codes) <= 6  # there were 8
    assert_same_outcome(interpreted(value_of_codes, (codes,)), plainly(value_of_codes, (codes,)))


def spoken(words: list[str]) -> tuple[int, int]:
    def first(k: int) -> int:
        if k == 0:
            return 0
        count = first(k - 1)
        if words[k] == "ring":
            count += 1
        elif words[k].startswith("wor"):
            count += 10
        return 2 * count

    def second(k: int) -> int:
        if k == 0:
            return 0
        count = second(k - 1)
        return count + words[k].endswith("ed") + 5 * words[k].isdecimal()

    return first(len(words) - 1), second(len(words) - 1)


def test_arrays_that_functions_read_are_found_together() -> None:
    words = ["ring", "word", "red", "7"] * 6
    assert attempts(spoken, words) == 2  # there was one for each function
    assert_same_outcome(interpreted(spoken, (words,)), plainly(spoken, (words,)))


class Known:
    def __init__(self, value: float) -> None:
        self.value = value

    def at(self, x: float) -> float:
        return self.value


class Unknown:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def at(self, x: float) -> float:
        return self.scale * x


class Both:
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def at(self, x: float) -> float:
        return float(self.left.at(x) + self.right.at(x))


def summed_up(codes: list[int], x: float) -> float:
    tree: Any = Known(1.0)
    for code in codes:
        one = Known(code * 0.5) if code % 2 else Unknown(code * 0.25)
        tree = Both(tree, one)
    return float(tree.at(x))


def test_objects_that_turn_out_to_be_nodes_say_what_these_hold() -> None:
    codes = [3, 2, 5, 8, 1]
    assert attempts(summed_up, codes, 2.0) <= 4  # there were 7
    assert pyrelay.jit(summed_up)(codes, 2.0) == summed_up(codes, 2.0)


def near(edges: list[tuple[int, int]]) -> int:
    found: dict[int, set[int]] = {}
    for a, b in edges:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return max(len(others) for others in found.values())


def test_nodes_take_in_what_their_fields_hold_at_once() -> None:
    edges = [(k, k * k % 7) for k in range(9)]
    assert attempts(near, edges) <= 6  # there were 27
    assert pyrelay.jit(near)(edges) == near(edges)
