"""Functions beside a kernel: they call each other, and see the stack grow."""

from __future__ import annotations

import numpy as np

from tests.devices.running_kernels import run

TEXT = """from pyrelay.devices.compiler.vocabulary import *

call0 = routine("routine0", "i64", "f64")
call1 = routine("routine1", "f64", "bool")

def routine0(block, state, n, x):
    if stack_address() < load_ordered_i64(state, 0):
        return -1
    if n == 0:
        return call1(block, state, x, True)
    return call0(block, state, n - 1, x + x)

def routine1(block, state, x, wanted):
    if wanted:
        store_ordered_f64(state, 1, x)
    return 0

def kernel(block, begin, end):
    o0 = param_i64(block, 1)
    state = local_i64(2)
    store_ordered_i64(state, 0, stack_address() - 65536)
    for i in range(begin, end):
        status = call0(block, state, i, 1.5)
        result = load_ordered_f64(state, 1)
        store_ordered_f64(o0, i, where(status == 0, result, -1.0))
    return 0
"""


def test_routines_call_each_other_and_hand_results_through_memory() -> None:
    out = np.zeros(6)
    run(TEXT, out, ranges=[(0, 6)])
    np.testing.assert_array_equal(out, 1.5 * 2.0 ** np.arange(6))


def test_the_stack_address_falls_with_every_call() -> None:
    # Work after the call keeps it from becoming a jump.
    deep = TEXT.replace(
        "    return call0(block, state, n - 1, x + x)",
        "    status = call0(block, state, n - 1, x + x)\n"
        "    store_ordered_i64(state, 1, n)\n"
        "    return status",
    ).replace("call0(block, state, i, 1.5)", "call0(block, state, i * 100000, 1.5)")
    out = np.zeros(2)
    run(deep, out, ranges=[(0, 2)])
    assert out[0] == 1.5
    assert out[1] == -1.0
