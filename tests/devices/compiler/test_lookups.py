"""Loops that look up short numbers at places that they have read are no vectors."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.compiler.lookups import looks_up_short


@pytest.mark.parametrize(("body", "expected"), [
    ("store_u8(o, i, load_u8(t, i64(load_u8(x, i)) & 63))", True),
    ("k = load_i64(x, i) >> 2\nm = k & 63\nstore_u8(o, i, load_ordered_u8(t, m + 1))", True),
    ("if load_bool(seen, load_i64(x, i)):\n    store_i64(o, i, 1)", True),
    ("if i > 3:\n    k = load_i16(x, i)\nelse:\n    k = load_i16(t, i64(k))", True),
    ("store_f64(o, i, load_f64(t, load_i64(x, i)))", False),
    ("k = i * 3\nstore_u8(o, i, load_u8(x, k + 1))", False),
    ("k = load_i64(x, i)\nstore_i64(o, i, k + i64(load_u8(t, i)))", False),
])  # fmt: skip
def test_lookups_are_told_from_other_loads(body: str, expected: bool) -> None:
    assert looks_up_short(ast.parse(body).body) is expected


def encoded(data, table):
    out = np.empty(len(data) // 3 * 4, np.uint8)
    for i in range(len(data) // 3):
        v = (int(data[3 * i]) << 16) | (int(data[3 * i + 1]) << 8) | int(data[3 * i + 2])
        out[4 * i] = table[(v >> 18) & 63]
        out[4 * i + 1] = table[(v >> 12) & 63]
        out[4 * i + 2] = table[(v >> 6) & 63]
        out[4 * i + 3] = table[v & 63]
    return out


def test_such_loops_are_hinted_and_right() -> None:
    from pyrelay.devices.compiler.kernel_compiler import optimised_module
    from tests.devices.compiler.test_kernel_lowering import kernel

    rng = np.random.default_rng(3)
    data, table = rng.integers(0, 256, 300).astype(np.uint8), np.arange(40, 104, dtype=np.uint8)
    np.testing.assert_array_equal(pyrelay.jit(encoded)(data, table), encoded(data, table))
    body = """x, t = param_i64(block, 2), param_i64(block, 3)
for i in range(begin, end):
    store_{kind}(o, i, load_{kind}(t, load_i64(x, i)))"""
    hinted = {
        kind: "llvm.loop.vectorize.enable" in str(
            optimised_module(kernel(body.format(kind=kind)), "test")
        )
        for kind in ("u8", "f64")
    }  # fmt: skip
    assert hinted == {"u8": True, "f64": False}
