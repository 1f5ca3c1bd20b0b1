"""Bytes that kernels ask for: exact where extents tell, refused where data does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import Row, measured, table
from benchmarks.gpu_programs import PROGRAMS
from pyrelay.ir.types import bool_, f32, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    OUTPUT,
    Body,
    Break,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Parameter,
    Read,
    Store,
    While,
)
from pyrelay.lower.kernels.traffic import moved

A, N, OUT = Parameter(ARRAY, 0, f64), Parameter(EXTENT, 0, i64), Parameter(OUTPUT, 0, f32)
ZERO = Literal(0, i64)


def bytes_of(body: Body, n: int, items: int = 1) -> int:
    size = Local(i64)
    made = [Read(size, N)]
    whole = For(Local(i64), BEGIN, END, body)
    return moved(Kernel((A, N, OUT), BEGIN, END, (*made, whole), 1, 1), [n], items)


BEGIN, END = Local(i64), Local(i64)


def load() -> Load:
    return Load(Local(f64), A, ZERO, True)


def test_each_load_and_store_counts_once_per_round_and_item() -> None:
    body = (load(), Store(OUT, ZERO, Literal(1.0, f32), True))
    assert bytes_of(body, 7, items=5) == 5 * (8 + 4)


def test_bounds_that_follow_from_extents_and_indices_are_computed() -> None:
    size, i, j, last = Local(i64), Local(i64), Local(i64), Local(i64)
    triangle = For(i, ZERO, size, (
        Compute(last, "add", (i, Literal(1, i64))), For(j, ZERO, last, (load(),)),
    ))  # fmt: skip
    assert bytes_of((Read(size, N), triangle), 10) == 8 * 55


def test_of_a_choice_by_data_the_larger_way_counts_and_of_one_by_extents_the_one_taken() -> None:
    by_data, x, size, small = Local(bool_), Local(f64), Local(i64), Local(bool_)
    choice = If(by_data, (load(), load()), (load(),))
    body = (Load(x, A, ZERO, True), Compute(by_data, "less", (x, Literal(0.0, f64))), choice)
    assert bytes_of(body, 3) == 8 * 3
    taken = (Read(size, N), Compute(small, "less", (size, Literal(5, i64))),
             If(small, (load(),), (load(), load())))  # fmt: skip
    assert (bytes_of(taken, 3), bytes_of(taken, 9)) == (8, 16)


def test_arrays_of_a_thread_move_nothing() -> None:
    own = LocalArray(f64, 4)
    body = (Store(own, ZERO, Literal(1.0, f64), True), Load(Local(f64), own, ZERO, True))
    assert bytes_of(body, 3) == 0


def test_loops_that_data_ends_are_refused() -> None:
    with pytest.raises(ValueError, match="as often as data says"):
        bytes_of((While((Break(Literal(True, bool_)),)),), 1)


def test_softmax_is_one_kernel_that_reads_its_row_once() -> None:
    function, _ = PROGRAMS["softmax 4096x512"]
    row = measured("small", function, (np.zeros((64, 100), np.float32),))
    array = 64 * 100 * 4
    assert row == Row("small", 1, 1, 0, 2 * array, 2 * array, outer=2 * array)
    assert table([row]).splitlines()[-1].endswith("| 1.00 | 0.05 |")


def test_elementwise_programs_move_no_byte_twice() -> None:
    function, args = PROGRAMS["elementwise 1M"]
    row = measured("small", function, tuple(a[:1000] for a in args))
    assert (row.kernels, row.moved) == (1, row.least)


def test_what_follows_a_product_is_not_charged_with_its_operands() -> None:
    """The product takes them; the kernel behind it reads only what the product made."""
    function, args = PROGRAMS["gradient of perceptron"]
    row = measured("small", function, args)
    assert row.moved >= row.least


def small(name: str, *shapes: tuple[int, ...]) -> Row:
    """The row of a program for small arrays."""
    function, args, *rounds = PROGRAMS[name]
    return measured("small", function, tuple(
        np.zeros(s, a.dtype) for s, a in zip(shapes, args, strict=True)
    ), *rounds and [shapes[0][0]])


def test_the_families_of_programs_ask_for_no_more_than_they_did() -> None:
    """Kernels, those by blocks, products; how often the least bytes are asked for."""
    rows = {
        "layer norm 4096x512": small("layer norm 4096x512", (64, 96), (96,), (96,)),
        "cross entropy 4096x512": small("cross entropy 4096x512", (64, 96), (64,)),
        "LSTM of 256 steps, 256 wide": small(
            "LSTM of 256 steps, 256 wide", (20, 16), (16, 64), (16, 64), (64,)
        ),
        "transformer block 512 x 256": small(
            "transformer block 512 x 256", (64, 32), *((32, 32),) * 4, (32, 64), (64, 32)
        ),
    }
    found = {
        name: (r.kernels, r.by_blocks, r.products, round(r.moved / r.least, 1))
        for name, r in rows.items()
    }
    assert found == {
        "layer norm 4096x512": (1, 1, 0, 2.0), "cross entropy 4096x512": (3, 3, 0, 1.0),
        "LSTM of 256 steps, 256 wide": (2, 0, 2, 1.9),
        "transformer block 512 x 256": (9, 4, 6, 1.0),
    }


def test_programs_with_control_flow_are_refused() -> None:
    def newton(x: Any) -> Any:
        while np.abs(x).max() > 1:
            x = x / 2
        return x

    with pytest.raises(ValueError, match="control flow"):
        measured("loop", newton, (np.ones(5000),))
