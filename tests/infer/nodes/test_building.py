"""Nodes that the program makes of what fields of other nodes hold."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

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
