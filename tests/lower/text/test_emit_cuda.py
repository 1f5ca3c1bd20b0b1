"""The CUDA text of kernels: exact numbers, the user's order of effects, scopes of C++."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import DType, bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    Assign,
    Break,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Parameter,
    Read,
    Statement,
    Store,
    While,
)
from pyrelay.lower.text.cuda_numbers import literal
from pyrelay.lower.text.emit_cuda import emit
from tests.devices.running_kernels import emulate, needs_compiler
from tests.dtypes import HERE

A, N, OUT = Parameter(ARRAY, 0, f64), Parameter(EXTENT, 0, i64), Parameter(OUTPUT, 0, f64)
ZERO, ONE = Literal(0, i64), Literal(1, i64)


def kernel(body: Callable[[Local], list[Statement]], extent: int = 1) -> Kernel:
    """A kernel over one parallel loop, written on its index."""
    begin, end, index = Local(i64), Local(i64), Local(i64)
    loop = For(index, begin, end, tuple(body(index)))
    return Kernel((A, N, OUT), begin, end, (loop,), extent, 1)


def executed(made: Kernel, a: np.ndarray, extent: int) -> np.ndarray:
    out = np.zeros(extent)
    emulate([emit(made)], (a, a.size, out), items=[extent])
    return out


def test_the_text_is_what_a_person_would_write() -> None:
    def body(i: Local) -> list[Statement]:
        x, y, z = Local(f64), Local(f64), Local(f64)
        return [
            Load(x, A, i, False), Compute(y, "tanh", (x,)),
            Compute(z, "add", (y, Literal(1.5, f64))), Store(OUT, i, z, False),
        ]  # fmt: skip

    assert emit(kernel(body)) == (
        'extern "C" __global__ void kernel(\n'
        "    pyrelay_record *record, i64 launch, i64 first, i64 last, "
        "Buffer<const f64> a0, i64 n0,\n    Buffer<f64> o0\n"
        ") {\n"
        "    if (pyrelay_over(record, launch)) return;\n"
        "    for (i64 begin = first + (i64)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "         begin < last; begin += (i64)gridDim.x * blockDim.x) {\n"
        "        {\n"
        "            const i64 i0 = begin;\n"
        "            o0[i0] = tanh(a0[i0]) + 1.5;\n"
        "        }\n"
        "    }\n"
        "}\n"
    )


@needs_compiler
def test_a_load_stays_in_front_of_the_store_that_overwrites_it() -> None:
    def body(i: Local) -> list[Statement]:
        x, y = Local(f64), Local(f64)
        return [
            Load(x, A, i, False), Store(A, i, Literal(-1.0, f64), False), Load(y, A, i, False),
            Store(OUT, i, x, False),
        ]  # fmt: skip

    a = np.arange(5.0)
    np.testing.assert_array_equal(executed(kernel(body), a, 5), np.arange(5.0))
    np.testing.assert_array_equal(a, -np.ones(5))


@needs_compiler
def test_a_variable_is_read_as_it_is_at_that_moment_and_outlives_its_block() -> None:
    def body(i: Local) -> list[Statement]:
        v, x, cond, seen = Local(f64, True), Local(f64), Local(bool_), Local(f64)
        doubled = Local(f64)
        return [
            Load(x, A, i, True), Compute(cond, "greater", (x, Literal(2.0, f64))),
            If(cond, (Assign(v, x),), (Assign(v, Literal(-1.0, f64)),)),
            Compute(doubled, "add", (v, v)), Assign(v, Literal(100.0, f64)),
            Compute(seen, "add", (doubled, v)), Store(OUT, i, seen, True),
        ]  # fmt: skip

    got = executed(kernel(body), np.arange(5.0), 5)
    np.testing.assert_array_equal(got, [98.0, 98.0, 98.0, 106.0, 108.0])


@needs_compiler
def test_the_bound_of_a_loop_is_read_once() -> None:
    def body(i: Local) -> list[Statement]:
        stop, rounds, k, more = Local(i64, True), Local(f64, True), Local(i64), Local(f64)
        grown = Local(i64)
        loop = For(k, ZERO, stop, (
            Compute(grown, "add", (stop, ONE)), Assign(stop, grown),
            Compute(more, "add", (rounds, Literal(1.0, f64))), Assign(rounds, more),
        ))  # fmt: skip
        size = Local(i64)
        return [
            Read(size, N), Assign(stop, size), Assign(rounds, Literal(0.0, f64)), loop,
            Store(OUT, i, rounds, True),
        ]  # fmt: skip

    assert executed(kernel(body), np.zeros(7), 1).tolist() == [7.0]


@needs_compiler
def test_a_break_leaves_the_innermost_loop_only() -> None:
    def body(i: Local) -> list[Statement]:
        n, grown, done, k = Local(f64, True), Local(f64), Local(bool_), Local(i64)
        inner = While((
            Compute(grown, "add", (n, Literal(1.0, f64))), Assign(n, grown),
            Compute(done, "greater", (grown, Literal(2.5, f64))), Break(done),
        ))  # fmt: skip
        return [Assign(n, Literal(0.0, f64)), For(k, ZERO, Literal(4, i64), (inner,)),
                Store(OUT, i, n, True)]  # fmt: skip

    assert executed(kernel(body), np.zeros(1), 1).tolist() == [6.0]


def test_indices_of_many_loops_do_not_have_the_names_of_types() -> None:
    def body(i: Local) -> list[Statement]:
        inside: tuple[Statement, ...] = (Store(OUT, i, Literal(1.0, f64), True),)
        for _ in range(33):
            inside = (For(Local(i64), ZERO, ONE, inside),)
        return list(inside)

    text = emit(kernel(body))
    assert "i31 = " in text
    assert "i33 = " in text
    assert "i32 = " not in text
    assert "i16 = " not in text


EDGES: dict[str, list[Any]] = {
    "b": [True, False],
    "f": [0.0, -0.0, 1.0, -2.5, 0.1, 1e-42, 3.4e38, math.inf, -math.inf, math.nan],
    "c": [0.1 - 2.5j, complex(math.inf, -0.0)],
}


@needs_compiler
@pytest.mark.parametrize("dtype", HERE, ids=str)
def test_numbers_are_exact_and_of_their_dtype(dtype: DType) -> None:
    values = EDGES.get(dtype.kind)
    if values is None:
        info = np.iinfo(dtype.numpy)
        values = [int(info.min), int(info.max), 0, 1, 77]
    with np.errstate(over="ignore"):  # of float16
        wanted = np.array(values, dtype.numpy)
    stores = [f"o[{k}] = {literal(v.item(), dtype)};" for k, v in enumerate(wanted)]
    text = (
        'extern "C" __global__ void kernel(pyrelay_record *record, i64 launch, i64 first, '
        f"i64 last, Buffer<{dtype.name}> o) {{ {' '.join(stores)} }}"
    )
    got = np.zeros(len(values), dtype.numpy)
    emulate([text], (got,), items=[1])
    assert got.tobytes() == wanted.tobytes()


def test_the_text_holds_no_name_of_the_users() -> None:
    def f(some_array: Any) -> Any:
        return np.exp(some_array) * 2.0

    def g(other: Any) -> Any:
        return np.exp(other) * 2.0

    texts = [pyrelay.jit(each, device="cuda_emulator").ir(np.ones(3), stage="emit")
             for each in (f, g)]  # fmt: skip
    kernels = [text[text.index('extern "C"'):] for text in texts]
    assert kernels[0] == kernels[1]
    assert "some_array" not in kernels[0]
