"""Integers that fit into 32 bits: which they are, what bounds them, both versions of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu import plan_launches
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir.types import f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    Assign,
    Compute,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    Parameter,
    Read,
    Store,
)
from pyrelay.lower.passes.narrow import ITEMS, Quotient, narrow
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"
A, N, OUT = Parameter(ARRAY, 0, i64), Parameter(EXTENT, 0, i64), Parameter(OUTPUT, 0, f64)
ZERO = Literal(0, i64)


def test_what_follows_from_extents_and_indices_is_narrow_and_what_is_loaded_is_not() -> None:
    begin, end, i, j, n = (Local(i64) for _ in range(5))
    row, place, taken, far, held = (Local(i64) for _ in range(5))
    total = Local(i64, True)
    inner = For(j, ZERO, n, (
        Compute(place, "add", (row, j)), Load(taken, A, place, True),
        Compute(far, "multiply", (taken, n)), Compute(held, "add", (total, j)),
        Store(OUT, far, Literal(1.0, f64), True),
    ))  # fmt: skip
    body = (
        Read(n, N), Assign(total, ZERO),
        For(i, begin, end, (Compute(row, "multiply", (i, n)), inner)),
    )
    found = narrow(Kernel((A, N, OUT), begin, end, body, 1, 1))
    assert found is not None
    assert found.scalars == {n, i, j, row, place}
    assert {frozenset(term) for term in found.bound} == {
        frozenset([N]), frozenset([ITEMS]), frozenset([N, ITEMS])
    }  # fmt: skip


def test_an_index_of_rows_is_bounded_by_their_number_and_not_by_that_of_all_elements() -> None:
    begin, end, i, n, row, place = (Local(i64) for _ in range(6))
    body = (
        Read(n, N),
        For(i, begin, end, (
            Compute(row, "floor_divide", (i, n)), Compute(place, "multiply", (row, n)),
            Store(OUT, place, Literal(1.0, f64), True),
        )),
    )  # fmt: skip
    found = narrow(Kernel((A, N, OUT), begin, end, body, 1, 1))
    assert found is not None
    rows = Quotient((((ITEMS,), 1),), (((N,), 1),))
    assert {frozenset(term) for term in found.bound} >= {frozenset([rows, N])}
    assert not {frozenset([ITEMS, N])} & {frozenset(term) for term in found.bound}


def test_kernels_without_index_arithmetic_have_one_version() -> None:
    module = lowered(inferred(lambda x: x + 1.0, (np.ones(9),)).module, "fuse")
    made = plan_code(plan(module, TARGET))
    assert not made.late
    assert len(made.texts) == 1


def turned(x: Any, k: int) -> Any:
    return np.transpose(x, (2, 0, 1)) * k + np.arange(x.shape[1]), x[1:, ::2].sum(axis=2)


def test_the_version_is_chosen_by_the_extents_of_a_call() -> None:
    module = lowered(inferred(turned, (np.ones((3, 4, 5)), 2)).module, "fuse")
    made = plan_code(plan(module, TARGET))
    assert made.late
    assert all("i32 " in text.source for text in made.texts)
    # Those for few long rows wait beside the wide ones, in both versions.
    wide = [text for text in made.late if "i32 " not in text.source]
    assert len(wide) == len(made.texts) + (len(made.late) - len(wide))
    assert "] >= " not in made.source
    assert ">= 2080374784" in made.source


@needs_compiler
@pytest.mark.parametrize(
    "largest", [plan_launches.LARGEST, pytest.param(0, marks=pytest.mark.slow)]
)
def test_both_versions_give_what_numpy_gives(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_launches, "LARGEST", largest)
    x = np.sin(np.arange(3 * 6 * 40.0)).reshape(3, 6, 40)
    got = pyrelay.jit(lambda x, k: turned(x, k), device=ON)(x, 3)
    for mine, theirs in zip(got, turned(x, 3), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)
