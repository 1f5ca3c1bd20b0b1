"""Lines sorted by vectors: every length of a block, what equals, what is no number, any width."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pyrelay.devices.routines import sort_blocks
from pyrelay.devices.routines.sorting import line_sort
from pyrelay.ir.types import DTYPES
from tests.devices.running_kernels import SHORT_NAMES, run


def sorted_by(op: str, x: np.ndarray, bits: int | None = None) -> np.ndarray:
    """What the kernel gives for lines, in two ranges."""
    out = np.full(x.shape, 7, x.dtype if op == "sort" else np.int64)
    room = np.zeros(x.shape, np.int64)
    half = len(x) // 2
    source = line_sort(op, DTYPES[SHORT_NAMES[x.dtype]], bits)
    run(source, x, out, room, x.shape[1], ranges=[(0, half), (half, len(x))])
    return out


def partitioned_by(x: np.ndarray, places: np.ndarray, bits: int | None = None) -> np.ndarray:
    """What the kernel gives for lines, with the same places in all or with those of each."""
    out, room = np.full(x.shape, 7, x.dtype), np.zeros(x.shape, np.int64)
    source = line_sort("partition", DTYPES[SHORT_NAMES[x.dtype]], bits)
    rest = (np.ascontiguousarray(places), places.shape[1], (len(places) > 1) * places.shape[1])
    half = len(x) // 2
    run(source, x, out, room, x.shape[1], *rest, ranges=[(0, half), (half, len(x))])
    return out


def lines(dtype: np.dtype, n: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(n)
    yield (rng.standard_normal(n) * 100).astype(dtype)
    yield rng.integers(0, 4, n).astype(dtype)
    yield np.arange(n).astype(dtype)
    yield np.arange(n)[::-1].astype(dtype)
    yield np.arange(n).astype(dtype) % 7
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        yield rng.integers(ends.min, ends.max, n, dtype=dtype, endpoint=True)
        yield rng.choice(np.array([ends.min, ends.min + 1, 0, ends.max], dtype), n)
        yield ends.max - rng.integers(0, 300, n).astype(dtype)
    else:
        special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0, -1e-30], dtype)
        yield rng.choice(special, n)
        yield (rng.standard_normal(n) * 2.0 ** rng.integers(-120, 120, n)).astype(dtype)
        yield (1 + rng.random(n) * 1e-10).astype(dtype)


def check(dtype: np.dtype, bits: int | None, lengths: list[int]) -> None:
    for n in lengths:
        x = np.stack(list(lines(dtype, n)))
        np.testing.assert_array_equal(sorted_by("sort", x, bits), np.sort(x, axis=1))
        wanted = np.argsort(x, axis=1, kind="stable")
        np.testing.assert_array_equal(sorted_by("argsort", x, bits), wanted)


@pytest.mark.parametrize("dtype", ["f8", "i4", "u2", "i1"])
def test_lines_are_sorted_as_numpy_sorts_them(dtype: str) -> None:
    check(np.dtype(dtype), None, [0, 1, 2, 63, 64, 65, 300, 5000])


def test_narrow_numbers_are_widened_where_no_vectors_of_them_are_compressed() -> None:
    check(np.dtype("i2"), 128, [0, 1, 300, 5000])
    check_places(np.stack(list(lines(np.dtype("u1"), 300))), np.array([[0, 17, 299]]), 128)


def check_places(x: np.ndarray, places: np.ndarray, bits: int | None) -> None:
    found, wanted = partitioned_by(x, places, bits), np.sort(x, axis=1)
    np.testing.assert_array_equal(np.sort(found, axis=1), wanted)
    for line, in_order, asked in zip(
        found, wanted, np.broadcast_to(places, (len(x), places.shape[1])), strict=True
    ):
        np.testing.assert_array_equal(line[asked], in_order[asked])
        for place in asked:
            # Sorting either side of the place sorts the line.
            sides = [np.sort(line[:place]), np.sort(line[place:])]
            np.testing.assert_array_equal(np.concatenate(sides), in_order)


@pytest.mark.parametrize("bits", [None, 128])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u8"])
def test_places_have_what_sorting_puts_there(dtype: str, bits: int | None) -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 64, 65, 300, 5000):
        x = np.stack(list(lines(np.dtype(dtype), n)))
        check_places(x, np.array([[n // 2]]), bits)
        check_places(x, np.array([[0, 0, n // 3, n - 1]]), bits)
        check_places(x, np.sort(rng.integers(0, n, (len(x), 3))), bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "u8", "u4", "u2", "u1"])
def test_every_width_sorts_every_type(dtype: str, bits: int) -> None:
    check(np.dtype(dtype), bits, [*range(140), 255, 256, 257, 1025, 70_000])


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_networks_sort_all_that_zeros_and_ones_show(count: int) -> None:
    """A network that sorts all lines of zeros and ones sorts everything (Knuth, 5.3.4)."""
    rows = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    for low, high in sort_blocks.comparisons(count):
        pair = rows[:, [low, high]]
        rows[:, low], rows[:, high] = pair.min(axis=1), pair.max(axis=1)
    assert (np.diff(rows, axis=1) >= 0).all()


def test_few_different_numbers_are_no_worst_case() -> None:
    """Parts that equal a pivot are done: a million equal numbers but one take a few passes."""
    x = np.zeros((1, 1_000_000))
    x[0, 500_000] = -1
    assert (sorted_by("sort", x) == np.sort(x)).all()
