"""Bytes that kernels ask for: exact where extents tell, refused where data does."""

from __future__ import annotations

import pytest

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
from pyrelay.lower.kernels.traffic import asked, moved

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


def test_bytes_are_told_for_each_array() -> None:
    body = (load(), load(), Store(OUT, ZERO, Literal(1.0, f32), True))
    whole = For(Local(i64), BEGIN, END, body)
    assert asked(Kernel((A, N, OUT), BEGIN, END, (whole,), 1, 1), [7], 5) == {A: 80, OUT: 20}


def test_of_two_ends_that_data_choose_from_the_later_one_counts() -> None:
    chosen, end = Local(bool_), Local(i64)
    body = (
        Compute(chosen, "less", (Local(f64), Literal(0.0, f64))),
        Compute(end, "where", (chosen, Literal(3, i64), Literal(5, i64))),
        For(Local(i64), ZERO, end, (load(),)),
    )
    assert bytes_of(body, 1) == 8 * 5
