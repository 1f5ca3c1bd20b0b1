"""Loops that the threads of a block share: which they are, and that results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.ir import dims
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    Assign,
    Body,
    Compute,
    Fail,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Parameter,
    Read,
    Store,
)
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.lower.planning.plan import plan
from pyrelay.lower.text.emit_cuda import emit
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import emulate, needs_compiler
from tests.infer.running import inferred
from tests.lower.lowered import function_of

ON = "cuda_emulator"
A, N, OUT = Parameter(ARRAY, 0, f64), Parameter(EXTENT, 0, i64), Parameter(OUTPUT, 0, f64)
ZERO = Literal(0, i64)


def kernel(body: Body) -> Kernel:
    """A kernel of one item, after `n` is read."""
    return Kernel((A, N, OUT), Local(i64), Local(i64), (Read(SIZE, N), *body), 1, 1)


SIZE = Local(i64)


def doubling(index: Local, *, parallel: bool = True) -> Body:
    x, y = Local(f64), Local(f64)
    return (
        Load(x, A, index, parallel), Compute(y, "add", (x, x)), Store(OUT, index, y, parallel)
    )  # fmt: skip


def summing(index: Local, total: Local, primitive: str = "add_reassociated") -> Body:
    x, new = Local(f64), Local(f64)
    return (
        Load(x, A, index, True), Compute(new, primitive, (total, x)), Assign(total, new)
    )  # fmt: skip


def shared_loops(body: Body) -> list[For]:
    found = cooperation(kernel(body))
    return [] if found is None else list(found.loops)


def test_a_loop_over_elements_is_shared() -> None:
    i = Local(i64)
    loop = For(i, ZERO, SIZE, doubling(i))
    assert shared_loops((loop,)) == [loop]


def test_a_sum_in_free_order_is_shared_and_one_in_order_is_not() -> None:
    for primitive, wanted in (("add_reassociated", 1), ("add", 0), ("subtract", 0)):
        i, total = Local(i64), Local(f64, True)
        loop = For(i, ZERO, SIZE, summing(i, total, primitive))
        body = (Assign(total, Literal(0.0, f64)), loop, Store(OUT, ZERO, total, True))
        assert len(shared_loops(body)) == wanted


def test_a_running_sum_that_is_looked_at_on_the_way_is_not_shared() -> None:
    i, total = Local(i64), Local(f64, True)
    loop = For(i, ZERO, SIZE, (*summing(i, total), Store(OUT, i, total, True)))
    assert shared_loops((Assign(total, Literal(0.0, f64)), loop)) == []


def test_accesses_in_an_order_short_loops_failures_and_own_arrays_are_left_alone() -> None:
    i, flag = Local(i64), Literal(False, bool_)
    local = LocalArray(f64, 8)
    for body in (
        (For(i, ZERO, SIZE, doubling(i, parallel=False)),),
        (For(i, ZERO, Literal(31, i64), doubling(i)),),
        (For(i, ZERO, SIZE, (*doubling(i), Fail(flag, 0))),),
        (For(i, ZERO, SIZE, doubling(i)), Store(local, ZERO, Literal(1.0, f64), True)),
    ):
        assert shared_loops(body) == []


def test_of_nested_loops_the_inner_one_is_shared_so_that_neighbours_read_neighbours() -> None:
    i, j, total = Local(i64), Local(i64), Local(f64, True)
    inner = For(j, ZERO, SIZE, summing(j, total))
    body = (Assign(total, Literal(0.0, f64)), For(i, ZERO, SIZE, (inner,)),
            Store(OUT, ZERO, total, True))  # fmt: skip
    assert shared_loops(body) == [inner]


def of_chunks(*, again: bool = False) -> tuple[For, For, Local]:
    """A sum of the sums of chunks; it may be looked at in between."""
    i, j, total, chunk = Local(i64), Local(i64), Local(f64, True), Local(f64, True)
    new = Local(f64)
    inner = For(j, ZERO, SIZE, summing(j, chunk))
    looked = (Store(OUT, ZERO, total, True),) if again else ()
    outer = For(i, ZERO, SIZE, (
        Assign(chunk, Literal(0.0, f64)), inner, Compute(new, "add", (total, chunk)),
        Assign(total, new), *looked,
    ))  # fmt: skip
    return outer, inner, total


def test_sums_of_chunks_are_combined_once() -> None:
    outer, inner, total = of_chunks()
    begin = Assign(total, Literal(0.0, f64))
    found = cooperation(kernel((begin, outer, Store(OUT, ZERO, total, True))))
    assert found is not None
    assert found.loops == {inner: ()}
    assert [part.variable for part in found.around[outer]] == [total]
    assert found.met_around == {inner}
    outer, inner, total = of_chunks(again=True)
    found = cooperation(kernel((Assign(total, Literal(0.0, f64)), outer)))
    assert found is not None
    assert len(found.loops[inner]) == 1
    assert not found.around


def test_a_row_of_many_chunks_is_combined_as_often_as_one_of_one() -> None:
    text = pyrelay.jit(lambda x: x / x.sum(axis=1, keepdims=True), device=ON).code(
        np.ones((3, 5000), np.float32)
    )
    body = text[text.index("void kernel(") :]
    assert body.count("pyrelay_combined(") == 1


def shifted(x: Any) -> Any:
    return x[::2, :-1] + x[1::2, 1:]


def largest(x: Any) -> Any:
    return x.max(axis=1)


def test_short_items_are_done_several_at_a_time_where_threads_need_not_meet() -> None:
    found = []
    for function in (shifted, largest):
        module = lowered(inferred(function, (np.ones((40, 20), np.float32),)).module, "fuse", on=ON)
        found.append("pyrelay_lanes<" in plan_code(plan(module, TARGET)).texts[0].source)
    assert found == [True, False]


@needs_compiler
@pytest.mark.parametrize("columns", [1, 3, 64, 131, 600])
def test_items_of_any_length_are_done_whole(columns: int) -> None:
    x = np.arange(14.0 * columns).reshape(14, columns)
    got = pyrelay.jit(lambda x: x[::2, ::-1] * 2 - x[1::2], device=ON)(x)
    np.testing.assert_array_equal(got, x[::2, ::-1] * 2 - x[1::2])


@needs_compiler
def test_what_all_threads_read_is_read_before_one_of_them_overwrites_it() -> None:
    i, first, x, y = Local(i64), Local(f64), Local(f64), Local(f64)
    loop = For(i, ZERO, SIZE, (
        Load(x, A, i, True), Compute(y, "subtract", (x, first)), Store(A, i, y, True),
    ))  # fmt: skip
    made = kernel((Load(first, A, ZERO, False), loop, Store(OUT, ZERO, first, True)))
    text = emit(made)
    assert "BLOCK_THREADS" in text
    a, out = np.arange(5.0, 400.0), np.zeros(1)
    emulate([text], (a, a.size, out), items=[1])
    np.testing.assert_array_equal(a, np.arange(395.0))
    assert out[0] == 5.0


def test_softmax_is_one_kernel_with_three_shared_loops() -> None:
    m, n = dims.Symbol("m"), dims.Symbol("n")

    def softmax(b: Any, x: Any) -> Any:
        e = OPS["exp"](x - OPS["max"](x, axes=(1,), keepdims=True))
        return e / OPS["sum"](e, axes=(1,), keepdims=True)

    lowering = kernelise(function_of([TensorType(f64, (dims.of(m), dims.of(n)))], softmax, (m, n)))
    (made,) = lowering.kernels
    found = cooperation(made)
    assert found is not None
    assert len(found.loops) == 3


# -- results -------------------------------------------------------------------------------------


def rows(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    centred = x - x.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    return e / e.sum(axis=1, keepdims=True), normal, x.argmin(axis=1), x.sum(), x.std(axis=0)


@needs_compiler
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3, 33), np.float32), ((2, 2500), np.float64), ((5, 1), np.float32),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [
            ((3, 33), np.float64), ((2, 2500), np.float32), ((1, 128), np.float32),
            ((1, 128), np.float64), ((5, 1), np.float64),
        ]),
    ],
)  # fmt: skip
def test_rows_give_what_numpy_gives(shape: tuple[int, int], dtype: Any) -> None:
    x = (np.sin(np.arange(shape[0] * shape[1]) * 1.7) * 3).reshape(shape).astype(dtype)
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    got = pyrelay.jit(rows, device=ON)(x)
    for mine, theirs in zip(got, rows(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@needs_compiler
def test_arrays_without_rows_have_none_to_share() -> None:
    got = pyrelay.jit(lambda x: x - x.max(axis=1, keepdims=True), device=ON)(np.ones((0, 40)))
    assert got.shape == (0, 40)


@needs_compiler
def test_reductions_of_every_kind_of_number() -> None:
    def reduced(x: Any, z: Any, k: Any, flags: Any) -> Any:
        return (
            x.sum(), x.prod(), z.sum(axis=1), k.sum(axis=1), k.max(), (k % 7).prod(axis=1),
            flags.any(axis=1), flags.all(axis=1), flags.sum(),
        )

    x = np.linspace(0.99, 1.01, 40_000).reshape(4, -1)
    k = (np.arange(4 * 300).reshape(4, -1) * 7919) % 101 - 50
    args = x, x[:, :700] * (1 + 2j), k, k > -50
    for mine, theirs in zip(pyrelay.jit(reduced, device=ON)(*args), reduced(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype


@needs_compiler
def test_nan_is_the_largest_and_smallest_whichever_thread_meets_it() -> None:
    x = np.ones((3, 500))
    x[0, 0], x[1, 137], x[2, 499] = np.nan, np.nan, np.nan
    got = pyrelay.jit(lambda x: (x.max(axis=1), x.min(axis=1), x.argmax(axis=1)), device=ON)(x)
    assert np.isnan(got[0]).all()
    assert np.isnan(got[1]).all()
    assert got[2].tolist() == [0, 137, 499]


@needs_compiler
def test_gradients_of_rows_are_those_of_the_cpu() -> None:
    def loss(x: Any) -> Any:
        soft, normal, _, total, deviation = rows(x)
        return (soft * normal).sum() + total * deviation.sum()

    x = np.sin(np.arange(3 * 200.0) * 1.3).reshape(3, 200)
    mine, theirs = pyrelay.grad(loss, device=ON)(x), pyrelay.grad(loss)(x)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
