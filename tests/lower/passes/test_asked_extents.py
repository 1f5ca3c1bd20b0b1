"""Sums of extents that only the call knows."""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import EXTENT, Compute, Local, Parameter, Read
from pyrelay.lower.passes.asked_extents import as_sum, negative
from pyrelay.lower.passes.distinct_places import Integers, may_ask


def test_a_sum_is_computed_and_compared() -> None:
    integers, n, m = Integers(), Local(i64), Local(i64)
    for local, position in ((n, 0), (m, 1)):
        integers.note(Read(local, Parameter(EXTENT, position, i64)))
    extent = dims.add(dims.add(integers.of(n), dims.multiply(-1, integers.of(m))), 3)
    assert may_ask(extent, integers)
    terms = as_sum(extent, integers)
    assert sorted(factor for factor, _ in terms) == [-1, 1, 3]
    made, fails = negative(terms)
    assert fails.dtype == bool_
    last = made[-1]
    assert isinstance(last, Compute)
    assert last.primitive == "less"


def test_what_may_not_be_asked() -> None:
    integers, n = Integers(), Local(i64)
    integers.note(Read(n, Parameter(EXTENT, 0, i64)))
    known = integers.of(n)
    assert not may_ask(-1, integers)
    assert not may_ask(dims.multiply(known, known), integers)
    assert not may_ask(dims.add(dims.multiply(-1, known), 5), integers)  # seldom true
    assert not may_ask(dims.of(dims.Symbol("other")), integers)
