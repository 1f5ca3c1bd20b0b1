"""What is done to a kernel right before it is printed is done to the functions that it calls."""

from __future__ import annotations

import math

import pyrelay


def settled(x: float, depth: int) -> float:
    """Calls itself, and loops over a number that waits for the one before."""
    if depth == 0:
        return x
    for k in range(depth):
        if k > 3:
            x = 0.5
            break
        x = math.exp(-x)
    return settled(x, depth - 1) + 0.25 * settled(0.5 * x, depth - 2 if depth > 1 else 0)


def test_functions_that_a_kernel_calls_are_prepared_as_kernels_are() -> None:
    compiled = pyrelay.jit(settled)
    text = str(compiled.code(0.3, 6))
    routine = text[text.index("def routine0(") : text.index("def settled_kernel(")]
    assert "lone_exp(" in routine
    assert "unlikely(" in routine
    assert math.isclose(compiled(0.3, 6), settled(0.3, 6), rel_tol=1e-13)
