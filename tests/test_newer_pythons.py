"""What Pythons after 3.11 brought, in a Python that has it."""

from __future__ import annotations

import itertools
import linecache
import math
import random
import re
import sys
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.in_python import iteration, python_math

HEAD = """
import itertools, math, operator
from dataclasses import dataclass
import numpy as np
"""

#: Since which Python, a function f, and what it is called with.
PROGRAMS = [
    ((3, 12), "def f[T](x: T) -> T:\n    return x * 2", (1.5,)),
    (
        (3, 12),
        """
        type Vector = np.ndarray

        @dataclass
        class Box[T]:
            item: T

            def get(self) -> T:
                return self.item

        def f(x: Vector, n: int):
            def plus[S](v: S, *others: S) -> S:
                return v + n
            return plus(Box(x).get()) + Box[int](n).item
        """,
        (np.ones(3), 2),
    ),
    ((3, 12), "def f(name, d):\n    return f\"{name + f'{d[\"a\"]:>5}'}!\"", ("ab", {"a": 3})),
    (
        (3, 12),
        """
        def f(a, n):
            sums = [sum(b) for b in itertools.batched(range(n), 3)]
            return [b for b in itertools.batched(a, 2)], sums
        """,
        ([1, 2, 3], 8),
    ),
    ((3, 12), "def f(p, q):\n    return math.sumprod(p, q)", ([0.1] * 10, [0.1] * 10)),
    ((3, 14), "def f(a, b):\n    return list(map(pow, a, b, strict=True))", ([1, 2], [3, 4])),
    ((3, 14), "def f(a, b):\n    return list(map(pow, a, b, strict=True))", ([1, 2], [3])),
    ((3, 14), "def f(x):\n    return operator.is_none(x), operator.is_not_none(x)", (3,)),
    ((3, 14), "def f(x, k: Unknown = 2) -> Missing[int]:\n    return x + k", (1.5,)),
    (
        (3, 14),
        """
        class Node:
            value: Number
            next: Node | None

            def __init__(self, value: Number, next: Node | None):
                self.value, self.next = value, next

        def f(x):
            node = Node(x, None)
            for k in range(3):
                node = Node(x * k, node)
            total = 0.0
            while node is not None:
                total += node.value
                node = node.next
            return total
        """,
        (1.5,),
    ),
    (
        (3, 15),
        """
        def f(a, b):
            kept = (*x for x in a)
            return [*x for x in a], {*x for x in a}, {**d for d in b}, sum(*x for x in a), [*kept]
        """,
        ([[1], [2, 3]], [{1: 2}, {3: 4}]),
    ),
    (
        (3, 14),
        """
        def f(x):
            try:
                return 1 / x
            except ZeroDivisionError, ValueError:
                return -1.0
        """,
        (0,),
    ),
]  # fmt: skip


def _made(text: str, name: str) -> Any:
    lines = text.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    text = HEAD + "\n".join(line[margin:] for line in lines) + "\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"__name__": "newer"}
    exec(compile(text, name, "exec", dont_inherit=True), scope)
    return scope["f"]


@pytest.mark.parametrize(("number", "program"), list(enumerate(PROGRAMS)))
def test_programs_of_newer_pythons(number: int, program: tuple[Any, str, tuple[Any, ...]]) -> None:
    since, text, args = program
    if sys.version_info < since:
        pytest.skip(f"Python {since[0]}.{since[1]}")
    f = _made(text, f"newer_{number}.py")
    try:
        expected = f(*args)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            pyrelay.jit(f)(*args)
        return
    assert repr(pyrelay.jit(f)(*args)) == repr(expected)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="map takes strict since 3.14")
def test_what_map_does_not_take_yet_is_refused_as_python_does() -> None:
    def f(a: Any) -> Any:
        return list(map(abs, a, strict=True))  # type: ignore[call-overload]

    with pytest.raises(TypeError, match="keyword argument"):
        pyrelay.jit(f)([1, 2])


def test_batches_are_tuples_of_so_many() -> None:
    assert list(iteration.batches("abcdefg", 3, False)) == [tuple("abc"), tuple("def"), ("g",)]
    assert list(iteration.batches([], 3, True)) == []
    with pytest.raises(ValueError, match="incomplete batch"):
        list(iteration.batches(range(4), 3, True))


def test_sums_of_products_are_exact_to_the_last_bit() -> None:
    source = random.Random(3)
    for count in (0, 1, 7, 200):
        p, q = (
            [source.uniform(-1, 1) * 10 ** source.randint(-8, 8) for _ in range(count)]
            for _ in range(2)
        )
        products = [float(a) * float(b) for a, b in zip(p, q, strict=True)]
        errors = [python_math._product_error(a, b) for a, b in zip(p, q, strict=True)]
        found = python_math.sumprod(p, q)
        assert found == math.fsum(itertools.chain(products, errors))
        assert type(found) is (float if count else int)
        if hasattr(math, "sumprod"):
            assert repr(found) == repr(math.sumprod(p, q))
    assert python_math.sumprod([math.inf, 1], [1.0, 2.0]) == math.inf
    assert python_math.sumprod([1, 2], [3, 4]) == 11
    with pytest.raises(ValueError, match="not the same length"):
        python_math.sumprod([1.0], [])
