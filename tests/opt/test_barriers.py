"""Barriers stay where something could be taken from in front of them, and only there."""

from __future__ import annotations

import numpy as np
from passes import after, assert_same_runs, ops

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.ir.text import read
from pyrelay.opt.barriers import barriers
from pyrelay.opt.cse import cse

KEPT = """
def @main[n](x: f64[n], g: f64[n]) -> (f64[n], f64[n]) {
  a: f64[n] = tanh(x)
  y: f64[n] = barrier(x, g)
  b: f64[n] = tanh(y)
  return a, b
}
"""

ALONE = """
def @main[n](x: f64[n], g: f64[n]) -> f64[n] {
  y: f64[n] = barrier(x, g)
  b: f64[n] = tanh(y)
  return b
}
"""

OUTSIDE = """
def @main[n](x: f64[n], g: f64[n], k: int) -> (f64[n], f64[n]) {
  a: f64[n] = tanh(x)
  r: f64[n] = loop (c: f64[n] = g) index i: int count k {
    y: f64[n] = barrier(x, c)
    b: f64[n] = tanh(y)
    d: f64[n] = add(b, c)
    next d
  }
  return a, r
}
"""


def test_what_is_computed_on_both_sides_is_computed_twice() -> None:
    before = read(KEPT)
    module = after(before, barriers, cse)
    assert ops(module) == {"tanh": 2, "barrier": 1}
    assert_same_runs(before, module, (np.arange(3.0), np.ones(3)))


def test_an_operand_that_nothing_else_reads_needs_none() -> None:
    assert ops(after(read(ALONE), barriers)) == {"tanh": 1}


def test_what_comes_from_outside_of_a_loop_needs_none() -> None:
    before = read(OUTSIDE)
    module = after(before, barriers)
    assert ops(module)["barrier"] == 0
    assert_same_runs(before, module, (np.arange(3.0), np.ones(3), 2))
