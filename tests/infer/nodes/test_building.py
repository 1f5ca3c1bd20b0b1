"""Nodes that the program makes of what fields of other nodes hold."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from pyrelay.errors import AliasError, TypeMismatchError
from tests.infer.running import assert_same_outcome, interpreted, plainly


class Gene:
    def __init__(self, bits: Any, pair: Any, before: Any) -> None:
        self.bits, self.pair, self.before = bits, pair, before


def joined(n: int) -> Any:
    first: Any = None
    for k in range(n):
        first = Gene([k * 1.0, k + 1.0, 0.5], (first, first), first)
    a, b = first, first.before
    both = a.bits[:2] + b.bits[1:]
    more, again = [7.0] + a.bits, 2 * b.bits + a.bits * 2  # noqa: RUF005 -- of a list and a field
    c = Gene(a.bits + b.bits, (*a.pair, a), b)
    d = Gene(both, a.pair + (c,), c)  # noqa: RUF005
    return both, more, again, c.bits, len(c.pair), d.pair[2] is c, d.pair[0] is b


def crossed(n: int) -> Any:
    genes = [Gene([k, k + 1, k + 2], (), None) for k in range(n)]
    for k in range(3):
        pairs = itertools.pairwise(genes)
        kids = [Gene(a.bits[:k] + b.bits[k:], (), a) for a, b in pairs]
        genes = genes[: n - len(kids)] + kids
    return [gene.bits for gene in genes], sum(gene.before is not None for gene in genes)


@pytest.mark.parametrize("function", [joined, crossed])
def test_lists_and_tuples_of_fields_are_joined(function: Any) -> None:
    assert_same_outcome(interpreted(function, (4,)), plainly(function, (4,)))


class Tensor:
    """An array and its slope, which are written in place and assigned."""

    def __init__(self, data: Any, parts: Any = ()) -> None:
        self.data, self.grad, self.parts = data, np.zeros_like(data), parts
        self.back: Any = lambda: None
        self.log: list[float] = []

    def __mul__(self, other: Any) -> Any:
        out = Tensor(self.data * other.data, (self, other))

        def back() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.back = back
        return out


def slopes_of_arrays(x: Any, y: Any) -> Any:
    a, b = Tensor(x), Tensor(y)
    out = a * b * b
    order, waiting = [], [out]
    while waiting:
        tensor = waiting.pop()
        order.append(tensor)
        waiting.extend(tensor.parts)
    out.grad = np.ones_like(out.data)
    for tensor in order:
        tensor.back()
    return out.data, a.grad, b.grad


def kept_elsewhere(x: Any, y: Any) -> Any:
    nodes = [Tensor(x), Tensor(y)]
    for node in nodes:
        before = node.grad
        node.grad = node.data * 2.0
        node.log.append(1.0)
        node.grad += before + 1.0
    return [node.grad for node in nodes], [len(node.log) for node in nodes]


def written_under_another_name(x: Any, y: Any) -> Any:
    nodes = [Tensor(x), Tensor(y)]
    for node in nodes:
        grad = x * 2.0
        node.grad = grad
        grad += 1.0
    return [node.grad for node in nodes]


def one_array_in_two_fields(x: Any, y: Any) -> Any:
    nodes = [Tensor(x), Tensor(y)]
    for node in nodes:
        node.data = node.grad
        node.grad += 1.0
    return [node.data for node in nodes]


ARRAYS = np.array([1.0, 2.0, 3.0]), np.array([-2.0, 0.5, 1.0])


@pytest.mark.parametrize("function", [slopes_of_arrays, kept_elsewhere])
def test_arrays_of_fields_are_written_and_assigned(function: Any) -> None:
    assert_same_outcome(interpreted(function, ARRAYS), plainly(function, ARRAYS))


@pytest.mark.parametrize(
    ("function", "args", "error"),
    [(slopes_of_arrays, (np.ones((2, 3)), ARRAYS[0]), TypeMismatchError),
     (kept_elsewhere, (ARRAYS[0], np.ones(2)), ValueError)],
)  # fmt: skip
def test_arrays_of_a_field_that_differ_in_shape_are_refused_with_advice(
    function: Any, args: Any, error: type[Exception]
) -> None:
    found = interpreted(function, args).error
    assert isinstance(found, error)
    assert re.search("pad (the arrays of a field|them) to one", str(found))


@pytest.mark.parametrize("function", [written_under_another_name, one_array_in_two_fields])
def test_arrays_that_have_other_names_are_the_same_or_refused(function: Any) -> None:
    found = interpreted(function, ARRAYS)
    if not isinstance(found.error, AliasError):
        assert_same_outcome(found, plainly(function, ARRAYS))
