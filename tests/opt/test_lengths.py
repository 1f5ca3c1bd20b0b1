"""A number of which a length was made is that length from there on."""

from __future__ import annotations

import numpy as np
import pytest
from core_programs import do, single
from passes import after, assert_same_runs, core, ops

from pyrelay.ir.types import PY_INT, f64
from pyrelay.opt import rewrite
from pyrelay.opt.dce import dce
from pyrelay.opt.lengths import lengths
from pyrelay.opt.ranges import ranges


def counted(n, x):
    found = np.zeros(n)
    for i in range(n):
        found[i] = x[0] * i
    return found


def one_more(n, x):
    table = np.zeros(n + 1)
    for i in range(n):
        table[i + 1] = table[i] + x[0]
    return table


def one_less(n, x):
    steps = np.zeros(n - 1)
    for i in range(1, n):
        steps[i - 1] = x[0] * i
    return steps


def bins(n, x):
    found = np.zeros(n)
    for i in range(len(x)):
        k = int(x[i])
        if k >= 0 and k < n:
            found[k] += 1.0
    return found


@pytest.mark.parametrize("program", [counted, one_more, one_less])
def test_indices_below_a_number_stay_in_the_array_that_it_made(program) -> None:
    before = core(program, 5, np.array([2.0, 3.0]))
    module = after(before, lengths, ranges, dce)
    assert ops(before)["check_index"] > 0
    assert not ops(module)["check_index"]
    for n in (1, 2, 7):
        assert_same_runs(before, module, (n, np.array([2.0, 3.0])))


def test_before_the_array_is_made_a_number_is_a_number() -> None:
    def program(n, x):
        total = x[n]
        return np.zeros(n) + total

    before = core(program, 1, np.arange(3.0))
    module = after(before, lengths, ranges, dce)
    assert ops(module)["check_index"] == 1
    assert_same_runs(before, module, (2, np.arange(3.0)))


def test_what_a_branch_makes_is_known_in_that_branch() -> None:
    def program(n, x):
        total = 0.0
        if x[0] > 1.0:
            total += np.zeros(n).sum()
        for i in range(n):
            total += x[i]
        return total

    before = core(program, 1, np.arange(3.0))
    module = after(before, lengths, ranges, dce)
    assert ops(module)["check_index"] == ops(after(before, ranges, dce))["check_index"]
    assert_same_runs(before, module, (-2, np.zeros(3)))  # a negative number makes no array there


def test_a_second_look_finds_nothing() -> None:
    once = after(core(bins, 4, np.array([1.0, 9.0])), lengths)
    assert lengths(once) is once


def test_arrays_of_one_number_have_one_length() -> None:
    """As where a function that makes an array was put in the place of its call."""
    def body(b, n):
        _, (first,) = do(b, "as_extent", n)
        _, (second,) = do(b, "as_extent", n)
        do(b, "check_equal", left=first, right=second, text="{} and {}")
        seen = do(b, "refine", do(b, "iota", size=second, dtype=f64), shape=(first,))
        product = do(b, "iota", size=first, dtype=f64) * seen
        return [do(b, "sum", product, axes=(0,), keepdims=False)]

    before = single("f", {"n": PY_INT}, body)
    module = after(before, lengths, ranges, dce)
    assert ops(before)["check_equal"]
    assert not ops(module)["check_equal"]
    assert ops(module)["as_extent"] == 1
    assert_same_runs(before, module, (6,))


def test_a_block_is_walked_once_however_many_lengths_are_made(monkeypatch) -> None:
    def program(n, x):
        a, b, c = np.zeros(n), np.zeros(n + 1), np.zeros(2 * n)
        for i in range(n):
            d = np.zeros(i + 1)
            a[i] = d.sum() + b[i] + c[i] + x[0]
        return a

    before = core(program, 4, np.array([2.0]))
    seen = []
    walk = rewrite._Rewriter._let

    def counted(rewriter, let, builder, scope):
        seen.append(let)
        return walk(rewriter, let, builder, scope)

    monkeypatch.setattr(rewrite._Rewriter, "_let", counted)
    module = lengths(before)
    assert ops(before)["as_extent"] >= 4
    assert len(seen) == len(set(map(id, seen)))
    assert_same_runs(before, module, (3, np.array([2.0])))


def test_what_is_read_instead_in_a_block_is_not_read_after_it() -> None:
    def program(n, x):
        k = n + 1
        t = 1.0 * k
        if x[0] > 0.0:
            zeros = np.zeros(k)
            t = zeros.sum() + k
        return t + k

    before = core(program, 4, np.array([2.0]))
    module = after(before, lengths)
    for value in (2.0, -2.0):
        assert_same_runs(before, module, (4, np.array([value])))
