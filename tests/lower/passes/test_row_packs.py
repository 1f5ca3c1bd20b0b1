"""Rounds of a shared loop that a thread does together: which accesses, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f32, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    OUTPUT,
    Assign,
    Compute,
    For,
    If,
    Literal,
    Load,
    Local,
    Parameter,
    Store,
)
from pyrelay.lower.passes.row_packs import START, row_packs
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"
A, B, OUT = Parameter(ARRAY, 0, f32), Parameter(ARRAY, 1, f64), Parameter(OUTPUT, 0, f32)
INDEX, BASE, COUNT = Local(i64), Local(i64), Local(i64)
ZERO = Literal(0, i64)


def loop(*body: Any) -> For:
    return For(INDEX, ZERO, COUNT, body)


def placed(base: Any = BASE) -> Compute:
    return Compute(Local(i64), "add", (base, INDEX))


def load(index: Any, array: Parameter = A) -> Load:
    return Load(Local(array.dtype), array, index, True)


def store(value: Any, index: Any, array: Parameter = OUT) -> Store:
    return Store(array, index, value, True)


def test_accesses_of_neighbours_behind_a_fixed_place_are_taken_together() -> None:
    at = placed()
    x, weight = load(at.out), load(INDEX)
    put = store(x.out, at.out)
    found = row_packs(loop(at, x, weight, put))
    assert found is not None
    assert found.count == 4
    assert found.loads == {x: (A, BASE), weight: (A, START)}
    assert found.stores == {put: (OUT, BASE)}
    wide = row_packs(loop(at, load(at.out, B), store(Literal(1.0, f32), at.out)))
    assert wide is not None
    assert wide.count == 4


def test_other_places_are_read_one_by_one_and_not_stored_at_all() -> None:
    at, turned = placed(), Compute(Local(i64), "subtract", (BASE, INDEX))
    own, moving = Compute(Local(i64), "multiply", (INDEX, INDEX)), Local(i64)
    x, y = load(at.out), load(turned.out)
    found = row_packs(loop(at, turned, x, y))
    assert found is not None
    assert set(found.loads) == {x}
    assert row_packs(loop(turned, y)) is None
    assert row_packs(loop(at, turned, x, store(x.out, turned.out))) is None
    inside = Compute(moving, "add", (own.out, INDEX))
    assert row_packs(loop(own, inside, load(moving))) is None


def test_what_is_stored_is_read_before_and_at_the_same_place_only() -> None:
    at, beside = placed(), Compute(Local(i64), "add", (COUNT, INDEX))
    x, other = load(at.out, OUT), load(beside.out, OUT)
    put = store(x.out, at.out)
    assert row_packs(loop(at, x, put)) is not None
    assert row_packs(loop(at, put, x)) is None
    assert row_packs(loop(at, beside, x, other, put)) is None
    assert row_packs(loop(at, x, put, store(x.out, beside.out))) is None
    assert row_packs(loop(at, x, If(Literal(True, bool_), (put,), ()))) is None


def test_loops_inside_are_left_alone() -> None:
    at, total = placed(), Local(f32, True)
    inner = For(Local(i64), ZERO, COUNT, (Assign(total, Literal(0.0, f32)),))
    assert row_packs(loop(at, load(at.out), inner)) is None


def several(x: Any, w: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    d = x - x.mean(axis=1, keepdims=True)
    return e / e.sum(axis=1, keepdims=True) * w, (d * d).sum(axis=1), x[:, ::-1] + d, d > w


@needs_compiler
@pytest.mark.parametrize(
    "name", ["f4", *(pytest.param(each, marks=pytest.mark.slow) for each in ("f8", "f2"))]
)
def test_rows_are_the_same_wherever_they_begin(name: str) -> None:
    """Lengths of whole packs and others, rows that begin where packs do and elsewhere."""

    def shifted(whole: Any, n: int) -> Any:
        return several(whole[1:].reshape(-1, n), whole[1 : 1 + n])

    compiled, behind = pyrelay.jit(several, device=ON), pyrelay.jit(shifted, device=ON)
    tolerance = {"f4": 1e-5, "f8": 1e-13, "f2": 4e-3}[name]
    for n in (64, 63, 1100) if name == "f4" else (64, 63):
        whole = (np.sin(np.arange(3 * n + 1) * 1.7) * 2).astype(name)
        x, w = whole[:-1].reshape(3, n), whole[:n]
        for found, wanted in (
            (compiled(x, w), several(x, w)), (behind(whole, n), shifted(whole, n))
        ):
            for mine, theirs in zip(found, wanted, strict=True):
                assert mine.dtype == theirs.dtype
                np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=4 * tolerance)
