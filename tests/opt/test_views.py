"""Reads and writes through views touch the elements in question and no part in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.ranges import ranges
from pyrelay.opt.simplify import simplify

A = np.arange(24.0).reshape(4, 6)
B = np.arange(24.0).reshape(2, 3, 4)


def read_row(a, i, j):
    return a[i][j]


def read_row_of_slice(a, i, j):
    return a[1:][i][::-1][j]


def read_of_columns(a, i, j):
    return a[:, 1:][:, j] + i


def read_deep(b, i, j):
    return b[i][j][1]


def slice_of_slice(a, i, j):
    return a[1:, ::2][::-1, 1:] * i + j


def write_row(a, i, j):
    y = a.copy()
    row = y[i]
    row[j] = 7.0
    row[j] += 1.0
    return y


def write_slice(a, i, j):
    y = a.copy()
    part = y[1:, ::-1]
    part[i, j] = 7.0
    return y


def write_slice_of_slice(a, i, j):
    y = a.copy()
    part = y[1:, ::2]
    part[1:, ::-1] += i * 1.5
    return y


def write_deep(b, i, j):
    y = b.copy()
    y[i][j][2] = 3.0
    y[i, 1:][j][1] = 4.0
    return y


def write_back(a, i, j):
    y = a.copy()
    y[1:] = y[1:]
    y[i] = y[i]
    return y * 1.5 + j


def written_part_is_read(a, i, j):
    y = a.copy()
    y[1:, 2:] = a[1:, 2:] * 2.0
    return y[1:, 2:] + i + j


DIRECT: tuple[tuple[Callable[..., Any], Any, dict[str, int]], ...] = (
    (read_row, A, {"index": 1}),
    (read_row_of_slice, A, {"index": 1}),
    (read_of_columns, A, {"index": 1}),
    (read_deep, B, {"index": 1}),
    (slice_of_slice, A, {"slice": 1}),
    (write_row, A, {"index_update": 2}),
    (write_slice, A, {"index_update": 1}),
    (write_slice_of_slice, A, {"slice": 1, "slice_update": 1}),
    (write_deep, B, {"index_update": 2}),
    (write_back, A, {}),
    (written_part_is_read, A, {"slice": 1}),
)
PARTS = frozenset(["index", "slice", "index_update", "index_add", "slice_update", "slice_add"])


@pytest.mark.parametrize(
    ("function", "array", "wanted"), DIRECT, ids=[f.__name__ for f, _, _ in DIRECT]
)
def test_parts_of_parts_are_reached_in_one_step(
    function: Callable[..., Any], array: Any, wanted: dict[str, int]
) -> None:
    for i, j in ((0, 1), (1, -1)):
        args = (array, i, j)
        before = core(function, *args)
        module = after(before, ranges, simplify, cse, simplify, dce)
        assert_same_runs(before, module, args)
        assert {name: n for name, n in ops(module).items() if name in PARTS} == wanted
