"""What pools of nodes lack is found by few attempts, however many fields lack something."""

from __future__ import annotations

from typing import Any

import pytest

import pyrelay
from pyrelay.frontend.parse import parse
from pyrelay.infer.attempt import Attempt
from pyrelay.infer.specialise import specialise


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
