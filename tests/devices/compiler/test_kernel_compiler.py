"""Kernels are optimised, and what LLVM makes of them is sound."""

from __future__ import annotations

import re

import numpy as np

import pyrelay
from pyrelay.devices.compiler import native
from pyrelay.devices.compiler.kernel_compiler import kernel_object, optimised_module
from pyrelay.devices.routines import matmul_blocks, matmul_ways, offset_product


def filtered(f, h, q, r, x, p, seen):
    """Kalman's filter: LLVM 22 packs its straight lines into vectors that it uses before it has
    them, and its code generator then ends the process."""
    for t in range(len(seen)):
        x = f @ x
        p = f @ p @ f.T + q
        k = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = x + k @ (seen[t] - h @ x)
        p = (np.eye(4) - k @ h) @ p
    return x


def test_straight_lines_that_llvm_packs_wrongly_are_not_packed() -> None:
    f = np.eye(4) + 0.1 * np.eye(4, k=2)
    seen = np.random.default_rng(0).standard_normal((9, 2))
    args = (f, np.eye(2, 4), 0.01 * np.eye(4), 0.1 * np.eye(2), np.zeros(4), np.eye(4), seen)
    np.testing.assert_allclose(pyrelay.jit(filtered)(*args), filtered(*args), rtol=1e-9)

_PRODUCT = """
from pyrelay.devices.routines.matmul_blocks import product_f32x8
from pyrelay.devices.compiler.vocabulary import *

def kernel(block, begin, end):
    product_f32x8(block, begin, end)
    for i in range(begin, end):
        store_f32(param_i64(block, 0), i, load_f32(param_i64(block, 1), i) + f32(1.0))
    return 0
"""


def test_what_is_written_by_hand_is_an_object_of_its_own() -> None:
    """It is only tidied: LLVM's whole pipeline took seconds over the tiles of products, and made
    them slower. What calls it is optimised."""
    made = str(optimised_module(native.parts_of(_PRODUCT)["product_f32x8"], "part"))
    assert re.search(r"^define i64 @product_f32x8\(", made, re.MULTILINE)
    assert re.search(r"^define internal i64 @next_part\(", made, re.MULTILINE)
    assert "vector.body" not in made
    kernel = str(optimised_module(_PRODUCT, "kernel"))
    assert re.search(r"^declare i64 @product_f32x8\(", kernel, re.MULTILINE)
    assert "fadd <" in kernel  # which is vectorised


_ROWS = """
from pyrelay.devices.compiler.vocabulary import *

def kernel(block, begin, end):
    for i in range(begin, end):
        store_f32(param_i64(block, 0), i * 7, load_f32(param_i64(block, 1), i * 5) + f32(1.0))
    return 0
"""


def test_llvm_counts_from_round_to_round_where_a_text_says_so() -> None:
    plain = kernel_object(_ROWS, "rows")
    assert kernel_object(f"STEPS = True\n{_ROWS}", "rows") != plain
    assert kernel_object(_ROWS, "rows") == plain  # LLVM's option is as it was
    assert offset_product.offset_product_f32x16.steps  # its registers are few
    assert matmul_ways.vector_dots_f64x8.steps
    assert not matmul_blocks.product_f32x16.steps


_ASKED = """
from pyrelay.devices.compiler.vocabulary import *

def kernel(block, begin, end):
    a = param_i64(block, 0)
    for i in range(begin, end):
        x = load_f64(a, i)
        if not isfinite(x):
            return 1
        {more}
    return 0
"""


def test_a_float_in_a_loop_that_may_end_is_asked_for_no_bits() -> None:
    """Masks of more than 32 bits wait for what was in the register of their length."""
    ending = str(optimised_module(_ASKED.format(more="store_f64(a, i, x + 1.0)"), "ending"))
    assert "fsub double" in ending
    assert "llvm.fabs" not in ending
    going_on = _ASKED.replace("return 1", "x = 0.0").format(more="store_f64(a, i, x)")
    assert "llvm.fabs" in str(optimised_module(going_on, "going on"))
