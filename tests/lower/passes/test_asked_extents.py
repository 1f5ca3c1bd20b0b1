"""Sums of extents that only the call knows."""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import EXTENT, SCALAR, Compute, Local, Parameter, Read
from pyrelay.lower.passes.asked_extents import FAR, as_sum, negative
from pyrelay.lower.passes.distinct_places import Integers, may_ask


def test_a_sum_is_computed_and_compared() -> None:
    integers, n, m = Integers(), Local(i64), Local(i64)
    for local, position in ((n, 0), (m, 1)):
        integers.note(Read(local, Parameter(EXTENT, position, i64)))
    extent = dims.add(dims.add(integers.of(n), dims.multiply(-1, integers.of(m))), 3)
    assert may_ask(extent, integers)
    terms = as_sum(extent, integers)
    assert sorted(factor for factor, _, small in terms if small) == [-1, 1, 3]
    made, fails = negative(terms)
    assert fails.dtype == bool_
    last = made[-1]
    assert isinstance(last, Compute)
    assert last.primitive == "less"


def test_integers_of_which_nothing_is_known_are_cut_off_before_they_are_added() -> None:
    integers, n, w = Integers(), Local(i64), Local(i64)
    integers.note(Read(n, Parameter(EXTENT, 0, i64)))
    integers.note(Read(w, Parameter(SCALAR, 1, i64)))
    extent = dims.add(integers.of(n), dims.multiply(-2, integers.of(w)))
    assert not may_ask(extent, integers)
    made, _ = negative(as_sum(extent, integers))
    bounds = [s.args[1].value for s in made if isinstance(s, Compute) and s.primitive == "minimum"]
    assert set(bounds) == {FAR}


def test_what_may_not_be_asked() -> None:
    integers, n = Integers(), Local(i64)
    integers.note(Read(n, Parameter(EXTENT, 0, i64)))
    known = integers.of(n)
    assert not may_ask(-1, integers)
    assert not may_ask(dims.multiply(known, known), integers)
    assert not may_ask(dims.add(dims.multiply(-1, known), 5), integers)  # seldom true
    assert not may_ask(dims.of(dims.Symbol("other")), integers)
